"""Reactions of sticking points, where the equations leave them open.

Reactions of sticking points that share coordinates, such as the corners of a box, are not unique. Those that count
minimise

    sum_i |reaction_i|^2 / (c_f f_n,i)      at the same generalised force,

in proportion to what each point can bear: plain least squares would load the uphill points of a box on a slope like the
downhill ones, and release them for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.compiled.holding import ROUNDING, share_reactions
from add.equations.kinematics import Kinematics
from add.equations.system import BranchEquations, System
from add.equations.term import StickConstraint
from add.kernels.sticking import groups, meet
from add.linalg.blas import addresses
from add.typing import FloatArray, IntArray


def share_coordinates(system: System, constraints: Sequence[StickConstraint]) -> bool:
    """Return whether two sticking points act on one free coordinate; nodes with one contact each do not."""
    taken = np.zeros(system.n, dtype=np.int8)
    taken[system.partition.prescribed] = 2
    return any(meet(constraint.dofs, taken) for constraint in constraints)


@final
@dataclass(frozen=True)
class StickingPoints:
    """All sticking points of some constraints, with the free coordinates that their reactions act on.

    Attributes
    ----------
    constraints
    n_points : int
    column, point : (k,)
        Free coordinate and point of every entry of G^T.
    places : of each constraint, its point and place in `StickConstraint.dofs` of every entry
    """

    constraints: Sequence[StickConstraint]
    n_points: int
    column: IntArray
    point: IntArray
    places: list[tuple[IntArray, ...]]

    @classmethod
    def of(cls, system: System, constraints: Sequence[StickConstraint]) -> StickingPoints:
        """Collect the points of some stick constraints, in their order."""
        free = np.zeros(system.n + 1, dtype=bool)
        free[system.partition.free] = True
        places = [np.nonzero(free[constraint.dofs]) for constraint in constraints]  # no coordinate is -1, not free
        firsts = np.cumsum([0, *(constraint.n_rows // 3 for constraint in constraints)])
        columns = [constraint.dofs[place] for constraint, place in zip(constraints, places, strict=True)]
        points = [first + place[0] for first, place in zip(firsts, places, strict=False)]
        return cls(constraints, int(firsts[-1]), np.concatenate(columns), np.concatenate(points), places)

    @cached_property
    def label(self) -> IntArray:
        """Number of the group (n_points,) that each point is in: points of a group share coordinates in turn."""
        label = np.empty(self.n_points, dtype=np.int64)
        groups(self.column, self.point, label)
        return label

    def alone(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> FloatArray:
        """Return the reactions (n_points, 3) without what does nothing, along the normals; nothing is shared out."""
        parts, first = [], 0
        for constraint, (point, place) in zip(self.constraints, self.places, strict=True):
            rows = np.zeros((constraint.n_rows // 3, 3, constraint.dofs.shape[1]))
            rows[point, :, place] = constraint.operators(kin, theta).by_v[point, :, place]
            sizes, axes = np.linalg.eigh(rows @ rows.transpose(0, 2, 1))
            axes *= (sizes > ROUNDING * sizes[:, -1:])[:, None, :]
            mine, first = reactions[first : first + sizes.shape[0], :, None], first + sizes.shape[0]
            parts.append((axes @ (axes.transpose(0, 2, 1) @ mine))[:, :, 0])
        return np.concatenate(parts)

    def distribute(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray, limits: FloatArray) -> FloatArray:
        """Return the reactions (n_points, 3) that count, of which ``reactions`` are some with the same effect [N]."""
        shared, reactions = np.bincount(self.label) > 1, self.alone(kin, theta, reactions)
        rows = np.concatenate(
            [
                constraint.operators(kin, theta).by_v[point, :, place]
                for constraint, (point, place) in zip(self.constraints, self.places, strict=True)
            ]
        )
        for group in np.flatnonzero(shared):
            members = np.flatnonzero(self.label == group)
            entries = np.flatnonzero(self.label[self.point] == group)
            dofs, column = np.unique(self.column[entries], return_inverse=True)
            forces = np.zeros((members.size, 3, dofs.size))
            forces[np.searchsorted(members, self.point[entries]), :, column] = rows[entries]
            shares = reactions[members].ravel()
            share_reactions(addresses(), forces.reshape(shares.size, -1), limits[members], shares)
            reactions[members] = shares.reshape(-1, 3)
        return reactions


def distribute_reactions(
    branch: BranchEquations, system: System, kin: Kinematics, theta: FloatArray, mu: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return multipliers with the reactions that count, of which ``mu`` are some, and what each point can bear [N].

    A limit below zero is that of a point that does not touch.
    """
    first = system.n_multipliers
    constraints = [constraint for _, constraint in branch.stick_constraints]
    if not constraints:
        return mu, np.zeros(0)
    limits = np.concatenate([constraint.limits(kin, theta) for constraint in constraints])
    points, reactions = StickingPoints.of(system, constraints), mu[first:].reshape(-1, 3)
    if share_coordinates(system, constraints):
        reactions = points.distribute(kin, theta, reactions, limits)
    else:
        reactions = points.alone(kin, theta, reactions)
    return np.concatenate([mu[:first], reactions.ravel()]), limits
