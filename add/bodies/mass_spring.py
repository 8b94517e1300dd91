"""Point masses and springs between them: cloth, nets, ropes, or a single handle that a signal moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import POSE_VECTORS, Block, ContactMesh, ContactPoints, Family, Layouts, Part, Picture
from add.bodies.families import NODAL_INERTIA, WEIGHT
from add.bodies.nodal import NodalBody, NodalLoad, Pin
from add.equations.layout import ParameterLayout
from add.equations.sites import LawValues, Site, gather
from add.equations.term import Term
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
class MassSpringBody(NodalBody):
    """A mass-spring body.

    Attributes
    ----------
    name : str
    points : (n, 3)
        Rest positions [m].
    shares : (n,)
        Share of each node in the body's mass; they sum to one.
    edges : (ne, 2)
        Nodes that a spring joins; stiffness and damping are one number each, every spring has its own rest length.
    triangles : (nt, 3)
        For drawing, and for the area that a node stands for.
    massless : bool
        Whether no inertia and no weight act: for handles all of whose nodes are pinned.
    touching : bool
        Whether the nodes meet obstacles.
    """

    order: ClassVar[int] = 1

    name: str
    points: FloatArray
    shares: FloatArray
    edges: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    massless: bool = False
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
        """Return the nearest node."""
        away = np.linalg.norm(self.points - place, axis=1)
        node = int(np.argmin(away))
        return np.array([node]), np.ones(1), float(away[node])

    def parameters(self) -> list[Block]:
        """Return mass and damping, those of springs with their lengths, and the pose."""
        scalars = [] if self.massless else [("mass", "kg"), ("rayleigh_mass", "1/s")]
        scalars += [("stiffness", "N/m"), ("damping", "N s/m")] if self.edges.size else []
        blocks: list[Block] = [(f"bodies.{self.name}.{key}", (), unit) for key, unit in scalars]
        if self.edges.size:
            blocks.append((f"bodies.{self.name}.lengths", (self.edges.shape[0],), "m"))
        return [*blocks, *((f"bodies.{self.name}.{key}", (3,), unit) for key, unit in POSE_VECTORS)]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia and weight, springs, loads."""
        first, own = self.first_node(at), f"bodies.{self.name}"
        out: list[Part | Term] = []
        if not self.massless:
            mass, drag = (at.parameters[f"{own}.{key}"].start for key in ("mass", "rayleigh_mass"))
            nodes = first + np.arange(self.points.shape[0])
            index, masses = np.full(nodes.size, mass), np.repeat(self.shares[:, None], 3, axis=1)
            out.append(Part(NODAL_INERTIA, (nodes, nodes, masses, index, np.full(nodes.size, drag))))
            out.append(Part(WEIGHT, (nodes, self.shares, index)))
        if self.edges.size:
            keys = ("stiffness", "damping", "lengths")
            n = self.edges.shape[0]
            numbers = [np.broadcast_to(at.parameters[f"{own}.{key}"].indices, (n,)) for key in keys]
            out.append(Part(Springs(), (first + self.edges, *numbers)))
        return [*out, *self.load_terms(at)]

    def contact_points(self) -> ContactPoints:
        """Return all nodes, each with a third of the area of the triangles around it; none if it touches nothing."""
        n = self.points.shape[0]
        a, b, c = (self.points[self.triangles[:, k]] for k in range(3))
        third = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6.0
        areas = np.bincount(self.triangles.ravel(), np.repeat(third, 3), minlength=n).astype(float)
        count = n if self.touching else 0
        return ContactPoints(np.arange(count), np.zeros((count, 3)), np.zeros(count), areas[:count])

    def contact_mesh(self) -> ContactMesh | None:
        """Return the triangles, and of a net without any the springs; None if it touches nothing."""
        if not self.touching or not (self.triangles.size or self.edges.size):
            return None
        edges = np.zeros((0, 2), dtype=np.int64) if self.triangles.size else self.edges
        return ContactMesh(self.points, np.arange(self.points.shape[0]), self.triangles, edges)

    def picture(self, theta: FloatArray, at: Layouts) -> Picture:
        """Return nodes, springs and triangles."""
        return Picture("sheets", {"rest": self.points, "edges": self.edges, "triangles": self.triangles})

    def fingerprint(self) -> list[Any]:
        """Return nodes and springs."""
        return [self.points, self.edges]
