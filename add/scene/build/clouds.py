"""Point clouds of a scene as objectives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from add.equations.points import NodePoints
from add.errors import InputError
from add.geometry import facets
from add.mocap.clouds import read_clouds
from add.objectives import Loss, Tracking
from add.objectives.cloud import CloudTracking
from add.scene.build.built import BuiltScene
from add.scene.build.placements import cloud_clock, cloud_placement
from add.scene.build.selections import body_mesh
from add.scene.read.files import asked_for_by
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.cloud import CloudBoxSpec, CloudColourSpec, CloudObjectiveSpec
from add.ties import unit_vector
from add.typing import FloatArray


def cloud_tracking(
    item: CloudObjectiveSpec, built: BuiltScene, k: int, losses: Mapping[str, type[Loss]]
) -> CloudTracking:
    """Return the objective of a point cloud, entry k of the scene's.

    Raises
    ------
    InputError
        If the body is not soft, the file is damaged, or no point counts.
    """
    place = f"objective.{k}"
    body = built.scene.bodies.get(item.body)
    if not isinstance(body, SoftBodySpec):
        raise InputError("a cloud needs the surface of a soft body", place=f"{place}.body", found=f"'{item.body}'")
    with asked_for_by(f"{place}.file"):
        clouds = read_clouds(item.file, rate=item.rate, scale=item.scale)
    time = built.scene.time
    clouds = clouds.shifted(item.time_offset).cropped(*(item.crop or (0.0, time.end))).cropped(0.0, time.end)
    placement = cloud_placement(item, k, built.model.system.parameters)
    if placement is not None:
        clouds = clouds.moved(lambda points: placement.places(points, built.theta))
    if item.box is not None:
        clouds = clouds.in_box(*_bounds(item.box))
    if item.colour is not None:
        if not clouds.colours:
            raise InputError("the points of this cloud have no colours", file=item.file, place=f"{place}.colour")
        clouds = clouds.of_colour(*_bounds(item.colour))
    if item.plane is not None:
        clouds = clouds.above(np.array(item.plane.point), unit_vector(np.array(item.plane.normal)))
    clouds = clouds.every(item.every)
    if placement is not None:
        clouds = clouds.moved(lambda points: placement.recorded(points, built.theta))
    if not clouds.n_points:
        raise InputError("no recorded point lies within the run and the filters", place=place, expected="at least one")
    outline = facets(body_mesh(body, f"bodies.{item.body}"))
    nodes = outline.nodes + built.model.layouts.rows[item.body].start // 3
    shape = (clouds.times.size, nodes.size)
    sampler = Tracking(
        built.model.lifted(NodePoints(nodes)),
        time.dt,
        clouds.times,
        np.zeros((*shape, 3)),
        np.ones(shape),
        np.eye(3),
        clock=built.model.system.parameters[cloud_clock(k)].start,
        clock_start=item.time_offset,
        last=time.n_steps,
    )
    loss = None if item.loss_scale is None else losses[item.loss](item.loss_scale)
    return CloudTracking(
        sampler, outline.corners, outline.triangles, clouds.points, 1.0 / clouds.n_points, loss, placement
    )


def _bounds(box: CloudBoxSpec | CloudColourSpec) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest corner."""
    low = np.array([-np.inf if x is None else x for x in box.min])
    return low, np.array([np.inf if x is None else x for x in box.max])
