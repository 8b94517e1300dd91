"""From the numbers of a scene to theta, and back."""

import numpy as np
import pytest
from support.cube_scene import (
    BLOCK,
    CUBE,
    FIT,
    HALF,
    built,
    edited,
    value,
)

from add.errors import InputError
from add.kernels.rotation import rotation_matrix
from add.scene import experiment_scenes, scene_from_dict
from add.scene.build.scene import build


def test_young_and_poisson_are_tied_to_lame():
    scene = built()
    assert value(scene, f"{BLOCK}.mu") == pytest.approx(2e4 / 2.5)
    assert value(scene, f"{BLOCK}.lambda") == pytest.approx(2e4 * 0.25 / (1.25 * 0.5))
    assert (value(scene, f"{CUBE}.mu"), value(scene, f"{CUBE}.lambda")) == (1e4, 2e4)
    with pytest.raises(InputError, match="cannot be a parameter"):
        scene.numbers.resolve(f"{BLOCK}.material.mu")
    with pytest.raises(InputError, match=rf"did you mean '{BLOCK}\.material\.young'\?"):
        scene.numbers.resolve(f"{BLOCK}.material.yuong")  # an input of a function of JAX or PyTorch, say


def test_every_entry_of_theta_follows_from_a_number():
    """No number of theta is left at zero by mistake: each has a source, or is what its mesh makes it."""
    scene = built(
        (f"{BLOCK}.loads", [{"where": {"nodes": [1]}, "force": [1, 2, 3]}]),
        (f"{BLOCK}.pins", [{"where": {"nodes": [9]}, "motion": [0, 0, 1]}]),
        (f"{BLOCK}.point_masses", [{"at": [0, 0, 0], "mass": 1}]),
    )
    ties, layout = scene.numbers.ties, scene.model.system.parameters
    extended, *tied, _ = ties.maps
    copied = extended.copies
    fed = set(copied.target.tolist()) | {i - copied.n_in for tie in tied for i in tie.outputs.ravel().tolist()}
    fed |= set(np.flatnonzero(copied.base).tolist())  # skins and onsets of meshes, which follow from the meshes
    assert [layout.describe(i) for i in range(layout.n) if i not in fed] == []


@pytest.mark.parametrize(
    ("path", "size", "unit", "first"),
    [
        ("gravity", 3, "m/s^2", 0.0),
        ("gravity.2", 1, "m/s^2", -9.81),
        (f"{BLOCK}.material.young", 1, "Pa", 2e4),
        (f"{BLOCK}.material.poisson", 1, "-", 0.25),
        (f"{CUBE}.material.lambda", 1, "Pa", 2e4),
        (f"{CUBE}.material.density", 1, "kg/m^3", 50.0),
        (f"{CUBE}.material.viscosity", 1, "Pa s", 3.0),
        (f"{CUBE}.material.rayleigh_mass", 1, "1/s", 0.0),
        (f"{CUBE}.material.rayleigh_stiffness", 1, "s", 0.0),
        (f"{BLOCK}.position", 3, "m", 1.0),
        (f"{BLOCK}.position.1", 1, "m", 2.0),
        (f"{BLOCK}.orientation", 3, "rad", 0.0),
        (f"{BLOCK}.velocity", 3, "m/s", 0.0),
        (f"{BLOCK}.angular_velocity.0", 1, "rad/s", 0.0),
        (f"{BLOCK}.loads.0.force", 3, "N", 1.0),
        (f"{BLOCK}.pins.0.motion.2", 1, "m", 6.0),
        ("signals.push.values", 6, "N", 0.0),
        ("signals.push.values.1", 3, "N", 3.0),
        ("signals.push.values.1.2", 1, "N", 5.0),
        ("signals.shake.amplitude.1", 1, "m", 8.0),
        ("signals.shake.offset", 3, "m", 1.0),
        ("contact.stiffness", 1, "N/m", 1e3),
        ("contact.friction", 1, "-", 0.4),
        ("contact.damping", 1, "N s/m", 0.0),
        ("contact.pairs.0.friction", 1, "-", 0.9),
    ],
)
def test_resolve(path, size, unit, first):
    load = {"where": {"nodes": [1]}, "force": [1, 2, 3]}
    scene = built(
        (f"{BLOCK}.loads", [load, {"where": {"nodes": [2]}, "force": {"signal": "push"}}]),
        (
            f"{BLOCK}.pins",
            [{"where": {"nodes": [9]}, "motion": [4, 5, 6]}, {"where": {"nodes": [8]}, "motion": {"signal": "shake"}}],
        ),
        ("signals.push", {"type": "table", "times": [0, 1], "values": [[0, 1, 2], [3, 4, 5]]}),
        ("signals.shake", {"type": "sine", "amplitude": [7, 8, 9], "offset": [1, 1, 1], "frequency": 2.0}),
        ("contact", {"stiffness": 1e3, "pairs": [{"body": "block", "obstacle": "floor", "friction": 0.9}]}),
    )
    index, found = scene.numbers.resolve(path)
    assert (index.size, found) == (size, unit)
    assert scene.numbers.values[index[0]] == pytest.approx(first)


def test_units_per_area():
    scene = built(("contact", {"stiffness_per": "area", "stick_stiffness": 5.0}))
    units = [scene.numbers.resolve(f"contact.{key}")[1] for key in ("stiffness", "damping", "stick_stiffness")]
    assert units == ["N/m/m^2", "N s/m/m^2", "N s/m/m^2"]


@pytest.mark.parametrize(
    ("quaternion", "vector"),
    [
        ([1, 0, 0, 0], [0, 0, 0]),
        ([-1, 0, 0, 0], [0, 0, 0]),
        (HALF, [0, 0, np.pi / 2]),
        ([-x for x in HALF], [0, 0, np.pi / 2]),
        ([0, 1, 0, 0], [np.pi, 0, 0]),
        ([0.5, 0.5, 0.5, 0.5], [2 * np.pi / 3 / 3**0.5] * 3),
        ([0.99995, 0.0, 0.0099998333, 0.0], [0, 0.02, 0]),
    ],
)
def test_orientation_is_a_rotation_vector(quaternion, vector):
    scene = built((f"{BLOCK}.orientation", quaternion))
    found = value(scene, f"{BLOCK}.orientation")
    assert rotation_matrix(found.copy()) == pytest.approx(rotation_matrix(np.array(vector, dtype=float)), abs=1e-6)
    assert np.linalg.norm(found) <= np.pi + 1e-12


ORIENTATIONS = {
    "start as a quaternion": {"path": f"{BLOCK}.orientation", "start": HALF},
    "fourth entry": {"path": f"{BLOCK}.orientation.3"},
    "bounds on the angle": {"path": f"{BLOCK}.orientation", "bounds": [-2.0, 0.5]},
}


@pytest.mark.parametrize("case", ORIENTATIONS)
def test_orientation_as_a_parameter(case):
    """The parameter is the rotation vector [rad]: what does not fit is an input error, what fits is not."""
    raw = edited(*FIT[:2], ("parameters", [ORIENTATIONS[case]]), (f"{BLOCK}.orientation", [1, 0, 0, 0]))
    if case == "bounds on the angle":
        assert scene_from_dict(raw).inverse_problem().values(np.zeros(3)).tolist() == [0, 0, 0]
    else:
        with pytest.raises(InputError, match=r"parameters\.0"):
            scene_from_dict(raw).inverse_problem()


def test_orientation_start():
    """Without a start the scene's orientation is where the search begins."""
    raw = edited(*FIT[:2], ("parameters", [{"path": f"{BLOCK}.orientation"}]))
    problem = scene_from_dict(raw).inverse_problem()
    assert problem.values(problem.x0) == pytest.approx([0, 0, np.pi / 2])
    assert problem.units() == ["rad"] * 3


def test_experiment_scenes_build():
    """An experiment's overrides reach the numbers that theta is made of."""
    raw = edited(("experiments", [{"name": "heavy", "overrides": {f"{CUBE}.material.density": 80}}, {"name": "same"}]))
    scenes = {name: build(item) for name, item in experiment_scenes(scene_from_dict(raw)).items()}
    assert value(scenes["heavy"], f"{CUBE}.density") == 80 and value(scenes["same"], f"{CUBE}.density") == 50
