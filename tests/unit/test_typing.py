"""What callers give with another type, number or shape is refused in one sentence."""

import numpy as np
import pytest

import add
from add.errors import InputError
from add.typing import as_numbers, as_vector, require_count, require_kind

BALL = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 3},
    "bodies": {"ball": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1.0}},
    "markers": {"centre": {"body": "ball", "point": [0, 0, 0]}},
    "objective": [{"type": "point", "marker": "centre", "target": [0, 0, 1], "time": "end"}],
    "parameters": [{"path": "bodies.ball.velocity"}],
}


@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None, np.float64(2)])
def test_counts(value):
    require_count(np.int64(3), "n", 3)
    with pytest.raises(InputError, match=r"n: impossible number \(found .*; expected a whole number from 0 on\)"):
        require_count(value, "n")


def test_kinds_numbers_vectors():
    require_kind("a", str, "name", "a name")
    with pytest.raises(InputError, match=r"name: wrong type \(found list; expected a name\)"):
        require_kind([1], str, "name", "a name")
    with pytest.raises(InputError, match="these are no numbers"):
        as_numbers("x", [1, [2, 3]])
    np.testing.assert_array_equal(as_vector("x", [1, 2], 2), [1.0, 2.0])
    with pytest.raises(InputError, match=r"x: wrong shape \(found \(2, 1\); expected \(2,\)\)"):
        as_vector("x", [[1], [2]], 2)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0 + 2.0j]), [1j], "3.5", ["1", "2"], b"3", None, [None, 1.0], np.array(["1"]),
        np.datetime64("2020-01-01"), np.ma.array([1.0, 2.0], mask=[False, True]), np.array([1.0, None]),
    ],
)  # fmt: skip
def test_what_numpy_would_make_numbers_of(value):
    with pytest.raises(InputError, match="x: these are no numbers"):
        as_numbers("x", value)


def test_numbers_of_any_kind():
    rows = np.arange(6.0).reshape(2, 3)
    rows.flags.writeable = False
    kinds = (rows.astype(np.float32), rows.astype(np.int8), rows.astype(np.float16), rows.astype(object), rows.tolist())
    for value in (*kinds, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2], np.ma.array(rows)):
        np.testing.assert_array_equal(as_numbers("x", value), rows)


@pytest.fixture(scope="module")
def scene():
    return add.scene_from_dict(BALL)


TWO = BALL | {"bodies": BALL["bodies"] | {"other": BALL["bodies"]["ball"]}}
WRONG = {
    "a dictionary as a file": (lambda _: add.load_scene(BALL), "scene: wrong type .found dict; .*scene_from_dict"),
    "a file as a dictionary": (lambda _: add.scene_from_dict("a.json"), "found str 'a.json'; .*load_scene"),
    "overrides of a path": (lambda _: add.apply_overrides("a.json", {}), "found str 'a.json'; .*load_scene"),
    "overrides in a list": (lambda s: add.apply_overrides(s, [("time.dt", 1)]), "overrides: wrong type .found list"),
    "no recording": (lambda _: add.read_take(None), "recording: wrong type .found NoneType"),
    "a marker that is not there": (
        lambda s: s.build().marker("center"),
        "no marker of this name; did you mean 'centre'",
    ),
    "a state beyond the end": (lambda s: s.build().run().state(4), "state or step .found 4; expected from -4 to 3"),
    "a step beyond the end": (lambda s: s.build().run().step(3), "state or step .found 3; expected from -3 to 2"),
    "a state before the start": (lambda s: s.build().run().kinematics(-5), "no such state or step .found -5"),
    "a state between two": (lambda s: s.build().run().state(0.5), "state or step .found 0.5; expected from -4 to 3"),
    "a state of others": (
        lambda s: s.build().run(state=add.scene_from_dict(TWO).build().run(n_steps=1).state(1)),
        "state.q: wrong shape",
    ),
    "a place as a set": (
        lambda s: add.apply_overrides(s, {"bodies.ball.position": {0.0, 1.0, 2.0}}),
        "a set has no order .found {0.0, ",
    ),
    "steps in words": (lambda s: s.build().run(n_steps="3"), "n_steps: impossible number .found '3'"),
    "steps behind zero": (lambda s: s.build().run(n_steps=-1), "n_steps: impossible number .found -1"),
    "theta of others": (lambda s: s.build().run(np.zeros(2)), "theta: wrong shape .found .2,."),
    "x too long": (lambda s: s.inverse_problem().value(np.zeros(4)), "x: wrong shape .found .4,.; expected .3,."),
    "x as a number": (lambda s: s.inverse_problem().value_and_grad(1.0), "x: wrong shape"),
    "x in rows": (lambda s: s.inverse_problem().values(np.zeros((1, 3))), "x: wrong shape"),
    "x in words": (lambda s: s.inverse_problem().residuals("x"), "x: these are no numbers"),
}


def test_states_from_the_end(scene):
    """-1 is the last state with its own rates, time and steps behind it, as of the arrays of the run."""
    run = scene.build().run()
    for k in (-1, -2):
        kin, state = run.kinematics(k), run.state(k)
        np.testing.assert_array_equal([kin.v, state.v[0]], [run.v[k], run.v[k]])
        assert (kin.t, state.t, state.step) == (run.t[k], run.t[k], 4 + k)
        np.testing.assert_array_equal(state.v[1], run.v[k - 1])
    assert run.step(-1).after.t == run.t[-1] and run.step(-1).before.t == run.t[-2]
    assert run.after(-1).t.tolist() == [run.t[-1]]


def test_what_can_be_gone_through_once_is_a_list(scene):
    """The scene keeps what a generator gives."""
    raw = BALL | {"bodies": {"ball": BALL["bodies"]["ball"] | {"position": (float(k) for k in range(3))}}}
    moved = add.scene_from_dict(raw)
    for found in (moved, add.apply_overrides(moved, {"time.dt": 0.02})):
        assert found.bodies["ball"].position == (0.0, 1.0, 2.0)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(scene, name):
    call, said = WRONG[name]
    with pytest.raises(InputError, match=said):
        call(scene)


def test_arrays_in_scenes_become_lists(scene, tmp_path):
    """A scene with numbers of NumPy can be written, and whole ones are whole."""
    changed = add.apply_overrides(scene, {"bodies.ball.velocity": np.array([1.0, 2.0, 3.0]), "time.steps": np.int64(4)})
    changed.save(tmp_path / "a.json")
    again = add.load_scene(tmp_path / "a.json")
    assert again.bodies["ball"].velocity == (1.0, 2.0, 3.0) and again.time.n_steps == 4


MISPLACED = {
    "above": ({"mesh": {"shape": "sphere", "radius": 1, "edge": 1, "element": "tet4"}}, "mesh.element", "b.element"),
    "below": ({"young": 1e5}, "b.young", "b.material.young"),
    "at the top": ({"material": {"gravity": 1}}, "material.gravity", "gravity"),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_a_key_in_the_wrong_object_is_told_its_place(name):
    changes, place, meant = MISPLACED[name]
    body = {
        "type": "soft",
        "mesh": {"shape": "sphere", "radius": 1, "edge": 1},
        "material": {"young": 1e5, "poisson": 0.3, "density": 100},
    }
    body |= {key: {**body[key], **value} if key in body else value for key, value in changes.items()}
    with pytest.raises(InputError) as caught:
        add.scene_from_dict({"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 3}, "bodies": {"b": body}})
    expected = f"did you mean '{'' if meant == 'gravity' else 'bodies.'}{meant}'"
    assert f"{place}: unknown key" in str(caught.value) and expected in str(caught.value)
