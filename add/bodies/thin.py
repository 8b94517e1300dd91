"""Nets: bodies of nodes on lines and sheets. Cloth and rods: nodes whose energy is one of strains of small stencils."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from add.bodies.base import Block, ContactMesh, ContactPoints, Family, Layouts, Part, Picture
from add.bodies.nodal import NodalBody, NodalLoad, Pin
from add.equations.layout import ParameterLayout
from add.equations.sites import LawValues, Site, gather
from add.equations.term import Term
from add.geometry import MassPairs
from add.geometry.boundary import triangle_areas
from add.geometry.locate import locate_on_cells
from add.joints.law_term import JointLaw
from add.joints.laws import ElasticJoint, Spring
from add.materials.strains import StrainLaw
from add.terms import Stencils, Strained
from add.typing import FloatArray, IntArray

# --- Bodies of nodes on lines and sheets, with the contact and the picture of their triangles or edges ----------------


@final
@dataclass(frozen=True)
class Springs(Family):
    """Laws between pairs of nodes; parts are ends (m, 2), and the columns of the law (m,) as indices in theta."""

    law: type[JointLaw] = Spring

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term."""
        ends, *numbers = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        sites = [Site.of_nodes(np.array([node]), np.ones(1)) for node in ends.ravel()]
        return [self.law(gather(sites), LawValues.of(*numbers))]


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

    def lumped(self, amount: float) -> MassPairs:
        """Return an amount by nodes."""
        nodes = np.arange(self.shares.size)
        return MassPairs(nodes, nodes, amount * self.shares)

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


# ----------------------------------------------------------------------------------------------------------------------


class Layer(NamedTuple):
    """Stencils of a body with one law; nodes are the body's own, the rest as in `add.terms.Stencils`."""

    law: StrainLaw
    cells: IntArray
    places: IntArray
    shape: FloatArray
    weights: FloatArray


class Seam(NamedTuple):
    """Pairs of nodes (m, 2) that are drawn together, by laws that are smooth where they meet."""

    pairs: IntArray


@final
@dataclass(frozen=True)
class Straining(Family):
    """Stencils of one law and one size; parts are a `Layer` in nodes of the system and indices of its parameters."""

    law: StrainLaw
    widths: tuple[int, ...]

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term."""
        cells, places, shape, weights = (np.concatenate([layer[k] for layer, _ in parts]) for k in range(1, 5))
        group = np.repeat(np.arange(len(parts)), [layer.cells.shape[0] for layer, _ in parts])
        return [
            Strained(
                self.law, Stencils(cells, places, shape, weights, group, np.array([moduli for _, moduli in parts]))
            )
        ]


@final
@dataclass(frozen=True)
class ThinBody(NetBody):
    """A cloth or a rod.

    Attributes
    ----------
    layers : tuple of Layer
    extent : float
        Area [m^2] or length [m] at rest.
    unit : str
        Of the density.
    seams : tuple of Seam
    gradients : (nt, 3, 2)
        Of shape functions at rest, for drawing strains; see `add.geometry.sheet`.
    """

    layers: tuple[Layer, ...] = ()
    extent: float = 0.0
    unit: str = "kg/m^2"
    seams: tuple[Seam, ...] = ()
    gradients: FloatArray | None = None

    def parameters(self) -> list[Block]:
        """Return density, drag, moduli, seams and the pose."""
        at = f"bodies.{self.name}"
        moduli = {modulus.key: modulus.unit for layer in self.layers for modulus in layer.law.parameters}
        scalars = {"density": self.unit, "rayleigh_mass": "1/s", **moduli}
        blocks: list[Block] = [(f"{at}.{key}", (), unit) for key, unit in scalars.items()]
        for k in range(len(self.seams)):
            numbers = (("stiffness", "N/m"), ("damping", "N s/m"))
            blocks += [(f"{at}.seams.{k}.{key}", (), unit) for key, unit in numbers]
        return [*blocks, *self.pose_blocks(), *self.load_places()]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia and weight, layers, seams and loads."""
        first = self.first_node(at)

        def index(key: str) -> int:
            return at.parameters[f"bodies.{self.name}.{key}"].start

        lumped = self.lumped(self.extent)
        out: list[Part | Term] = [*self.weighed(at, lumped, index("density"), index("rayleigh_mass"))]
        for layer in self.layers:
            moduli = [index(modulus.key) for modulus in layer.law.parameters]
            widths = tuple(array.shape[1] for array in layer[1:4])
            out.append(Part(Straining(layer.law, widths), (layer._replace(cells=first + layer.cells), moduli)))
        for k, seam in enumerate(self.seams):
            numbers = [np.full(len(seam.pairs), index(f"seams.{k}.{key}")) for key in ("stiffness", "damping")]
            out.append(Part(Springs(ElasticJoint), (first + seam.pairs, *numbers)))
        return [*out, *self.load_terms(at)]

    def picture(self, theta: FloatArray, at: Layouts) -> Picture:
        """Return nodes, edges and triangles, and what strains are drawn by."""
        picture = super().picture(theta, at)
        if self.gradients is not None:
            picture.values["gradients"] = self.gradients
        return picture

    def fingerprint(self) -> list[Any]:
        """Return nodes, and what is known of the stencils at rest."""
        return [self.points, *(array for layer in self.layers for array in layer[1:]), *(s.pairs for s in self.seams)]


# --- Point masses and springs between them: cloth, nets, ropes, or a single handle that a signal moves ----------------


@dataclass(frozen=True)
class MassSpringBody(NetBody):
    """A mass-spring body: stiffness and damping are one number each, every spring has its own rest length.

    Attributes
    ----------
    massless : bool
        Whether no inertia and no weight act: for handles all of whose nodes are pinned.
    """

    massless: bool = False

    def parameters(self) -> list[Block]:
        """Return mass and damping, those of springs with their lengths, and the pose."""
        scalars = [] if self.massless else [("mass", "kg"), ("rayleigh_mass", "1/s")]
        scalars += [("stiffness", "N/m"), ("damping", "N s/m")] if self.edges.size else []
        blocks: list[Block] = [(f"bodies.{self.name}.{key}", (), unit) for key, unit in scalars]
        if self.edges.size:
            blocks.append((f"bodies.{self.name}.lengths", (self.edges.shape[0],), "m"))
        return [*blocks, *self.pose_blocks(), *self.load_places()]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia and weight, springs, loads."""
        first, prefix = self.first_node(at), f"bodies.{self.name}"
        out: list[Part | Term] = []
        if not self.massless:
            mass, drag = (at.parameters[f"{prefix}.{key}"].start for key in ("mass", "rayleigh_mass"))
            out += self.weighed(at, self.lumped(1.0), mass, drag)
        if self.edges.size:
            keys = ("stiffness", "damping", "lengths")
            n = self.edges.shape[0]
            numbers = [np.broadcast_to(at.parameters[f"{prefix}.{key}"].indices, (n,)) for key in keys]
            out.append(Part(Springs(), (first + self.edges, *numbers)))
        return [*out, *self.load_terms(at)]
