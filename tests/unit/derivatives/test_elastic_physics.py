"""What the derivative tests cannot see: that the elastic and viscous laws are the right ones."""

import itertools

import numpy as np
import pytest

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Term
from add.geometry import HEX8, TET4, TET10, ElementFamily, SoftMesh, box_mesh, quadrature_geometry
from add.kernels.rotation import rotation_matrix, skew
from add.materials import MATERIALS, NEWTONIAN, POWER_LAW, cauchy_stress
from add.terms import Elastic, ElementBatch, Viscous
from add.testing import taylor_rates

MU, LAM, NU, BETA = 1.3e4, 2.9e4, 20.0, 0.003
FAMILIES = (TET4, TET10, HEX8)
#: Those of the invariants alone: the loops do not see what else a law is made of, `tests/unit/materials` does.
N_LAWS = 6
LAWS = list(itertools.product(FAMILIES, range(N_LAWS), (False, True)))
LAW_NAMES = [f"{f.name}-{MATERIALS[law].name}-{'mean' if mean else 'local'}" for f, law, mean in LAWS]
NEO_HOOKEAN_LAWS = [case for case in LAWS if case[1] < 2]
NEO_HOOKEAN_NAMES = [name for name, case in zip(LAW_NAMES, LAWS, strict=True) if case[1] < 2]


def index(k: int) -> np.ndarray:
    return np.array([k])


class Body:
    """One distorted block, its elastic and its viscous term."""

    def __init__(self, family: ElementFamily, law: int = 0, mean: bool = False, only: int | None = None) -> None:
        mesh = box_mesh((0.1, 0.08, 0.06), (2, 1, 1) if family is HEX8 else (1, 1, 1), family)
        shift = 0.003 * np.random.default_rng(4).normal(size=mesh.points.shape)
        self.mesh = SoftMesh(mesh.points + shift, mesh.cells[:only], family)
        geometry = quadrature_geometry(self.mesh)
        group = np.zeros(self.mesh.n_elements, dtype=np.int64)
        self.batch = ElementBatch(
            self.mesh.cells,
            geometry.gradients,
            geometry.weights,
            group,
            np.array([mean]),
            MATERIALS[law],
            np.arange(len(MATERIALS[law].parameters))[None],
        )
        self.elastic = Elastic(self.batch)
        self.viscous = Viscous(self.batch, NEWTONIAN, index(-1), index(-2)[None])
        self.theta = self.parameters()
        self.rest = self.mesh.points
        self.n = self.rest.size
        # As the elements integrate it: the rule of the forces is not exact for the volume of a distorted tet10.
        self.volume = float(geometry.weights.sum())

    def parameters(self, nu: float = NU, beta: float = BETA, lam: float = LAM) -> np.ndarray:
        """The moduli of the law with Lame's constants MU and lam, nu and beta."""
        keys = [modulus.key for modulus in self.batch.law.parameters]
        first = 0.35 if "c01" in keys else 0.5
        own = {"mu": MU, "lambda": lam, "c10": first * MU, "c01": 0.15 * MU, "kappa": lam + 2.0 / 3.0 * MU}
        own |= {"c20": 0.03 * MU, "c30": 0.004 * MU, "limit": 20.0}
        return np.array([*(own[key] for key in keys), nu, beta])

    def deformed(self, rng: np.random.Generator) -> np.ndarray:
        stretch = np.eye(3) + 0.3 * rng.uniform(-1.0, 1.0, size=(3, 3))
        return self.rest @ stretch.T + 0.002 * rng.normal(size=self.rest.shape)

    def kin(self, x: np.ndarray, v: np.ndarray | None = None) -> Kinematics:
        v = np.zeros(self.n) if v is None else v.ravel()
        return Kinematics(x.ravel(), v, np.zeros(self.n), 0.0, 0)

    def force(
        self, term: Term, x: np.ndarray, v: np.ndarray | None = None, theta: np.ndarray | None = None
    ) -> np.ndarray:
        """The residual (n_nodes, 3)."""
        out = np.zeros(self.n)
        term.residual(self.kin(x, v), self.theta if theta is None else theta, out)
        return out.reshape(-1, 3)

    def energy(self, x: np.ndarray, theta: np.ndarray | None = None) -> float:
        return self.elastic.energy(self.kin(x), self.theta if theta is None else theta)

    def matrix(
        self, term: Term, weights: Weights, x: np.ndarray, v: np.ndarray | None = None, theta: np.ndarray | None = None
    ) -> np.ndarray:
        rows, cols = term.pattern()
        data = np.zeros(rows.size)
        term.jacobian(self.kin(x, v), self.theta if theta is None else theta, weights, data, np.arange(rows.size))
        dense = np.zeros((self.n, self.n))
        np.add.at(dense, (rows, cols), data)
        return dense

    def cauchy(self, x: np.ndarray) -> np.ndarray:
        b = self.batch
        return cauchy_stress(x.ravel(), b.elements, self.theta[b.moduli])

    def linear_stiffness(self, mean: bool) -> np.ndarray:
        """The stiffness matrix of linear elasticity, by its textbook formula: B^T C B."""
        dense = np.zeros((self.n, self.n))
        for cell, gradients, w in zip(self.mesh.cells, self.batch.gradients, self.batch.weights, strict=True):
            dofs = (3 * cell[:, None] + np.arange(3)).ravel()
            average = np.einsum("q,qai->ai", w, gradients) / w.sum()
            for g, weight in zip(gradients, w, strict=True):
                # strain[i, j, dof]
                grad = np.einsum("aj,ik->ijak", g, np.eye(3)).reshape(3, 3, -1)
                strain = 0.5 * (grad + grad.swapaxes(0, 1))
                trace = np.einsum("iik->k", strain)
                bar = average.reshape(-1) if mean else trace
                shear = strain - np.einsum("ij,k->ijk", np.eye(3), trace) / 3.0
                bulk = LAM + 2.0 * MU / 3.0
                local = 2.0 * MU * np.einsum("ijk,ijl->kl", shear, shear) + bulk * np.outer(bar, bar)
                dense[np.ix_(dofs, dofs)] += weight * local
        return dense


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    return rotation_matrix(2.0 * rng.normal(size=3))


def scale_of(body: Body) -> float:
    """A force [N] that is large for this body."""
    return float(MU * body.volume ** (2.0 / 3.0))


@pytest.fixture(params=LAWS, ids=LAW_NAMES)
def body(request: pytest.FixtureRequest) -> Body:
    return Body(*request.param)


# --- elastic ----------------------------------------------------------------------------------------------------------


def test_force_is_gradient_of_energy(body: Body, rng: np.random.Generator) -> None:
    x, d = body.deformed(rng), 0.01 * rng.normal(size=body.n)
    slope = float(body.force(body.elastic, x).ravel() @ d)
    rates = taylor_rates(body.energy, slope, x.ravel(), d, [0.04, 0.02, 0.01])
    assert np.all((rates > 1.9) & (rates < 2.1)), rates
    assert body.energy(x) > 0.0


def test_rest_is_free_of_stress_and_energy(body: Body, rng: np.random.Generator) -> None:
    """Also turned and shifted: a rigid motion stores nothing."""
    for x in (body.rest, body.rest @ random_rotation(rng).T + rng.normal(size=3)):
        assert np.abs(body.force(body.elastic, x)).max() < 1e-11 * scale_of(body)
        assert abs(body.energy(x)) < 1e-12 * MU * body.volume


def test_objectivity(body: Body, rng: np.random.Generator) -> None:
    """A superposed rigid motion turns the forces and the stress, and leaves the energy."""
    x, turn, shift = body.deformed(rng), random_rotation(rng), rng.normal(size=3)
    moved = x @ turn.T + shift
    tolerance = 1e-11 * scale_of(body)
    np.testing.assert_allclose(
        body.force(body.elastic, moved), body.force(body.elastic, x) @ turn.T, rtol=0, atol=tolerance
    )
    assert body.energy(moved) == pytest.approx(body.energy(x), rel=1e-11)
    np.testing.assert_allclose(body.cauchy(moved), turn @ body.cauchy(x) @ turn.T, rtol=0, atol=1e-9 * MU)


def test_forces_are_in_equilibrium(body: Body, rng: np.random.Generator) -> None:
    """No total force and no total torque: momentum and angular momentum are conserved."""
    x = body.deformed(rng)
    for f in (
        body.force(body.elastic, x),
        body.force(body.viscous, x, rng.normal(size=x.shape)),
    ):
        assert np.abs(f).max() > 1e-4 * scale_of(body)
        assert np.abs(f.sum(axis=0)).max() < 1e-12 * scale_of(body)
        assert np.abs(np.cross(x, f).sum(axis=0)).max() < 1e-13 * scale_of(body)


def test_tangent_is_symmetric(body: Body, rng: np.random.Generator) -> None:
    matrix = body.matrix(body.elastic, Weights(1.0, 0.0, 0.0), body.deformed(rng))
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-13 * np.abs(matrix).max())


def test_tangent_at_rest_has_six_zero_modes(body: Body) -> None:
    """Rigid motions alone are free at rest; all others stiffen (no hourglass modes)."""
    values = np.linalg.eigvalsh(body.matrix(body.elastic, Weights(1.0, 0.0, 0.0), body.rest))
    assert np.abs(values[:6]).max() < 1e-11 * values[-1]
    assert values[6] > 1e-5 * values[-1]


@pytest.mark.parametrize(("family", "law", "mean"), LAWS, ids=LAW_NAMES)
def test_small_strain_limit_is_linear_elasticity(
    family: ElementFamily, law: int, mean: bool, rng: np.random.Generator
) -> None:
    """With the Lame constants, whatever the law; also for a rotated body."""
    body = Body(family, law, mean)
    linear = body.linear_stiffness(mean)
    matrix = body.matrix(body.elastic, Weights(1.0, 0.0, 0.0), body.rest)
    np.testing.assert_allclose(matrix, linear, rtol=0, atol=1e-12 * np.abs(linear).max())
    turn = random_rotation(rng)
    turned = body.matrix(body.elastic, Weights(1.0, 0.0, 0.0), body.rest @ turn.T)
    blocks = np.kron(np.eye(body.n // 3), turn)
    np.testing.assert_allclose(turned, blocks @ linear @ blocks.T, rtol=0, atol=1e-11 * np.abs(linear).max())


@pytest.mark.parametrize("law", [0, 1, 2, 3])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_mean_dilatation_equals_local_when_homogeneous(
    family: ElementFamily, law: int, rng: np.random.Generator
) -> None:
    local, mean = Body(family, law, False), Body(family, law, True)
    stretch = np.eye(3) + 0.3 * rng.uniform(-1.0, 1.0, size=(3, 3))
    x, v = local.rest @ stretch.T, local.rest @ rng.normal(size=(3, 3)).T
    assert mean.energy(x) == pytest.approx(local.energy(x), rel=1e-11)
    assert abs(mean.energy(local.deformed(rng)) / local.energy(local.deformed(rng)) - 1.0) > 1e-6
    for term in ("elastic", "viscous"):
        forces = [body.force(getattr(body, term), x, v) for body in (local, mean)]
        np.testing.assert_allclose(*forces, rtol=0, atol=1e-12 * scale_of(local))
    np.testing.assert_allclose(mean.cauchy(x), local.cauchy(x), rtol=0, atol=1e-11 * MU)


@pytest.mark.parametrize("law", [k for k, law in enumerate(MATERIALS[:N_LAWS]) if law.name != "stvk"])
def test_mean_dilatation_sees_the_volume_alone(law: int, rng: np.random.Generator) -> None:
    """The bulk modulus does nothing while the element keeps its volume, though J varies inside: that unlocks it.

    (Lambda of stvk is no bulk modulus: its energy does not split.)
    """
    local, mean = (Body(HEX8, law, flag, only=1) for flag in (False, True))
    x = mean.deformed(rng)
    f = np.einsum("ai,qaj->qij", x[mean.mesh.cells[0]], mean.batch.gradients[0])
    j = np.linalg.det(f)
    x *= (mean.volume / (mean.batch.weights[0] @ j)) ** (1.0 / 3.0)
    assert np.ptp(j) > 0.05
    stiff = mean.parameters(lam=1e3 * LAM)
    assert mean.energy(x, stiff) == pytest.approx(mean.energy(x), rel=1e-9)
    assert local.energy(x, stiff) > 1.5 * local.energy(x)
    forces = [mean.force(mean.elastic, x, theta=theta) for theta in (mean.theta, stiff)]
    np.testing.assert_allclose(*forces, rtol=0, atol=1e-10 * scale_of(mean))


@pytest.mark.parametrize(("family", "law", "mean"), NEO_HOOKEAN_LAWS, ids=NEO_HOOKEAN_NAMES)
def test_stress_of_homogeneous_states(family: ElementFamily, law: int, mean: bool, rng: np.random.Generator) -> None:
    """Cauchy stress of the compressible Neo-Hookean: (mu (b - I) + p I J) / J, p from the volumetric form."""
    body = Body(family, law, mean)

    def expected(stretches: np.ndarray) -> np.ndarray:
        j = stretches.prod()
        volumetric = LAM * np.log(j) if law == 0 else 0.5 * LAM * (j * j - 1.0)
        return np.diag(MU * (stretches**2 - 1.0) + volumetric) / j

    for stretches in ([1.3, 1.0, 1.0], [0.6, 1.0, 1.0], [1.2, 1.2, 1.2], [0.8, 0.8, 0.8], [1.4, 0.9, 0.7]):
        s = np.array(stretches)
        turn = random_rotation(rng)
        stress = body.cauchy(body.rest * s @ turn.T)
        for element in stress:
            np.testing.assert_allclose(turn.T @ element @ turn, expected(s), rtol=0, atol=1e-10 * MU)


def test_stress_is_that_of_the_forces(body: Body, rng: np.random.Generator) -> None:
    """Virtual work: sum f_a (x) x_a is the integral of J sigma, so the virial gives the mean stress."""
    stretch = np.eye(3) + 0.3 * rng.uniform(-1.0, 1.0, size=(3, 3))
    x = body.rest @ stretch.T
    virial = body.force(body.elastic, x).T @ x
    sigma = body.cauchy(x).mean(axis=0)
    now = body.volume * np.linalg.det(stretch)
    np.testing.assert_allclose(virial, now * sigma, rtol=0, atol=1e-11 * MU * now)


def test_uniaxial_tension_has_youngs_modulus_and_poissons_ratio(body: Body) -> None:
    """A small stress along one axis alone: found from the stiffness of homogeneous states."""
    e = 1e-5
    young, poisson = MU * (3.0 * LAM + 2.0 * MU) / (LAM + MU), LAM / (2.0 * (LAM + MU))
    sigma = body.cauchy(body.rest * np.array([1.0 + e, 1.0 - poisson * e, 1.0 - poisson * e])).mean(axis=0)
    assert sigma[0, 0] == pytest.approx(young * e, rel=1e-3)
    assert np.abs(sigma[1:]).max() < 1e-3 * young * e


def test_inverted_elements_give_nan(body: Body) -> None:
    x = body.rest.copy()
    cell = body.mesh.cells[0]
    # Every node of the first element reflected: all its points are turned inside out.
    x[cell] = 2.0 * x[cell].mean(axis=0) - x[cell]
    assert np.isnan(body.force(body.elastic, x)[cell]).all()
    assert np.isnan(body.energy(x))


def test_partly_inverted_element_gives_nan() -> None:
    """One inverted quadrature point is enough, with and without mean dilatation."""
    for mean in (False, True):
        body = Body(HEX8, 0, mean)
        x = body.rest.copy()
        cell = body.mesh.cells[0]
        inside = x[cell].mean(axis=0)
        x[cell[0]] += 3.0 * (inside - x[cell[0]])
        f = np.einsum("ai,qaj->qij", x[cell], body.batch.gradients[0])
        signs = np.linalg.det(f) > 0.0
        assert signs.any() and not signs.all()
        assert np.isnan(body.force(body.elastic, x)[cell]).all()
        assert np.isnan(body.energy(x))


# --- viscous ----------------------------------------------------------------------------------------------------------


def test_rigid_velocity_is_not_damped(body: Body, rng: np.random.Generator) -> None:
    x = body.deformed(rng)
    v = rng.normal(size=3) + x @ skew(rng.normal(size=3)).T
    assert np.abs(body.force(body.viscous, x, v)).max() < 1e-12 * scale_of(body)
    assert np.abs(body.force(body.viscous, x, rng.normal(size=x.shape))).max() > 1e-3 * scale_of(body)


def test_viscous_objectivity(body: Body, rng: np.random.Generator) -> None:
    """A superposed rigid motion, with its own velocity, turns the forces."""
    x, v = body.deformed(rng), rng.normal(size=(body.n // 3, 3))
    turn, omega = random_rotation(rng), rng.normal(size=3)
    moved = x @ turn.T
    rate = v @ turn.T + moved @ skew(omega).T + rng.normal(size=3)
    f = body.force(body.viscous, x, v)
    found = body.force(body.viscous, moved, rate)
    np.testing.assert_allclose(found, f @ turn.T, rtol=0, atol=1e-12 * np.abs(f).max())


def test_viscous_power_is_not_negative(body: Body, rng: np.random.Generator) -> None:
    """Viscosity alone, stiffness-proportional damping alone, and both, only dissipate."""
    for nu, beta in ((NU, 0.0), (0.0, BETA), (NU, BETA)):
        theta = body.parameters(nu, beta)
        for _ in range(20):
            x, v = body.deformed(rng), rng.normal(size=(body.n // 3, 3))
            assert np.vdot(body.force(body.viscous, x, v, theta), v) > 0.0
        damping = body.matrix(body.viscous, Weights(0.0, 1.0, 0.0), x, v, theta)
        np.testing.assert_allclose(damping, damping.T, rtol=0, atol=1e-13 * np.abs(damping).max())
        assert np.linalg.eigvalsh(damping).min() > -1e-12 * np.abs(damping).max()


def test_viscous_force_of_a_homogeneous_rate(body: Body, rng: np.random.Generator) -> None:
    """P = F (nu + 2 mu beta) D + lambda beta tr D F, against the virial sum f_a (x) X_a = V P."""
    f, rate = np.eye(3) + 0.3 * rng.uniform(-1.0, 1.0, size=(3, 3)), rng.normal(size=(3, 3))
    force = body.force(body.viscous, body.rest @ f.T, body.rest @ rate.T)
    d = 0.5 * (f.T @ rate + rate.T @ f)
    stress = f @ ((NU + 2.0 * MU * BETA) * d + LAM * BETA * np.trace(d) * np.eye(3))
    np.testing.assert_allclose(force.T @ body.rest, body.volume * stress, rtol=0, atol=1e-11)


@pytest.mark.parametrize("exponent", [1.0, 1.4, 3.0])
def test_dissipation_of_a_power_law(exponent: float, rng: np.random.Generator) -> None:
    """A homogeneous rate takes the power V nu |D|^h; a hundredfold rate a 100^h-fold one."""
    body = Body(HEX8)
    viscous = Viscous(body.batch, POWER_LAW, *(body.theta.size + np.array(row) for row in ([-1], [[-2, 0]])))
    theta = np.append(body.parameters(beta=0.0), exponent)
    f, rate = np.eye(3) + 0.2 * rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    for factor in (1.0, 100.0):
        v = factor * body.rest @ rate.T
        d = factor * 0.5 * (f.T @ rate + rate.T @ f)
        power = np.vdot(body.force(viscous, body.rest @ f.T, v, theta), v)
        assert power == pytest.approx(body.volume * NU * np.linalg.norm(d) ** exponent, rel=1e-6)


@pytest.mark.parametrize(("family", "law", "mean"), LAWS, ids=LAW_NAMES)
def test_rayleigh_damping_at_rest_is_beta_k_v(
    family: ElementFamily, law: int, mean: bool, rng: np.random.Generator
) -> None:
    """At rest the force is beta K v.

    Exactly so wherever 2 mu D + lambda <tr D> I is the linear stress; mean dilatation keeps the local trace in the
    shear part, where K takes the average, so there it is exact for elements of constant trace alone.
    """
    body = Body(family, law, mean)
    theta = body.parameters(nu=0.0)
    v = rng.normal(size=body.rest.shape)
    if mean and family is not TET4:
        v = body.rest @ rng.normal(size=(3, 3)).T
    stiffness = body.matrix(body.elastic, Weights(1.0, 0.0, 0.0), body.rest)
    expected = BETA * (stiffness @ v.ravel()).reshape(-1, 3)
    found = body.force(body.viscous, body.rest, v, theta)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
