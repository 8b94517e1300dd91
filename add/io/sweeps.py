"""The objective and its gradient on a grid, in one HDF5 file: what `sweep` leaves and `plot` draws."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import final

import numpy as np

from add.errors import InputError
from add.io.hdf5 import new_hdf5, opened_hdf5
from add.typing import BoolArray, FloatArray

FORMAT = "add-sweep/1"


@final
@dataclass(frozen=True, eq=False)
class SweepData:
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
        found = file.attrs.get("format")
        if not isinstance(found, str) or found != FORMAT:
            raise InputError("not a sweep", found=repr(found)[:80], expected=FORMAT)
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
