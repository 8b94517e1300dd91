"""`add sweep`: the objective and its gradient on a grid of one or two parameters."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from add.commands.evaluation_log import SAME
from add.commands.folders import locking, note_begin, note_versions, result_head
from add.commands.optimize import require_same
from add.commands.parallel.workers import Work, Workers, finished_with
from add.errors import InputError, SolverError, naming
from add.inverse.problem import InverseProblem
from add.io.hdf5 import SweepData, write_sweep
from add.io.runfolder import GRID, RESULT, SAMPLES, RunFolder
from add.linalg import one_blas_thread
from add.scene import Scene, scene_from_dict
from add.scene.build.scene import with_contact
from add.scene.build.selections import freeze_meshes
from add.scene.build.sizes import require_room_to_run
from add.scene.build.write_back import SweepAxis, sweep_axes
from add.summary import fields_of
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Sample:
    """One sample as it stands in ``samples.jsonl``, numbers as hexadecimal floats.

    Attributes
    ----------
    index : place in the grid
    value : float
        NaN where the simulation failed.
    gradient : (k,)
        By the parameters of the grid [1/unit].
    seconds : float
    message : str
        Why it failed; empty otherwise.
    """

    index: tuple[int, ...]
    value: float
    gradient: tuple[float, ...]
    seconds: float
    message: str = ""

    def line(self) -> dict[str, Any]:
        """Return the line of JSON."""
        known = {"index": self.index, "seconds": self.seconds}
        if self.message:
            return known | {"failed": self.message}
        return known | {"value": self.value.hex(), "gradient": [g.hex() for g in self.gradient]}

    @classmethod
    def parsed(cls, line: dict[str, Any], n_axes: int) -> Self:
        """Return the sample of a line."""
        index, seconds = tuple(line["index"]), float(line["seconds"])
        if "failed" in line:
            return cls(index, np.nan, (np.nan,) * n_axes, seconds, line["failed"])
        gradient = tuple(float.fromhex(g) for g in line["gradient"])
        return cls(index, float.fromhex(line["value"]), gradient, seconds)


@final
@dataclass(frozen=True)
class _Sampling(Work[tuple[int, ...], Sample]):
    """Evaluates a scene's objective at places of the grid, the other parameters at their start."""

    raw: dict[str, Any]
    axes: tuple[SweepAxis, ...]

    def prepare(self) -> Callable[[tuple[int, ...]], Sample]:
        problem = scene_from_dict(self.raw).inverse_problem()
        return lambda index: _sample(problem, self.axes, index)


def _sample(problem: InverseProblem, axes: tuple[SweepAxis, ...], index: tuple[int, ...]) -> Sample:
    begin = time.perf_counter()
    places = [axis.index for axis in axes]
    x = problem.x0
    physical = problem.values(x)
    physical[places] = [axis.values[i] for axis, i in zip(axes, index, strict=True)]
    x[places] = problem.design.inverse(physical)[places]
    value, gradient, message = np.nan, np.full(len(axes), np.nan), ""
    try:
        with one_blas_thread():
            found, by_x = problem.value_and_grad(x)
        slopes = by_x[places] / problem.design.pushforward(x, np.ones(x.size))[places]
        if np.isfinite(found) and np.isfinite(slopes).all():
            value, gradient = float(found), slopes
        else:
            message = "the objective or its gradient is not finite"
    except SolverError as error:
        message = str(error)
    return Sample(index, value, tuple(gradient.tolist()), time.perf_counter() - begin, message)


@locking("sweep")
def sweep_scene(
    scene: Scene,
    folder: RunFolder,
    parameters: Sequence[str],
    *,
    workers: Workers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Sample a scene's objective and its gradient and fill the run folder; a folder of the same sweep is completed.

    Parameters
    ----------
    scene : Scene
    folder : RunFolder
    parameters : one or two, see `add.scene.build.write_back.sweep_axes`
    workers : Workers, optional
        Default: this process. The samples do not depend on it.
    progress : called with the numbers of finished and of all samples, at the start and after every sample

    Returns
    -------
    dict
        What ``result.json`` holds; ``seconds`` is the wall time of all parts of a sweep that was gone on with.

    Raises
    ------
    InputError
        Also where the folder has another sweep, or another run.
    """
    begin = time.perf_counter()
    if folder.is_run and not (folder.path / GRID).is_file():
        folder.refuse()
    scene = with_contact(freeze_meshes(scene, folder.path))
    problem = scene.inverse_problem()
    axes = sweep_axes(problem, parameters)
    with naming(file=scene.source):
        for experiment in problem.experiments:
            require_room_to_run(experiment.simulation)
    samples = _samples_before(scene, folder, problem, axes)
    begin -= _seconds_before(folder)
    whole = list(itertools.product(*(range(axis.values.size) for axis in axes)))

    def keep(index: tuple[int, ...]) -> None:
        folder.append_line(SAMPLES, samples[index].line() | {"elapsed": time.perf_counter() - begin})

    def finish(status: str) -> dict[str, Any]:
        return _finish(scene, folder, axes, samples, status, time.perf_counter() - begin)

    work = _Sampling(scene.raw, axes)
    return finished_with(workers, work, whole, samples, keep, lambda: _stored(folder, axes), finish, progress)


def _seconds_before(folder: RunFolder) -> float:
    """Return the wall time of the parts before this one, up to the last sample of one that was killed [s]."""
    lines = folder.read_lines(SAMPLES)
    result = folder.known(RESULT)
    return max([float(result.get("seconds", 0.0)), *(float(line.get("elapsed", 0.0)) for line in lines[-1:])])


def _grid(axes: tuple[SweepAxis, ...]) -> list[dict[str, Any]]:
    return [
        fields_of(axis, "name", "unit", "logarithmic") | {"values": [float(value).hex() for value in axis.values]}
        for axis in axes
    ]


def _samples_before(
    scene: Scene, folder: RunFolder, problem: InverseProblem, axes: tuple[SweepAxis, ...]
) -> dict[tuple[int, ...], Sample]:
    """Return the samples that the folder has, or begin a new sweep there."""
    if not (folder.path / GRID).is_file():
        note_begin(folder, scene)
        folder.write_json(GRID, _grid(axes))
        return {}
    require_same(scene, folder)
    there = folder.read_json(GRID)
    if there != _grid(axes):
        raise InputError(
            "this folder has a sweep over another grid: choose another (-o), or replace it (--force)",
            file=folder.path / GRID,
            found=_described(there),
            expected=_described(_grid(axes)),
        )
    samples = _stored(folder, axes)
    note_versions(folder, scene, resume=True)
    finished = [sample for sample in samples.values() if not sample.message]
    if finished and len(samples) < np.prod([axis.values.size for axis in axes]):
        _compare(folder, _sample(problem, axes, finished[-1].index), finished[-1])
    return samples


def _stored(folder: RunFolder, axes: tuple[SweepAxis, ...]) -> dict[tuple[int, ...], Sample]:
    """Return the samples of the folder's file."""
    samples = {}
    for number, line in enumerate(folder.read_lines(SAMPLES), 1):
        try:
            sample = Sample.parsed(line, len(axes))
            _require_place(sample, axes)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"not a sample: {error!r}", file=folder.path / SAMPLES, place=f"line {number}") from error
        samples[sample.index] = sample
    return samples


def _require_place(sample: Sample, axes: tuple[SweepAxis, ...]) -> None:
    shape = tuple(axis.values.size for axis in axes)
    if len(sample.index) != len(shape) or any(i >= n for i, n in zip(sample.index, shape, strict=True)):
        raise ValueError(f"index {sample.index} in a grid of {shape}")
    if len(sample.gradient) != len(shape):
        raise ValueError(f"a gradient of {len(sample.gradient)} numbers for {len(shape)} parameters")


def _compare(folder: RunFolder, again: Sample, before: Sample) -> None:
    """Refuse to go on where a sample does not come out again: meshes or recordings changed."""
    if not np.isclose(again.value, before.value, rtol=SAME, atol=0.0):
        raise InputError(
            "this sweep cannot go on: the data or the program are not those it was begun with",
            file=folder.path / SAMPLES,
            found=f"objective {again.value:.10g}",
            expected=f"{before.value:.10g}",
        )


def _described(grid: list[dict[str, Any]]) -> str:
    parts = []
    for axis in grid:
        values = [float.fromhex(value) for value in axis["values"]]
        parts.append(f"{axis['name']}={values[0]:g}:{values[-1]:g}:{len(values)}")
    return " ".join(parts)


def _finish(
    scene: Scene,
    folder: RunFolder,
    axes: tuple[SweepAxis, ...],
    samples: dict[tuple[int, ...], Sample],
    status: str,
    seconds: float,
) -> dict[str, Any]:
    """Write what is there."""
    data = sweep_data(axes, samples)
    write_sweep(folder.sweep, data)
    lowest = data.minimum
    result = result_head(scene, "sweep", status) | {
        "samples": int(data.values.size),
        "sampled": len(samples),
        "failed": sum(bool(sample.message) for sample in samples.values()),
        "objective": None if lowest is None else {"minimum": data.values[lowest], "maximum": np.nanmax(data.values)},
        "parameters": {},
        "seconds": seconds,
    }
    for k, axis in enumerate(axes):
        result["parameters"][axis.name] = {
            "value": None if lowest is None else axis.values[lowest[k]],
            "unit": axis.unit,
            "lower": axis.values[0],
            "upper": axis.values[-1],
            "samples": axis.values.size,
        }
    folder.write_json(RESULT, result)
    return dict(folder.read_json(RESULT))


def sweep_data(axes: tuple[SweepAxis, ...], samples: dict[tuple[int, ...], Sample]) -> SweepData:
    """Return the samples as arrays over the grid; NaN where there is none."""
    shape = tuple(axis.values.size for axis in axes)
    values: FloatArray = np.full(shape, np.nan)
    gradients: FloatArray = np.full((*shape, len(axes)), np.nan)
    for index, sample in samples.items():
        values[index], gradients[index] = sample.value, sample.gradient
    return SweepData(
        tuple(axis.name for axis in axes),
        tuple(axis.unit for axis in axes),
        tuple(axis.values for axis in axes),
        tuple(axis.logarithmic for axis in axes),
        values,
        gradients,
    )
