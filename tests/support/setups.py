"""What the validation tests share: models with their numbers, and the mechanics that nobody in `add` computes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from add.bodies import SoftBody
from add.contact import FrictionLaw
from add.equations.kinematics import Kinematics, State, StateTangent, Weights
from add.geometry import SoftMesh, box_mesh, mass_pairs
from add.kernels.shape_codes import PLANE
from add.model import ContactModel, Model, Obstacle, build_model
from add.objectives.base import Objective
from add.simulation import BDF, StartUp
from add.simulation.run import Simulation
from add.simulation.start import GivenStart, Start
from add.solve.step_equations import NewtonOptions
from add.solve.step_matrix import Assembler

G = 9.81

#: Close to round-off, so that what a test measures is not Newton's tolerance.
TIGHT = NewtonOptions(atol=1e-11, rtol=1e-13, max_iterations=80)


@dataclass(frozen=True)
class Setup:
    """A model with values of its parameters."""

    model: Model
    theta: np.ndarray

    def view(self, name: str) -> np.ndarray:
        return self.model.system.parameters.view(self.theta, name)

    def put(self, **values) -> "Setup":
        """Set parameters; ``__`` stands for a point in their names."""
        for name, value in values.items():
            self.view(name.replace("__", "."))[...] = value
        return self

    def simulation(
        self,
        dt: float,
        n_steps: int,
        *,
        order: int = 2,
        start_up: StartUp = StartUp.BDF1,
        newton: NewtonOptions = TIGHT,
        start: Start | None = None,
    ) -> Simulation:
        model = self.model
        stepper = BDF(dt, order, start_up, newton)
        return Simulation(model.system, start or GivenStart(model.initial), stepper, n_steps, self.theta)

    def equilibrium(self, q: np.ndarray, *, tolerance: float = 1e-7, max_iterations: int = 40) -> np.ndarray:
        """Static equilibrium near ``q`` by plain Newton steps on what `add` assembles, without any line search.

        A slender beam needs this: its residual first grows by orders of magnitude (a step along the tangent stretches
        the beam) and falls quadratically afterwards, which a search that asks for a decrease in every step forbids.
        """
        system, q = self.model.system, q.copy()
        assembler, zero, mu = Assembler(system), np.zeros(system.n), np.zeros(system.n_multipliers)
        free = system.partition.free
        for _ in range(max_iterations):
            kin = Kinematics(q, zero, zero, 0.0, 0)
            r, _, branch = system.residual(kin, mu, self.theta)
            if np.linalg.norm(r[free]) <= tolerance:
                return q
            factors = assembler.factor(kin, mu, self.theta, Weights(1.0, 0.0, 0.0, 1.0), branch)
            q[free] -= factors.solve(r[free])
        raise AssertionError(f"no equilibrium: |r| = {np.linalg.norm(r[free])} N")

    # --- one body ---------------------------------------------------------------------------------------------------

    @property
    def body(self) -> SoftBody:
        (body,) = self.model.bodies
        return body

    def mass_matrix(self) -> sp.csr_array:
        """Mass matrix over nodes [kg], from the shape functions and the density."""
        mesh, density = self.body.mesh, float(self.view(f"bodies.{self.body.name}.density"))
        pairs = mass_pairs(mesh, lumped=self.body.lumped)
        shape = (mesh.n_nodes, mesh.n_nodes)
        return sp.coo_array((density * pairs.values, (pairs.rows, pairs.cols)), shape=shape).tocsr()

    def nodal_masses(self) -> np.ndarray:
        """Share of every node in the total mass, the integral of rho N_i [kg]."""
        return self.mass_matrix() @ np.ones(self.body.mesh.n_nodes)

    def centres(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass (or its velocity) of states (..., n)."""
        masses = self.nodal_masses()
        return np.einsum("i,...ij->...j", masses / masses.sum(), q.reshape(*q.shape[:-1], -1, 3))

    def angular_momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular momentum about the origin, the integral of rho x cross v [kg m^2/s]."""
        return np.cross(q.reshape(-1, 3), self.mass_matrix() @ v.reshape(-1, 3)).sum(axis=0)

    def energies(self, q: np.ndarray, v: np.ndarray) -> dict[str, float]:
        """Kinetic, gravitational, and stored (elastic and contact) energy of one state [J]."""
        at = v.reshape(-1, 3)
        system, kin = self.model.system, Kinematics(q, v, np.zeros_like(q), 0.0, 0)
        weight = self.nodal_masses()[:, None] * self.view("gravity")
        stored = sum(term.energy(kin, self.theta) for term in self.model.term(type(system.terms[2])))
        contact = sum(term.energy(kin, self.theta) for term in system.deciding)
        return {
            "kinetic": 0.5 * float(np.vdot(at, self.mass_matrix() @ at)),
            "gravity": -float(np.vdot(weight, q.reshape(-1, 3))),
            "elastic": float(stored),
            "contact": float(contact),
        }

    def total_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        return sum(self.energies(q, v).values())

    def stiffness_and_mass(self, q: np.ndarray) -> tuple[sp.csc_array, sp.csc_array]:
        """dr/dq and dr/da over the free coordinates, as `add` assembles them."""
        system = self.model.system
        assembler = Assembler(system)
        kin = Kinematics(q, np.zeros_like(q), np.zeros_like(q), 0.0, 0)
        mu = np.zeros(system.n_multipliers)
        _, _, branch = system.residual(kin, mu, self.theta)
        out = []
        for weights in (Weights(1.0, 0.0, 0.0), Weights(0.0, 0.0, 1.0)):
            pattern, data = assembler.assemble(kin, mu, self.theta, weights, branch)
            out.append(pattern.matrix(data.copy()).tocsc())
        return out[0], out[1]


def lame(young: float, poisson: float) -> tuple[float, float]:
    """Return mu and lambda [Pa]."""
    return young / (2.0 * (1.0 + poisson)), young * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson))


def plane(rotation: np.ndarray | None = None) -> Obstacle:
    """A half space under z = 0, turned by ``rotation`` about the origin."""
    turn = np.eye(3) if rotation is None else rotation
    return Obstacle("floor", PLANE, (0.0, 0.0, 0.0), turn, np.zeros(3), np.zeros(3))


def turn_about_y(angle: float) -> np.ndarray:
    """Rotation matrix about y [rad]: the plane then falls towards +x."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def one_body(
    body: SoftBody,
    *,
    young: float,
    poisson: float = 0.3,
    density: float,
    gravity: Sequence[float] = (0.0, 0.0, -G),
    obstacles: Sequence[Obstacle] = (),
    contact: ContactModel | None = None,
) -> Setup:
    """One body, undamped, with whatever is attached to it."""
    model = build_model([body], obstacles, contact)
    setup = Setup(model, np.zeros(model.system.parameters.n))
    mu, lam = lame(young, poisson)
    setup.put(gravity=gravity)
    for key, value in (("mu", mu), ("lambda", lam), ("density", density)):
        setup.view(f"bodies.{body.name}.{key}")[...] = value
    return setup


def block_on_plane(
    mesh: SoftMesh,
    *,
    young: float,
    density: float,
    k_n: float,
    poisson: float = 0.3,
    k_d: float = 0.0,
    k_t: float = 0.0,
    c_f: float = 0.0,
    law: FrictionLaw = FrictionLaw.NONE,
    per_area: bool = False,
    total_normal: bool = False,
    angle: float = 0.0,
    gravity: Sequence[float] = (0.0, 0.0, -G),
) -> Setup:
    """A block called ``block`` over a plane called ``floor`` that falls by ``angle`` towards +x."""
    contact = ContactModel(law=law, per_area=per_area, total_normal=total_normal)
    turn = turn_about_y(angle)
    body = SoftBody("block", mesh)
    kwargs = {"young": young, "poisson": poisson, "density": density, "gravity": gravity}
    setup = one_body(body, obstacles=[plane(turn)], contact=contact, **kwargs)
    setup.put(bodies__block__orientation=(0.0, angle, 0.0))
    for key, value in (("k_n", k_n), ("k_d", k_d), ("k_t", k_t), ("c_f", c_f)):
        setup.view(f"contact.block.floor.{key}")[...] = value
    return setup


def bottom_nodes(mesh: SoftMesh) -> np.ndarray:
    """Nodes of the lowest face of a box."""
    z = mesh.points[:, 2]
    return np.flatnonzero(z < z.min() + 1e-9)


def bottom_scale(setup: Setup) -> float:
    """Sum of the contact factors of the bottom nodes: their number, or their rest area [m^2]."""
    (contact,) = setup.model.system.deciding
    surface = setup.model.bodies[0].surface
    return float(contact.scale[np.isin(surface.nodes, bottom_nodes(setup.body.mesh))].sum())


def rest_depth(setup: Setup, angle: float = 0.0) -> float:
    """Depth at which the penalty carries a rigid block [m]."""
    weight = setup.nodal_masses().sum() * G * np.cos(angle)
    return float(weight / (setup.view("contact.block.floor.k_n") * bottom_scale(setup)))


def place(setup: Setup, height: float, angle: float = 0.0) -> Setup:
    """Put the block's bottom face ``height`` over the plane (negative: into it)."""
    lowest = setup.body.mesh.points[:, 2].min()
    return setup.put(bodies__block__position=turn_about_y(angle)[:, 2] * (height - lowest))


def cube(edge: float, divisions: int, family) -> SoftMesh:
    return box_mesh((edge,) * 3, (divisions,) * 3, family)


@dataclass(frozen=True)
class FinalCentre(Objective):
    """Coordinate ``axis`` of the centre of mass after the last step [m]."""

    weights: np.ndarray
    axis: int
    n_steps: int

    @classmethod
    def of(cls, setup: Setup, axis: int, n_steps: int) -> "FinalCentre":
        masses = setup.nodal_masses()
        return cls(masses / masses.sum(), axis, n_steps)

    def step_value(self, state: State, theta: np.ndarray) -> float:
        if state.step != self.n_steps:
            return 0.0
        return float(self.weights @ state.q[0].reshape(-1, 3)[:, self.axis])

    def step_pullback(self, state: State, theta, state_bar: StateTangent, theta_bar) -> None:
        if state.step == self.n_steps:
            state_bar.q[0].reshape(-1, 3)[:, self.axis] += self.weights


def observed_orders(steps: Sequence[float], errors: Sequence[float]) -> np.ndarray:
    """Slopes of log(error) over log(dt) between neighbours."""
    return np.diff(np.log(errors)) / np.diff(np.log(steps))


def upward_crossings(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Times at which x passes zero upwards, by linear interpolation."""
    k = np.flatnonzero((x[:-1] < 0.0) & (x[1:] >= 0.0))
    return t[k] - x[k] * (t[k + 1] - t[k]) / (x[k + 1] - x[k])


def apexes(rate: np.ndarray) -> np.ndarray:
    """Numbers of the states at which ``rate`` (k + 1,) turns from rising to falling."""
    return np.flatnonzero((rate[:-1] > 0.0) & (rate[1:] <= 0.0)) + 1
