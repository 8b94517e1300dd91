"""Scene files: what is accepted, and what the errors about the rest say."""

import copy
import json
import re
from pathlib import Path

import pytest

from add.errors import InputError
from add.scene import apply_overrides, experiment_scenes, load_scene, scene_from_dict
from add.scene.read.paths import get_value
from add.scene.read.reader import set_value
from add.scene.spec.material_laws import MaterialSpec
from add.scene.spec.scene import SceneSpec, TimeSpec

HERE = Path(__file__).parent
GOOD = json.loads((HERE / "good.json").read_text(encoding="utf-8"))
DELETE = object()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ball.msh").write_text("")
    (tmp_path / "ball.csv").write_text("")
    return tmp_path


def write(folder, raw):
    path = folder / "scene.json"
    path.write_text(raw if isinstance(raw, str) else json.dumps(raw), encoding="utf-8")
    return path


def changed(*edits):
    """The good scene with (path, value) edits; DELETE removes a key."""
    raw = copy.deepcopy(GOOD)
    for path, value in edits:
        *parents, last = path.split(".")
        node = raw
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node[key]
        if value is DELETE:
            del node[last]
        else:
            node[int(last) if isinstance(node, list) else last] = value
    return raw


# --- good scenes -------------------------------------------------------------------------------------------------


def test_good_scene_round_trip(folder):
    scene = load_scene(write(folder, GOOD))
    assert scene.bodies["ball"].material.young == 2e4
    assert scene.time.n_steps == 50
    assert scene.raw["bodies"]["ball"]["mesh"]["file"] == str(folder / "ball.msh")
    assert scene.raw["experiments"][1]["recording"]["file"] == str(folder / "ball.csv")
    again = load_scene(write(folder, scene.full()))
    assert again == scene
    assert load_scene(write(folder, scene.raw)) == scene
    assert SceneSpec.model_validate_json(scene.model_dump_json(by_alias=True)) == scene


def test_trees_with_their_defaults_are_read_again(folder):
    """Keys that go with a robot's file, soft limits or a drive of one's own stand at their defaults and say nothing."""
    box = {"geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}}
    arm = {"type": "articulated", "links": {"a": {"mass": 1, "shapes": [box]}}, "joints": {"a": {"upper": 1}}}
    tree = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 5}, "bodies": {"arm": arm}}
    hard = {"bodies": {"arm": arm | {"limits": "hard"}}, "contact": {"friction_law": "impulse"},
            "time": {"dt": 0.01, "steps": 5, "integrator": "bdf1"}}  # fmt: skip
    for raw in (tree, tree | hard):
        scene = load_scene(write(folder, raw))
        assert load_scene(write(folder, scene.full())).full() == scene.full()
    arm["up"] = "y"
    with pytest.raises(InputError, match=r"bodies.arm.up: goes with 'model'"):
        load_scene(write(folder, tree))


def test_from_dict_does_not_change_its_argument(folder):
    raw = copy.deepcopy(GOOD)
    assert scene_from_dict(raw, folder=folder).name == "ball"
    assert raw == GOOD


def test_byte_order_mark_is_fine(folder):
    path = folder / "scene.json"
    path.write_text(json.dumps(GOOD), encoding="utf-8-sig")
    assert load_scene(path).name == "ball"


def test_spec_is_frozen(folder):
    scene = load_scene(write(folder, GOOD))
    with pytest.raises(ValueError, match="frozen"):
        scene.gravity = (0, 0, 0)


@pytest.mark.parametrize(
    ("dt", "duration", "n"), [(0.1, 0.3, 3), (0.01, 0.5, 50), (0.1, 0.31, 4), (0.5, 0.5, 1), (0.1, 0.3 + 1e-12, 3)]
)
def test_duration_rounds_up_to_whole_steps(dt, duration, n):
    assert TimeSpec(dt=dt, duration=duration).n_steps == n


def test_moduli_of_a_material():
    hooke = {"mu": 1, "lambda": 2, "density": 1}
    material = MaterialSpec(**hooke)
    assert (material.model, material.modulus("mu"), material.modulus("lambda")) == ("neo-hookean", 1.0, 2.0)
    assert MaterialSpec(model="stvk", young=1.0, poisson=0.25, density=1).modulus("young") == 1.0


def test_environment_variable_in_a_path(folder, monkeypatch):
    monkeypatch.setenv("ADD_TEST_DATA", str(folder))
    raw = changed(("recording.file", "${ADD_TEST_DATA}/ball.csv"), ("name", "${ADD_TEST_DATA}"))
    scene = load_scene(write(folder, raw))
    assert scene.raw["recording"]["file"] == str(folder / "ball.csv")
    assert scene.name == "${ADD_TEST_DATA}"


def test_relative_environment_variable(folder, monkeypatch):
    """It was set where the command runs; within a path it only names a folder, and the path counts from the scene."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("ADD_TEST_DATA", "..")
    scene = load_scene(write(folder, changed(("recording.file", "${ADD_TEST_DATA}/ball.csv"))))
    assert scene.raw["recording"]["file"] == str(folder / "ball.csv")
    monkeypatch.setenv("ADD_TEST_DATA", "elsewhere")
    scene = load_scene(write(folder, changed(("recording.file", "./${ADD_TEST_DATA}/../ball.csv"))))
    assert scene.raw["recording"]["file"] == str(folder / "ball.csv")


# --- paths, overrides, experiments -------------------------------------------------------------------------------


def test_get_and_set_value(folder):
    full = load_scene(write(folder, GOOD)).full()
    assert get_value(full, "bodies.block.material.viscosity") == 0.0
    assert get_value(full, "objective.4.weight") == 0.1
    raw = copy.deepcopy(GOOD)
    set_value(raw, "objective.4.weight", 2)
    set_value(raw, "contact.onset", 1e-3)
    set_value(raw, "bodies.block.position.2", 3, full)
    assert raw["objective"][4]["weight"] == 2
    assert raw["contact"]["onset"] == 1e-3
    assert raw["bodies"]["block"]["position"] == [0.0, 0.0, 3]


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("bodies.bal.material.young", "did you mean 'bodies.ball.material.young'"),
        ("objective.9.weight", "5 entries"),
        ("gravity.x", "3 entries"),
        ("bodies.block.element.name", "'bodies.block.element' is not given"),
        ("name.first", "has no parts"),
        ("", "the scene has no ''"),
    ],
)
def test_get_value_says_what_is_missing(folder, path, word):
    full = load_scene(write(folder, GOOD)).full()
    with pytest.raises(InputError, match=re.escape(word)):
        get_value(full, path)


def test_overrides(folder):
    scene = load_scene(write(folder, GOOD))
    new = apply_overrides(scene, {"bodies.ball.material.young": 3e4, "time.duration": None, "time.steps": 60})
    assert new.bodies["ball"].material.young == 3e4
    assert new.time.n_steps == 60
    assert scene.bodies["ball"].material.young == 2e4
    assert apply_overrides(scene, {}) == scene


def test_override_file_is_relative_to_the_scene(folder):
    (folder / "other.msh").write_text("")
    new = apply_overrides(load_scene(write(folder, GOOD)), {"bodies.ball.mesh.file": "other.msh"})
    assert new.bodies["ball"].mesh.file == str(folder / "other.msh")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"bodies.ball.material.yung": 1}, ["overrides.bodies.ball.material.yung", "did you mean", "material.young'"]),
        ({"bodies.ball.material.young": -1}, ["bodies.ball.material.young", "above 0"]),
        ({"contact.friction": "high"}, ["contact.friction", "a number"]),
    ],
)
def test_bad_overrides(folder, overrides, words):
    scene = load_scene(write(folder, GOOD))
    with pytest.raises(InputError) as error:
        apply_overrides(scene, overrides)
    for word in [str(folder / "scene.json"), *words]:
        assert word in str(error.value)


def test_experiment_scenes(folder):
    scenes = experiment_scenes(load_scene(write(folder, GOOD)))
    assert list(scenes) == ["low", "high"]
    assert scenes["low"].bodies["ball"].position == (0.0, 0.0, 0.5)
    assert scenes["high"].bodies["ball"].position == (0.0, 0.0, 2.0)
    assert scenes["low"].recording.unit == "mm"
    assert scenes["high"].recording.unit is None
    assert scenes["high"].contact.friction == 0.2
    # Priors stay, so that the others keep their numbers.
    assert [len(scene.objective) for scene in scenes.values()] == [5, 5]
    assert not scenes["high"].experiments


def test_scene_without_experiments_is_its_own(folder):
    raw = changed(("experiments", []), ("parameters", []), ("objective", []), ("optimizer", {}))
    scene = load_scene(write(folder, raw))
    assert experiment_scenes(scene) == {"scene": scene}


# --- bad files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("array.json", ["top level"]),
        ("duplicate_key.json", ["bodies.ball", "twice"]),
        ("nan.json", ["gravity.2", "not a finite number", "NaN"]),
        ("infinity.json", ["time.dt", "-Infinity"]),
        ("syntax.json", ["line 3 column 1", "not JSON"]),
        ("empty.json", ["the file is empty"]),
        ("latin1.json", ["line 2", "UTF-8", "0xe9"]),
        ("no_schema.json", ["schema", "missing", "add-scene/1"]),
        ("misspelt_schema.json", ["schema", "did you mean 'schema' where it says 'shema'"]),
        ("version_2.json", ["schema", '"add-scene/2"', "known are add-scene/1"]),
        ("version_number.json", ["schema", "found 1"]),
        ("does_not_exist.json", ["no such file"]),
    ],
)
def test_bad_files(name, words):
    path = HERE / "bad" / name
    with pytest.raises(InputError) as error:
        load_scene(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("[" * 100_000, ["nested too deeply"]), ('{"name": ' + "1" * 5000 + "}", ["not JSON", "digits"])],
    ids=["deep", "huge integer"],
)
def test_texts_that_break_a_parser(folder, text, words):
    path = write(folder, text)
    with pytest.raises(InputError) as error:
        load_scene(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_folder_is_no_scene(tmp_path):
    with pytest.raises(InputError, match="this is a folder"):
        load_scene(tmp_path)


# --- bad scenes ----------------------------------------------------------------------------------------------------

BALL = "bodies.ball"
MATERIAL = "bodies.ball.material"
LIKE = "did you mean "
# (what is changed, place in the error, characteristic words)
BAD = [
    # keys and types
    ([("gravitiy", [0, 0, 0])], "gravitiy", LIKE + "'gravity'"),
    ([("time.dT", 1)], "time.dT", LIKE + "'dt'"),
    ([(f"{MATERIAL}.young", DELETE), (f"{MATERIAL}.yuong", 1)], f"{MATERIAL}.yuong", LIKE + "'young'"),
    ([("bodies.block.mesh.sizes", 1)], "bodies.block.mesh.sizes", LIKE + "'size'"),
    ([("obstacles.floor.norml", 1)], "obstacles.floor.norml", LIKE + "'normal'"),
    ([("contact.restitution", 0.5)], "contact.restitution", LIKE + "'contact.pairs.0.restitution'"),
    ([("time", DELETE)], "time", "missing"),
    ([(f"{MATERIAL}.density", DELETE)], f"{MATERIAL}.density", "kg/m^3"),
    ([("time.dt", "0.01")], "time.dt", 'found "0.01"; expected a number'),
    ([("time.dt", True)], "time.dt", "found true"),
    ([("time.dt", None)], "time.dt", "found null"),
    ([("gravity", [0, 0])], "gravity", "3 entries"),
    ([("gravity", [0, 0, 0, 0])], "gravity", "at most 3"),
    ([("gravity", 9.81)], "gravity", "a list"),
    ([("gravity.1", "down")], "gravity.1", "a number: acceleration of gravity"),
    ([("bodies", [])], "bodies", "an object"),
    ([("bodies", {})], "bodies", "at least 1"),
    ([(BALL, None)], BALL, "an object"),
    ([("bodies.a/b", GOOD["bodies"]["block"])], "bodies.a/b", "no dots"),
    ([(f"{BALL}.mean_dilatation", 1)], f"{BALL}.mean_dilatation", "true or false"),
    ([("output.every", 1.5)], "output.every", "a whole number"),
    ([("output.every", 0)], "output.every", "at least 1"),
    ([("name", 3)], "name", "a string"),
    # unions mention the right branch alone
    ([("bodies.block.mesh.shape", "bxo")], "bodies.block.mesh.shape", LIKE + "'box'"),
    ([("bodies.block.mesh.shape", DELETE)], "bodies.block.mesh", "'file', 'surface' or 'shape'"),
    ([("bodies.block.mesh.size.1", -1)], "bodies.block.mesh.size.1", "above 0: edge lengths"),
    ([("bodies.block.mesh.divisions", [1, 2, 0])], "bodies.block.mesh.divisions.2", "at least 1"),
    ([("bodies.block.mesh", "box.msh")], "bodies.block.mesh", "an object with 'file', 'surface' or 'shape'"),
    ([(f"{BALL}.type", "sfot")], f"{BALL}.type", LIKE + "'soft'"),
    ([(f"{BALL}.type", "rubber")], f"{BALL}.type", "'soft'"),
    ([(f"{BALL}.element", "tet5")], f"{BALL}.element", "'tet10'"),
    ([("obstacles.floor.shape", "plan")], "obstacles.floor.shape", LIKE + "'plane'"),
    ([("obstacles.bar.radius", 0)], "obstacles.bar.radius", "above 0"),
    ([("obstacles.bar.half_length", DELETE)], "obstacles.bar.half_length", "missing"),
    ([("signals.wave.type", "cosine")], "signals.wave.type", LIKE + "'sine'"),
    ([("objective.0", {"type": "marker"})], "objective.0.type", LIKE + "'markers'"),
    ([("objective.0", {"tpye": "markers"})], "objective.0.tpye", LIKE + "'type'"),
    ([("objective.0", {})], "objective.0.type", "missing"),
    ([("markers.top", {"body": "ball", "pont": [0, 0, 0]})], "markers.top", LIKE + "'point'"),
    ([(f"{BALL}.pins.0.where", {"sphere": {"center": [0, 0, 0]}})], f"{BALL}.pins.0.where.sphere.radius", "missing"),
    ([(f"{BALL}.pins.0.where", {"nodes": [1, 1]})], f"{BALL}.pins.0.where.nodes", "1 appears twice"),
    ([(f"{BALL}.pins.0.where", {"nodes": [-1]})], f"{BALL}.pins.0.where.nodes.0", "at least 0"),
    ([(f"{BALL}.pins.0.where", {"surface": False})], f"{BALL}.pins.0.where.surface", "only true"),
    ([(f"{BALL}.pins.0.where.box.max", [0, 0, 0])], f"{BALL}.pins.0.where.box", "empty along z"),
    ([(f"{BALL}.pins.0.axes", "xw")], f"{BALL}.pins.0.axes", "any of x, y, z"),
    ([(f"{BALL}.pins.0.axes", "xx")], f"{BALL}.pins.0.axes", "appears twice"),
    ([(f"{BALL}.pins.0.axes", "")], f"{BALL}.pins.0.axes", "any of x, y, z"),
    ([(f"{BALL}.loads.0.force", 3)], f"{BALL}.loads.0.force", '[x, y, z] or {"signal": name}'),
    ([(f"{BALL}.loads.0.force", {"signl": "wave"})], f"{BALL}.loads.0.force.signl", LIKE + "'signal'"),
    ([("objective.1.time", "start")], "objective.1.time", "'end'"),
    ([("objective.1.time", [0])], "objective.1.time", '"end"'),
    # values
    ([(f"{MATERIAL}.poisson", 0.5)], f"{MATERIAL}.poisson", "0.5 is incompressible"),
    ([(f"{MATERIAL}.poisson", -1)], f"{MATERIAL}.poisson", "above -1"),
    ([(f"{MATERIAL}.mu", 1e4)], MATERIAL, "'mu' and 'poisson' and 'young'"),
    ([(f"{MATERIAL}.young", DELETE)], MATERIAL, "'young' and 'poisson', or 'mu' and 'lambda'"),
    ([("bodies.block.material.lambda", -1e4)], "bodies.block.material.lambda", "bulk modulus"),
    ([(f"{MATERIAL}.density", 0)], f"{MATERIAL}.density", "above 0"),
    ([(f"{MATERIAL}.viscosity", -0.1)], f"{MATERIAL}.viscosity", "at least 0"),
    ([(f"{BALL}.orientation", [1, 1, 0, 0])], f"{BALL}.orientation", "length 1 within 1e-6"),
    ([(f"{BALL}.point_masses.0.at", DELETE)], f"{BALL}.point_masses.0", "exactly one of 'at' or 'where'"),
    ([("obstacles.floor.normal", [0, 0, 0])], "obstacles.floor.normal", "must not be zero"),
    ([("time.steps", 50)], "time", "exactly one of 'duration' or 'steps'"),
    ([("time.duration", DELETE)], "time", "exactly one"),
    ([("time.dt", 1e-12)], "time", "more than 1e9 steps"),
    ([("time.dt", 0.6)], "time.dt", "longer than the duration (found 0.6 s; expected at most 0.5 s)"),
    ([("time.newton", {"atol": 0, "rtol": 0})], "time.newton", "must be above 0"),
    ([("signals.shake.times", [0, 0.2, 0.1])], "signals.shake.times.2", "must increase"),
    ([("signals.shake.times", [0, 0.2])], "signals.shake.values", "as many values as times"),
    ([("markers.mean.weights", [1])], "markers.mean.weights", "as many weights"),
    ([("markers.mean.weights", [1, -1, 0])], "markers.mean.weights", "sum to zero"),
    ([("recording.crop", [0.2, 0.1])], "recording.crop", "start before it ends"),
    ([("recording.register.markers", {"M1": [0, 0, 0]})], "recording.register.markers", "at least 3"),
    ([("recording.unit", "inch")], "recording.unit", "'mm'"),
    ([("objective.2.time", 0.1)], "objective.2", "exactly one of 'time' or 'window'"),
    ([("objective.3.positions_file", "ball.csv")], "objective.3", "exactly one of 'positions_file'"),
    ([("expect.simulate.steps", {"abs_tol": 1})], "expect.simulate.steps", "nothing is expected"),
    ([("optimizer.phases.0.end_time", 0.1)], "optimizer.phases.0.end_time", "not both"),
    ([("parameters.0.paths", ["gravity"])], "parameters.0", "exactly one of 'path' or 'paths'"),
    ([("parameters.0.bounds", [2, 1])], "parameters.0.bounds", "below the upper"),
    ([("parameters.0.bounds", [-1, 1e6])], "parameters.0.bounds.0", "positive bounds"),
    # names that refer to others
    ([(f"{BALL}.pins.0.motion.signal", "shaek")], f"{BALL}.pins.0.motion.signal", LIKE + "'shake'"),
    ([("contact.pairs.0.body", "bal")], "contact.pairs.0.body", LIKE + "'ball'"),
    ([("contact.pairs.0.obstacle", "wall")], "contact.pairs.0.obstacle", "'floor' or 'bar'"),
    ([("contact.pairs", [{"body": "ball", "obstacle": "bar"}] * 2)], "contact.pairs.1", "appears twice"),
    ([("markers.top.body", "Ball")], "markers.top.body", LIKE + "'ball'"),
    ([("recording.markers.M1", "tip")], "recording.markers.M1", LIKE + "'top'"),
    ([("recording.mask.0.marker", "M9")], "recording.mask.0.marker", "'M1' or 'M.2'"),
    ([("objective.1.marker", "tops")], "objective.1.marker", LIKE + "'top'"),
    ([("objective.3.body", "blok")], "objective.3.body", LIKE + "'block'"),
    ([("objective.4.parameter", "gravity")], "objective.4.parameter", LIKE + "'gravity.2'"),
    ([("optimizer.phases.0.parameters", ["gravity.1"])], "optimizer.phases.0.parameters.0", LIKE + "'gravity.2'"),
    ([("optimizer.phases.1.name", "first")], "optimizer.phases.1.name", "twice"),
    ([("recording", DELETE), ("experiments", [])], "objective.0", "needs a recording"),
    # times inside the run
    ([("objective.2.window", [0.1, 0.6])], "objective.2.window", "within [0, 0.5] s"),
    ([("objective.3.time", 0.7)], "objective.3.time", "outside the simulated time"),
    ([("recording.crop", [-0.1, 0.2])], "recording.crop", "outside"),
    ([("optimizer.phases.1.end_time", 0.51)], "optimizer.phases.1.end_time", "outside"),
    # parameters
    ([("parameters.0.path", "bodies.ball.material.yung")], "parameters.0.path", LIKE + "'bodies.ball.material.young'"),
    ([("parameters.0.path", "bodies.ball.material.mu")], "parameters.0.path", "no value in the scene"),
    ([("parameters.0.path", "bodies.ball.material.model")], "parameters.0.path", "is not a number"),
    ([("parameters.0.path", "bodies.ball.material")], "parameters.0.path", "is not a number"),
    ([("parameters.0.path", "bodies.block.mesh.divisions")], "parameters.0.path", "whole numbers"),
    ([("parameters.0.path", "time.dt")], "parameters.0.path", "'time' cannot be parameters"),
    ([("parameters.0.path", "gravity.3")], "parameters.0.path", "3 entries"),
    ([("parameters.1.components", [3])], "parameters.1.components", "at most 2"),
    ([("parameters.1.components", [0, 0])], "parameters.1.components", "twice"),
    ([("parameters.1.start", [1])], "parameters.1.start", "wrong length"),
    ([("parameters.1.start", "now")], "parameters.1.start", "a number or a list"),
    ([("parameters.1.experiment", "lo")], "parameters.1.experiment", LIKE + "'low'"),
    ([("parameters.0.start", 10)], "parameters.0.start", "outside the bounds"),
    ([("parameters.0.bounds", [3e4, 1e6])], "parameters.0.start", "outside the bounds"),
    ([("parameters.2.transform", "log"), ("parameters.2.bounds", None)], "parameters.2.start", "a positive value"),
    ([("parameters.3.start", None)], "parameters.3.start", "the scene's differ"),
    ([("parameters.3.paths", ["gravity.1", "bodies.block.position"])], "parameters.3.paths", "different lengths"),
    ([("parameters.3.paths", ["gravity.2", "gravity.2"])], "parameters.3.paths", "twice"),
    ([("parameters.3.paths.1", "bodies.ball.material.young")], "parameters.3.paths.1", "another parameter"),
    ([("parameters.4", {"path": "gravity"})], "parameters.4.path", "another parameter"),
    ([("parameters.4", {"path": "gravity", "components": [1, 2]})], "parameters.4.path", "another parameter"),
    ([("parameters.4", {"path": "contact.friction"})], "parameters.4.path", "experiment 'high' overrides"),
    ([("parameters.4", {"path": "bodies.ball.position"})], "parameters.4.path", "overrides 'bodies.ball.position'"),
    # experiments
    ([("experiments.1.name", "low")], "experiments.1.name", "twice"),
    (
        [("experiments.0.overrides", {"bodies.bal.position": 1})],
        "experiments.0.overrides",
        LIKE + "'bodies.ball.position'",
    ),
    ([("experiments.0.overrides", {"parameters.0.start": 1})], "experiments.0.overrides", "all share it"),
    ([("experiments.0.overrides", {"time.dt": -1})], "experiments.0", "time.dt: impossible value"),
    ([("experiments.0.overrides", {"time.duration": 0.25})], "experiments.0", "recording.crop: outside"),
    (
        [("experiments.1.overrides", {"recording.time_offset": 0.1})],
        "experiments.1.overrides.recording.time_offset",
        "has a recording of its own",
    ),
    ([("experiments.1.recording.markers.M1", "to")], "experiments.1.recording.markers.M1", LIKE + "'top'"),
    # files
    ([(f"{BALL}.mesh.file", "bal.msh")], f"{BALL}.mesh.file", LIKE + "'ball.msh'"),
    ([(f"{BALL}.mesh.file", ".")], f"{BALL}.mesh.file", "a folder"),
    ([(f"{BALL}.mesh.file", "/tmp")], f"{BALL}.mesh.file", '(found "/tmp")'),
    ([("recording.file", "${ADD_NOT_SET}/ball.csv")], "recording.file", "variable ADD_NOT_SET is not set"),
    ([("experiments.1.recording.file", "none.csv")], "experiments.1", "recording.file: there is no such file"),
]


@pytest.mark.parametrize(("edits", "place", "word"), BAD, ids=[f"{k}-{case[1]}" for k, case in enumerate(BAD)])
def test_bad_scene(folder, monkeypatch, edits, place, word):
    monkeypatch.delenv("ADD_NOT_SET", raising=False)
    path = write(folder, changed(*edits))
    with pytest.raises(InputError) as error:
        load_scene(path)
    text = str(error.value)
    line = next((line for line in text.splitlines() if line.startswith(f"{path}: {place}")), None)
    assert line is not None, text
    assert word in line
    assert "<" not in text.replace("<=", "").replace(" < ", ""), "a tag of a union shows"


def test_a_folder_is_not_suggested_for_itself(folder):
    with pytest.raises(InputError) as error:
        load_scene(write(folder, changed((f"{BALL}.mesh.file", "/tmp"))))
    assert "did you mean" not in str(error.value)


def test_an_experiment_may_be_shorter_than_the_gradient_check(folder):
    """The check goes to the end of a shorter run."""
    experiments = [
        {"name": "low", "overrides": {"time.duration": duration}, "recording": GOOD["recording"]} for duration in (0.4,)
    ]
    base = [("experiments", experiments), ("parameters", []), ("optimizer", {}), ("objective", [])]
    assert load_scene(write(folder, changed(*base, ("check", {"steps": 40})))).check.steps == 40


def test_infinite_number_by_overflow(folder):
    text = json.dumps(GOOD).replace('"dt": 0.01', '"dt": 1e999')
    with pytest.raises(InputError, match=r"time\.dt: not a finite number"):
        load_scene(write(folder, text))


def test_one_error_lists_a_few_problems(folder):
    raw = changed(
        *((f"{BALL}.{key}", "x") for key in ("position", "velocity", "scale", "mass", "mean_dilatation", "pins"))
    )
    with pytest.raises(InputError) as error:
        load_scene(write(folder, raw))
    lines = str(error.value).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "... and 1 more"
    assert all(line.startswith(str(folder / "scene.json")) for line in lines[:-1])
    assert error.value.file == folder / "scene.json"
    assert error.value.place == "bodies.ball.position"


def test_misspelt_required_key_is_one_problem(folder):
    raw = changed((f"{MATERIAL}.density", DELETE), (f"{MATERIAL}.densty", 1))
    with pytest.raises(InputError) as error:
        load_scene(write(folder, raw))
    assert len(str(error.value).splitlines()) == 1


def test_a_path_with_a_star_names_a_parameter_for_each():
    """One for every joint that has the number, or one value that all share; a path that names none is an error."""
    arms = {"inertia": [1e-3, 1e-3, 1e-4, 0, 0, 0], "mass": 1.0, "center_of_mass": [0, 0, -0.1]}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 2},
        "bodies": {"arm": {
            "type": "articulated", "links": {"a": arms, "b": arms},
            "joints": {"one": {"child": "a", "axis": [0, 1, 0], "damping": 0.1},
                       "two": {"child": "b", "parent": "a", "axis": [0, 1, 0], "damping": 0.2}},
        }},
        "markers": {"tip": {"body": "arm/b", "point": [0, 0, -0.2]}},
        "objective": [{"type": "point", "marker": "tip", "target": [0, 0, 0], "time": "end"}],
    }  # fmt: skip
    names = [f"bodies.arm.joints.{name}.damping" for name in ("one", "two")]
    each = scene_from_dict(raw | {"parameters": [{"path": "bodies.arm.joints.*.damping", "transform": "log"}]})
    assert [(item.path, item.transform) for item in each.parameters] == [(name, "log") for name in names]
    assert each.inverse_problem().labels() == names and [item["path"] for item in each.raw["parameters"]] == names
    shared = scene_from_dict(raw | {"parameters": [{"paths": ["bodies.arm.joints.*.damping"], "start": 0.1}]})
    assert shared.parameters[0].paths == tuple(names)
    with pytest.raises(InputError, match=r"parameters\.0\.path"):
        scene_from_dict(raw | {"parameters": [{"path": "bodies.arm.links.*.damping"}]})
