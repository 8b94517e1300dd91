"""Contact between meshes as compiled steps take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from add.equations.family import Family, Kind
from add.kernels.arena import FAMILY, FIELD, Ints, unpacker
from add.kernels.caching import njit
from add.kernels.contact_pairs import Law
from add.kernels.mesh_arrays import Meshes, Near
from add.kernels.mesh_contact import found_mesh_contact_force, mesh_contact_force
from add.kernels.mesh_derivatives import Slots, block_entries, mesh_contact_jacobian, mesh_contact_parameters
from add.typing import IntArray


class _Arrays(NamedTuple):
    """``law`` are the fields of `add.kernels.contact_pairs.Law`."""

    near: Near
    meshes: Meshes
    slots: Slots
    law: Ints


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _law_of(own):
    return Law(own.law[0], own.law[1], own.law[2], own.law[3])


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    if replay and not rows.size:
        return rows
    own = _own(arena, arena.families[k, FIELD])
    if replay:
        mesh_contact_force(at.q, at.v, at.theta, own.meshes, _law_of(own), rows, out)
        return rows
    return found_mesh_contact_force(at.q, at.v, at.theta, own.meshes, _law_of(own), own.near, out)


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    if rows.size == 0 or (weight_q == 0.0 and weight_v == 0.0):
        return
    own = _own(arena, arena.families[k, FIELD])
    mesh_contact_jacobian(
        at.q, at.v, at.theta, own.meshes, _law_of(own), rows, weight_q, weight_v, own.slots, data, slots
    )


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    if rows.size == 0:
        return
    own = _own(arena, arena.families[k, FIELD])
    by_theta, force = (along, out) if forward else (out, along)
    mesh_contact_parameters(at.q, at.v, at.theta, own.meshes, _law_of(own), rows, forward, by_theta, force)


KIND = Kind("contact_of_meshes", _Arrays, _forces, _parameters, _jacobian)


def nothing_near(n_bodies: int) -> Near:
    """Return pairs that cover nothing."""
    none, widths = np.zeros((0, 2), dtype=np.int64), np.zeros(n_bodies)
    return Near(np.zeros((0, 3)), widths, widths, none, none)


def mesh_family(near: Near, meshes: Meshes, law: Law, keys: IntArray) -> Family:
    """Return the family with the places of the blocks ``keys``; see `add.kernels.mesh_derivatives.Slots`."""
    first, rows, cols = block_entries(keys, meshes)
    return Family(KIND, (*near, *meshes, keys, first, np.array(law)), (rows, cols), changes=True)
