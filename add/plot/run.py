"""All diagrams of a run."""

from os import PathLike
from pathlib import Path

from add.errors import InputError
from add.io.results import read_run
from add.io.runfolder import EVALUATIONS, GRID, RunFolder
from add.io.sweeps import read_sweep
from add.plot.convergence import plot_convergence
from add.plot.landscape import plot_landscape
from add.plot.time import plot_energies, plot_markers, plot_newton


def plot_run(
    folder: str | PathLike[str] | RunFolder, format: str = "png", *, logarithmic: bool | None = None
) -> list[Path]:
    """Draw all that the run has, into its folder.

    Parameters
    ----------
    folder : of the run
    format : "png" or "svg"
    logarithmic : bool, optional
        Whether a landscape has a logarithmic scale of the objective; default: where its range is wide.

    Raises
    ------
    InputError
        If there is only the beginning of a sweep.

    Returns
    -------
    list of Path
        Of landscape, convergence, energies, markers and newton, those for which there is something to draw.
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
    if run.trajectory.is_file():
        data = read_run(run.trajectory)
        if data.energy:
            written.append(plot_energies(data, run.path / f"energies.{format}"))
        if data.markers:
            written.append(plot_markers(data, run.path / f"markers.{format}"))
        if len(data.newton_iterations):
            written.append(plot_newton(data, run.path / f"newton.{format}"))
    return written
