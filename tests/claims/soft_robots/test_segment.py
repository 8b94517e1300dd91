"""A real segment of an arm that air bends, where its recordings are there: see docs/soft-robots.md."""

import numpy as np
import pytest

from scripts.pneumatic_segment import MU, TAKES, angle_at, bent, recorded, stiffness

SEEN = {"100mbar_V3": 2.8, "200mbar_V3": 7.2, "300mbar_V3": 15.6, "400mbar_V3": 31.2}


@pytest.fixture
def seen(data_root) -> dict[str, float]:
    folder = data_root / "soft" / "csv" / "pneumatic_segment"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return {name: recorded(folder / f"{name}.csv") for name in TAKES}


def test_angles_of_the_recordings(seen) -> None:
    for name, angle in SEEN.items():
        assert seen[name] == pytest.approx(angle, abs=0.1)


@pytest.mark.slow
def test_one_level_predicts_the_others(seen) -> None:
    """With threads round the arm, on a mesh too coarse for 400 mbar; none without: it balloons."""
    material = {"model": "mooney-rivlin", "c10": 0.5 * MU, "c01": 0.0, "kappa": 30.0 * MU}
    ratios = 1.0 + 0.1 * np.arange(1.0, 30.0)
    found = {}
    for threads in (0.0, 100.0):
        curve = bent(material, threads * MU, 0.00227, 2, ratios)
        mu = stiffness(curve, 2e4, seen["200mbar_V3"])
        found[threads] = [angle_at(curve, MU / mu * p) / seen[f"{round(p / 100)}mbar_V3"] for p in (1e4, 3e4, 4e4)]
    assert not np.isfinite(found[0.0][1:]).any()
    assert np.abs(np.array(found[100.0][:2]) - 1.0).max() < 0.12, found
