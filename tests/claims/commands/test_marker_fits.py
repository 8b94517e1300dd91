"""What simulated markers are off: points in metres, directions in radians."""

import csv

import numpy as np
import pytest

from add.commands.marker_fits import Samples, fit_numbers, write_residuals
from add.commands.report import write_report
from add.commands.report_texts import how_far
from add.io.runfolder import RunFolder

ANGLE, AWAY = 0.2, 3e-3


def samples(*directions):
    """Markers of which the points are 3 mm off, and the directions 0.2 rad."""
    times = np.linspace(0.0, 1.0, 11)
    targets = np.zeros((11, len(directions), 3))
    targets[:, :, 0] = np.where(directions, np.cos(times)[:, None], times[:, None])
    targets[:, :, 1] = np.where(directions, np.sin(times)[:, None], 0.0)
    turned = np.stack([np.cos(times + ANGLE), np.sin(times + ANGLE), 0 * times], axis=1)
    residuals = np.where(np.array(directions)[:, None], turned[:, None] - targets, [0.0, 0.0, AWAY])
    names = tuple(f"m{k}" for k in range(len(directions)))
    return Samples(names, np.array(directions), times, residuals, targets, 1.0, 0.1)


def test_directions_are_off_by_angles(tmp_path):
    found = fit_numbers(samples(True, True))
    assert found["unit"] == "rad" and found["rms"] == pytest.approx(ANGLE)
    assert found["peak_displacement"] == pytest.approx(1.0)  # it turns by one radian
    mixed = fit_numbers(samples(False, True))
    assert mixed["unit"] == "m" and mixed["rms"] == pytest.approx(AWAY) and mixed["rms_angle"] == pytest.approx(ANGLE)
    assert [item["unit"] for item in mixed["per_marker"].values()] == ["m", "rad"]
    folder = RunFolder(tmp_path / "run")
    write_residuals(folder, {"scene": ("fit", samples(False, True))})
    rows = list(csv.DictReader((tmp_path / "run" / "residuals.csv").read_text().splitlines()))
    assert [rows[0]["distance_m"], rows[0]["angle_rad"]] == ["0.003", ""]
    assert [rows[-1]["distance_m"], float(rows[-1]["angle_rad"])] == ["", pytest.approx(ANGLE)]
    folder.write_json("result.json", {"command": "optimize", "fit": mixed})
    text = write_report(folder).read_text()
    assert "| all directions | 0.2 rad |" in text and "| m1 | 0.2 rad |" in text and "| m0 | 0.003 |" in text
    assert (tmp_path / "run" / "residuals.png").is_file()
    page = (tmp_path / "run" / "report.html").read_text()
    assert "3 mm, of directions 0.2 rad" in page and how_far(ANGLE, "rad") == "0.2 rad"
