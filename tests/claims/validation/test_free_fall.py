"""A spinning elastic block in free fall: the centre of mass follows the closed solution of the discrete equations.

With k steps of dt and exact motion x0 + v0 t + g t^2 / 2, v0 + g t (solve the recurrences v = c (q - sum alpha q_k)):

    BDF1                      e_v = 0                          e_x = g dt^2 k / 2
    BDF2, BDF1 start          e_v = 0                          e_x = (3/4) g dt^2 (1 - 3^-k)
    BDF2, straight line       e_v = -(g dt / 2) (1 - 3^-k)     e_x = g dt^2 (3/4 - k/2 - (3/4 + k/6) 3^-k)

Internal forces sum to zero whatever the mesh does, so this holds to round-off while the block spins and rings.
"""

import numpy as np
import pytest
from support.setups import G, one_body

from add.bodies import SoftBody
from add.geometry import HEX8, TET4, TET10, box_mesh
from add.simulation import StartUp

GRAVITY = np.array([0.0, 0.0, -G])
POSITION, VELOCITY, SPIN = np.array([0.3, -0.2, 1.5]), np.array([1.0, 0.5, 3.0]), np.array([4.0, -3.0, 6.0])
DT, N = 0.01, 40


def closed_errors(order: int, start_up: StartUp, dt: float, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors of position [s^2] and velocity [s] per unit of gravity."""
    if order == 1:
        return 0.5 * dt**2 * k, 0.0 * k
    decay = 3.0**-k
    if start_up is StartUp.BDF1:
        return 0.75 * dt**2 * (1.0 - decay), 0.0 * k
    return dt**2 * (0.75 - 0.5 * k - (0.75 + k / 6.0) * decay), -0.5 * dt * (1.0 - decay)


@pytest.mark.parametrize("family", [TET4, TET10, HEX8], ids=lambda f: f.name)
@pytest.mark.parametrize(
    ("order", "start_up"), [(1, StartUp.BDF1), (2, StartUp.BDF1), (2, StartUp.STRAIGHT_LINE)], ids=["1", "2", "line"]
)
def test_centre_of_mass(family, order: int, start_up: StartUp) -> None:
    setup = one_body(SoftBody("block", box_mesh((0.1, 0.06, 0.08), (1, 1, 1), family)), young=5e4, density=500.0)
    setup.put(bodies__block__position=POSITION, bodies__block__velocity=VELOCITY)
    setup.put(bodies__block__angular_velocity=SPIN)
    run = setup.simulation(DT, N, order=order, start_up=start_up).run()
    x, v = setup.centres(run.q), setup.centres(run.v)
    t, k = DT * np.arange(N + 1), np.arange(N + 1.0)
    e_x, e_v = closed_errors(order, start_up, DT, k)
    exact_x = x[0] + np.outer(t, v[0]) + 0.5 * np.outer(t**2, GRAVITY)
    exact_v = v[0] + np.outer(t, GRAVITY)
    mass = setup.nodal_masses().sum()
    assert mass == pytest.approx(500.0 * 0.1 * 0.06 * 0.08, rel=1e-13)
    np.testing.assert_allclose(v, exact_v + np.outer(e_v, GRAVITY), rtol=0, atol=2e-12)
    np.testing.assert_allclose(x, exact_x + np.outer(e_x, GRAVITY), rtol=0, atol=2e-12)
    momentum = (setup.mass_matrix() @ run.v[-1].reshape(-1, 3)).sum(axis=0)
    np.testing.assert_allclose(momentum, mass * (exact_v[-1] + e_v[-1] * GRAVITY), rtol=0, atol=1e-12)
    # The block does spin and ring, or this shows nothing.
    assert np.ptp([setup.energies(q, v)["elastic"] for q, v in zip(run.q, run.v, strict=True)]) > 1e-6


def test_straight_line_start_is_off_by_half_a_step() -> None:
    for dt in (0.02, 0.01, 0.005):
        setup = one_body(SoftBody("block", box_mesh((0.1,) * 3, (1,) * 3, HEX8)), young=5e4, density=500.0)
        run = setup.simulation(dt, 50, start_up=StartUp.STRAIGHT_LINE).run()
        off = setup.centres(run.v)[-1, 2] - (-G * run.t[-1])
        assert off == pytest.approx(G * dt / 2, rel=1e-10)
