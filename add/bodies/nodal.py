"""Families of forces, and bodies whose coordinates are places of nodes, with what hangs on nodes and their parts."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from add.bodies.base import POSE_VECTORS, Block, Body, Family, Layouts, Part
from add.equations.initial import BodyPose, PinMotion, Pose
from add.equations.kinematics import Kinematics
from add.equations.layout import ParameterLayout
from add.equations.signals import SignalParameter
from add.equations.term import Term
from add.geometry import MassPairs
from add.materials import NEWTONIAN, Dissipation, Material, relaxing
from add.terms import Elastic, ElementBatch, Gravity, Inertia, NodalForce, RigidInertia, Viscous
from add.typing import FloatArray, IntArray

# --- The families of forces that bodies take part in: one term each for all bodies ------------------------------------


@final
@dataclass(frozen=True)
class Joined(Family):
    """A term whose arrays are those of all parts, one after the other; parts are tuples of them.

    Attributes
    ----------
    term : kind of term
    shared : names of blocks of theta whose indices come last
    """

    term: type[Term]
    shared: tuple[str, ...] = ()

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term."""
        arrays = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        return [self.term(*arrays, *(parameters[name].indices for name in self.shared))]


#: Inertia of nodes: rows, cols (m,), masses (m, 3), density and damping (m,) as indices in theta, -1 for none.
NODAL_INERTIA = Joined(Inertia)
#: Inertia of rigid bodies: first row (1,), index of the mass (1,), indices of the inertia (1, 6).
FRAME_INERTIA = Joined(RigidInertia)
#: Weight of nodes and centres of mass: nodes, masses at unit density, indices of the density (m,).
WEIGHT = Joined(Gravity, ("gravity",))


class Elements(NamedTuple):
    """Elements of one region, as in `ElementBatch`.

    Moduli (n_groups, n_p), beta (n_groups,) and the numbers of the viscosity (n_groups, n) are indices in theta;
    ``relaxed`` (ne nq, 7) are those of kappa and M of every point, where stress relaxes.
    """

    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    group: IntArray
    mean_dilatation: bool
    moduli: IntArray
    beta: IntArray
    numbers: IntArray
    relaxed: IntArray | None = None


@final
@dataclass(frozen=True)
class Elasticity(Family):
    """Elasticity and viscosity of the elements of one family, one law each; parts are `Elements`."""

    element: str  # its family and nodes: arrays that go together
    law: Material
    viscosity: Dissipation | None
    relaxes: bool = False

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term, or two."""
        sizes = [part.moduli.shape[0] for part in parts]
        starts = np.cumsum([0, *sizes[:-1]])
        batch = ElementBatch(
            cells=np.concatenate([part.cells for part in parts]),
            gradients=np.concatenate([part.gradients for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            group=np.concatenate([start + part.group for start, part in zip(starts, parts, strict=True)]),
            mean_dilatation=np.repeat([part.mean_dilatation for part in parts], sizes),
            law=self.law,
            moduli=np.concatenate([part.moduli for part in parts]),
        )
        elastic = Elastic(_of_points(batch, parts) if self.relaxes else batch)
        if self.viscosity is None:
            return [elastic]
        beta, numbers = (np.concatenate([getattr(part, key) for part in parts]) for key in ("beta", "numbers"))
        return [elastic, Viscous(batch, self.viscosity, beta, numbers)]


def _of_points(batch: ElementBatch, parts: Sequence[Elements]) -> ElementBatch:
    """Return the elements with the law of a step in which stress relaxes: a row of numbers a point."""
    nq = batch.weights.shape[1]
    rows = np.repeat(batch.group, nq)
    relaxed = np.concatenate([part.relaxed for part in parts if part.relaxed is not None])
    return replace(
        batch, group=nq * np.arange(batch.group.size), mean_dilatation=batch.mean_dilatation[rows],
        law=relaxing(batch.law), moduli=np.concatenate([batch.moduli[rows], relaxed], axis=1),
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------------

#: Below this share of their largest extent nodes have none: those of a face lie in a plane.
_FLAT = 1e-6


@final
@dataclass(frozen=True)
class Pin:
    """Nodes whose coordinates along ``axes`` are prescribed: where they start, plus a displacement [m]."""

    nodes: IntArray
    axes: tuple[int, ...] = (0, 1, 2)
    motion: SignalParameter | None = None


@final
@dataclass(frozen=True)
class NodalLoad:
    """A total force [N] shared by nodes, as it is given or such that it acts at a place X of the rest frame.

    Attributes
    ----------
    nodes : (k,)
    shares : (k,)
        Share of each; with a place the share is shares_i + slopes_i . X.
    force : SignalParameter
    slopes : (k, 3), optional
        [1/m]
    place : str, optional
        The parameter X.
    """

    nodes: IntArray
    shares: FloatArray
    force: SignalParameter
    slopes: FloatArray | None = None
    place: str | None = None

    @classmethod
    def at_place(cls, nodes: IntArray, points: FloatArray, force: SignalParameter, place: str) -> "NodalLoad":
        """Return a load whose force and torque at rest are those of its force at a place.

        Of all shares that sum to one and have their mean place at X, those with the least squares: with the mean X_m of
        the points X_i and S = sum_i (X_i - X_m)(X_i - X_m)^T,

            share_i = 1/k + (X_i - X_m) . S^+ (X - X_m),

        linear in X. Points in a plane or on a line know nothing of a place beside it, see `off_span`.
        """
        middle = points.mean(axis=0)
        arms = points - middle
        slopes = arms @ np.linalg.pinv(arms.T @ arms, rcond=_FLAT**2, hermitian=True)
        return cls(nodes, 1.0 / nodes.size - slopes @ middle, force, slopes, place)


def off_span(points: FloatArray, place: FloatArray) -> float:
    """Return how far a place (3,) is from the plane, the line or the point that points (k, 3) lie in [m]."""
    middle = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - middle, full_matrices=False)
    along = axes[sizes > _FLAT * sizes[0]]
    return float(np.linalg.norm(place - middle - along.T @ (along @ (place - middle))))


class NodalBody(Body):
    """A body of nodes. Node numbers are the body's own."""

    has_frame: ClassVar[bool] = False
    pins: tuple[Pin, ...]
    loads: tuple[NodalLoad, ...]

    @abstractmethod
    def mass_shares(self) -> FloatArray:
        """Return the share of each node in the body's mass (n,); they sum to one."""

    def centre_shares(self, theta: FloatArray, at: Layouts) -> FloatArray:
        """Return the shares of the nodes in the mass (n,) by the numbers in theta."""
        return self.mass_shares()

    @abstractmethod
    def nodes_at(self, place: FloatArray) -> tuple[IntArray, FloatArray, float]:
        """Return nodes and weights that stand for a place (3,) of the rest frame, and how far off they are [m]."""

    def rows(self) -> tuple[int, int]:
        """Return the shape of the nodes' places."""
        return self.rest.shape[0], 3

    def signals(self) -> list[tuple[SignalParameter, str]]:
        """Return the signals of pins and loads."""
        motions = [(pin.motion, "m") for pin in self.pins if pin.motion]
        return [*motions, *((load.force, "N") for load in self.loads)]

    def first_node(self, at: Layouts) -> int:
        """Return the number of its first node in the system."""
        return at.rows[self.name].start // 3

    @property
    def own_nodes(self) -> IntArray:
        """Nodes (k,) whose places are coordinates of the body: all but those that another body carries."""
        return np.arange(self.rest.shape[0])

    def pose(self, at: Layouts) -> Pose:
        """Return how its own nodes start."""
        vectors = [at.parameters[f"bodies.{self.name}.{key}"].indices for key, _ in POSE_VECTORS]
        centre = self.mass_shares() @ self.rest
        return BodyPose(at.dofs[self.name].start, self.rest[self.own_nodes], centre, *vectors)

    def prescribed(self, at: Layouts) -> tuple[list[IntArray], list[PinMotion]]:
        """Return the coordinates of pinned nodes."""
        pinned, moves = [], []
        for pin in self.pins:
            nodes, axes = np.unique(pin.nodes), np.unique(pin.axes)
            positions = np.searchsorted(self.own_nodes, nodes)
            dofs = (at.dofs[self.name].start + 3 * positions[:, None] + axes).ravel()
            pinned.append(dofs)
            if pin.motion:
                rows = at.parameters[pin.motion.parameter].indices
                moves.append(PinMotion(dofs, np.tile(axes, nodes.size), pin.motion.signal, rows))
        return pinned, moves

    def load_terms(self, at: Layouts) -> list[NodalForce]:
        """Return the forces on nodes."""
        nodes, index, none = self.first_node(at), at.parameters, np.zeros(0, dtype=np.int64)
        return [
            NodalForce(
                nodes + load.nodes,
                load.shares,
                load.force.signal,
                index[load.force.parameter].indices,
                np.zeros((load.nodes.size, 3)) if load.slopes is None else load.slopes,
                none if load.place is None else index[load.place].indices,
            )
            for load in self.loads
        ]

    def weighed(self, at: Layouts, pairs: MassPairs, density: int, drag: int) -> list[Part]:
        """Return inertia and weight of its mass at unit density; density and drag are indices in theta."""
        rows, cols, values = pairs
        first, nodes = self.first_node(at), np.unique(rows)
        density_of, drag_of = np.full(rows.size, density), np.full(rows.size, drag)
        masses, weights = np.repeat(values[:, None], 3, axis=1), np.bincount(rows, values)[nodes]
        return [
            Part(NODAL_INERTIA, (first + rows, first + cols, masses, density_of, drag_of)),
            Part(WEIGHT, (first + nodes, weights, np.full(nodes.size, density))),
        ]

    def load_places(self) -> list[Block]:
        """Return the places of loads among the numbers of the body."""
        return [(load.place, (3,), "m") for load in self.loads if load.place]

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return mass, centre of mass and its velocity."""
        n = self.rest.shape[0]
        nodes = slice(self.first_node(at), self.first_node(at) + n)
        mass = float(masses[nodes].sum())
        share = masses[nodes] / mass if mass > 0.0 else np.full(n, 1.0 / n)
        x, v = (part.reshape(-1, 3)[nodes] for part in (kin.q, kin.v))
        velocity = share @ v
        return {
            "mass": mass,
            "centre": (share @ x).tolist(),
            "velocity": velocity.tolist(),
            "speed": float(np.linalg.norm(velocity)),
            "nodes": n,
        }


#: Numbers of a material beside those of its laws.
MATERIAL_SCALARS = (
    ("density", "kg/m^3"),
    ("rayleigh_mass", "1/s"),
    ("rayleigh_stiffness", "s"),
)


@final
@dataclass(frozen=True)
class PointMass:
    """A mass [kg] on weighted nodes; ``parameter`` names it in theta.

    ``axes`` are those along which its inertia acts: all for a mass that is glued on, the vertical for one that hangs
    on a long string. Its weight acts in either case.
    """

    nodes: IntArray
    weights: FloatArray
    parameter: str
    axes: tuple[int, ...] = (0, 1, 2)


@final
@dataclass(frozen=True)
class PointAnchor:
    """A material point held at a given place [m] by a multiplier."""

    nodes: IntArray
    weights: FloatArray
    place: SignalParameter


@final
@dataclass(frozen=True)
class NodeTie:
    """Nodes (k,) fixed to a link or a rigid body, ``carrier``; ``path`` names their frame in theta.

    They are no coordinates: their places follow from those of the carrier, and their mass is part of it. Nodes that
    are ``held`` by multipliers are coordinates with a mass as all others.
    """

    nodes: IntArray
    carrier: str
    path: str
    held: bool = False


class TiedMass(NamedTuple):
    """The tissue of one region on tied nodes, at unit density, in the rest frame; ``name`` is that of its blocks.

    Mass [m^3], centre (3,) [m], and inertia about it (6,) [m^5], xx, yy, zz, xy, xz, yz.
    """

    name: str
    region: "Region"
    mass: float
    centre: FloatArray
    inertia: FloatArray


@final
@dataclass(frozen=True)
class Region:
    """Elements of one material.

    Attributes
    ----------
    name : str
        Empty for the body's own material: its numbers are ``bodies.BODY.KEY``, others ``bodies.BODY.regions.NAME.KEY``.
    law : Material
    elements : (n,)
    fields : names of the law's parameters that have a number for each element
    branches : tuple of (name, how many)
        The branches that its stress relaxes by, see `add.materials.relaxation`.
    viscosity : Dissipation
    """

    name: str
    law: Material
    elements: IntArray
    fields: frozenset[str] = frozenset()
    branches: tuple[tuple[str, int], ...] = ()
    viscosity: Dissipation = NEWTONIAN

    @property
    def n_rows(self) -> int:
        """Sets of moduli: one, or one for each element."""
        return self.elements.size if self.fields else 1

    def place(self, body: str) -> str:
        """Return what the names of its numbers in theta begin with."""
        return f"bodies.{body}.regions.{self.name}" if self.name else f"bodies.{body}"

    def moduli(self, body: str, parameters: ParameterLayout) -> IntArray:
        """Return the places in theta of all sets of moduli (n_rows, n_p)."""
        blocks = [parameters[f"{self.place(body)}.{modulus.key}"].indices for modulus in self.law.parameters]
        return np.stack([np.broadcast_to(block.ravel(), self.n_rows) for block in blocks], axis=1)

    def groups(self) -> IntArray:
        """Return the set of each of its elements (n,)."""
        return np.arange(self.elements.size) * (self.n_rows > 1)
