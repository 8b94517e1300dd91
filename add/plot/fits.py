"""Diagrams of fits: convergence of an optimisation, and the landscape of an objective over parameters."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from add.errors import InputError
from add.inverse import LoggedEvaluation
from add.io.hdf5 import SweepData
from add.io.json_forms import require_form
from add.io.runfolder import EVALUATIONS
from add.plot.files import BLUE, GREY, ORANGE, RED, figure
from add.typing import FloatArray


def parse_evaluations(lines: Iterable[Mapping[str, Any]]) -> list[LoggedEvaluation]:
    """Turn lines of ``evaluations.jsonl``, numbers in hexadecimal, into values.

    Raises
    ------
    InputError
        naming the line (from 1) that is not an evaluation.
    """
    evaluations = []
    for number, line in enumerate(lines, 1):
        require_form(EVALUATIONS, line, Path(EVALUATIONS), f"line {number}")
        x, gradient, memory = (
            [float.fromhex(text) for text in line.get(key, ())] for key in ("x", "gradient", "memory")
        )
        numbers = np.array(x), float.fromhex(line["value"]), np.array(gradient), line["seconds"], tuple(memory)
        evaluations.append(LoggedEvaluation(line["phase"], line["index"], *numbers))
    return evaluations


def plot_convergence(evaluations: Iterable[Mapping[str, Any]], path: str | PathLike[str]) -> Path:
    """Draw objective and norm of the gradient over the evaluations, on logarithmic axes, with the phases marked.

    Parameters
    ----------
    evaluations : the lines of ``evaluations.jsonl``
    path : .png or .svg

    Raises
    ------
    InputError
        If there is none.
    """
    parsed = parse_evaluations(evaluations)
    if not parsed:
        raise InputError("no evaluations to draw")
    number = np.arange(1, len(parsed) + 1)
    value = np.array([e.value for e in parsed])
    norm = np.array([np.linalg.norm(e.gradient) if e.gradient.size else np.nan for e in parsed])
    starts = [i for i, e in enumerate(parsed) if i == 0 or e.phase != parsed[i - 1].phase]
    ends = [*starts[1:], len(parsed)]
    with figure(path, 7.0, 5.0) as (drawn, path):
        axes = drawn.subplots(2, 1, sharex=True)
        for axis, y, colour, label in (
            (axes[0], value, BLUE, "objective"),
            (axes[1], norm, ORANGE, "norm of the gradient"),
        ):
            for start, end in zip(starts, ends, strict=True):
                part = slice(start, end)
                axis.plot(number[part], y[part], "o", color=colour, markersize=3.5, alpha=0.45, markeredgewidth=0)
                if label == "objective":  # line searches and bad steps go up: the line is the best so far
                    best = np.fmin.accumulate(y[part])
                    axis.step(number[part], best, where="post", color=colour)
                else:
                    axis.plot(number[part], y[part], color=colour, linewidth=1.0)
            _logarithmic(axis, y)
            axis.set_ylabel(label)
            for start in starts[1:]:
                axis.axvline(start + 0.5, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
        if len(starts) > 1 or parsed[0].phase:
            for start in starts:
                axes[0].annotate(
                    parsed[start].phase,
                    (start + 0.6, 1.01),
                    xycoords=("data", "axes fraction"),
                    color=GREY,
                    fontsize=8.5,
                )
        axes[1].set_xlabel("evaluation")
        axes[1].set_xlim(0.5, len(parsed) + 0.5)
        axes[1].xaxis.get_major_locator().set_params(integer=True)
    return path


def _logarithmic(axis: Any, y: FloatArray) -> None:
    """Logarithmic where all is positive, symmetric-logarithmic where it changes sign, linear where all is zero."""
    finite = y[np.isfinite(y)]
    if finite.size and (finite > 0.0).all():
        axis.set_yscale("log")
    elif finite.any():
        axis.set_yscale("symlog", linthresh=float(np.abs(finite[finite != 0.0]).min()))


#: Highest over lowest value from which the objective is drawn on a logarithmic scale.
WIDE = 100.0
#: Most arrows along an axis.
ARROWS = 25


def plot_landscape(data: SweepData, path: str | PathLike[str], *, logarithmic: bool | None = None) -> Path:
    """Draw a sampled objective.

    Two parameters: shading, isolines, and arrows along minus the gradient. One parameter: the values with tangents from
    the gradient, and the gradient beside the differences of neighbouring values.

    Parameters
    ----------
    data : SweepData
    path : .png or .svg
    logarithmic : bool, optional
        Scale of the objective; default: where all values are positive and `WIDE` apart.

    Raises
    ------
    InputError
        If there is no value, or a logarithmic scale is asked for values that are not positive.
    """
    values = data.values[data.sampled]
    if not values.size:
        raise InputError("the sweep has no values to draw")
    if logarithmic is None:
        logarithmic = bool(values.min() > 0.0 and values.max() > WIDE * values.min())
    elif logarithmic and values.min() <= 0.0:
        raise InputError("a logarithmic scale needs a positive objective", found=f"{values.min():g}")
    return (_plane if len(data.names) == 2 else _curve)(data, Path(path), logarithmic)


def _label(data: SweepData, k: int) -> str:
    unit = data.units[k]
    return data.names[k] if unit in ("", "-") else f"{data.names[k]} [{unit}]"


def _spaced(grid: FloatArray, logarithmic: bool) -> FloatArray:
    """Return places along an axis: the values, or their logarithms."""
    return np.log(grid) if logarithmic else grid


def _edges(grid: FloatArray, logarithmic: bool) -> FloatArray:
    """Return the borders of the cells around the values."""
    s = _spaced(grid, logarithmic)
    between = 0.5 * (s[1:] + s[:-1])
    edges = np.concatenate([[2 * s[0] - between[0]], between, [2 * s[-1] - between[-1]]])
    return np.exp(edges) if logarithmic else edges


# --- two parameters --------------------------------------------------------------------------------------------------


def _plane(data: SweepData, path: Path, logarithmic: bool) -> Path:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    values = np.ma.masked_invalid(data.values.T)
    low, high = float(values.min()), float(values.max())
    flat = high <= low
    shades = ListedColormap(colormaps["YlGnBu_r"](np.linspace(0.3, 1.0, 256)))  # isolines are seen on all of them
    norm = LogNorm(low, high) if logarithmic and not flat else Normalize(low, high)
    with figure(path, 6.6, 5.6) as (drawn, path):
        axis = drawn.subplots()
        axis.grid(False)
        for set_scale, wanted in zip((axis.set_xscale, axis.set_yscale), data.logarithmic, strict=True):
            if wanted:
                set_scale("log")
        edges = [_edges(grid, wanted) for grid, wanted in zip(data.grid, data.logarithmic, strict=True)]
        shading = axis.pcolormesh(*edges, values, norm=norm, cmap=shades, rasterized=True)
        if not flat and min(data.values.shape) >= 2:
            levels = np.geomspace(low, high, 13)[1:-1] if logarithmic else np.linspace(low, high, 13)[1:-1]
            axis.contour(*data.grid, values, levels=levels, colors="#202124", linewidths=0.6, alpha=0.6)
        _arrows(axis, data)
        holes = np.argwhere(~data.sampled)
        if holes.size:
            axis.plot(
                data.grid[0][holes[:, 0]], data.grid[1][holes[:, 1]], "x", color=GREY, markersize=4, label="no value"
            )
        lowest = data.minimum
        assert lowest is not None
        axis.plot(
            data.grid[0][lowest[0]], data.grid[1][lowest[1]], "*", color=RED, markersize=14, markeredgecolor="white",
            label=f"lowest {data.values[lowest]:.4g}",
        )  # fmt: skip
        axis.set_xlabel(_label(data, 0))
        axis.set_ylabel(_label(data, 1))
        axis.set_box_aspect(1)  # arrows are drawn in shares of the axes: they stand on the isolines only in a square
        drawn.colorbar(shading, ax=axis, label="objective", shrink=0.9)
        drawn.legend(loc="outside lower center", ncols=2)
    return path


def _arrows(axis: Any, data: SweepData) -> None:
    """Draw minus the gradient, in shares of the axes; the length grows with the root of the steepness."""
    steps, places, spans = [], [], []
    for k in range(2):
        edges = _spaced(_edges(data.grid[k], data.logarithmic[k]), data.logarithmic[k])
        s = _spaced(data.grid[k], data.logarithmic[k])
        spans.append(edges[-1] - edges[0])
        places.append((s - edges[0]) / spans[k])
        steps.append(max(1, -(-s.size // ARROWS)))
    chosen = (slice(None, None, steps[0]), slice(None, None, steps[1]))
    x, y = np.meshgrid(places[0][chosen[0]], places[1][chosen[1]], indexing="ij")
    slope = data.gradients[chosen].copy()
    for k in range(2):
        by_place = data.grid[k][chosen[k]] if data.logarithmic[k] else np.ones(x.shape[k])
        slope[..., k] *= spans[k] * (by_place[:, None] if k == 0 else by_place[None, :])
    steep = np.hypot(slope[..., 0], slope[..., 1])
    drawn = np.isfinite(steep) & (steep > 0.0)
    if not drawn.any():
        return
    length = np.sqrt(np.minimum(steep / np.quantile(steep[drawn], 0.95), 1.0))
    cell = min(1.0 / n for n in x.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v = (-0.9 * cell * length * slope[..., k] / steep for k in range(2))
    axis.quiver(
        x[drawn], y[drawn], u[drawn], v[drawn], transform=axis.transAxes, angles="uv", units="width",
        scale_units="width", scale=1.0, width=0.0032, headwidth=3.6, headlength=4.2, pivot="mid", color=ORANGE,
        minlength=0.0, edgecolor="white", linewidth=0.25,
    )  # fmt: skip


# --- one parameter ---------------------------------------------------------------------------------------------------


def _curve(data: SweepData, path: Path, logarithmic: bool) -> Path:
    grid, values, slope = data.grid[0], data.values, data.gradients[:, 0]
    s = _spaced(grid, data.logarithmic[0])
    by_s = slope * grid if data.logarithmic[0] else slope
    with figure(path, 7.0, 5.4) as (drawn, path):
        upper, lower = drawn.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        upper.plot(grid, values, "-o", color=BLUE, markersize=3.5, linewidth=1.0, zorder=2.5)
        reach = 0.4 * float(np.diff(s).min())
        for k in np.flatnonzero(data.sampled):
            along = np.linspace(-reach, reach, 2)
            # On a logarithmic scale a tangent is straight as the exponential of one.
            rise = by_s[k] * along
            tangent = values[k] * np.exp(rise / values[k]) if logarithmic else values[k] + rise
            places = np.exp(s[k] + along) if data.logarithmic[0] else s[k] + along
            upper.plot(places, tangent, color=ORANGE, linewidth=2.0)
        limits = values[data.sampled].min(), values[data.sampled].max()
        if logarithmic:
            upper.set_yscale("log")
            upper.set_ylim(limits[0] / 1.5, limits[1] * 1.5)
        else:
            room = 0.12 * (limits[1] - limits[0]) or 1.0
            upper.set_ylim(limits[0] - room, limits[1] + room)
        upper.set_ylabel("objective")
        for hole in grid[~data.sampled]:
            upper.axvline(hole, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)))
        lowest = data.minimum
        assert lowest is not None
        upper.plot(grid[lowest], values[lowest], "*", color=RED, markersize=13, markeredgecolor="white", zorder=3)
        upper.set_title(f"lowest {values[lowest]:.4g} at {grid[lowest]:.5g}", loc="right", fontsize=9, color=GREY)
        lower.axhline(0.0, color=GREY, linewidth=0.8)
        lower.stairs(np.diff(values) / np.diff(s), grid, baseline=None, color=BLUE, linewidth=1.2)
        lower.plot(grid, by_s, "o", color=ORANGE, markersize=4)
        lower.set_ylabel("slope by the logarithm" if data.logarithmic[0] else "slope")
        lower.set_xlabel(_label(data, 0))
        if data.logarithmic[0]:
            lower.set_xscale("log")
        handles = [
            upper.plot([], [], color=colour, marker=marker, linestyle=line, linewidth=width, label=label)[0]
            for colour, marker, line, width, label in (
                (BLUE, "o", "-", 1.0, "samples, and slopes between them"),
                (ORANGE, "o", "-", 2.2, "gradient at the samples"),
            )
        ]
        drawn.legend(handles=handles, loc="outside lower center", ncols=2)
    return path
