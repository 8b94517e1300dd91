"""A stiff block on an incline slips with the acceleration of Coulomb's law, or sticks and creeps as its law says.

On many points the normal forces are not determined by statics, but their sum is, and while all points slip the
friction is c_f times that sum. Sticking, the linear law creeps at v = m g sin(a) / sum k_t; the tanh law at the root of
sum c_f f_n tanh(k_t v / (c_f f_n)) = m g sin(a), which is faster.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from support.setups import G, block_on_plane, bottom_nodes, place, rest_depth, turn_about_y

from add.contact import FrictionLaw
from add.geometry import HEX8, box_mesh
from add.solve.step_equations import NewtonOptions

MESH = box_mesh((0.2, 0.2, 0.05), (2, 2, 1), HEX8)
DENSITY, K_N, K_D = 500.0, 5e4, 20.0
NEWTON = NewtonOptions(atol=1e-9, rtol=0.0)


def slide(angle: float, c_f: float, law: FrictionLaw, k_t: float, *, duration: float, dt: float, k_d: float = K_D):
    setup = block_on_plane(MESH, young=1e7, density=DENSITY, k_n=K_N, k_d=k_d, k_t=k_t, c_f=c_f, law=law, angle=angle)
    place(setup, -rest_depth(setup, angle), angle)
    run = setup.simulation(dt, round(duration / dt), newton=NEWTON).run()
    down = turn_about_y(angle)[:, 0]
    return setup, run, setup.centres(run.v) @ down


@pytest.fixture(scope="module")
def table(data_root: Path) -> list[dict]:
    path = data_root / "reference" / "reference_values.json"
    if not path.is_file():
        pytest.skip(f"no reference values at {path}")
    return json.loads(path.read_text())["block_on_incline"]


@pytest.mark.parametrize("law", [FrictionLaw.LINEAR, FrictionLaw.TANH], ids=["linear", "tanh"])
def test_table(law: FrictionLaw, table) -> None:
    """Acceleration over the second half of the run against the table; sticking blocks creep at less than 1 mm/s."""
    k_t = 2e3
    for row in table:
        angle = np.radians(row["angle_deg"])
        _, run, v = slide(angle, row["mu"], law, k_t, duration=0.3, dt=2e-3)
        half = run.n_steps // 2
        found = (v[-1] - v[half]) / (run.t[-1] - run.t[half])
        exact = row["accel_m_s2"]
        print(f"{law.name} {row['angle_deg']} deg, mu {row['mu']}: {found:.5f} m/s2, exact {exact:.5f}, v {v[-1]:.2e}")
        if row["sticks"]:
            assert abs(found) < 1e-3
            assert 0.0 < v[-1] < 2e-3
        else:
            assert found == pytest.approx(exact, rel=0.005)


@pytest.mark.parametrize("law", [FrictionLaw.LINEAR, FrictionLaw.TANH], ids=["linear", "tanh"])
def test_creep(law: FrictionLaw) -> None:
    angle, c_f, k_t = np.radians(20.0), 0.6, 500.0
    # Strong damping, so that rocking is over: the creep is a steady state.
    setup, run, v = slide(angle, c_f, law, k_t, duration=1.2, dt=5e-3, k_d=100.0)
    push = setup.nodal_masses().sum() * G * np.sin(angle)
    n = bottom_nodes(MESH).size
    if law is FrictionLaw.LINEAR:
        expected = push / (n * k_t)
    else:
        normal_axis = turn_about_y(angle)[:, 2]
        (contact,) = setup.model.system.deciding
        f_n = contact.forces(run.kinematics(run.n_steps), setup.theta).reshape(-1, 3)[bottom_nodes(MESH)] @ normal_axis
        limits = c_f * f_n
        expected = brentq(lambda u: (limits * np.tanh(k_t * u / limits)).sum() - push, 0.0, 1.0, xtol=1e-15)
        assert expected > 1.01 * push / (n * k_t)
    (contact,) = setup.model.system.deciding
    counts = contact.describe(run.records[-1].decisions[0])
    print(f"{law.name}: creep {v[-1]:.8f} m/s, predicted {expected:.8f} m/s, {counts}")
    assert v[-1] == pytest.approx(expected, rel=1e-4)
