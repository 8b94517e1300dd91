"""Readers of other packages that may not end, or take all memory: run in a process of their own, for a limited time.

Starting one costs about a second, so that formats whose readers are known to end are read at once instead.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.machine.files import in_bytes
from add.machine.resources import available_memory

#: Seconds of the processor that a reader may take, and how many bytes of a file it may take for one second more.
PATIENCE, BYTES_A_SECOND = 10.0, 2.5e5
#: How many times as long it may take by the clock, where others are at work, too.
_BUSY = 10.0
#: Memory that a reader may take here: this much, and so many sizes of the file [bytes].
_LEAST, _TIMES = 5e8, 200.0

_CODE = """
import sys; sys.path[:] = {path!r}
from add.machine.foreign_readers import _serve; _serve({reader!r}, {file!r}, {memory!r}, {seconds!r})
"""


def read_apart(
    reader: str, path: str | PathLike[str], *, patience: float | None = None, memory: float | None = None
) -> dict[str, NDArray[np.generic]]:
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
    file = os.fspath(path)
    limit = (PATIENCE if patience is None else patience) + Path(file).stat().st_size / BYTES_A_SECOND
    room = available_memory() if memory is None else memory
    code = _CODE.format(
        path=sys.path, reader=reader, file=file, memory=room if np.isfinite(room) else 0.0, seconds=limit
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_BUSY * limit,
            check=False,
        )
        ended = -done.returncode not in (signal.SIGXCPU, signal.SIGKILL)
    except subprocess.TimeoutExpired:
        ended = False
    if not ended:
        raise InputError(
            f"cannot be read: its reader does not come to an end (given up after {limit:.0f} s)",
            file=file,
            expected="a whole file of the format that its name says, or another format, such as .msh or .stl",
        )
    if done.returncode == 0:
        with np.load(io.BytesIO(done.stdout), allow_pickle=False) as found:
            return dict(found)
    said = done.stderr.decode("utf-8", errors="replace").strip().rpartition("\n")[2]
    try:
        raise InputError(**json.loads(said))
    except (ValueError, TypeError):
        reason = f"its reader ended with {done.returncode}" + (f": {said[:200]}" if said else "")
        raise InputError(f"cannot be read: {reason}", file=file) from None


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


def _serve(reader: str, file: str, memory: float, seconds: float) -> None:
    """Be the process: arrays to standard output, or an error to standard error as a line of JSON."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    module, _, name = reader.partition(":")
    function = getattr(importlib.import_module(module), name)
    _limit(memory, seconds)
    try:
        arrays = function(Path(file))
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
    except InputError as error:
        error.file = error.file or file
        parts = {key: None if value is None else str(value) for key, value in vars(error).items()}
    except (MemoryError, RecursionError):
        parts = {"message": f"cannot be read: its reader needs more than the {in_bytes(memory)} that are free",
                 "file": file}  # fmt: skip
    else:
        out.write(buffer.getbuffer())
        out.flush()
        os._exit(0)
    sys.stderr.write("\n" + json.dumps(parts) + "\n")
    sys.stderr.flush()
    os._exit(1)


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
