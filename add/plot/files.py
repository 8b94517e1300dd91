"""Figures and how they are written; of files: recordings over time, meshes by boundary, edges and shapes."""

import contextlib
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from add.errors import InputError
from add.geometry import SoftMesh, boundary_faces
from add.geometry.boundary import mesh_quality
from add.io.lock import remove_killed, replacing, writing
from add.machine.files import require_suffix
from add.mocap import Take

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- Figures in one style, without pyplot: no global state, no display ------------------------------------------------

FORMATS = (".png", ".svg")
BLUE, RED, GREEN, ORANGE, PURPLE, GREY = "#0b57d0", "#d93025", "#188038", "#e37400", "#8430ce", "#5f6368"
_STYLE = {
    "text.parse_math": False,  # names are letters, dollars among them
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#80868b",
    "axes.grid": True,
    "grid.color": "#e8eaed",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "xtick.color": "#3c4043",
    "ytick.color": "#3c4043",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "add",
}

#: Pixels of an inch of a picture; tests that do not look at it ask for fewer.
DPI = 150


@contextlib.contextmanager
def figure(path: str | PathLike[str], width: float, height: float) -> Iterator[tuple["Figure", Path]]:
    """Give an empty figure [inch] and the path; on leaving, the figure is written there.

    Raises
    ------
    InputError
        where the file cannot be written or is neither .png nor .svg.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    suffix = require_suffix(path, FORMATS)
    remove_killed(path.parent)
    with matplotlib.rc_context(_STYLE):  # type: ignore[arg-type]
        drawn = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn, path
        _write_powers_plainly(drawn)
        drawn.get_layout_engine().execute(drawn)  # type: ignore[union-attr]
        drawn.set_layout_engine(None)  # with one, savefig draws everything twice
        metadata: dict[str, Any] = {"Date": None} if suffix == ".svg" else {}
        with writing(path), replacing(path) as temporary:
            drawn.savefig(temporary, metadata=metadata)


@contextlib.contextmanager
def over_time(
    path: str | PathLike[str], width: float, height: float, rows: int = 1, **how: Any
) -> Iterator[tuple[Any, Path]]:
    """Give as many diagrams over one axis of time, one below the other, and the path; see `figure`."""
    with figure(path, width, height) as (drawn, path):
        axes = drawn.subplots(rows, 1, sharex=True, squeeze=False, **how)[:, 0]
        yield axes, path
        axes[-1].set_xlabel("time [s]")


def _write_powers_plainly(drawn: "Figure") -> None:
    """Label logarithmic axes as 1e-05: with mathtext off, matplotlib's own labels would show their source."""
    from matplotlib.ticker import LogFormatter

    for axes in drawn.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() in ("log", "symlog"):
                axis.set_major_formatter(LogFormatter())
                axis.set_minor_formatter(LogFormatter(labelOnlyBase=False))


def beside(axis: Any, size: float | None = None) -> Any:
    """Put the legend of a diagram beside it."""
    return axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=size)


# ----------------------------------------------------------------------------------------------------------------------

#: Markers, or signals, that have a row of their own; of more the first are drawn.
MOST_ROWS = 10


def plot_take(take: Take, path: str | PathLike[str], names: Sequence[str] = ()) -> Path:
    """Draw the content of a capture file: when each track was seen, then x, y, z of markers, bodies, angles or signals.

    Parameters
    ----------
    take : what was read
    path : .png or .svg
    names : of markers or signals to draw; default: the first of all
    """
    rows = _rows(take, names)
    markers = take.markers
    tall = 0.0 if markers is None else 0.6 + 0.16 * min(markers.n_markers, 60)
    heights = ([tall] if markers is not None else []) + [1.5] * len(rows)
    with over_time(path, 9.0, 0.6 + sum(heights), len(heights), height_ratios=heights) as (axes, path):
        if markers is not None:
            shown = markers.names[:60]
            for k, name in enumerate(shown):
                seen = markers.times[markers.valid[:, k]]
                colour = GREY if name in take.unlabelled else BLUE
                axes[0].plot(seen, np.full(seen.shape, k), "|", color=colour, markersize=4)
            axes[0].set_yticks(range(len(shown)), shown, fontsize=6)
            axes[0].set_ylim(len(shown) - 0.5, -0.5)
            axes[0].set_title(f"{Path(take.source).name}: frames in which each track was seen (grey: unlabelled)")
        for axis, (title, unit, times, values, legend) in zip(axes[len(heights) - len(rows) :], rows, strict=True):
            for column, (label, colour) in enumerate(zip(legend, (RED, GREEN, BLUE), strict=False)):
                axis.plot(times, values[:, column], color=colour, label=label, linewidth=1.0)
            axis.set_title(title, fontsize=8, loc="left")
            axis.set_ylabel(f"[{unit}]" if unit else "")
            if len(legend) > 1:
                beside(axis, 7)
        for event in take.events:
            for axis in axes:
                axis.axvline(event.time, color="#e37400", linewidth=0.8, linestyle="--")
    return path


def _rows(take: Take, names: Sequence[str]) -> list[tuple[str, str, np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Return title, unit, times, values and legend of each row."""
    rows: list[tuple[str, str, np.ndarray, np.ndarray, tuple[str, ...]]] = []
    if take.markers is not None:
        labelled = [name for name in take.markers.names if name not in take.unlabelled] or list(take.markers.names)
        rows += [
            (name, "m", take.markers.times, take.markers.marker(name), ("x", "y", "z"))
            for name in (take.markers.names if names else labelled)
        ]
    rows += [
        (f"{name}, position", "m", pose.times, pose.position, ("x", "y", "z")) for name, pose in take.bodies.items()
    ]
    if take.angles is not None:
        rows += [
            (name, "rad", take.angles.times, take.angles.angles[:, [k]], (name,))
            for k, name in enumerate(take.angles.names)
        ]
    rows += [(item.name, item.unit, item.times, item.values[:, None], (item.name,)) for item in take.signals]
    if names:
        known = {row[0]: row for row in rows}
        missing = [name for name in names if name not in known]
        if missing:
            listed = ", ".join(map(repr, list(known)[:30]))
            raise InputError(
                "there is nothing of that name", file=take.source, found=repr(missing[0]), expected=f"one of {listed}"
            )
        rows = [known[name] for name in names]
    if not rows:
        raise InputError("there is nothing to draw", file=take.source)
    return rows[: max(MOST_ROWS, len(names))]


#: Triangles beyond which every k-th edge is drawn without its outline.
MOST_OUTLINED = 20000


def plot_mesh(mesh: SoftMesh, path: str | PathLike[str]) -> Path:
    """Draw the boundary of a tetrahedral mesh with its quality.

    Parameters
    ----------
    mesh : SoftMesh of tetrahedra [m]
    path : .png or .svg
    """
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    quality = mesh_quality(mesh)
    faces = boundary_faces(mesh).faces[:, :3]
    corners = 1e3 * mesh.points[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    light = 0.55 + 0.45 * np.clip(normals @ np.array([0.4, -0.6, 0.7]), 0.0, 1.0)
    colours = light[:, None] * np.array([0.72, 0.82, 0.95])
    low, high = 1e3 * mesh.points.min(axis=0), 1e3 * mesh.points.max(axis=0)
    with figure(path, 9.0, 4.2) as (drawn, path):
        grid = drawn.add_gridspec(2, 2, width_ratios=[1.6, 1.0])
        space = drawn.add_subplot(grid[:, 0], projection="3d")
        outlined = len(faces) <= MOST_OUTLINED
        space.add_collection3d(
            Poly3DCollection(corners, facecolors=colours, edgecolors=GREY if outlined else "none", linewidths=0.3)
        )
        for name, a, b in zip("xyz", low, high, strict=True):
            getattr(space, f"set_{name}lim")(a, b)
            getattr(space, f"set_{name}label")(f"{name} [mm]")
        space.set_box_aspect(np.maximum(high - low, 0.05 * float((high - low).max())))
        space.set_title(f"{quality.elements} tetrahedra, {quality.nodes} nodes")
        for row, (values, label) in enumerate(
            ((1e3 * quality.edges, "edge [mm]"), (quality.shapes, "shape 3 r_in / r_circum [-]"))
        ):
            axis = drawn.add_subplot(grid[row, 1])
            axis.hist(values, bins=40, color=BLUE)
            axis.set_xlabel(label)
            axis.set_ylabel("elements" if row else "edges")
    return path
