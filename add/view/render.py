"""Pictures and films of a run without a window, and a run as one interactive page, which needs no network."""

import base64
import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.io.lock import remove_killed, replacing, writing
from add.io.trajectory_data import RunData
from add.machine.files import require_suffix
from add.view.look import Look, require_pyvista
from add.view.scene3d import COLOUR_MAPS, Scene3D

if TYPE_CHECKING:
    import pyvista

MOST_MOMENTS = 120
#: Coordinates in a page: about 20 MB of text.
_MOST_NUMBERS = 4_000_000
#: Parts whose number of points changes with the time.
_LEFT_OUT = ("contact forces",)


def page(scene: Scene3D, title: str, time: float | None, progress: Callable[[int, int], None]) -> str:
    """Return the page of a run: all of it, or one moment.

    Parameters
    ----------
    scene : with its plotter
    title : of the page
    time : the moment [s]; None: the whole run, at most `MOST_MOMENTS` moments, which begins with the first
    progress : called after each moment with how many are drawn and how many there are
    """
    import jinja2
    from markupsafe import Markup

    data = scene.data
    n = 1 if time is not None else min(data.n_states, MOST_MOMENTS)
    actors = _actors(scene)
    points = sum(mesh.n_points for _, mesh in actors)
    n = max(1, min(n, _MOST_NUMBERS // max(3 * points, 1)))
    times = np.array([time]) if time is not None else np.linspace(data.t[0], data.t[-1], n)
    parts: list[dict[str, Any]] = [_part(actor, mesh) for actor, mesh in actors]
    for done, moment in enumerate(times, start=1):
        scene.set_time(float(moment))
        for part, (actor, mesh) in zip(parts, actors, strict=True):
            part["places"].append(_places(actor, mesh))
            part["tints"].append(_tints(actor, mesh))
        progress(done, len(times))
    for part in parts:
        part["places"] = [_text(item) for item in _constant(part["places"])]
        part["tints"] = [_text(item) for item in _constant(part["tints"])]
    camera, quantity = scene.plotter.camera, scene.quantity
    content = {
        "parts": parts, "times": times.tolist(), "focus": list(camera.focal_point), "eye": list(camera.position),
        "angle": float(np.radians(camera.view_angle)), "span": scene.span,
    }  # fmt: skip
    file = Path(__file__).with_name("page.html.jinja")
    template = jinja2.Environment(autoescape=True).from_string(file.read_text(encoding="utf-8"))
    shown = quantity.shown and scene.coloured
    return template.render(
        title=title, scene=Markup(json.dumps(content).replace("</", "<\\/")),
        ramp=_ramp(scene.look.colour) if shown else [], quantity=quantity.title, low=f"{quantity.range[0]:g}",
        high=f"{quantity.range[1]:g}", first=0, last=len(times) - 1,
    )  # fmt: skip


def _actors(scene: Scene3D) -> list[tuple[Any, Any]]:
    """Return the actors of the scene with surfaces, lines or points, and what they show."""
    return [
        (scene.plotter.actors[name], mesh)
        for name, mesh in scene.meshes.items()
        if name in scene.plotter.actors and mesh.n_points and name not in _LEFT_OUT
    ]


def _part(actor: Any, mesh: Any) -> dict[str, Any]:
    """Return what does not change: cells and style."""
    cells: dict[str, str] = {}
    if len(mesh.faces):
        cells["triangles"] = _text(mesh.triangulate().regular_faces.astype(np.uint32))
    segments = [line[[k, k + 1]] for line in _lines(mesh) for k in range(len(line) - 1)]
    if actor.prop.show_edges and not mesh.is_all_triangles:  # the grid of a floor
        faces = mesh.regular_faces
        segments += list(np.concatenate([faces[:, [k, (k + 1) % faces.shape[1]]] for k in range(faces.shape[1])]))
    if segments:
        cells["lines"] = _text(np.array(segments, dtype=np.uint32))
    if not cells:
        cells["points"] = _text(np.arange(mesh.n_points, dtype=np.uint32))
    lit = bool(actor.prop.lighting)
    return {
        "cells": cells, "lit": lit, "opacity": float(actor.prop.opacity), "size": float(actor.prop.point_size) / 2.0,
        "places": [], "tints": [],
    }  # fmt: skip


def _lines(mesh: Any) -> list[Any]:
    pieces, lines, k = [], np.asarray(mesh.lines), 0
    while k < len(lines):
        pieces.append(lines[k + 1 : k + 1 + lines[k]])
        k += 1 + int(lines[k])
    return pieces


def _places(actor: Any, mesh: Any) -> Any:
    matrix = np.asarray(actor.user_matrix)
    moved = np.asarray(mesh.points, dtype=float) @ matrix[:3, :3].T + matrix[:3, 3] + np.asarray(actor.position)
    return np.nan_to_num(moved).astype(np.float32)


def _tints(actor: Any, mesh: Any) -> Any:
    """Return colours (n, 3) of the points, 0 to 255."""
    mapper = actor.mapper
    if mapper.scalar_visibility and "value" in mesh.point_data:
        low, high = mapper.scalar_range
        values = np.asarray(mesh.point_data["value"], dtype=float)
        share = np.clip((values - low) / max(high - low, 1e-300), 0.0, 1.0)
        table = np.asarray(mapper.lookup_table.values)[:, :3]
        neutral = np.array(mapper.lookup_table.nan_color.int_rgb)
        rows = np.nan_to_num(share * (len(table) - 1)).round().astype(int)
        return np.where(np.isnan(share)[:, None], neutral, table[rows]).astype(np.uint8)
    rgb = (255.0 * np.asarray(actor.prop.color.float_rgb)).astype(np.uint8)
    return np.tile(rgb, (mesh.n_points, 1))


def _constant(frames: list[Any]) -> list[Any]:
    """Return one frame for those that are all the same."""
    same = all(np.array_equal(frame, frames[0]) for frame in frames[1:])
    return frames[:1] if same else frames


def _text(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _ramp(colour: str) -> list[str]:
    import matplotlib

    table = matplotlib.colormaps[COLOUR_MAPS[colour]](np.linspace(0.0, 1.0, 32))
    return [str(matplotlib.colors.to_hex(row)) for row in table]


logger = logging.getLogger(__name__)

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
FILMS = (".mp4", ".gif")
#: How many pixels VTK draws for one of the picture, along each side, with "ssaa".
OVERSAMPLING = 2.0
#: Frames of a film: at 30 a second an hour.
MOST_FRAMES = 108_000


def screenshot(
    data: RunData,
    path: str | PathLike[str],
    time: float | None = None,
    *,
    look: Look | None = None,
    size: tuple[int, int] = (1280, 800),
) -> Path:
    """Write a picture of one moment.

    Parameters
    ----------
    data : RunData
    path : .png, .jpg or .tif
    time : moment [s]; None: the end of the run
    look : what is shown, and how
    size : width and height in pixels

    Returns
    -------
    Path
        What was written.
    """
    path = _target(path, PICTURES)
    _require_time(data, time)
    with _off_screen(size) as plotter:
        scene = Scene3D(data, plotter, look, OVERSAMPLING)
        scene.set_time(float(data.t[-1] if time is None else time))
        with writing(path), replacing(path) as temporary:
            plotter.screenshot(str(temporary), return_img=False)
    return path


@final
class Camera:
    """Pictures of one state after another, from where the first was seen.

    Parameters
    ----------
    look : what is shown, and how
    size : width and height in pixels
    """

    def __init__(self, look: Look | None = None, size: tuple[int, int] = (640, 480)) -> None:
        self._look, self._size = look, size
        self._kept: Any = None

    def picture(self, data: RunData) -> NDArray[np.uint8]:
        """Return the picture (height, width, 3) of the last state of a run."""
        with _off_screen(self._size) as plotter:
            self.draw(data, plotter, OVERSAMPLING)
            return np.asarray(plotter.screenshot(None, return_img=True), dtype=np.uint8)

    def draw(self, data: RunData, plotter: "pyvista.Plotter", oversampling: float = 1.0) -> None:
        """Draw the last state of a run with a plotter that shows nothing else."""
        scene = Scene3D(data, plotter, self._look, oversampling)
        scene.set_time(float(data.t[-1]))
        if self._kept is None:
            plotter.camera.zoom(0.5)  # room for the motion to come
            self._kept = plotter.camera.copy()
        plotter.camera = self._kept.copy()
        plotter.reset_camera_clipping_range()
        scene.refit_scale()


def movie(
    data: RunData,
    path: str | PathLike[str],
    fps: float = 30.0,
    speed: float = 1.0,
    *,
    look: Look | None = None,
    size: tuple[int, int] = (1280, 720),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write a film of the whole run.

    Parameters
    ----------
    data : RunData
    path : .mp4 (H.264) or .gif (which rounds the time between frames to 0.01 s)
    fps : frames per second of film
    speed : seconds of the run per second of film; 0.1 is slow motion, ten times slower
    look, size : as for `screenshot`; an .mp4 has even sizes, odd ones are rounded down
    progress : called after each frame with how many are drawn and how many there are

    Returns
    -------
    Path
        What was written.
    """
    path = _target(path, FILMS)
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0.0):
            raise InputError(f"impossible {name} of a film", found=value, expected="a number > 0")
    duration = float(data.t[-1] - data.t[0])
    if not duration / speed * fps <= MOST_FRAMES:
        raise InputError(
            "a film of too many frames: choose a higher speed or fewer frames a second",
            file=path,
            found=f"{duration / speed * fps:.3g}",
            expected=f"at most {MOST_FRAMES}",
        )
    n_frames = 1 + round(duration / speed * fps)
    times = np.linspace(data.t[0], data.t[-1], max(n_frames, 2))
    if n_frames < 15:
        logger.warning("%s has only %d frames; a smaller speed than %g gives more", path, len(times), speed)
    size = (size[0] - size[0] % 2, size[1] - size[1] % 2)
    with _off_screen(size) as plotter:
        scene = Scene3D(data, plotter, look, OVERSAMPLING)
        with writing(path), replacing(path) as temporary, _writer(temporary, fps) as writer:
            for done, time in enumerate(times, start=1):
                scene.set_time(float(time))
                writer.append_data(np.asarray(plotter.screenshot(None, return_img=True)))
                progress(done, len(times))
    return path


def export_html(
    data: RunData,
    path: str | PathLike[str],
    time: float | None = None,
    *,
    look: Look | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write a run, or one moment of it, as an interactive page: one file that needs no network.

    Parameters
    ----------
    data : RunData
    path : .html
    time : the moment [s]; None: the whole run with a slider
    look : what is shown, and how; a page has no ambient occlusion, and a camera that stands
    progress : as of `movie`

    Returns
    -------
    Path
        What was written.
    """
    path = _target(path, (".html", ".htm"))
    _require_time(data, time)
    with _off_screen((1280, 800)) as plotter:
        scene = Scene3D(data, plotter, replace(look or Look(), camera=(look or Look()).camera.removeprefix("follow ")))
        text = page(scene, path.stem, time, progress)
    with writing(path), replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _require_time(data: RunData, time: float | None) -> None:
    """Refuse a time at which a run has no state, but for rounding."""
    first, last = float(data.t[0]), float(data.t[-1])
    room = 1e-9 * max(1.0, abs(last))
    if time is not None and not first - room <= time <= last + room:
        raise InputError("impossible time of a picture", found=time, expected=f"within [{first:g}, {last:g}] s")


def _target(path: str | PathLike[str], suffixes: tuple[str, ...]) -> Path:
    path = Path(path)
    require_suffix(path, suffixes)
    if not path.parent.is_dir():
        raise InputError("no such folder", file=path.parent)
    remove_killed(path.parent)
    return path


def _writer(path: Path, fps: float):  # type: ignore[no-untyped-def]
    import imageio.v2 as imageio

    if path.suffix.lower() == ".gif":
        return imageio.get_writer(path, duration=1000.0 / fps, loop=0)
    try:
        return imageio.get_writer(path, fps=fps, codec="libx264", quality=8, macro_block_size=2)
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"films in .mp4 need ffmpeg: python -m pip install imageio-ffmpeg, or choose .gif ({error})", file=path
        ) from error


@contextlib.contextmanager
def _off_screen(size: tuple[int, int]) -> Iterator["pyvista.Plotter"]:
    """A plotter without a window: X if there is a display, else EGL or OSMesa, which VTK finds by itself."""
    require_pyvista()
    import pyvista
    from vtkmodules.vtkCommonCore import vtkLogger

    if min(size) < 16:
        raise InputError("impossible size of a picture", found=size, expected="at least 16 pixels")
    before = vtkLogger.GetCurrentVerbosityCutoff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)  # it warns about the display that is not there
    try:
        plotter = pyvista.Plotter(off_screen=True, window_size=list(size), lighting="none")
        plotter.enable_anti_aliasing("ssaa")
        try:
            yield plotter
        finally:
            plotter.close()
    finally:
        vtkLogger.SetStderrVerbosity(before)
