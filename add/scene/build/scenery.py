"""Obstacles of a scene; weights, sizes, speeds and falls of what may touch, as contact by default reads them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from add.bodies import (
    Body,
    CarriedShape,
    ContactPoints,
    LinkBody,
    MassSpringBody,
    NodalBody,
    ObstacleBody,
    SoftBody,
    TreeBody,
)
from add.geometry.boundary import triangle_areas
from add.kernels import shape_codes
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.kernels.shape_codes import CAPSULE, CYLINDER, PLANE, SPHERE
from add.model import Obstacle
from add.model.overlaps import Surface, may_touch, surfaces
from add.scene.build.built import BuiltScene
from add.scene.build.selections import collision_mesh
from add.scene.build.ties import Derived, OfScene, SceneParts
from add.scene.read.paths import asked_for_by
from add.scene.robots.shapes import kernel_shape, simple_touching
from add.scene.spec.links import surface_of_file
from add.scene.spec.rigid import MeshObstacleSpec, ObstacleSpec, PlaneSpec, SphereSpec
from add.scene.spec.scene import SceneSpec
from add.ties import TiltVector, axes_across, unit_vector
from add.typing import FloatArray

#: Density by which what has no size, a particle, gets one [kg/m^3].
WATER = 1000.0
#: Least thickness of a tree that counts, over its extent along the axes of its first link.
THIN_LINKS = 0.1
#: Steps of the search for what lies below, and how near it counts as found, over the way to it.
_LOOKS, _NEAR = 60, 1e-3


class Moving(NamedTuple):
    """A body, or a tree.

    Mass [kg]; thinnest part, that of surfaces that it meets included [m]; free fall [m]; its own speed at the start
    and that of what comes to it on a given way [m/s]; names of the bodies by which it touches.
    """

    name: str
    mass: float
    thin: float
    fall: float
    speed: float
    coming: float
    parts: tuple[str, ...]


class Scenery:
    """Bodies of a scene that move, and the bodies and obstacles that they may touch."""

    def __init__(self, scene: SceneSpec, built: BuiltScene) -> None:
        self.scene, self.model, self.theta = scene, built.model, built.theta
        model, theta = self.model, self.theta
        self.kin = model.begins(theta)  # where given motions have begun
        self.masses = model.node_masses(theta)
        self.pull = np.array(model.system.parameters.view(theta, "gravity"))
        self.gravity = float(np.linalg.norm(self.pull))
        self.still = [item for item in surfaces(model, self.kin, theta) if item.still]
        self.moving = list(self._moving())
        self._partners: dict[str, list[Moving]] = {}

    # --- what is there ----------------------------------------------------------------------------------------------

    def _moving(self) -> Iterator[Moving]:
        trees: dict[str, list[LinkBody]] = {}
        for body in self.model.bodies:
            if isinstance(body, LinkBody):
                trees.setdefault(body.tree, []).append(body)
        for body in self.model.bodies:
            if isinstance(body, LinkBody) or not body.moves:
                continue
            parts: list[Body] = list(trees.get(body.name, [])) if isinstance(body, TreeBody) else [body]
            parts = [part for part in parts if part.contact_points().radii.size or part.shapes or part.contact_mesh()]
            if not parts:
                continue
            names = tuple(part.name for part in parts)
            met = [item for item in self.still if any(self._touch(name, item.name) for name in names)]
            state = body.state(self.kin, self.masses, self.theta, self.model.layouts)
            mass = float(state.get("mass", 0.0))
            if mass <= 0.0:
                continue
            thin = min(self._thin(part, mass) for part in parts)
            if not 0.0 < thin < np.inf:
                thin = 2.0 * (0.75 * mass / np.pi / WATER) ** (1.0 / 3.0)
            if isinstance(body, TreeBody):  # robots carry thin plates that bear nothing
                frames = [self.kin.q[self.model.lift.rows[part.name].start :][:6] for part in trees[body.name]]
                turn = rotation_matrix(frames[0][3:])  # however the robot, or its turntable, is turned
                thin = max(thin, THIN_LINKS * float(np.ptp([row[:3] @ turn for row in frames], axis=0).max()))
            speed = max(self._speed(part) for part in parts)
            fall = max(self._fall(part, met) for part in parts) if self.gravity else 0.0
            still = min([thickness(item.kind, item.size) for item in met], default=np.inf)
            coming = max([item.speed for item in met], default=0.0)
            yield Moving(body.name, mass, min(thin, still), fall, speed, coming, names)

    def _touch(self, one: str, other: str) -> bool:
        contact = self.model.contact
        return may_touch(contact, one, other) or may_touch(contact, other, one)

    def partners(self, one: Moving) -> list[Moving]:
        """Return the other moving bodies that a body may touch."""
        if one.name not in self._partners:
            others = (other for other in self.moving if other is not one)
            touching = [other for other in others if any(self._touch(a, b) for a in one.parts for b in other.parts)]
            self._partners[one.name] = touching
        return self._partners[one.name]

    def _thin(self, body: Body, mass: float) -> float:
        """Return the thinnest part of a body [m]."""
        if isinstance(body, NodalBody):
            out = _least_extent(body.rest)
            if isinstance(body, SoftBody):  # what is hollow or ring-shaped: 6 V / A is the width of a cube and a ball
                density = float(self._number(body, "density"))
                area = float(body.contact_points().areas.sum())
                out = min(out, 6.0 * mass / density / area) if area > 0.0 else out
            return max(out, self._width(body))
        if body.shapes:
            return min(thickness(shape.kind, shape.size) for shape in body.shapes)
        points = body.contact_points()
        if points.radii.size and points.radii.max() > 0.0:
            return 2.0 * float(points.radii.max())
        extent = np.ptp(body.rest, axis=0) if body.rest.size else np.zeros(3)
        return float(extent[extent > 0.0].min(initial=np.inf))

    def _width(self, body: NodalBody) -> float:
        """Return the width of the surface, or of the net, between nodes [m]."""
        area = float(mean(body.contact_points().areas))
        if area > 0.0:
            return float(np.sqrt(area))
        if isinstance(body, MassSpringBody) and body.edges.size:
            ends = body.points[body.edges]
            return float(np.median(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)))
        return 0.0

    def _speed(self, body: Body) -> float:
        """Return the greatest speed of a body at the start [m/s]."""
        rows = self.model.lift.rows[body.name]
        v = self.kin.v[rows.start : rows.stop].reshape(-1, 3)
        if not body.has_frame:
            return float(np.linalg.norm(v, axis=1).max())
        far = float(np.linalg.norm(body.rest, axis=1).max()) if body.rest.size else 0.0
        return float(np.linalg.norm(v[0]) + far * np.linalg.norm(v[1]))

    def _fall(self, body: Body, met: list[Surface]) -> float:
        """Return the free fall of a body's lowest point to the next surface below [m]; zero where there is none."""
        start = self.model.lift.rows[body.name].start
        if body.has_frame:
            turn = rotation_matrix(self.kin.q[start + 3 : start + 6])
            points = body.contact_points()
            if not points.radii.size:
                return 0.0
            centre = body.centre(self.model.layouts)
            arms = points.arms - np.where(centre >= 0, self.theta[centre], 0.0)
            places, radii = self.kin.q[start : start + 3] + arms @ turn.T, points.radii
        else:
            places = self.kin.q[start : start + 3 * body.rest.shape[0]].reshape(-1, 3)
            radii = np.zeros(places.shape[0])
        down = self.pull / self.gravity
        lowest = int(np.argmax(places @ down + radii))
        return _below(met, places[lowest] + radii[lowest] * down, down)

    def _number(self, body: Body, key: str) -> Any:
        return self.model.system.parameters.view(self.theta, f"bodies.{body.name}.{key}")

    def _young(self, body: Body) -> tuple[float, float]:
        """Return Young's modulus [Pa] and the stiffness of a node's surroundings [N/m]; inf of what is rigid."""
        if isinstance(body, SoftBody):
            young = float(body.young(self.theta, self.model.layouts).mean())
            return young, young * self._width(body)
        if isinstance(body, MassSpringBody):
            stiffness = float(self._number(body, "stiffness")) if body.edges.size else 0.0
            width = self._width(body)
            return (stiffness / width if width else 0.0), stiffness
        return np.inf, np.inf


def mean(values: FloatArray) -> float:
    """Return the mean of values; zero of none."""
    return float(values.mean()) if values.size else 0.0


def vertex_area(body: Body) -> float:
    """Return the mean area that a vertex of a body's mesh stands for [m^2]; zero of a rope."""
    mesh = body.contact_mesh()
    assert mesh is not None
    area = mean(body.contact_points().areas if mesh.areas is None else mesh.areas)
    return area or float(triangle_areas(mesh.points, mesh.faces).sum() / max(len(mesh.points), 1))


def _least_extent(points: FloatArray) -> float:
    """Return the extent of points along the axis along which it is least [m]."""
    middle = points - points.mean(axis=0)
    axes = np.linalg.eigh(middle.T @ middle)[1]
    return float(np.ptp(middle @ axes, axis=0).min()) if len(points) > 1 else 0.0


def thickness(kind: int, size: Any) -> float:
    """Return the thinnest part of a shape [m]; of a mesh that of the box around it, of what has no end inf."""
    a, b, c = (float(x) for x in tuple(size)[:3])
    if kind == PLANE:
        return np.inf
    if kind in (SPHERE, CAPSULE):
        return 2.0 * a
    return 2.0 * (min(a, b) if kind == CYLINDER else min(a, b, c))


def _below(surfaces: list[Surface], place: FloatArray, down: FloatArray) -> float:
    """Return how far a point falls to the next surface [m], by steps as long as the distance to it; 0 to none."""
    nearest = np.inf
    for surface in surfaces:
        fallen = 0.0
        for _ in range(_LOOKS):
            gap = float(surface.gaps((place + fallen * down)[None])[0])
            fallen += max(gap, 0.0)
            if gap <= _NEAR * fallen:
                nearest = min(nearest, fallen)
                break
    return nearest if np.isfinite(nearest) else 0.0


def obstacle(name: str, spec: ObstacleSpec) -> Obstacle:
    """Return an obstacle with the kernel's code and sizes, where the scene has it."""
    velocity = np.array(spec.velocity)
    if isinstance(spec, PlaneSpec):
        normal = unit_vector(np.array(spec.normal))
        frame = np.stack([*axes_across(normal), normal], axis=1)
        return Obstacle(name, shape_codes.PLANE, (0.0, 0.0, 0.0), frame, np.array(spec.point), velocity)
    rotation = np.eye(3) if isinstance(spec, SphereSpec) else rotation_matrix(rotation_vector(spec.orientation))
    centre = np.array(spec.center)
    if isinstance(spec, MeshObstacleSpec):
        vertices, triangles = surface_of_file(spec, f"obstacles.{name}.file")
        with asked_for_by(f"obstacles.{name}.file"):
            mesh = collision_mesh(spec.file, vertices, triangles)
        return Obstacle(name, shape_codes.MESH, mesh.half_extent, rotation, centre, velocity, mesh)
    points, radius, area = simple_touching(spec.shape, spec.sizes, np.inf, 0.5 * spec.sizes[0])
    of_points = (np.full(len(points), value) for value in (radius, area / len(points)))
    touching = ContactPoints(np.zeros(0, dtype=np.int64), points, *of_points)
    return Obstacle(name, *kernel_shape(spec.shape, spec.sizes), rotation, centre, velocity, points=touching)


def adjustable_obstacle(name: str, spec: ObstacleSpec, parts: SceneParts, by_mesh: bool = False) -> ObstacleBody:
    """Return an obstacle with coordinates, whose place, direction and velocity are numbers where it is adjustable.

    ``by_mesh``: whether it may meet others by its mesh.

    The frame of a plane is the world's but for the place: theta turns it by the rotation vector of the tilt, which is
    linear in the two tilts. The frame of another shape is its own.
    """
    at, still, fixed = f"obstacles.{name}", obstacle(name, spec), not spec.adjustable
    point = "point" if isinstance(spec, PlaneSpec) else "center"
    parts.add(f"{at}.{point}", still.position, "m", ((f"{at}.start.position", 1.0),), fixed=fixed)
    parts.add(f"{at}.velocity", still.velocity, "m/s", ((f"{at}.motion", 1.0),), fixed=fixed)
    rotation = np.eye(3)
    if isinstance(spec, PlaneSpec):
        rotation = still.rotation
        parts.add(f"{at}.normal", np.zeros(2), "rad", (), fixed=fixed)
        across = axes_across(unit_vector(np.array(spec.normal)))
        parts.derived.append(Derived((f"{at}.start.orientation",), TiltVector(), (OfScene(f"{at}.normal"), across)))
    elif not isinstance(spec, SphereSpec):
        turn = rotation_vector(spec.orientation)
        parts.add(f"{at}.orientation", turn, "rad", ((f"{at}.start.orientation", 1.0),), fixed=fixed)
    shape = CarriedShape(still.kind, still.size, rotation, np.zeros(3), still.mesh)
    return ObstacleBody(name, shape, by_mesh, still.points)
