"""Shadows on floors, and ambient occlusion."""

from typing import Any, final

import numpy as np

from add.io.trajectory import ObstacleData
from add.kernels.distance import PLANE
from add.typing import FloatArray
from add.view.parts import SHADOW_COLOUR, Canvas, Moment, Part
from add.view.quantities import Quantity

#: From the scene to its main light, which is parallel.
LIGHT = np.array([0.7, -0.8, 1.9])
_LEAST_SLOPE = 0.5
"""Cosine between the light and the normal of a plane from which on it gets shadows."""


@final
class Shadows(Part):
    """Shadows of bodies on planes below them: their surfaces, projected along the main light.

    A shadow map would do bodies on each other, too; that of VTK leaves bands on large planes.
    """

    def __init__(self, canvas: Canvas, parts: list[Part]) -> None:
        import pyvista

        self._canvas = canvas
        self._light = LIGHT / np.linalg.norm(LIGHT)
        planes = [item for item in canvas.data.obstacles if item.kind == PLANE and self._reaches(item)]
        self._pairs: list[tuple[Any, Any, ObstacleData, Any, Any]] = []
        for number, (mesh, actor) in enumerate(item for part in parts for item in part.casting):
            for plane in planes:
                flat = pyvista.PolyData(np.array(mesh.points, dtype=float), faces=mesh.faces)
                drawn = canvas.add(flat, f"shadow {number} {plane.name}", color=SHADOW_COLOUR, lighting=False)
                self._pairs.append((mesh, actor, plane, flat, drawn))

    def _reaches(self, plane: ObstacleData) -> bool:
        return bool(plane.rotation[:, 2] @ self._light > _LEAST_SLOPE)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Project what moved; a plane that is seen from behind shows none."""
        for mesh, actor, plane, flat, drawn in self._pairs:
            normal = plane.rotation[:, 2]
            place = plane.position + plane.velocity * moment.time
            drawn.visibility = bool((np.asarray(self._canvas.plotter.camera.position) - place) @ normal > 0.0)
            matrix = np.asarray(actor.user_matrix)
            points = np.asarray(mesh.points, dtype=float) @ matrix[:3, :3].T + matrix[:3, 3]
            flat.points = projected(points, place, normal, self._light) - 1.8e-3 * self._canvas.span * normal


def projected(points: FloatArray, place: FloatArray, normal: FloatArray, light: FloatArray) -> FloatArray:
    """Return where rays from a parallel light through points (n, 3) meet a plane; points behind it move to it."""
    height = np.maximum((points - place) @ normal, 0.0)
    foot = points - np.outer((points - place) @ normal - height, normal)
    return foot - np.outer(height / (light @ normal), light)


def occlude(plotter: Any, body_span: float) -> None:
    """Darken what lies in corners (screen-space ambient occlusion), as far as a fifth of a body reaches.

    Of solid surfaces alone: over a whole picture, as pyvista has it, it lays clouds behind labels.
    """
    from vtkmodules.vtkRenderingOpenGL2 import vtkOverlayPass, vtkRenderStepsPass, vtkSequencePass, vtkSSAOPass

    surfaces, shading = vtkRenderStepsPass(), vtkSSAOPass()
    surfaces.SetOverlayPass(None)
    shading.SetDelegatePass(surfaces)
    shading.SetRadius(0.2 * body_span)
    shading.SetBias(0.004 * body_span)
    shading.SetKernelSize(48)
    shading.BlurOn()
    part = plotter.renderer.GetPass()
    while not isinstance(part, vtkSequencePass):
        part = part.GetDelegatePass()
    passes = part.GetPasses()
    passes.RemoveAllItems()
    passes.AddItem(shading)
    passes.AddItem(vtkOverlayPass())
