"""The picture of a run: bodies, joints, obstacles, markers and contact forces as actors that follow the time."""

from typing import TYPE_CHECKING, final

import numpy as np

from add.io.trajectory import RunData
from add.view.forces import Arrows
from add.view.framing import aim, framing_points, largest_body
from add.view.joints import joint_actors
from add.view.parts import NEUTRAL_COLOUR, Canvas, Moment, Part
from add.view.points import Points
from add.view.quantities import Quantity, quantity
from add.view.solids import Solid, draw_goals
from add.view.surfaces import nodal_parts
from add.view.world import World

if TYPE_CHECKING:
    import pyvista

COLOUR_MAPS = {"displacement": "viridis", "speed": "viridis", "stress": "plasma", "contact": "YlOrRd"}


@final
class Scene3D:
    """The actors of a run in a pyvista plotter.

    Parameters
    ----------
    data : RunData
    plotter : pyvista.Plotter
    colour : one of `add.view.COLOURS`
    arrows : draw contact forces as arrows, in front of everything; None: when coloured by "contact"
    edges : draw the edges of surface triangles
    pixel : pixels of the plotter per pixel of the picture (2 where it is anti-aliased by oversampling)
    """

    def __init__(
        self,
        data: RunData,
        plotter: "pyvista.Plotter",
        *,
        colour: str = "displacement",
        arrows: bool | None = None,
        edges: bool = False,
        pixel: float = 1.0,
    ) -> None:
        self.data = data
        self.plotter = plotter
        self.time = float(data.t[0])
        self._arrows_wanted = arrows
        self._points = framing_points(data)
        span = float(np.linalg.norm(np.ptp(self._points, axis=0)))
        span = span if span > 1e-9 else 1.0  # one point that stands still
        self._body_span = largest_body(data) or 0.2 * span
        font = int(np.clip(round(min(plotter.window_size) / 60), 7, 22))
        self._canvas = canvas = Canvas(data, plotter, pixel, span, self._body_span, font)
        step = float((data.t[-1] - data.t[0]) / max(len(data.t) - 1, 1))
        self._decimals = int(np.clip(np.ceil(-np.log10(step)), 0, 6)) if step > 0.0 else 2
        self._light()
        self._arrows = Arrows(canvas)
        self._parts: list[Part] = [
            *nodal_parts(canvas, edges),
            *(Solid(canvas, b, solid) for b, solid in enumerate(data.solids)),
            World(canvas),
            *joint_actors(canvas),
            Points(canvas),
            self._arrows,
        ]
        draw_goals(canvas)
        self._coloured = [actor for part in self._parts for actor in part.coloured]
        self._bar = ""
        self.quantity: Quantity
        self.set_colour(colour, draw=False)
        self.set_time(self.time)
        self.reset_camera()

    def set_time(self, time: float) -> None:
        """Move everything to a time [s]; between states linearly, outside of the run its end."""
        self.time = float(np.clip(time, self.data.t[0], self.data.t[-1]))
        moment = Moment.of(self.data.t, self.time)
        for part in self._parts:
            part.move(moment, self.quantity)
        self.plotter.add_text(
            f"t = {self.time:.{self._decimals}f} s", position=(0.025, 0.93), viewport=True, name="time",
            font_size=self._canvas.font, color="#202124",
        )  # fmt: skip

    def set_colour(self, colour: str, *, draw: bool = True) -> None:
        """Colour the bodies by one of `add.view.COLOURS`."""
        import pyvista

        self.quantity = quantity(self.data, colour)
        for actor in self._coloured:
            table = pyvista.LookupTable(COLOUR_MAPS[colour], n_values=256, scalar_range=self.quantity.range)
            table.nan_color = NEUTRAL_COLOUR
            actor.mapper.lookup_table = table
            actor.mapper.scalar_range = self.quantity.range
        if self._bar:
            self.plotter.remove_scalar_bar(self._bar, render=False)
            self._bar = ""
        if self._coloured and self.quantity.shown:
            font = self._canvas.font
            self._bar = self.quantity.title
            bar = self.plotter.add_scalar_bar(
                self._bar, mapper=self._coloured[0].mapper, vertical=True, position_x=0.87, position_y=0.2,
                width=0.055, height=0.6, n_labels=5, fmt="%.3g", title_font_size=font + 4,
                label_font_size=font + 2, color="#202124", render=False,
            )  # fmt: skip
            bar.SetVerticalTitleSeparation(font)
        self._arrows.show(colour == "contact" if self._arrows_wanted is None else self._arrows_wanted)
        if draw:
            self.set_time(self.time)

    def reset_camera(self) -> None:
        """Look at the whole motion, z up."""
        aim(self.plotter, self._points, 1.5 * self._body_span)

    def _light(self) -> None:
        """Parallel light from above, a weak one from the camera, a weaker one from below."""
        import pyvista

        plotter = self.plotter
        plotter.set_background("white")
        plotter.remove_all_lights()
        key = pyvista.Light(position=(0.7, -0.8, 1.9), focal_point=(0, 0, 0), light_type="scene light", intensity=0.72)
        key.positional = False
        plotter.add_light(key)
        plotter.add_light(pyvista.Light(light_type="headlight", intensity=0.42))
        fill = pyvista.Light(position=(1, -0.2, -0.5), focal_point=(0, 0, 0), light_type="scene light", intensity=0.25)
        fill.positional = False
        plotter.add_light(fill)
