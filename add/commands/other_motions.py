"""Predictions from a fit: bands by draws of its numbers, which motion to record next, and its numbers in other scenes.

`add predict --samples`, `add next` and `add carry`.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from add.commands.fitted_numbers import carried, discrepancies_of, fit_of, of_one_motion, require_same_laws, seen_by
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
from add.scene.build.write_back import with_numbers
from add.typing import FloatArray

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


# --- `add next`: motions that might be recorded -----------------------------------------------------------------------

#: Times at which a motion without a recording is seen, at most.
MOST_LOOKS = 200


class Candidate(NamedTuple):
    """A motion that might be recorded.

    Attributes
    ----------
    name : str
    labels : (n,) numbers of the fit that it has
    before, after : (n,) standard errors of the fit, and of the fit and the motion together, from noise and takes
    samples : coordinates that are seen, over what one of them is worth
    """

    name: str
    labels: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    samples: float

    @property
    def narrowing(self) -> float:
        """The geometric mean of after / before, 1 for a motion that shows nothing."""
        known = (self.before > 0.0) & np.isfinite(self.before)
        return float(np.exp(np.log(self.after[known] / self.before[known]).mean())) if known.any() else 1.0

    def summary(self) -> dict[str, Any]:
        """Return it as `add next --json` prints it."""
        errors = {
            label: {"before": before, "after": after}
            for label, before, after in zip(self.labels, self.before, self.after, strict=True)
        }
        return {"name": self.name, "narrowing": self.narrowing, "samples": self.samples, "errors": errors}


def narrowed(covariance: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the covariance (n, n) of numbers after samples with ``slopes`` (m, n) over their noise were seen.

    (C^-1 + S^T S)^-1 = R (1 + R^T S^T S R)^-1 R^T with C = R R^T, which needs no inverse of C: a number without an
    error keeps none (linear-Gaussian design of experiments, Chaloner and Verdinelli 1995).
    """
    size, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(size, 0.0))
    seen = slopes @ root
    return np.asarray(root @ np.linalg.solve(np.eye(len(size)) + seen.T @ seen, root.T))


def next_takes(
    scenes: Sequence[tuple[str, Scene]], run: RunFolder, paths: tuple[str, ...] = (), number: str | None = None
) -> list[Candidate]:
    """Return the motions by how much they would narrow the numbers of a fit, the best first.

    Each scene is run once with the fitted numbers; its markers count at the times of its recording, or, without one, at
    its steps (200 of them at most). Their noise is what the fit left over, and of samples that hang together as many
    count as did there. Where the motion starts is taken as known, and the discretisation, which no recording narrows,
    is left out.

    Parameters
    ----------
    scenes : (name, scene)
    run : folder of the fit
    paths : numbers of the fit to look at; default: all properties
    number : the one by which to sort; default: all of them, by the geometric mean

    Raises
    ------
    InputError
        If the folder has no fit with error bars, or a scene lacks a number or markers.
    """
    result = fit_of(run)
    looked = [item for item in (result.get("uncertainty") or {}).get("residuals", {}).values() if item["coordinates"]]
    share = min((item["effective"] / item["coordinates"] for item in looked), default=1.0)
    out = []
    for name, scene in scenes:
        motion = Motion.of(scene, run, paths, most=MOST_LOOKS)
        covariance = block_diag(*(part.covariance for part in motion.numbers.parts))
        if not covariance.any():
            raise InputError("the fit has no error bars", file=run.path, expected="a fit to a recording")
        if not (motion.noise > 0.0).all():
            raise InputError("the fit says no noise of such markers", file=scene.source, place="markers",
                             expected="markers of the kind that was fitted, of places or of directions")  # fmt: skip
        linear = motion.linear()
        slopes = linear.slopes / motion.noise[:, None, None]
        slopes = np.sqrt(share) * slopes.reshape(-1, slopes.shape[-1])
        after = np.sqrt(np.maximum(np.diag(narrowed(covariance, slopes)), 0.0))
        before = np.sqrt(np.diag(covariance))
        out.append(Candidate(name, motion.numbers.labels, before, after, share * len(slopes)))
    if number is None:
        return sorted(out, key=lambda one: one.narrowing)
    if number not in out[0].labels:
        expected = ", ".join(out[0].labels)
        raise InputError("the fit has no such number", place="--for", found=f"'{number}'", expected=expected)
    place = out[0].labels.index(number)
    return sorted(out, key=lambda one: one.after[place])


# --- `add carry`: another scene with the numbers that a fit found -----------------------------------------------------


def carry(scene: Scene, run: RunFolder, paths: tuple[str, ...] = ()) -> tuple[Scene, dict[str, float], dict[str, str]]:
    """Return a scene with the numbers of a fit in the place of its own, these numbers, and which stay behind and why.

    A start that one of the scene's own parameters has for such a number is dropped: the fit's number is the start then.

    Parameters
    ----------
    scene : another scene than that of the fit
    run : folder of the fit
    paths : numbers that are wanted, see `carried`

    Raises
    ------
    InputError
        If the folder has no fit, or a number is not in the scene, or one of another law there.
    """
    fit = fit_of(run)
    chosen = {label: float(entry["value"]) for label, entry in carried(fit, paths).items()}
    require_same_laws(run, scene, chosen)
    left = of_one_motion(label for label in fit["parameters"] if label not in chosen)
    return with_numbers(scene, chosen), chosen, left
