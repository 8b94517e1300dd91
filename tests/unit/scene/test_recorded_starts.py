"""Starts of rigid bodies from recordings: flights whose answers are known, and the public tosses."""

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.places import DATA, SCENES

from add.errors import InputError
from add.mocap import PoseRecording, Recording, write_csv, write_pose_csv
from add.mocap.flights import flight_of_point, flight_spin
from add.scene import experiment_scenes, load_scene, scene_from_dict

real = pytest.mark.skipif(not (DATA / "mocap").is_dir(), reason=f"no recordings at {DATA} (set ADD_DATA)")

G = np.array([0.0, 0.0, -9.81])
X0, V0, W0 = np.array([0.1, -0.2, 1.0]), np.array([0.8, 0.1, 1.5]), np.array([3.0, -8.0, 5.0])
R0 = Rotation.from_rotvec([0.3, -0.5, 1.1])
CORNERS = {
    f"c{k}": [x, y, z] for k, (x, y, z) in enumerate([(0.05, 0, 0), (-0.05, 0.05, 0), (0, -0.05, 0.05), (0, 0, -0.05)])
}


def flight(noise: float = 0.0, end: float = 0.3) -> PoseRecording:
    """A cube that flies and spins; recording time 2 s is t = 0."""
    t = np.arange(-0.05, end, 0.01)
    rng = np.random.default_rng(4)
    position = X0 + np.outer(t, V0) + 0.5 * np.outer(t * t, G) + noise * rng.normal(size=(t.size, 3))
    turn = (
        Rotation.from_rotvec(noise / 0.05 * rng.normal(size=(t.size, 3))) * Rotation.from_rotvec(np.outer(t, W0)) * R0
    )
    return PoseRecording(2.0 + t, position, turn.as_quat()[:, [3, 0, 1, 2]])


def scene(file, section: dict, **body) -> dict:
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.005, "duration": 0.25},
        "bodies": {
            "cube": {
                "type": "rigid",
                "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]},
                "mass": 0.5,
                "start": "recording",
            }
            | body
        },
        "markers": {name: {"body": "cube", "point": point} for name, point in CORNERS.items()},
        "recording": {"file": str(file), "time_offset": 2.0, **section},
        "objective": [{"type": "markers"}],
        "parameters": [{"path": "bodies.cube.velocity"}],
    }


def require_start(body, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(body.position, X0, atol=tolerance)
    np.testing.assert_allclose(body.velocity, V0, atol=20 * tolerance)
    np.testing.assert_allclose(body.angular_velocity, W0, atol=400 * tolerance)
    w, x, y, z = body.orientation
    assert (Rotation.from_quat([x, y, z, w]) * R0.inv()).magnitude() < 40 * tolerance


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_from_a_pose(noise, tmp_path):
    write_pose_csv(tmp_path / "r.csv", flight(noise))
    found = scene_from_dict(scene(tmp_path / "r.csv", {"pose": {"body": "cube"}}))
    require_start(found.bodies["cube"], max(noise, 1e-6))
    # The scene is complete: the run starts there, and follows the recording.
    problem = found.inverse_problem()
    assert np.sqrt(problem.value(problem.x0)[0]) < max(3.0 * noise, 2e-3)
    again = scene_from_dict(found.raw)
    assert again.bodies["cube"] == found.bodies["cube"]


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_from_markers(noise, tmp_path):
    markers = flight().markers(np.array(list(CORNERS.values())), list(CORNERS))
    valid = markers.valid.copy()
    valid[8:12, 0] = False  # three are left
    valid[15, :2] = False  # too few
    positions = markers.positions + noise * np.random.default_rng(1).normal(size=markers.positions.shape)
    write_csv(tmp_path / "r.csv", Recording(markers.names, markers.times, positions, valid))
    found = scene_from_dict(scene(tmp_path / "r.csv", {"markers": {name: name for name in CORNERS}}))
    require_start(found.bodies["cube"], max(noise, 1e-6))


def test_one_marker_at_the_centre(tmp_path):
    pose = flight()
    write_csv(tmp_path / "r.csv", pose.markers(np.zeros((1, 3)), ["ball"]))
    raw = scene(tmp_path / "r.csv", {"markers": {"ball": "centre"}}, orientation=[0.0, 1.0, 0.0, 0.0])
    raw["markers"] = {"centre": {"body": "cube", "point": [0, 0, 0]}}
    body = scene_from_dict(raw).bodies["cube"]
    np.testing.assert_allclose(body.position, X0, atol=1e-6)
    np.testing.assert_allclose(body.velocity, V0, atol=1e-5)
    assert (body.orientation, body.angular_velocity) == ((0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    raw["markers"]["centre"]["point"] = [0.01, 0, 0]
    with pytest.raises(InputError, match=r"bodies\.cube\.start: .*too few markers for a pose"):
        scene_from_dict(raw)


def test_what_is_given_stays(tmp_path):
    write_pose_csv(tmp_path / "r.csv", flight())
    raw = scene(tmp_path / "r.csv", {"pose": {"body": "cube"}}, velocity=[1.0, 2.0, 3.0])
    body = scene_from_dict(raw).bodies["cube"]
    assert body.velocity == (1.0, 2.0, 3.0)
    np.testing.assert_allclose(body.position, X0, atol=1e-6)


def test_a_centre_of_mass_beside_the_origin(tmp_path):
    """The centre of mass flies the parabola, not the origin of the frame."""
    centre = np.array([0.02, -0.01, 0.0])
    pose = flight()
    path = pose.position - np.einsum("fij,j->fi", pose.rotations, centre)
    write_pose_csv(tmp_path / "r.csv", PoseRecording(pose.times, path, pose.quaternion))
    raw = scene(tmp_path / "r.csv", {"pose": {"body": "cube"}}, center_of_mass=centre.tolist())
    body = scene_from_dict(raw).bodies["cube"]
    np.testing.assert_allclose(body.position, X0 - R0.apply(centre), atol=1e-6)
    np.testing.assert_allclose(body.velocity, V0, atol=1e-5)


def test_the_flight_ends_at_the_first_touch(tmp_path):
    """Frames after a bounce at 0.2 s change nothing; with them in the window there is no free flight."""
    pose = flight(noise=2e-4, end=0.4)
    after = np.maximum(pose.times - 2.2, 0.0)
    position = pose.position + np.outer(after, [0.0, 0.0, 4.0])
    write_pose_csv(tmp_path / "r.csv", PoseRecording(pose.times, position, pose.quaternion))
    require_start(scene_from_dict(scene(tmp_path / "r.csv", {"pose": {"body": "cube"}})).bodies["cube"], 1e-3)
    whole = scene(tmp_path / "r.csv", {"pose": {"body": "cube"}}, start_window=[0.0, 0.4])
    with pytest.raises(InputError, match=r"bodies\.cube\.start: .*no free flight \(found an acceleration"):
        scene_from_dict(whole)


def test_a_flight_along_another_axis_asks_which_one_is_up(tmp_path):
    """A file whose y points up shows an acceleration of the right size along its y."""
    pose = flight()
    turn = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    write_pose_csv(tmp_path / "r.csv", PoseRecording(pose.times, pose.position @ turn.T, pose.quaternion))
    with pytest.raises(InputError, match=r"no free flight .* `recording\.up` says which axis points up"):
        scene_from_dict(scene(tmp_path / "r.csv", {"pose": {"body": "cube"}}))


def test_experiments_start_from_their_own(tmp_path):
    write_pose_csv(tmp_path / "one.csv", flight())
    later = flight()
    write_pose_csv(
        tmp_path / "two.csv", PoseRecording(later.times + 1.0, later.position + np.array([1, 0, 0]), later.quaternion)
    )
    raw = scene(tmp_path / "one.csv", {"pose": {"body": "cube"}})
    recording = raw.pop("recording")
    raw["experiments"] = [
        {"name": "one", "recording": recording},
        {"name": "two", "recording": {**recording, "file": str(tmp_path / "two.csv"), "time_offset": 3.0}},
    ]
    raw["parameters"] = [{"path": "bodies.cube.velocity", "experiment": name} for name in ("one", "two")]
    loaded = scene_from_dict(raw)
    scenes = experiment_scenes(loaded)
    np.testing.assert_allclose(scenes["one"].bodies["cube"].position, X0, atol=1e-6)
    np.testing.assert_allclose(scenes["two"].bodies["cube"].position, X0 + np.array([1, 0, 0]), atol=1e-6)
    problem = loaded.inverse_problem()
    np.testing.assert_allclose(problem.values(problem.x0), [*V0, *V0], atol=1e-5)


def test_bad_starts(tmp_path):
    write_pose_csv(tmp_path / "r.csv", flight())
    raw = scene(tmp_path / "r.csv", {"pose": {"body": "cube"}})
    for change, message in (
        ({"start": "file"}, r"bodies\.cube\.start: unknown value"),
        ({"start": None, "start_window": [0.0, 0.1]}, r"start_window: goes with"),
        ({"start_window": [5.0, 6.0]}, r"bodies\.cube\.start: .*too few frames of a flight"),
    ):
        bad = json.loads(json.dumps(raw))
        bad["bodies"]["cube"] |= change
        with pytest.raises(InputError, match=message):
            scene_from_dict(bad)
    del raw["recording"], raw["objective"], raw["parameters"]
    with pytest.raises(InputError, match=r"bodies\.cube\.start: there is no recording"):
        scene_from_dict(raw)


def test_closed_forms():
    pose = flight().with_origin(2.0).crop(0.0)
    found, window = flight_of_point(pose.times, pose.position, G)
    assert (found.frames, window) == (30, (pytest.approx(0.0, abs=1e-12), pytest.approx(0.29)))
    assert found.rms < 1e-12
    spin = flight_spin(pose)
    np.testing.assert_allclose(spin.angular_velocity, W0, atol=1e-9)
    assert spin.rms < 1e-9


@real
def test_the_start_of_the_tossed_cube(monkeypatch):
    """Beside the start that stands in the scene, which was fitted by another program to the same flight."""
    monkeypatch.setenv("ADD_DATA", str(DATA))
    known = load_scene(SCENES / "cube_toss.json")
    raw = json.loads((SCENES / "cube_toss.json").read_text(encoding="utf-8"))
    cube = raw["bodies"]["cube"]
    for key in ("position", "orientation", "velocity", "angular_velocity"):
        del cube[key]
    cube["start"] = "recording"
    found, there = scene_from_dict(raw).bodies["cube"], known.bodies["cube"]
    np.testing.assert_allclose(found.position, there.position, atol=3e-4)
    np.testing.assert_allclose(found.velocity, there.velocity, atol=6e-3)
    np.testing.assert_allclose(found.angular_velocity, there.angular_velocity, atol=0.05)
    assert abs(np.dot(found.orientation, there.orientation)) > np.cos(0.5 * 0.005)
