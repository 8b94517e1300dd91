"""The places of the derivatives of contact between bodies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from add.equations.term import Candidates, Decision
from add.kernels.contact_arrays import CENTRE, OMEGA, VELOCITY, Contacts, Frames, Motion
from add.kernels.contact_blocks import Slots, block_keys
from add.kernels.contact_detection import detect, fields_of_frames, meetings
from add.kernels.contact_pairs import Shapes
from add.kernels.shape_grid import BODY, FIRST, STOP
from add.typing import BoolArray, IntArray

#: Up to so many pairs of rigid bodies have their blocks always; more only while they touch.
COMMON = 64


@final
@dataclass(frozen=True)
class Blocks:
    """The dense blocks of the derivatives: those of carriers alone, and one for every two carriers that touch.

    Which these are depends on the decision alone, so that patterns have no history.

    Attributes
    ----------
    contacts : Contacts
    rows, cols : entries of the blocks that are always there and belong to no key
    own : (n_points + nb,)
        First entry of the block of each point's carrier alone (shapes of the world), then of the block of each body
        that points of obstacles meet; -1 where there is none.
    always : (m,) sorted keys of `add.kernels.contact_blocks.Slots` that are always there
    constant : bool
        Whether no other key can come.
    """

    contacts: Contacts
    rows: IntArray
    cols: IntArray
    own: IntArray
    always: IntArray
    constant: bool

    @classmethod
    def build(cls, contacts: Contacts) -> Blocks:
        """Number the blocks of a `BodyContact`."""
        points, runs, bodies = contacts.points, contacts.runs, contacts.bodies[:, 0]
        alone = np.full(points.shape[0] + bodies.size, -1, dtype=np.int64)
        # Points of obstacles meet shapes of bodies; these are in the block of the body alone.
        hosts = np.unique(contacts.hosts[contacts.hosts >= 0]) if (bodies < 0).any() else bodies[:0]
        on_world, nodes, always = meetings(contacts, COMMON)
        always.sort()
        with_world, lengths = np.zeros(points.shape[0], dtype=bool), runs[on_world, STOP] - runs[on_world, FIRST]
        starts = runs[on_world, FIRST] - np.cumsum(lengths) + lengths
        with_world[np.arange(lengths.sum()) + np.repeat(starts, lengths)] = True
        groups: list[IntArray] = []
        size = 0
        for rigid, width in ((True, 6), (False, 3)):
            chosen = np.flatnonzero(with_world & ((points[:, 2] >= 0) == rigid))
            met, places = (bodies[hosts], points.shape[0] + hosts) if rigid else (bodies[:0], hosts[:0])
            starts, which = np.unique(np.concatenate([points[chosen, 0], met]), return_inverse=True)
            alone[np.concatenate([chosen, places])] = size + width * width * which
            size += width * width * starts.size
            groups.append(starts[:, None] + np.arange(width))
        rows, cols = zip(*(_entries(dofs) for dofs in groups), strict=True)
        few = always.size <= COMMON
        always = always if few else always[:0]
        return cls(contacts, np.concatenate(rows), np.concatenate(cols), alone, always, few and not nodes)

    def keys(self, decision: Decision, candidates: Candidates | None = None) -> IntArray:
        """Return the sorted keys of the blocks of two carriers on a branch, those of the candidates included."""
        if self.constant:
            return self.always
        needed = np.asarray(block_keys(decision, self.contacts, self.always))
        return needed if candidates is None else union(candidates, needed)

    def near(self, motion: Motion, ahead: float) -> IntArray:
        """Return the sorted keys of the blocks of all pairs in `near_rows`."""
        return np.asarray(block_keys(self.near_rows(motion, ahead), self.contacts, self.always))

    def near_rows(self, motion: Motion, ahead: float) -> Decision:
        """Return the rows of all pairs that touch once every point has a ball that it leaves in ``ahead`` s."""
        contacts = self.contacts
        (bodies, coefficients), of_shapes = fields_of_frames(motion, contacts)
        frames = Frames(bodies, coefficients, Shapes(*of_shapes))
        nodes = contacts.points[:, 2] < 0
        spins = np.linalg.norm(frames.B[:, OMEGA], axis=1)
        speeds = np.linalg.norm(frames.B[:, VELOCITY], axis=1)
        centres = frames.B[:, CENTRE]
        of_points, carrier = np.empty(nodes.size), contacts.points[~nodes, 2]
        lever = np.linalg.norm(contacts.arms[~nodes, :3] - centres[carrier], axis=1)
        of_points[~nodes] = speeds[carrier] + spins[carrier] * lever
        start = contacts.points[nodes, 0]
        of_points[nodes] = np.linalg.norm(motion.v[start[:, None] + np.arange(3)], axis=1)
        faster = np.linalg.norm(frames.shapes.V, axis=1)
        finite = np.isfinite(contacts.bounds)
        faster[finite] += np.linalg.norm(frames.shapes.W[finite], axis=1) * contacts.bounds[finite]
        arms, spheres = contacts.arms.copy(), contacts.spheres.copy()
        margin = ahead * (of_points + faster.max(initial=0.0))
        arms[:, 3] += margin
        runs = contacts.runs
        spheres[:, 3] += np.maximum.reduceat(margin, runs[:, FIRST]) if margin.size else 0.0
        return np.asarray(detect(motion.q, motion.theta, contacts._replace(arms=arms, spheres=spheres), frames))

    def within(self, free: BoolArray, candidates: IntArray) -> tuple[Contacts, IntArray]:
        """Return the arrays and the keys of what is free, of what may touch it, and of the world."""
        contacts = self.contacts
        carriers = np.append(contacts.bodies[:, 0], contacts.points[:, 0])
        moves = (carriers >= 0) & free[carriers]
        both = np.stack(np.divmod(candidates, contacts.bodies.shape[0]))
        kept = moves[both].any(axis=0)
        acts = moves | (carriers < 0)
        acts[both[:, kept].ravel()] = True
        body, first = contacts.runs[:, BODY], contacts.runs[:, FIRST]
        chosen = acts[np.where(body >= 0, body, contacts.bodies.shape[0] + first)]
        part = contacts._replace(runs=contacts.runs[chosen], spheres=contacts.spheres[chosen])
        return part, candidates[kept]

    def slots(self, keys: IntArray) -> Slots:
        """Return where the blocks begin, as the kernels take it."""
        return Slots(self.own, keys, self.rows.size)

    def pattern(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return (rows, cols) of all blocks, those of ``keys`` last."""
        return self._constant_pattern if keys is self.always else self._pattern(keys)

    @cached_property
    def _constant_pattern(self) -> tuple[IntArray, IntArray]:
        return self._pattern(self.always)

    def _pattern(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        rows, cols = [self.rows], [self.cols]
        nb = self.contacts.bodies.shape[0]
        bodies, points = self.contacts.bodies[:, 0], self.contacts.points[:, 0]
        carrier, body = np.divmod(keys, nb) if nb else (keys, keys)
        for rigid, width in ((True, 6), (False, 3)):
            chosen = (carrier < nb) == rigid
            starts = bodies[carrier[chosen]] if rigid else points[carrier[chosen] - nb]
            dofs = [starts[:, None] + np.arange(width), bodies[body[chosen]][:, None] + np.arange(6)]
            of_rows, of_cols = _entries(np.concatenate(dofs, axis=1))
            rows.append(of_rows)
            cols.append(of_cols)
        return np.concatenate(rows), np.concatenate(cols)


def union(keys: IntArray, more: IntArray) -> IntArray:
    """Return the sorted union of two sorted sets; the first itself if it has all of the second."""
    at = np.searchsorted(keys, more)
    if not more.size or (at[-1] < keys.size and np.array_equal(keys[at], more)):
        return keys
    return np.union1d(keys, more)


def _entries(dofs: IntArray) -> tuple[IntArray, IntArray]:
    """Return flat (rows, cols) of the dense blocks over each row of ``dofs`` (n_blocks, width)."""
    shape = (dofs.shape[0], dofs.shape[1], dofs.shape[1])
    rows = np.broadcast_to(dofs[:, :, None], shape).ravel()
    cols = np.broadcast_to(dofs[:, None, :], shape).ravel()
    return rows.astype(np.int64), cols.astype(np.int64)


def body_table(starts: IntArray, centres: IntArray) -> tuple[IntArray, dict[int, int]]:
    """Return (k, 4) first coordinate and indices of X_c of every rigid body, and the row of every first coordinate.

    Parameters
    ----------
    starts, centres : (m,), (m, 3) of the bodies of all points and shapes

    Raises
    ------
    ValueError
        If a body has two centres of mass.
    """
    table: dict[int, tuple[int, ...]] = {}
    for start, centre in zip(starts.tolist(), centres.tolist(), strict=True):
        if table.setdefault(start, tuple(centre)) != tuple(centre):
            raise ValueError(f"two centres of mass for the body that begins at coordinate {start}")
    rows = {start: row for row, start in enumerate(sorted(table))}
    bodies = np.array([(start, *table[start]) for start in sorted(table)], dtype=np.int64).reshape(-1, 4)
    return bodies, rows
