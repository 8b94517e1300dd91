"""Files that somebody else made, opened if plain and of a size that can be read; memory, disks, cores that are left."""

import io
import json
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from add.errors import InputError

_GROUP = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def idle_cores(seconds: float = 0.1) -> float:
    """Return how many cores nobody uses while this process sleeps for a time [s], of those that it may use.

    The load average remembers the last minute, so that a run just behind another would find no core. It is what is left
    where the system does not count idle time, in ticks of 0.01 s.
    """
    try:
        before, tick = _idle_ticks(), os.sysconf("SC_CLK_TCK")
        time.sleep(seconds)
        return min(float(cores()), (_idle_ticks() - before) / (tick * seconds))
    except (OSError, ValueError, IndexError):
        return cores() - os.getloadavg()[0]


def _idle_ticks() -> int:
    """Return the ticks of all cores without work, those that wait for a disk among them."""
    with open("/proc/stat", encoding="ascii") as file:
        return sum(int(ticks) for ticks in file.readline().split()[4:6])


def available_memory() -> float:
    """Return the free memory [bytes], caches that can be dropped included; infinite where the system does not say.

    In a container, what its own limit leaves.
    """
    return min(_system(), _group())


def _system() -> float:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return float("inf")


def _group() -> float:
    try:
        limit = float((_GROUP / "memory.max").read_text(encoding="ascii"))  # "max" where there is none
        used = float((_GROUP / "memory.current").read_text(encoding="ascii"))
        stat = dict(line.split() for line in (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0.0, limit - used + float(stat.get("inactive_file", 0.0)))
    except (OSError, ValueError):
        return float("inf")


def free_disk(folder: str | PathLike[str]) -> float:
    """Return the free room where a folder is, or will be made [bytes]; infinite where the system does not say."""
    place = Path(folder).absolute()
    for path in (place, *place.parents):
        if path.is_dir():
            try:
                return float(shutil.disk_usage(path).free)
            except OSError:
                break
    return float("inf")


#: Levels of objects and lists within each other that any of our files needs, by far.
DEPTH = 64

_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"),
          (stat.S_ISBLK, "a device"))  # fmt: skip


def require_regular(path: str | PathLike[str]) -> os.stat_result:
    """Return the status of a plain file, without opening it: the other end of a pipe may never come.

    Raises
    ------
    OSError
        If it is not there, or a folder.
    InputError
        If it is a pipe, a socket or a device.
    """
    status = os.stat(path)
    _require_plain(path, status)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "is a folder", os.fspath(path))
    return status


def require_readable(path: str | PathLike[str]) -> None:
    """Refuse what `require_regular` does not find, or refuses, as an input of the user's.

    Raises
    ------
    InputError
        naming the file.
    """
    with explaining(path, folder="not a file"):
        require_regular(path)


@contextmanager
def explaining(
    path: str | PathLike[str], expected: str | None = None, missing: str = "no such file",
    folder: str = "this is a folder",
) -> Iterator[None]:  # fmt: skip
    """Errors of the system while a file is opened or read, as those of who named it."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError) as error:
        what = missing if isinstance(error, FileNotFoundError) else folder
        raise InputError(what, file=path, expected=expected) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from error


def require_suffix(path: str | PathLike[str], known: Collection[str]) -> str:
    """Return the end of a file's name in small letters.

    Raises
    ------
    InputError
        If it is none that is known.
    """
    suffix = Path(path).suffix
    if suffix.lower() not in known:
        raise InputError("unknown kind of file", file=path, found=repr(suffix), expected=" or ".join(known))
    return suffix.lower()


def _require_plain(path: str | PathLike[str], found: os.stat_result) -> None:
    for test, kind in _KINDS:
        if test(found.st_mode):
            raise InputError("not a plain file", file=path, found=kind, expected="a file on a disk")


def open_regular(path: str | PathLike[str], flags: int = os.O_RDONLY, *, follow: bool = True) -> int:
    """Open a plain file and return its descriptor.

    Parameters
    ----------
    path : path
    flags : of `os.open`
    follow : whether a link may lead to the file

    Raises
    ------
    OSError
        As `os.open` does.
    InputError
        If it is not a plain file, or a link where none may be.
    """
    if not follow and os.path.islink(path):
        raise InputError("is a link: the files of a run are its own", file=path, expected="a plain file")
    # Without O_NONBLOCK a pipe would keep us; O_NOFOLLOW, should a link have come since.
    number = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), 0o666)
    try:
        status = os.fstat(number)
        _require_plain(path, status)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(21, "is a folder", os.fspath(path))
    except BaseException:
        os.close(number)
        raise
    return number


def read_regular(path: str | PathLike[str], *, most: float, follow: bool = True) -> bytes:
    """Read a plain file.

    Parameters
    ----------
    path : path
    most : size from which on it is refused [bytes]
    follow : whether a link may lead to the file

    Raises
    ------
    OSError
        As `open` does.
    InputError
        If it is no plain file, or too large for what it should be.
    """
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise InputError("too large", file=path, found=in_bytes(size), expected=f"at most {in_bytes(most)}")
        return file.read(int(most) + 1 if most < 2**62 else -1)


def read_given(path: str | PathLike[str], *, most: float, expected: str | None = None, follow: bool = True) -> bytes:
    """Read a file that a user names, as `read_regular` does.

    Raises
    ------
    InputError
        naming the file, if it is missing, a folder or cannot be read; ``expected`` says what it should be.
    """
    with explaining(path, expected, "there is no such file"):
        return read_regular(path, most=most, follow=follow)


def read_text(path: str | PathLike[str], *, most: float, expected: str) -> str:
    """Read a text in UTF-8, with or without a byte-order mark, as `read_given` does.

    Raises
    ------
    InputError
        naming the file, and the line of what is no UTF-8.
    """
    data = read_given(path, most=most, expected=expected)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place, found = f"line {1 + data.count(bytes([10]), 0, error.start)}", f"byte 0x{data[error.start]:02x}"
        wanted = f"{expected}, in UTF-8"
        raise InputError("not UTF-8 text", file=path, place=place, found=found, expected=wanted) from None


def most_of_memory(factor: float) -> float:
    """Return the largest size of a file whose content needs ``factor`` times as much memory [bytes]."""
    return available_memory() / factor


def in_bytes(size: float) -> str:
    """Write a size for people.

    Examples
    --------
    >>> in_bytes(12), in_bytes(3.2e6), in_bytes(8.1e12)
    ('12 bytes', '3.2 MB', '8100 GB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{float(f'{size / unit:.2g}'):.10g} {name}"
    return f"{size:.0f} bytes"


# --- JSON ------------------------------------------------------------------------------------------------------------


def nodes(node: Any) -> Iterator[tuple[Any, int]]:
    """Iterate over a value of JSON, all that it holds, keys among it, and how deep each lies; without recursion."""
    waiting: list[tuple[Iterable[Any], int]] = [((node,), 0)]
    while waiting:
        items, depth = waiting.pop()
        for item in items:
            yield item, depth
            if isinstance(item, dict):
                waiting.append((item, depth + 1))
                waiting.append((item.values(), depth + 1))
            elif isinstance(item, list | tuple):
                waiting.append((item, depth + 1))


def is_text(text: str) -> bool:
    """Whether a string can be written as UTF-8: JSON can spell halves of characters, which nothing else takes."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text) if not text.isascii() else True


def require_plain_json(value: Any, path: str | PathLike[str], place: str | None = None, *, most: float = 1e7) -> None:
    """Refuse what `json.loads` gives and nobody means: lists a thousand deep, halves of characters, endless content.

    Parameters
    ----------
    value : what was read
    path, place : for the error
    most : number of entries from which on it is refused

    Raises
    ------
    InputError
    """
    count = 0
    for item, depth in nodes(value):
        count += 1
        if depth > DEPTH:
            raise InputError("nested too deeply", file=path, place=place, expected=f"at most {DEPTH} levels")
        if count > most:
            raise InputError("too many entries", file=path, place=place, expected=f"at most {most:g}")
        if isinstance(item, str) and not is_text(item):
            raise InputError("not text", file=path, place=place, found=json.dumps(item[:60]),
                             expected="whole characters: a lone surrogate is none")  # fmt: skip


def parse_json(text: str, path: str | PathLike[str], place: str | None = None) -> Any:
    """Parse a text of JSON that this program wrote.

    Raises
    ------
    InputError
        naming the file, if it is not JSON or holds what `require_plain_json` refuses.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise InputError("nested too deeply", file=path, place=place, expected=f"at most {DEPTH} levels") from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=path, place=place) from None
    # Most lines of numbers have too few brackets to be deep: a look at every number would cost more than the parsing.
    if text.count("[") + text.count("{") > DEPTH or "\\ud" in text.lower():
        require_plain_json(value, path, place)
    return value


def read_json(path: str | PathLike[str], *, most: float, expected: str) -> Any:
    """Read a file of JSON of at most ``most`` bytes.

    Raises
    ------
    InputError
        naming the file, if it cannot be read or is not JSON; ``expected`` says what it should be.
    """
    return parse_json(read_text(path, most=most, expected=expected), path)


def _no_constant(literal: str) -> None:
    raise ValueError(f"JSON has no {literal}")


def lines_of(content: bytes) -> Iterator[bytes]:
    """Iterate over whole lines, without their ends; a last line without its end is left out."""
    for line in io.BytesIO(content):
        if line.endswith(b"\n"):
            yield line[:-1]
