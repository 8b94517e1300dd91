"""The axes and the scale bar of a picture."""

from typing import Any, final

import numpy as np

from add.view.framing import round_down
from add.view.parts import Canvas, Moment, Part
from add.view.quantities import Quantity, prefixed

_COLOUR = "#202124"
_LEFT, _BOTTOM, _WIDEST = 0.13, 0.045, 0.16
"""Place of the bar's left end and its greatest length, in shares of the picture's size."""


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
        plotter.add_text(
            f"{length * factor:g} {unit}", position=(_LEFT, _BOTTOM + 0.015), viewport=True, name="scale",
            font_size=self._canvas.font - 1, color=_COLOUR,
        )  # fmt: skip
