"""The page docs/benchmarks.md from the figures of one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.targets import Target, targets

Column = tuple[str, Callable[[dict[str, Any]], str]]


def page(result: dict[str, Any]) -> str:
    """Return the page."""
    parts = [
        "# Benchmarks",
        "`python -m benchmarks` measures everything here, prints it, writes `benchmarks/results/latest.json` and adds\n"
        "a line to `history.jsonl` beside it; `--page docs/benchmarks.md` writes this page from the figures,\n"
        "`--from FILE` from stored ones. `--small` takes a minute, `--only scenes gradients` some parts.",
        _where(result),
        "## Targets",
        _targets(targets(result)),
        "The functions with most time, by themselves and with all that they call (those below 60 %). The profiler\n"
        "makes short calls look longer than they are:",
        _profiles(result["profiles"]),
        "## Scenes of the original program",
        "The same meshes, steps and tolerances. The original C++ program ran on another machine (2.5 GHz, one\n"
        "thread), so that a ratio to it is an order of magnitude. Floor: all factorisations at their median time.\n"
        "Kernels: compiled functions other than the linear algebra. Python: the rest of a step, NumPy included.",
        _table(result["scenes"], [_SCENE, _LAW, *_COMMON, _ORIGINAL, _ORIGINAL_ITERATIONS]),
        "## Scenes of Table 2",
        "The paper's times are from four cores at 3.5 GHz; the scenes are ours, with its numbers of coordinates and\n"
        "steps.",
        _table(result["table2"], [_SCENE, _SIZE, *_COMMON, _PAPER, _OVERHEAD, _CALLS]),
        "## Gradients",
        "A backward sweep against the forward pass of the same call, and against its units: one assembly, one\n"
        "factorisation and one solve at each recorded step. A sweep gives the derivatives by all parameters of a\n"
        "scene at once, so that the first row of a soft scene, its physical numbers, is also the price of a single\n"
        "one; the second has a load of 1002 numbers more. Where the forward run needs little more than one iteration\n"
        "a step (flight, rest), a gradient costs about as much as the run.",
        _table(result["gradients"], _GRADIENTS),
        "## Sizes",
        "A block of linear tetrahedra falls on a floor; each size in a process of its own, five steps after the\n"
        "first. The peak memory includes interpreter and libraries, about 250 MB.",
        _table(result["sizes"]["rows"], _SIZES),
        _growth(result["sizes"]),
        *([_CONES, _cones(result["cones"])] if "cones" in result else []),
        "## Exactness",
        "Single steps from stored states with both back ends, solved as far as round-off allows: relative differences\n"
        "of velocities, of the reactions of held points, and of cotangents pulled back through the step.",
        _table(result["exactness"], _EXACTNESS),
        "## Back ends",
        "Boxes of tetrahedra, nodes numbered at random; see [linear algebra](performance.md#linear-algebra). First:\n"
        "with the analysis. Symmetric: as the fallback sets SuperLU up.",
        _table(result["back_ends"]["boxes"], _BOXES),
        "One factorisation and one solve where dense and sparse meet:",
        _table(result["back_ends"]["break_even"], _BREAK_EVEN),
    ]
    return "\n\n".join(parts) + "\n"


def _where(result: dict[str, Any]) -> str:
    machine = result["machine"]
    changed = f" and {result['changed_files']} changed files" if result["changed_files"] else ""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"{machine['processor']}, {machine['cores']} virtual cores; {result['date'][:10]}, commit\n"
        f"`{result['commit'][:10]}`{changed}; {versions}; {result['seconds'] / 60:.0f} minutes.\n"
        "All times are processor time of one thread, the least of repeats (one run for SuperLU and for the\n"
        "shares), and both sides of a ratio come from the same process: other work ran on the machine\n"
        f"(load {machine['load']:.1f}) and shared its caches and memory, which still costs some per cent.\n"
        "SuperLU stands for `scipy.sparse.linalg.splu(J)` with its defaults and one\n"
        "step of refinement, in the same program."
    )


_CONES = "## Contact without penalties"


def _cones(cones: dict[str, Any]) -> str:
    """Return figures of contact by impulses, and the layers beside cone programs where these were installed."""
    step = cones["step"]
    compiled = f", compiled {step['compiled_ms_per_step']:.3f}" if "compiled_ms_per_step" in step else ""
    columns: list[Column] = [
        ("contacts", lambda row: f"{row['contacts']:.0f}"),
        ("forward [us]", lambda row: f"{row['forward_us']:.0f}"),
        ("backward [us]", lambda row: f"{row['backward_us']:.0f}"),
    ]
    for name, title in (("layer", "cvxpylayers"), ("program", "diffcp alone")):
        for way in ("forward", "backward"):
            key = f"{name}_{way}_over_ours"
            columns.append(
                (f"{title}, {way}: times ours", lambda row, key=key: f"{row[key]:.0f}" if key in row else "")
            )  # type: ignore[misc]
    return (
        f"One cube that slides to rest on four corners: {step['impulse_ms_per_step']:.3f} ms a step by impulses;\n"
        f"linear penalties {step['linear_ms_per_step']:.3f} by the terms{compiled},\n"
        f"hybrid {step['hybrid_ms_per_step']:.3f}. By impulses over linear: {step['over_linear']:.2f};\n"
        f"pull-back over the step: {step['pullback_over_step']:.2f}. The friction layer (diagonal G, entries\n"
        "exp(U(-10, 10))) beside a differentiated cone program, each in loops of its own:\n\n"
        + _table(cones["layers"], columns)
    )


def _growth(sizes: dict[str, Any]) -> str:
    a, b = sizes["rows"][-2:]

    def last(name: str) -> float:
        return math.log(b[name] / a[name]) / math.log(b["tets"] / a["tets"])

    return (
        "Exponents over the number of tetrahedra, fitted to all sizes (and between the last two): "
        + ", ".join(f"{_EXPONENTS[name]} {value:.2f} ({last(name):.2f})" for name, value in sizes["exponents"].items())
        + "."
    )


def _table(rows: Iterable[dict[str, Any]], columns: Sequence[Column]) -> str:
    lines = ["| " + " | ".join(title for title, _ in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(show(row) for _, show in columns) + " |" for row in rows]
    return "\n".join(lines)


def _targets(found: list[Target]) -> str:
    missed = [target for target in found if not target.met]
    lines = ["| figure | found | wanted | |", "|---|---|---|---|"]
    for target in found:
        sign = ">=" if target.at_least else "<="
        state = "met" if target.met else "**not met**"
        lines.append(f"| {target.name} | {target.found:.3g} | {sign} {target.wanted:g} | {state} |")
    text = f"{len(found) - len(missed)} of {len(found)} are met.\n\n" + "\n".join(lines)
    if missed:
        text += "\n\nWhere those that are not met spend their time:\n\n"
        text += "\n".join(
            f"- {target.name}: {target.found:.3g}. {target.where}".rstrip(" .") + "." for target in missed
        )
    return text


def _profiles(rows: Iterable[dict[str, Any]]) -> str:
    def top(row: dict[str, Any], kind: str) -> str:
        return ", ".join(f"`{entry['function']}` {entry['share']:.0%}" for entry in row[kind])

    return "\n".join(f"- {row['scene']}: {top(row, 'own')}; inclusive {top(row, 'inclusive')}." for row in rows)


def _number(title: str, key: str, form: str) -> Column:
    def show(row: dict[str, Any]) -> str:
        value = row.get(key)
        return "" if value is None else format(value, form)

    return title, show


_SCENE = _number("scene", "scene", "")
_LAW = _number("friction", "law", "")
_SIZE = _number("coordinates", "coordinates", "")
_COMMON = [
    _number("ms a step", "ms_per_step", ".3g"),
    _number("iterations", "iterations_per_step", ".2f"),
    _number("factorisations", "factorizations_per_step", ".2f"),
    _number("ms each", "ms_per_factorization", ".3g"),
    _number("step / floor", "over_floor", ".2f"),
    _number("factorise", "factor_share", ".0%"),
    _number("solve", "solve_share", ".0%"),
    _number("kernels", "kernel_share", ".0%"),
    _number("Python", "python_share", ".0%"),
    _number("SuperLU / ours", "superlu_over_ours", ".2f"),
]
_ORIGINAL = _number("original [ms]", "original_ms_per_step", ".0f")
_ORIGINAL_ITERATIONS = _number("its iterations", "original_iterations", ".1f")
_PAPER = _number("paper [ms]", "paper_ms_per_step", ".2f")
_OVERHEAD = _number("Python an iteration [us]", "python_us_per_iteration", ".0f")
_CALLS = _number("kernel calls an iteration", "kernel_calls_per_iteration", ".0f")
_GRADIENTS = [
    _SCENE,
    _number("parameters", "parameters", ""),
    _number("iterations", "iterations_per_step", ".2f"),
    _number("forward [ms a step]", "forward_ms_per_step", ".3g"),
    _number("gradient [ms a step]", "gradient_ms_per_step", ".3g"),
    _number("gradient / forward", "gradient_over_forward", ".2f"),
    _number("unit [ms]", "unit_ms", ".3g"),
    _number("gradient / units", "gradient_over_units", ".2f"),
]
_SIZES = [
    _number("tets", "tets", ""),
    _SIZE,
    _number("ms a step", "ms_per_step", ".3g"),
    _number("iterations", "iterations_per_step", ".2f"),
    _number("ms a factorisation", "ms_per_factorization", ".3g"),
    _number("factorise and solve", "linear_share", ".0%"),
    _number("peak memory [MB]", "peak_MB", ".0f"),
    _number("SuperLU / ours, a step", "superlu_over_ours", ".2f"),
]
_EXPONENTS = {"ms_per_step": "time a step", "ms_per_factorization": "a factorisation", "peak_MB": "peak memory"}
_EXACTNESS = [
    _SCENE,
    ("from states", lambda row: ", ".join(str(k) for k in row["steps"])),
    _number("step", "step", ".1e"),
    _number("reactions", "reactions", ".1e"),
    _number("multipliers", "multipliers", ""),
    _number("cotangents", "cotangents", ".1e"),
]
_BOXES = [
    _number("nodes", "nodes", ""),
    _number("tets", "tets", ""),
    _number("back end", "back_end", ""),
    _number("first [ms]", "first_ms", ".3g"),
    _number("factor [ms]", "factor_ms", ".3g"),
    _number("solve [ms]", "solve_ms", ".3g"),
    _number("transposed [ms]", "transposed_ms", ".3g"),
    _number("factor / ours", "over_ours", ".2f"),
]
_BREAK_EVEN = [
    _number("unknowns", "unknowns", ""),
    _number("dense [us]", "dense_us", ".0f"),
    _number("fronts [us]", "fronts_us", ".0f"),
    _number("SuperLU [us]", "superlu_us", ".0f"),
]
