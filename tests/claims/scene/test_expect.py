"""The `expect` section is checked on reading: commands, paths, the nearest that exists."""

import json

import pytest

from add.commands.optimize import optimize_scene
from add.commands.simulate import simulate_scene
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.mocap import Recording, write_csv
from add.scene import experiment_scenes, scene_from_dict
from add.scene.read.section_checks import _flat, _names, _optimized, _simulated

MARKERS = {"free corner": {"body": "p", "nodes": [0]}, "b.m": {"body": "r", "point": [0, 0, 0.1]}}
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 4},
    "bodies": {
        "p": {"type": "particles", "mesh": {"points": [[0, 0, 1]]}, "mass": 1.0, "velocity": [1, 0, 0]},
        "r": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1.0, "position": [0, 1, 0.09]},
        "s": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
            "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 200},
            "position": [1, 0, 0.5],
        },
    },
    "couplings": {
        "cable": {"type": "spring", "a": {"body": "r", "at": [0, 0, 0]}, "b": {"at": [0, 1, 2]}, "stiffness": 5}
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "markers": {"free corner": MARKERS["free corner"], "top": MARKERS["b.m"]},
    "objective": [{"type": "point", "marker": "free corner", "target": [0, 0, 0], "time": "end"}],
    "parameters": [
        {"path": "bodies.p.velocity"},
        {"path": "bodies.p.mass", "transform": "log"},
        {"path": "bodies.r.velocity", "components": [2]},
    ],
    "optimizer": {"max_evaluations": 3},
}


def read(expect, **sections):
    return scene_from_dict({**SCENE, **sections, "expect": expect})


GOOD = {
    "simulate": ["steps", "contact.touching", "bodies.p.centre", "bodies.p.centre.2", "bodies.r.orientation.3",
                 "markers.free corner.final", "newton.fallbacks", "energy.kinetic"],
    "optimize": ["objective.end", "parameters.bodies.p.velocity[2].value", "parameters.bodies.p.mass.standard_error",
                 "parameters.bodies.r.velocity[2].value", "phases.0.evaluations", "experiments.scene.end_time",
                 "markers.top.displacement.1"],
}  # fmt: skip


@pytest.mark.parametrize("command", GOOD)
def test_numbers_of_results(command):
    read({command: {path: {"min": 0} for path in GOOD[command]}})


@pytest.mark.parametrize(
    ("expect", "place", "near"),
    [
        ({"simulat": {"steps": {"value": 4}}}, "expect.simulat", "simulate"),
        ({"simulate": {"stesp": {"value": 4}}}, "expect.simulate.stesp", "steps"),
        ({"simulate": {"bodies.p.center": {"min": 0}}}, "expect.simulate.bodies.p.center", "bodies.p.centre"),
        ({"simulate": {"bodies.p.centre.3": {"min": 0}}}, "expect.simulate.bodies.p.centre.3", "bodies.p.centre"),
        ({"simulate": {"bodies.p.elements": {"min": 0}}}, "expect.simulate.bodies.p.elements", "bodies.s.elements"),
        ({"simulate": {"objective.end": {"min": 0}}}, "expect.simulate.objective.end", None),
        ({"optimize": {"parameters.bodies.p.velocity.value": {"min": 0}}},
         "expect.optimize.parameters.bodies.p.velocity.value", "parameters.bodies.p.velocity[2].value"),
        ({"optimize": {"fit.rms": {"max": 1}}}, "expect.optimize.fit.rms", None),
        ({"optimize": {"phases.1.evaluations": {"max": 1}}}, "expect.optimize.phases.1.evaluations",
         "phases.0.evaluations"),
    ],
)  # fmt: skip
def test_what_no_result_has(expect, place, near):
    with pytest.raises(InputError) as error:
        read(expect)
    assert error.value.place == place
    if near is not None:
        assert f"did you mean '{near}'" in str(error.value)


def leaves(node, at=""):
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in items:
        yield from leaves(item, f"{at}{key}.")
    if isinstance(node, int | float) and not isinstance(node, bool):
        yield at[:-1]


@pytest.mark.parametrize("experiments", [0, 1, 2])
def test_every_number_of_a_result_may_be_expected(tmp_path, experiments):
    """No scene is refused for a number that its result has."""
    write_csv(
        tmp_path / "r.csv",
        Recording(("m",), [0.0, 0.02], [[[0, 0, 1]], [[0.02, 0, 1]]], [[True], [True]], ""),
    )
    recording = {"file": str(tmp_path / "r.csv"), "markers": {"m": "free corner"}}
    raw = {**SCENE, "recording": recording, "objective": [{"type": "markers"}]}
    raw["experiments"] = [{"name": f"e{k}"} for k in range(experiments)]
    scene = scene_from_dict(raw)
    full = scene.full()
    simulated = simulate_scene(scene, RunFolder(tmp_path / "s"))
    known = dict(_flat(_simulated(full)))
    found = [path for path in leaves(json.loads(json.dumps(simulated)))]
    assert len(found) > 40 and [path for path in found if not _names(path, known)] == []
    optimized = optimize_scene(scene, RunFolder(tmp_path / "o"))
    wholes = {name: item.full() for name, item in experiment_scenes(scene).items()} if experiments else {}
    labels = list(optimized["parameters"])
    known = dict(_flat(_optimized(scene, full, wholes, labels)))
    found = [path for path in leaves(json.loads(json.dumps(optimized)))]
    assert len(found) > 60 and [path for path in found if not _names(path, known)] == []
    scene_from_dict({**raw, "expect": {"optimize": {path: {"min": 0} for path in found}}})
