"""The equations of contact in velocities of a finished step, linearised on its modes.

With Delassus's operator G = c J K^-1 J^T the modes make forces from velocities at fixed forces and from bounds
(`add.cones.Sensitivity`); `step_changes` says how rows and bounds move.

Options may ask for the complementarity-aware choice of the backward pass (Werling et al. 2021). The exact derivative of
what rests is zero, and so is that of a force on what is held down. Where the objective wants a contact to open, by the
cotangent of its normal velocity, c_bar = G^+ J y < 0 with y = K^-T u_bar, the step is pulled back once more with that
contact separate, and with those closed that it wants to close; of both ways the one with the larger cotangent of loads
is handed on. It is a heuristic and no derivative: forward tangents do not exist.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np

from add.cones import Cones, ConeSolution, Sensitivity
from add.equations.kinematics import Carry, Columns, Directions, KinematicCotangent, StateTangent, StateTangents
from add.hard_contact.impulse_rows import NearPairs
from add.hard_contact.impulse_solve import Delassus
from add.hard_contact.law import ImpulseOptions
from add.hard_contact.step_changes import StepChanges
from add.hard_contact.step_rows import NearStops, StepRows
from add.kernels.cone_modes import SEPARATE, STICK
from add.kernels.cones import FREE
from add.simulation import Coupling
from add.typing import FloatArray, IntArray

# --- The contacts and stops that a step with contact in velocities keeps and hands on ---------------------------------

_NOTHING_NEAR = Carry(np.zeros((1, 1)), (np.zeros(0, dtype=np.int64),) * 4)

#: The marks of an impact: at the beginning of the step, at a time within it, the latter to stay there.
_IMPACT, _TIMED, _RESTS = 1, 2, 3


def _places(k: int, m: int) -> tuple[int, int]:
    """Return where forces and margins of k pairs and m stops begin, behind the slopes; the natural map is last."""
    return k + m, 4 * k + 2 * m


def kept_of(carry: Carry) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return pairs, stops, modes and forces of a step, as compiled steps take them."""
    carry = carry if carry.marks else _NOTHING_NEAR
    pair, _, modes, number = carry.marks
    first, last = _places(pair.size, number.size)
    return pair, number, modes, carry.memory[0, first:last]


@final
@dataclass(frozen=True)
class CarriedImpulses:
    """Contacts of a step: for its derivatives, and for where the solver of the next step begins.

    In a `Carry` numbers are one row of the memory; the others are the marks.

    Attributes
    ----------
    near : NearPairs, k of them
    stops : NearStops, m of them
    modes : (k + m,) of the cones
    force : (3 k + m,) in the pairs' axes at the beginning of the step, and of stops [N], [N m]
    margin : (k + m,) how far from another mode
    natural_map : float
        Of the cone problem, scaled, or what redundant rows disagree about.
    """

    near: NearPairs
    stops: NearStops
    modes: IntArray
    force: FloatArray
    margin: FloatArray
    natural_map: float

    @classmethod
    def of(cls, carry: Carry) -> "CarriedImpulses":
        """Return what a record keeps; one without marks is of a step of flight."""
        carry = carry if carry.marks else _NOTHING_NEAR
        pair, impact, modes, number = carry.marks
        k, m, memory = pair.size, number.size, carry.memory.ravel()
        n, last = _places(k, m)
        near = NearPairs(pair, memory[:k], impact >= _IMPACT, impact >= _TIMED, impact == _RESTS)
        stops = NearStops(number, memory[k:n])
        return cls(near, stops, modes, memory[n:last], memory[last : last + n], float(memory[last + n]))

    @classmethod
    def solved(
        cls, near: NearPairs, stops: NearStops, force: FloatArray, cone: ConeSolution | None
    ) -> "CarriedImpulses":
        """Return what a step keeps; ``cone`` is None where nothing is near."""
        if cone is None:
            return cls(near, stops, np.zeros(0, dtype=np.int64), force, np.zeros(0), 0.0)
        return cls(near, stops, cone.modes, force, cone.margins, max(cone.natural_map, cone.disagreement))

    def on(self, pairs: IntArray, stops: IntArray) -> tuple[IntArray, FloatArray]:
        """Return modes and forces of some pairs and stops (by number); those that were not near are separate."""
        k, n = self.near.pair.size, pairs.size
        if np.array_equal(pairs, self.near.pair) and np.array_equal(stops, self.stops.number):
            return self.modes, self.force
        modes, force = np.zeros(n + stops.size, dtype=np.int64), np.zeros(3 * n + stops.size)
        of_pairs = force[: 3 * n].reshape(-1, 3)
        _, here, there = np.intersect1d(pairs, self.near.pair, assume_unique=True, return_indices=True)
        modes[here], of_pairs[here] = self.modes[there], self.force[: 3 * k].reshape(-1, 3)[there]
        _, here, there = np.intersect1d(stops, self.stops.number, assume_unique=True, return_indices=True)
        modes[n + here], force[3 * n + here] = self.modes[k + there], self.force[3 * k + there]
        return modes, force

    def carry(self) -> Carry:
        """Return it as a state carries it."""
        near, stops = self.near, self.stops
        numbers = [near.slope, stops.slope, self.force, self.margin, np.array([self.natural_map])]
        impact = np.where(near.rests, _RESTS, np.where(near.timed, _TIMED, np.where(near.impact, _IMPACT, 0)))
        return Carry(np.concatenate(numbers).reshape(1, -1), (near.pair, impact, self.modes, stops.number))


# ----------------------------------------------------------------------------------------------------------------------

#: Cotangents of normal velocities below this share of the largest cotangent say nothing.
_NOTHING = 1e-9


@final
class ChoiceTally:
    """Steps with contact that were pulled back, and those in which the other modes were taken."""

    def __init__(self) -> None:
        self.steps = 0
        self.other = 0

    def add(self, other: bool) -> None:
        """Count a step."""
        self.steps += 1
        self.other += int(other)

    def __str__(self) -> str:
        return f"other modes than those of the motion in {self.other} of {self.steps} steps with contact"


def wanted_modes(G: FloatArray, cotangent: FloatArray, cones: Cones, modes: IntArray) -> IntArray:
    """Return the modes (k,) that the objective asks for.

    Parameters
    ----------
    G : (m, m) Delassus's operator
    cotangent : (m,) J y
    cones, modes : of the solution
    """
    by_velocity = np.linalg.pinv(G, rcond=1e-10) @ cotangent
    normal = by_velocity[cones.first + cones.sizes - 1]
    least = _NOTHING * np.abs(by_velocity).max(initial=0.0)
    out = np.where((normal > least) & (modes == SEPARATE), STICK, np.where(normal < -least, SEPARATE, modes))
    return np.where(cones.kind == FREE, modes, out)


@final
@dataclass
class ImpulseCoupling(Coupling):
    """The contacts and stops of a finished step, ready for both directions.

    Right-hand sides of contact are those of u (n_rows,) and, behind them, of the bounds on friction.

    Attributes
    ----------
    rows : StepRows
    changes : StepChanges
    kept : CarriedImpulses
    delassus : Delassus
    velocity : (n,) after the step
    options : ImpulseOptions
    tally : ChoiceTally, optional
    free : (k,) and (n, k), optional
        The directions that move the velocities without impacts, and their tangents.
    free_bar : (n,)
        Cotangent of the velocities without impacts, after `pull`.
    """

    rows: StepRows
    changes: StepChanges
    kept: CarriedImpulses
    delassus: Delassus
    velocity: FloatArray
    options: ImpulseOptions
    tally: ChoiceTally | None
    free: tuple[IntArray, FloatArray] | None = None
    free_bar: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.free_bar = np.zeros_like(self.velocity)

    @cached_property
    def _sensitivity(self) -> Sensitivity:
        return self._on_modes(self.kept)

    def _on_modes(self, kept: CarriedImpulses) -> Sensitivity:
        """Linearise the equations of modes."""
        u, cones = self.rows.matrix @ self.velocity + self.rows.shift, self.rows.cones(self.options.pyramids)
        return Sensitivity.at(self.delassus.matrix, cones, kept.force, u, kept.modes, self.options.relaxation)

    def solve(self, balance: FloatArray, contact: FloatArray) -> FloatArray:
        """Return dx; see `Coupling.solve`."""
        delassus, n_rows = self.delassus, self.rows.n_rows
        x = delassus.factors.solve(balance)
        u_dot = delassus.c * (delassus.J @ x[: delassus.free.size]) + contact[:n_rows]
        return np.asarray(x + delassus.columns @ self._sensitivity.pushforward(None, u_dot, contact[n_rows:]))

    def solve_transposed(self, x_bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of the balance, and minus those of u at fixed forces with those of the bounds."""
        delassus = self.delassus
        y = delassus.factors.solve_transposed(x_bar)
        by_rows, bound = self._cotangent(x_bar[: delassus.free.size], y[: delassus.free.size])
        pulled = delassus.factors.solve_transposed(delassus.extended(delassus.J.T @ by_rows))
        return y - delassus.c * pulled, np.concatenate([by_rows, bound])

    def _cotangent(self, u_bar: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return minus the cotangents of u at fixed forces, and those of the bounds, from y = K^-T u_bar."""
        delassus, kept = self.delassus, self.kept
        cotangent = delassus.J @ y
        exact = self._sensitivity.velocity_cotangent(cotangent)
        if not self.options.exploring:
            return exact
        modes = wanted_modes(delassus.matrix, cotangent, self.rows.cones(self.options.pyramids), kept.modes)
        other = self._on_modes(replace(kept, modes=modes)).velocity_cotangent(cotangent)
        larger = delassus.load_size(u_bar, y, other[0]) > (1.0 + 1e-9) * delassus.load_size(u_bar, y, exact[0])
        if self.tally is not None:
            self.tally.add(larger)
        return other if larger else exact

    def pull(
        self, adjoint: FloatArray, contact: FloatArray, bar: KinematicCotangent, before: StateTangent, share: FloatArray
    ) -> None:
        """Add the part of contact in cotangents; see `Coupling.pull`."""
        by_rows, bound = contact[: self.rows.n_rows], contact[self.rows.n_rows :]
        bar.v += self.rows.matrix.T @ by_rows
        theta_bar = np.zeros_like(share)
        self.changes.pullback(adjoint, by_rows, bound, before, theta_bar)
        if self.changes.free is not None:
            self.free_bar += self.changes.free_pullback(by_rows, before, theta_bar)
        share -= theta_bar

    def along(self, directions: Directions) -> Columns:
        """Return the tangents of both right-hand sides; see `Coupling.along`."""
        return self.changes.by_theta(directions)

    def push(
        self, tangents: StateTangents, q_dot: FloatArray, v_dot: FloatArray, by_theta: Columns, balance: FloatArray
    ) -> FloatArray:
        """Add the part of contact in tangents; see `Coupling.push`."""
        n, rows, before = self.velocity.size, self.rows, tangents.dot
        pushed, moving = self.changes.by_state(before.q[0], before.v[0])
        balance[:n] += pushed
        contact = np.zeros((rows.n_rows + rows.n, q_dot.shape[1]))
        contact[: rows.n_rows] = rows.matrix @ v_dot + moving
        places = tangents.places(by_theta.index)
        balance[:n, places] += by_theta.values[:n]
        contact[:, places] += by_theta.values[n:]
        if self.free is not None:
            contact[: rows.n_rows, tangents.places(self.free[0])] += self.changes.by_free(self.free[1])
        return contact
