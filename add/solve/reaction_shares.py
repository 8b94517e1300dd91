"""Reactions of sticking points that share coordinates, such as the corners of a box.

They are not unique. Those that count minimise

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
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from add.equations.kinematics import Kinematics
from add.equations.system import System
from add.equations.term import StickConstraint
from add.kernels.sticking_rows import meet
from add.typing import FloatArray, IntArray


def share_coordinates(system: System, constraints: Sequence[StickConstraint]) -> bool:
    """Return whether two sticking points act on one free coordinate; nodes with one contact each do not."""
    taken = np.zeros(system.n, dtype=np.int8)
    taken[system.partition.prescribed] = 2
    return any(meet(constraint.dofs, taken) for constraint in constraints)


@final
@dataclass(frozen=True)
class StickingPoints:
    """All sticking points of a state, with the free coordinates that their reactions act on.

    Attributes
    ----------
    n_points : int
    limits : (n_points,) what each can bear [N]; below zero where it does not touch
    column, point : (k,)
        Free coordinate and point of every entry of G^T.
    rows : (k, 3)
        The entries: what a unit reaction does to the coordinate.
    """

    n_points: int
    limits: FloatArray
    column: IntArray
    point: IntArray
    rows: FloatArray

    @classmethod
    def of(
        cls, system: System, constraints: Sequence[StickConstraint], kin: Kinematics, theta: FloatArray
    ) -> StickingPoints:
        """Collect the points of some stick constraints, in their order."""
        free = np.zeros(system.n + 1, dtype=bool)
        free[system.partition.free] = True
        columns, points, rows, limits, first = [], [], [], [], 0
        for constraint in constraints:
            operators = constraint.operators(kin, theta)
            # No coordinate (-1) is the last entry, which is not free.
            point, place = np.nonzero(free[constraint.dofs])
            columns.append(constraint.dofs[point, place])
            points.append(first + point)
            rows.append(operators.by_v[point, :, place])
            limits.append(constraint.limits(kin, theta))
            first += constraint.n_rows // 3
        return cls(first, np.concatenate(limits), np.concatenate(columns), np.concatenate(points), np.concatenate(rows))

    @cached_property
    def label(self) -> IntArray:
        """Number of the group (n_points,) that each point is in: points of a group share coordinates in turn."""
        _, column = np.unique(self.column, return_inverse=True)
        shape = (self.n_points, int(column.max(initial=-1)) + 1)
        incidence = sp.csr_array((np.ones(column.size), (self.point, column)), shape=shape)
        return np.asarray(connected_components(incidence @ incidence.T, directed=False)[1], dtype=np.int64)

    def distribute_reactions(self, reactions: FloatArray) -> FloatArray:
        """Return the reactions (n_points, 3) that count, of which ``reactions`` are some with the same effect [N]."""
        shared = np.bincount(self.label) > 1
        reactions = reactions.copy()
        # A point that bears nothing still needs a number; it will be released.
        weight = np.sqrt(np.maximum(self.limits, 1e-12 * max(float(self.limits.max()), 1e-300)))
        for group in np.flatnonzero(shared):
            members = np.flatnonzero(self.label == group)
            entries = np.flatnonzero(self.label[self.point] == group)
            dofs, column = np.unique(self.column[entries], return_inverse=True)
            force = np.zeros((dofs.size, members.size, 3))
            force[column, np.searchsorted(members, self.point[entries])] = self.rows[entries]
            weighted = (force * weight[members][:, None]).reshape(dofs.size, -1)
            total = force.reshape(dofs.size, -1) @ reactions[members].ravel()
            # Coordinates have different units: rows of like size, so that the rank is found.
            size = np.linalg.norm(weighted, axis=1)
            size[size == 0.0] = 1.0
            shares = np.linalg.lstsq(weighted / size[:, None], total / size, rcond=1e-10)[0]
            reactions[members] = shares.reshape(-1, 3) * weight[members][:, None]
        return reactions
