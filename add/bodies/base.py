"""Bodies as values that say everything about themselves: parameters, coordinates, forces, points of contact, pictures.

A body owns one block of q and one of the rows X = Phi(q) on which forces act (`add.equations.lift`). For most kinds the
two are the same, nodes or centre of mass and rotation vector, and there is no `embedding`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from add.equations.initial import PinMotion, Pose
from add.equations.kinematics import Kinematics
from add.equations.layout import DofLayout, ParameterLayout
from add.equations.lift import Carried, Embedding
from add.equations.signals import SignalParameter
from add.equations.sites import NO_INDICES, Site, SiteKind
from add.equations.term import Constraint, DecidingTerm, Term
from add.equations.tree_embedding import TreeEmbedding
from add.errors import InputError
from add.geometry import box_surface, capsule_points, cylinder_surface
from add.geometry.triangle_surface import CollisionMesh
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, SPHERE
from add.terms.memories import Memory
from add.typing import FloatArray, IntArray

#: Name, shape and unit of a block of theta.
Block = tuple[str, tuple[int, ...], str]

#: What every body's start follows from; ``bodies.<name>.position`` and so on.
POSE_VECTORS = (("position", "m"), ("orientation", "rad"), ("velocity", "m/s"), ("angular_velocity", "rad/s"))


class Layouts(NamedTuple):
    """Places of everything: coordinates in q, rows in X, numbers in theta."""

    dofs: DofLayout
    rows: DofLayout
    parameters: ParameterLayout


class Family(ABC):
    """Forces that bodies of several kinds have alike, evaluated by one term for all bodies.

    Families are equal that make one term together.
    """

    #: Whether its terms are written over q and not over rows of X.
    of_coordinates: ClassVar[bool] = False

    @abstractmethod
    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> Sequence[Term | DecidingTerm]:
        """Return the terms of all bodies' parts, mostly one; those with branches are written over q."""


class Part(NamedTuple):
    """The share of one body in the terms of a family; ``arrays`` is what the family understands."""

    family: Family
    arrays: Any


@final
@dataclass(frozen=True)
class CarriedShape:
    """A signed-distance shape fixed to a body with a frame; ``kind`` and ``size`` as in `add.kernels.distance`.

    Attributes
    ----------
    mesh : CollisionMesh or None
        Of the kind MESH, whose size is half its extent.
    in_theta : str
        Name of the block of theta (3,) that its sizes stand in; "" where they are no numbers.
    rotation, position : (3, 3), (3,)
        Pose of the shape's frame in the body's frame.
    """

    kind: int
    size: tuple[float, float, float]
    rotation: FloatArray
    position: FloatArray
    mesh: CollisionMesh | None = None
    in_theta: str = ""


class ContactPoints(NamedTuple):
    """Points of a body that meet shapes: nodes, or points of its frame.

    ``nodes`` (n,) of the body, none for a frame; ``arms`` (n, 3) in the frame [m]; ``radii`` (n,) of the spheres around
    them [m]; ``areas`` (n,) of the surface that each stands for [m^2]; ``shape`` (n,) that each is a point of,
    by number among the body's, where there are several.
    """

    nodes: IntArray
    arms: FloatArray
    radii: FloatArray
    areas: FloatArray
    shape: IntArray | None = None


#: A body that touches nothing by points.
NO_POINTS = ContactPoints(np.zeros(0, dtype=np.int64), np.zeros((0, 3)), np.zeros(0), np.zeros(0))


class ContactMesh(NamedTuple):
    """The surface of a body that meets surfaces of others.

    ``points`` (n, 3) at rest, in its frame [m]; ``nodes`` (n,) of the body under them, None where they are fixed to its
    frame; ``faces`` (m, 3) and further ``edges`` (k, 2) of points. A ball or a capsule has a ``radius`` [m] about
    points and edges without faces, and ``areas`` (n,) for which the points stand [m^2].
    """

    points: FloatArray
    nodes: IntArray | None
    faces: IntArray
    edges: IntArray
    radius: float = 0.0
    areas: FloatArray | None = None


class Picture(NamedTuple):
    """The part of a body that results keep to draw it: elements, a net of springs, or a solid in its frame.

    ``kind`` chooses the group of the file ("bodies", "sheets" or "solids"), ``values`` are that group's, by name.
    """

    kind: str
    values: dict[str, Any]


class Body(ABC):
    """One body. Its numbers in theta are called ``bodies.<name>.<key>``."""

    #: Kinds come in this order in q.
    order: ClassVar[int]
    #: Whether it has a frame: points and directions in it, shapes that it carries, torques on it.
    has_frame: ClassVar[bool]

    #: Name in scenes, theta and results.
    name: str

    @property
    @abstractmethod
    def rest(self) -> FloatArray:
        """Nodes, or corners of what is drawn or touched, in the rest frame (n, 3) [m]."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes that stand for its shape."""
        return len(self.rest)

    @property
    def moves(self) -> bool:
        """Whether forces move it: False where its motion is given."""
        return True

    @property
    def shapes(self) -> tuple[CarriedShape, ...]:
        """The shapes that the points of other bodies meet."""
        return ()

    # --- numbers and coordinates ------------------------------------------------------------------------------------

    @abstractmethod
    def parameters(self) -> list[Block]:
        """Return its blocks of theta, without those of signals."""

    def pose_blocks(self) -> list[Block]:
        """Return the blocks that its start follows from."""
        return [(f"bodies.{self.name}.{key}", (3,), unit) for key, unit in POSE_VECTORS]

    def signals(self) -> list[tuple[SignalParameter, str]]:
        """Return the signals that drive it, and the units of their coefficients."""
        return []

    def rows(self) -> tuple[int, int]:
        """Return the shape (n, 3) of its rows of X: nodes, or centre of mass and rotation vector."""
        return 2, 3

    def coordinates(self) -> tuple[int, ...]:
        """Return the shape of its block of q."""
        return self.rows()

    def embedding(self, at: Layouts) -> Embedding | None:
        """Return its rows of X as functions of its coordinates; None where they are the same."""
        return None

    def tied_rows(self, at: Layouts, bodies: "Mapping[str, Body]") -> list[Carried]:
        """Return its rows of X that follow from coordinates of other ``bodies``, which are known by name."""
        return []

    @property
    def owner(self) -> str:
        """Name of the body whose coordinates it moves with: of a link its tree."""
        return self.name

    def grafted(self, path: str, at: Layouts) -> tuple[TreeEmbedding, int]:
        """Return the frame of tissue that is fixed to it, and the first of the coordinates that this depends on."""
        raise InputError("nothing is fixed to a body of this kind", found=f"'{self.name}'")

    @abstractmethod
    def pose(self, at: Layouts) -> Pose:
        """Return how it starts."""

    def prescribed(self, at: Layouts) -> tuple[list[IntArray], list[PinMotion]]:
        """Return its prescribed coordinates and their motions."""
        return [], []

    def rotations(self, at: Layouts) -> list[int]:
        """Return the first coordinates of the rotation vectors that may change chart."""
        return []

    # --- forces -----------------------------------------------------------------------------------------------------

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return its share in the terms of families, inertia, weight, elasticity, and terms of its own."""
        return []

    def memories(self, at: Layouts) -> list[Memory]:
        """Return what it remembers from step to step."""
        return []

    def constraints(self, at: Layouts, bodies: "Mapping[str, Body]") -> list[Constraint]:
        """Return what holds it exactly."""
        return []

    def contact_points(self) -> ContactPoints:
        """Return what meets shapes."""
        return NO_POINTS

    def contact_mesh(self) -> ContactMesh | None:
        """Return what meets the meshes of other bodies; None if there is none."""
        return None

    def centre(self, at: Layouts) -> IntArray:
        """Return the indices in theta of the centre of mass in its frame (3,); -1 for the frame's origin."""
        return NO_INDICES

    def site(self, kind: SiteKind, arm: IntArray, nodes: IntArray, weights: FloatArray, at: Layouts) -> Site:
        """Return a place, direction or angular velocity of it: of weighted nodes, or of its frame by ``arm`` (3,)."""
        start = at.rows[self.name].start
        if kind is SiteKind.NODES:
            kept = np.flatnonzero(weights)
            return Site.of_nodes(start // 3 + nodes[kept], weights[kept])
        if not self.has_frame:
            raise InputError("a body of nodes has no orientation", found=f"'{self.name}'")
        if kind is SiteKind.POINT:
            return Site(kind, np.arange(start, start + 6), arm=arm, centre=self.centre(at))
        return Site(kind, np.arange(start + 3, start + 6), arm=arm)

    # --- results ----------------------------------------------------------------------------------------------------

    def picture(self, theta: FloatArray, at: Layouts) -> Picture | None:
        """Return what results keep to draw it; None if other bodies, or obstacles, draw it."""
        return None

    @abstractmethod
    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return mass and motion at ``kin`` (of X) for reports; ``masses`` are those of the system's nodes [kg]."""

    @abstractmethod
    def fingerprint(self) -> list[Any]:
        """Return the arrays beside theta that its motion depends on."""


# --- Meshes by which simple shapes, and what carries them, meet the surfaces of others --------------------------------

_NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def shape_mesh(kind: int, size: tuple[float, float, float], mesh: CollisionMesh | None = None) -> ContactMesh | None:
    """Return the mesh of a shape in its frame, of a ball or capsule points and edges with a radius; None of a plane."""
    if kind in (SPHERE, CAPSULE):
        return round_mesh(size[0], size[1] if kind == CAPSULE else 0.0)
    if kind == BOX:
        surface = box_surface(2.0 * np.array(size))
    elif kind == CYLINDER:
        surface = cylinder_surface(size[0], size[1])
    elif mesh is not None:
        return ContactMesh(mesh.vertices, None, mesh.triangles, _NO_EDGES)
    else:
        return None
    return ContactMesh(surface.vertices, None, surface.triangles, _NO_EDGES)


def round_mesh(radius: float, half_length: float) -> ContactMesh:
    """Return a ball, or a capsule along z whose points are so near that between them it is thinner by 3 %."""
    points = capsule_points(radius, half_length, 0.5 * radius) if half_length else np.zeros((1, 3))
    n = points.shape[0]
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    areas = np.full(n, 4.0 * np.pi * radius * (radius + half_length) / n)
    return ContactMesh(points, None, np.zeros((0, 3), dtype=np.int64), edges, radius, areas)


def carried_mesh(shapes: Sequence[CarriedShape]) -> ContactMesh | None:
    """Return the mesh of what a body carries, in its frame.

    None without shapes, with a plane, and where a ball or a capsule is not the only one: a mesh has one radius.
    """
    parts = []
    for shape in shapes:
        mesh = shape_mesh(shape.kind, shape.size, shape.mesh)
        if mesh is None:
            return None
        parts.append(mesh._replace(points=mesh.points @ shape.rotation.T + shape.position))
    if len(parts) < 2 or any(part.radius for part in parts):
        return parts[0] if len(parts) == 1 else None
    first = np.cumsum([0, *(part.points.shape[0] for part in parts)])
    faces = [part.faces + k for part, k in zip(parts, first, strict=False)]
    return ContactMesh(np.concatenate([part.points for part in parts]), None, np.concatenate(faces), _NO_EDGES)
