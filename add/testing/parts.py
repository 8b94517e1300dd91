"""The single claims that a term has to keep, one check each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Required, TypedDict, final

import numpy as np

from add.equations.kinematics import KinematicCotangent, Kinematics, Weights
from add.equations.layout import ParameterLayout
from add.equations.term import Term
from add.testing.differences import SIZES, assert_equal, best_deviation, half_width, step_sizes, unit_vector
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


class Options(TypedDict, total=False):
    """Options of every check; see `add.testing.terms.check_term`."""

    rng: Required[np.random.Generator]
    rtol: float
    parameters: Sequence[int] | IntArray | None
    scales: dict[str, float] | None
    sizes: Sequence[float]
    layout: ParameterLayout | None


class Equations(NamedTuple):
    """A term (no multipliers) or a constraint, as one function of (q, v, a, mu, theta) with values (r, c), at a state.

    What is checked there, and how, is as in `add.testing.terms.check_term`.
    """

    name: str
    n: int
    pattern: tuple[IntArray, IntArray]
    residual: Callable[[Kinematics, FloatArray, FloatArray, FloatArray], None]
    jacobian: Callable[[Kinematics, FloatArray, FloatArray, Weights, FloatArray, IntArray], None]
    vjp: Callable[[Kinematics, FloatArray, FloatArray, FloatArray, FloatArray], None]
    jvp: Callable[[Kinematics, FloatArray, FloatArray, FloatArray, FloatArray], None]
    kin: Kinematics
    mu: FloatArray
    theta: FloatArray
    rng: np.random.Generator
    rtol: float = 1e-6
    parameters: Sequence[int] | IntArray | None = None
    scales: dict[str, float] | None = None
    sizes: Sequence[float] = SIZES
    layout: ParameterLayout | None = None

    @property
    def size(self) -> int:
        return self.n + self.mu.size

    @property
    def given(self) -> dict[str, FloatArray]:
        """All arrays that the methods get and have to leave as they are."""
        return {"q": self.kin.q, "v": self.kin.v, "a": self.kin.a, "multiplier": self.mu, "theta": self.theta}

    def value(self, argument: str, x: FloatArray) -> FloatArray:
        """Return the values with one argument replaced."""
        arrays = self.given | {argument: x}
        out = np.zeros(self.size)
        kin = Kinematics(arrays["q"], arrays["v"], arrays["a"], self.kin.t, self.kin.step)
        self.residual(kin, arrays["multiplier"], arrays["theta"], out)
        return out

    def matrix(self, weights: Weights) -> FloatArray:
        rows, cols = self.pattern
        data = np.zeros(rows.size)
        self.jacobian(self.kin, self.mu, self.theta, weights, data, np.arange(rows.size))
        dense = np.zeros((self.size, self.size))
        np.add.at(dense, (rows, cols), data)
        return dense

    def step(self, argument: str) -> float:
        """Return the size of an argument of which differences take a fraction."""
        return (self.scales or {}).get(argument) or half_width(self.given[argument])

    def place(self, index: int) -> str:
        if index >= self.n:
            return f"multiplier {index - self.n}"
        return f"dof {index} (node {index // 3}/{'xyz'[index % 3]})"

    def parameter(self, index: int) -> str:
        return f"theta[{index}]" + (f" ({self.layout.describe(index)})" if self.layout else "")

    def check_accumulation(self) -> None:
        """Every method adds to what it is given, and reads nothing of it."""
        state = self.kin, self.mu, self.theta
        lam, theta_dot = self.rng.normal(size=self.size), self.rng.normal(size=self.theta.size)
        actions: dict[str, tuple[int, Callable[[FloatArray], None]]] = {
            "residual": (self.size, lambda out: self.residual(*state, out)),
            "parameter_jvp": (self.size, lambda out: self.jvp(*state, theta_dot, out)),
            "parameter_vjp": (self.theta.size, lambda out: self.vjp(*state, lam, out)),
        }
        given = self.given | {"lam": lam, "theta_dot": theta_dot}
        before = {argument: x.copy() for argument, x in given.items()}
        for method, (size, act) in actions.items():
            what = f"{self.name}.{method}"
            plain = np.zeros(size)
            act(plain)
            for argument, x in given.items():
                assert np.array_equal(x, before[argument]), f"{what} changes its argument {argument}"
            assert np.isfinite(plain).all(), f"{what} is not finite at entry {int(np.argmin(np.isfinite(plain)))}"
            filled = self.rng.normal(size=size) * (np.abs(plain).max(initial=0.0) or 1.0)
            out = filled.copy()
            act(out)
            assert_equal(out, filled + plain, f"{what} does not add to its output")
            out = np.full(size, np.nan)
            act(out)
            assert_all_nan(out, what)

    def check_state(self, arguments: Sequence[str]) -> dict[str, FloatArray]:
        """Check every weight by differences; return the dense derivatives, multipliers behind the coordinates."""
        present = np.zeros((self.size, self.size), dtype=bool)
        present[self.pattern] = True
        matrices = {}
        for argument in arguments:
            matrix = self.matrix(UNIT_WEIGHTS[argument])
            x, offset = self.given[argument], self.n if argument == "multiplier" else 0
            unused = np.delete(matrix, np.arange(offset, offset + x.size), axis=1)
            assert not unused.any(), f"{self.name}: weight {argument} writes to columns that are not its own"
            step = self.step(argument)
            # A column far below the others is compared with them: cancellation between its parts has their round-off.
            least = 1e-3 * step * float(np.abs(matrix).max(initial=0.0))
            for i in range(x.size):
                value, along = partial(self.value, argument), step * unit_vector(x.size, i)
                error = best_deviation(value, x, along, step * matrix[:, offset + i], self.sizes, least)
                if error.relative > self.rtol:
                    lost = "" if present[error.row, offset + i] else "; the pattern lacks this entry"
                    raise AssertionError(
                        f"{self.name}.jacobian, weight {argument}: row {self.place(error.row)}, column "
                        f"{self.place(offset + i)}: difference {error.difference / step:.10g} != "
                        f"{error.claimed / step:.10g} (error {error.relative:.2e} of the column, step "
                        f"{error.size * step:.1e}){lost}"
                    )
            matrices[argument] = matrix
        return matrices

    def check_assembly(self, matrices: dict[str, FloatArray]) -> None:
        """Linear in the weights; adds; touches its slots alone; a shared dummy slot harms nobody."""
        name, rng, state = self.name, self.rng, (self.kin, self.mu, self.theta)
        rows, cols = self.pattern
        assert rows.shape == cols.shape and rows.ndim == 1, f"{name}: pattern must be two flat arrays of one length"
        factors = {argument: float(f) for argument, f in zip(matrices, rng.uniform(0.5, 2.0, size=4), strict=False)}
        weights = Weights(factors["q"], factors["v"], factors["a"], factors.get("multiplier", 0.0))
        mixed = sum((factors[a] * m for a, m in matrices.items()), np.zeros((self.size, self.size)))
        dropped = rng.random(rows.size) < 0.2
        order = rng.permutation(rows.size + 5)
        slots = np.where(dropped, order[-1], order[: rows.size])
        data = np.full(rows.size + 5, np.nan)
        filled = rng.normal(size=rows.size) * (np.abs(mixed).max(initial=0.0) or 1.0)
        data[order[: rows.size]] = filled
        data[order[-1]] = 0.0
        self.jacobian(*state, weights, data, slots)
        assert np.isnan(data[order[rows.size : -1]]).all(), f"{name}.jacobian writes outside its slots"
        added = data[order[: rows.size]] - filled
        expected = np.zeros(rows.size)
        self.jacobian(*state, weights, expected, np.arange(rows.size))
        expected[dropped] = 0.0
        assert_equal(added, expected, f"{name}.jacobian does not add to the given slots", 1e-10)
        assert_equal(self.matrix(weights), mixed, f"{name}.jacobian is not linear in its weights", 1e-10)
        none = self.matrix(Weights(0.0, 0.0, 0.0))
        assert not none.any(), f"{name}.jacobian adds something at weights of zero"

    def check_parameters(self) -> tuple[int, ...]:
        """parameter_jvp against differences, parameter_vjp against parameter_jvp; return the entries that act."""
        theta, state = self.theta, (self.kin, self.mu, self.theta)
        steps = step_sizes(theta, None)
        columns = np.zeros((self.size, theta.size), order="F")  # kernels are compiled for contiguous vectors
        for i in range(theta.size):
            self.jvp(*state, unit_vector(theta.size, i), columns[:, i])
        for i in range(theta.size) if self.parameters is None else map(int, self.parameters):
            value, along = partial(self.value, "theta"), steps[i] * unit_vector(theta.size, i)
            error = best_deviation(value, theta, along, steps[i] * columns[:, i], self.sizes, 0.0)
            assert error.relative <= self.rtol, (
                f"{self.name}.parameter_jvp by {self.parameter(i)}, {self.place(error.row)}: difference "
                f"{error.difference / steps[i]:.10g} != {error.claimed / steps[i]:.10g} (error {error.relative:.2e} of "
                "the column)"
            )
        theta_dot = self.rng.normal(size=theta.size) * steps
        along = np.zeros(self.size)
        self.jvp(*state, theta_dot, along)
        assert_equal(along, columns @ theta_dot, f"{self.name}.parameter_jvp is not linear in theta_dot")
        for _ in range(3):
            lam = self.rng.normal(size=self.size)
            bar = np.zeros(theta.size)
            self.vjp(*state, lam, bar)
            expected = lam @ columns
            # Entry by entry: they have different units, and a column's entries may cancel.
            sizes_of = np.abs(lam) @ np.abs(columns)
            round_off = 1e-11 * sizes_of + 1e-14 * sizes_of.max(initial=0.0)
            wrong = ~(np.abs(bar - expected) <= round_off)
            if wrong.any():
                i = int(np.argmax(wrong))
                raise AssertionError(
                    f"{self.name}.parameter_vjp by {self.parameter(i)}: {bar[i]:.12g} != {expected[i]:.12g}, "
                    "which is lam . (derivative by parameter_jvp)"
                )
        return tuple(int(i) for i in np.flatnonzero(columns.any(axis=0)))

    def check(self, arguments: Sequence[str]) -> tuple[dict[str, FloatArray], Sensitivity]:
        """Check accumulation, every weight, assembly and parameters; return the derivatives, and their sizes."""
        before = {argument: x.copy() for argument, x in self.given.items()}
        self.check_accumulation()
        matrices = self.check_state(arguments)
        self.check_assembly(matrices)
        parameters = self.check_parameters()
        for argument, x in self.given.items():
            assert np.array_equal(x, before[argument]), f"{self.name}: a method changed its argument {argument}"
        size = {argument: float(np.abs(matrix).max(initial=0.0)) for argument, matrix in matrices.items()}
        return matrices, Sensitivity(size["q"], size["v"], size["a"], size.get("multiplier", 0.0), parameters)


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
        unread: dict[str, Any] = {argument: np.full(kin.q.size, np.nan)}
        again = np.zeros(kin.q.size)
        term.residual(replace(kin, **unread), theta, again)
        assert np.array_equal(r, again), f"{name}: the residual reads {argument}, but depends = {term.depends!r}"


def assert_state_products(term: Term, equations: Equations, matrices: dict[str, FloatArray]) -> None:
    """Check state_vjp against the matrices."""
    name, n, kin, theta, rng = equations.name, equations.n, equations.kin, equations.theta, equations.rng
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
    product = np.zeros(n)
    if term.rates_vjp(kin, theta, lam, product):
        assert_equal(product, matrices["v"].T @ lam, f"{name}.rates_vjp", 1e-10)


def assert_energy(term: Term, equations: Equations) -> None:
    """The residual is the slope of the energy."""
    kin, theta, n = equations.kin, equations.theta, equations.n
    r = equations.value("theta", theta)
    step = equations.step("q")
    least = step * float(np.abs(r).max(initial=0.0))

    def energy(q: FloatArray) -> FloatArray:
        return np.array([term.energy(replace(kin, q=q), theta)])

    for i in range(n):
        along = step * unit_vector(n, i)
        error = best_deviation(energy, kin.q, along, np.array([step * r[i]]), equations.sizes, least)
        assert error.relative <= equations.rtol, (
            f"{equations.name}.energy: dE/dq at {equations.place(i)} is {error.difference / step:.10g} by "
            f"differences, the residual {r[i]:.10g}"
        )
