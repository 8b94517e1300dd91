"""Markers and recorded places in a picture."""

from typing import Any, final

import numpy as np

from add.typing import FloatArray
from add.view.framing import seen
from add.view.parts import MARKER_COLOUR, TARGET_COLOUR, Canvas, Moment, Part, in_front
from add.view.quantities import Quantity


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
            canvas.plotter.add_text(
                text, position=(0.025, 0.885 - 0.035 * row), viewport=True, font_size=canvas.font - 1, color=colour,
                name=f"legend {text}",
            )  # fmt: skip

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
        canvas.add(
            pyvista.merge(lines), name, color=colour, line_width=1.2 * canvas.pixel, opacity=0.55, lighting=False
        )


def _cloud(canvas: Canvas, n: int, colour: str, name: str, size: float) -> Any:
    import pyvista

    mesh = pyvista.PolyData(np.zeros((n, 3)))
    in_front(canvas.add(mesh, name, color=colour, point_size=size, render_points_as_spheres=True), -2.0 * size)
    return mesh


def _lines(canvas: Canvas, n: int) -> Any:
    import pyvista

    mesh = pyvista.PolyData(np.zeros((2 * n, 3)), lines=[part for k in range(n) for part in (2, 2 * k, 2 * k + 1)])
    actor = canvas.add(mesh, "residuals", color=TARGET_COLOUR, line_width=2.0 * canvas.pixel, lighting=False)
    in_front(actor, -66000.0)
    return mesh


def _at(times: FloatArray, x: FloatArray, time: float) -> FloatArray:
    """A recorded point at a time, linear between frames; NaN, which draws nothing, where it was not seen."""
    if not len(times) or time < times[0] - 1e-9 or time > times[-1] + 1e-9:
        return np.full(3, np.nan)
    return np.array([np.interp(time, times, x[:, i]) for i in range(3)])
