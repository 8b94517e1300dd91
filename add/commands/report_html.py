"""`report.html`: what a run found, as one file without a network, like a paper's supplement."""

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from add.commands.convergence_file import CONVERGENCE, read_convergence
from add.commands.report_texts import checked, duration, end_text, how_far, number, one_by_one, one_line, with_error
from add.errors import InputError
from add.io.runfolder import REPORT_HTML, VERSIONS, RunFolder

_TEMPLATE = "report.html.jinja"
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


def write_html(run: RunFolder, result: Mapping[str, Any], pictures: Sequence[tuple[str, str]]) -> None:
    """Write `report.html`; every name is escaped, pictures are in the file, nothing is fetched.

    Parameters
    ----------
    run : RunFolder
    result : of `result.json`
    pictures : file name in the folder, caption
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_plain)
    template = environment.from_string(files("add.commands").joinpath(_TEMPLATE).read_text(encoding="utf-8"))
    run.write_text(REPORT_HTML, template.render(_content(run, result, pictures)))


def _plain(value: Any) -> Any:
    """Keep what is no printable letter out of the page; what is escaped already stays."""
    return one_line(value) if type(value) is str else value


def _content(run: RunFolder, result: Mapping[str, Any], pictures: Sequence[tuple[str, str]]) -> dict[str, Any]:
    scene = result.get("scene")
    title = (scene.get("name") if isinstance(scene, Mapping) else scene) or "Run"
    known = result.get("uncertainty") or {}
    parameters = result.get("parameters") or {}
    few, many = one_by_one(parameters)
    prediction = result.get("prediction") or {"texts": [], "ends": []}
    versions = run.read_json(VERSIONS) if run.versions.is_file() else {}
    return {
        "title": title,
        "head": _head(result),
        "warnings": _warnings(result),
        "parameters": [_parameter(name, entry) for name, entry in few.items()]
        + [_array(name, entries) for name, entries in many.items()],
        "notes": [f"{name} ended on its bound." for name, entry in few.items() if entry.get("at_bound")],
        "predicted": [*prediction["texts"], *(f"{item['end']}: {end_text(item)}" for item in prediction["ends"])],
        "contains": [text.replace("`", "") for text in known.get("contains", [])],
        "sources": [
            [name, *(number((entry.get("errors") or {}).get(key), 2) for key in _SOURCES)]
            for name, entry in few.items()
            if entry.get("errors")
        ],
        "source_names": list(_SOURCES.values()),
        "weak": [item["text"] for item in (*known.get("weak", []), *known.get("changing", []))],
        "matrix": _matrix(known.get("correlation"), few),
        "levels": _levels(run),
        "takes": _takes(result, known.get("residuals") or {}),
        "pictures": [
            {"name": name, "caption": caption, "data": _data(run, name)}
            for name, caption in pictures
            if name.endswith(".png")
        ],
        "phases": [
            [phase.get("name"), phase.get("status") or "–", number(phase.get("evaluations")),
             f"{number(phase.get('start'))} → {number(phase.get('end'))}"]
            for phase in result.get("phases") or []
        ],
        "checks": [
            [name, verdict, number(entry.get("value")), number(entry.get("expected"))]
            for name, verdict, entry in checked(result.get("checks") or {})
        ],
        "cite": _CITE,
        "versions": list(versions.items()),
    }  # fmt: skip


def _head(result: Mapping[str, Any]) -> list[str]:
    objective = result.get("objective") or {}
    texts = [
        f"add {result['command']}"
        if result.get("command") in ("optimize", "simulate", "sweep", "predict")
        else result.get("command")
    ]
    texts.append(result.get("status"))
    if objective.get("end") is not None:
        texts.append(f"objective {number(objective.get('start'))} → {number(objective['end'])}")
    if result.get("evaluations") is not None:
        texts.append(f"{number(result['evaluations'])} evaluations")
    if result.get("seconds") is not None:
        texts.append(duration(float(result["seconds"])))
    return [text for text in texts if text]


def _warnings(result: Mapping[str, Any]) -> list[str]:
    out = [result["message"]] if result.get("message") else []
    last = (result.get("phases") or [])[-1:]
    if any(phase.get("success") is False for phase in last):
        out.append(f"The fit did not converge: {last[0].get('status')}")
    return out


def _parameter(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    low, high = entry.get("lower"), entry.get("upper")
    ends = entry.get("interval_lower"), entry.get("interval_upper")
    by = " (range)" if entry.get("interval_by") == "range of takes" else ""
    return {
        "name": name,
        "value": with_error(entry.get("value"), entry.get("standard_error")),
        "unit": entry.get("unit") or "–",
        "interval": "–" if None in ends else f"{number(ends[0])} … {number(ends[1])}{by}",
        "bar": _bar(entry),
        "start": number(entry.get("start")),
        "bounds": "–" if low is None and high is None else f"{number(low)} … {number(high)}",
    }


def _array(name: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = [entry["value"] for entry in entries if entry["value"] is not None]
    span = f"{number(min(values))} … {number(max(values))}" if values else "–"
    row = {"name": f"{name}, {len(entries)} numbers", "value": span, "unit": entries[0].get("unit") or "–"}
    return row | {"interval": "–", "bar": None, "start": "–", "bounds": "–"}


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


def _matrix(correlation: Mapping[str, Any] | None, few: Mapping[str, Any]) -> list[dict[str, Any]]:
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
    path = run.path / CONVERGENCE
    if not path.is_file():
        return []
    try:
        found = read_convergence(path)
    except InputError:
        return []
    rows = []
    for name, entry in found["parameters"].items():
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


def _takes(result: Mapping[str, Any], residuals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fit of each take by marker, with what its residuals are worth."""
    experiments = result.get("experiments") or {}
    fits: dict[str, Mapping[str, Any]] = {name: item["fit"] for name, item in experiments.items() if item.get("fit")}
    if not fits and result.get("fit"):
        fits = {"scene": result["fit"]}
    out = []
    for name, fit in fits.items():
        known = residuals.get(name) or {}
        use = (experiments.get(name) or {}).get("use")
        unit = fit.get("unit")
        angle = f", of directions {how_far(fit['rms_angle'], 'rad')}" if "rms_angle" in fit else ""
        text = f"rms distance {how_far(fit.get('rms'), unit)}{angle} over {number(fit.get('samples'))} samples"
        if known:
            white = {True: "look white", False: "do not look white", None: "are too few to tell"}[known.get("white")]
            text += f". Its residuals {white}: {number(known.get('coordinates'))} coordinates count for "
            text += f"{number(known.get('effective'), 3)}"
        apart = known.get("per_marker") or {}
        markers = []
        for marker, item in (fit.get("per_marker") or {}).items():
            item = item if isinstance(item, Mapping) else {"rms": item}
            unit = item.get("unit") or unit
            peak = how_far(item.get("peak_displacement"), unit)
            row = [marker, how_far(item.get("rms"), unit), number(item.get("samples")), peak]
            markers.append([*row, number(apart.get(marker), 3)])
        use = "predicted" if use == "validate" else "fitted"
        out.append({"name": name, "use": use, "text": text + ".", "markers": markers})
    return out


def _data(run: RunFolder, name: str) -> str:
    """Return a picture as a data URI."""
    return "data:image/png;base64," + base64.b64encode((run.path / name).read_bytes()).decode("ascii")
