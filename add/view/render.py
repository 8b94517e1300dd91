"""Pictures and films of a run without a window."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError
from add.io.atomic import remove_killed, replacing
from add.io.trajectory import RunData
from add.view.look import Look, require_pyvista
from add.view.scene3d import Scene3D

if TYPE_CHECKING:
    import pyvista

logger = logging.getLogger(__name__)

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
FILMS = (".mp4", ".gif")
OVERSAMPLING = 2.0
#: Frames of a film: at 30 a second an hour.
MOST_FRAMES = 108_000
"""How many pixels VTK draws for one of the picture, along each side, with \"ssaa\"."""


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
    _require_finite(time)
    with _off_screen(size) as plotter:
        scene = Scene3D(data, plotter, look, OVERSAMPLING)
        scene.set_time(float(data.t[-1] if time is None else time))
        _write(path, lambda temporary: plotter.screenshot(str(temporary), return_img=False))
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
            scene = Scene3D(data, plotter, self._look, OVERSAMPLING)
            scene.set_time(float(data.t[-1]))
            if self._kept is None:
                plotter.camera.zoom(0.5)  # room for the motion to come
                self._kept = plotter.camera.copy()
            plotter.camera = self._kept.copy()
            plotter.reset_camera_clipping_range()
            scene.refit_scale()
            return np.asarray(plotter.screenshot(None, return_img=True), dtype=np.uint8)


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

        def write(temporary: Path) -> None:
            with _writer(temporary, fps) as writer:
                for done, time in enumerate(times, start=1):
                    scene.set_time(float(time))
                    writer.append_data(np.asarray(plotter.screenshot(None, return_img=True)))
                    progress(done, len(times))

        _write(path, write)
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
    from add.view.page import page

    path = _target(path, (".html", ".htm"))
    _require_finite(time)
    with _off_screen((1280, 800)) as plotter:
        scene = Scene3D(data, plotter, replace(look or Look(), camera=(look or Look()).camera.removeprefix("follow ")))
        text = page(scene, path.stem, time, progress)
    _write(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return path


def _require_finite(time: float | None) -> None:
    if time is not None and not np.isfinite(time):
        raise InputError("impossible time of a picture", found=time, expected="a number [s]")


def _target(path: str | PathLike[str], suffixes: tuple[str, ...]) -> Path:
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise InputError("unknown kind of file", file=path, found=repr(path.suffix), expected=" or ".join(suffixes))
    if not path.parent.is_dir():
        raise InputError("no such folder", file=path.parent)
    remove_killed(path.parent)
    return path


def _write(path, write) -> None:  # type: ignore[no-untyped-def]
    """Call ``write`` with a temporary path that becomes ``path``."""
    try:
        with replacing(path) as temporary:
            write(temporary)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


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
