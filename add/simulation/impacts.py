"""The measure of whether the impacts of a step, and the swings of links in it, are resolved."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.spatial.transform import Rotation

from add.equations.lift import Lift
from add.typing import BoolArray, FloatArray

#: Share of its thinnest part by which a body may move in a step between whose ends contact stops it. An impact is
#: spread over two steps: half of what `add check` warns of.
UNRESOLVED = 0.4
#: Share beyond which a sudden change makes a step one of BDF1: velocities by bdf2, from two steps, may point away from
#: a surface that the body still goes into, and the damping of many points then feeds it.
SUDDEN = 0.02
#: The same where numbers of contact are given, and of single nodes of soft bodies: contact stops a surface long before
#: the middle.
SUDDEN_GIVEN = 0.05
#: Share that it moves in a part of a step that has been divided.
RESOLVED = 0.1
#: Weight of what the links of a tree do unlike each other: an impact is over, a swing goes on from step to step.
SWINGS = 4.0
#: Turn of a joint or a base in a step [rad] below which links are not looked at where numbers are given, and how many
#: thinnest parts a link may be off its joint (`add.scene.build.default_contact`).
TURN, ARM = 0.1, 10.0
#: Damping over the stiffness times dt from which on a damper that is given feeds: below, springs outweigh it in a step.
FELT = 1e-3
#: Most parts of a step.
MOST = 64


@final
@dataclass(frozen=True)
class Impacts:
    """The measure of whether the impacts of a step, and the swings of links in it, are resolved.

    Links of a tree change their velocities without contact, too: a turn by w at an arm r would move them by w^2 r.
    Steps in joint coordinates that turn far gain energy, most where light links carry heavy ones. What all links of a
    tree do alike, as in a fall, does not count there.

    Attributes
    ----------
    lift : Lift
    bodies : rows of X of each body, those of points in threes, whose mean is its place
    thin : (n_bodies,) their thinnest parts [m]
    trees : numbers of the bodies that are the links of each tree
    soft : numbers of the bodies whose nodes count alone, too
    rigid : numbers of the bodies with three more rows, of their rotation
    arms : (n_rigid, 3) of these, how far points that touch are from the centre, along axes of the body [m]
    contacts : numbers of the contact terms among those that decide
    stops : whether what contact does in a step may divide it, and not swings alone
    eager : whether steps are divided before any fallback is tried; else scenes have whole steps where they can
    divides : whether steps are divided at all; else sudden changes make them steps of BDF1 alone
    """

    lift: Lift
    bodies: tuple[slice, ...]
    thin: FloatArray
    trees: tuple[slice, ...]
    soft: tuple[int, ...]
    rigid: tuple[int, ...]
    arms: FloatArray
    contacts: tuple[int, ...]
    stops: bool
    eager: bool
    divides: bool

    def enough(self, n: int, moved: float) -> int:
        """Return how many parts a step needs, n at least, in which a body would move by so many thinnest parts."""
        while self.divides and moved > max(UNRESOLVED, RESOLVED * n) and n < MOST:
            n *= 4
        return n

    def moved(
        self, change: FloatArray, spun: FloatArray, x: FloatArray, v: FloatArray, dt: float, touching: BoolArray
    ) -> FloatArray:
        """Return how far changes of velocities would move bodies in a step, in thinnest parts; swings weigh `SWINGS`.

        A turn by w changes the velocity of a point at an arm r by w^2 r, and a turn that contact stops by that of w r.

        Parameters
        ----------
        change, x, v : (k, n_x)
            Of the velocities of rows of X, X, of which rotations count alone, and V after it.
        spun : (k, n_rigid, 3)
            Changes of `spins`.
        dt : float
        touching : (k,) or (1,)
            Whether anything touches meanwhile.
        """
        ways = np.zeros(len(change))
        if not self.bodies:
            return ways
        moved = self._moved(change, dt)
        points = (self._turned(x, v, dt), self._stopped(spun, x, dt)) if self.rigid and self.stops else ()
        for ways_of in (moved, *self._nodes(change, dt), *points) if self.stops else ():
            far = np.linalg.norm(ways_of, axis=2).max(axis=1, initial=0.0)
            np.maximum(ways, np.where(touching, far, 0.0), out=ways)
        for links in self.trees:
            swings = moved[:, links] - moved[:, links].mean(axis=1, keepdims=True)
            np.maximum(ways, SWINGS * np.linalg.norm(swings, axis=2).max(axis=1), out=ways)
        return ways

    def sudden(self, change: FloatArray, dt: float, touching: BoolArray, limit: float) -> BoolArray:
        """Return whether (k,) what differs from the change of the step before moves bodies, or nodes, too far.

        A fall does not count.

        Parameters
        ----------
        change : (k + 1, n_x)
            Of the velocities of rows of X, that of the step before first.
        dt, touching : see `moved`
        limit : float
            Share of its thinnest part by which that may move a body.
        """
        stopped = np.zeros(len(change) - 1, dtype=bool)
        if not self.bodies or limit == np.inf:
            return stopped
        of_nodes = ((moved, SUDDEN_GIVEN) for moved in self._nodes(change, dt))
        for moved, most in ((self._moved(change, dt), limit), *of_nodes):
            sizes = (np.linalg.norm(ways, axis=2) for ways in (moved[1:], np.diff(moved, axis=0)))
            stopped |= touching & (np.minimum(*sizes).max(axis=1) > most)
        return stopped

    def calm(self, change: FloatArray, v: FloatArray, dt: float, limit: float) -> bool:
        """Return whether entries alone say that no change is beyond ``limit``, and no turn beyond `UNRESOLVED`.

        ``limit`` is that of sudden changes, or of all.
        """
        least = min(limit, UNRESOLVED / (2.0 * SWINGS) if self.trees else UNRESOLVED)
        shares, turns = self._shares
        turned = np.abs(v * turns).max(initial=0.0) * dt
        # A change of w r is at most that of the rate of a rotation vector, and half of w^2 r, which is bounded so.
        stopped = np.abs(change * turns**2).max(initial=0.0) * dt
        moved = np.abs(change * shares).max(initial=0.0) * dt
        return bool(moved <= least and turned <= np.sqrt(UNRESOLVED) and stopped <= RESOLVED)

    def still(self, v: FloatArray, dt: float) -> bool:
        """Return whether no tree turns far, or is stopped, between the coordinates' velocities (k, n) of states."""
        turn = v[:, self.lift.n_same :] * dt
        stopped = UNRESOLVED / max(ARM, 1.0 / self.thin.min())
        return bool(np.abs(turn).max(initial=0.0) <= TURN and np.abs(np.diff(turn, axis=0)).max(initial=0.0) <= stopped)

    @cached_property
    def by_coordinates(self) -> bool:
        """Whether velocities of all bodies are coordinates': none is a link, or led by one."""
        same = np.zeros(self.lift.rows.n, dtype=bool)
        same[self.lift.same] = True
        return all(same[rows].all() for rows in self.bodies)

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """Factors from entries of V to the largest possible lengths in thinnest parts (n_x,), 0 beside bodies [1/m].

        Second those to the roots of what turns do.
        """
        out, turns = np.zeros(self.lift.rows.n), np.zeros(self.lift.rows.n)
        for rows, thin in zip(self.bodies, self.thin.tolist(), strict=True):
            out[rows] = np.sqrt(3.0) / thin
        for i, arm in zip(self.rigid, np.linalg.norm(self.arms, axis=1).tolist(), strict=True):
            turns[self._angular(i)] = np.sqrt(3.0 * np.sqrt(2.0) * arm / self.thin[i])
        return out, turns

    def _angular(self, i: int) -> slice:
        return slice(self.bodies[i].stop, self.bodies[i].stop + 3)

    def spins(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the angular velocities (k, n_rigid, 3) of rigid bodies at X and V, (k, n_x) each.

        Rates of rotation vectors jump where these change their chart, angular velocities do not.
        """
        if not self.rigid:
            return np.zeros((len(x), 0, 3))
        rows = np.stack([np.arange(x.shape[1])[self._angular(i)] for i in self.rigid])
        return angular_velocity(x[:, rows], v[:, rows])

    def _turned(self, x: FloatArray, v: FloatArray, dt: float) -> FloatArray:
        """Return at most what turns change of velocities of points, in thinnest parts a step (k, n_rigid, 1)."""
        w = np.stack([v[:, self._angular(i)] for i in self.rigid], axis=1)
        return np.linalg.norm(w, axis=2, keepdims=True) * dt * self._stopped(w, x, dt)

    def _stopped(self, w: FloatArray, x: FloatArray, dt: float) -> FloatArray:
        """Return at most how far angular velocities move points in a step, in thinnest parts (k, n_rigid, 1)."""
        out = np.zeros((len(w), len(self.rigid), 1))
        for k, (i, arms) in enumerate(zip(self.rigid, self.arms, strict=True)):
            local = np.abs(Rotation.from_rotvec(x[:, self._angular(i)]).apply(w[:, k], inverse=True))
            speeds = np.roll(local, -1, axis=1) * np.roll(arms, 1) + np.roll(local, 1, axis=1) * np.roll(arms, -1)
            out[:, k, 0] = np.linalg.norm(speeds, axis=1) * dt / self.thin[i]
        return out

    def _moved(self, change: FloatArray, dt: float) -> FloatArray:
        """Return by how many of its thinnest parts (k, n_bodies, 3) each body would move in a step."""
        means = [change[:, rows].reshape(len(change), -1, 3).mean(axis=1) for rows in self.bodies]
        return np.stack(means, axis=1) * (dt / self.thin)[:, None]

    def _nodes(self, change: FloatArray, dt: float) -> list[FloatArray]:
        """Return by how much of the thinnest part (k, n_nodes, 3) the nodes of each soft body would move in a step."""
        return [change[:, self.bodies[i]].reshape(len(change), -1, 3) * (dt / self.thin[i]) for i in self.soft]


def angular_velocity(w: FloatArray, rate: FloatArray) -> FloatArray:
    """Return J_l(w) dw/dt of rotation vectors and their rates, (..., 3) each; see `add.kernels.rotation`."""
    angle, once = np.linalg.norm(w, axis=-1, keepdims=True), np.cross(w, rate)
    twice = (1.0 - np.sinc(angle / np.pi)) / np.maximum(angle**2, 1e-300)
    return np.asarray(rate + 0.5 * np.sinc(0.5 * angle / np.pi) ** 2 * once + twice * np.cross(w, once))
