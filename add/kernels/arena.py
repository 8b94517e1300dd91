"""The arrays of all force families of a system in one arena, and what their compiled functions are called with.

A family is a named tuple of arrays (`NamedTuple` classes whose fields say their dimensions) and compiled functions that
take them from the arena by themselves, so that what walks over families knows none of them and is compiled once. Each
of these functions begins with

    arena, k   Arena, and the family's row in its table
    at         Instant

and goes on with

    forces      replay, rows, out       add r (n,) to ``out``; decide and return the rows, or with ``replay`` take them
    jacobian    rows, w_q, w_v, w_a, data, slots   add w_q dr/dq + w_v dr/dv + w_a dr/da to ``data[slots]``
    parameters  rows, forward, along, out   add dr/dtheta along to ``out`` (n,), or along^T dr/dtheta to it (n_theta,);
                                            (n_theta + 2 n,) of it asks for along^T dr/dv and along^T dr/da behind,
                                            see `rates_in`
    inputs      rows, indptr, found     add dr by the coefficients of signals to ``found``, see `Found`

``rows`` (m, 3) int64 is the family's decision, none for one without branches; slots stand in the order of the entries
of its pattern. They are compiled into `entries`, which take arena and instant as a `context` of addresses: handed from
function to function by address, ten arrays take 100 ns.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from typing import Annotated, Any, NamedTuple, get_origin, get_type_hints

import numpy as np
from numba import typeof

from add.kernels.borrowed import borrowed, view_at
from add.kernels.by_address import Callee, by_address
from add.kernels.caching import CALLED, njit
from add.typing import AnyArray, FloatArray, IntArray

#: Fields of families: arrays of integers and of floats of so many dimensions.
Ints = Annotated[IntArray, 1, np.int64]
Ints2 = Annotated[IntArray, 2, np.int64]
Ints3 = Annotated[IntArray, 3, np.int64]
Floats = Annotated[FloatArray, 1, np.float64]
Floats2 = Annotated[FloatArray, 2, np.float64]
Floats3 = Annotated[FloatArray, 3, np.float64]
Floats4 = Annotated[FloatArray, 4, np.float64]

#: Columns of `Arena.families`: addresses of the four functions, zero for none; the first of its fields, and its slots;
#: number of its decision, -1 for none and -2 of equations; whether it is over the coordinates of trees, not over rows
#: of X; number of its signal, -1 for none, and how many numbers follow that; whether its parameters give the products
#: with dr/dv and dr/da, too.
FORCES, JACOBIAN, PARAMETERS, INPUTS, FIELD, SLOTS, CHOICE, OWN, SIGNAL, FOLLOWERS, RATES = range(11)
COLUMNS = 11
#: In the column `CHOICE`: forces of multipliers, and the equations that these hold.
EQUATION = -2


class Arena(NamedTuple):
    """Families, one behind the other.

    Attributes
    ----------
    ints, floats : all arrays
    fields : (m, 5) where each array begins in one of these, and its shape
    families : (n, 11) a row a family, see `FORCES` and its neighbours
    """

    ints: IntArray
    floats: FloatArray
    fields: IntArray
    families: IntArray


class Signals(NamedTuple):
    """The signals at one instant: windows of their weights, one behind the other.

    Attributes
    ----------
    weights : of all signals
    table : (k, 3) int64, a row a signal
        First row that acts, where its weights begin, how many there are.
    """

    weights: FloatArray
    table: IntArray


class Instant(NamedTuple):
    """A state of motion, the parameters, and the signals then.

    Attributes
    ----------
    t : float
        Time [s].
    q, v, a : (n,)
    theta : (n_theta,)
    signals : Signals
    """

    t: float
    q: FloatArray
    v: FloatArray
    a: FloatArray
    theta: FloatArray
    signals: Signals


class Found(NamedTuple):
    """Derivatives by coefficients of signals in the making.

    Attributes
    ----------
    place : (n_theta,) the row of each entry of theta, -1 for none
    entries : (m,) the entry of each row
    size : (1,) number of rows
    values : (m, n) the derivatives of r
    """

    place: IntArray
    entries: IntArray
    size: IntArray
    values: FloatArray


#: Options of a family's functions.
FAMILY = {"error_model": "numpy", "inline": "always"}
_INTS, _FLOATS = np.int64, np.float64


@njit(**FAMILY)
def context_of(arena, at):
    """Return addresses and sizes of the arrays of an arena and of an instant, which must outlive it."""
    q, theta, weights, table = at.q, at.theta, at.signals.weights, at.signals.table
    out = np.empty(18, dtype=np.int64)
    out[0], out[1] = arena.ints.ctypes.data, arena.floats.ctypes.data
    out[2], out[3] = arena.fields.ctypes.data, arena.families.ctypes.data
    out[4], out[5], out[6] = q.ctypes.data, at.v.ctypes.data, at.a.ctypes.data
    out[7], out[8], out[9] = theta.ctypes.data, weights.ctypes.data, table.ctypes.data
    out[10], out[11], out[12], out[13] = arena.ints.size, arena.floats.size, arena.fields.size, arena.families.size
    out[14], out[15], out[16], out[17] = q.size, theta.size, weights.size, table.size
    return out


@njit(**FAMILY)
def opened(context, t):
    """Return the `Arena` and the `Instant` of a context, views that count no references."""
    fields = view_at(_INTS, context[2], (context[12] // 5, 5))
    families = view_at(_INTS, context[3], (context[13] // COLUMNS, COLUMNS))
    arena = Arena(
        view_at(_INTS, context[0], (context[10],)), view_at(_FLOATS, context[1], (context[11],)), fields, families
    )
    n = context[14]
    q, v, a = (
        view_at(_FLOATS, context[4], (n,)), view_at(_FLOATS, context[5], (n,)), view_at(_FLOATS, context[6], (n,)),
    )  # fmt: skip
    signals = Signals(view_at(_FLOATS, context[8], (context[16],)), view_at(_INTS, context[9], (context[17] // 3, 3)))
    return arena, Instant(t, q, v, a, view_at(_FLOATS, context[7], (context[15],)), signals)


def entries(name: str, forces: Any, jacobian: Any, parameters: Any, inputs: Any) -> tuple[Any, Any, Any, Any]:
    """Return the functions of a family with a context and the time in place of arena and instant; None stays None."""

    @njit(variant=name, **CALLED)
    def of_forces(context, t, k, replay, rows, out):
        arena, at = opened(context, t)
        return forces(arena, k, at, replay, rows, out)

    @njit(variant=name, **CALLED)
    def of_jacobian(context, t, k, rows, weight_q, weight_v, weight_a, data, slots):
        arena, at = opened(context, t)
        jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots)

    @njit(variant=name, **CALLED)
    def of_parameters(context, t, k, rows, forward, along, out):
        arena, at = opened(context, t)
        parameters(arena, k, at, rows, forward, along, out)

    @njit(variant=name, **CALLED)
    def of_inputs(context, t, k, rows, indptr, found):
        arena, at = opened(context, t)
        inputs(arena, k, at, rows, indptr, found)

    return of_forces, of_jacobian if jacobian else None, of_parameters, of_inputs if inputs else None


@njit(**FAMILY)
def add_entry(forward, row, entry, value, along, out):
    """Add an entry of dr/dtheta: ``value`` along[entry] to out[row], or backward ``value`` along[row] to out[entry]."""
    if forward:
        out[row] += value * along[entry]
    else:
        out[entry] += value * along[row]


@njit(**FAMILY)
def rates_in(forward, at, out):
    """Return where `parameters` adds products, behind the numbers of ``out``, or nothing if none is asked.

    Those are along^T dr/dv, (n,), and behind them along^T dr/da if there is room, (2 n,). A matrix dr/dv for one
    product would be a fourth of the way back through a step of cloth.
    """
    return borrowed(out, at.theta.size, (0 if forward else out.size - at.theta.size,))


@njit(**CALLED)
def row_of(entry, indptr, found):
    """Return the row of an entry of theta, a new one if it has none; -1 where no direction moves it.

    ``indptr`` (n_theta + 1,) counts the directions that move each entry.
    """
    if entry < 0 or indptr[entry] == indptr[entry + 1]:
        return -1
    if found.place[entry] < 0:
        found.place[entry] = found.size[0]
        found.entries[found.size[0]] = entry
        found.size[0] += 1
    return found.place[entry]


@njit(**FAMILY)
def window(arena, k, at):
    """Return the first row of the signal of family ``k`` that acts, and the weights from there on."""
    row, start, width = at.signals.table[arena.families[k, SIGNAL]]
    return row, borrowed(at.signals.weights, start, (width,))


def fields_of(kind: type) -> list[tuple[int, Any]]:
    """Return dimensions and type of each array of a named tuple class of `Ints`, `Floats` and their neighbours.

    A field that is such a class, too, stands for its arrays.
    """
    fields: list[tuple[int, Any]] = []
    for hint in get_type_hints(kind, include_extras=True).values():
        fields += [hint.__metadata__] if get_origin(hint) is Annotated else fields_of(hint)
    return fields


def unpacker(kind: type) -> Any:
    """Return the compiled function (arena, first field) -> the named tuple of views that begins there."""
    known: dict[str, Any] = {"borrowed": borrowed, "Kind": kind, "__name__": __name__}
    numbers = count()
    text = (
        f"def unpack_{kind.__name__}(arena, k):\n"
        "    ints, floats, f = arena.ints, arena.floats, arena.fields\n"
        f"    return Kind({_views(kind, numbers, known)})\n"
    )
    exec(compile(text, __file__, "exec"), known)  # numba takes no loop over fields of different kinds
    return njit(known[f"unpack_{kind.__name__}"], error_model="numpy")


def _views(kind: type, numbers: Iterator[int], known: dict[str, Any]) -> str:
    """Return the text of the fields of a named tuple class, whose arrays have the next ``numbers``."""
    views = []
    for hint in get_type_hints(kind, include_extras=True).values():
        if get_origin(hint) is Annotated:
            i, (dimensions, dtype) = next(numbers), hint.__metadata__
            shape = "".join(f"f[k + {i}, {d + 1}], " for d in range(dimensions))
            views.append(f"borrowed({'ints' if dtype is np.int64 else 'floats'}, f[k + {i}, 0], ({shape}))")
        else:
            known[hint.__name__] = hint
            views.append(f"{hint.__name__}({_views(hint, numbers, known)})")
    return ", ".join(views)


def packed(arrays: Sequence[AnyArray], kinds: Sequence[tuple[int, Any]]) -> tuple[IntArray, FloatArray, IntArray]:
    """Return arrays one behind the other, integers and floats, each once, and their `Arena.fields`."""
    ints, floats, fields = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], []
    sizes, places = {np.int64: 0, np.float64: 0}, dict[tuple[int, int, Any], int]()
    for array, (dimensions, dtype) in zip(arrays, kinds, strict=True):
        values = np.ascontiguousarray(array, dtype=dtype)
        if values.ndim != dimensions:
            raise ValueError(f"an array of {values.ndim} dimensions, not {dimensions}")
        begin = places.setdefault((values.ctypes.data, values.size, dtype), sizes[dtype])
        fields.append([begin, *values.shape, *[0] * (4 - dimensions)])
        if begin == sizes[dtype]:
            (ints if dtype is np.int64 else floats).append(values.ravel())
            sizes[dtype] += values.size
    return np.concatenate(ints), np.concatenate(floats), np.array(fields, dtype=np.int64).reshape(-1, 5)


def empty_arena() -> Arena:
    """Return the arena of nothing, for its type."""
    fields, families = np.zeros((0, 5), dtype=np.int64), np.zeros((0, COLUMNS), dtype=np.int64)
    return Arena(np.zeros(0, dtype=np.int64), np.zeros(0), fields, families)


def empty_instant() -> Instant:
    """Return an instant of nothing, for its type."""
    one = np.zeros(0)
    return Instant(0.0, one, one, one, one, Signals(one, np.zeros((0, 3), dtype=np.int64)))


@cache
def signatures() -> tuple[tuple[tuple[Any, ...], Any], ...]:
    """Return the types of arguments and result of a family's functions, in the order of their columns."""
    one, rows, counts = np.zeros(0), np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.int64)
    columns = Found(counts, counts, counts, np.zeros((0, 0)))
    calls = (
        ((counts, 0.0, 0, False, rows, one), rows),
        ((counts, 0.0, 0, rows, 0.0, 0.0, 0.0, one, counts), None),
        ((counts, 0.0, 0, rows, False, one, one), None),
        ((counts, 0.0, 0, rows, counts, columns), None),
    )
    return tuple((tuple(map(typeof, arguments)), typeof(result)) for arguments, result in calls)


def _caller(k: int, name: str) -> Any:
    return by_address(f"family's {name}", lambda: Callee(None, *signatures()[k]))


call_forces, call_jacobian, call_parameters, call_inputs = (
    _caller(k, name) for k, name in enumerate(("forces", "jacobian", "parameters", "inputs"))
)


@njit(cache=True, error_model="numpy", forceinline=True)
def _context(arena, at):
    """Return the context of plain tuples of what an `Arena` and an `Instant` have: named ones cost a call 1 us more."""
    t, q, v, a, theta, weights, table = at
    return context_of(Arena(*arena), Instant(t, q, v, a, theta, Signals(weights, table)))


@njit(cache=True, error_model="numpy", nogil=True)
def run_forces(arena, at, replay, rows, out):
    """Add the forces of an arena's first family; return the rows."""
    return call_forces(arena[3][0, FORCES], (_context(arena, at), at[0], 0, replay, rows, out))


@njit(cache=True, error_model="numpy", nogil=True)
def run_jacobian(arena, at, rows, weight_q, weight_v, weight_a, data, slots):
    """Add the weighted derivatives of an arena's first family."""
    call_jacobian(
        arena[3][0, JACOBIAN],
        (_context(arena, at), at[0], 0, rows, weight_q, weight_v, weight_a, data, slots),
    )


@njit(cache=True, error_model="numpy", nogil=True)
def run_parameters(arena, at, rows, forward, along, out):
    """Add the derivatives by theta of an arena's first family, along theta or backward."""
    call_parameters(arena[3][0, PARAMETERS], (_context(arena, at), at[0], 0, rows, forward, along, out))
