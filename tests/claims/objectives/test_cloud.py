"""Point clouds: closest points against brute force, exact gradients with faces, edges and vertices active, filters."""

import json
import re

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from add.commands.error_bars import error_bars
from add.errors import InputError
from add.geometry.triangle_surface import box_surface
from add.io.runfolder import RunFolder
from add.mocap.clouds import Clouds, read_clouds
from add.objectives.beyond_markers import closest_points
from add.scene import scene_from_dict
from add.scene.build.doubts import doubts

BOX = box_surface([2.0, 1.0, 1.0])


def test_distances_from_a_box(rng):
    """max over axes inside, Euclidean outside: the closed form of a box; all three kinds of feature are met."""
    points = rng.uniform(-2.0, 2.0, size=(3000, 3))
    found = closest_points(points, *BOX)
    q = np.abs(points) - np.array([1.0, 0.5, 0.5])
    expected = np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)
    assert found.distances == pytest.approx(expected, abs=1e-12)
    outside = expected > 0
    axes = (q[outside] > 0).sum(axis=1)
    assert min((axes == k).sum() for k in (1, 2, 3)) > 100 and (~outside).sum() > 50
    on = np.einsum("mi,mik->mk", found.weights, BOX[0][BOX[1]][found.triangles])
    assert points - on == pytest.approx(found.distances[:, None] * found.normals, abs=1e-12)
    assert found.weights.min() >= 0.0 and found.weights.sum(axis=1) == pytest.approx(1.0)


def scene(folder, frames, times, element="tet4", edge=0.04, **cloud):
    """A soft ball in flight under gravity, seen by points."""
    frame = np.repeat(np.arange(len(frames)), [len(p) for p in frames])
    np.savez(folder / "cloud.npz", times=np.asarray(times), points=np.concatenate(frames), frame=frame)
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.01, "steps": 8, "newton": {"atol": 1e-11}},
            "bodies": {
                "ball": {
                    "type": "soft",
                    "mesh": {"shape": "sphere", "radius": 0.05, "edge": edge},
                    "element": element,
                    "material": {"young": 3e3, "poisson": 0.3, "density": 200, "viscosity": 1.0},
                    "velocity": [0.5, 0.2, 0.0],
                    "angular_velocity": [0, 3, 1],
                    "loads": [{"where": {"box": {"min": [0.02, None, None]}}, "force": [0.3, 0, 0]}],
                }
            },
            "objective": [{"type": "cloud", "body": "ball", "file": "cloud.npz", **cloud}],
            "parameters": [
                {"path": "bodies.ball.velocity"},
                {"path": "bodies.ball.material.young", "transform": "log"},
                {"path": "bodies.ball.angular_velocity"},
            ],
            "optimizer": {"method": "gauss-newton", "max_evaluations": 25},
        },
        folder=folder,
    )


def path(t):
    return np.array([0.5 * t, 0.2 * t, -0.5 * 9.81 * t**2])


PLACE = {"turn": [0.1, -0.2, 0.15], "move": [0.002, -0.003, 0.001], "scale": 0.98, "about": [0.01, 0.0, -0.02]}
CASES = [
    {},
    {"loss": "soft-l1", "loss_scale": 0.004},
    {"loss": "huber", "loss_scale": 0.004},
    {"loss": "huber", "loss_scale": 0.004, "place": PLACE, "time_offset": 0.0021},
    {"element": "tet10", "loss": "huber", "loss_scale": 0.004, "place": PLACE, "time_offset": 0.0021},
]


@pytest.mark.parametrize("loss", CASES)
def test_gradient_with_faces_edges_and_vertices(tmp_path, loss):
    """Adjoint and forward tangents against central differences, between steps and on them; place and clock."""
    rng = np.random.default_rng(11)
    times = [0.02, 0.035, 0.06]
    directions = rng.normal(size=(3, 60, 3))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    radii = rng.uniform(0.040, 0.075, size=(3, 60, 1))
    loaded = scene(tmp_path, [path(t) + d * r for t, d, r in zip(times, directions, radii, strict=True)], times, **loss)
    if "place" in loss:
        raw = loaded.raw
        raw["parameters"] += [{"path": f"objective.0.place.{key}"} for key in ("turn", "move", "scale")]
        raw["parameters"].append({"path": "objective.0.time_offset", "scale": 0.01})
        loaded = scene_from_dict(raw, folder=tmp_path)
    problem = loaded.inverse_problem()
    x = problem.x0
    (experiment,) = problem.experiments
    cloud = experiment.objective.objectives[0]
    run = experiment.simulation.run(problem.theta(x, experiment))
    active = [0, 0, 0]
    for state in run.states():
        for _, met in cloud._met(state, problem.theta(x, experiment)):
            for corners in (met.weights > 1e-12).sum(axis=1):
                active[corners - 1] += 1
    assert min(active) >= 3, "vertices, edges and faces are closest"
    _, gradient = problem.value_and_grad(x)
    step = 1e-6
    for k in range(problem.n):
        moved = np.eye(problem.n)[k] * step
        difference = (problem.value(x + moved)[0] - problem.value(x - moved)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(difference, rel=2e-5, abs=2e-6 * np.abs(gradient).max())
    rho, jacobian = problem.residuals_and_jacobian(x)
    assert rho @ rho == pytest.approx(problem.value(x)[0], rel=1e-12)
    assert 2.0 * jacobian.transposed(rho) == pytest.approx(gradient, rel=1e-8, abs=1e-12)


def seen(problem, truth, times, rng, noise=2e-4):
    """Points on the side of the surface that a camera at +y sees, from a run with the true numbers."""
    (experiment,) = problem.experiments
    cloud = experiment.objective.objectives[0]
    theta = problem.theta(problem.design.inverse(truth), experiment)
    frames = []
    for state in experiment.simulation.run(theta).states():
        for frame in cloud.surface.frames(state, theta):
            corners = (cloud.corners @ cloud.surface.observed(state, int(frame), theta))[cloud.triangles]
            facing = np.flatnonzero(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 1] > 0.0)
            weights = rng.dirichlet([1.0, 1.0, 1.0], size=150)
            frames.append(np.einsum("mi,mik->mk", weights, corners[rng.choice(facing, 150)]))
            frames[-1] += noise * rng.normal(size=frames[-1].shape)
    return frames


def test_motion_and_stiffness_from_one_side(tmp_path):
    """Half a ball, seen from one side with noise and clutter: velocity within 2 %, stiffness within 10 %."""
    rng = np.random.default_rng(6)
    times = np.arange(1, 9) / 100.0
    problem = scene(tmp_path, [path(t) + np.zeros((1, 3)) for t in times], times).inverse_problem()
    truth = np.array([0.55, 0.15, 0.05, 2500.0, 0.0, 3.0, 1.0])
    frames = seen(problem, truth, times, rng)
    clutter = [rng.uniform([-0.2, -0.2, -0.6], [0.3, 0.2, -0.2], size=(40, 3)) for _ in frames]
    frames = [np.concatenate(pair) for pair in zip(frames, clutter, strict=True)]
    fitted = scene(
        tmp_path, frames, times, loss="huber", loss_scale=0.002, plane={"point": [0, 0, -0.19], "normal": [0, 0, 1]}
    ).inverse_problem()
    found = fitted.values(fitted.optimize().x)
    assert found[:3] == pytest.approx(truth[:3], abs=0.01)
    assert found[3] == pytest.approx(truth[3], rel=0.1)


def test_a_coarse_quadratic_ball_is_round_to_points(tmp_path):
    """Points on the sphere through the nodes: the triangles of the nodes lie 0.9 mm behind some of them."""
    rng = np.random.default_rng(4)
    directions = rng.normal(size=(400, 3))
    points = 0.05 * directions / np.linalg.norm(directions, axis=1)[:, None]
    problem = scene(tmp_path, [points + path(0.0)], [0.0], element="tet10", edge=0.026).inverse_problem()
    (experiment,) = problem.experiments
    cloud = experiment.objective.objectives[0]
    theta = problem.theta(problem.x0, experiment)
    start = next(iter(experiment.simulation.run(theta).states()))
    nodes = cloud.surface.observed(start, 0, theta)
    assert np.linalg.norm(nodes, axis=1) == pytest.approx(0.05, rel=1e-6)
    ((_, met),) = cloud._met(start, theta)
    assert np.abs(met.distances).max() < 1.5e-4, "80 quadratic faces"
    hull = ConvexHull(nodes).simplices
    turned = np.linalg.det(nodes[hull]) < 0.0
    hull[turned] = hull[turned][:, ::-1]
    assert closest_points(points, nodes, hull).distances.max() > 8e-4


def test_filters():
    clouds = Clouds(np.array([0.0, 1.0, 2.0]), tuple(np.arange(12.0).reshape(4, 3) + k for k in range(3)))
    assert clouds.shifted(1.0).cropped(0.0, 1.0).n_points == 8
    assert clouds.in_box(np.array([3.0, -np.inf, -np.inf]), np.full(3, np.inf)).points[0][:, 0].min() == 3.0
    assert clouds.above(np.zeros(3), np.array([0.0, 0.0, -1.0])).n_points == 0
    assert clouds.every(3).points[1] == pytest.approx(clouds.points[1][::3])


def test_files(tmp_path):
    """CSV, NPZ and PLY of the same points; NaN marks what a camera did not see."""
    times, points = (
        np.array([0.0, 0.5]),
        [np.arange(9.0).reshape(3, 3), np.array([[1.0, np.nan, 2.0], [4.0, 5.0, 6.0]])],
    )
    rows = "".join(f"{t},{x},{y},{z}\n" for t, p in zip(times, points, strict=True) for x, y, z in p)
    (tmp_path / "c.csv").write_text("time_s,x_m,y_m,z_m\n" + rows)
    frame = np.array([0, 0, 0, 1, 1])
    np.savez(tmp_path / "c.npz", times=times, points=np.concatenate(points), frame=frame)
    (tmp_path / "ply").mkdir()
    for k, cloud in enumerate(points):
        body = "\n".join(" ".join(map(str, row)) for row in cloud)
        head = f"ply\nformat ascii 1.0\nelement vertex {len(cloud)}\n" + "".join(f"property float {a}\n" for a in "xyz")
        (tmp_path / "ply" / f"{k:03d}.ply").write_text(head + "end_header\n" + body + "\n")
    for found in (
        read_clouds(tmp_path / "c.csv"),
        read_clouds(tmp_path / "c.npz"),
        read_clouds(tmp_path / "ply", rate=2),
    ):
        assert found.times == pytest.approx(times)
        assert found.points[0] == pytest.approx(points[0]) and found.points[1] == pytest.approx(points[1][1:])
    assert read_clouds(tmp_path / "c.csv", scale=1e-3).points[0].max() == pytest.approx(0.008)


def test_colours(tmp_path):
    """Bytes or shares, in all three kinds of file; what a filter drops takes its colours with it."""
    points = [np.arange(9.0).reshape(3, 3), np.array([[1.0, np.nan, 2.0], [4.0, 5.0, 6.0]])]
    tints = [np.array([[255, 0, 0], [0, 255, 0], [200, 30, 51]]), np.array([[0, 0, 255], [255, 0, 51]])]
    times, frame = np.array([0.0, 0.5]), np.array([0, 0, 0, 1, 1])
    np.savez(tmp_path / "a.npz", times=times, points=np.concatenate(points), frame=frame,
             colours=np.concatenate(tints).astype(np.uint8))  # fmt: skip
    np.savez(tmp_path / "b.npz", times=times, points=np.concatenate(points), frame=frame,
             colours=np.concatenate(tints) / 255.0)  # fmt: skip
    rows = "".join(
        f"{t},{','.join(map(str, x))},{','.join(map(str, c))}\n"
        for t, p, tint in zip(times, points, tints, strict=True)
        for x, c in zip(p, tint, strict=True)
    )
    (tmp_path / "c.csv").write_text("time_s,x_m,y_m,z_m,red,green,blue\n" + rows)
    (tmp_path / "ply").mkdir()
    for k, (cloud, tint) in enumerate(zip(points, tints, strict=True)):
        body = "\n".join(" ".join(map(str, [*x, *c])) for x, c in zip(cloud, tint, strict=True))
        head = f"ply\nformat ascii 1.0\nelement vertex {len(cloud)}\n" + "".join(f"property float {a}\n" for a in "xyz")
        head += "".join(f"property uchar {a}\n" for a in ("red", "green", "blue"))
        (tmp_path / "ply" / f"{k:03d}.ply").write_text(head + "end_header\n" + body + "\n")
    for name in ("a.npz", "b.npz", "c.csv", "ply"):
        found = read_clouds(tmp_path / name, rate=2)
        assert found.colours[0] == pytest.approx(tints[0] / 255.0), name
        assert found.colours[1] == pytest.approx(tints[1][1:] / 255.0), name
        red = found.of_colour(np.array([0.7, -np.inf, -np.inf]), np.array([np.inf, 0.2, 0.5]))
        assert red.points[0] == pytest.approx(points[0][[0, 2]]) and red.points[1] == pytest.approx(points[1][1:])
        assert [len(tint) for tint in red.every(2).colours] == [1, 1]


def test_colours_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="no colours"):
        scene(tmp_path, [np.zeros((4, 3))], [0.02], colour={"min": [0.5, None, None]}).inverse_problem()
    np.savez(tmp_path / "d.npz", times=[0.0], points=np.zeros((2, 3)), frame=[0, 0], colours=np.zeros((1, 3)))
    with pytest.raises(InputError, match="one colour"):
        read_clouds(tmp_path / "d.npz")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "time,x,y,z\n0,1,2,3\n", "other columns"),
        ("a.csv", "time_s,x_m,y_m,z_m\n0,1,2\n", "not four numbers"),
        ("a.csv", "time_s,x_m,y_m,z_m\n1,1,2,3\n0,1,2,3\n", "do not increase"),
        ("a.csv", "time_s,x_m,y_m,z_m\n", "no frames"),
        ("a.npz", "nonsense", "cannot be read"),
        ("a.txt", "", "not a sequence"),
    ],
)
def test_damaged_files(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said) as error:
        read_clouds(tmp_path / name)
    assert name in str(error.value)


def test_refusals(tmp_path):
    far = {"box": {"min": [5, None, None]}}
    with pytest.raises(InputError, match="no recorded point"):
        scene(tmp_path, [np.zeros((4, 3))], [0.02], **far).inverse_problem()
    raw = json.loads(json.dumps(scene(tmp_path, [np.zeros((4, 3))], [0.02]).raw))
    raw["bodies"]["rock"] = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1.0}
    raw["objective"][0]["body"] = "rock"
    with pytest.raises(InputError, match="surface of a soft body"):
        scene_from_dict(raw).inverse_problem()


def test_error_bars_of_a_cloud(tmp_path):
    """They hold the truth; points that share their errors, a bulge towards the camera, make them wider."""
    rng = np.random.default_rng(4)
    times = np.arange(1, 9) / 100.0
    problem = scene(tmp_path, [path(t) + np.zeros((1, 3)) for t in times], times).inverse_problem()
    truth = np.array([0.55, 0.15, 0.05, 2500.0, 0.0, 3.0, 1.0])
    frames = seen(problem, truth, times, rng)
    bars = {}
    for name, size in (("white", 0.0), ("shared", 2e-3)):
        moved = []
        for points, t in zip(frames, times, strict=True):
            away = points - path(t) - np.array([0.05 * t, -0.05 * t, 0.05 * t])
            bulge = size * np.exp(-((away[:, [0, 2]] - [0.015, 0.01]) ** 2).sum(axis=1) / 0.02**2)
            moved.append(points + bulge[:, None] * [0.0, 1.0, 0.0])
        loaded = scene(tmp_path, moved, times)
        fitted = loaded.inverse_problem()
        found = error_bars(loaded, fitted, fitted.optimize().x, RunFolder(tmp_path / name))
        bars[name] = found["parameters"], found["residuals"]["scene"], " ".join(found["contains"])
    for k, axis in enumerate("012"):
        entry = bars["white"][0][f"bodies.ball.velocity[{axis}]"]
        assert entry["interval_lower"] < truth[k] < entry["interval_upper"]
        other = bars["shared"][0][f"bodies.ball.velocity[{axis}]"]
        assert other["errors"]["correlated"] > 1.5 * other["errors"]["noise"]
    assert bars["white"][1]["effective"] > 5 * bars["shared"][1]["effective"]
    assert "points count for" in bars["shared"][2] and bars["shared"][1]["length"] < 0.1


def test_a_frame_that_no_parameter_moves(tmp_path):
    """A frame at t = 0 and a material alone: its residuals have no tangents."""
    loaded = scene(tmp_path, [path(t) + np.eye(3) * 0.06 for t in (0.0, 0.05)], [0.0, 0.05])
    raw = json.loads(json.dumps(loaded.raw)) | {
        "parameters": [{"path": "bodies.ball.material.young", "transform": "log"}]
    }
    problem = scene_from_dict(raw, folder=tmp_path).inverse_problem()
    rho, jacobian = problem.residuals_and_jacobian(problem.x0)
    _, gradient = problem.value_and_grad(problem.x0)
    assert abs(gradient[0]) > 1e-12
    assert 2.0 * jacobian.transposed(rho) == pytest.approx(gradient, rel=1e-8)


@pytest.mark.parametrize(
    ("times", "cloud", "said"),
    [
        (0.02 * np.arange(9), {}, None),
        (
            0.02 * np.arange(9),
            {"time_offset": 0.09},
            "4 of 9 frames lie within the run, 0 to 0.08 s; they are from -0.09",
        ),
        (0.03 * np.arange(9), {"crop": [0.0, 0.05]}, None),
        (0.03 * np.arange(9), {}, "3 of 9 frames lie within the run.*a longer time.duration .* objective.0.crop says"),
        (10.0 * np.arange(8.0), {}, r"1 of 8 frames .* are these milliseconds\?"),
    ],
)
def test_frames_outside_of_the_run_are_doubted(tmp_path, monkeypatch, times, cloud, said):
    """As frames of markers are: fewer than half of them count, and nobody said so."""
    monkeypatch.chdir(tmp_path)
    found = [
        text
        for text in doubts(scene(tmp_path, [0.05 * np.eye(3)] * len(times), times, edge=0.05, **cloud).build())
        if "frames" in text
    ]
    assert len(found) == (said is not None)
    assert said is None or re.match(rf"objective\.0\.file: .*cloud\.npz: {said}", found[0])
