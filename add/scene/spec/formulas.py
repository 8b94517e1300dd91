"""Formulas in scenes: the numbers that they are written with."""

from collections.abc import Callable, Collection

from pydantic import Field

from add.errors import InputError
from add.laws import require_names
from add.scene.spec.common import Name, Number, Role, Spec, Text, problem


class _FormulaSpec(Spec, numbers=Role.PROPERTY):
    """An object with formulas, and the numbers in them."""

    numbers: dict[Name, Number] = Field(description="numbers of the formula by name, each of them a parameter")
    units: dict[Name, Text] = Field(
        {}, description="units of numbers, for reports; of a material that says none they are in Pa"
    )

    def check_formula(self, variables: Collection[str], read: Callable[[], None]) -> None:
        """Refuse names that cannot be, units of nothing, and what reading the formula refuses."""
        for name in set(self.units) - set(self.numbers):
            listed = ", ".join(self.numbers)
            raise problem("there is no such number", key=f"units.{name}", found=name, expected=f"one of {listed}")
        try:
            require_names(self.numbers, variables)
            read()
        except InputError as error:
            key = error.place or "energy"
            raise problem(error.message, key=key, found=error.found, expected=error.expected) from None
