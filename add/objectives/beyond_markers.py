"""Recordings beyond markers: clouds of points against a surface, poses whose frames have covariances."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from add.equations.kinematics import Columns, Directions, Kinematics, State, StateTangent, StateTangents
from add.geometry.locate import triangle_weights
from add.objectives.base import LeastSquares, Placement
from add.objectives.regularisers import Loss, bend, bending
from add.objectives.tracking import Tracking
from add.typing import FloatArray, IntArray


class Closest(NamedTuple):
    """Closest points of a surface.

    Attributes
    ----------
    triangles : (m,)
    weights : (m, 3) of their corners
    normals : (m, 3) from behind the surface towards the point; the face's where the point lies on the surface
    distances : (m,), negative inside [m]
    """

    triangles: IntArray
    weights: FloatArray
    normals: FloatArray
    distances: FloatArray


def closest_points(points: FloatArray, vertices: FloatArray, triangles: IntArray) -> Closest:
    """Return the closest points of a closed surface (Ericson 2005, ch. 5.1.5), on faces, edges or vertices.

    The distance counts as negative where the point lies behind the faces that share what is closest: behind the face
    itself, or behind the sum of the unit normals of the faces at that distance (Baerentzen and Aanaes 2005).
    """
    corners = vertices[triangles]
    tree = cKDTree(corners.mean(axis=1))
    reach = np.linalg.norm(corners - corners.mean(axis=1)[:, None], axis=2).max()
    # A vertex is no closer than the surface: what is closest lies within that distance of the point.
    limit = cKDTree(vertices[np.unique(triangles)]).query(points)[0] + reach
    near = tree.query_ball_point(points, limit * (1.0 + 1e-12) + 1e-300)
    count = np.array([len(item) for item in near])
    of_point = np.repeat(np.arange(len(points)), count)
    of_triangle = np.concatenate([np.asarray(item, dtype=np.int64) for item in near])
    weights = triangle_weights(points[of_point], corners[of_triangle])
    apart = points[of_point] - np.einsum("mi,mik->mk", weights, corners[of_triangle])
    length = np.linalg.norm(apart, axis=1)
    order = np.lexsort((of_triangle, length, of_point))
    first = order[np.concatenate([[0], np.cumsum(count)[:-1]])]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    faces /= np.maximum(np.linalg.norm(faces, axis=1, keepdims=True), 1e-300)
    size = float(np.ptp(vertices, axis=0).max())
    ties = length <= length[first][of_point] + 1e-9 * size
    summed = np.zeros_like(points)
    np.add.at(summed, of_point[ties], faces[of_triangle[ties]])
    chosen, distance, away = of_triangle[first], length[first], apart[first]
    inside = np.einsum("mk,mk->m", away, summed) < 0.0
    on_surface = distance <= 1e-12 * size
    normals = np.where(on_surface[:, None], faces[chosen], away / np.maximum(distance, 1e-300)[:, None])
    signed = np.where(inside & ~on_surface, -distance, distance)
    normals = np.where((inside & ~on_surface)[:, None], -normals, normals)
    return Closest(chosen, weights[first], normals, signed)


@final
@dataclass(frozen=True)
class CloudTracking(LeastSquares):
    """phi = sum_fp w rho(s^2), s the signed distance of recorded point p of frame f from the surface [m^2].

    Points that were not recorded do not count: the side that a camera does not see is free. With n the direction of
    the closest point c = sum_i b_i x_i of triangles that follow the surface, ds = -n . sum_i b_i dx_i: moving b
    along the surface does not change s to first order (on a face n is normal to it; on an edge or a vertex b moves
    only along the edge, or not at all), so that the gradient is exact wherever one point of the surface is the
    closest. Outside a convex edge s is |p - c|, whose sign changes nothing in s^2.

    Attributes
    ----------
    surface : Tracking
        Of the surface's nodes at the times of the frames, with targets of zero and weights of one.
    corners : (nc, ns), sparse
        Weights of those nodes in the corners of the triangles.
    triangles : (nt, 3) indices into the corners, outward
    clouds : one a frame, (n_f, 3) [m]
    weight : of every point [-]
    loss : Loss, optional
    placement : Placement, optional
        Turns, moves and scales the clouds by theta: ds = n . dp.
    """

    surface: Tracking
    corners: sparse.csr_array
    triangles: IntArray
    clouds: tuple[FloatArray, ...]
    weight: float
    loss: Loss | None = None
    placement: Placement | None = None

    def within(self, start: float, stop: float, *, last: int | None = None) -> "CloudTracking":
        """Return the objective of the frames in [start, stop]; the weights of what is left sum to what they did."""
        kept = np.flatnonzero((self.surface.times >= start - 1e-9) & (self.surface.times <= stop + 1e-9))
        clouds = tuple(self.clouds[k] for k in kept)
        left = sum(map(len, clouds))
        weight = self.weight * sum(map(len, self.clouds)) / left if left else self.weight
        surface = self.surface.within(start, stop, mean=False, last=last)
        return replace(self, surface=surface, clouds=clouds, weight=weight)

    def _met(self, state: State, theta: FloatArray) -> Iterable[tuple[int, Closest]]:
        for frame in self.surface.frames(state, theta):
            if len(self.clouds[frame]):
                vertices = self.corners @ self.surface.observed(state, int(frame), theta)
                points = self.clouds[frame]
                placed = points if self.placement is None else self.placement.places(points, theta)
                yield int(frame), closest_points(placed, vertices, self.triangles)

    def _carriers(self, met: Closest) -> sparse.csr_array:
        """Return the weights of the nodes in the closest points (m, ns)."""
        ends = np.arange(0, met.weights.size + 1, 3)
        at = (met.weights.ravel(), self.triangles[met.triangles].ravel(), ends)
        return sparse.csr_array(at, shape=(len(met.triangles), self.corners.shape[0])) @ self.corners

    def _bent(self, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the residuals sign(s) sqrt(w rho(s^2)) and their derivative by s."""
        root = np.sqrt(self.weight)
        if self.loss is None:
            return root * s, np.full_like(s, root)
        return root * bend(self.loss, s[:, None])[:, 0], root * bending(self.loss, s[:, None])[:, 0, 0]

    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return the residuals of all points of the frames of this interval [m]."""
        return np.concatenate([np.zeros(0), *(self._bent(met.distances)[0] for _, met in self._met(state, theta))])

    def step_places(self, state: State, theta: FloatArray, first: Kinematics) -> FloatArray:
        """Return where the closest points of the frames of this interval were in another state of the body (m, 3)."""
        nodes = self.surface.points.points(first, theta)[0]
        at = [self._carriers(met) @ nodes for _, met in self._met(state, theta)]
        return np.concatenate([np.zeros((0, 3)), *at])

    def frames(self, state: State, theta: FloatArray) -> IntArray:
        """Return the frames of this interval."""
        return self.surface.frames(state, theta)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add the gradient, -2 r dr/ds n shared by the nodes that carry the closest points."""
        times = self.surface.simulation_times(theta)
        for frame, met in self._met(state, theta):
            residual, slope = self._bent(met.distances)
            force = -(2.0 * residual * slope)[:, None] * met.normals
            bar = self._carriers(met).T @ force
            self.surface.pull(state, times[frame], bar, theta, state_bar, theta_bar)
            if self.placement is not None:
                self.placement.pull(self.clouds[frame], -force, theta, theta_bar)

    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of `step_residuals`: those of the nodes, weighted and projected."""
        met = list(self._met(state, theta))
        if not met:
            return Columns.none()
        moved = self.surface.step_residual_tangents(state, theta, tangents, directions)
        placing = np.zeros(0, dtype=np.int64) if self.placement is None else self.placement.entries
        placed = directions.touching(directions.among(placing))
        index = np.union1d(moved.index, placed)
        by_nodes, by_placing = np.searchsorted(index, moved.index), np.searchsorted(index, placed)
        along = directions.block(placing, placed)
        frames = list(self.surface.frames(state, theta))
        count = moved.index.size
        nodes = moved.values.reshape(len(frames), self.surface.points.n_points, 3 * count)
        rows = []
        for frame, matches in met:
            _, slope = self._bent(matches.distances)
            at = (self._carriers(matches) @ nodes[frames.index(frame)]).reshape(slope.size, 3, count)
            row = np.zeros((slope.size, index.size))
            row[:, by_nodes] = -np.einsum("mk,mkc->mc", matches.normals, at)
            if self.placement is not None:
                by_entry = np.einsum("mi,mik->mk", matches.normals, self.placement.jacobian(self.clouds[frame], theta))
                row[:, by_placing] += by_entry @ along
            rows.append(slope[:, None] * row)
        return Columns(index, np.concatenate(rows))

    @property
    def looks(self) -> bool:
        """Whether any point counts."""
        return any(len(cloud) for cloud in self.clouds)

    @property
    def sample_weight(self) -> float:
        """Sum of the weights of the points, a third each: a point gives one residual, where a marker gives three."""
        return self.weight * sum(map(len, self.clouds)) / 3.0


# --- Poses, each frame weighted by the covariance of its pose ---------------------------------------------------------

#: Share of the largest singular value below which points do not tell a direction of the pose, as collinear ones.
_UNSEEN = 1e-9


def whitening(arms: FloatArray, places: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return W (6, 3 n) with W d of unit covariance, d the error of n points and directions of a body.

    A small error (dx, dw) of the pose, of covariance S, moves point p by dx + dw x a_p and a direction by dw x a_p:
    d = A (dx, dw). With S = C C^T and the singular value decomposition A C = U s V^T, W = s^-1 U^T; rows that the
    points do not tell are zero.

    Parameters
    ----------
    arms : (n, 3) a_p: from the origin of the body's frame to the points, and the directions, world axes [m], [-]
    places : (n,) 1 for points, 0 for directions; those that were not seen are NaN
    covariance : (6, 6) of the origin [m] and of the rotation about the world's axes [rad]; positive definite
    """
    n = places.size
    seen = np.flatnonzero(np.isfinite(places))
    out = np.zeros((6, n, 3))
    if not seen.size:
        return out.reshape(6, 3 * n)
    by_pose = np.zeros((seen.size, 3, 6))
    by_pose[:, :, :3] = places[seen, None, None] * np.eye(3)
    for k, axis in enumerate(np.eye(3)):
        by_pose[:, :, 3 + k] = np.cross(axis, arms[seen])
    matrix = by_pose.reshape(-1, 6)
    size = np.linalg.norm(matrix, axis=0)
    rank = np.linalg.matrix_rank(matrix / np.where(size > 0.0, size, 1.0), tol=_UNSEEN**0.5)
    u, s, _ = np.linalg.svd(matrix @ np.linalg.cholesky(covariance), full_matrices=False)
    out[:rank, seen] = (u[:, :rank] / s[:rank]).T.reshape(rank, seen.size, 3)
    return out.reshape(6, 3 * n)


@final
@dataclass(frozen=True)
class WhitenedTracking(LeastSquares):
    """phi = w sum_f rho(r_f^T r_f), r_f = W_f d_f: distances of points, whitened frame by frame [-].

    rho(s^2) = s^2 without a loss. W_f is that of the recorded pose, and does not change with theta.

    Attributes
    ----------
    points : Tracking
        Of positions, with weights of one and without a loss; its targets are finite.
    matrices : (n_frames, 6, 3 n_points), W_f
    weight : w, of every row [-]
    loss : Loss, optional
        Of the distance in standard deviations.
    """

    points: Tracking
    matrices: FloatArray
    weight: float
    loss: Loss | None = None

    @property
    def told(self) -> FloatArray:
        """Of every frame and row (n_frames, 6), whether the points tell it."""
        return np.asarray(self.matrices.any(axis=2))

    def rows(self, frame: int) -> IntArray:
        """Return the rows of a frame that count."""
        return np.flatnonzero(self.told[frame])

    def frames(self, state: State, theta: FloatArray) -> IntArray:
        """Return the frames of the interval that ends at ``state``."""
        return self.points.frames(state, theta)

    def within(self, start: float, stop: float, *, last: int | None = None) -> "WhitenedTracking":
        """Return the objective of the frames in [start, stop]; the weights of what is left sum to what they did."""
        times = self.points.times
        kept = (times >= start - 1e-9) & (times <= stop + 1e-9)
        count = int(self.told[kept].sum())
        weight = self.weight * int(self.told.sum()) / count if count else self.weight
        points = self.points.within(start, stop, mean=False, last=last)
        return replace(self, points=points, matrices=self.matrices[kept], weight=weight)

    def _whitened(self, state: State, theta: FloatArray) -> Iterable[tuple[int, FloatArray]]:
        for frame, difference in self.points.differences(state, theta):
            yield frame, self.matrices[frame] @ difference.ravel()

    def step_residuals(self, state: State, theta: FloatArray) -> FloatArray:
        """Return sqrt(w) sqrt(rho / r^T r) r of the frames of this interval [-]."""
        residuals = [np.zeros(0)]
        for frame, row in self._whitened(state, theta):
            bent = row if self.loss is None else bend(self.loss, row[None])[0]
            residuals.append(np.sqrt(self.weight) * bent[self.rows(frame)])
        return np.concatenate(residuals)

    def step_pullback(self, state: State, theta: FloatArray, state_bar: StateTangent, theta_bar: FloatArray) -> None:
        """Add 2 w rho' W^T r, spread over the points."""
        times, placement = self.points.simulation_times(theta), self.points.placement
        for frame, row in self._whitened(state, theta):
            bar = 2.0 * self.weight * (self.matrices[frame].T @ row).reshape(-1, 3)
            if self.loss is not None:
                bar *= self.loss.slope(np.array([row @ row]))[0]
            self.points.pull(state, times[frame], bar, theta, state_bar, theta_bar)
            if placement is not None:
                placement.pull(self.points.targets[frame], -bar, theta, theta_bar)

    def step_residual_tangents(
        self, state: State, theta: FloatArray, tangents: StateTangents, directions: Directions
    ) -> Columns:
        """Return the tangents of `step_residuals`: those of the points, whitened."""
        moved = self.points.step_residual_tangents(state, theta, tangents, directions)
        n_frames = self.frames(state, theta).size
        by_frame = moved.values.reshape(n_frames, self.matrices.shape[2], moved.index.size)
        blocks = [np.zeros((0, moved.index.size))]
        for (frame, row), change in zip(self._whitened(state, theta), by_frame, strict=True):
            rows = self.matrices[frame] @ change
            if self.loss is not None:
                rows = bending(self.loss, row[None])[0] @ rows
            blocks.append(np.sqrt(self.weight) * rows[self.rows(frame)])
        return Columns(moved.index, np.concatenate(blocks))

    @property
    def looks(self) -> bool:
        """Whether any row counts."""
        return bool(self.matrices.any())

    @property
    def sample_weight(self) -> float:
        """Sum of the weights of the rows, a third each: a marker gives three."""
        return self.weight * float(self.told.sum()) / 3.0
