"""What is wanted of the figures, and what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from benchmarks.exactness import TOLERANCE


@final
@dataclass(frozen=True)
class Target:
    """A figure that ought to be at most (or at least) so much; ``where`` says where the time goes."""

    name: str
    found: float
    wanted: float
    at_least: bool = False
    where: str = ""

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.found >= self.wanted if self.at_least else self.found <= self.wanted


def targets(result: dict[str, Any]) -> list[Target]:
    """Return the targets of the sections that were run."""
    return [*_scenes(result), *_table2(result), *_gradients(result), *_sizes(result), *_exactness(result)]


def split(row: dict[str, Any]) -> str:
    """Return where a step's time goes."""
    return (
        f"{row['iterations_per_step']:.2f} iterations a step, {row['over_floor']:.1f} times the factorisations; "
        f"factorise {row['factor_share']:.0%}, solve {row['solve_share']:.0%}, "
        f"other kernels {row['kernel_share']:.0%}, Python {row['python_share']:.0%}"
    )


def _scenes(result: dict[str, Any]) -> Iterator[Target]:
    for row in result.get("scenes", ()):
        name = f"{row['scene']}, {row['law']}"
        if row["law"] == "linear":
            yield Target(f"{name}: ms a step", row["ms_per_step"], row["wanted_ms_per_step"], where=split(row))
        else:
            yield Target(f"{name}: time over that of linear", row["over_linear"], 1.5, where=split(row))


def _table2(result: dict[str, Any]) -> Iterator[Target]:
    for row in result.get("table2", ()):
        if row["wanted_ms_per_step"]:
            yield Target(f"{row['scene']}: ms a step", row["ms_per_step"], row["wanted_ms_per_step"], where=split(row))


def _gradients(result: dict[str, Any]) -> Iterator[Target]:
    for row in result.get("gradients", ()):
        name = f"{row['scene']}, {row['parameters']} parameters: gradient over"
        where = (
            f"{row['iterations_per_step']:.2f} iterations a forward step, so that a sweep of bare units would be "
            f"{row['unit_ms'] / row['forward_ms_per_step']:.2f} of the forward run"
        )
        yield Target(f"{name} forward run", row["gradient_over_forward"], 0.35, where=where)
        beyond = (
            f"a step back takes {row['gradient_ms_per_step']:.3f} ms, its unit {row['unit_ms']:.3f} ms; the rest are "
            "the products with the derivatives by history and parameters, and Python"
        )
        yield Target(f"{name} units", row["gradient_over_units"], 1.5, where=beyond)


def _sizes(result: dict[str, Any]) -> Iterator[Target]:
    if "sizes" in result:
        rows = result["sizes"]["rows"]
        yield Target("growth of the time with tets, exponent", result["sizes"]["exponents"]["ms_per_step"], 1.6)
        for row in rows:
            if row["tets"] >= 2000:
                name = f"block of {row['tets']} tets: share of factorise and solve"
                where = f"{row['iterations_per_step']:.2f} iterations a step; the rest is assembly and the residual"
                yield Target(name, row["linear_share"], 0.6, at_least=True, where=where)


def _exactness(result: dict[str, Any]) -> Iterator[Target]:
    for row in result.get("exactness", ()):
        largest = max(row["step"], row["reactions"], row["cotangents"])
        yield Target(f"{row['scene']}: difference of the back ends", largest, TOLERANCE)
