"""Scenes said in Python: the same as their JSON, checked as well, saved and read again."""

import inspect
import json
import pickle

import numpy as np
import pytest

import add
import add.scene.objects as objects
from add.errors import InputError
from add.extensions import Extension
from add.scene.spec.common import Spec

NAMES = {name for name in vars(objects) if not name.startswith("_")}
FLOOR = add.PlaneObstacle(point=np.zeros(3), normal=(0, 0, 1))


def ball():
    return add.SoftBody(
        mesh=add.SphereMesh(radius=0.05, edge=0.04),
        material=add.Material(model="neo-hookean", young=5e4, poisson=0.4, density=100.0),
        position=(0, 0, 0.06),
        velocity=(0.5, 0, -1),
    )


def thrown(**more):
    return add.Scene(
        time=add.TimeStepping(dt=0.01, steps=4),
        bodies={"ball": ball()},
        obstacles={"floor": FLOOR},
        contact=add.ContactSettings(stiffness=1e3, friction=0.3),
        **more,
    )


def test_the_same_scene_as_its_json(tmp_path):
    made = thrown(name="thrown")
    made.save(tmp_path / "thrown.json")
    read = add.load_scene(tmp_path / "thrown.json")
    assert read.full() == made.full()
    assert json.loads((tmp_path / "thrown.json").read_text())["bodies"]["ball"]["type"] == "soft"
    assert np.array_equal(read.build().run().q, made.build().run().q)
    assert made.source is None and read.source == tmp_path / "thrown.json"


def test_objects_and_dictionaries_mix():
    made = thrown(markers={"top": {"body": "ball", "point": [0, 0, 0.05]}})
    assert made.markers["top"].body == "ball"
    assert made.bodies["ball"].mesh.radius == 0.05


def test_the_whole_scene_is_checked():
    with pytest.raises(InputError, match=r"markers\.top\.body"):
        thrown(markers={"top": {"body": "bal", "point": [0, 0, 0.05]}})
    with pytest.raises(InputError, match=r"time\.dt"):
        add.Scene(time={"dt": -1.0, "steps": 3}, bodies={"ball": ball()})
    with pytest.raises(InputError, match="gravitation"):
        thrown(gravitation=(0, 0, -9.81))


def test_methods_keep_the_kind(tmp_path):
    made = thrown()
    changed = add.apply_overrides(made, {"contact.friction": 0.1})
    assert isinstance(changed, add.Scene) and changed.contact.friction == 0.1
    again = pickle.loads(pickle.dumps(made))
    assert again.raw == made.raw and again == made


def test_fits_from_python():
    made = thrown(
        objective=[{"type": "point", "marker": "top", "target": [0.1, 0, 0.1], "time": "end"}],
        markers={"top": add.PointMarker(body="ball", point=(0, 0, 0.05))},
        parameters=[add.FitParameter(path="bodies.ball.velocity", bounds=(-5.0, 5.0))],
    )
    problem = made.inverse_problem()
    assert problem.n == 3
    assert "bodies.ball.velocity" in repr(problem)


def test_every_object_of_the_format_has_a_public_name():
    specs = {
        kind
        for name in (
            "bodies",
            "common",
            "couplings",
            "markers",
            "objective",
            "optimizer",
            "rigid",
            "scene",
            "contact",
            "signals",
        )
        for _, kind in inspect.getmembers(__import__(f"add.scene.spec.{name}", fromlist=["x"]), inspect.isclass)
        if issubclass(kind, Spec) and not issubclass(kind, Extension) and not kind.__name__.startswith("_")
    }
    public = {getattr(objects, name) for name in NAMES}
    assert specs - public - {Spec, add.Scene.__mro__[1]} == set()
    assert all(getattr(add, name) is getattr(objects, name) for name in NAMES)
    assert NAMES <= set(dir(add))


def test_what_is_written_into_theta_changes_no_other_run():
    built = thrown().build()
    before, theta = built.run().q, built.theta
    built.model.system.parameters.view(theta, "gravity")[:] = 0.0
    assert np.array_equal(built.run().q, before) and np.array_equal(built.run(built.theta).q, before)
    assert not np.array_equal(built.run(theta).q, before)


def test_summary():
    assert repr(thrown(name="thrown")).splitlines()[0] == "Scene thrown"
    assert len(repr(thrown()).splitlines()) < 8
