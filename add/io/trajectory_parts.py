"""The parts of a trajectory: bodies, obstacles, links and contacts as plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.errors import InputError
from add.geometry import FAMILIES, SoftMesh
from add.geometry.shapes import known_shapes
from add.materials import NAMES, Material, formula_law, material
from add.summary import counted
from add.typing import FloatArray, IntArray

LINE_KINDS = ("spring", "cable", "load")


def floats(values: object, shape: tuple[int | None, ...], name: str) -> FloatArray:
    """Return a C-ordered float64 array of the expected shape (None: any length)."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        raise InputError("wrong shape", place=name, found=array.shape, expected=_shape_text(shape))
    return array


def nodes_of(values: object, width: int, n_nodes: int, name: str) -> IntArray:
    """Return a C-ordered int64 array (any, width) with entries in [0, n_nodes)."""
    array = np.ascontiguousarray(values, dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != width:
        raise InputError("wrong shape", place=name, found=array.shape, expected=_shape_text((None, width)))
    if array.size and (array.min() < 0 or array.max() >= n_nodes):
        raise InputError("names nodes that do not exist", place=name, found=f"{array.min()} ... {array.max()}",
                         expected=f"0 ... {n_nodes - 1}")  # fmt: skip
    return array


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return "shape (" + ", ".join("any" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


def _choice(value: str, known: Sequence[str], name: str) -> None:
    if value not in known:
        raise InputError("unknown value", place=name, found=repr(value), expected=" or ".join(map(repr, known)))


def _shape_code(kind: int, lowest: int, place: str, what: str) -> int:
    known = [shape.code for shape in known_shapes()]
    if int(kind) not in known and not lowest <= kind < 0:
        expected = f"a code {lowest} ... {max(known)}"
        raise InputError(f"unknown kind of {what}", place=place, found=kind, expected=expected)
    return int(kind)


def set_fields(part: object, **values: object) -> None:
    """Set fields of a frozen part to what they were brought to."""
    for name, value in values.items():
        object.__setattr__(part, name, value)


class _Nodal:
    """Places of a body that has nodes in q."""

    start: int
    rest: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.rest)

    @property
    def entries(self) -> slice:
        """Its entries in q."""
        return slice(self.start, self.start + 3 * self.n_nodes)


@final
@dataclass(frozen=True, eq=False)
class BodyData(_Nodal):
    """A soft body: where it is in q, its rest mesh and its elastic law.

    Attributes
    ----------
    name : str
    start : int
        Its nodes are ``q[start:start + 3 n].reshape(n, 3)``.
    family : "tet4", "tet10" or "hex8"
    rest : (n, 3) rest positions [m]
    cells : (ne, nn) nodes of each element
    surface : (nt, 3) outward triangles
    model : str
        Name of the elastic law, as in `add.materials`; "formula" for one that the scene writes.
    moduli : (n_sets, n_p) or (n_p,)
        Sets of the law's parameters, in its order.
    group : (ne,) the set of each element; the first where it is None
    mean_dilatation : bool
    formula : str
        Of the energy, where the scene writes it.
    """

    name: str
    start: int
    family: str
    rest: FloatArray
    cells: IntArray
    surface: IntArray
    model: str
    moduli: FloatArray
    mean_dilatation: bool = False
    formula: str = ""
    group: IntArray | None = None

    def __post_init__(self) -> None:
        """Bring to plain types and check that the parts fit."""
        place = f"bodies.{self.name}"
        _choice(self.family, tuple(FAMILIES), f"{place}.family")
        _choice(self.model, ["formula"] if self.formula else NAMES, f"{place}.model")
        expected = len(self.law.parameters)
        moduli = floats(np.atleast_2d(self.moduli), (None, expected), f"{place}.moduli")
        found = np.zeros(len(self.cells)) if self.group is None else self.group
        group = floats(found, (len(self.cells),), f"{place}.group").astype(np.int64)
        if (group < 0).any() or (group >= len(moduli)).any():
            raise InputError("no such set of moduli", place=f"{place}.group", expected=f"0 to {len(moduli) - 1}")
        rest = floats(self.rest, (None, 3), f"{place}.rest")
        cells = nodes_of(self.cells, FAMILIES[self.family].n_nodes, len(rest), f"{place}.cells")
        surface = nodes_of(self.surface, 3, len(rest), f"{place}.surface")
        set_fields(self, start=int(self.start), rest=rest, cells=cells, surface=surface, moduli=moduli, group=group,
                   mean_dilatation=bool(self.mean_dilatation))  # fmt: skip

    @property
    def law(self) -> Material:
        """Its elastic law."""
        return formula_law(self.formula) if self.formula else material(self.model)

    @property
    def mesh(self) -> SoftMesh:
        """Its rest mesh."""
        return SoftMesh(self.rest, self.cells, FAMILIES[self.family])


@final
@dataclass(frozen=True, eq=False)
class MassSpringData(_Nodal):
    """A body of point masses and springs: where it is in q and what to draw.

    Attributes
    ----------
    name : str
    start : int
        Its nodes are ``q[start:start + 3 n].reshape(n, 3)``.
    rest : (n, 3) rest positions [m]
    edges : (ne, 2) nodes that springs join
    triangles : (nt, 3)
        Empty for nets, ropes and handles.
    gradients : (nt, 3, 2)
        Gradients of the triangles' shape functions at rest [1/m], of which strains are told; empty for springs.
    """

    name: str
    start: int
    rest: FloatArray
    edges: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    gradients: FloatArray = field(default_factory=lambda: np.zeros((0, 3, 2)))

    def __post_init__(self) -> None:
        """Bring to plain types and check that the parts fit."""
        place = f"sheets.{self.name}"
        rest = floats(self.rest, (None, 3), f"{place}.rest")
        triangles = nodes_of(self.triangles, 3, len(rest), f"{place}.triangles")
        gradients = floats(self.gradients, (len(triangles) if len(self.gradients) else 0, 3, 2), f"{place}.gradients")
        edges = nodes_of(self.edges, 2, len(rest), f"{place}.edges")
        set_fields(self, start=int(self.start), rest=rest, edges=edges, triangles=triangles, gradients=gradients)


@final
@dataclass(frozen=True, eq=False)
class SolidData:
    """A rigid body, or one with a given motion: where it is in q and what to draw.

    A place X of its frame is at x + R (X - centre), x = ``q[start:start + 3]``, R the turn by the rotation vector
    ``q[start + 3:start + 6]``.

    Attributes
    ----------
    name : str
    start : int
    kinematic : bool
        Whether its motion is given.
    centre : (3,)
        Centre of mass in the body's frame [m].
    kind : int
        Code of `add.kernels.distance` of its shape, centred in the body's frame; -1 for a mesh, or for nothing.
    size : (3,) [m]
        As of an obstacle.
    vertices, triangles : (nv, 3) in the body's frame [m], (nt, 3)
        Its mesh, if any.
    """

    name: str
    start: int
    kinematic: bool = False
    centre: FloatArray = field(default_factory=lambda: np.zeros(3))
    kind: int = -1
    size: FloatArray = field(default_factory=lambda: np.zeros(3))
    vertices: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))

    def __post_init__(self) -> None:
        """Bring to plain types and check that the parts fit."""
        place = f"solids.{self.name}"
        vertices = floats(self.vertices, (None, 3), f"{place}.vertices")
        centre, size = floats(self.centre, (3,), f"{place}.centre"), floats(self.size, (3,), f"{place}.size")
        triangles = nodes_of(self.triangles, 3, len(vertices), f"{place}.triangles")
        kind = _shape_code(self.kind, -1, place, "shape")
        set_fields(self, start=int(self.start), kinematic=bool(self.kinematic), centre=centre, kind=kind, size=size)
        set_fields(self, vertices=vertices, triangles=triangles)

    @property
    def entries(self) -> slice:
        """Its six entries in q."""
        return slice(self.start, self.start + 6)


@final
@dataclass(frozen=True, eq=False)
class ObstacleData:
    """A shape of the world, x = R X + p + t V.

    Attributes
    ----------
    name : str
    kind : int
        PLANE 0 (z >= 0 of its frame is free), SPHERE 1, BOX 2, CAPSULE 3, CYLINDER 4, MESH 5.
    size : (3,) [m]
        SPHERE: radius. BOX: half sizes. CAPSULE, CYLINDER: radius, half length; axis z of the frame. MESH: half
        its extents.
    rotation : (3, 3)
    position : (3,) at t = 0 [m]
    velocity : (3,) [m/s]
    vertices, triangles : (nv, 3) in its frame [m], (nt, 3)
        Of a mesh.
    """

    name: str
    kind: int
    size: FloatArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray = field(default_factory=lambda: np.zeros(3))
    vertices: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))

    def __post_init__(self) -> None:
        """Bring to plain types and check shapes."""
        place = f"obstacles.{self.name}"
        set_fields(self, kind=_shape_code(self.kind, 0, place, "obstacle"))
        shapes = {"size": (3,), "rotation": (3, 3), "position": (3,), "velocity": (3,), "vertices": (None, 3)}
        set_fields(
            self, **{name: floats(getattr(self, name), shape, f"{place}.{name}") for name, shape in shapes.items()}
        )
        set_fields(self, triangles=nodes_of(self.triangles, 3, len(self.vertices), f"{place}.triangles"))


@final
@dataclass(frozen=True, eq=False)
class LineData:
    """A spring, a cable or a given force over the k states of a run.

    Attributes
    ----------
    kind : "spring", "cable" or "load"
    ends : (k, 2, 3) [m]
        Where it is fastened. "load": where the force acts, and that place plus the unit vector of the force.
    tension : (k,) [N]
        Positive where it pulls; a slack cable has none. "load": the size of the force.
    """

    kind: str
    ends: FloatArray
    tension: FloatArray

    def __post_init__(self) -> None:
        """Bring to plain types and check shapes."""
        _choice(self.kind, LINE_KINDS, "lines.kind")
        ends = floats(self.ends, (None, 2, 3), "lines.ends")
        set_fields(self, ends=ends, tension=floats(self.tension, (len(ends),), "lines.tension"))


@final
@dataclass(frozen=True, eq=False)
class JointData:
    """A joint over the k states of a run.

    Attributes
    ----------
    place : (k, 3) [m]
    axis : (k, 3)
        Unit vector of a hinge or slider; NaN where there is none.
    """

    place: FloatArray
    axis: FloatArray

    def __post_init__(self) -> None:
        """Bring to plain types and check shapes."""
        place = floats(self.place, (None, 3), "joints.place")
        set_fields(self, place=place, axis=floats(self.axis, (len(place), 3), "joints.axis"))


@final
@dataclass(frozen=True, eq=False)
class ContactData:
    """Contacts of rigid bodies over the k states of a run, which act on points that are no nodes.

    Attributes
    ----------
    offsets : (k + 1,)
        Those of state i are ``offsets[i]:offsets[i + 1]``; empty where nothing ever touches.
    places : (m, 3) [m]
    forces : (m, 3)
        On the body that the point belongs to [N].
    modes, margins : (m,)
        1 sticks, 2 and more slides; how far from another mode [-]. Empty where the contact law has none.
    """

    offsets: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    places: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    forces: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    modes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    margins: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Bring to plain types and check that the parts fit."""
        offsets = floats(self.offsets, (None,), "contacts.offsets").astype(np.int64)
        places = floats(self.places, (None, 3), "contacts.places")
        if len(offsets) and (offsets[0] != 0 or (np.diff(offsets) < 0).any()):
            raise InputError("offsets do not rise from zero", place="contacts.offsets")
        last = int(offsets[-1]) if len(offsets) else 0
        if last != len(places):
            raise InputError("offsets and places do not fit", place="contacts", found=counted(len(places), "place"),
                             expected=str(last))  # fmt: skip
        forces = floats(self.forces, (last, 3), "contacts.forces")
        count = last if len(self.modes) or len(self.margins) else 0
        modes = floats(self.modes, (count,), "contacts.modes").astype(np.int64)
        margins = floats(self.margins, (count,), "contacts.margins")
        set_fields(self, offsets=offsets, places=places, forces=forces, modes=modes, margins=margins)

    def at(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Return places and forces (m_k, 3) of state ``k``."""
        part = self.of_state(k)
        return self.places[part], self.forces[part]

    def of_state(self, k: int) -> slice:
        """Return the rows of state ``k``."""
        return slice(int(self.offsets[k]), int(self.offsets[k + 1])) if len(self.offsets) else slice(0, 0)


@final
@dataclass(frozen=True, eq=False)
class GoalData:
    """The goal of an objective: points, or a body in another pose.

    Attributes
    ----------
    points : (m, 3) [m]
        A point to be reached, or where the nodes of ``body`` should be.
    body : str
        Soft body, sheet or solid that should be there; empty for a mere point.
    rotation, position : (3, 3), (3,) [m]
        Of a solid: a place X of its frame should be at R X + p.
    """

    points: FloatArray
    body: str = ""
    rotation: FloatArray = field(default_factory=lambda: np.eye(3))
    position: FloatArray = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        """Bring to plain types and check shapes."""
        shapes: dict[str, tuple[int | None, ...]] = {"points": (None, 3), "rotation": (3, 3), "position": (3,)}
        values = {name: floats(getattr(self, name), shape, f"goals.{name}") for name, shape in shapes.items()}
        set_fields(self, body=str(self.body), **values)
