"""Derivative checks for people who add a term, a constraint or a map: every claim of the contract against differences.

All checks raise `AssertionError` with the weight, the entries and the numbers.  Differences are central and of fourth
order; of several step sizes the best counts, since truncation spoils large ones and round-off small ones.  A check is
worth as much as the state it is made at: give a deformed, moving state, and assert that the branch you mean is active.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.kinematics import Kinematics, Weights
from add.layout import ParameterLayout
from add.system import Constraint, DecidingTerm, Decision, KinematicCotangent, Term
from add.typing import FloatArray, IntArray

#: Step sizes of the differences, relative to the size of what is changed.
SIZES = (1e-2, 1e-3, 1e-4, 1e-5)

#: Differences of round-off size are no derivatives: this many units of it are forgiven.
_ROUND_OFF = 64.0 * np.finfo(float).eps

_UNIT = {
    "q": Weights(1.0, 0.0, 0.0),
    "v": Weights(0.0, 1.0, 0.0),
    "a": Weights(0.0, 0.0, 1.0),
    "multiplier": Weights(0.0, 0.0, 0.0, 1.0),
}


@final
@dataclass(frozen=True)
class Sensitivity:
    """What a checked term turned out to depend on, so that a test can assert that it was not checked where it is idle.

    Attributes
    ----------
    q, v, a, multiplier : float
        Largest entry of each derivative, by size.
    parameters : sorted indices in theta that have a derivative other than zero
    """

    q: float
    v: float
    a: float
    multiplier: float
    parameters: tuple[int, ...]


def central_difference(
    f: Callable[[FloatArray], FloatArray], x: FloatArray, direction: FloatArray, h: float
) -> FloatArray:
    """Return the derivative of ``f`` at ``x`` along ``direction``, to order h^4.

    (8 (f(x + h d) - f(x - h d)) - (f(x + 2 h d) - f(x - 2 h d))) / (12 h)
    """
    near = f(x + h * direction) - f(x - h * direction)
    far = f(x + 2.0 * h * direction) - f(x - 2.0 * h * direction)
    return (8.0 * near - far) / (12.0 * h)


def taylor_rates(
    f: Callable[[FloatArray], float],
    slope: float,
    x: FloatArray,
    direction: FloatArray,
    sizes: Sequence[float] | FloatArray,
) -> FloatArray:
    """Return the observed orders of the Taylor remainder |f(x + h d) - f(x) - h slope|.

    Two for a right slope of a smooth function, one for a wrong one; nonsense where ``f`` is linear along ``direction``
    or where ``sizes`` are so small that round-off rules.

    Parameters
    ----------
    f : function of (n,)
    slope : float
        Claimed derivative along ``direction``.
    x, direction : (n,)
    sizes : (k,) falling step sizes h

    Returns
    -------
    (k - 1,)

    Examples
    --------
    >>> x, d = np.array([0.3]), np.array([1.0])
    >>> taylor_rates(lambda x: float(np.exp(x[0])), np.exp(0.3), x, d, [1e-2, 5e-3, 2.5e-3]).round(1)
    array([2., 2.])
    >>> taylor_rates(lambda x: float(np.exp(x[0])), 1.0, x, d, [1e-2, 5e-3, 2.5e-3]).round(1)
    array([1., 1.])
    """
    h = np.asarray(sizes, dtype=float)
    value = f(x)
    remainders = np.array([abs(f(x + size * direction) - value - size * slope) for size in h])
    return np.asarray(np.log(remainders[:-1] / remainders[1:]) / np.log(h[:-1] / h[1:]))


def check_pullback(
    f: Callable[[FloatArray], FloatArray],
    jvp: Callable[[FloatArray, FloatArray], FloatArray],
    vjp: Callable[[FloatArray, FloatArray], FloatArray],
    x: FloatArray,
    *,
    rng: np.random.Generator,
    rtol: float = 1e-6,
    scale: FloatArray | float | None = None,
    sizes: Sequence[float] = SIZES,
    entries: Sequence[int] | IntArray | None = None,
) -> FloatArray:
    """Check a map's push-forward by differences and its pull-back by the dot product y_bar . (dy/dx x_dot).

    Parameters
    ----------
    f : (n,) -> (m,)
    jvp : (x, x_dot) -> y_dot
    vjp : (x, y_bar) -> x_bar
    x : (n,)
    rng : Generator
    rtol : float
        Relative to the largest entry of each column of dy/dx.
    scale : (n,) or float, optional
        Size of x, of which differences take a fraction; default |x_i|, one where that is zero.
    sizes : step sizes, as fractions of ``scale``
    entries : entries of x that differences are taken by; default all

    Returns
    -------
    (m, n)
        The Jacobian by ``jvp``, whose columns are zero for entries that were not asked for.
    """
    steps = _steps(x, scale)
    n = x.size
    y = f(x)
    matrix = np.zeros((y.size, n))
    indices = range(n) if entries is None else [int(i) for i in entries]
    for i in indices:
        unit = _unit(n, i)
        matrix[:, i] = jvp(x, unit)
        error = _best(f, x, unit * steps[i], matrix[:, i] * steps[i], sizes, 0.0)
        assert error.relative <= rtol, f"jvp by entry {i}: {error}"
    mask = np.isin(np.arange(n), indices)
    for _ in range(2):
        y_bar, x_dot = rng.normal(size=y.size), rng.normal(size=n) * steps * mask
        y_dot, x_bar = jvp(x, x_dot), vjp(x, y_bar)
        _equal(y_dot, matrix @ x_dot, "jvp is not linear in the tangent")
        _equal(x_bar[mask] * steps[mask], (matrix.T @ y_bar)[mask] * steps[mask], "vjp against jvp (transposed)")
    return matrix


def check_term(
    term: Term,
    kin: Kinematics,
    theta: FloatArray,
    *,
    rng: np.random.Generator,
    rtol: float = 1e-6,
    parameters: Sequence[int] | IntArray | None = None,
    scales: dict[str, float] | None = None,
    sizes: Sequence[float] = SIZES,
    energy: bool = False,
    layout: ParameterLayout | None = None,
) -> Sensitivity:
    """Check everything that `Term` promises, at one state.

    - every weight of ``jacobian`` against differences of ``residual``, entries outside the pattern included;
    - ``jacobian`` is linear in the weights, adds, and writes to the given slots alone;
    - every asked-for entry of theta, by ``parameter_jvp`` and ``parameter_vjp``, against differences;
    - ``state_vjp`` and ``state_jvp`` against that Jacobian and against each other;
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
    name = type(term).__name__
    equations = _Equations(
        name,
        kin.q.size,
        0,
        term.pattern(),
        lambda kin, mu, theta, out: term.residual(kin, theta, out),
        lambda kin, mu, theta, weights, data, slots: term.jacobian(kin, theta, weights, data, slots),
        lambda kin, mu, theta, lam, out: term.parameter_vjp(kin, theta, lam, out),
        lambda kin, mu, theta, theta_dot, out: term.parameter_jvp(kin, theta, theta_dot, out),
        layout,
    )
    before = [x.copy() for x in (kin.q, kin.v, kin.a, theta)]
    mu = np.zeros(0)
    _check_depends(term, kin, theta)
    _check_accumulation(equations, kin, mu, theta, rng)
    matrices = _check_state(equations, kin, mu, theta, ("q", "v", "a"), scales or {}, sizes, rtol)
    for argument, matrix in matrices.items():
        if argument not in term.depends:
            assert not matrix.any(), f"{name}: dr/d{argument} is not zero, but depends = {term.depends!r}"
    _check_assembly(equations, kin, mu, theta, matrices, rng)
    found = _check_parameters(equations, kin, mu, theta, parameters, sizes, rtol, rng)
    _check_state_products(term, kin, theta, matrices, rng)
    if energy:
        _check_energy(term, kin, theta, (scales or {}).get("q"), sizes, rtol)
    for what, x, old in zip(("q", "v", "a", "theta"), (kin.q, kin.v, kin.a, theta), before, strict=True):
        assert np.array_equal(x, old, equal_nan=True), f"{name}: a method changed its argument {what}"
    return _sensitivity(matrices, found)


def check_constraint(
    constraint: Constraint,
    kin: Kinematics,
    mu: FloatArray,
    theta: FloatArray,
    *,
    rng: np.random.Generator,
    rtol: float = 1e-6,
    parameters: Sequence[int] | IntArray | None = None,
    scales: dict[str, float] | None = None,
    sizes: Sequence[float] = SIZES,
    layout: ParameterLayout | None = None,
) -> Sensitivity:
    """Check everything that `Constraint` promises, at one state: as `check_term`, with multipliers.

    Rows and columns past the coordinates are the multipliers'.  Besides what `check_term` checks, the force must be
    G^T mu with the G of c: d(G^T mu)/dmu = (dc/dq)^T (for constraints on q; (dc/dv)^T for those on v alone).

    Parameters
    ----------
    constraint : Constraint
    kin : Kinematics
    mu : (n_rows,)
        Multipliers, not zero.
    theta : (n_theta,)
    rng, rtol, parameters, scales, sizes, layout
        As in `check_term`; ``scales`` knows "multiplier" [N], too.

    Returns
    -------
    Sensitivity
    """
    n, m = kin.q.size, constraint.n_rows
    equations = _Equations(
        type(constraint).__name__,
        n,
        m,
        constraint.pattern(n),
        lambda kin, mu, theta, out: constraint.residual(kin, mu, theta, out[:n], out[n:]),
        constraint.jacobian,
        lambda kin, mu, theta, lam, out: constraint.parameter_vjp(kin, mu, theta, lam[:n], lam[n:], out),
        lambda kin, mu, theta, dot, out: constraint.parameter_jvp(kin, mu, theta, dot, out[:n], out[n:]),
        layout,
    )
    assert m == mu.size, f"{equations.name}: n_rows is {m}, but {mu.size} multipliers are given"
    before = [x.copy() for x in (kin.q, kin.v, kin.a, mu, theta)]
    _check_accumulation(equations, kin, mu, theta, rng)
    matrices = _check_state(equations, kin, mu, theta, ("q", "v", "a", "multiplier"), scales or {}, sizes, rtol)
    _check_assembly(equations, kin, mu, theta, matrices, rng)
    by_state = matrices["q"][n:, :n] if matrices["q"][n:].any() else matrices["v"][n:, :n]
    _equal(matrices["multiplier"][:n, n:], by_state.T, f"{equations.name}: the force is not G^T mu with the G of c")
    found = _check_parameters(equations, kin, mu, theta, parameters, sizes, rtol, rng)
    for x, old in zip((kin.q, kin.v, kin.a, mu, theta), before, strict=True):
        assert np.array_equal(x, old), f"{equations.name}: a method changed an argument"
    return _sensitivity(matrices, found)


def check_deciding_term(
    term: DecidingTerm,
    kin: Kinematics,
    theta: FloatArray,
    *,
    rng: np.random.Generator,
    nearby: float = 1e-6,
    rtol: float = 1e-6,
    parameters: Sequence[int] | IntArray | None = None,
    scales: dict[str, float] | None = None,
    sizes: Sequence[float] = SIZES,
    layout: ParameterLayout | None = None,
) -> tuple[Decision, Sensitivity]:
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
    frozen = term.frozen(decision)
    places = [kin]
    for _ in range(4):
        q = kin.q + nearby * _half_width(kin.q) * rng.normal(size=kin.q.size)
        v = kin.v + nearby * _half_width(kin.v) * rng.normal(size=kin.v.size)
        places.append(replace(kin, q=q, v=v))
    for place in places:
        r = np.zeros(kin.q.size)
        made = term.decided_residual(place, theta, r)
        same = np.array_equal(made, term.decide(place, theta))
        assert same, f"{name}: decide and decided_residual decide differently"
        hash(term.structure(made))
        _equal(term.forces(place, theta), -r, f"{name}: forces is not minus the residual")
        if np.array_equal(made, kept):
            held = np.zeros(kin.q.size)
            frozen.residual(place, theta, held)
            _equal(held, r, f"{name}: the frozen residual is not the decided one")
        if term.structure(made) == term.structure(decision):
            for mine, other in zip(frozen.pattern(), term.frozen(made).pattern(), strict=True):
                assert np.array_equal(mine, other), f"{name}: equal structure, but another pattern"
        poisoned = np.full(kin.q.size, np.nan)
        term.decided_residual(place, theta, poisoned)
        _all_nan(poisoned, f"{name}.decided_residual")
    assert np.array_equal(term.decide(kin, theta), kept), f"{name}: deciding twice gives two decisions"
    found = check_term(
        frozen, kin, theta, rng=rng, rtol=rtol, parameters=parameters, scales=scales, sizes=sizes, layout=layout
    )
    assert np.array_equal(decision, kept), f"{name}: evaluating the frozen term changed its decision"
    for key, count in term.describe(decision).items():
        assert isinstance(count, int) and count >= 0, f"{name}.describe: {key} = {count!r} is not a count"
    return decision, found


@dataclass(frozen=True)
class _Equations:
    """A term (no multipliers) or a constraint, as one function of (q, v, a, mu, theta) with values (r, c)."""

    name: str
    n: int
    m: int
    pattern: tuple[IntArray, IntArray]
    residual: Callable[[Kinematics, FloatArray, FloatArray, FloatArray], None]
    jacobian: Callable[[Kinematics, FloatArray, FloatArray, Weights, FloatArray, IntArray], None]
    vjp: Callable[[Kinematics, FloatArray, FloatArray, FloatArray, FloatArray], None]
    jvp: Callable[[Kinematics, FloatArray, FloatArray, FloatArray, FloatArray], None]
    layout: ParameterLayout | None

    @property
    def size(self) -> int:
        return self.n + self.m

    def value(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> FloatArray:
        out = np.zeros(self.size)
        self.residual(kin, mu, theta, out)
        return out

    def matrix(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights) -> FloatArray:
        rows, cols = self.pattern
        data = np.zeros(rows.size)
        self.jacobian(kin, mu, theta, weights, data, np.arange(rows.size))
        dense = np.zeros((self.size, self.size))
        np.add.at(dense, (rows, cols), data)
        return dense

    def place(self, index: int) -> str:
        if index >= self.n:
            return f"multiplier {index - self.n}"
        return f"dof {index} (node {index // 3}/{'xyz'[index % 3]})"

    def parameter(self, index: int) -> str:
        return f"theta[{index}]" + (f" ({self.layout.describe(index)})" if self.layout else "")


@dataclass(frozen=True)
class _Error:
    """The best of several differences against the claimed derivative."""

    relative: float
    row: int
    difference: float
    claimed: float
    size: float

    def __str__(self) -> str:
        return (
            f"entry {self.row} of the output: difference {self.difference:.10g} != derivative {self.claimed:.10g} "
            f"(error {self.relative:.2e} of the column, at relative step {self.size:g})"
        )


def _best(
    f: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    direction: FloatArray,
    claimed: FloatArray,
    sizes: Sequence[float],
    least: float,
    enough: float = 1e-9,
) -> _Error:
    """Compare ``claimed``, the derivative of ``f`` along ``direction``, with differences.

    Errors are relative to its largest entry or to ``least``.
    """
    best = _Error(np.inf, 0, np.nan, np.nan, np.nan)
    if not np.isfinite(claimed).all():
        row = int(np.argmin(np.isfinite(claimed)))
        return replace(best, row=row, claimed=float(claimed[row]))
    value = float(np.abs(f(x)).max(initial=0.0))
    for size in sizes:
        difference = central_difference(f, x, direction, size)
        if not np.isfinite(difference).all():
            continue
        defect = np.abs(difference - claimed)
        row = int(np.argmax(defect)) if defect.size else 0
        worst = max(0.0, float(defect.max(initial=0.0)) - _ROUND_OFF * value / size)
        scale = max(float(np.abs(claimed).max(initial=0.0)), float(np.abs(difference).max(initial=0.0)), least)
        relative = worst / scale if worst else 0.0
        if relative < best.relative:
            best = _Error(relative, row, float(difference[row]), float(claimed[row]), size)
        if best.relative <= enough:
            break
    return best


def _unit(n: int, i: int) -> FloatArray:
    out = np.zeros(n)
    out[i] = 1.0
    return out


def _replaced(kin: Kinematics, argument: str, x: FloatArray) -> Kinematics:
    arrays = {"q": kin.q, "v": kin.v, "a": kin.a, argument: x}
    return Kinematics(arrays["q"], arrays["v"], arrays["a"], kin.t, kin.step)


def _half_width(x: FloatArray) -> float:
    """Return half the spread of the values, or one where there is none."""
    points = x.reshape(-1, 3) if x.size % 3 == 0 else x[:, None]
    width = 0.5 * float(np.ptp(points, axis=0).max(initial=0.0)) if x.size else 0.0
    return width or float(np.abs(x).max(initial=0.0)) or 1.0


def _steps(x: FloatArray, scale: FloatArray | float | None) -> FloatArray:
    if scale is None:
        return np.where(x != 0.0, np.abs(x), 1.0)
    return np.broadcast_to(np.asarray(scale, dtype=float), x.shape)


def _equal(a: FloatArray, b: FloatArray, what: str, rtol: float = 1e-11) -> None:
    """Assert equality up to round-off of the largest entry."""
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    defect = np.abs(a - b)
    if not (defect <= rtol * scale).all():
        k = np.unravel_index(int(np.argmax(np.where(np.isnan(defect), np.inf, defect))), defect.shape)
        index = tuple(int(i) for i in k)
        raise AssertionError(f"{what}: entry {index}: {a[k]:.12g} != {b[k]:.12g} (largest entry {scale:.3g})")


def _all_nan(out: FloatArray, what: str) -> None:
    """Assert that a NaN-poisoned output stayed NaN: whatever is added to NaN is NaN, what is overwritten is not."""
    if not np.isnan(out).all():
        index = int(np.argmin(np.isnan(out)))
        raise AssertionError(f"{what} overwrites entry {index} of its output instead of adding to it")


def _check_depends(term: Term, kin: Kinematics, theta: FloatArray) -> None:
    name = type(term).__name__
    assert set(term.depends) <= set("qva"), f"{name}: depends = {term.depends!r} names more than q, v, a"
    r = np.zeros(kin.q.size)
    term.residual(kin, theta, r)
    assert np.isfinite(r).all(), f"{name}: the residual is not finite at entry {int(np.argmin(np.isfinite(r)))}"
    for argument in "qva":
        if argument in term.depends:
            continue
        blind = _replaced(kin, argument, np.full(kin.q.size, np.nan))
        again = np.zeros(kin.q.size)
        term.residual(blind, theta, again)
        assert np.array_equal(r, again), f"{name}: the residual reads {argument}, but depends = {term.depends!r}"


def _check_accumulation(
    equations: _Equations, kin: Kinematics, mu: FloatArray, theta: FloatArray, rng: np.random.Generator
) -> None:
    lam, theta_dot = rng.normal(size=equations.size), rng.normal(size=theta.size)
    actions: dict[str, tuple[int, Callable[[FloatArray], None]]] = {
        "residual": (equations.size, lambda out: equations.residual(kin, mu, theta, out)),
        "parameter_jvp": (equations.size, lambda out: equations.jvp(kin, mu, theta, theta_dot, out)),
        "parameter_vjp": (theta.size, lambda out: equations.vjp(kin, mu, theta, lam, out)),
    }
    given = {"q": kin.q, "v": kin.v, "a": kin.a, "mu": mu, "theta": theta, "lam": lam, "theta_dot": theta_dot}
    before = {argument: x.copy() for argument, x in given.items()}
    for method, (size, act) in actions.items():
        what = f"{equations.name}.{method}"
        plain = np.zeros(size)
        act(plain)
        for argument, x in given.items():
            assert np.array_equal(x, before[argument]), f"{what} changes its argument {argument}"
        assert np.isfinite(plain).all(), f"{what} is not finite at entry {int(np.argmin(np.isfinite(plain)))}"
        filled = rng.normal(size=size) * (np.abs(plain).max(initial=0.0) or 1.0)
        out = filled.copy()
        act(out)
        _equal(out, filled + plain, f"{what} does not add to its output")
        out = np.full(size, np.nan)
        act(out)
        _all_nan(out, what)


def _check_state(
    equations: _Equations,
    kin: Kinematics,
    mu: FloatArray,
    theta: FloatArray,
    arguments: Sequence[str],
    scales: dict[str, float],
    sizes: Sequence[float],
    rtol: float,
) -> dict[str, FloatArray]:
    """Check every weight by differences; return the dense derivatives, multipliers behind the coordinates."""
    rows, cols = equations.pattern
    present = np.zeros((equations.size, equations.size), dtype=bool)
    present[rows, cols] = True
    matrices = {}
    for argument in arguments:
        matrix = equations.matrix(kin, mu, theta, _UNIT[argument])
        x = mu if argument == "multiplier" else getattr(kin, argument)
        offset = equations.n if argument == "multiplier" else 0

        def value(x: FloatArray, argument: str = argument) -> FloatArray:
            if argument == "multiplier":
                return equations.value(kin, x, theta)
            return equations.value(_replaced(kin, argument, x), mu, theta)

        unused = np.delete(matrix, np.arange(offset, offset + x.size), axis=1)
        assert not unused.any(), f"{equations.name}: weight {argument} writes to columns that are not its own"
        step = scales.get(argument) or _half_width(x)
        # A column far below the others is compared with them: cancellation between its parts has their round-off.
        least = 1e-3 * step * float(np.abs(matrix).max(initial=0.0))
        for i in range(x.size):
            column = matrix[:, offset + i]
            error = _best(value, x, step * _unit(x.size, i), step * column, sizes, least)
            if error.relative > rtol:
                lost = "" if present[error.row, offset + i] else "; the pattern lacks this entry"
                raise AssertionError(
                    f"{equations.name}.jacobian, weight {argument}: row {equations.place(error.row)}, column "
                    f"{equations.place(offset + i)}: difference {error.difference / step:.10g} != "
                    f"{error.claimed / step:.10g} (error {error.relative:.2e} of the column, step "
                    f"{error.size * step:.1e}){lost}"
                )
        matrices[argument] = matrix
    return matrices


def _check_assembly(
    equations: _Equations,
    kin: Kinematics,
    mu: FloatArray,
    theta: FloatArray,
    matrices: dict[str, FloatArray],
    rng: np.random.Generator,
) -> None:
    """Linear in the weights; adds; touches its slots alone; a shared dummy slot harms nobody."""
    name = equations.name
    rows, cols = equations.pattern
    assert rows.shape == cols.shape and rows.ndim == 1, f"{name}: pattern must be two flat arrays of one length"
    factors = {argument: float(f) for argument, f in zip(matrices, rng.uniform(0.5, 2.0, size=4), strict=False)}
    weights = Weights(factors["q"], factors["v"], factors["a"], factors.get("multiplier", 0.0))
    mixed = sum((factors[a] * m for a, m in matrices.items()), np.zeros((equations.size, equations.size)))
    dropped = rng.random(rows.size) < 0.2
    order = rng.permutation(rows.size + 5)
    slots = np.where(dropped, order[-1], order[: rows.size])
    data = np.full(rows.size + 5, np.nan)
    filled = rng.normal(size=rows.size) * (np.abs(mixed).max(initial=0.0) or 1.0)
    data[order[: rows.size]] = filled
    data[order[-1]] = 0.0
    equations.jacobian(kin, mu, theta, weights, data, slots)
    free = order[rows.size : -1]
    assert np.isnan(data[free]).all(), f"{name}.jacobian writes outside its slots"
    added = data[order[: rows.size]] - filled
    expected = np.zeros(rows.size)
    equations.jacobian(kin, mu, theta, weights, expected, np.arange(rows.size))
    expected[dropped] = 0.0
    _equal(added, expected, f"{name}.jacobian does not add to the given slots", 1e-10)
    dense = equations.matrix(kin, mu, theta, weights)
    _equal(dense, mixed, f"{name}.jacobian is not linear in its weights", 1e-10)
    none = equations.matrix(kin, mu, theta, Weights(0.0, 0.0, 0.0))
    assert not none.any(), f"{name}.jacobian adds something at weights of zero"


def _check_parameters(
    equations: _Equations,
    kin: Kinematics,
    mu: FloatArray,
    theta: FloatArray,
    parameters: Sequence[int] | IntArray | None,
    sizes: Sequence[float],
    rtol: float,
    rng: np.random.Generator,
) -> tuple[int, ...]:
    steps = _steps(theta, None)
    asked = range(theta.size) if parameters is None else [int(i) for i in parameters]
    columns = np.zeros((equations.size, theta.size))
    for i in range(theta.size):
        equations.jvp(kin, mu, theta, _unit(theta.size, i), columns[:, i])
    for i in asked:
        direction = steps[i] * _unit(theta.size, i)
        error = _best(lambda x: equations.value(kin, mu, x), theta, direction, steps[i] * columns[:, i], sizes, 0.0)
        assert error.relative <= rtol, (
            f"{equations.name}.parameter_jvp by {equations.parameter(i)}, {equations.place(error.row)}: difference "
            f"{error.difference / steps[i]:.10g} != {error.claimed / steps[i]:.10g} (error {error.relative:.2e} of the "
            "column)"
        )
    theta_dot = rng.normal(size=theta.size) * steps
    along = np.zeros(equations.size)
    equations.jvp(kin, mu, theta, theta_dot, along)
    _equal(along, columns @ theta_dot, f"{equations.name}.parameter_jvp is not linear in theta_dot")
    for _ in range(3):
        lam = rng.normal(size=equations.size)
        bar = np.zeros(theta.size)
        equations.vjp(kin, mu, theta, lam, bar)
        expected = lam @ columns
        # Entry by entry: they have different units, and a column's entries may cancel.
        round_off = 1e-11 * (np.abs(lam) @ np.abs(columns))
        wrong = ~(np.abs(bar - expected) <= round_off)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise AssertionError(
                f"{equations.name}.parameter_vjp by {equations.parameter(i)}: {bar[i]:.12g} != {expected[i]:.12g}, "
                "which is lam . (derivative by parameter_jvp)"
            )
    return tuple(int(i) for i in np.flatnonzero(columns.any(axis=0)))


def _check_state_products(
    term: Term, kin: Kinematics, theta: FloatArray, matrices: dict[str, FloatArray], rng: np.random.Generator
) -> None:
    """Check state_vjp and state_jvp, for several tangents at once, against the matrices and against each other."""
    name, n = type(term).__name__, kin.q.size
    lam = rng.normal(size=n)
    dots = [KinematicCotangent(*(rng.normal(size=n) for _ in "qva")) for _ in range(2)]
    filled, bar = rng.normal(size=(3, n)), KinematicCotangent.zeros(n)
    for x, argument in zip(filled, "qva", strict=True):
        getattr(bar, argument)[:] = x
    term.state_vjp(kin, theta, lam, bar)
    gained = KinematicCotangent.zeros(n)
    term.state_vjp(kin, theta, lam, gained)
    for x, argument in zip(filled, "qva", strict=True):
        pulled = getattr(gained, argument)
        _equal(pulled, matrices[argument].T @ lam, f"{name}.state_vjp by {argument}", 1e-10)
        _equal(getattr(bar, argument), x + pulled, f"{name}.state_vjp by {argument} does not add")
    part = KinematicCotangent.zeros(n)
    term.state_vjp(kin, theta, lam, part, "v")
    assert not part.q.any() and not part.a.any(), f"{name}.state_vjp gives what is not wanted"
    assert np.array_equal(part.v, gained.v), f"{name}.state_vjp by v depends on what else is wanted"
    filled, outs = rng.normal(size=(2, n)), [np.zeros(n), np.zeros(n)]
    added = list(filled.copy())
    term.state_jvp(kin, theta, dots, outs)
    term.state_jvp(kin, theta, dots, added)
    for dot, out, before, after in zip(dots, outs, filled, added, strict=True):
        products = [m @ getattr(dot, argument) for argument, m in matrices.items()]
        _equal(out, sum(products, np.zeros(n)), f"{name}.state_jvp", 1e-10)
        _equal(after, before + out, f"{name}.state_jvp does not add")
        forward = float(lam @ out)
        backward = sum(float(getattr(gained, argument) @ getattr(dot, argument)) for argument in "qva")
        size = sum(float(np.abs(lam) @ np.abs(m) @ np.abs(getattr(dot, a))) for a, m in matrices.items())
        assert abs(forward - backward) <= 1e-12 * size, (
            f"{name}: lam . state_jvp(dot) = {forward:.12g} != state_vjp(lam) . dot = {backward:.12g}"
        )


def _check_energy(
    term: Term, kin: Kinematics, theta: FloatArray, scale: float | None, sizes: Sequence[float], rtol: float
) -> None:
    name, n = type(term).__name__, kin.q.size
    r = np.zeros(n)
    term.residual(kin, theta, r)
    step = scale or _half_width(kin.q)
    least = step * float(np.abs(r).max(initial=0.0))
    for i in range(n):
        error = _best(
            lambda q: np.array([term.energy(replace(kin, q=q), theta)]),
            kin.q,
            step * _unit(n, i),
            np.array([step * r[i]]),
            sizes,
            least,
        )
        assert error.relative <= rtol, (
            f"{name}.energy: dE/dq at dof {i} (node {i // 3}/{'xyz'[i % 3]}) is {error.difference / step:.10g} by "
            f"differences, the residual {r[i]:.10g}"
        )


def _sensitivity(matrices: dict[str, FloatArray], parameters: tuple[int, ...]) -> Sensitivity:
    size = {argument: float(np.abs(matrix).max(initial=0.0)) for argument, matrix in matrices.items()}
    return Sensitivity(size["q"], size["v"], size["a"], size.get("multiplier", 0.0), parameters)
