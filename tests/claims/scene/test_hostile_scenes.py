"""Scenes of somebody who means no good, or has slipped: one clear error at once, and names are only names."""

import copy
import json
import os
import time

import numpy as np
import pytest
from fuzz.seeds import RIGID, SMALL, SOFT, write_files

import add.scene.read.reader as reader
from add.adjoint import Checkpoints
from add.errors import InputError
from add.scene import apply_overrides, experiment_scenes, load_scene, scene_from_dict
from add.scene.build import sizes
from add.scene.build.sizes import require_room_on_disk, require_room_to_run
from add.scene.read.paths import path_slots
from add.scene.spec.roles import json_schema


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    return tmp_path


def write(folder, raw, name="scene.json"):
    path = folder / name
    path.write_text(raw if isinstance(raw, str) else json.dumps(raw))
    return path


def changed(raw, **sections):
    return copy.deepcopy(raw) | sections


# --- names: paths of meshes are found by the places of the format ----------------------------------------------------

NAMES = ("markers", "expect", "parameters", "optimizer", "file", "mesh", "recording", "overrides")


def named(name):
    """A scene with a soft and a rigid body of odd names, whose meshes lie beside it, and an experiment with others."""
    raw = {key: copy.deepcopy(SOFT[key]) for key in ("schema", "time", "obstacles")}
    rigid = copy.deepcopy(RIGID["bodies"]["expect"])
    material = SOFT["bodies"]["block"]["material"]
    soft = {"type": "soft", "mesh": {"file": "box.msh"}, "material": material, "position": [0, 0, 1]}
    raw["bodies"] = {name: soft, f"{name} 2": rigid}
    raw["parameters"] = [{"path": f"bodies.{name}.position", "components": [2]}]
    raw["markers"] = {name: {"body": name, "point": [0, 0, 0]}}
    raw["objective"] = [{"type": "point", "marker": name, "target": [0, 0, 0], "time": "end"}]
    overrides = {f"bodies.{name}.mesh.file": "other.msh", f"bodies.{name} 2.geometry": {"file": "other.stl"}}
    raw["experiments"] = [{"name": "first"}, {"name": "second", "overrides": overrides}]
    return raw


@pytest.mark.parametrize("name", NAMES)
def test_bodies_of_any_name_find_their_meshes(here, monkeypatch, name):
    folder = here / "scenes"
    folder.mkdir()
    for old, new in (
        ("box.msh", "box.msh"),
        ("cube.stl", "cube.stl"),
        ("box.msh", "other.msh"),
        ("cube.stl", "other.stl"),
    ):
        (folder / new).write_bytes((here / old).read_bytes())
    (here / "box.msh").unlink()
    (here / "cube.stl").unlink()
    scene = load_scene(write(folder, named(name)))
    assert scene.bodies[name].mesh.file == str(folder / "box.msh")
    assert scene.bodies[f"{name} 2"].geometry.file == str(folder / "cube.stl")
    scene.build()
    second = experiment_scenes(scene)["second"].bodies
    assert second[name].mesh.file == str(folder / "other.msh")
    assert second[f"{name} 2"].geometry.file == str(folder / "other.stl")
    # The scene as a run froze it, read from elsewhere.
    frozen = load_scene(write(here, scene.raw, "frozen.json"))
    assert frozen == scene
    again = apply_overrides(frozen, {f"bodies.{name}.mesh": {"file": str(folder / "other.msh")}})
    assert again.bodies[name].mesh.file == str(folder / "other.msh")


def test_every_path_of_the_format_is_found():
    """A new path in the format needs its place among the patterns."""
    schema, found = json_schema(), set()

    def visit(node, path, seen):
        if isinstance(node, list):
            for item in node:
                visit(item, path, seen)
        if not isinstance(node, dict):
            return
        if node.get("format") == "path":
            found.add(path)
        if "$ref" in node and node["$ref"] not in seen:
            visit(schema["$defs"][node["$ref"].rsplit("/", 1)[-1]], path, (*seen, node["$ref"]))
        for key, item in node.get("properties", {}).items():
            visit(item, (*path, key), seen)
        for key in ("items", "prefixItems", "anyOf", "oneOf"):
            visit(node.get(key), path if key in ("anyOf", "oneOf") else (*path, 0), seen)
        for item in [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]:
            visit(item, (*path, "name"), seen)

    visit(schema, (), ())
    assert found, "the schema marks paths"
    for path in found:
        raw = "file"
        for key in reversed(path):
            raw = [raw] if isinstance(key, int) else {key: raw}
        assert [place for *_, place in path_slots(raw)] == [".".join(map(str, path))]


def test_words_that_look_like_paths_are_left_alone(here):
    raw = changed(SMALL, description="x", expect={"simulate": {"markers.file.final.0": {"value": 1}}})
    raw["markers"]["file"] = {"body": "box", "point": [0, 0, 0]}
    assert load_scene(write(here, raw)).raw["markers"]["file"] == {"body": "box", "point": [0, 0, 0]}


# --- what is too much ------------------------------------------------------------------------------------------------


@pytest.fixture
def soon():
    """A minute of this process's own time, which other work on the machine does not use."""
    begin = time.process_time()
    yield
    assert time.process_time() - begin < 60.0


def test_a_scene_with_five_million_entries(here, soon):
    raw = changed(SMALL, signals={"a": {"type": "table", "times": [], "values": []}})
    text = json.dumps(raw).replace('"values": []', '"values": [' + "0," * 5_000_000 + "0]")
    with pytest.raises(InputError, match="too many entries"):
        load_scene(write(here, text))
    with (here / "giant.json").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(InputError, match=r"giant\.json: too large"):
        load_scene(here / "giant.json")


@pytest.mark.parametrize("n", [70, 900, 50_000])
def test_deep_nesting(here, soon, n):
    text = json.dumps(SMALL)[:-1] + ', "description": ' + "[" * n + "]" * n + "}"
    with pytest.raises(InputError, match="nested too deeply"):
        load_scene(write(here, text))
    if n < 1000:
        deep = 0
        for _ in range(n):
            deep = [deep]
        with pytest.raises(InputError, match="nested too deeply"):
            scene_from_dict(SMALL | {"description": deep})
        with pytest.raises(InputError, match="nested too deeply"):
            apply_overrides(scene_from_dict(SMALL), {"bodies.box.position": deep})


def test_many_of_everything_are_looked_at_once(here, soon):
    """Names that appear twice, names that are none, keys that are none: a hundred thousand of each."""
    n = 50_000
    raw = changed(SMALL)
    raw["contact"]["pairs"] = [{"body": "box", "obstacle": f"o{i}"} for i in range(n)]
    with pytest.raises(InputError, match=r"and [0-9]+ more"):
        load_scene(write(here, raw))
    raw = changed(SMALL) | {f"key{i}": 0 for i in range(n)}
    with pytest.raises(InputError, match="unknown key"):
        load_scene(write(here, raw))
    text = json.dumps(SMALL)[:-1] + ', "optimizer": {' + '"a": 0,' * n + '"b": 0, "b": 1}}'
    with pytest.raises(InputError, match="appears twice"):
        load_scene(write(here, text))
    raw = changed(SMALL, experiments=[{"name": "a"}] * n)
    with pytest.raises(InputError, match="too many experiments"):
        load_scene(write(here, raw))
    raw = changed(SMALL, experiments=[{"name": "a"}] * 2000)
    with pytest.raises(InputError, match="the name 'a' appears twice"):
        load_scene(write(here, raw))


def test_numbers_that_no_array_can_hold(here):
    for path, value in (
        ("optimizer.history", 2000), ("optimizer.max_evaluations", 10**30), ("time.steps", 10**30),
        ("time.newton", {"max_iterations": 10**30}), ("output.every", 10**30),
    ):  # fmt: skip
        raw, (section, key) = changed(SMALL), path.split(".")
        raw[section] = raw.get(section, {}) | {key: value}
        with pytest.raises(InputError, match=path):
            load_scene(write(here, raw))


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["name", "description", "bodies.x.type"])
def test_lone_surrogates(here, place):
    raw = changed(SMALL)
    node = raw if "." not in place else raw["bodies"]["box"]
    node[place.rpartition(".")[2]] = "\ud800"
    with pytest.raises(InputError, match="a lone surrogate"):
        load_scene(write(here, raw))
    with pytest.raises(InputError, match="a lone surrogate"):
        scene_from_dict(raw)


def test_keys_with_lone_surrogates(here):
    with pytest.raises(InputError, match="a lone surrogate"):
        load_scene(write(here, SMALL | {"\udfff": 1}))


@pytest.mark.parametrize("key", ["<b>", "<soft>", "", "[key]"])
def test_keys_that_look_like_tags(here, key):
    raw = changed(SMALL)
    raw["bodies"]["box"][key] = 1
    with pytest.raises(InputError, match="unknown key"):
        load_scene(write(here, raw))


def test_what_is_in_variables_is_not_said(here, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2")
    raw = changed(SOFT)
    raw["bodies"]["markers"]["mesh"]["file"] = "${SECRET}/a.msh"
    with pytest.raises(InputError) as caught:
        load_scene(write(here, raw))
    assert "${SECRET}/a.msh" in str(caught.value) and "hunter2" not in str(caught.value)
    (here / "hunter2").mkdir()
    with pytest.raises(InputError) as caught:
        load_scene(write(here, raw))
    assert "hunter2" not in str(caught.value)


def test_a_folder_whose_name_looks_like_a_variable(here):
    """The path would be filled in once more when the frozen scene is read."""
    folder = here / "${HOME}"
    folder.mkdir()
    write_files(folder)
    with pytest.raises(InputError, match="stands for a variable"):
        load_scene(write(folder, SOFT))


# --- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "a\0b", "x" * 5000, "."])
def test_paths_to_no_file(here, soon, name):
    os.mkfifo(here / "pipe")
    raw = changed(SOFT)
    raw["bodies"]["markers"]["mesh"]["file"] = name
    with pytest.raises(InputError, match=r"bodies\.markers\.mesh\.file: (this is a|there is no such file)"):
        load_scene(write(here, raw))
    with pytest.raises(InputError):
        load_scene(here / name)


# --- memory ----------------------------------------------------------------------------------------------------------

HUGE = {
    "box": {"shape": "box", "size": [1, 1, 1], "divisions": [1000, 1000, 1000]},
    "box of a billion": {"shape": "box", "size": [1, 1, 1], "divisions": [10**9, 10**9, 10**9]},
    "sphere": {"shape": "sphere", "radius": 1, "edge": 1e-4},
    "sphere of a tiny edge": {"shape": "sphere", "radius": 1e60, "edge": 1e-59},
    "cylinder": {"shape": "cylinder", "radius": 1, "height": 1, "edge": 1e-4},
    "torus": {"shape": "torus", "major_radius": 1, "minor_radius": 0.1, "edge": 1e-5},
}


@pytest.mark.parametrize("shape", HUGE)
def test_meshes_that_no_memory_holds(here, soon, shape):
    raw = changed(SOFT)
    raw["bodies"]["block"] |= {"mesh": HUGE[shape], "element": "tet4"}
    with pytest.raises(
        InputError, match=r"scene\.json: bodies\.block\.mesh: .* needs about .* GB of memory.*found .* free"
    ):
        load_scene(write(here, raw)).build()


def test_sheets_and_crowds_that_no_memory_holds(here, soon, monkeypatch):
    raw = changed(RIGID, experiments=[])
    raw["bodies"]["net"]["mesh"]["divisions"] = [10**6, 10**6]
    with pytest.raises(InputError, match=r"bodies\.net\.mesh.*1e\+12 nodes"):
        load_scene(write(here, raw)).build()
    monkeypatch.setattr(sizes, "available_memory", lambda: 1e9)
    raw = changed(SMALL)
    box = raw["bodies"]["box"]
    raw["bodies"] = {f"b{i}": box | {"contact": {"class": f"c{i}"}} for i in range(500)} | raw["bodies"]
    with pytest.raises(InputError, match=r"bodies: .*contact tables of 2\.52e\+05 pairs"):
        load_scene(write(here, raw)).build()


def test_meshes_of_files_count_too(here, monkeypatch):
    scene = load_scene(write(here, SOFT))
    monkeypatch.setattr(sizes, "available_memory", lambda: 6.5e4)  # enough for what is known before the file is read
    with pytest.raises(InputError, match=r"bodies\.markers\.mesh: .*6 tet4 elements"):
        scene.build()


def test_runs_that_no_memory_or_disk_holds(here, monkeypatch):
    raw = changed(SMALL)
    raw["time"]["steps"] = 10**9
    built = load_scene(write(here, raw)).build()
    with pytest.raises(InputError, match=r"time: this run needs about .* GB of memory.*1e.09 steps"):
        require_room_to_run(built.simulation)
    require_room_to_run(built.simulation, Checkpoints())
    monkeypatch.setattr(sizes, "free_disk", lambda folder: 1e9)
    with pytest.raises(InputError, match=r"output\.every: the trajectory .* on the disk"):
        require_room_on_disk(built.simulation, here, 1)
    require_room_on_disk(built.simulation, here, 10**6)


def test_estimates_are_not_above_what_is_taken(here):
    """A scene that would run is not refused: arrays that a small model holds take more than its estimate."""
    import tracemalloc

    raw = changed(SOFT)
    raw["bodies"]["block"]["mesh"]["divisions"] = [8, 8, 8]
    scene = load_scene(write(here, raw))
    scene.build()  # what is loaded once
    tracemalloc.start()
    scene.build()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sizes._BUILT["hex8"] * 512 < 2.0 * peak
    assert sizes.n_elements(scene.bodies["block"]) == 512


@pytest.mark.parametrize(
    ("mesh", "element"),
    [
        ({"shape": "box", "size": [1, 1, 1], "divisions": [2, 3, 4]}, "tet4"),
        ({"shape": "sphere", "radius": 1, "edge": 0.37}, "tet4"),
        ({"shape": "cylinder", "radius": 1, "height": 3, "edge": 0.5}, "tet10"),
        ({"shape": "torus", "major_radius": 1, "minor_radius": 0.4, "edge": 0.2}, "tet4"),
    ],
)
def test_counts_of_elements(here, mesh, element):
    raw = changed(SOFT)
    raw["bodies"]["block"] |= {"mesh": mesh, "element": element}
    scene = load_scene(write(here, raw))
    made = scene.build().model.bodies[1].mesh.n_elements
    assert np.isclose(sizes.n_elements(scene.bodies["block"]), made, rtol=0.35)


def test_limits_are_far_above_what_scenes_need():
    assert reader.MOST_ENTRIES >= 10**6 and reader.MOST_BYTES >= 2**25
