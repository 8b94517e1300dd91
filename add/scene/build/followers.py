"""Joints that mimic another, whose laws act on it, and rows of closed loops that say something of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.linalg import qr

from add.bodies import Layouts, TreeBody
from add.bodies.tree_parts import TreeTendon
from add.equations.layout import DofLayout, ParameterLayout
from add.errors import InputError
from add.scene.build.ties import Derived, OfScene, SceneParameter, SceneParts
from add.scene.build.tree_alone import ClosedLinkPose, ClosedPose, TreeAlone, alone, loop_blocks
from add.scene.robots.model import RobotJoint
from add.scene.spec.articulated import TreeJointSpec
from add.ties import LinkPose, WeightedSum
from add.typing import FloatArray, IntArray

#: Numbers of a follower that add to those of the joint it mimics, by the power of |m| that carries them over: forces by
#: rates and accelerations of the follower are m times those of the leader, and m times as large there.
_ADDED = {"damping": 2, "dry_friction": 1, "armature": 2}
_NONE = TreeJointSpec()
#: A limit of a coordinate, the joint that it is of, and its name there.
End = tuple[float, str, str]


def followers_of(joints: Sequence[RobotJoint]) -> dict[str, list[RobotJoint]]:
    """Return joint -> those that mimic it."""
    out: dict[str, list[RobotJoint]] = {}
    for joint in joints:
        if joint.mimic is not None:
            out.setdefault(joint.mimic[0], []).append(joint)
    return out


def common_limits(joint: RobotJoint, followers: Sequence[RobotJoint]) -> tuple[End, End]:
    """Return the narrowest limits of a coordinate, those of joints that mimic it included.

    Each is named with the joint that brings it and the name of the limit there: with m < 0 the other one.
    """
    intervals = [((joint.lower, joint.name, "lower"), (joint.upper, joint.name, "upper"))]
    for item in followers:
        assert item.mimic is not None
        _, m, c = item.mimic
        ends = [((getattr(item, key) - c) / m, item.name, key) for key in ("lower", "upper")]
        intervals.append((ends[0], ends[1]) if m > 0.0 else (ends[1], ends[0]))
    return max((pair[0] for pair in intervals), key=lambda end: end[0]), min(
        (pair[1] for pair in intervals), key=lambda end: end[0]
    )


def follow(
    at: str, joints: Sequence[RobotJoint], said: Mapping[str, TreeJointSpec], parts: SceneParts
) -> list[TreeTendon]:
    """Return the springs of joints that mimic another, and free the numbers of the others of what then is a sum.

    Parameters
    ----------
    at : of the body
    joints, said : of the robot, and what the scene says of them
    parts : of the body so far; numbers of joints that are mimicked come to set theta through what follows from them
    """
    springs: list[TreeTendon] = []
    before, parts = parts, SceneParts(parts.driven)
    number, mimicking = {joint.name: k for k, joint in enumerate(joints)}, followers_of(joints)
    sums: dict[str, list[tuple[str, float]]] = {}
    for joint in joints:
        if joint.mimic is None:
            continue
        leader, m, c = joint.mimic
        path, of_leader, said_of = f"{at}.joints.{joint.name}", f"{at}.joints.{leader}", said.get(joint.name, _NONE)
        slide = joint.kind == "slide"
        for key, power in _ADDED.items():
            parts.add(f"{path}.{key}", getattr(joint, key), said_of.unit_of(key, slide), ())
            terms = sums.setdefault(f"{of_leader}.{key}", [(f"{of_leader}.{key}", 1.0)])
            terms.append((f"{path}.{key}", abs(m) ** power))
        if joint.stiffness or said_of.stiffness is not None:
            springs.append(TreeTendon(f"{path}.spring", (number[leader],)))
            _spring(path, m, c, joint, said_of, parts)
        binding = common_limits(joints[number[leader]], mimicking[leader])
        for key, (end, (_, name, of)) in product(("lower", "upper"), zip(("lower", "upper"), binding, strict=True)):
            if (name, of) == (joint.name, key):
                parts.add(f"{path}.{key}", getattr(joint, key), said_of.unit_of(key, slide), ())
                rule = WeightedSum((1.0 / m,), -c / m)
                parts.derived.append(Derived((f"{of_leader}.{end}",), rule, (OfScene(f"{path}.{key}"),)))
    for target, terms in sums.items():
        rule = WeightedSum(tuple(weight for _, weight in terms))
        parts.derived.append(Derived((target,), rule, tuple(OfScene(path) for path, _ in terms)))
    made = {name for item in parts.derived for name in item.outputs}
    before.numbers[:] = [
        replace(item, targets=()) if item.path in sums else item
        for item in before.numbers
        if item.path in sums or item.path not in made  # a limit that a narrower one replaces sets nothing
    ]
    before.take(parts)
    return springs


def _spring(path: str, m: float, c: float, joint: RobotJoint, said: TreeJointSpec, parts: SceneParts) -> None:
    """Add the numbers of a follower's spring: -k (l - rest) on the length l = m q_leader, at rest where q is."""
    at, slide = f"{path}.spring", joint.kind == "slide"
    for key, value, unit in (
        ("factors", np.array([m]), "-"),
        ("damping", 0.0, "N s/m"),
        ("dry_friction", 0.0, "N"),
        ("slip_speed", 1.0, "m/s"),
    ):
        parts.add(f"{at}.{key}", value, unit, fixed=True)
    parts.add(f"{path}.stiffness", joint.stiffness, said.unit_of("stiffness", slide), ((f"{at}.stiffness", 1.0),))
    rest = joint.reference if said.rest is None else said.rest
    parts.add(f"{path}.rest", rest, said.unit_of("rest", slide), ())
    parts.derived.append(Derived((f"{at}.rest",), WeightedSum((1.0,), -c), (OfScene(f"{path}.rest"),)))


def link_starts(tree: TreeBody, links: Sequence[str], parts: SceneParts) -> dict[str, FloatArray]:
    """Add the blocks ``bodies.<tree>/<link>.position`` and ``.orientation`` with their ties; return the poses (6,).

    They are those of t = 0, where given motions begin and loops are closed.
    """
    if not links:
        return {}
    whole, theta = alone(tree, parts.numbers)
    elements, of_links = tree.tree(Layouts(DofLayout([]), DofLayout([]), whole))
    places = elements.placement
    values = tree.start_names()
    of_loops = [whole[name].indices.ravel() for name in loop_blocks(tree)]
    needed = np.unique(np.concatenate([places[places >= 0], *(whole[name].indices for name in values), *of_loops]))
    names = [entry.name for entry in whole.entries if entry.start in needed]
    layout = ParameterLayout([(name, whole[name].shape, whole[name].unit) for name in names])
    local = np.full(whole.n, -1, dtype=np.int64)
    for name in names:
        local[whole[name].indices.ravel()] = layout[name].indices.ravel()
    closing = ClosedPose.of(tree, parts.numbers, names) if tree.loops or tree.couplings else None
    n = elements.parent.size
    elements = elements._replace(
        placement=np.where(places >= 0, local[places], -1),
        mass=np.full(n, -1, dtype=np.int64),
        gravity=np.zeros(3, dtype=np.int64),
    )
    coordinates = local[np.concatenate([whole[name].indices.ravel() for name in values])]
    x = np.concatenate([theta[whole[name].indices.ravel()] for name in names])
    begun = {}
    for joint in tree.joints:
        if joint.motion is not None:
            value = tree.path(joint, "value")
            begun[value] = parts.begin(value, joint.motion, whole[value].unit)
            x[layout[value].indices.ravel()] += joint.motion.begins
    poses = {}
    for link in links:
        name = f"{tree.name}/{link}"
        number = tree.links.index(link)
        rule = ClosedLinkPose(closing, number) if closing else LinkPose(elements, int(of_links[number]), coordinates)
        outputs = (f"bodies.{name}.position", f"bodies.{name}.orientation")
        parts.blocks += [(outputs[0], (3,), "m"), (outputs[1], (3,), "rad")]
        parts.derived.append(Derived(outputs, rule, tuple(begun.get(key, key) for key in names)))
        poses[name] = rule.value(x[None])[0]
    return poses


# --- Loops of a tree at the start: whether they close, and which of their rows do not depend on others ----------------


#: Poses about the start in which rows are compared, how far from it they are [rad, m], and what counts as dependent.
_POSES, _NEAR, _TOLERANCE = 4, 0.05, 1e-8
#: Derivatives of a loop's rows below this are rounding [1, m].
_STILL = 1e-12


def independent_rows(tree: TreeBody, numbers: Sequence[SceneParameter]) -> IntArray:
    """Return the rows of the loops, by number, that do not depend on others; equations between joints come first.

    A planar loop that is closed by a hinge has five rows, of which two count. Rows are compared in the closed pose and
    in others about it: what depends only in this one pose is no row too many, but a pose in which the loop can go on
    in several ways.

    Raises
    ------
    InputError
        If a loop does not close, holds nothing, or is singular in its closed pose, or if dry friction holds more joints
        of it than move independently.
    """
    if not (tree.loops or tree.couplings):
        return np.zeros(0, dtype=np.int64)
    system = TreeAlone(tree, numbers)
    q = system.closed()
    if not tree.loops:
        _check_held(tree, system, system.matrices(q)[0])
        return np.zeros(0, dtype=np.int64)
    rng = np.random.default_rng(0)
    poses = [q, *(q + _NEAR * rng.standard_normal(q.size) for _ in range(_POSES))]
    pairs = [system.matrices(pose) for pose in poses]
    parts = np.split(np.hstack([loops for _, loops in pairs]), np.cumsum([len(loop.rows) for loop in tree.loops])[:-1])
    for loop, own in zip(tree.loops, parts, strict=True):
        if np.abs(own).max(initial=0.0) < _STILL:
            raise InputError("no joint moves its frames against each other: it holds nothing", place=loop.path)
    # What equations between joints say already is taken out of the loops' rows; scale does not matter.
    rows = np.concatenate([_without(loops_of, loops)[1] for loops_of, loops in pairs], axis=1)
    _, upper, order = qr(rows.T, mode="economic", pivoting=True)
    size = np.abs(upper.diagonal())
    kept = np.sort(order[: int((size > _TOLERANCE * max(float(size[0]), 1e-300)).sum())]).astype(np.int64)
    here = np.linalg.svd(_without(*pairs[0])[1][kept], compute_uv=False)
    if kept.size > rows.shape[1] // len(poses) or (kept.size and here[-1] < 1e-6 * here[0]):
        raise InputError(
            "the loops are singular where they start: their equations say there the same, or more than the joints "
            "can do",
            place=tree.loops[0].path,
            found=f"{kept.size} independent rows, singular values {here[0]:.3g} to {here[-1]:.3g}",
            expected="another start, or fewer loops",
        )
    _check_held(tree, system, np.concatenate([pairs[0][0], pairs[0][1][kept]]))
    return kept


def _check_held(tree: TreeBody, system: "TreeAlone", rows: FloatArray) -> None:
    """Refuse to hold joints whose rates depend on each other: closed loops in q contradict rates of zero in v."""
    held = [
        first + k for first, joint in zip(tree.first, tree.joints, strict=True) if joint.held for k in range(joint.n)
    ]
    rest = ~np.isin(system.free, held)
    size = np.linalg.svd(rows, compute_uv=False)[0]
    left = np.linalg.svd(rows[:, rest], compute_uv=False)
    if held and (rest.sum() < rows.shape[0] or left.min() < 1e-6 * size):
        raise InputError(
            "dry friction holds joints that do not move independently: their loops are rigid while all stick",
            place=f"bodies.{tree.name}", found=f"{len(held)} coordinates with the law 'hybrid'",
            expected='"dry_friction_law": "tanh" of some of them',
        )  # fmt: skip


def _without(own: FloatArray, loops: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rows of loops across those of equations between joints."""
    if not own.shape[0]:
        return own, loops
    basis = np.linalg.svd(own, full_matrices=False)[2]
    return own, loops - (loops @ basis.T) @ basis
