"""The common base of the parts of a picture: the moment they show and the canvas they are drawn on."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from add.io.trajectory_data import RunData
from add.typing import FloatArray
from add.view.look import seen
from add.view.quantities import Quantity

if TYPE_CHECKING:
    import pyvista


GIVEN_COLOUR, SHADOW_COLOUR = "#9aa4b2", "#c4c7cd"
MARKER_COLOUR, TARGET_COLOUR, LOAD_COLOUR = "#0b57d0", "#d93025", "#8430ce"
EDGE_COLOUR, JOINT_COLOUR, SLACK_COLOUR = "#3c4043", "#b06000", "#9aa0a6"
SHINE: dict[str, Any] = {"specular": 0.15, "specular_power": 12, "ambient": 0.12}


class Moment(NamedTuple):
    """A time between two states.

    Attributes
    ----------
    time : float [s]
    before, after : states
    share : of the later one
    """

    time: float
    before: int
    after: int
    share: float

    @classmethod
    def of(cls, t: FloatArray, time: float) -> "Moment":
        """Return the moment of a run with states at ``t``."""
        k = int(np.clip(np.searchsorted(t, time, side="right") - 1, 0, len(t) - 1))
        if k == len(t) - 1:
            return cls(time, k, k, 0.0)
        share = float((time - t[k]) / (t[k + 1] - t[k]))
        return cls(time, k, k + 1, 0.0 if share < 1e-9 else share)

    @property
    def nearest(self) -> int:
        """The nearer state."""
        return self.before if self.share < 0.5 else self.after

    def between(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Interpolate linearly."""
        return (1.0 - self.share) * before + self.share * after

    def of_states(self, values: FloatArray) -> FloatArray:
        """Interpolate an array over all states."""
        return self.between(values[self.before], values[self.after])


@final
@dataclass(frozen=True)
class Canvas:
    """The canvas of the parts, and the sizes they go by.

    Attributes
    ----------
    data : RunData
    plotter : pyvista.Plotter
    pixel : pixels of the plotter per pixel of the picture
    span : diagonal of the box round the whole motion [m]
    body_span : diagonal of the largest body [m]
    font : size of text
    meshes : name -> what was added; mappers hold copies, which follow when a picture is drawn
    """

    data: RunData
    plotter: "pyvista.Plotter"
    pixel: float
    span: float
    body_span: float
    font: int
    meshes: dict[str, Any] = field(default_factory=dict)

    def add(self, mesh: Any, name: str, **style: Any) -> Any:
        """Add a mesh; the camera stays."""
        self.meshes[name] = mesh
        return self.plotter.add_mesh(mesh, reset_camera=False, name=name, show_scalar_bar=False, **style)

    def lines(self, mesh: Any, name: str, width: float, **style: Any) -> Any:
        """Add lines of so many pixels of the picture, which no light changes."""
        return self.add(mesh, name, line_width=width * self.pixel, lighting=False, **style)

    def text(self, text: str, at: tuple[float, float], name: str, colour: str, smaller: int = 0) -> None:
        """Write at a place in shares of the picture; what has the name is replaced."""
        self.plotter.add_text(text, position=at, viewport=True, name=name, font_size=self.font - smaller, color=colour)


class Part(ABC):
    """Something in the picture that follows the time."""

    #: Actors that show the chosen quantity.
    coloured: tuple[Any, ...] = ()
    #: Surfaces that cast shadows, and their actors.
    casting: tuple[tuple[Any, Any], ...] = ()

    @abstractmethod
    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Show a moment, coloured by a quantity."""


def in_front(actor: Any, offset: float) -> None:
    """Draw before what lies at the same place (a polygon offset, in units of depth)."""
    mapper = actor.mapper
    mapper.SetResolveCoincidentTopologyToPolygonOffset()
    mapper.SetRelativeCoincidentTopologyPolygonOffsetParameters(0.0, offset)
    mapper.SetRelativeCoincidentTopologyLineOffsetParameters(0.0, offset)
    mapper.SetRelativeCoincidentTopologyPointOffsetParameter(offset)


def not_in_front(actor: Any) -> None:
    """Draw lines at their true depth, so that edges at the back of a body stay hidden: VTK moves lines forward."""
    actor.mapper.SetRelativeCoincidentTopologyLineOffsetParameters(1.0, 4.0)


@final
class Glyphs:
    """Arrows at places, before what lies there; they get new places and lengths with the time.

    Parameters
    ----------
    canvas : Canvas
    name, colour : of the actor
    style : of `pyvista.Arrow`
    """

    def __init__(self, canvas: Canvas, name: str, colour: str, **style: float) -> None:
        import pyvista

        self._mesh, self._length = pyvista.Arrow(scale=1e-9), 0.3 * canvas.body_span
        self._arrow = pyvista.Arrow(tip_length=0.25, **style)
        self.actor = canvas.add(self._mesh, name, color=colour)
        in_front(self.actor, -66000.0)

    def show(self, places: FloatArray, vectors: FloatArray) -> None:
        """Show arrows (n, 3); one of length 1 is 0.3 bodies long."""
        import pyvista

        self.actor.visibility = bool(len(places))
        if len(places):
            cloud = pyvista.PolyData(places)
            cloud.point_data["force"] = vectors
            self._mesh.copy_from(cloud.glyph(orient="force", scale="force", factor=self._length, geom=self._arrow))


def pose(rotation: FloatArray, position: FloatArray) -> FloatArray:
    """Return the matrix (4, 4) of a turn and a place."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


# --- Markers and recorded places in a picture -------------------------------------------------------------------------


@final
class Points(Part):
    """Markers with their whole paths as lines, targets the same; between the two of a name, their residual."""

    def __init__(self, canvas: Canvas) -> None:
        self._data = data = canvas.data
        self._markers = self._targets = None
        size = max(6, canvas.font) * canvas.pixel
        if data.targets:
            _paths(canvas, [x for _, x in data.targets.values()], TARGET_COLOUR, "target paths")
            self._targets = _cloud(canvas, len(data.targets), TARGET_COLOUR, "targets", 0.8 * size)
        if data.markers:
            _paths(canvas, list(data.markers.values()), MARKER_COLOUR, "marker paths")
            self._markers = _cloud(canvas, len(data.markers), MARKER_COLOUR, "markers", size)
        self._pairs = [name for name in data.markers if name in data.targets]
        self._residuals = _lines(canvas, len(self._pairs)) if self._pairs else None
        legend = []
        if data.markers and data.targets:
            legend = [("simulated", MARKER_COLOUR), ("recorded", TARGET_COLOUR)]
        if data.goals:
            legend.append(("wanted", TARGET_COLOUR))
        for row, (text, colour) in enumerate(legend):
            canvas.text(text, (0.025, 0.885 - 0.035 * row), f"legend {text}", colour, 1)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move markers and targets."""
        data = self._data
        if self._markers is not None:
            self._markers.points = np.array([moment.of_states(x) for x in data.markers.values()])
        if self._targets is not None:
            self._targets.points = np.array([_at(times, x, moment.time) for times, x in data.targets.values()])
        if self._residuals is not None:
            ends = [(moment.of_states(data.markers[n]), _at(*data.targets[n], moment.time)) for n in self._pairs]
            # A marker that is not seen has a line of no length.
            self._residuals.points = np.array([(a, b if seen(b[None])[0] else a) for a, b in ends]).reshape(-1, 3)


def _paths(canvas: Canvas, positions: list[FloatArray], colour: str, name: str) -> None:
    import pyvista

    lines = [pyvista.lines_from_points(x[known]) for x in positions if (known := seen(x)).sum() > 1]
    if lines:
        canvas.lines(pyvista.merge(lines), name, 1.2, color=colour, opacity=0.55)


def _cloud(canvas: Canvas, n: int, colour: str, name: str, size: float) -> Any:
    import pyvista

    mesh = pyvista.PolyData(np.zeros((n, 3)))
    in_front(canvas.add(mesh, name, color=colour, point_size=size, render_points_as_spheres=True), -2.0 * size)
    return mesh


def _lines(canvas: Canvas, n: int) -> Any:
    import pyvista

    mesh = pyvista.PolyData(np.zeros((2 * n, 3)), lines=[part for k in range(n) for part in (2, 2 * k, 2 * k + 1)])
    in_front(canvas.lines(mesh, "residuals", 2.0, color=TARGET_COLOUR), -66000.0)
    return mesh


def _at(times: FloatArray, x: FloatArray, time: float) -> FloatArray:
    """A recorded point at a time, linear between frames; NaN, which draws nothing, where it was not seen."""
    if not len(times) or time < times[0] - 1e-9 or time > times[-1] + 1e-9:
        return np.full(3, np.nan)
    return np.array([np.interp(time, times, x[:, i]) for i in range(3)])
