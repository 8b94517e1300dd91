"""Sides of contact between meshes: whose vertices carry the force, and what only guards against crossing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.contact.surfaces import ContactSurface, fold_cosines
from add.typing import BoolArray, FloatArray

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
