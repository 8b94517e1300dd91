"""Gas in chambers of bodies: a given pressure, and equations between pressure and volume with the pressure unknown."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind, by_signal, node_blocks
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics, Weights
from add.equations.signals import Signal
from add.equations.term import Constraint, Entries
from add.kernels.air import add_pressed, add_pressed_blocks, enclosed_volume
from add.kernels.arena import FAMILY, FIELD, Ints, Ints2, add_entry, unpacker, window
from add.kernels.caching import njit
from add.typing import FloatArray, IntArray

#: The standard atmosphere [Pa].
ATMOSPHERE = 101325.0


class _Arrays(NamedTuple):
    triangles: Ints2
    rows: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def signal_value(arena, k, at, rows):
    """Return the number that the family's signal gives, coefficients of theta at ``rows``."""
    first, weights = window(arena, k, at)
    value = 0.0
    for j in range(weights.size):
        value += weights[j] * at.theta[rows[first + j]]
    return value


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    own = _own(arena, arena.families[k, FIELD])
    add_pressed(at.q, own.triangles, -signal_value(arena, k, at, own.rows), out)
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q != 0.0:
        own = _own(arena, arena.families[k, FIELD])
        add_pressed_blocks(at.q, own.triangles, -weight_q * signal_value(arena, k, at, own.rows), data, slots)


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    own = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    unit = np.zeros(at.q.size)
    add_pressed(at.q, own.triangles, -1.0, unit)
    for j in range(weights.size):
        for i in range(unit.size):
            add_entry(forward, i, own.rows[first + j], weights[j] * unit[i], along, out)


KIND = Kind("pressure", _Arrays, _forces, _parameters, _jacobian, by_signal(_Arrays, _parameters))


@final
@dataclass(frozen=True)
class Pressure(FamilyTerm):
    """r = -p(t) A/3 on each corner of each triangle: p [Pa] above that around, on a surface closed or open.

    Attributes
    ----------
    name : str
        Of the chamber, for results.
    triangles : (m, 3)
        Nodes of the system, outward from the gas.
    signal : Signal
    rows : (n_rows,)
        Indices in theta of the coefficients of p [Pa].
    closed : bool
        Whether the surface is, so that E = -p V.
    """

    depends: ClassVar[str] = "q"

    name: str
    triangles: IntArray
    signal: Signal
    rows: IntArray
    closed: bool

    def family(self) -> Family:
        """Return a dense block a triangle."""
        pattern = node_blocks(self.triangles)
        return Family(KIND, _Arrays(self.triangles, self.rows), pattern, self.signal, followers=1)

    def state(self, kin: Kinematics, theta: FloatArray) -> tuple[float, float]:
        """Return p [Pa] and the enclosed volume [m^3], NaN of an open surface."""
        volume = enclosed_volume(kin.q, self.triangles) if self.closed else np.nan
        return float(self.signal.weights(kin.t) @ theta[self.rows]), float(volume)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return -p V [J] of a closed surface, zero of an open one, which has none."""
        p, volume = self.state(kin, theta)
        return -p * volume if self.closed else 0.0


class Balance(NamedTuple):
    """An equation between pressure and volume at one instant [m^3], and its slopes by p, V, and some of theta."""

    value: float
    by_p: float
    by_v: float
    entries: IntArray
    slopes: FloatArray


class Filling(ABC):
    """Equation of the filling of a closed chamber, between its pressure p above that around [Pa] and its volume."""

    @abstractmethod
    def balance(self, t: float, p: float, volume: float, theta: FloatArray) -> Balance:
        """Return the equation."""

    @abstractmethod
    def energy(self, t: float, volume: float, theta: FloatArray) -> float:
        """Return the energy stored at a volume [J]."""


@final
@dataclass(frozen=True)
class GivenVolume(Filling):
    """V*(t) - V = 0: a liquid that does not give way, pumped in and out.

    Attributes
    ----------
    signal : Signal
    rows : (n_rows,)
        Indices in theta of the coefficients of V* [m^3].
    """

    signal: Signal
    rows: IntArray

    def balance(self, t: float, p: float, volume: float, theta: FloatArray) -> Balance:
        """Return V* - V."""
        weights = self.signal.weights(t)
        return Balance(float(weights @ theta[self.rows]) - volume, 0.0, -1.0, self.rows, weights)

    def energy(self, t: float, volume: float, theta: FloatArray) -> float:
        """Return zero: a row stores nothing."""
        return 0.0


@final
@dataclass(frozen=True)
class IsothermalGas(Filling):
    """p_0 V_0 - (p + p_atm) V = 0, over a pressure: a gas at one temperature, n R T = p_0 V_0.

    Attributes
    ----------
    signal : Signal
    rows : (n_rows,)
        Indices in theta of the coefficients of p_0, absolute [Pa]: one that grows is gas pumped in.
    volume, atmosphere : int
        Indices in theta of V_0 [m^3] and p_atm [Pa].
    over : float
        The pressure [Pa] that makes it an equation of volumes: the equation holds whatever it is.
    """

    signal: Signal
    rows: IntArray
    volume: int
    atmosphere: int
    over: float

    def balance(self, t: float, p: float, volume: float, theta: FloatArray) -> Balance:
        """Return the equation."""
        weights, rest = self.signal.weights(t), theta[self.volume]
        filled, inside = float(weights @ theta[self.rows]), p + theta[self.atmosphere]
        entries = np.concatenate([self.rows, [self.volume, self.atmosphere]])
        slopes = np.concatenate([weights * rest, [filled, -volume]]) / self.over
        value = (filled * rest - inside * volume) / self.over
        return Balance(float(value), -volume / self.over, float(-inside / self.over), entries, slopes)

    def energy(self, t: float, volume: float, theta: FloatArray) -> float:
        """Return -p_0 V_0 ln(V/V_0) + p_atm (V - V_0) [J]."""
        rest, content = theta[self.volume], float(self.signal.weights(t) @ theta[self.rows]) * theta[self.volume]
        return float(-content * np.log(volume / rest) + theta[self.atmosphere] * (volume - rest))


@final
@dataclass(frozen=True)
class Chamber(Constraint):
    """r = -p dV/dx and the equation of what fills a closed surface, over A_0 [m]; the multiplier is p L_0 / P [m].

    So p is an unknown with one row and one column, and the product dV/dx dV/dx^T over all nodes is never made. With
    P an atmosphere and L_0 = sqrt(A_0) the multiplier is a length like the other unknowns, whatever presses how much.

    Attributes
    ----------
    name : str
        For results.
    triangles : (m, 3)
        Nodes of the system, outward from the gas; of several closed surfaces, where these share one pressure.
    filling : Filling
    area : float
        A_0 [m^2].
    """

    name: str
    triangles: IntArray
    filling: Filling
    area: float

    #: One.
    n_rows: ClassVar[int] = 1

    @property
    def pressure_unit(self) -> float:
        """Pressure of a multiplier of one [Pa/m]."""
        return float(ATMOSPHERE / np.sqrt(self.area))

    @cached_property
    def _dofs(self) -> IntArray:
        return (3 * np.unique(self.triangles)[:, None] + np.arange(3)).ravel()

    @cached_property
    def _faces(self) -> tuple[IntArray, IntArray]:
        return node_blocks(self.triangles)

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the blocks of the faces, the column and the row of p, and their common entry."""
        rows, cols = self._faces
        border, one = np.full(self._dofs.size, first), np.array([first])
        return (
            np.concatenate([rows, self._dofs, border, one]),
            np.concatenate([cols, border, self._dofs, one]),
        )

    def _by_places(self, q: FloatArray) -> FloatArray:
        """Return dV/dx (n,)."""
        out = np.zeros(q.size)
        add_pressed(q, self.triangles, 1.0, out)
        return out

    def state(self, kin: Kinematics, mu: FloatArray) -> tuple[float, float]:
        """Return p [Pa] and V [m^3]."""
        return float(mu[0]) * self.pressure_unit, float(enclosed_volume(kin.q, self.triangles))

    def _balance(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Balance:
        return self.filling.balance(kin.t, *self.state(kin, mu), theta)

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add -p dV/dx and the equation."""
        add_pressed(kin.q, self.triangles, -mu[0] * self.pressure_unit, out)
        rows += self._balance(kin, mu, theta).value / self.area

    def jacobian(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        data: FloatArray,
        slots: IntArray,
    ) -> None:
        """Add -p d2V/dx2, the border and its corner."""
        faces, n = self._faces[0].size, self._dofs.size
        by_x, balance, unit = self._by_places(kin.q)[self._dofs], self._balance(kin, mu, theta), self.pressure_unit
        add_pressed_blocks(kin.q, self.triangles, -weights.q * mu[0] * unit, data, slots[:faces])
        column, row = slots[faces : faces + n], slots[faces + n : faces + 2 * n]
        np.add.at(data, column, -weights.multiplier * unit * by_x)
        np.add.at(data, row, weights.q * balance.by_v / self.area * by_x)
        data[slots[-1]] += weights.multiplier * balance.by_p * unit / self.area

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """See `Constraint.by_numbers`."""
        balance = self._balance(kin, mu, theta)
        return Entries(np.full(balance.entries.size, kin.q.size), balance.entries, balance.slopes / self.area)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of what fills it [J]."""
        return self.filling.energy(kin.t, enclosed_volume(kin.q, self.triangles), theta)
