"""Distance of simulated from recorded markers over time, a row for each experiment."""

import csv
from os import PathLike
from pathlib import Path

import numpy as np

from add.errors import InputError
from add.plot._figure import figure

#: Experiments that have a row of their own, and markers that are named in its legend.
MOST_ROWS, MOST_NAMES = 12, 8


def plot_residuals(table: str | PathLike[str], path: str | PathLike[str]) -> Path:
    """Draw `residuals.csv` of a run: the distance of every marker over time, each fitted or predicted take by itself.

    Parameters
    ----------
    table : the file
    path : .png or .svg

    Raises
    ------
    InputError
        If the table is not that of a run.
    """
    takes: dict[tuple[str, str, str], dict[str, list[tuple[float, float]]]] = {}
    try:
        with open(table, encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                angle = row.get("angle_rad")  # of directions; tables of before have none
                off, unit = (float(angle), "rad") if angle else (1e3 * float(row["distance_m"]), "mm")
                take = takes.setdefault((row["experiment"], row["use"], unit), {})
                take.setdefault(row["marker"], []).append((float(row["time_s"]), off))
    except (OSError, UnicodeDecodeError, KeyError, TypeError, ValueError, csv.Error) as error:
        raise InputError(f"not the residuals of a run: {type(error).__name__}", file=table) from error
    if not takes:
        raise InputError("there are no samples to draw", file=table)
    shown = list(takes.items())[:MOST_ROWS]
    with figure(path, 8.0, 0.6 + 1.7 * len(shown)) as (drawn, path):
        rows = drawn.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for axis, ((name, use, unit), markers) in zip(rows, shown, strict=True):
            for marker, samples in markers.items():
                times, distance = np.array(samples).T
                axis.plot(times, distance, ".-", markersize=2.5, linewidth=0.8, label=marker)
            values = np.array([value for samples in markers.values() for _, value in samples])
            word = "predicted" if use == "validate" else "fitted"
            axis.set_title(f"{name}, {word}: rms {np.sqrt((values**2).mean()):.3g} {unit}", fontsize=9, loc="left")
            axis.set_ylabel(f"[{unit}]")
            axis.set_ylim(bottom=0.0)
            if len(markers) <= MOST_NAMES:
                axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
        rows[-1].set_xlabel("time [s]")
    return path
