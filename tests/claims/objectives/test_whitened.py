"""Poses weighted by their covariances: whitening, exact gradients, files, and error bars that hold."""

import copy
import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from add.commands.optimize import optimize_scene
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.mocap import read_pose_csv
from add.objectives.beyond_markers import whitening
from add.scene import load_scene, scene_from_dict

HEAD = "time_s,x_m,y_m,z_m,qw,qx,qy,qz"
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 30},
    "bodies": {
        "cube": {
            "type": "rigid", "mass": 0.5, "inertia": [1e-3, 2e-3, 1.5e-3, 0, 0, 0],
            "position": [0.1, 0.2, 0.3], "orientation": [0.9, 0.1, -0.3, 0.3],
            "velocity": [0.5, 0, 1.0], "angular_velocity": [1, 4, 1],
        }
    },
    "markers": {
        "a": {"body": "cube", "point": [0.05, 0, 0]},
        "b": {"body": "cube", "point": [0, 0.05, 0.02]},
        "c": {"body": "cube", "point": [-0.03, 0, 0.05]},
        "d": {"body": "cube", "direction": [1, 1, 0]},
    },
    "objective": [{"type": "markers"}],
    "parameters": [{"path": "bodies.cube.velocity", "scale": 0.1}, {"path": "bodies.cube.angular_velocity"},
                   {"path": "bodies.cube.position", "scale": 0.01}, {"path": "bodies.cube.orientation", "scale": 0.1}],
    "optimizer": {"method": "gauss-newton", "max_evaluations": 12},
}  # fmt: skip


def poses():
    """The scene's own motion: times, places and rotations."""
    raw = {key: value for key, value in SCENE.items() if key not in ("objective", "parameters", "optimizer")}
    built = scene_from_dict(raw).build()
    run = built.run()
    kin = [run.kinematics(k) for k in range(run.n_steps + 1)]
    return run.t, np.array([k.q[:3] for k in kin]), Rotation.from_rotvec([k.q[3:6] for k in kin])


def covariances(n, rng):
    """Covariances of every size and direction, millimetres and degrees."""
    parts = rng.normal(size=(n, 6, 6)) * np.repeat([1e-3, 2e-2], 3)[:, None]
    return np.einsum("fij,fkj->fik", parts, parts) + np.diag(np.repeat([1e-8, 1e-6], 3))


def write(path, times, places, turns, covariance):
    upper = np.triu_indices(6)
    names = ",".join(f"cov_{i + 1}{j + 1}" for i, j in zip(*upper, strict=True))
    quaternions = turns.as_quat()[:, [3, 0, 1, 2]]
    rows = np.column_stack([times, places, quaternions, covariance[:, upper[0], upper[1]]])
    path.write_text("\n".join([f"{HEAD},{names}", *(",".join(map(repr, row)) for row in rows.tolist())]) + "\n")


def noisy(path, covariance, seed):
    """Write the motion with noise of these covariances."""
    times, places, turns = poses()
    rng = np.random.default_rng(seed)
    error = np.einsum("fij,fj->fi", np.linalg.cholesky(covariance), rng.normal(size=(times.size, 6)))
    write(path, times, places + error[:, :3], Rotation.from_rotvec(error[:, 3:]) * turns, covariance)


def recorded(folder, **recording):
    raw = copy.deepcopy(SCENE)
    raw["recording"] = {"file": "pose.csv", "pose": {"body": "cube"}} | recording
    return scene_from_dict(raw, folder=folder)


def test_whitening(rng):
    """Errors of poses give rows of unit covariance, with three points and more; points on a line tell less."""
    covariance = covariances(1, rng)[0]
    arms = rng.normal(size=(4, 3))
    places = np.array([1.0, 1.0, 1.0, 0.0])
    for chosen, rank in (([0, 1, 2, 3], 6), ([0, 1, 3], 6), ([0], 3), ([3], 2), ([0, 3], 5)):
        seen = np.where(np.isin(np.arange(4), chosen), places, np.nan)
        matrix = np.zeros((12, 6))
        for p in chosen:
            matrix[3 * p : 3 * p + 3, :3] = places[p] * np.eye(3)
            matrix[3 * p : 3 * p + 3, 3:] = np.cross(np.eye(3), arms[p]).T
        rows = whitening(arms, seen, covariance) @ matrix
        found = rows @ covariance @ rows.T
        assert found == pytest.approx(np.diag(1.0 * (np.arange(6) < rank)), abs=1e-9)


@pytest.mark.parametrize("loss", [{}, {"loss": "soft-l1", "loss_scale": 2.0}])
def test_gradient(tmp_path, rng, loss):
    """Adjoint and forward tangents against differences, with a clock, a place and a stretch of one marker left out."""
    covariance = covariances(31, rng)
    noisy(tmp_path / "pose.csv", covariance, 5)
    loaded = recorded(tmp_path, place={"turn": [0.05, 0, 0.02], "move": [1e-3, 0, 2e-3]}, time_offset=0.003,
                      crop=[0.02, 0.25], mask=[{"marker": "a", "from": 0.1, "to": 0.15}])  # fmt: skip
    raw = loaded.raw | {"objective": [{"type": "markers"} | loss]}
    raw["parameters"] = [*raw["parameters"], {"path": "recording.time_offset", "scale": 0.01}]
    raw["parameters"] += [{"path": f"recording.place.{key}", "scale": 0.1} for key in ("turn", "move", "scale")]
    raw["time"] |= {"newton": {"atol": 1e-13, "rtol": 0}}
    problem = scene_from_dict(raw, folder=tmp_path).inverse_problem()
    (part,) = problem.experiments[0].objective.objectives
    assert part.told.all() and 0.0 < np.abs(part.matrices[:, :, :3]).min(axis=(1, 2)).max()
    assert (np.abs(part.matrices[:, :, :3]).max(axis=(1, 2)) == 0.0).sum() >= 5
    x = problem.x0
    value, gradient, _ = (*problem.value_and_grad(x), None)[:3]
    rho, jacobian = problem.residuals_and_jacobian(x)
    assert rho @ rho == pytest.approx(value, rel=1e-12) and 0.3 < value
    assert 2.0 * jacobian.transposed(rho) == pytest.approx(gradient, rel=1e-8, abs=1e-10 * np.abs(gradient).max())
    direction = rng.normal(size=problem.n)
    h = 1e-5
    ends = [problem.value(x + k * h * direction)[0] for k in (-2, -1, 1, 2)]
    difference = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * h)
    assert difference == pytest.approx(gradient @ direction, rel=1e-7)


def test_files_with_gaps_and_covariances(tmp_path):
    """Rows without a pose are gaps; sigmas are covariances; what is no covariance is refused."""
    row = "0.5,1,2,3,1,0,0,0"
    path = tmp_path / "tag.csv"
    path.write_text(f"{HEAD},sigma_position_m,sigma_angle_rad\n0,,,,,,,,,\n{row},0.002,0.1\n0.6,,,,,,,,,\n")
    found = read_pose_csv(path)
    assert found.times.tolist() == [0.5]
    assert found.covariance[0] == pytest.approx(np.diag([4e-6] * 3 + [1e-2] * 3))
    assert found.scaled(2.0).covariance[0] == pytest.approx(np.diag([16e-6] * 3 + [1e-2] * 3))
    rng = np.random.default_rng(1)
    covariance = covariances(31, rng)
    noisy(path, covariance, 1)
    again = read_pose_csv(path)
    assert again.covariance == pytest.approx(covariance)
    turn = Rotation.from_rotvec([0.1, -0.7, 0.4]).as_matrix()
    both = np.kron(np.eye(2), turn)
    assert again.transformed(turn, np.zeros(3)).covariance[3] == pytest.approx(both @ covariance[3] @ both.T)
    for text, said in (
        (f"{HEAD},sigma_position_m,sigma_angle_rad\n{row},0.002,0\n", "no covariance"),
        (f"{HEAD},sigma_position_m\n{row},0.002\n", "lacks components"),
        (f"{HEAD},sigma_position_m,sigma_angle_rad\n{row},0.002,\n", "a value is missing"),
        (f"{HEAD},sigma_position_m,sigma_angle_rad\n0.5,,,,,,,,1,1\n", "seen in no frame"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=said):
            read_pose_csv(path)


def test_refusals(tmp_path, rng):
    noisy(tmp_path / "pose.csv", covariances(31, rng), 5)
    with pytest.raises(InputError, match="weight positions of one body"):
        recorded(tmp_path, displacement=True).inverse_problem()
    alike = recorded(tmp_path, displacement=True, pose={"body": "cube", "covariances": False})
    assert alike.inverse_problem().n == 12


@pytest.mark.slow
def test_covariances_bring_fits_nearer_and_bars_hold_with_and_without(tmp_path):
    """The tag is far from the camera in the last frames, and 30 times worse: 40 recordings, 12 numbers each."""
    sizes = np.where(np.arange(31) < 27, 1.0, 30.0)
    covariance = np.array([np.diag(np.repeat([2e-4, 4e-3], 3) ** 2) * s**2 for s in sizes])
    held, off = {True: 0, False: 0}, {True: [], False: []}
    n, truth = 40, None
    for seed in range(n):
        noisy(tmp_path / "pose.csv", covariance, seed)
        for given in (True, False):
            loaded = recorded(tmp_path, pose={"body": "cube", "covariances": given})
            problem = loaded.inverse_problem()
            truth = problem.values(problem.x0)
            (tmp_path / "scene.json").write_text(json.dumps(loaded.raw))
            result = optimize_scene(load_scene(tmp_path / "scene.json"), RunFolder(tmp_path / f"run{seed}{given}"))
            for entry, true in zip(result["parameters"].values(), truth, strict=True):
                held[given] += entry["interval_lower"] <= true <= entry["interval_upper"]
                off[given].append(abs(entry["value"] - true))
    for given in (True, False):
        assert 0.90 <= held[given] / (12 * n) <= 0.99
    assert np.median(off[False]) > 10.0 * np.median(off[True])
