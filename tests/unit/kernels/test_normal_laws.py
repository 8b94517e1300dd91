"""Laws of the normal force: formulas written again, derivatives, energies, continuity; how far points may go."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from support.meshes import notched_cube

from add.contact import NormalLaw
from add.geometry.triangle_surface import CollisionMesh
from add.kernels.contact_bodies import KEPT, free_way
from add.kernels.contact_laws import FAR, damping_share, normal_energy, normal_law, wall_law
from add.kernels.distance import signed_distance
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE

R = 0.8
LAWS = [law for law in NormalLaw if law is not NormalLaw.PENALTY]
#: Gaps in thicknesses; those of the soft-max may be negative.
GAPS = {
    NormalLaw.PENALTY_WALL: (0.95, 0.7, 0.51, 0.49, 0.2, 0.01, 1e-3),
    NormalLaw.SOFT_MAX: (20.0, 3.0, 0.4, 0.0, -0.3, -8.0),
    NormalLaw.LOG_BARRIER: (0.95, 0.7, 0.4, 0.1, 0.01, 1e-3),
}


def depth(law: NormalLaw, gap: float, r: float) -> float:
    return law.reach * r - gap


def by_formula(law: NormalLaw, g: float, r: float, onset: float) -> float:
    """Return the force at unit stiffness, of the gap, as pages state it."""
    if law is NormalLaw.SOFT_MAX:
        return r * math.log(1.0 + math.exp(-g / r))
    if law is NormalLaw.LOG_BARRIER:  # -d/dg of -(g - r)^2 ln(g / r)
        return 2.0 * (g - r) * math.log(g / r) + (g - r) ** 2 / g
    d, x = r - g, 1.0 - 2.0 * g / r
    e = 0.5 * d * d / onset if d < onset else d - 0.5 * onset
    return e + (0.5 * r * (-3.0 * x * x * math.log(1.0 - x) + x**3 / (1.0 - x)) if g < 0.5 * r else 0.0)


CASES = [(law, gap, onset) for law in LAWS for gap in GAPS[law] for onset in (0.0, 0.3, 2.0)]


@pytest.mark.parametrize(("law", "gap", "onset"), CASES)
def test_formula_and_derivatives(law: NormalLaw, gap: float, onset: float) -> None:
    if law is not NormalLaw.PENALTY_WALL:
        onset = 0.0
    g, h = gap * R, 1e-6 * R * min(1.0, abs(gap) or 1.0)
    quadratic, beyond = depth(law, g, R) < onset, gap < 0.5

    def force(g: float, r: float) -> float:
        return float(normal_law(int(law), depth(law, g, r), r, onset, quadratic, beyond)[0])

    def energy(g: float, r: float) -> float:
        return float(normal_energy(int(law), depth(law, g, r), r, onset, quadratic, beyond)[0])

    e, e_d, e_r = normal_law(int(law), depth(law, g, R), R, onset, quadratic, beyond)
    E, E_r = normal_energy(int(law), depth(law, g, R), R, onset, quadratic, beyond)
    assert e == pytest.approx(by_formula(law, g, R, onset), rel=1e-9)
    near, k = {"rel": 2e-7, "abs": 1e-8}, 1e-5 * R
    assert e_d == pytest.approx(-(force(g + h, R) - force(g - h, R)) / (2.0 * h), **near)
    assert e_r == pytest.approx((force(g, R + k) - force(g, R - k)) / (2.0 * k), **near)
    assert e == pytest.approx(-(energy(g + h, R) - energy(g - h, R)) / (2.0 * h), **near)
    assert E_r == pytest.approx((energy(g, R + k) - energy(g, R - k)) / (2.0 * k), **near)
    assert E > 0.0 and e > 0.0 and e_d > 0.0


def test_energy_is_the_integral_over_the_whole_depth() -> None:
    for law in LAWS:
        for gap in GAPS[law][:-1]:
            d = depth(law, gap * R, R)
            total, _ = quad(
                lambda d, law=law: normal_law(int(law), d, R, 0.0, False, 2.0 * d > R)[0], 0.0, d,
                epsrel=1e-12, epsabs=1e-13, points=[0.5 * R] if d > 0.5 * R else None, limit=200,
            )  # fmt: skip
            E, _ = normal_energy(int(law), d, R, 0.0, False, 2.0 * d > R)
            assert pytest.approx(total, rel=1e-9, abs=1e-13) == E, (law, gap)


def test_the_wall_sets_in_smoothly() -> None:
    """Force and both derivatives are continuous at half the thickness: the wall's are of order four, three, two."""
    for x in (1e-2, 1e-3):
        w, w_d = wall_law(0.5 * R * (1.0 + x), R)
        assert w == pytest.approx(2.0 * R * x**3, rel=3.0 * x) and w_d == pytest.approx(12.0 * x * x, rel=3.0 * x)
    assert wall_law(0.5 * R, R) == (0.0, 0.0)


@pytest.mark.parametrize("law", [NormalLaw.PENALTY_WALL, NormalLaw.LOG_BARRIER])
def test_walls_are_infinite_where_surfaces_touch(law: NormalLaw) -> None:
    sizes = [normal_law(int(law), R - g, R, 0.0, False, True)[0] for g in (1e-3, 1e-6, 1e-9)]
    assert sizes[0] < 1e-2 * sizes[1] < 1e-4 * sizes[2]
    for d in (R, 1.5 * R):
        assert normal_law(int(law), d, R, 0.0, False, True)[0] == math.inf
        assert normal_energy(int(law), d, R, 0.0, False, True)[0] == math.inf


def test_the_soft_max_ends_below_round_off_and_tends_to_the_penalty() -> None:
    assert normal_law(int(NormalLaw.SOFT_MAX), 0.0, R, 0.0, False, False)[0] < 3e-16 * R
    e, e_d, _ = normal_law(int(NormalLaw.SOFT_MAX), (FAR + 40.0) * R, R, 0.0, False, False)
    assert e == pytest.approx(40.0 * R, rel=1e-14) and e_d == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("gap", GAPS[NormalLaw.SOFT_MAX])
def test_damping_of_the_soft_max(gap: float) -> None:
    """Its share is the slope of the force, with its derivatives by the gap and by the thickness."""

    def share(g: float, r: float) -> float:
        return float(damping_share(int(NormalLaw.SOFT_MAX), False, FAR * r - g, r, 0.0, False)[0])

    g, h = gap * R, 1e-5
    s, s_d, s_r = damping_share(int(NormalLaw.SOFT_MAX), False, FAR * R - g, R, 0.0, False)
    assert s == pytest.approx(normal_law(int(NormalLaw.SOFT_MAX), FAR * R - g, R, 0.0, False, False)[1], rel=1e-13)
    assert s_d == pytest.approx(-(share(g + h, R) - share(g - h, R)) / (2.0 * h), rel=1e-7, abs=1e-10)
    assert s_r == pytest.approx((share(g, R + h) - share(g, R - h)) / (2.0 * h), rel=1e-7, abs=1e-10)


# --- how far points may go --------------------------------------------------------------------------------------------

NOTCHED = CollisionMesh(*notched_cube())
SHAPES = {
    "plane": (PLANE, (0.0, 0.0, 0.0)),
    "sphere": (SPHERE, (0.7, 0.0, 0.0)),
    "box": (BOX, (0.5, 0.8, 0.6)),
    "thin box": (BOX, (0.5, 0.8, 1e-4)),
    "capsule": (CAPSULE, (0.4, 0.6, 0.0)),
    "cylinder": (CYLINDER, (0.5, 0.7, 0.0)),
    "mesh": (MESH, NOTCHED.row),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_ways_end_before_shapes(shape: str) -> None:
    """Along the free share every sampled gap is at least what is kept; beyond it, the way soon leads in."""
    kind, size = SHAPES[shape][0], np.array(SHAPES[shape][1], dtype=float)
    rng, S, n, H = np.random.default_rng(7), np.zeros((4, 3)), np.zeros(3), np.zeros((3, 3))

    def gap(x: np.ndarray) -> float:
        return float(signed_distance(kind, size, x, -1, n, H)[0])

    blocked, free, tight = 0, 0, 0
    for _ in range(100):
        X, aim = rng.uniform(-1.4, 1.4, (2, 3))
        radius = float(rng.choice([0.0, 0.05]))
        begin = gap(X) - radius
        if begin <= 0.0:
            continue
        share = free_way(kind, size, X, aim - X, radius, S)
        along = [gap(X + t * (aim - X)) - radius for t in np.linspace(0.0, 1.0, 401)]
        inside = [k for k, g in enumerate(along) if k <= share * 400.0]
        assert 0.0 <= share <= 1.0 and min(along[k] for k in inside) >= KEPT * begin * (1.0 - 1e-9)
        if share == 1.0:
            free += 1
        else:
            blocked += 1
            length = float(np.linalg.norm(aim - X))
            # What is kept was nearly reached; ways beside meshes may end earlier, never later.
            tight += gap(X + share * (aim - X)) - radius <= KEPT * begin * 1.011 + 1e-12 * length
            assert kind == MESH or min(along) < 1.05 * KEPT * begin
    assert blocked > 10 and free > 5 and tight >= (0.9 if kind == MESH else 1.0) * blocked


def test_sliding_along_a_plane_is_free() -> None:
    """However near it is: nothing is in the way."""
    S = np.zeros((4, 3))
    X, way = np.array([0.0, 0.0, 1e-9]), np.array([1e3, 0.0, 0.0])
    assert free_way(PLANE, np.zeros(3), X, way, 0.0, S) == 1.0
    assert free_way(PLANE, np.zeros(3), -X, way, 0.0, S) == 1.0  # what is behind already is left alone
