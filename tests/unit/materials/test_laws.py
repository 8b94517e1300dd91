"""Elastic laws at one point: against an independent reference, and their derivatives against differences."""

import csv
from collections.abc import Callable

import numpy as np
import pytest
from support.law_points import Point, by_each, deformation, differences
from support.places import SPECS

from add.materials import (
    DIRECTIONS,
    HYPERFOAM,
    LINEAR,
    MATERIALS,
    NAMES,
    Material,
    called,
    formula_law,
    linear_moduli,
    material,
)

REFERENCE = SPECS / "deformables/reference/constitutive.npz"
MODULI = {
    "mu": 4e5, "lambda": 6e5, "c10": 1.6e5, "c01": 4e4, "kappa": 2e6, "c20": 2e4, "c30": 3e3, "limit": 12.0,
    "mu1": 6.3e5, "alpha1": 1.3, "mu2": 1.2e5, "alpha2": 5.0, "mu3": -1e5, "alpha3": -2.0,
    "a": 6e4, "b": 1.2, "a_f": 1.8e5, "b_f": 0.05, "a_s": 1e5, "b_s": 0.05, "a_fs": 2e5, "b_fs": 0.05,
    "c": 8e4, "k1": 1e5, "k2": 0.05, "dispersion": 0.2,  # and fibres that are taut in any of the deformations
    "poisson": 0.2,
    "fibre.x": 1.5, "fibre.y": 1.6, "fibre.z": 0.2, "sheet.x": -1.6, "sheet.y": 1.5, "sheet.z": 0.2,
}  # fmt: skip
#: Laws of the reference: its names, ours or a formula with the order of its numbers.
FIBRE_ACTIVE = "a*s_max*w*sqrt(3.141592653589793)/2*erf((sqrt(I4) - l_o)/w)"
REFERENCES = {
    "stvk": "stvk", "linear": "linear", "corotated": "corotated", "mooney_rivlin": "mooney-rivlin", "yeoh": "yeoh",
    "gent": "gent", "ogden3": "ogden", "holzapfel_ogden": "holzapfel-ogden", "hgo": "hgo",
    "fibre_active": (FIBRE_ACTIVE, ("a", "s_max", "l_o", "w")),
    "fibre_spring": ("k/2*(sqrt(I4) - r)**2", ("k", "r")),
}  # fmt: skip


def without_fibres(law: Material, p: np.ndarray) -> np.ndarray:
    """The numbers of a law whose directions have no length."""
    return p * [modulus not in DIRECTIONS for modulus in law.parameters]


def sizes_of(law: Material) -> np.ndarray:
    return np.array([MODULI[modulus.key] for modulus in law.parameters])


def moduli_of(law: Material, rng: np.random.Generator) -> np.ndarray:
    return sizes_of(law) * rng.uniform(0.5, 1.5, len(law.parameters))


@pytest.mark.skipif(not REFERENCE.exists(), reason="shared/specs with the reference of the laws is not there")
@pytest.mark.parametrize("key", REFERENCES)
def test_reference(key: str) -> None:
    """Energy, stress, tangent and derivative by parameters to 1e-10 of the largest entry, in every case.

    The reference's tangents of fibres that begin to pull are differences: twice their asymmetry is what they are good
    for, and nothing where a fibre is neither loose nor taut.
    """
    named = REFERENCES[key]
    with np.load(REFERENCE) as reference:
        expected = {part: reference[f"{key}/{part}"] for part in ("W", "P", "dPdF", "dPdp")}
        parameters, asymmetry = reference[f"{key}/parameters"], reference[f"{key}/dPdF_asymmetry"]
        places, directions = reference["F"], np.concatenate([reference["a0"], reference["s0"]])
    law, order = (material(named), np.arange(parameters.size)) if isinstance(named, str) else (
        formula_law(named[0]), np.argsort(named[1])
    )  # fmt: skip
    n = parameters.size
    p = np.concatenate([parameters[order], directions[: len(law.parameters) - n]])
    points = [Point(law, p, f) for f in places]
    assert len(points) >= 17
    found = {
        "W": np.array([point.energy() for point in points]),
        "P": np.array([point.stress() for point in points]),
        "dPdF": np.array([point.tangent() for point in points]),
        "dPdp": np.array([point.by_parameters()[..., np.argsort(order)] for point in points]),
    }
    for of in expected, found:  # as stresses: parameters differ in size by five orders
        of["dPdp"] = of["dPdp"] * parameters
    for part, values in expected.items():
        largest = np.abs(values).reshape(len(points), -1).max(axis=1)
        error = np.abs(found[part] - values).reshape(len(points), -1).max(axis=1)
        # Where a case has nothing but round-off (the rest state), the others say what is small.
        limit = np.full(len(points), 1e-10)
        if part == "dPdF":
            limit = np.where(asymmetry > 1e-6, np.inf, np.maximum(limit, 2.0 * asymmetry))
            assert np.isfinite(limit).sum() >= len(points) - 1
        assert (error <= limit * np.maximum(largest, 1e-3 * largest.max())).all(), part


@pytest.mark.parametrize(
    ("name", "pressure"), [("neo-hookean", np.log), ("neo-hookean-ciarlet", lambda j: (j * j - 1.0) / 2.0)]
)
def test_neo_hookean_stresses(name: str, pressure: Callable[[float], float], rng: np.random.Generator) -> None:
    """P = mu (F - F^-T) + lambda U'(J) J F^-T: U' J is ln J, and (J^2 - 1) / 2 with Ciarlet's volumetric part."""
    f = deformation(rng)
    mu, lam, inverse, j = 4e5, 6e5, np.linalg.inv(f).T, float(np.linalg.det(f))
    assert abs(j - 1.0) > 0.05
    expected = mu * (f - inverse) + lam * pressure(j) * inverse
    np.testing.assert_allclose(
        Point(material(name), np.array([mu, lam]), f).stress(), expected, rtol=0, atol=1e-13 * mu
    )


@pytest.mark.parametrize("law", MATERIALS, ids=lambda law: law.name)
def test_derivatives(law: Material, rng: np.random.Generator) -> None:
    """P is the slope of W, the tangent that of P by F, by_parameters that of P by p; the tangent is symmetric."""
    p, f = moduli_of(law, rng), deformation(rng)
    point = Point(law, p, f)
    scale = np.abs(point.tangent()).max()
    for found, expected in (
        (point.stress(), differences(lambda x: Point(law, p, x).energy(), f, 1e-3)),
        (point.tangent(), differences(lambda x: Point(law, p, x).stress(), f, 1e-3)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * scale)
    by_p = by_each(lambda x: Point(law, x, f).stress(), p, sizes_of(law))
    np.testing.assert_allclose(point.by_parameters(), by_p, rtol=0, atol=1e-8 * np.abs(by_p).max())
    assert np.abs(by_p).max(axis=(0, 1)).min() > 1e-3  # every modulus is at work
    tangent = point.tangent().reshape(9, 9)
    np.testing.assert_allclose(tangent, tangent.T, rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("law", MATERIALS, ids=lambda law: law.name)
def test_linear_moduli(law: Material, rng: np.random.Generator) -> None:
    """The rest state is free of stress, and its tangent is Hooke's law with the Lame constants that the law states."""
    p = moduli_of(law, rng)
    (mu, lam), slopes = (part[0] for part in linear_moduli(called(law), p[None]))
    rest = Point(law, without_fibres(law, p), np.eye(3))
    eye = np.eye(3)
    hooke = lam * np.einsum("im,jn->imjn", eye, eye)
    hooke += mu * (np.einsum("ij,mn->imjn", eye, eye) + np.einsum("in,mj->imjn", eye, eye))
    assert abs(rest.energy()) < 1e-12 * mu and np.abs(rest.stress()).max() < 1e-12 * mu
    np.testing.assert_allclose(rest.tangent(), hooke, rtol=0, atol=1e-12 * np.abs(hooke).max())
    found = by_each(lambda x: linear_moduli(called(law), x[None])[0][0], p, sizes_of(law))
    np.testing.assert_allclose(slopes, found, rtol=1e-10, atol=1e-10 + 1e-12 * np.abs(found).max())


@pytest.mark.parametrize("law", [law for law in MATERIALS if law is not LINEAR], ids=lambda law: law.name)
def test_frame_invariance(law: Material, rng: np.random.Generator) -> None:
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    p, f = moduli_of(law, rng), deformation(rng)
    point, turned = Point(law, p, f), Point(law, p, turn @ f)
    assert turned.energy() == pytest.approx(point.energy(), rel=1e-11)
    stress = point.stress()
    np.testing.assert_allclose(turned.stress(), turn @ stress, rtol=0, atol=1e-11 * np.abs(stress).max())


@pytest.mark.parametrize("name", ["corotated", "ogden"])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-6, 1.9e-5, 2.1e-5, 1e-3])
def test_stretches_that_coincide(name: str, gap: float, rng: np.random.Generator) -> None:
    """The tangent is that of differences on both sides of where the quotient gives way to its limit, and in it."""
    law = material(name)
    p = sizes_of(law)
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
    turns = [turn * np.sign(np.linalg.det(turn)) for turn in turns]
    for stretches in ([1.3, 1.3 + gap, 0.8], [0.9, 0.9 + gap, 0.9 - gap]):
        f = turns[0] @ np.diag(stretches) @ turns[1].T
        tangent = Point(law, p, f).tangent()
        expected = differences(lambda x: Point(law, p, x).stress(), f, 1e-3)
        np.testing.assert_allclose(tangent, expected, rtol=0, atol=1e-9 * np.abs(tangent).max())


@pytest.mark.skipif(not REFERENCE.exists(), reason="shared/specs with the reference of the laws is not there")
def test_ogden_against_rubber() -> None:
    """Treloar's rubber, incompressible, pulled along one, two axes and one with another held: closed forms."""
    p = np.array([6.3e5, 1.3, 1.2e3, 5.0, -1e4, -2.0, 2e6])
    table = REFERENCE.parent / "stress_stretch_incompressible.csv"
    with table.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row[0].startswith("ogden")]
    assert len(rows) > 30
    for row in rows:
        l = float(row[1])
        tests = ((l, l**-0.5, l**-0.5), (l, l, l**-2), (l, 1.0, 1.0 / l))
        for stretches, expected in zip(tests, map(float, row[2:]), strict=True):
            stress = Point(material("ogden"), p, np.diag(stretches)).stress()
            assert stress[0, 0] - stress[2, 2] * stretches[2] / l == pytest.approx(expected, rel=2e-10, abs=1e-5)


@pytest.mark.parametrize("nu", [-0.2, 0.001, 0.04, 0.3])
def test_foam(nu: float) -> None:
    """Two powers under a pull and a press along an axis: sides by a constant Poisson's ratio, closed stress."""
    powers = (2e4, 8.0), (3e3, -2.0)
    p = np.array([*powers[0], *powers[1], nu])
    beta = nu / (1 - 2 * nu)
    for l in (0.3, 0.7, 0.95, 1.0, 1.3):
        stress = Point(HYPERFOAM, p, np.diag([l, l**-nu, l**-nu])).stress()
        jac = l ** (1 - 2 * nu)
        closed = sum(2 * mu / (alpha * l) * (l**alpha - jac ** (-alpha * beta)) for mu, alpha in powers)
        assert stress[0, 0] == pytest.approx(closed, rel=1e-10, abs=1e-8 * 2e4)
        assert abs(stress[1, 1]) < 1e-9 * 2e4 * max(1.0, abs(closed) / 2e4)


def test_small_strain_sees_turns_as_stretches() -> None:
    """A turn by 0.1 stretches by cos 0.1 - 1 across its axis: the law that is for small motions only."""
    c, s = np.cos(0.1), np.sin(0.1)
    point = Point(LINEAR, np.array([4e5, 6e5]), np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]))
    assert point.stress()[0, 0] == pytest.approx((2 * 4e5 + 2 * 6e5) * (c - 1.0), rel=1e-12)


@pytest.mark.parametrize(
    ("volumetric", "energy"),
    [
        ("quadratic", lambda j: (j - 1) ** 2),
        ("logarithmic", lambda j: np.log(j) ** 2),
        ("ciarlet", lambda j: (j * j - 1) / 2 - np.log(j)),
    ],
)
def test_energies_of_volume(volumetric: str, energy: Callable[[float], float], rng: np.random.Generator) -> None:
    """Nothing but U(J) is stored by a change of size alone; the law is known by its name, as run files keep it."""
    law = material("yeoh", volumetric)
    p = sizes_of(law)
    for s in (0.6, 0.9, 1.0, 1.4):
        assert Point(law, p, s * np.eye(3)).energy() == pytest.approx(0.5 * p[-1] * energy(s**3), abs=1e-9 * p[-1])
    assert law.name in NAMES and material(law.name) is law
    f = deformation(rng)
    point = Point(law, p, f)
    slope = differences(lambda x: Point(law, p, x).energy(), f, 1e-3)
    np.testing.assert_allclose(point.stress(), slope, rtol=0, atol=1e-8 * np.abs(point.tangent()).max())


def test_names_and_keys_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(MATERIALS) + 12
    for law in MATERIALS:
        assert len({modulus.key for modulus in law.parameters}) == len(law.parameters)
