"""The equations that hold sticking points: every derivative against differences, and the solver for many of them."""

from copy import copy

import numpy as np
import pytest
from derivatives.test_body_contact import ANGLES, BESIDE, INSIDE, PLACES, Case

from add.contact import FrictionLaw
from add.contact.penalty_bodies import StickingBodies
from add.equations.kinematics import Weights
from add.errors import SolverError
from add.kernels.contact_pairs import ACTIVE, BITS, STICKS
from add.linalg import DenseLU, MultifrontalLU, SparseLU
from add.linalg.augmented_lagrangian import AugmentedSolve, Rows
from add.linalg.pattern import Pattern
from add.testing import check_constraint


def held_by(case: Case) -> StickingBodies:
    """Return what holds the pair of a case."""
    codes = case.contact.stick_touching(case.contact.decide(case.kin, case.theta))
    assert codes[0, BITS] & ACTIVE and codes[0, BITS] & STICKS
    hold = case.contact.stick_constraint(codes)
    assert isinstance(hold, StickingBodies)
    return hold


@pytest.mark.parametrize("radius", [0.0, 0.25])
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("host", ["body", "world"])
@pytest.mark.parametrize("point", ["body", "node"])
@pytest.mark.parametrize("place", PLACES)
def test_bodies(place, point, host, angle, radius):
    if place in BESIDE or (not radius and place not in INSIDE):
        pytest.skip("a point without radius meets faces alone")
    case = Case(place, point, host, angle, radius=radius, law=FrictionLaw.HYBRID)
    hold = held_by(case)
    rng = np.random.default_rng(2)
    found = check_constraint(
        hold, case.kin, rng.normal(size=3), case.theta, rng=rng, scales={"q": 0.05, "v": 0.05}, rtol=1e-7
    )
    centres = {4, 5, 6} if point == "body" else set()
    assert set(found.parameters) <= centres | ({7, 8, 9} if host == "body" else set())
    # A node on a flat, still face is held alike everywhere.
    flat = point == "node" and host == "world" and (place in ("plane", "box", "cylinder cap", "mesh face"))
    assert found.v > 0.0 and (found.q > 0.0) != flat
    c = np.zeros(3)
    hold.residual(case.kin, np.zeros(3), case.theta, np.zeros(case.kin.q.size), c)
    # The point slides with 0.3 m/s; on a body, the place of contact is DEPTH further out, and turns with it.
    if point == "node":
        assert np.linalg.norm(c) == pytest.approx(0.3, rel=1e-12)
    else:
        assert 0.1 < np.linalg.norm(c) < 0.5


def test_states_that_are_changed_in_place():
    """The rows are those of the numbers that stand in the arrays now."""
    case = Case("capsule side", "body", "body", radius=0.25, law=FrictionLaw.HYBRID)
    hold, kin, theta = held_by(case), case.kin, case.theta.copy()
    kept = hold.evaluate(kin, theta).rows.copy()
    for array in (theta[4:7], kin.v[:3]):  # the centre of the body, its velocity
        array += 0.1
        found = hold.evaluate(kin, theta).rows.copy()
        fresh = copy(hold)
        fresh._last = None
        assert np.array_equal(found, fresh.evaluate(kin, theta).rows)
        assert np.abs(found - kept).max() > 1e-3
        kept = found


@pytest.mark.parametrize("host", ["body", "world"])
@pytest.mark.parametrize("point", ["body", "node"])
def test_matrix_parts_agree_with_the_constraint(point, host):
    """What the solver is given, in the slots of the frozen term, is what the constraint's own Jacobian says."""
    case = Case("capsule side", point, host, radius=0.25, law=FrictionLaw.HYBRID)
    hold, kin, theta, n = held_by(case), case.kin, case.theta, case.kin.q.size
    branch = case.contact.on_branch(hold.decision)
    weights, lam = Weights(1.0, 30.0, 900.0, 1.0), np.array([1.0, -2.0, 0.5])
    rows, cols = hold.pattern(n)
    values = np.zeros(rows.size)
    hold.jacobian(kin, lam, theta, weights, values, np.arange(rows.size))
    whole = np.zeros((n + 3, n + 3))
    np.add.at(whole, (rows, cols), values)
    rows, cols = branch.pattern()
    for penalty, expected in ((0.0, whole[:n, :n]), (50.0, 50.0 * whole[:n, n:] @ whole[n:, :n])):
        values = np.zeros(rows.size)
        if penalty:
            operators = hold.operators(kin, theta)
            by_u = weights.q * operators.by_q + weights.v * operators.by_v
            hold.add_products(penalty, operators.by_v, by_u, values, np.arange(rows.size))
        else:
            hold.add_geometry(kin, lam, theta, weights.q, values, np.arange(rows.size))
        found = np.zeros((n, n))
        np.add.at(found, (rows, cols), values)
        assert np.allclose(found, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("columns", [0, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_solver_with_dependent_rows(transposed, columns):
    """As a saddle-point solve, where the rows are independent; with copies of rows, the same increments."""
    rng = np.random.default_rng(5)
    n, m = 12, 6
    K = rng.normal(size=(n, n)) + 8.0 * np.eye(n)
    G, G_u = rng.normal(size=(m, n)), rng.normal(size=(m, n))
    whole = np.block([[K, G.T], [G_u, np.zeros((m, m))]])
    b = rng.normal(size=(n + m, columns)) if columns else rng.normal(size=n + m)
    exact = np.linalg.solve(whole.T if transposed else whole, b)
    for copies in (1, 2):
        by_v, by_u = np.tile(G, (copies, 1)), np.tile(G_u, (copies, 1))
        rhs = np.concatenate([b[:n], *([b[n:]] * copies)])
        penalty = 1e6
        index = np.indices((n, n)).reshape(2, -1)
        pattern = Pattern.build(n, [(index[1], index[0])])
        factorization = DenseLU()
        factorization.factor(pattern, np.append((K + penalty * by_v.T @ by_u).T.ravel(), 0.0))
        columns = np.tile(np.arange(n), (copies * m // 3, 1))
        rows = (Rows(columns, part.reshape(-1, 3, n)) for part in (by_v, by_u))
        solver = AugmentedSolve(factorization, pattern, np.append(K.T.ravel(), 0.0), *rows, penalty)
        found = solver.solve_transposed(rhs) if transposed else solver.solve(rhs)
        assert np.allclose(found[:n], exact[:n], rtol=1e-11, atol=1e-11)
        reactions = found[n:].reshape((copies, m, *b.shape[1:]))
        assert np.allclose(reactions.sum(axis=0), exact[n:], rtol=1e-10, atol=1e-10)
        assert np.allclose(reactions, reactions[0], rtol=1e-6, atol=1e-9)


def _small_system(rng, back_end, n=30):
    """A definite matrix, with six rows that hold the first unknowns, and its solver."""
    K = rng.normal(size=(n, n))
    K = K @ K.T + n * np.eye(n)
    index = np.array([[0, 1, 2, -1], [3, 4, 5, 6]])
    blocks = rng.normal(size=(2, 3, 4))
    G = np.zeros((6, n))
    for k in range(2):
        used = index[k] >= 0
        G[3 * k : 3 * k + 3, index[k, used]] = blocks[k][:, used]
    penalty = 1e6 * float(np.abs(np.diag(K)).mean())
    rows, cols = (part.ravel() for part in np.indices((n, n)))
    pattern = Pattern.build(n, [(rows, cols)])
    data, penalised = pattern.new_data(), pattern.new_data()
    np.add.at(data, pattern.slots[0], K.ravel())
    np.add.at(penalised, pattern.slots[0], (K + penalty * G.T @ G).ravel())
    factorization = back_end()
    factorization.factor(pattern, penalised)
    held = Rows(index, blocks)
    return np.block([[K, G.T], [G, np.zeros((6, 6))]]), AugmentedSolve(
        factorization, pattern, data, held, held, penalty
    )


@pytest.mark.parametrize("columns", [0, 3])
@pytest.mark.parametrize("back_end", [DenseLU, MultifrontalLU, SparseLU])
def test_every_back_end_solves_and_zeros_stay_zeros(back_end, columns):
    """A cotangent is exactly zero behind the last step that an objective sees."""
    rng = np.random.default_rng(6)
    whole, solver = _small_system(rng, back_end)
    shape = (whole.shape[0], columns) if columns else whole.shape[:1]
    for solve in (solver.solve, solver.solve_transposed, solver.increment):
        assert not solve(np.zeros(shape)).any()
        b = rng.normal(size=shape)
        exact = np.linalg.solve(whole, b)
        # Increments are what the next iteration of Newton's corrects; derivatives are exact.
        tolerance = 1e-9 if solve == solver.increment else 1e-12
        assert np.abs(solve(b) - exact).max() < tolerance * np.abs(exact).max()


def test_a_singular_matrix_is_no_solution():
    """Nothing holds the last unknown: an error, and no number."""
    n = 30
    index, blocks = np.array([[0, 1, 2]]), np.eye(3)[None]
    pattern = Pattern.build(n, [(np.arange(n), np.arange(n))])
    data = np.append(np.ones(n), 0.0)
    data[n - 1] = 0.0
    penalised = data.copy()
    penalised[:3] += 1e6
    factorization = MultifrontalLU()
    with pytest.raises(SolverError):
        factorization.factor(pattern, penalised)
        held = Rows(index, blocks)
        AugmentedSolve(factorization, pattern, data, held, held, 1e6).solve(np.ones(n + 3))


def test_what_is_not_finite_is_no_solution():
    whole, solver = _small_system(np.random.default_rng(6), DenseLU)
    b = np.ones(whole.shape[0])
    b[3] = np.nan
    with pytest.raises(SolverError):
        solver.solve(b)
