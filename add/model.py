"""From bodies, obstacles and contact settings to a `System`: who owns which slots, which term acts on what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.contact import FrictionLaw, PairParameters, PenaltyContact, Shapes
from add.fem import SoftMesh, Surface, mass_pairs, quadrature_geometry, surface
from add.initial import BodyPose, InitialState
from add.layout import DofLayout, DofPartition, ParameterLayout
from add.maps import NodePoints, WeightedPoints, WorldFrames
from add.motion import Motion, PinMotion
from add.signals import Constant, Signal
from add.system import Constraint, System, Term
from add.terms import Anchor, Elastic, ElementBatch, Gravity, Inertia, Load, Viscous
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class Driven:
    """A signal and the name of its coefficients in theta."""

    signal: Signal
    parameter: str


@final
@dataclass(frozen=True)
class Pin:
    """Nodes whose coordinates along ``axes`` are prescribed: where they start, plus a displacement [m]."""

    nodes: IntArray
    axes: tuple[int, ...] = (0, 1, 2)
    motion: Driven | None = None


@final
@dataclass(frozen=True)
class NodalLoad:
    """A total force [N] shared by nodes."""

    nodes: IntArray
    shares: FloatArray
    force: Driven


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
    place: Driven


@final
@dataclass(frozen=True)
class SoftBody:
    """A soft body: its mesh, its law, and what is attached to it. Node numbers are the body's own.

    Attributes
    ----------
    name : str
    mesh : SoftMesh
    form : int
        Volumetric form of the Neo-Hookean energy: 0 (ln J)^2, 1 Ciarlet.
    mean_dilatation, lumped, viscous : bool
        Against locking; HRZ mass; whether viscosity or stiffness-proportional damping act.
    """

    name: str
    mesh: SoftMesh
    form: int = 0
    mean_dilatation: bool = False
    lumped: bool = False
    viscous: bool = True
    pins: tuple[Pin, ...] = ()
    loads: tuple[NodalLoad, ...] = ()
    masses: tuple[PointMass, ...] = ()
    anchors: tuple[PointAnchor, ...] = ()


@final
@dataclass(frozen=True)
class Obstacle:
    """A shape of the world; ``kind`` and ``size`` as in `add.kernels.distance`."""

    name: str
    kind: int
    size: tuple[float, float, float]
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray


@final
@dataclass(frozen=True)
class ContactModel:
    """Contact settings that are not differentiated.

    Attributes
    ----------
    law : FrictionLaw
    per_area : bool
        Whether stiffness and damping count per rest area or per node.
    onset, ramp : float
        Depths [m]; see `add.kernels.contact`.
    total_normal : bool
    enabled : (n_bodies, n_obstacles) bool, optional
    """

    law: FrictionLaw = FrictionLaw.LINEAR
    per_area: bool = False
    onset: float = 0.0
    ramp: float = 0.0
    total_normal: bool = False
    enabled: BoolArray | None = None


@final
@dataclass(frozen=True)
class Model:
    """A system with what is needed to start it, read it and draw it.

    Attributes
    ----------
    system : System
    initial : InitialState
    bodies : tuple of SoftBody
    obstacles : tuple of Obstacle
    surfaces : Surface of each body
    first_node : (n_bodies,) number in the system of each body's node 0
    """

    system: System
    initial: InitialState
    bodies: tuple[SoftBody, ...]
    obstacles: tuple[Obstacle, ...]
    surfaces: tuple[Surface, ...]
    first_node: IntArray

    def body_index(self, name: str) -> int:
        """Return a body's number."""
        return [body.name for body in self.bodies].index(name)

    def term(self, kind: type) -> list:
        """Return the terms of one class."""
        return [term for term in (*self.system.terms, *self.system.deciding) if isinstance(term, kind)]


BODY_SCALARS = (
    ("mu", "Pa"),
    ("lambda", "Pa"),
    ("density", "kg/m^3"),
    ("viscosity", "Pa s"),
    ("rayleigh_mass", "1/s"),
    ("rayleigh_stiffness", "s"),
)
BODY_VECTORS = (("position", "m"), ("orientation", "rad"), ("velocity", "m/s"), ("angular_velocity", "rad/s"))


def _driven(bodies: Sequence[SoftBody]) -> dict[str, tuple[int, str]]:
    """Return rows and unit of every signal's coefficients, once each."""
    found: dict[str, tuple[int, str]] = {}
    for body in bodies:
        drives = [(pin.motion, "m") for pin in body.pins if pin.motion]
        drives += [(load.force, "N") for load in body.loads]
        drives += [(anchor.place, "m") for anchor in body.anchors]
        for drive, unit in drives:
            found.setdefault(drive.parameter, (drive.signal.n_rows, unit))
    return found


#: Name, shape and unit of a block of theta.
Block = tuple[str, tuple[int, ...], str]


def parameter_layout(
    bodies: Sequence[SoftBody], obstacles: Sequence[Obstacle], per_area: bool, extra: Sequence[Block] = ()
) -> ParameterLayout:
    """Return the layout of theta; ``extra`` blocks come last."""
    blocks: list[Block] = [("gravity", (3,), "m/s^2")]
    for body in bodies:
        blocks += [(f"bodies.{body.name}.{key}", (), unit) for key, unit in BODY_SCALARS]
        blocks += [(f"bodies.{body.name}.{key}", (3,), unit) for key, unit in BODY_VECTORS]
        blocks += [(mass.parameter, (), "kg") for mass in body.masses]
    blocks += [(name, (rows, 3), unit) for name, (rows, unit) in _driven(bodies).items()]
    per = "/m^2" if per_area else ""
    for body in bodies:
        for obstacle in obstacles:
            pair = f"contact.{body.name}.{obstacle.name}"
            blocks += [
                (f"{pair}.k_n", (), f"N/m{per}"),
                (f"{pair}.k_d", (), f"N s/m{per}"),
                (f"{pair}.k_t", (), f"N s/m{per}"),
                (f"{pair}.c_f", (), "-"),
            ]
    return ParameterLayout([*blocks, *extra])


def build_model(
    bodies: Sequence[SoftBody],
    obstacles: Sequence[Obstacle] = (),
    contact: ContactModel | None = None,
    *,
    extra: Sequence[Block] = (),
) -> Model:
    """Assemble a model.

    Parameters
    ----------
    bodies : sequence of SoftBody
    obstacles : sequence of Obstacle
    contact : ContactModel, optional
    extra : blocks (name, shape, unit) of theta that no force reads, for objectives

    Returns
    -------
    Model
    """
    contact = contact or ContactModel()
    dofs = DofLayout((body.name, (body.mesh.n_nodes, 3), "m") for body in bodies)
    parameters = parameter_layout(bodies, obstacles, contact.per_area, extra)
    first_node = np.array([dofs[body.name].start // 3 for body in bodies], dtype=np.int64)
    surfaces = tuple(surface(body.mesh) for body in bodies)
    terms: list[Term] = [*_mass_terms(bodies, first_node, parameters), *_material_terms(bodies, first_node, parameters)]
    for body, first in zip(bodies, first_node, strict=True):
        for load in body.loads:
            rows = parameters[load.force.parameter].indices
            terms.append(Load(first + load.nodes, load.shares, load.force.signal, rows))
    initial = InitialState(dofs.n, tuple(_pose(body, dofs, parameters) for body in bodies))
    motion = _motion(bodies, first_node, parameters, initial)
    deciding = (_contact(bodies, first_node, surfaces, obstacles, contact, parameters),) if obstacles else ()
    system = System(
        dofs,
        parameters,
        DofPartition(dofs.n, motion.prescribed),
        motion,
        tuple(terms),
        deciding,
        _anchors(bodies, first_node, parameters),
    )
    return Model(system, initial, tuple(bodies), tuple(obstacles), surfaces, first_node)


def _mass_terms(bodies: Sequence[SoftBody], first_node: IntArray, parameters: ParameterLayout) -> list[Term]:
    rows: list[IntArray] = []
    cols: list[IntArray] = []
    values: list[FloatArray] = []
    density: list[IntArray] = []
    damping: list[IntArray] = []
    nodes: list[IntArray] = []
    weights: list[FloatArray] = []
    weight_density: list[IntArray] = []
    for body, first in zip(bodies, first_node, strict=True):
        pairs = mass_pairs(body.mesh, lumped=body.lumped)
        rows.append(first + pairs.rows)
        cols.append(first + pairs.cols)
        values.append(np.repeat(pairs.values[:, None], 3, axis=1))
        density.append(np.full(pairs.rows.size, parameters[f"bodies.{body.name}.density"].start))
        damping.append(np.full(pairs.rows.size, parameters[f"bodies.{body.name}.rayleigh_mass"].start))
        nodes.append(first + np.arange(body.mesh.n_nodes))
        weights.append(np.bincount(pairs.rows, pairs.values, body.mesh.n_nodes).astype(float))
        weight_density.append(np.full(body.mesh.n_nodes, parameters[f"bodies.{body.name}.density"].start))
        for mass in body.masses:
            k = mass.nodes.size
            rows.append(first + np.repeat(mass.nodes, k))
            cols.append(first + np.tile(mass.nodes, k))
            acting = np.isin(np.arange(3), mass.axes).astype(float)
            values.append(np.outer(np.outer(mass.weights, mass.weights), acting).reshape(-1, 3))
            density.append(np.full(k * k, parameters[mass.parameter].start))
            damping.append(np.full(k * k, -1))
            nodes.append(first + mass.nodes)
            weights.append(mass.weights)
            weight_density.append(np.full(k, parameters[mass.parameter].start))
    inertia = Inertia(
        np.concatenate(rows),
        np.concatenate(cols),
        np.concatenate(values),
        np.concatenate(density),
        np.concatenate(damping),
    )
    gravity = Gravity(
        np.concatenate(nodes), np.concatenate(weights), np.concatenate(weight_density), parameters["gravity"].indices
    )
    return [inertia, gravity]


def _material_terms(bodies: Sequence[SoftBody], first_node: IntArray, parameters: ParameterLayout) -> list[Term]:
    terms: list[Term] = []
    for family in dict.fromkeys(body.mesh.family.name for body in bodies):
        members = [k for k, body in enumerate(bodies) if body.mesh.family.name == family]
        terms.append(Elastic(_batch(bodies, members, first_node), *_indices(bodies, members, parameters)))
        viscous = [k for k in members if bodies[k].viscous]
        if viscous:
            mu, lam = _indices(bodies, viscous, parameters)
            nu, beta = (
                np.array([parameters[f"bodies.{bodies[k].name}.{key}"].start for k in viscous])
                for key in ("viscosity", "rayleigh_stiffness")
            )
            terms.append(Viscous(_batch(bodies, viscous, first_node), mu, lam, nu, beta))
    return terms


def _indices(bodies: Sequence[SoftBody], members: list[int], parameters: ParameterLayout) -> tuple[IntArray, IntArray]:
    return (
        np.array([parameters[f"bodies.{bodies[k].name}.mu"].start for k in members]),
        np.array([parameters[f"bodies.{bodies[k].name}.lambda"].start for k in members]),
    )


def _batch(bodies: Sequence[SoftBody], members: list[int], first_node: IntArray) -> ElementBatch:
    geometries = [quadrature_geometry(bodies[k].mesh) for k in members]
    return ElementBatch(
        cells=np.concatenate([first_node[k] + bodies[k].mesh.cells for k in members]),
        gradients=np.concatenate([g.gradients for g in geometries]),
        weights=np.concatenate([g.weights for g in geometries]),
        group=np.concatenate([np.full(bodies[k].mesh.n_elements, i) for i, k in enumerate(members)]),
        form=np.array([bodies[k].form for k in members]),
        mean_dilatation=np.array([bodies[k].mean_dilatation for k in members]),
    )


def _pose(body: SoftBody, dofs: DofLayout, parameters: ParameterLayout) -> BodyPose:
    pairs = mass_pairs(body.mesh, lumped=body.lumped)
    weights = np.bincount(pairs.rows, pairs.values, minlength=body.mesh.n_nodes)
    centre = weights @ body.mesh.points / weights.sum()
    vectors = (parameters[f"bodies.{body.name}.{key}"].indices for key, _ in BODY_VECTORS)
    return BodyPose(dofs[body.name].start, body.mesh.points, centre, *vectors)


def _motion(
    bodies: Sequence[SoftBody], first_node: IntArray, parameters: ParameterLayout, initial: InitialState
) -> Motion:
    prescribed, moves = [np.zeros(0, dtype=np.int64)], []
    for body, first in zip(bodies, first_node, strict=True):
        for pin in body.pins:
            nodes, axes = np.unique(pin.nodes), np.unique(pin.axes)
            dofs = (3 * (first + nodes)[:, None] + axes).ravel()
            prescribed.append(dofs)
            if pin.motion:
                rows = parameters[pin.motion.parameter].indices
                moves.append(PinMotion(dofs, np.tile(axes, nodes.size), pin.motion.signal, rows))
    return Motion(initial, np.unique(np.concatenate(prescribed)), tuple(moves))


def _anchors(bodies: Sequence[SoftBody], first_node: IntArray, parameters: ParameterLayout) -> tuple[Constraint, ...]:
    return tuple(
        Anchor(
            WeightedPoints(first + anchor.nodes[None, :], anchor.weights[None, :]),
            anchor.place.signal,
            parameters[anchor.place.parameter].indices[None],
        )
        for body, first in zip(bodies, first_node, strict=True)
        for anchor in body.anchors
    )


def _contact(
    bodies: Sequence[SoftBody],
    first_node: IntArray,
    surfaces: Sequence[Surface],
    obstacles: Sequence[Obstacle],
    contact: ContactModel,
    parameters: ParameterLayout,
) -> PenaltyContact:
    shape = (len(bodies), len(obstacles))

    def table(key: str) -> IntArray:
        names = [[f"contact.{b.name}.{o.name}.{key}" for o in obstacles] for b in bodies]
        return np.array([[parameters[name].start for name in row] for row in names], dtype=np.int64)

    enabled = np.ones(shape, dtype=bool) if contact.enabled is None else contact.enabled
    pairs = PairParameters(
        k_n=table("k_n"),
        k_d=table("k_d"),
        k_t=table("k_t"),
        c_f=table("c_f"),
        onset=np.full(shape, contact.onset),
        ramp=np.full(shape, contact.ramp),
        enabled=np.ascontiguousarray(enabled),
    )
    frames = WorldFrames(
        np.array([o.rotation for o in obstacles], dtype=float),
        np.array([o.position for o in obstacles], dtype=float),
        np.array([o.velocity for o in obstacles], dtype=float),
    )
    shapes = Shapes(
        tuple(o.name for o in obstacles),
        np.array([o.kind for o in obstacles], dtype=np.int64),
        np.array([o.size for o in obstacles], dtype=float),
        frames,
    )
    nodes = np.concatenate([first + s.nodes for first, s in zip(first_node, surfaces, strict=True)])
    scale = np.concatenate([s.areas for s in surfaces]) if contact.per_area else np.ones(nodes.size)
    body = np.concatenate([np.full(s.nodes.size, k, dtype=np.int64) for k, s in enumerate(surfaces)])
    return PenaltyContact(NodePoints(nodes), scale, body, shapes, pairs, contact.law, contact.total_normal)


def constant(parameter: str) -> Driven:
    """Return a constant signal under this name."""
    return Driven(Constant(), parameter)
