"""Markers of a scene as one map from coordinates to points."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.bodies import Block, Body, NodalBody, SoftBody
from add.equations.points import PointMap, WeightedPoints
from add.equations.sites import SiteKind, SitePoints, gather
from add.errors import InputError
from add.joints.laws import BodySite
from add.model import Model
from add.model.build import system_site
from add.scene.build.numbers import SceneParameter, direction
from add.scene.build.selections import marker_weights, place_within, select_points
from add.scene.build.ties import Derived
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.common import NodesSelectorSpec
from add.scene.spec.markers import CenterMarkerSpec, DirectionMarkerSpec, NodesMarkerSpec, PointMarkerSpec
from add.scene.spec.nets import NetSpec
from add.scene.spec.objective import PoseObjectiveSpec
from add.scene.spec.scene import SceneSpec
from add.typing import FloatArray, IntArray


@final
@dataclass
class MarkerParts:
    """The share of the markers in the numbers of a scene."""

    numbers: list[SceneParameter] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)


def marker_blocks(spec: SceneSpec, parts: MarkerParts) -> list[Block]:
    """Return the blocks of theta for places and directions of markers on rigid bodies; add them to the numbers."""
    blocks: list[Block] = []
    for name, marker in spec.markers.items():
        if isinstance(spec.bodies.get(marker.body), SoftBodySpec | NetSpec):
            continue
        if isinstance(marker, PointMarkerSpec):
            path = f"markers.{name}.point"
            blocks.append((path, (3,), "m"))
            parts.numbers.append(SceneParameter(path, np.array(marker.point), "m", ((path, 1.0),)))
        elif isinstance(marker, DirectionMarkerSpec):
            path = f"markers.{name}.direction"
            blocks.append((path, (3,), "-"))
            number, unit = direction(path, marker.direction, path)
            parts.numbers.append(number)
            parts.derived.append(unit)
    return blocks


def pose_blocks(spec: SceneSpec, bodies: Sequence[Body], parts: MarkerParts) -> list[Block]:
    """Return the blocks of theta for the points by which the pose of a rigid body is compared.

    These are its collision points, and for a body without any its origin and the tips of its axes, 0.1 m away.
    """
    blocks: list[Block] = []
    framed = {body.name: body for body in bodies if body.has_frame}
    for k, item in enumerate(spec.objective):
        if isinstance(item, PoseObjectiveSpec) and item.body in framed:
            points = framed[item.body].contact_points().arms
            if points.shape[0] < 3:
                points = 0.1 * np.concatenate([np.zeros((1, 3)), np.eye(3)])
            path = f"objective.{k}.points"
            blocks.append((path, points.shape, "m"))
            parts.numbers.append(SceneParameter(path, points, "m", ((path, 1.0),), fixed=True))
    return blocks


def marker_map(spec: SceneSpec, model: Model) -> PointMap:
    """Return all markers as one map: weighted nodes where that is enough, sites of bodies where it is not.

    Raises
    ------
    InputError
        For a marker that its body cannot have.
    """
    nodal = not any(model.body(marker.body).has_frame for marker in spec.markers.values())
    rows: list[BodySite] = []
    weighted: list[tuple[IntArray, FloatArray]] = []
    for name, marker in spec.markers.items():
        place = f"markers.{name}"
        body = model.body(marker.body)
        if isinstance(body, NodalBody):
            nodes, weights = _on_nodes(marker, body, place)
            weighted.append((body.first_node(model.layouts) + nodes, weights))
            rows.append(BodySite(SiteKind.NODES, marker.body, nodes=nodes, weights=weights))
        elif isinstance(marker, PointMarkerSpec):
            rows.append(BodySite(SiteKind.POINT, marker.body, f"{place}.point"))
        elif isinstance(marker, DirectionMarkerSpec):
            rows.append(BodySite(SiteKind.DIRECTION, marker.body, f"{place}.direction"))
        elif isinstance(marker, CenterMarkerSpec):
            # The first three coordinates of a rigid body are its centre of mass.
            rows.append(BodySite(SiteKind.NODES, marker.body, nodes=np.zeros(1, dtype=np.int64), weights=np.ones(1)))
        else:
            raise InputError(
                "a rigid body has no nodes", place=place, expected="'point', 'direction' or 'center_of_mass'"
            )
    if not nodal:
        return model.lifted(SitePoints(gather([system_site(row, model.bodies, model.layouts) for row in rows])))
    width = max((nodes.size for nodes, _ in weighted), default=0)
    all_nodes = np.zeros((len(weighted), width), dtype=np.int64)
    all_weights = np.zeros((len(weighted), width))
    for i, (nodes, weights) in enumerate(weighted):
        all_nodes[i, : nodes.size], all_weights[i, : nodes.size] = nodes, weights
    return model.lifted(WeightedPoints(all_nodes, all_weights))


def _on_nodes(marker: object, body: NodalBody, place: str) -> tuple[IntArray, FloatArray]:
    """Return a marker's nodes (of the body) and weights."""
    if isinstance(marker, DirectionMarkerSpec):
        raise InputError("a body of nodes has no orientation", place=place, expected="a rigid body")
    if isinstance(marker, CenterMarkerSpec):
        return np.arange(body.rest.shape[0]), body.mass_shares()
    if isinstance(marker, PointMarkerSpec):
        found = body.nodes_at(np.array(marker.point))
        return place_within(found, marker.point, marker.max_distance, f"{place}.point")
    if isinstance(body, SoftBody):
        return marker_weights(marker, body.mesh, body.surface, place)
    if isinstance(marker, NodesMarkerSpec):
        nodes = select_points(body.rest, NodesSelectorSpec(nodes=marker.nodes), place)
        weights = np.ones(nodes.size) if marker.weights is None else np.array(marker.weights)
        return nodes, weights / weights.sum()
    raise InputError("nodes of a sheet or a line are no surface", place=place, expected="'point' or 'nodes'")
