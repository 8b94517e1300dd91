"""Table 1: times of the scenes with soft bodies, from what the entries of the figures found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.running import LAWS

#: Entries with one throw or fit each.
FITS = {
    "fig10b": "Fig. 10b",
    "fig11b": "Fig. 11b",
    "fig7": "Fig. 7",
    "fig8": "Fig. 8",
}


def run(context: Context) -> Outcome:
    """Collect the rows."""
    rows: list[Row] = []

    def add(name: str, values: Mapping[str, Any], places: Mapping[str, str], published: Mapping[str, str]) -> None:
        for what, place in places.items():
            value: Any = values
            for key in place.split("/"):
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                text = f"{value:.0f}" if what == "simulations" else f"{value:.3g}"
                rows.append(Row(f"{name}: {what}", text, published[what]))

    for key, name in (("fig2", "Fig. 2"), ("fig5", "Fig. 5")):
        for law in LAWS:
            place = {"a simulation [s]": f"seconds.{law}"}
            add(f"{name}, {law}", context.values.get(key, {}), place, {"a simulation [s]": f"{key}.seconds.{law}"})
    for n in ("0", "1", "2"):
        keys = {"a simulation [s]": "seconds", "optimisation [s]": "optimisation", "simulations": "simulations"}
        add(f"Fig. 10a, {n} bounces", context.values.get("fig10a", {}), {k: f"{v}/{n}" for k, v in keys.items()},
            {k: f"fig10a.{v}.{n}" for k, v in keys.items()})  # fmt: skip
    for key, name in FITS.items():
        keys = {"a simulation [s]": "seconds", "optimisation [s]": "optimisation", "simulations": "simulations"}
        add(name, context.values.get(key, {}), keys, {k: f"{key}.{v}" for k, v in keys.items()})
    if not rows:
        rows.append(Row("no entry of a figure has run", "-"))
    notes = (
        "Collected from the sections above. Simulations of Fig. 10a are those until a distance of 1e-6 m, or all "
        "where that was not reached; where the sections above bound an optimisation, its time and count are bounded "
        "with it.",
    )
    return Outcome(tuple(rows), {}, notes)


ENTRY = Entry("table1", "Table 1: scenes with soft bodies", "Times and counts of the scenes above, in one place.", run)
