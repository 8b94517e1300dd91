"""A free body without gravity: momentum stays to round-off, angular momentum to the order of the stepper.

(Neither BDF1 nor BDF2 conserves angular momentum exactly; x + dt v at the end of the step is not where v acted.)
"""

import numpy as np
import pytest
from support.setups import observed_orders, one_body

from add.bodies import SoftBody
from add.geometry import HEX8, TET10, box_mesh

DURATION = 0.2


def _run(family, order: int, dt: float):
    setup = one_body(
        SoftBody("block", box_mesh((0.1, 0.06, 0.08), (1, 1, 1), family)), young=2e5, density=500.0, gravity=(0, 0, 0)
    )
    setup.put(bodies__block__velocity=(0.3, -0.7, 1.1), bodies__block__angular_velocity=(2.0, 5.0, -3.0))
    return setup, setup.simulation(dt, round(DURATION / dt), order=order).run()


@pytest.mark.parametrize("family", [TET10, HEX8], ids=lambda f: f.name)
@pytest.mark.parametrize("order", [1, 2])
def test_linear_and_angular_momentum(family, order: int) -> None:
    steps = [2e-3, 1e-3, 5e-4] if order == 2 else [1e-3, 5e-4, 2.5e-4]
    errors = []
    for dt in steps:
        setup, run = _run(family, order, dt)
        mass = setup.mass_matrix()
        momenta = np.array([(mass @ v.reshape(-1, 3)).sum(axis=0) for v in run.v])
        np.testing.assert_allclose(momenta, momenta[:1].repeat(len(momenta), axis=0), rtol=0, atol=1e-12)
        angular = np.array([setup.angular_momentum(q, v) for q, v in zip(run.q, run.v, strict=True)])
        errors.append(np.linalg.norm(angular[-1] - angular[0]) / np.linalg.norm(angular[0]))
    orders = observed_orders(steps, errors)
    print(family.name, order, "angular momentum lost", errors, "orders", orders)
    assert orders[-1] > order - 0.15
    assert errors[-1] < (2e-3 if order == 1 else 1e-4)
