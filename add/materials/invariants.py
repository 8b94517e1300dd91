"""Elastic laws W(I1, I2, J; p) of C = F^T F: one push-forward of scalar derivatives to stress and tangent.

What a law has of principal stretches and fibres is added by `add.materials.further`.

With derivatives W_1, W_2, W_J by the invariants and H = dI2/dF / 2 = I1 F - F C,

    P = 2 W_1 F + 2 W_2 H + W_J cof F

    dP_im/dF_jn = S_im cof_jn + cof_im S_jn + (W_JJ + W_J/J) cof_im cof_jn - W_J/J cof_in cof_jm
                  + X_im F_jn + Y_im H_jn - 2 W_2 F_in F_jm + (2 W_1 + 2 W_2 I1) d_ij d_mn
                  - 2 W_2 ((F F^T)_ij d_mn + d_ij C_mn)

    S = 2 W_1J F + 2 W_2J H,   X = 4 (W_11 + W_2) F + 4 W_12 H,   Y = 4 W_12 F + 4 W_22 H.

What is zero for all deformations is left out as the law is compiled.
"""

import functools
import keyword
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from add.kernels.caching import INLINED, INNER, njit
from add.kernels.deformation import add_to, cauchy_green, multiply
from add.laws import ZERO, Expression, compiled, derivative
from add.materials.formulas import DIRECTIONS, Formula, LawFunctions, Material, Modulus
from add.materials.further import Further, further_part


@njit(**INLINED)
def square(a):
    """Return A : A, of F the invariant I1, of cof F the invariant I2."""
    out = 0.0
    for i in range(3):
        for m in range(3):
            out += a[i, m] * a[i, m]
    return out


@njit(**INNER)
def write_stress(f, cof, one, two, volume, by_two, out):
    """Write 2 W_1 F + 2 W_2 H + W_J cof F; ``by_two`` says whether there is W_2."""
    one, two = 2.0 * one, 2.0 * two
    if by_two:
        multiply(f, cauchy_green(f), out)
        along = one + two * square(f)
        for i in range(3):
            for m in range(3):
                out[i, m] = along * f[i, m] + volume * cof[i, m] - two * out[i, m]
    else:
        for i in range(3):
            for m in range(3):
                out[i, m] = one * f[i, m] + volume * cof[i, m]


def by_invariants(name: str, parameters: tuple[Modulus, ...], formula: Formula, text: str = "") -> Material:
    """Return the law of a formula; a symbol of it is the last word of a parameter's key, ``lambda_`` for lambda."""
    directions = DIRECTIONS[: 3 * formula.directions]
    make = functools.partial(_functions, name, parameters, formula, directions)
    return Material(name, (*parameters, *directions), make, formula=text)


class _Acting(NamedTuple):
    """Which parts of the tangent a law has: those of W_2, W_1J and W_2J, W_11, W_12 and W_22, W_J."""

    by_two: bool
    coupled: bool
    curved: bool
    both: bool
    volume: bool

    @classmethod
    def of(cls, first: Sequence[Expression], second: Sequence[Expression]) -> "_Acting":
        """Find them in W_1, W_2, W_J and W_11, W_12, W_1J, W_22, W_2J, W_JJ."""

        def used(*slopes: Expression) -> bool:
            return any(slope != ZERO for slope in slopes)

        return cls(
            by_two=used(first[1]),
            coupled=used(second[2], second[4]),
            curved=used(second[0], first[1]),
            both=used(second[1], second[3]),
            volume=used(first[2]),
        )


def _tangent(acting: _Acting, further: Further, w_second: Callable[..., Any], kept: Any) -> Callable[..., None]:
    """Return the compiled tangent of a law; ``w_second`` gives the first and second derivatives of W."""
    by_two, coupled, curved, both, volume = acting
    measured, add_tangent = further.measured, further.add_tangent

    @njit(**INNER, **kept)
    def tangent(p, f, cof, jac, out):
        i1, i2, fibres = square(f), square(cof) if by_two else 0.0, measured(p, f)
        one, two, by_j, one_one, one_two, one_j, two_two, two_j, j_j = w_second(p, i1, i2, jac, fibres[0])
        swapped = by_j / jac
        outer, twice, plain = j_j + swapped, 2.0 * two, 2.0 * one
        h, side = out[1, 0], out[2, 0]  # blocks that callers do not read
        if by_two:
            c = cauchy_green(f)
            plain += twice * i1
            multiply(f, c, h)
            for i in range(3):
                for m in range(3):
                    h[i, m] = i1 * f[i, m] - h[i, m]
        if coupled:
            for i in range(3):
                for m in range(3):
                    side[i, m] = 2.0 * one_j * f[i, m] + 0.5 * outer * cof[i, m]
                    if by_two:
                        side[i, m] += 2.0 * two_j * h[i, m]
        for i in range(3):
            for j in range(i, 3):
                for m in range(3):
                    x = 4.0 * (one_one + two) * f[i, m]
                    y = 0.0
                    if both:
                        x += 4.0 * one_two * h[i, m]
                        y = 4.0 * (one_two * f[i, m] + two_two * h[i, m])
                    for k in range(3):
                        if coupled:
                            value = side[i, m] * cof[j, k] + cof[i, m] * side[j, k] - swapped * cof[i, k] * cof[j, m]
                        elif volume:
                            value = outer * cof[i, m] * cof[j, k] - swapped * cof[i, k] * cof[j, m]
                        else:
                            value = 0.0
                        if curved:
                            value += x * f[j, k]
                        if both:
                            value += y * h[j, k]
                        if by_two:
                            value -= twice * f[i, k] * f[j, m]
                        out[i, j, m, k] = value
                if by_two:
                    diagonal = -twice * (f[i, 0] * f[j, 0] + f[i, 1] * f[j, 1] + f[i, 2] * f[j, 2])
                    for m in range(3):
                        out[i, j, m, m] += diagonal
            for m in range(3):
                out[i, i, m, m] += plain
            if by_two:
                add_to(out[i, i], -twice, c)
        add_tangent(p, i1, i2, jac, fibres, f, h, cof, out)

    return tangent


def _functions(
    name: str, parameters: tuple[Modulus, ...], formula: Formula, directions: tuple[Modulus, ...]
) -> LawFunctions:
    """Return the compiled functions of the law of a formula."""
    words = [modulus.key.rpartition(".")[2] for modulus in parameters]
    words = [word + "_" * keyword.iskeyword(word) for word in words]
    names = {"I1": "i1", "I2": "i2", "J": "jac"} | {word: f"p[{k}]" for k, word in enumerate(words)}
    names |= {name: f"v[{k}]" for k, name in enumerate(formula.further)}
    n = len(words)
    further = further_part(formula, words, names, write_stress)
    measured, add_stress, add_by_parameters = further.measured, further.add_stress, further.add_by_parameters
    first, second = formula.slopes
    mixed = [[derivative(slope, word) for slope in first] for word in words]
    of_rest, rest_domain = formula.rest()[1:], formula.rest_domain
    of_directions = [ZERO] * len(directions)
    rest = [
        *of_rest,
        *(slope for modulus in of_rest for slope in [*(derivative(modulus, word) for word in words), *of_directions]),
    ]
    given: dict[str, Any] = {"names": names, "domain": formula.domain, **INLINED}
    w = compiled("w", "p, i1, i2, jac, v", [formula.energy], **given)
    w_first = compiled("w_first", "p, i1, i2, jac, v", first, **given)
    w_second = compiled("w_second", "p, i1, i2, jac, v", [*first, *second], **given)
    w_mixed = compiled("w_mixed", "p, i1, i2, jac, v, out", [one for row in mixed for one in row],
                       into=[f"out[{k}, {a}, 0]" for k in range(n) for a in range(3)], **given)  # fmt: skip
    slots = [f"slopes[{i}, {k}]" for i in (0, 1) for k in range(n + len(directions))]
    of_linear_moduli = compiled("linear_moduli", "p, slopes", rest, names, domain=rest_domain, into=slots, **INLINED)

    kept: dict[str, Any] = {"cache": True, "variant": name}

    acting = _Acting.of(first, second)
    by_two = acting.by_two

    @njit(**INLINED, **kept)
    def energy(p, f, cof, jac):
        return w(p, square(f), square(cof) if by_two else 0.0, jac, measured(p, f)[0])

    @njit(**INLINED, **kept)
    def stress(p, f, cof, jac, out):
        i1, i2, fibres = square(f), square(cof) if by_two else 0.0, measured(p, f)
        one, two, by_volume = w_first(p, i1, i2, jac, fibres[0])
        write_stress(f, cof, one, two, by_volume, by_two, out)
        add_stress(p, i1, i2, jac, fibres, out)

    @njit(**INLINED, **kept)
    def by_parameters(p, f, cof, jac, out):
        i1, i2, fibres = square(f), square(cof) if by_two else 0.0, measured(p, f)
        w_mixed(p, i1, i2, jac, fibres[0], out)
        for k in range(n):
            write_stress(f, cof, out[k, 0, 0], out[k, 1, 0], out[k, 2, 0], by_two, out[k])
        add_by_parameters(p, i1, i2, jac, fibres, f, cof, by_two, out)

    @njit(**INNER, **kept)
    def linear_moduli(p, slopes):
        mu, lame = of_linear_moduli(p, slopes)
        return float(mu), float(lame)

    tangent = _tangent(acting, further, w_second, kept)
    return LawFunctions(energy, stress, tangent, by_parameters, linear_moduli)
