"""Results of experiments that take hours, a line each, kept as they come: one that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, final


@final
class Tasks:
    """Results by the names of their tasks.

    Parameters
    ----------
    path : Path or None
        File of JSON lines; None keeps them in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        if path is not None and path.is_file():
            text = path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):
                path.write_text(text + "\n", encoding="utf-8")
            for line in text.splitlines():
                try:
                    name, result = json.loads(line)
                except json.JSONDecodeError:  # the line that was being written when the run was stopped
                    continue
                self._known[name] = result

    def __call__(self, name: str, task: Callable[[], Any]) -> Any:
        """Return the result of a task, which runs unless it ran before."""
        if name not in self._known:
            self._known[name] = json.loads(json.dumps(task()))
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([name, self._known[name]]) + "\n")
        return self._known[name]
