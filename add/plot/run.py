"""All diagrams of a run: over time, markers, energies, Newton's iterations, distances from recordings, predictions."""

import csv
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from add.errors import InputError
from add.io.hdf5 import read_sweep
from add.io.runfolder import EVALUATIONS, GRID, RESULT, RunFolder
from add.io.trajectory_data import RunData
from add.io.trajectory_file import read_run
from add.plot.files import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, beside, figure, over_time
from add.plot.fits import plot_convergence, plot_landscape
from add.typing import AnyArray, FloatArray

_ENERGY_COLOURS = {"kinetic": BLUE, "elastic": RED, "gravity": GREEN, "coupling": PURPLE, "contact": ORANGE}
_PREFIXES = (("", 1.0), ("m", 1e3), ("µ", 1e6))


def _scale(magnitude: float) -> tuple[str, float]:
    """Prefix and factor that bring a magnitude above one."""
    return next(((p, f) for p, f in _PREFIXES if magnitude * f >= 1.0), _PREFIXES[-1] if magnitude else _PREFIXES[0])


def plot_energies(data: RunData, path: str | PathLike[str]) -> Path:
    """Draw every energy and their total over time."""
    if not data.energy:
        raise InputError("the run has no energies to draw")
    total = np.sum(list(data.energy.values()), axis=0)
    largest = max(float(np.nanmax(np.abs(e), initial=0.0)) for e in [*data.energy.values(), total])
    prefix, factor = _scale(largest)
    spare = iter([GREY, "#b06000", "#00838f"])
    with over_time(path, 7.0, 3.6) as ((axis,), path):
        for name, energy in data.energy.items():
            axis.plot(data.t, factor * energy, label=name, color=_ENERGY_COLOURS.get(name) or next(spare, GREY))
        axis.plot(data.t, factor * total, label="total", color="#202124", linestyle=(0, (5, 2)))
        axis.set_ylabel(f"energy [{prefix}J]")
        axis.margins(x=0.01)
        beside(axis)
    return path


def marker_residuals(data: RunData) -> dict[str, FloatArray]:
    """Distance vectors simulated - recorded, by marker, (m, 3) [m]: at recorded times within the run, where seen."""
    residuals = {}
    for name, (times, recorded) in data.targets.items():
        if name not in data.markers:
            continue
        inside = (times >= data.t[0] - 1e-9) & (times <= data.t[-1] + 1e-9) & np.isfinite(recorded).all(axis=1)
        simulated = [np.interp(times[inside], data.t, data.markers[name][:, i]) for i in range(3)]
        residuals[name] = np.stack(simulated, axis=1) - recorded[inside]
    return residuals


def rms(residual: FloatArray) -> float:
    """Root of the mean squared distance, sqrt(mean |r|^2); NaN if there is none."""
    return float(np.sqrt((residual**2).sum(axis=1).mean())) if len(residual) else float("nan")


def plot_markers(data: RunData, path: str | PathLike[str], max_markers: int = 8) -> Path:
    """Draw simulated over recorded markers: a row for each marker, a column for each axis, the rms distance beside it.

    Parameters
    ----------
    data : RunData
    path : .png or .svg
    max_markers : of more markers the worst are drawn
    """
    residuals = marker_residuals(data)
    errors = {name: rms(residuals[name]) if name in residuals else float("nan") for name in data.markers}
    if not errors:
        raise InputError("the run has no markers to draw")
    names = list(errors)
    if len(names) > max_markers:
        worst = sorted(names, key=lambda name: -np.nan_to_num(errors[name], nan=-1.0))[:max_markers]
        names = [name for name in names if name in worst]
    tracks = [data.markers[name] for name in names] + [data.targets[name][1] for name in names if name in data.targets]
    prefix, factor = (
        ("m", 1e3) if max(float(np.nanmax(np.ptp(x, axis=0), initial=0.0)) for x in tracks) < 1 else ("", 1)
    )
    with figure(path, 9.0, 0.9 + 1.55 * len(names)) as (drawn, path):
        rows = drawn.subplots(len(names), 3, sharex=True, squeeze=False)
        for name, row in zip(names, rows, strict=True):
            for i, axis in enumerate(row):
                if name in data.targets:
                    times, recorded = data.targets[name]
                    axis.plot(
                        times, factor * recorded[:, i], "o", color=RED, markersize=3.0, markeredgewidth=0, alpha=0.75,
                        label="recorded",
                    )  # fmt: skip
                axis.plot(data.t, factor * data.markers[name][:, i], color=BLUE, linewidth=1.4, label="simulated")
                axis.set_xlim(data.t[0], data.t[-1] if data.t[-1] > data.t[0] else data.t[0] + 1.0)
                axis.margins(y=0.1)
            row[0].set_ylabel(f"{name}\n[{prefix}m]")
            if name in residuals and len(residuals[name]):
                row[2].set_title(f"rms distance {1e3 * errors[name]:.3g} mm", loc="right", fontsize=9, color=GREY)
        for i, letter in enumerate("xyz"):
            rows[0][i].set_title(letter, loc="left", fontweight="bold")
            rows[-1][i].set_xlabel("time [s]")
        handles, labels = rows[0][0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=2)
    return path


def plot_newton(data: RunData, path: str | PathLike[str]) -> Path:
    """Draw Newton's iterations and final residual at every step."""
    if not len(data.newton_iterations):
        raise InputError("the run has no steps to draw")
    t = data.t[1:]
    with over_time(path, 7.0, 4.2, 2, height_ratios=(3, 2)) as ((upper, lower), path):
        upper.fill_between(t, data.newton_iterations, step="pre", color=BLUE, alpha=0.18, linewidth=0)
        upper.step(t, data.newton_iterations, where="pre", color=BLUE, linewidth=1.2)
        mean = float(data.newton_iterations.mean())
        upper.axhline(mean, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
        upper.set_title(f"mean {mean:.2f}, most {data.newton_iterations.max()}", loc="right", fontsize=9, color=GREY)
        upper.set_ylim(0, 1.12 * max(1, int(data.newton_iterations.max())))
        upper.yaxis.get_major_locator().set_params(integer=True)
        upper.set_ylabel("iterations")
        lower.plot(
            t, np.where(data.newton_residual > 0.0, data.newton_residual, np.nan), ".", color=ORANGE, markersize=3
        )
        if (data.newton_residual > 0.0).any():
            lower.set_yscale("log")
        lower.set_ylabel("residual [N]")
        lower.margins(x=0.01)
    return path


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
    with over_time(path, 8.0, 0.6 + 1.7 * len(shown), len(shown)) as (rows, path):
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
                beside(axis, 7)
    return path


def plot_run(
    folder: str | PathLike[str] | RunFolder,
    format: str = "png",
    *,
    logarithmic: bool | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Path]:
    """Draw all that the run has, into its folder.

    Parameters
    ----------
    folder : of the run
    format : "png" or "svg"
    logarithmic : bool, optional
        Whether a landscape has a logarithmic scale of the objective; default: where its range is wide.
    progress : called after each experiment with how many are drawn and how many there are

    Raises
    ------
    InputError
        If there is only the beginning of a sweep.

    Returns
    -------
    list of Path
        Of landscape, convergence, residuals, energies, markers and newton, those for which there is something to draw.
        Of several experiments every one has its own: those after the first, with trajectory_NAME.h5, as markers_NAME.
    """
    if format not in ("png", "svg"):
        raise InputError("unknown format of pictures", found=repr(format), expected="'png' or 'svg'")
    run = folder if isinstance(folder, RunFolder) else RunFolder(folder, create=False)
    written = []
    if run.sweep.is_file():
        data_of_grid = read_sweep(run.sweep)
        written.append(plot_landscape(data_of_grid, run.path / f"landscape.{format}", logarithmic=logarithmic))
    elif (run.path / GRID).is_file():
        raise InputError("this sweep was killed: the same `add sweep` again goes on with it", file=run.path)
    evaluations = run.read_lines(EVALUATIONS)
    if evaluations:
        written.append(plot_convergence(evaluations, run.path / f"convergence.{format}"))
    if run.residuals.is_file():
        written.append(plot_residuals(run.residuals, run.path / f"residuals.{format}"))
    files = trajectories(run)
    for done, (name, path) in enumerate(files.items(), start=1):
        data, end = read_run(path), f"_{name}.{format}" if name else f".{format}"
        if data.energy:
            written.append(plot_energies(data, run.path / f"energies{end}"))
        if data.markers:
            written.append(plot_markers(data, run.path / f"markers{end}"))
        if len(data.newton_iterations):
            written.append(plot_newton(data, run.path / f"newton{end}"))
        progress(done, len(files))
    return written


def trajectories(run: RunFolder) -> dict[str, Path]:
    """Return the trajectory files of a run by the names of its experiments; "" names the first or only one."""
    experiments = experiment_names(run.known(RESULT))
    paths = {"": run.trajectory} | {name: run.path / f"trajectory_{name}.h5" for name in experiments[1:]}
    return {name: path for name, path in paths.items() if path.is_file()}


def experiment_names(result: Mapping[str, Any]) -> list[str]:
    """Return the names of a result's experiments, as they stand in the scene."""
    experiments = result.get("experiments")
    return list(experiments) if isinstance(experiments, Mapping) else []


# --- Predicted coordinates of markers with their 95 % band, over what was recorded ------------------------------------

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
    with over_time(path, 8.0, 0.6 + 1.8 * len(shown), len(shown)) as (rows, path):
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
            beside(axis, 7)
    return path


class Panel(NamedTuple):
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
        legend = beside(axes[0, 2], 7)
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            if handle is not None and text.get_text() != "recorded":  # one legend for three colours
                handle.set_color(GREY)
    return path


def plot_coverage(columns: Mapping[str, AnyArray], level: float, path: str | PathLike[str]) -> Path:
    """Draw which share of the recorded coordinates lies within the bands over time, with the shares that they name."""
    with over_time(path, 7.0, 2.6) as ((axis,), path):
        for share, colour in ((0.5, ORANGE), (level, BLUE)):
            name = f"within_{100 * share:g}"
            axis.plot(columns["time_s"], 100 * columns[name], color=colour, label=f"{100 * share:g} % band")
            axis.axhline(100 * share, color=colour, linestyle=":", linewidth=1.0)
        axis.set_ylim(-3, 103)
        axis.set_ylabel("recorded within [%]")
        beside(axis)
    return path
