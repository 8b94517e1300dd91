"""Bodies and joints of a compiled MuJoCo model, chains of joints with frames in their anchors, and their keyframes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.scene.robots.inertia import Place, about, after, from_quaternion
from add.scene.robots.mjcf_model import Names
from add.scene.robots.model import WORLD, RobotGeometry, RobotJoint, RobotLink, RobotLoop
from add.scene.robots.xml_file import Source
from add.typing import FloatArray

_KINDS = ("free", "ball", "slide", "hinge")
_X = np.array([1.0, 0.0, 0.0])


def read_joints(
    source: Source,
    mujoco: Any,
    model: Any,
    names: Names,
    shapes: Mapping[int, tuple[Sequence[RobotGeometry], Sequence[RobotGeometry]]],
    base: str | None,
) -> tuple[dict[str, RobotLink], list[RobotJoint], dict[str, FloatArray]]:
    """Return links, joints and where each link's frame is in the frame of its body.

    A link's frame is that of its last joint, in the joint's anchor. A body with n joints is the last of n links, the
    first of which have no mass. Coordinates are the file's, also with `ref`: the joint's frame is turned back by it.

    Parameters
    ----------
    source, mujoco, model, names : of the file
    shapes : (collision, visual) of each body by number, in the body's frame
    base : "fixed", "free", or None as the file says
    """
    links: dict[str, RobotLink] = {}
    joints: list[RobotJoint] = []
    origins: dict[str, FloatArray] = {WORLD: np.zeros(3)}
    roots = _bases(source, mujoco, model, names, base)
    for body in range(1, model.nbody):
        name = names.of("body", body)
        parent = names.of("body", int(model.body_parentid[body]))
        position = np.array(model.body_pos[body]) - origins[parent]
        rotation = from_quaternion(np.array(model.body_quat[body]))
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        numbers = range(first, first + count)
        if body in roots:
            joint = RobotJoint(roots[body] or f"{name}_base", base or "free", parent, name, position, rotation, _X)
            joints.append(joint)
            numbers = range(0)
        elif not count:
            joints.append(RobotJoint(f"{name}_fixed", "fixed", parent, name, position, rotation, _X))
        anchor = np.zeros(3)
        chain = [(joint, number) for number in numbers for joint in _joints(source, mujoco, model, names, number)]
        for k, (joint, number) in enumerate(chain):
            at = np.array(model.jnt_pos[number]) if joint.kind in ("hinge", "ball") else anchor
            position = position + rotation @ (at - anchor)
            back = about(joint.axis, -joint.start) if joint.kind == "hinge" else np.eye(3)
            shift = -joint.start * joint.axis if joint.kind == "slide" else np.zeros(3)
            child = name if k == len(chain) - 1 else names.new(f"{name}_{k + 1}", "body", "site")
            if child != name:
                links[child] = RobotLink(child, 0.0, np.zeros(3), np.zeros((3, 3)))
            joints.append(
                replace(
                    joint, parent=parent, child=child, position=position + rotation @ shift, rotation=rotation @ back
                )
            )
            parent, position, rotation, anchor = child, np.zeros(3), np.eye(3), at
        links[name] = _link(model, names, body, name, anchor, shapes)
        origins[name] = anchor
    links[WORLD] = _link(model, names, 0, WORLD, np.zeros(3), shapes)
    return links, joints, origins


def _bases(source: Source, mujoco: Any, model: Any, names: Names, base: str | None) -> dict[int, str]:
    """Return the first links whose joint `base` replaces, by number, with the name of the joint."""
    if base is None:
        return {}
    roots = [b for b in range(1, model.nbody) if model.body_parentid[b] == 0]
    free = [b for b in roots if model.body_jntnum[b] == 1 and model.jnt_type[model.body_jntadr[b]] == 0]
    if base == "fixed":
        return {b: names.of("joint", int(model.body_jntadr[b])) for b in free}
    bare = [b for b in roots if not model.body_jntnum[b]]
    if free and not bare:
        return {}
    if len(roots) != 1 or not bare:
        source.fail(
            'base "free"',
            "the file does not have one first body without joints",
            ", ".join(f"'{names.of('body', b)}'" for b in roots) or "no body",
            "one body without joints in <worldbody>",
        )
    return {bare[0]: names.new("floating_base", "joint")}


def _link(model: Any, names: Names, body: int, name: str, anchor: FloatArray, shapes: Mapping[int, Any]) -> RobotLink:
    """Return a body as a link whose frame is at a place of the body's."""
    collision, visual = shapes.get(body, ((), ()))
    return RobotLink(
        name,
        float(model.body_mass[body]),
        np.array(model.body_ipos[body]) - anchor,
        names.inertia(body),
        tuple(replace(shape, position=shape.position - anchor) for shape in collision),
        tuple(replace(shape, position=shape.position - anchor) for shape in visual),
    )


def _joints(source: Source, mujoco: Any, model: Any, names: Names, number: int) -> list[RobotJoint]:
    """Return a joint without its place in the tree: a free one that has laws as three slides and a ball."""
    joint = _joint(source, names, model, number)
    if joint.kind != "free" or not (joint.stiffness or joint.damping or joint.dry_friction or joint.armature):
        return [joint]
    if "free" in source.ignore:
        source.refuse("free", source.place("joint", joint.name), "laws of a free joint")
        return [replace(joint, stiffness=0.0, damping=0.0, dry_friction=0.0, armature=0.0)]
    first = int(model.jnt_qposadr[number])
    back = from_quaternion(np.array(model.body_quat[model.jnt_bodyid[number]])).T
    parts = [
        replace(
            joint,
            name=part,
            kind="slide",
            axis=back[:, k].copy(),
            start=float(model.qpos0[first + k]),
            reference=float(model.qpos_spring[first + k]),
        )
        for k, part in enumerate(parts_of_free(names, joint.name)[:3])
    ]
    text = ", ".join(f"'{part.name}'" for part in parts)
    parts.append(replace(joint, name=parts_of_free(names, joint.name)[3], kind="ball"))
    source.note(source.place("joint", joint.name), f"a free joint with laws: {text}, and a ball '{parts[3].name}'")
    return parts


def parts_of_free(names: Names, name: str) -> list[str]:
    """Return the names of the three slides and the ball of a free joint that has laws."""
    return [names.new(f"{name}_{part}", "joint") for part in ("x", "y", "z", "turn")]


def _joint(source: Source, names: Names, model: Any, number: int) -> RobotJoint:
    """Return a joint of the file."""
    name, kind = names.of("joint", number), _KINDS[int(model.jnt_type[number])]
    place = source.place("joint", name)
    dof, coordinate = int(model.jnt_dofadr[number]), int(model.jnt_qposadr[number])
    joint = RobotJoint(
        name, kind, WORLD, "", np.zeros(3), np.eye(3), np.array(model.jnt_axis[number], dtype=np.float64)
    )
    numbers = {
        "stiffness": float(model.jnt_stiffness[number]),
        "damping": float(model.dof_damping[dof]),
        "frictionloss": float(model.dof_frictionloss[dof]),
        "armature": float(model.dof_armature[dof]),
    }
    source.not_negative(place, **numbers)
    if model.jnt_limited[number]:
        lower, upper = (float(value) for value in model.jnt_range[number])
        if kind == "ball":
            lower, upper = -np.inf, max(lower, upper)
        if upper > 0.0 or kind != "ball":
            joint = replace(joint, lower=lower, upper=upper)
        else:
            source.doubt("limit", place, "a ball's limit of zero: it is not limited")
    if kind in ("hinge", "slide"):
        joint = replace(joint, reference=float(model.qpos_spring[coordinate]), start=float(model.qpos0[coordinate]))
    if model.jnt_actfrclimited[number]:
        least, most = (float(value) for value in model.jnt_actfrcrange[number])
        if least != -most:
            source.refuse("actuatorfrcrange", place, f"actuatorfrcrange {least:g} {most:g} differs by direction")
        else:
            joint = replace(joint, effort=most)
    return replace(
        joint,
        axis=_X if kind in ("ball", "free") else joint.axis,
        stiffness=numbers["stiffness"],
        damping=numbers["damping"],
        dry_friction=numbers["frictionloss"],
        armature=numbers["armature"],
    )


def read_keyframes(
    mujoco: Any, model: Any, names: Names, joints: Sequence[RobotJoint], turn: FloatArray
) -> dict[str, dict[str, FloatArray]]:
    """Return keyframe -> joint -> coordinates; joints that were replaced by a base of another kind are left out.

    Parameters
    ----------
    mujoco, model, names : of the file
    joints : of the robot
    turn : (3, 3) from the file's axes to the world's
    """
    kinds = {joint.name: joint.kind for joint in joints}
    out: dict[str, dict[str, FloatArray]] = {}
    for number in range(model.nkey):
        q = np.array(model.key_qpos[number], dtype=np.float64)
        pose: dict[str, FloatArray] = {}
        for joint in range(model.njnt):
            name, at = names.of("joint", joint), int(model.jnt_qposadr[joint])
            kind = kinds.get(name)
            if kind in ("hinge", "slide"):
                pose[name] = q[at : at + 1]
            elif kind == "ball":
                pose[name] = Rotation.from_matrix(from_quaternion(q[at : at + 4])).as_rotvec()
            elif kind is None and model.jnt_type[joint] == 0 and (parts := parts_of_free(names, name))[3] in kinds:
                back = from_quaternion(np.array(model.body_quat[model.jnt_bodyid[joint]])).T
                turned = Rotation.from_matrix(back @ from_quaternion(q[at + 3 : at + 7])).as_rotvec()
                pose |= dict(zip(parts, [*q[at : at + 3, None], turned], strict=True))
            elif kind == "free":
                rotation = turn @ from_quaternion(q[at + 3 : at + 7])
                pose[name] = np.concatenate([turn @ q[at : at + 3], Rotation.from_matrix(rotation).as_rotvec()])
        label = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_KEY, number) or f"key{number}"
        out[str(label)] = pose
    return out


# --- Equalities of a compiled MuJoCo model ----------------------------------------------------------------------------

LinkPlace = tuple[str, FloatArray, FloatArray]


def read_loops(
    source: Source, mujoco: Any, model: Any, names: Names, bodies: dict[int, LinkPlace], fixed: set[str]
) -> tuple[RobotLoop, ...]:
    """Return connections of points, welds and couplings of joints and of fixed tendons.

    Parameters
    ----------
    source, mujoco, model, names : of the file
    bodies : place of each body in its link, by number
    fixed : names of the fixed tendons
    """
    loops = []
    kinds = mujoco.mjtEq
    for number in range(model.neq):
        name, kind = names.of("equality", number), int(model.eq_type[number])
        place = source.place("equality", name)
        if not model.eq_active0[number]:
            source.note(place, "not active")
        elif _held_by_mocap(model, number, kinds, by_sites=_by_sites(mujoco, model, number)):
            source.doubt("mocap", place, "to a mocap body, a handle that others move: left out, and for `couplings`")
        elif kind == int(kinds.mjEQ_JOINT) or (kind == int(kinds.mjEQ_TENDON) and "equality" not in source.ignore):
            of = "joint" if kind == int(kinds.mjEQ_JOINT) else "tendon"
            numbers = [int(model.eq_obj1id[number]), int(model.eq_obj2id[number])]
            ends = tuple(names.of(of, end) for end in numbers if end >= 0)
            count = 5 if len(ends) == 2 else 1
            coefficients = tuple(float(value) for value in model.eq_data[number][:count])
            if of == "tendon" and not fixed >= set(ends):
                source.refuse("equality", place, "an equality of tendons that are spatial or not read")
                continue
            loops.append(RobotLoop(name, f"{of}s", joints=ends, coefficients=coefficients))
        elif kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            weld = kind == int(kinds.mjEQ_WELD)
            turn = np.array(model.eq_data[number][6:10])
            if weld and not abs(float(turn @ turn) - 1.0) < 1e-6 and not _by_sites(mujoco, model, number):
                source.fail(place, "a weld without a unit quaternion", turn.tolist(), "`relpose` with one, or none")
            both = _ends(mujoco, model, number, weld)
            links = tuple(bodies[body][0] for body, _ in both)
            places = [after(bodies[body][1:], local) for body, local in both]
            positions = np.stack([at[0] for at in places])
            rotations = np.stack([at[1] for at in places]) if weld else np.stack([np.eye(3)] * 2)
            loops.append(RobotLoop(name, "fixed" if weld else "point", links, positions, rotations))
        else:
            what = mujoco.mjtEq(kind).name.removeprefix("mjEQ_").lower()
            source.refuse("equality", place, f"an equality of type {what}")
    return tuple(loops)


def _ends(mujoco: Any, model: Any, number: int, weld: bool) -> list[tuple[int, Place]]:
    """Return the two bodies, each with the place in it that coincides with the other's."""
    one, two = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
    data = np.array(model.eq_data[number], dtype=np.float64)
    if _by_sites(mujoco, model, number):
        return [
            (
                int(model.site_bodyid[site]),
                (np.array(model.site_pos[site]), from_quaternion(np.array(model.site_quat[site]))),
            )
            for site in (one, two)
        ]
    if not weld:
        return [(one, (data[:3], np.eye(3))), (two, (data[3:6], np.eye(3)))]
    # Of a weld: the point in the second body, in the first, and the turn of the second in the first.
    return [(one, (data[3:6], from_quaternion(data[6:10]))), (two, (data[:3], np.eye(3)))]


def _held_by_mocap(model: Any, number: int, kinds: Any, *, by_sites: bool) -> bool:
    """Return whether an equality of places has a mocap body at one end."""
    if int(model.eq_type[number]) not in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
        return False
    ends = (int(model.eq_obj1id[number]), int(model.eq_obj2id[number]))
    return any(model.body_mocapid[model.site_bodyid[end] if by_sites else end] >= 0 for end in ends)


def _by_sites(mujoco: Any, model: Any, number: int) -> bool:
    return int(model.eq_objtype[number]) == int(mujoco.mjtObj.mjOBJ_SITE)
