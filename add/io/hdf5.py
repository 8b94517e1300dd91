"""HDF5 files: written in one piece, read only where they hold what they say themselves; the grids of `sweep`."""

import contextlib
import io
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from add.errors import InputError, in_short
from add.io.lock import replacing, writing
from add.machine.files import available_memory, explaining, in_bytes, is_text, open_regular
from add.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    import h5py

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: How many times its size the best compression that HDF5 has (gzip) can hold, and more than that is a bomb.
_MOST_COMPRESSED = 1100
#: Largest content that may come from any compressed piece, whatever its size [bytes].
_SMALL = 2**20


@contextlib.contextmanager
def new_hdf5(path: Path) -> "Iterator[h5py.File]":
    """Give an empty HDF5 file in memory; on success its bytes replace ``path``.

    A file that the library could not write to a full disk it cannot close either: it tries again when Python ends, and
    falls. Plain bytes fail once, with an error. The price is memory of the file's size, which is compressed.

    Raises
    ------
    CannotWrite
        naming the file.
    """
    import h5py

    content = io.BytesIO()
    with h5py.File(content, "w", track_order=True) as file:
        yield file
    with writing(path), replacing(path) as temporary:
        temporary.write_bytes(content.getbuffer())


@contextlib.contextmanager
def opened_hdf5(path: Path, *, expected: str) -> "Iterator[h5py.File]":
    """Give a file to be read; whatever is wrong in it, or comes up while it is read, is one error.

    Parameters
    ----------
    path : path
    expected : for the error

    Raises
    ------
    InputError
        naming the file: not HDF5, damaged, with links into other files or data that lie in them, or larger than the
        memory.
    """
    import h5py

    with explaining(path, expected):
        number = open_regular(path)
    try:
        with os.fdopen(number, "rb") as raw:
            if raw.read(8) != _SIGNATURE:
                raise InputError("not an HDF5 file", file=path, expected=expected)
        with h5py.File(path, "r") as file:
            _require_own(file)
            yield file
    except InputError as error:
        error.file = path
        raise
    except MemoryError:
        raise InputError("larger than the memory", file=path, expected=expected) from None
    except Exception as error:  # h5py raises all kinds of errors on damaged content
        raise InputError(f"truncated or damaged: {in_short(error)}", file=path, expected=expected) from error


def _require_own(file: "h5py.File") -> None:
    """Refuse content that lies in other files, or is none: links, raw storage and views elsewhere, giants, circles."""
    import h5py

    total, memory = 0.0, available_memory()
    waiting, seen = [file["/"]], set()
    while waiting:
        group = waiting.pop()
        if group.id in seen:
            raise InputError("a group that holds itself", place=group.name)
        seen.add(group.id)
        for key in group:
            place = f"{group.name.rstrip('/')}/{key}"
            if not isinstance(key, str) or not is_text(key):
                raise InputError("a name that is no text", place=ascii(place)[:80])
            link = group.get(key, getlink=True)
            if not isinstance(link, h5py.HardLink):
                kind = "into another file" if isinstance(link, h5py.ExternalLink) else "to another place"
                raise InputError(f"a link {kind}: not read", place=place)
            item = group[key]
            if isinstance(item, h5py.Group):
                waiting.append(item)
            elif isinstance(item, h5py.Dataset):
                total += _bytes_of(item, place)
    if total > memory:
        raise InputError("larger than the memory", found=in_bytes(total), expected=f"at most {in_bytes(memory)}")


def _bytes_of(item: Any, place: str) -> float:
    """Return the size of a dataset in memory; refuse one whose numbers are not all in this file."""
    if item.is_virtual or item.external:
        raise InputError("data that lie in another file: not read", place=place)
    if item.dtype.kind not in "biuf":
        raise InputError("not numbers", place=place, found=str(item.dtype)[:60])
    size = float(np.prod([float(n) for n in item.shape])) * item.dtype.itemsize
    stored = float(item.id.get_storage_size())
    compressed = item.chunks is not None and item.compression is not None
    if size > (max(_MOST_COMPRESSED * stored, _SMALL if stored else 0.0) if compressed else stored):
        raise InputError(
            "numbers that are not in the file", place=place, found=f"{in_bytes(stored)} of {in_bytes(size)}"
        )
    return size


FORMAT = "add-sweep/1"


class SweepData(NamedTuple):
    """A sampled objective.

    Attributes
    ----------
    names, units : (k,) str
        Of the parameters, k = 1 or 2.
    grid : k arrays (n_i,)
        Their values, increasing.
    logarithmic : (k,) bool
        Whether the values are spaced by equal ratios.
    values : (n_1,) or (n_1, n_2)
        The objective; NaN where a simulation failed or has not been made.
    gradients : (n_1, 1) or (n_1, n_2, 2)
        Its derivatives by the parameters [1/unit].
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    grid: tuple[FloatArray, ...]
    logarithmic: tuple[bool, ...]
    values: FloatArray
    gradients: FloatArray

    @property
    def sampled(self) -> BoolArray:
        """The samples that have a value."""
        return np.isfinite(self.values)

    @property
    def minimum(self) -> tuple[int, ...] | None:
        """Indices of the lowest value; None if there is none."""
        if not self.sampled.any():
            return None
        return tuple(int(i) for i in np.unravel_index(np.nanargmin(self.values), self.values.shape))


def write_sweep(path: str | PathLike[str], data: SweepData) -> None:
    """Write a sweep; a reader sees the old file or the whole new one.

    Raises
    ------
    CannotWrite
        naming the file.
    """
    with new_hdf5(Path(path)) as file:
        file.attrs["format"] = FORMAT
        for i, name in enumerate(data.names):
            axis = file.create_dataset(f"grid/{i}", data=data.grid[i])
            axis.attrs["name"], axis.attrs["unit"] = name, data.units[i]
            axis.attrs["logarithmic"] = data.logarithmic[i]
        file["values"], file["gradients"] = data.values, data.gradients


def read_sweep(path: str | PathLike[str]) -> SweepData:
    """Read what `write_sweep` wrote.

    Raises
    ------
    InputError
        naming the file: missing, damaged, or of another format.
    """
    with opened_hdf5(Path(path), expected="the sweep.h5 that `add sweep` leaves") as file:
        written = file.attrs.get("format")
        if not isinstance(written, str) or written != FORMAT:
            raise InputError("not a sweep", found=repr(written)[:80], expected=FORMAT)
        axes = [file[f"grid/{i}"] for i in range(len(file["grid"]))]
        data = SweepData(
            tuple(str(axis.attrs["name"]) for axis in axes),
            tuple(str(axis.attrs["unit"]) for axis in axes),
            tuple(np.asarray(axis[:], dtype=float) for axis in axes),
            tuple(bool(axis.attrs["logarithmic"]) for axis in axes),
            np.asarray(file["values"][:], dtype=float),
            np.asarray(file["gradients"][:], dtype=float),
        )
        _require_grid(data)
        return data


def _require_grid(data: SweepData) -> None:
    """Refuse parts that do not fit."""
    shape = tuple(len(values) for values in data.grid)
    if len(shape) not in (1, 2) or min(shape) < 1:
        raise InputError("a sweep has one or two parameters", place="grid", found=len(shape))
    for k, (values, logarithmic) in enumerate(zip(data.grid, data.logarithmic, strict=True)):
        if values.ndim != 1 or not np.isfinite(values).all() or not (np.diff(values) > 0.0).all():
            raise InputError("the values of a grid must increase", place=f"grid/{k}")
        if logarithmic and values[0] <= 0.0:
            raise InputError("a grid of equal ratios must be above 0", place=f"grid/{k}", found=f"{values[0]:g}")
    for name, values, wanted in (("values", data.values, shape), ("gradients", data.gradients, (*shape, len(shape)))):
        if values.shape != wanted:
            raise InputError("wrong shape", place=name, found=values.shape, expected=wanted)
