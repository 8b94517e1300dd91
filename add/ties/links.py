"""The pose of a link at the start, as a rule of the numbers that say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from add.kernels.tree_map import link_parameters, place_links
from add.kernels.trees import Tree
from add.ties.base import Rule
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class LinkPose(Rule):
    """Placements and coordinates of a tree -> origin [m] and rotation vector [rad] of the frame of one link.

    Attributes
    ----------
    tree : Tree
        Its placements are indices into the rule's arguments.
    link : int
        Element of the link.
    coordinates : (n,)
        Places of the tree's coordinates among the arguments.
    """

    tree: Tree
    link: int
    coordinates: IntArray

    def value(self, x: FloatArray) -> FloatArray:
        """Return the poses."""
        out = np.empty((x.shape[0], 6))
        links, columns = np.array([self.link]), np.empty((6, self.coordinates.size))
        for row, pose in zip(x, out, strict=True):
            place_links(self.tree, row, links, row[self.coordinates], pose, columns)
        return out

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by all arguments."""
        out = np.zeros((x.shape[0], 6, x.shape[1]))
        links, n = np.array([self.link]), self.coordinates.size
        there = self.tree.placement >= 0
        by_place, by_rate = (np.empty((6, *self.tree.placement.shape)) for _ in range(2))
        for row, slopes in zip(x, out, strict=True):
            q, columns = row[self.coordinates], np.empty((6, n))
            place_links(self.tree, row, links, q, np.empty(6), columns)
            link_parameters(self.tree, row, links, q, np.zeros(n), by_place, by_rate)
            slopes[:, self.coordinates] = columns
            slopes[:, self.tree.placement[there]] = by_place[:, there]
        return out
