"""Elastic laws at one point: against an independent reference, and their derivatives against differences."""

import numpy as np
import pytest
from support.law_points import Point, by_each, deformation, differences
from support.places import SPECS

from add.materials import MATERIALS, Material, element_loops, material

REFERENCE = SPECS / "deformables/reference/constitutive.npz"
MODULI = {
    "mu": 4e5, "lambda": 6e5, "c10": 1.6e5, "c01": 4e4, "kappa": 2e6, "c20": 2e4, "c30": 3e3, "limit": 12.0,
}  # fmt: skip


def sizes_of(law: Material) -> np.ndarray:
    return np.array([MODULI[modulus.key] for modulus in law.parameters])


def moduli_of(law: Material, rng: np.random.Generator) -> np.ndarray:
    return sizes_of(law) * rng.uniform(0.5, 1.5, len(law.parameters))


@pytest.mark.skipif(not REFERENCE.exists(), reason="shared/specs with the reference of the laws is not there")
@pytest.mark.parametrize(
    ("name", "key"), [("stvk", "stvk"), ("mooney-rivlin", "mooney_rivlin"), ("yeoh", "yeoh"), ("gent", "gent")]
)
def test_reference(name: str, key: str) -> None:
    """Energy, stress, tangent and derivative by parameters to 1e-10 of the largest entry, in every case."""
    key = name.replace("-", "_")
    with np.load(REFERENCE) as reference:
        expected = {part: reference[f"{key}/{part}"] for part in ("W", "P", "dPdF", "dPdp")}
        parameters = reference[f"{key}/parameters"]
        points = [Point(material(name), parameters, f) for f in reference["F"]]
    assert len(points) >= 17
    found = {
        "W": np.array([point.energy() for point in points]),
        "P": np.array([point.stress() for point in points]),
        "dPdF": np.array([point.tangent() for point in points]),
        "dPdp": np.array([point.by_parameters() for point in points]),
    }
    for of in expected, found:  # as stresses: parameters differ in size by five orders
        of["dPdp"] = of["dPdp"] * parameters
    for part, values in expected.items():
        largest = np.abs(values).reshape(len(points), -1).max(axis=1)
        error = np.abs(found[part] - values).reshape(len(points), -1).max(axis=1)
        # Where a case has nothing but round-off (the rest state), the others say what is small.
        assert (error <= 1e-10 * np.maximum(largest, 1e-3 * largest.max())).all(), part


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
    loops = element_loops(law)
    p = moduli_of(law, rng)
    (mu, lam), slopes = (part[0] for part in loops.linear_moduli(p[None]))
    rest = Point(law, p, np.eye(3))
    eye = np.eye(3)
    hooke = lam * np.einsum("im,jn->imjn", eye, eye)
    hooke += mu * (np.einsum("ij,mn->imjn", eye, eye) + np.einsum("in,mj->imjn", eye, eye))
    assert abs(rest.energy()) < 1e-12 * mu and np.abs(rest.stress()).max() < 1e-12 * mu
    np.testing.assert_allclose(rest.tangent(), hooke, rtol=0, atol=1e-12 * np.abs(hooke).max())
    found = by_each(lambda x: loops.linear_moduli(x[None])[0][0], p, sizes_of(law))
    np.testing.assert_allclose(slopes, found, rtol=0, atol=1e-10)


@pytest.mark.parametrize("law", MATERIALS, ids=lambda law: law.name)
def test_frame_invariance(law: Material, rng: np.random.Generator) -> None:
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    p, f = moduli_of(law, rng), deformation(rng)
    point, turned = Point(law, p, f), Point(law, p, turn @ f)
    assert turned.energy() == pytest.approx(point.energy(), rel=1e-11)
    stress = point.stress()
    np.testing.assert_allclose(turned.stress(), turn @ stress, rtol=0, atol=1e-11 * np.abs(stress).max())


def test_names_and_keys_are_unique() -> None:
    assert len({law.name for law in MATERIALS}) == len(MATERIALS)
    for law in MATERIALS:
        assert len({modulus.key for modulus in law.parameters}) == len(law.parameters)
