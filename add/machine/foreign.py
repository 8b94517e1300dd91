"""Code of others that this program runs: readers of other packages, and extensions.

Readers that may not end, or take all memory, run in a process of their own, for a limited time. Starting one costs
about a second, so that formats whose readers are known to end are read at once instead, and several files in one
process.

Extensions are files and packages that are named on the command line or in the environment, or installed. A scene never
names code: whoever runs the command does. Processes that a command starts inherit the environment, and with it what was
named.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import io
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING

from add.errors import InputError
from add.machine.files import available_memory, in_bytes

#: Seconds of the processor that a reader may take, and how many bytes of a file it may take for one second more.
PATIENCE, BYTES_A_SECOND = 10.0, 2.5e5
#: How many times as long it may take by the clock, where others are at work, too.
_BUSY = 10.0
#: Memory that a reader may take here: this much, and so many sizes of the file [bytes].
_LEAST, _TIMES = 5e8, 200.0

_CODE = """
import sys; sys.path[:] = {path!r}
from add.machine.foreign import _serve; _serve({reader!r}, {memory!r})
"""

#: What a reader returns.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.generic]]


def read_apart(
    reader: str, path: str | PathLike[str], *, patience: float | None = None, memory: float | None = None
) -> Arrays:
    """Call a reader in a process of its own.

    Parameters
    ----------
    reader : "module:function"; the function gets the path and returns arrays by name, or raises an `InputError`
    path : of the file
    patience : processor time that the reader may take; a large file may take longer; default: `PATIENCE` [s]
    memory : what it may take [bytes]; default: all that is free

    Raises
    ------
    InputError
        That of the reader, or naming the file: it takes too long, or too much memory.
    """
    (arrays,) = read_all_apart(reader, [path], patience=patience, memory=memory)
    if isinstance(arrays, InputError):
        raise arrays
    return arrays


def read_all_apart(
    reader: str, paths: Sequence[str | PathLike[str]], *, patience: float | None = None, memory: float | None = None
) -> list[Arrays | InputError]:
    """Call a reader for several files in one process; where one of them ends it, another process reads those behind.

    Parameters are those of `read_apart`.

    Returns
    -------
    For each file what `read_apart` returns, or the error that it raises.
    """
    files = [os.fspath(path) for path in paths]
    wait = PATIENCE if patience is None else patience
    tasks = [(file, wait + Path(file).stat().st_size / BYTES_A_SECOND) for file in files]
    room = available_memory() if memory is None else memory
    code = _CODE.format(path=sys.path, reader=reader, memory=room if math.isfinite(room) else 0.0)
    out: list[Arrays | InputError] = []
    while len(out) < len(tasks):
        out += _read_in_process(code, tasks[len(out) :])
    return out


def _read_in_process(code: str, tasks: Sequence[tuple[str, float]]) -> list[Arrays | InputError]:
    """Return what a process reads of (file, seconds), up to the file that ends it."""
    out: list[Arrays | InputError] = []
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as asked:
        asked.write(json.dumps(tasks).encode())
        asked.seek(0)
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=asked, stdout=subprocess.PIPE, stderr=said
        ) as process:
            assert process.stdout is not None
            try:
                for file, seconds in tasks:
                    late = threading.Timer(_BUSY * seconds, process.kill)
                    late.start()
                    try:
                        answer = _answer(process.stdout, file)
                    finally:
                        late.cancel()
                    if answer is None:
                        out.append(_ended(process.wait(), file, seconds, said))
                        break
                    out.append(answer)
            finally:
                process.kill()
    return out


def _answer(stream: IO[bytes], file: str) -> Arrays | InputError | None:
    """Return the arrays or the error that a process writes for one file; None if it ends before."""
    head = stream.readline()
    if not head.endswith(b"\n"):
        return None
    said = json.loads(head)
    if not isinstance(said, int):
        return InputError(**said)
    content = stream.read(said)
    if len(content) < said:
        return None
    import numpy as np  # commands that read nothing do without

    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


def _ended(code: int, file: str, seconds: float, said: IO[bytes]) -> InputError:
    """Return the error of a file at which the process ended."""
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return InputError(
            f"cannot be read: its reader does not come to an end (given up after {seconds:.0f} s)",
            file=file,
            expected="a whole file of the format that its name says, or another format, such as .msh or .stl",
        )
    said.seek(0)
    last = said.read().decode("utf-8", errors="replace").strip().rpartition("\n")[2]
    reason = f"its reader ended with {code}" + (f": {last[:200]}" if last else "")
    return InputError(f"cannot be read: {reason}", file=file)


@contextlib.contextmanager
def little_memory(size: float) -> Iterator[None]:
    """Let what is done inside fail with a `MemoryError` where it takes far more memory than its file can need.

    A damaged number of a node or a count makes some readers fill an array of its size: all the memory there is.

    Parameters
    ----------
    size : of the file [bytes]
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError, ValueError):  # only Linux says
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + int(_LEAST + _TIMES * size)
    if before[0] != resource.RLIM_INFINITY:
        most = min(most, before[0])
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _serve(reader: str, memory: float) -> None:
    """Be the process: for each file the size of its arrays, and they, or a line of JSON with the error."""
    import numpy as np

    out, sys.stdout = sys.stdout.buffer, sys.stderr
    module, _, name = reader.partition(":")
    function = getattr(importlib.import_module(module), name)
    for file, seconds in json.load(sys.stdin):
        _limit(memory, seconds)
        buffer = io.BytesIO()
        head: object
        try:
            np.savez(buffer, **function(Path(file)))
            head = buffer.getbuffer().nbytes
        except InputError as error:
            error.file = error.file or file
            head = {key: None if value is None else str(value) for key, value in vars(error).items()}
            buffer = io.BytesIO()
        except (MemoryError, RecursionError):
            text = f"cannot be read: its reader needs more than the {in_bytes(memory)} that are free"
            head, buffer = {"message": text, "file": file}, io.BytesIO()
        out.write(json.dumps(head).encode() + b"\n")
        out.write(buffer.getbuffer())
        out.flush()
    os._exit(0)


def _limit(memory: float, seconds: float) -> None:
    """Let the system end this process where it takes too much from here on."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))
    if memory:
        _set(resource.RLIMIT_AS, int(min(memory, 2**62)))


def _set(kind: int, most: int) -> None:
    import resource

    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


# --- Extensions -------------------------------------------------------------------------------------------------------


#: Files that are imported before a name that is not known is given up; separated as paths in PATH are.
VARIABLE = "ADD_EXTENSIONS"
#: Group of entry points of installed packages, each a module.
GROUP = "add.extensions"


def load_file(path: str | os.PathLike[str]) -> ModuleType:
    """Import a file that defines extensions, and let processes that are started from now on do the same.

    Its folder joins the path of modules, so that its objects travel to other processes.

    Raises
    ------
    InputError
        If there is no such file, its name is that of another module, or it cannot be imported.
    """
    file = Path(path).absolute()
    if os.pathsep in str(file):
        expected = f"a path without '{os.pathsep}', which separates paths in {VARIABLE}"
        raise InputError("no extension", file=str(path), found=f"'{file}'", expected=expected)
    module = _imported(file)
    files = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    if str(file) not in files:
        os.environ[VARIABLE] = os.pathsep.join([*files, str(file)])
    return module


def _imported(file: Path, place: str | None = None) -> ModuleType:
    if not file.is_file() or file.suffix != ".py":
        raise InputError("no extension", file=str(file), place=place, found="no Python file", expected="a file NAME.py")
    name = file.stem
    known = sys.modules.get(name)
    if known is not None and _file_of(known) == file.resolve():
        return known
    other = known or (importlib.util.find_spec(name) if name.isidentifier() else None)
    where = getattr(other, "origin", None) or getattr(other, "__file__", None)
    if not name.isidentifier() or (other is not None and (where is None or Path(where).resolve() != file.resolve())):
        found = f"'{name}'" + (", which another module has" if other is not None else "")
        raise InputError("an extension needs a name of its own", file=str(file), found=found, expected="my_law.py")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        return importlib.import_module(name)
    except InputError as error:
        error.file = error.file or str(file)
        raise
    except (Exception, SystemExit) as error:
        raise InputError("this extension cannot be imported", file=str(file), found=first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of what it says."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def failed_in(error: BaseException) -> str | None:
    """Return file and line of the extension that an error was raised in; None where it was in no extension's file."""
    named = {Path(file).resolve() for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).resolve() in named:
            return f"{frame.filename}:{frame.lineno}"
    return None


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)  # modules that are built in, or typed at a prompt, have none
    return Path(file).resolve() if file else None


@cache
def load_installed() -> None:
    """Import what the environment names and what is installed, once.

    Raises
    ------
    InputError
        If something cannot be imported.
    """
    for file in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _imported(Path(file).absolute(), VARIABLE)
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            message, found = "this installed extension cannot be imported", first_line(error)
            raise InputError(message, place=point.value, found=found) from error


def version_of(module_name: str) -> str:
    """Return the version of a module, where it says one, and the SHA-256 of its file."""
    module = sys.modules.get(module_name)
    file = _file_of(module) if module is not None else None
    digest = f"sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}" if file is not None and file.is_file() else ""
    return f"{getattr(module, '__version__', '')} {digest}".strip()
