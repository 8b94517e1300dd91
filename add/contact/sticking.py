"""Touching pairs of points and shapes that are held against sliding."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.sticking_rows import StickingRows
from add.equations.term import Decision
from add.kernels import sticking_rows as kernel
from add.kernels.contact_pairs import PAIR
from add.typing import FloatArray, IntArray


class StickingPairs(StickingRows):
    """Points that stick to shapes.

    Attributes
    ----------
    points, shapes : (k,) of the sticking pairs
    """

    def __init__(self, decision: Decision, rows: Decision, n_shapes: int) -> None:
        super().__init__(rows)
        self.decision = decision
        self.points, self.shapes = np.divmod(rows[:, PAIR], n_shapes)

    @property
    @abstractmethod
    def first_slots(self) -> IntArray:
        """The first entry of the block of each pair (k,) among the entries of the frozen term; row by row."""

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor d(by_v^T reactions)/dq."""
        geometric = self.evaluate(kin, theta, mu.reshape(-1, 3)).geometric
        kernel.add_blocks(self.dofs, self.first_slots, factor, geometric, data, slots)

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right."""
        kernel.add_products(self.dofs, self.first_slots, factor, left, right, data, slots)
