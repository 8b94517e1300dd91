"""A system as the arena of a compiled step, and what it lacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from add.compiled.routines import Routines, routines
from add.compiled.sparse_trees import sparse_lift
from add.compiled.structure import (
    FIRST,
    STRUCTURE,
    Layout,
    Links,
    Moves,
    empty,
    joined_trees,
    known_fields,
    sparse_structure,
)
from add.compiled.walk import FOLLOWS
from add.contact.body_family import HeldPairs
from add.equations.family import Family, Kind, NotCompiled
from add.equations.lift import Lift
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.signals import Signal
from add.equations.system import System
from add.equations.term import DecidingTerm
from add.equations.tree_embedding import TreeEmbedding
from add.kernels.arena import CHOICE, COLUMNS, EQUATION, FIELD, INPUTS, SIGNAL, SLOTS, Arena, packed
from add.kernels.trees import Tree
from add.linalg.pattern import Pattern, PatternCache
from add.terms.rigid_inertia import TreeInertia
from add.typing import AnyArray, BoolArray, FloatArray, IntArray

#: Up to so many coordinates the matrix of a step is a dense one; without trees larger ones are sparse.
MOST_DENSE = 200

#: Up to so many coordinates a step is a compiled one: beyond, nothing is gained.
MOST_COORDINATES = 20_000

#: One call moves so many coordinates through its steps, in all.
MOST_A_CALL = 20_000

#: Arrays of patterns are kept up to so many integers in all: 200 MB.
MOST_KEPT = 25_000_000

#: Up to so many rows of X where there are trees the matrices are full ones.
MOST_ROWS = 600


class Others(NamedTuple):
    """Arrays in place of some parts of an arena: their numbers, and what `packed` makes of them."""

    numbers: IntArray
    ints: IntArray
    floats: AnyArray
    fields: IntArray


@final
@dataclass(frozen=True)
class PackedSystem:
    """A system as arrays.

    Attributes
    ----------
    system : System
    kinds : of its families, in their order
    table : (n, 11) the arena's table of families without addresses, which differ between processes
    arrays : the arrays of the arena in one piece, as `packed` gives them
    parts, forms : the same one by one, and dimensions and type of each; empty where none changes from step to step
    signals : of families and moves, in the order of their numbers
    trees : whether there are any, or nodes that follow other bodies
    sparse : whether matrices are
    whole : Pattern or None
        Of a sparse matrix over all coordinates, without what changes from step to step.
    changing : number of a family that does -> number of its deciding term
    sized : number of a family whose arrays follow sizes in theta -> its term
    with_held : see `add.compiled.holding.holding`
    """

    system: System
    kinds: tuple[Kind, ...]
    table: IntArray
    arrays: tuple[IntArray, AnyArray, IntArray]
    parts: tuple[AnyArray, ...]
    forms: tuple[tuple[int, Any], ...]
    signals: tuple[Signal, ...]
    trees: bool
    sparse: bool
    whole: Pattern | None
    changing: dict[int, int]
    sized: dict[int, DecidingTerm]
    with_held: "dict[tuple[int, ...], PackedSystem | None]" = field(default_factory=dict, repr=False, compare=False)

    @property
    def steps_a_call(self) -> int:
        """How many steps one call may take: signals are to be heard within seconds, and blocks are kept as wholes."""
        return 1 if self.changing else max(1, MOST_A_CALL // self.system.n)

    @property
    def alone(self) -> bool:
        """Whether a run needs an arena and routines of its own, so that its steps are none of a batch."""
        return bool(self.changing or self.sized) or self.system.limit is not None

    def with_multipliers(self, x: FloatArray, mu: FloatArray | None = None) -> FloatArray:
        """Return rows of coordinates (..., n) with multipliers (..., m) behind them, zeros if none are given."""
        if not self.system.n_multipliers:
            return x
        return np.concatenate([x, np.zeros((*x.shape[:-1], self.system.n_multipliers)) if mu is None else mu], axis=-1)

    def with_all(self, steps: Any, mu: FloatArray) -> Any:
        """Return `Steps` over all coordinates, with multipliers."""
        if not self.system.n_multipliers:
            return steps
        return steps._replace(
            q=self.with_multipliers(steps.q, mu),
            **{name: self.with_multipliers(getattr(steps, name)) for name in ("v", "a", "states_q", "states_v")},
        )

    def divided(self, fields: Sequence[AnyArray]) -> tuple[list[AnyArray], FloatArray]:
        """Return the fields of `Steps` without multipliers, and these (k, m)."""
        n = self.system.n
        cut = fields if not self.system.n_multipliers else [*(x[:, :n].copy() for x in fields[:5]), *fields[5:]]
        return list(cut), fields[0][:, n:]

    @cached_property
    def held_by_signals(self) -> bool:
        """Whether equations follow signals, whose coefficients other families may follow, too."""
        return bool(((self.table[:, CHOICE] == EQUATION) & (self.table[:, SIGNAL] >= 0)).any())

    @cached_property
    def depending(self) -> tuple[IntArray, IntArray, IntArray]:
        """The families that depend on q, on v and on a, of a system in which nothing decides."""
        terms = [term for term in self.system.terms if not isinstance(term, TreeInertia)]
        inner = [term.inner if isinstance(term, LiftedTerm) else term for term in terms]
        by_q, by_v, by_a = (
            np.array(
                [k for k, term in enumerate(inner) if name in term.depends and self.kinds[k].jacobian], dtype=np.int64
            )
            for name in "qva"
        )
        return by_q, by_v, by_a

    @cached_property
    def arena(self) -> Arena:
        """The arena with the addresses of this process; what is not on disk is compiled."""
        table = self.table.copy()
        for row, kind in zip(table, self.kinds, strict=True):
            row[: INPUTS + 1] = [0 if k == INPUTS and row[SIGNAL] < 0 else kind.address(k) for k in range(INPUTS + 1)]
        return Arena(*self.arrays, table)

    def _others(self, parts: Mapping[int, AnyArray]) -> Others:
        """Return arrays that stand in place of some of the parts, by their numbers, packed; equal ones left out."""
        changed = [k for k, array in parts.items() if array is not self.parts[k]]
        return Others(
            np.array(changed, dtype=np.int64), *packed([parts[k] for k in changed], [self.forms[k] for k in changed])
        )

    def of_now(self, arrays: Mapping[int, Sequence[AnyArray]]) -> Others:
        """Return the first arrays of families, by number, as others."""
        return self._others(
            {int(self.table[k, FIELD]) + i: one for k, own in arrays.items() for i, one in enumerate(own)}
        )

    def arena_with(self, *others: Others) -> Arena:
        """Return the arena with others in place of some parts; they must outlive it.

        Nothing is copied: their fields begin where they are, before or behind the arrays of the arena, which views of
        parts never notice (`add.kernels.borrowed`).
        """
        arena = self.arena
        fields = arena.fields.copy()
        for numbers, ints, floats, own in others:
            ways = (ints, arena.ints), (floats, arena.floats)
            away = [(theirs.ctypes.data - mine.ctypes.data) // mine.itemsize for theirs, mine in ways]
            fields[numbers] = own
            fields[numbers, 0] += np.where(self._whole_numbers[numbers], *away)
        return arena._replace(fields=fields)

    @cached_property
    def patterns(self) -> PatternCache[Others]:
        """Arrays that `of_step` has made, for all runs: numbers do not depend on which are kept."""
        return PatternCache(max(2, MOST_KEPT // max(1, self.arena.ints.size)))

    @cached_property
    def _whole_numbers(self) -> BoolArray:
        """Of every part, whether it is one of integers."""
        return np.array([dtype is np.int64 for _, dtype in self.forms])

    def of_step(self, families: Mapping[int, Family]) -> Others:
        """Return the arrays of families, by number, and what their patterns make others: places, and the structure."""
        first, slots = self.table[:, FIELD].tolist(), self.table[:, SLOTS].tolist()
        arrays_at: dict[int, AnyArray] = {
            first[k] + i: array for k, family in families.items() for i, array in enumerate(family.arrays)
        }
        if self.whole is None:
            n = self.system.n + self.system.n_multipliers
            return self._others(arrays_at | {slots[k]: _in_full(one, n) for k, one in families.items()})
        whole = self.whole.extended([family.pattern for family in families.values()])
        assert whole.place is not None
        arrays_at |= {slot: whole.place[self.parts[slot]] for k, slot in enumerate(slots) if k not in families}
        arrays_at |= {slots[k]: places for k, places in zip(families, whole.slots, strict=True)}
        structure = sparse_structure(whole, free_of(self.system), self.system.n) | {
            Layout: (*self.parts[: len(Layout._fields) - 1], _sizes(self.system, whole.nnz))
        }
        for kind, arrays in structure.items():
            arrays_at |= dict(enumerate(arrays, FIRST[STRUCTURE.index(kind)]))
        return self._others(arrays_at)

    @property
    def common(self) -> tuple[Arena, Routines]:
        """The arguments that all compiled steps begin with: the arena, and the routines that they call."""
        return self.arena, routines(self.trees, self.sparse)

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process as the system, which is packed anew there."""
        return pack, (self.system,)


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
    return _Packing(system).result()


@final
@dataclass
class _Packing:
    """The families of a system in the making."""

    system: System
    families: list[tuple[Family, int, bool]] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    trees: list[TreeInertia] = field(default_factory=list)
    lift: Lift | None = None
    sized: dict[int, DecidingTerm] = field(default_factory=dict)

    def result(self) -> PackedSystem:
        system = self.system
        self.trees = trees_of(system)
        for term in (*system.terms, *system.deciding, *system.constraints):
            if isinstance(term, LiftedTerm | LiftedDecidingTerm | LiftedConstraint):
                self.lift = term.lift
        over_x = bool(self.trees) or self.lift is not None
        for term in system.terms:
            if not isinstance(term, TreeInertia):
                inner = term.inner if isinstance(term, LiftedTerm) else term
                # All terms over rows of X are lifted where there are trees, or nodes are tied.
                self.families.append((inner.family(), -1, over_x and inner is term))
        for number, choice in enumerate(system.deciding):
            decided = choice.inner if isinstance(choice, LiftedDecidingTerm) else choice
            own, family = over_x and decided is choice, decided.family()
            if not own and self.families and self.families[-1][1] >= 0 and self.families[-1][2]:
                raise NotCompiled(f"{type(choice).__name__} behind decisions over coordinates of trees")
            if over_x and family.changes:
                raise NotCompiled(f"{type(decided).__name__} of links")
            self.families.append((family, number, own))
            if family.sized:
                self.sized[len(self.families) - 1] = decided
        n, rows = system.n, system.n if self.lift is None else self.lift.rows.n
        for constraint, own_rows in system.parts:
            equations = constraint.inner if (lifted := isinstance(constraint, LiftedConstraint)) else constraint
            family = equations.family(own_rows.start + (rows if lifted else n))
            kind = FOLLOWS - equations.follows if isinstance(equations, HeldPairs) else EQUATION
            self.families.append((family, kind, over_x and not lifted))
        if self.lift is not None and not (self.trees or self.lift.carried):
            raise NotCompiled("a body in coordinates of its own that is no tree")
        n, n_rows = system.n + system.n_multipliers, rows + system.n_multipliers
        sparse = n > MOST_DENSE or (self.lift is not None and bool(self.lift.carried or n_rows > MOST_ROWS))
        structure: dict[type, tuple[AnyArray, ...]] = {Moves: self._moves()}
        whole: Pattern | None = None
        if sparse and over_x:
            if self.lift is None:
                raise NotCompiled(f"{n} coordinates with trees, more than {MOST_DENSE}")
            parts = sparse_lift(self.lift, self.trees, self.families, system.n, system.n_multipliers)
            of_x, whole, places, n_values = parts
            structure |= of_x
        elif sparse:
            whole = Pattern.build(n, [family.pattern for family, _, _ in self.families])
            places, n_values = [np.asarray(slots, dtype=np.int64) for slots in whole.slots], whole.nnz
        else:
            places = [_in_full(family, n if own else n_rows) for family, _, own in self.families]
            n_values = n**2
        if whole is not None:
            structure |= sparse_structure(whole, free_of(system), system.n)
        structure[Layout] = self._layout(n_values)
        if self.trees and not sparse:
            touched = [place % n_rows for place, (_, _, own) in zip(places, self.families, strict=True) if not own]
            structure |= self._of_trees(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *touched])), n_rows)
        arrays: list[AnyArray] = []
        kinds: list[tuple[int, Any]] = []
        for part in STRUCTURE:
            arrays += structure.get(part, empty(part))
            kinds += known_fields(part)
        table = []
        for (family, number, own), place in zip(self.families, places, strict=True):
            first, of_kind = len(arrays), known_fields(family.kind.arrays)
            signal = -1 if family.signal is None else self._signal(family.signal)
            columns = first, first + len(of_kind), number, own, signal, family.followers, family.kind.rates
            table.append([0, 0, 0, 0, *columns])
            arrays += [*family.arrays, place]
            kinds += [*of_kind, (1, np.int64)]
        changing = {k: number for k, (family, number, _) in enumerate(self.families) if family.changes}
        return PackedSystem(
            system=system,
            kinds=tuple(family.kind for family, _, _ in self.families),
            table=np.array(table, dtype=np.int64).reshape(-1, COLUMNS),
            arrays=packed(arrays, kinds),
            parts=tuple(arrays) if changing or self.sized else (),
            forms=tuple(kinds) if changing or self.sized else (),
            signals=tuple(self.signals),
            trees=over_x,
            sparse=sparse,
            whole=None if whole is None else replace(whole, slots=()),
            changing=changing,
            sized=self.sized,
        )

    def _signal(self, signal: Signal) -> int:
        self.signals.append(signal)
        return len(self.signals) - 1

    def _layout(self, n_values: int) -> tuple[AnyArray, ...]:
        system = self.system
        return free_of(system), system.partition.prescribed, system.rotations, _sizes(system, n_values)

    def _moves(self) -> tuple[AnyArray, ...]:
        moves, table = self.system.motion.moves, []
        first = begin = 0
        for move in moves:
            table.append([first, first + move.dofs.size, begin, self._signal(move.signal)])
            first, begin = first + move.dofs.size, begin + move.rows.shape[0]
        if not table:
            return empty(Moves)
        # A joint follows the one column of its signal: the two others are read, and change nothing.
        rows = [np.broadcast_to(move.rows, (move.rows.shape[0], 3)) for move in moves]
        parts = zip(*((move.dofs, move.axes, own) for move, own in zip(moves, rows, strict=True)), strict=True)
        return np.array(table), *(np.concatenate(part) for part in parts)

    def _of_trees(self, touched: IntArray, n_rows: int) -> dict[type, tuple[AnyArray, ...]]:
        """Return the arrays of `Links` and `Tree`; ``touched`` rows of X are those that force families depend on."""
        same = self.trees[0].start
        starts = np.array([*(term.start - same for term in self.trees), self.system.n - same], dtype=np.int64)
        links, rows = np.zeros(0, dtype=np.int64), same + self.system.n_multipliers
        if self.lift is not None:
            embedded = [one for one in self.lift.embeddings if isinstance(one, TreeEmbedding)]
            if len(embedded) != len(self.trees) or len(embedded) != len(self.lift.embeddings):
                raise NotCompiled("a body in coordinates of its own that is no tree")
            links, rows = elements_of(self.lift, self.trees), n_rows
        arrays = joined_trees([(term.tree, int(start)) for term, start in zip(self.trees, starts[:-1], strict=True)])
        return {Links: (np.array([rows, same]), links, touched, starts), Tree: arrays}


def trees_of(system: System) -> list[TreeInertia]:
    """Return the inertia of the trees of a system, in the order of their coordinates."""
    return sorted((term for term in system.terms if isinstance(term, TreeInertia)), key=lambda term: term.start)


def _firsts(trees: Sequence[TreeInertia]) -> IntArray:
    """Return the number of the first element of each tree among those of all, and how many there are."""
    return np.cumsum([0, *(term.tree.parent.size for term in trees)])


def elements_of(lift: Lift, trees: Sequence[TreeInertia]) -> IntArray:
    """Return the element of each link that has rows of X, by trees."""
    embedded = [one for one in lift.embeddings if isinstance(one, TreeEmbedding)]
    parts = [one.links + e for one, e in zip(embedded, _firsts(trees), strict=False)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _sizes(system: System, n_values: int) -> IntArray:
    """Return `Layout.size`."""
    n, m = system.n, system.n_multipliers
    held = sum(c.n_rows for c, _ in system.parts if isinstance(getattr(c, "inner", c), HeldPairs))
    return np.array([n + m, n_values, sum(1 << number for number, _ in system.sticking), m, held])


def free_of(system: System) -> IntArray:
    """Return the free coordinates, with multipliers."""
    return np.append(system.partition.free, system.n + np.arange(system.n_multipliers))


def _in_full(family: Family, n: int) -> IntArray:
    """Return the places of a family's entries in a full matrix by columns."""
    rows, cols = family.pattern
    return np.asarray(cols * n + rows, dtype=np.int64)
