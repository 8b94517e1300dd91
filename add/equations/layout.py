"""The place of every number in the flat vectors q and theta: name -> slice, shape, unit."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.errors import InputError
from add.typing import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True)
class Entry:
    """A named block of a flat vector.

    Attributes
    ----------
    name : str
    start : int
    shape : tuple of int
    unit : str
    """

    name: str
    start: int
    shape: tuple[int, ...]
    unit: str

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)

    @property
    def stop(self) -> int:
        """One past the last index."""
        return self.start + self.size

    @property
    def slice(self) -> slice:
        """The block's place in the flat vector."""
        return slice(self.start, self.stop)

    @property
    def indices(self) -> IntArray:
        """The block's places in the flat vector, in the block's shape."""
        return np.arange(self.start, self.stop, dtype=np.int64).reshape(self.shape)


class _Layout:
    """Named blocks, one after the other."""

    def __init__(self, blocks: Iterable[tuple[str, tuple[int, ...], str]]) -> None:
        entries: dict[str, Entry] = {}
        start = 0
        for name, shape, unit in blocks:
            if name in entries:
                raise InputError("two blocks of one layout have the same name", found=name)
            entries[name] = Entry(name, start, tuple(shape), unit)
            start = entries[name].stop
        self._entries = entries
        self.n = start

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise InputError("no such block", found=name, expected=", ".join(self._entries)) from None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All blocks in order."""
        return tuple(self._entries.values())

    def view(self, vector: FloatArray, name: str) -> FloatArray:
        """Return the block's part of ``vector`` (a view) in the block's shape."""
        entry = self[name]
        return vector[entry.slice].reshape(entry.shape)

    def entry_of(self, index: int) -> Entry:
        """Return the block that owns a scalar."""
        return next(entry for entry in self._entries.values() if entry.start <= index < entry.stop)


@final
class ParameterLayout(_Layout):
    """Places of the differentiable physical numbers in theta (or of a scene's numbers in s)."""

    def describe(self, index: int) -> str:
        """Return ``name[i, j] [unit]`` of one scalar."""
        entry = self.entry_of(index)
        where = np.unravel_index(index - entry.start, entry.shape) if entry.shape else ()
        suffix = "" if entry.size == 1 else "[" + ", ".join(str(int(i)) for i in where) + "]"
        return f"{entry.name}{suffix}"


@final
class DofLayout(_Layout):
    """Places of the bodies' coordinates in q, or of their rows in X; a block of nodes has shape (n, 3) [m].

    A rigid body has two rows: its centre of mass [m] and its rotation vector [rad]. A body with an embedding has any
    number of coordinates, of shape (n,).
    """

    def __init__(self, blocks: Iterable[tuple[str, tuple[int, ...], str]], rigid: frozenset[str] = frozenset()) -> None:
        super().__init__(blocks)
        self.rigid = rigid

    def describe(self, index: int) -> str:
        """Return ``body/node i/axis``, or ``body/position/axis`` or ``body/rotation/axis``, of one coordinate."""
        entry = self.entry_of(index)
        node, axis = divmod(index - entry.start, 3)
        if len(entry.shape) == 1:
            return f"{entry.name}/coordinate {index - entry.start}"
        if entry.name in self.rigid:
            return f"{entry.name}/{('position', 'rotation')[node]}/{'xyz'[axis]}"
        return f"{entry.name}/node {node}/{'xyz'[axis]}"


@final
@dataclass(frozen=True)
class DofPartition:
    """Free and prescribed coordinates.

    Attributes
    ----------
    n : int
        Number of all coordinates.
    prescribed : (n_p,) sorted indices
    free : (n - n_p,) sorted indices
    is_free : (n,) bool
    """

    n: int
    prescribed: IntArray
    free: IntArray = field(init=False)
    is_free: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        is_free = np.ones(self.n, dtype=bool)
        is_free[self.prescribed] = False
        object.__setattr__(self, "is_free", is_free)
        object.__setattr__(self, "free", np.flatnonzero(is_free))


def node_dofs(nodes: IntArray) -> IntArray:
    """Return (n, 3) indices in q of the given nodes of the system."""
    return 3 * np.asarray(nodes, dtype=np.int64)[:, None] + np.arange(3)
