"""Solutions, derivatives and errors of cone problems that nothing but definitions can judge."""

import itertools

import numpy as np
import pytest
from support.random_contacts import random_step

from add.cones import ConeKind, Cones, QCQPLayer, QPLayer, certify, solve
from add.errors import SolverError
from add.kernels.cone_modes import EXACT, SEPARATE, SLIDE, STICK
from add.kernels.cone_shares import least_norm_inverse, least_norm_solution, spread_sticking
from add.kernels.cones import project

MIXED = (
    Cones.friction([0.4, 1.3]) + Cones.half_lines(2) + Cones.discs([0.9, 0.0]) + Cones.pyramids([0.7]) + Cones.free(2)
)


def inside(cones: Cones, l: np.ndarray, slack: float = 1e-12) -> bool:
    """Whether impulses are in the cones, by their definition."""
    for kind, first, bound in zip(cones.kind, cones.first, cones.bound, strict=True):
        part = l[first : first + 3]
        if kind == ConeKind.HALF_LINE and part[0] < -slack:
            return False
        if kind == ConeKind.DISC and np.hypot(part[0], part[1]) > bound + slack:
            return False
        if kind == ConeKind.CONE and np.hypot(part[0], part[1]) > bound * part[2] + slack:
            return False
        if kind == ConeKind.PYRAMID and np.abs(part[:2]).max() > bound * part[2] + slack:
            return False
    return True


def test_projection_is_the_closest_point(rng: np.random.Generator) -> None:
    """(x - P x) . (y - P x) <= 0 for every y in the cones: the definition of a projection on a convex set."""
    out, corners = np.empty(MIXED.n_rows), np.empty(MIXED.n_rows)
    for _ in range(300):
        x = rng.normal(size=MIXED.n_rows) * 10.0 ** rng.uniform(-2, 1)
        project(MIXED.blocks, x, out)
        assert inside(MIXED, out)
        for _ in range(20):
            project(MIXED.blocks, 3.0 * rng.normal(size=MIXED.n_rows), corners)
            assert (x - out) @ (corners - out) <= 1e-10


def mixed_problem(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """G of full rank and g for `MIXED`."""
    root = rng.normal(size=(MIXED.n_rows, MIXED.n_rows + 4))
    return root @ root.T / MIXED.n_rows, rng.normal(size=MIXED.n_rows)


def test_mixed_cones_and_their_derivatives(rng: np.random.Generator) -> None:
    """All kinds at once: natural map zero, and all derivatives by differences, with every mode seen."""
    seen = set()
    for _ in range(25):
        G, g = mixed_problem(rng)
        solution = solve(G, g, MIXED)
        assert solution.natural_map < 1e-12
        if solution.weakly_active.any() or solution.margins.min() < 1e-3:
            continue
        seen |= {(int(kind), int(mode)) for kind, mode in zip(MIXED.kind, solution.modes, strict=True)}
        weight = rng.normal(size=g.size)
        bar = solution.sensitivity.pullback(weight)
        G_dot, g_dot = rng.normal(size=G.shape), rng.normal(size=g.size)
        bound_dot = rng.normal(size=MIXED.kind.size) * (MIXED.bound > 0.0)

        def at(h: float, G=G, g=g, G_dot=G_dot, g_dot=g_dot, bound_dot=bound_dot, modes=solution.modes) -> np.ndarray:
            moved = solve(G + h * G_dot, g + h * g_dot, Cones(MIXED.kind, MIXED.bound + h * bound_dot))
            assert np.array_equal(moved.modes, modes), "a mode changed: the difference would mean nothing"
            return moved.impulse

        h = 1e-6
        slope = (at(h) - at(-h)) / (2 * h)
        forward = solution.sensitivity.pushforward(G_dot, g_dot, bound_dot)
        np.testing.assert_allclose(forward, slope, atol=2e-6 * max(1.0, np.abs(slope).max()))
        reverse = (bar.delassus * G_dot).sum() + bar.offset @ g_dot + bar.bound @ bound_dot
        assert reverse == pytest.approx(weight @ forward, rel=1e-9, abs=1e-10)
    wanted = {(ConeKind.CONE, mode) for mode in (SEPARATE, STICK, SLIDE)}
    wanted |= {
        (ConeKind.HALF_LINE, SEPARATE),
        (ConeKind.HALF_LINE, STICK),
        (ConeKind.DISC, STICK),
        (ConeKind.DISC, SLIDE),
    }
    assert wanted <= seen
    assert len({mode for kind, mode in seen if kind == ConeKind.PYRAMID}) >= 4


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 10_000), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_random_steps_are_certified_or_reported(seeds: range) -> None:
    """Piles of boxes: none is wrong without saying so; Newton finishes all but one in a hundred."""
    unsolved, by_admm, kinds = 0, 0, np.zeros(4)
    for seed in seeds:
        case = random_step(np.random.default_rng(seed))
        solution = case.step.solve()
        certificate = certify(case.metric, case.step, solution.velocity, solution.cone.impulse)
        kinds += [case.redundant, case.ratio > 100.0, case.mu > 0.8, case.impact]
        if solution.cone.certified:
            assert certificate.worst < 1e-7, seed  # two of ten thousand are above 1e-8: loads of redundant rows
            by_admm += solution.cone.natural_map > EXACT
        else:
            unsolved += 1
            with pytest.raises(SolverError, match="no derivative"):
                _ = solution.cone.sensitivity
    assert unsolved <= 0.002 * len(seeds)
    assert unsolved + by_admm <= 0.01 * len(seeds)
    assert np.all(kinds / len(seeds) >= [0.3, 0.2, 0.2, 0.1])


def test_cone_is_isotropic_and_the_pyramid_is_not() -> None:
    """A block that slides loses mu g dt whatever its direction; on the pyramid up to sqrt(2) times that."""
    mu, load = 0.3, 0.05
    losses = {"cone": [], "pyramid": []}
    for angle in np.linspace(0.0, np.pi / 2, 19):
        g = np.array([np.cos(angle), np.sin(angle), -load])
        for name, cones in (("cone", Cones.friction([mu])), ("pyramid", Cones.pyramids([mu]))):
            u = solve(np.eye(3), g, cones).velocity
            losses[name].append(1.0 - np.hypot(u[0], u[1]))
    np.testing.assert_allclose(losses["cone"], mu * load, atol=1e-12)
    assert min(losses["pyramid"]) == pytest.approx(mu * load, abs=1e-12)
    assert max(losses["pyramid"]) == pytest.approx(np.sqrt(2.0) * mu * load, rel=0.02)


def test_expected_zeros(rng: np.random.Generator) -> None:
    """Friction of contacts that stick or are open changes nothing."""
    G = np.eye(6)
    g = np.array([0.1, 0.0, -1.0, 0.3, 0.2, 0.5])
    solution = solve(G, g, Cones.friction([0.5, 0.5]))
    assert solution.modes.tolist() == [STICK, SEPARATE]
    bar = solution.sensitivity.pullback(rng.normal(size=6))
    assert not bar.bound.any() and not bar.offset[3:].any()


def test_common_scales_change_nothing(rng: np.random.Generator) -> None:
    """Mass in grams and lengths in millimetres: the same modes, impulses in other units."""
    G, g = mixed_problem(rng)
    base = solve(G, g, MIXED)
    for mass, length in itertools.product((1e-6, 1.0, 1e6), (1e-3, 1e3)):
        bound = np.where(MIXED.kind == ConeKind.DISC, MIXED.bound * mass * length, MIXED.bound)
        other = solve(G / mass, g * length, Cones(MIXED.kind, bound))
        assert np.array_equal(other.modes, base.modes)
        np.testing.assert_allclose(other.impulse, base.impulse * mass * length, rtol=1e-9, atol=1e-11 * mass * length)


def test_weakly_active_contact_is_named() -> None:
    """A contact that touches without load is on the border of two modes."""
    solution = solve(np.eye(2), np.array([-1.0, 0.0]), Cones.half_lines(2))
    assert solution.weakly_active.tolist() == [False, True]


def test_nothing_to_do() -> None:
    assert solve(np.zeros((0, 0)), np.zeros(0), Cones.half_lines(0)).impulse.size == 0
    rest = solve(np.eye(3), np.zeros(3), Cones.friction([0.5]))
    assert rest.certified and not rest.impulse.any()


@pytest.mark.parametrize("bound", [-0.1, np.nan, np.inf])
def test_bad_friction(bound: float) -> None:
    with pytest.raises(ValueError, match=rf"is {bound}, expected a finite number >= 0"):
        Cones.friction([0.3, bound])


def test_bad_problems() -> None:
    with pytest.raises(ValueError, match=r"3 rows need G \(3, 3\) and g \(3,\), found \(2, 2\) and \(3,\)"):
        solve(np.eye(2), np.zeros(3), Cones.friction([0.3]))
    with pytest.raises(ValueError, match="finite"):
        solve(np.eye(3), np.array([0.0, np.nan, 1.0]), Cones.friction([0.3]))


def test_unsolvable_problem_is_not_certified() -> None:
    """A contact that approaches and cannot be moved."""
    solution = solve(np.zeros((3, 3)), np.array([0.0, 0.0, -1.0]), Cones.friction([0.5]))
    assert not solution.certified


def test_layers_by_differences(rng: np.random.Generator) -> None:
    """Every input of both layers."""
    root = rng.normal(size=(6, 6))
    G, g, mu, normal = root @ root.T, rng.normal(size=6), np.array([0.5, 0.3, 0.8]), np.array([0.4, 0.2, 1.0])
    w, h = rng.normal(size=6), 1e-6
    base = QCQPLayer.of(G, g, mu, normal)
    assert {STICK, SLIDE} & set(base.solution.modes.tolist())
    inputs = [G, g, mu, normal]
    for k, bar in enumerate(base.pullback(w)):
        dot = rng.normal(size=bar.shape)
        dot = dot + dot.T if k == 0 else dot
        ends = [QCQPLayer.of(*[x + s * h * dot if j == k else x for j, x in enumerate(inputs)]) for s in (1, -1)]
        slope = w @ (ends[0].solution.impulse - ends[1].solution.impulse) / (2 * h)
        assert (bar * dot).sum() == pytest.approx(slope, rel=1e-6, abs=1e-8)
    for k, bar in enumerate(QPLayer.of(G, g).pullback(w)):
        dot = rng.normal(size=bar.shape)
        dot = dot + dot.T if k == 0 else dot
        ends = [QPLayer.of(*[x + s * h * dot if j == k else x for j, x in enumerate((G, g))]) for s in (1, -1)]
        slope = w @ (ends[0].solution.impulse - ends[1].solution.impulse) / (2 * h)
        assert (bar * dot).sum() == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_rows_that_are_all_but_equal_hide_no_redundant_one():
    """Two points of a body along an axis, but for a millionth: by columns the pivots are 1, 1, 1, 1e-6, 1e-4, 1e-7."""
    rng = np.random.default_rng(484)
    tilt = 10.0 ** rng.uniform(-6, -3)
    along, middle = np.array([0.2, tilt * rng.normal(), tilt * rng.normal()]), np.array([0, 0.1 * rng.normal(), -0.3])
    rows = [np.hstack([np.eye(3), -np.cross(np.eye(3), middle + sign * along).T]) for sign in (-1, 1)]
    turn, sizes = np.linalg.qr(rng.normal(size=(6, 6)))[0], 10 ** rng.uniform(-1, 1, 6)
    G = np.vstack(rows) @ turn @ np.diag(1.0 / sizes) @ turn.T @ np.vstack(rows).T
    scale = np.repeat(1.0 / np.sqrt(G.diagonal().reshape(2, 3).mean(axis=1)), 3)
    K = scale[:, None] * G * scale
    assert np.linalg.svd(K)[1][-1] < 1e-15
    x = rng.normal(size=6)
    found = least_norm_solution(K, K @ x)
    np.testing.assert_allclose(K @ found, K @ x, atol=1e-12)
    assert np.linalg.norm(found) <= np.linalg.norm(x)


def test_pseudo_inverses_of_any_rank(rng):
    """The inverse, the solution of rows that disagree, and the kernel, beside NumPy's of the matrix with unit rows."""
    ranks = 0
    for _ in range(200):
        m = int(rng.integers(1, 14))
        r = int(rng.integers(1, m + 1))
        K = rng.normal(size=(m, r)) @ rng.normal(size=(r, m)) * 10.0 ** rng.uniform(-3.0, 3.0)
        sizes, b = np.linalg.norm(K, axis=1), rng.normal(size=m)
        exact = np.linalg.pinv(K / sizes[:, None], rcond=1e-11) / sizes
        inverse, kernel = least_norm_inverse(K)
        scale = 1e-9 * np.abs(exact).max() * np.linalg.cond(K / sizes[:, None] + kernel @ kernel.T)
        np.testing.assert_allclose(inverse, exact, atol=scale)
        np.testing.assert_allclose(least_norm_solution(K, b), exact @ b, atol=scale * np.abs(b).sum())
        assert kernel.shape[1] == m - r
        np.testing.assert_allclose(kernel.T @ kernel, np.eye(m - r), atol=1e-12)
        assert np.abs(K @ kernel).max(initial=0.0) < 1e-9 * sizes.max()
        ranks += r < m
    assert ranks > 100


def test_sticking_contacts_share_tangents_by_the_room_in_their_cones():
    """The least sum of |l_t|^2/(mu l_n) over what the kernel lets them pass on."""
    rng = np.random.default_rng(5)
    cones, l = Cones.friction([0.4, 1.3]), np.array([0.3, -0.2, 2.0, 0.1, 0.6, 5.0])
    basis = np.zeros((6, 2))
    basis[[0, 1, 3, 4]] = rng.normal(size=(4, 2))
    weight = 1.0 / np.repeat([0.4 * 2.0, 1.3 * 5.0], 3)
    before = basis.T @ (weight * l)
    spread_sticking(cones.blocks, np.array([STICK, STICK]), STICK, basis, l)
    assert np.abs(basis.T @ (weight * l)).max() < 1e-12 < np.abs(before).max()
