"""Terms whose family is their definition: what compiled steps walk over, called for one term from Python."""

from abc import ABC, abstractmethod
from copy import copy
from functools import cache, cached_property
from typing import Any, final

import numpy as np
from numba import config

from add.equations.family import Family
from add.equations.kinematics import Kinematics, Weights
from add.equations.term import NO_INPUTS, Constraint, Decision, Term
from add.kernels.arena import (
    COLUMNS,
    FORCES,
    JACOBIAN,
    PARAMETERS,
    SIGNAL,
    Arena,
    Instant,
    Signals,
    fields_of,
    packed,
    run_forces,
    run_jacobian,
    run_parameters,
)
from add.typing import AnyArray, FloatArray, IntArray

_fields_of = cache(fields_of)
#: The decision of a family without branches, and of one in which nothing acts.
NO_ROWS: Decision = np.zeros((0, 3), dtype=np.int64)
_NO_SIGNALS = Signals(np.zeros(0), np.zeros((0, 3), dtype=np.int64))


def plain(array: AnyArray) -> Any:
    """Return an array as families are compiled for, a copy where it is of another kind: nothing is compiled anew."""
    return array if array.flags.carray else np.array(array, order="C")


@final
class OneFamily:
    """A family by itself, called from Python.

    Attributes
    ----------
    family : Family
    arena : Arena
        Of this family alone; addresses come where they are asked for.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        table = np.zeros((1, COLUMNS), dtype=np.int64)
        table[0, SIGNAL] = -1 if family.signal is None else 0
        self.arena = Arena(*packed(list(family.arrays), _fields_of(family.kind.arrays)), table)
        self._plain = tuple(self.arena)
        self._known: set[int] = set()
        self._signals = np.nan, _NO_SIGNALS

    def over(self, family: Family) -> "OneFamily":
        """Return one of the same kind: arrays that are others, C-contiguous, stay where they are."""
        if config.DISABLE_JIT:  # views are slices
            return OneFamily(family)
        out, fields = copy(self), self.arena.fields.copy()
        for k, (mine, other) in enumerate(zip(self.family.arrays, family.arrays, strict=True)):
            if other is not mine:
                store = self.arena.ints if other.dtype == np.int64 else self.arena.floats
                away = (other.ctypes.data - store.ctypes.data) // store.itemsize
                fields[k] = [away, *other.shape, *[0] * (4 - other.ndim)]
        out.family, out.arena = family, self.arena._replace(fields=fields)
        out._plain = tuple(out.arena)
        return out

    def forces(
        self, kin: Kinematics, theta: FloatArray, rows: Decision, out: FloatArray, decide: bool = False
    ) -> Decision:
        """Add r to ``out`` (n,) on the branch of ``rows``, or ``decide`` what does not stick there. Return the rows."""
        r = _room(out)
        decision: Decision = self._run(FORCES, run_forces, kin, theta, not decide, plain(rows), r)
        _give(r, out)
        return decision

    def jacobian(
        self, kin: Kinematics, theta: FloatArray, rows: Decision, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add the weighted derivatives to ``data[slots]``."""
        if self.family.kind.jacobian is not None:
            by, values = (float(weights.q), float(weights.v), float(weights.a)), _room(data)
            self._run(JACOBIAN, run_jacobian, kin, theta, plain(rows), *by, values, plain(slots))
            _give(values, data)

    def parameters(
        self, kin: Kinematics, theta: FloatArray, rows: Decision, forward: bool, along: FloatArray, out: FloatArray
    ) -> None:
        """Add dr/dtheta along to ``out`` (n,), or backward along^T dr/dtheta to it (n_theta,)."""
        flat = _room(out)
        self._run(PARAMETERS, run_parameters, kin, theta, plain(rows), forward, plain(along), flat)
        _give(flat, out)

    def _run(self, column: int, run: Any, kin: Kinematics, theta: FloatArray, *arguments: Any) -> Any:
        (t, signals), signal = self._signals, self.family.signal
        if signal is not None and t != kin.t:  # weights are of the time alone, and all iterates of a step have one
            acting, weights = signal.acting(kin.t)
            signals = Signals(plain(weights), np.array([[acting.start or 0, 0, weights.size]]))
            self._signals = float(kin.t), signals
        at = float(kin.t), plain(kin.q), plain(kin.v), plain(kin.a), plain(theta)
        if column not in self._known:
            kind = self.family.kind
            if config.DISABLE_JIT:  # there are no addresses
                return (kind.forces, kind.jacobian, kind.parameters)[column](
                    self.arena, 0, Instant(*at, signals), *arguments
                )
            self.arena.families[0, column] = kind.address(column)
            self._known.add(column)
        return run(self._plain, (*at, *signals), *arguments)


class OverFamily(ABC):
    """Evaluation of one family (`add.equations.family`), kept from call to call."""

    @abstractmethod
    def family(self) -> Family:
        """See `Term.family`."""

    @cached_property
    def one(self) -> OneFamily:
        """The family by itself."""
        return OneFamily(self.family())

    @property
    def inputs(self) -> IntArray:
        """See `Term.inputs`: what the array `rows` of a family has that follows a signal."""
        family: Any = self.one.family
        return NO_INPUTS if family.signal is None else family.arrays.rows[family.arrays.rows >= 0]

    def __getstate__(self) -> dict[str, Any]:
        """Leave what has addresses of this process here."""
        return {key: value for key, value in self.__dict__.items() if key != "one"}


class FamilyTerm(OverFamily, Term):
    """A smooth term over a family: a subclass says what it is, and what it stores."""

    @property
    def decided(self) -> Decision:
        """The decision that the term is a branch of; none for most."""
        return NO_ROWS

    def at(self, theta: FloatArray) -> OneFamily:
        """Return the family with what its arrays follow of theta; most follow nothing."""
        return self.one

    @final
    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the entries of the family's derivatives."""
        return self.one.family.pattern

    @final
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add r."""
        self.at(theta).forces(kin, theta, self.decided, out)

    @final
    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        self.at(theta).jacobian(kin, theta, self.decided, weights, data, slots)

    @final
    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add lam^T dr/dtheta."""
        self.at(theta).parameters(kin, theta, self.decided, False, lam, out)

    @final
    def rates_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> bool:
        """Add lam^T dr/dv, if the kind of the family gives it."""
        gives = self.one.family.kind.rates
        if gives:
            both = np.zeros(theta.size + lam.size)
            self.at(theta).parameters(kin, theta, self.decided, False, lam, both)
            out += both[theta.size :]
        return gives

    @final
    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add dr/dtheta theta_dot."""
        self.at(theta).parameters(kin, theta, self.decided, True, theta_dot, out)


#: Of dr by multipliers, too, which are coordinates of a family.
_BY_PLACE = Weights(1.0, 0.0, 0.0)


class FamilyConstraint(Constraint):
    """Equations on coordinates over a family: a subclass says what it is."""

    @abstractmethod
    def family(self, first: int) -> Family:
        """See `Constraint.family`."""

    @cached_property
    def _ones(self) -> dict[int, OneFamily]:
        """The family by itself, by where its multipliers begin."""
        return {}

    def _one(self, first: int) -> OneFamily:
        if first not in self._ones:
            self._ones[first] = OneFamily(self.family(first))
        return self._ones[first]

    def __getstate__(self) -> dict[str, Any]:
        """Leave what has addresses of this process here."""
        return {key: value for key, value in self.__dict__.items() if key != "_ones"}

    def _at(self, kin: Kinematics, mu: FloatArray) -> tuple[OneFamily, Kinematics]:
        """Return the family by itself, and the state with multipliers among the coordinates."""
        none = np.zeros(kin.q.size + mu.size)
        return self._one(kin.q.size), Kinematics(np.concatenate([kin.q, mu]), none, none, kin.t, kin.step)

    @final
    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the entries of the family's derivatives."""
        return self._one(first).family.pattern

    @final
    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu and c."""
        (one, at), n = self._at(kin, mu), kin.q.size
        both = np.zeros(n + mu.size)
        one.forces(at, theta, NO_ROWS, both)
        out += both[:n]
        rows += both[n:]

    @final
    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add the derivatives by coordinates and by multipliers, each with its weight."""
        one, at = self._at(kin, mu)
        cols = one.family.pattern[1]
        values = np.zeros(cols.size)
        one.jacobian(at, theta, NO_ROWS, _BY_PLACE, values, np.arange(cols.size))
        np.add.at(data, slots, np.where(cols < kin.q.size, weights.q, weights.multiplier) * values)

    @final
    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add lam^T d(G^T mu)/dtheta + lam_rows^T dc/dtheta."""
        one, at = self._at(kin, mu)
        one.parameters(at, theta, NO_ROWS, False, np.concatenate([lam, lam_rows]), out)

    @final
    def parameter_jvp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        theta_dot: FloatArray,
        out: FloatArray,
        rows: FloatArray,
    ) -> None:
        """Add the derivatives along theta_dot."""
        (one, at), n = self._at(kin, mu), kin.q.size
        both = np.zeros(n + mu.size)
        one.parameters(at, theta, NO_ROWS, True, theta_dot, both)
        out += both[:n]
        rows += both[n:]


def _room(out: FloatArray) -> FloatArray:
    """Return an array to add to: ``out`` itself, or zeros where families are not compiled for its kind."""
    return out if out.flags.carray else np.zeros(out.shape)


def _give(found: FloatArray, out: FloatArray) -> None:
    if found is not out:
        out += found
