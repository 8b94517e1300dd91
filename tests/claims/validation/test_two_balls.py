"""Gradients through a penalty impact of two balls: what is exact, what converges, and the control problem."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.places import ROOT

from scripts.two_balls import (
    CONTROL_OPTIMUM,
    N_PHASES,
    OMEGA,
    ONSET,
    RADIUS,
    T,
    V,
    X,
    exact_gradient,
    exact_optimum,
    extrapolated,
    half_period,
    optimum,
    over_phases,
)


def test_closed_forms() -> None:
    assert half_period(1.0, 0.0) == pytest.approx(np.pi / OMEGA, rel=1e-8)
    assert half_period(1.0, ONSET) > half_period(1.0, 0.0)
    tau = np.pi / OMEGA
    np.testing.assert_allclose(exact_gradient(0.0), [1.0, 0.0, T - tau / 2, tau / 2], atol=1e-7)
    np.testing.assert_allclose(exact_gradient(0.0, 1e12), [1.0, 0.0, T, 0.0], atol=2e-6)
    assert exact_optimum() == pytest.approx(CONTROL_OPTIMUM, abs=1e-6)


def test_smooth_onset_is_right_at_every_phase() -> None:
    """And the kink is not, although its places are."""
    exact = exact_gradient(ONSET)
    medians = []
    for n_steps, worst in ((160, 0.05), (640, 0.01)):
        found = over_phases(n_steps, ONSET)
        assert np.abs(found[:, 1:] - exact).max() < worst
        medians.append(np.abs(np.median(found[:, 1:], axis=0) - exact).max())
        # Each gradient belongs to its run: shifting both balls shifts the answer.
        np.testing.assert_allclose(found[:, 1] + found[:, 2], 1.0, atol=1e-9)
        np.testing.assert_allclose(found[:, 3] + found[:, 4], T, atol=1e-9)
    print("error of the medians with the smooth onset:", medians)
    assert medians[1] < 0.6 * medians[0]
    kink = over_phases(640, 0.0)
    place = X[0] + 2 * RADIUS + V[0] * T - 0.5 * half_period(1.0, 0.0) * (V[0] - V[1])
    shift = (np.arange(N_PHASES) + 0.5) / N_PHASES * T / 640
    assert np.abs(kink[:, 0] + shift - place).max() < 3e-4
    assert np.ptp(kink[:, 1]) > 0.3
    # Two slopes, whose mean over a step is the right one.
    assert np.unique(np.round(kink[:, 1], 2)).size <= 3
    assert kink[:, 1].mean() == pytest.approx(1.0, abs=np.ptp(kink[:, 1]) / N_PHASES)


@pytest.mark.slow
def test_medians_converge() -> None:
    for onset, last in ((0.0, 0.05), (ONSET, 5e-4)):
        exact = exact_gradient(onset)
        errors = [np.abs(np.median(over_phases(n, onset)[:, 1:], axis=0) - exact).max() for n in (160, 640, 2560)]
        print(f"onset {onset}: error of the medians {errors}")
        assert errors[-1] < last
        assert errors[-1] < 0.5 * errors[0]


def test_control() -> None:
    """The least cost of pushing one ball so that the other ends at the origin, through contacts of finite duration."""
    optima = [optimum(k) for k in (1e3, 4e3)]
    for o in optima:
        expected = exact_optimum(np.pi / np.sqrt(2.0 * o.stiffness))
        print(f"k = {o.stiffness:g} N/m: {o.cost:.6f}, expected {expected:.6f}")
        assert o.cost == pytest.approx(expected, abs=4e-3)
    assert extrapolated(optima) == pytest.approx(CONTROL_OPTIMUM, abs=1e-2)


@pytest.mark.slow
def test_control_to_the_published_value() -> None:
    optima = [optimum(k) for k in (1e3, 1e4, 1e5)]
    print([o.cost for o in optima], extrapolated(optima))
    assert extrapolated(optima) == pytest.approx(CONTROL_OPTIMUM, abs=5e-4)


@pytest.mark.slow
def test_script_writes_page_and_plots(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "two_balls.py"), "--quick", "--docs", str(tmp_path)]
    subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert "(1, 0, T, 0)" in (tmp_path / "two_balls.md").read_text(encoding="utf-8")
    for name in ("two_balls.png", "two_balls_control.png"):
        assert (tmp_path / "images" / name).stat().st_size > 10_000
