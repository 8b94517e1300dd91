"""Contact forces in a picture."""

from typing import final

import numpy as np

from add.io.trajectory import RunData
from add.typing import FloatArray
from add.view.parts import ARROW_COLOUR, Canvas, Moment, Part, in_front
from add.view.quantities import Quantity


@final
class Arrows(Part):
    """Contact forces on nodes and at the contacts of rigid bodies; the largest of the run is 0.3 bodies long."""

    def __init__(self, canvas: Canvas) -> None:
        import pyvista

        self._data, self._length = canvas.data, 0.3 * canvas.body_span
        self._mesh = pyvista.Arrow(scale=1e-9)
        self._actor = canvas.add(self._mesh, "contact forces", color=ARROW_COLOUR)
        in_front(self._actor, -66000.0)  # forces point into the bodies
        nodal = [canvas.data.contact_force[:, b.entries] for b in canvas.data.nodal]
        forces = [force.reshape(-1, 3) for force in nodal] + [canvas.data.contacts.forces]
        self._top = max(float(np.linalg.norm(force, axis=1).max(initial=0.0)) for force in forces)
        self._wanted = False
        self.show(False)

    def show(self, wanted: bool) -> None:
        """Show or hide them."""
        self._wanted = wanted and self._top > 0.0
        if not self._wanted:
            self._actor.visibility = False

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Draw the forces of the nearest state."""
        import pyvista

        if not self._wanted:
            return
        x, force = contact_forces(self._data, moment.nearest)
        strong = np.linalg.norm(force, axis=1) > 0.02 * self._top
        self._actor.visibility = bool(strong.any())
        if strong.any():
            cloud = pyvista.PolyData(x[strong])
            cloud.point_data["force"] = force[strong] / self._top
            arrow = pyvista.Arrow(tip_length=0.25, tip_radius=0.04, shaft_radius=0.012, tip_resolution=12)
            self._mesh.copy_from(cloud.glyph(orient="force", scale="force", factor=self._length, geom=arrow))


def contact_forces(data: RunData, k: int) -> tuple[FloatArray, FloatArray]:
    """Return places and forces of all contacts in state ``k``, (m, 3) each."""
    places, forces = data.contacts.at(k)
    x = np.concatenate([*(data.positions(body, k) for body in data.nodal), places])
    force = [data.contact_force[k, body.entries].reshape(-1, 3) for body in data.nodal]
    return x, np.concatenate([*force, forces])
