"""Warnings about bodies that start inside what they should touch from outside."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from add.commands.cli import cli
from add.errors import InputError
from add.geometry.shapes import shape_of
from add.kernels import distance
from add.model.overlaps import deep_starts
from add.scene import scene_from_dict

MATERIAL = {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 150}
SOFT = {"type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [2, 2, 2]}, "material": MATERIAL}
RIGID_BALL = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 1.0}
RIGID_BOX = {"type": "rigid", "geometry": {"shape": "box", "size": [0.4, 0.2, 0.2]}, "mass": 1.0}
FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
QUARTER = [2**-0.5, 0, 2**-0.5, 0]  # about y


def scene(bodies, obstacles=None, **sections):
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "bodies": bodies, "obstacles": obstacles or {}}
    return scene_from_dict({**raw, **sections})


def found(*arguments, **sections):
    built = scene(*arguments, **sections).build()
    return [(item.body, item.other, pytest.approx(item.depth)) for item in deep_starts(built.model, built.theta)]


def at(body, *place, **more):
    return {**body, "position": list(place), **more}


@pytest.mark.parametrize("kind", [distance.PLANE, distance.SPHERE, distance.BOX, distance.CAPSULE, distance.CYLINDER])
def test_gaps_are_those_of_the_kernel(kind, rng):
    size = np.array([0.3, 0.5, 0.7])
    points = rng.uniform(-1.2, 1.2, (300, 3))
    n, H = np.empty(3), np.empty((3, 3))
    known = [
        distance.distance_branch(kind, size, *x, distance.distance_feature(kind, size, *x), 0, n, H) for x in points
    ]
    found = shape_of(kind).gaps(np.array(size, dtype=float), np.array(points, dtype=float))
    assert found == pytest.approx(np.array(known), abs=1e-14)
    assert min(known) < -0.05 and max(known) > 0.1


def test_soft_body_in_an_obstacle():
    assert found({"cube": at(SOFT, 0, 0, -0.15)}, FLOOR) == [("cube", "floor", 0.2)]
    assert found({"cube": at(SOFT, 0, 0, 0.045)}, FLOOR) == [], "5 % of its size may be meant"
    assert found({"cube": at(SOFT, 0, 0, 0.03)}, FLOOR) == [("cube", "floor", 0.02)]
    box = {"box": {"shape": "box", "center": [0, 0, 0], "half_size": [0.4, 0.2, 0.1], "orientation": QUARTER}}
    assert found({"cube": at(SOFT, 0, 0, 0.3)}, box) == [("cube", "box", 0.1)], "from its upright side"


def test_pairs_that_are_off_do_not_count():
    bodies = {"cube": at(SOFT, 0, 0, -0.15)}
    off = {"pairs": [{"body": "cube", "obstacle": "floor", "enabled": False}]}
    assert found(bodies, FLOOR, contact=off) == []
    assert found({"cube": at(SOFT, 0, 0, 0, pins=[{"where": {"all": True}}])}, FLOOR) == [], "nothing there can move"


def test_bodies_in_each_other():
    """A soft cube with two of its corners in a turned box, and a ball whose centre is outside of it."""
    box = at(RIGID_BOX, 0, 0, 0, orientation=QUARTER)  # 0.2 x 0.2 x 0.4
    assert found({"cube": at(SOFT, 0, 0, 0.22), "box": box}) == [("cube", "box", 0.03)]
    assert found({"ball": at(RIGID_BALL, 0, 0, 0.22), "box": box}) == [("ball", "box", 0.03)]
    assert found({"ball": at(RIGID_BALL, 0.137, 0.137, 0), "box": box}) == [], "past an edge it is farther than along x"
    assert found({"ball": at(RIGID_BALL, 0, 0, 0.0), "box": box}, contact={"between_bodies": False}) == []


def test_the_place_is_that_of_the_geometry():
    """The centre of mass is not the origin of the body's frame, to which its shape and its points belong."""
    heavy = {**RIGID_BOX, "inertia": [1, 1, 1, 0, 0, 0], "center_of_mass": [0.1, 0, 0]}
    assert found({"box": at(heavy, 0, 0, 0.15, orientation=QUARTER)}, FLOOR) == [("box", "floor", 0.05)]


def test_a_warning_and_no_error(tmp_path, caplog):
    path = tmp_path / "a.json"
    some = scene({"cube": at(SOFT, 0, 0, -0.15), "ball": at(RIGID_BALL, 1, 0, 0)}, FLOOR)
    path.write_text(json.dumps(some.raw))
    words = "bodies.cube: starts 0.2 m deep inside obstacles.floor (its own size is 0.1 m)"
    for command in (["check", str(path), "--json"], ["simulate", str(path), "-o", str(tmp_path / "run")]):
        caplog.clear()
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0
        (record,) = [item for item in caplog.records if "deep inside" in item.getMessage()]
        assert record.levelname == "WARNING"
        assert f"{path}: {words}" in record.getMessage() and "1 more pair starts" in record.getMessage()
        if command[0] == "check":
            assert words in json.loads(result.stdout)["warnings"][0]


def test_soft_bodies_that_are_buried_are_refused():
    """Elements pushed through many of their sizes turn inside out; a rigid body is thrown out, with a warning."""
    with pytest.raises(InputError, match=r"bodies\.cube: starts 0\.7 m deep inside floor.*5 times its size of 0\.1 m"):
        scene({"cube": at(SOFT, 0, 0, -0.65)}, FLOOR).build()
    off = {"pairs": [{"body": "cube", "obstacle": "floor", "enabled": False}]}
    scene({"cube": at(SOFT, 0, 0, -0.65)}, FLOOR, contact=off).build()
    assert found({"ball": at(RIGID_BALL, 0, 0, -0.65)}, FLOOR) == [("ball", "floor", 0.7)]
