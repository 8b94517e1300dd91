"""`report.md` and `report.html`: what a run found, for people; the second is one file that fetches nothing."""

import base64
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, StrictUndefined, Template

from add.commands import report_texts
from add.commands.convergence_file import CONVERGENCE, read_convergence
from add.commands.report_texts import how_far, number, one_line
from add.errors import AddError, InputError
from add.io.runfolder import REPORT, REPORT_HTML, RESULT, VERSIONS, RunFolder
from add.plot import experiment_names, plot_run

logger = logging.getLogger(__name__)

_CAPTIONS = {
    "prediction": "Sampled bands of the markers, with their medians; dashed: the linear band where it holds.",
    "coverage": "Share of the recorded coordinates that move within the bands, over time.",
    "landscape": "Objective over the parameters, with its gradient at the samples.",
    "convergence": "Objective (points; line: best so far in the phase) and norm of its gradient over the evaluations.",
    "residuals": "Distance of simulated from recorded markers over time, by experiment.",
    "markers": "Simulated (lines) over recorded (points) markers.",
    "energies": "Energies over time.",
    "newton": "Newton iterations and final residual of every step.",
}

#: Pictures of one run each.
_OF_RUNS = ("markers", "energies", "newton")
#: Correlation matrices up to this size are shown.
MOST_CELLS = 30
_SOURCES = {
    "noise": "noise alone",
    "correlated": "correlated residuals",
    "takes": "with the takes",
    "discretisation": "discretisation",
}
_CITE = (
    "M. Geilinger, D. Hahn, J. Zehnder, M. Bächer, B. Thomaszewski, S. Coros: ADD: Analytically Differentiable "
    "Dynamics for Multi-Body Systems with Frictional Contact. ACM Transactions on Graphics 39 (6), 190, 2020. "
    "doi:10.1145/3414685.3417766 (the method)",
    "The add authors: add, differentiable simulation of soft bodies with frictional contact (the program; its version "
    "is below).",
)
#: What Markdown and the HTML in it take for more than a letter.
_MARKS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "`": "\\`", "[": "\\[", "]": "\\]",
                        "*": "\\*", "\\": "\\\\"})  # fmt: skip


def write_report(
    folder: str | PathLike[str] | RunFolder,
    *,
    draw: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write `report.md` from `result.json`, with the run's pictures linked, and `report.html`, which has them in it.

    Parameters
    ----------
    folder : of the run. Of `result.json` these keys are used, all of them optional: command, scene, status,
        parameters: {path: {value, unit, start, standard_error, lower, upper}}, objective: {start, end, of},
        phases: [{name, evaluations, start, end, status, success}],
        fit: {rms, unit, per_marker: {name: rms}}, experiments: {name: {fit}}, evaluations, seconds,
        checks: {name: {passed, value, expected, unit}}.
    draw : draw the diagrams first (see `add.plot.plot_run`); every .png in the folder is linked in any case
    progress : of the drawing; see `add.plot.plot_run`

    Returns
    -------
    Path
        The report.
    """
    run = folder if isinstance(folder, RunFolder) else RunFolder(folder, create=False)
    result = run.read_json(RESULT)
    if draw:
        try:
            plot_run(run, progress=progress)
        except AddError as error:  # the numbers are worth more than the pictures
            logger.warning("the report has not all of its pictures: %s", error)
    content = _content(run, result)
    page, text = _templates()
    run.write_text(REPORT_HTML, page.render(content))
    return run.write_text(REPORT, re.sub(r"\n{3,}", "\n\n", text.render(content)).strip() + "\n")


@cache
def _templates() -> tuple[Template, Template]:
    """Return those of the page and of the text."""
    # In a page every name is escaped; what is escaped already stays.
    page = Environment(autoescape=True, undefined=StrictUndefined, finalize=_plain)
    text = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text.filters |= {"cell": _cell, "code": _code, "number": number}
    sources = [files("add.commands").joinpath(f"report.{kind}.jinja").read_text("utf-8") for kind in ("html", "md")]
    return page.from_string(sources[0]), text.from_string(sources[1])


def _plain(value: Any) -> Any:
    """Keep what is no printable letter out of the page; what is escaped already stays."""
    return one_line(value) if type(value) is str else value


def _cell(value: object) -> str:
    """Write a text of Markdown so that nothing in it is taken for markup."""
    return one_line(value).translate(_MARKS)


def _code(value: object) -> str:
    """Write a text as code: in there only the end of the code, and that of a cell, are more than letters."""
    return "`" + one_line(value).replace("`", "'").replace("|", "\\|") + "`"


def _content(run: RunFolder, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what both templates show."""
    scene = result.get("scene")
    known = result.get("uncertainty") or {}
    parameters = result.get("parameters") or {}
    few, many = report_texts.one_by_one(parameters)
    prediction = result.get("prediction") or {"texts": [], "ends": []}
    phases = result.get("phases") or []
    fits = _fits(result, known.get("residuals") or {})
    return {
        "result": result,
        "title": (scene.get("name") if isinstance(scene, Mapping) else scene) or "Run",
        "objective": _fall(result.get("objective") or {}),
        "targets": report_texts.targets_left(result),
        "seconds": None if result.get("seconds") is None else report_texts.duration(float(result["seconds"])),
        "not_converged": any(phase.get("success") is False for phase in phases[-1:]),
        "arrays": [_array(name, entries) for name, entries in many.items()],
        "parameters_each": [_parameter(name, entry) for name, entry in few.items()],
        "parameters": parameters,
        "intervals": any(entry.get("interval_lower") is not None for entry in few.values()),
        "with_errors": any(entry.get("standard_error") is not None for entry in parameters.values()),
        "at_bounds": [pair for name, entry in few.items() for pair in _bounds_met(name, entry)],
        "on_bound": [name for name, entry in few.items() if entry.get("at_bound")],
        "prediction": prediction,
        "ends": [[item["end"], report_texts.end_text(item)] for item in prediction["ends"]],
        "uncertainty": known,
        "sources": [
            [name, *(number((entry.get("errors") or {}).get(key), 2) for key in _SOURCES)]
            for name, entry in few.items()
            if entry.get("errors")
        ],
        "source_names": list(_SOURCES.values()),
        "residuals": [
            [name, number(item.get("coordinates")), number(item.get("effective"), 3), number(item.get("p_value"), 2)]
            for name, item in (known.get("residuals") or {}).items()
        ],
        "weak": [item["text"] for item in (*known.get("weak", []), *known.get("changing", []))],
        "matrix": _matrix(known.get("correlation")),
        "levels": _levels(run),
        "fits": fits,
        "compared": [fit["row"] for fit in fits] if len(fits) > 1 else [],
        "impacts": [impact["text"] for impact in report_texts.impacts_of(result)],
        "contacts": report_texts.contacts_of(result),
        "pictures": _pictures(run, experiment_names(result)),
        "phases": [
            [phase.get("name"), phase.get("status") or "–", number(phase.get("evaluations")),
             f"{number(phase.get('start'))} → {number(phase.get('end'))}"]
            for phase in phases
        ],
        "checks": [
            [name, verdict, number(entry.get("value")), number(entry.get("expected")), entry.get("unit") or "–"]
            for name, verdict, entry in report_texts.checked(result.get("checks") or {})
        ],
        "cite": _CITE,
        "versions": list(run.known(VERSIONS).items()) or None,
    }  # fmt: skip


def _fall(objective: Mapping[str, Any]) -> str:
    """Say from where to where the objective fell."""
    start, end = objective.get("start"), objective.get("end")
    if start is None and end is None:
        return ""
    fall = f" ({start / end:.3g} times less)" if start and end and 0.0 < end < start else ""
    return f"{number(start)} → {number(end)}{fall}" + (f", of {objective['of']}" if objective.get("of") else "")


def _parameter(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    low, high = entry.get("lower"), entry.get("upper")
    ends = entry.get("interval_lower"), entry.get("interval_upper")
    by = " (range)" if entry.get("interval_by") == "range of takes" else ""
    return {
        "name": name,
        "more": "",
        "value": report_texts.with_error(entry.get("value"), entry.get("standard_error")),
        "unit": entry.get("unit") or "–",
        "interval": "–" if None in ends else f"{number(ends[0])} … {number(ends[1])}{by}",
        "bar": _bar(entry),
        "start": number(entry.get("start")),
        "bounds": "–" if low is None and high is None else f"{number(low)} … {number(high)}",
    }


def _array(name: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = [entry["value"] for entry in entries if entry["value"] is not None]
    span = f"{number(min(values))} … {number(max(values))}" if values else "–"
    row = {"name": name, "more": f", {len(entries)} numbers", "value": span, "unit": entries[0].get("unit") or "–"}
    return row | {"interval": "–", "bar": None, "start": "–", "bounds": "–"}


def _bounds_met(name: str, entry: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the sides on which a parameter ended at a bound."""
    value = entry.get("value")
    if not isinstance(value, int | float):
        return []
    limits = ((entry.get("lower"), "lower"), (entry.get("upper"), "upper"))
    return [(name, side) for limit, side in limits if limit is not None and abs(value - limit) <= 1e-6 * abs(limit)]


def _bar(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return where interval, value and start lie on a line from 0 to 100."""
    given = [entry.get(key) for key in ("interval_lower", "interval_upper", "value")]
    if not all(isinstance(x, int | float) and np.isfinite(x) for x in given):
        return None
    low, high, value = (float(x) for x in given if x is not None)
    start = entry.get("start")
    room = max(high - low, 1e-300)
    # A start far away would make a point of the interval: it is then left out.
    near = isinstance(start, int | float) and low - 2.0 * room <= start <= high + 2.0 * room
    points = [low, high, value, *([float(start)] if near and start is not None else [])]
    first, span = min(points), max(max(points) - min(points), 1e-300)
    at = [round(5.0 + 90.0 * (x - first) / span, 2) for x in points]
    return {"low": at[0], "high": at[1], "value": at[2], "start": at[3] if near else None}


def _matrix(correlation: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the rows of the correlations with a colour for each: blue for positive, red for negative."""
    if not correlation or not 1 < len(correlation["labels"]) <= MOST_CELLS:
        return []
    out = []
    for name, row in zip(correlation["labels"], correlation["matrix"], strict=False):
        cells = []
        for value in row:
            if value is None:
                cells.append({"text": "–", "colour": "#ffffff"})
                continue
            strength = min(abs(float(value)), 1.0)
            tint = (11, 87, 208) if value > 0 else (217, 48, 37)
            mixed = [round(255 - 0.55 * strength * (255 - part)) for part in tint]
            cells.append({"text": f"{value:.2f}", "colour": "#" + "".join(f"{part:02x}" for part in mixed)})
        out.append({"name": name, "cells": cells})
    return out


def _levels(run: RunFolder) -> list[list[str]]:
    """Return the refined fits of `add converge`, where the folder has them."""
    try:
        convergence = read_convergence(run.path / CONVERGENCE)
    except InputError:
        return []
    rows = []
    for name, entry in convergence["parameters"].items():
        for kind in ("time", "mesh"):
            item = entry.get(kind)
            if isinstance(item, Mapping) and isinstance(item.get("values"), list):
                order = number(item.get("order"), 2) if item.get("converges") else "does not converge"
                order += " (assumed)" if len(item["values"]) < 3 and item.get("converges") else ""
                values = ", ".join(number(value) for value in item["values"])
                rows.append(
                    [name, "steps" if kind == "time" else "meshes", values, order, number(item.get("error"), 2)]
                )
    return rows


def _fits(result: Mapping[str, Any], residuals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how far simulated markers are from recorded ones, take by take, and what the residuals are worth."""
    experiments = result.get("experiments") or {}
    fits: dict[str, Mapping[str, Any]] = {name: item["fit"] for name, item in experiments.items() if item.get("fit")}
    if len(fits) < 2 and result.get("fit"):
        fits = {next(iter(fits), "scene"): result["fit"]}
    out = []
    for name, fit in fits.items():
        known = residuals.get(name) or {}
        use = "predicted" if (experiments.get(name) or {}).get("use") == "validate" else "fitted"
        unit = fit.get("unit")
        angle = f", of directions {how_far(fit['rms_angle'], 'rad')}" if "rms_angle" in fit else ""
        text = f"rms distance {how_far(fit.get('rms'), unit)}{angle} over {number(fit.get('samples'))} samples"
        if known:
            white = {True: "look white", False: "do not look white", None: "are too few to tell"}[known.get("white")]
            text += f". Its residuals {white}: {number(known.get('coordinates'))} coordinates count for "
            text += f"{number(known.get('effective'), 3)}"
        apart, share = known.get("per_marker") or {}, fit.get("rms_over_peak")
        markers, each = [], []
        for marker, item in (fit.get("per_marker") or {}).items():
            item = item if isinstance(item, Mapping) else {"rms": item}
            of = item.get("unit") or unit
            peak = how_far(item.get("peak_displacement"), of)
            row = [marker, how_far(item.get("rms"), of), number(item.get("samples")), peak]
            markers.append([*row, number(apart.get(marker), 3)])
            each.append((marker, number(item.get("rms"), 4), of if of != (unit or "m") and item.get("unit") else ""))
        rms = number(fit.get("rms"), 4)
        percent = f"{100.0 * share:.3g} %" if isinstance(share, int | float) else "–"
        out.append({
            "name": name, "use": use, "text": text + ".", "markers": markers, "each": each, "rms": rms,
            "unit": unit or "m", "angle": number(fit["rms_angle"], 4) if "rms_angle" in fit else "",
            "outside": number(fit["frames_outside"]) if fit.get("frames_outside") else "",
            "row": [name, rms + (" rad" if unit == "rad" else ""), number(fit.get("samples")), percent, use],
        })  # fmt: skip
    return out


def _pictures(run: RunFolder, experiments: Sequence[str]) -> list[dict[str, str]]:
    """Return every picture of the folder with its caption; of several experiments each has its own."""
    captions = dict(_CAPTIONS)
    for k, name in enumerate(experiments if len(experiments) > 1 else ()):
        for kind in _OF_RUNS:
            captions[f"{kind}_{name}" if k else kind] = f"Experiment {name}. {_CAPTIONS[kind]}"
    order = list(captions)
    pictures = sorted(
        run.path.glob("*.png"), key=lambda p: (order.index(p.stem) if p.stem in order else len(order), p.name)
    )
    return [
        {
            "name": path.name,
            "stem": path.stem,
            "link": quote(path.name),
            "caption": captions.get(path.stem, ""),
            "data": "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii"),
        }
        for path in pictures
    ]
