"""An undamped elastic bounce without friction: the energy at the apexes does not grow from one to the next.

BDF2 takes energy from every smooth oscillation. Within a contact the energy of single steps may rise, and a touch-down
between two steps may give a bounce up to some 1e-4 of its energy where the contact is well resolved and nothing else
takes any: the scalar recurrence of a point on a spring, below, does the same. Hence the two tolerances.
"""

import numpy as np
import pytest
from support.setups import G, apexes, block_on_plane, bottom_nodes, cube, place
from support.tiers import long_case

from add.geometry import HEX8, TET4, TET10
from add.solve.step_equations import NewtonOptions

#: Family, divisions, Young's modulus [Pa], k_n per node [N/m], dt [s], allowed rise over the first energy.
CASES = {
    "soft-tet4": (TET4, 2, 3e4, 2e3, 5e-4, 1e-9),
    "soft-tet10": (TET10, 1, 3e4, 2e3, 5e-4, 1e-9),
    "soft-hex8": (HEX8, 2, 3e4, 2e3, 5e-4, 1e-9),
    "rigid-hex8": (HEX8, 1, 1e8, 2e3, 5e-4, 1e-4),
    "rigid-hex8-coarse-step": (HEX8, 1, 1e8, 2e4, 2e-3, 1e-9),
}
EDGE, HEIGHT, DENSITY, DURATION = 0.1, 0.05, 500.0, 0.9
NEWTON = NewtonOptions(atol=1e-8, rtol=0.0)


@pytest.mark.parametrize(
    ("case", "tilt"),
    [
        (pytest.param if (k % 2 == 0) == (tilt > 0.0) else long_case)(case, tilt)
        for k, case in enumerate(CASES)
        for tilt in (0.0, 0.15)
    ],
)
def test_apexes(case: str, tilt: float) -> None:
    family, divisions, young, k_n, dt, rise = CASES[case]
    setup = block_on_plane(cube(EDGE, divisions, family), young=young, density=DENSITY, k_n=k_n)
    place(setup, HEIGHT).put(bodies__block__orientation=(tilt, 0.7 * tilt, 0.0))
    run = setup.simulation(dt, round(DURATION / dt), newton=NEWTON).run()
    at = np.concatenate([[0], apexes(setup.centres(run.v)[:, 2])])
    energies = np.array([setup.total_energy(run.q[k], run.v[k]) for k in at])
    # Counted from the height at which the block would lie still.
    energies -= setup.nodal_masses().sum() * G * EDGE / 2
    print(f"{case} tilt {tilt}: {at.size - 1} apexes, energy over the first {energies / energies[0]}")
    assert at.size >= 3
    touched = [record.decisions[0].any() for record in run.records]
    assert any(touched)
    assert not touched[0]
    assert (np.diff(energies) <= rise * energies[0]).all()
    assert energies.argmax() == 0


def test_rigid_bounce_is_the_scalar_recurrence() -> None:
    """A flat near-rigid block moves as one mass on one spring does, stepped by the same formula in four lines."""
    k_n, dt = 2e3, 5e-4
    setup = block_on_plane(cube(EDGE, 1, HEX8), young=1e10, density=DENSITY, k_n=k_n)
    n = round(0.35 / dt)
    run = place(setup, HEIGHT).simulation(dt, n, newton=NEWTON).run()
    mass, stiffness = setup.nodal_masses().sum(), k_n * bottom_nodes(setup.body.mesh).size
    z, v = [HEIGHT], [0.0]
    for k in range(n):
        c = (1.5 if k else 1.0) / dt
        z_star = 4 / 3 * z[-1] - z[-2] / 3 if k else z[-1]
        v_star = 4 / 3 * v[-1] - v[-2] / 3 if k else v[-1]
        new = z_star + (v_star - G / c) / c
        if new < 0.0:
            new = (mass * c * (c * z_star + v_star) - mass * G) / (mass * c**2 + stiffness)
        z.append(new)
        v.append(c * (new - z_star))
    found = setup.centres(run.q)[:, 2] - EDGE / 2
    print("largest difference from the scalar recurrence [m]", np.abs(found - z).max())
    assert min(z) < -0.001
    np.testing.assert_allclose(found, z, rtol=0, atol=2e-6)
