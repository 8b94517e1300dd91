"""Volume meshes in files, through meshio: which of its readers a file gets, and whether it looks like one of theirs.

Some readers never return on a file that was cut, or that is none of theirs: they wait for a line that does not come.
"""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from add.errors import InputError, naming
from add.geometry import FAMILIES, TET4, TET10, SoftMesh, to_tet10, validate
from add.machine.files import explaining, in_bytes, most_of_memory, read_regular, require_readable, require_regular
from add.machine.foreign import little_memory, read_apart
from add.typing import AnyArray, FloatArray

#: Memory that reading takes, in sizes of the file: lists of Python's numbers, at worst.
_MEMORY = 30.0
_HEAD = 4096


class Way(NamedTuple):
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


#: Suffix -> meshio's reader that is known to end, how its files begin in small letters, and that in words.
_AT_ONCE = {
    ".vtk": ("vtk", (b"# vtk datafile",), "'# vtk DataFile Version ...'"),
    ".vtu": ("vtu", (b"<",), "'<?xml' or '<VTKFile'"),
    ".inp": ("abaqus", (b"*",), "a keyword such as '*NODE'"),
    ".mesh": ("medit", (b"meshversionformatted", b"#", b"dimension"), "'MeshVersionFormatted'"),
}


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
    with explaining(path), path.open("rb") as file:
        head = file.read(_HEAD).lstrip().lower()
    if suffix == ".msh":
        if head.startswith(b"("):
            return Way("ansys", apart=True)
        _require(path, head, (b"$",), "'$MeshFormat' (Gmsh) or '(' (ANSYS)")
        return Way("gmsh")
    name, begins, words = _AT_ONCE[suffix]
    _require(path, head, begins, words)
    return Way(name)


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


logger = logging.getLogger(__name__)

_BY_MESHIO_NAME = {family.meshio_name: family for family in FAMILIES.values()}


def read_mesh(path: str | PathLike[str], element: str | None = None) -> SoftMesh:
    """Read the volume elements of a mesh file and validate them.

    Parameters
    ----------
    path : any format that meshio reads and that carries volume cells (.msh, .vtu, .vtk, .inp, .mesh, .xdmf ...; TetGen
        by its .node or its .ele). Lines and surface cells next to the volume cells are ignored. Formats whose readers
        may not end on a damaged file are read in a process of their own, which costs a second.
    element : None: the family of the file. "tet10" of a tet4 file: straight-sided mid-edge nodes are added. Any other
        family has to be the one of the file.

    Returns
    -------
    SoftMesh, coordinates as in the file. Unused nodes are dropped and inverted elements reversed, with a logged note.

    Raises
    ------
    InputError
        naming the file: missing, no plain file or unreadable; no volume cells; several families, or none that is known;
        see `add.geometry.validate` for errors in the mesh itself (elements counted from 0 in the order of the file).
    """
    path = Path(path)
    if element is not None and element not in FAMILIES:
        raise InputError(
            "unknown element family", file=path, found=repr(element), expected=" or ".join(map(repr, FAMILIES))
        )
    require_readable(path)
    way = way_to_read(path)
    points, blocks = _unpacked(read_apart(f"{__name__}:_parsed", path)) if way.apart else _read_quietly(path, way)[:2]
    with naming(file=path):
        mesh = _volume_cells(points, blocks)
        valid = validate(mesh)
    if valid.n_dropped:
        logger.info("%s: %d nodes that no volume element uses were dropped", path, valid.n_dropped)
    if valid.n_flipped:
        logger.info("%s: %d inverted elements were reversed", path, valid.n_flipped)
    mesh = valid.mesh
    if element == "tet10" and mesh.family is TET4:
        return to_tet10(mesh)
    if element is not None and mesh.family.name != element:
        raise InputError(
            "the file has another kind of elements",
            file=path,
            found=mesh.family.name,
            expected=element + (" or tet4" if element == TET10.name else ""),
        )
    return mesh


def read_cell_data(path: str | PathLike[str], name: str) -> FloatArray:
    """Read what a mesh file says of each volume element, (ne,) or (ne, width), in the order of `read_mesh`.

    Raises
    ------
    InputError
        naming the file: unreadable, or without these data, which the error lists.
    """
    path = Path(path)
    _, blocks, data = _read_quietly(path, way_to_read(path))
    if name not in data:
        known = ", ".join(f"'{key}'" for key in data) or "a file with cell data"
        raise InputError("the mesh has no such cell data", file=path, found=f"'{name}'", expected=known)
    parts = [values for (_, dim, _), values in zip(blocks, data[name], strict=True) if dim == 3 and len(values)]
    return np.concatenate(parts).astype(np.float64)


def write_mesh(path: str | PathLike[str], mesh: SoftMesh) -> None:
    """Write a mesh in the format that the file name asks for; `.msh` becomes MSH 2.2 in text, full precision.

    Raises
    ------
    InputError
        naming the file, where the format is unknown, cannot hold these elements, or the file cannot be written.
    """
    import meshio

    path = Path(path)
    content = meshio.Mesh(mesh.points, [(mesh.family.meshio_name, mesh.cells)])
    try:
        with quiet():
            if path.suffix.lower() == ".msh":
                meshio.write(path, content, file_format="gmsh22", binary=False)
            else:
                meshio.write(path, content)
    except (Exception, SystemExit) as error:
        raise InputError(f"cannot write this mesh: {_reason(error, '')}", file=path) from error


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Keep what meshio prints; it is given back as a StringIO."""
    said = io.StringIO()
    with (
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="string or file could not be read")  # NumPy < 2.3 only warns of noise
        yield said


def _reason(error: BaseException, said: str) -> str:
    """One line on why meshio failed: the exception, or what it printed before it gave up with SystemExit."""
    text = said if isinstance(error, SystemExit) else str(error)
    text = " ".join(text.split())
    return (text if len(text) <= 200 else text[:197] + "...") or type(error).__name__


#: Name of a kind of cells, its dimension, and the cells.
Block = tuple[str, int, AnyArray]

EXPECTED = "a volume mesh in a format that meshio knows, such as .msh, .vtu or .node with .ele"


def _read_quietly(path: Path, way: Way) -> tuple[AnyArray, list[Block], dict[str, list[AnyArray]]]:
    """Read points, blocks and their data with meshio; whatever goes wrong in there is one InputError."""
    import meshio

    said = io.StringIO()
    try:
        path.open("rb").close()
        with quiet() as said, little_memory(path.stat().st_size):
            raw = meshio.read(path, file_format=way.name)
            blocks = [(block.type, block.dim, np.asarray(block.data)) for block in raw.cells]
            return np.asarray(raw.points), blocks, raw.cell_data
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (Exception, SystemExit) as error:  # meshio raises what its parsers happen to raise, or leaves by sys.exit
        raise InputError(
            f"cannot be read as a mesh: {_reason(error, said.getvalue())}", file=path, expected=EXPECTED
        ) from error


def _parsed(path: Path) -> dict[str, AnyArray]:
    """Read a file in a process of its own; see `_unpacked`."""
    points, blocks, _ = _read_quietly(path, way_to_read(path))
    arrays = {f"{k} {kind} {dim}": cells for k, (kind, dim, cells) in enumerate(blocks) if cells.dtype != object}
    return {"points": points} | arrays


def _unpacked(arrays: dict[str, AnyArray]) -> tuple[AnyArray, list[Block]]:
    names = [name.split() for name in arrays if name != "points"]
    return arrays["points"], [(kind, int(dim), arrays[f"{k} {kind} {dim}"]) for k, kind, dim in names]


def _volume_cells(points: AnyArray, blocks: list[Block]) -> SoftMesh:
    """Join the volume cells of one family."""
    solid = [(kind, cells) for kind, dim, cells in blocks if dim == 3 and len(cells)]
    counts: dict[str, int] = {}
    for kind, cells in solid:
        counts[kind] = counts.get(kind, 0) + len(cells)
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    known = " or ".join(f"{family.meshio_name} ({family.name})" for family in FAMILIES.values())
    if not solid:
        others = ", ".join(f"{len(cells)} {kind}" for kind, _, cells in blocks if len(cells)) or "no cells"
        raise InputError(
            "no volume elements: a volume mesh is needed (a surface can be filled by a mesher, such as fTetWild)",
            found=others,
            expected=known,
        )
    unknown = [name for name in counts if name not in _BY_MESHIO_NAME]
    if unknown:
        raise InputError(
            f"elements of a kind that is not supported: {', '.join(unknown)}", found=listed, expected=known
        )
    if len(counts) > 1:
        raise InputError("elements of several families in one mesh", found=listed, expected="one family")
    joined = np.concatenate([np.asarray(cells, dtype=np.int64) for _, cells in solid])
    return SoftMesh(points, joined, _BY_MESHIO_NAME[solid[0][0]])
