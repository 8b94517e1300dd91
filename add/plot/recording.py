"""Diagram of a recording: which marker was seen when, and the coordinates over time."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from add.errors import InputError
from add.mocap import Take
from add.plot._figure import BLUE, GREEN, GREY, RED, figure

#: Markers, or signals, that have a row of their own; of more the first are drawn.
MOST_ROWS = 10


def plot_take(take: Take, path: str | PathLike[str], names: Sequence[str] = ()) -> Path:
    """Draw the content of a capture file: when each track was seen, then x, y, z of markers, bodies, angles or signals.

    Parameters
    ----------
    take : what was read
    path : .png or .svg
    names : of markers or signals to draw; default: the first of all
    """
    rows = _rows(take, names)
    markers = take.markers
    tall = 0.0 if markers is None else 0.6 + 0.16 * min(markers.n_markers, 60)
    with figure(path, 9.0, 0.6 + tall + 1.5 * len(rows)) as (drawn, path):
        heights = ([tall] if markers is not None else []) + [1.5] * len(rows)
        axes = drawn.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        if markers is not None:
            shown = markers.names[:60]
            for k, name in enumerate(shown):
                seen = markers.times[markers.valid[:, k]]
                colour = GREY if name in take.unlabelled else BLUE
                axes[0].plot(seen, np.full(seen.shape, k), "|", color=colour, markersize=4)
            axes[0].set_yticks(range(len(shown)), shown, fontsize=6)
            axes[0].set_ylim(len(shown) - 0.5, -0.5)
            axes[0].set_title(f"{Path(take.source).name}: frames in which each track was seen (grey: unlabelled)")
        for axis, (title, unit, times, values, legend) in zip(axes[len(heights) - len(rows) :], rows, strict=True):
            for column, (label, colour) in enumerate(zip(legend, (RED, GREEN, BLUE), strict=False)):
                axis.plot(times, values[:, column], color=colour, label=label, linewidth=1.0)
            axis.set_title(title, fontsize=8, loc="left")
            axis.set_ylabel(f"[{unit}]" if unit else "")
            if len(legend) > 1:
                axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
        for event in take.events:
            for axis in axes:
                axis.axvline(event.time, color="#e37400", linewidth=0.8, linestyle="--")
        axes[-1].set_xlabel("time [s]")
    return path


def _rows(take: Take, names: Sequence[str]) -> list[tuple[str, str, np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Return title, unit, times, values and legend of each row."""
    rows: list[tuple[str, str, np.ndarray, np.ndarray, tuple[str, ...]]] = []
    if take.markers is not None:
        labelled = [name for name in take.markers.names if name not in take.unlabelled] or list(take.markers.names)
        rows += [
            (name, "m", take.markers.times, take.markers.marker(name), ("x", "y", "z"))
            for name in (take.markers.names if names else labelled)
        ]
    rows += [
        (f"{name}, position", "m", pose.times, pose.position, ("x", "y", "z")) for name, pose in take.bodies.items()
    ]
    if take.angles is not None:
        rows += [
            (name, "rad", take.angles.times, take.angles.angles[:, [k]], (name,))
            for k, name in enumerate(take.angles.names)
        ]
    rows += [(item.name, item.unit, item.times, item.values[:, None], (item.name,)) for item in take.signals]
    if names:
        known = {row[0]: row for row in rows}
        missing = [name for name in names if name not in known]
        if missing:
            listed = ", ".join(map(repr, list(known)[:30]))
            raise InputError(
                "there is nothing of that name", file=take.source, found=repr(missing[0]), expected=f"one of {listed}"
            )
        rows = [known[name] for name in names]
    if not rows:
        raise InputError("there is nothing to draw", file=take.source)
    return rows[: max(MOST_ROWS, len(names))]
