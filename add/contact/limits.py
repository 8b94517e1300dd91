"""How far trial steps may go: before meshes pass through each other, and before points touch what has a wall.

Places move on straight ways from those of one iterate to those of the next. A rigid body turns on an arc; its places on
the way from 0 to t are not those on the way from 0 to 1, and so a shortened way is tested again. Whether surfaces pass
through each other between two poses is the same for arcs and for chords as long as no body turns far: `MOST_TURN`.

The IPC Toolkit (`ipctk`) is imported when first asked for, on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, final

import numpy as np

from add.contact.branches import PairContact
from add.contact.crossings import Candidates, Primitives, candidates
from add.contact.surfaces import ContactSurface
from add.equations.lifted import StepLimit
from add.kernels.primitives import box_gaps, greatest_sum, may_collide, pairs_within, ways_from
from add.typing import FloatArray, IntArray


@cache
def toolkit() -> Any:
    """Return the module; it takes a third of a second, which a run without meshes that meet need not pay.

    Its number of threads is one for the whole process, like that of BLAS.
    """
    import ipctk

    ipctk.set_num_threads(1)
    ipctk.set_logger_level(ipctk.LoggerLevel.off)
    return ipctk


def collision_mesh(n_points: int, edges: IntArray, faces: IntArray) -> Any:
    """Return surfaces as the toolkit takes them."""
    # Places at rest matter for areas only, which are not asked for.
    rest = np.zeros((n_points, 3), order="F")
    rest[:, 0] = np.arange(n_points)
    return toolkit().CollisionMesh(rest, np.asfortranarray(edges, np.int32), np.asfortranarray(faces, np.int32))


#: Steps along a way, of 0.2 us; the toolkit's own ten million take two seconds.
MOST_SLIDES = 100_000


def free_share(mesh: Any, pairs: Candidates, x0: FloatArray, x1: FloatArray, least: float = 0.0) -> float:
    """Return the share of straight ways on which none of the pairs collides, by additive CCD (Li, Kaufman, Jiang 2021).

    Every pair keeps the distance ``least`` [m] and a tenth of what it has beyond it at the beginning; a pair that has
    less stops everything. What slides that near something takes steps of a pair's distance: `MOST_SLIDES`, then it ends
    there, as if it had met.
    """
    kit = toolkit()
    begin, end = np.asfortranarray(x0), np.asfortranarray(x1)
    looked_at = kit.Candidates()
    looked_at.fv_candidates = [kit.FaceVertexCandidate(face, vertex) for vertex, face in pairs.vf.tolist()]
    looked_at.ee_candidates = [kit.EdgeEdgeCandidate(one, two) for one, two in pairs.ee.tolist()]
    return float(looked_at.compute_collision_free_stepsize(mesh, begin, end, least, kit.AdditiveCCD(MOST_SLIDES)))


#: A rigid body turns no further than this in one trial [rad].
MOST_TURN = 0.3

#: Surfaces come no nearer than this share of the mean length of edges.
LEAST = 1e-6

#: How often a shortened way of rigid bodies is tested again; then nothing moves.
MOST_TESTS = 12
#: A way of more than so many sizes of all that is there is looked at up to here.
FARTHEST = 1e4

#: Pairs are looked for again when points have moved by this share of the mean length of edges.
MARGIN = 0.25


def _shortened(q0: FloatArray, q1: FloatArray, turning: IntArray, free: Callable[[FloatArray], float]) -> float:
    """Return the share of the way from q0 to q1 that is free, from how much is of the straight way to some q."""
    turns = (q1 - q0)[turning[:, None] + np.arange(3)]
    angle = float(np.linalg.norm(turns, axis=1).max(initial=0.0))
    length = min(1.0, MOST_TURN / angle) if angle > 0.0 else 1.0
    for _ in range(MOST_TESTS):
        share = free(q0 + length * (q1 - q0))
        if share >= 1.0 or (share > 0.0 and not angle):  # on a straight way shares are shares
            return length * share
        length *= share
        if length == 0.0:
            break
    return 0.0


class _Near(NamedTuple):
    """Pairs that come near each other on ways of two bodies that lead no further than ``room`` from places ``x`` [m].

    They are sorted by the gaps between their boxes there, ``of_vf`` and ``of_ee`` [m]; ``bodies`` are both of each.
    """

    x: FloatArray
    room: float
    pairs: Candidates
    of_vf: FloatArray
    of_ee: FloatArray
    bodies: Candidates

    @classmethod
    def around(cls, primitives: Primitives, x: FloatArray, room: float, least: float) -> _Near:
        """Look for pairs whose boxes are no more than ``least`` apart somewhere on such ways."""
        near = candidates(primitives, x, None, room + least)
        corners, body = primitives.edges[near.ee], primitives.body
        bodies = (
            np.column_stack([body[near.vf[:, 0]], body[primitives.faces[near.vf[:, 1], 0]]]),
            body[corners[:, :, 0]],
        )
        of_vf = box_gaps(x, np.column_stack([near.vf[:, 0], primitives.faces[near.vf[:, 1]]]), 1)
        of_ee = box_gaps(x, corners.reshape(-1, 4), 2)
        vf, ee = np.argsort(of_vf), np.argsort(of_ee)
        kept = Candidates(bodies[0][vf], bodies[1][ee])
        return cls(x, room, Candidates(near.vf[vf], near.ee[ee]), of_vf[vf], of_ee[ee], kept)

    def within(self, ways: FloatArray, most: float, more: float) -> Candidates:
        """Return the pairs of which the boxes are no further apart than by ``more`` beyond the ways of bodies [m]."""
        return Candidates(
            pairs_within(self.pairs.vf, self.of_vf, self.bodies.vf, ways, most, more),
            pairs_within(self.pairs.ee, self.of_ee, self.bodies.ee, ways, most, more),
        )


@final
@dataclass(frozen=True)
class CollisionLimit(StepLimit):
    """Continuous collision detection between all surfaces that meet.

    Most ways are short against distances: where no pair moves by more than half its own, nothing more is asked.
    Of those that do `ipctk` finds the time of the first collision, conservatively: every pair keeps a tenth of its
    distance, and `least` in any case.

    Attributes
    ----------
    surface : ContactSurface
        Its places are those of the coordinates of X.
    """

    surface: ContactSurface
    _near: list[_Near] = field(default_factory=list, init=False, repr=False, compare=False)

    @cached_property
    def primitives(self) -> Primitives:
        """The surfaces as detection reads them."""
        return Primitives.of(self.surface)

    @cached_property
    def _mesh(self) -> Any:
        """The surfaces as `ipctk` takes them."""
        primitives = self.primitives
        return collision_mesh(primitives.body.size, primitives.edges, primitives.faces)

    @cached_property
    def length(self) -> float:
        """Mean length of edges at rest [m]."""
        ends = self.surface.rest[self.surface.edges]
        lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        return float(lengths.mean()) if lengths.size else 0.0

    @property
    def least(self) -> float:
        """How near surfaces may come [m]: what is nearer cannot be told from what has passed."""
        return LEAST * self.length

    @cached_property
    def _turning(self) -> IntArray:
        """First coordinates of the rotation vectors of rigid bodies with surfaces."""
        return np.unique(self.surface.carrier[self.surface.rigid]) + 3

    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share of the way that is free; see `StepLimit.share`."""
        x0 = self.surface.places(q0, theta)
        return _shortened(q0, q1, self._turning, lambda q: self.free(x0, self.surface.places(q, theta)))

    def free(self, x0: FloatArray, x1: FloatArray) -> float:
        """Return the share of straight ways (n_points, 3) that is free of collisions."""
        if np.array_equal(x0, x1):
            return 1.0
        primitives, least = self.primitives, self.least
        near = self._pairs(x0, x1)
        of_vf, of_ee = may_collide(near.vf, near.ee, primitives.edges, primitives.faces, x0, x1, least)
        pairs = Candidates(near.vf[of_vf], near.ee[of_ee])
        if not pairs.vf.size and not pairs.ee.size:
            return 1.0
        # The steps of continuous detection grow with the way: of one that leaves everything behind see the beginning.
        way, size = float(np.abs(x1 - x0).max()), float(np.ptp(x0, axis=0).max())
        seen = min(1.0, FARTHEST * size / way)
        return seen * free_share(self._mesh, pairs, x0, x1 if seen == 1.0 else x0 + seen * (x1 - x0), least)

    def _pairs(self, x0: FloatArray, x1: FloatArray) -> Candidates:
        """Return all pairs whose ways come near each other, and more; which ones are kept changes no number."""
        primitives, more = self.primitives, 2.0 * self.least  # once more for round-off
        body, meets = primitives.body, primitives.meets
        for near in self._near:
            if near.x.shape == x0.shape:
                ways = ways_from(near.x, x0, x1, body, len(meets))
                if (most := greatest_sum(ways, meets)) <= near.room:
                    return near.within(ways, most, more)
        way = float(ways_from(x0, x1, x1, body, len(meets)).max(initial=0.0))
        if not way <= self.length:  # what is near where a long way begins says little about what is near on it
            return candidates(primitives, x0, x1, self.least)
        around = _Near.around(primitives, x0, 2.0 * (way + MARGIN * self.length), self.least)
        self._near[:] = [around]
        ways = ways_from(x0, x0, x1, body, len(meets))
        return around.within(ways, greatest_sum(ways, meets), more)


def point_runs(
    like: IntArray, arms: FloatArray, rim: IntArray, rims: FloatArray, half_lengths: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return (first, stop, group, body, owner, first line) of the longest runs of like points, and balls around them.

    ``like`` (n, 3) are row of the tables, row of the bodies and owner of each point; lines come last in a run. The ball
    holds the whole circle of a point that rolls with a rim, row ``rim`` (n,) of ``rims``, and the whole of a line.
    """
    n = like.shape[0]
    is_line = np.append(half_lengths > 0.0, False)
    breaks = np.flatnonzero((like[1:] != like[:-1]).any(axis=1) | (is_line[: n - 1] & ~is_line[1:n])) + 1
    firsts = np.concatenate([[0], breaks]).astype(np.int64) if n else np.zeros(0, dtype=np.int64)
    stops = np.concatenate([breaks, [n]]).astype(np.int64) if n else np.zeros(0, dtype=np.int64)
    lines = stops - (np.add.reduceat(is_line[:n], firsts, dtype=np.int64) if n else 0)
    runs = np.column_stack([firsts, stops, like[firsts], lines]).astype(np.int64)
    spheres = np.zeros((firsts.size, 4))
    for k, (first, stop) in enumerate(zip(firsts, np.where(lines > firsts, lines, stops), strict=True)):
        part = arms[first:stop]  # lines are within the points of their shape
        middle = 0.5 * (part[:, :3].min(axis=0) + part[:, :3].max(axis=0))
        reach = np.linalg.norm(part[:, :3] - middle, axis=1) + part[:, 3]
        of_rim = rim[first:stop]
        if is_line[first]:
            reach += half_lengths[first:stop]
        elif (of_rim >= 0).any():
            centre, axis = np.split(rims[of_rim[of_rim >= 0], :6], 2, axis=1)
            y, m = part[of_rim >= 0, :3] - centre, middle - centre
            z, at = (y * axis).sum(axis=1), (m * axis).sum(axis=1)
            widest = np.linalg.norm(y - z[:, None] * axis, axis=1) + np.linalg.norm(m - at[:, None] * axis, axis=1)
            reach[of_rim >= 0] = np.hypot(widest, z - at)
        spheres[k] = *middle, reach.max()
    return runs, spheres


@final
@dataclass(frozen=True)
class PointLimit(StepLimit):
    """Every point keeps a tenth of its gap to every shape that it may meet.

    Ways are straight in the frames of shapes. Bodies turn on arcs: a shortened way is tested again, and none turns
    further than `add.contact.limits.MOST_TURN` in one trial.

    Attributes
    ----------
    contact : PairContact
    turning : (m,)
        First coordinates of the rotation vectors of the bodies that have points or shapes.
    """

    contact: PairContact
    turning: IntArray

    def share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share of the way that is free; see `StepLimit.share`."""
        return _shortened(q0, q1, self.turning, lambda q: self.contact.free_share(q0, q, theta))
