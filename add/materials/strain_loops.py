"""Loops over strained stencils that evaluate their laws, see `add.materials.strains`.

The nodes of a stencil feel

    r = w sum_a F_a dz_a/dx,   F_a = dW/dz_a + dR/dz_dot_a,   z_dot = dz/dx v,

which no rigid motion changes. The matrix of a step has no projection; with W_ab and R_ab the second derivatives,

    dr/dx = w sum_a (F_a d2z_a + dz_a (sum_b W_ab dz_b + R_ab d2z_b v)^T),   dr/dv = w sum_ab R_ab dz_a dz_b^T.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from add.kernels.caching import njit
from add.laws import Expression, compiled, derivative, unknown_sign
from add.materials.strains import StrainLaw

_JIT = {"nogil": True, "error_model": "numpy"}


class StrainLoops(NamedTuple):
    """Compiled loops over the stencils of a law; all begin with (q, own, moduli), ``own`` of `add.terms.elastic`.

    energy : (q, own, moduli) -> E [J]
    residual : (q, own, moduli, v, out)
    jacobian : (q, own, moduli, v, weight_q, weight_v, data, slots)
    parameters : (q, own, moduli, v, indices, forward, along, out)
    """

    energy: Callable[..., float]
    residual: Callable[..., None]
    jacobian: Callable[..., None]
    parameters: Callable[..., None]


class _Functions(NamedTuple):
    """Compiled functions of the formulas of a law, of numbers p, strains z and rates r; all but W write to ``out``."""

    energy: Callable[..., float]
    forces: Callable[..., None]
    of_z: Callable[..., None]
    of_r: Callable[..., None]
    of_p: Callable[..., None]
    of_p_rates: Callable[..., None]


def _functions(law: StrainLaw) -> _Functions:
    strain, n = law.strain, len(law.strain.rest)
    names = {name: f"z[{a}]" for a, name in enumerate(strain.variables)}
    names |= {name: f"r[{a}]" for a, name in enumerate(strain.rates)}
    names |= {word: f"p[{k}]" for k, word in enumerate(law.words)}
    by_z = [derivative(law.energy, name) for name in strain.variables]
    by_r = [derivative(law.resistance, name) for name in strain.rates]
    given: dict[str, Any] = {"names": names, "domain": unknown_sign(law.energy, frozenset()), **_JIT}

    def pairs(slopes: Sequence[Expression], by: Sequence[str]) -> list[Expression]:
        return [derivative(one, name) for one in slopes for name in by]

    def written(name: str, values: Sequence[Expression]) -> Any:
        into = [f"out[{k // n}, {k % n}]" for k in range(len(values))]
        return compiled(name, "p, z, r, out", values, into=into, **given)

    return _Functions(
        energy=compiled("w", "p, z", [law.energy], **given),
        forces=written("forces", [*by_z, *by_r]),
        of_z=written("of_z", pairs(by_z, strain.variables)),
        of_r=written("of_r", pairs(by_r, strain.rates)),
        of_p=written("of_p", [derivative(one, word) for word in law.words for one in by_z]),
        of_p_rates=written("of_p_rates", [derivative(one, word) for word in law.words for one in by_r]),
    )


@njit(**_JIT)
def _prepare(e, q, own, x):
    for k in range(own.cells.shape[1]):
        for i in range(3):
            x[k, i] = q[3 * own.cells[e, k] + i]


@njit(**_JIT)
def _add_force(e, own, force, dz, out):
    for k in range(own.cells.shape[1]):
        for i in range(3):
            total = 0.0
            for a in range(dz.shape[0]):
                total += force[a] * dz[a, 3 * k + i]
            out[3 * own.cells[e, k] + i] += own.weights[e] * total


def _motion(law: StrainLaw) -> Callable[..., None]:
    """Return the function that writes strains, their slopes and, of a damped law, their rates."""
    n, damped, value = len(law.strain.rest), law.damped, law.strain.value

    @njit(**_JIT)
    def motion(e, q, v, own, x, work, z, dz, r):
        _prepare(e, q, own, x)
        value(x, own.places[e], own.shape[e], work, z, dz)
        if damped:
            for a in range(n):
                r[a] = 0.0
                for k in range(own.cells.shape[1]):
                    for i in range(3):
                        r[a] += dz[a, 3 * k + i] * v[3 * own.cells[e, k] + i]

    return motion


def _energy(law: StrainLaw, w: Callable[..., float]) -> Callable[..., float]:
    """Return the loop of `StrainLoops.energy`."""
    n, value = len(law.strain.rest), law.strain.value

    @njit(cache=True, variant=law.name, **_JIT)
    def energy(q, own, moduli):
        m = own.cells.shape[1]
        x, work, z, dz = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, 3 * m))
        total = 0.0
        for e in range(own.cells.shape[0]):
            _prepare(e, q, own, x)
            value(x, own.places[e], own.shape[e], work, z, dz)
            total += own.weights[e] * w(moduli[own.group[e]], z)
        return total

    return energy


def _residual(law: StrainLaw, motion: Callable[..., None], forces: Callable[..., None]) -> Callable[..., None]:
    """Return the loop of `StrainLoops.residual`."""
    n = len(law.strain.rest)

    @njit(**_JIT)
    def residual(q, own, moduli, v, out):
        m = own.cells.shape[1]
        x, work, z, dz, r = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, 3 * m)), np.zeros(n)
        both = np.empty((2, n))
        for e in range(own.cells.shape[0]):
            motion(e, q, v, own, x, work, z, dz, r)
            forces(moduli[own.group[e]], z, r, both)
            for a in range(n):
                both[0, a] += both[1, a]
            _add_force(e, own, both[0], dz, out)

    return residual


def _jacobian(law: StrainLaw, motion: Callable[..., None], functions: _Functions) -> Callable[..., None]:
    """Return the loop of `StrainLoops.jacobian`."""
    n, damped, second = len(law.strain.rest), law.damped, law.strain.second
    _, forces, of_z, of_r, _, _ = functions

    @njit(**_JIT)
    def jacobian(q, own, moduli, v, weight_q, weight_v, data, slots):
        m = own.cells.shape[1]
        size = 3 * m
        x, work, z, dz, r = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, size)), np.zeros(n)
        both, by_strain, by_rate = np.empty((2, n)), np.zeros((n, n)), np.empty((n, n))
        local, turned, rows, rates = np.empty((size, size)), np.zeros((n, size)), np.empty((n, size)), np.empty((m, 3))
        for e in range(own.cells.shape[0]):
            p = moduli[own.group[e]]
            motion(e, q, v, own, x, work, z, dz, r)
            forces(p, z, r, both)
            if weight_q != 0.0:
                of_z(p, z, r, by_strain)
            local[:] = 0.0
            for a in range(n):
                both[0, a] = weight_q * (both[0, a] + both[1, a])
            acting = False
            if damped:
                of_r(p, z, r, by_rate)
                acting = bool(by_rate.any())
            if weight_q != 0.0:
                asked = m if acting else 0
                turned[:] = 0.0
                for k in range(asked):
                    for i in range(3):
                        rates[k, i] = v[3 * own.cells[e, k] + i]
                second(x, own.places[e], own.shape[e], both[0], rates[:asked], work, local, turned)
            for a in range(n):
                for i in range(size):
                    rows[a, i] = 0.0
                    for b in range(n):
                        rows[a, i] += weight_q * by_strain[a, b] * dz[b, i]
                        if acting:
                            rows[a, i] += by_rate[a, b] * (weight_v * dz[b, i] + weight_q * turned[b, i])
            for i in range(size):
                for j in range(size):
                    total = local[i, j]
                    for a in range(n):
                        total += dz[a, i] * rows[a, j]
                    data[slots[e, i, j]] += own.weights[e] * total

    return jacobian


def _parameters(law: StrainLaw, motion: Callable[..., None], functions: _Functions) -> Callable[..., None]:
    """Return the loop of `StrainLoops.parameters`."""
    n, damped, of_p, of_p_rates = len(law.strain.rest), law.damped, functions.of_p, functions.of_p_rates

    @njit(**_JIT)
    def parameters(q, own, moduli, v, indices, forward, along, out):
        m, n_p = own.cells.shape[1], moduli.shape[1]
        x, work, z, dz, r = np.empty((m, 3)), np.empty((13, 12)), np.empty(n), np.empty((n, 3 * m)), np.zeros(n)
        by, by_rates, force = np.empty((n_p, n)), np.zeros((n_p, n)), np.empty(n)
        for e in range(own.cells.shape[0]):
            g = own.group[e]
            motion(e, q, v, own, x, work, z, dz, r)
            of_p(moduli[g], z, r, by)
            if damped:
                of_p_rates(moduli[g], z, r, by_rates)
            by += by_rates
            if forward:
                force[:] = 0.0
                for k in range(n_p):
                    for a in range(n):
                        force[a] += along[indices[g, k]] * by[k, a]
                _add_force(e, own, force, dz, out)
                continue
            for a in range(n):
                pulled = 0.0
                for k in range(m):
                    for i in range(3):
                        pulled += dz[a, 3 * k + i] * along[3 * own.cells[e, k] + i]
                for k in range(n_p):
                    out[indices[g, k]] += own.weights[e] * by[k, a] * pulled

    return parameters


@functools.cache
def strain_loops(law: StrainLaw) -> StrainLoops:
    """Return the loops of a law, compiled when they are called first."""
    functions, motion = _functions(law), _motion(law)
    return StrainLoops(
        energy=_energy(law, functions.energy),
        residual=_residual(law, motion, functions.forces),
        jacobian=_jacobian(law, motion, functions),
        parameters=_parameters(law, motion, functions),
    )
