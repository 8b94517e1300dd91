"""Whole checks: of a term, a constraint, a force with branches."""

from dataclasses import replace
from typing import Unpack

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.term import Constraint, DecidingTerm, Decision, Term
from add.testing import parts
from add.testing.differences import assert_equal, half_width
from add.typing import FloatArray


def check_term(
    term: Term,
    kin: Kinematics,
    theta: FloatArray,
    *,
    energy: bool = False,
    **options: Unpack[parts.Options],
) -> parts.Sensitivity:
    """Check everything that `Term` promises, at one state.

    - every weight of ``jacobian`` against differences of ``residual``, entries outside the pattern included;
    - ``jacobian`` is linear in the weights, adds, and writes to the given slots alone;
    - every asked-for entry of theta, by ``parameter_jvp`` and ``parameter_vjp``, against differences;
    - ``state_vjp`` against that Jacobian;
    - all methods add to what they are given, and leave their arguments alone;
    - what ``depends`` does not name is not read: it is NaN in one evaluation;
    - optionally, that ``energy`` is what the residual is the gradient of.

    Parameters
    ----------
    term : Term
    kin : Kinematics
        A general state: deformed, moving, accelerated, t > 0.
    theta : (n_theta,)
    rng : Generator
    rtol : float
        Relative to the largest entry of each column of a derivative.
    parameters : entries of theta that differences are taken by; default all
        Leave out those at the edge of their domain, like a friction coefficient of zero.
    scales : dict, optional
        Size of "q" [m], "v" [m/s], "a" [m/s2], of which differences take a fraction; default half the spread of the
        values.
    sizes : step sizes of the differences, as fractions of ``scales``
    energy : bool
        Whether dE/dq = r is to hold at this state (false for terms that also dissipate).
    layout : ParameterLayout, optional
        Names the entries of theta in messages.

    Returns
    -------
    Sensitivity
        What the term depended on here: assert that it is what you meant to check.

    Raises
    ------
    AssertionError
        Names the derivative, the entries and the numbers.
    """
    equations = parts.Equations(
        type(term).__name__,
        kin.q.size,
        term.pattern(),
        lambda kin, mu, theta, out: term.residual(kin, theta, out),
        lambda kin, mu, theta, weights, data, slots: term.jacobian(kin, theta, weights, data, slots),
        lambda kin, mu, theta, lam, out: term.parameter_vjp(kin, theta, lam, out),
        lambda kin, mu, theta, theta_dot, out: term.parameter_jvp(kin, theta, theta_dot, out),
        kin,
        np.zeros(0),
        theta,
        **options,
    )
    parts.assert_depends(term, kin, theta)
    matrices, sensitivity = equations.check("qva")
    for argument, matrix in matrices.items():
        if argument not in term.depends:
            assert not matrix.any(), f"{equations.name}: dr/d{argument} is not zero, but depends = {term.depends!r}"
    parts.assert_state_products(term, equations, matrices)
    if energy:
        parts.assert_energy(term, equations)
    return sensitivity


def check_constraint(
    constraint: Constraint,
    kin: Kinematics,
    mu: FloatArray,
    theta: FloatArray,
    *,
    reaction: float = 1.0,
    **options: Unpack[parts.Options],
) -> parts.Sensitivity:
    """Check everything that `Constraint` promises, at one state: as `check_term`, with multipliers.

    Rows and columns past the coordinates are the multipliers'.  Besides what `check_term` checks, the force must be
    G^T mu with the G of c: d(G^T mu)/dmu = (dc/dv)^T, or (dc/dq)^T for constraints on q alone, times ``reaction``.

    Parameters
    ----------
    constraint : Constraint
    kin : Kinematics
    mu : (n_rows,)
        Multipliers, not zero.
    theta : (n_theta,)
    rng, rtol, parameters, scales, sizes, layout
        As in `check_term`; ``scales`` knows "multiplier" [N], too.
    reaction : force of a unit multiplier over that of the row's own unit

    Returns
    -------
    Sensitivity
    """
    n = kin.q.size
    equations = parts.Equations(
        type(constraint).__name__,
        n,
        constraint.pattern(n),
        lambda kin, mu, theta, out: constraint.residual(kin, mu, theta, out[:n], out[n:]),
        constraint.jacobian,
        lambda kin, mu, theta, lam, out: constraint.parameter_vjp(kin, mu, theta, lam[:n], lam[n:], out),
        lambda kin, mu, theta, dot, out: constraint.parameter_jvp(kin, mu, theta, dot, out[:n], out[n:]),
        kin,
        mu,
        theta,
        **options,
    )
    m, name = constraint.n_rows, equations.name
    assert m == mu.size, f"{name}: n_rows is {m}, but {mu.size} multipliers are given"
    matrices, sensitivity = equations.check(("q", "v", "a", "multiplier"))
    by_state = matrices["v"][n:, :n] if matrices["v"][n:].any() else matrices["q"][n:, :n]
    by_force = matrices["multiplier"][:n, n:]
    assert_equal(by_force, reaction * by_state.T, f"{name}: the force is not G^T mu with the G of c")
    return sensitivity


def check_deciding_term(
    term: DecidingTerm,
    kin: Kinematics,
    theta: FloatArray,
    *,
    nearby: float = 1e-6,
    **options: Unpack[parts.Options],
) -> tuple[Decision, parts.Sensitivity]:
    """Check everything that `DecidingTerm` promises, at one state.

    - ``decide`` and ``decided_residual`` decide alike, and ``decided_residual`` and ``frozen`` never change a decision;
    - the frozen residual is the decided one, here and at nearby states with the same decision;
    - ``forces`` is minus the residual; equal ``structure`` means equal pattern;
    - the frozen term passes `check_term`.

    Parameters
    ----------
    term : DecidingTerm
    kin, theta, rng, rtol, parameters, scales, sizes, layout
        As in `check_term`.
    nearby : float
        Relative distance of the nearby states.

    Returns
    -------
    decision : Decision
        What was decided: assert that it holds the branches you mean, e.g. by ``term.describe(decision)``.
    Sensitivity
        That of the frozen term.
    """
    name = type(term).__name__
    decision = term.decide(kin, theta)
    kept = decision.copy()
    branch = term.on_branch(decision)
    places = [kin]
    for _ in range(4):
        q = kin.q + nearby * half_width(kin.q) * options["rng"].normal(size=kin.q.size)
        v = kin.v + nearby * half_width(kin.v) * options["rng"].normal(size=kin.v.size)
        places.append(replace(kin, q=q, v=v))
    for place in places:
        r = np.zeros(kin.q.size)
        made = term.decided_residual(place, theta, r)
        same = np.array_equal(made, term.decide(place, theta))
        assert same, f"{name}: decide and decided_residual decide differently"
        hash(term.structure(made))
        assert_equal(term.forces(place, theta), -r, f"{name}: forces is not minus the residual")
        if np.array_equal(made, kept):
            held = np.zeros(kin.q.size)
            branch.residual(place, theta, held)
            assert_equal(held, r, f"{name}: the frozen residual is not the decided one")
        if term.structure(made) == term.structure(decision):
            for mine, other in zip(branch.pattern(), term.on_branch(made).pattern(), strict=True):
                assert np.array_equal(mine, other), f"{name}: equal structure, but another pattern"
        poisoned = np.full(kin.q.size, np.nan)
        term.decided_residual(place, theta, poisoned)
        parts.assert_all_nan(poisoned, f"{name}.decided_residual")
    assert np.array_equal(term.decide(kin, theta), kept), f"{name}: deciding twice gives two decisions"
    sensitivity = check_term(branch, kin, theta, **options)
    assert np.array_equal(decision, kept), f"{name}: evaluating the frozen term changed its decision"
    for key, count in term.describe(decision).items():
        assert isinstance(count, int) and count >= 0, f"{name}.describe: {key} = {count!r} is not a count"
    return decision, sensitivity
