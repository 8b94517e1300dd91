"""Meshes of round shapes that are written to the folder of a run."""

import numpy as np
import pytest

from add.geometry import volume
from add.io.meshes import read_mesh
from add.scene import experiment_scenes, scene_from_dict
from add.scene.build.selections import body_mesh, freeze_meshes

BALL = {"shape": "sphere", "radius": 50.0, "edge": 25.0}
MATERIAL = {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 150}


def scene(*, experiments=(), **bodies):
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "duration": 0.1},
        "bodies": {name: {"type": "soft", "material": MATERIAL, **body} for name, body in bodies.items()},
    }
    if experiments:
        raw["experiments"] = [{"name": f"e{k}", "overrides": item} for k, item in enumerate(experiments)]
    return scene_from_dict(raw)


def mesh_of(some, name="ball"):
    return body_mesh(some.bodies[name], f"bodies.{name}")


@pytest.mark.parametrize("element", [None, "tet4", "tet10"])
def test_the_file_has_the_mesh_of_the_shape(tmp_path, element):
    before = scene(ball={"mesh": BALL, "scale": 1e-3, **({"element": element} if element else {})})
    after = freeze_meshes(before, tmp_path / "run")
    path = tmp_path / "run" / "meshes" / "ball.msh"
    assert after.raw["bodies"]["ball"]["mesh"] == {"file": str(path)}
    assert before.raw["bodies"]["ball"]["mesh"] == BALL
    assert [p.name for p in path.parent.iterdir()] == ["ball.msh"]
    old, new = mesh_of(before), mesh_of(after)
    assert new.family.name == (element or "tet4")
    np.testing.assert_array_equal(new.cells, old.cells)
    np.testing.assert_array_equal(new.points, old.points)
    assert np.ptp(new.points[:, 0]) == pytest.approx(0.1, rel=0.1)


def test_a_resumed_run_keeps_its_mesh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    some = scene(ball={"mesh": BALL})
    first = freeze_meshes(some, tmp_path)
    path = tmp_path / "meshes" / "ball.msh"
    path.write_text(path.read_text() + "\n")  # so that it differs from one made anew
    kept = path.read_text()
    again = freeze_meshes(some, type(tmp_path)("."))
    assert again.raw == first.raw
    assert path.read_text() == kept
    assert freeze_meshes(again, tmp_path) is again, "nothing is left to replace"


def test_boxes_stay(tmp_path):
    some = scene(block={"mesh": {"shape": "box", "size": [1, 1, 1], "divisions": [1, 1, 1]}})
    assert freeze_meshes(some, tmp_path) is some
    assert list(tmp_path.iterdir()) == []


def test_experiments(tmp_path):
    box = {"shape": "box", "size": [1, 1, 1], "divisions": [1, 1, 1]}
    some = scene(
        ball={"mesh": BALL},
        other={"mesh": BALL},
        third={"mesh": BALL, "element": "tet10"},
        experiments=[
            {"bodies.ball.position": [0, 0, 1]},
            {"bodies.ball.mesh": box, "bodies.other.mesh.radius": 40, "bodies.third.element": "tet4"},
        ],
    )
    after = freeze_meshes(some, tmp_path)
    assert sorted(p.name for p in (tmp_path / "meshes").iterdir()) == ["ball.msh", "third.msh"]
    first, second = experiment_scenes(after).values()
    path = tmp_path / "meshes" / "ball.msh"
    assert first.raw["bodies"]["ball"]["mesh"] == {"file": str(path)}
    assert second.raw["bodies"]["ball"]["mesh"] == box
    assert second.raw["bodies"]["other"]["mesh"] == {**BALL, "radius": 40}
    assert mesh_of(first, "third").family.name == "tet10"
    assert mesh_of(second, "third").family.name == "tet4"
    assert volume(read_mesh(path)) == pytest.approx(volume(mesh_of(first)))
