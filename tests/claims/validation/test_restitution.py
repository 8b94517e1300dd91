"""A near-rigid block against a damped penalty floor, without gravity: restitution of a spring and a dashpot.

ADD's Eq. 22, v_out / v_in = exp(-pi k_d / sqrt(4 k_n m - k_d^2)), lets the contact pull at the end of the impact. Our
normal force is clipped at zero, so the block leaves earlier and a little faster: the table's column "until force zero".
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from support.setups import block_on_plane, bottom_nodes, cube, place

from add.geometry import HEX8
from add.solve.step_equations import NewtonOptions

MESH = cube(0.1, 1, HEX8)
DENSITY, K_N, SPEED = 1000.0, 1e3, 1.0
NEWTON = NewtonOptions(atol=1e-9, rtol=0.0)


def restitution(zeta: float, steps_per_impact: int, order: int = 2) -> tuple[float, float]:
    """Return the measured restitution and Eq. 22 for a damping ratio k_d / (2 sqrt(k_n m)) of all points together."""
    setup = block_on_plane(MESH, young=1e9, density=DENSITY, k_n=K_N, gravity=(0, 0, 0))
    n = bottom_nodes(MESH).size
    mass, stiffness = setup.nodal_masses().sum(), n * K_N
    damping = 2.0 * zeta * np.sqrt(stiffness * mass)
    setup.view("contact.block.floor.k_d")[...] = damping / n
    duration = np.pi * np.sqrt(mass / stiffness)
    dt = duration / steps_per_impact
    place(setup, 0.37 * SPEED * dt).put(bodies__block__velocity=(0.0, 0.0, -SPEED))
    run = setup.simulation(dt, round(1.7 * steps_per_impact), order=order, newton=NEWTON).run()
    assert not run.records[-1].decisions[0].any()
    v = setup.centres(run.v)[:, 2]
    return float(v[-1] / SPEED), float(np.exp(-np.pi * damping / np.sqrt(4.0 * stiffness * mass - damping**2)))


@pytest.fixture(scope="module")
def table(data_root: Path) -> np.ndarray:
    path = data_root / "reference" / "contact_restitution.csv"
    if not path.is_file():
        pytest.skip(f"no reference table at {path}")
    with path.open() as file:
        return np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])


def test_against_table(table) -> None:
    for zeta, until_gap, until_force in table:
        if zeta not in (0.01, 0.05, 0.1, 0.3, 0.5):
            continue
        found, eq22 = restitution(zeta, 800)
        print(f"zeta {zeta}: {found:.5f}, clipped {until_force:.5f}, Eq. 22 {eq22:.5f}")
        assert eq22 == pytest.approx(until_gap, abs=1e-9)
        assert found == pytest.approx(until_force, abs=2e-3)
        if zeta <= 0.05:
            assert found == pytest.approx(eq22, rel=6e-3)


def test_converges_with_dt(table) -> None:
    (exact,) = table[table[:, 0] == 0.2, 2]
    errors = []
    for steps in (50, 200, 800):
        errors.append(restitution(0.2, steps)[0] - exact)
    print("restitution minus exact, 50, 200, 800 steps an impact:", errors)
    assert abs(errors[2]) < 0.25 * abs(errors[0])
    assert abs(errors[2]) < 1e-3
