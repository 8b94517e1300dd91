"""The surfaces of all bodies as vertices, edges and faces that meet each other, for detection, pairs and display.

Between two meshes one side carries: its vertices carry the force, and what else meets only guards against crossing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from add.geometry.boundary import triangle_areas
from add.kernels.mesh_arrays import carried_places
from add.typing import BoolArray, FloatArray, IntArray

#: Cosine between the normals of two faces of a rigid mesh from which on the edge between them is no edge.
FLAT = 1.0 - 1e-9


class SurfacePart(NamedTuple):
    """The surface of one body.

    Attributes
    ----------
    points : (n, 3) places at rest, in the body's frame, or in the world if it is static [m]
    faces : (m, 3) of points; a rod or a rope has none
    edges : (k, 2) of points, beside those of the faces
    carrier : first coordinate of the body's frame, or of its first point; -1 for a static mesh
    nodes : (n,) numbers of the points' nodes behind ``carrier``, three coordinates each; None for a rigid body
    centre : (3,) indices in theta of the centre of mass of a rigid body; -1 is zero
    contact_class : row and column of the tables
    half_thickness : distance from the middle surface to the skin [m]
    meets_itself : whether its primitives meet each other
    areas : (n,) that the points stand for, where no faces say so [m^2]; None: by the edges
    round : whether it is a body that turns, and half-thicknesses are its radius: see `add.kernels.mesh_contact`
    """

    points: FloatArray
    faces: IntArray
    edges: IntArray
    carrier: int
    nodes: IntArray | None
    centre: IntArray
    contact_class: int
    half_thickness: float
    meets_itself: bool = False
    areas: FloatArray | None = None
    round: bool = False


@final
@dataclass(frozen=True)
class ContactSurface:
    """Primitives of all bodies in one numbering.

    Attributes
    ----------
    rest : (n_points, 3)
        Places at rest in the body's own frame; in the world for static meshes [m].
    carrier : (n_points,)
        First coordinate of what carries each point: its node's, or its rigid body's; -1 is the world.
    rigid : (n_points,) bool
        Whether that is a rigid body (six coordinates x, w), in whose frame the point stands at ``rest``.
    centre : (n_points, 3)
        Indices in theta of the centre of mass of the point's body in its frame; -1 is zero.
    body : (n_points,)
        Number of the body or static mesh.
    contact_class : (n_points,)
        Row and column of the tables of coefficients.
    half_thickness : (n_points,) [m]
    edges, faces : (n_edges, 2), (n_faces, 3)
        Points; ends of edges ascend.
    face_edges : (n_faces, 3)
        Edges from corner 0 to 1, 1 to 2, 2 to 0.
    edge_faces : (n_edges,)
        Number of faces at each edge: two inside a surface.
    sharp : (n_edges,) bool
        Whether the edge meets others: not the edges between two faces of a rigid mesh in one plane.
    vertex_areas, edge_areas : (n_points,), (n_edges,)
        A third of the rest areas of the adjacent faces; where there are none, squared length [m^2].
    meets : (n_bodies, n_bodies) bool
        Which bodies meet, symmetric; on the diagonal, which meet themselves.
    round : (n_bodies,) bool
        Which are balls and capsules.
    rest_factor : float
        Primitives of one body meet only if they are at rest this many times the sum of half-thicknesses apart.
    """

    rest: FloatArray
    carrier: IntArray
    rigid: BoolArray
    centre: IntArray
    body: IntArray
    contact_class: IntArray
    half_thickness: FloatArray
    edges: IntArray
    faces: IntArray
    face_edges: IntArray
    edge_faces: IntArray
    sharp: BoolArray
    vertex_areas: FloatArray
    edge_areas: FloatArray
    meets: BoolArray = field(repr=False)
    round: BoolArray
    rest_factor: float = 1.5

    @classmethod
    def of(cls, parts: Sequence[SurfacePart], apart: Sequence[tuple[int, int]] = ()) -> ContactSurface:
        """Join the surfaces of bodies.

        Parameters
        ----------
        parts : one a body
        apart : pairs of them that never meet, in any order: joined by a coupling, switched off, both of given motion
        """
        counts = [part.points.shape[0] for part in parts]
        first = np.cumsum([0, *counts])
        faces = _joined([part.faces + k for part, k in zip(parts, first, strict=False)], 3)
        more = _joined([part.edges + k for part, k in zip(parts, first, strict=False)], 2)
        rest = _joined([part.points for part in parts], 3, float)
        sides = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
        edges, where = np.unique(np.sort(np.concatenate([sides, more]), axis=1), axis=0, return_inverse=True)
        where = where.ravel()[: sides.shape[0]]
        edge_faces = np.bincount(where, minlength=edges.shape[0]).astype(np.int64)
        rigid = np.repeat([part.nodes is None and part.carrier >= 0 for part in parts], counts)
        fixed = np.repeat([part.nodes is None for part in parts], counts)
        areas, folds = triangle_areas(rest, faces), edge_normals(rest, faces, where, edge_faces)
        carriers = [
            part.carrier + 3 * part.nodes if part.nodes is not None else np.full(count, part.carrier)
            for part, count in zip(parts, counts, strict=True)
        ]
        meets = ~np.eye(len(parts), dtype=bool)
        for k, part in enumerate(parts):
            meets[k, k] = part.meets_itself and part.nodes is not None
        for a, b in apart:
            meets[a, b] = meets[b, a] = False
        vertex_areas = _vertex_areas(rest, faces, edges, areas)
        edge_areas = _edge_areas(rest, where, edges, edge_faces, areas)
        for part, k in zip(parts, first, strict=False):
            if part.areas is not None:
                vertex_areas[k : k + part.areas.size] = part.areas
                of_part = (edges[:, 0] >= k) & (edges[:, 0] < k + part.areas.size)
                edge_areas[of_part] = vertex_areas[edges[of_part]].mean(axis=1)
        return cls(
            rest=rest,
            carrier=np.concatenate([np.zeros(0, dtype=np.int64), *carriers]).astype(np.int64),
            rigid=rigid.astype(bool),
            centre=_joined([np.tile(part.centre, (n, 1)) for part, n in zip(parts, counts, strict=True)], 3),
            body=np.repeat(np.arange(len(parts)), counts).astype(np.int64),
            contact_class=np.repeat([part.contact_class for part in parts], counts).astype(np.int64),
            half_thickness=np.repeat([part.half_thickness for part in parts], counts).astype(float),
            edges=edges.astype(np.int64),
            faces=faces,
            face_edges=where.reshape(-1, 3).astype(np.int64),
            edge_faces=edge_faces,
            sharp=~(fixed[edges[:, 0]] & (fold_cosines(folds, edge_faces) > FLAT)),
            vertex_areas=vertex_areas,
            edge_areas=edge_areas,
            meets=meets,
            round=np.array([part.round for part in parts], dtype=bool),
        )

    @property
    def n_points(self) -> int:
        """Number of vertices."""
        return int(self.body.size)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return int(self.edges.shape[0])

    @property
    def n_faces(self) -> int:
        """Number of faces."""
        return int(self.faces.shape[0])

    @property
    def reach(self) -> float:
        """Largest sum of two half-thicknesses [m]: how near primitives are that touch."""
        return 2.0 * float(self.half_thickness.max(initial=0.0))

    @property
    def edge_normals(self) -> FloatArray:
        """Rest normals (n_edges, 2, 3) of the two faces of each edge; zeros if they are not two."""
        return edge_normals(self.rest, self.faces, self.face_edges.ravel(), self.edge_faces)

    def places(self, q: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the places of all vertices (n_points, 3) at the coordinates ``q`` of X [m]."""
        return np.asarray(carried_places(q, theta, self.rest, self.carrier, self.rigid, self.centre))


def _joined(arrays: Sequence[np.ndarray], width: int, dtype: type = np.int64) -> np.ndarray:
    return np.concatenate([np.zeros((0, width), dtype=dtype), *arrays]).astype(dtype)


def edge_normals(rest: FloatArray, faces: IntArray, where: IntArray, edge_faces: IntArray) -> FloatArray:
    """Return the rest normals (n_edges, 2, 3) of the two faces of each edge; zeros if they are not two.

    Parameters
    ----------
    where : (3 nt,) edges of the faces
    edge_faces : (n_edges,) how many faces each has
    """
    a, b, c = (rest[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(float).tiny)
    order, last = np.argsort(where, kind="stable"), np.cumsum(edge_faces)
    out, inner = np.zeros((edge_faces.size, 2, 3)), np.flatnonzero(edge_faces == 2)
    out[inner] = normals[order[last[inner, None] + (-2, -1)] // 3]
    return out


def fold_cosines(normals: FloatArray, edge_faces: IntArray) -> FloatArray:
    """Return the cosine of the angle between the two normals of each edge; -1 if they are not two."""
    return np.where(edge_faces == 2, np.einsum("ij,ij->i", normals[:, 0], normals[:, 1]), -1.0)


def _vertex_areas(rest: FloatArray, faces: IntArray, edges: IntArray, areas: FloatArray) -> FloatArray:
    """Return a third of the faces around each vertex; a mean squared length of its edges where there are none."""
    n = rest.shape[0]
    out = np.bincount(faces.ravel(), np.repeat(areas / 3.0, 3), minlength=n).astype(float)
    bare = out == 0.0
    squares = np.repeat(((rest[edges[:, 1]] - rest[edges[:, 0]]) ** 2).sum(axis=1), 2)
    count = np.maximum(np.bincount(edges.ravel(), minlength=n), 1)
    out[bare] = (np.bincount(edges.ravel(), squares, minlength=n) / count)[bare]
    return out


def _edge_areas(
    rest: FloatArray, where: IntArray, edges: IntArray, edge_faces: IntArray, areas: FloatArray
) -> FloatArray:
    out = np.bincount(where, np.repeat(areas / 3.0, 3), minlength=edges.shape[0]).astype(float)
    bare = edge_faces == 0
    out[bare] = ((rest[edges[:, 1]] - rest[edges[:, 0]]) ** 2).sum(axis=1)[bare]
    return out


@final
@dataclass(frozen=True)
class ContactPlaces:
    """The places where bodies touch, for display.

    Attributes
    ----------
    place : (k, 3) world places [m]
    force : (k, 3) force on the point's body there [N]; the shape's body takes minus that
    point, shape : (k,) what touches what
    """

    place: FloatArray
    force: FloatArray
    point: IntArray
    shape: IntArray


#: Cosine of the angle between two faces from which on the edge between them is no rim.
ROUND = float(np.cos(np.pi / 6.0))
#: Share of the reach within which guards push.
GUARD = 0.5
#: Share of its area with which a vertex counts, if vertices and edges of both surfaces do alike.
QUARTER = 0.25


class Sides(NamedTuple):
    """Which pairs of primitives count, with what areas and from which distance on.

    Attributes
    ----------
    vertex_shares : (n_bodies, n_bodies)
        Share of its area with which a vertex of the first body meets faces of the second.
    vertex_reach : (n_bodies, n_bodies)
        Share of the sum of half-thicknesses within which it does.
    keen : (n_edges,) bool
        Edges that meet each other within the whole of it: rims, borders and edges without faces.
    edge_reach : float
        Share within which all others do.
    """

    vertex_shares: FloatArray
    vertex_reach: FloatArray
    keen: BoolArray
    edge_reach: float


def both_sides(surface: ContactSurface) -> Sides:
    """Return sides that count alike: vertices and edges of both surfaces, each with a quarter of its area.

    Between flat meshes edges cross more often, or less, than their areas say: the sum of areas is then not the area of
    contact, but up to twice as large.
    """
    n = surface.meets.shape[0]
    return Sides(np.full((n, n), QUARTER), np.ones((n, n)), np.ones(surface.n_edges, dtype=bool), 1.0)


def one_side(surface: ContactSurface) -> Sides:
    """Return sides that count each area of contact once: by the vertices of the finer mesh.

    Vertices of the coarser mesh and edges push where surfaces are nearer than `GUARD` times the reach: they keep
    apart what vertices miss. Two rims, edges where faces of the rest shape meet at more than 30 degrees, meet within
    the whole reach. The vertices of a surface that meets itself are on both sides and count half.
    """
    n = surface.meets.shape[0]
    ends = surface.rest[surface.edges]
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    owner = surface.body[surface.edges[:, 0]] if surface.n_edges else np.zeros(0, dtype=np.int64)
    width = np.bincount(owner, lengths, minlength=n) / np.maximum(np.bincount(owner, minlength=n), 1)
    # What has no faces cannot be met by vertices: its own vertices carry.
    bare = np.bincount(surface.body[surface.faces[:, 0]], minlength=n) == 0
    width[bare] = 0.0
    order = np.lexsort((np.arange(n), width))
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    carries = rank[:, None] < rank[None, :]
    shares, reach = np.where(carries, 1.0, QUARTER), np.where(carries, 1.0, GUARD)
    np.fill_diagonal(shares, 0.5)
    np.fill_diagonal(reach, 1.0)
    return Sides(shares, reach, fold_cosines(surface.edge_normals, surface.edge_faces) < ROUND, GUARD)
