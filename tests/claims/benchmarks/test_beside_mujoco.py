"""The comparison with MuJoCo: its limits are right, and what is compared is of one accuracy."""

import numpy as np
import pytest

from benchmarks import mujoco_cart, mujoco_cube, mujoco_pendulum
from benchmarks.ways import Sample, Way, coarsest, measured

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'add-sim[robots]'")


def test_the_limit_of_the_cart_is_round_off():
    fine, coarse = mujoco_cart.reference(40), mujoco_cart.reference(20)
    assert fine[0] == pytest.approx(coarse[0], rel=1e-10)
    assert np.allclose(fine[1], coarse[1], atol=1e-11) and np.linalg.norm(fine[1]) > 0.1


def test_every_way_of_the_cart_approaches_the_limit():
    """With its order: one where the force jumps in steps, Runge-Kutta, whose steps end at the jumps, at once."""
    value, slope = mujoco_cart.reference()
    found = {}
    for n in (200, 400):
        calls = {
            "add": mujoco_cart.ours(mujoco_cart.cart(n)),
            "explicit": mujoco_cart.ours(mujoco_cart.cart(n, "rk4")),
            "transitions": mujoco_cart.by_transitions(mujoco, "Euler", n),
            "Euler": mujoco_cart.by_rollouts(mujoco, "Euler", n),
            "RK4": mujoco_cart.by_rollouts(mujoco, "RK4", n),
        }
        for name, call in calls.items():
            end, gradient = call()
            found[name, n] = abs(end - value), np.linalg.norm(gradient - slope) / np.linalg.norm(slope)
    for name in ("add", "Euler"):
        for k in range(2):
            assert found[name, 200][k] > 1.9 * found[name, 400][k]
    assert found["add", 400][1] < 0.02 and found["Euler", 400][1] < 0.01
    assert found["RK4", 200][1] < 1e-5 and found["explicit", 200][1] < 1e-5
    assert found["transitions", 200] == pytest.approx(found["Euler", 200], rel=1e-4)


def test_both_cubes_fall_alike_before_they_touch():
    """In flight there is one answer for both: the value of a free throw and its slopes."""
    n = 100
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mujoco_cube, "END", 0.1)
        found = {"add": mujoco_cube.ours(n)(), "MuJoCo": mujoco_cube.by_rollouts(mujoco, "RK4", "forward", n)()}
    assert found["add"][0] == pytest.approx(found["MuJoCo"][0], rel=2e-3)
    assert np.allclose(found["add"][1], found["MuJoCo"][1], rtol=2e-2, atol=2e-3)


def test_both_pendulums_take_the_same_steps():
    """With one error, in times of one size: twice what is promised leaves room for other work on the machine."""
    row = mujoco_pendulum.beside(mujoco, 0.3)
    assert row["add_error"] == pytest.approx(row["error"], rel=1e-5) and 1e-4 < row["error"] < 1e-3
    assert row["run_over_mujoco"] < 12.0 and row["gradient_over_mujoco"] < 24.0


def test_the_coarsest_of_a_level_has_no_finer_one_beyond_it():
    samples = [Sample("add", "", n, 0.0, error, 1.0) for n, error in ((1, 0.01), (2, 0.2), (4, 0.05), (8, 0.001))]
    assert coarsest(samples, 0.1).steps == 4
    assert coarsest(samples, 0.3).steps == 1
    assert coarsest(samples, 1e-4) is None


def test_errors_are_relative_to_the_limit():
    way = Way("add", "", lambda n: lambda: (1.1, np.array([0.0, 2.0])), [3], (1.0, np.array([0.0, 1.0])))
    (sample,) = measured(way, 0.0, 2)
    assert (sample.value_error, sample.gradient_error) == pytest.approx((0.1, 1.0))
