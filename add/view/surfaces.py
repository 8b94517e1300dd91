"""Soft bodies, sheets, nets and handles in a picture: everything whose nodes are coordinates."""

from typing import Any, final

import numpy as np
from scipy import sparse

from add.geometry.boundary import facets
from add.io.trajectory import BodyData, MassSpringData
from add.typing import IntArray
from add.view.parts import EDGE_COLOUR, GIVEN_COLOUR, SHINE, Canvas, Moment, Part, in_front
from add.view.quantities import Quantity
from add.view.shapes import renew_normals, shaded


@final
class Surface(Part):
    """The surface of a soft body or of a sheet.

    Parameters
    ----------
    canvas : Canvas
    index : number among soft bodies and sheets
    body : the body
    triangles : (nt, 3)
    edges : draw the edges of the triangles; curved faces of quadratic elements are then flat between their nodes
    """

    def __init__(
        self, canvas: Canvas, index: int, body: BodyData | MassSpringData, triangles: Any, edges: bool
    ) -> None:
        self._data, self._index, self._body = canvas.data, index, body
        self._weights: sparse.csr_array = sparse.csr_array(sparse.identity(len(body.rest), format="csr"))
        if isinstance(body, BodyData) and body.family == "tet10" and not edges:
            self._weights, triangles = curved_faces(body)
        self._mesh = shaded(self._weights @ body.rest, triangles)
        self._mesh.point_data["value"] = np.zeros(self._mesh.n_points)
        self._actor = canvas.add(
            self._mesh, f"body {index}", scalars="value", cmap="viridis", smooth_shading=True, show_edges=edges,
            edge_color="#555555", edge_opacity=0.35, line_width=0.6 * canvas.pixel, **SHINE,
        )  # fmt: skip

    @property
    def coloured(self) -> tuple[Any, ...]:
        """The surface."""
        return (self._actor,)

    @property
    def casting(self) -> tuple[tuple[Any, Any], ...]:
        """The surface."""
        return ((self._mesh, self._actor),)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move the nodes."""
        mesh, data, k, after = self._mesh, self._data, moment.before, moment.after
        nodes = mesh.point_data["node"]
        places = moment.between(data.positions(self._body, k), data.positions(self._body, after))
        mesh.points = (self._weights @ places)[nodes]
        mesh.point_data["value"] = (self._weights @ _values(self._index, moment, quantity))[nodes]
        renew_normals(mesh)


@final
class Threads(Part):
    """The springs of a sheet: all there is of a net or a rope, the border of a cloth."""

    def __init__(self, canvas: Canvas, index: int, sheet: MassSpringData) -> None:
        import pyvista

        self._data, self._index, self._sheet = canvas.data, index, sheet
        self._border = len(sheet.triangles) > 0
        lines = _border(sheet) if self._border else sheet.edges
        self._mesh = pyvista.PolyData(
            sheet.rest, lines=np.column_stack([np.full(len(lines), 2), lines]).ravel().astype(np.int64)
        )
        self._mesh.point_data["value"] = np.zeros(sheet.n_nodes)
        if self._border:
            style: dict[str, Any] = {"color": EDGE_COLOUR, "line_width": 1.3 * canvas.pixel, "lighting": False}
        else:
            style = {"scalars": "value", "line_width": 2.2 * canvas.pixel, "render_lines_as_tubes": True}
        self._actor = canvas.add(self._mesh, f"threads {index}", **style)

    @property
    def coloured(self) -> tuple[Any, ...]:
        """The threads, unless they are a border."""
        return () if self._border else (self._actor,)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move the nodes."""
        data, sheet = self._data, self._sheet
        self._mesh.points = moment.between(data.positions(sheet, moment.before), data.positions(sheet, moment.after))
        self._mesh.point_data["value"] = _values(self._index, moment, quantity)


@final
class Handles(Part):
    """Nodes that no spring and no triangle holds."""

    def __init__(self, canvas: Canvas, index: int, sheet: MassSpringData) -> None:
        import pyvista

        self._data, self._sheet = canvas.data, sheet
        self._mesh = pyvista.PolyData(sheet.rest)
        actor = canvas.add(
            self._mesh, f"handles {index}", color=GIVEN_COLOUR, point_size=max(9, canvas.font) * canvas.pixel,
            render_points_as_spheres=True,
        )  # fmt: skip
        in_front(actor, -20.0)

    def move(self, moment: Moment, quantity: Quantity) -> None:
        """Move the nodes."""
        data, sheet = self._data, self._sheet
        self._mesh.points = moment.between(data.positions(sheet, moment.before), data.positions(sheet, moment.after))


def nodal_parts(canvas: Canvas, edges: bool) -> list[Part]:
    """Return the parts of all soft bodies and sheets."""
    data = canvas.data
    parts: list[Part] = [Surface(canvas, b, body, body.surface, edges) for b, body in enumerate(data.bodies)]
    for b, sheet in enumerate(data.sheets, start=len(data.bodies)):
        if len(sheet.triangles):
            parts.append(Surface(canvas, b, sheet, sheet.triangles, edges))
        if len(sheet.edges):
            parts.append(Threads(canvas, b, sheet))
        elif not len(sheet.triangles):
            parts.append(Handles(canvas, b, sheet))
    return parts


def curved_faces(body: BodyData) -> tuple[sparse.csr_array, IntArray]:
    """Return weights of the nodes (nc, n) in corners on curved faces, one at each place, and the triangles of these."""
    outline = facets(body.mesh)
    spread = sparse.identity(len(body.rest), format="csr")[outline.nodes]
    weights = sparse.csr_array(outline.corners @ spread)
    places = weights @ body.rest
    _, kept, number = np.unique(
        np.round(places / np.ptp(body.rest, axis=0).max(), 9), axis=0, return_index=True, return_inverse=True
    )
    return weights[kept], number.ravel()[outline.triangles]


def _values(index: int, moment: Moment, quantity: Quantity) -> Any:
    before = quantity.values(index, moment.before)
    return moment.between(before, quantity.values(index, moment.after)) if moment.share else before


def _border(sheet: MassSpringData) -> Any:
    """Return the sides that only one triangle has, (m, 2)."""
    sides = np.sort(sheet.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    found, counts = np.unique(sides, axis=0, return_counts=True)
    return found[counts == 1]
