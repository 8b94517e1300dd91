"""Table 2: trajectory optimisation with Gauss-Newton."""

from __future__ import annotations

from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.table2 import measure

NAMES = ("strings_cube", "sheet_flip", "robot_rigid", "robot_soft_feet")


def run(context: Context) -> Outcome:
    """Measure the four scenes; in a short run the first alone."""
    rows = []
    for name in NAMES[:1] if context.short else NAMES:
        found = measure(name)
        rows += [
            Row(f"{name}: coordinates, parameters a step, steps",
                f"{found.coordinates}, {found.parameters // found.steps}, {found.steps}", f"table2.size.{name}"),
            Row(f"{name}: a simulation [s]", f"{found.simulation:.3f}", f"table2.seconds.{name}"),
            Row(f"{name}: simulations", str(found.evaluations), f"table2.iterations.{name}"),
            Row(f"{name}: optimisation [s]", f"{found.optimisation:.1f}", f"table2.optimisation.{name}"),
            Row(f"{name}: objective", f"{found.start:.3g} -> {found.end:.3g}"),
        ]  # fmt: skip
    notes = (
        "Processor time of one thread. [Trajectory optimisation](table2.md) has pictures, neighbours of these scenes, "
        "and what the paper does not give and was chosen.",
    )
    return Outcome(tuple(rows), {}, notes)


ENTRY = Entry("table2", "Table 2: trajectory optimisation", "Controls of every step with Gauss-Newton.", run)
