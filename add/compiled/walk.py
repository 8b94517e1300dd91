"""The walk over the force families of a system: residual, matrix, derivatives by theta and by what drives it.

It calls the functions of each family by address and knows none of them, so that it is compiled once. The families are
those over rows of X, then those over the coordinates of trees (column `OWN`); the rows are the coordinates themselves
unless there are trees; `add.compiled.tree_equations` lifts them then. The terms are the definition; tests compare the
two on every scene.

Last come the equations of a system without trees at one state. `add.compiled.tree_equations` has the same functions
for a system with trees; a step calls one or the other by address.
"""

from typing import NamedTuple

import numpy as np

from add.kernels.arena import (
    CHOICE,
    EQUATION,
    FOLLOWERS,
    FORCES,
    INPUTS,
    JACOBIAN,
    OWN,
    PARAMETERS,
    RATES,
    SIGNAL,
    SLOTS,
    Found,
    call_forces,
    call_inputs,
    call_jacobian,
    call_parameters,
    context_of,
)
from add.kernels.borrowed import borrowed, put
from add.kernels.caching import CALLED, njit
from add.typing import FloatArray, IntArray

#: In the column `CHOICE`: equations that hold what sticks in the decision of another family have this less its number.
FOLLOWS = -3


class Choices(NamedTuple):
    """The decisions of all families with branches.

    Attributes
    ----------
    rows : (k, 3) of all, one behind the other
    ends : (n + 1,) where those of each begin
    """

    rows: IntArray
    ends: IntArray


class Along(NamedTuple):
    """Directions of theta, row by row of their matrix; see `add.equations.kinematics.Directions`.

    Attributes
    ----------
    indptr, indices, data : compressed by rows, (n_theta + 1,), (m,), (m,)
    n : number of directions
    numbers : whether any of them moves more than coefficients of signals
    """

    indptr: IntArray
    indices: IntArray
    data: FloatArray
    n: int
    numbers: bool


def no_choices(n: int) -> Choices:
    """Return the decisions of ``n`` families in which nothing acts."""
    return Choices(np.empty((0, 3), dtype=np.int64), np.zeros(n + 1, dtype=np.int64))


@njit(**CALLED)
def with_rows(rows, n, more):
    """Return room that holds n rows and ``more`` behind them."""
    while n + more.shape[0] > rows.shape[0]:
        wider = np.empty((2 * rows.shape[0] + 16, 3), dtype=np.int64)
        put(rows[:n], wider)
        rows = wider
    put(more, rows[n:])
    return rows


@njit(**CALLED)
def choices_of(steps, k):
    """Return the decisions of step k."""
    ends = steps.ends[k]
    return Choices(steps.rows[ends[0] : ends[ends.size - 1]], ends - ends[0])


@njit(**CALLED)
def chosen_by(arena, k, choices):
    """Return the rows of family ``k``, its own or those that it follows; none for one without branches."""
    number = arena.families[k, CHOICE]
    if number <= FOLLOWS:
        number = FOLLOWS - number
    if number < 0:
        return choices.rows[:0]
    return choices.rows[choices.ends[number] : choices.ends[number + 1]]


@njit(**CALLED)
def norm(force, order):
    """Return the L2 or L1 norm."""
    total = 0.0
    for x in force:
        total += x * x if order == 2 else abs(x)
    return np.sqrt(total) if order == 2 else total


@njit(**CALLED)
def _gathered(family, r, scale, order, lift):
    """Add a family's forces to r, clear them, and return the larger of its norm and ``scale``.

    The norm is that over coordinates, with ``lift`` (m, n_own) the matrix P of the last m rows.
    """
    if lift.size:
        same = family.size - lift.shape[0]
        pulled = np.zeros(lift.shape[1])
        for i in range(lift.shape[0]):
            for k in range(pulled.size):
                pulled[k] += lift[i, k] * family[same + i]
        lower, upper = norm(family[:same], order), norm(pulled, order)
        size = np.sqrt(lower * lower + upper * upper) if order == 2 else lower + upper
    else:
        size = norm(family, order)
    for i in range(r.size):
        r[i] += family[i]
        family[i] = 0.0
    return max(scale, size)


@njit(**CALLED)
def forces(arena, own, at, replay, choices, begun, measured, scale, r, lift):
    """Add r of the families to ``r``; decide, or take ``choices``. Return the choices, and the largest family's norm.

    What sticks in ``choices`` goes on sticking where the rest is decided.
    ``own`` chooses the families: 1 those over the coordinates of trees, whose decisions come behind those ``begun`` of
    the others. ``measured``: 1 or 2, the norm; 0 to leave it out; ``scale`` that of the largest family so far; ``lift``
    the matrix P of rows of links, empty for none.
    """
    out = np.zeros(r.size) if measured else r
    decides = not replay and choices.ends.size > 1
    rows, ends, n_rows = choices.rows, choices.ends, 0
    if decides and own:
        rows, ends, n_rows = begun.rows, begun.ends, begun.rows.shape[0]
    elif decides:
        rows, ends = np.empty((4, 3), dtype=np.int64), np.zeros(choices.ends.size, dtype=np.int64)
    context = context_of(arena, at)
    for k in range(arena.families.shape[0]):
        if arena.families[k, OWN] != own:
            continue
        number = arena.families[k, CHOICE]
        # Those that follow come behind what decides.
        given = chosen_by(arena, k, Choices(rows, ends) if number <= FOLLOWS else choices)
        chosen = call_forces(arena.families[k, FORCES], (context, at.t, k, replay, given, out))
        if decides and number >= 0:
            rows = with_rows(rows, n_rows, chosen)
            n_rows += chosen.shape[0]
            for later in range(number + 1, ends.size):
                ends[later] = n_rows
        if measured:
            size = _gathered(out, r, scale, measured, lift)
            # Equations have no force where multipliers are zero, as they are where forces are measured.
            scale = scale if number <= EQUATION else size
    if decides:
        rows = rows[:n_rows]
    return Choices(rows, ends), scale


@njit(**CALLED)
def unrated(arena):
    """Whether there are families over X whose parameters do not give the products with dr/dv and dr/da."""
    for k in range(arena.families.shape[0]):
        row = arena.families[k]
        if row[OWN] == 0 and row[JACOBIAN] and not row[RATES]:
            return True
    return False


@njit(**CALLED)
def add_jacobian(arena, own, at, choices, weight_q, weight_v, weight_a, data, unrated=False):
    """Add weight_q dr/dq + weight_v dr/dv + weight_a dr/da to the values ``data`` of a matrix.

    ``unrated`` leaves out the families whose parameters give the products with dr/dv and dr/da.
    """
    context = context_of(arena, at)
    for k in range(arena.families.shape[0]):
        row = arena.families[k]
        if row[OWN] == own and row[JACOBIAN] and not (unrated and row[RATES]):
            begin, size = arena.fields[row[SLOTS], 0], arena.fields[row[SLOTS], 1]
            slots = borrowed(arena.ints, begin, (size,))
            given = chosen_by(arena, k, choices)
            call_jacobian(row[JACOBIAN], (context, at.t, k, given, weight_q, weight_v, weight_a, data, slots))


@njit(**CALLED)
def add_parameters(arena, own, at, choices, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,), and what it asks for behind them."""
    context = context_of(arena, at)
    for k in range(arena.families.shape[0]):
        if arena.families[k, OWN] == own:
            given = chosen_by(arena, k, choices)
            call_parameters(arena.families[k, PARAMETERS], (context, at.t, k, given, False, lam, out))


@njit(**CALLED)
def add_inputs(arena, own, at, choices, indptr, found):
    """Add the derivatives by the coefficients of signals that directions move to ``found``."""
    context = context_of(arena, at)
    for k in range(arena.families.shape[0]):
        if arena.families[k, OWN] == own and arena.families[k, INPUTS]:
            given = chosen_by(arena, k, choices)
            call_inputs(arena.families[k, INPUTS], (context, at.t, k, given, indptr, found))


@njit(**CALLED)
def new_found(arena, at, n):
    """Return room for the derivatives of r (n,) by the coefficients that act, each as often as something follows it."""
    most = 0
    for k in range(arena.families.shape[0]):
        if arena.families[k, SIGNAL] >= 0:
            most += arena.families[k, FOLLOWERS] * at.signals.table[arena.families[k, SIGNAL], 2]
    place, entries, size = np.full(at.theta.size, -1), np.empty(most, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Found(place, entries, size, np.zeros((most, n)))


@njit(**CALLED)
def unit(k):
    """Return the weights of derivatives by q, v and a that leave the one of place ``k``."""
    return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0


@njit(**CALLED)
def residual(arena, at, room, replay, choices, measured, r):
    """Fill r (n,); decide, or take ``choices``. Return the choices, and the largest family's norm.

    ``measured``: 1 or 2, the norm; 0 to leave it out. ``room`` is that of `add.compiled.tree_equations.new_lifted`.
    """
    r[:] = 0.0
    return forces(arena, 0, at, replay, choices, choices, measured, 0.0, r, np.empty((0, 0)))


@njit(**CALLED)
def jacobian(arena, at, room, choices, weight_q, weight_v, weight_a, data):
    """Fill ``data``, values of a matrix over all coordinates, with weight_q dr/dq + weight_v dr/dv + weight_a dr/da."""
    data[:] = 0.0
    add_jacobian(arena, 0, at, choices, weight_q, weight_v, weight_a, data)


@njit(**CALLED)
def matrices(arena, at, room, choices, c, over_rows, out):
    """Fill ``out`` (3, n_values) with dr/dq, dr/dv, dr/da; ``over_rows`` is for those over X where there are trees.

    With c > 0 the first is J = dr/dq + c dr/dv + c^2 dr/da, and the others leave out what `parameters` will give, or
    are not filled where it gives all: who asks for that hands it room for the products.
    """
    jacobian(arena, at, room, choices, 1.0, c, c * c, out[0])
    if c > 0.0 and not unrated(arena):
        return
    out[1:] = 0.0
    add_jacobian(arena, 0, at, choices, 0.0, 1.0, 0.0, out[1], c > 0.0)
    add_jacobian(arena, 0, at, choices, 0.0, 0.0, 1.0, out[2], c > 0.0)


@njit(**CALLED)
def parameters(arena, at, room, choices, over_rows, lam, out):
    """Add lam^T dr/dtheta to ``out`` (n_theta,), or (n_theta + 2 n,), see `add.kernels.arena`."""
    add_parameters(arena, 0, at, choices, lam, out)


@njit(**CALLED)
def inputs(arena, at, room, choices, indptr):
    """Return the coefficients of signals that act and that a direction moves (m,), and dr by each (m, n).

    A drive, a load or a motor touches few coordinates, so that the derivative by each coefficient has a closed form
    with few entries; the pull-backs of `parameters` would ask all families for each coordinate. ``indptr``
    (n_theta + 1,) counts the directions that move each entry of theta.
    """
    columns = new_found(arena, at, at.q.size)
    add_inputs(arena, 0, at, choices, indptr, columns)
    return columns.entries[: columns.size[0]], columns.values[: columns.size[0]]


@njit(**CALLED)
def moved_by(entries, values, along):
    """Return the directions that move any of the entries (m,) by which ``values`` (m, n) are derivatives, and r'."""
    number, acting = np.full(along.n, -1), np.zeros(entries.size, dtype=np.bool_)
    for m in range(entries.size):
        for i in range(values.shape[1]):
            if values[m, i] != 0.0:
                acting[m] = True
                break
        if acting[m]:
            for j in range(along.indptr[entries[m]], along.indptr[entries[m] + 1]):
                number[along.indices[j]] = 0
    columns, count = np.empty(along.n, dtype=np.int64), 0
    for d in range(along.n):
        if number[d] == 0:
            number[d], columns[count] = count, d
            count += 1
    out = np.zeros((count, values.shape[1]))
    for m in range(entries.size):
        if acting[m]:
            for j in range(along.indptr[entries[m]], along.indptr[entries[m] + 1]):
                out[number[along.indices[j]]] += along.data[j] * values[m]
    return columns[:count].copy(), out
