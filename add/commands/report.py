"""`report.md`, and beside it `report.html`: what a run found, for people."""

import logging
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

from add.commands.report_html import write_html
from add.commands.report_texts import checked, duration, end_text, number as in_digits, one_by_one, one_line, with_error
from add.errors import AddError
from add.io.hdf5 import impacts_of, mesh_depths_of, weak_contacts_of
from add.io.runfolder import REPORT, RESULT, VERSIONS, RunFolder
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
        parameters: {path: {value, unit, start, standard_error, lower, upper}}, objective: {start, end},
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
    pictures = _found_pictures(run, experiment_names(result))
    write_html(run, result, pictures)
    parts = [
        _head(result),
        _phases(result.get("phases") or []),
        _prediction(result.get("prediction")),
        _parameters(result.get("parameters") or {}),
        _uncertainty(result),
        _fits(result),
        _impacts(result),
        _weak_contacts(result),
        _checks(result.get("checks") or {}),
        _pictures(pictures),
        _versions(run),
    ]
    return run.write_text(REPORT, "\n\n".join(part for part in parts if part) + "\n")


#: What Markdown and the HTML in it take for more than a letter.
_MARKS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "`": "\\`", "[": "\\[", "]": "\\]",
                        "*": "\\*", "\\": "\\\\"})  # fmt: skip


def number(value: object, digits: int = 5) -> str:
    """Write a number for a table of Markdown; a dash for none."""
    return in_digits(value, digits) if value is None or isinstance(value, int | float) else _cell(value)


def _cell(value: object) -> str:
    """Write a text so that nothing in it is taken for markup."""
    return one_line(value).translate(_MARKS)


def _code(value: object) -> str:
    """Write a text as code: in there only the end of the code, and that of a cell, are more than letters."""
    return "`" + one_line(value).replace("`", "'").replace("|", "\\|") + "`"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int = 1) -> str:
    rule = ["---" if i < numbers_from else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])


def _head(result: Mapping[str, Any]) -> str:
    scene = result.get("scene")
    if isinstance(scene, Mapping):
        scene = scene.get("name")
    objective = result.get("objective") or {}
    start, end = objective.get("start"), objective.get("end")
    rows = []
    if result.get("command"):
        rows.append(["command", _code(result["command"])])
    if result.get("status"):
        rows.append(["status", _cell(result["status"]) + _limits(result.get("phases") or [])])
    if end is not None or start is not None:
        fall = f" ({start / end:.3g} times less)" if start and end and 0.0 < end < start else ""
        rows.append(["objective", f"{number(start)} → {number(end)}{fall}"])
    if result.get("gradient"):
        rows.append(["gradient", _cell(result["gradient"])])
    if result.get("evaluations") is not None:
        rows.append(["evaluations", number(result["evaluations"])])
    if result.get("seconds") is not None:
        rows.append(["wall time", duration(float(result["seconds"]))])
    return f"# {_cell(scene or 'Run')}\n\n" + _table(["", ""], rows, numbers_from=2)


def _limits(phases: Sequence[Mapping[str, Any]]) -> str:
    """Say in brief if the last phase, whose result the run's is, did not converge."""
    last = phases[-1:]
    return ", not converged" if any(phase.get("success") is False for phase in last) else ""


def _prediction(found: Mapping[str, Any] | None) -> str:
    """Say what the runs of a prediction make: bands, how far a linear one holds, ends."""
    if not found:
        return ""
    parts = ["## Prediction", "\n".join(f"- {_cell(text)}" for text in found["texts"])]
    if found["ends"]:
        parts.append(_table(["end", "how likely"], [[_cell(item["end"]), end_text(item)] for item in found["ends"]]))
    return "\n\n".join(parts)


def _impacts(result: Mapping[str, Any]) -> str:
    """Say how many steps the shortest impacts lasted, and what that does to their restitution."""
    lines = [f"- {_cell(impact['text'])}" for impact in impacts_of(result)]
    return "\n".join(["## Impacts", "", *lines]) if lines else ""


def _weak_contacts(result: Mapping[str, Any]) -> str:
    """Say which contacts were on the border of two modes, how well they were solved, and which skins are too soft."""
    lines = [f"- {_cell(text)}" for text in (*weak_contacts_of(result), *mesh_depths_of(result))]
    certificate = result.get("contact_certificate")
    if certificate:
        lines.append(f"- Contacts are solved to a natural map of {number(certificate['natural_map'], 2)}.")
    return "\n".join(["## Contacts", "", *lines]) if lines else ""


def _parameters(parameters: Mapping[str, Mapping[str, Any]]) -> str:
    if not parameters:
        return ""
    rows, notes = [], []
    few, many = one_by_one(parameters)
    intervals = int(any(entry.get("interval_lower") is not None for entry in few.values()))
    for name, entries in many.items():
        values = [entry["value"] for entry in entries if entry["value"] is not None]
        span = f"{number(min(values))} … {number(max(values))}" if values else "–"
        unit = _cell(entries[0].get("unit") or "–")
        rows.append([f"{_code(name)}, {len(entries)} numbers", span, unit, "–", "–", *["–"] * intervals])
    for path, entry in few.items():
        value, error = entry.get("value"), entry.get("standard_error")
        low, high = entry.get("lower"), entry.get("upper")
        bounds = "–" if low is None and high is None else f"{number(low)} … {number(high)}"
        ends = entry.get("interval_lower"), entry.get("interval_upper")
        interval = "–" if None in ends else f"{number(ends[0])} … {number(ends[1])}"
        interval += " (range)" if None not in ends and entry.get("interval_by") == "range of takes" else ""
        unit = _cell(entry.get("unit") or "–")
        rows.append([_code(path), with_error(value, error), unit, number(entry.get("start")), bounds])
        rows[-1] += [interval] * intervals
        for limit, side in ((low, "lower"), (high, "upper")):
            if isinstance(value, int | float) and limit is not None and abs(value - limit) <= 1e-6 * abs(limit):
                notes.append(f"{_code(path)} ended at its {side} bound: the objective wants it beyond.")
    if any(entry.get("standard_error") is not None for entry in parameters.values()):
        notes.append("± is one standard error; what it contains stands below.")
    table = _table(["parameter", "value", "unit", "start", "bounds", *["95 % interval"] * intervals], rows)
    return "\n\n".join(["## Parameters", table, *notes])


def _uncertainty(result: Mapping[str, Any]) -> str:
    """Say what the error bars contain, where they come from, and what the data hardly see."""
    known = result.get("uncertainty")
    if not known:
        return ""
    parts = ["## Uncertainty", "\n".join(f"- {_cell(text)}" for text in known.get("contains", []))]
    few, _ = one_by_one(result.get("parameters") or {})
    sources = ("noise", "correlated", "takes", "discretisation")
    rows = [
        [_code(path), *(number((entry.get("errors") or {}).get(name), 2) for name in sources)]
        for path, entry in few.items()
        if entry.get("errors")
    ]
    if rows:
        head = ["standard error of", "noise alone", "correlated residuals", "with the takes", "discretisation"]
        parts.append(_table(head, rows))
    takes = [
        [_cell(name), number(item.get("coordinates")), number(item.get("effective"), 3), number(item.get("p_value"), 2)]
        for name, item in (known.get("residuals") or {}).items()
    ]
    if takes:
        parts.append(_table(["take", "coordinates recorded", "independent", "p of white residuals"], takes))
    for pair in known.get("tied", []):
        names = f"{_code(pair['a'])} and {_code(pair['b'])}"
        parts.append(f"The errors of {names} go together (correlation {pair['correlation']:+.3f}).")
    parts += [_cell(item["text"]) + "." for item in (*known.get("weak", []), *known.get("changing", []))]
    return "\n\n".join(part for part in parts if part)


def _phases(phases: Sequence[Mapping[str, Any]]) -> str:
    """Say how each phase ended, and which did not converge."""
    if not phases:
        return ""
    rows, notes = [], []
    for phase in phases:
        objective = f"{number(phase.get('start'))} → {number(phase.get('end'))}"
        status = _cell(phase.get("status") or "–")
        rows.append([_cell(phase.get("name")), status, number(phase.get("evaluations")), objective])
        if phase.get("success") is False:
            notes.append(f"**Phase {_cell(phase.get('name'))} did not converge**: {status}.")
    table = _table(["phase", "ended with", "evaluations", "objective"], rows, numbers_from=2)
    return "\n\n".join(["## Phases", table, *notes])


def _fits(result: Mapping[str, Any]) -> str:
    """Say how far simulated markers are from recorded ones: of several experiments, of each."""
    names = experiment_names(result)
    fits = {name: result["experiments"][name].get("fit") or {} for name in names}
    if sum(bool(fit) for fit in fits.values()) < 2:
        only = result.get("fit") or next((fit for fit in fits.values() if fit), {})
        return "## Fit\n\n" + _fit(only) if only else ""
    uses = {name: "predicted" if result["experiments"][name].get("use") == "validate" else "fitted" for name in names}
    rows = [
        [
            _cell(name),
            number(fit.get("rms"), 4) + (" rad" if fit.get("unit") == "rad" else ""),
            number(fit.get("samples")),
            _percent(fit.get("rms_over_peak")),
            uses[name],
        ]
        for name, fit in fits.items()
        if fit
    ]
    head = ["experiment", "rms distance [m]", "samples", "rms over the largest displacement", "use"]
    parts = ["## Fit", _table(head, rows)]
    for name, fit in fits.items():
        if fit:
            parts += [f"### Experiment {_cell(name)}, {uses[name]}", _fit(fit)]
    return "\n\n".join(parts)


def _percent(share: object) -> str:
    return f"{100.0 * share:.3g} %" if isinstance(share, int | float) else "–"


def _fit(fit: Mapping[str, Any]) -> str:
    unit = fit.get("unit") or "m"
    mixed = "rms_angle" in fit
    rows = [["all points" if mixed else "all", number(fit.get("rms"), 4)]]
    rows += [["all directions", f"{number(fit['rms_angle'], 4)} rad"]] if mixed else []
    for name, value in (fit.get("per_marker") or {}).items():
        value = value if isinstance(value, Mapping) else {"rms": value}
        own = f" {_cell(value['unit'])}" if value.get("unit", unit) != unit else ""
        rows.append([_cell(name), number(value.get("rms"), 4) + own])
    parts = [_table(["marker", f"rms {'angle' if unit == 'rad' else 'distance'} [{_cell(unit)}]"], rows)]
    if fit.get("frames_outside"):
        outside = number(fit["frames_outside"])
        parts.append(f"{outside} recorded frames lie beyond the run, whose motion is continued straight on there.")
    return "\n\n".join(parts)


def _checks(checks: Mapping[str, Any]) -> str:
    if not checks:
        return ""
    rows = []
    for name, verdict, entry in checked(checks):
        verdict = f"**{verdict}**" if verdict == "failed" else verdict
        value, expected = number(entry.get("value")), number(entry.get("expected"))
        rows.append([_cell(name), verdict, value, expected, _cell(entry.get("unit") or "–")])
    return "## Checks\n\n" + _table(["check", "", "value", "expected", "unit"], rows)


def _found_pictures(run: RunFolder, experiments: Sequence[str]) -> list[tuple[str, str]]:
    """Return every picture of the folder with its caption; of several experiments each has its own."""
    captions = dict(_CAPTIONS)
    for k, name in enumerate(experiments if len(experiments) > 1 else ()):
        for kind in _OF_RUNS:
            captions[f"{kind}_{name}" if k else kind] = f"Experiment {name}. {_CAPTIONS[kind]}"
    order = list(captions)
    found = sorted(
        run.path.glob("*.png"), key=lambda p: (order.index(p.stem) if p.stem in order else len(order), p.name)
    )
    return [(path.name, captions.get(path.stem, "")) for path in found]


def _pictures(pictures: Sequence[tuple[str, str]]) -> str:
    """Link every picture."""
    blocks = []
    for name, caption in pictures:
        blocks.append(f"![{_cell(Path(name).stem)}]({quote(name)})" + (f"\n\n{_cell(caption)}" if caption else ""))
    return "\n\n".join(["## Pictures", *blocks]) if blocks else ""


def _versions(run: RunFolder) -> str:
    if not run.versions.is_file():
        return ""
    found = run.read_json(VERSIONS)
    return "## Versions\n\n" + ", ".join(f"{_cell(name)} {_cell(version)}" for name, version in found.items())
