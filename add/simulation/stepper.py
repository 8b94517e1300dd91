"""What the forward loop and the sweeps know of a time integrator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.branch_equations import BranchEquations
from add.equations.kinematics import Kinematics, State, StateTangent
from add.equations.tangents import Directions, StateTangents
from add.equations.term import Decisions
from add.linalg import Factorization
from add.linalg.augmented_lagrangian import AugmentedSolve
from add.solve.newton import NewtonReport
from add.solve.step_matrix import Assembler
from add.typing import FloatArray, IntArray

#: No chart changed.
NO_CHARTS: IntArray = np.zeros(0, dtype=np.int64)


@final
@dataclass(frozen=True)
class Record:
    """A finished step: where it converged and what was decided. The backward pass never decides again.

    Attributes
    ----------
    kin : Kinematics
        Converged coordinates and rates.
    mu : multipliers
    decisions : branches of the deciding terms
    c : float
        1/(beta dt) [1/s].
    alpha : tuple of float
        History coefficients.
    report : NewtonReport
    charts : (k,) first coordinates of the rotation vectors that changed chart after the step
    unchanged : State or None
        The state after the step and before that change; None where nothing changed.
    """

    kin: Kinematics
    mu: FloatArray
    decisions: Decisions
    c: float
    alpha: tuple[float, ...]
    report: NewtonReport
    charts: IntArray = field(default_factory=lambda: NO_CHARTS)
    unchanged: State | None = None


@final
@dataclass(frozen=True)
class Linearised:
    """A finished step, ready for both derivatives.

    Attributes
    ----------
    frozen : BranchEquations
        The equations with the step's decisions.
    factors : Factorization or AugmentedSolve
        Of J = dr/du at the recorded state.
    """

    branch: BranchEquations
    factors: Factorization | AugmentedSolve


class Stepper(ABC):
    """One step forward, its pull-back and its push-forward. Nothing is kept on the stepper."""

    @property
    @abstractmethod
    def order(self) -> int:
        """Order of accuracy on smooth problems."""

    @property
    @abstractmethod
    def dt(self) -> float:
        """Step [s]."""

    @property
    @abstractmethod
    def n_history(self) -> int:
        """Number of (q, v) pairs in a State."""

    @abstractmethod
    def start(self, q: FloatArray, v: FloatArray) -> State:
        """Return the state at t = 0."""

    @abstractmethod
    def start_pullback(self, state_bar: StateTangent) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of the initial q and v."""

    @abstractmethod
    def start_pushforward(self, q_dot: FloatArray, v_dot: FloatArray) -> StateTangent:
        """Return the tangent of the state at t = 0; arrays (n,), or (n, k) for k directions."""

    @abstractmethod
    def step(
        self, assembler: Assembler, state: State, theta: FloatArray, replay: Record | None = None
    ) -> tuple[State, Record]:
        """Take one step; ``replay`` holds the decisions of an earlier run.

        Raises
        ------
        SolverError
            If Newton and its fallbacks fail.
        """

    @abstractmethod
    def linearise(self, assembler: Assembler, record: Record, theta: FloatArray) -> Linearised:
        """Assemble and factor the matrix of a step; what comes back holds until the assembler's next call."""

    @abstractmethod
    def pullback(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        state_bar: StateTangent,
        theta_bar: FloatArray,
        linearised: Linearised | None = None,
    ) -> StateTangent:
        """Return the cotangent of the state before the step; add that of theta to ``theta_bar``.

        Without ``linearised``, the step is linearised here.
        """

    @abstractmethod
    def pushforward(
        self,
        assembler: Assembler,
        record: Record,
        theta: FloatArray,
        tangents: StateTangents,
        directions: Directions,
        linearised: Linearised | None = None,
    ) -> StateTangents:
        """Return the tangents of the state after the step; one factorisation for all."""
