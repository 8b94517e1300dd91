"""Soft bodies, sheets, nets and handles in a picture, with shadows and occlusion; springs, loads and joints."""

from typing import Any, final

import numpy as np
from scipy import sparse

from add.geometry.boundary import facets
from add.io.trajectory_parts import BodyData, LineData, MassSpringData, ObstacleData
from add.kernels.shape_codes import PLANE
from add.typing import FloatArray, IntArray
from add.view import parts
from add.view.quantities import Quantity, prefixed, round_up
from add.view.shapes import polylines, renew_normals, shaded


class _Nodes(parts.Part):
    """Nodes of a soft body or of a sheet in a picture: a mesh with a point for each, and the chosen quantity there.

    Parameters
    ----------
    canvas : Canvas
    index : number among soft bodies and sheets
    body : the body
    """

    def __init__(self, canvas: parts.Canvas, index: int, body: BodyData | MassSpringData) -> None:
        self._data, self._index, self._body = canvas.data, index, body
        self._mesh: Any = None

    def move(self, moment: parts.Moment, quantity: Quantity) -> None:
        """Move the nodes."""
        self._mesh.points, self._mesh.point_data["value"] = self._at(moment, quantity)

    def _at(self, moment: parts.Moment, quantity: Quantity) -> tuple[FloatArray, FloatArray]:
        """Return places and values of the nodes."""
        data, body, states = self._data, self._body, (moment.before, moment.after)
        places = moment.between(*(data.positions(body, k) for k in states))
        values = quantity.values(self._index, moment.before)
        if moment.share:
            values = moment.between(values, quantity.values(self._index, moment.after))
        return places, values


@final
class Surface(_Nodes):
    """The surface of a soft body or of a sheet.

    Parameters
    ----------
    canvas, index, body : of `_Nodes`
    triangles : (nt, 3)
    edges : draw the edges of the triangles; curved faces of quadratic elements are then flat between their nodes
    """

    def __init__(
        self, canvas: parts.Canvas, index: int, body: BodyData | MassSpringData, triangles: Any, edges: bool
    ) -> None:
        super().__init__(canvas, index, body)
        self._weights: sparse.csr_array = sparse.csr_array(sparse.identity(len(body.rest), format="csr"))
        if isinstance(body, BodyData) and body.family == "tet10" and not edges:
            self._weights, triangles = curved_faces(body)
        self._mesh = shaded(self._weights @ body.rest, triangles)
        self._mesh.point_data["value"] = np.zeros(self._mesh.n_points)
        actor = canvas.add(
            self._mesh, f"body {index}", scalars="value", cmap="viridis", smooth_shading=True, show_edges=edges,
            edge_color="#555555", edge_opacity=0.35, line_width=0.6 * canvas.pixel, **parts.SHINE,
        )  # fmt: skip
        self.coloured, self.casting = (actor,), ((self._mesh, actor),)

    def move(self, moment: parts.Moment, quantity: Quantity) -> None:
        """Move the nodes."""
        mesh, (places, values) = self._mesh, self._at(moment, quantity)
        nodes = mesh.point_data["node"]
        mesh.points, mesh.point_data["value"] = (self._weights @ places)[nodes], (self._weights @ values)[nodes]
        renew_normals(mesh)


@final
class Threads(_Nodes):
    """The springs of a sheet: all there is of a net or a rope, the border of a cloth."""

    def __init__(self, canvas: parts.Canvas, index: int, sheet: MassSpringData) -> None:
        import pyvista

        super().__init__(canvas, index, sheet)
        border = len(sheet.triangles) > 0
        lines = _border(sheet) if border else sheet.edges
        self._mesh = pyvista.PolyData(
            sheet.rest, lines=np.column_stack([np.full(len(lines), 2), lines]).ravel().astype(np.int64)
        )
        self._mesh.point_data["value"] = np.zeros(sheet.n_nodes)
        name, width = f"threads {index}", 2.2 * canvas.pixel
        if border:
            canvas.lines(self._mesh, name, 1.3, color=parts.EDGE_COLOUR)
        else:
            actor = canvas.add(self._mesh, name, scalars="value", line_width=width, render_lines_as_tubes=True)
            self.coloured = (actor,)


@final
class Handles(_Nodes):
    """Nodes that no spring and no triangle holds."""

    def __init__(self, canvas: parts.Canvas, index: int, sheet: MassSpringData) -> None:
        import pyvista

        super().__init__(canvas, index, sheet)
        self._mesh = pyvista.PolyData(sheet.rest)
        actor = canvas.add(
            self._mesh, f"handles {index}", color=parts.GIVEN_COLOUR, point_size=max(9, canvas.font) * canvas.pixel,
            render_points_as_spheres=True,
        )  # fmt: skip
        parts.in_front(actor, -20.0)


def nodal_parts(canvas: parts.Canvas, edges: bool) -> list[parts.Part]:
    """Return the parts of all soft bodies and sheets."""
    data = canvas.data
    drawn: list[parts.Part] = [Surface(canvas, b, body, body.surface, edges) for b, body in enumerate(data.bodies)]
    for b, sheet in enumerate(data.sheets, start=len(data.bodies)):
        if len(sheet.triangles):
            drawn.append(Surface(canvas, b, sheet, sheet.triangles, edges))
        if len(sheet.edges):
            drawn.append(Threads(canvas, b, sheet))
        elif not len(sheet.triangles):
            drawn.append(Handles(canvas, b, sheet))
    return drawn


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


def _border(sheet: MassSpringData) -> Any:
    """Return the sides that only one triangle has, (m, 2)."""
    sides = np.sort(sheet.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    borders, counts = np.unique(sides, axis=0, return_counts=True)
    return borders[counts == 1]


#: From the scene to its main light, which is parallel.
LIGHT = np.array([0.7, -0.8, 1.9])
#: Cosine between the light and the normal of a plane from which on it gets shadows.
_LEAST_SLOPE = 0.5


@final
class Shadows(parts.Part):
    """Shadows of bodies on planes below them: their surfaces, projected along the main light.

    A shadow map would do bodies on each other, too; that of VTK leaves bands on large planes.
    """

    def __init__(self, canvas: parts.Canvas, others: list[parts.Part]) -> None:
        import pyvista

        self._canvas = canvas
        self._light = LIGHT / np.linalg.norm(LIGHT)
        planes = [item for item in canvas.data.obstacles if item.kind == PLANE]
        planes = [item for item in planes if item.rotation[:, 2] @ self._light > _LEAST_SLOPE]
        self._pairs: list[tuple[Any, Any, ObstacleData, Any, Any]] = []
        for number, (mesh, actor) in enumerate(item for part in others for item in part.casting):
            for plane in planes:
                flat = pyvista.PolyData(np.array(mesh.points, dtype=float), faces=mesh.faces)
                drawn = canvas.add(flat, f"shadow {number} {plane.name}", color=parts.SHADOW_COLOUR, lighting=False)
                self._pairs.append((mesh, actor, plane, flat, drawn))

    def move(self, moment: parts.Moment, quantity: Quantity) -> None:
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


# --- Couplings and joints ---------------------------------------------------------------------------------------------

_TURNS, _PER_TURN = 9, 14
#: Tension below which a cable hangs loose, as a share of the largest of the run.
_SLACK = 1e-6


@final
class Lines(parts.Part):
    """Springs as coils and cables as threads, coloured by tension; loose cables thin and grey."""

    def __init__(self, canvas: parts.Canvas) -> None:
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
        self._loose_actor = canvas.lines(self._loose, "loose cables", 1.4, color=parts.SLACK_COLOUR)
        if top > 0.0:
            bar = canvas.plotter.add_scalar_bar(
                f"tension [{unit}]", mapper=self._taut_actor.mapper, vertical=False, position_x=0.42, position_y=0.03,
                width=0.2, height=0.06, n_labels=2, fmt="%.3g", title_font_size=canvas.font + 2,
                label_font_size=canvas.font, color="#202124", render=False,
            )  # fmt: skip
            bar.SetVerticalTitleSeparation(canvas.font // 3)

    def move(self, moment: parts.Moment, quantity: Quantity) -> None:
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
class Loads(parts.Part):
    """Given forces as arrows; the largest of the run is 0.3 bodies long."""

    def __init__(self, canvas: parts.Canvas) -> None:
        self._lines: list[LineData] = [line for line in canvas.data.lines.values() if line.kind == "load"]
        self._top = max(float(np.abs(line.tension).max()) for line in self._lines)
        self._arrows = parts.Glyphs(
            canvas, "loads", parts.LOAD_COLOUR, tip_radius=0.05, shaft_radius=0.016, tip_resolution=16
        )

    def move(self, moment: parts.Moment, quantity: Quantity) -> None:
        """Move the arrows."""
        ends = np.array([moment.of_states(line.ends) for line in self._lines])
        size = np.array([float(moment.of_states(line.tension)) for line in self._lines])
        acting = np.abs(size) > 0.01 * self._top
        self._arrows.show(ends[acting, 0], (ends[:, 1] - ends[:, 0])[acting] * (size[acting] / self._top)[:, None])


@final
class Joints(parts.Part):
    """Joints as small spheres, with the axes they turn about or slide along."""

    def __init__(self, canvas: parts.Canvas) -> None:
        import pyvista

        self._joints = list(canvas.data.joints.values())
        size = min(0.008 * canvas.span, 0.05 * canvas.body_span)
        self._half = 8.0 * size
        self._ball = pyvista.Sphere(radius=size, theta_resolution=24, phi_resolution=16)
        self._balls = self._ball.copy()
        self._axes = polylines([np.zeros((2, 3))])
        ball_actor = canvas.add(self._balls, "joints", color=parts.JOINT_COLOUR, smooth_shading=True, ambient=0.25)
        self._axes_actor = canvas.lines(self._axes, "joint axes", 2.4, color=parts.JOINT_COLOUR)
        parts.in_front(ball_actor, -66000.0)
        parts.in_front(self._axes_actor, -66000.0)

    def move(self, moment: parts.Moment, quantity: Quantity) -> None:
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


def joint_actors(canvas: parts.Canvas) -> list[parts.Part]:
    """Return the parts of all lines and joints, as far as there are any."""
    kinds = {line.kind for line in canvas.data.lines.values()}
    drawn: list[parts.Part] = []
    if kinds - {"load"}:
        drawn.append(Lines(canvas))
    if "load" in kinds:
        drawn.append(Loads(canvas))
    if canvas.data.joints:
        drawn.append(Joints(canvas))
    return drawn
