"""Articulated bodies of a scene: the tree, its links and the numbers they bring."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from scipy.spatial.transform import Rotation

from add.bodies import LinkBody, TreeBody, TreeJoint
from add.bodies.tree_joints import FREE
from add.errors import InputError
from add.kernels.rotation import rotation_vector
from add.kernels.trees import BALL, FIXED, HINGE, SLIDE
from add.model.contact_terms import ShapeName
from add.scene.build.followers import End, common_limits, follow, followers_of, independent_rows, link_starts
from add.scene.build.link_contact import bones_of, link_body
from add.scene.build.rigid_bodies import add_link_sizes
from add.scene.build.ties import SceneParts
from add.scene.build.tree_parts import bounded, stop_by_weight, tree_extras, usual
from add.scene.read.paths import require_known
from add.scene.robots.inertia import six_of
from add.scene.robots.model import WORLD, Robot, RobotJoint, RobotLink
from add.scene.spec.articulated import ArticulatedBodySpec, TreeJointSpec
from add.scene.spec.links import is_body, robot_of
from add.typing import FloatArray

_KINDS = {"fixed": FIXED, "hinge": HINGE, "slide": SLIDE, "ball": BALL, "free": FREE}
_NONE = TreeJointSpec()
#: The slip speed of dry friction that holds: nothing creeps at it, so that it may be small.
_HELD_SLIP_SPEED = 1e-3


@final
@dataclass
class TreeParts:
    """The share of one articulated body in a model."""

    tree: TreeBody
    links: list[LinkBody]
    apart: set[tuple[str, str]] = field(default_factory=set)
    shapes_apart: set[tuple[ShapeName, ShapeName]] = field(default_factory=set)
    starts: dict[str, FloatArray] = field(default_factory=dict)


def articulated_body(
    name: str, body: ArticulatedBodySpec, of_scene: SceneParts, places: Sequence[str], coupled: Collection[str]
) -> TreeParts:
    """Return the tree and its links.

    Parameters
    ----------
    name, body : of the scene
    of_scene : takes its numbers
    places : of the robot, which become links without mass
    coupled : links and others, ``<body>/<link>``, that couplings name

    Raises
    ------
    InputError
        For what a tree cannot have.
    """
    at = f"bodies.{name}"
    robot = robot_of(name, body)
    parts = SceneParts(of_scene.driven)
    free = [joint for joint in robot.joints if joint.kind == "free"]
    loose = len(free) == 1 and free[0] is robot.joints[0] and len([j for j in robot.joints if not j.parent]) == 1
    pose = _keyframe(robot, body, at)
    _add_base(at, body, robot.joints[0] if loose else None, pose, parts)
    order = {WORLD: -1} | {link.name: k for k, link in enumerate(robot.links)}
    position = {joint.name: k for k, joint in enumerate(robot.joints)}
    joints, mimicking = [], followers_of(robot.joints)
    for k, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
        said, place = body.joints.get(joint.name, _NONE), f"{at}.joints.{joint.name}"
        same = mimicking.get(joint.name, [])
        ends, jointed = common_limits(joint, same), not (loose and k == 0)
        made = _tree_joint(joint, link, said, order, position, parts, ends, place)
        rough = joint.mimic is None and any(item.dry_friction for item in (joint, *same))
        made = replace(made, rough=rough, held=_is_held(made, said, body, place) and rough)
        joints.append(made)
        hard, way = body.limits == "hard", ends[1][0] - ends[0][0]
        stop = stop_by_weight(robot, k, way, same) if made.limited and not hard else {}
        _add_joint(place, joint, said, made, pose, ends, parts, starts=jointed, stop=stop, hard=hard)
    springs = follow(at, robot.joints, body.joints, parts)
    for link in robot.links:
        if is_body(link):
            _add_link(f"{at}.links.{link.name}", link, body, parts)
            add_link_sizes(link, body.links.get(link.name), f"{at}.links.{link.name}", parts)
    for key in places:
        on, where, turn = robot.place(key)
        joints.append(TreeJoint(key, FIXED, order[on], key, massless=True))
        _add_placement(f"{at}.joints.{key}", where, turn, parts)
    extras = tree_extras(at, robot, body, parts)
    places_of_loops = [joint.name for joint in extras.places]
    tree = TreeBody(
        name,
        (*joints, *extras.places),
        loose,
        body.limit_onset,
        body.limits == "hard",
        tuple(extras.loops),
        tuple(extras.couplings),
        (*extras.tendons, *springs),
        tuple(extras.drives),
    )
    tree = replace(tree, kept_rows=independent_rows(tree, parts.numbers))
    kept = [link for link in robot.links if is_body(link)]
    links = [link_body(name, link, body, f"{at}.links.{link.name}") for link in kept]
    # Bones stand for links whose meshes are not there, and for all of a robot without shapes.
    bones, bare = bones_of(robot), not any(link.vertices.size for link in links)
    links = [
        replace(drawn, vertices=bones[link.name][0], triangles=bones[link.name][1])
        if not drawn.vertices.size and (bare or link.visual)
        else drawn
        for drawn, link in zip(links, kept, strict=True)
    ]
    links += [
        LinkBody(name, key, np.zeros((0, 3)), np.zeros(0), np.zeros(0), massless=True)
        for key in (*places, *places_of_loops)
    ]
    starts = link_starts(tree, [key for key in tree.links if f"{name}/{key}" in coupled], parts)
    apart = _apart(name, robot, links) if body.self_collision else set()
    replaced = {key for key, link in body.links.items() if link.shapes is not None}
    shapes = {
        ((f"{name}/{a[0]}", a[1]), (f"{name}/{b[0]}", b[1]))
        for pair in (robot.excluded_shapes if body.self_collision else ())
        for a, b in (pair, pair[::-1])
        if a[0] and b[0] and not {a[0], b[0]} & replaced  # shapes of the scene are other ones
    }
    of_scene.take(parts)
    return TreeParts(tree, links, apart, shapes, starts)


def _keyframe(robot: Robot, body: ArticulatedBodySpec, at: str) -> dict[str, FloatArray]:
    """Return the coordinates of joints in the keyframe that the scene names."""
    if body.keyframe is None:
        return {}
    require_known("keyframe", body.keyframe, robot.keyframes, f"{at}.keyframe")
    return robot.keyframes[body.keyframe]


def _add_base(
    at: str, body: ArticulatedBodySpec, free: RobotJoint | None, pose: Mapping[str, FloatArray], parts: SceneParts
) -> None:
    place = np.zeros(3) if free is None else free.position
    turn = np.zeros(3) if free is None else Rotation.from_matrix(free.rotation).as_rotvec()
    if free is not None and free.name in pose:
        place, turn = pose[free.name][:3], pose[free.name][3:]
    if body.position is not None:
        place = np.array(body.position)
    if body.orientation is not None:
        turn = rotation_vector(body.orientation)
    parts.add(f"{at}.position", place, "m")
    parts.add(f"{at}.orientation", turn, "rad")
    if free is not None:
        parts.add_of(at, body, "velocity", "angular_velocity")
    else:
        for key in ("velocity", "angular_velocity"):
            if any(getattr(body, key)):
                raise InputError("the base does not move", place=f"{at}.{key}", expected='"base": "free"')


def _tree_joint(
    joint: RobotJoint,
    link: RobotLink,
    said: TreeJointSpec,
    order: dict[str, int],
    position: dict[str, int],
    parts: SceneParts,
    ends: tuple[End, End],
    at: str,
) -> TreeJoint:
    kind = _KINDS[joint.kind]
    _refuse_none(joint, said, at)
    lower, upper = (limit for limit, _, _ in ends)
    limited = bool(np.isfinite(lower) or np.isfinite(upper))
    if kind == BALL and upper >= np.pi:  # no rotation is by more
        limited = bool(np.isfinite(lower))
    if kind == BALL and limited and not (0.0 < upper < np.pi and lower == -np.inf):
        raise InputError(
            "a ball's limit is the highest angle by which it is turned", place=at,
            found=f"lower = {lower:g}, upper = {upper:g}", expected="no lower limit, and 0 < upper < pi",
        )  # fmt: skip
    motion = None
    if said.motion is not None:
        if kind not in (HINGE, SLIDE):
            raise InputError("only hinges and slides may have a given motion", place=f"{at}.motion")
        motion = parts.signal(said.motion, f"{at}.motion", "m" if kind == SLIDE else "rad", 1)
    mimic = None if joint.mimic is None else (position[joint.mimic[0]], joint.mimic[1], joint.mimic[2])
    return TreeJoint(
        joint.name,
        kind,
        order[joint.parent],
        link.name if is_body(link) else "",
        joint.axis,
        joint.pitch,
        mimic,
        limited=limited and joint.mimic is None and kind in (HINGE, SLIDE, BALL),
        motion=motion,
    )


def _refuse_none(joint: RobotJoint, said: TreeJointSpec, at: str) -> None:
    """Refuse numbers that a joint cannot have: one that mimics another has laws, which act there, and no motion."""
    laws = ("stiffness", "damping", "lower", "upper", "dry_friction", "armature")
    wrong: tuple[str, ...] = ()
    text = f"a {joint.kind} joint has none of this kind"
    if joint.mimic is not None:
        wrong = ("value", "rate", "motion", "slip_speed", "dry_friction_law", "limit_stiffness", "limit_damping")
        text = f"a mimic joint has none of its own: it mimics '{joint.mimic[0]}', which has it"
    elif joint.kind in ("fixed", "free"):
        wrong = (*(("value", "rate") if joint.kind == "fixed" else ()), "motion", *laws)
    for key in wrong:
        if getattr(said, key) is not None:
            raise InputError(text, place=f"{at}.{key}")


def _is_held(joint: TreeJoint, said: TreeJointSpec, body: ArticulatedBodySpec, at: str) -> bool:
    """Return whether a joint's dry friction holds: of one that moves by forces."""
    moved = joint.kind in (HINGE, SLIDE, BALL) and joint.n > 0 and joint.motion is None
    if said.dry_friction_law == "hybrid" and not moved:
        raise InputError(
            "dry friction holds hinges, slides and balls that mimic no other and have no given motion",
            place=f"{at}.dry_friction_law", found="'hybrid'", expected="'tanh'",
        )  # fmt: skip
    return moved and (said.dry_friction_law or body.dry_friction_law) == "hybrid"


def _add_joint(
    at: str,
    joint: RobotJoint,
    said: TreeJointSpec,
    made: TreeJoint,
    pose: Mapping[str, FloatArray],
    ends: tuple[End, End],
    parts: SceneParts,
    *,
    starts: bool,
    stop: Mapping[str, float],
    hard: bool,
) -> None:
    """Add placement, start and laws of a joint; ``stop`` as in `stop_by_weight`."""
    slide, values = made.kind == SLIDE, dict[str, object]()
    if made.n and starts:
        start = np.full(made.n, joint.start)
        if made.kind == FREE:
            start = np.concatenate([joint.position, Rotation.from_matrix(joint.rotation).as_rotvec()])
        values["value"] = _wide(said.value, pose.get(joint.name, start), f"{at}.value")
        values["rate"] = _wide(said.rate, np.zeros(made.n), f"{at}.rate")
    if made.n and made.kind in (HINGE, SLIDE, BALL):
        values["rest"] = _wide(said.rest, np.full(made.n, joint.reference), f"{at}.rest")
        values |= {key: getattr(joint, key) for key in ("stiffness", "damping", "dry_friction")}
        values["slip_speed"] = usual(said, "slip_speed", _HELD_SLIP_SPEED if made.held else None)
        values["armature"] = joint.armature
        if made.limited:
            found = " and ".join(
                f"{end:.6g}" + ("" if name == joint.name else f" (of '{name}', which mimics it)")
                for end, name, _ in ends
            )
            values |= bounded(at, ends[0][0], ends[1][0], found)
            given = said.limit_stiffness is not None  # whose damping is no more than is said
            for key in ("limit_stiffness", "limit_damping"):
                values[key] = usual(said, key, None if given else stop.get(key))
    if made.kind != FREE:
        _add_placement(at, joint.position, joint.rotation, parts)
    for key, x in values.items():  # no motion depends on how hard limits give way
        parts.add(f"{at}.{key}", x, said.unit_of(key, slide), fixed=hard and "limit_" in key)


def _add_placement(at: str, position: FloatArray, rotation: FloatArray, parts: SceneParts) -> None:
    parts.add(f"{at}.position", position, "m")
    parts.add(f"{at}.orientation", Rotation.from_matrix(rotation).as_rotvec(), "rad")


def _wide(said: object, own: FloatArray, place: str) -> FloatArray:
    """Return one number or the three of a ball."""
    if said is None:
        return own
    given = np.atleast_1d(np.array(said, dtype=float))
    if given.size != own.size:
        raise InputError("another number of values", place=place, found=f"{given.size}", expected=f"{own.size}")
    return given


def _add_link(at: str, link: RobotLink, body: ArticulatedBodySpec, parts: SceneParts) -> None:
    """Add mass, inertia and centre; the inertia of a link in the scene follows its mass, where it is not given."""
    six, said = six_of(link.inertia), body.links.get(link.name)
    follows = body.model is None and said is not None and said.inertia is None
    factor = 1.0 if said is None or said.density is None else link.mass / said.density
    key, value, unit = ("mass", link.mass, "kg") if factor == 1.0 else ("density", link.mass / factor, "kg/m^3")
    targets: list[tuple[str, float | FloatArray]] = [(f"{at}.mass", factor)]
    if follows:
        targets.append((f"{at}.inertia", six / link.mass * factor))
    parts.add(f"{at}.{key}", value, unit, targets)
    if not follows:
        parts.add(f"{at}.inertia", six, "kg m^2")
    parts.add(f"{at}.center_of_mass", link.centre, "m", ((f"{at}.centre", 1.0),))


def _apart(name: str, robot: Robot, links: Sequence[LinkBody]) -> set[tuple[str, str]]:
    """Return the pairs of links of a tree that meets itself which do not touch: what the file excludes, neighbours."""
    names = {link.link for link in links}
    pairs = {pair for a, b in robot.excluded for pair in ((a, b), (b, a))}
    pairs |= {pair for joint in robot.joints for pair in ((joint.parent, joint.child), (joint.child, joint.parent))}
    return {(f"{name}/{a}", f"{name}/{b}") for a, b in pairs if a in names and b in names}
