"""Bodies of nodes on lines and sheets, with the contact and the picture of their triangles or edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import ContactMesh, ContactPoints, Family, Layouts, Picture
from add.bodies.nodal import NodalBody, NodalLoad, Pin
from add.equations.layout import ParameterLayout
from add.equations.sites import LawValues, Site, gather
from add.equations.term import Term
from add.geometry.boundary import triangle_areas
from add.geometry.locate import locate_on_cells
from add.joints.laws import Spring
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Springs(Family):
    """Springs between nodes; parts are (ends (m, 2) nodes, stiffness, damping, length (m,) as indices in theta)."""

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term."""
        ends, k, c, length = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        sites = [Site.of_nodes(np.array([node]), np.ones(1)) for node in ends.ravel()]
        return [Spring(gather(sites), LawValues.of(k, c, length))]


@dataclass(frozen=True)
class NetBody(NodalBody):
    """A body of nodes with edges and triangles between them.

    Attributes
    ----------
    name : str
    points : (n, 3)
        Rest positions [m].
    shares : (n,)
        Share of each node in the body's mass; they sum to one.
    edges : (ne, 2)
        Nodes that a spring or a segment joins.
    triangles : (nt, 3)
        What meets others and is drawn, where there are any; the area that a node stands for.
    touching : bool
        Whether the nodes meet obstacles.
    """

    order: ClassVar[int] = 1

    name: str
    points: FloatArray
    shares: FloatArray
    edges: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    touching: bool = True
    pins: tuple[Pin, ...] = ()
    loads: tuple[NodalLoad, ...] = ()

    @property
    def rest(self) -> FloatArray:
        """Rest positions."""
        return self.points

    def mass_shares(self) -> FloatArray:
        """Return the given shares."""
        return self.shares

    def nodes_at(self, place: FloatArray) -> tuple[IntArray, FloatArray, float]:
        """Return the node that is there, or the corners of the nearest triangle, or edge of what has no triangles."""
        cells = self.triangles if self.triangles.size else self.edges
        return locate_on_cells(place, self.points, cells)

    def contact_points(self) -> ContactPoints:
        """Return all nodes, each with a third of the area of the triangles around it; none if it touches nothing."""
        n = self.points.shape[0]
        third = triangle_areas(self.points, self.triangles) / 3.0
        areas = np.bincount(self.triangles.ravel(), np.repeat(third, 3), minlength=n).astype(float)
        count = n if self.touching else 0
        return ContactPoints(np.arange(count), np.zeros((count, 3)), np.zeros(count), areas[:count])

    def contact_mesh(self) -> ContactMesh | None:
        """Return the triangles, and without any the edges; None if it touches nothing."""
        if not self.touching or not (self.triangles.size or self.edges.size):
            return None
        edges = np.zeros((0, 2), dtype=np.int64) if self.triangles.size else self.edges
        return ContactMesh(self.points, np.arange(self.points.shape[0]), self.triangles, edges)

    def picture(self, theta: FloatArray, at: Layouts) -> Picture:
        """Return nodes, edges and triangles."""
        return Picture("sheets", {"rest": self.points, "edges": self.edges, "triangles": self.triangles})

    def fingerprint(self) -> list[Any]:
        """Return nodes and edges."""
        return [self.points, self.edges]
