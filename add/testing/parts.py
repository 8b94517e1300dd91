"""The single claims that a term has to keep, one check each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from add.equations.kinematics import KinematicCotangent, Kinematics, Weights
from add.equations.layout import ParameterLayout
from add.equations.term import Term
from add.testing.differences import assert_equal, best_deviation, half_width, step_sizes, unit_vector
from add.typing import FloatArray, IntArray

UNIT_WEIGHTS = {
    "q": Weights(1.0, 0.0, 0.0),
    "v": Weights(0.0, 1.0, 0.0),
    "a": Weights(0.0, 0.0, 1.0),
    "multiplier": Weights(0.0, 0.0, 0.0, 1.0),
}


@final
@dataclass(frozen=True)
class Sensitivity:
    """Arguments on which a checked term depends, so that a test can assert that it was not checked where it is idle.

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


@dataclass(frozen=True)
class Equations:
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


def with_argument(kin: Kinematics, argument: str, x: FloatArray) -> Kinematics:
    """Return the kinematics with q, v or a replaced."""
    arrays = {"q": kin.q, "v": kin.v, "a": kin.a, argument: x}
    return Kinematics(arrays["q"], arrays["v"], arrays["a"], kin.t, kin.step)


def assert_all_nan(out: FloatArray, what: str) -> None:
    """Assert that a NaN-poisoned output stayed NaN: whatever is added to NaN is NaN, what is overwritten is not."""
    if not np.isnan(out).all():
        index = int(np.argmin(np.isnan(out)))
        raise AssertionError(f"{what} overwrites entry {index} of its output instead of adding to it")


def assert_depends(term: Term, kin: Kinematics, theta: FloatArray) -> None:
    """`depends` names every one of q, v, a that the residual reads."""
    name = type(term).__name__
    assert set(term.depends) <= set("qva"), f"{name}: depends = {term.depends!r} names more than q, v, a"
    r = np.zeros(kin.q.size)
    term.residual(kin, theta, r)
    assert np.isfinite(r).all(), f"{name}: the residual is not finite at entry {int(np.argmin(np.isfinite(r)))}"
    for argument in "qva":
        if argument in term.depends:
            continue
        blind = with_argument(kin, argument, np.full(kin.q.size, np.nan))
        again = np.zeros(kin.q.size)
        term.residual(blind, theta, again)
        assert np.array_equal(r, again), f"{name}: the residual reads {argument}, but depends = {term.depends!r}"


def assert_accumulation(
    equations: Equations, kin: Kinematics, mu: FloatArray, theta: FloatArray, rng: np.random.Generator
) -> None:
    """Every method adds to what it is given, and reads nothing of it."""
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
        assert_equal(out, filled + plain, f"{what} does not add to its output")
        out = np.full(size, np.nan)
        act(out)
        assert_all_nan(out, what)


def assert_state(
    equations: Equations,
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
        matrix = equations.matrix(kin, mu, theta, UNIT_WEIGHTS[argument])
        x = mu if argument == "multiplier" else getattr(kin, argument)
        offset = equations.n if argument == "multiplier" else 0

        def value(x: FloatArray, argument: str = argument) -> FloatArray:
            if argument == "multiplier":
                return equations.value(kin, x, theta)
            return equations.value(with_argument(kin, argument, x), mu, theta)

        unused = np.delete(matrix, np.arange(offset, offset + x.size), axis=1)
        assert not unused.any(), f"{equations.name}: weight {argument} writes to columns that are not its own"
        step = scales.get(argument) or half_width(x)
        # A column far below the others is compared with them: cancellation between its parts has their round-off.
        least = 1e-3 * step * float(np.abs(matrix).max(initial=0.0))
        for i in range(x.size):
            column = matrix[:, offset + i]
            error = best_deviation(value, x, step * unit_vector(x.size, i), step * column, sizes, least)
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


def assert_assembly(
    equations: Equations,
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
    assert_equal(added, expected, f"{name}.jacobian does not add to the given slots", 1e-10)
    dense = equations.matrix(kin, mu, theta, weights)
    assert_equal(dense, mixed, f"{name}.jacobian is not linear in its weights", 1e-10)
    none = equations.matrix(kin, mu, theta, Weights(0.0, 0.0, 0.0))
    assert not none.any(), f"{name}.jacobian adds something at weights of zero"


def assert_parameters(
    equations: Equations,
    kin: Kinematics,
    mu: FloatArray,
    theta: FloatArray,
    parameters: Sequence[int] | IntArray | None,
    sizes: Sequence[float],
    rtol: float,
    rng: np.random.Generator,
) -> tuple[int, ...]:
    """parameter_jvp against differences, parameter_vjp against parameter_jvp; return the entries that act."""
    steps = step_sizes(theta, None)
    asked = range(theta.size) if parameters is None else [int(i) for i in parameters]
    columns = np.zeros((equations.size, theta.size), order="F")  # kernels are compiled for contiguous vectors
    for i in range(theta.size):
        equations.jvp(kin, mu, theta, unit_vector(theta.size, i), columns[:, i])
    for i in asked:
        direction = steps[i] * unit_vector(theta.size, i)
        error = best_deviation(
            lambda x: equations.value(kin, mu, x), theta, direction, steps[i] * columns[:, i], sizes, 0.0
        )
        assert error.relative <= rtol, (
            f"{equations.name}.parameter_jvp by {equations.parameter(i)}, {equations.place(error.row)}: difference "
            f"{error.difference / steps[i]:.10g} != {error.claimed / steps[i]:.10g} (error {error.relative:.2e} of the "
            "column)"
        )
    theta_dot = rng.normal(size=theta.size) * steps
    along = np.zeros(equations.size)
    equations.jvp(kin, mu, theta, theta_dot, along)
    assert_equal(along, columns @ theta_dot, f"{equations.name}.parameter_jvp is not linear in theta_dot")
    for _ in range(3):
        lam = rng.normal(size=equations.size)
        bar = np.zeros(theta.size)
        equations.vjp(kin, mu, theta, lam, bar)
        expected = lam @ columns
        # Entry by entry: they have different units, and a column's entries may cancel.
        sizes_of = np.abs(lam) @ np.abs(columns)
        round_off = 1e-11 * sizes_of + 1e-14 * sizes_of.max(initial=0.0)
        wrong = ~(np.abs(bar - expected) <= round_off)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise AssertionError(
                f"{equations.name}.parameter_vjp by {equations.parameter(i)}: {bar[i]:.12g} != {expected[i]:.12g}, "
                "which is lam . (derivative by parameter_jvp)"
            )
    return tuple(int(i) for i in np.flatnonzero(columns.any(axis=0)))


def assert_state_products(
    term: Term, kin: Kinematics, theta: FloatArray, matrices: dict[str, FloatArray], rng: np.random.Generator
) -> None:
    """Check state_vjp against the matrices."""
    name, n = type(term).__name__, kin.q.size
    lam = rng.normal(size=n)
    filled, bar = rng.normal(size=(3, n)), KinematicCotangent.zeros(n)
    for x, argument in zip(filled, "qva", strict=True):
        getattr(bar, argument)[:] = x
    term.state_vjp(kin, theta, lam, bar)
    gained = KinematicCotangent.zeros(n)
    term.state_vjp(kin, theta, lam, gained)
    for x, argument in zip(filled, "qva", strict=True):
        pulled = getattr(gained, argument)
        assert_equal(pulled, matrices[argument].T @ lam, f"{name}.state_vjp by {argument}", 1e-10)
        assert_equal(getattr(bar, argument), x + pulled, f"{name}.state_vjp by {argument} does not add")
    part = KinematicCotangent.zeros(n)
    term.state_vjp(kin, theta, lam, part, "v")
    assert not part.q.any() and not part.a.any(), f"{name}.state_vjp gives what is not wanted"
    assert np.array_equal(part.v, gained.v), f"{name}.state_vjp by v depends on what else is wanted"


def assert_energy(
    term: Term, kin: Kinematics, theta: FloatArray, scale: float | None, sizes: Sequence[float], rtol: float
) -> None:
    """The residual is the slope of the energy."""
    name, n = type(term).__name__, kin.q.size
    r = np.zeros(n)
    term.residual(kin, theta, r)
    step = scale or half_width(kin.q)
    least = step * float(np.abs(r).max(initial=0.0))
    for i in range(n):
        error = best_deviation(
            lambda q: np.array([term.energy(replace(kin, q=q), theta)]),
            kin.q,
            step * unit_vector(n, i),
            np.array([step * r[i]]),
            sizes,
            least,
        )
        assert error.relative <= rtol, (
            f"{name}.energy: dE/dq at dof {i} (node {i // 3}/{'xyz'[i % 3]}) is {error.difference / step:.10g} by "
            f"differences, the residual {r[i]:.10g}"
        )


def sensitivity_of(matrices: dict[str, FloatArray], parameters: tuple[int, ...]) -> Sensitivity:
    """Return the largest entry of each derivative."""
    size = {argument: float(np.abs(matrix).max(initial=0.0)) for argument, matrix in matrices.items()}
    return Sensitivity(size["q"], size["v"], size["a"], size.get("multiplier", 0.0), parameters)
