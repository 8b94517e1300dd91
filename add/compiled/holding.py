"""Steps in which what rests goes on resting, held by equations: hybrid friction (`add.solve.hybrid_friction`).

What rests before a step is held at once; if it bears that, and all else slips at the end, a step is one solve. What is
held are coordinates behind the others, the multipliers of `add.contact.body_family.HeldPairs`, so that these steps and
the ways through them are those of any system, once for each number of pairs. Here is what hybrid friction asks beside:
whether the same still rests, and whether it bears what holds it.
"""

from dataclasses import replace

import numpy as np
from numba import typeof, types

from add.compiled.newton import (
    FRESH,
    GIVEN_UP,
    Criteria,
    Formula,
    Step,
    evaluate,
    merit_of,
    new_iterate,
    new_room,
    solve_step,
    take_trial,
    weight_of_rows,
)
from add.compiled.pack import PackedSystem, pack
from add.compiled.routines import NONE, call_jacobian, call_residual, factor, solve
from add.compiled.structure import layout_of, links_of
from add.compiled.tree_equations import at_rows, parts_of
from add.compiled.walk import FOLLOWS, Choices, no_choices
from add.contact.body_family import HeldPairs, held_rows
from add.contact.penalty_bodies import BodyContact
from add.equations.family import NotCompiled
from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedDecidingTerm
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.sticking import REST
from add.equations.system import System
from add.kernels.arena import CHOICE, OWN, SLOTS, Instant, empty_arena, empty_instant
from add.kernels.borrowed import put
from add.kernels.by_address import when_called
from add.kernels.caching import CALLED, njit
from add.kernels.contact_pairs import BITS, STICKS
from add.kernels.sticking import beyond, none_creeps, resting, sticking, with_sticking
from add.linalg.blas import N, getrf, getrs
from add.terms.held_friction import HeldResistance
from add.typing import FloatArray

#: How much of the forces of the reactions, by size, is left out of what they share; each pass leaves so much of the
#: rest.
ROUNDING, _PASSES = 1e-12, 3

#: A solve with what sticks held that takes longer finds no solution: an impact may leave none near by.
MOST_ITERATIONS = 25

#: How many equations hold what sticks in the decision of each term of which something may.
Held = tuple[int, ...]


def holding(packed: PackedSystem, held: Held) -> PackedSystem | None:
    """Return the system with multipliers more that hold what sticks; None where such steps are not compiled."""
    if held not in packed.with_held:
        packed.with_held[held] = _with_held(packed, held)
    return packed.with_held[held]


def _with_held(packed: PackedSystem, held: Held) -> PackedSystem | None:
    system, constraints = packed.system, list(packed.system.constraints)
    for (number, _), n_rows in zip(system.sticking, held, strict=True):
        term = system.deciding[number]
        inner = term.inner if isinstance(term, LiftedDecidingTerm) else term
        if n_rows and not isinstance(inner, BodyContact | HeldResistance):
            return None
        if n_rows:
            pairs = HeldPairs(inner, number, n_rows // 3)
            constraints.append(LiftedConstraint(pairs, term.lift) if isinstance(term, LiftedDecidingTerm) else pairs)
    if packed.sparse or packed.sized:
        return None
    try:
        made = pack(replace(system, constraints=tuple(constraints)))
    except NotCompiled:
        return None
    return None if made.sparse else made


def held_at_rest(system: System, before: Kinematics, theta: FloatArray) -> Held:
    """Return how many equations hold what rests before a step."""
    decisions = (term.at_rest(before, theta) for _, term in system.sticking)
    return tuple([3 * int(np.count_nonzero(rows[:, BITS] & STICKS)) for rows in decisions])


@njit(**CALLED)
def _decided_by(arrays, k, chosen):
    """Return the rows of the decision that a family follows; none, and False, of one that follows none."""
    number = FOLLOWS - arrays.families[k, CHOICE]
    if number < 0:
        return chosen.rows[:0], False
    return chosen.rows[chosen.ends[number] : chosen.ends[number + 1]], True


@njit(**CALLED)
def _of_rows(arrays, k, at, lifted):
    """Return the state as a family takes it, where the equations have filled ``lifted``."""
    lifts = links_of(arrays).sizes.size and not arrays.families[k, OWN]
    return at_rows(at, parts_of(arrays, lifted)) if lifts else at


@njit(**CALLED)
def _fits(arrays, k, rows):
    """Whether a family holds as many rows as stick."""
    return 3 * sticking(rows).shape[0] == arrays.fields[arrays.families[k, SLOTS], 1]


@njit(**CALLED)
def rests(arrays, routines, at, lifted, none):
    """Return whether the multipliers hold all that rests at a state, and the choices that say so."""
    r = np.zeros(at.q.size)
    at = Instant(at.t, at.q, at.v, r.copy(), at.theta, at.signals)  # contact asks for no accelerations
    found, _ = call_residual(routines.residual, (arrays, at, lifted, False, none, 0, r))
    kept = Choices(np.empty(found.rows.shape, dtype=np.int64), np.zeros(found.ends.size, dtype=np.int64))
    for number in range(found.ends.size - 1):
        begin = end = kept.ends[number]
        if (layout_of(arrays).size[2] >> number) & 1:
            rows, fits, follows = found.rows[found.ends[number] : found.ends[number + 1]], True, False
            for k in range(arrays.families.shape[0]):
                if FOLLOWS - arrays.families[k, CHOICE] == number:
                    rows = with_sticking(rows, True)
                    of = held_rows(arrays, k, _of_rows(arrays, k, at, lifted), rows, False)[2]
                    rows, follows = resting(rows, of.rows, REST), True
                    fits = _fits(arrays, k, rows)
            if not fits or not (follows or none_creeps(rows)):
                return False, kept  # without its rates it is not known whether something rests
            put(rows, kept.rows[begin:])
            end += rows.shape[0]
        kept.ends[number + 1] = end
    return True, kept


@njit(**CALLED)
def bears(arrays, routines, at, lifted, chosen):
    """Share the reactions of a solved step out, and return whether all bear their own, and all else slips.

    ``lifted`` is the room that the equations of this state have filled.
    """
    for number in range(chosen.ends.size - 1):
        if (layout_of(arrays).size[2] >> number) & 1:
            if not none_creeps(chosen.rows[chosen.ends[number] : chosen.ends[number + 1]]):
                return False
    for k in range(arrays.families.shape[0]):
        rows, follows = _decided_by(arrays, k, chosen)
        if follows and not _fits(arrays, k, rows):
            return False
    limits, reactions = _share(arrays, routines, at, lifted, chosen)
    return not beyond(reactions.reshape((limits.size, 3)), limits, 1.0).any()


@njit(**CALLED)
def _rows_at(arrays, at, lifted, chosen):
    """Return what each of all that stick can bear (k,), the forces of the linear law (3 k,), and P (3 k, n).

    Reactions act on the coordinates by -P^T. Of a state whose equations have filled ``lifted``.
    """
    held, links = layout_of(arrays).size[4], links_of(arrays).sizes
    limits, forces, rows_of_all, m = np.empty(held // 3), np.empty(held), np.zeros((held, at.q.size)), 0
    for k in range(arrays.families.shape[0]):
        rows, follows = _decided_by(arrays, k, chosen)
        if not follows:
            continue
        _, own, of = held_rows(arrays, k, _of_rows(arrays, k, at, lifted), rows, False)
        for i in range(of.limit.size):
            limits[m] = of.limit[i]
            for r in range(3):
                row = 3 * m + r
                forces[row] = of.stiffness[i] * of.rows[i, r]
                for j in range(12):
                    d = own[i, j]
                    if d >= 0 and (arrays.families[k, OWN] or not links.size or d < links[1]):
                        rows_of_all[row, d] += of.by_v[i, r, j]
                    elif d >= 0:
                        p = parts_of(arrays, lifted).p
                        for l in range(p.shape[1]):
                            rows_of_all[row, links[1] + l] += p[d - links[1], l] * of.by_v[i, r, j]
            m += 1
    return limits, forces, rows_of_all


@njit(**CALLED)
def _share(arrays, routines, at, lifted, chosen):
    """Share the reactions of a state out, and return what its pairs can bear (k,), and them (3 k,); see `bears`."""
    free, n, held = layout_of(arrays).free, at.q.size, layout_of(arrays).size[4]
    limits, _, rows = _rows_at(arrays, at, lifted, chosen)
    size = free.size - layout_of(arrays).size[3]
    forces = np.empty((held, size))
    for i in range(held):
        for j in range(size):
            forces[i, j] = rows[i, free[j]]
    reactions = at.q[n - held :]
    share_reactions(routines.blas, forces, limits, reactions)
    return limits, reactions


@njit(cache=True, error_model="numpy", nogil=True)
def iterate(arrays, routines, formula, criteria, stars, signals, theta, u, kept, begun):
    """Do what `solve_step` does, from u (n,): what sticks in ``kept`` goes on sticking. ``stars`` are those of `Step`.

    Returns how it ended, iterations, factorisations, the last u, in which reactions are shared out, and its residual,
    what each pair that sticks can bear (k,), the merits of all iterates, and the fields of the choices at the last.
    """
    point, trial, layout, room = new_iterate(arrays), new_iterate(arrays), layout_of(arrays), new_room(arrays)
    put(u, point.u)
    held, merits, limits = layout.size[4], np.empty(criteria.max_iterations + 1), np.empty(0)
    step = Step(formula, criteria, stars, signals, theta, False, 0, layout.size[3], held)
    status, iterations, factorizations, _, swapped, chosen = solve_step(
        arrays, routines, step, kept, begun, point, trial, room, merits
    )
    end = trial if swapped else point
    if held and status != GIVEN_UP:
        at = Instant(formula.t, end.q, end.v, end.a, theta, signals)
        limits, reactions = _share(arrays, routines, at, end.lifted, chosen)
        put(reactions, end.u[u.size - held :])
    merits = merits[: iterations + 1].copy()
    return status, iterations, factorizations, end.u, end.r, limits, merits, chosen.rows, chosen.ends


@njit(cache=True, error_model="numpy", nogil=True)
def first_iteration(arrays, routines, formula, criteria, stars, signals, theta, u, kept):
    """Take one whole step of Newton's method from u (n,), with the forces of the linear law for reactions.

    Returns the merits there and behind the step, NaN where there is none, both u, what each pair that sticks can bear
    (k,), the reactions (3 k,) that the step leads to, shared out, and the fields of the choices before it.
    """
    point, trial, layout, room = new_iterate(arrays), new_iterate(arrays), layout_of(arrays), new_room(arrays)
    put(u, point.u)
    free, n, held, c = point.free, u.size, layout.size[4], formula.c
    step = Step(formula, criteria, stars, signals, theta, False, 0, layout.size[3], held)
    evaluate(arrays, routines, step, kept, False, point)
    at = Instant(formula.t, point.q, point.v, point.a, theta, signals)
    limits, reactions, _ = _rows_at(arrays, at, point.lifted, kept)
    put(reactions, point.u[n - held :])
    _, chosen, _ = evaluate(arrays, routines, step, kept, False, point)
    call_jacobian(routines.jacobian, (arrays, at, point.lifted, chosen, 1.0, c, c * c, room.data))
    stars[1, n] = weight_of_rows(arrays, room.data, free.size - layout.size[3])
    merit, ahead = merit_of(step, point.r, free), np.nan
    largest = factor(arrays, routines, free, n, room.linear, room.data)
    for k in range(free.size):
        room.b[k] = -point.r[free[k]]
    put(point.u, trial.u)
    if largest >= 0.0 and solve(arrays, routines, room.linear, largest, False, room.b, room.step, room.rest):
        take_trial(trial, point, room.step, 1.0, free)
        ahead, _, _ = evaluate(arrays, routines, step, kept, False, trial)
        put(trial.u[n - held :], point.q[n - held :])
        limits, reactions = _share(arrays, routines, at, point.lifted, chosen)
    return merit, ahead, point.u, trial.u, limits, reactions, chosen.rows, chosen.ends


@njit(**CALLED)
def share_reactions(blas, forces, limits, reactions):
    """Replace reactions (3 k,) by those with the same effect that count, see `add.solve.hybrid_friction`.

    ``forces`` (3 k, n) is what a unit of each does. With F their transposed and W the limits, reactions W F^T x solve
    F W F^T x = F reactions: of all that do they minimise the sum of |reaction|^2 / limit. Rows are scaled to like size,
    and coordinates on which nothing acts have one.
    """
    (held, n), largest = forces.shape, 0.0
    for i in range(limits.size):
        largest = max(largest, limits[i])
    least = 1e-12 * max(largest, 1e-300)  # a point that bears nothing still needs a number; it will be released
    matrix, sizes, left = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for i in range(held):
        weight = max(limits[i // 3], least)
        for j in range(n):
            sizes[j] += weight * forces[i, j] ** 2
            left[j] += forces[i, j] * reactions[i]
    for j in range(n):
        sizes[j] = np.sqrt(sizes[j]) if sizes[j] > 0.0 else 1.0
        matrix[j, j] = ROUNDING
    for i in range(held):
        weight = max(limits[i // 3], least)
        for j in range(n):
            factor = weight * forces[i, j] / sizes[j]
            if factor != 0.0:
                for l in range(n):
                    matrix[j, l] += factor * forces[i, l] / sizes[l]
    for j in range(n):
        if matrix[j, j] == ROUNDING:
            matrix[j, j] = 1.0
    flat, pivots, info, x = matrix.ravel(), np.empty(n, dtype=np.int32), np.zeros(1, dtype=np.int32), np.empty(n)
    getrf(blas.getrf, (n, n, flat, 0, n, pivots, 0, info, 0))
    put(np.zeros(held), reactions)
    for _ in range(_PASSES):
        for j in range(n):
            x[j] = left[j] / sizes[j]
        getrs(blas.getrs, (N, n, 1, flat, 0, n, pivots, 0, x, 0, n, info, 0))
        for i in range(held):
            more = 0.0
            for j in range(n):
                more += forces[i, j] * x[j] / sizes[j]
            more *= max(limits[i // 3], least)
            reactions[i] += more
            for j in range(n):
                left[j] -= forces[i, j] * more


_room, _none, _row, _bool = np.zeros(0), no_choices(0), np.zeros(0), types.boolean
_signals = typeof(empty_instant().signals)
_state = typeof(empty_arena()), typeof(NONE), typeof(empty_instant()), typeof(_room), typeof(_none)
#: Asked for by systems under hybrid friction alone.
call_rests = when_called(rests, _state, types.Tuple((_bool, typeof(_none))))
call_bears = when_called(bears, _state, _bool)
_step = (
    *_state[:2], typeof(Formula(*[0.0] * 5)), typeof(Criteria(0.0, 0.0, 0.0, 2, 1)), types.float64[:, ::1], _signals,
    typeof(_row), typeof(_row), typeof(_none),
)  # fmt: skip
#: What Python calls of it, with the types of its arguments.
ASKED = (
    (share_reactions, (typeof(NONE.blas), types.float64[:, ::1], typeof(_row), typeof(_row))),
    (first_iteration, _step),
    (iterate, (*_step, typeof(FRESH))),
)
