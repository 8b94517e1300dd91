"""Loops over strained stencils that evaluate their laws, see `add.materials.strains`.

The nodes of a stencil feel

    r = w sum_a F_a dz_a/dx,   F_a = dW/dz_a + dR/dz_dot_a,   z_dot = dz/dx v,

which no rigid motion changes. The matrix of a step has no projection; with W_ab and R_ab the second derivatives,

    dr/dx = w sum_a (F_a d2z_a + dz_a (sum_b W_ab dz_b + R_ab d2z_b v)^T),   dr/dv = w sum_ab R_ab dz_a dz_b^T.

Strains and laws are called by address (`called_strain`): one text is compiled once for all of them. All loops begin
with (q, own, moduli), ``own`` `add.terms.elastic.StrainArrays`.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from add.kernels.borrowed import floats_at, place_of, view_at
from add.kernels.by_address import Callee, address, by_address
from add.kernels.caching import CALLED, INNER, njit
from add.laws import Expression, compiled, derivative, unknown_sign
from add.materials.strains import Strain, StrainLaw
from add.typing import IntArray

_PLACE, _COUNT, _NONE = types.uint64, types.int64, types.none
_AT = types.Tuple((_PLACE, _COUNT))
#: Addresses of arrays, with their sizes, of the functions of a strain, of W, and of what is made of a law.
_SIGNATURES: tuple[tuple[tuple[Any, ...], Any], ...] = (
    ((_AT, _AT, _AT, _PLACE, _COUNT, _PLACE, _PLACE), _NONE),
    ((_AT, _AT, _AT, _PLACE, _COUNT, _PLACE, _AT, _PLACE, _PLACE), _NONE),
    ((_PLACE, _COUNT, _PLACE, _COUNT), types.float64),
    ((_PLACE, _COUNT, _PLACE, _PLACE, _COUNT, _PLACE), _NONE),
)
_call_value, _call_second, _call_energy, _call_formula = (
    by_address(f"strain's {name}", functools.partial(Callee, None, *signature))
    for name, signature in zip(("value", "second", "energy", "formula"), _SIGNATURES, strict=True)
)
#: Entries of what `called_strain` returns: addresses, how many strains there are, and whether rates resist.
VALUE, SECOND, ENERGY, FORCES, OF_Z, OF_R, OF_P, OF_P_RATES, COUNT, DAMPED = range(10)


@functools.cache
def _of_strain(strain: Strain) -> tuple[Callee, ...]:
    """Return the functions of a strain by address."""
    strain_value, strain_second = strain.value, strain.second
    kept = CALLED | {"variant": strain.name}

    @njit(**kept)
    def value(x, places, shape, work, n, z, dz):
        at, known = floats_at(x[0], (x[1], 3)), view_at(np.int64, places[0], (places[1],))
        rest, scratch = floats_at(shape[0], (shape[1],)), floats_at(work, (13, 12))
        strain_value(at, known, rest, scratch, floats_at(z, (n,)), floats_at(dz, (n, 3 * x[1])))

    @njit(**kept)
    def second(x, places, shape, work, n, g, v, out, turned):
        at, known, size = floats_at(x[0], (x[1], 3)), view_at(np.int64, places[0], (places[1],)), 3 * x[1]
        rest, scratch = floats_at(shape[0], (shape[1],)), floats_at(work, (13, 12))
        rates, to, turns = floats_at(v[0], (v[1], 3)), floats_at(out, (size, size)), floats_at(turned, (n, size))
        strain_second(at, known, rest, floats_at(g, (n,)), rates, scratch, to, turns)

    return tuple(Callee(one, *signature) for one, signature in zip((value, second), _SIGNATURES, strict=False))


@functools.cache
def _of_law(law: StrainLaw) -> tuple[Callee, ...]:
    """Return W and the functions of its formulas, of numbers p, strains z and rates r, by address.

    All but W write rows of a number a strain: the forces by z and by z_dot, their derivatives by z, by z_dot, and by p.
    """
    strain, n = law.strain, len(law.strain.rest)
    names = {name: f"z[{a}]" for a, name in enumerate(strain.variables)}
    names |= {name: f"r[{a}]" for a, name in enumerate(strain.rates)}
    names |= {word: f"p[{k}]" for k, word in enumerate(law.words)}
    by_z = [derivative(law.energy, name) for name in strain.variables]
    by_r = [derivative(law.resistance, name) for name in strain.rates]
    given: dict[str, Any] = {"names": names, "domain": unknown_sign(law.energy, frozenset()), **INNER}

    def pairs(slopes: Sequence[Expression], by: Sequence[str]) -> list[Expression]:
        return [derivative(one, name) for one in slopes for name in by]

    def written(name: str, values: Sequence[Expression]) -> Any:
        into = [f"out[{k // n}, {k % n}]" for k in range(len(values))]
        return compiled(name, "p, z, r, out", values, into=into, **given)

    w = compiled("w", "p, z", [law.energy], **given)
    formulas = (
        ("forces", written("forces", [*by_z, *by_r])),
        ("of_z", written("of_z", pairs(by_z, strain.variables))),
        ("of_r", written("of_r", pairs(by_r, strain.rates))),
        ("of_p", written("of_p", [derivative(one, word) for word in law.words for one in by_z])),
        ("of_p_rates", written("of_p_rates", [derivative(one, word) for word in law.words for one in by_r])),
    )

    @njit(**CALLED, variant=f"{strain.name}_{law.name}")
    def energy(p, n_p, z, n):
        return w(floats_at(p, (n_p,)), floats_at(z, (n,)))

    def formula(name: str, function: Any) -> Any:
        @njit(**CALLED, variant=f"{name}_{strain.name}_{law.name}")
        def by_formula(p, n_p, z, r, n, out):
            rows = floats_at(out, (max(2, n, n_p), n))
            function(floats_at(p, (n_p,)), floats_at(z, (n,)), floats_at(r, (n,)), rows)

        return by_formula

    made = (energy, *(formula(*one) for one in formulas))
    types_of = (_SIGNATURES[2], *(_SIGNATURES[3],) * len(formulas))
    return tuple(Callee(one, *signature) for one, signature in zip(made, types_of, strict=True))


def callees(law: StrainLaw) -> tuple[Callee, ...]:
    """Return the functions of a law and of its strain by address, with their types."""
    return (*_of_strain(law.strain), *_of_law(law))


@functools.cache
def called_strain(law: StrainLaw) -> IntArray:
    """Return the addresses of a law's functions in this process, compiled if need be, `COUNT` and `DAMPED`."""
    return np.array([*map(address, callees(law)), len(law.strain.rest), law.damped])


@njit(**INNER)
def _strain(law, x, places, shape, work, z, dz):
    """Fill strains and their slopes, see `add.kernels.strains`."""
    at = (place_of(x), x.shape[0]), (places.ctypes.data, places.size), (place_of(shape), shape.size)
    _call_value(law[VALUE], (*at, place_of(work), z.size, place_of(z), place_of(dz)))


@njit(**INNER)
def _second(law, x, places, shape, g, v, work, out, turned):
    """Add second derivatives of strains, see `add.kernels.strains`."""
    at = (place_of(x), x.shape[0]), (places.ctypes.data, places.size), (place_of(shape), shape.size)
    by = place_of(work), g.size, place_of(g), (place_of(v), v.shape[0])
    _call_second(law[SECOND], (*at, *by, place_of(out), place_of(turned)))


@njit(**INNER)
def _formula(law, which, p, z, r, out):
    """Write the values of one of the law's formulas."""
    at = place_of(p), p.size, place_of(z), place_of(r), z.size
    _call_formula(law[which], (*at, place_of(out)))


@njit(**INNER)
def _stored(law, p, z):
    """Return W."""
    return _call_energy(law[ENERGY], (place_of(p), p.size, place_of(z), z.size))


@njit(**INNER)
def _prepare(e, q, own, x):
    for k in range(own.cells.shape[1]):
        for i in range(3):
            x[k, i] = q[3 * own.cells[e, k] + i]


@njit(**INNER)
def _add_force(e, own, force, dz, out):
    for k in range(own.cells.shape[1]):
        for i in range(3):
            total = 0.0
            for a in range(dz.shape[0]):
                total += force[a] * dz[a, 3 * k + i]
            out[3 * own.cells[e, k] + i] += own.weights[e] * total


@njit(**INNER)
def _motion(e, q, v, own, x, work, z, dz, r):
    """Fill strains, their slopes and, of a damped law, their rates."""
    law = own.law
    _prepare(e, q, own, x)
    _strain(own.law, x, own.places[e], own.shape[e], work, z, dz)
    if law[DAMPED]:
        for a in range(law[COUNT]):
            r[a] = 0.0
            for k in range(own.cells.shape[1]):
                for i in range(3):
                    r[a] += dz[a, 3 * k + i] * v[3 * own.cells[e, k] + i]


@njit(**CALLED, nogil=True)
def strain_energy(q, own, moduli):
    """Return the stored energy [J]."""
    n = own.law[COUNT]
    m = own.cells.shape[1]
    x, work, z, dz = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, 3 * m))
    total = 0.0
    for e in range(own.cells.shape[0]):
        _prepare(e, q, own, x)
        _strain(own.law, x, own.places[e], own.shape[e], work, z, dz)
        total += own.weights[e] * _stored(own.law, moduli[own.group[e]], z)
    return total


@njit(**INNER)
def strain_residual(q, own, moduli, v, out):
    """Add r."""
    law, n = own.law, own.law[COUNT]
    m = own.cells.shape[1]
    x, work, z, dz, r = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, 3 * m)), np.zeros(n)
    both = np.empty((2, n))
    for e in range(own.cells.shape[0]):
        _motion(e, q, v, own, x, work, z, dz, r)
        _formula(law, FORCES, moduli[own.group[e]], z, r, both)
        for a in range(n):
            both[0, a] += both[1, a]
        _add_force(e, own, both[0], dz, out)


@njit(**INNER)
def strain_jacobian(q, own, moduli, v, weight_q, weight_v, data, slots):
    """Add weight_q dr/dq + weight_v dr/dv to data[slots]."""
    law, n = own.law, own.law[COUNT]
    m = own.cells.shape[1]
    size = 3 * m
    x, work, z, dz, r = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, size)), np.zeros(n)
    both, by_strain, by_rate = np.empty((2, n)), np.zeros((n, n)), np.empty((n, n))
    local, turned, rows, rates = np.empty((size, size)), np.zeros((n, size)), np.empty((n, size)), np.empty((m, 3))
    for e in range(own.cells.shape[0]):
        p = moduli[own.group[e]]
        _motion(e, q, v, own, x, work, z, dz, r)
        _formula(law, FORCES, p, z, r, both)
        if weight_q != 0.0:
            _formula(law, OF_Z, p, z, r, by_strain)
        local[:] = 0.0
        for a in range(n):
            both[0, a] = weight_q * (both[0, a] + both[1, a])
        acting = False
        if law[DAMPED]:
            _formula(law, OF_R, p, z, r, by_rate)
            acting = bool(by_rate.any())
        if weight_q != 0.0:
            asked = m if acting else 0
            turned[:] = 0.0
            for k in range(asked):
                for i in range(3):
                    rates[k, i] = v[3 * own.cells[e, k] + i]
            _second(law, x, own.places[e], own.shape[e], both[0], rates[:asked], work, local, turned)
        for a in range(n):
            for i in range(size):
                rows[a, i] = 0.0
            for b in range(n):
                by_z, by_v = weight_q * by_strain[a, b], by_rate[a, b]
                for i in range(size):
                    rows[a, i] += by_z * dz[b, i]
                if acting:
                    for i in range(size):
                        rows[a, i] += by_v * (weight_v * dz[b, i] + weight_q * turned[b, i])
            for i in range(size):
                for j in range(size):
                    local[i, j] += dz[a, i] * rows[a, j]
        for i in range(size):
            for j in range(size):
                data[slots[e, i, j]] += own.weights[e] * local[i, j]


@njit(**INNER)
def strain_parameters(q, own, moduli, v, indices, forward, along, out, by_v):
    """Add dr/dmoduli of ``along`` (n_theta,) to ``out`` (n,), or backward ``along`` (n,) times that (n_theta,).

    Backward, ``by_v`` (n,) takes ``along`` times dr/dv, if it has any size.
    """
    law, n = own.law, own.law[COUNT]
    m, n_p = own.cells.shape[1], moduli.shape[1]
    x, work, z, dz, r = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, 3 * m)), np.zeros(n)
    by, by_rates, force = np.empty((n_p, n)), np.zeros((n_p, n)), np.empty(n)
    by_rate, pulled, rated = np.zeros((n, n)), np.empty(n), by_v.size > 0 and law[DAMPED] != 0
    for e in range(own.cells.shape[0]):
        g = own.group[e]
        _motion(e, q, v, own, x, work, z, dz, r)
        _formula(law, OF_P, moduli[g], z, r, by)
        if law[DAMPED]:
            _formula(law, OF_P_RATES, moduli[g], z, r, by_rates)
        by += by_rates
        if forward:
            force[:] = 0.0
            for k in range(n_p):
                for a in range(n):
                    force[a] += along[indices[g, k]] * by[k, a]
            _add_force(e, own, force, dz, out)
            continue
        for a in range(n):
            pulled[a] = 0.0
            for k in range(m):
                for i in range(3):
                    pulled[a] += dz[a, 3 * k + i] * along[3 * own.cells[e, k] + i]
            for k in range(n_p):
                out[indices[g, k]] += own.weights[e] * by[k, a] * pulled[a]
        if rated:
            _formula(law, OF_R, moduli[g], z, r, by_rate)
            for b in range(n):
                force[b] = 0.0
                for a in range(n):
                    force[b] += by_rate[a, b] * pulled[a]
            _add_force(e, own, force, dz, by_v)
