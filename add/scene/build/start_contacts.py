"""Links of one tree that touch where they start, and may be meant to pass through each other."""

from __future__ import annotations

import numpy as np

from add.bodies import LinkBody
from add.contact import BodyContact
from add.equations.kinematics import Kinematics
from add.model import Model
from add.scene.spec.links import robot_of, trees
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray

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
