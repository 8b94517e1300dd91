"""Contacts on the border of two modes: counted, named and warned of, in runs, results, reports and gradient checks."""

import json

import numpy as np
import pytest
from support.impulse_scenes import CUBE, scene

from add.commands.check_gradient import check_gradients
from add.commands.cli import main
from add.commands.report import write_report
from add.commands.run_summary import Tally
from add.io.runfolder import RunFolder
from add.io.trajectory_file import read_run
from add.kernels.cone_modes import SLIDE, STICK
from add.scene import scene_from_dict


def on_the_limit(slope: float = 0.4) -> dict:
    """A cube on an incline whose tangent is the friction coefficient: on the border of stick and slide."""
    return scene(CUBE, dt=0.01, steps=12, friction=0.4, gravity=(9.81 * slope, 0.0, -9.81))


def run(tmp_path, raw: dict, *options: str) -> int:
    """Run the command; return its exit code."""
    (tmp_path / "s.json").write_text(json.dumps(raw))
    with pytest.raises(SystemExit) as caught:
        main(["simulate", str(tmp_path / "s.json"), "-o", str(tmp_path / "run"), "--force", *options])
    return caught.value.code


def test_runs_name_them(tmp_path, caplog) -> None:
    assert run(tmp_path, on_the_limit()) == 0
    assert "weakly active contacts: body on floor" in caplog.text and "one-sided" in caplog.text
    folder = RunFolder(tmp_path / "run", create=False)
    result = folder.read_json("result.json")
    (pair,) = result["weak_contacts"]
    assert pair["bodies"] == ["body", "floor"] and pair["count"] == result["contact"]["weakly_active"] > 0
    assert 0.01 <= pair["first"] <= pair["last"] <= 0.12 + 1e-12 and abs(pair["margin"]) < 1e-6
    assert 0.0 < result["contact_certificate"]["natural_map"] < 1e-10
    report = write_report(folder, draw=False).read_text()
    assert "## Contacts" in report and "border of two modes" in report and "natural map" in report
    assert run(tmp_path, on_the_limit(), "--strict") == 2


def test_clear_cases_are_silent(tmp_path, caplog) -> None:
    assert run(tmp_path, on_the_limit(0.2), "--strict") == 0
    assert "weakly" not in caplog.text
    assert "weak_contacts" not in RunFolder(tmp_path / "run", create=False).read_json("result.json")


def test_results_have_modes_and_margins(tmp_path) -> None:
    """Those of every contact that touches, in the order of its force."""
    raw = on_the_limit(0.2)
    raw["bodies"]["body"]["velocity"] = [-0.1, 0.0, 0.0]
    assert run(tmp_path, raw) == 0
    data = read_run(RunFolder(tmp_path / "run", create=False).trajectory).contacts
    assert data.modes.shape == data.margins.shape == (len(data.forces),)
    assert {SLIDE, STICK} == set(data.modes.tolist())
    tangential = np.hypot(data.forces[:, 0], data.forces[:, 1])
    slides = data.modes == SLIDE
    np.testing.assert_allclose(tangential[slides], 0.4 * data.forces[slides, 2], rtol=1e-9)
    assert np.all(tangential[~slides] < 0.4 * data.forces[~slides, 2])
    assert np.all((data.margins > 1e-6) & (data.margins <= 1.0))


def test_gradient_check_warns() -> None:
    (found,) = check_gradients(scene_from_dict(on_the_limit()), n_steps=3)
    assert any("body on floor" in text and "one-sided" in text for text in found.warnings)
    assert found.decisions["weakly_active"] > 0
    (clear,) = check_gradients(scene_from_dict(on_the_limit(0.2)), n_steps=3)
    assert not clear.weak and clear.passed


def test_counts_go_on(tmp_path) -> None:
    """What a cut run has counted survives in JSON."""
    built = scene_from_dict(on_the_limit()).build()
    tally = Tally().add(built, built.run(), built.theta)
    again = Tally.parsed(json.loads(json.dumps(tally.plain())))
    assert again.weak == tally.weak and again.weak.seen
