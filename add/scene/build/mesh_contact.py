"""Numbers of contact between meshes (skins, coefficients), and scenes whose start or shapes no law can serve."""

from collections.abc import Iterator, Sequence

import numpy as np

from add.bodies import Body, ContactMesh, LinkBody, NodalBody
from add.contact import BodyContact, MeshContact, NormalLaw
from add.contact.crossings import Primitives, refuse_tangled
from add.contact.surfaces import ContactSurface
from add.errors import InputError
from add.kernels.contact_detection import meeting_pairs
from add.kernels.shape_codes import PLANE
from add.kernels.shape_grid import GROUP
from add.model import ContactModel, Model, class_pairs, edge_lengths, half_thickness, meeting_meshes
from add.model.overlaps import deep_starts, touching_starts
from add.scene.build.rigid_bodies import adjustable
from add.scene.build.ties import SceneParameter
from add.scene.spec.links import robot_of, trees
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray, IntArray

#: Share of the reach of the thinnest pair over which forces set in where the scene says nothing.
ONSET = 0.3
#: Share of the reach of a ball and a mesh from which on it is not clear on which side the ball is.
SUNK = 0.5


def areas(model: Model) -> dict[str, float]:
    """Return name of the coefficients of two classes -> mean rest area of the vertices of both [m^2]."""
    terms = model.term(MeshContact)
    if not terms:
        return {}
    surface: ContactSurface = terms[0].surface
    meeting = meeting_meshes(model.bodies, model.contact)
    classes = [model.contact.class_of(body.name) for body in meeting.bodies]
    of_points = np.array(classes)[surface.body]
    flat = {label for label, one in zip(classes, surface.round, strict=True) if not one}
    out = {}
    for pair, name in class_pairs(meeting, model.contact).items():
        # The points of balls and capsules carry: stiffness counts for each of them, as it does for those of shapes.
        carry = set(pair) - flat or set(pair)
        out[name] = float(surface.vertex_areas[np.isin(of_points, list(carry))].mean())
    return out


#: The skin that a body has that says none is thinner where it meets itself, to this share of `half_thickness` at most:
#: parts of its mesh that are nearer at rest than it is thick would push on nothing, and yet never pass. So much of
#: the thickness at which the nearest of them meet is taken.
_THINNEST, _ROOM = 0.25, 0.98


def own_half_thickness(model: Model, name: str, mesh: ContactMesh) -> float:
    """Return the half-thickness of a body that says none [m]; see `_THINNEST`."""
    half = half_thickness(mesh)
    for term in () if mesh.radius else model.term(MeshContact):
        theta = np.zeros(model.system.parameters.n)
        theta[model.system.parameters[f"bodies.{name}.half_thickness"].start] = half
        for _, _, least in term.near_at_rest(theta):
            half = max(min(half, 0.5 * _ROOM * least / term.surface.rest_factor), _THINNEST * half)
    return half


def skins(spec: SceneSpec, model: Model) -> list[SceneParameter]:
    """Return the half-thicknesses of bodies, and the depths over which forces set in.

    Raises
    ------
    InputError
        For a thickness above the mesh width, and for a body that is to meet itself or others and has no mesh.
    """
    meeting = meeting_meshes(model.bodies, model.contact)
    _require_meshes(spec, model)
    shared = spec.contact.mesh.thickness
    out: list[SceneParameter] = []
    common: list[tuple[str, float]] = []
    thickness = {}
    for body, mesh in zip(meeting.bodies, meeting.meshes, strict=True):
        said, target = spec.bodies.get(body.name), f"bodies.{body.name}.half_thickness"
        said_thickness = None if said is None or said.contact is None else said.contact.thickness
        if mesh.radius and said_thickness is not None:
            raise InputError(
                "the skin of a ball or a capsule is its radius",
                place=f"bodies.{body.name}.contact.thickness",
                found=f"{said_thickness:g} m, and a radius of {mesh.radius:g} m",
                expected="null, or another radius",
            )
        if mesh.radius and adjustable(getattr(said, "geometry", None)):
            thickness[body.name] = 2.0 * mesh.radius
            continue  # its radius says it
        if mesh.radius or (said_thickness is None and shared is None):
            thickness[body.name] = 2.0 * own_half_thickness(model, body.name, mesh)
            out.append(SceneParameter(target, np.array(0.5 * thickness[body.name]), "m", ((target, 1.0),), True))
            continue
        path = f"bodies.{body.name}.contact.thickness" if said_thickness is not None else "contact.mesh.thickness"
        thickness[body.name] = value = said_thickness if said_thickness is not None else float(shared or 0.0)
        width = float(np.median(edge_lengths(mesh)))
        if value > width and mesh.nodes is not None:
            raise InputError(
                "a skin is thicker than the mesh is wide",
                place=path,
                found=f"{value:g} m, and edges of body '{body.name}' of {width:.3g} m",
                expected=f"at most {width:.3g} m, or a coarser mesh",
            )
        if said_thickness is not None:
            out.append(SceneParameter(path, np.array(said_thickness), "m", ((target, 0.5),)))
        else:
            common.append((target, 0.5))
    if common:
        out.append(SceneParameter("contact.mesh.thickness", np.array(shared), "m", tuple(common)))
    reach = min((0.5 * (thickness[a] + thickness[b]) for a, b in meeting_names(model)), default=0.0)
    names = dict.fromkeys(class_pairs(meeting, model.contact).values())
    settings, contact = spec.contact.mesh, spec.contact
    onset = settings.onset or contact.onset or ONSET * reach
    ramp = settings.damping_ramp or contact.damping_ramp or onset
    for key, asked, value in (("onset", settings.onset, onset), ("damping_ramp", settings.damping_ramp, ramp)):
        targets = tuple((f"{name}.{'ramp' if key == 'damping_ramp' else key}", 1.0) for name in names)
        if targets:
            path = f"contact.mesh.{key}"
            out.append(SceneParameter(path, np.array(value), "m", targets, asked is None))
    return out


def refuse_tangled_meshes(model: Model, theta: FloatArray) -> None:
    """Raise if meshes that meet pass through each other at the start, or balls and capsules are deep in them."""
    for term in model.term(MeshContact):
        kin = model.begins(theta)
        names = [body.name for body in meeting_meshes(model.bodies, model.contact).bodies]
        refuse_tangled(Primitives.of(term.surface), term.surface.places(kin.q, theta), names)
        if not term.surface.round.any():
            continue
        depths = term.depths(kin, theta, term.decide(kin, theta))
        deep = term.surface.round[depths.bodies].any(axis=1) & (depths.depth > SUNK * depths.reach)
        if deep.any():
            row = int(np.argmax(np.where(deep, depths.depth / depths.reach, -1.0)))
            one, two = sorted(names[body] for body in depths.bodies[row])
            raise InputError(
                f"bodies overlap at the start: '{one}' and '{two}'",
                place="bodies",
                found=f"{depths.depth[row]:.3g} m deep, and they touch {depths.reach[row]:.3g} m apart",
                expected="at most half of that; move them apart, or switch the pair off",
            )


def meeting_names(model: Model) -> Iterator[tuple[str, str]]:
    """Iterate over the names of bodies that meet by their meshes."""
    meeting = meeting_meshes(model.bodies, model.contact)
    for k, l in meeting.pairs:
        yield meeting.bodies[k].name, meeting.bodies[l].name


def _require_meshes(spec: SceneSpec, model: Model) -> None:
    """Refuse what asks for meshes that are not there."""
    met = {frozenset(pair) for pair in meeting_names(model)}
    meshes = {body.name for body in model.bodies if body.contact_mesh() is not None}
    known = {body.name for body in model.bodies}
    for name, body in spec.bodies.items():
        if body.contact is not None and body.contact.meets_itself and frozenset((name,)) not in met:
            raise InputError(
                "only soft and mass-spring bodies that meet others can meet themselves",
                place=f"bodies.{name}.contact.self",
                found="true",
            )
    for k, row in enumerate(spec.contact.pairs):
        if row.thickness is not None and frozenset(row.sides) in met:
            raise InputError(
                "the thickness of a pair is of points and shapes: meshes have skins",
                place=f"contact.pairs.{k}.thickness",
                found=f"{row.thickness:g} m for '{row.sides[0]}' and '{row.sides[1]}', which meet by their meshes",
                expected="bodies.*.contact.thickness or contact.mesh.thickness",
            )
        if row.restitution is not None and frozenset(row.sides) in met:
            raise InputError(
                "a restitution is of points and shapes: give 'damping' for meshes",
                place=f"contact.pairs.{k}.restitution",
                found=f"{row.restitution:g} for '{row.sides[0]}' and '{row.sides[1]}', which meet by their meshes",
            )
        if not row.by_meshes:
            continue
        at = f"contact.pairs.{k}.by_meshes"
        for side in row.sides:
            if (side in spec.obstacles or side in known) and side not in meshes:
                raise InputError(
                    "it has no mesh to meet others by",
                    place=at,
                    found=f"'{side}'",
                    expected="soft and mass-spring bodies, boxes, cylinders, surfaces of files, balls and capsules; "
                    "links of these, but no ball or capsule beside others",
                )
        if not frozenset(row.sides) <= meshes:
            continue  # classes
        one, two = (model.body(side).contact_mesh() for side in row.sides)
        assert one is not None and two is not None
        if row.enabled and frozenset(row.sides) not in met and (one.radius or two.radius):
            raise InputError(
                "balls and capsules meet faces: those of soft bodies, sheets, boxes and surfaces of files",
                place=at,
                found=f"'{row.sides[0]}' and '{row.sides[1]}'",
                expected="false, so that their shapes meet",
            )


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
    starts = touching_starts(model, theta)
    if starts:
        worst, others = starts[0], f", and {len(starts) - 1} more pairs" if len(starts) > 1 else ""
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
    if not nodal:  # where links are many, looking for what is deep in what takes a tenth of building
        return
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
    layers: list[IntArray] = []
    for term in model.term(BodyContact):
        assert term.pairs.thickness is not None
        run, shape = meeting_pairs(term.arrays).T
        layers.append(term.pairs.thickness[term.arrays.runs[run, GROUP], term.shape_group[shape]])
    return not layers or bool((theta[np.concatenate(layers)] > 0.0).all())


#: The word of `self_collision` for it.
NOT_AT_START = "not-at-start"


def asked_for(spec: SceneSpec) -> bool:
    """Whether any articulated body asks for it."""
    return any(body.self_collision == NOT_AT_START for body in trees(spec).values())


def touching_links(spec: SceneSpec, model: Model, theta: FloatArray) -> set[tuple[str, str]]:
    """Return the pairs of links, either way round, of trees that ask for it, which touch where they start."""
    asked = {name for name, body in trees(spec).items() if body.self_collision == NOT_AT_START}
    tree = {body.name: body.tree for body in model.bodies if isinstance(body, LinkBody) and body.tree in asked}
    kin = model.begins(theta)
    names, pairs = [body.name for body in model.bodies], set()
    for term in model.term(BodyContact):
        for number in term.decide(kin, theta)[:, 0]:
            point, shape = divmod(int(number), term.kind.size)
            if term.shape_carrier[shape] < 0:
                continue
            pair = names[term.owner[point]], names[term.shape_owner[shape]]
            if pair[0] in tree and tree.get(pair[1]) == tree[pair[0]]:
                pairs |= {pair, pair[::-1]}
    return pairs


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
