"""Couplings by formula: a pull F(l, l_dot) along the line between two places, from an energy V(l) and a further pull.

F = dV/dl + D(l, l_dot): the derivatives by l, l_dot and the numbers are made from the text, and `line_law` makes
forces, matrices and derivatives by numbers of F. Where a logarithm has no value (a chain at its full length) F is NaN,
which the line search rejects.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.equations.sites import LawValues, Sites
from add.errors import InputError
from add.joints.law import PLACE, Law
from add.joints.law_term import JointLaw
from add.kernels.springs import line_law
from add.laws import ZERO, Expression, compiled, derivative, evaluate, parse, symbols, unknown_sign
from add.typing import AnyArray, FloatArray

#: What a formula may have beside numbers: the distance of the ends [m], and its rate [m/s].
LENGTH, RATE = "l", "l_dot"


@final
@dataclass(frozen=True)
class PullFormula:
    """A kind of coupling: what it stores and what else it pulls with, as texts; either may be empty.

    It makes the term of its couplings, as the class of a kind with a name does.

    Attributes
    ----------
    energy : V(l) [J]
    pull : D(l, l_dot) [N], positive where it draws the ends together
    """

    energy: str
    pull: str

    def __call__(self, sites: Sites, values: LawValues) -> FormulaPull:
        """Return the term; the numbers stand in alphabetical order."""
        return FormulaPull(sites, values, self)

    @functools.cached_property
    def stored(self) -> Expression:
        """V."""
        return parse(self.energy) if self.energy else ZERO

    @functools.cached_property
    def further(self) -> Expression:
        """D."""
        return parse(self.pull) if self.pull else ZERO

    @functools.cached_property
    def total(self) -> Expression:
        """F."""
        return derivative(self.stored, LENGTH) + self.further

    @property
    def domain(self) -> list[Expression]:
        """What must be above zero where the formulas have values."""
        return [one for part in (self.stored, self.further) for one in unknown_sign(part, frozenset((LENGTH,)))]

    @property
    def numbers(self) -> list[str]:
        """Names of the numbers of F, in alphabetical order."""
        return [name for name in symbols(self.total) if name not in (LENGTH, RATE)]

    def require_readable(self, numbers: Collection[str]) -> None:
        """Refuse texts that are no formulas of these numbers, and numbers that the pull does not have.

        Raises
        ------
        InputError
            Its place is the text, or the number.
        """
        for key, text, known in (("energy", self.energy, (LENGTH,)), ("pull", self.pull, (LENGTH, RATE))):
            try:
                parse(text or "0", [*known, *numbers])
            except InputError as error:
                raise InputError(error.message, place=key, found=error.found, expected=error.expected) from None
        unused = sorted(set(numbers) - set(self.numbers))
        if unused:
            raise InputError("the pull dV/dl + D does not have this number", place=f"numbers.{unused[0]}")
        if not self.numbers:
            raise InputError("the pull dV/dl + D has no number", place="numbers", expected="at least one")

    @property
    def law(self) -> Law:
        """The compiled law."""
        return _law(self)


@functools.cache
def _law(formula: PullFormula) -> Law:
    pull, stored = formula.total, formula.stored
    names = formula.numbers
    found = {LENGTH: "length", RATE: "rate"} | {name: f"p[{k}]" for k, name in enumerate(names)}
    by_rate = derivative(pull, RATE)
    values = [pull, derivative(pull, LENGTH), by_rate, *(derivative(pull, name) for name in names)]
    options: dict[str, Any] = {"error_model": "numpy"}
    function = compiled(
        "pull", "length, rate, p, slopes", values, found, domain=formula.domain,
        into=[f"slopes[{k}]" for k in range(len(names))], **options,
    )  # fmt: skip
    name = f"pull-{stored.key}-{formula.further.key}"

    def energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
        at = {LENGTH: np.linalg.norm(y[:, 0] - y[:, 1], axis=1)} | dict(zip(names, p.T, strict=True))
        return float(np.sum(np.broadcast_to(evaluate(stored, at), len(y))))

    force, derivatives = line_law(name, function)
    return Law(name, force, derivatives, (PLACE, PLACE), len(names), reads_rates=by_rate != ZERO, energy=energy)


@final
@dataclass(frozen=True)
class FormulaPull(JointLaw):
    """Central force between two places by a formula, f_a = -F n = -f_b, n the unit vector from b to a.

    Attributes
    ----------
    formula : PullFormula
    """

    formula: PullFormula

    @property
    def law(self) -> Law:  # type: ignore[override]
        """The law of the formula."""
        return self.formula.law
