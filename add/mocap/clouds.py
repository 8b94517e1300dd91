"""Sequences of point clouds: NPZ, CSV, or a folder of PLY files, as depth cameras and scanners give them."""

import io
import zipfile
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from add.errors import InputError, in_short
from add.machine.files import most_of_memory, read_regular, read_text
from add.typing import BoolArray, FloatArray


class Clouds(NamedTuple):
    """Points by frame.

    Attributes
    ----------
    times : (nf,) increasing [s]
    points : one a frame, (n_f, 3) [m]
    colours : one a frame, (n_f, 3) red, green, blue from 0 to 1 [-]; none: the file has none
    """

    times: FloatArray
    points: tuple[FloatArray, ...]
    colours: tuple[FloatArray, ...] = ()

    @property
    def n_points(self) -> int:
        """Number of points in all frames."""
        return sum(map(len, self.points))

    def shifted(self, time: float) -> "Clouds":
        """Return the clouds on a clock whose zero is at ``time`` of this one [s]."""
        return self._replace(times=self.times - time)

    def moved(self, to: Callable[[FloatArray], FloatArray]) -> "Clouds":
        """Return the clouds with each frame's points where ``to`` puts them."""
        return self._replace(points=tuple(to(p) for p in self.points))

    def cropped(self, start: float, stop: float) -> "Clouds":
        """Return the frames in [start, stop] [s]."""
        kept = np.flatnonzero((self.times >= start - 1e-9) & (self.times <= stop + 1e-9))
        colours = tuple(self.colours[k] for k in kept) if self.colours else ()
        return Clouds(self.times[kept], tuple(self.points[k] for k in kept), colours)

    def in_box(self, low: FloatArray, high: FloatArray) -> "Clouds":
        """Return the points within a box."""
        return self._where(np.asarray(((p >= low) & (p <= high)).all(axis=1)) for p in self.points)

    def above(self, point: FloatArray, normal: FloatArray) -> "Clouds":
        """Return the points on the side of a plane to which its normal points: a table's own points are dropped."""
        return self._where((p - point) @ normal >= 0.0 for p in self.points)

    def of_colour(self, low: FloatArray, high: FloatArray) -> "Clouds":
        """Return the points whose colours lie in a box of red, green and blue."""
        return self._where(np.asarray(((c >= low) & (c <= high)).all(axis=1)) for c in self.colours)

    def every(self, n: int) -> "Clouds":
        """Return every n-th point of each frame."""
        return self._where(np.arange(len(p)) % n == 0 for p in self.points)

    def _where(self, masks: Iterable[BoolArray]) -> "Clouds":
        kept = list(masks)
        points = tuple(p[mask] for p, mask in zip(self.points, kept, strict=True))
        colours = tuple(c[mask] for c, mask in zip(self.colours, kept, strict=True)) if self.colours else ()
        return Clouds(self.times, points, colours)


def read_clouds(path: str | PathLike[str], *, rate: float | None = None, scale: float = 1.0) -> Clouds:
    """Read a sequence of point clouds.

    Parameters
    ----------
    path : .npz with `times` (nf,), `points` (n, 3) and `frame` (n,), the number of each point's frame; .csv with the
        columns time_s, x_m, y_m, z_m, a row for each point; or a folder of .ply files, frame after frame by name.
        Colours, of bytes or from 0 to 1: `colours` (n, 3); red, green, blue after the columns; those of the .ply files
    rate : frames a second of a folder, which has no times [Hz]
    scale : from the file's unit to metres

    Raises
    ------
    InputError
        naming the file and what is wrong. Points with NaN are dropped: cameras mark so what they did not see.
    """
    path = Path(path)
    if path.is_dir():
        times, points, colours = _folder(path, rate)
    elif path.suffix.lower() == ".npz":
        times, points, colours = _npz(path)
    elif path.suffix.lower() == ".csv":
        times, points, colours = _csv(path)
    else:
        raise InputError("not a sequence of point clouds", file=path, expected=".npz, .csv, or a folder of .ply files")
    if not times.size:
        raise InputError("there are no frames", file=path)
    if not np.isfinite(times).all() or (np.diff(times) <= 0.0).any():
        raise InputError("the times of the frames do not increase", file=path)
    bytes_ = any(c.size and c.max() > 1.0 for c in colours)
    clouds = Clouds(times, tuple(scale * p for p in points), tuple(c / (255.0 if bytes_ else 1.0) for c in colours))
    return clouds._where(np.asarray(np.isfinite(p).all(axis=1)) for p in clouds.points)


_Read = tuple[FloatArray, list[FloatArray], list[FloatArray]]


def _npz(path: Path) -> _Read:
    try:
        with np.load(io.BytesIO(read_regular(path, most=most_of_memory(4.0))), allow_pickle=False) as archive:
            arrays = {
                name: np.asarray(archive[name]) for name in ("times", "points", "frame", "colours") if name in archive
            }
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"cannot be read: {error}", file=path, expected="a file of numpy.savez") from None
    missing = [name for name in ("times", "points", "frame") if name not in arrays]
    if missing:
        raise InputError("an array is missing", file=path, found=f"no '{missing[0]}'", expected="times, points, frame")
    times, points, frame = arrays["times"], arrays["points"], arrays["frame"]
    if times.ndim != 1 or points.ndim != 2 or points.shape[1] != 3 or frame.shape != points.shape[:1]:
        shapes = f"times {times.shape}, points {points.shape}, frame {frame.shape}"
        raise InputError("the arrays do not fit", file=path, found=shapes, expected="(nf,), (n, 3), (n,)")
    if frame.dtype.kind not in "iu" or (frame.size and (frame.min() < 0 or frame.max() >= times.size)):
        raise InputError("a point belongs to no frame", file=path, place="frame", expected=f"0 to {times.size - 1}")
    colours = arrays.get("colours")
    if colours is not None and colours.shape != points.shape:
        raise InputError("a point needs one colour", file=path, found=f"colours {colours.shape}", expected="(n, 3)")
    split = [np.asarray(points[frame == k], dtype=float) for k in range(times.size)]
    tints = [] if colours is None else [np.asarray(colours[frame == k], dtype=float) for k in range(times.size)]
    return times.astype(float), split, tints


def _csv(path: Path) -> _Read:
    text = read_text(path, most=most_of_memory(16.0), expected="a table of points")
    head, _, rest = text.partition("\n")
    columns = [name.strip() for name in head.split(",")]
    known = ["time_s", "x_m", "y_m", "z_m", "red", "green", "blue"]
    width = len(columns)
    if columns not in (known[:4], known):
        expected = "time_s,x_m,y_m,z_m, and perhaps red,green,blue"
        raise InputError("other columns than a cloud has", file=path, found=head[:80], expected=expected)
    rows = []
    for number, line in enumerate(rest.splitlines(), start=2):
        if not line.strip():
            continue
        try:
            row = [float(part) for part in line.split(",")]
        except ValueError:
            row = []
        if len(row) != width:
            raise InputError(
                f"not {'four' if width == 4 else 'seven'} numbers", file=path, place=f"line {number}", found=line[:60]
            )
        rows.append(row)
    table = np.array(rows, dtype=float).reshape(-1, width)
    if (np.diff(table[:, 0]) < 0.0).any():
        raise InputError("the times of the frames do not increase", file=path)
    times, first = np.unique(table[:, 0], return_index=True)
    parts = np.split(table, first[1:]) if len(table) else []
    return times, [part[:, 1:4] for part in parts], [part[:, 4:] for part in parts] if width == 7 else []


def _folder(path: Path, rate: float | None) -> _Read:
    import trimesh  # half a second, and few scenes need it

    if rate is None:
        raise InputError("PLY files have no times", file=path, expected="a 'rate' of frames a second")
    points, colours = [], []
    for file in sorted(path.glob("*.ply")):
        try:
            content = io.BytesIO(read_regular(file, most=most_of_memory(8.0)))
            cloud = trimesh.load(content, file_type="ply", process=False)
            points.append(np.asarray(cloud.vertices, dtype=float).reshape(-1, 3))
            tint = cloud.colors if hasattr(cloud, "colors") else None
            if tint is not None and len(tint) == len(points[-1]):
                colours.append(np.asarray(tint, dtype=float)[:, :3])
        except (Exception, SystemExit) as error:  # trimesh raises what its parsers happen to raise
            raise InputError(f"cannot be read as a point cloud: {in_short(error)}", file=file) from None
    return np.arange(len(points)) / rate, points, colours if len(colours) == len(points) else []
