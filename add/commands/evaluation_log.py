"""Evaluations of a fit: a line each on the screen, and the file of all."""

import contextlib
import csv
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, final

import numpy as np
from tqdm import tqdm

from add.commands.console import Console, tell
from add.commands.report_texts import duration
from add.errors import InputError
from add.inverse import InverseProblem
from add.inverse.optimizers.phases import EvaluationLog, LoggedEvaluation
from add.io.lock import writing
from add.io.runfolder import EVALUATIONS, RunFolder
from add.plot import parse_evaluations
from add.summary import few
from add.typing import FloatArray

_log = logging.getLogger(__name__)

#: How well the last logged evaluation has to come out again before a run is resumed; bits may differ between machines.
SAME = 1e-6
#: How many numbers Levenberg-Marquardt remembers of each evaluation; 3 in runs of before light steps.
MEMORY = (3, 6)


def _hex(values: FloatArray) -> list[str]:
    return [float(value).hex() for value in values]


@final
class FolderLog(EvaluationLog):
    """Evaluations in ``evaluations.jsonl``, bit by bit (hexadecimal floats), each on disk before the optimiser goes on.

    SciPy cannot restore the memory of L-BFGS-B. It is deterministic instead: asked again from the start, it asks for
    the same points, and the log answers until it is used up. Levenberg-Marquardt remembers a few numbers, which
    are logged: it goes on from the last point that it accepted.
    """

    def __init__(self, folder: RunFolder, problem: InverseProblem, *, resume: bool) -> None:
        self._folder = folder
        self._problem = problem
        self._known: list[dict[str, Any]] = folder.read_lines(EVALUATIONS) if resume else []
        self.replayed = 0

    def lookup(self, phase: str, index: int, x: FloatArray, *, alone: bool = False) -> LoggedEvaluation | None:
        """Return the logged evaluation if it was made at this x; the last one is made again and compared in `store`."""
        if index >= len(self._known):
            return None
        line = self._known[index]
        self._require(line, phase, index, x, 0 if alone else x.size)
        self.replayed += 1
        if index == len(self._known) - 1:
            return None
        return parse_evaluations([line])[0]

    def earlier(self, phase: str, index: int, x: FloatArray) -> list[LoggedEvaluation]:
        """Return the logged evaluations of a phase; see `EvaluationLog.earlier`."""
        if index >= len(self._known):
            return []
        self._require(self._known[index], phase, index, x, x.size)
        lines = [line for line in self._known[index:] if line["phase"] == phase]
        for k, line in enumerate(lines):
            memory = [float.fromhex(number) for number in line.get("memory", ())]
            # A step that was refused has no gradient.
            sizes = (x.size,) if memory and memory[0] else (0, x.size)
            fits = len(line["x"]) == x.size and len(line["gradient"]) in sizes and len(memory) in MEMORY
            if not (fits and np.isfinite(memory).all()):
                raise InputError(
                    "not an evaluation of this run", file=self._folder.path / EVALUATIONS, place=f"line {index + k + 1}"
                )
        evaluations = parse_evaluations(lines)
        self.replayed += len(evaluations)
        return evaluations

    def _require(self, line: dict[str, Any], phase: str, index: int, x: FloatArray, n_gradient: int) -> None:
        whole = len(line["gradient"]) == n_gradient
        if line["phase"] != phase or line["x"] != _hex(x) or not whole:
            raise InputError(
                "this run cannot be resumed: the scene, the data or the libraries are not those it was begun with",
                file=self._folder.path / EVALUATIONS,
                place=f"line {index + 1}",
            )

    def store(self, evaluation: LoggedEvaluation) -> None:
        """Write the evaluation as one line, flushed to disk."""
        if evaluation.index < len(self._known):
            self._compare(evaluation)
            return
        physical = self._problem.values(evaluation.x)
        line = {
            "phase": evaluation.phase,
            "index": evaluation.index,
            "x": _hex(evaluation.x),
            "value": evaluation.value.hex(),
            "gradient": _hex(evaluation.gradient),
            "parameters": dict(zip(self._problem.labels(), physical.tolist(), strict=True)),
            "seconds": evaluation.seconds,
        }
        if evaluation.memory:
            line["memory"] = [number.hex() for number in evaluation.memory]
        self._folder.append_line(EVALUATIONS, line)

    def _compare(self, evaluation: LoggedEvaluation) -> None:
        """Refuse to go on where the last logged evaluation does not come out again: meshes or recordings changed."""
        logged = float.fromhex(self._known[evaluation.index]["value"])
        if not np.isclose(evaluation.value, logged, rtol=SAME, atol=0.0):
            raise InputError(
                "this run cannot be resumed: the data or the program are not those it was begun with",
                file=self._folder.path / EVALUATIONS,
                place=f"line {evaluation.index + 1}",
                found=f"objective {evaluation.value:.10g}",
                expected=f"{logged:.10g}",
            )


#: Parameters that a line names; of more it says how many there are.
MOST_NAMED = 6


@contextlib.contextmanager
def evaluations(
    console: Console, problem: Any, most: int, lines: bool | None, table: Path | None
) -> Iterator[Callable[[Any, bool], None]]:
    """Yield what an optimisation calls with every evaluation, and whether it was the best so far.

    Parameters
    ----------
    console : of the command
    problem : InverseProblem, whose parameters are named
    most : limit of the number of evaluations
    lines : whether to print a line for each; None = where standard error is no terminal
    table : CSV file to be written, a row as soon as its evaluation is known, or None

    Raises
    ------
    CannotWrite
        If the table cannot be written.
    """
    asked = (not console.bars and not console.json) if lines is None else lines
    bar = tqdm(total=most, unit="run", desc="optimize", disable=not console.bars or asked, file=sys.stderr)
    with bar, contextlib.ExitStack() as stack:
        writer = None
        if table is not None:
            with writing(table):
                stream = stack.enter_context(table.open("w", encoding="utf-8", newline=""))
            writer = _table(stream, table, problem)
        line = _lines(problem, most) if asked and not console.quiet else None

        def progress(evaluation: Any, better: bool) -> None:
            bar.update(1)
            if better:
                bar.set_postfix(phase=evaluation.phase, objective=f"{evaluation.value:.4g}")
            if line is not None:
                tell(line(evaluation, better))
            if writer is not None:
                writer(evaluation)

        yield progress


def _lines(problem: Any, most: int) -> Callable[[Any, bool], str]:
    """Return what makes the line of an evaluation: number, phase, objective, parameters, time, and that of the rest."""
    begin, lowest = time.monotonic(), dict[str, float]()
    names = list(zip(problem.labels(), problem.units(), strict=True))

    def line(evaluation: Any, better: bool) -> str:
        done = evaluation.index + 1
        if better or evaluation.phase not in lowest:
            lowest[evaluation.phase] = evaluation.value
        passed = time.monotonic() - begin
        # Evaluations that a resumed run reads from its log take no time.
        each = passed / done if passed > 1e-3 * done else 0.0
        left = f", at most {duration(each * (most - done))} left" if each and done < most else ""
        best = "" if better else f" (best {lowest[evaluation.phase]:.6g})"
        named = [
            f"{label} = {value:.6g}" + ("" if unit == "-" else f" {unit}")
            for (label, unit), value in zip(names, problem.values(evaluation.x).tolist(), strict=True)
        ]
        return (
            f"evaluation {done} of at most {most}, phase {evaluation.phase}: objective {evaluation.value:.6g}"
            f"{best}; {few(named, MOST_NAMED)}; {duration(passed)}{left}"
        )

    return line


def _table(stream: TextIO, path: Path, problem: Any) -> Callable[[Any], None]:
    """Begin a CSV of evaluations; return what writes a row, which is on disk before the next one is computed."""
    writer = csv.writer(stream, lineterminator="\n")

    def row(*cells: Any) -> None:
        with writing(path):
            writer.writerow(cells)
            stream.flush()
            os.fsync(stream.fileno())

    def write(evaluation: Any) -> None:
        values = evaluation.value, evaluation.seconds, *problem.values(evaluation.x).tolist()
        row(evaluation.index + 1, evaluation.phase, *(f"{value:.17g}" for value in values))

    names = [f"{label} [{unit}]" for label, unit in zip(problem.labels(), problem.units(), strict=True)]
    row("evaluation", "phase", "objective", "seconds", *names)
    return write
