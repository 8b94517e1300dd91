"""From a scene to markers and recordings."""

from contextlib import nullcontext

import numpy as np
import pytest
from support.cube_scene import (
    CUBE,
    MARKERS,
    built,
    edited,
    record,
    with_recording,
)
from support.robot_files import joint, link, urdf, written

from add.errors import InputError
from add.kernels.rotation import rotation_matrix
from add.scene import scene_from_dict


def test_markers():
    """A material point, weighted nodes, and the area-weighted mean of a face; in the order of the scene."""
    scene = built(
        (
            "markers",
            {
                "face": {"body": "block", "surface": {"box": {"min": [0.2, None, None]}}},
                "mean": {"body": "cube", "nodes": [0, 6], "weights": [1, 3]},
                "inner": {"body": "block", "point": [0.03, -0.02, 0.01]},
                "outer": {"body": "block", "point": [0.205, 0.0, 0.0]},
                "equal": {"body": "block", "nodes": [2, 4]},
            },
        )
    )
    assert scene.marker_names == ("face", "mean", "inner", "outer", "equal")
    places = scene.markers.points(scene.run(n_steps=0).kinematics(0), scene.theta)[0]
    cube, block = scene.model.bodies[1].mesh.points, scene.model.bodies[0].mesh.points

    def world(x):
        return np.stack([-x[..., 1], x[..., 0], x[..., 2]], axis=-1) + np.array([1, 2, 3])

    # areas beside the face, round its rim, do not count
    assert places[0] == pytest.approx(world(np.array([0.2, 0, 0])), abs=1e-12)
    assert places[1] == pytest.approx(0.25 * cube[0] + 0.75 * cube[6])
    assert places[2] == pytest.approx(world(np.array([0.03, -0.02, 0.01])))
    assert places[3] == pytest.approx(world(np.array([0.205, 0.0, 0.0])))
    assert places[4] == pytest.approx(world(block[[2, 4]]).mean(axis=0))
    assert scene.markers.weights.sum(axis=1) == pytest.approx(np.ones(5))
    assert built().markers.n_points == 0


ARM = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 12},
    "bodies": {
        "arm": {
            "type": "articulated",
            "links": {"upper": {"mass": 1.0, "center_of_mass": [0.1, 0.2, -0.5], "inertia": [0.1, 0.1, 0.1, 0, 0, 0]}},
            "joints": {"shoulder": {"child": "upper", "axis": [0, 1, 0], "value": 0.3, "rate": 2.0}},
        }
    },
    "markers": {
        "centre": {"body": "arm/upper", "center_of_mass": True},
        "same": {"body": "arm/upper", "point": [0.1, 0.2, -0.5]},
    },
    "objective": [{"type": "point", "marker": "centre", "target": [0, 0.1, 0], "time": "end"}],
    "parameters": [{"path": "bodies.arm.links.upper.center_of_mass"}],
}


def test_the_centre_of_mass_of_a_link_is_not_its_origin():
    """Where it is, how it moves, and what a fit of the centre itself sees of it."""
    scene = scene_from_dict(ARM)
    sim = scene.build()
    places, rates = sim.markers.points(sim.run().kinematics(12), sim.theta)
    assert places[0] == pytest.approx(places[1], abs=1e-12)
    assert rates[0] == pytest.approx(rates[1], abs=1e-12)
    assert np.linalg.norm(rates[0]) > 0.5
    problem = scene.inverse_problem()
    _, gradient = problem.value_and_grad(problem.x0)
    for slope, e in zip(gradient, 1e-5 * np.eye(3), strict=True):
        ends = [problem.value_and_grad(problem.x0 + sign * e)[0] for sign in (1, -1)]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-9)


HEAVY = {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 1500}
BAR = {
    "type": "soft",
    "mesh": {"shape": "box", "size": [0.2, 0.1, 0.1], "divisions": [4, 2, 2]},
    "material": HEAVY | {"density": 500},
}
HALF = {"regions": {"half": {"where": {"box": {"min": [0, None, None]}}, "material": HEAVY}}}
#: 1 kg at the end of a bar of 1 kg.
TIPPED = {"point_masses": [{"at": [0.1, 0, 0], "mass": 1.0}]}


def bar(**more: object) -> dict:
    markers = {"centre": {"body": "bar", "center_of_mass": True}}
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 1},
        "bodies": {"bar": BAR | more},
        "markers": markers,
    }


@pytest.mark.parametrize("mass", ["consistent", "lumped"])
@pytest.mark.parametrize(("more", "place"), [({}, 0.0), (HALF, 0.025), (TIPPED, 0.05)])
def test_a_centre_of_mass_is_where_the_masses_say(more, place, mass):
    built = scene_from_dict(bar(mass=mass, **more)).build()
    (centre,) = built.markers.points(built.run(n_steps=0).kinematics(0), built.theta)[0]
    assert centre == pytest.approx([place, 0, 0], abs=1e-12)


@pytest.mark.parametrize(
    ("more", "path", "refused"),
    [
        (HALF, "regions.half.material.density", True),
        (HALF, "material.density", True),
        (TIPPED, "point_masses.0.mass", True),
        ({}, "material.density", False),
        (HALF, "material.young", False),
    ],
)
def test_masses_that_move_a_centre_of_mass_are_no_parameters(more, path, refused):
    """Weights of markers are in no derivative, so that its gradient would lack a part."""
    goal = {"type": "point", "marker": "centre", "target": [0, 0, 0], "time": "end"}
    scene = scene_from_dict(bar(**more) | {"objective": [goal], "parameters": [{"path": f"bodies.bar.{path}"}]})
    with pytest.raises(InputError, match="this number moves within the body") if refused else nullcontext():
        scene.inverse_problem()


def test_a_place_without_mass_has_no_centre_of_mass(tmp_path):
    parts = [link("base"), link("upper"), '<link name="tip"/>', joint("turn", "base", "upper")]
    path = written(tmp_path, urdf(*parts, joint("end", "upper", "tip", kind="fixed", more="")))
    arm = {"type": "articulated", "model": str(path)}
    markers = {"centre": {"body": "arm/tip", "center_of_mass": True}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"arm": arm}, "markers": markers}
    with pytest.raises(InputError, match=r"markers\.centre: a place without mass has no centre of mass"):
        scene_from_dict(raw).build()


def test_surface_marker_weighs_by_area():
    scene = built(("markers", {"all": {"body": "block", "surface": {"all": True}}}))
    boundary = scene.model.bodies[0].surface
    used = scene.markers.weights[0] > 0
    assert scene.markers.nodes[0][used].tolist() == boundary.nodes.tolist()
    assert scene.markers.weights[0][used] == pytest.approx(boundary.areas / boundary.areas.sum())
    assert boundary.areas.sum() == pytest.approx(2 * (0.4 * 0.2 * 2 + 0.2 * 0.2))


def test_surface_marker_without_a_whole_face():
    """Two nodes hold no face: the areas around them weigh them."""
    few = built(("markers", {"few": {"body": "block", "surface": {"nodes": [0, 2]}}}))
    areas = few.model.bodies[0].surface.areas[[0, 2]]
    assert few.markers.nodes[0].tolist() == [0, 2]
    assert few.markers.weights[0] == pytest.approx(areas / areas.sum())
    assert areas[0] != pytest.approx(areas[1])


def test_recording_is_registered_cropped_and_masked(tmp_path):
    """Positions come to the scene's frame, times to its clock; what is outside or masked counts nowhere."""
    rest = {"B": [0.1, 0.1, 0.1], "C": [0.3, 0, 0], "D": [0, 0.2, -0.1], "A": [0, 0, 0.4]}
    world = np.array([rest[name] for name in "ABCD"])
    rotation, shift = rotation_matrix(np.array([0.4, -1.1, 0.7])), np.array([3.0, -2.0, 1.0])
    times = 7.0 + np.arange(30) * 0.01
    moving = world + np.where(times < 7.055, 0.0, times - 7.055)[:, None, None] * np.array([0.0, 0.0, 1.0])
    frames = 1000 * ((moving - shift) @ rotation)
    record(tmp_path, times, frames / 1000)
    scene = with_recording(
        tmp_path,
        register={"markers": {name: rest[name] for name in "BCD"}, "window": [7.0, 7.05]},
        time_offset=7.1,
        crop=[0.01, 0.07],
        mask=[{"marker": "B", "from": 0.035, "to": 0.055}],
    )
    (experiment,) = scene.inverse_problem().experiments
    found = experiment.recording
    assert found.names == ("a", "b")
    assert found.times == pytest.approx(np.arange(1, 8) * 0.01)
    assert found.positions[:, 0] == pytest.approx(moving[11:18, 0], abs=1e-9)
    assert found.valid[:, 0].all() and found.valid[:, 1].tolist() == [True, True, True, False, False, True, True]
    (tracking,) = experiment.objective.objectives
    assert tracking.n_samples == 12 and tracking.weights.sum() == pytest.approx(1.0)
    assert (tracking.weights[found.valid] == 1 / 12).all()


def test_recording_ends_with_the_simulation(tmp_path):
    """A frame at the very end, or a rounding error away from the start, counts."""
    times = np.array([0.3, 0.35, 0.3 + 0.1, 0.41])
    record(tmp_path, times, np.zeros((4, 4, 3)))
    scene = with_recording(tmp_path, time_offset=0.1 + 0.2)
    (experiment,) = scene.inverse_problem().experiments
    assert experiment.recording.times == pytest.approx([0.0, 0.05, 0.1], abs=1e-15)
    assert experiment.recording.times[0] == 0.0
    (tracking,) = experiment.objective.objectives
    assert tracking.points.n_points == 2


def test_recording_in_millimetres(tmp_path):
    (tmp_path / "r.csv").write_text("time_s,A_x_mm,A_y_mm,A_z_mm,B_x_mm,B_y_mm,B_z_mm\n0,1,2,3,4,5,6\n")
    (experiment,) = with_recording(tmp_path, unit="mm").inverse_problem().experiments
    assert experiment.recording.positions[0] == pytest.approx(np.array([[1, 2, 3], [4, 5, 6]]) / 1000)


def test_experiments_have_recordings_of_their_own(tmp_path):
    record(tmp_path, [0.0, 0.05], np.zeros((2, 4, 3)))
    (tmp_path / "r.csv").rename(tmp_path / "other.csv")
    record(tmp_path, [0.0, 0.05, 0.1], np.ones((3, 4, 3)))
    recording = {"file": "r.csv", "markers": {"A": "a"}}
    raw = edited(
        ("markers", MARKERS),
        ("recording", recording),
        ("objective", [{"type": "markers"}]),
        ("parameters", [{"path": f"{CUBE}.velocity"}]),
        (
            "experiments",
            [{"name": "one"}, {"name": "two", "recording": {**recording, "file": "other.csv", "markers": {"B": "b"}}}],
        ),
    )
    one, two = scene_from_dict(raw, folder=tmp_path).inverse_problem().experiments
    assert (one.recording.names, one.recording.times.size) == (("a",), 3)
    assert (two.recording.names, two.recording.times.size) == (("b",), 2)
