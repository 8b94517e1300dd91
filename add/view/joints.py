"""Springs, cables, given forces and joints in a picture."""

from typing import Any, final

import numpy as np

from add.io.trajectory_parts import LineData
from add.typing import FloatArray
from add.view.parts import JOINT_COLOUR, LOAD_COLOUR, SLACK_COLOUR, Canvas, Glyphs, Moment, Part, in_front
from add.view.quantities import Quantity, prefixed, round_up
from add.view.shapes import polylines

_TURNS, _PER_TURN = 9, 14
#: Tension below which a cable hangs loose, as a share of the largest of the run.
_SLACK = 1e-6


@final
class Lines(Part):
    """Springs as coils and cables as threads, coloured by tension; loose cables thin and grey."""

    def __init__(self, canvas: Canvas) -> None:
        data = canvas.data
        self._lines = [line for line in data.lines.values() if line.kind != "load"]
        tension = np.array([line.tension for line in self._lines])
        top = float(np.abs(tension).max(initial=0.0))
        self._least = _SLACK * top
        high = round_up(top) if top > 0.0 else 0.0
        unit, self._factor = prefixed("N", high)
        high = round_up(high * self._factor) if high > 0.0 else 1.0
        pushed = bool((tension < -0.01 * top).any())
        lengths = np.array([np.linalg.norm(line.ends[:, 0] - line.ends[:, 1], axis=1).mean() for line in self._lines])
        self._radius = np.minimum(0.012 * canvas.span, 0.08 * lengths)
        start = polylines([np.zeros((2, 3))])
        start.point_data["tension"] = np.zeros(2)
        self._taut, self._loose = start.copy(), start.copy()
        limits = (-high if pushed else 0.0, high)
        self._taut_actor = canvas.lines(self._taut, "lines", 3.0, scalars="tension", cmap=_map(pushed), clim=limits)
        self._loose_actor = canvas.lines(self._loose, "loose cables", 1.4, color=SLACK_COLOUR)
        if top > 0.0:
            bar = canvas.plotter.add_scalar_bar(
                f"tension [{unit}]", mapper=self._taut_actor.mapper, vertical=False, position_x=0.42, position_y=0.03,
                width=0.2, height=0.06, n_labels=2, fmt="%.3g", title_font_size=canvas.font + 2,
                label_font_size=canvas.font, color="#202124", render=False,
            )  # fmt: skip
            bar.SetVerticalTitleSeparation(canvas.font // 3)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move the ends."""
        taut, tensions, loose = [], [], []
        for line, radius in zip(self._lines, self._radius, strict=True):
            ends = moment.of_states(line.ends)
            tension = float(moment.of_states(line.tension))
            if line.kind == "cable" and tension <= self._least:
                loose.append(ends)
                continue
            taut.append(coil(ends, radius) if line.kind == "spring" else ends)
            tensions.append(np.full(len(taut[-1]), self._factor * tension))
        self._taut_actor.visibility, self._loose_actor.visibility = bool(taut), bool(loose)
        if taut:
            mesh = polylines(taut)
            mesh.point_data["tension"] = np.concatenate(tensions)
            self._taut.copy_from(mesh)
        if loose:
            self._loose.copy_from(polylines(loose))


def _map(pushed: bool) -> Any:
    """Return the colours of tension: from pale to red, or from blue through grey to red where springs push."""
    import matplotlib

    if pushed:
        return matplotlib.colormaps["coolwarm"]
    return matplotlib.colors.ListedColormap(matplotlib.colormaps["YlOrRd"](np.linspace(0.25, 1.0, 256)))


def coil(ends: FloatArray, radius: float) -> FloatArray:
    """Return the points of a spring between two ends (2, 3), a helix with straight ends."""
    along = ends[1] - ends[0]
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return ends
    axis = along / length
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    side /= np.linalg.norm(side)
    s = np.linspace(0.0, 1.0, _TURNS * _PER_TURN + 1)
    phase = 2.0 * np.pi * _TURNS * s
    swell = radius * np.clip(8.0 * np.minimum(s, 1.0 - s), 0.0, 1.0)[:, None]
    round_it = np.cos(phase)[:, None] * side + np.sin(phase)[:, None] * np.cross(axis, side)
    body = ends[0] + (0.1 + 0.8 * s)[:, None] * along + swell * round_it
    return np.concatenate([ends[:1], body, ends[1:]])


@final
class Loads(Part):
    """Given forces as arrows; the largest of the run is 0.3 bodies long."""

    def __init__(self, canvas: Canvas) -> None:
        self._lines: list[LineData] = [line for line in canvas.data.lines.values() if line.kind == "load"]
        self._top = max(float(np.abs(line.tension).max()) for line in self._lines)
        self._arrows = Glyphs(canvas, "loads", LOAD_COLOUR, tip_radius=0.05, shaft_radius=0.016, tip_resolution=16)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move the arrows."""
        ends = np.array([moment.of_states(line.ends) for line in self._lines])
        size = np.array([float(moment.of_states(line.tension)) for line in self._lines])
        acting = np.abs(size) > 0.01 * self._top
        self._arrows.show(ends[acting, 0], (ends[:, 1] - ends[:, 0])[acting] * (size[acting] / self._top)[:, None])


@final
class Joints(Part):
    """Joints as small spheres, with the axes they turn about or slide along."""

    def __init__(self, canvas: Canvas) -> None:
        import pyvista

        self._joints = list(canvas.data.joints.values())
        size = min(0.008 * canvas.span, 0.05 * canvas.body_span)
        self._half = 8.0 * size
        self._ball = pyvista.Sphere(radius=size, theta_resolution=24, phi_resolution=16)
        self._balls = self._ball.copy()
        self._axes = polylines([np.zeros((2, 3))])
        ball_actor = canvas.add(self._balls, "joints", color=JOINT_COLOUR, smooth_shading=True, ambient=0.25)
        self._axes_actor = canvas.lines(self._axes, "joint axes", 2.4, color=JOINT_COLOUR)
        in_front(ball_actor, -66000.0)
        in_front(self._axes_actor, -66000.0)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move the joints."""
        import pyvista

        places = np.array([moment.of_states(joint.place) for joint in self._joints])
        # Axes of two states may nearly cancel: the nearer state's is enough.
        axes = np.array([joint.axis[moment.nearest] for joint in self._joints])
        self._balls.copy_from(pyvista.PolyData(places).glyph(orient=False, scale=False, geom=self._ball))
        known = np.isfinite(axes).all(axis=1)
        self._axes_actor.visibility = bool(known.any())
        if known.any():
            arms = self._half * axes[known]
            self._axes.copy_from(polylines(list(np.stack([places[known] - arms, places[known] + arms], axis=1))))


def joint_actors(canvas: Canvas) -> list[Part]:
    """Return the parts of all lines and joints, as far as there are any."""
    kinds = {line.kind for line in canvas.data.lines.values()}
    parts: list[Part] = []
    if kinds - {"load"}:
        parts.append(Lines(canvas))
    if "load" in kinds:
        parts.append(Loads(canvas))
    if canvas.data.joints:
        parts.append(Joints(canvas))
    return parts
