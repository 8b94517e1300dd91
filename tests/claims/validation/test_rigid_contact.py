"""Contact of rigid bodies: Coulomb's law, restitution, energy and momentum; see `tests/support/rigid_cases.py`."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.rigid_cases import (
    ROLL_RADIUS,
    ROLL_SPEED,
    G,
    bouncing_cube,
    box_on_incline,
    collision,
    restitution,
    slide_to_roll,
)
from support.setups import observed_orders

from add.contact import FrictionLaw
from add.contact.restitution import (
    clipped_damping_from_restitution,
    clipped_restitution_from_damping,
    damping_from_restitution,
)


def _load(data_root: Path, name: str) -> Path:
    path = data_root / "reference" / name
    if not path.is_file():
        pytest.skip(f"no reference at {path}")
    return path


# --- friction ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", [False, True], ids=["solid", "shell"])
@pytest.mark.parametrize("order", [1, 2])
def test_slide_to_roll(order: int, shell: bool) -> None:
    """A ball slides, slows at mu g, and rolls from t = 2 v/(7 mu g) on at 5/7 v (a thin shell: 2 v/(5 mu g), 3/5 v)."""
    steps = (0.004, 0.002, 0.001)
    runs = [slide_to_roll(dt, order=order, shell=shell) for dt in steps]
    errors = [float(np.abs(run.place - run.exact_place).max()) for run in runs]
    speeds = [float(np.abs(run.speed - run.exact_speed).max()) for run in runs]
    print(f"BDF{order}: largest errors of the place {errors} [m], of the speed {speeds} [m/s]")
    last = runs[-1]
    assert last.rolls_at == pytest.approx((0.4 if shell else 2.0 / 7.0) * ROLL_SPEED / (0.2 * G))
    for run in runs:
        assert run.speed[-1] == pytest.approx((0.6 if shell else 5.0 / 7.0) * ROLL_SPEED, rel=1e-11)
        assert run.rate[-1] * ROLL_RADIUS == pytest.approx(run.speed[-1], rel=1e-11)
    # The rest is the integrator's error on a constant force: mu g dt t/2 or 3/4 mu g dt^2.
    np.testing.assert_allclose(observed_orders(steps, errors), order, atol=0.05)
    # Stick sets in at c_f f_n / k_t = 2e-4 m/s.
    assert max(speeds) < 1e-4


def test_incline_sticks_and_slips(data_root: Path) -> None:
    """A box on four corners that bear unequal weights: at rest up to a creep m g sin/(sum k_t), or Coulomb's slope."""
    for row in json.loads(_load(data_root, "reference_values.json").read_text())["block_on_incline"]:
        acceleration, speed = box_on_incline(row["angle_deg"], row["mu"])
        creep = G * np.sin(np.radians(row["angle_deg"])) / 4e4
        if row["sticks"]:
            # Uphill corners may be at their limit already; then the others bear more.
            assert abs(acceleration) < 1e-9
            assert 0.999 * creep < speed < 1.5 * creep
        else:
            assert acceleration == pytest.approx(row["accel_m_s2"], rel=1e-9)


# --- restitution ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.1, 0.3, 0.5, 0.7, 0.9, 0.95])
def test_restitution(e: float) -> None:
    """The wanted restitution comes out if the damping is that of a contact that never pulls.

    The damping of Eq. 22, for one that may pull, gives more: as much as the other formula says.
    """
    k_n, mass = 2000.0, 0.5
    wanted = clipped_damping_from_restitution(e, k_n, mass)
    found, box = restitution(wanted), restitution(wanted, edge=True)
    by_eq22 = damping_from_restitution(e, k_n, mass)
    more = restitution(by_eq22)
    print(f"e {e}: ball {found:.5f}, box on four corners {box:.5f}; with the damping of Eq. 22 {more:.5f}")
    assert found == pytest.approx(e, rel=1e-2)
    assert box == pytest.approx(found, rel=1e-6)
    assert more == pytest.approx(clipped_restitution_from_damping(by_eq22, k_n, mass), rel=1e-2)
    if e >= 0.9:
        assert more == pytest.approx(e, rel=1e-2)
    else:
        assert more > e


def test_restitution_of_one_but_for_rounding() -> None:
    """Where a fit ends on the bound, which its own variable misses by a rounding: there is no damping."""
    assert clipped_damping_from_restitution(float(np.nextafter(1.0, 0.0)), 1e4, 0.2) < 1e-10


@pytest.mark.parametrize("e", [0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95])
def test_restitution_of_eq_22(e: float) -> None:
    """Where the damping may pull while bodies part, Eq. 22 holds as it stands."""
    k_d = damping_from_restitution(e, 2000.0, 0.5)
    found, box = restitution(k_d, adhesive_damping=True), restitution(k_d, edge=True, adhesive_damping=True)
    print(f"e {e}: ball {found:.5f}, box on four corners {box:.5f}")
    assert found == pytest.approx(e, rel=1e-2)
    assert box == pytest.approx(found, rel=1e-6)


def test_restitution_table(data_root: Path) -> None:
    """Against the table's column of contacts that end at zero force."""
    table = np.loadtxt(_load(data_root, "contact_restitution.csv"), delimiter=",", skiprows=1)
    for zeta, _, until_force in table[::3]:
        assert restitution(2.0 * zeta * np.sqrt(2000.0 * 0.5)) == pytest.approx(until_force, rel=1e-2)


# --- energy and momentum ----------------------------------------------------------------------------------------------


def test_bouncing_cube() -> None:
    """ADD Fig. 6, BDF2 at 1/60 s: little energy is lost where the impact is resolved, far less than with BDF1."""
    kept = {w: bouncing_cube(w).apexes for w in (0.1, 0.3, 0.6)}
    print({w: e[:6] for w, e in kept.items()}, "BDF1:", bouncing_cube(0.3, order=1).apexes[:3])
    assert kept[0.1][1] > 0.995
    assert kept[0.3][1] > 0.97
    assert kept[0.6][1] > 0.8
    assert bouncing_cube(0.3, order=1).apexes[1] < 0.4
    for apexes in kept.values():
        assert np.all(np.diff(apexes) < 0.0)


@pytest.mark.parametrize("tilted", [False, True], ids=["flat", "tilted"])
def test_energy_of_bounces_converges(tilted: bool) -> None:
    """At one contact stiffness the loss from apex to apex vanishes with the step."""
    losses = []
    for refined in (1, 4, 16):
        bounce = bouncing_cube(0.3 / refined, 1.0 / 60.0 / refined, tilted=tilted)
        assert bounce.contact.max() > 0.3 * bounce.gravity[0]
        losses.append(float(np.abs(bounce.apexes[:5] - 1.0).max()))
    print("largest change of the energy at four apexes over 1, 1/4, 1/16 of 1/60 s:", losses)
    assert losses[1] < 0.1 * losses[0]
    assert losses[2] < 2e-4


@pytest.mark.parametrize("law", list(FrictionLaw))
def test_momentum_of_collisions(law: FrictionLaw) -> None:
    """Momentum to round-off at any step; angular momentum about a fixed point with the integrator's order."""
    steps = (0.002, 0.001, 0.0005)
    found = [collision(dt, law=law) for dt in steps]
    print([(c.momentum, c.angular, c.touched) for c in found])
    for c in found:
        assert c.touched > 5  # edges that cross hit hard and shortly
        assert c.momentum < 5e-12
        assert c.turned > 0.02
    angular = [c.angular for c in found]
    assert angular[-1] < 6e-4
    assert angular[0] > 5.0 * angular[-1]
