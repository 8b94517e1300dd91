"""Rigid and kinematic bodies of a scene, with the numbers they bring."""

from typing import Any

import numpy as np

from add.bodies import CarriedShape, RigidBody
from add.errors import naming
from add.geometry import MassProperties, check_inertia, mesh_solid, surface_points
from add.geometry.boundary import triangle_areas
from add.io.surfaces import read_surface
from add.kernels import distance
from add.kernels.rotation import rotation_vector
from add.scene.build.coupling_parts import MakeSignalParameter
from add.scene.build.geometry_sizes import adjustable, following_masses, size_numbers
from add.scene.build.numbers import SceneParameter
from add.scene.build.selections import collision_mesh
from add.scene.build.ties import Derived
from add.scene.read.paths import asked_for_by
from add.scene.robots.simple_shapes import KINDS, simple_solid, simple_touching
from add.scene.spec.rigid import FileGeometrySpec, GeometrySpec, KinematicBodySpec, RigidBodySpec
from add.typing import FloatArray, IntArray

#: Seed of the sampling of surfaces: a scene gives the same points every time.
_SEED = 0


def pose_numbers(at: str, body: Any) -> list[SceneParameter]:
    """Return position, orientation and, where it has them, velocities of a body."""
    out = [
        SceneParameter(f"{at}.position", np.array(body.position), "m", ((f"{at}.position", 1.0),)),
        SceneParameter(f"{at}.orientation", rotation_vector(body.orientation), "rad", ((f"{at}.orientation", 1.0),)),
    ]
    if not isinstance(body, KinematicBodySpec):
        for key, unit in (("velocity", "m/s"), ("angular_velocity", "rad/s")):
            out.append(SceneParameter(f"{at}.{key}", np.array(getattr(body, key)), unit, ((f"{at}.{key}", 1.0),)))
    return out


def rigid_body(
    name: str, body: RigidBodySpec | KinematicBodySpec, driven: MakeSignalParameter
) -> tuple[RigidBody, list[SceneParameter], list[Derived]]:
    """Return a rigid or kinematic body, its numbers, and what of theta follows from them.

    Raises
    ------
    InputError
        For open meshes where mass is wanted, and inertias that no body has.
    """
    at = f"bodies.{name}"
    geometry = body.geometry
    vertices, triangles = np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    if isinstance(geometry, FileGeometrySpec):
        with asked_for_by(f"{at}.geometry.file"):
            vertices, triangles = read_surface(geometry.file)
        vertices = geometry.scale * vertices
    points, radii, area, outline = _collision(body, vertices, triangles)
    shapes: tuple[CarriedShape, ...] = ()
    if outline[0] >= 0 and body.collision.shape:
        sized = f"{at}.geometry" if adjustable(geometry) else ""
        shapes = (CarriedShape(*outline, np.eye(3), np.zeros(3), in_theta=sized),)
    elif isinstance(geometry, FileGeometrySpec) and body.collision.shape and body.collision.closed:
        with asked_for_by(f"{at}.geometry.file"):
            mesh = collision_mesh(geometry.file, vertices, triangles)
        shapes = (CarriedShape(distance.MESH, mesh.half_extent, np.eye(3), np.zeros(3), mesh),)
    touching = bool(body.collision.shape)
    areas = np.full(radii.size, area / max(radii.size, 1))
    numbers = [*pose_numbers(at, body), *size_numbers(at, geometry, bool(shapes))]
    if isinstance(body, KinematicBodySpec):
        given = (("translation", body.translation, "m"), ("rotation", body.rotation, "rad"))
        moves = [None if value is None else driven(value, f"{at}.{key}", unit, 3) for key, value, unit in given]
        for key, value, unit in given:
            if isinstance(value, tuple):
                numbers.append(SceneParameter(f"{at}.{key}", np.array(value), unit, ((f"{at}.{key}", 1.0),)))
        moving = RigidBody(
            name, points, radii, areas, shapes, True, moves[0], moves[1], vertices, triangles, outline, touching
        )
        return moving, numbers, []
    numbers += _mass_numbers(at, body, vertices, triangles)
    derived: list[Derived] = []
    if adjustable(geometry):
        numbers, derived = following_masses(at, body, numbers)
    solid = RigidBody(name, points, radii, areas, shapes, False, None, None, vertices, triangles, outline, touching)
    return solid, numbers, derived


def _solid(at: str, geometry: GeometrySpec, vertices: FloatArray, triangles: IntArray) -> MassProperties:
    if not isinstance(geometry, FileGeometrySpec):
        return simple_solid(geometry.shape, geometry.sizes)
    with naming(f"{at}.geometry.file"):
        return mesh_solid(vertices, triangles)


def _six(matrix: FloatArray) -> FloatArray:
    return np.array([matrix[0, 0], matrix[1, 1], matrix[2, 2], matrix[0, 1], matrix[0, 2], matrix[1, 2]])


def _mass_numbers(at: str, body: RigidBodySpec, vertices: FloatArray, triangles: IntArray) -> list[SceneParameter]:
    """Tie mass, inertia and centre to mass or density; a given inertia is a number of its own."""
    complete = body.mass is not None and body.inertia is not None and body.center_of_mass is not None
    solid = None
    if body.geometry is not None and not complete:
        solid = _solid(at, body.geometry, vertices, triangles)
    per_mass = np.zeros(6)
    if body.inertia is not None:
        xx, yy, zz, xy, xz, yz = body.inertia
        with naming(f"{at}.inertia"):
            check_inertia(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    else:
        assert solid is not None
        per_mass = _six(solid.inertia) / solid.volume
    out = []
    if body.mass is not None:
        targets: list[tuple[str, float | FloatArray]] = [(f"{at}.mass", 1.0)]
        if body.inertia is None:
            targets.append((f"{at}.inertia", per_mass))
        out.append(SceneParameter(f"{at}.mass", np.array(body.mass), "kg", tuple(targets)))
    else:
        assert solid is not None
        targets = [(f"{at}.mass", solid.volume)]
        if body.inertia is None:
            targets.append((f"{at}.inertia", per_mass * solid.volume))
        out.append(SceneParameter(f"{at}.density", np.array(body.density), "kg/m^3", tuple(targets)))
    if body.inertia is not None:
        out.append(SceneParameter(f"{at}.inertia", np.array(body.inertia), "kg m^2", ((f"{at}.inertia", 1.0),)))
    centre = np.zeros(3) if solid is None else solid.centre
    if body.center_of_mass is not None:
        centre = np.array(body.center_of_mass)
    out.append(SceneParameter(f"{at}.center_of_mass", centre, "m", ((f"{at}.centre", 1.0),)))
    return out


def _collision(
    body: RigidBodySpec | KinematicBodySpec, vertices: FloatArray, triangles: IntArray
) -> tuple[FloatArray, FloatArray, float, tuple[int, tuple[float, float, float]]]:
    """Return collision points, their radii, the area of the surface, kind (-1 for none) and size of the shape."""
    geometry, spacing = body.geometry, body.collision.spacing or np.inf
    points, radius, area = np.zeros((0, 3)), 0.0, 0.0
    kind, size = -1, (0.0, 0.0, 0.0)
    if isinstance(geometry, FileGeometrySpec):
        points, area = vertices, float(triangle_areas(vertices, triangles).sum())
        if body.collision.spacing is not None:
            points = surface_points(vertices, triangles, spacing, _SEED)
    elif geometry is not None:
        on_rims = body.collision.spacing or 0.5 * geometry.sizes[0]
        points, radius, area = simple_touching(geometry.shape, geometry.sizes, spacing, on_rims)
        x, y, z = (*geometry.sizes, 0.0, 0.0)[:3]
        kind, size = KINDS[geometry.shape], (x, y, z)
    if not body.collision.points or isinstance(body, KinematicBodySpec):
        # What moves a kinematic body is given: its own points would only double the forces on others.
        points = points[:0]
    return points, np.full(points.shape[0], radius), area, (kind, size)
