"""Surfaces and lines of simple shapes and of given meshes, as pyvista wants them."""

from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.geometry.shapes import shape_of
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import GoalData, SolidData
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from add.typing import FloatArray, IntArray
from add.view import parts
from add.view.quantities import Quantity

if TYPE_CHECKING:
    import pyvista


FEATURE_ANGLE = 35.0
_ROUND = 97


def shaded(points: FloatArray, triangles: IntArray) -> "pyvista.PolyData":
    """Return the surface of the nodes in use, doubled along sharp edges; "node" says which is which."""
    import pyvista

    nodes, faces = np.unique(triangles, return_inverse=True)
    mesh = pyvista.PolyData.from_regular_faces(points[nodes], faces.reshape(-1, 3))
    mesh.point_data["node"] = nodes
    return with_normals(mesh)


def with_normals(mesh: "pyvista.PolyData") -> "pyvista.PolyData":
    """Return the mesh with normals, its points doubled along sharp edges."""
    return mesh.compute_normals(
        cell_normals=False, split_vertices=True, feature_angle=FEATURE_ANGLE, consistent_normals=False,
        auto_orient_normals=False,
    )  # fmt: skip


def renew_normals(mesh: "pyvista.PolyData") -> None:
    """Compute the normals of a mesh that moved; VTK keeps those that are there."""
    mesh.point_data.remove("Normals")
    mesh.compute_normals(
        cell_normals=False, split_vertices=False, consistent_normals=False, auto_orient_normals=False, inplace=True
    )


def primitive(kind: int, size: FloatArray) -> "pyvista.PolyData":
    """Return the surface of a shape of `add.kernels.distance` in its frame; a plane is a square of side 2 size[0]."""
    import pyvista

    first, second = float(size[0]), float(size[1])
    if kind == SPHERE:
        mesh = pyvista.Sphere(radius=first, theta_resolution=64, phi_resolution=48)
    elif kind == BOX:
        bounds = [sign * float(half) for half in size for sign in (-1.0, 1.0)]
        mesh = pyvista.Box(bounds=bounds, level=7, quads=True).triangulate()  # fine, so that colours vary over faces
    elif kind == CAPSULE:
        mesh = pyvista.Capsule(direction=(0, 0, 1), radius=first, cylinder_length=2 * second, resolution=48)
    elif kind == CYLINDER:
        mesh = pyvista.CylinderStructured(
            radius=np.linspace(1e-6 * first, first, 8), height=2 * second, direction=(0, 0, 1), theta_resolution=64,
            z_resolution=16,
        ).extract_surface(algorithm="dataset_surface").triangulate().clean()  # fmt: skip
    elif kind == PLANE:
        mesh = pyvista.Plane(i_size=2 * first, j_size=2 * first).triangulate()
    else:
        surface = shape_of(kind).surface
        assert surface is not None
        mesh = pyvista.PolyData.from_regular_faces(*surface(size))
    return with_normals(mesh)


def outline(kind: int, size: FloatArray) -> "pyvista.PolyData":
    """Return lines on a shape that show how it is turned: edges, or circles where there are none."""
    import pyvista

    first, second = float(size[0]), float(size[1])
    a = np.linspace(0.0, 2.0 * np.pi, _ROUND)
    cos, sin, zero = first * np.cos(a), first * np.sin(a), np.zeros(_ROUND)
    z = second * np.array([0.0, 0.0, 1.0])
    circle = np.stack([cos, sin, zero], axis=1)
    if kind == SPHERE:
        paths = [circle, np.roll(circle, 1, axis=1), np.roll(circle, 2, axis=1)]
    elif kind == BOX:
        return pyvista.Cube(
            x_length=2 * first, y_length=2 * second, z_length=2 * float(size[2])
        ).extract_feature_edges(feature_angle=FEATURE_ANGLE)  # fmt: skip
    elif kind == CAPSULE:
        # once round lengthwise in two planes, and where the caps begin
        up = np.stack([cos, zero, sin + second * np.where(a <= np.pi, 1.0, -1.0)], axis=1)
        up = np.concatenate([up, up[:1]])
        paths = [up, up[:, [1, 0, 2]], circle + z, circle - z]
    elif kind == CYLINDER:
        side = first * np.array([1.0, 0.0, 0.0])
        over = np.array([z - side, z + side, side - z, -side - z, z - side])
        paths = [circle + z, circle - z, over, over[:, [1, 0, 2]]]
    elif kind > CYLINDER:
        lines = shape_of(kind).outline
        paths = lines(size) if lines is not None else []
    else:
        paths = [first * np.array([[-1.0, -1.0, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [-1, -1, 0]])]
    return polylines(paths)


def polylines(paths: list[FloatArray]) -> "pyvista.PolyData":
    """Return lines through points (m_i, 3)."""
    import pyvista

    mesh = pyvista.PolyData()
    mesh.points = np.concatenate(paths)
    first, cells = 0, []
    for path in paths:
        cells.append([len(path), *range(first, first + len(path))])
        first += len(path)
    mesh.lines = np.concatenate(cells)
    return mesh


def solid_meshes(solid: SolidData, least: float) -> "tuple[pyvista.PolyData | None, pyvista.PolyData]":
    """Return surface and lines of a rigid body; one without a shape is three axes of length ``least`` [m]."""
    if solid.kind >= 0:
        size = np.full(3, least) if solid.kind == PLANE else solid.size
        return primitive(solid.kind, size), _lifted(outline(solid.kind, size))
    if len(solid.triangles):
        mesh = shaded(solid.vertices, solid.triangles)
        edges = mesh.clean().extract_feature_edges(
            feature_angle=FEATURE_ANGLE, boundary_edges=True, non_manifold_edges=False, manifold_edges=False
        )
        return mesh, _lifted(edges)
    return None, polylines([np.stack([np.zeros(3), axis]) for axis in least * np.eye(3)])


def _lifted(lines: "pyvista.PolyData") -> "pyvista.PolyData":
    """Return lines a little larger, so that they stand before the surface they lie on."""
    if lines.n_points:
        points = np.asarray(lines.points)
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        lines.points = middle + 1.006 * (points - middle)
    return lines


# --- Rigid bodies and moving obstacles in a picture, and the poses they should take -----------------------------------


@final
class Solid(parts.Part):
    """A rigid body with lines that show how it is turned; grey if its motion is given."""

    def __init__(self, canvas: parts.Canvas, index: int, solid: SolidData) -> None:
        self._data, self._index, self._solid = canvas.data, index, solid
        surface, lines = solid_meshes(solid, 0.05 * canvas.span)
        self._surface = surface
        self._actors: list[Any] = []
        if surface is not None:
            style: dict[str, Any] = {"color": parts.GIVEN_COLOUR}
            if not solid.kinematic:
                surface.point_data["value"] = np.zeros(surface.n_points)
                style = {"scalars": "value", "cmap": "viridis"}
            actor = canvas.add(surface, f"solid {index}", smooth_shading=True, **parts.SHINE, **style)
            self._actors.append(actor)
            self.coloured, self.casting = () if solid.kinematic else (actor,), ((surface, actor),)
        if lines.n_points:
            actor = canvas.lines(lines, f"solid edges {index}", 1.3, color=parts.EDGE_COLOUR)
            parts.not_in_front(actor)
            self._actors.append(actor)

    def move(self, moment: parts.Moment, quantity: Quantity) -> None:
        """Place the body."""
        matrix = pose_between(self._data, self._solid, moment)
        for actor in self._actors:
            actor.user_matrix = matrix
        if self.coloured:
            assert self._surface is not None
            places = np.asarray(self._surface.points, dtype=float)
            values = quantity.at(self._index, moment.before, places)
            if moment.share:
                values = moment.between(values, quantity.at(self._index, moment.after, places))
            self._surface.point_data["value"] = values


def pose_between(data: RunData, solid: SolidData, moment: parts.Moment) -> FloatArray:
    """Return the pose (4, 4): the centre of mass moves straight, the body turns about one axis at a steady rate."""
    rotation, position = data.pose(solid, moment.before)
    centre = position + rotation @ solid.centre
    if moment.share:
        later, place = data.pose(solid, moment.after)
        turn = Rotation.from_matrix(rotation.T @ later).as_rotvec()
        centre = moment.between(centre, place + later @ solid.centre)
        rotation = rotation @ Rotation.from_rotvec(moment.share * turn).as_matrix()
    return parts.pose(rotation, centre - rotation @ solid.centre)


def draw_goals(canvas: parts.Canvas) -> None:
    """Draw what objectives want: bodies as red outlines, points as red crosses."""
    data = canvas.data
    solids = {solid.name: solid for solid in data.solids}
    surfaces = {body.name: body.surface for body in data.bodies} | {s.name: s.triangles for s in data.sheets}
    for name, goal in data.goals.items():
        if goal.body in solids:
            _ghost(canvas, name, solids[goal.body], goal)
        elif len(surfaces.get(goal.body, ())):
            mesh = shaded(goal.points, surfaces[goal.body])
            # Of a closed surface the front alone: both sides of it in no order look like patches.
            style = {"culling": "back"} if any(body.name == goal.body for body in data.bodies) else {}
            canvas.add(mesh, f"goal {name}", color=parts.TARGET_COLOUR, opacity=0.25, smooth_shading=True, **style)
        elif len(goal.points):
            reach = 0.02 * canvas.span
            crosses = [np.stack([x - arm, x + arm]) for x in goal.points for arm in reach * np.eye(3)]
            parts.in_front(canvas.lines(polylines(crosses), f"goal {name}", 2.2, color=parts.TARGET_COLOUR), -66000.0)


def _ghost(canvas: parts.Canvas, name: str, solid: SolidData, goal: GoalData) -> None:
    surface, lines = solid_meshes(solid, 0.05 * canvas.span)
    matrix = parts.pose(goal.rotation, goal.position)
    if surface is not None:
        actor = canvas.add(surface, f"goal {name}", color=parts.TARGET_COLOUR, opacity=0.14, smooth_shading=True)
        parts.in_front(actor, 0.5)  # behind the floor it may stand on
        actor.user_matrix = matrix
    if lines.n_points:
        actor = canvas.lines(lines, f"goal edges {name}", 1.5, color=parts.TARGET_COLOUR)
        actor.user_matrix = matrix
