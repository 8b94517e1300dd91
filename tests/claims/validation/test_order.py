"""Order of convergence in time on a smooth, undamped, non-linear vibration.

A clamped block is let go under gravity. The answer is that of the same semi-discrete equations M a = f(q), integrated
by SciPy's DOP853 to 1e-12: another integrator, and none of `add`'s stepping.
"""

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from scipy.integrate import solve_ivp
from support.setups import observed_orders, one_body

from add.bodies import Pin, SoftBody
from add.equations.kinematics import Kinematics
from add.geometry import HEX8, TET4, box_mesh
from add.simulation import StartUp

DURATION = 0.125


def _setup(family):
    mesh = box_mesh((0.2, 0.1, 0.1), (1, 1, 1), family)
    clamp = Pin(np.flatnonzero(mesh.points[:, 0] < -0.05))
    setup = one_body(SoftBody("block", mesh, pins=(clamp,)), young=5e3, density=200.0)
    return setup.put(gravity=(0.0, 2.0, -9.81))


def _answer(setup) -> np.ndarray:
    """Free coordinates and velocities at the end."""
    system, theta = setup.model.system, setup.theta
    free, n_free = system.partition.free, system.partition.free.size
    q0, _ = setup.model.initial.evaluate(theta)
    _, mass = setup.stiffness_and_mass(q0)
    solve = spla.factorized(mass.tocsc())
    zero = np.zeros(system.n)

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        q = q0.copy()
        q[free] = y[:n_free]
        r, _, _ = system.residual(Kinematics(q, zero, zero, t, 0), np.zeros(0), theta)
        return np.concatenate([y[n_free:], solve(-r[free])])

    start = np.concatenate([q0[free], np.zeros(n_free)])
    return solve_ivp(rate, (0.0, DURATION), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


@pytest.mark.parametrize("family", [TET4, HEX8], ids=lambda f: f.name)
def test_orders(family) -> None:
    setup = _setup(family)
    answer = _answer(setup)
    free = setup.model.system.partition.free
    assert np.abs(answer[: free.size] - setup.model.initial.evaluate(setup.theta)[0][free]).max() > 0.02
    cases = (
        (1, StartUp.BDF1, 1, (2000, 4000)),
        (2, StartUp.BDF1, 2, (200, 400)),
        (2, StartUp.STRAIGHT_LINE, 1, (2000, 4000)),
    )
    for order, start_up, expected, counts in cases:
        simulation = setup.simulation(1.0, 1, order=order, start_up=start_up)
        assert simulation.stepper.order == expected
        for what in ("q", "v"):
            errors = []
            for n in counts:
                run = setup.simulation(DURATION / n, n, order=order, start_up=start_up).run()
                part = answer[: free.size] if what == "q" else answer[free.size :]
                errors.append(np.linalg.norm(getattr(run, what)[-1][free] - part) / np.linalg.norm(part))
            orders = observed_orders([DURATION / n for n in counts], errors)
            print(family.name, f"BDF{order}", start_up.name, what, "errors", errors, "orders", orders)
            assert orders[-1] == pytest.approx(expected, abs=0.15)
