"""Derivatives of one step by the state before it and by theta, as matrices and as operators.

A step maps the pairs (q, v) of a state, newest first, to those of the next one: x' = f(x, theta). Its derivatives are
those of the step's equations on the branch that the record keeps, J u_dot = -(what else moves) (see
`add.simulation.derivative`): one factorisation of J, one solve for all columns. They are what the sweeps of
`add.adjoint` chain, so that products of them are the derivatives of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from add.equations.charts import Chart, Twists
from add.equations.kinematics import (
    Columns,
    Directions,
    Kinematics,
    SparseMatrix,
    State,
    StateTangent,
    StateTangents,
    Weights,
)
from add.equations.system import System
from add.equations.term import UNIT
from add.errors import InputError
from add.linalg import one_blas_thread
from add.simulation.derivative import Linearised
from add.simulation.stepper import DifferentiableStepper, Record, TakenStep
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Step:
    """One step with the states around it.

    Attributes
    ----------
    before : State
    record : Record
    after : State
    """

    before: State
    record: Record
    after: State


@final
@dataclass(frozen=True)
class InputJacobian:
    """The derivative of the state after a step by numbers that act in it.

    Attributes
    ----------
    index : (k,) increasing
        Which of the numbers act: entries of a block of theta, flat, or columns of given directions.
    q, v : (n, k)
        Of the coordinates and velocities after the step.
    """

    index: IntArray
    q: FloatArray
    v: FloatArray


@final
@dataclass(frozen=True)
class StepJacobians:
    """The derivatives of one step.

    Attributes
    ----------
    transition : (2 m n, 2 m n)
        Of x = (q_0, v_0, q_1, v_1, ...), all pairs of a `State`, newest first, by the same before the step; products
        over steps are derivatives over runs.
    n : int
        Number of coordinates.
    n_read : int
        How many pairs the formula of the step reads: 1, or 2 of BDF2.
    controls : name -> InputJacobian
    parameters : name -> InputJacobian
    """

    transition: FloatArray
    n: int
    n_read: int
    controls: Mapping[str, InputJacobian] = field(default_factory=dict)
    parameters: Mapping[str, InputJacobian] = field(default_factory=dict)

    def _blocks(self, row: int, column: int) -> FloatArray:
        n = self.n
        rows = self.transition[row * n : (row + 1) * n]
        starts = [(2 * k + column) * n for k in range(self.n_read)]
        return np.stack([rows[:, start : start + n] for start in starts])

    @property
    def q_q(self) -> FloatArray:
        """dq'/dq of every pair that the step reads (n_read, n, n)."""
        return self._blocks(0, 0)

    @property
    def q_v(self) -> FloatArray:
        """dq'/dv (n_read, n, n)."""
        return self._blocks(0, 1)

    @property
    def v_q(self) -> FloatArray:
        """dv'/dq (n_read, n, n)."""
        return self._blocks(1, 0)

    @property
    def v_v(self) -> FloatArray:
        """dv'/dv (n_read, n, n)."""
        return self._blocks(1, 1)


@final
class StepDerivatives:
    """Derivatives of the steps of one simulation with one theta; keeps patterns from step to step.

    Parameters
    ----------
    stepper : DifferentiableStepper
    assembler : Assembler
        Its factors are those of the last step that was asked for.
    theta : (n_theta,)
    controls, parameters : name -> Directions
        Directions of theta by which derivatives are taken.
    chart : Chart
    """

    def __init__(
        self,
        stepper: DifferentiableStepper,
        assembler: Assembler,
        theta: FloatArray,
        controls: Mapping[str, Directions],
        parameters: Mapping[str, Directions],
        chart: Chart = Chart.COORDINATES,
    ) -> None:
        if stepper.remembers:
            raise InputError(
                "a step of a body whose stress relaxes is no function of coordinates and velocities alone",
                found="bodies.*.material.relaxation", expected="derivatives of whole runs, or no relaxation",
            )  # fmt: skip
        self.stepper, self.assembler, self.theta, self.chart = stepper, assembler, theta, chart
        self.controls, self.parameters = dict(controls), dict(parameters)
        given = [*self.controls.values(), *self.parameters.values()]
        self.rotations = rotation_vectors(assembler.system)
        sizes = [directions.n for directions in given]
        self._ends, self._owner = np.cumsum([0, *sizes]), np.repeat(np.arange(len(sizes)), sizes)
        blocks = [sp.csr_array((theta.size, 0)), *(directions.matrix for directions in given)]
        self._inputs = sp.csr_array(sp.hstack(blocks, format="csr"))
        self._wide: dict[int, Directions] = {}

    def directions(self, n_state: int) -> Directions:
        """Return the directions of theta behind ``n_state`` columns that leave it as it is."""
        if n_state not in self._wide:
            nothing = sp.csr_array((self.theta.size, n_state))
            self._wide[n_state] = Directions(sp.csr_array(sp.hstack([nothing, self._inputs], format="csr")))
        return self._wide[n_state]

    def linearise(self, record: Record) -> Linearised | None:
        """Factor the matrix of a step, for `push` and `pull`."""
        return self.stepper.linearise(self.assembler, record, self.theta)

    def push(self, record: Record, dot: StateTangent, linearised: Linearised | None, theta: bool) -> StateTangents:
        """Return the tangents after a step along those before it (m, n, k), and behind them along the inputs."""
        k = dot.q.shape[2]
        directions = self.directions(k) if theta else Directions(sp.csr_array((self.theta.size, k)))
        tangents = StateTangents(np.arange(k), dot)
        return self.stepper.pushforward(TakenStep(self.assembler, record, self.theta, linearised), tangents, directions)

    def around(self, step: Step | Record) -> tuple[State, State]:
        """Return the states after and before a step, which twists ask for."""
        if not isinstance(step, Step):
            raise InputError(
                "twists need the states around a step", found="its record alone",
                expected="trajectory.step(k), or Step(before, record, after)",
            )  # fmt: skip
        return step.after, step.before

    def jacobians(self, step: Step | Record) -> StepJacobians:
        """Return the derivatives of a step as matrices.

        Raises
        ------
        InputError
            If twists are asked for of a record alone: they need the states around the step.
        SolverError
            If the matrix of the step is singular.
        """
        record = step.record if isinstance(step, Step) else step
        n, read = self.assembler.system.n, len(record.alpha)
        with one_blas_thread():
            taken = TakenStep(self.assembler, record, self.theta)
            transition, inputs = self.stepper.step_matrices(taken, self.directions(0)) or self._by_tangents(record)
        if self.chart is Chart.TWIST and self.rotations.size:
            twists, old = (Twists.at(state, self.rotations) for state in self.around(step))
            transition = old.inverse_transposed(twists.apply(transition).T).T
            inputs = Columns(inputs.index, twists.apply(inputs.values))
        return StepJacobians(transition, n, read, *self._split(inputs, n))

    def _by_tangents(self, record: Record) -> tuple[FloatArray, Columns]:
        """Return the transition and the derivatives by inputs (2 m n, k) from tangents along all pairs and inputs."""
        n, m, read = self.assembler.system.n, self.stepper.n_history, len(record.alpha)
        k = 2 * read * n
        dot = StateTangent.of_flat(np.eye(2 * m * n, k), m)
        pushed = self.push(record, dot, self.linearise(record), theta=True)
        after = pushed.dot.flat()
        transition = np.zeros((2 * m * n, 2 * m * n))
        order = np.argsort(pushed.index)
        transition[:, :k] = after[:, order[:k]]
        return transition, Columns(pushed.index[order[k:]] - k, after[:, order[k:]])

    def _split(self, inputs: Columns, n: int) -> tuple[dict[str, InputJacobian], dict[str, InputJacobian]]:
        """Return the columns of the inputs, name by name."""
        columns, values = inputs.index, inputs.values
        places, index = np.searchsorted(columns, self._ends).tolist(), columns - self._ends[self._owner[columns]]
        parts = [
            InputJacobian(index[first:last], values[:n, first:last], values[n : 2 * n, first:last])
            for first, last in pairwise(places)
        ]
        count = len(self.controls)
        return (
            dict(zip(self.controls, parts[:count], strict=True)),
            dict(zip(self.parameters, parts[count:], strict=True)),
        )


def rotation_vectors(system: System) -> IntArray:
    """Return the first coordinates of all rotation vectors, prescribed ones included."""
    frames = [entry.start + 3 for entry in system.dofs.entries if entry.name in system.dofs.rigid and entry.size == 6]
    return np.union1d(system.rotations, np.array(frames, dtype=np.int64)).astype(np.int64)


def block_directions(system: System, names: Sequence[str]) -> dict[str, Directions]:
    """Return unit directions along all entries of blocks of theta.

    Raises
    ------
    InputError
        If a name is none of a block.
    """
    out, n = {}, system.parameters.n
    for name in names:
        entry = system.parameters[name]
        index = np.arange(entry.size)
        matrix: SparseMatrix = sp.csr_array((np.ones(entry.size), (entry.start + index, index)), shape=(n, entry.size))
        out[name] = Directions.of(matrix)
    return out


# --- The equations of motion at one state as matrices: mass, bias, and their derivatives ------------------------------


@final
@dataclass(frozen=True)
class Dynamics:
    """r(q, v, a) = M a + bias with all forces in it, those of contact on the branch that holds at the state.

    Attributes
    ----------
    mass : (n, n)
        M = dr/da.
    bias : (n,)
        r at a = 0: Coriolis and centrifugal forces less all others; M a = -bias is the motion.
    residual : (n,)
        r at the accelerations asked for: the forces that would have to act along the coordinates (inverse dynamics).
    by_coordinates, by_velocities : (n, n)
        dr/dq and dr/dv there.
    rows : (m, n)
        G = dc/dq of the equations c(q) = 0 that close loops or hold points; none: (0, n). Where there are any,
        M a + bias + G^T mu = 0 is the motion, and residual and derivatives are without G^T mu.
    """

    mass: FloatArray
    bias: FloatArray
    residual: FloatArray
    by_coordinates: FloatArray
    by_velocities: FloatArray
    rows: FloatArray

    @classmethod
    def of(
        cls,
        system: System,
        usual: FloatArray,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike | None = None,
        *,
        t: float = 0.0,
        theta: FloatArray | None = None,
    ) -> "Dynamics":
        """Return the equations at a state.

        Parameters
        ----------
        system : System
        usual : (n_theta,) theta where no other is given
        q, v : (n,)
            Coordinates and velocities.
        a : (n,), optional
            Accelerations at which residual and derivatives are wanted; default 0.
        t : float
            Time that signals are read at [s].
        theta : (n_theta,), optional

        Raises
        ------
        InputError
            If a shape does not fit.
        """
        n, theta = system.n, usual if theta is None else np.asarray(theta, dtype=float)
        arrays = [np.asarray(np.zeros(n) if x is None else x, dtype=float) for x in (q, v, a)]
        for name, array in zip("qva", arrays, strict=True):
            if array.shape != (n,):
                raise InputError(f"another shape of '{name}'", found=str(array.shape), expected=f"({n},)")
        kin, none = Kinematics(arrays[0], arrays[1], arrays[2], t, 0), np.zeros(system.n_multipliers)
        residual, _, branch = system.residual(kin, none, theta)
        bias, _ = branch.residual(Kinematics(kin.q, kin.v, np.zeros(n), t, 0), none, theta)
        matrices = {name: np.zeros((n, n)) for name, _ in UNIT}
        for term in branch.terms:
            rows, cols = term.pattern()
            for name, weights in UNIT:
                if name in term.depends:
                    values = np.zeros(rows.size)
                    term.jacobian(kin, theta, weights, values, np.arange(rows.size))
                    np.add.at(matrices[name], (rows, cols), values)
        closing = np.zeros((n + system.n_multipliers, n + system.n_multipliers))
        for constraint, part in system.parts:
            rows, cols = constraint.pattern(n + part.start)
            values = np.zeros(rows.size)
            constraint.jacobian(kin, none[part], theta, Weights(1.0, 0.0, 0.0), values, np.arange(rows.size))
            np.add.at(closing, (rows, cols), values)
        return cls(matrices["a"], bias, residual, matrices["q"], matrices["v"], closing[n:, :n])
