"""Loops of a tree at the start: whether they close, and which of their rows do not depend on others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr

from add.bodies import Layouts, TreeBody
from add.bodies.tree_parts import joint_couplings, link_loops
from add.equations.assembly import Assembly
from add.equations.initial import InitialState
from add.equations.layout import DofLayout, ParameterLayout
from add.equations.lift import Lift
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.term import Constraint
from add.equations.tree_embedding import TreeEmbedding
from add.errors import InputError, naming
from add.scene.build.numbers import SceneParameter
from add.typing import FloatArray, IntArray

#: Poses about the start in which rows are compared, how far from it they are [rad, m], and what counts as dependent.
_POSES, _NEAR, _TOLERANCE = 4, 0.05, 1e-8


def independent_rows(tree: TreeBody, numbers: Sequence[SceneParameter]) -> IntArray:
    """Return the rows of the loops, by number, that do not depend on others; equations between joints come first.

    A planar loop that is closed by a hinge has five rows, of which two count. Rows are compared in the closed pose and
    in others about it: what depends only in this one pose is no row too many, but a pose in which the loop can go on
    in several ways.

    Raises
    ------
    InputError
        If a loop does not close, or is singular in its closed pose, or if dry friction holds more joints of it than
        move independently.
    """
    if not (tree.loops or tree.couplings):
        return np.zeros(0, dtype=np.int64)
    system = _TreeAlone(tree, numbers)
    q = system.closed()
    if not tree.loops:
        _check_held(tree, system, system.matrices(q)[0])
        return np.zeros(0, dtype=np.int64)
    rng = np.random.default_rng(0)
    poses = [q, *(q + _NEAR * rng.standard_normal(q.size) for _ in range(_POSES))]
    pairs = [system.matrices(pose) for pose in poses]
    # What equations between joints say already is taken out of the loops' rows; scale does not matter.
    rows = np.concatenate([_without(own, loops)[1] for own, loops in pairs], axis=1)
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


def _check_held(tree: TreeBody, system: _TreeAlone, rows: FloatArray) -> None:
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


class _TreeAlone:
    """A tree with its numbers, before there is a model: the pose in which its loops are closed, and their rows."""

    def __init__(self, tree: TreeBody, numbers: Sequence[SceneParameter]) -> None:
        n, whole = tree.coordinates()[0], ParameterLayout([*tree.parameters(), ("gravity", (3,), "m/s^2")])
        self.tree, self.theta = tree, np.zeros(whole.n)
        for number in numbers:
            for target, factor in number.targets:
                name, _, row = target.partition("#")
                if name in whole:
                    view = whole.view(self.theta, name)
                    if row:
                        view[int(row)] = factor * number.value
                    else:
                        view[...] = factor * number.value
        dofs = DofLayout([(tree.name, (n,), "")])
        rows = DofLayout([(f"{tree.name}/{link}", (2, 3), "m") for link in tree.links])
        at = Layouts(dofs, rows, whole)
        lift = Lift(dofs, rows, (TreeEmbedding(*tree.tree(at), n),))
        self.n, self.dofs = n, tree.first
        every = np.arange(sum(len(loop.rows) for loop in tree.loops))
        self.loops: list[Constraint] = []
        if every.size:
            self.loops.append(LiftedConstraint(link_loops(tree.name, tree.loops, every, at), lift))
        self.couplings = joint_couplings(tree.couplings, tree.first, at)
        self.initial = InitialState(n, (tree.pose(at),))
        held = [first for first, joint in zip(tree.first, tree.joints, strict=True) if joint.motion is not None]
        self.held = np.array(held, dtype=np.int64)
        self.free = np.setdiff1d(np.arange(n), self.held)

    def closed(self) -> FloatArray:
        """Return the coordinates (n,) nearest to the start, by first order, in which all loops are closed."""
        with naming(f"bodies.{self.tree.name}.loops"):
            return Assembly((*self.couplings, *self.loops), self.n, self.held).closed(
                self.theta, self.initial.given(self.theta)[0]
            )

    def matrices(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of the equations between joints, and of the loops' rows, by free coordinates."""
        parts = []
        for constraints in (self.couplings, self.loops):
            assembly = Assembly(tuple(constraints), self.n, self.held)
            parts.append(assembly.rows_by_coordinates(q, self.theta)[:, self.free])
        return parts[0], parts[1]
