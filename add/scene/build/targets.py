"""Objectives of a scene with targets: points, lines, tracks, poses, nearest passages and contacts."""

from __future__ import annotations

import numpy as np

from add.bodies import SoftBody
from add.equations.points import NodePoints, PointMap
from add.equations.sites import SiteKind, SitePoints, gather
from add.errors import InputError
from add.geometry import SoftMesh, volume
from add.geometry.boundary import neighbours
from add.joints.laws import BodySite
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.model.build import place_site
from add.objectives import Roughness, Tracking
from add.objectives.measures import Measure, Nearness, Separation, SquaredDistance, Surface
from add.objectives.over_time import MeanOverTime, SoftMinimum, steps_within
from add.scene.build.built import BuiltScene
from add.scene.build.obstacles import obstacle
from add.scene.spec.objective import (
    ContactObjectiveSpec,
    LineObjectiveSpec,
    NearestObjectiveSpec,
    PointObjectiveSpec,
    PoseObjectiveSpec,
    RoughnessObjectiveSpec,
    TrackObjectiveSpec,
)
from add.ties import unit_vector
from add.typing import FloatArray


def target_tracking(item: object, built: BuiltScene, place: str) -> Tracking:
    """Return the objective of an entry with a target; ``place`` is that of the entry."""
    assert isinstance(item, PointObjectiveSpec | LineObjectiveSpec | PoseObjectiveSpec | TrackObjectiveSpec)
    time = built.scene.time
    if isinstance(item, TrackObjectiveSpec):
        path = np.array(item.values)[:, None]
        points = built.markers.select(np.array([built.marker_names.index(item.marker)]))
        shares = np.full((len(item.times), 1), 1.0 / len(item.times))
        return Tracking(points, time.dt, np.array(item.times), path, shares, _onto(item.axes))
    if item.window is not None:
        times = at_steps(np.array([time.end]), time.dt, *item.window)
        if not times.size:
            raise InputError("no step ends in the window", place=f"{place}.window", found=list(item.window))
    else:
        assert item.time is not None
        times = np.array([time.end if item.time == "end" else item.time])
    projector = np.eye(3)
    if isinstance(item, PoseObjectiveSpec):
        points, rest = _pose_points(item, built, place)
        target = _pose(item, rest, place)
    else:
        row = built.marker_names.index(item.marker)
        points = built.markers.select(np.array([row]))
        if isinstance(item, PointObjectiveSpec):
            target = np.array([item.target])
            projector = _onto(item.axes)
        else:
            direction = unit_vector(np.array(item.direction))
            target = np.array([item.point])
            projector = np.eye(3) - np.outer(direction, direction)
    targets = np.broadcast_to(target, (times.size, *target.shape))
    weights = np.full(targets.shape[:2], 1.0 / (times.size * target.shape[0]))
    return Tracking(points, time.dt, times, targets, weights, projector)


def _onto(axes: str) -> FloatArray:
    """Return the projector onto some of the world's axes."""
    return np.diag([float(axis in axes) for axis in "xyz"])


def _pose_points(item: PoseObjectiveSpec, built: BuiltScene, place: str) -> tuple[PointMap, FloatArray]:
    """Return the points by which a pose is compared, and their places in the rest frame."""
    model, at = built.model, built.model.layouts
    body = model.body(item.body)
    if body.has_frame:
        block = at.parameters[f"{place}.points"]
        point = BodySite(SiteKind.POINT, item.body)
        sites = [place_site(point, arm, model.bodies, at) for arm in block.indices]
        return model.lifted(SitePoints(gather(sites))), built.theta[block.indices]
    nodes = at.rows[item.body].start // 3 + np.arange(body.n_nodes)
    return model.lifted(NodePoints(nodes)), body.rest[: body.n_nodes]


def _pose(item: PoseObjectiveSpec, rest: FloatArray, place: str) -> FloatArray:
    if item.positions_file is not None:
        at = f"{place}.positions_file"
        try:
            target = np.loadtxt(item.positions_file, delimiter="," if item.positions_file.endswith(".csv") else None)
        except (ValueError, UnicodeDecodeError) as error:
            raise InputError(f"{item.positions_file}: not a table of numbers: {error}", place=at) from None
        if target.shape != rest.shape:
            raise InputError(
                f"{item.positions_file}: the file does not fit the body",
                place=at,
                found=f"{target.shape} numbers",
                expected=f"{rest.shape}",
            )
        return target
    rotation = np.eye(3) if item.orientation is None else rotation_matrix(rotation_vector(item.orientation))
    return rest @ rotation.T + np.array(item.translation)


def at_steps(times: FloatArray, dt: float, start: float, stop: float) -> FloatArray:
    """Return the multiples of ``dt`` in [start, stop] up to the last of ``times``."""
    steps = np.arange(int(np.ceil(start / dt - 1e-9)), int(np.floor(stop / dt + 1e-9)) + 1)
    return steps[steps * dt <= times[-1] + 1e-9] * dt


def over_time(
    item: NearestObjectiveSpec | ContactObjectiveSpec, built: BuiltScene, place: str
) -> SoftMinimum | MeanOverTime:
    """Return the objective of an entry; ``place`` is that of the entry."""
    time = built.scene.time
    first, last = steps_within(time.dt, *(item.window or (0.0, time.end)))
    if first > last:
        raise InputError("no step ends in the window", place=f"{place}.window", found=list(item.window or ()))
    points = built.markers.select(np.array([built.marker_names.index(item.marker)]))
    if isinstance(item, NearestObjectiveSpec):
        projector = np.diag([float(axis in item.axes) for axis in "xyz"])
        along = None if item.moving is None else unit_vector(np.array(item.moving))
        target = SquaredDistance(np.array(item.target), projector)
        return SoftMinimum(points, target, time.dt, first, last, item.softness**2, along)
    shape = obstacle(item.obstacle, built.scene.obstacles[item.obstacle])
    if shape.mesh is not None:
        raise InputError(
            "a contact is judged by shapes with a formula", place=f"{place}.obstacle", found="a mesh",
            expected="a plane, sphere, box, capsule or cylinder",
        )  # fmt: skip
    if built.scene.obstacles[item.obstacle].adjustable:
        raise InputError(
            "a contact is judged by an obstacle whose place is no parameter", place=f"{place}.obstacle",
            found="an adjustable one", expected='"adjustable": false',
        )  # fmt: skip
    surface = Surface(shape.kind, np.array(shape.size), shape.rotation, shape.position, shape.velocity)
    if item.wanted:
        measure: Measure = Separation(surface, item.radius)
        return SoftMinimum(points, measure, time.dt, first, last, item.softness**2)
    return MeanOverTime(points, Nearness(surface, item.radius, item.margin), time.dt, first, last, last - first + 1)


def roughness(item: RoughnessObjectiveSpec, built: BuiltScene, place: str) -> Roughness:
    """Return the objective of an entry; ``place`` is that of the entry."""
    path = f"{place}.field"
    _, name, *_ = [*item.field.split("."), ""]
    known = [body for body in built.model.bodies if body.name == name and isinstance(body, SoftBody)]
    found = [(body, region) for body in known for region in body.materials
             if item.field.startswith(f"{region.place(name)}.material.")]  # fmt: skip
    places = built.numbers.place(item.field)
    at, _, key = item.field.rpartition(".material.")
    two = key == "poisson" or (key == "young" and built.numbers.place(f"{at}.material.poisson").ndim)
    if not found or two or places.shape != found[0][1].elements.shape:
        raise InputError("this is no field over the elements of a body", place=path, found=f"'{item.field}'",
                         expected="a modulus with a number for each element, beside one Poisson's ratio")  # fmt: skip
    body, region = found[0]
    mesh = SoftMesh(body.mesh.points, body.mesh.cells[region.elements], body.mesh.family)
    pairs, areas, distances = neighbours(mesh)
    size = volume(mesh) ** (1.0 / 3.0)
    softness = item.softness if item.norm == "variation" else None
    weights = areas / (size**2) if softness is not None else areas / (distances * size)
    # With one Poisson's ratio mu is Young's modulus by a factor: a constant beside the logarithm.
    key = {"young": "mu"}.get(key, key)
    block = built.model.system.parameters[f"{region.place(name)}.{key}"].indices
    return Roughness(block[pairs], weights, softness)
