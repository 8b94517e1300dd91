"""Solve a complementarity problem over cones: scale it, find the modes by ADMM, finish with Newton."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.cones.sensitivity import Cones, Sensitivity, block_scale
from add.errors import SolverError
from add.kernels import cone_modes as kernel
from add.kernels.cone_modes import SEPARATE, SLIDE, STICK
from add.kernels.cone_shares import closed_normals
from add.kernels.cone_solve import solve_unscaled
from add.kernels.cones import CONE, DISC, Blocks, natural_map as natural_map_of
from add.typing import BoolArray, FloatArray, IntArray

#: Largest natural map, of the scaled problem, of a solution: certificates of steps (`certify`) are then below 1e-8.
CERTIFIED = 1e-10

#: Iterations of ADMM.
MOST_ITERATIONS = 20_000

#: A margin below this one is that of a weakly active contact: the derivative there is one-sided.
WEAK = 1e-6


@final
@dataclass(frozen=True)
class ConeSolution:
    """A solution of u = G l + g, K contains l _|_ u + s(u) in K*.

    Attributes
    ----------
    delassus : (m, m) G [1/kg], offset : (m,) g [m/s]
    cones : Cones
    impulse : (m,) l [N s]
        Of the least norm, in scaled impulses, where redundant contacts leave a choice and the cones allow it.
    velocity : (m,) u [m/s]
    modes : (k,)
        0 separate, 1 stick (a closed contact), 2 slide; a pyramid: 1 + s_1 + 3 s_2, see `add.kernels.cone_modes`.
    natural_map : float
        Of the scaled problem; zero for an exact solution.
    iterations, rounds : int
        Of ADMM, and of Newton with changed modes.
    scale : (m,)
        One number a block: with l = scale l', u = u'/scale, the scaled G has blocks of trace one a row.
    size : float
        The unit of scaled impulses and velocities: max |scale g|.
    """

    delassus: FloatArray
    offset: FloatArray
    cones: Cones
    impulse: FloatArray
    velocity: FloatArray
    modes: IntArray
    natural_map: float
    iterations: int
    rounds: int
    scale: FloatArray
    size: float

    @property
    def certified(self) -> bool:
        """Whether the natural map is small enough for a solution."""
        return self.natural_map <= CERTIFIED

    @cached_property
    def disagreement(self) -> float:
        """The disagreement of redundant rows over the largest velocity, in scaled numbers: `velocity` is without it."""
        apart = self.velocity - (self.delassus @ self.impulse + self.offset)
        return float(np.abs(apart * self.scale).max(initial=0.0)) / self.size

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The derivatives of the impulse, all modes held.

        Raises
        ------
        SolverError
            If the solution is not certified: the implicit function theorem holds at solutions only.
        """
        if not self.certified:
            raise SolverError(f"no derivative: the natural map is {self.natural_map:.1e} > {CERTIFIED:g}")
        return Sensitivity.of(self.delassus, self.cones, self.impulse, self.velocity, self.modes, self.scale)

    @cached_property
    def _as_solved(self) -> FloatArray:
        """The margins (k,) by impulses and velocities alone."""
        l, u = self.impulse / self.scale, self.velocity * self.scale
        largest_u = max(float(np.abs(self.offset * self.scale).max()), 1e-300)
        margins: FloatArray = kernel.margins(_scaled(self.cones, self.scale), self.modes, l, u, largest_u)
        return margins

    @cached_property
    def _idle(self) -> tuple[IntArray, FloatArray]:
        """Contacts that touch without load, and what the rule of shares lets them bear, over the largest impulse."""
        idle = np.flatnonzero((self._as_solved < WEAK) & (self.modes == SEPARATE) & (self.cones.kind != DISC))
        closed = closed_normals(_scaled(self.cones, self.scale), self.modes) if idle.size else idle
        if not closed.size:
            return idle, np.zeros(idle.size)
        rows = self.cones.first[idle] + self.cones.sizes[idle] - 1
        G, borne = self.delassus, self.impulse[closed]
        under = np.linalg.pinv(G[np.ix_(closed, closed)], rcond=1e-11) @ borne
        return idle, G[np.ix_(rows, closed)] @ under / max(float(np.abs(borne).max()), 1e-300)

    @property
    def against_rule(self) -> IntArray:
        """Contacts without load that the rule of shares would let bear some."""
        idle, share = self._idle
        return idle[share > WEAK]

    @cached_property
    def margins(self) -> FloatArray:
        """How far each block (k,) is from another mode; 1 for a joint.

        Separate: the normal velocity over the largest velocity. Others: the least of normal impulse over the largest
        impulse, of slip over the largest velocity where it slides, and of 1 - |l_t|/(mu l_n) where it sticks; all on
        scaled numbers. A contact that others bear load for stays on the shape without load: it is as far from bearing
        some as the rule of shares says. Slip that is small since the others hardly let it be is as far from rest as
        the share of its friction that it would take to stop it.
        """
        out, (idle, share) = self._as_solved.copy(), self._idle
        out[idle] = np.maximum(out[idle], np.abs(share))
        slow = np.flatnonzero((out < WEAK) & (self.modes == SLIDE) & (self.cones.kind == CONE))
        if slow.size and self.certified:
            normal = self.impulse / self.scale
            first = self.cones.first[slow]
            more = np.zeros((out.size, slow.size))
            more[slow, np.arange(slow.size)] = self.cones.bound[slow]
            change = self.delassus @ self.sensitivity.pushforward(None, np.zeros((self.offset.size, slow.size)), more)
            for k, i, along in zip(slow, first, change.T, strict=True):
                slip = self.velocity[i : i + 2]
                far = float(slip @ slip) / max(abs(float(slip @ along[i : i + 2])), 1e-300)
                out[k] = min(max(out[k], far), normal[i + 2] / max(float(np.abs(normal).max()), 1e-300))
        return out

    @property
    def weakly_active(self) -> BoolArray:
        """Which blocks (k,) are on the border of two modes: their derivative is one-sided."""
        return self.margins < WEAK


def solve(
    delassus: FloatArray,
    offset: FloatArray,
    cones: Cones,
    *,
    max_iterations: int = MOST_ITERATIONS,
    guess: tuple[IntArray, FloatArray] | None = None,
    agree: float = 1e-7,
    left_over: float = 0.0,
) -> ConeSolution:
    """Return the solution of u = G l + g with l in the cones, complementary to u + s(u).

    The problem is scaled by one positive number a block, which keeps cones cones. ADMM (Carpentier, Le Lidec, Montaut
    2024; with De Saxce's term for cones) finds the modes, Newton on their equations the digits.

    Parameters
    ----------
    delassus : (m, m)
        G = J A^-1 J^T; positive semidefinite, symmetric or nearly so.
    offset : (m,)
        Velocities g without any impulse, with restitution and stabilisation [m/s].
    cones : Cones of m rows
    max_iterations : of ADMM
    guess : modes (k,) and impulses (m,), optional
        Newton is tried from there first.
    agree : float
        What the normals of redundant contacts may disagree about, over the largest velocity (`disagreement`).
    left_over : float
        What contacts that stick may disagree about where no other solution is found; joints never may.

    Returns
    -------
    ConeSolution
        The best that was found: ask `ConeSolution.certified`.

    Raises
    ------
    ValueError
        If the shapes differ, or a number is not finite.
    """
    G, g, m = np.asarray(delassus, dtype=float), np.asarray(offset, dtype=float), cones.n_rows
    if G.shape != (m, m) or g.shape != (m,):
        raise ValueError(f"cones of {m} rows need G ({m}, {m}) and g ({m},), found {G.shape} and {g.shape}")
    modes, start = guess if guess is not None else (np.zeros(0, dtype=np.int64), np.zeros(m))
    solution = _solved(G, g, cones, max_iterations, agree, left_over, start, modes)
    if guess is None or not solution.certified or not solution.against_rule.size:
        return solution
    # Modes of the step before leave the shares to where Newton began, and with friction the motion goes by them.
    closing = solution.modes.copy()
    closing[solution.against_rule] = STICK
    for begin, closed in ((solution.impulse, closing), (np.zeros(m), closing[:0])):
        other = _solved(G, g, cones, max_iterations, agree, left_over, begin, closed)
        if other.certified and not other.against_rule.size:
            return other
    return solution


def _solved(
    G: FloatArray, g: FloatArray, cones: Cones, most: int, agree: float, left_over: float, start: FloatArray,
    modes: IntArray,
) -> ConeSolution:  # fmt: skip
    l, u, modes, natural_map, iterations, rounds, scale, size = solve_unscaled(
        np.ascontiguousarray(G),
        np.ascontiguousarray(g),
        cones.blocks,
        agree,
        left_over,
        cones.is_convex,
        most,
        start,
        modes,
    )
    if np.isnan(size):
        raise ValueError("G and g must be finite")
    return ConeSolution(G, g, cones, l, u, modes, natural_map, iterations, rounds, scale, size or 1.0)


def _scaled(cones: Cones, scale: FloatArray, size: float = 1.0) -> Blocks:
    """Return the cones of scaled impulses l/(scale size)."""
    if not (cones.kind == DISC).any():
        return cones.blocks
    bound = np.where(cones.kind == DISC, cones.bound / (scale[cones.first] * size), cones.bound)
    return Blocks(cones.kind, cones.first, bound)


def solve_on_modes(
    delassus: FloatArray, offset: FloatArray, cones: Cones, modes: IntArray, start: FloatArray
) -> ConeSolution:
    """Return the solution of the equations of given modes, whatever their signs: a replayed step.

    Parameters
    ----------
    delassus, offset, cones : as in `solve`
    modes : (k,)
    start : (m,) impulses to begin with; slip begins in the direction against them
    """
    G, g = np.asarray(delassus, dtype=float), np.asarray(offset, dtype=float)
    scale = block_scale(G, cones)
    size = max(float(np.abs(scale * g).max(initial=0.0)), 1e-300)
    blocks = _scaled(cones, scale, size)
    scaled = np.ascontiguousarray(scale[:, None] * G * scale)
    l, u = kernel.held_modes(scaled, scale * g / size, blocks, scale, modes, start / (scale * size), 60)
    natural_map = float(natural_map_of(blocks, l, u))
    return ConeSolution(G, g, cones, size * scale * l, size * u / scale, modes, natural_map, 0, 0, scale, size)
