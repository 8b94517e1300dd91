"""Predicted coordinates of markers with their 95 % band, over what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from add.plot._figure import BLUE, GREEN, RED, figure
from add.typing import FloatArray

#: Markers that are drawn.
MOST = 8


def plot_prediction(
    times: FloatArray,
    positions: FloatArray,
    errors: FloatArray,
    names: list[str],
    path: str | PathLike[str],
    directions: Sequence[bool],
) -> Path:
    """Draw coordinates over time, a row for each marker.

    Parameters
    ----------
    times : (nf,) [s]
    positions, errors : (nf, nm, 3), places and their standard deviations [m]
    names : (nm,)
    path : .png or .svg
    directions : (nm,) markers that are directions, drawn as they are [rad]
    """
    shown = names[:MOST]
    with figure(path, 8.0, 0.6 + 1.8 * len(shown)) as (drawn, path):
        rows = drawn.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for j, (axis, name) in enumerate(zip(rows, shown, strict=True)):
            factor, unit = (1.0, "rad") if directions[j] else (1e3, "mm")
            for i, colour in enumerate((BLUE, GREEN, RED)):
                place, error = factor * positions[:, j, i], 1.96 * factor * errors[:, j, i]
                axis.plot(times, place - place[0], color=colour, linewidth=1.0, label="xyz"[i])
                axis.fill_between(times, place - place[0] - error, place - place[0] + error, color=colour, alpha=0.25)
            axis.set_title(
                f"{name}, at most {1.96 * factor * np.abs(errors[:, j]).max():.3g} {unit} either way",
                fontsize=9,
                loc="left",
            )
            axis.set_ylabel(f"moved [{unit}]")
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
        rows[-1].set_xlabel("time [s]")
    return path
