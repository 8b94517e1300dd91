"""An interactive window on a run."""

import math
import os
import sys
import time as clock
from collections.abc import Callable
from typing import Any, final

from add.errors import InputError
from add.io.trajectory_data import RunData
from add.view.look import Look, require_pyvista
from add.view.quantities import COLOURS
from add.view.render import Camera
from add.view.scene3d import Scene3D

HELP = (
    "space play, pause    arrows step    1 displacement   2 speed   3 strain   4 stress   5 contact   r reset   q quit"
)
#: Time between two pictures while playing [ms].
_TICK = 33
#: Time between two looks for more of a run [s].
_LOOK_AGAIN = 2.0


def show(
    data: RunData, *, look: Look | None = None, speed: float = 1.0, more: Callable[[], RunData | None] | None = None
) -> None:
    """Open a window and return when it is closed.

    A slider moves the time; the button or the space key plays and pauses, the arrow keys step, 1 to 5 choose the
    colour, r resets time and camera.

    Parameters
    ----------
    data : RunData
    look : what is shown, and how
    speed : seconds of the run per second of playing
    more : asked every two seconds for the run as it is by now; None where there is nothing new

    Raises
    ------
    InputError
        Without a display, or without pyvista.
    """
    plotter = _window((1280, 800), "write a picture or a film instead (--screenshot, --movie)")
    Player(data, plotter, look=look, speed=speed, more=more)
    plotter.show(auto_close=True)


def _window(size: tuple[int, int], instead: str) -> Any:
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise InputError(f"no display to open a window on; {instead}")
    require_pyvista()
    import pyvista

    plotter = pyvista.Plotter(title="add", window_size=list(size), lighting="none")
    plotter.enable_anti_aliasing("msaa")
    return plotter


@final
class Screen:
    """A window that shows one state after another, from where the first was seen.

    Parameters
    ----------
    every : time between two pictures at least [s]
    look : what is shown, and how
    size : width and height in pixels

    Raises
    ------
    InputError
        Without a display, or without pyvista.
    """

    def __init__(self, every: float, look: Look | None = None, size: tuple[int, int] = (640, 480)) -> None:
        self.plotter = _window(size, 'pictures need none (render_mode="rgb_array")')
        self._camera, self._every, self._last = Camera(look, size), every, -math.inf

    def show(self, data: RunData) -> None:
        """Show the last state of a run, not before the last picture has been seen for its time."""
        clock.sleep(max(0.0, self._last + self._every - clock.monotonic()))
        self.plotter.suppress_rendering = True  # else every part that is added draws the whole
        self.plotter.clear_actors()
        self._camera.draw(data, self.plotter)
        self.plotter.suppress_rendering = False
        if self._last == -math.inf:
            self.plotter.show(interactive_update=True, auto_close=False)
        else:
            self.plotter.update(stime=1, force_redraw=True)
        self._last = clock.monotonic()

    def close(self) -> None:
        """Close the window."""
        self.plotter.close()


@final
class Player:
    """The widgets and keys of the window, over a `Scene3D`."""

    def __init__(
        self,
        data: RunData,
        plotter: Any,
        *,
        look: Look | None = None,
        speed: float = 1.0,
        more: Callable[[], RunData | None] | None = None,
    ) -> None:
        self.data = data
        self.plotter = plotter
        self.speed = speed
        self._look, self._more, self._looked = look, more, clock.monotonic()
        self.scene = Scene3D(data, plotter, look)
        self.playing = False
        self._last = clock.monotonic()
        first, last = float(data.t[0]), float(data.t[-1])
        self.slider = plotter.add_slider_widget(
            self.seek, [first, max(last, first + 1e-9)], value=first, title="time [s]", pointa=(0.14, 0.08),
            pointb=(0.8, 0.08), style="modern", color="#202124", title_height=0.02, fmt="%.3f",
            interaction_event="always",
        )  # fmt: skip
        self.button = plotter.add_checkbox_button_widget(
            self.play, value=False, position=(60.0, 44.0), size=34, border_size=3, color_on="#0b57d0",
            color_off="#c9ced6",
        )  # fmt: skip
        self._say_keys()
        for key, action in self.keys().items():
            plotter.clear_events_for_key(key, raise_on_missing=False)
            plotter.add_key_event(key, action)
        plotter.add_timer_event(max_steps=2**31 - 1, duration=_TICK, callback=self.tick)

    def keys(self) -> dict[str, Any]:
        """Actions by key."""
        keys: dict[str, Any] = {
            "space": lambda: self.play(not self.playing),
            "r": self.reset,
            "Left": lambda: self.step(-1),
            "Right": lambda: self.step(1),
        }
        for number, colour in enumerate(COLOURS, 1):
            keys[str(number)] = lambda colour=colour: self.set_colour(colour)
        return keys

    def _say_keys(self) -> None:
        self.plotter.add_text(HELP, position="upper_right", font_size=8, color="#5f6368", name="help")

    def take(self, data: RunData) -> None:
        """Show a run that has become longer: where its end was shown its new end, else the same moment."""
        at_end, time, colour = self.scene.time >= self.data.t[-1], self.scene.time, self.scene.colour
        camera = self.plotter.camera.copy()
        for title in list(self.plotter.scalar_bars.keys()):
            self.plotter.remove_scalar_bar(title)
        self.plotter.clear_actors()
        self.data, self.scene = data, Scene3D(data, self.plotter, self._look)
        self._say_keys()
        self.scene.set_colour(colour)
        self.plotter.camera = camera
        self.slider.GetRepresentation().SetMaximumValue(float(data.t[-1]))
        self._go(float(data.t[-1]) if at_end else time)
        self.plotter.render()

    def seek(self, time: float) -> None:
        """Go to a time [s]."""
        self.scene.set_time(float(time))

    def play(self, on: bool) -> None:
        """Play or pause; at the end playing starts over."""
        self.playing = bool(on)
        self._last = clock.monotonic()
        if self.playing and self.scene.time >= self.data.t[-1]:
            self._go(float(self.data.t[0]))
        self.button.GetRepresentation().SetState(int(self.playing))

    def reset(self) -> None:
        """Go to the start, and look at the whole motion again."""
        self.play(False)
        self._go(float(self.data.t[0]))
        self.scene.reset_camera()
        self.plotter.render()

    def step(self, n: int) -> None:
        """Pause, and go some states on."""
        self.play(False)
        k = int(abs(self.data.t - self.scene.time).argmin()) + n
        self._go(float(self.data.t[min(max(k, 0), len(self.data.t) - 1)]))
        self.plotter.render()

    def set_colour(self, colour: str) -> None:
        """Colour by one of `add.view.COLOURS`."""
        self.scene.set_colour(colour)
        self.plotter.render()

    def tick(self, step: int = 0) -> None:
        """Move on by the time since the last tick, if playing."""
        self.scene.refit_scale()
        now = clock.monotonic()
        if self._more is not None and now - self._looked > _LOOK_AGAIN:
            self._looked, longer = now, self._more()
            if longer is not None:
                self.take(longer)
        passed, self._last = now - self._last, now
        if not self.playing:
            return
        time = self.scene.time + self.speed * passed
        self._go(min(time, float(self.data.t[-1])))
        if time >= self.data.t[-1]:
            self.play(False)
        self.plotter.render()

    def _go(self, time: float) -> None:
        self.slider.GetRepresentation().SetValue(time)
        self.scene.set_time(time)
