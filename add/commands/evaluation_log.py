"""The log of an optimisation that survives a kill."""

from __future__ import annotations

import logging
from typing import Any, final

import numpy as np

from add.errors import InputError
from add.inverse import InverseProblem
from add.inverse.optimizers.phases import EvaluationLog, LoggedEvaluation
from add.io.runfolder import EVALUATIONS, RunFolder
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
        return self._evaluation(line)

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
        found = [self._evaluation(line) for line in lines]
        self.replayed += len(found)
        return found

    def _require(self, line: dict[str, Any], phase: str, index: int, x: FloatArray, n_gradient: int) -> None:
        whole = len(line["gradient"]) == n_gradient
        if line["phase"] != phase or line["x"] != _hex(x) or not whole:
            raise InputError(
                "this run cannot be resumed: the scene, the data or the libraries are not those it was begun with",
                file=self._folder.path / EVALUATIONS,
                place=f"line {index + 1}",
            )

    @staticmethod
    def _evaluation(line: dict[str, Any]) -> LoggedEvaluation:
        return LoggedEvaluation(
            line["phase"],
            line["index"],
            np.array([float.fromhex(number) for number in line["x"]]),
            float.fromhex(line["value"]),
            np.array([float.fromhex(number) for number in line["gradient"]]),
            line["seconds"],
            tuple(float.fromhex(number) for number in line.get("memory", ())),
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
