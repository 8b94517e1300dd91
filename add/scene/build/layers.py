"""Scenes whose start or shapes a law of contact cannot serve: layers around shapes, contact by impulses."""

from collections.abc import Sequence

import numpy as np

from add.bodies import Body, LinkBody, NodalBody
from add.contact import BodyContact, NormalLaw
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.kernels.contact_detection import GROUP, meeting_pairs
from add.kernels.distance import PLANE
from add.model import ContactModel, Model, meeting_meshes
from add.model.overlaps import deep_starts, touching_starts
from add.scene.spec.links import robot_of, trees
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray, IntArray

#: Depth from which on bodies of nodes are refused, over their size.
BURIED = 5.0


def refuse_soft_laws_of_meshes(bodies: Sequence[Body], contact: ContactModel) -> None:
    """Raise if meshes meet under a law that lets their skins touch; under the penalty they have a wall."""
    law = contact.normal_law
    if law is NormalLaw.PENALTY or law.is_infinite:
        return
    meeting = meeting_meshes(bodies, contact)
    if meeting.pairs:
        one, two = (meeting.bodies[k].name for k in meeting.pairs[0])
        raise InputError(
            "this is a law of points and shapes: it is not infinite where the skins of meshes touch",
            place="contact.law",
            found=f"'{law.name.lower().replace('_', '-')}', and '{one}' and '{two}' meet by their meshes",
            expected="'penalty', 'penalty+wall' or 'log-barrier', or the pair switched off",
        )


def refuse_layers(model: Model, theta: FloatArray) -> None:
    """Raise if the law has no layer to act in, an obstacle moves that nothing may touch, or points start behind it."""
    law = model.contact.normal_law
    if law.has_layer and not _have_layers(model, theta):
        raise InputError(
            "points meet shapes in a layer around them, whose thickness is not given",
            place="contact.thickness",
            found=f"the law '{law.name.lower()}'",
            expected="a thickness in contact, or in the row of each pair",
        )
    if not law.is_infinite:
        return
    for item in model.obstacles:
        normal = item.rotation[:, 2]
        slides = item.kind == PLANE and abs(float(normal @ item.velocity)) <= 1e-12 * float(np.abs(item.velocity).sum())
        if item.velocity.any() and not slides:
            raise InputError(
                "an obstacle that moves is no wall: its way within a step is not known to the steps' limits",
                place=f"obstacles.{item.name}.velocity",
                found=str(item.velocity.tolist()),
                expected="a kinematic body with that velocity, a plane that slides in itself, or the law 'penalty'",
            )
    found = touching_starts(model, theta)
    if found:
        worst, others = found[0], f", and {len(found) - 1} more pairs" if len(found) > 1 else ""
        raise InputError(
            f"body '{worst.body}' starts behind the wall of '{worst.other}'{others}",
            place=f"bodies.{worst.body}",
            found=f"{worst.depth:.3g} m deep" if worst.depth > 0.0 else "they touch",
            expected="points outside of shapes at the start; move them apart, or switch the pair off",
        )


def refuse_deep_starts(model: Model, theta: FloatArray) -> None:
    """Raise if bodies start deep in each other, of contact by impulses: no force drives them apart."""
    deep = deep_starts(model, theta)
    if deep:
        others = f", and {len(deep) - 1} more pairs overlap" if len(deep) > 1 else ""
        raise InputError(
            f"starts {deep[0].depth:.3g} m deep inside {deep[0].other}{others}: contact by impulses keeps bodies "
            "apart, it has no force that drives them there",
            place=f"bodies.{deep[0].body}",
            expected="bodies that touch at most",
        )


def refuse_buried(model: Model, theta: FloatArray) -> None:
    """Raise if bodies of nodes start many of their sizes deep in others: the way out tears their elements."""
    nodal = {body.name for body in model.bodies if isinstance(body, NodalBody)}
    buried = [item for item in deep_starts(model, theta) if item.body in nodal and item.depth > BURIED * item.size]
    if buried:
        worst, others = buried[0], f", and {len(buried) - 1} more pairs" if len(buried) > 1 else ""
        raise InputError(
            f"starts {worst.depth:.3g} m deep inside {worst.other}{others}: no force of contact brings elements out of "
            "there",
            place=f"bodies.{worst.body}",
            expected=f"less than {BURIED:g} times its size of {worst.size:.3g} m; move it, or switch this pair off in "
            "contact.pairs",
        )


def _have_layers(model: Model, theta: FloatArray) -> bool:
    """Return whether all points and shapes that meet have a thickness."""
    found: list[IntArray] = []
    for term in model.term(BodyContact):
        assert term.pairs.thickness is not None
        run, shape = meeting_pairs(term.arrays).T
        found.append(term.pairs.thickness[term.arrays.runs[run, GROUP], term.shape_group[shape]])
    return not found or bool((theta[np.concatenate(found)] > 0.0).all())


#: The word of `self_collision` for it.
NOT_AT_START = "not-at-start"


def asked_for(spec: SceneSpec) -> bool:
    """Whether any articulated body asks for it."""
    return any(body.self_collision == NOT_AT_START for body in trees(spec).values())


def touching_links(spec: SceneSpec, model: Model, theta: FloatArray) -> set[tuple[str, str]]:
    """Return the pairs of links, either way round, of trees that ask for it, which touch where they start."""
    asked = {name for name, body in trees(spec).items() if body.self_collision == NOT_AT_START}
    tree = {body.name: body.tree for body in model.bodies if isinstance(body, LinkBody) and body.tree in asked}
    q, v = model.initial.evaluate(theta)
    kin = model.lift.kinematics(Kinematics(q, v, np.zeros_like(v), 0.0, 0), theta)
    names, found = [body.name for body in model.bodies], set()
    for term in model.term(BodyContact):
        for number in term.decide(kin, theta)[:, 0]:
            point, shape = divmod(int(number), term.kind.size)
            if term.shape_carrier[shape] < 0:
                continue
            pair = names[term.owner[point]], names[term.shape_owner[shape]]
            if pair[0] in tree and tree.get(pair[1]) == tree[pair[0]]:
                found |= {pair, pair[::-1]}
    return found


def left_out(spec: SceneSpec, model: Model) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of links of each tree that were left out since they touched at the start."""
    out = {}
    for name, body in trees(spec).items():
        if body.self_collision != NOT_AT_START:
            continue
        robot = robot_of(name, body)
        usual = {frozenset(pair) for pair in robot.excluded}
        usual |= {frozenset((joint.parent, joint.child)) for joint in robot.joints}
        links = {f"{name}/{link.name}": link.name for link in robot.links}
        pairs = {tuple(sorted((links[a], links[b]))) for a, b in model.contact.apart if a in links and b in links}
        out[name] = sorted((a, b) for a, b in pairs if frozenset((a, b)) not in usual)
    return out
