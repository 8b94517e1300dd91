"""Which of meshio's readers a file gets, and whether it looks like one of theirs at all.

Some readers never return on a file that was cut, or that is none of theirs: they wait for a line that does not come.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from add.errors import InputError
from add.machine.files import in_bytes, most_of_memory, read_regular, require_regular

#: Memory that reading takes, in sizes of the file: lists of Python's numbers, at worst.
_MEMORY = 30.0
_HEAD = 4096


@final
@dataclass(frozen=True)
class Way:
    """How a file is read.

    Attributes
    ----------
    name : str or None
        Of meshio's reader; None: it chooses by the name of the file.
    apart : bool
        In a process of its own, for a limited time.
    """

    name: str | None = None
    apart: bool = False


_AT_ONCE = {
    ".vtk": ("vtk", (b"# vtk datafile",), "'# vtk DataFile Version ...'"),
    ".vtu": ("vtu", (b"<",), "'<?xml' or '<VTKFile'"),
    ".inp": ("abaqus", (b"*",), "a keyword such as '*NODE'"),
    ".mesh": ("medit", (b"meshversionformatted", b"#", b"dimension"), "'MeshVersionFormatted'"),
}
"""Suffix -> meshio's reader that is known to end, how its files begin in small letters, and that in words."""


def way_to_read(path: Path) -> Way:
    """Choose the way by a file's name and its first lines.

    Raises
    ------
    InputError
        naming the file: empty, too large, or of another format than its name says.
    """
    size = require_regular(path).st_size
    if not size:
        raise InputError("cannot be read as a mesh: the file is empty", file=path)
    if size > most_of_memory(_MEMORY):
        raise InputError("too large", file=path, found=in_bytes(size), expected="a mesh that fits into the memory")
    suffix = path.suffix.lower()
    if suffix in (".node", ".ele"):
        _check_tetgen(path)
        return Way("tetgen")
    if suffix not in (*_AT_ONCE, ".msh"):
        return Way(apart=True)
    head = _head(path).lstrip().lower()
    if suffix == ".msh":
        if head.startswith(b"("):
            return Way("ansys", apart=True)
        _require(path, head, (b"$",), "'$MeshFormat' (Gmsh) or '(' (ANSYS)")
        return Way("gmsh")
    name, begins, words = _AT_ONCE[suffix]
    _require(path, head, begins, words)
    return Way(name)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def _require(path: Path, head: bytes, begins: tuple[bytes, ...], words: str) -> None:
    if not head.startswith(begins):
        raise InputError(
            f"cannot be read as a mesh: a {path.suffix} file does not begin like this",
            file=path,
            place="line 1",
            found=repr(head[:30].splitlines()[0].decode("ascii", errors="replace") if head.strip() else ""),
            expected=words,
        )


def _check_tetgen(path: Path) -> None:
    """Refuse a .node and .ele without their lines of counts, which the reader would wait for, or with wrong ones."""
    for suffix, n_counts, words in (
        (".node", 4, "four counts: nodes, dimension, attributes, boundary markers"),
        (".ele", 3, "three counts: tetrahedra, nodes each, attributes"),
    ):
        file = path.parent / (path.stem + suffix)
        try:
            size = require_regular(file).st_size
            content = read_regular(file, most=most_of_memory(_MEMORY))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}: {file.name}", file=path) from None
        lines = (line.strip() for line in content.splitlines())
        first = next((line for line in lines if line and not line.startswith(b"#")), b"")
        try:
            counts = [int(word) for word in first.split(b" ") if word]
        except ValueError:
            counts = []
        shown = first[:40].decode("ascii", errors="replace")
        if len(counts) != n_counts or min(counts) < 0:
            raise InputError(
                f"cannot be read as a mesh: {file.name} does not begin with its counts", file=path,
                found=repr(shown), expected=words,
            )  # fmt: skip
        if 2 * (n_counts + sum(counts[2:])) * counts[0] > size:
            raise InputError(
                f"cannot be read as a mesh: {file.name} is too short for what it counts", file=path,
                found=f"{in_bytes(size)} for '{shown}'",
            )  # fmt: skip
