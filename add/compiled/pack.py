"""A system as the arena of a compiled step, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from add.compiled.routines import Routines, routines
from add.compiled.structure import STRUCTURE, Elimination, Layout, Links, Moves, Sparse, empty
from add.equations.family import Family, Kind, NotCompiled
from add.equations.lift import Lift
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.signals import Signal
from add.equations.system import System
from add.equations.tree_embedding import TreeEmbedding
from add.kernels.arena import COLUMNS, INPUTS, Arena, fields_of, packed
from add.kernels.trees import Tree
from add.linalg.multifrontal import analysis_of
from add.linalg.pattern import Pattern
from add.terms.tree_inertia import TreeInertia
from add.typing import AnyArray, IntArray

#: Up to so many coordinates the matrix of a step is a dense one; without trees larger ones are sparse.
MOST_DENSE = 200

#: Up to so many coordinates a step is a compiled one: beyond, nothing is gained.
MOST_COORDINATES = 10_000

#: Up to so many rows of X where there are trees: the matrix over them is a full one.
MOST_ROWS = 600


@final
@dataclass(frozen=True)
class PackedSystem:
    """A system as arrays.

    Attributes
    ----------
    system : System
    kinds : of its families, in their order
    table : (n, 10) the arena's table of families without addresses, which differ between processes
    arrays : the arena's integers, floats and fields
    signals : of families and moves, in the order of their numbers
    trees : whether there are any
    sparse : whether matrices are
    """

    system: System
    kinds: tuple[Kind, ...]
    table: IntArray
    arrays: tuple[IntArray, AnyArray, IntArray]
    signals: tuple[Signal, ...]
    trees: bool
    sparse: bool

    @property
    def steps_a_call(self) -> int:
        """How many steps one call may take: signals are to be heard within seconds, and blocks are kept as wholes."""
        return max(4, 2 * MOST_COORDINATES // self.system.n)

    @cached_property
    def arena(self) -> Arena:
        """The arena with the addresses of this process; what is not on disk is compiled."""
        table = self.table.copy()
        for row, kind in zip(table, self.kinds, strict=True):
            row[: INPUTS + 1] = [kind.address(k) for k in range(INPUTS + 1)]
        return Arena(*self.arrays, table)

    @property
    def common(self) -> tuple[Arena, Routines]:
        """The arguments that all compiled steps begin with: the arena, and the routines that they call."""
        return self.arena, routines(self.trees, self.sparse)

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process as the system, which is packed anew there."""
        return pack, (self.system,)


def lacking(system: System) -> str:
    """Return the reason why a system takes no compiled steps; empty if it does."""
    try:
        pack(system)
    except NotCompiled as reason:
        return str(reason)
    return ""


def pack(system: System) -> PackedSystem:
    """Return the arrays of a system.

    Raises
    ------
    NotCompiled
        If it has a term without a compiled family, or is too large.
    """
    if system.n > MOST_COORDINATES:
        raise NotCompiled(f"{system.n} coordinates, more than {MOST_COORDINATES}")
    if not system.partition.free.size:
        raise NotCompiled("nothing is free to move")
    if system.constraints:
        raise NotCompiled(type(system.constraints[0]).__name__)
    found = _Packing(system).result()
    if system.limit is not None:
        raise NotCompiled(type(system.limit).__name__)
    return found


@final
@dataclass
class _Packing:
    """The families of a system in the making."""

    system: System
    families: list[tuple[Family, int, bool]] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    trees: list[TreeInertia] = field(default_factory=list)
    lift: Lift | None = None

    def result(self) -> PackedSystem:
        system = self.system
        owners = [term for term in system.terms if isinstance(term, TreeInertia)]
        self.trees = sorted(owners, key=lambda term: term.start)
        for term in (*system.terms, *system.deciding):
            if isinstance(term, LiftedTerm | LiftedDecidingTerm):
                self.lift = term.lift
        for term in system.terms:
            if not isinstance(term, TreeInertia):
                inner = term.inner if isinstance(term, LiftedTerm) else term
                # All terms over rows of X are lifted where there are trees.
                self.families.append((inner.family(), -1, bool(self.trees) and inner is term))
        for number, choice in enumerate(system.deciding):
            decided = choice.inner if isinstance(choice, LiftedDecidingTerm) else choice
            if self.trees and decided is choice:
                raise NotCompiled(f"{type(choice).__name__} over coordinates of trees")
            self.families.append((decided.family(), number, False))
        if self.lift is not None and not self.trees:
            raise NotCompiled("a body in coordinates of its own that is no tree")
        n_rows = system.n if self.lift is None else self.lift.rows.n
        sparse = system.n > MOST_DENSE
        if sparse and self.trees:
            raise NotCompiled(f"{system.n} coordinates with trees, more than {MOST_DENSE}")
        if self.trees and n_rows > MOST_ROWS:
            raise NotCompiled(f"{n_rows} rows of links and bodies, more than {MOST_ROWS}")
        structure: dict[type, tuple[AnyArray, ...]] = {Moves: self._moves()}
        if sparse:
            whole = Pattern.build(system.n, [family.pattern for family, _, _ in self.families])
            places, n_values = [np.asarray(slots, dtype=np.int64) for slots in whole.slots], whole.nnz
            structure |= _sparse_structure(whole, system.partition.free)
        else:
            places = [self._places(family, system.n if own else n_rows) for family, _, own in self.families]
            n_values = system.n**2
        structure[Layout] = self._layout(n_values)
        if self.trees:
            touched = [place % n_rows for place, (_, _, own) in zip(places, self.families, strict=True) if not own]
            structure |= self._of_trees(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *touched])), n_rows)
        arrays: list[AnyArray] = []
        kinds: list[tuple[int, Any]] = []
        for part in STRUCTURE:
            arrays += structure.get(part, empty(part))
            kinds += fields_of(part)
        table = []
        for (family, number, own), place in zip(self.families, places, strict=True):
            first, of_kind = len(arrays), fields_of(family.kind.arrays)
            signal = -1 if family.signal is None else self._signal(family.signal)
            table.append([0, 0, 0, 0, first, first + len(of_kind), number, own, signal, family.followers])
            arrays += [*family.arrays, place]
            kinds += [*of_kind, (1, np.int64)]
        return PackedSystem(
            system=system,
            kinds=tuple(family.kind for family, _, _ in self.families),
            table=np.array(table, dtype=np.int64).reshape(-1, COLUMNS),
            arrays=packed(arrays, kinds),
            signals=tuple(self.signals),
            trees=bool(self.trees),
            sparse=sparse,
        )

    @staticmethod
    def _places(family: Family, n: int) -> IntArray:
        """Return the places of a family's entries in a full matrix by columns."""
        rows, cols = family.pattern
        return np.asarray(cols * n + rows, dtype=np.int64)

    def _signal(self, signal: Signal) -> int:
        self.signals.append(signal)
        return len(self.signals) - 1

    def _layout(self, n_values: int) -> tuple[AnyArray, ...]:
        system = self.system
        return system.partition.free, system.partition.prescribed, system.rotations, np.array([system.n, n_values])

    def _moves(self) -> tuple[AnyArray, ...]:
        moves, table = self.system.motion.moves, []
        first = begin = 0
        for move in moves:
            table.append([first, first + move.dofs.size, begin, self._signal(move.signal)])
            first, begin = first + move.dofs.size, begin + move.rows.shape[0]
        if not table:
            return empty(Moves)
        parts = zip(*((move.dofs, move.axes, move.rows) for move in moves), strict=True)
        return np.array(table), *(np.concatenate(part) for part in parts)

    def _of_trees(self, touched: IntArray, n_rows: int) -> dict[type, tuple[AnyArray, ...]]:
        """Return the arrays of `Links` and `Tree`; ``touched`` rows of X are those that force families depend on."""
        same = self.trees[0].start
        starts = np.array([*(term.start - same for term in self.trees), self.system.n - same], dtype=np.int64)
        elements = np.cumsum([0, *(term.tree.parent.size for term in self.trees)])
        columns = np.cumsum([0, *(term.tree.element.size for term in self.trees)])
        links, rows = np.zeros(0, dtype=np.int64), same
        if self.lift is not None:
            embedded = [one for one in self.lift.embeddings if isinstance(one, TreeEmbedding)]
            if len(embedded) != len(self.trees) or len(embedded) != len(self.lift.embeddings):
                raise NotCompiled("a body in coordinates of its own that is no tree")
            parts = [one.links + e for one, e in zip(embedded, elements[:-1], strict=True)]
            links, rows = np.concatenate(parts), n_rows
        moved = []
        for term, first, column in zip(self.trees, elements[:-1], columns[:-1], strict=True):
            tree = term.tree
            moved.append(
                tree._replace(
                    parent=np.where(tree.parent >= 0, tree.parent + first, -1),
                    first=tree.first + column,
                    element=tree.element + first,
                    coordinate=tree.coordinate + term.start - same,
                )
            )
        joined = [np.concatenate(parts) for parts in zip(*moved, strict=True)]
        tree_arrays = (*joined[:-1], self.trees[0].tree.gravity)
        return {Links: (np.array([rows, same]), links, touched, starts), Tree: tree_arrays}


def _sparse_structure(whole: Pattern, free: IntArray) -> dict[type, tuple[AnyArray, ...]]:
    """Return the arrays of `Sparse` and `Elimination` of the pattern over all coordinates."""
    compressed = np.full(whole.n, -1, dtype=np.int64)
    compressed[free] = np.arange(free.size)
    columns = np.repeat(np.arange(whole.n), np.diff(whole.indptr))
    block = Pattern.build(free.size, [(whole.indices.astype(np.int64), columns)], compressed)
    place = np.zeros(block.nnz + 1, dtype=np.int64)
    place[block.slots[0]] = np.arange(whole.nnz)
    _, mirror, fronts, sizes = analysis_of(block)
    sparse = Sparse(
        whole.indptr, whole.indices, block.indptr, block.indices, place[: block.nnz], mirror, block.diagonal,
        np.array([sizes.stack, sizes.border, sizes.fill, block.nnz]),
    )  # fmt: skip
    return {Sparse: sparse, Elimination: tuple(fronts)}
