"""Force families as compiled steps take them: arrays, and the functions that walk over them."""

import functools
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.equations.signals import Signal
from add.kernels.arena import FAMILY, FIELD, entries, row_of, signatures, unpacker, window
from add.kernels.by_address import Callee, address
from add.kernels.caching import njit
from add.typing import AnyArray, IntArray

#: The pattern of forces that do not depend on the motion.
NO_ENTRIES: tuple[IntArray, IntArray] = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def dense_blocks(dofs: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows and columns of dense blocks over coordinates (k, m), row by row."""
    return np.repeat(dofs, dofs.shape[1], axis=1).ravel(), np.tile(dofs, dofs.shape[1]).ravel()


def node_blocks(cells: IntArray) -> tuple[IntArray, IntArray]:
    """Return those over the coordinates of nodes (k, n): node, axis, node, axis."""
    return dense_blocks((3 * cells[:, :, None] + np.arange(3)).reshape(cells.shape[0], 3 * cells.shape[1]))


def bordered(rows: IntArray, dofs: IntArray, blocks: IntArray) -> tuple[IntArray, IntArray]:
    """Return the places of G by rows and coordinates, of G^T, and of dense blocks over coordinates (k, m)."""
    left, right = dense_blocks(blocks)
    return np.concatenate([rows, dofs, left]), np.concatenate([dofs, rows, right])


#: A branch of each iterate asks for them.
_address = functools.cache(address)


class NotCompiled(Exception):
    """A system has something that compiled steps lack; the text names it."""


@final
@dataclass(frozen=True)
class Kind:
    """The compiled functions of a kind of family; `add.kernels.arena` says what they take and do.

    Attributes
    ----------
    name : str
        Of this kind alone: that of the files of what is compiled.
    arrays : type
        Named tuple class of `add.kernels.arena.Ints` and their neighbours.
    forces, parameters : compiled functions
    jacobian : compiled function, or None where no force depends on the motion
    inputs : compiled function, or None where nothing follows a signal
    rates : bool
        Whether ``parameters`` gives the product with dr/dv where it is asked for, or there is none.
    """

    name: str
    arrays: type
    forces: Any
    parameters: Any
    jacobian: Any = None
    inputs: Any = None
    rates: bool = False

    @functools.cached_property
    def functions(self) -> tuple[Any, Any, Any, Any]:
        """The functions that are called, in the order of the columns of `add.kernels.arena.Arena.families`."""
        return entries(self.name, self.forces, self.jacobian, self.parameters, self.inputs)

    def address(self, column: int) -> int:
        """Return the address of a function in this process, zero for none; what is not on disk is compiled."""
        function = self.functions[column]
        return 0 if function is None else _address(Callee(function, *signatures()[column]))


def by_signal(arrays: type, parameters: Any) -> Any:
    """Return the derivatives by the coefficients that follow a signal, those of ``parameters`` one by one.

    The families have them in their array `rows`, whose first axis is that of the signal.
    """
    unpacked = unpacker(arrays)

    @njit(**FAMILY)
    def inputs(arena, k, at, rows, indptr, found):
        own = unpacked(arena, arena.families[k, FIELD])
        first, weights = window(arena, k, at)
        along, done = np.zeros(at.theta.size), np.zeros(at.theta.size, dtype=np.bool_)
        for entry in own.rows[first : first + weights.size].flat:
            to = row_of(entry, indptr, found)
            if to >= 0 and not done[entry]:
                along[entry], done[entry] = 1.0, True
                parameters(arena, k, at, rows, True, along, found.values[to])
                along[entry] = 0.0

    return inputs


@final
@dataclass(frozen=True)
class Family:
    """A family of forces of one system.

    Attributes
    ----------
    kind : Kind
    arrays : (named tuple of its class)
    pattern : (rows, cols) of the entries of its derivatives
    signal : Signal or None
        What some of its numbers follow.
    followers : int
        How many: of each, a coefficient for every row of the signal that acts.
    changes : bool
        Whether arrays and pattern are others in each step: `DecidingTerm.family_of_step` has those.
    sized : bool
        Whether the first arrays follow sizes in theta: `DecidingTerm.arrays_at` has those.
    """

    kind: Kind
    arrays: tuple[AnyArray, ...]
    pattern: tuple[IntArray, IntArray]
    signal: Signal | None = None
    followers: int = 0
    changes: bool = False
    sized: bool = False
