"""The picture of a run: bodies, obstacles, markers and contact forces as actors that follow the time."""

from typing import TYPE_CHECKING, Any, final

import numpy as np

from add.errors import InputError
from add.io.results import BodyData, ObstacleData, RunData
from add.kernels.distance import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from add.typing import FloatArray
from add.view.quantities import Quantity, quantity

if TYPE_CHECKING:
    import pyvista

COLOUR_MAPS = {"displacement": "viridis", "speed": "viridis", "stress": "plasma", "contact": "YlOrRd"}
OBSTACLE_COLOUR = "#c9ced6"
PLANE_COLOUR, GRID_COLOUR = "#f4f5f7", "#c3c9d2"
MARKER_COLOUR, TARGET_COLOUR, ARROW_COLOUR = "#0b57d0", "#d93025", "#202124"
VIEW_DIRECTION = np.array([0.55, -1.0, 0.42])
"""From what is looked at to the camera."""
_FRAMING_STATES = 200
_FEATURE_ANGLE = 35.0


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
        self._pixel = pixel
        self.plotter = plotter
        self.time = float(data.t[0])
        self._arrows_wanted = arrows
        self._low, self._high = motion_bounds(data)
        self.span = max(float(np.linalg.norm(self._high - self._low)), 1e-9)
        spans = [float(np.linalg.norm(np.ptp(body.rest, axis=0))) for body in data.bodies]
        self.body_span = max(spans, default=1.0)
        self._size_bar()
        self._light()
        self._surfaces = [self._surface(body) for body in data.bodies]
        self._actors = [
            plotter.add_mesh(
                mesh, scalars="value", cmap="viridis", smooth_shading=True, show_scalar_bar=False, show_edges=edges,
                edge_color="#555555", edge_opacity=0.35, line_width=0.6 * pixel, specular=0.15,
                specular_power=12, ambient=0.12, reset_camera=False, name=f"body {b}",
            )
            for b, mesh in enumerate(self._surfaces)
        ]  # fmt: skip
        self._obstacles = [self._obstacle(obstacle) for obstacle in data.obstacles]
        self._markers, self._targets = self._points()
        self._arrow_mesh, self._arrow_actor = self._arrows()
        self._force_top = float(np.linalg.norm(data.contact_force.reshape(-1, 3), axis=1).max(initial=0.0))
        self.quantity: Quantity
        self.set_colour(colour, draw=False)
        self.set_time(self.time)
        self.reset_camera()

    # ---- what a window or a film calls

    def set_time(self, time: float) -> None:
        """Move everything to a time [s]; between states linearly, outside of the run its end."""
        data = self.data
        self.time = float(np.clip(time, data.t[0], data.t[-1]))
        k, next_k, share = self._between(self.time)
        for b, (body, mesh) in enumerate(zip(data.bodies, self._surfaces, strict=True)):
            nodes = mesh.point_data["node"]
            x = (1.0 - share) * data.positions(body, k) + share * data.positions(body, next_k)
            values = self.quantity.values(b, k)
            if share:
                values = (1.0 - share) * values + share * self.quantity.values(b, next_k)
            mesh.points = x[nodes]
            mesh.point_data["value"] = values[nodes]
            mesh.compute_normals(
                cell_normals=False, split_vertices=False, consistent_normals=False, auto_orient_normals=False,
                inplace=True,
            )  # fmt: skip
        for obstacle, actor in zip(data.obstacles, self._obstacles, strict=True):
            actor.position = tuple(obstacle.velocity * self.time)
        if self._markers is not None:
            now = [(1.0 - share) * x[k] + share * x[next_k] for x in data.markers.values()]
            self._markers.points = np.array(now)
        if self._targets is not None:
            self._targets.points = np.array([_at(times, x, self.time) for times, x in data.targets.values()])
        if self._arrow_actor.visibility:
            self._draw_arrows(k if share < 0.5 else next_k)
        self.plotter.add_text(
            f"t = {self.time:.{self._decimals}f} s", position=(0.025, 0.93), viewport=True, name="time",
            font_size=self._font, color="#202124",
        )  # fmt: skip

    def set_colour(self, colour: str, *, draw: bool = True) -> None:
        """Colour the bodies by one of `add.view.COLOURS`."""
        import pyvista

        self.quantity = quantity(self.data, colour)
        for actor in self._actors:
            table = pyvista.LookupTable(COLOUR_MAPS[colour], n_values=256, scalar_range=self.quantity.range)
            actor.mapper.lookup_table = table
            actor.mapper.scalar_range = self.quantity.range
        for title in list(self.plotter.scalar_bars.keys()):
            self.plotter.remove_scalar_bar(title, render=False)
        if self._actors:
            bar = self.plotter.add_scalar_bar(
                self.quantity.title, mapper=self._actors[0].mapper, vertical=True, position_x=0.87, position_y=0.2,
                width=0.055, height=0.6, n_labels=5, fmt="%.3g", title_font_size=self._font + 4,
                label_font_size=self._font + 2, color="#202124", render=False,
            )  # fmt: skip
            bar.SetVerticalTitleSeparation(self._font)
        wanted = colour == "contact" if self._arrows_wanted is None else self._arrows_wanted
        self._arrow_actor.visibility = wanted and self._force_top > 0.0
        if draw:
            self.set_time(self.time)

    def reset_camera(self) -> None:
        """Look at the whole motion, z up."""
        camera = self.plotter.camera
        points = framing_points(self.data)
        centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
        away = VIEW_DIRECTION / np.linalg.norm(VIEW_DIRECTION)
        right = np.cross((0.0, 0.0, 1.0), away)
        right /= np.linalg.norm(right)
        up = np.cross(away, right)
        camera.view_angle = 28.0
        width, height = self.plotter.window_size
        half_height = 0.8 * np.tan(np.radians(camera.view_angle) / 2.0)  # a margin, and the scalar bar at the right
        half_width = half_height * width / height * 0.9
        distance = 0.0
        for _ in range(3):  # centre the picture, which perspective shifts
            seen = points - centre
            depth = seen @ away
            distance = float(
                max((np.abs(seen @ right) / half_width + depth).max(), (np.abs(seen @ up) / half_height + depth).max())
            )
            distance = max(distance, 1.5 * self.body_span)
            for axis in (right, up):
                slope = (seen @ axis) / (distance - depth)
                centre = centre + 0.5 * (slope.min() + slope.max()) * distance * axis
        # leave the right edge to the scalar bar
        centre = centre + 0.06 * half_width * distance * right
        camera.focal_point = tuple(centre)
        camera.position = tuple(centre + distance * away)
        camera.up = (0.0, 0.0, 1.0)
        self.plotter.reset_camera_clipping_range()

    # ---- making the actors

    def _size_bar(self) -> None:
        """Text sizes that suit the window, and digits that suit the time step."""
        self._font = int(np.clip(round(min(self.plotter.window_size) / 60), 7, 22))
        t = self.data.t
        step = float((t[-1] - t[0]) / max(len(t) - 1, 1))
        self._decimals = int(np.clip(np.ceil(-np.log10(step)), 0, 6)) if step > 0.0 else 2

    def _light(self) -> None:
        """Parallel light from above, a weak one from the camera."""
        import pyvista

        plotter = self.plotter
        plotter.set_background("white")
        plotter.remove_all_lights()
        key = pyvista.Light(position=(0.7, -0.8, 1.9), focal_point=(0, 0, 0), light_type="scene light", intensity=0.72)
        key.positional = False
        plotter.add_light(key)
        plotter.add_light(pyvista.Light(light_type="headlight", intensity=0.42))

    def _surface(self, body: BodyData) -> Any:
        """Surface of a body, nodes doubled along sharp edges; "node" says which is which."""
        import pyvista

        nodes, triangles = np.unique(body.surface, return_inverse=True)
        mesh = pyvista.PolyData.from_regular_faces(body.rest[nodes], triangles.reshape(-1, 3))
        mesh.point_data["node"] = nodes
        mesh = mesh.compute_normals(
            cell_normals=False, split_vertices=True, feature_angle=_FEATURE_ANGLE, consistent_normals=False,
            auto_orient_normals=False,
        )  # fmt: skip
        mesh.point_data["value"] = np.zeros(mesh.n_points)
        return mesh

    def _obstacle(self, obstacle: ObstacleData) -> Any:
        import pyvista

        radius, half = float(obstacle.size[0]), float(obstacle.size[1])
        style: dict[str, Any] = {"color": OBSTACLE_COLOUR, "smooth_shading": True, "ambient": 0.15}
        if obstacle.kind == PLANE:
            mesh = self._plane(obstacle)
            # seen from its free side only, so that no wall stands before the camera
            style = {"color": PLANE_COLOUR, "show_edges": True, "edge_color": GRID_COLOUR,
                     "line_width": 0.8 * self._pixel, "culling": "back", "ambient": 0.6, "diffuse": 0.42}  # fmt: skip
        elif obstacle.kind == SPHERE:
            mesh = pyvista.Sphere(radius=radius, theta_resolution=64, phi_resolution=48)
        elif obstacle.kind == BOX:
            mesh = pyvista.Cube(x_length=2 * radius, y_length=2 * half, z_length=2 * float(obstacle.size[2]))
            style["smooth_shading"] = False
        elif obstacle.kind == CAPSULE:
            mesh = pyvista.Capsule(
                center=(0, 0, 0), direction=(0, 0, 1), radius=radius, cylinder_length=2 * half, resolution=48
            )
        elif obstacle.kind == CYLINDER:
            mesh = pyvista.Cylinder(
                center=(0, 0, 0), direction=(0, 0, 1), radius=radius, height=2 * half, resolution=64
            ).triangulate()
            style |= {"split_sharp_edges": True}
        else:
            raise InputError("unknown kind of obstacle", place=f"obstacles.{obstacle.name}", found=obstacle.kind)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = obstacle.rotation, obstacle.position
        mesh = mesh.transform(pose, inplace=False)
        return self.plotter.add_mesh(mesh, reset_camera=False, name=f"obstacle {obstacle.name}", **style)

    def _plane(self, obstacle: ObstacleData) -> Any:
        """A square of the plane under the whole motion, on a grid of round numbers through its origin."""
        import pyvista

        local = (framing_points(self.data) - obstacle.position) @ obstacle.rotation
        low, high = local[:, :2].min(axis=0), local[:, :2].max(axis=0)
        margin = 0.35 * self.span + 0.6 * self.body_span
        low, high = low - margin, high + margin
        cell = round_number(float((high - low).max()) / 16.0)
        low, high = np.floor(low / cell), np.ceil(high / cell)
        counts = (high - low).astype(int)
        centre = 0.5 * (low + high) * cell
        return pyvista.Plane(
            center=(*centre, 0.0), direction=(0, 0, 1), i_size=counts[0] * cell, j_size=counts[1] * cell,
            i_resolution=int(counts[0]), j_resolution=int(counts[1]),
        )  # fmt: skip

    def _points(self) -> tuple[Any, Any]:
        """Markers with their whole paths as lines, targets the same."""
        import pyvista

        size = max(6, self._font) * self._pixel

        def paths(positions: list[FloatArray], colour: str, name: str) -> None:
            lines = [pyvista.lines_from_points(x[seen]) for x in positions if (seen := _seen(x)).sum() > 1]
            if lines:
                self.plotter.add_mesh(
                    pyvista.merge(lines), color=colour, line_width=1.2 * self._pixel, opacity=0.55, lighting=False,
                    reset_camera=False, name=name,
                )  # fmt: skip

        def cloud(n: int, colour: str, name: str, size: float) -> Any:
            mesh = pyvista.PolyData(np.zeros((n, 3)))
            actor = self.plotter.add_mesh(
                mesh, color=colour, point_size=size, render_points_as_spheres=True, reset_camera=False, name=name
            )
            _in_front(actor, -2.0 * size)
            return mesh

        data = self.data
        markers = targets = None
        if data.targets:
            paths([x for _, x in data.targets.values()], TARGET_COLOUR, "target paths")
            targets = cloud(len(data.targets), TARGET_COLOUR, "targets", 0.8 * size)
        if data.markers:
            paths(list(data.markers.values()), MARKER_COLOUR, "marker paths")
            markers = cloud(len(data.markers), MARKER_COLOUR, "markers", size)
        if data.markers and data.targets:
            self.plotter.add_text(
                "simulated", position=(0.025, 0.885), viewport=True, font_size=self._font - 1, color=MARKER_COLOUR,
                name="legend simulated",
            )  # fmt: skip
            self.plotter.add_text(
                "recorded", position=(0.025, 0.85), viewport=True, font_size=self._font - 1, color=TARGET_COLOUR,
                name="legend recorded",
            )  # fmt: skip
        return markers, targets

    def _arrows(self) -> tuple[Any, Any]:
        import pyvista

        mesh = pyvista.Arrow(scale=1e-9)
        actor = self.plotter.add_mesh(mesh, color=ARROW_COLOUR, reset_camera=False, name="contact forces")
        _in_front(actor, -66000.0)  # forces point into the bodies
        actor.visibility = False
        return mesh, actor

    def _draw_arrows(self, k: int) -> None:
        """Forces of one state; the largest of the run is 0.3 bodies long."""
        import pyvista

        body_positions = [self.data.positions(body, k) for body in self.data.bodies]
        body_forces = [self.data.contact_force[k, body.entries].reshape(-1, 3) for body in self.data.bodies]
        x, force = np.concatenate(body_positions), np.concatenate(body_forces)
        size = np.linalg.norm(force, axis=1)
        strong = size > 0.02 * self._force_top
        if not strong.any():
            self._arrow_mesh.copy_from(pyvista.Arrow(start=x[0], scale=1e-9))
            return
        cloud = pyvista.PolyData(x[strong])
        cloud.point_data["force"] = force[strong] / self._force_top
        factor = 0.3 * self.body_span
        arrow = pyvista.Arrow(tip_length=0.25, tip_radius=0.04, shaft_radius=0.012, tip_resolution=12)
        self._arrow_mesh.copy_from(cloud.glyph(orient="force", scale="force", factor=factor, geom=arrow))

    def _between(self, time: float) -> tuple[int, int, float]:
        """States before and after a time, and the share of the later one."""
        t = self.data.t
        k = int(np.clip(np.searchsorted(t, time, side="right") - 1, 0, len(t) - 1))
        if k == len(t) - 1:
            return k, k, 0.0
        share = float((time - t[k]) / (t[k + 1] - t[k]))
        return k, k + 1, 0.0 if share < 1e-9 else share


def round_number(value: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten from above.

    Examples
    --------
    >>> round_number(0.03)
    0.05
    """
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m for m in (1.0, 2.0, 5.0, 10.0) if m * power >= value * (1.0 - 1e-9)) * power)


def framing_points(data: RunData) -> FloatArray:
    """Corners of the boxes round every body in states spread over the run, (m, 3): what a camera should see."""
    states = np.unique(np.linspace(0, data.n_states - 1, _FRAMING_STATES).round().astype(int))
    corners = []
    for body in data.bodies:
        x = data.q[states, body.entries].reshape(len(states), -1, 3)
        ends = np.stack([x.min(axis=1), x.max(axis=1)])
        corners += [ends[list(pick), :, range(3)].T for pick in np.ndindex(2, 2, 2)]
    corners += [x[_seen(x)] for _, x in data.targets.values()]
    points = np.concatenate(corners) if corners else np.zeros((0, 3))
    points = points[np.isfinite(points).all(axis=1)]
    return points if len(points) else np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])


def motion_bounds(data: RunData) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest corner of all that moves."""
    points = framing_points(data)
    return points.min(axis=0), points.max(axis=0)


def _seen(x: FloatArray) -> Any:
    return np.isfinite(x).all(axis=1)


def _at(times: FloatArray, x: FloatArray, time: float) -> FloatArray:
    """A recorded point at a time, linear between frames; NaN, which draws nothing, where it was not seen."""
    if not len(times) or time < times[0] - 1e-9 or time > times[-1] + 1e-9:
        return np.full(3, np.nan)
    return np.array([np.interp(time, times, x[:, i]) for i in range(3)])


def _in_front(actor: Any, offset: float) -> None:
    """Draw before what lies at the same place (a polygon offset, in units of depth)."""
    mapper = actor.mapper
    mapper.SetResolveCoincidentTopologyToPolygonOffset()
    mapper.SetRelativeCoincidentTopologyPolygonOffsetParameters(0.0, offset)
    mapper.SetRelativeCoincidentTopologyPointOffsetParameter(offset)
