"""Muscles: tension along fibres of tissue and along lines through it, and cells that take a volume."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np
from scipy.special import erf

from add.equations.family import Family, Kind, by_signal, node_blocks
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.equations.signals import Signal
from add.kernels.arena import FAMILY, FIELD, Floats, Floats2, Floats4, Ints, Ints2, unpacker, window
from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.muscles import ACTIVE_STRESS, HILL, POINT, stretch_of, tension
from add.materials import Elements, called, elements as loops, formula_law
from add.terms.elastic import element_slots
from add.terms.lengths import length_blocks, length_kind
from add.terms.pressure import signal_value
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class FibreLines:
    """Lines, each of segments y_s = sum_a share_sa x_a, with the stretch l = sum_s |y_s| and the energy weight W(l).

    A fibre of tissue at a quadrature point is a line of one segment, y = F m_0 with the volume of the point as its
    weight. A line through tissue has its rest length as its weight and shares over it.

    Attributes
    ----------
    nodes : (n,)
        Of all lines, one behind the other.
    first : (n_lines + 1,)
        Where those of each line begin.
    local : (n_s, k)
        Which of its line's nodes each segment has.
    shares : (n_s, k) [1/m]
    segment : (n_lines + 1,)
        Where the segments of each line begin.
    weight : (n_lines,) [m^3] or [m]
    """

    nodes: IntArray
    first: IntArray
    local: IntArray
    shares: FloatArray
    segment: IntArray
    weight: FloatArray

    @classmethod
    def of_tissue(cls, cells: IntArray, gradients: FloatArray, weights: FloatArray, fibres: FloatArray) -> "FibreLines":
        """Return the fibres of elements: cells (ne, nn), gradients (ne, nq, nn, 3), weights (ne, nq), m_0 (ne, 3)."""
        n, nq, nn = gradients.shape[:3]
        lines = np.arange(n * nq + 1)
        shares = np.einsum("eqai,ei->eqa", gradients, fibres).reshape(-1, nn)
        nodes = np.repeat(cells, nq, axis=0).ravel()
        return cls(nodes, nn * lines, np.tile(np.arange(nn), (n * nq, 1)), shares, lines, weights.ravel())

    @classmethod
    def through(cls, points: FloatArray, nodes: IntArray, weights: FloatArray) -> "FibreLines":
        """Return one line through material points: places at rest (m, 3), nodes and their weights (m, k)."""
        length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
        own, local = np.unique(np.hstack([nodes[:-1], nodes[1:]]), return_inverse=True)
        shares = np.hstack([-weights[:-1], weights[1:]]) / length
        ends = np.array([0, own.size]), np.array([0, shares.shape[0]])
        return cls(own, ends[0], local.reshape(shares.shape), shares, ends[1], np.array([length]))

    def moved(self, first: int) -> "FibreLines":
        """Return the lines with the nodes of a body as those of the system."""
        return replace(self, nodes=first + self.nodes)


class _Arrays(NamedTuple):
    begin: Ints
    dof: Ints
    local: Ints2
    shares: Floats2
    segment: Ints
    weight: Floats
    law: Ints
    rows: Ints
    numbers: Ints


@njit(**FAMILY)
def _stretch(own, l, at, g, h, bent, wanted):
    """Return the stretch of a line and its rate."""
    dof = borrowed(own.dof, own.begin[l], (own.begin[l + 1] - own.begin[l],))
    part, square = slice(own.segment[l], own.segment[l + 1]), borrowed(bent, 0, (dof.size, dof.size))
    return stretch_of(at.q, at.v, dof, own.local[part], own.shares[part], g, h, square, wanted)


@njit(**FAMILY)
def _tension(own, l, at, asked, length, rate, p, out):
    """Fill the slopes of the tension of a line; return its rest size."""
    for j in range(own.numbers.size):
        p[j] = at.theta[own.numbers[j]]
    tension(own.law[0], length, rate, asked, p, out)
    return own.weight[l]


KIND = length_kind("muscle", _Arrays, _stretch, _tension, driven=True)


@final
@dataclass(frozen=True)
class Muscle(FamilyTerm):
    """r = weight T(l, dl/dt, a) dl/dx of lines that share one activation a(t); `add.kernels.muscles` has the laws.

    Attributes
    ----------
    name : str
        ``body/muscle``, for results.
    lines : FibreLines
    law : int
        `ACTIVE_STRESS`, `QUADRATIC` or `HILL`.
    signal : Signal
    rows : (n_rows,)
        Indices in theta of the coefficients of a.
    numbers : (n_p,)
        Indices in theta of the numbers of the law.
    remembered : bool
        Whether a is what a memory writes into theta while a step is solved.
    """

    depends: ClassVar[str] = "qv"

    name: str
    lines: FibreLines
    law: int
    signal: Signal
    rows: IntArray
    numbers: IntArray
    remembered: bool = False

    def family(self) -> Family:
        """Return a dense block a line."""
        own = self.lines
        entries = 3 * own.first, (3 * own.nodes[:, None] + np.arange(3)).ravel()
        numbers = np.array([self.law]), self.rows, self.numbers
        arrays = _Arrays(*entries, own.local, own.shares, own.segment, own.weight, *numbers)
        return Family(KIND, arrays, length_blocks(*entries), self.signal, followers=1)

    def stretches(self, kin: Kinematics) -> FloatArray:
        """Return l of each line (n_lines,)."""
        return np.add.reduceat(self._segments(kin), self.lines.segment[:-1])

    def lost(self, kin: Kinematics, theta: FloatArray) -> str:
        """Return whether a line has drawn itself to a point."""
        if self._segments(kin).min(initial=np.inf) > 1e3 * POINT:  # a step fails before it is there
            return ""
        return (
            f"the muscle '{self.name}' has drawn a line to a point, where it has no direction: less tension, or more "
            "stiffness against it, leaves it a length"
        )

    def _segments(self, kin: Kinematics) -> FloatArray:
        own, places = self.lines, kin.q.reshape(-1, 3)
        start = np.repeat(own.first[:-1], np.diff(own.segment))
        y = np.einsum("sk,ski->si", own.shares, places[own.nodes[start[:, None] + own.local]])
        return np.asarray(np.linalg.norm(y, axis=1))

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return weight W(l) at this activation, dW/dl = T [J].

        Zero of a Hill muscle, whose tension has a rate, and of one whose activation is remembered.
        """
        if self.law == HILL or self.remembered:
            return 0.0
        l, p = self.stretches(kin), theta[self.numbers]
        a = float(self.signal.weights(kin.t) @ theta[self.rows])
        if self.law == ACTIVE_STRESS:
            density = 0.5 * np.sqrt(np.pi) * a * p[0] * p[2] * erf((l - p[1]) / p[2])
        else:
            density = 0.5 * p[0] * (l - p[1] * (1.0 - p[2] * a)) ** 2
        return float(self.lines.weight @ density)


#: W = k/2 (J - z)^2; its numbers are k and z.
_VOLUMETRIC = formula_law("k/2*(J - z)**2")


class _Cells(NamedTuple):
    cells: Ints2
    gradients: Floats4
    weights: Floats2
    group: Ints
    law: Ints
    rows: Ints
    numbers: Ints


_own_cells = unpacker(_Cells)


@njit(**FAMILY)
def _law_of(arena, k, at, own):
    moduli, places = np.empty((1, 2)), np.empty((1, 2), dtype=np.int64)
    moduli[0, 0], moduli[0, 1] = at.theta[own.numbers[0]], signal_value(arena, k, at, own.rows)
    places[0, 0], places[0, 1] = 0, 1
    elements = Elements(own.cells, own.gradients, own.weights, own.group, np.zeros(1, dtype=np.int64), own.law)
    return elements, moduli, places


@njit(**FAMILY)
def _cell_forces(arena, k, at, replay, rows, out):
    own = _own_cells(arena, arena.families[k, FIELD])
    elements, moduli, _ = _law_of(arena, k, at, own)
    loops.residual(at.q, elements, moduli, out)
    return rows


@njit(**FAMILY)
def _cell_matrix(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if weight_q != 0.0:
        own = _own_cells(arena, arena.families[k, FIELD])
        elements, moduli, _ = _law_of(arena, k, at, own)
        places = element_slots(own.cells, slots)
        loops.jacobian(at.q, elements, moduli, weight_q, data, places)


@njit(**FAMILY)
def _cell_parameters(arena, k, at, rows, forward, along, out):
    own = _own_cells(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    # The two numbers of the law, the stiffness and the target: theta's, and the signal's.
    pair = np.zeros(2)
    elements, moduli, indices = _law_of(arena, k, at, own)
    if forward:
        pair[0] = along[own.numbers[0]]
        for j in range(weights.size):
            pair[1] += weights[j] * along[own.rows[first + j]]
        loops.parameters(at.q, elements, moduli, indices, True, pair, out)
    else:
        loops.parameters(at.q, elements, moduli, indices, False, along, pair)
        out[own.numbers[0]] += pair[0]
        for j in range(weights.size):
            out[own.rows[first + j]] += weights[j] * pair[1]


CELLS = Kind(
    "volumetric_actuator", _Cells, _cell_forces, _cell_parameters, _cell_matrix, by_signal(_Cells, _cell_parameters)
)


@final
@dataclass(frozen=True)
class VolumetricActuator(FamilyTerm):
    """r = dE/dq, E = sum of the volumes times k/2 (J - a)^2 over cells that share one a(t).

    Attributes
    ----------
    name : str
        ``body/muscle``, for results.
    cells, gradients, weights : as in `ElementBatch`
    signal : Signal
    rows : (n_rows,)
        Indices in theta of the coefficients of a, the volume asked for over that at rest.
    stiffness : int
        Index in theta of k [Pa].
    """

    depends: ClassVar[str] = "q"

    name: str
    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    signal: Signal
    rows: IntArray
    stiffness: int

    def family(self) -> Family:
        """Return dense element blocks."""
        group = np.zeros(self.cells.shape[0], dtype=np.int64)
        own = self.cells, self.gradients, self.weights, group, called(_VOLUMETRIC)
        arrays = _Cells(*own, self.rows, np.array([self.stiffness]))
        return Family(CELLS, arrays, node_blocks(self.cells), self.signal, followers=1)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy [J]."""
        target = float(self.signal.weights(kin.t) @ theta[self.rows])
        moduli, mean = np.array([[theta[self.stiffness], target]]), np.zeros(1, dtype=np.int64)
        group = np.zeros(self.cells.shape[0], dtype=np.int64)
        own = self.cells, self.gradients, self.weights, group, mean, called(_VOLUMETRIC)
        return float(loops.energy(kin.q, Elements(*own), moduli))
