"""The parts of a trajectory: bodies, obstacles, links and contacts as plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, final, get_origin, get_type_hints

import numpy as np

from add.errors import InputError
from add.geometry import FAMILIES, SoftMesh
from add.geometry.shapes import known_shapes
from add.materials import NAMES, Material, formula_law, material
from add.summary import counted
from add.typing import FloatArray, IntArray


class Kept(NamedTuple):
    """How an array of a part is kept: its lengths, letters for those that arrays of the part share, and its unit.

    ``below``: the length below which its whole numbers are; ``named``: several, by name; ``spare``: left out if empty.
    """

    lengths: tuple[int | str, ...]
    unit: str | None = None
    below: str = ""
    whole: bool = False
    named: bool = False
    attribute: bool = False
    spare: bool = False

    def brought(self, values: Any, sizes: dict[str, int], place: str) -> Any:
        """Return the values as a C-ordered array that fits the ``sizes`` of letters, of which it adds its own."""
        if self.named:
            one = self._replace(named=False)
            return {name: one.brought(item, sizes, f"{place}.{name}") for name, item in values.items()}
        array = np.ascontiguousarray(values, dtype=np.int64 if self.whole or self.below else np.float64)
        wanted = [sizes.get(length) if isinstance(length, str) else length for length in self.lengths]
        if array.ndim != len(wanted) or any(n not in (None, m) for n, m in zip(wanted, array.shape, strict=True)):
            shape = ", ".join("any" if n is None else str(n) for n in wanted) + ("," if len(wanted) == 1 else "")
            raise InputError("wrong shape", place=place, found=array.shape, expected=f"shape ({shape})")
        sizes |= {length: n for length, n in zip(self.lengths, array.shape, strict=True) if isinstance(length, str)}
        if self.below and array.size and (array.min() < 0 or array.max() >= sizes[self.below]):
            raise InputError("names nodes that do not exist", place=place, found=f"{array.min()} ... {array.max()}",
                             expected=f"0 ... {sizes[self.below] - 1}")  # fmt: skip
        return array


Places = Annotated[FloatArray, Kept(("n", 3), "m")]
Triangles = Annotated[IntArray, Kept(("triangles", 3), below="n")]
Vector = Annotated[FloatArray, Kept((3,), attribute=True)]


def empty(*shape: int) -> Any:
    """Return the default of a field: zeros of a shape, most often of none."""
    return field(default_factory=lambda: np.zeros(shape))


def _choice(value: str, known: Sequence[str], name: str) -> None:
    if value not in known:
        raise InputError("unknown value", place=name, found=repr(value), expected=" or ".join(map(repr, known)))


def _shape_code(kind: int, lowest: int, place: str, what: str) -> None:
    known = [shape.code for shape in known_shapes()]
    if kind not in known and not lowest <= kind < 0:
        expected = f"a code {lowest} ... {max(known)}"
        raise InputError(f"unknown kind of {what}", place=place, found=kind, expected=expected)


class Part:
    """A part of a run whose fields become plain numbers, texts and arrays that fit together.

    `KEPT` and `PLAIN` are its arrays, and its numbers and texts, by name.
    """

    GROUP: ClassVar[str]
    KEPT: ClassVar[dict[str, Kept]]
    PLAIN: ClassVar[dict[str, type]]

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        cls.KEPT = {name: hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}
        cls.PLAIN = {name: hint for name, hint in hints.items() if hint in (int, bool, str)}

    def _place(self, *names: str) -> str:
        """Return the place of a field in a run, for messages."""
        return ".".join((self.GROUP, *names))

    def __post_init__(self) -> None:
        """Bring to plain types and check that the parts fit."""
        for name, kind in self.PLAIN.items():
            object.__setattr__(self, name, kind(getattr(self, name)))
        sizes = self._sizes()
        for name, how in self.KEPT.items():
            object.__setattr__(self, name, how.brought(getattr(self, name), sizes, self._place(name)))
        self._check()

    def _sizes(self) -> dict[str, int]:
        """Return the lengths, by their letters, that no array has first."""
        return {}

    def _check(self) -> None:
        """Refuse what does not fit otherwise."""


@dataclass(frozen=True, eq=False)
class _Named(Part):
    """A part that says its own name."""

    name: str

    def _place(self, *names: str) -> str:
        return ".".join((self.GROUP, self.name, *names))


class _Nodal(_Named):
    """Places of a body that has nodes in q."""

    start: int
    rest: Places

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
    group : (ne,) the set of each element; empty: the first of all
    mean_dilatation : bool
    formula : str
        Of the energy, where the scene writes it.
    """

    GROUP = "bodies"
    start: int
    family: str
    rest: Places
    cells: Annotated[IntArray, Kept(("e", "corners"), below="n")]
    surface: Triangles
    model: str
    moduli: Annotated[FloatArray, Kept(("sets", "moduli"))]
    mean_dilatation: bool = False
    formula: str = ""
    group: Annotated[IntArray, Kept(("e",), whole=True)] = empty(0)

    def _sizes(self) -> dict[str, int]:
        _choice(self.family, tuple(FAMILIES), self._place("family"))
        _choice(self.model, ["formula"] if self.formula else NAMES, self._place("model"))
        if not len(self.group):
            object.__setattr__(self, "group", np.zeros(len(self.cells)))
        object.__setattr__(self, "moduli", np.atleast_2d(self.moduli))
        return {"moduli": len(self.law.parameters), "corners": FAMILIES[self.family].n_nodes}

    def _check(self) -> None:
        if (self.group < 0).any() or (self.group >= len(self.moduli)).any():
            expected = f"0 to {len(self.moduli) - 1}"
            raise InputError("no such set of moduli", place=self._place("group"), expected=expected)

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
        None of nets, ropes and handles.
    gradients : (nt, 3, 2)
        Gradients of the triangles' shape functions at rest [1/m], of which strains are told; empty for springs.
    """

    GROUP = "sheets"
    start: int
    rest: Places
    edges: Annotated[IntArray, Kept(("edges", 2), below="n")] = empty(0, 2)
    triangles: Triangles = empty(0, 3)
    gradients: Annotated[FloatArray, Kept(("gradients", 3, 2), "1/m", spare=True)] = empty(0, 3, 2)

    def _sizes(self) -> dict[str, int]:
        return {"gradients": len(self.triangles) if len(self.gradients) else 0}


@final
@dataclass(frozen=True, eq=False)
class SolidData(_Named):
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

    GROUP = "solids"
    start: int
    kinematic: bool = False
    centre: Vector = empty(3)
    kind: int = -1
    size: Vector = empty(3)
    vertices: Places = empty(0, 3)
    triangles: Triangles = empty(0, 3)

    def _check(self) -> None:
        _shape_code(self.kind, -1, self._place(), "shape")

    @property
    def entries(self) -> slice:
        """Its six entries in q."""
        return slice(self.start, self.start + 6)


@final
@dataclass(frozen=True, eq=False)
class ObstacleData(_Named):
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

    GROUP = "obstacles"
    kind: int
    size: Vector
    rotation: Annotated[FloatArray, Kept((3, 3), attribute=True)]
    position: Vector
    velocity: Vector = empty(3)
    vertices: Annotated[FloatArray, Kept(("n", 3), "m", spare=True)] = empty(0, 3)
    triangles: Annotated[IntArray, Kept(("triangles", 3), below="n", spare=True)] = empty(0, 3)

    def _check(self) -> None:
        _shape_code(self.kind, 0, self._place(), "obstacle")


@final
@dataclass(frozen=True, eq=False)
class LineData(Part):
    """A spring, a cable or a given force over the k states of a run.

    Attributes
    ----------
    kind : "spring", "cable" or "load"
    ends : (k, 2, 3) [m]
        Where it is fastened. "load": where the force acts, and that place plus the unit vector of the force.
    tension : (k,) [N]
        Positive where it pulls; a slack cable has none. "load": the size of the force.
    """

    GROUP = "lines"
    kind: str
    ends: Annotated[FloatArray, Kept(("k", 2, 3), "m")]
    tension: Annotated[FloatArray, Kept(("k",), "N")]

    def _check(self) -> None:
        _choice(self.kind, ("spring", "cable", "load"), self._place("kind"))


@final
@dataclass(frozen=True, eq=False)
class JointData(Part):
    """A joint over the k states of a run.

    Attributes
    ----------
    place : (k, 3) [m]
    axis : (k, 3)
        Unit vector of a hinge or slider; NaN where there is none.
    """

    GROUP = "joints"
    place: Annotated[FloatArray, Kept(("k", 3), "m")]
    axis: Annotated[FloatArray, Kept(("k", 3))]


@final
@dataclass(frozen=True, eq=False)
class ContactData(Part):
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

    GROUP = "contacts"
    offsets: Annotated[IntArray, Kept(("offsets",), whole=True)] = empty(0)
    places: Places = empty(0, 3)
    forces: Annotated[FloatArray, Kept(("n", 3), "N")] = empty(0, 3)
    modes: Annotated[IntArray, Kept(("modes",), whole=True, spare=True)] = empty(0)
    margins: Annotated[FloatArray, Kept(("modes",), spare=True)] = empty(0)

    def _sizes(self) -> dict[str, int]:
        return {"modes": len(self.places) if len(self.modes) or len(self.margins) else 0}

    def _check(self) -> None:
        if len(self.offsets) and (self.offsets[0] != 0 or (np.diff(self.offsets) < 0).any()):
            raise InputError("offsets do not rise from zero", place="contacts.offsets")
        last = int(self.offsets[-1]) if len(self.offsets) else 0
        if last != len(self.places):
            raise InputError("offsets and places do not fit", place="contacts",
                             found=counted(len(self.places), "place"), expected=str(last))  # fmt: skip

    def at(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Return places and forces (m_k, 3) of state ``k``."""
        part = self.of_state(k)
        return self.places[part], self.forces[part]

    def of_state(self, k: int) -> slice:
        """Return the rows of state ``k``; -1 is the last one."""
        return slice(*self.offsets[range(len(self.offsets) - 1)[k] :][:2].tolist()) if len(self.offsets) else slice(0)


@final
@dataclass(frozen=True, eq=False)
class GoalData(Part):
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

    GROUP = "goals"
    points: Places
    body: str = ""
    rotation: Annotated[FloatArray, Kept((3, 3), attribute=True)] = field(default_factory=lambda: np.eye(3))
    position: Vector = empty(3)
