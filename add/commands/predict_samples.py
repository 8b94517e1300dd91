"""`add predict --samples`: a scene run with many draws of a fit's numbers, and the bands that its motions make."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from add.commands.fitted_numbers import discrepancies_of, seen_by
from add.commands.folders import locking, note_begin, note_versions, result_head
from add.commands.optimize import require_same
from add.commands.parallel.workers import Workers, finished_with
from add.commands.predict import Motion
from add.commands.prediction_results import ends_of, results
from add.commands.report_texts import csv_text
from add.commands.sampled_runs import Run, Sampled, Sampling, Watched
from add.errors import InputError, SolverError, naming, require_known
from add.inverse.sampling import Drawn, draw
from add.io.runfolder import BANDS, COVERAGE, DRAWN, DRAWS, RESULT, RunFolder
from add.plot.run import plot_coverage, plot_sampled
from add.scene import Scene
from add.scene.build.scene import with_contact
from add.scene.build.selections import freeze_meshes
from add.scene.build.sizes import require_room_to_run

_log = logging.getLogger(__name__)

#: Times of a prediction where nothing was recorded, at most.
MOST_TIMES = 201


class Asked(NamedTuple):
    """The options of a prediction by samples.

    Attributes
    ----------
    run : folder of the fit
    parameters : see `add.commands.fitted_numbers.carried`
    start : folder of a fit of this motion's start, optional
    samples : number of draws, at least 2
    seed : of the draws
    level : share that the wider band holds
    sides : (marker, axis, value): how likely it is to end beyond
    discrepancy : whether what the fit left over widens the bands
    """

    run: RunFolder
    parameters: tuple[str, ...] = ()
    start: RunFolder | None = None
    samples: int = 200
    seed: int = 0
    level: float = 0.9
    sides: tuple[tuple[str, str, float], ...] = ()
    discrepancy: bool = False


@locking("predict")
def predict_samples(
    scene: Scene,
    folder: RunFolder,
    asked: Asked,
    *,
    workers: Workers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run a scene with draws of a fit's numbers and fill the run folder; one of the same draws is completed.

    Parameters
    ----------
    scene : Scene
    folder : RunFolder
    asked : Asked
    workers : Workers, optional
        Default: this process. The draws do not depend on it.
    progress : called with the numbers of finished and of all runs, at the start and after every run

    Returns
    -------
    dict
        What ``result.json`` holds.

    Raises
    ------
    InputError
        If the fit has no errors to draw from, or a number or marker is not in the scene; if the folder has another run.
    SolverError
        If the runs of all draws fail, or of all but one.
    """
    begin = time.perf_counter()
    if not 2 <= asked.samples:
        raise InputError("too few samples", place="--samples", found=asked.samples, expected="at least 2")
    if folder.is_run and not (folder.path / DRAWS).is_file():
        folder.refuse()
    scene = with_contact(freeze_meshes(scene, folder.path))
    motion = Motion.of(scene, asked.run, asked.parameters, asked.start, MOST_TIMES)
    with naming(file=scene.source):
        require_room_to_run(motion.view.built.simulation)
    require_known([name for name, _, _ in asked.sides], motion.view.names, "no such marker", place="--side")
    if not motion.numbers.sources:
        raise InputError(
            "the fit has no errors to draw from", file=asked.run.path / RESULT,
            found=", ".join(f"{label} {why}" for label, why in motion.numbers.held.items()),
            expected="a covariance, a bootstrap, or a profile of a number that this scene has",
        )  # fmt: skip
    discrepancies = discrepancies_of(asked.run) if asked.discrepancy else None
    drawn = draw(motion.numbers.parts, asked.samples, asked.seed)
    runs = _runs_before(scene, folder, asked, motion, drawn)
    before = max([float(line.get("elapsed", 0.0)) for line in folder.read_lines(DRAWN)[-1:]], default=0.0)
    begin -= before
    view = motion.view
    work = Sampling(scene.raw, view.targets, view.names, view.times, drawn.values)

    def keep(k: int) -> None:
        folder.append_line(DRAWN, _line(k, runs[k]) | {"elapsed": time.perf_counter() - begin})

    def finish(status: str) -> dict[str, Any]:
        seen_until = seen_by(asked.start) if discrepancies and asked.start else 0.0
        sampled = Sampled(motion, drawn, runs, discrepancies, seen_until)
        return _finish(scene, folder, asked, sampled, status, time.perf_counter() - begin)

    def kept() -> Iterable[int]:
        return (int(line["index"]) for line in folder.read_lines(DRAWN))

    result = finished_with(workers, work, range(asked.samples), runs, keep, kept, finish, progress)
    if "prediction" not in result:
        first = next(run.failed for run in runs.values() if run.failed)
        whole = asked.samples - result["failed"] or "none"
        raise SolverError(f"{whole} of the {asked.samples} runs came to an end; bands take two; the first: {first}")
    return result


def _line(k: int, run: Run) -> dict[str, Any]:
    known: dict[str, Any] = {"index": k, "seconds": run.seconds}
    return known | ({"failed": run.failed} if run.seen is None else run.seen.line())


def _runs_before(scene: Scene, folder: RunFolder, asked: Asked, motion: Motion, drawn: Drawn) -> dict[int, Run]:
    """Return the runs that the folder has, or begin there."""
    here = {
        "samples": asked.samples, "seed": asked.seed, "labels": list(motion.numbers.labels),
        "times": motion.view.times.tolist(), "values": drawn.values.tolist(),
    }  # fmt: skip
    if not (folder.path / DRAWS).is_file():
        note_begin(folder, scene)
        folder.write_json(DRAWS, here)
        return {}
    require_same(scene, folder)
    there = folder.read_json(DRAWS)
    differs = [key for key in here if there.get(key) != here[key]]
    if differs:
        raise InputError(
            "this folder has a prediction of other draws: choose another (-o), or replace it (--force)",
            file=folder.path / DRAWS, place=differs[0],
        )  # fmt: skip
    note_versions(folder, scene, resume=True)
    runs = {}
    for number, line in enumerate(folder.read_lines(DRAWN), 1):
        try:
            seen = None if line.get("failed") else Watched.parsed(line)
            if not 0 <= line["index"] < asked.samples or (seen and len(seen.markers) != motion.view.times.size):
                raise ValueError("of another prediction")
            runs[int(line["index"])] = Run(seen, float(line["seconds"]), line.get("failed", ""))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"not a run: {error!r}", file=folder.path / DRAWN, place=f"line {number}") from error
    return runs


def _finish(
    scene: Scene, folder: RunFolder, asked: Asked, sampled: Sampled, status: str, seconds: float
) -> dict[str, Any]:
    """Write what is there: bands, coverage, pictures, the result."""
    seen = sampled.seen
    result = result_head(scene, "predict", status) | {
        "run": str(asked.run.path), "start": asked.start and str(asked.start.path),
        "samples": asked.samples, "sampled": len(sampled.runs), "failed": len(sampled.runs) - len(seen),
        "seed": asked.seed,
        "parameters": sampled.parameters(), "seconds": seconds,
    }  # fmt: skip
    if len(seen) >= 2:
        bands = results(sampled, asked.level)
        result["prediction"] = bands.said | {"ends": ends_of(sampled, asked.sides)}
        folder.write_text(BANDS, _table(["quantity", "coordinate", "unit", "time_s", "reference",
                                         *(f"q{100 * level:g}" for level in bands.at), "linear", "linear_sd"],
                                        bands.rows()))  # fmt: skip
        plot_sampled(bands.picture(), folder.path / "prediction.png")
        if bands.coverage is not None:
            folder.write_text(COVERAGE, _table(list(bands.coverage), zip(*bands.coverage.values(), strict=True)))
            plot_coverage(bands.coverage, asked.level, folder.path / "coverage.png")
    folder.write_json(RESULT, result)
    return dict(folder.read_json(RESULT))


def _table(head: list[str], rows: Any) -> str:
    return csv_text(head, ([f"{cell:.9g}" if isinstance(cell, float) else cell for cell in row] for row in rows))
