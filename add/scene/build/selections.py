"""Meshes, selections and markers of a scene, as one map to points; meshes of round shapes kept in a run's folder."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from add.bodies import Body, LinkBody, NodalBody, NodalLoad, SoftBody
from add.bodies.nodal import off_span
from add.equations.points import PointMap, WeightedPoints
from add.equations.signals import SignalParameter
from add.equations.sites import SiteKind, SitePoints, gather
from add.errors import InputError, naming
from add.geometry import FAMILIES, Locator, SoftMesh, box_mesh, surface, to_tet10
from add.geometry.triangle_surface import CollisionMesh
from add.io.lock import replacing
from add.io.meshes import write_mesh
from add.joints.laws import BodySite
from add.model import Model
from add.model.build import system_site
from add.scene.build.ties import SceneParts
from add.scene.read.paths import asked_for_by
from add.scene.read.reader import S, apply_overrides
from add.scene.spec import common
from add.scene.spec.bodies import BoxMeshSpec, FileMeshSpec, LoadSpec, SoftBodySpec, SurfaceMeshSpec
from add.scene.spec.markers import (
    CenterMarkerSpec,
    DirectionMarkerSpec,
    NodesMarkerSpec,
    PointMarkerSpec,
    SurfaceMarkerSpec,
)
from add.scene.spec.nets import NetSpec
from add.scene.spec.objective import PoseObjectiveSpec
from add.scene.spec.scene import SceneSpec
from add.summary import as_point
from add.typing import FloatArray, IntArray


def body_mesh(spec: SoftBodySpec, place: str) -> SoftMesh:
    """Return the rest mesh of a body [m]."""
    mesh = unscaled_mesh(spec, spec.element, place)
    return SoftMesh(mesh.points * spec.scale, mesh.cells, mesh.family)


def unscaled_mesh(spec: SoftBodySpec, element: str | None, place: str) -> SoftMesh:
    """Return the mesh of a body's shape in the unit of its file, to which `scale` still applies.

    Parameters
    ----------
    spec : SoftBodySpec
    element : "tet4", "tet10", "hex8", or None for that of the file, or tet4
    place : of the body in the scene
    """
    from add.geometry.mesh_round import shape_mesh
    from add.io.meshes import read_mesh

    mesh_spec = spec.mesh
    with asked_for_by(f"{place}.mesh.file" if isinstance(mesh_spec, FileMeshSpec) else f"{place}.mesh"):
        if isinstance(mesh_spec, FileMeshSpec):
            return read_mesh(mesh_spec.file, element)
        if isinstance(mesh_spec, SurfaceMeshSpec):
            if element == "hex8":
                found = f"element '{element}'"
                raise InputError("a surface is filled with tetrahedra", found=found, expected="'tet4' or 'tet10'")
            mesh = _filled(mesh_spec, spec.scale)
            return to_tet10(mesh) if element == "tet10" else mesh
        element = element or "tet4"
        if isinstance(mesh_spec, BoxMeshSpec):
            return box_mesh(mesh_spec.size, mesh_spec.divisions, FAMILIES[element], mesh_spec.hollows)
        names = {"major_radius": "radius", "minor_radius": "tube_radius"}
        lengths = {names.get(key, key): value for key, value in mesh_spec.model_dump(exclude={"shape"}).items()}
        return shape_mesh(mesh_spec.shape, element=element, **lengths)


def _filled(spec: SurfaceMeshSpec, scale: float) -> SoftMesh:
    from add.io.surfaces import filled

    return filled(spec.surface, spec.edge / scale, None if spec.tolerance is None else spec.tolerance / scale)


def select(mesh: SoftMesh, selector: object, place: str) -> IntArray:
    """Return the nodes of a selection in the rest frame."""
    return select_points(mesh.points, selector, place, mesh)


def select_points(points: FloatArray, selector: object, place: str, mesh: SoftMesh | None = None) -> IntArray:
    """Return the selected rows of ``points``; without a mesh every node is on the surface."""
    n_nodes = points.shape[0]
    if isinstance(selector, common.BoxSelectorSpec):
        low, high = selector.box.corners
        # A node that lies on the boundary up to rounding is inside.
        room = 1e-9 * np.ptp(points, axis=0).max()
        nodes = np.flatnonzero(((points >= low - room) & (points <= high + room)).all(axis=1))
    elif isinstance(selector, common.SphereSelectorSpec):
        away = np.linalg.norm(points - np.array(selector.sphere.center), axis=1)
        nodes = np.flatnonzero(away <= selector.sphere.radius * (1.0 + 1e-9))
    elif isinstance(selector, common.NodesSelectorSpec):
        nodes = np.array(selector.nodes, dtype=np.int64)
        if nodes.max() >= n_nodes:
            raise InputError(
                "there is no such node", place=f"{place}.nodes", found=nodes.max(), expected=f"0..{n_nodes - 1}"
            )
    elif isinstance(selector, common.SurfaceSelectorSpec) and mesh is not None:
        nodes = surface(mesh).nodes
    else:
        assert isinstance(selector, common.AllSelectorSpec | common.SurfaceSelectorSpec)
        nodes = np.arange(n_nodes)
    if not nodes.size:
        low, high = points.min(axis=0), points.max(axis=0)
        raise InputError(
            "the selection holds no node",
            place=place,
            expected=f"something within the mesh, which spans {as_point(low)} to {as_point(high)} m",
        )
    return nodes


def place_within(
    found: tuple[IntArray, FloatArray, float], point: Sequence[float] | FloatArray, limit: float, place: str
) -> tuple[IntArray, FloatArray]:
    """Return nodes and weights that stand for a rest position, unless it is further than ``limit`` from them [m]."""
    nodes, weights, away = found
    if away > limit:
        raise InputError(
            "the point lies outside the body",
            place=place,
            found=f"{as_point(np.array(point))}, {away:.3g} m away",
            expected=f"at most {limit:g} m",
        )
    return nodes, weights


def locate_point(
    mesh: SoftMesh, point: tuple[float, float, float], limit: float, place: str
) -> tuple[IntArray, FloatArray]:
    """Return nodes and weights of a rest position, at most ``limit`` outside the mesh [m]."""
    located = Locator(mesh).locate(np.array(point))
    return place_within((located.nodes, located.weights, located.distance), point, limit, place)


def nodal_load(load: LoadSpec, nodes: IntArray, points: FloatArray, force: SignalParameter, at: str) -> NodalLoad:
    """Return a load on nodes of a body, whose nodes are at ``points`` (n, 3) at rest.

    Raises
    ------
    InputError
        For a place beside the plane or line that the nodes lie in.
    """
    if load.at is None:
        return NodalLoad(nodes, np.full(nodes.size, 1.0 / nodes.size), force)
    away = off_span(points[nodes], np.array(load.at))
    if away > 1e-6 * float(np.ptp(points, axis=0).max()):
        raise InputError("the nodes do not span the place: no forces on them act there", place=f"{at}.at",
                         found=f"{as_point(np.array(load.at))}, {away:.3g} m beside the plane or line of all nodes",
                         expected="a place in it, or nodes that span more")  # fmt: skip
    return NodalLoad.at_place(nodes, points[nodes], force, f"{at}.at")


def collision_mesh(file: str, vertices: FloatArray, triangles: IntArray) -> CollisionMesh:
    """Return a closed mesh from a file as a collision shape; errors name the file."""
    with naming(file=file):
        return CollisionMesh(vertices, triangles)


logger = logging.getLogger(__name__)


def freeze_meshes(scene: S, folder: Path) -> S:
    """Return the scene with every round shape (sphere, cylinder, torus) replaced by a mesh file.

    Parameters
    ----------
    scene : the scene of a run
    folder : of the run; `folder/meshes/<body>.msh` are written. A file that is already there, from the run that is
        resumed, is kept and used.

    Returns
    -------
    SceneSpec, the same where there is nothing to replace. Boxes stay as they are.

    Notes
    -----
    A body of which an experiment changes the shape is left alone: its shapes are meshed anew. (An experiment that gives
    the body another mesh altogether keeps that one.)
    """
    changes = {path for item in scene.experiments for path in item.overrides}
    overrides = {}
    for name, body in scene.bodies.items():
        if not isinstance(body, SoftBodySpec) or isinstance(body.mesh, FileMeshSpec | BoxMeshSpec):
            continue
        if any(path.startswith(f"bodies.{name}.mesh.") for path in changes):
            continue
        path = folder.absolute() / "meshes" / f"{name}.msh"
        if path.exists():
            logger.info("bodies.%s.mesh: %s is kept", name, path)
        else:
            # tet10 goes to the file with its curved boundary. Where an experiment chooses other elements the file has
            # to be tet4, which `read_mesh` raises to tet10 with straight sides.
            element = "tet4" if f"bodies.{name}.element" in changes else body.element
            mesh = unscaled_mesh(body, element, f"bodies.{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                write_mesh(temporary, mesh)
            logger.info("bodies.%s.mesh: %d elements written to %s", name, mesh.n_elements, path)
        overrides[f"bodies.{name}.mesh"] = {"file": str(path)}
    return apply_overrides(scene, overrides) if overrides else scene


def marker_numbers(spec: SceneSpec, parts: SceneParts) -> None:
    """Add places and directions of markers on rigid bodies."""
    for name, marker in spec.markers.items():
        if isinstance(spec.bodies.get(marker.body), SoftBodySpec | NetSpec):
            continue
        if isinstance(marker, PointMarkerSpec):
            parts.numbers_of(f"markers.{name}", marker, "point")
        elif isinstance(marker, DirectionMarkerSpec):
            path = f"markers.{name}.direction"
            parts.direction(path, marker.direction, path)


def pose_points(spec: SceneSpec, bodies: Sequence[Body], parts: SceneParts) -> None:
    """Add the points by which the pose of a rigid body is compared.

    These are its collision points, and for a body without any its origin and the tips of its axes, 0.1 m away.
    """
    framed = {body.name: body for body in bodies if body.has_frame}
    for k, item in enumerate(spec.objective):
        if isinstance(item, PoseObjectiveSpec) and item.body in framed:
            points = framed[item.body].contact_points().arms
            if points.shape[0] < 3:
                points = 0.1 * np.concatenate([np.zeros((1, 3)), np.eye(3)])
            parts.constant(f"objective.{k}.points", points, "m")


def marker_map(spec: SceneSpec, model: Model, theta: FloatArray) -> PointMap:
    """Return all markers as one map: weighted nodes where that is enough, sites of bodies where it is not.

    Centres of mass of bodies of nodes are weighed by the masses in ``theta``; see `weighed_by`.

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
            if isinstance(marker, CenterMarkerSpec):
                nodes, weights = np.arange(body.rest.shape[0]), body.centre_shares(theta, model.layouts)
            else:
                nodes, weights = _on_nodes(marker, body, place)
            weighted.append((body.first_node(model.layouts) + nodes, weights))
            rows.append(BodySite(SiteKind.NODES, marker.body, nodes=nodes, weights=weights))
        elif isinstance(marker, PointMarkerSpec):
            rows.append(BodySite(SiteKind.POINT, marker.body, f"{place}.point"))
        elif isinstance(marker, DirectionMarkerSpec):
            rows.append(BodySite(SiteKind.DIRECTION, marker.body, f"{place}.direction"))
        elif isinstance(marker, CenterMarkerSpec) and isinstance(body, LinkBody):
            if body.massless:
                raise InputError("a place without mass has no centre of mass", place=place, expected="'point'")
            rows.append(BodySite(SiteKind.POINT, marker.body, f"bodies.{body.tree}.links.{body.link}.centre"))
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


def weighed_by(spec: SceneSpec) -> dict[str, str]:
    """Return path -> marker for the numbers by which centres of mass move within their bodies.

    Weights of a marker are numbers, and no derivative contains that they depend on masses: these cannot be parameters.
    """
    out: dict[str, str] = {}
    for name, marker in spec.markers.items():
        body = spec.bodies[marker.body] if isinstance(marker, CenterMarkerSpec) and marker.body in spec.bodies else None
        if isinstance(body, SoftBodySpec) and (body.regions or body.point_masses):
            at = f"bodies.{marker.body}"
            places = [f"{at}.material", *(f"{at}.regions.{region}.material" for region in body.regions)]
            paths = [f"{place}.density" for place in places]
            paths += [f"{at}.point_masses.{k}.mass" for k in range(len(body.point_masses))]
            out |= dict.fromkeys(paths, name)
    return out


def _on_nodes(marker: object, body: NodalBody, place: str) -> tuple[IntArray, FloatArray]:
    """Return a marker's nodes (of the body) and weights."""
    if isinstance(marker, DirectionMarkerSpec):
        raise InputError("a body of nodes has no orientation", place=place, expected="a rigid body")
    if isinstance(marker, PointMarkerSpec):
        nearest = body.nodes_at(np.array(marker.point))
        return place_within(nearest, marker.point, marker.max_distance, f"{place}.point")
    if isinstance(marker, NodesMarkerSpec):
        nodes = select_points(body.rest, common.NodesSelectorSpec(nodes=marker.nodes), place)
        weights = np.ones(nodes.size) if marker.weights is None else np.array(marker.weights)
        return nodes, weights / weights.sum()
    if not isinstance(body, SoftBody):
        raise InputError("nodes of a sheet or a line are no surface", place=place, expected="'point' or 'nodes'")
    assert isinstance(marker, SurfaceMarkerSpec)
    within = np.zeros(body.mesh.n_nodes, dtype=bool)
    within[select(body.mesh, marker.surface, f"{place}.surface")] = True
    part = surface(body.mesh, within)
    if not part.nodes.size:
        chosen = within[body.surface.nodes]
        part = body.surface._replace(nodes=body.surface.nodes[chosen], areas=body.surface.areas[chosen])
    if not part.nodes.size:
        raise InputError("the selection holds no surface node", place=f"{place}.surface")
    return part.nodes, part.areas / part.areas.sum()
