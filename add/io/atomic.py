"""Files that are there whole or not at all."""

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import final

from add.errors import InputError

#: How the names of files begin that are not yet whole.
TEMPORARY = ".add-"
#: A disk without room, in small letters as it follows the file's name.
FULL = {errno.ENOSPC: "no space left on device", errno.EDQUOT: "disk quota exceeded"}


@final
class CannotWrite(InputError):
    """A file cannot be written: the disk is full, or the folder is closed. What was computed may be worth keeping."""

    @classmethod
    def because(cls, error: OSError, path: Path) -> "CannotWrite":
        """Return the operating system's words about a file."""
        reason = FULL.get(error.errno or 0) or f"cannot be written: {error.strerror or error}"
        return cls(reason, file=path)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file in the same folder; on success it replaces ``path``, on an exception it is removed.

    Its name cannot be foreseen, and it is new: nobody can have put a link there that leads elsewhere.
    """
    mark = f"{secrets.token_hex(8)}.{_machine()}{os.getpid():08x}"
    temporary = path.with_name(f"{TEMPORARY}{mark}.{path.name}")  # writers choose a format by suffix
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_killed(folder: Path) -> None:
    """Remove what processes of this machine were writing in a folder when they were killed.

    A picture or a film takes as long as to draw it. Files of processes that live, and of other machines, stay.
    """
    mine = re.compile(rf"{re.escape(TEMPORARY)}[0-9a-f]{{16}}\.{_machine()}([0-9a-f]{{8}})\.")
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if (found := mine.match(path.name)) and not _lives(int(found[1], 16)):
                path.unlink(missing_ok=True)


def _machine() -> str:
    """Return four digits of this machine's name."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:4]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # of another user
    return True
