"""A system on one set of branches: the smooth equations that Newton linearises and that the sweeps go back through."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.tangents import Columns, Directions, ThetaMap, push
from add.equations.term import UNIT, Constraint, Decisions, KinematicCotangent, StickConstraint, Term
from add.linalg.pattern import add_product
from add.typing import FloatArray

if TYPE_CHECKING:
    from add.equations.system import System


@final
class BranchEquations:
    """r(q, v, a, mu; theta, t) = 0 and c(q, v; theta, t) = 0 with every decision made.

    Made once for an iterate, so that terms and holds may keep what they have evaluated there.

    Attributes
    ----------
    system : System
    decisions : Decisions
    terms : tuple of Term
        All terms; those of the deciding ones last, frozen.
    holds : list of (int, Hold)
        The deciding terms, by number, that hold anything, with the equations that hold it.
    parts : list of (Constraint, slice)
        The constraints, then the holds, with their multipliers.
    n_rows : int
        Number of multipliers: those of the constraints, then the reactions of what is held.
    """

    def __init__(self, system: System, decisions: Decisions) -> None:
        self.system, self.decisions = system, decisions
        deciding = system.deciding
        self.terms: tuple[Term, ...] = system.terms
        if deciding:
            self.terms += tuple([d.on_branch(x) for d, x in zip(deciding, decisions, strict=True)])
        self.parts: list[tuple[Constraint, slice]] = system.parts
        self.holds: list[tuple[int, StickConstraint]] = []
        self.n_rows = system.n_multipliers
        self._structure: tuple[Hashable, ...] | None = None
        if system.is_hybrid:
            for k, (term, decision) in enumerate(zip(deciding, decisions, strict=True)):
                hold = term.held(decision)
                if hold is not None:
                    self.holds.append((k, hold))
                    first, self.n_rows = self.n_rows, self.n_rows + hold.n_rows
                    self.parts = [*self.parts, (hold, slice(first, self.n_rows))]

    @property
    def structure(self) -> tuple[Hashable, ...]:
        """What the sparsity depends on."""
        if self._structure is None:
            pairs = zip(self.system.deciding, self.decisions, strict=True)
            self._structure = tuple([term.structure(decision) for term, decision in pairs])
        return self._structure

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return r (n,) and the rows (n_rows,)."""
        r = np.zeros(self.system.n)
        for term in self.terms:
            term.residual(kin, theta, r)
        return r, self.rows(kin, mu, theta, r)

    def rows(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, r: FloatArray) -> FloatArray:
        """Add the forces of constraints and holds to ``r`` and return the rows (n_rows,)."""
        rows = np.zeros(mu.size)
        for constraint, part in self.parts:
            constraint.residual(kin, mu[part], theta, r, rows[part])
        return rows

    def reactions(self, k: int, mu: FloatArray) -> FloatArray:
        """Return the part of the multipliers that are reactions of what deciding term number ``k`` holds [N]."""
        for (j, _), (_, part) in zip(self.holds, self.parts[len(self.system.parts) :], strict=True):
            if j == k:
                return mu[part]
        return np.zeros(0)

    def decided_forces(self, k: int, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the generalised forces (n,) of deciding term number ``k``, reactions included [N]."""
        r = np.zeros(self.system.n)
        self.terms[len(self.system.terms) + k].residual(kin, theta, r)
        for j, hold in self.holds:
            if j == k:
                hold.residual(kin, self.reactions(k, mu), theta, r, np.zeros(hold.n_rows))
        return -r

    def force_scale(self, kin: Kinematics, theta: FloatArray, order: int) -> float:
        """Return the norm of the largest force family at ``kin`` [N]: what |r| has to be small against."""
        forces = np.zeros((len(self.terms), self.system.n))
        for term, force in zip(self.terms, forces, strict=True):
            term.residual(kin, theta, force)
        return largest_norm(forces, order)

    def state_vjp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        lam: FloatArray,
        lam_rows: FloatArray,
        wanted: str = "qva",
    ) -> KinematicCotangent:
        """Return the cotangents lam^T dr/d(q, v, a) + lam_rows^T dc/d(q, v, a)."""
        n = self.system.n
        out = KinematicCotangent.zeros(n)
        for term in self.terms:
            term.state_vjp(kin, theta, lam, out, wanted)
        if not self.parts:
            return out
        extended = np.concatenate([lam, lam_rows])
        for constraint, part in self.parts:
            rows, cols = constraint.pattern(n + part.start)
            for name, weights in UNIT:
                if name in wanted:
                    values = np.zeros(rows.size)
                    constraint.jacobian(kin, mu[part], theta, weights, values, np.arange(rows.size))
                    wide = np.zeros(n + mu.size)
                    add_product(cols, rows, values, extended, wide)
                    getattr(out, name)[:] += wide[:n]
        return out

    def parameter_vjp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        lam: FloatArray,
        lam_rows: FloatArray,
        out: FloatArray,
    ) -> None:
        """Add lam^T dr/dtheta + lam_rows^T dc/dtheta to ``out``."""
        for term in self.terms:
            term.parameter_vjp(kin, theta, lam, out)
        for constraint, part in self.parts:
            constraint.parameter_vjp(kin, mu[part], theta, lam, lam_rows[part], out)

    def parameter_tangents(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, directions: Directions) -> Columns:
        """Return the tangents of r and the rows, (n + n_rows, k), along directions of theta."""
        n = self.system.n

        def of_term(term: Term) -> ThetaMap:
            return ThetaMap(
                lambda dot, out: term.parameter_jvp(kin, theta, dot, out[:n]),
                lambda bar, out: term.parameter_vjp(kin, theta, bar[:n], out),
            )

        def of_constraint(constraint: Constraint, part: slice) -> ThetaMap:
            return ThetaMap(
                lambda dot, out: constraint.parameter_jvp(kin, mu[part], theta, dot, out[:n], out[n:][part]),
                lambda bar, out: constraint.parameter_vjp(kin, mu[part], theta, bar[:n], bar[n:][part], out),
            )

        maps = [of_term(term) for term in self.terms]
        maps += [of_constraint(constraint, part) for constraint, part in self.parts]
        return push(maps, n + mu.size, directions)


def largest_norm(forces: FloatArray, order: int) -> float:
    """Return the largest L1 or L2 norm of the rows."""
    sums = np.einsum("kn,kn->k", forces, forces) if order == 2 else np.abs(forces).sum(axis=1)
    largest = float(sums.max(initial=0.0))
    return largest**0.5 if order == 2 else largest
