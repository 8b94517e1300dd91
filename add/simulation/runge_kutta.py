"""Steps of the classical Runge-Kutta method of order four, explicit in the accelerations, with exact derivatives."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from add.compiled.run import CompiledRun
from add.compiled.stages import take_stages
from add.compiled.steps import Block, Stages, Steps, Tableau, Timing
from add.compiled.structure import CHUNK, WITHIN
from add.equations.family_term import plain
from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.errors import InputError, SolverError
from add.simulation.bdf import FLED, record_of, state_after
from add.simulation.derivative import Linearised
from add.simulation.run import Simulation
from add.simulation.start import BDFFormula, StartUp
from add.simulation.stepper import BlockStepper, Pair, PushedStep, Record, TakenStep
from add.solve.step_equations import NewtonOptions
from add.solve.step_matrix import Assembler
from add.typing import FloatArray

#: Kutta's method (1901; Hairer, Norsett & Wanner, Solving ordinary differential equations I, II.1).
RK4 = Tableau(
    np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]),
    np.array([1.0, 2.0, 2.0, 1.0]) / 6.0,
    np.array([0.0, 0.5, 0.5, 1.0]),
)


@final
@dataclass(frozen=True)
class RungeKutta4(BlockStepper):
    """q' = v, M(q) v' = -r(q, v, 0), by four stages a step; the discrete adjoint goes back through these.

    For smooth motion without stiff forces: trees of joints without contact. No step is solved by Newton's method.

    Attributes
    ----------
    step_size : float
        dt [s].
    newton : NewtonOptions
        Not asked.
    """

    step_size: float
    newton: NewtonOptions = NewtonOptions()

    #: Four.
    order: ClassVar[int] = 4

    @property
    def dt(self) -> float:
        """Step [s]."""
        return self.step_size

    #: It has no others.
    needs_compiled: ClassVar[bool] = True

    def solved_by(self, options: NewtonOptions) -> "RungeKutta4":
        """Return the stepper with other options, which it does not ask."""
        return replace(self, newton=options)

    @cached_property
    def _clock(self) -> BDFFormula:
        """How steps are numbered, as BDF1 has it."""
        return BDFFormula(self.dt, 1, StartUp.BDF1)

    def steps(self, assembler: Assembler, state: State, theta: FloatArray, n: int) -> Block:
        """Take up to ``n`` steps at once; see `BlockStepper.steps`."""
        before, step = (state.q[0], state.v[0]), state.step + 1
        block = _taken(_compiled(assembler), self._clock.timing(state.step), before, n, theta)
        if not block.n:
            raise SolverError(
                f"step {step} (t={step * self.dt:.6g} s): the explicit step leaves every scale, or a mass matrix is "
                f"singular; try time.dt = {0.25 * self.dt:.3g} s, or bdf2 for what is stiff"
            )
        return block

    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; see `Stepper.step`."""
        block = self.steps(assembler, state, theta, 1)
        if replay is not None:
            turned = np.isin(assembler.system.rotations, replay.charts)[None]
            block = replace(block, steps=block.steps._replace(turned=turned))
        return state_after(block, 0), record_of(block, 0)

    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised | None:
        """Return None: the pull-back does all of it in one call."""
        return None

    def pull(self, step: TakenStep, bar: Pair, theta_bar: FloatArray) -> StateTangent:
        """Pull a cotangent back through the stages; see `StepPart.pull`."""
        record, n = step.record, bar[0].size
        compiled, kin = _compiled(step.assembler), record.kin
        block = compiled.block_of(self._clock.timing(kin.step - 1), (kin.q, kin.v, kin.a), ())
        block = replace(block, stages=Stages(RK4, record.stages[None]))
        q_bars, v_bars = np.zeros((2, 2, n)), np.zeros((2, 2, n))
        q_bars[1, 0], v_bars[1, 0] = bar
        compiled.pull_back(block, 1, step.theta, (q_bars, v_bars), np.zeros(n), theta_bar)
        return StateTangent(q_bars[0], v_bars[0])

    def push(self, step: TakenStep, tangents: StateTangents, directions: Directions) -> PushedStep:
        """Push tangents forward through the stages; see `StepPart.push`."""
        compiled, dt, t = _compiled(step.assembler), self.dt, (step.record.kin.step - 1) * self.dt
        matrices = []
        for c, q, v, a in zip(RK4.c.tolist(), *step.record.stages, strict=True):
            matrices.append(compiled.matrices_at(t + max(c, WITHIN) * dt, (q, v, a), step.theta, directions))
        tangents = tangents.including(*(columns.index for _, columns in matrices))
        q_dot, v_dot = tangents.dot.q[0], tangents.dot.v[0]
        rates: list[FloatArray] = []
        slopes: list[FloatArray] = []
        for i, ((by_q, by_v, by_a), columns) in enumerate(matrices):
            at_q = q_dot + dt * sum((RK4.a[i, j] * rates[j] for j in range(i)), np.zeros_like(q_dot))
            at_v = v_dot + dt * sum((RK4.a[i, j] * slopes[j] for j in range(i)), np.zeros_like(v_dot))
            rhs = -(by_q @ at_q + by_v @ at_v)
            rhs[:, tangents.places(columns.index)] -= columns.values
            rates.append(at_v)
            slopes.append(np.linalg.solve(by_a, rhs))
        after = [
            x + dt * sum(b * k for b, k in zip(RK4.b, ks, strict=True)) for x, ks in ((q_dot, rates), (v_dot, slopes))
        ]
        return tangents, after[0], after[1]


def _taken(
    compiled: CompiledRun, timing: Timing, before: tuple[FloatArray, FloatArray], n: int, theta: FloatArray
) -> Block:
    """Take up to ``n`` steps from q and v (n_coordinates,): all coordinates are free, and nothing decides.

    Fewer at the end of a chunk, or where a step ends with a velocity beyond `FLED` or cannot be taken.
    """
    n = min(n, CHUNK - (timing.first + 1) % CHUNK, compiled.system.steps_a_call)
    q, v = map(plain, before)
    taken, after_q, after_v, states_q, states_v, turned, stages = take_stages(
        *compiled.explicit, RK4, timing, (q, v), compiled.signals(timing, n, RK4.c), plain(theta), FLED
    )
    a = np.ascontiguousarray(stages[:, 2, -1])
    counts, merits = np.zeros((n, 5), dtype=np.int64), np.zeros((n, 1))
    counts[:, 2] = RK4.b.size
    steps = Steps(
        after_q, after_v, a, states_q, states_v, turned, counts, merits[:, 0].copy(), merits,
        np.zeros((0, 3), dtype=np.int64), np.zeros((n, 1), dtype=np.int64),
    )  # fmt: skip
    return Block(compiled.system, timing, steps, taken, q, v, stages=Stages(RK4, stages))


def _compiled(assembler: Assembler) -> CompiledRun:
    """Return the compiled equations, which `refuse_implicit` has asked for."""
    assert assembler.compiled is not None
    return assembler.compiled


def refuse_implicit(simulation: Simulation) -> None:
    """Refuse systems whose accelerations do not follow from q and v by one mass matrix.

    Raises
    ------
    InputError
        For contact and other forces that decide, constraints, coordinates that are led or held, and systems of sparse
        matrices.
    """
    system, found = simulation.system, ""
    if system.deciding:
        found = "contact, or another force that decides on its branch"
    elif system.n_multipliers:
        found = "constraints"
    elif system.partition.prescribed.size:
        found = "coordinates that are held or led"
    elif simulation.packed is None:
        found = f"steps that are not compiled: {simulation.by_terms}"
    elif simulation.packed.sparse:
        found = "soft bodies, or so many coordinates that matrices are sparse"
    if found:
        raise InputError(
            "an explicit step takes M(q) a = f(q, v) alone",
            place="time.integrator",
            found=found,
            expected="'bdf1' or 'bdf2'",
        )
