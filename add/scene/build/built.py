"""A scene as the objects that run, and the forces of all contacts of a state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.bodies import NodalBody
from add.contact import BodyContact, MeshContact
from add.equations.charts import Chart
from add.equations.kinematics import Directions, Kinematics, State
from add.equations.lifted import LiftedDecidingTerm
from add.equations.points import PointMap
from add.equations.system import System
from add.model import ChamberState, Model, Reaction, chamber_states, reactions, tie_forces, tree_reactions
from add.model.impacts import Impact, Pair, damped_pairs, expected_impacts
from add.scene.build.inputs import Values
from add.scene.build.numbers import SceneParameters
from add.scene.build.rollouts import Rollout, SceneBatch, rollout, rollouts
from add.scene.build.step_arguments import Bounds
from add.scene.build.steps import Step, StepFunction
from add.scene.read.paths import require_known
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.common import HARD
from add.scene.spec.contact_classes import ContactClasses
from add.scene.spec.materials import NamedMaterialSpec
from add.scene.spec.scene import SceneSpec
from add.scene.spec.signals import ControlSignalSpec
from add.simulation import ContactForces, Record, StepDerivatives
from add.simulation.run import Simulation, Trajectory
from add.summary import Summarised, Summary
from add.typing import FloatArray

#: Orders of the BDF.
ORDERS = {"bdf1": 1, "bdf2": 2, "sdirk3": 3, "rk4": 4}


@final
@dataclass(frozen=True, repr=False)
class BuiltScene(Summarised):
    """A scene ready to run.

    Attributes
    ----------
    scene : SceneSpec
    model : Model
        Its system has the penalty terms that say what may touch what, also where contact is exact.
    simulation : Simulation
    numbers : SceneParameters
        The scene's differentiable numbers and the map to theta.
    marker_names : tuple of str
    markers : PointMap
        One point (or direction) a marker.
    part_owners : tuple of str
        The coupling that each joint part of the model belongs to.
    """

    scene: SceneSpec
    model: Model
    simulation: Simulation
    numbers: SceneParameters
    marker_names: tuple[str, ...]
    markers: PointMap
    part_owners: tuple[str, ...] = ()

    def summary(self) -> Summary:
        """Return a few lines: the scene's name, and its simulation."""
        name = self.scene.name or (self.scene.source.name if self.scene.source else "")
        return Summary(f"BuiltScene {name}".rstrip(), self.simulation.summary().rows)

    def reactions(self, kin: Kinematics, theta: FloatArray | None = None) -> dict[str, dict[str, Reaction]]:
        """Return coupling -> body -> force and torque at ``kin``, e.g. ``trajectory.kinematics(k)``."""
        theta = self.theta if theta is None else theta
        pairs = list(zip(self.part_owners, self.model.joint_parts, strict=True))
        owned = {name: [part for owner, part in pairs if owner == name] for name in dict.fromkeys(self.part_owners)}
        return {name: reactions(self.model, parts, kin, theta) for name, parts in owned.items()}

    def tree_reactions(self, record: Record, theta: FloatArray | None = None) -> dict[str, dict[str, FloatArray]]:
        """Return articulated body -> joint with a given motion, or loop -> force; see `add.model.readouts`."""
        branch = self.simulation.system.on_branch(record.decisions, record.solution.candidates)
        return tree_reactions(self.model, branch, record.kin, record.mu, self.theta if theta is None else theta)

    def chambers(self, record: Record, theta: FloatArray | None = None) -> dict[str, ChamberState]:
        """Return ``body/chamber`` -> pressure and volume at the end of a step; see `add.model.chamber_states`."""
        return chamber_states(self.model, record.kin, record.mu, self.theta if theta is None else theta)

    def ties(self, record: Record, theta: FloatArray | None = None) -> dict[str, Reaction]:
        """Return ``body/carrier`` -> what nodes held by multipliers do to their carrier; see `add.model.tie_forces`."""
        return tie_forces(self.model, record.kin, record.mu, self.theta if theta is None else theta)

    def run(self, theta: FloatArray | None = None, **options: Any) -> Trajectory:
        """Run the simulation; see `add.simulation.run.Simulation.run`."""
        return self.simulation.run(theta, **options)

    def rollout(self, inputs: Values, **options: Any) -> Rollout:
        """Run once with other numbers, by their paths, with `vjp` and `jvp`; see `add.scene.build.rollouts.rollout`."""
        return rollout(self.simulation, self.numbers, inputs, **options)

    def rollouts(self, inputs: Values, **options: Any) -> SceneBatch:
        """Run many times with other numbers, by their paths; see `add.scene.build.rollouts.rollouts`."""
        return rollouts(self.simulation, self.numbers, inputs, **options)

    def step_derivatives(
        self,
        values: FloatArray | None = None,
        *,
        controls: Sequence[str] | None = None,
        parameters: Sequence[str] = (),
        chart: str | Chart = Chart.COORDINATES,
    ) -> StepDerivatives:
        """Return what takes the derivatives of finished steps by numbers of the scene.

        See `add.simulation.run.Simulation.step_derivatives`.

        Parameters
        ----------
        values : (n_s,), optional
            Numbers of the scene that the run was made with; default: the scene's own.
        controls : sequence of str, optional
            Names of control signals; default: all. Of each those entries of ``signals.NAME.values`` come back that act.
        parameters : sequence of str
            Paths of numbers of the scene.
        chart : Chart, or "coordinates" or "twist"
        """
        values = self.numbers.values if values is None else values
        if controls is None:
            controls = [name for name, signal in self.scene.signals.items() if isinstance(signal, ControlSignalSpec)]
        by_numbers = self.numbers.ties.jacobian(values).tocsc()

        def along(path: str) -> Directions:
            return Directions.of(by_numbers[:, self.numbers.resolve(path)[0]])

        inner = self.simulation.step_derivatives(self.numbers.ties.forward(values))
        return StepDerivatives(
            inner.stepper, inner.assembler, inner.theta,
            {name: along(f"signals.{name}.values") for name in controls},
            {path: along(path) for path in parameters},
            Chart.named(chart),
        )  # fmt: skip

    def step(self, state: State, control: Values | None = None, inputs: Values | None = None) -> Step:
        """Take one step with other controls and numbers, with `vjp` and `jvp`; for many, see `step_function`."""
        return self.step_function(tuple(control or ()), tuple(inputs or ()))(state, control, inputs)

    def step_function(
        self,
        controls: tuple[str, ...] = (),
        inputs: tuple[str, ...] = (),
        bounds: Mapping[str, Bounds] | None = None,
    ) -> StepFunction:
        """Return the steps that these signals and numbers drive; see `add.scene.build.steps.StepFunction`."""
        return StepFunction(self.scene, self.simulation, self.numbers, controls, inputs, bounds)

    @property
    def order(self) -> int:
        """Order of the time integrator."""
        integrator = self.scene.time.integrator
        return ORDERS[integrator] if isinstance(integrator, str) else self.simulation.stepper.order

    def damped_pairs(self, theta: FloatArray | None = None) -> list[Pair]:
        """Return the pairs of bodies with one mass that a restitution or a damping acts between.

        Contact without a penalty has no impacts that take time.
        """
        if self.scene.contact.friction_law in HARD:
            return []
        rows = self.scene.contact.pairs
        restitutions = ContactClasses.read(self.scene).restitutions(self.scene)
        asked = {pair: rows[k].touching or 1 for pair, k in restitutions.items() if rows[k].enabled}
        return damped_pairs(self.model, self.theta if theta is None else theta, asked)

    def expected_impacts(self) -> list[Impact]:
        """Return how long an impact of each of these pairs will last."""
        return expected_impacts(self.damped_pairs(), self.scene.time.dt, self.order)

    def marker(self, name: str) -> PointMap:
        """Return the point, or direction, of one marker."""
        require_known("marker", name, self.marker_names, "markers")
        return self.markers.select(np.array([self.marker_names.index(name)]))

    @property
    def theta(self) -> FloatArray:
        """The scene's own parameters: a copy, which `run` and others take in their place when it is changed.

        Read-only numbers would say more, but compiled functions are compiled anew for them.
        """
        return self.simulation.theta.copy()


def held_nodes(built: BuiltScene) -> dict[str, tuple[int, int]]:
    """Return how many nodes every pin holds, and of how many, by its path in the scene."""
    return {
        f"bodies.{body.name}.pins.{k}": (len(pin.nodes), body.n_nodes)
        for body in built.model.bodies if isinstance(body, NodalBody)
        for k, pin in enumerate(body.pins)
    }  # fmt: skip


def material_sources(built: BuiltScene) -> dict[str, str]:
    """Return where the numbers of materials with names are from, by their path in the scene."""
    return {
        f"bodies.{name}.material": body.material.source
        for name, body in built.scene.bodies.items()
        if isinstance(body, SoftBodySpec) and isinstance(body.material, NamedMaterialSpec)
    }


def extent(built: BuiltScene, name: str) -> FloatArray:
    """Return lower and upper corner (2, 3) of a body in its rest frame [m]; NaN for one without a shape."""
    points = built.model.body(name).rest
    if not points.size:
        return np.full((2, 3), np.nan)
    return np.stack([points.min(axis=0), points.max(axis=0)])


def size_of(built: BuiltScene, name: str) -> float:
    """Return the largest extent of a body along the axes of its rest frame [m]."""
    low, high = extent(built, name)
    return float((high - low).max())


# --- The forces of all contacts of a state together -------------------------------------------------------------------


def contact_terms(system: System) -> list[tuple[int, Any]]:
    """Return the contact terms with their numbers among the deciding ones; none where contact is exact."""
    inner = [d.inner if isinstance(d, LiftedDecidingTerm) else d for d in system.deciding]
    return [(k, d) for k, d in enumerate(inner) if isinstance(d, BodyContact | MeshContact)]


def contact_forces(
    model: Model, simulation: Simulation, kin: Kinematics, record: Record | None, theta: FloatArray
) -> tuple[FloatArray, ContactForces | None]:
    """Return the generalised forces of all contacts on the rows of X [N], [N m], and those that the step solves for.

    Parameters
    ----------
    kin : Kinematics
        Of q, before a change of chart (`Trajectory.kinematics`).
    record : Record or None
        Of the step that led there, whose decisions are held; None for a start.
    """
    system = simulation.system
    at = model.lift.kinematics(kin, theta)
    force = np.zeros(model.lift.rows.n)
    for number, contact in contact_terms(system):
        if record is None:
            force += contact.forces(at, theta)
        elif not record.decisions[number].size:
            continue
        elif not model.lift.is_identity:
            against, decision = np.zeros(model.lift.rows.n), record.decisions[number]
            contact.on_branch(decision).residual(at, theta, against)
            held = contact.stick_constraint(decision)
            if held is not None:
                reactions = system.on_branch(record.decisions).reactions(number, record.mu)
                held.residual(at, reactions, theta, against, np.zeros(held.n_rows))
            force -= against
        else:
            force += system.on_branch(record.decisions).decided_forces(number, kin, record.mu, theta)
    solved = simulation.stepper.contact_forces(record, theta) if record else None
    return (force, None) if solved is None else (force + solved.generalised, solved)
