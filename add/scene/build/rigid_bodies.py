"""Rigid and kinematic bodies of a scene, with the numbers they bring: sizes of shapes, too, and what follows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from add.bodies import CarriedShape, RigidBody
from add.equations.signals import SignalParameter
from add.errors import InputError, naming
from add.geometry import MassProperties, check_inertia, mesh_solid, surface_points
from add.geometry.boundary import triangle_areas
from add.kernels import shape_codes
from add.kernels.rotation import rotation_vector
from add.model import Model, meeting_meshes
from add.scene.build.selections import collision_mesh
from add.scene.build.ties import Derived, OfScene, SceneParameter, SceneParts
from add.scene.read.paths import asked_for_by
from add.scene.robots.inertia import from_six, six_of
from add.scene.robots.model import RobotLink
from add.scene.robots.shapes import kernel_shape, simple_solid, simple_touching
from add.scene.spec.articulated import LinkSpec
from add.scene.spec.links import surface_of_file
from add.scene.spec.rigid import (
    BoxGeometrySpec,
    FileGeometrySpec,
    GeometrySpec,
    KinematicBodySpec,
    PrimitiveSpec,
    RigidBodySpec,
)
from add.scene.spec.scene import SceneSpec
from add.ties import SolidMass
from add.ties.rules import INERTIA, MASS
from add.typing import FloatArray, IntArray


def adjustable(geometry: GeometrySpec | None) -> PrimitiveSpec | None:
    """Return a geometry whose sizes are numbers; None of another, or of None."""
    return None if geometry is None or isinstance(geometry, FileGeometrySpec) or not geometry.adjustable else geometry


def add_sizes(at: str, geometry: GeometrySpec | None, touches: bool, parts: SceneParts) -> None:
    """Add the sizes of a body's geometry, where they are numbers.

    Raises
    ------
    InputError
        If nothing touches the shape, so that points alone would follow.
    """
    sized = adjustable(geometry)
    if sized is None:
        return
    if not touches:
        raise InputError(
            "sizes are numbers of a shape that others meet",
            place=f"{at}.collision.shape",
            found="false, and 'adjustable' of the geometry true",
            expected="true",
        )
    _add(f"{at}.geometry", sized, parts)


def _add(block: str, geometry: PrimitiveSpec, parts: SceneParts) -> None:
    """Add the sizes of a geometry, which are numbers under the name of their block of theta."""
    for key, value, row, factor in _sizes(geometry):
        parts.add(f"{block}.{key}", value, "m", ((block + (f"#{row}" if row else ""), factor),))


def _sizes(geometry: PrimitiveSpec) -> list[tuple[str, FloatArray, str, float]]:
    """Return (key, value, row of the block of theta or "" for all of it, factor) of the sizes of a geometry."""
    if isinstance(geometry, BoxGeometrySpec):
        return [("size", np.array(geometry.size), "", 0.5)]
    sizes = zip(("radius", "half_length"), geometry.sizes, strict=False)
    return [(key, np.array(size), str(row), 1.0) for row, (key, size) in enumerate(sizes)]


def add_link_sizes(link: RobotLink, spec: LinkSpec | None, at: str, parts: SceneParts) -> None:
    """Add the sizes of a link's shapes that are numbers.

    Raises
    ------
    InputError
        If mass, inertia or centre of mass would have to follow.
    """
    for shape in link.collision:
        if not shape.in_theta:
            continue
        assert spec is not None and spec.shapes is not None
        for key in ("mass", "inertia", "center_of_mass"):
            if getattr(spec, key) is None:
                raise InputError(
                    "masses of links do not follow their sizes: give mass, inertia and center_of_mass",
                    place=f"{at}.{key}",
                    found=f"none, and '{shape.in_theta}' is adjustable",
                )
        k = int(shape.in_theta.split(".")[-2])
        geometry = adjustable(spec.shapes[k].geometry)
        if geometry is not None:
            _add(shape.in_theta, geometry, parts)


def least_inertia(model: Model, theta: FloatArray, links: bool) -> float:
    """Return the least principal inertia of all rigid bodies that move, and of ``links`` [kg m^2]; inf for none."""
    rigid = {f"bodies.{body.name}.inertia" for body in model.bodies if isinstance(body, RigidBody) and body.moves}
    layout = model.system.parameters
    names = [
        entry.name for entry in layout.entries if entry.name in rigid or (links and entry.name.endswith(".inertia"))
    ]
    principal = [float(np.linalg.eigvalsh(from_six(layout.view(theta, name)))[0]) for name in names]
    return min((inertia for inertia in principal if inertia > 0.0), default=np.inf)  # links may have none


def with_radii(numbers: Sequence[SceneParameter], model: Model) -> list[SceneParameter]:
    """Return the numbers, radii of balls that meet meshes with the half-thicknesses that they are there."""
    out = []
    for item in numbers:
        skin = item.path.removesuffix(".geometry.radius") + ".half_thickness"
        if item.path.endswith(".geometry.radius") and skin in model.system.parameters:
            item = replace(item, targets=(*item.targets, (skin, 1.0)))
        out.append(item)
    return out


def refuse_sizes(spec: SceneSpec, model: Model) -> None:
    """Raise for laws and bodies of which the sizes of shapes are no numbers.

    Raises
    ------
    InputError
    """
    sized = [(body.name, shape) for body in model.bodies for shape in body.shapes if shape.in_theta]
    if not sized:
        return
    place, contact = f"{sized[0][1].in_theta}.adjustable", spec.contact
    if contact.friction_law in ("hybrid", "exact", "impulse"):
        raise InputError(
            "sizes of shapes are numbers of the friction laws without equations",
            place=place,
            found=f"contact.friction_law = '{contact.friction_law}'",
            expected="'none', 'linear' or 'tanh'",
        )
    if contact.stiffness_per == "area":
        raise InputError(
            "areas of surfaces do not follow the sizes of shapes",
            place=place,
            found="contact.stiffness_per = 'area'",
            expected="'node'",
        )
    meeting = meeting_meshes(model.bodies, model.contact)
    names = {name for name, _ in sized}
    for body, mesh in zip(meeting.bodies, meeting.meshes, strict=True):
        if body.name in names and (not mesh.radius or mesh.edges.size):
            raise InputError(
                "of what meets others by its mesh only the radius of a ball is a number",
                place=f"bodies.{body.name}.geometry.adjustable",
                found="true",
                expected="false, or a row of contact.pairs that switches the pair off",
            )


#: Seed of the sampling of surfaces: a scene gives the same points every time.
_SEED = 0


def pose_numbers(at: str, body: Any) -> list[SceneParameter]:
    """Return position, orientation and, where it has them, velocities of a body."""
    # A quaternion has four numbers for three degrees of freedom: the parameter is the rotation vector.
    values = [("position", body.position, "m"), ("orientation", rotation_vector(body.orientation), "rad")]
    if not isinstance(body, KinematicBodySpec):
        values += [("velocity", body.velocity, "m/s"), ("angular_velocity", body.angular_velocity, "rad/s")]
    return [SceneParameter(f"{at}.{key}", np.array(x), unit, ((f"{at}.{key}", 1.0),)) for key, x, unit in values]


def begun_pose(body: KinematicBodySpec, name: str, parts: SceneParts) -> FloatArray:
    """Return position and rotation vector (6,) where a given motion begins."""
    pose, at = np.concatenate([body.position, rotation_vector(body.orientation)]), f"bodies.{name}"
    for key, unit, of in (("translation", "m", slice(3)), ("rotation", "rad", slice(3, 6))):
        value = getattr(body, key)
        if value is not None:
            pose[of] += parts.driven(value, f"{at}.{key}", unit, 3).begins
    return np.asarray(pose)


def rigid_body(name: str, body: RigidBodySpec | KinematicBodySpec, parts: SceneParts) -> RigidBody:
    """Return a rigid or kinematic body; its numbers go to ``parts``.

    Raises
    ------
    InputError
        For open meshes where mass is wanted, and inertias that no body has.
    """
    at = f"bodies.{name}"
    geometry = body.geometry
    vertices, triangles = np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    if isinstance(geometry, FileGeometrySpec):
        vertices, triangles = surface_of_file(geometry, f"{at}.geometry.file")
    points, radii, area, outline = _collision(body, vertices, triangles)
    shapes: tuple[CarriedShape, ...] = ()
    if outline[0] >= 0 and body.collision.shape:
        sized = f"{at}.geometry" if adjustable(geometry) else ""
        shapes = (CarriedShape(*outline, np.eye(3), np.zeros(3), in_theta=sized),)
    elif isinstance(geometry, FileGeometrySpec) and body.collision.shape and body.collision.closed:
        with asked_for_by(f"{at}.geometry.file"):
            mesh = collision_mesh(geometry.file, vertices, triangles)
        shapes = (CarriedShape(shape_codes.MESH, mesh.half_extent, np.eye(3), np.zeros(3), mesh),)
    touching = bool(body.collision.shape)
    areas = np.full(radii.size, area / max(radii.size, 1))
    parts.numbers += pose_numbers(at, body)
    add_sizes(at, geometry, bool(shapes), parts)
    moves: tuple[SignalParameter | None, SignalParameter | None] = None, None
    if isinstance(body, KinematicBodySpec):
        moves = (
            parts.moved(body.translation, f"{at}.translation", "m"),
            parts.moved(body.rotation, f"{at}.rotation", "rad"),
        )
        parts.begun[name] = (
            parts.begin(f"{at}.position", moves[0], "m"),
            parts.begin(f"{at}.orientation", moves[1], "rad"),
        )
    else:
        _add_masses(at, body, vertices, triangles, parts)
    given = isinstance(body, KinematicBodySpec)
    return RigidBody(name, points, radii, areas, shapes, given, *moves, vertices, triangles, outline, touching)


def _solid(at: str, geometry: GeometrySpec, vertices: FloatArray, triangles: IntArray) -> MassProperties:
    if not isinstance(geometry, FileGeometrySpec):
        return simple_solid(geometry.shape, geometry.sizes)
    with naming(f"{at}.geometry.file"):
        return mesh_solid(vertices, triangles)


def _add_masses(at: str, body: RigidBodySpec, vertices: FloatArray, triangles: IntArray, parts: SceneParts) -> None:
    """Tie mass, inertia and centre to mass or density; a given inertia is a number of its own.

    What is not given follows from sizes that are numbers, too: mass and inertia by a density, the inertia by a mass.
    """
    complete = body.mass is not None and body.inertia is not None and body.center_of_mass is not None
    solid = None
    if body.geometry is not None and not complete:
        solid = _solid(at, body.geometry, vertices, triangles)
    per_mass = np.zeros(6)
    if body.inertia is not None:
        with naming(f"{at}.inertia"):
            check_inertia(from_six(body.inertia))
    else:
        assert solid is not None
        per_mass = six_of(solid.inertia) / solid.volume
    key, factor = "mass", 1.0
    if body.mass is None:
        assert solid is not None
        key, factor = "density", solid.volume
    targets: list[tuple[str, float | FloatArray]] = [(f"{at}.mass", factor)]
    if body.inertia is None:
        targets.append((f"{at}.inertia", per_mass * factor))
    sized, follows = adjustable(body.geometry), [word for word in ("mass", "inertia") if getattr(body, word) is None]
    if sized is not None and follows:
        outputs = tuple(f"{at}.{word}" for word in follows)
        targets = [pair for pair in targets if pair[0] not in outputs]
        first, stop = (MASS if "mass" in follows else INERTIA).start, (INERTIA if "inertia" in follows else MASS).stop
        rule = SolidMass(sized.shape, first, stop, body.mass is not None)
        sizes = (OfScene(f"{at}.geometry.{word}") for word, *_ in _sizes(sized))
        parts.derived.append(Derived(outputs, rule, (OfScene(f"{at}.{key}"), *sizes)))
    parts.add(f"{at}.{key}", getattr(body, key), body.unit_of(key), targets)
    if body.inertia is not None:
        parts.add_of(at, body, "inertia")
    centre = np.zeros(3) if solid is None else solid.centre
    if body.center_of_mass is not None:
        centre = np.array(body.center_of_mass)
    parts.add(f"{at}.center_of_mass", centre, "m", ((f"{at}.centre", 1.0),))


def _collision(
    body: RigidBodySpec | KinematicBodySpec, vertices: FloatArray, triangles: IntArray
) -> tuple[FloatArray, FloatArray, float, tuple[int, tuple[float, float, float]]]:
    """Return collision points, their radii, the area of the surface, kind (-1 for none) and size of the shape."""
    geometry, spacing = body.geometry, body.collision.spacing or np.inf
    points, radius, area = np.zeros((0, 3)), 0.0, 0.0
    outline = -1, (0.0, 0.0, 0.0)
    if isinstance(geometry, FileGeometrySpec):
        points, area = vertices, float(triangle_areas(vertices, triangles).sum())
        if body.collision.spacing is not None:
            points = surface_points(vertices, triangles, spacing, _SEED)
    elif geometry is not None:
        on_rims = body.collision.spacing or 0.5 * geometry.sizes[0]
        points, radius, area = simple_touching(geometry.shape, geometry.sizes, spacing, on_rims)
        outline = kernel_shape(geometry.shape, geometry.sizes)
    if not body.collision.points or (outline[0] < 0 and isinstance(body, KinematicBodySpec)):
        # A kinematic body from a file meets others by its mesh.
        points = points[:0]
    return points, np.full(points.shape[0], radius), area, outline
