"""Contact kernels: exact derivatives in every branch, replay, invariances, limits."""

import itertools

import numpy as np
import pytest
from support.decisions import FEATURE_SHIFT, table_of

from add.contact import BodyContact, FrictionLaw, NormalLaw, PairParameters
from add.equations.kinematics import Kinematics, Weights
from add.kernels import distance
from add.kernels.contact_laws import friction_law
from add.kernels.contact_pairs import ACTIVE, BEYOND, BITS, CLIPPED, QUADRATIC, RAMPING, SLIP
from add.kernels.distance import SIDE, TOP
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, PLANE, SPHERE

DEPTH = 0.1
STIFFNESS = 40.0
# place: (kind, size, feature, a point of the surface there, the normal there)
E = np.array([0.6, -0.8, 0.0])
PLACES = {
    "plane": (PLANE, (0.0, 0.0, 0.0), 0, (0.3, -0.2, 0.0), (0.0, 0.0, 1.0)),
    "sphere": (SPHERE, (0.7, 0.0, 0.0), 0, (0.2, 0.3, -0.6), (2 / 7, 3 / 7, -6 / 7)),
    "box": (BOX, (0.5, 0.8, 0.6), 10, (0.1, -0.8, 0.2), (0.0, -1.0, 0.0)),
    "capsule side": (CAPSULE, (0.4, 0.6, 0.0), SIDE, 0.4 * E + (0.0, 0.0, 0.2), E),
    "capsule cap": (CAPSULE, (0.4, 0.6, 0.0), TOP, (0.8 / 7, 1.2 / 7, 0.6 + 2.4 / 7), (2 / 7, 3 / 7, 6 / 7)),
    "cylinder side": (CYLINDER, (0.5, 0.7, 0.0), SIDE, 0.5 * E + (0.0, 0.0, 0.2), E),
    "cylinder cap": (CYLINDER, (0.5, 0.7, 0.0), TOP, (0.1, 0.15, 0.7), (0.0, 0.0, 1.0)),
}
NONE, LINEAR, TANH = FrictionLaw.NONE, FrictionLaw.LINEAR, FrictionLaw.TANH
FRICTION = {"none": (NONE, 0), "stick": (LINEAR, 0), "slip": (LINEAR, SLIP), "tanh": (TANH, 0)}
DEPTHS = {"off": 0.0, "inside": 0.2, "beyond": 0.04}
PARAMETERS = ("k_n", "k_d", "k_t", "c_f")


def random_rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return np.ascontiguousarray(q * np.linalg.det(q))


class Problem:
    """Nodes, obstacles that translate and tables with defaults; `force` and others ask the term of the attributes."""

    def __init__(self, x, v, kind, size, n_group=1, **changes):
        n_points, n_obstacles = len(x), len(kind)
        self.x, self.v = np.array(x, dtype=float), np.array(v, dtype=float)
        self.scale = np.ones(n_points)
        self.group = np.zeros(n_points, dtype=np.int64)
        self.kind = np.array(kind, dtype=np.int64)
        self.size = np.array(size, dtype=float)
        self.R = np.tile(np.eye(3), (n_obstacles, 1, 1))
        self.p, self.V = np.zeros((n_obstacles, 3)), np.zeros((n_obstacles, 3))
        self.enabled = np.ones((n_group, n_obstacles), dtype=bool)
        table = {"k_n": STIFFNESS, "k_d": 0.0, "k_t": 5.0, "c_f": 0.5, "onset": 0.0, "ramp": 0.0, "thickness": 0.0}
        for name, value in table.items():
            setattr(self, name, np.full((n_group, n_obstacles), value))
        self.law, self.coulomb_total, self.elastic = FrictionLaw.LINEAR, False, NormalLaw.PENALTY
        self.rows, self._made = np.zeros((0, 3), dtype=np.int64), None
        for name, value in changes.items():
            old = getattr(self, name)
            setattr(self, name, np.full_like(old, value) if isinstance(old, np.ndarray) else value)

    @property
    def contact(self):
        """The term, made anew where anything changes that is neither state nor theta."""
        fixed = (self.scale, self.group, self.R, self.p, self.V, self.enabled, self.onset, self.ramp)
        key = (self.law, self.coulomb_total, self.elastic, *(part.tobytes() for part in fixed))
        if self._made is None or self._made[0] != key:
            self._made = key, self._term()
        return self._made[1]

    def _term(self):
        n, k, shape = len(self.x), len(self.kind), self.k_n.shape
        indices = np.arange(len(self.names) * self.k_n.size).reshape(len(self.names), *shape)
        layers = None if self.elastic is NormalLaw.PENALTY else indices[4]
        pairs = PairParameters(*indices[:4], self.onset, self.ramp, self.enabled, layers)
        return BodyContact(
            carrier=3 * np.arange(n), rigid=np.zeros(n, dtype=bool), arm=np.zeros((n, 3)), radius=np.zeros(n),
            scale=self.scale, group=self.group, centre=np.full((n, 3), -1), kind=self.kind, size=self.size,
            shape_carrier=np.full(k, -1), rotation=self.R, position=self.p, velocity=self.V,
            shape_centre=np.full((k, 3), -1), shape_group=np.arange(k), owner=self.group,
            shape_owner=2 + np.arange(k), pairs=pairs, law=self.law, total_normal=self.coulomb_total,
            normal_law=self.elastic,
        )  # fmt: skip

    @property
    def state(self):
        """Kinematics and theta."""
        theta = np.concatenate([getattr(self, name).ravel() for name in self.names])
        return Kinematics(self.x.ravel(), self.v.ravel(), np.zeros(self.x.size), 0.0, 0), theta

    @property
    def codes(self):
        """Bits and features of all pairs."""
        return table_of(self.contact, self.rows)

    @property
    def n_active(self):
        return int(np.count_nonzero(self.rows[:, BITS] & ACTIVE))

    def branch(self, replay):
        """Return the branch, found anew unless replayed."""
        if not replay:
            self.force()
        return self.contact.on_branch(self.rows)

    def force(self, replay=False):
        residual, contact = np.zeros(self.x.size), self.contact
        if replay:
            before = self.rows.copy()
            contact.on_branch(self.rows).residual(*self.state, residual)
            assert np.array_equal(self.rows, before), "a replay decides nothing"
        else:
            self.rows = contact.decided_residual(*self.state, residual)
        return -residual.reshape(-1, 3)

    def jacobian(self, replay=False):
        branch, n = self.branch(replay), self.x.size
        rows, cols = branch.pattern()
        out = []
        for weights in (Weights(1.0, 0.0, 0.0), Weights(0.0, 1.0, 0.0)):
            data, whole = np.zeros(rows.size), np.zeros((n, n))
            branch.jacobian(*self.state, weights, data, np.arange(rows.size))
            np.add.at(whole, (rows, cols), -data)
            out.append(np.stack([whole[i : i + 3, i : i + 3] for i in range(0, n, 3)]))
        return out

    @property
    def names(self):
        return PARAMETERS if self.elastic is NormalLaw.PENALTY else (*PARAMETERS, "thickness")

    def parameter_vjp(self, lam, replay=False, out=None):
        out = np.zeros(self.state[1].size) if out is None else out
        self.branch(replay).parameter_vjp(*self.state, -lam.ravel(), out)
        return list(out.reshape(-1, *self.k_n.shape))

    def parameter_jvp(self, dots, replay=False, out=None):
        out = np.zeros(self.x.size) if out is None else out
        self.branch(replay).parameter_jvp(*self.state, np.concatenate([dot.ravel() for dot in dots]), out)
        return -out.reshape(-1, 3)

    def energy(self):
        return self.contact.energy(*self.state)

    def central(self, name, direction, h=2e-4, replay=False):
        """Fourth-order central difference of the force along `direction` of `name`; no decision may change."""
        original = getattr(self, name)
        self.force(replay)
        codes = self.codes.copy()
        total = 0.0
        for step, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            setattr(self, name, original + step * h * direction)
            total = total + weight * self.force(replay)
            assert np.array_equal(self.codes, codes), "the difference straddles a kink"
        setattr(self, name, original)
        return total / (12.0 * h)

    def numerical_jacobian(self, name, **kwargs):
        """d F_i / d name_i for all points at once: points do not interact."""
        return np.stack([self.central(name, np.tile(e, (len(self.x), 1)), **kwargs) for e in np.eye(3)], axis=-1)


def problem_in_branch(place, friction, onset, ramp, clip, total, moving, seed=0):
    """One point at DEPTH under the surface of one obstacle, in the branch asked for; None if impossible."""
    kind, size, feature, surface, normal = PLACES[place]
    law, slip = FRICTION[friction]
    if clip and total and friction == "stick":
        return None  # no normal force, no stick
    rng = np.random.default_rng(seed)
    R, p = random_rotation(rng), rng.normal(size=3)
    normal = np.array(normal)
    x = R @ (np.array(surface) - DEPTH * normal) + p
    tangential = np.cross(R @ normal, rng.normal(size=3))
    tangential *= 0.3 / np.linalg.norm(tangential)
    v_rel = (1.5 if clip else -0.2) * (R @ normal) + tangential
    problem = Problem(
        [x],
        [v_rel],
        [kind],
        [size],
        law=law,
        coulomb_total=total,
        scale=1.7,
        onset=DEPTHS[onset],
        ramp=DEPTHS[ramp],
        k_d=8.0,
        k_t=20.0 if slip else 0.5 if friction == "stick" else 3.0,
        c_f=0.6 if friction == "stick" else 0.3,
    )
    problem.R[0], problem.p[0] = R, p
    if moving:
        problem.V[0] = rng.normal(size=3)
        problem.v[0] += problem.V[0]
    expected = ACTIVE | slip | feature << FEATURE_SHIFT
    expected |= (
        (QUADRATIC if onset == "inside" else 0) | (RAMPING if ramp == "inside" else 0) | (CLIPPED if clip else 0)
    )
    problem.expected = expected
    return problem


def branches(place, friction, motions=(True,)):
    for onset, ramp, clip, total, moving in itertools.product(DEPTHS, DEPTHS, (0, 1), (False, True), motions):
        problem = problem_in_branch(place, friction, onset, ramp, clip, total, moving)
        if problem is not None:
            yield problem


def assert_near(actual, expected, relative=1e-8):
    floor = 1e-3  # the difference quotient's own noise where the derivative is 0
    assert np.isfinite(actual).all()
    assert np.max(np.abs(actual - expected)) <= relative * max(np.max(np.abs(expected)), floor)


def reference_force(problem):
    """The law of the module's docstring for one point and one obstacle, written again with vectors."""
    n, H = np.zeros(3), np.zeros((3, 3))
    R, p = problem.R[0], problem.p[0]
    g, _ = distance.signed_distance(problem.kind[0], problem.size[0], R.T @ (problem.x[0] - p), -1, n, H)
    n = R @ n
    get = {name: getattr(problem, name)[0, 0] for name in (*PARAMETERS, "onset", "ramp")}
    d = max(-g, 0.0)
    e = d**2 / (2 * get["onset"]) if d < get["onset"] else d - get["onset"] / 2
    y = min(d / get["ramp"], 1.0) if get["ramp"] > 0.0 else 1.0
    v_rel = problem.v[0] - problem.V[0]
    v_n = n @ v_rel
    v_t = v_rel - v_n * n
    u = np.linalg.norm(v_t)
    f_e = get["k_n"] * e
    f_n = max(f_e - get["k_d"] * (3 * y**2 - 2 * y**3) * v_n, 0.0)
    limit = get["c_f"] * (f_n if problem.coulomb_total else f_e)
    if problem.law == NONE:
        m = 0.0
    elif problem.law == LINEAR:
        m = min(get["k_t"] * u, limit)
    else:
        m = limit * np.tanh(get["k_t"] * u / limit) if limit > 0.0 else 0.0
    return problem.scale[0] * (f_n * n - m * v_t / u)


@pytest.mark.parametrize("friction", FRICTION)
@pytest.mark.parametrize("place", PLACES)
def test_force_and_jacobian_in_every_branch(place, friction):
    count = 0
    for problem in branches(place, friction, motions=(False, True)):
        F = problem.force()
        assert problem.n_active == 1
        assert problem.codes[0, 0] == problem.expected
        np.testing.assert_allclose(F[0], reference_force(problem), rtol=1e-11, atol=1e-12)
        Kx, Kv = problem.jacobian()
        assert problem.n_active == 1
        assert problem.codes[0, 0] == problem.expected
        assert_near(Kx, problem.numerical_jacobian("x"))
        assert_near(Kv, problem.numerical_jacobian("v"))
        count += 1
    assert count == (54 if friction == "stick" else 72)


@pytest.mark.parametrize("friction", FRICTION)
@pytest.mark.parametrize("place", PLACES)
def test_parameter_derivatives_in_every_branch(place, friction):
    rng = np.random.default_rng(1)
    for problem in branches(place, friction):
        lam = rng.normal(size=(1, 3))
        bars = problem.parameter_vjp(lam)
        assert problem.codes[0, 0] == problem.expected
        dots = rng.normal(size=(4, 1, 1))
        F_dot = problem.parameter_jvp(list(dots))
        by_difference = [problem.central(name, np.ones((1, 1))) for name in PARAMETERS]
        for bar, derivative in zip(bars, by_difference, strict=True):
            assert_near(bar, np.array([[np.sum(lam * derivative)]]))
        assert_near(F_dot, sum(dot * derivative for dot, derivative in zip(dots, by_difference, strict=True)))


#: Law, gap in thicknesses, bits.
LAYERS = {
    "wall": (NormalLaw.PENALTY_WALL, 0.3, BEYOND),
    "before the wall": (NormalLaw.PENALTY_WALL, 0.7, 0),
    "soft-max": (NormalLaw.SOFT_MAX, 0.5, 0),
    "soft-max, inside": (NormalLaw.SOFT_MAX, -0.8, 0),
    "log-barrier": (NormalLaw.LOG_BARRIER, 0.4, 0),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("friction", FRICTION)
@pytest.mark.parametrize("place", ["plane", "capsule cap"])
def test_layers(place, friction, layer):
    """Laws with a layer around shapes: force, Jacobian, all parameters with the thickness, in every branch."""
    law, gap, bits = LAYERS[layer]
    feature, normal = PLACES[place][2], PLACES[place][4]
    rng, thickness = np.random.default_rng(2), 0.15
    depths = (("off", "off"), ("off", "inside"), ("inside", "beyond"))
    for (onset, ramp), clip, total in itertools.product(depths, (0, 1), (False, True)):
        problem = problem_in_branch(place, friction, onset, ramp, clip, total, True)
        if problem is None or (law is not NormalLaw.PENALTY_WALL and onset != "off"):
            continue
        problem.elastic, problem.thickness[:] = law, thickness
        n = problem.R[0] @ np.array(normal)
        problem.x[0] += (DEPTH + gap * thickness) * n
        d = law.reach * thickness - gap * thickness
        problem.k_d[:] *= 1e4 if clip else 1e-3
        problem.k_t[:] = 200.0 if friction == "slip" else 0.01 if friction == "stick" else 3.0
        problem.force()
        code = int(problem.codes[0, 0])
        assert problem.n_active == 1 and code >> FEATURE_SHIFT == feature and code & BEYOND == bits
        assert bool(code & QUADRATIC) == (law is NormalLaw.PENALTY_WALL and d < problem.onset[0, 0])
        assert bool(code & RAMPING) == (d < problem.ramp[0, 0]) and bool(code & CLIPPED) == bool(clip)
        Kx, Kv = problem.jacobian()
        assert_near(Kx, problem.numerical_jacobian("x", h=2e-5), 1e-6)
        assert_near(Kv, problem.numerical_jacobian("v"), 1e-6)
        lam = rng.normal(size=(1, 3))
        dots = rng.normal(size=(5, 1, 1))
        by_difference = [
            problem.central(name, np.ones((1, 1)), h=2e-6 if name == "thickness" else 2e-4) for name in problem.names
        ]
        for bar, derivative in zip(problem.parameter_vjp(lam), by_difference, strict=True):
            assert_near(bar, np.array([[np.sum(lam * derivative)]]), 1e-5)
        by_dots = sum(dot * derivative for dot, derivative in zip(dots, by_difference, strict=True))
        assert_near(problem.parameter_jvp(list(dots)), by_dots, 1e-5)


@pytest.mark.parametrize("place", PLACES)
def test_replay_continues_smoothly_outside(place):
    """Codes decided inside, evaluated at a point that has left: force and Jacobian of the same smooth formula."""
    normal = np.array(PLACES[place][4])
    for friction in FRICTION:
        for problem in branches(place, friction):
            inside = problem.force(), *problem.jacobian(), problem.rows
            for a, b in zip(
                (problem.force(replay=True), *problem.jacobian(replay=True), problem.rows), inside, strict=True
            ):
                assert np.array_equal(a, b)
            problem.x[0] += (DEPTH + 0.02) * (problem.R[0] @ normal)
            assert np.all(problem.force() == 0.0) and not problem.rows.size
            problem.rows = inside[-1]
            Kx, Kv = problem.jacobian(replay=True)
            assert problem.n_active == 1 and problem.codes[0, 0] == problem.expected
            assert_near(Kx, problem.numerical_jacobian("x", replay=True))
            assert_near(Kv, problem.numerical_jacobian("v", replay=True))
            lam = np.array([[0.3, -0.7, 0.5]])
            for name, bar in zip(PARAMETERS, problem.parameter_vjp(lam, replay=True), strict=True):
                assert_near(bar, np.array([[np.sum(lam * problem.central(name, np.ones((1, 1)), replay=True))]]))


def crowd(law=LINEAR, total=False, seed=2, n_points=400):
    """Many points, two groups and all five obstacles at once, moving, with overlapping obstacles."""
    rng = np.random.default_rng(seed)
    places = [PLACES[name] for name in ("plane", "sphere", "box", "capsule side", "cylinder side")]
    problem = Problem(
        rng.uniform(-1.0, 1.0, (n_points, 3)),
        rng.normal(size=(n_points, 3)),
        [place[0] for place in places],
        [place[1] for place in places],
        n_group=2,
        law=law,
        coulomb_total=total,
    )
    problem.group[:] = rng.integers(0, 2, n_points)
    problem.scale[:] = rng.uniform(0.5, 2.0, n_points)
    for o in range(5):
        problem.R[o] = random_rotation(rng)
    problem.p[:] = 0.6 * rng.normal(size=(5, 3))
    problem.p[0] -= 0.7 * problem.R[0, :, 2]
    problem.V[:] = rng.normal(size=(5, 3))
    for name, low, high in (
        ("k_n", 20.0, 60.0), ("k_d", 0.0, 8.0), ("k_t", 1.0, 20.0), ("c_f", 0.1, 0.9), ("onset", 0.0, 0.2),
        ("ramp", 0.0, 0.2),
    ):  # fmt: skip
        getattr(problem, name)[:] = rng.uniform(low, high, (2, 5))
    problem.enabled[1, 2] = False
    return problem


def all_results(problem, replay=False):
    rng = np.random.default_rng(3)
    lam, dots = rng.normal(size=problem.x.shape), list(rng.normal(size=(4, *problem.k_n.shape)))
    return {
        "F": problem.force(replay),
        "K": np.stack(problem.jacobian(replay)),
        "vjp": np.stack(problem.parameter_vjp(lam, replay)),
        "jvp": problem.parameter_jvp(dots, replay),
        "energy": problem.energy(),
        "codes": problem.codes,
    }


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("law", [NONE, LINEAR, TANH])
def test_crowd_replay_equals_decide(law, total):
    problem = crowd(law, total)
    decided = all_results(problem)
    replayed = all_results(problem, replay=True)
    for name in decided:
        assert np.array_equal(decided[name], replayed[name]), name
    codes = decided["codes"]
    assert np.all(np.any(codes != 0, axis=0)), "an obstacle is never touched"
    assert np.max(np.sum(codes != 0, axis=1)) >= 2, "no point touches two obstacles"
    bits = np.bitwise_or.reduce(codes, axis=None)
    assert bits & (QUADRATIC | RAMPING | CLIPPED) == QUADRATIC | RAMPING | CLIPPED
    assert bool(bits & SLIP) == (law == LINEAR)
    assert np.all(codes[problem.group == 1, 2] == 0), "disabled"
    assert problem.n_active == np.count_nonzero(codes)


@pytest.mark.parametrize("law", [NONE, LINEAR, TANH])
def test_crowd_is_the_sum_of_its_pairs(law):
    problem = crowd(law)
    together = problem.force()
    Kx, Kv = problem.jacobian()
    for o in range(5):
        only = np.zeros_like(problem.enabled)
        only[:, o] = crowd(law).enabled[:, o]
        problem.enabled = only
        together -= problem.force()
        a, b = problem.jacobian()
        Kx -= a
        Kv -= b
    for rest in (together, Kx, Kv):
        np.testing.assert_allclose(rest, 0.0, atol=1e-12)


def test_parameter_vjp_is_the_transpose_of_the_jvp_and_accumulates():
    problem = crowd(TANH, True)
    rng = np.random.default_rng(4)
    lam, dots = rng.normal(size=problem.x.shape), list(rng.normal(size=(4, 2, 5)))
    forward, bars = problem.parameter_jvp(dots), problem.parameter_vjp(lam)
    np.testing.assert_allclose(
        np.sum(lam * forward), sum(np.sum(a * b) for a, b in zip(bars, dots, strict=True)), rtol=1e-12
    )
    twice = problem.parameter_vjp(lam, out=np.ravel(bars).copy())
    np.testing.assert_allclose(twice, 2.0 * np.stack(bars), rtol=1e-14)
    again = problem.parameter_jvp(dots, out=-forward.ravel())
    np.testing.assert_allclose(again, 2.0 * forward, rtol=1e-14)


@pytest.mark.parametrize("law", [NONE, LINEAR, TANH])
def test_frame_invariance(law):
    """A common rigid motion of everything, with a common extra velocity, rotates forces and Jacobians with it."""
    problem = crowd(law)
    before, (Kx, Kv) = problem.force(), problem.jacobian()
    codes = problem.codes.copy()
    rng = np.random.default_rng(5)
    Q, shift, extra = random_rotation(rng), rng.normal(size=3), rng.normal(size=3)
    problem.x, problem.v = problem.x @ Q.T + shift, problem.v @ Q.T + extra
    problem.R = np.ascontiguousarray(Q @ problem.R)
    problem.p, problem.V = problem.p @ Q.T + shift, problem.V @ Q.T + extra
    np.testing.assert_allclose(problem.force(), before @ Q.T, atol=1e-12)
    assert np.array_equal(problem.codes, codes)
    for after, K in zip(problem.jacobian(), (Kx, Kv), strict=True):
        np.testing.assert_allclose(after, Q @ K @ Q.T, atol=1e-10)


def test_riding_along_gives_the_elastic_force_alone():
    for place, law in itertools.product(PLACES, (LINEAR, TANH)):
        problem = problem_in_branch(place, "tanh", "off", "off", 0, False, True)
        problem.law = law
        problem.v[0] = problem.V[0]
        expected = 1.7 * STIFFNESS * DEPTH * problem.R[0] @ PLACES[place][4]
        np.testing.assert_allclose(problem.force()[0], expected, atol=1e-12)


@pytest.mark.parametrize("place", PLACES)
def test_friction_opposes_sliding_and_obeys_coulomb(place):
    for friction in ("stick", "slip", "tanh"):
        problem = problem_in_branch(place, friction, "off", "off", 0, False, False)
        problem.k_d[:] = 0.0
        n = problem.R[0] @ PLACES[place][4]
        F = problem.force()[0]
        v_t = problem.v[0] - n * (n @ problem.v[0])
        f_t = F - n * (n @ F)
        limit = problem.c_f[0, 0] * (n @ F)
        assert f_t @ v_t < 0.0
        np.testing.assert_allclose(np.cross(f_t, v_t), 0.0, atol=1e-13)
        if friction == "slip":
            np.testing.assert_allclose(np.linalg.norm(f_t), limit, rtol=1e-12)
        else:
            assert 0.0 < np.linalg.norm(f_t) < limit


@pytest.mark.parametrize("onset", DEPTHS)
def test_energy_is_the_potential_of_the_elastic_force(onset):
    for place in PLACES:
        problem = problem_in_branch(place, "none", onset, "off", 0, False, False)
        problem.k_d[:] = 0.0
        F, x, h = problem.force()[0], problem.x, 1e-3
        gradient = []
        for e in np.eye(3) * h:
            values = []
            for step in (1, -1, 2, -2):
                problem.x = x + step * e
                values.append(problem.energy())
            gradient.append((8.0 * (values[0] - values[1]) - (values[2] - values[3])) / (12.0 * h))
        np.testing.assert_allclose(F, -np.array(gradient), atol=1e-8)


def test_energy_and_force_are_continuous_in_the_depth():
    """Onset and ramp meet their outer branches with matching values (energy, force) and slopes."""
    for depth_name in ("onset", "ramp"):
        values = []
        for side in (-1.0, 1.0):
            problem = problem_in_branch("plane", "none", "off", "off", 0, False, False)
            getattr(problem, depth_name)[:] = DEPTH * (1.0 + side * 1e-10)
            values.append((problem.energy(), problem.force(), problem.jacobian()[0], problem.codes[0, 0]))
        (e1, f1, k1, c1), (e2, f2, k2, c2) = values
        assert c1 != c2
        np.testing.assert_allclose(e1, e2, rtol=1e-8)
        np.testing.assert_allclose(f1, f2, rtol=1e-8)
        np.testing.assert_allclose(k1, k2, atol=1e-6)


def resting(law=TANH, **changes):
    """A point at rest, DEPTH under the plane."""
    return Problem([[0.3, -0.2, -DEPTH]], np.zeros((1, 3)), [PLANE], [np.zeros(3)], law=law, **changes)


def test_tanh_at_rest_is_finite_with_the_stick_stiffness():
    problem = resting()
    np.testing.assert_allclose(problem.force(), [[0.0, 0.0, STIFFNESS * DEPTH]])
    Kx, Kv = problem.jacobian()
    np.testing.assert_allclose(Kv[0], np.diag([-5.0, -5.0, 0.0]), atol=1e-14)
    assert_near(Kx, problem.numerical_jacobian("x"))
    assert_near(Kv, problem.numerical_jacobian("v", h=1e-3))
    for bar in problem.parameter_vjp(np.ones((1, 3)))[1:]:
        np.testing.assert_array_equal(bar, 0.0)


@pytest.mark.parametrize("speed", [1e-150, 1e-12, 1e-3, 1e-1, 1e3, 1e150])
def test_tanh_at_any_speed(speed):
    problem = resting()
    problem.v[0, 0] = speed
    limit = 0.5 * STIFFNESS * DEPTH
    np.testing.assert_allclose(problem.force()[0, 0], -limit * np.tanh(5.0 * speed / limit), rtol=1e-14)
    Kx, Kv = problem.jacobian()
    assert np.isfinite(Kx).all() and np.isfinite(Kv).all()
    slope = 0.0 if speed > 10.0 else -5.0 / np.cosh(5.0 * speed / limit) ** 2
    np.testing.assert_allclose(Kv[0, 0, 0], slope, rtol=1e-13)
    assert np.isfinite(np.stack(problem.parameter_vjp(np.ones((1, 3))))).all()


@pytest.mark.parametrize("law", [LINEAR, TANH])
@pytest.mark.parametrize("speed", [0.0, 0.3])
@pytest.mark.parametrize("depth", [1e-300, 1e-30, 1e-9])
def test_vanishing_normal_force_leaves_no_friction(law, speed, depth):
    problem = resting(law)
    problem.x[0, 2], problem.v[0, 0] = -depth, speed
    F = problem.force()
    assert problem.n_active == 1
    assert np.all(np.abs(F) <= 2.0 * STIFFNESS * depth)
    assert np.isfinite(np.stack(problem.jacobian())).all()
    assert np.isfinite(np.stack(problem.parameter_vjp(np.ones((1, 3))))).all()


@pytest.mark.parametrize("law", [LINEAR, TANH])
def test_zero_friction_coefficient(law):
    """No force, no friction stiffness, even at rest; and the one-sided derivative in c_f that leaves c_f = 0."""
    for speed in (0.0, 0.3):
        problem = resting(law, c_f=0.0)
        problem.v[0, 0] = speed
        np.testing.assert_allclose(problem.force(), [[0.0, 0.0, STIFFNESS * DEPTH]])
        np.testing.assert_array_equal(problem.jacobian()[1], 0.0)
        bars = problem.parameter_vjp(np.array([[1.0, 0.0, 0.0]]))
        np.testing.assert_allclose(bars[3], -STIFFNESS * DEPTH if speed else 0.0)


@pytest.mark.parametrize("law", [LINEAR, TANH])
@pytest.mark.parametrize("c_f", [0.0, 0.5])
def test_zero_friction_stiffness(law, c_f):
    problem = resting(law, k_t=0.0, c_f=c_f)
    problem.v[0, 0] = 0.3
    np.testing.assert_allclose(problem.force(), [[0.0, 0.0, STIFFNESS * DEPTH]])
    np.testing.assert_array_equal(problem.jacobian()[1], 0.0)
    bars = problem.parameter_vjp(np.array([[1.0, 0.0, 0.0]]))
    if c_f > 0.0:
        np.testing.assert_allclose(bars[2], -0.3)
    np.testing.assert_array_equal(bars[3], 0.0)


@pytest.mark.parametrize("f_n", [2.0, -2.0])
@pytest.mark.parametrize("u", [1e-4, 4.9e-4, 3e-3, 5.2e-3, 0.1, 1.0, 30.0])
def test_tanh_law_derivatives(u, f_n):
    """Across the switch to the series (s = 0.01, u = 0.002 here), and beyond f_n = 0, where a replay may go."""
    k_t, c_f = 3.0, 0.3

    def m(u=u, f_n=f_n, k_t=k_t, c_f=c_f):
        return friction_law(TANH, False, u, f_n, k_t, c_f)[0] * u

    m_over_u, w, m_L = friction_law(TANH, False, u, f_n, k_t, c_f)
    limit = c_f * f_n
    np.testing.assert_allclose(m_over_u * u, limit * np.tanh(k_t * u / abs(limit)), rtol=1e-14)
    complex_step = 1e-30j

    def tanh_form(u, limit, k_t):
        return limit * np.tanh(k_t * u / (limit * np.sign(f_n)))

    tolerance = {"rtol": 1e-9, "atol": 1e-16}
    np.testing.assert_allclose(k_t * w, (tanh_form(u + complex_step, limit, k_t) / 1e-30).imag, **tolerance)
    np.testing.assert_allclose(u * w, (tanh_form(u, limit, k_t + complex_step) / 1e-30).imag, **tolerance)
    s = k_t * u / abs(limit)
    exact = 2.0 / 3.0 * s**3 if s < 1e-3 else (tanh_form(u, limit + complex_step, k_t) / 1e-30).imag
    np.testing.assert_allclose(m_L, exact, rtol=2e-6 if s < 1e-2 else 1e-9)
    assert m(u=0.0) == 0.0


def test_far_points_are_inactive_and_parameters_cannot_matter():
    problem = crowd()
    problem.x += 50.0 * problem.R[0, :, 2]
    for name in (*PARAMETERS, "onset", "ramp"):
        getattr(problem, name)[:] = np.inf
    problem.v[:] = np.nan
    for name, value in all_results(problem).items():
        np.testing.assert_array_equal(value, 0.0, err_msg=name)
