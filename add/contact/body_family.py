"""Contact between bodies, and between meshes, as compiled steps take it."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple, final, get_origin, get_type_hints

import numpy as np
from numba import from_dtype, typeof, types

from add.contact.sparsity import Blocks
from add.equations.family import Family, Kind, NotCompiled
from add.equations.family_term import FamilyConstraint
from add.kernels.arena import FAMILY, FIELD, Floats, Ints, Ints2, add_entry, rates_in, unpacker
from add.kernels.borrowed import put
from add.kernels.boxes import near_pairs
from add.kernels.by_address import when_called
from add.kernels.caching import njit
from add.kernels.contact_arrays import Contacts, Growth, Motion, Packed
from add.kernels.contact_blocks import Slots
from add.kernels.contact_bodies import body_contact_force, body_contact_jacobian, body_contact_parameters
from add.kernels.contact_detection import call_detect, meeting_pairs
from add.kernels.contact_pairs import Law
from add.kernels.joint_laws import held_joint_rows
from add.kernels.mesh_arrays import Meshes, Near
from add.kernels.mesh_contact import decided_mesh_contact_force, mesh_contact_force, places_and_halves
from add.kernels.mesh_derivatives import (
    Slots as MeshSlots,
    block_entries,
    mesh_contact_jacobian,
    mesh_contact_parameters,
)
from add.kernels.sticking import new_stick_rows, stick_rows, stick_rows_of_bodies, sticking
from add.typing import IntArray

#: Up to so many entries of contact blocks, of all pairs that may ever touch.
MOST_ENTRIES = 2_000_000

#: Up to so many pairs of bodies, each counted from both sides, those of 35 in a heap: blocks of all of them make a full
#: matrix, and beyond steps of the terms, whose blocks are of pairs that are near, are the quicker ones.
MOST_PAIRS = 35 * 34


class _Arrays(NamedTuple):
    """A `add.kernels.contact_arrays.Packed`, `add.kernels.contact_blocks.Slots`, ``first`` (1,), and a `Growth`."""

    ints: Ints
    floats: Floats
    places: Ints2
    own: Ints
    keys: Ints
    first: Ints
    growth: Growth


_own = unpacker(_Arrays)
_ROW, _INTS, _ROWS = types.float64[::1], types.int64[::1], types.int64[:, ::1]
#: Python calls it, too, with decisions to make: both have one machine code.
call_force = when_called(
    body_contact_force,
    (types.float64, *[_ROW] * 3, _INTS, _ROW, _ROWS, types.boolean, _ROWS, types.UniTuple(_ROW, 2)),
    _ROWS,
)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    if replay and not rows.size:
        return rows
    c = _own(arena, arena.families[k, FIELD])
    return call_force((at.t, at.q, at.v, at.theta, c.ints, c.floats, c.places, replay, rows, (out, out[:0])))


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if rows.size == 0 or (weight_q == 0.0 and weight_v == 0.0):
        return
    contact = _own(arena, arena.families[k, FIELD])
    blocks = Slots(contact.own, contact.keys, contact.first[0])
    motion, packed = Motion(at.t, at.q, at.v, at.theta), Packed(contact.ints, contact.floats, contact.places)
    body_contact_jacobian(motion, packed, rows, (weight_q, weight_v), blocks, data, slots)


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    if rows.size == 0:
        return
    contact = _own(arena, arena.families[k, FIELD])
    by_theta, force = (along, out) if forward else (out, along)
    motion, packed = Motion(at.t, at.q, at.v, at.theta), Packed(contact.ints, contact.floats, contact.places)
    body_contact_parameters(motion, packed, contact.growth, rows, forward, by_theta, force, rates_in(forward, at, out))


KIND = Kind("contact_of_bodies", _Arrays, _forces, _parameters, _jacobian, rates=True)


#: Python calls it, too.
call_stick_rows = when_called(
    stick_rows_of_bodies,
    (
        types.NamedTuple([types.float64, *[_ROW] * 3], Motion), types.NamedTuple([_INTS, _ROW, _ROWS], Packed), _ROWS,
        types.float64[:, ::1], types.boolean, _ROWS, typeof(new_stick_rows(0, 12, 6)),
    ),
    types.none,
)  # fmt: skip


class _HeldArrays(NamedTuple):
    """A `Packed` of contact, or ``joints`` (`add.terms.held_friction`), and ``first``, the first multiplier (1,)."""

    ints: Ints
    floats: Floats
    places: Ints2
    joints: Ints2
    first: Ints


_own_held = unpacker(_HeldArrays)


@njit(**FAMILY)
def held_rows(arena, k, at, rows, derivatives):
    """Return where the multipliers of a family of `HeldPairs` begin, coordinates and numbers, and its `StickRows`.

    ``rows`` may stick in more places than there are multipliers for: these are held by nothing.
    """
    c, held = _own_held(arena, arena.families[k, FIELD]), sticking(rows)
    n, first = held.shape[0], c.first[0]
    out, own = stick_rows(n, 12, 6, derivatives), np.empty((n, 18), dtype=np.int64)
    reactions = np.zeros((n, 3))
    put(at.q[first : first + 3 * n], reactions.ravel())
    if c.joints.size:
        held_joint_rows(c.joints, held, at.q, at.v, at.theta, reactions, derivatives, own, out)
    else:
        given = Motion(at.t, at.q, at.v, at.theta), Packed(c.ints, c.floats, c.places)
        call_stick_rows((*given, held, reactions, derivatives, own, out))
    return first, own, out


@njit(**FAMILY)
def _held_forces(arena, k, at, replay, rows, out):
    first, own, of = held_rows(arena, k, at, rows, False)
    for i in range(own.shape[0]):
        for r in range(3):
            row = first + 3 * i + r
            out[row] += of.rows[i, r]
            for m in range(12):
                if own[i, m] >= 0:
                    out[own[i, m]] += of.by_v[i, r, m] * at.q[row]
    return rows


@njit(**FAMILY)
def _held_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    first, own, of = held_rows(arena, k, at, rows, True)
    size = at.q.size
    for i in range(own.shape[0]):
        for m in range(12):
            if own[i, m] < 0:
                continue
            column = own[i, m] * size
            for r in range(3):
                row = first + 3 * i + r
                data[column + row] += weight_q * of.by_q[i, r, m] + weight_v * of.by_v[i, r, m]
                data[row * size + own[i, m]] += weight_q * of.by_v[i, r, m]
            for l in range(12):
                if own[i, l] >= 0:
                    data[column + own[i, l]] += weight_q * of.geometric[i, l, m]


@njit(**FAMILY)
def _held_parameters(arena, k, at, rows, forward, along, out):
    first, own, of = held_rows(arena, k, at, rows, True)
    for i in range(own.shape[0]):
        for p in range(6):
            entry = own[i, 12 + p]
            if entry < 0:
                continue
            for r in range(3):
                add_entry(forward, first + 3 * i + r, entry, of.by_theta[i, r, p], along, out)
            for m in range(12):
                if own[i, m] >= 0:
                    add_entry(forward, own[i, m], entry, of.geometric_by_theta[i, m, p], along, out)


HELD = Kind("held_pairs", _HeldArrays, _held_forces, _held_parameters, _held_jacobian)


@final
@dataclass(frozen=True)
class HeldPairs(FamilyConstraint):
    """Equations that hold the pairs or joints that stick in a decision, as many as given: of compiled steps alone.

    Their matrix is a full one; of its places they name those of their own rows.

    Attributes
    ----------
    term : DecidingTerm
        Of the pairs or joints; its ``held_arrays`` are what `held_rows` takes of it.
    follows : int
        Its number among those that decide.
    n : number of pairs or joints
    """

    term: Any
    follows: int
    n: int

    @property
    def n_rows(self) -> int:
        """Three a pair."""
        return 3 * self.n

    def family(self, first: int) -> Family:
        """Return the arrays of the term, which decides what sticks."""
        rows = first + np.arange(self.n_rows)
        return Family(HELD, (*self.term.held_arrays, rows[:1]), (rows, rows))


def functions_of_contact() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the compiled functions beside the family, with the types of their arguments."""
    return [one.callee[:2] for one in (call_detect, call_force, call_stick_rows)]


def body_family(contacts: Contacts, packed: Packed, growth: Growth, blocks: Blocks) -> Family:
    """Return the family, with the blocks of all pairs that may ever touch.

    Raises
    ------
    NotCompiled
        If they are too many.
    """
    nb = contacts.bodies.shape[0]
    run, shape = meeting_pairs(contacts).T
    host = contacts.hosts[shape]
    keys = []
    of_obstacles = np.append(contacts.bodies[:, 0] < 0, False)[contacts.runs[run, 3]]
    for r, b in zip(run[(host >= 0) & ~of_obstacles], host[(host >= 0) & ~of_obstacles], strict=True):
        points = np.arange(contacts.runs[r, 0], contacts.runs[r, 1])
        carriers = np.where(contacts.points[points, 2] >= 0, contacts.points[points, 2], nb + points)
        keys.append(np.unique(carriers) * nb + b)
    every = np.unique(np.concatenate([blocks.always, *keys])).astype(np.int64)
    if 144 * every.size > MOST_ENTRIES or np.count_nonzero(every < nb * nb) > MOST_PAIRS:
        raise NotCompiled(f"{every.size} pairs of bodies that may touch")
    return family_with(packed, growth, blocks, every)


def family_with(packed: Packed, growth: Growth, blocks: Blocks, keys: IntArray) -> Family:
    """Return the family with the places of some blocks of two bodies."""
    arrays = *packed, blocks.own, keys, np.array([blocks.rows.size]), *growth
    return Family(KIND, arrays, blocks.pattern(keys), sized=growth.points.size + growth.shapes.size > 0)


class _MeshArrays(NamedTuple):
    """``law`` are the fields of `add.kernels.contact_pairs.Law`."""

    near: Near
    meshes: Meshes
    slots: MeshSlots
    law: Ints


def _type_of(kind: Any) -> Any:
    """Return numba's type of a named tuple class of `Ints`, `Floats` and their neighbours."""
    parts = []
    for hint in get_type_hints(kind, include_extras=True).values():
        if get_origin(hint) is Annotated:
            parts.append(types.Array(from_dtype(np.dtype(hint.__metadata__[1])), hint.__metadata__[0], "C"))
        else:
            parts.append(_type_of(hint))
    return types.NamedTuple(parts, kind)


_own_mesh, _MESHES, _NEAR = unpacker(_MeshArrays), _type_of(Meshes), _type_of(Near)
#: Python calls both, too.
call_mesh_force = when_called(
    decided_mesh_contact_force,
    (*[_ROW] * 3, _MESHES, typeof(Law(0, 0)), _NEAR, _ROWS, _ROW),
    types.Tuple((_ROWS, types.boolean)),
)
call_near_pairs = when_called(near_pairs, (types.float64[:, ::1], _ROW, _MESHES, _ROW), types.Tuple(_NEAR.types))


@njit(**FAMILY)
def _law_of(own):
    return Law(own.law[0], own.law[1], own.law[2], own.law[3])


@njit(**FAMILY)
def _mesh_forces(arena, k, at, replay, rows, out):
    if replay and not rows.size:
        return rows
    contact = _own_mesh(arena, arena.families[k, FIELD])
    if replay:
        mesh_contact_force(at.q, at.v, at.theta, contact.meshes, _law_of(contact), rows, out)
        return rows
    meshes, law = contact.meshes, _law_of(contact)
    found, covered = call_mesh_force((at.q, at.v, at.theta, meshes, law, contact.near, rows, out))
    if not covered:  # look for pairs where too few are near, for this trial alone
        x, half = places_and_halves(at.q, at.v, at.theta, meshes)
        if np.isfinite(x).all():  # else Newton went astray, and notices
            near = Near(*call_near_pairs((x, half, meshes, np.zeros(half.size))))
            found, _ = call_mesh_force((at.q, at.v, at.theta, meshes, law, near, rows, out))
    return found


@njit(**FAMILY)
def _mesh_jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if rows.size == 0 or (weight_q == 0.0 and weight_v == 0.0):
        return
    contact = _own_mesh(arena, arena.families[k, FIELD])
    mesh_contact_jacobian(
        at.q, at.v, at.theta, contact.meshes, _law_of(contact), rows, (weight_q, weight_v), contact.slots, data, slots
    )


@njit(**FAMILY)
def _mesh_parameters(arena, k, at, rows, forward, along, out):
    if rows.size == 0:
        return
    contact = _own_mesh(arena, arena.families[k, FIELD])
    by_theta, force = (along, out) if forward else (out, along)
    state, by_v = (at.q, at.v, at.theta), rates_in(forward, at, out)
    mesh_contact_parameters(state, contact.meshes, _law_of(contact), rows, forward, by_theta, force, by_v)


MESH_KIND = Kind("contact_of_meshes", _MeshArrays, _mesh_forces, _mesh_parameters, _mesh_jacobian, rates=True)


@cache
def nothing_near(n_bodies: int) -> Near:
    """Return pairs that cover nothing."""
    none, widths, gaps = np.zeros((0, 2), dtype=np.int64), np.zeros(n_bodies), np.zeros(0)
    runs = np.zeros(1, dtype=np.int64)
    return Near(np.zeros((0, 3)), widths, widths, widths, none, none, gaps, gaps, runs, runs, gaps, gaps)


def mesh_family(near: Near, meshes: Meshes, law: Law, keys: IntArray) -> Family:
    """Return the family with the places of the blocks ``keys``; see `add.kernels.mesh_derivatives.Slots`."""
    first, rows, cols = block_entries(keys, meshes)
    return Family(MESH_KIND, (*near, *meshes, keys, first, np.array(law)), (rows, cols), changes=True)
