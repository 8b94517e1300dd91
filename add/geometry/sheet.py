"""Sheets of triangles: rectangles, what a sheet must be, and what its triangles and hinges are at rest."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy.spatial import Delaunay

from add.errors import InputError
from add.geometry.boundary import triangle_areas
from add.kernels.strains import hinge_angle
from add.typing import BoolArray, FloatArray, IntArray

#: Heights of triangles below this part of their longest edge are no triangles.
SLIVER = 1e-3
#: A warp whose part in a triangle's plane is below this stands upright on it.
UPRIGHT = 1e-3
#: How far the inner nodes of an irregular rectangle are moved, in cells; the seed gives the same sheet every time.
_MOVED, _SEED = 0.25, 0


class Diagonals(NamedTuple):
    """How the cells of a rectangle are cut: ``alternate`` from cell to cell, or ``irregular`` with moved nodes."""

    alternate: bool
    irregular: bool = False


ONE, ALTERNATING, IRREGULAR = Diagonals(False), Diagonals(True), Diagonals(False, True)


def rectangle(
    size: tuple[float, float], cells: tuple[int, int], diagonals: Diagonals = ALTERNATING
) -> tuple[FloatArray, IntArray]:
    """Return points (n, 3) and triangles of a rectangle in the x-y plane, centred at the origin [m]."""
    (nx, ny), (width, height) = cells, size
    x, y = np.linspace(-0.5, 0.5, nx + 1), np.linspace(-0.5, 0.5, ny + 1)
    places = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(places.shape[0]).reshape(nx + 1, ny + 1)
    if diagonals.irregular:
        inner = number[1:-1, 1:-1].ravel()
        moved = np.random.default_rng(_SEED).uniform(-_MOVED, _MOVED, (inner.size, 2))
        places[inner] += moved / [nx, ny]
        triangles = np.asarray(Delaunay(places * [width, height]).simplices, dtype=np.int64)
        a, b, c = (places[triangles[:, k]] for k in range(3))
        twice = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
        triangles = np.where((twice < 0.0)[:, None], triangles[:, ::-1], triangles)[np.abs(twice) * nx * ny > 1e-6]
    else:
        corners = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
        p, q, r, s = (part.ravel() for part in corners)
        odd = (np.add.outer(np.arange(nx), np.arange(ny)).ravel() % 2 == 1) & diagonals.alternate
        first = np.where(odd[:, None], np.stack([p, q, s], axis=1), np.stack([p, q, r], axis=1))
        second = np.where(odd[:, None], np.stack([q, r, s], axis=1), np.stack([p, r, s], axis=1))
        triangles = np.stack([first, second], axis=1).reshape(-1, 3)
    return np.column_stack([places * [width, height], np.zeros(places.shape[0])]), triangles


class Hinge(NamedTuple):
    """Two triangles at an edge: their numbers, and which corner of each lies opposite."""

    triangles: tuple[int, int]
    corners: tuple[int, int]


class PlateStencils(NamedTuple):
    """Triangles and the hinges that tell their curvatures, see `Sheet.plates`."""

    triangles: IntArray
    cells: IntArray
    places: IntArray
    shape: FloatArray


@final
@dataclass(frozen=True)
class Sheet:
    """A sheet at rest.

    Attributes
    ----------
    triangles : (nt, 3)
    corners : (nt, 3, 3)
        Where the corners of each are at rest [m]; those of a flat pattern lie apart at its seams.
    flat : bool
        Whether it bends away from a plane: a pattern's angles at rest are zero.
    warp : (3,)
        Direction whose part in a triangle's plane is its axis 1.
    """

    triangles: IntArray
    corners: FloatArray
    flat: bool = False
    warp: tuple[float, float, float] = (1.0, 0.0, 0.0)

    def require_sheet(self) -> None:
        """Refuse edges of three triangles, neighbours wound against each other, and slivers.

        Raises
        ------
        InputError
            With the first that is wrong, and how many are.
        """
        directed = np.stack([self.triangles, np.roll(self.triangles, -1, axis=1)], axis=2).reshape(-1, 2)
        _, which, uses = np.unique(np.sort(directed, axis=1), axis=0, return_inverse=True, return_counts=True)
        _refuse(uses[which.ravel()] > 2, directed, "more than two triangles meet at an edge: this is no cloth")
        _, which, uses = np.unique(directed, axis=0, return_inverse=True, return_counts=True)
        _refuse(uses[which.ravel()] > 1, directed, "neighbours are wound against each other")
        long = np.linalg.norm(self.corners - np.roll(self.corners, 1, axis=1), axis=2).max(axis=1)
        heights = np.divide(2.0 * self.areas, long, out=np.zeros_like(long), where=long > 0.0)
        # Of sizes that underflow nothing is left to compare.
        bad = np.flatnonzero(~((heights >= SLIVER * long) & (self.areas > 0.0)))
        if bad.size:
            k = int(bad[0])
            raise InputError(
                f"{bad.size} of {long.size} triangles are slivers", place=f"triangle {k}",
                found=f"a height of {heights[k]:.3g} m over an edge of {long[k]:.3g} m",
                expected=f"at least {SLIVER:g} of the longest edge",
            )  # fmt: skip

    @cached_property
    def areas(self) -> FloatArray:
        """Areas of the triangles [m^2]."""
        return triangle_areas(self.corners.reshape(-1, 3), np.arange(self.triangles.size).reshape(-1, 3))

    @cached_property
    def _normals(self) -> FloatArray:
        sides = self.corners[:, 1:] - self.corners[:, :1]
        normals = np.cross(sides[:, 0], sides[:, 1])
        return np.asarray(normals / np.linalg.norm(normals, axis=1)[:, None])

    @cached_property
    def _along(self) -> FloatArray:
        """The part of the warp that lies in the planes of the triangles."""
        warp = np.array(self.warp) / np.abs(self.warp).max()
        warp /= np.linalg.norm(warp)
        return np.asarray(warp - (self._normals @ warp)[:, None] * self._normals)

    @property
    def upright(self) -> BoolArray:
        """On which triangles the warp stands, so that it is no axis of theirs (nt,)."""
        return np.asarray(np.linalg.norm(self._along, axis=1) < UPRIGHT)

    @cached_property
    def flattened(self) -> FloatArray:
        """Corners of each triangle in its own plane, axis 1 along the warp (nt, 3, 2)."""
        normals, along = self._normals, self._along
        along = np.where(self.upright[:, None], self.corners[:, 1] - self.corners[:, 0], along)  # any axis
        along /= np.linalg.norm(along, axis=1)[:, None]
        axes = np.stack([along, np.cross(normals, along)], axis=1)
        return np.einsum("tka,tba->tkb", self.corners - self.corners[:, :1], axes)

    @cached_property
    def gradients(self) -> FloatArray:
        """Gradients of the shape functions of each triangle's corners (nt, 3, 2) [1/m]."""
        sides = self.flattened[:, 1:] - self.flattened[:, :1]
        inverse = np.linalg.inv(sides).transpose(0, 2, 1)
        return np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)

    def node_areas(self, n: int) -> FloatArray:
        """Return a third of the areas around each of ``n`` nodes [m^2]."""
        return np.bincount(self.triangles.ravel(), np.repeat(self.areas / 3.0, 3), minlength=n).astype(float)

    @cached_property
    def hinges(self) -> list[Hinge]:
        """Pairs of triangles at an edge."""
        seen: dict[tuple[int, int], tuple[int, int]] = {}
        out = []
        for t, nodes in enumerate(self.triangles.tolist()):
            for k in range(3):
                edge = nodes[(k + 1) % 3], nodes[(k + 2) % 3]
                if edge[::-1] in seen:
                    other, corner = seen[edge[::-1]]
                    out.append(Hinge((other, t), (corner, k)))
                seen[edge] = t, k
        return out

    @cached_property
    def hinge_nodes(self) -> IntArray:
        """Nodes x_0, x_1 of the edge of each hinge and the two opposite (nh, 4)."""
        rows = [
            [*np.roll(self.triangles[t], -k)[1:], self.triangles[t][k], self.triangles[u][l]]
            for (t, u), (k, l) in self.hinges
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 4)

    @cached_property
    def rest_angles(self) -> FloatArray:
        """Angles of the hinges at rest [rad]."""
        out, work = np.zeros(len(self.hinges)), np.empty((13, 12))
        if not self.flat:
            for h, ((t, u), (k, l)) in enumerate(self.hinges):
                corners, other = np.roll(self.corners[t], -k, axis=0), self.corners[u][l]
                out[h] = hinge_angle(np.array([corners[1], corners[2], corners[0], other]), np.arange(4), work, False)
        return out

    @cached_property
    def hinge_weights(self) -> FloatArray:
        """Return 3 l^2/(A_0 + A_1) of each hinge, l the mean where its sides differ."""
        out = np.empty(len(self.hinges))
        for h, ((t, u), (k, l)) in enumerate(self.hinges):
            lengths = [np.linalg.norm(self.corners[s][(c + 1) % 3] - self.corners[s][(c + 2) % 3])
                       for s, c in ((t, k), (u, l))]  # fmt: skip
            out[h] = 3.0 * (0.5 * sum(lengths)) ** 2 / (self.areas[t] + self.areas[u])
        return out

    def plates(self) -> PlateStencils:
        """Return what makes curvatures (B_11, B_22, B_12) of triangles of the angles of hinges.

        Of a quadratic surface with curvatures B the slope along n, out of a triangle, at the middle of an edge e (unit
        vector; the opposite corner at the height h over it, its foot at alpha of the edge's length l) exceeds that of
        the flat triangle by

            s = (h B_nn + (1 - 2 alpha) l B_en - alpha (1 - alpha) l^2/h B_ee)/2,

        and the angle of a hinge is s + s' of both sides. The three hinges of a triangle tell its B by that; where a
        side is free, B_nn is zero. B then gives the slopes at its sides, of two neighbours their mean is taken, and of
        these the curvature by Morley's element, B = sum l s n n^T/A. So a quadratic surface has its curvatures, and
        slopes are the same from both sides of an edge: the element converges to Kirchhoff's plate on any mesh.
        """
        n = self.triangles.shape[0]
        hinge_at: dict[tuple[int, int], tuple[int, int, int]] = {}
        for h, ((t, u), (k, l)) in enumerate(self.hinges):
            hinge_at[t, k], hinge_at[u, l] = (h, u, l), (h, t, k)
        excess, outer = np.empty((n, 3, 3)), np.empty((n, 3, 3))
        for k in range(3):
            foot, end, top = (self.flattened[:, (k + i) % 3] for i in (1, 2, 0))
            e = end - foot
            length = np.linalg.norm(e, axis=1)
            e = e / length[:, None]
            normal = np.stack([e[:, 1], -e[:, 0]], axis=1)
            alpha = np.einsum("ti,ti->t", top - foot, e) / length
            height = 2.0 * self.areas / length

            def part(a: FloatArray, b: FloatArray) -> FloatArray:
                return np.stack([a[:, 0] * b[:, 0], a[:, 1] * b[:, 1], a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0]], axis=1)

            cut = alpha * (1.0 - alpha) * length**2 / height
            excess[:, k] = 0.5 * (height[:, None] * part(normal, normal) + ((1.0 - 2.0 * alpha) * length)[:, None]
                                  * part(e, normal) - cut[:, None] * part(e, e))  # fmt: skip
            outer[:, k] = part(normal, normal) * [1.0, 1.0, 0.5] * (length / self.areas)[:, None]
        # Slopes at each side as combinations of hinges, from one triangle alone.
        slopes: dict[tuple[int, int], dict[int, float]] = {}
        for t in range(n):
            rows = np.empty((3, 3))
            for k in range(3):
                free = outer[t, k] * [1.0, 1.0, 2.0]
                rows[k] = free * (np.linalg.norm(excess[t, k]) / np.linalg.norm(free))
                if (t, k) in hinge_at:
                    _, u, l = hinge_at[t, k]
                    rows[k] = excess[t, k] + self._seen_from(t, k, u, l, excess)
            inverse = np.linalg.pinv(rows, rcond=1e-8)  # six nodes on a conic tell less than three curvatures
            for k in range(3):
                shares = excess[t, k] @ inverse
                slopes[t, k] = {hinge_at[t, j][0]: float(shares[j]) for j in range(3) if (t, j) in hinge_at}
        weights: list[tuple[int, dict[int, FloatArray]]] = []
        for t in range(n):
            by_hinge: dict[int, FloatArray] = {}
            for k in range(3):
                terms = [(1.0, slopes[t, k])]
                if (t, k) in hinge_at:
                    h, u, l = hinge_at[t, k]
                    terms = [(0.5, slopes[t, k]), (-0.5, slopes[u, l]), (0.5, {h: 1.0})]
                for factor, shares in terms:
                    for h, share in shares.items():
                        by_hinge[h] = by_hinge.get(h, np.zeros(3)) + factor * share * outer[t, k]
            if by_hinge:
                weights.append((t, by_hinge))
        return self._stencils(weights)

    def _seen_from(self, t: int, k: int, u: int, l: int, excess: FloatArray) -> FloatArray:
        """Return the excess of slope of triangle u at its side l over curvatures in the axes of t."""
        one, two = (self.flattened[s][(c + 2) % 3] - self.flattened[s][(c + 1) % 3] for s, c in ((t, k), (u, l)))
        turn = np.arctan2(one[1], one[0]) - np.arctan2(-two[1], -two[0])
        c, s = np.cos(turn), np.sin(turn)
        # B in u's axes is R^T B R, R the turn from u's axes to t's.
        return np.array(excess[u, l] @ np.array([[c * c, s * s, 2 * c * s], [s * s, c * c, -2 * c * s],
                                                 [-c * s, c * s, c * c - s * s]]))  # fmt: skip

    def _stencils(self, found: list[tuple[int, dict[int, FloatArray]]]) -> PlateStencils:
        """Return stencils of one size: what is missing in one is its first hinge with no share."""
        most = max((len(by_hinge) for _, by_hinge in found), default=1)
        cells, places, shape = [], [], []
        for _, by_hinge in found:
            hinges = [*by_hinge, *[next(iter(by_hinge))] * (most - len(by_hinge))]
            shares = np.zeros((3, most))
            shares[:, : len(by_hinge)] = np.stack(list(by_hinge.values()), axis=1)
            nodes, local = np.unique(self.hinge_nodes[hinges], return_inverse=True)
            cells.append(nodes)
            places.append(local.ravel())
            shape.append(np.concatenate([self.rest_angles[hinges], shares.ravel()]))
        width = max((one.size for one in cells), default=4)
        padded = [np.concatenate([one, np.full(width - one.size, one[0])]) for one in cells]
        return PlateStencils(
            np.array([t for t, _ in found], dtype=np.int64), np.array(padded, dtype=np.int64).reshape(-1, width),
            np.array(places, dtype=np.int64).reshape(-1, 4 * most), np.array(shape).reshape(-1, 4 * most),
        )  # fmt: skip


def _refuse(bad: BoolArray, directed: IntArray, message: str) -> None:
    """Raise if there are bad edges, with the first of them."""
    if bad.any():
        edges = np.unique(np.sort(directed[bad], axis=1), axis=0)
        raise InputError(
            message, place=f"the edge of nodes {edges[0, 0]} and {edges[0, 1]}", found=f"{edges.shape[0]} such edges",
            expected="at most two triangles at an edge, which run along it in opposite directions",
        )  # fmt: skip
