"""The reference tables are what their descriptions say."""

import numpy as np
import pytest
from validation import reference
from validation.reference import G


def test_pendulum_keeps_its_energy():
    run = reference.pendulum()
    angle = np.unwrap(np.arctan2(run.position[:, 1], run.position[:, 0]))
    assert (len(run.t), run.t[-1]) == (1001, 10.0)
    rate = np.gradient(angle, run.t, edge_order=2)
    energy = 0.5 * rate**2 + G * run.position[:, 1]
    assert np.abs(energy).max() < 1e-2  # differences over 0.01 s


def test_four_bar_keeps_its_energy_and_agrees_with_another_program():
    run, other = reference.double_four_bar(), reference.double_four_bar(exudyn=True)
    energy = 0.5 * 3.0 * (run.velocity**2).sum(axis=1) + 3.5 * G * run.position[:, 1]
    np.testing.assert_allclose(energy, 1.5 + 3.5 * G, atol=1e-7)
    np.testing.assert_allclose(other.t, run.t, atol=1e-9)
    np.testing.assert_allclose(other.position, run.position, atol=6e-5)
    end = reference.values()["A02_double_four_bar_t10"]
    np.testing.assert_allclose(run.position[-1], [end["x"], end["y"]], atol=1e-9)


def test_tumbling_keeps_energy_and_momentum():
    run = reference.dzhanibekov()
    for power in (1, 2):
        kept = (run.inertia**power * run.spin**2).sum(axis=1)
        np.testing.assert_allclose(kept, kept[0], rtol=1e-8)
    back = np.array([np.interp(run.period, run.t, column) for column in run.spin.T])
    np.testing.assert_allclose(back, run.spin[0], atol=1e-4)


def test_restitution():
    ratio, gap, force = reference.restitution()
    np.testing.assert_allclose(gap, np.exp(-np.pi * ratio / np.sqrt(1.0 - ratio**2)), rtol=1e-8)
    assert (force > gap).all()


def test_closed_forms():
    for case in reference.values()["block_on_incline"]:
        found = reference.incline_acceleration(case["angle_deg"], case["mu"])
        assert found == pytest.approx(case["accel_m_s2"], abs=1e-12)
        assert (found == 0.0) is case["sticks"]
    time, speed, distance = reference.slide_to_roll(1.0, 0.1)
    assert time == pytest.approx(2.0 / (7.0 * 0.1 * G))
    assert speed == pytest.approx(5.0 / 7.0)
    assert distance == pytest.approx(12.0 / (49.0 * 0.1 * G))
    time, speed, _ = reference.slide_to_roll(1.0, 0.1, gyration=2.0 / 3.0)
    assert (time, speed) == (pytest.approx(2.0 / (5.0 * 0.1 * G)), pytest.approx(0.6))
    assert reference.rolling_on_incline(30.0)[0] == pytest.approx(5.0 / 7.0 * G / 2.0)
    assert reference.sliding_block(2.0, 0.5)[0] == pytest.approx(4.0 / G)
    assert reference.ball_drop(1.0, 0.5)[1] == pytest.approx(5.0 / 3.0)


def test_andrews():
    q, rates = reference.andrews_at_end()
    assert len(q) == len(rates) == 7
