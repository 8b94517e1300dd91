"""A simulation that was cut goes on from its last kept state, and is then the one that was never cut."""

import json

import meshio
import numpy as np
import pytest
from faults.runs import FIT, same_run, scene

from add.commands.folders import remains
from add.commands.simulate import Kept, simulate_scene
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.io.trajectory_file import read_point
from add.scene import scene_from_dict


def whole(tmp_path, raw):
    folder = RunFolder(tmp_path / "whole")
    simulate_scene(scene_from_dict(raw), folder)
    return folder


def cut(tmp_path, raw, steps, name="cut", resume=False):
    """Interrupt a run after some steps."""
    folder = RunFolder(tmp_path / name, create=not resume)
    count = iter(range(10**6))

    def stop(state, record):
        if next(count) == steps - 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_scene(scene_from_dict(raw), folder, progress=stop, resume=resume)
    return folder


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
@pytest.mark.parametrize("law", ["linear", "hybrid"])
def test_a_run_in_three_parts_is_the_whole_run(tmp_path, every, integrator, law):
    raw = scene(30, output={"every": every})
    raw["time"]["integrator"] = integrator
    raw["contact"]["friction_law"] = law
    once = whole(tmp_path, raw)
    folder = cut(tmp_path, raw, 7)
    assert read_point(folder.trajectory).state.step == 7
    left = remains(folder)
    assert left.kept == "7 steps, to t = 0.028 s" and "--resume` goes on" in left.advice
    cut(tmp_path, raw, 13, resume=True)
    assert read_point(folder.trajectory).state.step == 20
    result = simulate_scene(scene_from_dict(raw), folder, resume=True)
    assert result["steps"] == 30 and result["contact"]["touching"] > 0
    same_run(once.path, folder.path)
    assert read_point(folder.trajectory).state.step == 30 and remains(folder) is None


def test_a_run_killed_before_its_result_is_written_goes_on(tmp_path):
    raw = scene(12)
    once = whole(tmp_path, raw)
    again = RunFolder(tmp_path / "again")
    simulate_scene(scene_from_dict(raw), again)
    again.result.unlink()
    simulate_scene(scene_from_dict(raw), again, resume=True)
    same_run(once.path, again.path)


@pytest.mark.parametrize("every", [1, 3])
def test_a_run_that_is_kept_every_few_steps_is_the_whole_run(tmp_path, every, monkeypatch):
    """Each step is looked at once; a kill between two writes costs the steps in between."""
    raw = scene(40, output={"every": every})
    once = whole(tmp_path, raw)
    monkeypatch.setattr("add.commands.simulate.KEEP_EVERY", 0.0)
    monkeypatch.setattr("add.commands.simulate.KEEP_SHARE", 0.0)
    looked = []
    real = Kept.keep
    monkeypatch.setattr(Kept, "keep", lambda self, part: looked.append(part.n_steps) or real(self, part))
    again = RunFolder(tmp_path / "again")
    simulate_scene(scene_from_dict(raw), again)
    assert sum(looked) == 40, "each step is looked at once"
    same_run(once.path, again.path)
    folder = cut(tmp_path, raw, 17)
    assert read_point(folder.trajectory).state.step == 17
    simulate_scene(scene_from_dict(raw), folder, resume=True)
    same_run(once.path, folder.path)


def test_another_mesh_is_another_run(tmp_path):
    """The scene names the same file, and the bodies have as many nodes."""
    path = tmp_path / "block.vtk"

    def written(height):
        cells = [("tetra", np.array([[0, 1, 2, 3]]))]
        points = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, height]])
        meshio.Mesh(points, cells).write(path)

    soft = {"type": "soft", "mesh": {"file": str(path)}, "position": [1, 0, 0.1],
            "material": {"model": "neo-hookean", "young": 1e4, "poisson": 0.3, "density": 1e3}}  # fmt: skip
    raw = scene(10)
    raw["bodies"]["soft"] = soft
    written(0.1)
    folder = cut(tmp_path, raw, 4)
    written(0.2)
    with pytest.raises(InputError, match="begun with other meshes"):
        simulate_scene(scene_from_dict(raw), folder, resume=True)
    written(0.1)
    assert simulate_scene(scene_from_dict(raw), folder, resume=True)["steps"] == 10


def test_a_change_of_chart_is_kept(tmp_path, monkeypatch):
    """A body that turns by more than pi goes on with another rotation vector, also when that very step is kept."""
    raw = scene(50)
    raw["bodies"]["b"]["angular_velocity"] = [30.0, 20.0, 10.0]
    records = scene_from_dict(raw).build().run().records
    (last,) = (k + 1 for k, record in enumerate(records) if record.charts.size)
    once = whole(tmp_path, raw)
    for steps in (last - 1, last, last + 1):
        folder = cut(tmp_path, raw, steps, name=f"cut {steps}")
        simulate_scene(scene_from_dict(raw), folder, resume=True)
        same_run(once.path, folder.path)
    monkeypatch.setattr("add.commands.simulate.KEEP_EVERY", 0.0)
    monkeypatch.setattr("add.commands.simulate.KEEP_SHARE", 0.0)
    again = RunFolder(tmp_path / "again")
    simulate_scene(scene_from_dict(raw), again)
    same_run(once.path, again.path)


def test_what_cannot_go_on_is_refused(tmp_path):
    raw = scene(10)
    done = whole(tmp_path, raw)
    with pytest.raises(InputError, match="this run is complete"):
        simulate_scene(scene_from_dict(raw), done, resume=True)
    folder = cut(tmp_path, raw, 4)
    other = json.loads(json.dumps(raw))
    other["bodies"]["a"]["mass"] = 2.0
    with pytest.raises(InputError, match="begun with another scene"):
        simulate_scene(scene_from_dict(other), folder, resume=True)
    with pytest.raises(InputError, match="keeps other states"):
        simulate_scene(scene_from_dict(raw | {"output": {"every": 2}}), folder, resume=True)
    from add.commands.optimize import optimize_scene

    with pytest.raises(InputError, match="this is a run of `add simulate`"):
        optimize_scene(scene_from_dict(raw | FIT), folder, resume=True)


def test_other_versions_are_said(tmp_path, caplog):
    raw = scene(10)
    folder = cut(tmp_path, raw, 4)
    versions = json.loads(folder.versions.read_text())
    folder.versions.write_text(json.dumps(versions | {"add": "0.0.1"}))
    simulate_scene(scene_from_dict(raw), folder, resume=True)
    (record,) = [item for item in caplog.records if "other versions" in item.getMessage()]
    assert f"add 0.0.1 -> {versions['add']}" in record.getMessage()
    assert json.loads(folder.versions.read_text()) == versions
