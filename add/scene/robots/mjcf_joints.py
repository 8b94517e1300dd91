"""Bodies and joints of a compiled MuJoCo model, chains of joints with frames in their anchors, and their keyframes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene.robots.inertia import about, from_quaternion
from add.scene.robots.mjcf_model import Mjcf
from add.scene.robots.model import WORLD, LinkPlace, Place, RobotGeometry, RobotJoint, RobotLink, RobotLoop
from add.typing import FloatArray

_X = np.array([1.0, 0.0, 0.0])


def read_joints(
    mjcf: Mjcf,
    shapes: Mapping[int, tuple[Sequence[RobotGeometry], Sequence[RobotGeometry]]],
    base: str | None,
) -> tuple[dict[str, RobotLink], list[RobotJoint], dict[str, FloatArray]]:
    """Return links, joints and where each link's frame is in the frame of its body.

    A link's frame is that of its last joint, in the joint's anchor. A body with n joints is the last of n links, the
    first of which have no mass. Coordinates are the file's, also with `ref`: the joint's frame is turned back by it.

    Parameters
    ----------
    mjcf : of the file
    shapes : (collision, visual) of each body by number, in the body's frame
    base : "fixed", "free", or None as the file says
    """
    model = mjcf.model
    links: dict[str, RobotLink] = {}
    joints: list[RobotJoint] = []
    origins: dict[str, FloatArray] = {WORLD: np.zeros(3)}
    roots = _bases(mjcf, base)
    for body in range(1, model.nbody):
        name, parent = (mjcf.of("body", int(one)) for one in (body, model.body_parentid[body]))
        position, rotation = mjcf.pose("body_", body)
        position = position - origins[parent]
        first = int(model.body_jntadr[body])
        numbers = range(first, first + int(model.body_jntnum[body]))
        if body in roots:
            joint = RobotJoint(roots[body] or f"{name}_base", base or "free", parent, name, position, rotation, _X)
            joints.append(joint)
            numbers = range(0)
        elif not numbers:
            joints.append(RobotJoint(f"{name}_fixed", "fixed", parent, name, position, rotation, _X))
        anchor = np.zeros(3)
        chain = [(joint, number) for number in numbers for joint in _joints(mjcf, number)]
        for k, (joint, number) in enumerate(chain):
            at = np.array(model.jnt_pos[number]) if joint.kind in ("hinge", "ball") else anchor
            position = position + rotation @ (at - anchor)
            back = about(joint.axis, -joint.start) if joint.kind == "hinge" else np.eye(3)
            shift = -joint.start * joint.axis if joint.kind == "slide" else np.zeros(3)
            child = name if k == len(chain) - 1 else mjcf.new(f"{name}_{k + 1}", "body", "site")
            if child != name:
                links[child] = RobotLink(child)
            joints.append(
                replace(
                    joint, parent=parent, child=child, position=position + rotation @ shift, rotation=rotation @ back
                )
            )
            parent, position, rotation, anchor = child, np.zeros(3), np.eye(3), at
        links[name] = _link(mjcf, body, name, anchor, shapes)
        origins[name] = anchor
    links[WORLD] = _link(mjcf, 0, WORLD, np.zeros(3), shapes)
    return links, joints, origins


def _bases(mjcf: Mjcf, base: str | None) -> dict[int, str]:
    """Return the first links whose joint `base` replaces, by number, with the name of the joint."""
    if base is None:
        return {}
    model = mjcf.model
    roots = [b for b in range(1, model.nbody) if model.body_parentid[b] == 0]
    free = [b for b in roots if model.body_jntnum[b] == 1 and model.jnt_type[model.body_jntadr[b]] == 0]
    if base == "fixed":
        return {b: mjcf.of("joint", int(model.body_jntadr[b])) for b in free}
    bare = [b for b in roots if not model.body_jntnum[b]]
    if free and not bare:
        return {}
    if len(roots) != 1 or not bare:
        mjcf.source.fail(
            'base "free"',
            "the file does not have one first body without joints",
            ", ".join(f"'{mjcf.of('body', b)}'" for b in roots) or "no body",
            "one body without joints in <worldbody>",
        )
    return {bare[0]: mjcf.new("floating_base", "joint")}


def _link(mjcf: Mjcf, body: int, name: str, anchor: FloatArray, shapes: Mapping[int, Any]) -> RobotLink:
    """Return a body as a link whose frame is at a place of the body's."""
    centre, shown = np.array(mjcf.model.body_ipos[body]), (tuple(some) for some in shapes.get(body, ((), ())))
    link = RobotLink(name, float(mjcf.model.body_mass[body]), centre, mjcf.inertia(body), *shown)
    return link.moved((-anchor, np.eye(3)))


def _joints(mjcf: Mjcf, number: int) -> list[RobotJoint]:
    """Return a joint without its place in the tree: a free one that has laws as three slides and a ball."""
    joint, model, source = _joint(mjcf, number), mjcf.model, mjcf.source
    if joint.kind != "free" or not (joint.stiffness or joint.damping or joint.dry_friction or joint.armature):
        return [joint]
    place = mjcf.place("joint", number)
    if "free" in source.ignore:
        source.refuse("free", place, "laws of a free joint")
        return [replace(joint, stiffness=0.0, damping=0.0, dry_friction=0.0, armature=0.0)]
    first = int(model.jnt_qposadr[number])
    _, turn = mjcf.pose("body_", model.jnt_bodyid[number])
    *slides, ball = parts_of_free(mjcf, joint.name)
    parts = [
        replace(
            joint,
            name=part,
            kind="slide",
            axis=turn[k],
            start=float(model.qpos0[first + k]),
            reference=float(model.qpos_spring[first + k]),
        )
        for k, part in enumerate(slides)
    ]
    text = ", ".join(f"'{part}'" for part in slides)
    source.note(place, f"a free joint with laws: {text}, and a ball '{ball}'")
    return [*parts, replace(joint, name=ball, kind="ball")]


def parts_of_free(mjcf: Mjcf, name: str) -> list[str]:
    """Return the names of the three slides and the ball of a free joint that has laws."""
    return [mjcf.new(f"{name}_{part}", "joint") for part in ("x", "y", "z", "turn")]


def _joint(mjcf: Mjcf, number: int) -> RobotJoint:
    """Return a joint of the file."""
    model, place = mjcf.model, mjcf.place("joint", number)
    kind = mjcf.word("Joint", model.jnt_type[number]).lower()
    dof, coordinate = int(model.jnt_dofadr[number]), int(model.jnt_qposadr[number])
    stiffness = float(model.jnt_stiffness[number])
    damping, friction, armature = (
        float(values[dof]) for values in (model.dof_damping, model.dof_frictionloss, model.dof_armature)
    )
    mjcf.source.not_negative(place, stiffness=stiffness, damping=damping, frictionloss=friction, armature=armature)
    lower, upper = mjcf.limits("jnt_", number)
    if kind == "ball":
        lower, upper = -np.inf, max(lower, upper)
        if upper <= 0.0:
            mjcf.source.doubt("limit", place, "a ball's limit of zero: it is not limited")
            upper = np.inf
    least, most = mjcf.limits("jnt_actfrc", number)
    if least != -most:
        mjcf.source.refuse("actuatorfrcrange", place, f"actuatorfrcrange {least:g} {most:g} differs by direction")
        most = np.inf
    turns_or_slides = kind in ("hinge", "slide")
    return RobotJoint(
        mjcf.of("joint", number),
        kind,
        WORLD,
        "",
        np.zeros(3),
        np.eye(3),
        np.array(model.jnt_axis[number]) if turns_or_slides else _X,
        lower=lower,
        upper=upper,
        stiffness=stiffness,
        reference=float(model.qpos_spring[coordinate]) if turns_or_slides else 0.0,
        damping=damping,
        dry_friction=friction,
        armature=armature,
        effort=most,
        start=float(model.qpos0[coordinate]) if turns_or_slides else 0.0,
    )


def read_keyframes(mjcf: Mjcf, joints: Sequence[RobotJoint], turn: FloatArray) -> dict[str, dict[str, FloatArray]]:
    """Return keyframe -> joint -> coordinates; joints that were replaced by a base of another kind are left out.

    Parameters
    ----------
    mjcf : of the file
    joints : of the robot
    turn : (3, 3) from the file's axes to the world's
    """
    model = mjcf.model
    kinds = {joint.name: joint.kind for joint in joints}
    out: dict[str, dict[str, FloatArray]] = {}
    for number in range(model.nkey):
        q = np.array(model.key_qpos[number], dtype=np.float64)
        pose: dict[str, FloatArray] = {}
        for joint in range(model.njnt):
            name, at = mjcf.of("joint", joint), int(model.jnt_qposadr[joint])
            kind = kinds.get(name)
            if kind in ("hinge", "slide"):
                pose[name] = q[at : at + 1]
            elif kind == "ball":
                pose[name] = Rotation.from_matrix(from_quaternion(q[at : at + 4])).as_rotvec()
            elif kind is None and model.jnt_type[joint] == 0 and (parts := parts_of_free(mjcf, name))[3] in kinds:
                body_turn = mjcf.pose("body_", model.jnt_bodyid[joint])[1]
                turned = Rotation.from_matrix(body_turn.T @ from_quaternion(q[at + 3 : at + 7])).as_rotvec()
                pose |= dict(zip(parts, [*q[at : at + 3, None], turned], strict=True))
            elif kind == "free":
                rotation = turn @ from_quaternion(q[at + 3 : at + 7])
                pose[name] = np.concatenate([turn @ q[at : at + 3], Rotation.from_matrix(rotation).as_rotvec()])
        label = mjcf.mujoco.mj_id2name(model, mjcf.mujoco.mjtObj.mjOBJ_KEY, number) or f"key{number}"
        out[str(label)] = pose
    return out


# --- Equalities of a compiled MuJoCo model ----------------------------------------------------------------------------


def read_loops(mjcf: Mjcf, bodies: dict[int, LinkPlace], fixed: set[str]) -> tuple[RobotLoop, ...]:
    """Return connections of points, welds and couplings of joints and of fixed tendons.

    Parameters
    ----------
    mjcf : of the file
    bodies : place of each body in its link, by number
    fixed : names of the fixed tendons
    """
    source, model, loops = mjcf.source, mjcf.model, []
    for number in range(model.neq):
        name, place = mjcf.of("equality", number), mjcf.place("equality", number)
        kind = mjcf.word("Eq", model.eq_type[number])
        ends = [int(model.eq_obj1id[number]), int(model.eq_obj2id[number])]
        by_sites = mjcf.word("Obj", model.eq_objtype[number]) == "SITE"
        of_places, weld = kind in ("CONNECT", "WELD"), kind == "WELD"
        turns = weld and model.eq_data[number][10] != 0.0  # without torquescale a weld holds points alone
        held = [model.site_bodyid[end] if by_sites else end for end in ends if of_places]
        if not model.eq_active0[number]:
            source.note(place, "not active")
        elif any(model.body_mocapid[end] >= 0 for end in held):
            source.doubt("mocap", place, "to a mocap body, a handle that others move: left out, and for `couplings`")
        elif kind == "JOINT" or (kind == "TENDON" and "equality" not in source.ignore):
            of = kind.lower()
            named = tuple(mjcf.of(of, end) for end in ends if end >= 0)
            if of == "tendon" and not fixed >= set(named):
                source.refuse("equality", place, "an equality of tendons that are spatial or not read")
                continue
            coefficients = tuple(model.eq_data[number][: 5 if len(named) == 2 else 1].tolist())
            loops.append(RobotLoop(name, f"{of}s", joints=named, coefficients=coefficients))
        elif of_places:
            turn = np.array(model.eq_data[number][6:10])
            if weld and not abs(float(turn @ turn) - 1.0) < 1e-6 and not by_sites:
                source.fail(place, "a weld without a unit quaternion", turn.tolist(), "`relpose` with one, or none")
            both = _ends(mjcf, number, ends, weld, by_sites)
            links, positions, rotations = zip(*(bodies[body].then(local) for body, local in both), strict=True)
            axes = np.stack(rotations if turns else [np.eye(3)] * 2)
            loops.append(RobotLoop(name, "fixed" if turns else "point", links, np.stack(positions), axes))
        else:
            source.refuse("equality", place, f"an equality of type {kind.lower()}")
    return tuple(loops)


def _ends(mjcf: Mjcf, number: int, ends: list[int], weld: bool, by_sites: bool) -> list[tuple[int, Place]]:
    """Return the two bodies, each with the place in it that coincides with the other's."""
    one, two = ends
    data = np.array(mjcf.model.eq_data[number])
    if by_sites:
        return [(int(mjcf.model.site_bodyid[site]), mjcf.pose("site_", site)) for site in ends]
    if not weld:
        return [(one, (data[:3], np.eye(3))), (two, (data[3:6], np.eye(3)))]
    # Of a weld: the point in the second body, in the first, and the turn of the second in the first.
    return [(one, (data[3:6], from_quaternion(data[6:10]))), (two, (data[:3], np.eye(3)))]
