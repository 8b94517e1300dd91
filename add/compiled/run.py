"""Compiled steps of one run: what they share, the step and its pull-back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np

from add.compiled.adjoint import step_pullback
from add.compiled.arrays import Signals
from add.compiled.dense import Lapack
from add.compiled.families import Choices
from add.compiled.newton import AT_ROUND_OFF, GIVEN_UP, Criteria, Formula, newton_step
from add.compiled.pack import PackedSystem
from add.compiled.windows import CHUNK, windows
from add.equations.kinematics import Kinematics, StateTangent
from add.equations.term import Decision, Decisions
from add.linalg.blas import addresses
from add.typing import AnyArray, FloatArray

_NO_ROWS: Decision = np.zeros((0, 3), dtype=np.int64)
_NOTHING: FloatArray = np.zeros(0)


@cache
def lapack() -> Lapack:
    """Return the addresses of the routines in this process."""
    blas = addresses()
    return Lapack(blas.getrf, blas.getrs)


@final
@dataclass(frozen=True)
class StepFound:
    """A solved step.

    Attributes
    ----------
    kin : Kinematics
    decisions : of the deciding terms
    turned : whether a rotation vector is beyond pi
    at_round_off : whether the residual is as small as rounding allows, and not below the tolerance
    factorizations : done
    merits : of all iterates [N]
    tolerance : [N]
    worst : coordinate with the largest residual
    """

    kin: Kinematics
    decisions: Decisions
    turned: bool
    at_round_off: bool
    factorizations: int
    merits: tuple[float, ...]
    tolerance: float
    worst: int


def plain(array: AnyArray) -> Any:
    """Return an array of the kind that the steps are compiled for, a copy where it is another: none is compiled anew."""
    return array if array.flags.carray else np.array(array, order="C")


@final
class CompiledRun:
    """The compiled steps of one run; never shared between runs.

    It keeps what depends on theta or time alone: prescribed coordinates, windows of signals.
    """

    def __init__(self, system: PackedSystem) -> None:
        self.system = system
        self._none = Choices(_NO_ROWS, _NO_ROWS, np.zeros(system.n_codes, dtype=np.int8))
        self._theta: FloatArray | None = None
        self._start = _NOTHING
        self._rows: tuple[Any, FloatArray] | None = None
        self._chunk: tuple[float, int] = (0.0, -1)
        self._windows: list[Signals] = []
        self._prescribed = system.system.partition.prescribed

    def copy(self) -> CompiledRun:
        """Return another one for the same run, which can be used at the same time."""
        return CompiledRun(self.system)

    def _at(self, theta: FloatArray) -> None:
        """Take new parameters."""
        if self._theta is not theta:
            self._theta, self._rows = theta, None
            self._start = self.system.system.motion.start(theta) if self._prescribed.size else _NOTHING

    def _signals(self, step: int, dt: float) -> Signals:
        """Return the signals at the end of step number ``step``."""
        chunk = step // CHUNK
        if self._chunk != (dt, chunk):
            times = dt * np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)
            self._windows = windows(self.system.signals, times)
            self._chunk = dt, chunk
        return self._windows[step - chunk * CHUNK]

    def step(
        self,
        formula: Formula,
        criteria: Criteria,
        step: int,
        before: tuple[FloatArray, FloatArray],
        theta: FloatArray,
        replay: tuple[FloatArray, Decisions] | None = None,
    ) -> StepFound | None:
        """Return step number ``step``; None where it is not found by the normal path.

        Parameters
        ----------
        before : q and v (2, n), newest first
        replay : u (n,) to begin with and decisions to hold
        """
        theta = plain(theta)
        self._at(theta)
        signals = self._signals(step, formula.dt)
        given = (_NOTHING, self._none) if replay is None else (plain(replay[0]), self._choices(replay[1]))
        status, factorizations, worst, tolerance, history, q, v, a, chosen, turned = newton_step(
            *self.system.families, lapack(), formula, criteria, plain(before[0]), plain(before[1]),
            self._start, *signals, theta, replay is not None, given,
        )  # fmt: skip
        if status == GIVEN_UP:
            return None
        kin = Kinematics(q, v, a, formula.t, step)
        merits = tuple(history.tolist())
        return StepFound(
            kin, self._decisions(chosen), turned, status == AT_ROUND_OFF, factorizations, merits, tolerance, worst
        )

    def pullback(
        self,
        formula: Formula,
        kin: Kinematics,
        decisions: Decisions,
        theta: FloatArray,
        bar: StateTangent,
        theta_bar: FloatArray,
    ) -> StateTangent | None:
        """Pull a cotangent back through a step, add that of theta; None where the matrix cannot be solved with."""
        theta = plain(theta)
        self._at(theta)
        signals = self._signals(kin.step, formula.dt)
        found, q_bar, v_bar, by_position = step_pullback(
            *self.system.families, lapack(), formula, plain(kin.q), plain(kin.v), plain(kin.a),
            *signals, theta, self._choices(decisions), plain(bar.q), plain(bar.v), theta_bar,
        )  # fmt: skip
        if not found:
            return None
        if self._prescribed.size:
            if self._rows is None:
                self._rows = self.system.system.motion.start_rows(theta)
            index, rows = self._rows
            theta_bar[index] += by_position[self._prescribed] @ rows
        return StateTangent(q_bar, v_bar)

    def _choices(self, decisions: Decisions) -> Choices:
        """Return the decisions of the deciding terms as compiled steps take them."""
        system, none = self.system, self._none
        codes = none.codes
        if system.n_codes:
            own = zip(decisions, system.codes, strict=True)
            codes = np.concatenate([decision for decision, part in own if part is not None])
        bodies = plain(decisions[system.bodies]) if system.bodies >= 0 else _NO_ROWS
        nodes = plain(decisions[system.nodes]) if system.nodes >= 0 else _NO_ROWS
        return Choices(bodies, nodes, codes)

    def _decisions(self, chosen: Choices) -> Decisions:
        """Return the decisions of the deciding terms, in their order."""
        system, out = self.system, []
        for k, part in enumerate(system.codes):
            if part is not None:
                out.append(chosen.codes[part])
            else:
                out.append(chosen.bodies if k == system.bodies else chosen.nodes)
        return tuple(out)
