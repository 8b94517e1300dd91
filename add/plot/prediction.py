"""Predicted coordinates of markers with their 95 % band, over what was recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import final

import numpy as np
from scipy.special import ndtri

from add.plot.files import BLUE, GREEN, GREY, ORANGE, RED, figure
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


@final
@dataclass(frozen=True, eq=False)
class Panel:
    """The sampled bands of one marker.

    Attributes
    ----------
    name, unit : "m", or "rad" of a direction, on the tangent plane at its mean
    times : (nf,) [s]
    at : (n_levels,) levels of the quantiles
    quantiles : (n_levels, nf, 3)
    linear, linear_sd : (nf, 3), NaN where there is no linear band
    recorded : (nf, 3), NaN where not seen; empty for none
    """

    name: str
    unit: str
    times: FloatArray
    at: FloatArray
    quantiles: FloatArray
    linear: FloatArray
    linear_sd: FloatArray
    recorded: FloatArray


def plot_sampled(panels: Sequence[Panel], path: str | PathLike[str]) -> Path:
    """Draw medians with their bands over time, a row for each marker and a column for each coordinate.

    Light: the outermost quantiles, darker: the 50 % band; dashed: a linear band where it holds; points: recorded.
    """
    shown = panels[:MOST]
    with figure(path, 11.0, 0.8 + 1.9 * len(shown)) as (drawn, path):
        axes = drawn.subplots(len(shown), 3, sharex=True, squeeze=False)
        for row, panel in zip(axes, shown, strict=True):
            factor, unit = (1e3, "mm") if panel.unit == "m" else (1.0, "rad")
            middle, (low, high) = np.searchsorted(panel.at, 0.5), np.searchsorted(panel.at, (0.25, 0.75))
            z = 1.0 if panel.at[0] >= 0.5 else -float(ndtri(panel.at[0]))
            for i, (axis, colour) in enumerate(zip(row, (BLUE, GREEN, RED), strict=True)):
                lines = factor * panel.quantiles[:, :, i]
                share = 100 * (panel.at[-1] - panel.at[0])
                axis.fill_between(panel.times, lines[0], lines[-1], color=colour, alpha=0.18, linewidth=0,
                                  label=f"{share:.0f} %")  # fmt: skip
                axis.fill_between(panel.times, lines[low], lines[high], color=colour, alpha=0.3, linewidth=0,
                                  label="50 %")  # fmt: skip
                axis.plot(panel.times, lines[middle], color=colour, linewidth=1.2, label="median")
                if np.isfinite(panel.linear).any():
                    for sign, label in ((-1.0, "linear"), (1.0, None)):
                        edge = factor * (panel.linear + sign * z * panel.linear_sd)[:, i]
                        axis.plot(panel.times, edge, color=GREY, linewidth=0.9, linestyle="--", label=label)
                if panel.recorded.size:
                    axis.plot(panel.times, factor * panel.recorded[:, i], ".", color="#202124", markersize=2.5,
                              label="recorded")  # fmt: skip
                axis.set_title(f"{panel.name}, {'xyz'[i]} [{unit}]", fontsize=9, loc="left")
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        axes[0, 2].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
    return path


def plot_coverage(columns: Mapping[str, Sequence[float]], level: float, path: str | PathLike[str]) -> Path:
    """Draw which share of the recorded coordinates lies within the bands over time, with the shares that they name."""
    with figure(path, 7.0, 2.6) as (drawn, path):
        axis = drawn.subplots()
        for share, colour in ((0.5, ORANGE), (level, BLUE)):
            name = f"within_{100 * share:g}"
            axis.plot(columns["time_s"], 100 * np.array(columns[name]), color=colour, label=f"{100 * share:g} % band")
            axis.axhline(100 * share, color=colour, linestyle=":", linewidth=1.0)
        axis.set_ylim(-3, 103)
        axis.set_xlabel("time [s]")
        axis.set_ylabel("recorded within [%]")
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return path
