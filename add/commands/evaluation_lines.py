"""Progress of an optimisation: a bar on a terminal, a line for each evaluation elsewhere, a table on request."""

from __future__ import annotations

import contextlib
import csv
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, final

from tqdm import tqdm

from add.commands.console import Console, tell
from add.commands.report_texts import duration
from add.io.runfolder import CannotWrite

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
            try:
                stream = stack.enter_context(table.open("w", encoding="utf-8", newline=""))
            except OSError as error:
                raise CannotWrite.because(error, table) from error
            writer = _Table(stream, table, problem)
        log = _Lines(problem, most) if asked and not console.quiet else None

        def progress(evaluation: Any, better: bool) -> None:
            bar.update(1)
            if better:
                bar.set_postfix(phase=evaluation.phase, objective=f"{evaluation.value:.4g}")
            if log is not None:
                tell(log.line(evaluation, better))
            if writer is not None:
                writer.write(evaluation)

        yield progress


@final
class _Lines:
    """Lines of a log: number, phase, objective, parameters, time, and how long the rest may take."""

    def __init__(self, problem: Any, most: int) -> None:
        self.problem, self.most, self.begin = problem, most, time.monotonic()
        self.best: dict[str, float] = {}
        self.done = self.replayed = 0

    def line(self, evaluation: Any, better: bool) -> str:
        """Return the line of an evaluation."""
        self.done = evaluation.index + 1
        if better or evaluation.phase not in self.best:
            self.best[evaluation.phase] = evaluation.value
        passed = time.monotonic() - self.begin
        # Evaluations that a resumed run reads from its log take no time.
        each = passed / self.done if passed > 1e-3 * self.done else 0.0
        left = f", at most {duration(each * (self.most - self.done))} left" if each and self.done < self.most else ""
        best = "" if better else f" (best {self.best[evaluation.phase]:.6g})"
        return (
            f"evaluation {self.done} of at most {self.most}, phase {evaluation.phase}: objective {evaluation.value:.6g}"
            f"{best}; {self._values(evaluation)}; {duration(passed)}{left}"
        )

    def _values(self, evaluation: Any) -> str:
        labels, units = self.problem.labels(), self.problem.units()
        values = self.problem.values(evaluation.x).tolist()
        named = [
            f"{label} = {value:.6g}" + ("" if unit == "-" else f" {unit}")
            for label, value, unit in zip(labels, values, units, strict=True)
        ]
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        return ", ".join(named[:MOST_NAMED]) + more


@final
class _Table:
    """Evaluations as CSV: each row is on disk before the next one is computed."""

    def __init__(self, stream: TextIO, path: Path, problem: Any) -> None:
        self.stream, self.path, self.problem = stream, path, problem
        self.writer = csv.writer(stream, lineterminator="\n")
        names = [f"{label} [{unit}]" for label, unit in zip(problem.labels(), problem.units(), strict=True)]
        self._row(["evaluation", "phase", "objective", "seconds", *names])

    def write(self, evaluation: Any) -> None:
        """Write one row."""
        values = self.problem.values(evaluation.x).tolist()
        numbers = [f"{value:.17g}" for value in (evaluation.value, evaluation.seconds, *values)]
        self._row([evaluation.index + 1, evaluation.phase, *numbers])

    def _row(self, cells: list[Any]) -> None:
        try:
            self.writer.writerow(cells)
            self.stream.flush()
            os.fsync(self.stream.fileno())
        except OSError as error:
            raise CannotWrite.because(error, self.path) from error
