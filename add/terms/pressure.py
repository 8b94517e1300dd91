"""Gas in chambers of bodies: a given pressure, and equations between pressure and volume with the pressure unknown."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind, by_signal, node_blocks
from add.equations.family_term import FamilyConstraint, FamilyTerm
from add.equations.kinematics import Kinematics
from add.equations.signals import Signal
from add.kernels.air import add_pressed, add_pressed_blocks, enclosed_volume
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, Ints2, add_entry, unpacker, window
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


class Filling(ABC):
    """Filling of a closed chamber: an equation between its pressure p above that around [Pa] and its volume V [m^3].

    Attributes
    ----------
    signal : Signal
    rows : (n_rows,)
        Indices in theta of the coefficients of what is pumped in and out.
    """

    signal: Signal
    rows: IntArray

    @property
    @abstractmethod
    def gas(self) -> tuple[IntArray, float]:
        """Indices in theta of V_0 and p_atm, and the pressure that the equation is divided by; none of a liquid."""

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

    @property
    def gas(self) -> tuple[IntArray, float]:
        """None."""
        return np.zeros(0, dtype=np.int64), 1.0

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

    @property
    def gas(self) -> tuple[IntArray, float]:
        """See `Filling.gas`."""
        return np.array([self.volume, self.atmosphere]), self.over

    def energy(self, t: float, volume: float, theta: FloatArray) -> float:
        """Return -p_0 V_0 ln(V/V_0) + p_atm (V - V_0) [J]."""
        rest, content = theta[self.volume], float(self.signal.weights(t) @ theta[self.rows]) * theta[self.volume]
        return float(-content * np.log(volume / rest) + theta[self.atmosphere] * (volume - rest))


class _Filled(NamedTuple):
    """A chamber: its triangles and their coordinates, theta of its filling, and units.

    ``units`` (3,) are the pressure of a multiplier of one, A_0, and the pressure that the equation is divided by.
    """

    triangles: Ints2
    dofs: Ints
    rows: Ints
    gas: Ints
    units: Floats
    first: Ints


_filled = unpacker(_Filled)


@njit(**FAMILY)
def _balance(arena, k, at, own):
    """Return p, V, what is pumped in, the equation over A_0 and its slopes by p and V."""
    unit, area, over = own.units
    p, volume = unit * at.q[own.first[0]], enclosed_volume(at.q, own.triangles)
    filled = signal_value(arena, k, at, own.rows)
    if own.gas.size == 0:
        return p, volume, filled, (filled - volume) / area, 0.0, -1.0 / area
    inside = p + at.theta[own.gas[1]]
    value = filled * at.theta[own.gas[0]] - inside * volume
    return p, volume, filled, value / (over * area), -volume / (over * area), -inside / (over * area)


@njit(**FAMILY)
def _chamber_forces(arena, k, at, replay, rows, out):
    own = _filled(arena, arena.families[k, FIELD])
    p, _, _, value, _, _ = _balance(arena, k, at, own)
    add_pressed(at.q, own.triangles, -p, out)
    out[own.first[0]] += value
    return rows


@njit(**FAMILY)
def _chamber_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q == 0.0:
        return
    own = _filled(arena, arena.families[k, FIELD])
    p, _, _, _, by_p, by_volume = _balance(arena, k, at, own)
    unit, faces, n = own.units[0], 81 * own.triangles.shape[0], own.dofs.size
    add_pressed_blocks(at.q, own.triangles, -weight_q * p, data, slots)
    by_x = np.zeros(at.q.size)
    add_pressed(at.q, own.triangles, weight_q, by_x)
    for i in range(n):
        data[slots[faces + i]] -= unit * by_x[own.dofs[i]]
        data[slots[faces + n + i]] += by_volume * by_x[own.dofs[i]]
    data[slots[faces + 2 * n]] += weight_q * by_p * unit


@njit(**FAMILY)
def _chamber_parameters(arena, k, at, rows, forward, along, out):
    own = _filled(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    _, volume, filled, _, _, _ = _balance(arena, k, at, own)
    share = 1.0 / (own.units[1] * own.units[2])
    if own.gas.size:
        add_entry(forward, own.first[0], own.gas[0], share * filled, along, out)
        add_entry(forward, own.first[0], own.gas[1], -share * volume, along, out)
        share *= at.theta[own.gas[0]]
    for j in range(weights.size):
        add_entry(forward, own.first[0], own.rows[first + j], share * weights[j], along, out)


CHAMBER = Kind("chamber", _Filled, _chamber_forces, _chamber_parameters, _chamber_jacobian, rates=True)


@final
@dataclass(frozen=True)
class Chamber(FamilyConstraint):
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

    def family(self, first: int) -> Family:
        """Return the blocks of the faces, the column and the row of p, and their common entry."""
        dofs = (3 * np.unique(self.triangles)[:, None] + np.arange(3)).ravel()
        (rows, cols), border, one = node_blocks(self.triangles), np.full(dofs.size, first), np.array([first])
        pattern = np.concatenate([rows, dofs, border, one]), np.concatenate([cols, border, dofs, one])
        gas, over = self.filling.gas
        units = np.array([self.pressure_unit, self.area, over])
        arrays = _Filled(self.triangles, dofs, self.filling.rows, gas, units, one)
        return Family(CHAMBER, arrays, pattern, self.filling.signal)

    def state(self, kin: Kinematics, mu: FloatArray) -> tuple[float, float]:
        """Return p [Pa] and V [m^3]."""
        return float(mu[0]) * self.pressure_unit, float(enclosed_volume(kin.q, self.triangles))

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy of what fills it [J]."""
        return self.filling.energy(kin.t, enclosed_volume(kin.q, self.triangles), theta)
