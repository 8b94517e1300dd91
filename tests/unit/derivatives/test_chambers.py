"""Chambers: pressure, gas and given volume against differences, and against values that others computed."""

from dataclasses import replace

import numpy as np
import pytest
from support.reference_tables import table

from add.equations.kinematics import Kinematics
from add.equations.signals import Constant, Sine, Table
from add.kernels.air import add_pressed, add_pressed_blocks, enclosed_volume
from add.terms import AddedMass, Chamber, GivenVolume, IsothermalGas, Pressure
from add.testing import check_constraint, check_term

#: An octahedron, outward, and the same without one face.
CLOSED = np.array(
    [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]], dtype=np.int64
)
CORNERS = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)


def moving(rng: np.random.Generator, n: int = 8) -> Kinematics:
    """An octahedron far from the origin, bent out of shape, and nodes beside it."""
    x = np.concatenate([CORNERS, rng.normal(size=(n - 6, 3))])
    x = 0.05 * (x @ (np.eye(3) + 0.3 * rng.normal(size=(3, 3)))) + [0.3, -0.2, 0.5] + 0.004 * rng.normal(size=x.shape)
    return Kinematics(x.ravel(), rng.normal(size=3 * n), rng.normal(size=3 * n), 0.13, 4)


@pytest.mark.parametrize("closed", [True, False])
def test_pressure(closed: bool, rng: np.random.Generator) -> None:
    faces = CLOSED if closed else CLOSED[1:]
    for signal, rows in ((Table(np.array([0.0, 0.1, 0.2])), [0, 1, 2]), (Constant(), [2])):
        term = Pressure("b/c", faces, signal, np.array(rows), closed)
        found = check_term(
            term, moving(rng), np.array([900.0, -400.0, 700.0]), rng=rng, energy=closed, scales={"q": 0.01}
        )
        assert found.q > 0.0 and found.v == found.a == 0.0
        assert len(found.parameters) == (2 if len(rows) == 3 else 1)


def test_added_mass(rng: np.random.Generator) -> None:
    found = check_term(
        AddedMass(CLOSED[1:], np.array([0, 2])), moving(rng), np.array([900.0, 1.0, 0.02]), rng=rng, scales={"q": 0.01}
    )
    assert found.q > 0.0 and found.a > 0.0 and found.v == 0.0
    assert found.parameters == (0, 2)


def test_pressure_of_an_open_surface_is_unsymmetric(rng: np.random.Generator) -> None:
    kin, one = moving(rng), np.array([1.0])
    for faces, symmetric in ((CLOSED, True), (CLOSED[1:], False)):
        term = Pressure("b/c", faces, Constant(), np.array([0]), symmetric)
        rows, cols = term.pattern()
        matrix, values = np.zeros((24, 24)), np.zeros(rows.size)
        add_pressed_blocks(kin.q, faces, 1.0, values, np.arange(rows.size))
        np.add.at(matrix, (rows, cols), values)
        assert (np.abs(matrix - matrix.T).max() < 1e-15) == symmetric
        assert term.energy(kin, one) == (-enclosed_volume(kin.q, faces) if symmetric else 0.0)


def test_forces_of_a_closed_surface_sum_to_nothing(rng: np.random.Generator) -> None:
    kin, force = moving(rng), np.zeros(24)
    add_pressed(kin.q, CLOSED, 1.0, force)
    force, x = force.reshape(-1, 3), kin.q.reshape(-1, 3)
    size = np.abs(force).max()
    assert np.abs(force.sum(axis=0)).max() < 1e-14 * size
    assert np.abs(np.cross(x, force).sum(axis=0)).max() < 1e-14 * size


def test_volume_and_its_derivatives_are_those_of_the_reference() -> None:
    """V, dV/dx, d2V/dx2 of a closed mesh, computed elsewhere."""
    with table("closed_volume.npz") as data:
        x, faces = data["x"].ravel(), np.ascontiguousarray(data["triangles"])
        volume, gradient, hessian = float(data["volume"]), data["gradient"].ravel(), data["hessian"]
    force = np.zeros(x.size)
    add_pressed(x, faces, 1.0, force)
    rows, cols = Pressure("b/c", faces, Constant(), np.array([0]), True).pattern()
    matrix, values = np.zeros((x.size, x.size)), np.zeros(rows.size)
    add_pressed_blocks(x, faces, 1.0, values, np.arange(rows.size))
    np.add.at(matrix, (rows, cols), values)
    assert abs(enclosed_volume(x, faces) - volume) < 1e-14 * volume
    assert np.abs(force - gradient).max() < 1e-14 * np.abs(gradient).max()
    assert np.abs(matrix - hessian).max() < 1e-13 * np.abs(hessian).max()


@pytest.mark.parametrize("kind", ["gas", "volume"])
def test_fillings(kind: str, rng: np.random.Generator) -> None:
    kin, signal = moving(rng), Sine(2.0, 0.4)
    volume = enclosed_volume(kin.q, CLOSED)
    theta = np.array([1.2e5, 3e4, 1.1 * volume, 1e5])
    rows, mu = np.array([0, 1]), np.array([0.05])
    filling = IsothermalGas(signal, rows, 2, 3, 1e5) if kind == "gas" else GivenVolume(signal, rows)
    if kind == "volume":
        theta[:2] = 0.9 * volume, 0.1 * volume
    chamber = Chamber("b/c", CLOSED, filling, 0.02)
    # A row of volumes over A_0, of the gas times its pressure over an atmosphere, and a column of pressures.
    p = mu[0] * chamber.pressure_unit
    reaction = chamber.pressure_unit * 0.02 * (1e5 / (p + 1e5) if kind == "gas" else 1.0)
    found = check_constraint(chamber, kin, mu, theta, rng=rng, scales={"q": 0.01}, reaction=reaction)
    assert found.q > 0.0 and found.v == found.a == 0.0 and found.multiplier > 0.0
    assert found.parameters == ((0, 1, 2, 3) if kind == "gas" else (0, 1))


def test_gas_stores_what_its_pressure_gives_back(rng: np.random.Generator) -> None:
    """-p dV/dx at the pressure that the equation gives is the derivative of the energy."""
    kin = moving(rng)
    volume = enclosed_volume(kin.q, CLOSED)
    theta = np.array([1.3e5, 0.9 * volume, 1e5])
    chamber = Chamber("b/c", CLOSED, IsothermalGas(Constant(), np.array([0]), 1, 2, 1e5), 0.02)
    p = theta[0] * theta[1] / volume - theta[2]
    row, force = np.zeros(1), np.zeros(24)
    chamber.residual(kin, np.array([p / chamber.pressure_unit]), theta, force, row)
    assert abs(row[0]) < 1e-15 and abs(p) > 1e3
    for dof in range(18):
        step = np.zeros(24)
        step[dof] = 1e-6
        ends = [chamber.energy(replace(kin, q=kin.q + sign * step), theta) for sign in (1.0, -1.0)]
        assert abs((ends[0] - ends[1]) / 2e-6 - force[dof]) < 1e-6 * np.abs(force).max()
