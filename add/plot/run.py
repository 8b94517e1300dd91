"""All diagrams of a run."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from add.errors import InputError
from add.io.runfolder import EVALUATIONS, GRID, RESULT, RunFolder
from add.io.sweeps import read_sweep
from add.io.trajectory import read_run
from add.plot.convergence import plot_convergence
from add.plot.landscape import plot_landscape
from add.plot.time import plot_energies, plot_markers, plot_newton, plot_residuals


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
    experiments = experiment_names(run.read_json(RESULT)) if run.result.is_file() else []
    paths = {"": run.trajectory} | {name: run.path / f"trajectory_{name}.h5" for name in experiments[1:]}
    return {name: path for name, path in paths.items() if path.is_file()}


def experiment_names(result: Mapping[str, Any]) -> list[str]:
    """Return the names of a result's experiments, as they stand in the scene."""
    experiments = result.get("experiments")
    return list(experiments) if isinstance(experiments, Mapping) else []
