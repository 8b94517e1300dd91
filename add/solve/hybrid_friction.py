"""Hybrid friction within one step: what sticks is held by equations, what is held beyond Coulomb's limit is let go.

Geilinger et al. 2020, section 4.3. The step is first solved loosely with the linear law. Points that stick in that
solution are held, T v_rel = 0, and the step is solved again with the reactions as unknowns. Wherever the residual is
small, points whose reaction exceeds c_f f_n, or that touch no more, are released, one or several at a time, so that the
loop ends. Released points follow a stiffer linear law, which keeps the limit too. Those that creep by it at the end are
held again, once, and go on creeping unless all bear that.

Two things are added. What rests before the step is held at once, and what creeps then is let go; if all bear that, and
all else slips at the end, a step is one solve, not two. And where a body sticks at some points, holding all that touch
is tried first: under the linear law a box that creeps slips at its uphill corners, but once the others are held those
have no direction to slip in.

Reactions of sticking points that share coordinates, such as the corners of a box, are not unique. Those that count
minimise

    sum_i |reaction_i|^2 / (c_f f_n,i)      at the same generalised force,

in proportion to what each point can bear: plain least squares would load the uphill points of a box on a slope like the
downhill ones, and release them for nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from add.compiled.holding import ROUNDING, share_reactions
from add.compiled.newton import AT_ROUND_OFF, CONVERGED, GIVEN_UP, Criteria
from add.equations.family_term import NO_ROWS
from add.equations.kinematics import Kinematics
from add.equations.system import BranchEquations, System
from add.equations.term import Decision, StickConstraint
from add.kernels.sticking import beyond, groups, meet
from add.linalg.blas import addresses
from add.solve.newton import Point, Solve
from add.solve.proximal import flow
from add.solve.step_equations import NewtonReport, NewtonResult, Status
from add.typing import FloatArray, IntArray


def share_coordinates(system: System, constraints: Sequence[StickConstraint]) -> bool:
    """Return whether two sticking points act on one free coordinate; nodes with one contact each do not."""
    taken = np.zeros(system.n, dtype=np.int8)
    taken[system.partition.prescribed] = 2
    return any(meet(constraint.dofs, taken) for constraint in constraints)


@final
@dataclass(frozen=True)
class StickingPoints:
    """All sticking points of some constraints, with the free coordinates that their reactions act on.

    Attributes
    ----------
    constraints
    n_points : int
    column, point : (k,)
        Free coordinate and point of every entry of G^T.
    places : of each constraint, its point and place in `StickConstraint.dofs` of every entry
    """

    constraints: Sequence[StickConstraint]
    n_points: int
    column: IntArray
    point: IntArray
    places: list[tuple[IntArray, ...]]

    @classmethod
    def of(cls, system: System, constraints: Sequence[StickConstraint]) -> StickingPoints:
        """Collect the points of some stick constraints, in their order."""
        free = np.zeros(system.n + 1, dtype=bool)
        free[system.partition.free] = True
        places = [np.nonzero(free[constraint.dofs]) for constraint in constraints]  # no coordinate is -1, not free
        firsts = np.cumsum([0, *(constraint.n_rows // 3 for constraint in constraints)])
        columns = [constraint.dofs[place] for constraint, place in zip(constraints, places, strict=True)]
        points = [first + place[0] for first, place in zip(firsts, places, strict=False)]
        return cls(constraints, int(firsts[-1]), np.concatenate(columns), np.concatenate(points), places)

    @cached_property
    def label(self) -> IntArray:
        """Number of the group (n_points,) that each point is in: points of a group share coordinates in turn."""
        label = np.empty(self.n_points, dtype=np.int64)
        groups(self.column, self.point, label)
        return label

    def alone(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> FloatArray:
        """Return the reactions (n_points, 3) without what does nothing, along the normals; nothing is shared out."""
        parts, first = [], 0
        for constraint, (point, place) in zip(self.constraints, self.places, strict=True):
            rows = np.zeros((constraint.n_rows // 3, 3, constraint.dofs.shape[1]))
            rows[point, :, place] = constraint.operators(kin, theta).by_v[point, :, place]
            sizes, axes = np.linalg.eigh(rows @ rows.transpose(0, 2, 1))
            axes *= (sizes > ROUNDING * sizes[:, -1:])[:, None, :]
            mine, first = reactions[first : first + sizes.shape[0], :, None], first + sizes.shape[0]
            parts.append((axes @ (axes.transpose(0, 2, 1) @ mine))[:, :, 0])
        return np.concatenate(parts)

    def distribute(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray, limits: FloatArray) -> FloatArray:
        """Return the reactions (n_points, 3) that count, of which ``reactions`` are some with the same effect [N]."""
        shared, reactions = np.bincount(self.label) > 1, self.alone(kin, theta, reactions)
        rows = np.concatenate(
            [
                constraint.operators(kin, theta).by_v[point, :, place]
                for constraint, (point, place) in zip(self.constraints, self.places, strict=True)
            ]
        )
        for group in np.flatnonzero(shared):
            members = np.flatnonzero(self.label == group)
            entries = np.flatnonzero(self.label[self.point] == group)
            dofs, column = np.unique(self.column[entries], return_inverse=True)
            forces = np.zeros((members.size, 3, dofs.size))
            forces[np.searchsorted(members, self.point[entries]), :, column] = rows[entries]
            shares = reactions[members].ravel()
            share_reactions(addresses(), forces.reshape(shares.size, -1), limits[members], shares)
            reactions[members] = shares.reshape(-1, 3)
        return reactions


_log = logging.getLogger(__name__)

#: Share of a body's largest force family below which |r| is small enough to judge who is let go, which is for good:
#: reactions are then right to about this share. Who sticks in the linear law is judged at `LOOSE_SHARE`.
STICK_SHARE = 1e-6

#: Reactions beyond this multiple of Coulomb's limit are no matter of a residual that is not small yet.
BEARABLE = 1.5

#: How a compiled solve ended.
_STATUS = {CONVERGED: Status.CONVERGED, AT_ROUND_OFF: Status.ROUND_OFF, GIVEN_UP: Status.MAX_ITERATIONS}

#: A solve with stick constraints that takes longer finds no solution: an impact may leave none near by.
MOST_ITERATIONS = 25


def at_rest(work: Solve, before: Kinematics) -> BranchEquations | None:
    """Return decisions that hold what rests from the beginning of a step; None where nothing does."""
    system = work.system
    # Terms that never stick ignore what is said here.
    choices: list[Decision] = [NO_ROWS] * len(system.deciding)
    for k, term in system.sticking:
        choices[k] = term.at_rest(before, work.theta)
    branch = system.on_branch(tuple(choices), work.candidates)
    return branch if branch.stick_constraints else None


def still_sticking(work: Solve, resting: NewtonResult) -> NewtonResult | None:
    """Return the hybrid solution of a step in which what rests goes on resting; None if there is more to decide."""
    if not all(term.none_creeps(resting.branch.decisions[k]) for k, term in work.system.sticking):
        return None
    mu, limits = distribute_reactions(work, resting, resting.mu)
    return None if _release(work, resting, mu, limits) else replace(resting, mu=mu)


def solve_hybrid(work: Solve, linear: NewtonResult) -> NewtonResult:
    """Return the hybrid solution of a step, from the loose solution with the linear law.

    Where holding fails, the linear law's solution stands in for this step; ``report.attempt`` then says so.
    """
    system, given = work.system, work.kept
    u = linear.kin.q - work.equations.q_star
    decisions = list(linear.branch.decisions)
    for k, term in system.sticking:
        decisions[k] = term.stick(decisions[k])
    sticking = system.on_branch(tuple(decisions), work.candidates)
    history = list(linear.report.history)
    bodies = _whole_bodies(work, linear, sticking)
    if bodies is not None:
        fewer, start = _bearable(work, u, bodies, _first_reactions(work, linear, bodies), history)
        if fewer is None:
            result = _finish(work, linear, start, bodies, history, False)
            if result is not None:
                return result
    wanted: BranchEquations | None = sticking
    while wanted is not None:
        branch = wanted
        wanted, start = _bearable(work, u, branch, _first_reactions(work, linear, branch), history)
    return _finish(work, linear, start, branch, history, True) or _creeping(work, linear, given, history)


def _first_reactions(work: Solve, linear: NewtonResult, branch: BranchEquations) -> FloatArray:
    """Return the multipliers to begin with: the forces of the linear law."""
    at_once = work.assembler.holding(branch)
    if at_once is not None and branch.stick_constraints:
        rows = [at_once.reactions(linear.kin, None, work.theta, branch.decisions)[1]]
    else:
        rows = [constraint.first_guess(linear.kin, work.theta) for _, constraint in branch.stick_constraints]
    return np.concatenate([linear.mu[: work.system.n_multipliers], *rows])


def _whole_bodies(work: Solve, linear: NewtonResult, sticking: BranchEquations) -> BranchEquations | None:
    """Return ``sticking`` with all that touches on the same bodies; None if that adds nothing."""
    system, terms = work.system, dict(work.system.sticking)
    choices = list(linear.branch.decisions)
    for k, term in terms.items():
        choices[k] = term.stick_touching(choices[k])
    everything = system.on_branch(tuple(choices), work.candidates)
    constraints = everything.stick_constraints
    alone = [constraint for _, constraint in constraints]
    if everything.n_rows == sticking.n_rows or not share_coordinates(system, alone):
        return None
    points = StickingPoints.of(system, alone)
    already = np.concatenate([terms[k].is_sticking(choices[k], sticking.decisions[k]) for k, _ in constraints])
    groups = np.bincount(points.label, already) > 0
    wanted = groups[points.label]
    if wanted.sum() == already.sum():
        return None
    first = 0
    for k, constraint in constraints:
        part = wanted[first : first + constraint.n_rows // 3]
        choices[k] = terms[k].without(choices[k], ~part)
        first += constraint.n_rows // 3
    return system.on_branch(tuple(choices), work.candidates)


def _finish(
    work: Solve, linear: NewtonResult, point: Point, branch: BranchEquations, history: list[float], releasing: bool
) -> NewtonResult | None:
    """Return the solution on this branch, or with fewer stick constraints if ``releasing``; None if there is none."""
    released = False
    while True:
        work.kept = branch
        # First as far as the reactions may be judged, then to the end, which may still release a point.
        for share in (STICK_SHARE, 0.0):
            result = iterate_held(work, point, linear.report.attempt, share)
            history += result.report.history[1:]
            if not result.report.status.success and released:
                # With more constraints the solution may lie across a kink; in that of the linear law points slip.
                point = Point(work, linear.kin.q - work.equations.q_star, _first_reactions(work, linear, branch))
                result = iterate_held(work, point, linear.report.attempt, share)
                history += result.report.history[1:]
            if not result.report.status.success:
                return None
            u, (mu, limits) = result.kin.q - work.equations.q_star, distribute_reactions(work, result, result.mu)
            following = _release(work, result, mu, limits)
            if following is not None or result.report.residual <= work.tolerance(result):
                break
            point = Point(work, u, mu)
        if following is None:
            again = _held_again(work, result, history) if releasing else None
            result, mu = again or (result, mu)
            report = replace(result.report, history=tuple(history), iterations=len(history) - 1)
            return replace(result, mu=mu, report=report)
        if not releasing:
            return None
        branch, mu = following
        released = True
        work.kept = branch
        point = Point(work, u, mu)


def _held_again(work: Solve, result: NewtonResult, history: list[float]) -> tuple[NewtonResult, FloatArray] | None:
    """Return the solution in which what creeps is held again, with its reactions; None unless all bear that.

    Of several that could not bear to be held together, some can once others are let go.
    """
    decisions = list(result.branch.decisions)
    for k, term in work.system.sticking:
        decisions[k] = term.stick(decisions[k])
    branch = work.system.on_branch(tuple(decisions), work.candidates)
    if branch.n_rows == result.branch.n_rows:
        return None
    let_go, u = work.kept, result.kin.q - work.equations.q_star
    wanted, start = _bearable(work, u, branch, _first_reactions(work, result, branch), history)
    if wanted is None:
        again = iterate_held(work, start, result.report.attempt, 0.0)
        history += again.report.history[1:]
        if again.report.status.success:
            mu, limits = distribute_reactions(work, again, again.mu)
            if _release(work, again, mu, limits) is None:
                return again, mu
    work.kept = let_go
    return None


def iterate_held(work: Solve, point: Point, attempt: int, share: float) -> NewtonResult:
    """Return the solution on the branch that is kept, in one compiled call where there is one, and that converges."""
    kept, scale = work.kept, work.loose_scale
    at_once = None if kept is None or scale is None else work.assembler.holding(kept)
    if kept is None or at_once is None or scale is None or work.limits is not None:
        return work.iterate(point, 0.0, attempt, share, MOST_ITERATIONS)
    options, equations, n = work.options, work.equations, point.u.size
    tolerance = work.tolerance(point)
    # As loose as is enough, whichever body it is of.
    criteria = Criteria(max(tolerance, share * scale), 0.0, options.reuse, options.norm, MOST_ITERATIONS)
    status, iterations, factorizations, u, r, merits, decisions = at_once.iterate(
        (equations.t, equations.c, equations.q_star, equations.v_star), criteria, work.theta,
        np.concatenate([point.u, point.mu]), kept.decisions, work.scale(point),
    )  # fmt: skip
    if status == GIVEN_UP and iterations < MOST_ITERATIONS:  # for what only terms try
        return work.iterate(point, 0.0, attempt, share, MOST_ITERATIONS)
    work.factorizations += factorizations
    free = work.free
    report = NewtonReport(
        _STATUS[status], iterations, work.factorizations,
        float(merits[-1]), tolerance, int(free[np.argmax(np.abs(r[free]))]), attempt, tuple(merits.tolist()),
    )  # fmt: skip
    branch = work.system.on_branch(decisions, work.candidates)
    return NewtonResult(equations.kinematics(u[:n]), u[n:], branch, report)


def _bearable(
    work: Solve, u: FloatArray, branch: BranchEquations, mu: FloatArray, history: list[float]
) -> tuple[BranchEquations | None, Point]:
    """Return the branch without the points that one iteration shows far beyond Coulomb's limit; None if all bear.

    Where the linear law is weak, points that creep fast count as sticking in it. Stopping them within the step may have
    no solution near by: the body would topple over them. From the linear solution they begin to slip the right way.
    If all bear, the point to go on from is behind that iteration.
    """
    work.kept = branch
    point = Point(work, u, mu)
    if mu.size == work.system.n_multipliers:
        return None, point
    move = work.direction(point, 0.0)
    if move is None:
        return None, point
    following = _release(work, point, *distribute_reactions(work, point, mu + move[1]), BEARABLE)
    if following is not None:
        history.append(point.merit)
        return following[0], point
    moved = u.copy()
    length = work.length(point, move[0])
    moved[work.free] += length * move[0]
    ahead = Point(work, moved, mu + length * move[1])
    if ahead.merit < point.merit:
        history.append(ahead.merit)
        return None, ahead
    return None, point


def _creeping(work: Solve, linear: NewtonResult, given: BranchEquations | None, history: list[float]) -> NewtonResult:
    """Return the tight solution with the linear law, on the faces that the loose one was ``given``."""
    _log.info("step %d: sticking points creep, since holding them failed", work.equations.step)
    work.kept = given
    point = Point(work, linear.kin.q - work.equations.q_star, linear.mu)
    result = work.iterate(point, 0.0, linear.report.attempt + 1)
    history += result.report.history[1:]
    if not result.report.status.success:
        result = flow(work, point, linear.report.attempt + 2, 0.0)
        history += result.report.history[1:]
    return replace(result, report=replace(result.report, history=tuple(history), iterations=len(history) - 1))


def _release(
    work: Solve, at: Point | NewtonResult, mu: FloatArray, limits: FloatArray, margin: float = 1.0
) -> tuple[BranchEquations, FloatArray] | None:
    """Return the branch without the points beyond Coulomb's limit, and the other reactions; None if all stick."""
    system, terms = work.system, dict(work.system.sticking)
    decisions, first = list(at.branch.decisions), 0
    kept, changed = [mu[: system.n_multipliers]], False
    for k, constraint in at.branch.stick_constraints:
        reactions, last = at.branch.reactions(k, mu).reshape(-1, 3), first + constraint.n_rows // 3
        free, first = beyond(reactions, limits[first:last], margin), last
        if free.any():
            decisions[k] = terms[k].release(decisions[k], free)
            changed = True
        kept.append(reactions[~free].ravel())
    if not changed:
        return None
    return system.on_branch(tuple(decisions), work.candidates), np.concatenate(kept)


def distribute_reactions(work: Solve, at: Point | NewtonResult, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return multipliers with the reactions that count, of which ``mu`` are some, and what each point can bear [N].

    See `add.solve.hybrid_friction`; a limit below zero is that of a point that does not touch.
    """
    system, first = work.system, work.system.n_multipliers
    at_once = work.assembler.holding(at.branch)
    constraints = [constraint for _, constraint in at.branch.stick_constraints]
    if not constraints:
        return mu, np.zeros(0)
    if at_once is not None:
        limits, reactions = at_once.reactions(at.kin, mu, work.theta, at.branch.decisions)
        return np.concatenate([mu[:first], reactions]), limits
    limits = np.concatenate([constraint.limits(at.kin, work.theta) for constraint in constraints])
    points, reactions = StickingPoints.of(system, constraints), mu[first:].reshape(-1, 3)
    if share_coordinates(system, constraints):
        reactions = points.distribute(at.kin, work.theta, reactions, limits)
    else:
        reactions = points.alone(at.kin, work.theta, reactions)
    return np.concatenate([mu[:first], reactions.ravel()]), limits
