"""The folder of a run: what `simulate` and `optimize` leave, and what viewers, plots and reports read."""

import contextlib
import json
import math
import os
import platform
import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np

from add.errors import InputError
from add.io.json_forms import require_form
from add.io.lock import LOCK, TEMPORARY, FolderLock, Holder, holder_of, replacing, writing
from add.machine.files import explaining, is_text, lines_of, most_of_memory, open_regular, parse_json, read_given

_RUN = SCENE, VERSIONS, TRAJECTORY = "scene.json", "versions.json", "trajectory.h5"
_SAID = EVALUATIONS, RESULT, REPORT, REPORT_HTML = "evaluations.jsonl", "result.json", "report.md", "report.html"
_FIT = FITTED, RESIDUALS, EVALUATIONS_CSV = "fitted.json", "residuals.csv", "evaluations.csv"
_SWEEP = GRID, SAMPLES, SWEEP = "grid.json", "samples.jsonl", "sweep.h5"
_SAMPLED = DRAWS, DRAWN = "draws.json", "draws.jsonl"
BANDS, COVERAGE, REFITS, MESHES = "bands.csv", "coverage.csv", "refits.jsonl", "meshes"
#: A folder with one of these is a run folder.
MARKS = (*_RUN, *_SAID, *_FIT, *_SWEEP, *_SAMPLED)
#: How the names of files begin that a killed run was writing; the second form is that of versions before.
_PARTIAL = re.compile(rf"{re.escape(TEMPORARY)}[0-9a-f]{{16}}\.|\.[0-9]+\.")
#: Size of a file from which on it is no JSON of ours [bytes].
_MOST_JSON = 2**27
#: Memory that lines of JSON take, in sizes of the file.
_MEMORY = 16.0


@final
class RunFolder:
    """The folder of a run.

    Parameters
    ----------
    path : path
    create : bool
        Make the folder, and refuse one that holds something else. False: it must be there already, to be read.
    overwrite : bool
        Whether an existing run folder may be used again. Its files stay until they are replaced; a new run calls
        `clear`, a resumed one does not.

    Raises
    ------
    InputError
        naming the folder, if it cannot be used.
    """

    def __init__(self, path: str | PathLike[str], *, create: bool = True, overwrite: bool = False) -> None:
        self.path = Path(path)
        self.scene, self.versions = self.path / SCENE, self.path / VERSIONS
        self.trajectory, self.sweep = self.path / TRAJECTORY, self.path / SWEEP
        self.evaluations, self.residuals = self.path / EVALUATIONS, self.path / RESIDUALS
        self.result = self.path / RESULT
        self._lock = FolderLock(self.path)
        if not is_text(str(self.path)) or "\0" in str(self.path):
            raise InputError("the name of the run folder is no text", file=ascii(str(self.path)))
        if not create:
            if not self.path.is_dir():
                raise InputError("no such run", file=self.path, expected="a folder written by `add`")
            if not self.is_run and self.holder is None:  # who holds it has begun one, and written nothing yet
                raise InputError("not the folder of a run", file=self.path, expected=f"one with {' or '.join(MARKS)}")
            return
        if self.path.exists() and not self.path.is_dir():
            raise InputError("a file is in the way of the run folder", file=self.path)
        if self.path.is_dir() and self._holds_something():
            if not self.is_run:
                self._lock.require_free()  # a run that has written none of its own files yet
                raise InputError("the folder holds other things than a run", file=self.path,
                                 expected="an empty or new folder")  # fmt: skip
            if not overwrite:
                self.refuse()
        if (self.path / MESHES).is_symlink():
            raise InputError("is a link to another folder: remove it", file=self.path / MESHES)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror or error}", file=self.path) from error

    def _holds_something(self) -> bool:
        """Whether there is anything but meshes of a run that was cut before it left more, and a file that it began."""
        with explaining(self.path):
            inside = [path for path in self.path.iterdir() if path.name != LOCK and not _PARTIAL.match(path.name)]
            return any(path.name != MESHES or not _only_meshes(path) for path in inside)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @contextlib.contextmanager
    def locked(self, command: str) -> Iterator[None]:
        """Keep other processes from working in the folder; once more within does no harm.

        Raises
        ------
        InputError
            naming who works there.
        """
        self._lock.acquire(command)
        try:
            yield
        finally:
            self._lock.release()

    @property
    def holder(self) -> Holder | None:
        """The process that works in the folder just now, None if there is none."""
        return holder_of(self.path)

    def refuse(self) -> NoReturn:
        """Refuse the folder for a run of another kind.

        Raises
        ------
        InputError
        """
        run = f"a run of `add {self.command}`" if self.command else "a run"
        what = f"there is {run} in this folder already: choose another folder (-o), or replace the run (--force)"
        raise InputError(what, file=self.path)

    @property
    def is_run(self) -> bool:
        """Whether a file of a run is in the folder."""
        return any((self.path / name).is_file() for name in MARKS)

    @property
    def command(self) -> str | None:
        """The command that made the run; None where it was cut before it left anything of its own."""
        with contextlib.suppress(InputError, KeyError):
            return str(self.read_json(RESULT)["command"])
        for name, command in ((DRAWS, "predict"), (GRID, "sweep"), (EVALUATIONS, "optimize"), (TRAJECTORY, "simulate")):
            if (self.path / name).is_file():
                return command
        return None

    def clear(self, keep: Collection[Path] = ()) -> None:
        """Remove the files of a run: those of `MARKS`, trajectories of experiments, diagrams and meshes; no others.

        Parameters
        ----------
        keep : meshes that stay, those of which the next run has need

        Raises
        ------
        InputError
            naming the file that cannot be removed.
        """
        made = ("convergence", "residuals", "energies", "markers", "newton", "landscape", "prediction", "coverage")
        diagrams = [f"{name}.{suffix}" for name in made for suffix in ("png", "svg")]
        needed = {path.resolve() for path in keep}
        try:
            for name in (*MARKS, BANDS, COVERAGE, REFITS, *diagrams):
                (self.path / name).unlink(missing_ok=True)
                for path in self.path.glob(f".*.{name}"):  # of a run that was killed while it wrote
                    if _PARTIAL.match(path.name):
                        path.unlink()
            for path in self.path.glob("trajectory_*.h5"):
                for diagram in diagrams:  # of this experiment
                    kind, _, suffix = diagram.rpartition(".")
                    (self.path / f"{kind}_{path.stem.removeprefix('trajectory_')}.{suffix}").unlink(missing_ok=True)
                path.unlink()
            meshes = self.path / MESHES
            for path in () if meshes.is_symlink() else meshes.glob("*.msh"):
                if path.resolve() not in needed:
                    path.unlink()
        except OSError as error:
            raise InputError(
                f"the run in this folder cannot be replaced: {error.strerror or error}",
                file=self.path,
                place=Path(error.filename).name if error.filename else None,
            ) from error

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file; a reader sees the old one or the whole new one.

        Raises
        ------
        CannotWrite
            naming the file.
        """
        path = self.path / name
        with writing(path), replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return path

    def write_json(self, name: str, obj: Any) -> Path:
        """Write an object as JSON, as `write_text` does; NumPy numbers and arrays are allowed, NaN becomes null."""
        return self.write_text(name, json.dumps(plain(obj), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def read_json(self, name: str) -> Any:
        """Read what `write_json` wrote.

        Raises
        ------
        InputError
            naming the file: missing, not JSON, or not of the form that this file has.
        """
        path = self.path / name
        value = parse_json(read_given(path, most=_MOST_JSON, follow=False).decode("utf-8", errors="replace"), path)
        require_form(name, value, path)
        return value

    def known(self, name: str) -> dict[str, Any]:
        """Return the object that `read_json` reads, an empty one where there is no file."""
        return dict(self.read_json(name)) if (self.path / name).is_file() else {}

    def append_line(self, name: str, obj: Any) -> None:
        """Append an object as one line of JSON and bring it to the disk before returning.

        A piece of a line that a killed run or a full disk left at the end is cut off first. Raises as `write_text`.
        """
        path = self.path / name
        line = json.dumps(plain(obj), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        with writing(path), os.fdopen(open_regular(path, flags, follow=False), "ab+") as file:
            _cut_broken_line(file)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def read_lines(self, name: str) -> list[Any]:
        """Read what `append_line` wrote; none if there is no file. A last line without its end is ignored.

        Raises
        ------
        InputError
            naming file and line: not JSON, or not of the form that the lines of this file have.
        """
        path = self.path / name
        if not os.path.lexists(path):
            return []
        values = []
        for number, line in enumerate(lines_of(read_given(path, most=most_of_memory(_MEMORY), follow=False)), 1):
            value = parse_json(line.decode("utf-8", errors="replace"), path, f"line {number}")
            require_form(name, value, path, f"line {number}")
            values.append(value)
        return values


def _only_meshes(path: Path) -> bool:
    return path.is_dir() and all(item.suffix == ".msh" for item in path.iterdir())


def _cut_broken_line(file: Any) -> None:
    """Cut a file opened with "ab+" after its last newline; leave it at its end."""
    end = stop = file.seek(0, os.SEEK_END)
    while stop:
        start = max(0, stop - 4096)
        file.seek(start)
        last = file.read(stop - start).rfind(b"\n")
        if last >= 0:
            stop = start + last + 1
            break
        stop = start
    if stop != end:
        file.truncate(stop)
        file.seek(0, os.SEEK_END)


def plain(obj: Any) -> Any:
    """Return numbers, arrays and paths as JSON knows them; NaN and infinite numbers become null."""
    if isinstance(obj, dict):
        return {str(key): plain(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [plain(value) for value in obj]
    if isinstance(obj, np.ndarray | np.generic):
        return plain(obj.tolist())
    if isinstance(obj, PathLike):
        return os.fspath(obj)
    if isinstance(obj, float) and not math.isfinite(obj):
        return None
    return obj


@cache
def versions() -> dict[str, str]:
    """The versions on which the numbers of a run depend: add, Python and the numerical packages, and the platform."""
    from add import __version__

    packages = {"add": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "missing"
    return packages | {"platform": platform.platform()}
