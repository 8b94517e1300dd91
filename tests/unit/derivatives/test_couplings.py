"""Couplings between bodies: derivatives for all kinds of sites, energies, branches, momentum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from add.equations.kinematics import Kinematics, Weights
from add.equations.signals import Constant, Sine, Table
from add.equations.sites import LawValues, SiteKind, Sites
from add.equations.term import Term
from add.joints.law_term import TURN, FormulaJoint, JointBranch, JointFormula, JointLaw
from add.joints.laws import (
    HARDENING_SPRING,
    AirOnClosedFaces,
    AirOnFaces,
    AngleLimit,
    AngularDamping,
    AxialDrag,
    AxisTorque,
    Cable,
    ClippedCable,
    Drag,
    ElasticJoint,
    EllipsoidInFluid,
    JointFriction,
    Motor,
    PointForce,
    Slider,
    Spring,
)
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kernels.springs import CLIPPED, SLACK, TAUT
from add.testing import check_deciding_term, check_term

#: Terms whose derivatives are checked here, for the meta-test over all terms.
COUPLINGS = (
    AngularDamping,
    AirOnClosedFaces,
    AirOnFaces,
    AxialDrag,
    AxisTorque,
    Drag,
    EllipsoidInFluid,
    ElasticJoint,
    FormulaJoint,
    JointBranch,
    JointFriction,
    Motor,
    PointForce,
    Slider,
    Spring,
)
DECIDING_COUPLINGS = (AngleLimit, Cable, ClippedCable)

# Two rigid bodies at 0 and 6, four nodes from 12 on.
N = 24
A, B = 0, 6
NODES = np.arange(4, 8)
ANGLES = {"zero": (0.0, 0.0), "medium": (1.3, 0.4), "beyond pi": (3.6, 5.1), "mixed": (0.0, 2.9)}


@dataclass(frozen=True)
class Row:
    kind: SiteKind
    dofs: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    arm: tuple[int, ...] = (-1, -1, -1)
    centre: tuple[int, ...] = (-1, -1, -1)


class Scene:
    """Random bodies; every number that is asked for gets an entry of theta."""

    def __init__(self, rng: np.random.Generator, angles: str = "medium") -> None:
        self.rng = rng
        q = 0.5 * rng.normal(size=N)
        for start, angle in zip((A, B), ANGLES[angles], strict=True):
            axis = rng.normal(size=3)
            q[start + 3 : start + 6] = angle * axis / np.linalg.norm(axis)
        self.kin = Kinematics(q, rng.normal(size=N), rng.normal(size=N), 0.37, 4)
        self.numbers: list[float] = []
        self.centres = {start: self.take(0.3 * rng.normal(size=3)) for start in (A, B)}

    @property
    def theta(self) -> np.ndarray:
        return np.array(self.numbers)

    def take(self, values) -> tuple[int, ...]:
        first = len(self.numbers)
        self.numbers += [float(x) for x in np.ravel(values)]
        return tuple(range(first, len(self.numbers)))

    def uniform(self, n: int, low: float = 0.5, high: float = 1.5) -> tuple[int, ...]:
        return self.take(self.rng.uniform(low, high, size=n))

    def arm(self) -> tuple[int, ...]:
        return self.take(self.rng.normal(size=3))

    def site(self, what: str) -> Row:
        body = A if what.endswith("A") else B
        if what in ("pA", "pB"):
            return Row(SiteKind.POINT, tuple(range(body, body + 6)), (), self.arm(), self.centres[body])
        if what in ("dA", "dB"):
            return Row(SiteKind.DIRECTION, tuple(range(body + 3, body + 6)), (), self.arm())
        if what in ("sA", "sB"):
            return Row(SiteKind.SPIN, tuple(range(body + 3, body + 6)))
        if what == "w":
            return Row(SiteKind.WORLD, (), (), self.arm())
        if what == "w0":
            return Row(SiteKind.WORLD)
        nodes = {"n": NODES[:1], "N": NODES}[what]
        weights = (1.0,) if what == "n" else (0.4, 0.3, -0.2, 0.5)
        return Row(SiteKind.NODES, tuple(3 * i + k for i in nodes for k in range(3)), weights)

    def unit(self, *sites: Row) -> None:
        for site in sites:
            index = list(site.arm)
            x = np.array(self.numbers)[index]
            for i, value in zip(index, x / np.linalg.norm(x), strict=True):
                self.numbers[i] = float(value)


def gather(rows: Sequence[Row]) -> Sites:
    width = max(3, *(len(row.dofs) for row in rows)) if len(rows) > 1 else max(3, len(rows[0].dofs))
    dofs, weights = np.full((len(rows), width), -1), np.zeros((len(rows), width // 3))
    for i, row in enumerate(rows):
        dofs[i, : len(row.dofs)] = row.dofs
        weights[i, : len(row.weights)] = row.weights
    return Sites(
        np.array([row.kind for row in rows], dtype=np.int64),
        dofs.astype(np.int64),
        weights,
        np.array([row.arm for row in rows], dtype=np.int64),
        np.array([row.centre for row in rows], dtype=np.int64),
    )


def sites(scene: Scene, pairs: Sequence[Sequence[str]]) -> Sites:
    return gather([scene.site(what) for pair in pairs for what in pair])


PAIRS = [("pA", "pB"), ("pA", "w"), ("w", "pB"), ("n", "pA"), ("pB", "N"), ("N", "n"), ("n", "w")]
DIRECTIONS = [("dA", "dB"), ("dA", "w"), ("w", "dB"), ("N", "dA")]
SIGNAL = Table(np.array([0.0, 0.3, 0.5, 1.0]))  # rows 1 and 2 act at 0.37


def spring(scene: Scene, pairs) -> Term:
    n = len(pairs)
    return Spring(sites(scene, pairs), LawValues.of(scene.uniform(n, 3, 9), scene.uniform(n), scene.uniform(n)))


#: A chain that stiffens towards its full length, with a damping that grows with its length and speed.
CHAIN = JointFormula("-k/2*R**2*log(1 - (l/R)**2) + k*exp(-l)", "c*l*l_dot*sqrt(1 + l_dot**2) + d*tanh(l_dot)")


def hardening(scene: Scene, pairs) -> Term:
    n = len(pairs)
    cubic, damping, length, stiffness = (
        scene.uniform(n, 2, 5),
        scene.uniform(n),
        scene.uniform(n),
        scene.uniform(n, 3, 9),
    )
    return HARDENING_SPRING(sites(scene, pairs), LawValues.of(cubic, damping, length, stiffness))


def chain(scene: Scene, pairs) -> Term:
    n = len(pairs)
    assert CHAIN.numbers == ["R", "c", "d", "k"]
    return CHAIN(sites(scene, pairs), LawValues.of(scene.uniform(n, 20, 30), *(scene.uniform(n) for _ in range(3))))


#: A joint in rubber, with friction that grows with its turn.
BUSHING = JointFormula("k*(1 - cos(angle)) + k3/4*angle**4", "c*tanh(rate)*(1 + angle**2)", TURN)


def bushing(scene: Scene, triples) -> Term:
    assert BUSHING.numbers == ["c", "k", "k3"]
    return BUSHING(sites(scene, triples), LawValues.of(*(scene.uniform(len(triples)) for _ in range(3))))


def bond(scene: Scene, pairs) -> Term:
    return ElasticJoint(sites(scene, pairs), LawValues.of(scene.uniform(len(pairs), 3, 9), scene.uniform(len(pairs))))


def slider(scene: Scene, triples) -> Term:
    n = len(triples)
    return Slider(sites(scene, triples), LawValues.of(scene.uniform(n, 3, 9), scene.uniform(n)))


def damping(scene: Scene, pairs) -> Term:
    return AngularDamping(sites(scene, pairs), LawValues.of(np.full(len(pairs), -1), scene.uniform(len(pairs))))


def friction(scene: Scene, triples) -> Term:
    n = len(triples)
    values = LawValues.of(scene.uniform(n), scene.uniform(n), scene.uniform(n, 1.0, 3.0))
    return JointFriction(sites(scene, triples), values)


def rows_of(scene: Scene, n: int, width: int) -> np.ndarray:
    shape = (SIGNAL.n_rows, n, width)
    return np.array(scene.uniform(int(np.prod(shape)))).reshape(shape)


def motor(scene: Scene, triples) -> Term:
    n = len(triples)
    k = scene.uniform(n, 3, 9)
    return Motor(sites(scene, triples), LawValues.driven(SIGNAL, rows_of(scene, n, 1), k))


def torque(scene: Scene, triples) -> Term:
    return AxisTorque(sites(scene, triples), LawValues.driven(SIGNAL, rows_of(scene, len(triples), 1)))


def force(scene: Scene, singles) -> Term:
    return PointForce(sites(scene, singles), LawValues.driven(SIGNAL, rows_of(scene, len(singles), 3)))


def drag(scene: Scene, singles) -> Term:
    n = len(singles)
    numbers = [scene.uniform(n) for _ in range(3)]
    return Drag(sites(scene, singles), LawValues.driven(SIGNAL, rows_of(scene, n, 3), *numbers))


def axial_drag(scene: Scene, pairs) -> Term:
    n = len(pairs)
    values = LawValues.driven(SIGNAL, rows_of(scene, n, 3), scene.uniform(n), scene.uniform(n))
    return AxialDrag(sites(scene, pairs), values)


def ellipsoid(scene: Scene, quads) -> Term:
    """Axes of any length: the law is what it says of any two vectors."""
    n = len(quads)
    numbers = [scene.uniform(n) for _ in range(16)]
    return EllipsoidInFluid(sites(scene, quads), LawValues.driven(SIGNAL, rows_of(scene, n, 3), *numbers))


def faces(scene: Scene, triples, closed=False) -> Term:
    n = len(triples)
    numbers = [scene.uniform(n) for _ in range(3)]
    values = LawValues.driven(SIGNAL, rows_of(scene, n, 3), *numbers)
    return (AirOnClosedFaces if closed else AirOnFaces)(sites(scene, triples), values)


TRIPLES = [("dA", "dA", "dB"), ("w", "w", "dB"), ("dA", "dA", "w")]
# name: maker, interactions, depends on v
CASES: dict[str, tuple[Callable[[Scene, list], Term], list, bool]] = {
    **{f"spring {'-'.join(p)}": (spring, [p], True) for p in PAIRS},
    **{f"hardening {'-'.join(p)}": (hardening, [p], True) for p in PAIRS},
    **{f"formula {'-'.join(p)}": (chain, [p], True) for p in PAIRS},
    "formula many": (chain, PAIRS, True),
    **{f"angle formula {k}": (bushing, [t], True) for k, t in enumerate(TRIPLES)},
    "spring many": (spring, PAIRS, True),
    **{f"bond {'-'.join(p)}": (bond, [p], True) for p in PAIRS + DIRECTIONS},
    "bond many": (bond, PAIRS + DIRECTIONS, True),
    "slider pA-pB-dA": (slider, [("pA", "pB", "dA")], True),
    "slider pA-w-w": (slider, [("pA", "w", "w")], True),
    "slider w-pB-w": (slider, [("w", "pB", "w")], True),
    "slider many": (slider, [("pA", "pB", "dA"), ("n", "pB", "dB"), ("pA", "N", "dA")], True),
    "damping sA-sB": (damping, [("sA", "sB")], True),
    "damping many": (damping, [("sA", "sB"), ("sB", "w0"), ("w0", "sA")], True),
    "friction sA-sB-dA": (friction, [("sA", "sB", "dA")], True),
    "friction many": (friction, [("sA", "sB", "dA"), ("sA", "w0", "dA"), ("w0", "sB", "w")], True),
    **{f"motor {'-'.join(p)}": (motor, [p], False) for p in TRIPLES},
    "motor many": (motor, TRIPLES, False),
    "torque sA-sB-dA": (torque, [("sA", "sB", "dA")], False),
    "torque many": (torque, [("sA", "sB", "dA"), ("w0", "sB", "w")], False),
    "drag pA": (drag, [("pA",)], True),
    "drag many": (drag, [("pA",), ("N",), ("pB",)], True),
    "axial drag pA-dA": (axial_drag, [("pA", "dA")], True),
    "axial drag many": (axial_drag, [("pA", "dA"), ("sB", "dB"), ("N", "w")], True),
    "ellipsoid pA-sA-dA-dA": (ellipsoid, [("pA", "sA", "dA", "dA")], True),
    "ellipsoid many": (ellipsoid, [("pA", "sA", "dA", "dA"), ("pB", "sB", "dB", "w")], True),
    "faces pA-pB-n": (faces, [("pA", "pB", "n")], True),
    "faces many": (faces, [("pA", "pB", "n"), ("N", "pB", "pA"), ("w", "n", "pA")], True),
    "force pA": (force, [("pA",)], False),
    "force sA": (force, [("sA",)], False),
    "force many": (force, [("pA",), ("N",), ("sB",), ("pB",)], False),
}


@pytest.mark.parametrize("angles", ANGLES)
@pytest.mark.parametrize("case", CASES)
def test_coupling(case: str, angles: str, rng: np.random.Generator) -> None:
    make, interactions, by_v = CASES[case]
    if "many" in case and angles in ("zero", "mixed"):
        pytest.skip("the kinds by themselves are checked there")
    scene = Scene(rng, angles)
    term = make(scene, interactions)
    found = check_term(term, scene.kin, scene.theta, rng=rng, scales={"q": 0.3, "v": 0.5})
    assert (found.v > 0.0) == by_v
    assert found.q > 0.0
    used = {int(i) for i in np.ravel(term.sites.arm) if i >= 0}
    used |= {int(i) for i in np.ravel(term.sites.centre[term.sites.kind == SiteKind.POINT])}
    used |= {int(i) for i in np.ravel(term.values.index) if i >= 0} | {int(i) for i in np.ravel(term.values.rows[1:3])}
    assert set(found.parameters) == used


def test_air_has_slopes_at_rest() -> None:
    """At rest drag of a body has no slope, and that along an axis its linear one."""
    for law, sites_of_one, n_p in ((Drag.law, 1, 6), (AxialDrag.law, 2, 5)):
        f, size = np.ones((sites_of_one, 3)), 3 * sites_of_one
        f_y, f_v, f_p = np.zeros((1, size, size)), np.zeros((1, size, size)), np.zeros((1, size, n_p))
        p, still = np.array([[1.2, 0.5, *[0.0] * (n_p - 2)]]), np.zeros_like(f)
        p[0, 2] = 0.1 if law is Drag.law else 0.0
        law.derivatives(np.ones_like(f), still, p, np.zeros(1, dtype=np.int8), f, f_y, f_v, f_p)
        np.testing.assert_allclose([*f.ravel(), *f_y.ravel(), *f_p[..., :2].ravel()], 0.0, atol=1e-29)
        np.testing.assert_allclose(f_v[0, :3, :3], 0.0 if law is Drag.law else -1.2, atol=1e-15)


def test_air_on_closed_faces(rng: np.random.Generator) -> None:
    """The same triangle both ways round: the air presses from outside on one of them, and rubs along both."""
    scene = Scene(rng)
    row, numbers = scene.site("pA"), [scene.uniform(1) for _ in range(3)]
    corners, rows = [row, scene.site("pB"), scene.site("n")], rows_of(scene, 1, 3)
    found = []
    for turned in (corners, corners[::-1]):
        values = LawValues.driven(SIGNAL, rows, *numbers)
        term = AirOnClosedFaces(gather(turned), values)
        check_term(term, scene.kin, scene.theta, rng=rng, scales={"q": 0.3, "v": 0.5})
        rubbed = replace(term, values=replace(term.values, index=np.array([[-1, -1, numbers[2][0]]])))
        total, along = (part.forces(scene.kin, scene.theta).sum(axis=(0, 1)) for part in (term, rubbed))
        found.append(total - along)
        both = AirOnFaces(gather(turned), values)
        found.append(both.forces(scene.kin, scene.theta).sum(axis=(0, 1)) - along)
    one, both, other, again = found
    np.testing.assert_allclose(both, again, atol=1e-14)  # a sheet has no outside
    assert np.linalg.norm(both) > 0.01
    np.testing.assert_allclose(one + other, both, atol=1e-14)
    assert min(np.linalg.norm(one), np.linalg.norm(other)) == 0.0


@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][0] in (spring, hardening, bond, slider, motor)])
def test_residual_is_the_slope_of_the_energy(case: str, rng: np.random.Generator) -> None:
    make, interactions, _ = CASES[case]
    scene = Scene(rng, "beyond pi")
    term = make(scene, interactions)
    at_rest = replace(scene.kin, v=np.zeros(N))
    check_term(term, at_rest, scene.theta, rng=rng, parameters=[], energy=True, scales={"q": 0.1})
    assert term.energy(at_rest, scene.theta) > 0.0


def test_indices_of_minus_one_are_zero(rng: np.random.Generator) -> None:
    scene = Scene(rng)
    without = spring(scene, [("pA", "pB")])
    index = without.values.index.copy()
    index[0, 1] = -1
    term = Spring(without.sites, replace(without.values, index=index))
    theta = scene.theta
    found = check_term(term, scene.kin, theta, rng=rng)
    assert found.v == 0.0
    theta[without.values.index[0, 1]] = 0.0
    a, b = np.zeros(N), np.zeros(N)
    term.residual(scene.kin, theta, a)
    without.residual(scene.kin, theta, b)
    np.testing.assert_array_equal(a, b)


def test_ends_of_a_spring_may_meet(rng: np.random.Generator) -> None:
    scene = Scene(rng)
    term = spring(scene, [("n", "w")])
    theta = scene.theta
    theta[term.sites.arm[1]] = scene.kin.q[3 * NODES[0] :][:3]
    data = np.zeros(term.pattern()[0].size)
    r, bar = np.zeros(N), np.zeros(theta.size)
    term.residual(scene.kin, theta, r)
    term.jacobian(scene.kin, theta, Weights(1.0, 1.0, 0.0), data, np.arange(data.size))
    term.parameter_vjp(scene.kin, theta, rng.normal(size=N), bar)
    assert not r.any() and np.isfinite(data).all() and np.isfinite(bar).all() and data.any()


@pytest.mark.parametrize("law", [Spring, HARDENING_SPRING, JointFormula("k/2*l**2 + q*l**4", "c*l_dot")])
def test_without_length_a_way_through_the_meeting_place_has_its_derivative(law, rng: np.random.Generator) -> None:
    """Where ends meet and no force acts, the matrix of a step is that along any line."""
    scene, h, rate = Scene(rng), 1e-6, 3.0
    numbers = scene.uniform(4)
    if law is HARDENING_SPRING:  # cubic, damping, length, stiffness
        scene.numbers[numbers[2]] = 0.0
    if law is Spring:
        numbers = (*numbers[:2], *scene.take([0.0]))
    elif law is not HARDENING_SPRING:  # c, k, q
        numbers = numbers[:3]
    term = law(sites(scene, [("n", "w")]), LawValues.of(*([number] for number in numbers)))
    theta, along, still = scene.theta, np.zeros(N), np.zeros(N)
    place = slice(3 * NODES[0], 3 * NODES[0] + 3)
    theta[term.sites.arm[1]], along[place] = scene.kin.q[place], rng.normal(size=3)
    kin = replace(scene.kin, v=still)
    data, rows = np.zeros(term.pattern()[0].size), term.pattern()
    term.jacobian(kin, theta, Weights(1.0, rate, 0.0), data, np.arange(data.size))
    found, forces = np.zeros(N), np.zeros((2, N))
    np.add.at(found, rows[0], data * along[rows[1]])
    for sign, force in zip((1, -1), forces, strict=True):
        term.residual(replace(kin, q=kin.q + sign * h * along, v=sign * rate * h * along), theta, force)
    assert np.abs(found).max() > 0.1
    np.testing.assert_allclose(found, (forces[0] - forces[1]) / (2 * h), rtol=1e-7, atol=1e-9)


# --- branches ---------------------------------------------------------------------------------------------------------


def cable(scene: Scene, pairs, *, clip: bool = False) -> Cable:
    n = len(pairs)
    k, c, length = scene.uniform(n, 3, 9), scene.uniform(n), scene.uniform(n)
    return (ClippedCable if clip else Cable)(sites(scene, pairs), LawValues.of(k, c, length))


def lengths(term, scene: Scene) -> np.ndarray:
    """Distances of the ends: a bond of unit stiffness pulls with them."""
    theta = np.concatenate([scene.theta, [1.0]])
    one = LawValues.of(np.full(term.sites.n, theta.size - 1), np.full(term.sites.n, -1))
    forces = ElasticJoint(term.sites, one).forces(scene.kin, theta)
    return np.linalg.norm(forces[:, 0], axis=1)


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("angles", ANGLES)
def test_cable(angles: str, clip: bool, rng: np.random.Generator) -> None:
    scene = Scene(rng, angles)
    pairs = [("pA", "pB"), ("pA", "w"), ("n", "pB"), ("pB", "N"), ("n", "N")]
    term = cable(scene, pairs, clip=clip)
    theta = scene.theta
    k, c, length = term.values.index.T
    apart = lengths(term, scene)
    theta[length] = apart * np.array([0.7, 1.2, 0.6, 0.5, 1.5])
    if clip:
        theta[c[2]] = 500.0 * (-1.0 if _rate(term, scene)[2] > 0.0 else 1.0)  # damping would make it push
    decision, found = check_deciding_term(term, scene.kin, theta, rng=rng, scales={"q": 0.05, "v": 0.3})
    codes = term.on_branch(decision).codes
    assert codes[1] == codes[4] == SLACK
    assert codes[0] == TAUT or clip
    counts = term.describe(decision)
    assert counts["slack"] == 2 and counts["taut"] == 3
    if clip:
        assert codes[2] == CLIPPED and counts["clipped"] >= 1
        assert k[2] not in found.parameters
    assert found.q > 0.0 and found.v > 0.0
    assert k[1] not in found.parameters
    acts = {int(e) for e in range(5) if codes[e] == TAUT}
    assert {e for e in range(5) if k[e] in found.parameters} == acts
    tension = term.on_branch(decision).forces(scene.kin, theta)
    assert not tension[1].any() and not tension[4].any()
    assert term.energy(scene.kin, theta) == pytest.approx(
        sum(0.5 * theta[k[e]] * (apart[e] - theta[length[e]]) ** 2 for e in (0, 2, 3))
    )


def _rate(term, scene: Scene) -> np.ndarray:
    """Rates of the distances, by differences."""
    h = 1e-6
    near = [lengths(term, _moved(scene, s * h)) for s in (1.0, -1.0)]
    return (near[0] - near[1]) / (2.0 * h)


def _moved(scene: Scene, h: float) -> Scene:
    other = object.__new__(Scene)
    other.__dict__.update(scene.__dict__)
    other.kin = replace(scene.kin, q=scene.kin.q + h * scene.kin.v)
    return other


def test_slack_cables_do_nothing(rng: np.random.Generator) -> None:
    scene = Scene(rng)
    term = cable(scene, [("pA", "pB"), ("n", "w")])
    theta = scene.theta
    theta[term.values.index[:, 2]] = 100.0
    decision, found = check_deciding_term(term, scene.kin, theta, rng=rng)
    assert not decision.any() and found.q == found.v == 0.0 and not found.parameters


def hinge(scene: Scene, others: Sequence[tuple[str, str]]) -> tuple[AngleLimit, np.ndarray]:
    """Angle limits with e_1, e_2 orthonormal in the first body of each pair; and the present angles."""
    rows = []
    for a, b in others:
        e1, e2, m = scene.site(a), scene.site(a), scene.site(b)
        frame = rotation_matrix(scene.rng.normal(size=3))
        for row, axis in ((e1, frame[0]), (e2, frame[1])):
            for i, value in zip(row.arm, axis, strict=True):
                scene.numbers[i] = float(value)
        scene.unit(m)
        rows += [e1, e2, m]
    n = len(others)
    k, c = scene.uniform(n, 3, 9), scene.uniform(n)
    lo, hi = scene.uniform(n), scene.uniform(n)
    term = AngleLimit(gather(rows), LawValues.of(k, c, lo, hi))
    y = _vectors(term.sites, scene)
    return term, np.arctan2((y[:, 1] * y[:, 2]).sum(axis=1), (y[:, 0] * y[:, 2]).sum(axis=1))


def _vectors(given: Sites, scene: Scene) -> np.ndarray:
    """y of directions, from the definition."""
    theta, out = scene.theta, []
    for kind, dofs, arm in zip(given.kind, given.dofs, given.arm, strict=True):
        x = theta[arm]
        out.append(x if kind == SiteKind.WORLD else rotation_matrix(scene.kin.q[dofs[:3]]) @ x)
    return np.array(out).reshape(given.n, given.arity, 3)


@pytest.mark.parametrize("angles", ANGLES)
def test_angle_limit(angles: str, rng: np.random.Generator) -> None:
    scene = Scene(rng, angles)
    term, phi = hinge(scene, [("dA", "dB"), ("dB", "dA"), ("w", "dA"), ("dB", "w")])
    theta = scene.theta
    _, _, lo, hi = term.values.index.T
    theta[lo] = phi + np.array([-1.5, 0.3, -0.8, 0.2])
    theta[hi] = phi + np.array([-0.4, 1.6, 0.9, 0.7])
    decision, found = check_deciding_term(term, scene.kin, theta, rng=rng, scales={"q": 0.05, "v": 0.3})
    assert decision.tolist() == [[0, 0, 1], [1, 0, -1], [3, 0, -1]]
    assert term.describe(decision) == {"below": 2, "above": 1}
    assert found.q > 0.0 and found.v > 0.0
    assert hi[0] in found.parameters and lo[0] not in found.parameters
    assert lo[1] in found.parameters and hi[1] not in found.parameters
    assert not {lo[2], hi[2]} & set(found.parameters)
    branch = term.on_branch(decision)
    at_rest = replace(scene.kin, v=np.zeros(N))
    check_term(branch, at_rest, theta, rng=rng, parameters=[], energy=True, scales={"q": 0.02})
    k = theta[term.values.index[:, 0]]
    expected = 0.5 * (k[0] * 0.4**2 + k[1] * 0.3**2 + k[3] * 0.2**2)
    assert term.energy(scene.kin, theta) == pytest.approx(expected)


def test_angle_limit_turns_back_the_short_way(rng: np.random.Generator) -> None:
    """Past pi, an upper limit of 3 still pushes down."""
    numbers = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, *(np.cos(3.3), np.sin(3.3), 0.0), 2.0, 0.0, -1.0, 3.0])
    world = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    kind = np.array([SiteKind.WORLD, SiteKind.WORLD, SiteKind.DIRECTION], dtype=np.int64)
    dofs = np.full((3, 3), -1)
    dofs[2] = [3, 4, 5]
    given = Sites(kind, dofs, np.zeros((3, 1)), world, np.full((3, 3), -1))
    term = AngleLimit(given, LawValues.of([9], [10], [11], [12]))
    kin = Kinematics(np.zeros(6), np.zeros(6), np.zeros(6), 0.0, 0)
    out = np.zeros(6)
    assert term.decided_residual(kin, numbers, out).tolist() == [[0, 0, 1]]
    np.testing.assert_allclose(out[3:], [0.0, 0.0, 2.0 * 0.3], atol=1e-12)


# --- what the forces are ----------------------------------------------------------------------------------------------


def balance(term: JointLaw, kin: Kinematics, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Total force, and total torque about the origin, on all bodies, from the residual."""
    r = np.zeros(N)
    term.residual(kin, theta, r)
    total, couple = np.zeros(3), np.zeros(3)
    for start in (A, B):
        f = -r[start : start + 3]
        w = kin.q[start + 3 : start + 6]
        tau = np.linalg.solve(left_jacobian(w).T, -r[start + 3 : start + 6])
        total += f
        couple += tau + np.cross(kin.q[start : start + 3], f)
    for node in NODES:
        f = -r[3 * node : 3 * node + 3]
        total += f
        couple += np.cross(kin.q[3 * node : 3 * node + 3], f)
    return total, couple


@pytest.mark.parametrize(
    ("make", "interaction", "at_rest"),
    [
        (spring, ("pA", "pB"), False),
        (spring, ("n", "pB"), False),
        (bond, ("pA", "pB"), True),
        (bond, ("n", "pB"), True),
        (bond, ("dA", "dB"), True),
        (slider, ("pA", "pB", "dA"), True),
        (damping, ("sA", "sB"), False),
        (friction, ("sA", "sB", "dA"), False),
        (motor, ("dA", "dA", "dB"), False),
        (torque, ("sA", "sB", "dA"), False),
    ],
)
def test_action_equals_reaction(make, interaction, at_rest: bool, rng: np.random.Generator) -> None:
    """No total force, no total torque. The damping of bonds and sliders has a couple where there is an offset."""
    scene = Scene(rng, "medium")
    term = make(scene, [interaction])
    kin = replace(scene.kin, v=np.zeros(N)) if at_rest else scene.kin
    total, couple = balance(term, kin, scene.theta)
    size = np.abs(term.forces(kin, scene.theta)).max()
    assert size > 0.0
    np.testing.assert_allclose(total, 0.0, atol=1e-12 * size)
    np.testing.assert_allclose(couple, 0.0, atol=1e-12 * size)
    if at_rest:
        total, couple = balance(term, scene.kin, scene.theta)
        np.testing.assert_allclose(total, 0.0, atol=1e-12 * size)
        assert np.abs(couple).max() > 1e-3 * size


def test_couple_of_a_damped_bond(rng: np.random.Generator) -> None:
    """-c (offset x rate), about any point."""
    scene = Scene(rng)
    term = bond(scene, [("pA", "pB")])
    theta = scene.theta
    k, c = term.values.index[0]
    theta[c] = 0.0
    offset = -term.forces(scene.kin, theta)[0, 0] / theta[k]
    theta[c], theta[k] = 0.7, 0.0
    rate = -term.forces(scene.kin, theta)[0, 0] / 0.7
    _, couple = balance(term, scene.kin, theta)
    np.testing.assert_allclose(couple, -0.7 * np.cross(offset, rate), rtol=1e-10)


def test_forces_of_a_spring(rng: np.random.Generator) -> None:
    scene = Scene(rng)
    term = spring(scene, [("n", "w")])
    theta = scene.theta
    k, c, length = theta[term.values.index[0]]
    d = scene.kin.q[12:15] - theta[term.sites.arm[1]]
    n = d / np.linalg.norm(d)
    force = k * (np.linalg.norm(d) - length) + c * (n @ scene.kin.v[12:15])
    np.testing.assert_allclose(term.forces(scene.kin, theta)[0], [-force * n, force * n], rtol=1e-13)


def test_motor_torque(rng: np.random.Generator) -> None:
    """k sin(delta) about the hinge."""
    theta = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 7.0, 0.4])
    arm = np.array([[0, 1, 2], [3, 4, 5], [0, 1, 2]])
    kind = np.array([SiteKind.WORLD, SiteKind.WORLD, SiteKind.DIRECTION], dtype=np.int64)
    dofs = np.array([[-1] * 3, [-1] * 3, [3, 4, 5]])
    given = Sites(kind, dofs, np.zeros((3, 1)), arm, np.full((3, 3), -1))
    term = Motor(given, LawValues.driven(Constant(), np.array([[[7]]]), [6]))
    q = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.1])
    r = np.zeros(6)
    term.residual(Kinematics(q, np.zeros(6), np.zeros(6), 0.0, 0), theta, r)
    np.testing.assert_allclose(-r, [0, 0, 0, 0, 0, -7.0 * np.sin(1.1 - 0.4)], atol=1e-14)


def test_wrong_sites_are_refused(rng: np.random.Generator) -> None:
    scene = Scene(rng)
    with pytest.raises(ValueError, match="site 1 of interaction 0 is a DIRECTION"):
        spring(scene, [("pA", "dB")])
    with pytest.raises(ValueError, match="no whole number"):
        bond(scene, [("pA", "pB", "n")])
    with pytest.raises(ValueError, match="must be"):
        ElasticJoint(sites(scene, [("pA", "pB")]), LawValues.of([0, 1], [0, 1]))
    with pytest.raises(ValueError, match="rows"):
        values = LawValues.driven(Sine(1.0, 0.0), np.zeros((1, 1, 1), dtype=int))
        AxisTorque(sites(scene, [("sA", "sB", "dA")]), values)
