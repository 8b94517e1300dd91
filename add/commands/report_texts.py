"""Numbers, times, names and warnings as the reports of a run write them."""

import csv
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from math import floor, isfinite, log10, sqrt
from typing import Any

from add.summary import counted, few, fields_of

_log = logging.getLogger(__name__)

#: An array of parameters with more entries is one row of a table.
MOST_ROWS = 12


def with_bar(item: Mapping[str, Any]) -> str:
    """Return a number of a result with its standard error, if it has one, and its unit."""
    error = item.get("standard_error")
    return f"{item['value']:.6g}{'' if error is None else f' +- {error:.2g}'} {item['unit']}"


def number(value: object, digits: int = 5) -> str:
    """Write a number for a table; a dash for none.

    Examples
    --------
    >>> number(20483.217), number(0.000123456), number(None), number(12), number(3.0)
    ('20483', '0.00012346', '–', '12', '3')
    """
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return one_line(value)
    if isinstance(value, int):
        return str(value)
    if 0.0 < abs(value) < 1e-4 or abs(value) >= 1e6:
        text = f"{value:.{digits}g}"
        if "e" in text:
            mantissa, exponent = text.split("e")
            return f"{mantissa}e{int(exponent)}"
        return text
    rounded = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in rounded else rounded


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV, with LF at the ends of lines."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


def with_error(value: object, error: object) -> str:
    """Write a value to two digits of its standard error.

    Examples
    --------
    >>> with_error(20483.217, 131.2), with_error(0.41337, 0.0021), with_error(3.0, None)
    ('20480 ± 130', '0.4134 ± 0.0021', '3')
    """
    if not isinstance(value, int | float) or not isinstance(error, int | float) or not isfinite(error) or error <= 0:
        return number(value)
    places = 1 - floor(log10(error))
    if not -5 <= places <= 8:
        return f"{value:.6g} ± {error:.2g}"
    if places <= 0:
        return f"{round(value, places):.0f} ± {round(error, places):.0f}"
    return f"{value:.{places}f} ± {error:.{places}f}"


def how_far(value: object, unit: object = "m", digits: int = 4) -> str:
    """Write how far something is off: a length in mm, an angle in rad, what an extension measures in its unit.

    Examples
    --------
    >>> how_far(0.0123), how_far(0.0123, "rad"), how_far(None)
    ('12.3 mm', '0.0123 rad', '–')
    """
    if not isinstance(value, int | float):
        return "–"
    return f"{number(1e3 * value, digits)} mm" if unit == "m" else f"{number(value, digits)} {unit}".rstrip()


def duration(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> duration(3.21), duration(754.0), duration(7400.0)
    ('3.2 s', '12 min 34 s', '2 h 03 min')
    """
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def end_text(item: Mapping[str, Any]) -> str:
    """Write how often the runs of a prediction ended one way.

    Examples
    --------
    >>> end_text({"count": 5, "runs": 10, "share": 0.5, "lower": 0.187, "upper": 0.813})
    '50 % (5 of 10 runs; 95 % interval 18.7 to 81.3 %)'
    """
    return (
        f"{100 * item['share']:.3g} % ({item['count']} of {item['runs']} runs; 95 % interval "
        f"{100 * item['lower']:.3g} to {100 * item['upper']:.3g} %)"
    )


def by_reason(reasons: Mapping[str, str]) -> dict[str, str]:
    """Return what is said of names -> the names, with commas between them.

    Examples
    --------
    >>> by_reason({"a": "held", "b": "drawn", "c": "held"})
    {'held': 'a, c', 'drawn': 'b'}
    """
    out: dict[str, list[str]] = {}
    for name, why in reasons.items():
        out.setdefault(why, []).append(name)
    return {why: ", ".join(names) for why, names in out.items()}


def targets_left(result: Mapping[str, Any]) -> list[str]:
    """Write how far the runs of an optimisation end off their targets: of several the root mean square and the worst.

    Examples
    --------
    >>> one = {"objective": "objective.0", "type": "point", "of": "tip", "unit": "m", "rms": 0.012, "worst": 0.012}
    >>> two = one | {"objective": "objective.1", "of": "heel", "rms": 0.009, "worst": 0.009}
    >>> targets_left({"experiments": {"run": {"targets": [one]}}})
    ['off the target: 12 mm (objective.0, point of tip)']
    >>> targets_left({"experiments": {"run": {"targets": [one, two]}}})
    ['off 2 targets: rms 10.61 mm, at most 12 mm (objective.0, point of tip)']
    """
    runs = result.get("experiments", {})
    found = [(name, item) for name, run in runs.items() for item in run.get("targets", ())]
    lines = []
    for unit in dict.fromkeys(item["unit"] for _, item in found):
        items = [(name, item) for name, item in found if item["unit"] == unit]
        name, worst = max(items, key=lambda pair: float(pair[1]["worst"]))
        rms = sqrt(sum(item["rms"] ** 2 for _, item in items) / len(items))
        of = " of ".join(filter(None, (worst["type"], worst["of"])))
        which = f" ({worst['objective']}, {of}{f', {name}' if len(runs) > 1 else ''})"
        what = "the target" if len(items) == 1 else f"{len(items)} targets"
        mean = "" if rms == worst["worst"] else f"rms {how_far(rms, unit)}, at most "
        lines.append(f"off {what}: {mean}{how_far(worst['worst'], unit)}{which}")
    return lines


def one_by_one(
    parameters: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Mapping[str, Any]], dict[str, list[Mapping[str, Any]]]]:
    """Split parameters into those that are named each and long arrays, such as the values of a control.

    Examples
    --------
    >>> few, many = one_by_one({f"p[{i}]": {"value": i} for i in range(20)} | {"mass": {"value": 1.0}})
    >>> list(few), {name: len(items) for name, items in many.items()}
    (['mass'], {'p': 20})
    """
    arrays: dict[str, list[Mapping[str, Any]]] = {}
    for path, entry in parameters.items():
        arrays.setdefault(path.partition("[")[0], []).append(entry)
    many = {name: entries for name, entries in arrays.items() if len(entries) > MOST_ROWS}
    return {path: entry for path, entry in parameters.items() if path.partition("[")[0] not in many}, many


def checked(checks: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return name, verdict and entry of the checks of a run, which may be bare values."""
    out = []
    for name, entry in checks.items():
        if not isinstance(entry, Mapping):
            entry = {"passed": entry} if isinstance(entry, bool) else {"value": entry}
        passed = entry.get("passed")
        out.append((name, "–" if passed is None else "passed" if passed else "failed", entry))
    return out


def one_line(value: object) -> str:
    """Write a value as one line of printable letters."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value))
    return text.encode("utf-8", errors="replace").decode("utf-8")


# --- what a ``result.json`` says about contacts: impacts, depths, borders of two modes, and energy that nothing feeds


def impacts_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the impacts in a ``result.json``, those of all experiments."""
    return _entries(result, "impacts")


def _entries(result: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    parts = [result] if key in result else [result, *result.get("experiments", {}).values()]
    return [entry for part in parts for entry in part.get(key, [])]


#: Key of a result -> what its summary begins with.
_SAID = {"mesh_depths": "skins press deep into each other", "sunk": "bodies sank in or went through",
         "gained": "not conserved", "tumbled": "not resolved", "beyond_stops": "stops give way",
         "unstable": "unstable"}  # fmt: skip
#: Pairs that one summary names.
_SHOWN = 3


def _texts(result: Mapping[str, Any], key: str) -> list[str]:
    return [pair["text"] for pair in _entries(result, key) if pair["warning"]]


def _of_contacts(result: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what a summary begins with -> one text a pair of bodies, those of all experiments.

    Of contacts on the border of two modes, skins that used up half their reach, what sank in, energy gained, and starts
    that do not hold.
    """
    weak = [pair["text"] for pair in _entries(result, "weak_contacts")]
    return {"weakly active contacts": weak} | {head: _texts(result, key) for key, head in _SAID.items()}


def contacts_of(result: Mapping[str, Any]) -> list[str]:
    """Return what a ``result.json`` says of pairs of bodies in contact, but of impacts."""
    return [text for texts in _of_contacts(result).values() for text in texts]


def warn_of_contacts(result: Mapping[str, Any]) -> None:
    """Log the impacts of too few steps for the restitution asked for, and one summary of each kind of `contacts_of`."""
    for text in _texts(result, "impacts"):
        _log.warning("%s", text)
    for head, texts in _of_contacts(result).items():
        if texts:
            _log.warning("%s: %s", head, few(texts, _SHOWN, by="; "))


# --- the check of a gradient ------------------------------------------------------------------------------------------


def gradient_text(item: Any) -> str:
    """Lay out one experiment's check as a table."""
    contact = ", ".join(f"{count} {key}" for key, count in item.decisions.items()) or "no contact"
    drawn = " (of targets drawn for the check: the scene's own sees nothing in the window)" if item.drawn else ""
    lines = [
        f"experiment {item.experiment}: {counted(item.n_steps, 'step')}, objective {item.value:.6g}{drawn}, "
        f"contact decisions: {contact}",
        f"{'number':44} {'adjoint':>12} {'held diff.':>12} {'error/norm':>10} {'free diff.':>12} {'error/norm':>10} "
        f"{'slope 1 %':>12} changed",
    ]
    for p in item.parameters:
        lines.append(
            f"{p.name:44} {p.adjoint:12.5e} {p.replayed:12.5e} {p.replayed_error:10.1e} {p.free:12.5e} "
            f"{p.free_error:10.1e} {p.coarse:12.5e} {p.changed}"
        )
    lines.append("(derivatives by relative size: d phi / d ln s, or by a typical size where s = 0)")
    if len(item.parameters) < item.n_numbers:
        lines.append(
            f"({len(item.parameters)} of {item.n_numbers} numbers one by one: of large blocks, such as controls, those "
            "of the largest derivatives and some drawn; all along the directions of the next line)"
        )
    lines.append(
        f"worst error {item.worst:.1e} of the norm {item.norm:.4g}; Taylor rates "
        f"{', '.join(f'{rate:.3f}' for rate in item.taylor_rates)}; "
        f"forward against reverse mode {item.forward_error:.1e}: {'passed' if item.passed else 'FAILED'}"
    )
    lines.append(
        f"trust: slopes grow {item.growth:.3g} times from halfway to the end; a line through the gradients within "
        f"1 % says {item.signal:.3g} times what it leaves"
    )
    if not item.passed and item.value == 0.0 and not any(p.adjoint for p in item.parameters):
        lines.append("note: the objective is 0 in the window and nothing moves it; a longer one (--steps) may see more")
    if item.decisions and not item.decisions.get("touching"):
        lines.append("note: nothing touches within the window; a longer one (--steps) would check the contact as well")
    lines += [f"note: {text}" for text in item.warnings]
    return "\n".join(lines)


def gradient_json(item: Any) -> dict[str, Any]:
    """Return one experiment's check for machines."""
    return {
        "experiment": item.experiment,
        "steps": item.n_steps,
        "drawn_targets": item.drawn,
        **fields_of(item, "passed", "worst", "norm", "taylor_rates", "forward_error", "decisions"),
        "trust": fields_of(item, "growth", "signal"),
        "warnings": item.warnings,
        "parameters": [p._asdict() for p in item.parameters],
    }
