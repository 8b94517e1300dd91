"""Obstacles of a scene: shapes of the world, or adjustable ones with the numbers that place them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from add.bodies import CarriedShape, ObstacleBody
from add.io.surfaces import read_surface
from add.kernels import distance
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.model import Obstacle
from add.scene.build.numbers import SceneParameter
from add.scene.build.selections import collision_mesh
from add.scene.build.ties import Derived, OfScene
from add.scene.read.paths import asked_for_by
from add.scene.spec.rigid import (
    BoxObstacleSpec,
    CapsuleSpec,
    MeshObstacleSpec,
    ObstacleSpec,
    PlaneSpec,
    SphereSpec,
)
from add.ties import TiltVector, axes_across, unit_vector


def obstacle(name: str, spec: ObstacleSpec) -> Obstacle:
    """Return an obstacle with the kernel's code and sizes, where the scene has it."""
    velocity = np.array(spec.velocity)
    if isinstance(spec, PlaneSpec):
        normal = unit_vector(np.array(spec.normal))
        frame = np.stack([*axes_across(normal), normal], axis=1)
        return Obstacle(name, distance.PLANE, (0.0, 0.0, 0.0), frame, np.array(spec.point), velocity)
    if isinstance(spec, SphereSpec):
        return Obstacle(name, distance.SPHERE, (spec.radius, 0.0, 0.0), np.eye(3), np.array(spec.center), velocity)
    rotation = rotation_matrix(rotation_vector(spec.orientation))
    centre = np.array(spec.center)
    if isinstance(spec, BoxObstacleSpec):
        return Obstacle(name, distance.BOX, spec.half_size, rotation, centre, velocity)
    if isinstance(spec, MeshObstacleSpec):
        with asked_for_by(f"obstacles.{name}.file"):
            vertices, triangles = read_surface(spec.file)
            mesh = collision_mesh(spec.file, spec.scale * vertices, triangles)
        return Obstacle(name, distance.MESH, mesh.half_extent, rotation, centre, velocity, mesh)
    kind = distance.CAPSULE if isinstance(spec, CapsuleSpec) else distance.CYLINDER
    size = (spec.radius, spec.half_length, 0.0)
    return Obstacle(name, kind, size, rotation, centre, velocity)


class Adjustable(NamedTuple):
    """An adjustable obstacle, the numbers that it brings, and what of theta follows from them."""

    body: ObstacleBody
    numbers: list[SceneParameter]
    derived: list[Derived]


def adjustable_obstacle(name: str, spec: ObstacleSpec, by_mesh: bool = False) -> Adjustable:
    """Return an obstacle with coordinates, whose place, direction and velocity are numbers where it is adjustable.

    ``by_mesh``: whether it may meet others by its mesh.

    The frame of a plane is the world's but for the place: theta turns it by the rotation vector of the tilt, which is
    linear in the two tilts. The frame of another shape is its own.
    """
    at, still = f"obstacles.{name}", obstacle(name, spec)
    point = "point" if isinstance(spec, PlaneSpec) else "center"
    numbers = [
        SceneParameter(f"{at}.{point}", still.position, "m", ((f"{at}.start.position", 1.0),)),
        SceneParameter(f"{at}.velocity", still.velocity, "m/s", ((f"{at}.motion", 1.0),)),
    ]
    derived, rotation = [], np.eye(3)
    if isinstance(spec, PlaneSpec):
        rotation = still.rotation
        numbers.append(SceneParameter(f"{at}.normal", np.zeros(2), "rad", ()))
        across = axes_across(unit_vector(np.array(spec.normal)))
        derived.append(Derived((f"{at}.start.orientation",), TiltVector(), (OfScene(f"{at}.normal"), across)))
    elif not isinstance(spec, SphereSpec):
        turn = rotation_vector(spec.orientation)
        numbers.append(SceneParameter(f"{at}.orientation", turn, "rad", ((f"{at}.start.orientation", 1.0),)))
    shape = CarriedShape(still.kind, still.size, rotation, np.zeros(3), still.mesh)
    if not spec.adjustable:
        numbers = [replace(number, fixed=True) for number in numbers]
    return Adjustable(ObstacleBody(name, shape, by_mesh), numbers, derived)
