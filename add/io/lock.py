"""One process at a time in a run folder, by a lock that dies with its holder; files that are whole or not there."""

import contextlib
import errno
import fcntl
import getpass
import hashlib
import json
import os
import platform
import re
import secrets
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self, final

from add.errors import InputError
from add.machine.files import open_regular

#: Name of the file in a run folder that is locked.
LOCK = ".lock"
_BYTES = 4096
#: What `flock` says where a file system knows no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


class Holder(NamedTuple):
    """The process that works in a run folder.

    Attributes
    ----------
    command : of `add`
    pid, host, user : of the process
    since : time, to the second
    """

    command: str
    pid: int
    host: str
    user: str
    since: str

    @classmethod
    def this_process(cls, command: str) -> Self:
        """Return the name of this process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container may have no name for its user
            user = str(os.getuid())
        return cls(command, os.getpid(), platform.node(), user, datetime.now().astimezone().isoformat(" ", "seconds"))

    def __str__(self) -> str:
        return f"`add {self.command}`, process {self.pid} of {self.user} on {self.host}, since {self.since}"

    @property
    def gone(self) -> bool:
        """Whether the process is known to be no more: it was one of this machine."""
        return self.host == platform.node() and not _lives(self.pid)


@final
class FolderLock:
    """The lock of a run folder, held by one process; held twice by the same object, it is free after the second end.

    The kernel frees it when its holder ends, whatever ends it: a file that a killed process left locks nothing.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._file: int | None = None
        self._depth = 0

    def acquire(self, command: str) -> None:
        """Take the lock.

        Raises
        ------
        InputError
            naming who has it.
        """
        self._depth += 1
        if self._depth > 1:
            return
        try:
            self._file = self._locked()
            text = json.dumps(Holder.this_process(command)._asdict())
            os.truncate(self._file, 0)
            os.pwrite(self._file, text.encode(), 0)
        except BaseException:
            self.release()
            raise

    def _locked(self) -> int:
        """Open and lock the file; again, if its holder removed it in between."""
        while True:
            try:
                file = open_regular(self._path, os.O_RDWR | os.O_CREAT, follow=False)
            except OSError as error:
                raise InputError(f"cannot be locked: {error.strerror or error}", file=self._path) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = _read(file)
                os.close(file)
                if error.errno in _NO_LOCKS and (holder is None or holder.gone):
                    # A file system without locks, where its content has to do.
                    return open_regular(self._path, os.O_RDWR | os.O_CREAT, follow=False)
                raise self._taken(holder, error) from None
            if _same(file, self._path):
                return file
            os.close(file)

    def require_free(self) -> None:
        """Raise the error of `acquire` where another process works in the folder."""
        holder = holder_of(self._path.parent)
        if holder is not None:
            raise self._taken(holder)

    def _taken(self, holder: Holder | None, error: OSError | None = None) -> InputError:
        who = str(holder) if holder else "another process"
        advice = "wait for it, or choose another folder (-o)"
        if error is not None and error.errno in _NO_LOCKS:
            advice += f"; if it is no more, remove {self._path}"
        return InputError(f"in use by {who}: {advice}", file=self._path.parent)

    def release(self) -> None:
        """Give the lock back and remove its file."""
        self._depth -= 1
        if self._depth or self._file is None:
            return
        if _same(self._file, self._path):
            self._path.unlink(missing_ok=True)
        os.close(self._file)
        self._file = None


def holder_of(folder: Path) -> Holder | None:
    """Return the process that works in a run folder; None if there is none."""
    try:
        file = open_regular(folder / LOCK, os.O_RDONLY, follow=False)
    except (OSError, InputError):
        return None
    try:
        holder = _read(file)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return None if error.errno in _NO_LOCKS and holder is not None and holder.gone else holder
        return None
    finally:
        os.close(file)


def _read(file: int) -> Holder | None:
    """Return the holder that a lock's file names; None where it cannot be read."""
    try:
        content = json.loads(os.pread(file, _BYTES, 0))
        holder = Holder(**{key: content[key] for key in ("command", "pid", "host", "user", "since")})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    texts = (holder.command, holder.host, holder.user, holder.since)
    said = isinstance(holder.pid, int) and all(isinstance(text, str) and text.isprintable() for text in texts)
    return holder if said else None


def _same(file: int, path: Path) -> bool:
    """Whether an open file is the one that a path names."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(file)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


#: How the names of files begin that are not yet whole.
TEMPORARY = ".add-"
#: A disk without room, in small letters as it follows the file's name.
FULL = {errno.ENOSPC: "no space left on device", errno.EDQUOT: "disk quota exceeded"}


@final
class CannotWrite(InputError):
    """A file cannot be written: the disk is full, or the folder is closed. What was computed may be worth keeping."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Errors of the system while ``path`` is written, as `CannotWrite`."""
    try:
        yield
    except OSError as error:
        reason = FULL.get(error.errno or 0) or f"cannot be written: {error.strerror or error}"
        raise CannotWrite(reason, file=path) from error


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
            if (match := mine.match(path.name)) and not _lives(int(match[1], 16)):
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
