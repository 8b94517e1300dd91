"""Membranes, bending and rods: against independent tables, against differences, and what no motion may change."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.places import SPECS

from add.equations.kinematics import Kinematics, Weights
from add.geometry.sheet import ALTERNATING, IRREGULAR, ONE, Sheet, rectangle
from add.kernels.rotation import rotation_matrix
from add.kernels.strains import hinge_angle
from add.laws import derivative, evaluate
from add.materials import strain_loops
from add.materials.strains import (
    BENDINGS,
    MEMBRANES,
    ROD_BENDING,
    ROD_STRETCHING,
    StrainLaw,
    membrane_formula,
    membrane_table,
)
from add.terms import Stencils, Strained
from add.terms.elastic import StrainArrays
from add.testing import check_term

REFERENCE = SPECS / "deformables/reference"
with_reference = pytest.mark.skipif(not REFERENCE.exists(), reason="shared/specs with the reference is not there")
FORMULA = membrane_formula("a*(C11 - 1)**2 + b*(C22 - 1)**2 + c*exp(C12**2) + a*log(C11*C22 - C12**2)**2 - c")
TABLE = membrane_table((0.0, 0.05, 0.2))
SIZES = {"poisson": 0.3, "k12": 0.3}


def sheet(rng: np.random.Generator) -> tuple[np.ndarray, Sheet]:
    """A wavy sheet with moved nodes; its hinges are bent at rest."""
    points, triangles = rectangle((3.0, 2.0), (3, 2), IRREGULAR)
    points = points + 0.08 * rng.normal(size=points.shape)
    points[:, 2] += 0.4 * np.sin(2.0 * points[:, 0])
    return points, Sheet(triangles, points[triangles])


def stencils(law: StrainLaw, rng: np.random.Generator) -> tuple[np.ndarray, Stencils]:
    """Places at rest, and stencils of two groups with own numbers."""
    points, found = sheet(rng)
    n_p = len(law.parameters)

    def made(cells: np.ndarray, places: np.ndarray, shape: np.ndarray, weights: np.ndarray) -> Stencils:
        group = np.arange(len(cells)) % 2
        return Stencils(cells, places, shape, weights, group, np.arange(2 * n_p).reshape(2, n_p))

    n = found.triangles.shape[0]
    if law.strain.name == "membrane":
        none = np.zeros((n, 0), dtype=int)
        return points, made(found.triangles, none, found.gradients.reshape(n, 6), found.areas)
    if law.strain.name == "plate":
        plate = found.plates()
        return points, made(plate.cells, plate.places, plate.shape, found.areas[plate.triangles])
    if law.strain.name == "hinge":  # angles at rest of both signs, beyond a right angle
        n = len(found.hinges)
        angles = found.rest_angles + np.linspace(-3.0, 3.0, n)
        shape = np.column_stack([angles, np.ones(n)])
        return points, made(found.hinge_nodes, np.tile(np.arange(4), (n, 1)), shape, found.hinge_weights)
    m = 2 if law is ROD_STRETCHING else 3
    cells = np.arange(8 - m)[:, None] + np.arange(m)
    lengths = rng.uniform(0.5, 1.5, len(cells))
    shape = lengths[:, None] if m == 2 else np.zeros((len(cells), 0))
    return points, made(cells, np.zeros((len(cells), 0), dtype=int), shape, lengths)


def moved(points: np.ndarray, rng: np.random.Generator, noise: float = 0.15) -> Kinematics:
    stretch = np.eye(3) + 0.2 * rng.uniform(-1.0, 1.0, (3, 3))
    q = (points @ stretch.T + noise * rng.normal(size=points.shape)).ravel()
    return Kinematics(q, rng.normal(size=q.size), rng.normal(size=q.size), 0.3, 4)


def numbers(law: StrainLaw, rng: np.random.Generator) -> np.ndarray:
    size = np.array([SIZES.get(word, 1.0) for word in law.words])
    return (size * rng.uniform(0.5, 1.5, (2, size.size))).ravel()


LAWS = {
    **MEMBRANES,
    "formula": FORMULA,
    "table": TABLE,
    **BENDINGS,
    "stretching": ROD_STRETCHING,
    "rod bending": ROD_BENDING,
}


@pytest.mark.parametrize("name", LAWS)
def test_derivatives(name: str, rng: np.random.Generator) -> None:
    """Forces, matrices by q and v, and derivatives by every number, with the resistance acting."""
    law = LAWS[name]
    points, found = stencils(law, rng)
    term, theta = Strained(law, found), numbers(law, rng)
    seen = check_term(term, moved(points, rng), theta, rng=rng, scales={"q": 0.3})
    assert seen.q > 0.0
    assert (seen.v > 0.0) == law.damped
    assert len(seen.parameters) == theta.size


@pytest.mark.parametrize("name", ["neo-hookean", "plate", "hinge"])
def test_matrix_by_rates_reads_nothing_that_was_not_written(
    name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New arrays full of NaN: by the velocities alone, nothing of the unasked share by places enters."""
    law = LAWS[name]
    points, found = stencils(law, rng)
    term, theta, kin = Strained(law, found), numbers(law, rng), moved(points, rng)
    rows, _ = term.pattern()
    slots, wanted, data = np.arange(rows.size), np.zeros(rows.size), np.zeros(rows.size)
    term.jacobian(kin, theta, Weights(0.0, 1.0, 0.0), wanted, slots)
    poisoned = SimpleNamespace(zeros=np.zeros, empty=lambda shape: np.full(shape, np.nan))
    monkeypatch.setattr(strain_loops, "np", poisoned)
    size = 3 * found.cells.shape[1]
    own = StrainArrays(*found, strain_loops.called_strain(law))
    jacobian = strain_loops.strain_jacobian.py_func
    jacobian(kin.q, own, theta[found.moduli], kin.v, 0.0, 1.0, data, slots.reshape(-1, size, size))
    np.testing.assert_allclose(data, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("name", LAWS)
def test_forces_are_slopes_of_the_energy_and_turn_with_the_body(name: str, rng: np.random.Generator) -> None:
    """Turned by R, forces are R times those before, those of rates too; they balance; a rigid motion has no rate."""
    law = LAWS[name]
    points, found = stencils(law, rng)
    term, theta = Strained(law, found), numbers(law, rng)
    kin = moved(points, rng)
    still = Kinematics(kin.q, np.zeros_like(kin.q), kin.a, kin.t, kin.step)
    check_term(term, still, theta, rng=rng, scales={"q": 0.3}, energy=True, parameters=[0])

    def force(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = np.zeros(q.size)
        term.residual(Kinematics(q.ravel(), v.ravel(), kin.a, 0.0, 0), theta, out)
        return out.reshape(-1, 3)

    turn = rotation_matrix(rng.normal(size=3))
    x, v = kin.q.reshape(-1, 3), kin.v.reshape(-1, 3)
    one = force(x, v)
    size = np.abs(one).max()
    assert np.abs(force(x @ turn.T + 1.0, v @ turn.T) - one @ turn.T).max() < 1e-11 * size
    assert np.abs(one.sum(axis=0)).max() < 1e-11 * size
    assert np.abs(np.cross(x, one).sum(axis=0)).max() < 1e-11 * size
    spin = np.cross([0.3, -1.0, 0.7], x) + np.array([1.0, 2.0, 3.0])
    assert np.abs(force(x, spin) - force(x, 0.0 * v)).max() < 1e-11 * size


def test_tension_is_the_integral_of_the_table() -> None:
    """dW/dE by trapezoids, linear in compression and beyond the last row; one row is orthotropic."""
    strains, rows = [0.0, 0.05, 0.2], {"k11": [2.0, 6.0, 3.0], "k22": [1.0, 5.0, 4.0], "k33": [2.0, 1.0, 7.0]}
    given = {f"{key}_{k}": x for key, row in rows.items() for k, x in enumerate(row)} | {"k12": 0.5, "viscosity": 0.0}

    def tension(E: float, k: list[float]) -> float:
        grid = np.union1d([x for x in strains if x < abs(E)], [0.0, abs(E)])
        return float(np.sign(E) * np.trapezoid(np.interp(grid, strains, k), grid))

    for E11, E22, E12 in [(0.02, 0.1, -0.01), (-0.1, 0.3, 0.12), (0.3, -0.2, -0.4), (0.05, 0.2, 0.2)]:
        at = given | {"C11": 1.0 + 2.0 * E11, "C22": 1.0 + 2.0 * E22, "C12": 2.0 * E12}
        found = [float(evaluate(derivative(TABLE.energy, name), at)) for name in ("C11", "C22", "C12")]
        warp, weft = (x * row[0] if x < 0.0 else tension(x, row) for x, row in ((E11, rows["k11"]), (E22, rows["k22"])))
        wanted = [0.5 * (warp + 0.5 * E22), 0.5 * (weft + 0.5 * E11), 0.5 * tension(E12, rows["k33"])]
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-14)
    one, woven = membrane_table((0.0,)), MEMBRANES["orthotropic"]
    at = {"C11": 1.3, "C22": 0.8, "C12": -0.2, "k12": 0.5}
    found = evaluate(one.energy, at | {"k11_0": 2.0, "k22_0": 1.0, "k33_0": 3.0})
    assert found == pytest.approx(evaluate(woven.energy, at | {"k11": 2.0, "k22": 1.0, "k33": 3.0}), rel=1e-14)


@with_reference
@pytest.mark.parametrize(("name", "key"), [("stvk", "stvk"), ("orthotropic", "ortho"), ("neo-hookean", "neo"),
                                           ("baraff-witkin", "bw")])  # fmt: skip
def test_membrane_reference(name: str, key: str) -> None:
    """Energy, forces and matrix of an independent code."""
    law = MEMBRANES[name]
    with np.load(REFERENCE / "membrane.npz") as table:
        rest, places = table["rest"], table["x"]
        p = table[f"{key}/parameters"]
        energy, gradient, hessian = (table[f"{key}/{what}"] for what in ("energy", "gradient", "hessian"))
    if key == "neo":
        nu = p[2] / (p[2] + 2.0 * p[1])
        p = np.array([p[0], 2.0 * p[1] * (1.0 + nu), nu])
    if key == "ortho":
        p = p[[0, 2, 1, 3]]
    theta = np.insert(p, 1 if "thickness" in law.words else 0, 0.0)  # no viscosity
    assert theta.size == len(law.parameters) and len(places) >= 17
    none, dofs = np.zeros((1, 0), dtype=int), np.zeros(9)
    for k, x in enumerate(places):
        found = Sheet(np.array([[0, 1, 2]]), np.column_stack([rest[k], np.zeros(3)])[None])
        one = Stencils(np.array([[0, 1, 2]]), none, found.gradients.reshape(1, 6), found.areas, np.zeros(1, dtype=int),
                       np.arange(theta.size)[None])  # fmt: skip
        term, kin = Strained(law, one), Kinematics(x.ravel().copy(), dofs, dofs, 0.0, 0)
        r, data = np.zeros(9), np.zeros(81)
        term.residual(kin, theta, r)
        term.jacobian(kin, theta, Weights(1.0, 0.0, 0.0), data, np.arange(81))
        assert term.energy(kin, theta) == pytest.approx(energy[k], rel=1e-10)
        assert np.abs(r - gradient[k]).max() < 1e-10 * np.abs(gradient[k]).max()
        assert np.abs(data.reshape(9, 9) - hessian[k]).max() < 1e-10 * np.abs(hessian[k]).max()


@with_reference
def test_hinge_reference() -> None:
    """Angle, gradient and Hessian of an independent code, from flat to nearly closed."""
    work = np.empty((13, 12))
    with np.load(REFERENCE / "dihedral.npz") as table:
        cases = [table[key] for key in ("x", "theta", "gradient", "hessian")]
    assert np.abs(cases[1]).max() > 3.1
    for x, theta, gradient, hessian in zip(*cases, strict=True):
        assert hinge_angle(x, np.arange(4), work, True) == pytest.approx(theta, abs=1e-10)
        assert np.abs(work[0] - gradient).max() < 1e-10 * np.abs(gradient).max()
        assert np.abs(work[1:] - hessian).max() < 1e-10 * np.abs(hessian).max()


@pytest.mark.parametrize("name", MEMBRANES)
def test_membrane_patch(name: str, rng: np.random.Generator) -> None:
    """A linear displacement leaves inner nodes of any mesh without force; a bent rest shape has none anywhere."""
    law, (points, triangles) = MEMBRANES[name], rectangle((1.0, 0.8), (5, 4), IRREGULAR)
    theta = numbers(law, rng)[: len(law.parameters)]
    inner = (np.abs(points[:, 0]) < 0.49) & (np.abs(points[:, 1]) < 0.39)
    wavy = points + np.outer(np.sin(3.0 * points[:, 0]), [0.0, 0.0, 0.1])
    for at_rest, x, kept in ((points, points @ rng.uniform(0.5, 1.5, (3, 3)), inner), (wavy, wavy, inner | True)):
        found, n = Sheet(triangles, at_rest[triangles]), triangles.shape[0]
        arrays = np.zeros((n, 0), dtype=int), found.gradients.reshape(n, 6), found.areas, np.zeros(n, dtype=int)
        term = Strained(law, Stencils(triangles, *arrays, np.arange(theta.size)[None]))
        out = np.zeros(x.size)
        term.residual(Kinematics(x.ravel(), np.zeros(x.size), np.zeros(x.size), 0.0, 0), theta, out)
        assert np.abs(out.reshape(-1, 3)[kept]).max() < 1e-13 * theta.max()
    assert inner.sum() > 8


@pytest.mark.parametrize("diagonals", [ONE, ALTERNATING, IRREGULAR])
def test_plate_patch(diagonals: object) -> None:
    """A quadratic surface has its curvatures and energy, and no force on nodes away from the border, on any mesh."""
    points, triangles = rectangle((1.0, 1.0), (8, 8), diagonals)
    found = Sheet(triangles, points[triangles])
    plate = found.plates()
    d, nu, eps = 2.0, 0.3, 1e-5
    b11, b22, b12 = 1.4, -0.6, 0.4
    x = points.copy()
    x[:, 2] = eps * (0.5 * b11 * x[:, 0] ** 2 + 0.5 * b22 * x[:, 1] ** 2 + b12 * x[:, 0] * x[:, 1])
    arrays = plate.cells, plate.places, plate.shape, found.areas[plate.triangles]
    group, none = np.zeros(len(plate.cells), dtype=int), np.zeros(x.size)
    term, theta = Strained(BENDINGS["plate"], Stencils(*arrays, group, np.arange(3)[None])), np.array([d, nu, 0.0])
    out = np.zeros(x.size)
    term.residual(Kinematics(x.ravel(), none, none, 0.0, 0), theta, out)
    inside = (np.abs(points[:, :2]) < 0.5 - 2.5 / 8).all(axis=1)
    assert inside.any()
    forces = np.abs(out.reshape(-1, 3)[:, 2])
    assert forces[inside].max() < 1e-9 * forces.max()
    middle = (np.abs(points[triangles].mean(axis=1)[plate.triangles][:, :2]) < 0.5 - 2.5 / 8).all(axis=1)
    part = Strained(BENDINGS["plate"], Stencils(*(one[middle] for one in (*arrays, group)), np.arange(3)[None]))
    density = d / 2.0 * ((1.0 - nu) * (b11**2 + b22**2 + 2.0 * b12**2) + nu * (b11 + b22) ** 2)
    energy = part.energy(Kinematics(x.ravel(), none, none, 0.0, 0), theta)
    assert energy == pytest.approx(eps**2 * density * arrays[3][middle].sum(), rel=1e-6)


def test_a_hinge_goes_on_past_a_whole_turn() -> None:
    """Its force does not jump where the angle does, at pi, for a rest angle near it."""
    law, x = BENDINGS["hinge"], np.array([[0.0, 0, 0], [1, 0, 0], [0.5, 1, 0], [0.5, -1, 0]])
    one = Stencils(np.arange(4)[None], np.arange(4)[None], np.array([[3.0, 1.0]]), np.ones(1), np.zeros(1, dtype=int),
                   np.arange(2)[None])  # fmt: skip
    forces = []
    for fold in (np.pi - 1e-7, np.pi + 1e-7):
        x[3] = [0.5, -np.cos(fold), np.sin(fold)]
        out = np.zeros(12)
        Strained(law, one).residual(
            Kinematics(x.ravel(), np.zeros(12), np.zeros(12), 0.0, 0), np.array([2.0, 0.0]), out
        )
        forces.append(out)
    assert np.abs(forces[0]).max() > 0.1
    assert np.abs(forces[1] - forces[0]).max() < 1e-5
