"""Maps from x to theta and their transforms: every subclass, in both directions."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import add.inverse
import add.scene
import add.ties
from add.contact.restitution import clipped_restitution_from_damping, restitution_from_damping
from add.inverse.maps import Composed, DesignMap, Injection, Linear, Log, Softplus, Transform, Transformed
from add.testing import check_pullback
from add.ties import DampingFromRestitution, Extended, LameFromYoung, Selected, Tie


def subclasses(base: type) -> set[type]:
    """Every concrete subclass in the packages that may hold one."""
    for package in (add.inverse, add.scene, add.ties):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    found, todo = set(), [base]
    while todo:
        for kind in todo.pop().__subclasses__():
            todo.append(kind)
            if not inspect.isabstract(kind) and kind.__module__.startswith("add."):
                found.add(kind)
    return found


TRANSFORMED = Transformed((Linear(), Log(), Softplus(), Log()), np.array([2.0, 1.0, 0.5, 0.1]))
# 0 serves two places, 1 none, and entry 2 of the base stays
PLACED = Injection(np.array([9.0, 8.0, 7.0, 6.0, 5.0]), np.array([0, 2, 0, 3]), np.array([4, 0, 1, 3]), 4)
# s = (E, nu, k_n, E', nu', free); k_n feeds k_n and k_t = 0.01 k_n; two bodies; theta[7] follows nothing
TIES = Composed(
    (
        Extended(
            Injection(np.zeros(8), np.array([2, 2, 5]), np.array([0, 1, 6]), 6, np.array([1.0, 0.01, -3.0])),
            np.zeros(0),
        ),
        Tie(LameFromYoung(), np.array([[0, 1], [3, 4]]), 6 + np.array([[2, 3], [4, 5]])),
        Selected(14, 6, 14),
    )
)


def rebounds(adhesive_damping: bool) -> Composed:
    """s = (e, k_n, m_1, m_2, e'); two balls, and the first of them on the ground with three points."""
    copies = Injection(
        np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0]),
        np.array([1, 1, 2, 3]),
        np.array([0, 4, 1, 2]),
        5,
        np.array([1.0, 2.0, 1.0, 0.5]),
    )
    scaled = Extended(copies, np.array([np.inf]))
    balls = Tie(DampingFromRestitution(1, adhesive_damping), np.array([[0, 5, 6, 7]]), np.array([[8]]))
    ground = Tie(DampingFromRestitution(3, adhesive_damping), np.array([[4, 9, 6, 12]]), np.array([[10]]))
    return Composed((scaled, balls, ground, Selected(13, 5, 12)))


REBOUNDS = rebounds(adhesive_damping=False)
X = np.array([0.4, -0.7, 1.3, 2.0])
S = np.array([2e4, 0.3, 1e3, 5e3, -0.2, 0.7])

MAP_CASES = {
    Transformed: [(TRANSFORMED, X)],
    Injection: [(PLACED, X), (Injection(np.arange(3.0), np.zeros(0, int), np.zeros(0, int), 4), X)],
    Extended: [(TIES.maps[0], S)],
    Tie: [(Tie(LameFromYoung(), np.array([[0, 1], [3, 4]]), np.array([[6, 7], [2, 5]])), np.append(S, [1.0, 2.0]))],
    Selected: [(Selected(6, 2, 5), S)],
    Composed: [
        (TIES, S),
        (REBOUNDS, np.array([0.6, 1e3, 0.3, 0.8, 0.2])),
        (rebounds(adhesive_damping=True), np.array([0.6, 1e3, 0.3, 0.8, 0.2])),
        (Composed((TRANSFORMED, PLACED)), X),
        (Composed((TRANSFORMED, Injection(S, np.array([1, 2, 3]), np.array([0, 2, 5]), 4), TIES)), X),
    ],
}
CASES = [(kind.__name__, k, *case) for kind, cases in MAP_CASES.items() for k, case in enumerate(cases)]


def test_every_map_has_a_case():
    assert subclasses(DesignMap) == set(MAP_CASES)


@pytest.mark.parametrize(("name", "k", "mapping", "x"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_derivatives(name, k, mapping, x, rng):
    kept = x.copy()
    check_pullback(mapping.forward, mapping.pushforward, mapping.pullback, x, rng=rng, rtol=1e-8)
    assert np.array_equal(x, kept), "the argument was changed"
    y = mapping.forward(x)
    for result, size in (
        (mapping.pullback(x, np.ones(y.size)), x.size),
        (mapping.pushforward(x, np.ones(x.size)), y.size),
    ):
        assert result.shape == (size,) and result.dtype == float
    jacobian = mapping.jacobian(x)
    assert jacobian.shape == (y.size, x.size)
    columns = np.stack([mapping.pushforward(x, unit) for unit in np.eye(x.size)], axis=1)
    assert jacobian.toarray() == pytest.approx(columns, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize(("name", "k", "mapping", "x"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_forward_gives_a_new_array(name, k, mapping, x):
    """Whoever writes into y must not change x or the base."""
    first = mapping.forward(x)
    expected, kept = first.copy(), x.copy()
    first[:] = np.nan
    assert np.array_equal(mapping.forward(x), expected) and np.array_equal(x, kept)


def test_placed():
    assert PLACED.forward(X) == pytest.approx([X[2], X[0], 7.0, X[3], X[0]])


def test_ties_give_lame_constants():
    theta = TIES.forward(S)
    young, poisson = S[0], S[1]
    mu, lam = theta[2], theta[3]
    assert mu == pytest.approx(young / (2 * (1 + poisson)))
    assert mu * (3 * lam + 2 * mu) / (lam + mu) == pytest.approx(young)
    assert lam / (2 * (lam + mu)) == pytest.approx(poisson)
    assert theta[[0, 1, 6, 7]] == pytest.approx([1e3, 10.0, -2.1, 0.0])


def test_transformed_inverse():
    p = TRANSFORMED.forward(X)
    assert TRANSFORMED.inverse(p) == pytest.approx(X)
    assert p == pytest.approx([0.8, np.exp(-0.7), np.log1p(np.exp(0.65)), np.exp(0.2)])


# --- transforms ------------------------------------------------------------------------------------------------------

TRANSFORMS = {Linear: Linear(), Log: Log(), Softplus: Softplus()}
Y = np.array([-30.0, -3.0, -0.1, 0.0, 0.2, 4.0, 30.0])
each = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=lambda t: type(t).__name__)


def test_every_transform_has_a_case():
    assert subclasses(Transform) == set(TRANSFORMS)


@each
def test_transform_inverse(transform):
    p = transform.forward(Y)
    assert (np.diff(p) > 0).all()
    assert transform.inverse(p) == pytest.approx(Y, rel=1e-9, abs=1e-12)
    assert transform.forward(transform.inverse(p)) == pytest.approx(p, rel=1e-12)


@each
def test_transform_slope(transform):
    h = 1e-4
    near = transform.forward(Y + h) - transform.forward(Y - h)
    far = transform.forward(Y + 2 * h) - transform.forward(Y - 2 * h)
    assert transform.slope(Y) == pytest.approx((8 * near - far) / (12 * h), rel=1e-8)


@each
def test_transform_of_bounds(transform):
    """No upper bound stays none; a lower bound that a positive transform keeps by itself becomes none."""
    assert transform.inverse(np.array([np.inf]))[0] == np.inf
    low = transform.inverse(np.array([-np.inf, 0.0, -1.0]))
    assert low[0] == -np.inf
    if isinstance(transform, Linear):
        assert low[1:].tolist() == [0.0, -1.0]
    else:
        assert (low == -np.inf).all()
        assert (transform.forward(Y) > 0).all()


def test_log_far_out():
    """Beyond all floats it is inf, without a warning."""
    far = np.array([800.0, -800.0])
    assert Log().forward(far).tolist() == [np.inf, 0.0] == Log().slope(far).tolist()


def test_softplus_far_out():
    """Linear far up, exponential far down, without overflow or loss of digits."""
    t = Softplus()
    far = np.array([-700.0, -40.0, 800.0])
    assert t.forward(far) == pytest.approx([np.exp(-700), np.exp(-40), 800.0], rel=1e-12)
    assert t.slope(far) == pytest.approx([np.exp(-700), np.exp(-40), 1.0], rel=1e-12)
    assert t.inverse(np.array([1e-300, 1e-12, 1e6])) == pytest.approx([np.log(1e-300), np.log(1e-12), 1e6], rel=1e-10)


def test_damping_from_restitution():
    """The tie is the formula, with the effective mass of two bodies or of one, and the points that share the impact."""
    e, k, m_1, m_2, e_2 = 0.6, 1e3, 0.3, 0.8, 0.2
    theta = REBOUNDS.forward(np.array([e, k, m_1, m_2, e_2]))
    mass = m_1 * 0.5 * m_2 / (m_1 + 0.5 * m_2)
    assert clipped_restitution_from_damping(theta[3], k, mass) == pytest.approx(e, rel=1e-12)
    assert clipped_restitution_from_damping(theta[5], 2.0 * k, m_1, 3) == pytest.approx(e_2, rel=1e-12)
    assert theta[6] == 4.0
    pulling = rebounds(adhesive_damping=True).forward(np.array([e, k, m_1, m_2, e_2]))
    assert restitution_from_damping(pulling[3], k, mass) == pytest.approx(e, rel=1e-12)
