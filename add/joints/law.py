"""Local laws of joints, and the families that they make: the equations over sites, written once for all laws.

r = -J^T f(y, y_dot; p), f (n, arity, 3) forces on the sites of n interactions; `add.kernels.sites` has the equations.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numba import types

from add.equations.family import Family, Kind, by_signal
from add.equations.sites import LawValues, SiteKind, Sites
from add.kernels import sites as kernel
from add.kernels.arena import FAMILY, FIELD, Floats2, Ints, Ints2, Ints3, unpacker, window
from add.kernels.borrowed import borrowed, floats_at, place_of, view_at
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import CALLED, njit
from add.kernels.site_points import parameter_jvp, parameter_vjp
from add.kernels.sites import LawNumbers, SiteArrays
from add.typing import AnyArray, FloatArray, IntArray

#: What may stand in a slot.
PLACE = frozenset({SiteKind.WORLD, SiteKind.NODES, SiteKind.POINT})
VECTOR = frozenset({SiteKind.WORLD, SiteKind.NODES, SiteKind.DIRECTION})
TURNING = frozenset({SiteKind.WORLD, SiteKind.SPIN})
Slots = tuple[frozenset[SiteKind], ...]
_CODES = np.int8


class _Arrays(NamedTuple):
    """Sites, and where the numbers of the law stand; see `add.equations.sites`."""

    kind: Ints
    dofs: Ints2
    shares: Floats2
    place: Ints2
    numbers: Ints2
    rows: Ints3
    law: Ints


_own = unpacker(_Arrays)
evaluate, pull, assemble = kernel.evaluate, kernel.pull, kernel.assemble


@njit(**FAMILY)
def _arrays(arena, k, at):
    """Return the sites of a family, where its law's numbers stand at this instant, and `called` of that law."""
    arrays = _own(arena, arena.families[k, FIELD])
    first, weights = window(arena, k, at)
    _, n, n_s = arrays.rows.shape
    begin = arena.fields[arena.families[k, FIELD] + 5, 0]
    rows = borrowed(arena.ints, begin + first * n * n_s, (weights.size, n, n_s))
    sites = SiteArrays(arrays.kind, arrays.dofs, arrays.shares, arrays.place)
    return sites, LawNumbers(arrays.numbers, weights, rows), arrays.law


@njit(**CALLED)
def _evaluated(sites, numbers, arity, at):
    """Return y, its rates and the frames of all sites, the law's numbers, and room for the forces."""
    n = sites.kind.size
    y, y_dot, frame, f = np.empty((n, 3)), np.empty((n, 3)), np.empty((n, 12)), np.empty((n, 3))
    p = np.empty((n // arity, numbers.index.shape[1] + numbers.rows.shape[2]))
    evaluate(at.q, at.v, at.theta, sites, numbers, y, y_dot, frame, p)
    return y, y_dot, frame, p, f


@njit(**CALLED)
def codes_of(n, rows):
    """Return the branch of each of n interactions (n,) int8, zero where it is idle, of rows (e, 0, code)."""
    codes = np.zeros(n, dtype=np.int8)
    for i in range(rows.shape[0]):
        codes[rows[i, 0]] = rows[i, 2]
    return codes


@njit(**CALLED)
def rows_of(codes):
    """Return the rows (e, 0, code) of the interactions that are not idle."""
    rows, count = np.zeros((codes.size, 3), dtype=np.int64), 0
    for e in range(codes.size):
        if codes[e] != 0:
            rows[count, 0], rows[count, 2] = e, codes[e]
            count += 1
    return rows[:count]


@final
@dataclass(frozen=True)
class Law:
    """A local law: forces f on the r sites of an interaction from their y and rates, and its branches.

    Attributes
    ----------
    name : str
    force : (y, y_dot, p, imposed, codes, f) -> how many act
        Fills f (n_f, 3), and with ``imposed`` false the codes (n,) of a law with branches.
    derivatives : (y, y_dot, p, codes, f, f_y, f_v, f_p)
        Fills f, and df/dy, df/dy_dot (n, 3 r, 3 r), df/dp (n, 3 r, n_p), which are zeros.
    slots : what may stand in each of the r places
    n_columns : numbers p of an interaction
    branches : whether it has codes
    reads_rates : whether y_dot matters
    driven : whether numbers may follow a signal
    energy : (y (n, r, 3), p, codes) -> the energy stored [J]
    """

    name: str
    force: Any
    derivatives: Any
    slots: Slots
    n_columns: int
    branches: bool = False
    reads_rates: bool = True
    driven: bool = False
    energy: Callable[[FloatArray, FloatArray, AnyArray], float] = lambda y, p, codes: 0.0


_PLACE, _COUNT = types.uint64, types.int64
#: Addresses of y, y_dot and p, how many sites and columns; whether imposed; codes, how many; where forces go.
_AT, _BRANCH = (types.UniTuple(_PLACE, 3), _COUNT, _COUNT), (_PLACE, _COUNT)
_SIGNATURES = (
    ((*_AT, types.boolean, *_BRANCH, _PLACE), types.int64),
    ((*_AT, *_BRANCH, types.UniTuple(_PLACE, 4)), types.none),
)
_force, _derivatives = (
    by_address(f"law's {name}", functools.partial(Callee, None, *signature))
    for name, signature in zip(("force", "derivatives"), _SIGNATURES, strict=True)
)


@functools.cache
def callees(law: Law) -> tuple[Callee, ...]:
    """Return the functions of a law by address, with their types: walks over sites are compiled once for all laws."""
    law_force, law_derivatives, arity, size = law.force, law.derivatives, len(law.slots), 3 * len(law.slots)
    kept = CALLED | {"variant": law.name}

    @njit(**kept)
    def force(at, n, n_p, imposed, codes, n_codes, f):
        sites, rates, numbers = floats_at(at[0], (n, 3)), floats_at(at[1], (n, 3)), floats_at(at[2], (n // arity, n_p))
        return int(law_force(sites, rates, numbers, imposed, view_at(_CODES, codes, (n_codes,)), floats_at(f, (n, 3))))

    @njit(**kept)
    def derivatives(at, n, n_p, codes, n_codes, out):
        sites, rates, numbers = floats_at(at[0], (n, 3)), floats_at(at[1], (n, 3)), floats_at(at[2], (n // arity, n_p))
        f, square = floats_at(out[0], (n, 3)), (n // arity, size, size)
        f_y, f_v = floats_at(out[1], square), floats_at(out[2], square)
        f_p, branch = floats_at(out[3], (n // arity, size, n_p)), view_at(_CODES, codes, (n_codes,))
        law_derivatives(sites, rates, numbers, branch, f, f_y, f_v, f_p)

    return tuple(Callee(one, *signature) for one, signature in zip((force, derivatives), _SIGNATURES, strict=True))


@functools.cache
def called(law: Law) -> IntArray:
    """Return the addresses of a law's functions in this process, how many sites, whether branches and rates matter."""
    return np.array([*map(address, callees(law)), len(law.slots), law.branches, law.reads_rates])


@njit(**CALLED)
def _forced(law, y, y_dot, p, imposed, codes, f):
    """Fill the forces; return how many act."""
    at = place_of(y), place_of(y_dot), place_of(p)
    return _force(law[0], (at, y.shape[0], p.shape[1], imposed, codes.ctypes.data, codes.size, place_of(f)))


@njit(**CALLED)
def _linearised(law, sites, numbers, at, rows):
    """Return the frames of the sites, the forces, and their derivatives by y, y_dot and p."""
    y, y_dot, frame, p, f = _evaluated(sites, numbers, law[2], at)
    n, size = p.shape[0], 3 * law[2]
    f_y, f_v, f_p = np.zeros((n, size, size)), np.zeros((n, size, size)), np.zeros((n, size, p.shape[1]))
    _differentiated(law, y, y_dot, p, codes_of(n if law[3] else 0, rows), f, f_y, f_v, f_p)
    return frame, f, f_y, f_v, f_p


@njit(**CALLED)
def _differentiated(law, y, y_dot, p, codes, f, f_y, f_v, f_p):
    """Fill the forces and their derivatives."""
    at = place_of(y), place_of(y_dot), place_of(p)
    out = place_of(f), place_of(f_y), place_of(f_v), place_of(f_p)
    _derivatives(law[1], (at, y.shape[0], p.shape[1], codes.ctypes.data, codes.size, out))


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    sites, numbers, law = _arrays(arena, k, at)
    y, y_dot, frame, p, f = _evaluated(sites, numbers, law[2], at)
    codes = codes_of(p.shape[0] if law[3] else 0, rows)
    if _forced(law, y, y_dot, p, replay, codes, f):
        pull(-1.0, at.q, sites, frame, f, out)
    return rows if replay or not law[3] else rows_of(codes)


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    sites, numbers, law = _arrays(arena, k, at)
    if weight_q == 0.0 and (weight_v == 0.0 or not law[4]):
        return
    frame, f, f_y, f_v, _ = _linearised(law, sites, numbers, at, rows)
    assemble((weight_q, weight_v), at.q, at.v, sites, frame, f, f_y, f_v, data, slots)


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    sites, numbers, law = _arrays(arena, k, at)
    frame, f, f_y, f_v, f_p = _linearised(law, sites, numbers, at, rows)
    if forward:
        parameter_jvp(along, at.q, sites, frame, f, f_y, f_v, f_p, numbers, out)
    else:
        parameter_vjp(along, at.q, sites, frame, f, f_y, f_v, f_p, numbers, out)


KIND = Kind("joint_law", _Arrays, _forces, _parameters, _jacobian, by_signal(_Arrays, _parameters))


def grouped(law: Law, sites: Sites, values: LawValues) -> Sites:
    """Return the sites grouped by the slots of a law; raise unless they fit them and the values fit its columns."""
    sites = sites.grouped(len(law.slots))
    if values.index.shape[0] != sites.n or values.n_columns != law.n_columns:
        shape = (values.index.shape[0], values.n_columns)
        raise ValueError(f"{law.name}: law values {shape} must be {(sites.n, law.n_columns)}")
    for slot, allowed in enumerate(law.slots):
        kinds = sites.kind[slot :: sites.arity]
        wrong = np.flatnonzero(~np.isin(kinds, list(allowed)))
        if wrong.size:
            names = ", ".join(sorted(k.name for k in allowed))
            found = SiteKind(int(kinds[wrong[0]])).name
            raise ValueError(f"{law.name}: site {slot} of interaction {wrong[0]} is a {found}, not {names}")
    return sites


def family_of(law: Law, sites: Sites, values: LawValues) -> Family:
    """Return the family of interactions of a law."""
    arrays = _Arrays(sites.kind, sites.dofs, sites.weights, sites.place, values.index, values.rows, called(law))
    followers = values.rows.shape[1] * values.rows.shape[2]
    return Family(KIND, arrays, sites.pattern, values.signal, followers)
