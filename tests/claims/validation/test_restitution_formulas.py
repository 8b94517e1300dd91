"""Restitution and damping of a contact: against the table, against each other, against a bouncing ball."""

import math

import numpy as np
import pytest

from add.contact import restitution as formulas
from add.contact.restitution import (
    clipped_damping_derivatives,
    clipped_damping_from_restitution,
    clipped_restitution_from_damping,
    damping_derivatives,
    damping_from_restitution,
    damping_ratio,
    effective_mass,
    restitution_from_damping,
)
from add.errors import InputError

BOTH = {
    "pulling": (restitution_from_damping, damping_from_restitution, damping_derivatives),
    "clipped": (
        clipped_restitution_from_damping,
        clipped_damping_from_restitution,
        clipped_damping_derivatives,
    ),
}


def test_against_the_table(data_root):
    path = data_root / "reference" / "contact_restitution.csv"
    stiffness, mass, n = 300.0, 0.7, 4
    for zeta, pulling, clipped in np.loadtxt(path, delimiter=",", skiprows=1):
        k_d = 2.0 * zeta * math.sqrt(n * stiffness * mass) / n
        assert damping_ratio(k_d, stiffness, mass, n) == pytest.approx(zeta, rel=1e-14)
        assert restitution_from_damping(k_d, stiffness, mass, n) == pytest.approx(pulling, rel=1e-9)
        assert clipped_restitution_from_damping(k_d, stiffness, mass, n) == pytest.approx(clipped, rel=1e-9)
        # The table has ten digits of e, and zeta is -(pi/2) dln e or finer.
        assert damping_from_restitution(pulling, stiffness, mass, n) == pytest.approx(k_d, rel=1e-7)
        assert clipped_damping_from_restitution(clipped, stiffness, mass, n) == pytest.approx(k_d, rel=1e-7)


def test_equation_22_as_printed():
    k_d, k_n, m = 2.5, 70.0, 0.4
    expected = math.exp(-math.pi * k_d / math.sqrt(4.0 * k_n * m - k_d**2))
    assert restitution_from_damping(k_d, k_n, m) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("e", [1.0, 1.0 - 1e-6, 0.9, 0.5, math.exp(-2.0), math.exp(-2.0) * 1.00001, 0.1, 1e-4])
def test_both_ways(which, e):
    there, back, derivatives = BOTH[which]
    k_d = back(e, 500.0, 1.3, 3)
    assert there(k_d, 500.0, 1.3, 3) == pytest.approx(e, rel=1e-12)
    if e == 1.0:
        assert k_d == 0.0
        return
    by_e, by_k, by_m = derivatives(e, 500.0, 1.3, 3)

    def difference(f, x):
        h = 1e-3 * min(x, abs(1.0 - x) if f is of_e else x)
        return (8.0 * (f(x + h) - f(x - h)) - (f(x + 2.0 * h) - f(x - 2.0 * h))) / (12.0 * h)

    def of_e(e):
        return back(e, 500.0, 1.3, 3)

    assert by_e == pytest.approx(difference(of_e, e), rel=1e-5 if e > 0.999 else 1e-8)
    assert by_k == pytest.approx(difference(lambda k: back(e, k, 1.3, 3), 500.0), rel=1e-9)
    assert by_m == pytest.approx(difference(lambda m: back(e, 500.0, m, 3), 1.3), rel=1e-9)


@pytest.mark.parametrize("zeta", [0.3, 0.999, 0.99905, 0.9995, 0.99991, 1.0, 1.00005, 1.0002, 1.0011, 3.0])
def test_clipped_loss_through_critical_damping(zeta):
    """The series at zeta = 1 meets both closed forms, in value and slope."""
    h = 1e-5
    near = formulas._clipped_loss(zeta + h) - formulas._clipped_loss(zeta - h)
    far = formulas._clipped_loss(zeta + 2.0 * h) - formulas._clipped_loss(zeta - 2.0 * h)
    assert formulas._clipped_loss_slope(zeta) == pytest.approx((8.0 * near - far) / (12.0 * h), rel=1e-6)


@pytest.mark.parametrize("zeta", [0.1, 0.5, 0.8, 1.0, 1.7])
def test_clipped_formula_against_the_bounce_it_describes(zeta):
    """m x'' = max(-k x - d x', 0) while x < 0, by Runge and Kutta until the force ends."""
    x, v, dt = 0.0, -1.0, 1e-4

    def rate(x, v):
        return v, -x - 2.0 * zeta * v

    while -x - 2.0 * zeta * v > 0.0:
        before = v
        a = rate(x, v)
        b = rate(x + 0.5 * dt * a[0], v + 0.5 * dt * a[1])
        c = rate(x + 0.5 * dt * b[0], v + 0.5 * dt * b[1])
        d = rate(x + dt * c[0], v + dt * c[1])
        x += dt / 6.0 * (a[0] + 2.0 * b[0] + 2.0 * c[0] + d[0])
        v += dt / 6.0 * (a[1] + 2.0 * b[1] + 2.0 * c[1] + d[1])
    assert clipped_restitution_from_damping(2.0 * zeta, 1.0, 1.0) == pytest.approx(before, abs=1e-6)


def test_overdamped_and_effective_mass():
    assert restitution_from_damping(2.0, 1.0, 1.0) == 0.0
    assert restitution_from_damping(5.0, 1.0, 1.0) == 0.0
    assert clipped_restitution_from_damping(2.0, 1.0, 1.0) == pytest.approx(math.exp(-2.0))
    assert effective_mass(2.0) == 2.0
    assert effective_mass(2.0, 2.0) == 1.0
    assert effective_mass(2.0, 1e300) == pytest.approx(2.0)


@pytest.mark.parametrize("back", [damping_from_restitution, clipped_damping_from_restitution])
def test_impossible_numbers(back):
    for e in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="restitution"):
            back(e, 1.0, 1.0)
    for stiffness, mass, n in ((0.0, 1.0, 1), (1.0, -1.0, 1), (1.0, 1.0, 0), (math.inf, 1.0, 1)):
        with pytest.raises(InputError, match="impossible"):
            back(0.5, stiffness, mass, n)
    with pytest.raises(InputError, match="mass"):
        effective_mass(1.0, 0.0)
    with pytest.raises(InputError, match="damping"):
        restitution_from_damping(-1.0, 1.0, 1.0)
