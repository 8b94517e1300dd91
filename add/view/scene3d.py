"""The picture of a run: bodies, joints, obstacles, markers, forces, axes and scale as actors that follow the time."""

from typing import TYPE_CHECKING, Any, final

import numpy as np

from add.io.trajectory_data import RunData
from add.io.trajectory_parts import ObstacleData
from add.kernels.shape_codes import MESH, PLANE
from add.typing import FloatArray
from add.view.look import Look, aim, framing_points, largest_body, middles, round_down, round_number
from add.view.parts import Canvas, Glyphs, Moment, Part, Points, pose
from add.view.quantities import Quantity, prefixed, quantity
from add.view.shapes import Solid, draw_goals, primitive, shaded
from add.view.surfaces import LIGHT, Shadows, joint_actors, nodal_parts, occlude

if TYPE_CHECKING:
    import pyvista

OBSTACLE_COLOUR, PLANE_COLOUR, GRID_COLOUR = "#c9ced6", "#f4f5f7", "#c3c9d2"
ARROW_COLOUR, NEUTRAL_COLOUR = "#202124", "#d7dbe0"
_COLOUR = "#202124"
#: Place of the bar's left end and its greatest length, in shares of the picture's size.
_LEFT, _BOTTOM, _WIDEST = 0.13, 0.045, 0.16


@final
class Scale(Part):
    """Three axes, and a bar of a round length at the depth of what the camera looks at."""

    def __init__(self, canvas: Canvas) -> None:
        import pyvista
        from vtkmodules.vtkRenderingCore import vtkActor2D, vtkCoordinate, vtkPolyDataMapper2D

        self._canvas = canvas
        canvas.plotter.add_axes(
            line_width=3, color=_COLOUR, viewport=(0.0, 0.0, 0.11, 0.18), interactive=False, labels_off=False
        )
        self._line = pyvista.PolyData(np.zeros((6, 3)), lines=[2, 0, 1, 2, 2, 3, 2, 4, 5])
        place = vtkCoordinate()
        place.SetCoordinateSystemToNormalizedViewport()
        mapper = vtkPolyDataMapper2D()
        mapper.SetInputData(self._line)
        mapper.SetTransformCoordinate(place)
        self._bar: Any = vtkActor2D()
        self._bar.SetMapper(mapper)
        self._bar.GetProperty().SetColor(0.126, 0.129, 0.141)
        self._bar.GetProperty().SetLineWidth(2.0 * canvas.pixel)
        canvas.plotter.renderer.AddViewProp(self._bar)
        self._shown = 0.0

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Fit the bar to the camera as it stands."""
        plotter = self._canvas.plotter
        camera, (width, height) = plotter.camera, plotter.window_size
        distance = float(np.linalg.norm(np.subtract(camera.position, camera.focal_point)))
        seen = 2.0 * distance * np.tan(np.radians(camera.view_angle) / 2.0) * width / height  # [m] across
        if not np.isfinite(seen) or seen <= 0.0:
            return
        length = round_down(_WIDEST * seen)
        share = length / seen
        if abs(share - self._shown) < 1e-9:
            return
        self._shown = share
        right, tick = _LEFT + share, 0.008
        ends = [(_LEFT, 0.0, right, 0.0), (_LEFT, -tick, _LEFT, tick), (right, -tick, right, tick)]
        self._line.points = np.array(
            [(x, _BOTTOM + y, 0.0) for a, b, c, d in ends for x, y in ((a, b), (c, d))], dtype=float
        )
        unit, factor = prefixed("m", length)
        self._canvas.text(f"{length * factor:g} {unit}", (_LEFT, _BOTTOM + 0.015), "scale", _COLOUR, 1)


@final
class Arrows(Part):
    """Contact forces on nodes and at the contacts of rigid bodies; the largest of the run is 0.3 bodies long."""

    def __init__(self, canvas: Canvas) -> None:
        self._data = canvas.data
        style = {"tip_radius": 0.04, "shaft_radius": 0.012, "tip_resolution": 12}
        self._arrows = Glyphs(canvas, "contact forces", ARROW_COLOUR, **style)  # they point into the bodies
        nodal = [canvas.data.contact_force[:, b.entries] for b in canvas.data.nodal]
        forces = [force.reshape(-1, 3) for force in nodal] + [canvas.data.contacts.forces]
        self._top = max(float(np.linalg.norm(force, axis=1).max(initial=0.0)) for force in forces)
        self._wanted = False
        self.show(False)

    def show(self, wanted: bool) -> None:
        """Show or hide them."""
        self._wanted = wanted and self._top > 0.0
        if not self._wanted:
            self._arrows.actor.visibility = False

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Draw the forces of the nearest state."""
        if self._wanted:
            x, force = contact_forces(self._data, moment.nearest)
            strong = np.linalg.norm(force, axis=1) > 0.02 * self._top
            self._arrows.show(x[strong], force[strong] / self._top)


def contact_forces(data: RunData, k: int) -> tuple[FloatArray, FloatArray]:
    """Return places and forces of all contacts in state ``k``, (m, 3) each."""
    places, forces = data.contacts.at(k)
    x = np.concatenate([*(data.positions(body, k) for body in data.nodal), places])
    force = [data.contact_force[k, body.entries].reshape(-1, 3) for body in data.nodal]
    return x, np.concatenate([*force, forces])


# --- Obstacles in a picture -------------------------------------------------------------------------------------------


@final
class World(Part):
    """All obstacles; those with a velocity move."""

    def __init__(self, canvas: Canvas) -> None:
        self._obstacles = canvas.data.obstacles
        self._actors = [_obstacle(canvas, obstacle) for obstacle in self._obstacles]

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move them on."""
        for obstacle, actor in zip(self._obstacles, self._actors, strict=True):
            actor.position = tuple(obstacle.velocity * moment.time)


def _obstacle(canvas: Canvas, obstacle: ObstacleData) -> Any:
    style: dict[str, Any] = {"color": OBSTACLE_COLOUR, "smooth_shading": True, "ambient": 0.15}
    if obstacle.kind == PLANE:
        mesh = _plane(canvas, obstacle)
        # seen from its free side only, so that no wall stands before the camera
        style = {"color": PLANE_COLOUR, "show_edges": True, "edge_color": GRID_COLOUR,
                 "line_width": 0.8 * canvas.pixel, "culling": "back", "ambient": 0.6, "diffuse": 0.42}  # fmt: skip
    elif obstacle.kind == MESH:
        mesh = shaded(obstacle.vertices, obstacle.triangles)
    else:
        mesh = primitive(obstacle.kind, obstacle.size)
    placed = mesh.transform(pose(obstacle.rotation, obstacle.position), inplace=False)
    return canvas.add(placed, f"obstacle {obstacle.name}", **style)


def _plane(canvas: Canvas, obstacle: ObstacleData) -> Any:
    """A square of the plane under the whole motion, on a grid of round numbers through its origin."""
    import pyvista

    local = (framing_points(canvas.data) - obstacle.position) @ obstacle.rotation
    low, high = local[:, :2].min(axis=0), local[:, :2].max(axis=0)
    margin = 0.35 * canvas.span + 0.6 * canvas.body_span
    low, high = low - margin, high + margin
    cell = round_number(float((high - low).max()) / 16.0)
    low, high = np.floor(low / cell), np.ceil(high / cell)
    counts = (high - low).astype(int)
    centre = 0.5 * (low + high) * cell
    # A little below: bodies at rest sink into the plane, and sheets lie in it.
    below = -2e-3 * canvas.span
    return pyvista.Plane(
        center=(*centre, below), direction=(0, 0, 1), i_size=counts[0] * cell, j_size=counts[1] * cell,
        i_resolution=int(counts[0]), j_resolution=int(counts[1]),
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------------

COLOUR_MAPS = {
    "displacement": "viridis",
    "speed": "viridis",
    "strain": "plasma",
    "stress": "plasma",
    "contact": "YlOrRd",
}
#: Of the colour bar, in widths of the picture.
BAR_WIDTH = 0.055


@final
class Scene3D:
    """The actors of a run in a pyvista plotter.

    Parameters
    ----------
    data : RunData
    plotter : pyvista.Plotter
    look : what is shown, and how
    pixel : pixels of the plotter per pixel of the picture (2 where it is anti-aliased by oversampling)
    """

    def __init__(
        self,
        data: RunData,
        plotter: "pyvista.Plotter",
        look: Look | None = None,
        pixel: float = 1.0,
    ) -> None:
        self.data = data
        self.plotter = plotter
        self.time = float(data.t[0])
        self.look = look = look or Look()
        self._middles = middles(data)
        self._points = framing_points(data, self._middles if look.follows else None)
        self._kept = self._middles[0]
        span = float(np.linalg.norm(np.ptp(self._points, axis=0)))
        self.span = span = span if span > 1e-9 else 1.0  # one point that stands still
        self._body_span = largest_body(data) or 0.2 * span
        font = int(np.clip(round(min(plotter.window_size) / 60), 7, 22))
        self._canvas = canvas = Canvas(data, plotter, pixel, span, self._body_span, font)
        self.meshes = canvas.meshes
        step = float((data.t[-1] - data.t[0]) / max(len(data.t) - 1, 1))
        self._decimals = int(np.clip(np.ceil(-np.log10(step)), 0, 6)) if step > 0.0 else 2
        self._light()
        self._arrows = Arrows(canvas)
        self._parts: list[Part] = [
            *nodal_parts(canvas, look.edges),
            *(Solid(canvas, b, solid) for b, solid in enumerate(data.solids)),
            World(canvas),
            *joint_actors(canvas),
            Points(canvas),
            self._arrows,
        ]
        if not look.plain:
            self._parts.append(Shadows(canvas, self._parts))
            occlude(plotter, self._body_span)
        self._scale = Scale(canvas)
        self._parts.append(self._scale)
        draw_goals(canvas)
        self.coloured = [actor for part in self._parts for actor in part.coloured]
        self._bar = ""
        self.quantity: Quantity
        self.set_colour(look.colour, draw=False)
        self.reset_camera()
        self.set_time(self.time)

    def set_time(self, time: float) -> None:
        """Move everything to a time [s]; between states linearly, outside of the run its end."""
        self.time = float(np.clip(time, self.data.t[0], self.data.t[-1]))
        moment = Moment.of(self.data.t, self.time)
        if self.look.follows:
            self._follow(moment.of_states(self._middles))
        for part in self._parts:
            part.move(moment, self.quantity)
        self.plotter.reset_camera_clipping_range()  # of where they are now: else the nearest are cut open
        self._canvas.text(f"t = {self.time:.{self._decimals}f} s", (0.025, 0.93), "time", _COLOUR)

    def set_colour(self, colour: str, *, draw: bool = True) -> None:
        """Colour the bodies by one of `add.view.COLOURS`."""
        import pyvista

        self.colour, self.quantity = colour, quantity(self.data, colour)
        for actor in self.coloured:
            table = pyvista.LookupTable(COLOUR_MAPS[colour], n_values=256, scalar_range=self.quantity.range)
            table.nan_color = NEUTRAL_COLOUR
            actor.mapper.lookup_table = table
            actor.mapper.scalar_range = self.quantity.range
        if self._bar:
            self.plotter.remove_scalar_bar(self._bar, render=False)
            self._bar = ""
        if self.coloured and self.quantity.shown:
            font = self._canvas.font
            self._bar = self.quantity.title
            # The title is centred on the bar, some 0.55 em a letter: in small pictures it would leave at the edge.
            title = 0.55 * len(self._bar) * (font + 4) / self.plotter.window_size[0]
            left = min(0.87, 0.99 - 0.5 * (title + BAR_WIDTH))
            bar = self.plotter.add_scalar_bar(
                self._bar, mapper=self.coloured[0].mapper, vertical=True, position_x=left, position_y=0.2,
                width=BAR_WIDTH, height=0.6, n_labels=5, fmt="%.3g", title_font_size=font + 4,
                label_font_size=font + 2, color="#202124", render=False,
            )  # fmt: skip
            bar.SetVerticalTitleSeparation(font)
        self._arrows.show(colour == "contact" if self.look.arrows is None else self.look.arrows)
        if draw:
            self.set_time(self.time)

    def reset_camera(self) -> None:
        """Look at the whole motion, or at the bodies that are followed, z up."""
        self._kept = self._middles[0]
        aim(self.plotter, self._points, 1.5 * self._body_span, self.look.direction)

    def refit_scale(self) -> None:
        """Fit the scale bar to a camera that was moved by hand."""
        self._scale.move(Moment.of(self.data.t, self.time), self.quantity)

    def _follow(self, middle: FloatArray) -> None:
        """Move the camera with the middle of the bodies."""
        camera = self.plotter.camera
        step, self._kept = middle - self._kept, middle
        camera.focal_point = tuple(np.add(camera.focal_point, step))
        camera.position = tuple(np.add(camera.position, step))

    def _light(self) -> None:
        """Parallel light from above, a weak one from the camera, a weaker one from below."""
        import pyvista

        plotter = self.plotter
        plotter.set_background("white")
        plotter.remove_all_lights()
        plotter.add_light(pyvista.Light(light_type="headlight", intensity=0.42))
        for at, strength in ((tuple(LIGHT), 0.72), ((1, -0.2, -0.5), 0.25)):
            light = pyvista.Light(position=at, focal_point=(0, 0, 0), light_type="scene light", intensity=strength)
            light.positional = False
            plotter.add_light(light)
