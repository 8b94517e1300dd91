"""Where the blocks of what touches begin among the places of a pattern."""

from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import put
from add.kernels.caching import njit
from add.kernels.contact_pairs import ACTIVE, BITS, PAIR, STICKS
from add.kernels.ordering import distinct, first_not_below
from add.typing import IntArray


class Slots(NamedTuple):
    """The first entries of the blocks of the derivatives in a pattern; see `add.contact.sparsity`.

    Attributes
    ----------
    own : (np,) of the block of a point's carrier alone
    keys : (m,) sorted: carrier * nb + body, carriers being the rigid bodies, then nb + i for the node of point i
    first : int
        Where the blocks of the keys begin: 12 x 12 for two bodies, then 9 x 9 for a node and a body.
    """

    own: IntArray
    keys: IntArray
    first: int


@njit(cache=True, error_model="numpy")
def first_entry(i, a, b, nb, slots):
    """Return where the block of point i of body a (-1: a node) and body b (-1: the world) begins."""
    if b < 0:
        return slots.own[i]
    keys = slots.keys
    at = first_not_below(keys, (a if a >= 0 else nb + i) * nb + b)
    if a >= 0:
        return slots.first + 144 * at
    n_rigid = first_not_below(keys, nb * nb)
    return slots.first + 144 * n_rigid + 81 * (at - n_rigid)


@njit(cache=True, error_model="numpy")
def first_entries(contacts, slots, rows):
    """Return `first_entry` of every row (k,)."""
    out, n_shapes, nb = np.empty(rows.shape[0], dtype=np.int64), contacts.kind.size, contacts.bodies.shape[0]
    for k in range(rows.shape[0]):
        i, o = rows[k, PAIR] // n_shapes, rows[k, PAIR] % n_shapes
        out[k] = first_entry(i, contacts.points[i, 2], contacts.hosts[o], nb, slots)
    return out


@njit(cache=True, error_model="numpy")
def block_keys(rows, contacts, always):
    """Return the sorted keys of the blocks of points and bodies that touch, and those of ``always``."""
    n_shapes, nb = contacts.kind.size, contacts.bodies.shape[0]
    keys, n = np.empty(rows.shape[0] + always.size, dtype=np.int64), 0
    for k in range(rows.shape[0]):
        i, b = rows[k, PAIR] // n_shapes, contacts.hosts[rows[k, PAIR] % n_shapes]
        if rows[k, BITS] & (ACTIVE | STICKS) == 0 or b < 0:
            continue
        a = contacts.points[i, 2]
        keys[n] = (a if a >= 0 else nb + i) * nb + b
        n += 1
    if n == 0:
        return always
    put(always, keys[n:])
    return distinct(keys[: n + always.size])
