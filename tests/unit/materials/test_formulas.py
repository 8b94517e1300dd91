"""Laws that a scene writes: against closed forms and named laws, and what is refused at rest."""

import csv

import numpy as np
import pytest
from support.law_points import Point, by_each, deformation, differences
from support.places import SPECS

from add.errors import InputError
from add.materials import DIRECTIONS, MOONEY_RIVLIN, Formula, called, formula_law, linear_moduli

TABLES = SPECS / "deformables/reference"
GENT = "-mu/2*J_m*log(1 - (I1b - 3)/J_m) + K/2*((J**2 - 1)/2 - log(J))"
INCOMPRESSIBLE = {
    "neo-hookean": ("mu/2*(I1 - 3) - mu*log(J) + k*(J - 1)**2", {"mu": 4e5, "k": 1e6}),
    "mooney-rivlin": ("C10*(I1b - 3) + C01*(I2b - 3) + k*(J - 1)**2", {"C10": 1.6e5, "C01": 4e4, "k": 1e6}),
    "yeoh": ("C1*(I1b - 3) + C2*(I1b - 3)**2 + C3*(I1b - 3)**3 + k*log(J)**2",
             {"C1": 2e5, "C2": -2e3, "C3": 50.0, "k": 1.0}),
}  # fmt: skip
#: With everything that the grammar has.
RICH = (
    "a*(exp(b*(I1b - 3)) - 1) + c*tanh((I2b - 3)/2)**2 + a*sin(I1b - 3) + c*(1 - cos(J - 1)) "
    "+ k*(J**(4/3) - 1)**2/sqrt(I2) - d*log(1 - (I1b - 3)*(J - 1)/30) + a*(1 + I1b + I1*I2/9)**1.5*(J - 1)**2"
)
RICH_NUMBERS = {"a": 3e3, "b": 0.3, "c": 2e3, "d": 5e2, "k": 4e4}


def law_and_numbers(text: str, numbers: dict[str, float], n_directions: int = 0):
    """Return the law, and its numbers in its own order."""
    law = formula_law(text)
    keys = [modulus.key for modulus in law.parameters]
    assert keys == [f"numbers.{name}" for name in sorted(numbers)] + [one.key for one in DIRECTIONS[:n_directions]]
    return law, np.array([numbers[name] for name in sorted(numbers)])


def rows(name: str) -> list[list[str]]:
    with open(TABLES / name, newline="") as file:
        return list(csv.reader(file))[1:]


@pytest.mark.skipif(not TABLES.exists(), reason="shared/specs with the reference of the laws is not there")
@pytest.mark.parametrize("name", list(INCOMPRESSIBLE))
def test_incompressible_stress(name: str) -> None:
    """Nominal stress of uniaxial, equibiaxial and planar tests of rubber: what is left when the free side is free."""
    law, p = law_and_numbers(*INCOMPRESSIBLE[name])
    found, expected = [], []
    for row in rows("stress_stretch_incompressible.csv"):
        if row[0].startswith(name):
            l = float(row[1])
            for stretches in ((l, l**-0.5, l**-0.5), (l, l, l**-2), (l, 1.0, 1.0 / l)):
                stress = Point(law, p, np.diag(stretches)).stress()
                found.append(stress[0, 0] - stress[2, 2] * stretches[2] / l)
            expected += map(float, row[2:])
    assert len(expected) > 100
    np.testing.assert_allclose(found, expected, rtol=2e-11, atol=1e-6)


@pytest.mark.skipif(not TABLES.exists(), reason="shared/specs with the reference of the laws is not there")
def test_compressible_stress() -> None:
    """Gent's rubber pulled along an axis with free sides."""
    law, p = law_and_numbers(GENT, {"mu": 4e5, "J_m": 30.0, "K": 2e6})
    table = [list(map(float, row[1:])) for row in rows("stress_stretch_compressible.csv") if row[0] == "gent"]
    assert len(table) > 15 and max(row[0] for row in table) == 2.0
    for stretch, lateral, nominal in table:
        stress = Point(law, p, np.diag([stretch, lateral, lateral])).stress()
        assert stress[0, 0] == pytest.approx(nominal, rel=1e-9, abs=1e-4)
        assert abs(stress[1, 1]) < 1e-4


def test_equals_the_named_law(rng: np.random.Generator) -> None:
    law = formula_law("c01*(I2/J**(4/3) - 3) + kappa*(1 - J)**2/2 + c10*(I1*J**(-2/3) - 3)")
    p, order = np.array([1.6e5, 4e4, 2e6]), [1, 0, 2]  # c10, c01, kappa
    for _ in range(4):
        f = deformation(rng)
        one, other = Point(MOONEY_RIVLIN, p, f), Point(law, p[order], f)
        scale = np.abs(one.tangent()).max()
        assert other.energy() == pytest.approx(one.energy(), abs=1e-12 * scale)
        np.testing.assert_allclose(other.stress(), one.stress(), rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(other.tangent(), one.tangent(), rtol=0, atol=1e-12 * scale)
        by_p = other.by_parameters()[..., order]
        np.testing.assert_allclose(by_p, one.by_parameters(), rtol=0, atol=1e-12 * np.abs(by_p).max())


def test_derivatives_of_a_rich_law(rng: np.random.Generator) -> None:
    law, p = law_and_numbers(RICH, RICH_NUMBERS)
    f = deformation(rng)
    point = Point(law, p, f)
    tangent, stress = point.tangent(), point.stress()
    scale = np.abs(tangent).max()
    np.testing.assert_allclose(stress, differences(lambda x: Point(law, p, x).energy(), f, 1e-3), atol=1e-8 * scale)
    np.testing.assert_allclose(tangent, differences(lambda x: Point(law, p, x).stress(), f, 1e-3), atol=1e-7 * scale)
    np.testing.assert_allclose(tangent.reshape(9, 9), tangent.reshape(9, 9).T, rtol=0, atol=1e-13 * scale)
    by_p = by_each(lambda x: Point(law, x, f).stress(), p, p)
    np.testing.assert_allclose(point.by_parameters() * p, by_p * p, rtol=0, atol=1e-9 * np.abs(by_p * p).max())
    assert np.abs(by_p).max(axis=(0, 1)).min() > 1e-3  # every number is at work
    eye = np.eye(3)
    (mu, lam), slopes = (part[0] for part in linear_moduli(called(law), p[None]))
    hooke = lam * np.einsum("im,jn->imjn", eye, eye)
    hooke += mu * (np.einsum("ij,mn->imjn", eye, eye) + np.einsum("in,mj->imjn", eye, eye))
    np.testing.assert_allclose(Point(law, p, eye).tangent(), hooke, rtol=0, atol=1e-12 * lam)
    found = by_each(lambda x: linear_moduli(called(law), x[None])[0][0], p, p)
    np.testing.assert_allclose(slopes * p, found * p, rtol=0, atol=1e-9 * lam)
    Formula.read(RICH, RICH_NUMBERS).require_sound(RICH_NUMBERS)


def test_stretches_fibres_and_invariants_in_one_law(rng: np.random.Generator) -> None:
    """All kinds of symbols, coupled: derivatives against differences, those by the directions included."""
    law, p = law_and_numbers(
        "m*((l1 - 1)**2 + (l2 - 1)**2 + (l3 - 1)**2)*(1 + a*I4b) + k*(J - 1)**2*I1 + m*pos(I6 - 0.5)**2*J "
        "+ a*m*(I8b*I2)**2",
        {"a": 0.3, "k": 2e4, "m": 4e3}, n_directions=6,
    )  # fmt: skip
    p = np.concatenate([p, rng.normal(size=6)])
    f = deformation(rng)
    point = Point(law, p, f)
    stress, tangent = point.stress(), point.tangent()
    scale = np.abs(tangent).max()
    np.testing.assert_allclose(stress, differences(lambda x: Point(law, p, x).energy(), f, 1e-3), atol=1e-8 * scale)
    np.testing.assert_allclose(tangent, differences(lambda x: Point(law, p, x).stress(), f, 1e-3), atol=1e-8 * scale)
    by_p = by_each(lambda x: Point(law, x, f).stress(), p, p)
    np.testing.assert_allclose(point.by_parameters() * p, by_p * p, rtol=0, atol=1e-9 * np.abs(by_p * p).max())
    assert np.abs(by_p).max(axis=(0, 1)).min() > 1e-3


def test_beyond_the_limit_there_is_no_value() -> None:
    """Energy, stress and tangent are NaN there, though the slope of a logarithm is a number: no step ends there."""
    law, p = law_and_numbers(GENT, {"mu": 4e5, "J_m": 3.0, "K": 2e6})
    within, beyond = (Point(law, p, np.diag([l, l**-0.5, l**-0.5])) for l in (2.2, 2.4))
    assert np.isfinite([within.energy(), *within.stress().diagonal()]).all()
    assert np.isnan(beyond.energy()) and np.isnan(beyond.stress()).all()
    assert np.isnan(beyond.tangent()[0, 0, 0, 0]) and np.isnan(beyond.by_parameters()[0, 0]).all()


def test_a_law_is_known_by_its_normal_form() -> None:
    one, other = formula_law("a*(I1b - 3) + k*(J - 1)**2"), formula_law("k*(1 - J)**2 + (I1b - 3)*a")
    another = formula_law("a*(I1b - 3) + 2*k*(J - 1)**2")
    assert one.formula != other.formula and one.name != another.name
    assert formula_law(one.formula) is one  # a scene of many bodies compiles it once
    assert formula_law("a*(I1b - 3) + k*(J - 1)**2", (("a", "kPa"),)).parameters[0].unit == "kPa"


C = "c*(I1b - 3) + k/2*(J - 1)**2"


@pytest.mark.parametrize(
    ("text", "numbers", "message"),
    [
        (C, {"c": 1.0, "k": 1.0, "m": 2.0}, "numbers.m: the formula does not have this number"),
        (C + " + m", {"c": 1.0, "k": 1.0, "m": 2.0}, "numbers.m: no stress depends on this number"),
        (C + " + 0*m", {"c": 1.0, "k": 1.0, "m": 2.0}, "numbers.m: the formula does not have this number"),
        (C, {"c": 1.0}, "unknown symbol 'k'"),
        (C + " + I2B", {"c": 1.0, "k": 1.0}, "unknown symbol 'I2B'; did you mean 'I2'"),
        ("c*(I1 - 3) + k*(J - 1)**2", {"c": 5e3, "k": 1e6}, "not free of stress at rest, "
         "where I1 = I2 = I1b = I2b = 3 and J = 1 (found a stress of 10000 Pa"),
        (C, {"c": -5e3, "k": 1e6}, "not stable at rest (found "
         "eigenvalues of its tangent 2 mu = -20000 Pa, 3 K = 3e+06 Pa"),
        (C, {"c": 5e3, "k": -1e6}, "not stable at rest (found "
         "eigenvalues of its tangent 2 mu = 20000 Pa, 3 K = -3e+06 Pa"),
        ("c*(I1b - 3)**2 + k*(J - 1)**2", {"c": 5e3, "k": 1e6}, "not stable at rest (found "
         "eigenvalues of its tangent 2 mu = 0"),
        ("c*J - c*J**2/2 + k*I1b", {"c": 1.0, "k": 1.0}, "not stable at rest"),
        ("c*sqrt(I1b - 3) + k*(J - 1)**2", {"c": 5e3, "k": 1e6}, "no value at rest: a division by zero"),
        ("c*(I1b - 3)**2.5 + " + C, {"c": 5e3, "k": 1e6}, "no value at rest, where I1 = I2 = I1b = I2b = 3 and J = 1 "
         "(found a logarithm or broken power of 0)"),
        ("c*log(I1b - 3) + k*(J - 1)**2", {"c": 5e3, "k": 1e6}, "no value at rest: a division by zero"),
        ("c*log(2 - I1b) + " + C, {"c": 5e3, "k": 1e6}, "no value at rest"),
        (C + " + exp(1000*I1b)", {"c": 5e3, "k": 1e6}, "no value at rest"),
        ("c*(l1 - 1)**2 + k*(J - 1)**2", {"c": 1.0, "k": 1.0}, "not symmetric in the principal stretches"),
        (C + " + c*(I4 - 1)", {"c": 5e3, "k": 1e6}, "not free of stress at rest (found dW/dI4 = 5000 Pa"),
        ("k*(l1 + l2 + l3 - 3)**2", {"k": 1e6}, "not stable at rest (found eigenvalues of its tangent 2 mu = 0 Pa"),
        ("*".join(["tanh(I1b*c)", "(1 + I1*k)**c", *(f"(J + I2b*{i})" for i in range(24))]), {"c": 1.0, "k": 2.0},
         "too long"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, numbers: dict[str, float], message: str) -> None:
    with pytest.raises(InputError) as error:
        Formula.read(text, numbers).require_sound(numbers)
    assert message in str(error.value)
