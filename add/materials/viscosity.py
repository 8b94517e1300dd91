"""Laws of viscosity by formula: a dissipation potential psi(trD, DD) of D = sym(F^T F_dot), the rate of Green's strain.

`add.kernels.deformation` has the stress, and calls by address what is compiled here. Damping that is proportional to
the stiffness, mu beta DD + lambda beta/2 trD^2, is a part of every law.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.errors import InputError
from add.kernels.borrowed import floats_at
from add.kernels.by_address import Callee, address
from add.kernels.caching import CALLED, INLINED, njit
from add.kernels.deformation import DISSIPATION
from add.laws import (
    ZERO,
    Expression,
    Symbol,
    compiled,
    derivative,
    evaluate,
    parse,
    substitute,
    symbols,
    unknown_sign,
    walk,
)
from add.materials.formulas import MOST_IN_SLOPES, ROUNDING, Modulus
from add.typing import IntArray

#: Symbols of potentials: tr D [1/s] and D : D [1/s^2].
RATES = ("trD", "DD")
#: Rates |D| of a sample: from creep to shocks [1/s].
SPEEDS = np.logspace(-4.0, 4.0, 41)
_REST = dict.fromkeys(RATES, ZERO)
#: 2 mu beta and lambda beta, in formulas under names that no text can write.
_OF_STIFFNESS = (Symbol("of stiffness: D"), Symbol("of stiffness: tr D"))
_BY_STIFFNESS = substitute(parse("shear/2*DD + volume/2*trD**2"), dict(zip(("shear", "volume"), _OF_STIFFNESS,
                                                                          strict=True)))  # fmt: skip


@final
@dataclass(frozen=True)
class Dissipation:
    """A law of viscosity: a dissipation potential psi [W/m^3] of `RATES` and its numbers.

    A symbol of it is the last word of a parameter's key.
    """

    parameters: tuple[Modulus, ...]
    potential: Expression

    @property
    def words(self) -> list[str]:
        """Symbols of the numbers."""
        return [modulus.key.rpartition(".")[2] for modulus in self.parameters]

    @functools.cached_property
    def stress(self) -> tuple[Expression, Expression]:
        """The factors a of I and c of D in the second Piola stress."""
        return _stress_of(self.potential)

    @functools.cached_property
    def curved(self) -> tuple[Expression, Expression, Expression]:
        """psi_11, 2 psi_12 and 4 psi_22."""
        return _curved(self.stress)

    @functools.cached_property
    def is_linear(self) -> bool:
        """Whether the stress is linear in the rates."""
        volume, both, square = self.curved
        free = not set(RATES) & {*symbols(volume), *symbols(self.stress[1])}
        return free and both == square == substitute(self.stress[0], _REST) == ZERO

    @property
    def scale(self) -> int:
        """The number that the law is a multiple of, or -1."""
        for k, word in enumerate(self.words):
            try:
                left = [substitute(one, {word: ZERO}) for one in self.stress]
            except InputError:  # a division by it
                continue
            if left == [ZERO, ZERO]:
                return k
        return -1

    def require_sound(self, numbers: Mapping[str, float]) -> None:
        """Refuse a law that is too long, lets a number idle, or has no value, a stress or a negative slope at rest.

        Raises
        ------
        InputError
            With the value that is wrong.
        """
        every = [*self.stress, *self.curved, *(derivative(one, word) for word in self.words for one in self.stress)]
        n = sum(1 for _ in walk(every))
        if n > MOST_IN_SLOPES:
            raise InputError("the potential is too long", found=f"derivatives of {n} parts",
                             expected=f"at most {MOST_IN_SLOPES}")  # fmt: skip
        felt = {name for slope in self.stress for name in symbols(slope)}
        for name in sorted(set(numbers) - felt):
            raise InputError("no viscous stress depends on this number", place=f"numbers.{name}")
        at = dict.fromkeys(RATES, 0.0) | dict(numbers)
        with np.errstate(all="ignore"):
            values = [float(evaluate(one, at)) for one in every]
            margins = [float(evaluate(one, at)) for one in unknown_sign(self.potential, frozenset({"DD"}))]
        names = ["dpsi/dtrD", "2 dpsi/dDD", "d2psi/dtrD2", "2 d2psi/dtrD dDD", "4 d2psi/dDD2"]
        names += [f"d2psi/d{by} d{word}" for word in self.words for by in RATES]
        wrong = [f"{name} = {value:g}" for name, value in zip(names, values, strict=True) if not np.isfinite(value)]
        if wrong or any(not margin > ROUNDING for margin in margins):
            found = wrong[0] if wrong else f"a logarithm or broken power of {min(margins):g}"
            raise InputError("the potential has no value at rest, where trD = DD = 0", found=found,
                             expected="numbers, as of (DD + 1e-6)**n in place of DD**n")  # fmt: skip
        pressure, shear, volume = values[:3]
        if abs(pressure) > ROUNDING * max(abs(shear), abs(volume), 1e-12):
            raise InputError("the potential has a stress at rest, where trD = DD = 0",
                             found=f"dpsi/dtrD = {pressure:.6g} Pa", expected="0")  # fmt: skip
        bulk = volume + shear / 3.0
        if shear < 0.0 or bulk < -ROUNDING * shear:
            found = f"viscosities 2 dpsi/dDD = {shear:.6g} Pa s of D and {bulk:.6g} Pa s of tr D"
            raise InputError("the potential drives what moves slowly", found=found, expected="none below 0")

    def drives_at(self, numbers: Mapping[str, float]) -> tuple[float, float, float] | None:
        """Return the slowest rates of a sample that the stress drives in place of braking; None if it brakes all.

        The power is P : F_dot = psi_1 tr D + 2 psi_2 D : D, which no D may make negative: D : D is at least a third of
        tr D squared. Rates at which the formula has no value are passed over.

        Returns
        -------
        |D| and tr D [1/s], the power [W/m^3]
        """
        speed, share = np.meshgrid(SPEEDS, np.linspace(-1.0, 1.0, 9), indexing="ij")
        rates = {"trD": np.sqrt(3.0) * share * speed, "DD": speed**2}
        with np.errstate(all="ignore"):
            volume, shear = (evaluate(one, rates | dict(numbers)) for one in self.stress)
            powers = np.array([volume * rates["trD"], shear * rates["DD"]])
            driven = powers.sum(axis=0) < -ROUNDING * np.abs(powers).sum(axis=0)
        if not driven.any():
            return None
        first = tuple(np.argwhere(driven)[0])
        return float(speed[first]), float(rates["trD"][first]), float(powers.sum(axis=0)[first])


def _stress_of(potential: Expression) -> tuple[Expression, Expression]:
    by_square = derivative(potential, "DD")
    return derivative(potential, "trD"), by_square + by_square


def _curved(stress: tuple[Expression, Expression]) -> tuple[Expression, Expression, Expression]:
    by_square = derivative(stress[1], "DD")
    return derivative(stress[0], "trD"), derivative(stress[1], "trD"), by_square + by_square


_NU = Modulus("viscosity", "Pa s", "viscosity")
#: psi = nu D : D / 2, Eq. 19 of Geilinger et al. 2020.
NEWTONIAN = Dissipation((_NU,), parse("viscosity/2*DD"))
#: psi = nu/h |D|^h; rates below 1e-3/s change the viscosity no more: with h < 2 it would be infinite at rest.
POWER_LAW = Dissipation(
    (_NU, Modulus("viscosity_exponent", "-", "exponent of the rate")),
    parse("viscosity/viscosity_exponent*(DD + 1e-6)**(viscosity_exponent/2)"),
)


@functools.cache
def dissipation_law(
    text: str, names: tuple[str, ...], units: tuple[tuple[str, str], ...], place: str = "viscosity.numbers."
) -> Dissipation:
    """Return the law that a scene or an extension writes; its numbers have their names behind ``place``.

    Parameters
    ----------
    text : formula of psi
    units : (name, unit) of numbers that are not in Pa s

    Raises
    ------
    InputError
        If the text is no formula of `RATES` and these names.
    """
    given = dict(units)
    parameters = tuple(Modulus(place + name, given.get(name, "Pa s"), "number of the potential") for name in names)
    return Dissipation(parameters, parse(text, [*RATES, *names]))


@functools.cache
def callees(law: Dissipation) -> tuple[Callee, ...]:
    """Return the functions of a law by address, with their types."""
    potential = law.potential + _BY_STIFFNESS
    stress = _stress_of(potential)
    words = [*(symbol.name for symbol in _OF_STIFFNESS), *law.words]
    names = {"trD": "trace", "DD": "square"} | {word: f"p[{k}]" for k, word in enumerate(words)}
    domain = unknown_sign(potential, frozenset({"DD"}))

    def made(name: str, values: list[Expression]) -> Callee:
        n_out, into = len(values), [f"out[{k}]" for k in range(len(values))]
        variant = f"{name}_{potential.key}_{len(words)}"
        write: Callable[..., Any] = compiled(
            name, "p, trace, square, out", values, names, domain=domain, into=into, **INLINED
        )

        @njit(**CALLED, nogil=True, variant=variant)
        def by_formula(p, n, trace, square, out):
            write(floats_at(p, (n,)), trace, square, floats_at(out, (n_out,)))

        return DISSIPATION._replace(function=by_formula)

    by_numbers = [derivative(one, word) for word in words for one in stress]
    return made("stress", [*stress]), made("slopes", [*stress, *_curved(stress)]), made("by_numbers", by_numbers)


@functools.cache
def called_dissipation(law: Dissipation) -> IntArray:
    """Return the addresses of a law's functions in this process, compiled if need be, and the number that scales it."""
    return np.array([*map(address, callees(law)), 2 + law.scale if law.scale >= 0 else -1])
