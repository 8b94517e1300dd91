"""The sliding box: distance and gradients by the adjoint against Coulomb's answer over the time step.

See `scripts/sliding_box.py`, which makes docs/studies/sliding_box.md from the same runs.
"""

from pathlib import Path

import numpy as np
import pytest

from scripts.sliding_box import DURATION, EXACT, FRICTION, SPEED, G, closed_form, limit, main, measure


def test_exact_answer() -> None:
    assert pytest.approx((0.48608, -0.7848, 0.4), abs=1e-12) == EXACT
    # It is still sliding at the end.
    assert SPEED - FRICTION * G * DURATION > 0.4


def _check(dt: float, start: str, order: int) -> None:
    row = measure(dt, start, order)
    x, by_friction = limit(start)
    error = FRICTION * G * (dt * DURATION / 2 if order == 1 else 0.75 * dt**2)
    print(
        f"{start} BDF{order} dt {dt}: x {row.x:.7f} ({row.x - x:+.2e}), dx/dmu {row.by_friction:.6f}"
        f" ({row.by_friction - by_friction:+.2e}), dx/dv {row.by_speed:.9f}, rise {row.rise:.2e}"
    )
    # All of the error is the integrator's free-fall error, known in closed form.
    assert row.x == pytest.approx(closed_form(dt, row.rise, order), abs=1e-11)
    assert abs(row.x - x) < 1.001 * error + 2e-8
    assert abs(row.by_friction - by_friction) < 1.001 * error / FRICTION + 1e-6
    assert row.by_speed == pytest.approx(EXACT[2], abs=1e-6)


@pytest.mark.parametrize("start", ["resting", "dropped"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dt", [1e-2, 2e-3, 1e-3])
def test_converges(dt: float, order: int, start: str) -> None:
    _check(dt, start, order)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["resting", "dropped"])
@pytest.mark.parametrize("order", [1, 2])
def test_converges_to_the_smallest_step(order: int, start: str) -> None:
    _check(1e-4, start, order)


def test_script_writes_page_and_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["sliding_box.py", "--quick", "--docs", str(tmp_path)])
    main()
    page = (tmp_path / "sliding_box.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| BDF2 | 0.01 |"))
    assert np.isclose(float(row.split("|")[3]), closed_form(1e-2, 0.0), atol=1e-6)
    assert "| BDF2 | 0.01 |" in capsys.readouterr().out
    assert (tmp_path / "images" / "sliding_box.png").stat().st_size > 10_000
