"""Objectives over time of a scene: the nearest passage of a marker, and its contact with an obstacle."""

from __future__ import annotations

import numpy as np

from add.errors import InputError
from add.objectives.measures import Measure, Nearness, Separation, SquaredDistance, Surface
from add.objectives.over_time import MeanOverTime, SoftMinimum, steps_within
from add.scene.build.built import BuiltScene
from add.scene.build.obstacles import obstacle
from add.scene.spec.objective import ContactObjectiveSpec, NearestObjectiveSpec
from add.ties import unit_vector


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
