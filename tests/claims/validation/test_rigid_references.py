"""Free tumbling and stiff linkages against independent solutions; see `tests/support/rigid_cases.py`."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.places import ROOT
from support.rigid_cases import (
    BROAD,
    MOMENTS,
    NEAR_MIDDLE,
    SQUEEZER_START,
    angle_errors,
    euler_equations,
    four_bars,
    four_bars_answer,
    free_fall,
    largest_error,
    pendulum,
    pendulum_answer,
    squeezer,
    tumble,
    tumble_period,
)
from support.setups import observed_orders

from add.simulation import StartUp


def _reference(data_root: Path, name: str) -> Path:
    path = data_root / "reference" / name
    if not path.is_file():
        pytest.skip(f"no reference table at {path}")
    return path


def _tumble_errors(steps, duration: float, rates, order: int) -> tuple[list[float], list[float], list[int]]:
    errors, drifts, changes = [], [], []
    for dt in steps:
        found = tumble(dt, round(duration / dt), rates, order, every=round(duration / dt / 200))
        errors.append(float(np.abs(found.rates - euler_equations(rates, found.t)).max()))
        drifts.append(found.drift)
        changes.append(found.changes)
    print(f"BDF{order}: errors {errors}, drift of the angular momentum {drifts}, changes of chart {changes}")
    return errors, drifts, changes


@pytest.mark.parametrize("order", [1, 2])
def test_tumbling_converges(order: int) -> None:
    """A broad tumble of moments 1, 2, 3 through changes of chart: rates in body axes and angular momentum."""
    steps = (0.01, 0.005, 0.0025) if order == 2 else (0.001, 0.0005)
    duration = tumble_period(BROAD) if order == 2 else 6.0
    errors, drifts, changes = _tumble_errors(steps, duration, BROAD, order)
    assert min(changes) >= (3 if order == 2 else 1)
    np.testing.assert_allclose(observed_orders(steps, errors), order, atol=0.15)
    np.testing.assert_allclose(observed_orders(steps, drifts), order, atol=0.15)


@pytest.mark.slow
def test_ten_periods_of_tumbling() -> None:
    steps = (0.005, 0.0025)
    errors, drifts, changes = _tumble_errors(steps, 10.0 * tumble_period(BROAD), BROAD, 2)
    assert min(changes) > 30
    assert errors[-1] < 5e-3
    np.testing.assert_allclose(observed_orders(steps, errors), 2.0, atol=0.15)
    np.testing.assert_allclose(observed_orders(steps, drifts), 2.0, atol=0.15)


def test_table_of_the_middle_axis(data_root: Path) -> None:
    """The Dzhanibekov effect: a turn over and back in 39.1 s."""
    table = np.loadtxt(_reference(data_root, "dzhanibekov.csv"), delimiter=",", skiprows=1)
    values = json.loads(_reference(data_root, "reference_values.json").read_text())["dzhanibekov"]
    assert tuple(values["I"]) == MOMENTS
    assert values["period_s"] == pytest.approx(tumble_period(NEAR_MIDDLE), rel=1e-12)
    errors = []
    for dt in (0.005, 0.0025):
        found = tumble(dt, round(40.0 / dt), NEAR_MIDDLE, every=round(0.1 / dt))
        exact = table[: found.t.size]
        np.testing.assert_allclose(found.t, exact[:, 0], atol=1e-9)
        errors.append(float(np.abs(found.rates - exact[:, 1:]).max()))
        assert found.rates[:, 1].min() < -0.99
        assert found.changes >= 6
    print("largest errors over 40 s [rad/s]:", errors)
    assert errors[1] < 0.02
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)


@pytest.mark.slow
def test_ten_turns_of_the_middle_axis() -> None:
    """Ten periods, 391 s: the start lies so near the separatrix that only small steps keep the beat."""
    dt, duration = 0.002, 10.0 * tumble_period(NEAR_MIDDLE)
    found = tumble(dt, round(duration / dt), NEAR_MIDDLE, every=50)
    exact = euler_equations(NEAR_MIDDLE, found.t)
    turns = [int((np.diff(np.sign(w[:, 1])) != 0).sum()) for w in (found.rates, exact)]
    error = float(np.abs(found.rates - exact).max())
    print(f"turns {turns}, largest error {error}, drift {found.drift}, changes of chart {found.changes}")
    assert turns == [20, 20]
    assert found.changes > 50
    assert found.drift < 1e-4


@pytest.mark.parametrize(("order", "start"), [(1, StartUp.BDF1), (2, StartUp.BDF1), (2, StartUp.STRAIGHT_LINE)])
def test_free_fall(order: int, start: StartUp) -> None:
    """Errors known in closed form: g dt T/2 (BDF1), 3/4 g dt^2 (BDF2); the straight line leaves g dt/2 in the speed."""
    g, dt, duration = 9.81, 0.01, 1.0
    height, speed = free_fall(dt, duration, order, start)
    if order == 1:
        assert height == pytest.approx(-0.5 * g * dt * duration, rel=1e-9)
    elif start is StartUp.BDF1:
        assert height == pytest.approx(-0.75 * g * dt**2, rel=1e-6)
    else:
        assert speed == pytest.approx(0.5 * g * dt, rel=1e-6)
        assert height == pytest.approx(0.5 * g * dt * duration, abs=g * dt**2)
    if start is StartUp.BDF1:
        assert abs(speed) < 1e-12


# --- linkages ---------------------------------------------------------------------------------------------------------


def test_pendulum_converges(data_root: Path) -> None:
    """IFToMM A01 over 10 s: with the step at a stiff joint, with the stiffness at a small step."""
    table = np.loadtxt(_reference(data_root, "a01_pendulum.csv"), delimiter=",", skiprows=1)
    np.testing.assert_allclose(pendulum_answer(table[:, 0]), table[:, 1:], atol=1e-8)
    steps = (0.005, 0.0025, 0.00125)
    errors = [largest_error(path := pendulum(dt, 10.0, 1e8), pendulum_answer(path.t)) for dt in steps]
    soft = [largest_error(path := pendulum(0.00125, 10.0, k), pendulum_answer(path.t)) for k in (1e4, 1e5)]
    print(f"errors over the step {errors}, over the stiffness {soft} [m]")
    assert errors[-1] < 1e-3
    assert np.all(observed_orders(steps, errors) > 1.6)
    assert soft[0] > 5.0 * soft[1] > 5.0 * errors[-1]


@pytest.mark.parametrize("n", [1, 3])
def test_four_bars(n: int) -> None:
    """The first second of the linkage, down to where all rods lie in one line and a little beyond."""
    errors = [
        largest_error(path := four_bars(n, dt, 1.2, k), four_bars_answer(n, path.t))
        for dt, k in ((0.002, 1e8), (0.001, 1e8), (0.001, 1e6))
    ]
    print(f"{n} four-bars: errors {errors} [m]")
    assert errors[1] < 1e-3
    assert errors[0] > 2.0 * errors[1]
    assert errors[2] > 3.0 * errors[1]


@pytest.mark.slow
def test_double_four_bar_to_the_end(data_root: Path) -> None:
    """IFToMM A02 over 10 s, many times through the singular position, where errors go as the root of the gap."""
    table = np.loadtxt(_reference(data_root, "a02_double_four_bar.csv"), delimiter=",", skiprows=1)
    np.testing.assert_allclose(four_bars_answer(2, table[:, 0]), table[:, 1:3], atol=1e-8)
    found = {
        (dt, k): largest_error(path := four_bars(2, dt, 10.0, k), four_bars_answer(2, path.t))
        for dt, k in ((0.002, 1e11), (0.001, 1e11), (0.0005, 1e11), (0.001, 1e9), (0.001, 1e7))
    }
    print(f"errors over (step, stiffness): {found} [m]")
    assert found[0.0005, 1e11] < 1e-3
    assert found[0.002, 1e11] > 3.0 * found[0.001, 1e11] > 6.0 * found[0.0005, 1e11]
    assert found[0.001, 1e7] > 5.0 * found[0.001, 1e9]


def test_squeezer(data_root: Path) -> None:
    """IFToMM A03 at 0.03 s, where the crank has turned by 15.87 rad."""
    values = json.loads(_reference(data_root, "reference_values.json").read_text())
    angles, rates = values["A03_andrews_t0.03_q"], values["A03_andrews_t0.03_qdot"]
    assert angles[0] - SQUEEZER_START[0] == pytest.approx(15.87, abs=0.01)
    errors = []
    for stiffness in (1e8, 1e9, 1e10):
        found, found_rates = squeezer(5e-6, 0.03, stiffness)
        errors.append(float(np.abs(angle_errors(found, angles)).max()))
    print(f"errors of the angles over the stiffness {errors} [rad]; of the rates at last {found_rates - rates} [rad/s]")
    assert errors[0] > 5.0 * errors[1]
    assert errors[2] < 5e-4
    np.testing.assert_allclose(found_rates, rates, atol=1e-3 * abs(rates[0]))


@pytest.mark.slow
def test_script_writes_page_and_plots(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.rigid_validation", "--quick", "--docs", str(tmp_path)]
    root = ROOT
    subprocess.run(command, capture_output=True, text=True, cwd=root, check=True)
    page = (tmp_path / "rigid-validation.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| BDF2 | 21 s | 0.0025 |"))
    assert float(row.split("|")[4]) == pytest.approx(4.07e-4, rel=0.02)
    for name in ("tumbling", "rolling", "impacts"):
        assert (tmp_path / "images" / f"rigid_{name}.png").stat().st_size > 10_000
