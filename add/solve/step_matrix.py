"""The matrix of a step: pattern, values, factors."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from add.compiled.equations import CompiledEquations
from add.compiled.run import CompiledRun
from add.equations.kinematics import Kinematics, Weights
from add.equations.system import BranchEquations, System
from add.equations.term import AllCandidates
from add.linalg import DENSE_LIMIT, Factorization, LinearSolve, factorization_for
from add.linalg.augmented_lagrangian import PENALTY, AugmentedSolve, Rows
from add.linalg.pattern import Pattern, PatternCache
from add.solve.step_equations import StepEquations, Zones
from add.typing import FloatArray, IntArray


@final
class Assembler:
    """The matrix of a step. One per run, never shared between runs.

    Nothing here outlives a factorisation except structure, so that a recomputation from a checkpoint meets the same
    numbers.

    Attributes
    ----------
    compiled : CompiledRun or None
        Steps as one call each; None for systems that have none.
    free : (n_free,)
        The free coordinates, or those ``within`` which a solve goes on while the others wait.
    """

    def __init__(
        self,
        system: System,
        factorization: Factorization | None = None,
        compiled: CompiledRun | None = None,
        within: IntArray | None = None,
    ) -> None:
        self.system, self.compiled = system, compiled
        free = self.free = system.partition.free if within is None else within
        self.factorization = factorization or factorization_for(free.size + system.n_multipliers)
        compressed = np.full(system.n + system.n_multipliers, -1, dtype=np.int64)
        compressed[free] = np.arange(free.size)
        compressed[system.n :] = free.size + np.arange(system.n_multipliers)
        self._compressed = compressed
        self._patterns: PatternCache[Pattern] = PatternCache()
        self._start: tuple[FloatArray, FloatArray] | None = None
        self._data = np.zeros(0)
        self._asked: tuple[Weights, tuple[object, ...]] | None = None
        self._rows: list[FloatArray] = []
        # Derivatives by the state want the prescribed coordinates too.
        self._whole: PatternCache[Pattern] = PatternCache()
        # The patterns of all that no decision changes, once they are known.
        self._steady: list[Pattern] = []
        # Of each unknown its body, or the multiplier itself; and the last pattern's entries between different ones.
        bodies = int(system.owners.max(initial=-1)) + 1
        owners = system.owners[np.searchsorted(system.partition.free, free)]
        self._owners = np.append(owners, bodies + np.arange(system.n_multipliers))
        none = np.zeros(0, dtype=np.int64)
        self._between: tuple[Pattern | None, IntArray, IntArray, IntArray] = (None, none, none, none)
        self._steady_whole: list[Pattern] = []

    @cached_property
    def at_once(self) -> CompiledEquations | None:
        """Equations as one call, made when they are asked for; None where the terms are asked one by one."""
        return CompiledEquations.of(self.compiled.system if self.compiled else None)

    def copy(self) -> Assembler | None:
        """Return another one for the same run, which can be used at the same time; it knows the patterns so far.

        None where the back end cannot be copied.
        """
        factorization = self.factorization.copy()
        if factorization is None:
            return None
        other = Assembler(self.system, factorization, self.compiled.copy() if self.compiled else None)
        other._patterns, other._steady = self._patterns.copy(), self._steady.copy()
        return other

    def prescribed(self, t: float, theta: FloatArray) -> FloatArray:
        """Return the prescribed coordinates (n_p,) at time ``t``; the initial pose is evaluated once a theta."""
        motion = self.system.motion
        if not motion.prescribed.size:
            return motion.positions(t, theta)
        if self._start is None or self._start[0] is not theta:
            self._start = theta, motion.initial.evaluate(theta)[0]
        return motion.positions(t, theta, self._start[1])

    def residual(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        given: BranchEquations | None = None,
        replay: bool = True,
        candidates: AllCandidates = (),
    ) -> tuple[FloatArray, FloatArray, BranchEquations]:
        """Return r (n,), the rows (n_rows,) and the equations that are ``given``, or that are decided here.

        Where they are not to be replayed, what sticks in those that are given goes on sticking.
        """
        at_once, same = self.holding(given), given if replay else None
        if at_once is not None:
            decisions = None if given is None else given.decisions
            r, rows, made = at_once.residual(kin, mu, theta, decisions, same is not None)
            return r, rows, same or self.system.on_branch(made, candidates)
        if same is None:
            return self.system.residual(kin, mu, theta, given, candidates=candidates)
        return *same.residual(kin, mu, theta), same

    def holding(self, branch: BranchEquations | None) -> CompiledEquations | None:
        """Return the equations as one call, with as many rows as hold what sticks."""
        if self.at_once is None or branch is None:
            return self.at_once
        return self.at_once.holding(self.system.held(branch.decisions))

    def force_scale(self, branch: BranchEquations, kin: Kinematics, theta: FloatArray, order: int) -> float:
        """Return the norm of the largest force family; see `BranchEquations.force_scale`."""
        if self.at_once is None:
            return branch.force_scale(kin, theta, order)
        return self.at_once.force_scale(kin, theta, branch.decisions, order)

    def pattern(self, branch: BranchEquations) -> Pattern:
        """Return the pattern of these decisions; a new one only when their structure is new."""
        return self._patterns.get(
            branch.structure, lambda: self._build(branch, self._steady, self._owners.size, self._compressed)
        )

    def _build(
        self, branch: BranchEquations, steady: list[Pattern], n: int, compressed: IntArray | None = None
    ) -> Pattern:
        """Return the pattern of a branch: that of all that no decision changes, kept in ``steady``, and the rest."""
        system, first = self.system, len(self.system.terms)
        if not steady:
            terms = [t for t, s in zip(branch.terms[first:], branch.structure, strict=True) if s is None]
            entries = [term.pattern() for term in (*system.terms, *terms)]
            entries += [c.pattern(system.n + part.start) for c, part in system.parts]
            steady.append(Pattern.build(n, entries, compressed))
        varying = [t.pattern() for t, s in zip(branch.terms[first:], branch.structure, strict=True) if s is not None]
        return steady[0].extended(varying, compressed) if varying else steady[0]

    def assemble(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, branch: BranchEquations
    ) -> tuple[Pattern, FloatArray]:
        """Return the pattern and the values of the weighted Jacobian; the values are reused by the next call.

        Asked again for the same state, it does nothing: a line search may want the diagonal of what is factored next.
        """
        pattern = self.pattern(branch)
        asked = (kin, mu, theta, branch)
        last = self._asked
        if last is not None and weights == last[0] and all([a is b for a, b in zip(asked, last[1], strict=True)]):
            return pattern, self._data
        self._asked = None
        if self._data.size == pattern.nnz + 1:
            self._data[:] = 0.0
        else:
            self._data = pattern.new_data()
        at_once = self.holding(branch)
        if at_once is None:
            self._fill(pattern, self._data, (kin, mu, theta), weights, branch)
        else:
            self._data[:-1], *self._rows = at_once.matrix(pattern, kin, mu, theta, weights, branch.decisions)
        self._asked = weights, asked
        return pattern, self._data

    def mean_diagonal(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, branch: BranchEquations
    ) -> float:
        """Return the mean size of the diagonal of the weighted Jacobian at the free coordinates; one without any."""
        pattern, data = self.assemble(kin, mu, theta, weights, branch)
        diagonal = np.abs(data[pattern.diagonal[: self.free.size]])
        return float(diagonal.mean()) if diagonal.size and np.isfinite(diagonal).all() else 1.0

    def _fill(
        self,
        pattern: Pattern,
        data: FloatArray,
        given: tuple[Kinematics, FloatArray, FloatArray],
        weights: Weights,
        branch: BranchEquations,
    ) -> None:
        """Add all derivatives to ``data``, by the terms."""
        (kin, mu, theta), base = given, pattern.base
        steady = data if base is None else base.new_data()
        slots, places = iter((base or pattern).slots), iter(pattern.slots)
        structure = (*[None] * len(self.system.terms), *branch.structure)
        asked = {name for name, weight in zip("qva", (weights.q, weights.v, weights.a), strict=True) if weight}
        for term, varies in zip(branch.terms, structure, strict=True):
            values, at = (steady, next(slots)) if varies is None else (data, next(places))
            if not asked.isdisjoint(term.depends):
                term.jacobian(kin, theta, weights, values, at)
        for constraint, part in self.system.parts:
            constraint.jacobian(kin, mu[part], theta, weights, steady, next(slots))
        if base is not None:
            data[pattern.place] += steady[: base.nnz]
        if weights.q:
            for k, constraint in branch.stick_constraints:
                constraint.add_geometry(
                    kin, branch.reactions(k, mu), theta, weights.q, data, self._slots(pattern, branch, k)
                )

    def _slots(self, pattern: Pattern, branch: BranchEquations, deciding: int) -> IntArray:
        """Return the slots of the branch of a deciding term."""
        varying = [k for k, s in enumerate(branch.structure) if s is not None]
        if deciding in varying:
            return pattern.slots[varying.index(deciding)]
        number = len(self.system.terms) + deciding - sum(k < deciding for k in varying)
        if pattern.base is None or pattern.place is None:
            return pattern.slots[number]
        return np.append(pattern.place, pattern.nnz)[pattern.base.slots[number]]

    def within(self, free: IntArray, candidates: AllCandidates) -> tuple[Assembler, AllCandidates]:
        """Return one for some of the free coordinates alone, whose forces are the same, and what they may decide."""
        system, chosen = self.system, np.zeros(self.system.n, dtype=bool)
        chosen[free] = True
        near = candidates or (None,) * len(system.deciding)
        parts = [term.within(chosen, keys) for term, keys in zip(system.deciding, near, strict=True)]
        part = replace(system, deciding=tuple([term for term, _ in parts]))
        return Assembler(part, within=free), tuple([keys for _, keys in parts])

    def zones(self, branch: BranchEquations, order: int, together: bool = False) -> Zones:
        """Return the zones of the last matrix, that of a branch; one of all that is taken ``together``.

        A body is never divided: what is asked is which others it pushes now.
        """
        number = int(self._owners[-1]) + 1 if self._owners.size else 1
        if number == 1 or together:
            return Zones(1, np.zeros(self.free.size + branch.n_rows, dtype=np.int64), order)
        pattern = self.pattern(branch)
        if self._between[0] is not pattern:
            rows, columns = (
                self._owners[pattern.indices],
                self._owners[np.repeat(np.arange(pattern.n), np.diff(pattern.indptr))],
            )
            entries = np.flatnonzero(rows != columns)
            self._between = pattern, entries, rows[entries], columns[entries]
        _, entries, rows, columns = self._between
        joined = self._data[entries] != 0.0
        pairs = sp.coo_array((joined[joined], (rows[joined], columns[joined])), shape=(number, number))
        _, parts = connected_components(pairs, directed=False)
        _, labels = np.unique(parts[self._owners], return_inverse=True)  # bodies without unknowns are none
        return Zones(int(labels.max()) + 1, labels.astype(np.int64), order)

    def rounding(
        self,
        equations: StepEquations,
        kin: Kinematics,
        at: tuple[FloatArray, FloatArray],
        theta: FloatArray,
        branch: BranchEquations,
        order: int,
    ) -> float:
        """Return the size of stiffness times coordinates [N], which limits r by rounding; ``at`` are u and mu."""
        scale, (u, mu) = 0.0, at
        for weights, coordinates in ((equations.weights, u), (Weights(1.0, 0.0, 0.0), kin.q)):
            pattern, data = self.assemble(kin, mu, theta, weights, branch)
            sizes = np.zeros(pattern.n)
            sizes[: self.free.size] = np.abs(coordinates[self.free])
            scale += float(np.linalg.norm(abs(pattern.matrix(data)) @ sizes, order))
        return scale

    def by_state(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, branch: BranchEquations, weights: Weights
    ) -> Any:
        """Return the weighted derivative of r and the rows by (q, v, a), (n + n_rows, n), dense where that is small."""
        n, size = self.system.n, self.system.n + self.system.n_multipliers
        pattern = self._whole.get(branch.structure, lambda: self._build(branch, self._steady_whole, size))
        data = pattern.new_data()
        self._fill(pattern, data, (kin, mu, theta), weights, branch)
        matrix, first = pattern.matrix(data), size
        small = size <= DENSE_LIMIT  # where sparse matrices take longer to make than all else
        out: Any = np.zeros((branch.n_rows + n, n)) if small else matrix if size == n else matrix[:, :n]
        if small:
            out[:size] = matrix.toarray()[:, :n]
        for _, constraint in branch.stick_constraints:
            operators = constraint.operators(kin, theta)
            values = weights.q * operators.by_q + weights.v * operators.by_v
            rows, columns = np.arange(constraint.n_rows).reshape(-1, 3, 1), constraint.dofs[:, None]
            rows, columns, there = np.broadcast_arrays(rows, columns, columns >= 0)
            entries = values[there], (rows[there], columns[there])
            if small:
                np.add.at(out[first:], entries[1], entries[0])
            else:
                out = sp.vstack([out, sp.coo_array(entries, shape=(constraint.n_rows, n))], format="csc")
            first += constraint.n_rows
        return out

    def factor(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        weights: Weights,
        branch: BranchEquations,
        damping: float = 0.0,
    ) -> LinearSolve:
        """Assemble and factor; the result solves for free coordinates, multipliers and reactions.

        ``damping`` adds this multiple of the largest diagonal entry to all coordinates.

        Raises
        ------
        SolverError
            If the matrix is singular or not finite.
        """
        pattern, data = self.assemble(kin, mu, theta, weights, branch)
        self._asked = None  # damping and penalties change the values
        n_free = self.free.size
        diagonal = pattern.diagonal[:n_free]
        size = float(np.abs(data[diagonal]).mean()) if branch.stick_constraints else 0.0
        if damping:
            data[diagonal] += damping * np.abs(data[diagonal]).max()
        if not branch.stick_constraints:
            self.factorization.factor(pattern, data)
            return self.factorization
        exact = data.copy()
        penalty = PENALTY * size / weights.v
        if self.holding(branch) is None:
            by_v, by_u = self._held_by_terms((kin, theta), weights, branch, pattern, penalty)
        else:
            columns, rows = self._rows
            data[:-1] += penalty * (rows.T @ columns).ravel()[pattern.dense_positions]
            index = np.tile(np.arange(pattern.n), (rows.shape[0] // 3, 1))
            by_v, by_u = (Rows(index, x.reshape(-1, 3, pattern.n)) for x in (columns, rows))
        self.factorization.factor(pattern, data)
        return AugmentedSolve(self.factorization, pattern, exact, by_v, by_u, penalty)

    def _held_by_terms(
        self,
        at: tuple[Kinematics, FloatArray],
        weights: Weights,
        branch: BranchEquations,
        pattern: Pattern,
        penalty: float,
    ) -> tuple[Rows, Rows]:
        """Add the penalties on what is held to the values, and return its rows."""
        dofs, by_v, by_u = [], [], []
        for k, constraint in branch.stick_constraints:
            operators, slots = constraint.operators(*at), self._slots(pattern, branch, k)
            by_state = weights.q * operators.by_q + weights.v * operators.by_v
            constraint.add_products(penalty, operators.by_v, by_state, self._data, slots)
            dofs.append(constraint.dofs)
            by_v.append(operators.by_v)
            by_u.append(by_state)
        index = self._columns(dofs)
        return Rows(index, _stack(by_v)), Rows(index, _stack(by_u))

    def _columns(self, dofs: list[IntArray]) -> IntArray:
        """Return the unknowns (k, m) of coordinates, -1 for those that are not free; as wide as the widest."""
        wide = max(part.shape[1] for part in dofs)
        out = np.full((sum(part.shape[0] for part in dofs), wide), -1, dtype=np.int64)
        first = 0
        for part in dofs:
            place = out[first : first + part.shape[0], : part.shape[1]]
            place[...] = np.where(part >= 0, self._compressed[part], -1)
            first += part.shape[0]
        return out


def _stack(blocks: list[FloatArray]) -> FloatArray:
    """Return blocks (k, 3, m) of all parts, as wide as the widest."""
    if len(blocks) == 1:
        return blocks[0]
    wide = max(part.shape[2] for part in blocks)
    return np.concatenate([np.pad(part, ((0, 0), (0, 0), (0, wide - part.shape[2]))) for part in blocks])
