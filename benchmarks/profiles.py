"""In which functions the time is, where a target is hard to meet: the profiler's own times, with its own overhead."""

from __future__ import annotations

import cProfile
import pstats
import time
from pathlib import Path

from add.adjoint import value_and_gradient
from add.commands.check_gradient import probe
from add.scene import apply_overrides, load_scene

ROOT = Path(__file__).parents[1]

#: Name, file, changes, steps, whether with the gradient.
CASES: tuple[tuple[str, str, dict[str, str], int, bool], ...] = (
    ("cylinder (Fig. 2), linear", "fig2_cylinder_linear", {}, 500, False),
    ("cylinder (Fig. 2), hybrid", "fig2_cylinder_linear", {"contact.friction_law": "hybrid"}, 500, False),
    ("tori (Fig. 5), hybrid", "fig5_tori", {"contact.friction_law": "hybrid"}, 100, False),
    ("cube on strings", "strings_cube", {}, 60, False),
    ("cube on strings, with its gradient", "strings_cube", {}, 60, True),
)

#: So many functions are named.
TOP = 8

#: With all they call, those beyond this share only say that the run is what takes the time.
MOST = 0.6


def profiles(small: bool) -> list[dict[str, object]]:
    """Profile all cases."""
    rows: list[dict[str, object]] = []
    for name, file, changes, steps, gradient in CASES:
        built = apply_overrides(load_scene(ROOT / "scenes" / f"{file}.json"), changes).build()
        simulation, n_steps = built.simulation, 20 if small else steps
        objective = probe(built, n_steps, 0)
        profiler = cProfile.Profile(time.process_time)
        for enabled in (False, True):
            if enabled:
                profiler.enable()
            if gradient:
                value_and_gradient(simulation, objective, n_steps=n_steps)
            else:
                simulation.run(n_steps=n_steps)
        profiler.disable()
        stats = pstats.Stats(profiler)
        rows.append({"scene": name, "steps": n_steps, "own": _top(stats, False), "inclusive": _top(stats, True)})
        for kind in ("own", "inclusive"):
            top = ", ".join(f"{entry['function']} {entry['share']:.0%}" for entry in rows[-1][kind])  # type: ignore
            print(f"{name}, {kind}: {top}", flush=True)
    return rows


def _top(stats: pstats.Stats, inclusive: bool) -> list[dict[str, object]]:
    """Return the functions that take most time, by themselves or with all that they call."""
    entries = stats.stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in entries.values())
    column = 3 if inclusive else 2
    shares = {key: value[column] / total for key, value in entries.items()}
    if inclusive:
        shares = {key: x for key, x in shares.items() if x < MOST and Path(key[0]).is_relative_to(ROOT / "add")}
    ordered = sorted(shares, key=lambda key: -shares[key])[:TOP]
    return [{"function": _name(*key), "share": shares[key], "calls": entries[key][1]} for key in ordered]


def _name(file: str, line: int, function: str) -> str:
    path = Path(file)
    inside = path.relative_to(ROOT) if path.is_relative_to(ROOT / "add") else Path(path.name)
    # The profiler calls built-in functions "~".
    return f"{inside}: {function}" if file != "~" else function.strip("<>")
