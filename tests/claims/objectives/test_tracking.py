"""Tracking: interpolation, missing frames, clocks, displacements, windows, projections, and their derivatives."""

from dataclasses import replace

import numpy as np
import pytest

from add.adjoint import Checkpoints, evaluate, pushforward, value_and_gradient
from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.equations.points import WeightedPoints
from add.errors import InputError
from add.mocap import Recording, write_csv
from add.objectives import Cauchy, Tracking, WeightedSum, total
from add.objectives.base import Placement
from add.objectives.frames_over import FramesOver, hermite
from add.scene import scene_from_dict
from add.scene.build.targets import at_steps

DT = 0.1
#: Two points on three nodes: the second is a mean.
POINTS = WeightedPoints(np.array([[0, 0], [1, 2]]), np.array([[1.0, 0.0], [0.25, 0.75]]))


def path(t, k=3):
    """Nodes on polynomials of degree k, positions and velocities (3, 3)."""
    c = np.random.default_rng(7).normal(size=(k + 1, 3, 3))
    x = sum(c[i] * t**i for i in range(k + 1))
    v = sum(i * c[i] * t ** (i - 1) for i in range(1, k + 1))
    return x, v


def states(motion, n, dt=DT):
    """The states of a motion t -> (x, v); the first has no past."""
    q, v = zip(*(tuple(part.ravel() for part in motion(k * dt)) for k in range(n + 1)), strict=True)
    return [
        State(k * dt, k, np.stack([q[k], q[max(k - 1, 0)]]), np.stack([v[k], v[max(k - 1, 0)]])) for k in range(n + 1)
    ]


def tracking(times, targets=None, weights=None, dt=DT, **options):
    times = np.asarray(times, dtype=float)
    if targets is None:
        targets = np.random.default_rng(3).normal(size=(times.size, 2, 3))
    if weights is None:
        weights = np.random.default_rng(4).uniform(0.5, 2.0, size=(times.size, 2))
    options = {"projector": np.eye(3)} | options
    return Tracking(POINTS, dt, times, targets, weights, **options)


def exact(t, k=3):
    x, _ = path(t, k)
    return np.stack([x[0], 0.25 * x[1] + 0.75 * x[2]])


THETA = np.zeros(1)
ON_STEPS = [0.0, DT, 2 * DT, 3 * DT]
BETWEEN = [0.013, 0.0999, 0.17, 0.171, 0.29]

# --- interpolation ---------------------------------------------------------------------------------------------------


def test_hermite_weights():
    assert hermite(0.0, 0.3) == (1.0, 0.0, 0.0, 0.0)
    assert hermite(1.0, 0.3) == (0.0, 0.0, 1.0, 0.0)
    x0, v0, x1, v1 = hermite(0.3, 0.5)
    assert x0 + x1 == pytest.approx(1.0)  # constants
    assert x1 * 0.5 + v0 + v1 == pytest.approx(0.15)  # lines


@pytest.mark.parametrize("times", [ON_STEPS, BETWEEN, ON_STEPS[1:2], [1e-13, 0.1 + 1e-13, 0.3 - 1e-13]])
def test_cubics_are_exact(times):
    """Every frame is seen once, in its own interval, where it is."""
    objective = tracking(times)
    seen = {}
    for state in states(path, 3):
        for frame in objective.frames(state, THETA):
            assert frame not in seen
            seen[frame] = objective.observed(state, frame, THETA)
    assert sorted(seen) == list(range(len(times)))
    for frame, place in seen.items():
        assert place == pytest.approx(exact(times[frame]), rel=1e-10, abs=1e-11)


def test_fourth_order():
    """Halving the step divides the error of the interpolant by 16."""

    def motion(t):
        return np.full((3, 3), np.sin(7 * t)), np.full((3, 3), 7 * np.cos(7 * t))

    errors = []
    for n in (4, 8, 16):
        dt = 0.4 / n
        times = np.linspace(0.0, 0.4, 37)
        targets = np.broadcast_to(np.sin(7 * times)[:, None, None], (37, 2, 3))
        objective = tracking(times, targets, np.ones((37, 2)), dt=dt)
        errors.append(np.sqrt(total(objective, states(motion, n, dt), THETA)))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([4.0, 4.0], abs=0.15)


def test_velocity_of_the_interpolant():
    objective = tracking(BETWEEN)
    for state in states(path, 3):
        for frame in objective.frames(state, THETA):
            h = 1e-5
            ends = [replace(objective, times=objective.times + s * h).observed(state, frame, THETA) for s in (1, -1)]
            times = objective.times[[frame]]
            slope = FramesOver.of_step(objective, state, THETA, times).places(slopes=True)[0]
            assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-7, abs=1e-8)


def test_value_is_the_weighted_sum_of_squares():
    times = [*ON_STEPS, *BETWEEN]
    times.sort()
    objective = tracking(times)
    places = np.array([exact(t) for t in times])
    expected = (objective.weights * ((places - objective.targets) ** 2).sum(axis=2)).sum()
    assert total(objective, states(path, 3), THETA) == pytest.approx(expected, rel=1e-10)
    assert objective.n_samples == 2 * len(times)


def test_frames_after_the_end_do_not_count():
    inside = tracking([0.05, 0.3])
    more = tracking(
        [0.05, 0.3, 0.300001, 5.0],
        np.concatenate([inside.targets, np.full((2, 2, 3), 99.0)]),
        np.concatenate([inside.weights, np.ones((2, 2))]),
    )
    run = states(path, 3)
    assert total(more, run, THETA) == total(inside, run, THETA)


# --- missing and masked ----------------------------------------------------------------------------------------------


def test_missing_samples_may_hold_nan():
    """A sample without weight counts nowhere, whatever it holds."""
    times = [0.0, 0.05, 0.1, 0.22]
    full = tracking(times)
    weights = full.weights.copy()
    weights[1, 0] = weights[3] = 0.0
    targets = full.targets.copy()
    targets[1, 0], targets[3] = np.nan, np.inf
    holes = tracking(times, targets, weights)
    seen = [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    places = np.array([exact(t) for t in times])
    expected = sum(weights[f, p] * ((places[f, p] - full.targets[f, p]) ** 2).sum() for f, p in seen)
    run = states(path, 3)
    assert total(holes, run, THETA) == pytest.approx(expected, rel=1e-10)
    assert holes.n_samples == 5
    for state in run:
        bar = StateTangent.zeros(2, 9)
        holes.step_pullback(state, THETA, bar, np.zeros(1))
        assert np.isfinite(bar.q).all() and np.isfinite(bar.v).all()
        along = StateTangents(np.arange(1), StateTangent(state.q[:, :, None], state.v[:, :, None]))
        assert np.isfinite(
            holes.step_residual_tangents(state, THETA, along, Directions.of(np.zeros((1, 1)))).values
        ).all()
    assert np.isnan(targets[1, 0]).all(), "the argument was changed"


# --- windows ---------------------------------------------------------------------------------------------------------


def test_window_normalises():
    """The frames of a window keep their ratios and get the sum of all weights; both ends belong to it."""
    times = np.linspace(0.0, 0.3, 13)
    objective = tracking(times)
    part = objective.within(0.05, 0.2)
    kept = (times >= 0.05 - 1e-12) & (times <= 0.2 + 1e-12)
    assert part.times.tolist() == times[kept].tolist() and kept.sum() == 7
    assert part.weights.sum() == pytest.approx(objective.weights.sum())
    assert part.weights / objective.weights[kept] == pytest.approx(part.weights[0, 0] / objective.weights[kept][0, 0])
    assert (part.targets == objective.targets[kept]).all()
    plain = objective.within(0.05, 0.2, mean=False)
    assert (plain.weights == objective.weights[kept]).all()
    run = states(path, 3)
    assert total(part, run, THETA) == pytest.approx(
        total(plain, run, THETA) * objective.weights.sum() / plain.weights.sum()
    )
    assert objective.within(0.051, 0.052).n_samples == 0


def test_at_steps():
    assert at_steps(np.array([1.0]), 0.1, 0.25, 0.6) == pytest.approx([0.3, 0.4, 0.5, 0.6])
    assert at_steps(np.array([0.45]), 0.1, 0.1 + 1e-13, 0.6) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert at_steps(np.array([1.0]), 0.1, 0.31, 0.39).size == 0


# --- derivatives at one state ----------------------------------------------------------------------------------------

LINE = np.array([1.0, 2.0, -0.5]) / np.linalg.norm([1.0, 2.0, -0.5])
CLOCK = {"clock": 0, "clock_start": 0.02, "last": 3}
KINDS = {
    "points": ({}, THETA),
    "axes": ({"projector": np.diag([1.0, 0.0, 1.0])}, THETA),
    "line": ({"projector": np.eye(3) - np.outer(LINE, LINE)}, THETA),
    "displacement": ({"reference": 0.0}, THETA),
    "displacement from a step": ({"reference": 0.1}, THETA),
    "displacement from between steps": ({"reference": 0.113}, THETA),
    "clock": (CLOCK, np.array([0.031])),
    "clock, back": (CLOCK, np.array([-0.033])),
    "displacement and clock": ({"reference": 0.1, **CLOCK}, np.array([0.015])),
    "displacement and clock from before the start": ({"reference": 0.1, **CLOCK}, np.array([0.131])),
    "displacement and clock from after the end": ({"reference": 0.1, **CLOCK}, np.array([-0.231])),
}
PLACE = {"placement": Placement(np.arange(3) + 1, np.arange(3) + 4, 7, np.array([0.3, -0.2, 0.5]))}
TURNED = {"placement": replace(PLACE["placement"], moves=np.array([1.0, 0.0]), scales=np.array([1.0, 0.0]))}
SHIFTED = {"placement": replace(PLACE["placement"], moves=np.zeros(1))}
PLACED = np.array([0.031, 0.8, -0.5, 0.3, 0.2, 0.1, -0.3, 1.1])
KINDS |= {
    "place and clock": (PLACE | CLOCK, PLACED),
    "place and a loss": (PLACE | {"loss": Cauchy(0.5)}, PLACED),
    "a place and a direction": (TURNED, PLACED),
    "place of displacements": (SHIFTED | {"reference": 0.1, "projector": np.diag([1.0, 0.0, 1.0])}, PLACED),
}
TIMES = [0.0, 0.02, 0.1, 0.13, 0.2, 0.25, 0.31, 9.0]


@pytest.mark.parametrize("kind", KINDS)
def test_pullback_and_tangents(kind):
    """By all states and by theta, against differences and each other; frames on steps, at the start, after the end."""
    options, theta = KINDS[kind]
    rng = np.random.default_rng(1)
    first = 2 if "reference" in options and options["reference"] > 0.0 else 0
    objective = tracking([t + (0.013 if t == 0.1 and options.get("reference") == 0.113 else 0) for t in TIMES[first:]],
                         **options)  # fmt: skip
    run = states(path, 3)
    dots = [StateTangent(rng.normal(size=(2, 9)), rng.normal(size=(2, 9))) for _ in run]
    theta_dot = rng.normal(size=theta.size)

    def value(h):
        moved = [State(s.t, s.step, s.q + h * d.q, s.v + h * d.v) for s, d in zip(run, dots, strict=True)]
        return total(objective, moved, theta + h * theta_dot)

    walked = objective.for_run()
    residuals = [walked.differences(state, theta) for state in run]
    assert sum(len(found) for found in residuals) == len(TIMES) - first - 2 * ("clock" not in options)
    slope, theta_bar = 0.0, np.ones(theta.size)  # it adds
    for state, dot in zip(reversed(run), reversed(dots), strict=True):
        bar = StateTangent.zeros(2, 9)
        bar.q += 1.0
        walked.step_pullback(state, theta, bar, theta_bar)
        slope += ((bar.q - 1.0) * dot.q).sum() + (bar.v * dot.v).sum()
    slope += (theta_bar - 1.0) @ theta_dot
    h = 1e-5
    difference = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
    assert difference == pytest.approx(slope, rel=1e-8, abs=1e-8)
    together = 0.0
    for state, dot in zip(run, dots, strict=True):
        along = StateTangents(np.arange(1), StateTangent(dot.q[:, :, None], dot.v[:, :, None]))
        tangents = walked.step_residual_tangents(state, theta, along, Directions.of(theta_dot[:, None]))
        if tangents.index.size:
            together += 2.0 * walked.step_residuals(state, theta) @ tangents.values[:, 0]
    assert together == pytest.approx(slope, rel=1e-11, abs=1e-11)


def test_placement():
    """A quarter turn about a point, twice as long, moved; displacements and directions; and back."""
    theta = np.array([0.0, 0.0, 0.5 * np.pi, 1.0, 2.0, 3.0, 2.0])
    place = Placement(np.arange(3), np.arange(3) + 3, 6, np.array([1.0, 0.0, 0.0]),
                      np.array([1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0]))  # fmt: skip
    y = np.tile([2.0, 0.0, 5.0], (3, 1))
    assert place.places(y, theta) == pytest.approx(np.array([[2, 4, 13], [0, 4, 10], [0, 2, 5]]))
    assert place.recorded(place.places(y, theta), theta) == pytest.approx(y)


def test_displacements_count_from_the_reference():
    """Of a window, too, which leaves the frame out from which they count."""
    times = [0.113, 0.2, 0.25]
    objective = tracking(times, reference=0.113)
    places = np.array([exact(t) for t in times])
    run = states(path, 3)

    def expected(frames, weights):
        return sum((weights[f] * ((places[f] - places[0] - objective.targets[f]) ** 2).sum(axis=1)).sum()
                   for f in frames)  # fmt: skip

    assert total(objective, run, THETA) == pytest.approx(expected([0, 1, 2], objective.weights), rel=1e-10)
    late = objective.within(0.2, 0.3, mean=False)
    assert total(late, run, THETA) == pytest.approx(expected([1, 2], objective.weights), rel=1e-10)
    with pytest.raises(ValueError, match="for_run"):
        objective.step_value(run[2], THETA)


def test_no_clock_loses_a_frame():
    """Frames beyond the end see where the last state goes, straight on; the objective has no kink there."""
    objective = tracking([0.05, 0.2, 0.3], clock=0, clock_start=0.0, last=3)
    run = states(path, 3)
    (x, v), far = path(0.3), 0.37
    seen = x + (0.3 + far - 0.3) * v
    mean = np.stack([seen[0], 0.25 * seen[1] + 0.75 * seen[2]])
    state = run[3]
    assert objective.frames(state, np.array([-far])).tolist() == [0, 1, 2]
    assert objective.observed(state, 2, np.array([-far])) == pytest.approx(mean, rel=1e-12)
    slopes = []
    for clock in (1e-9, -1e-9):  # the last frame just within, just beyond
        walked, theta_bar = objective.for_run(), np.zeros(1)
        for state in run:
            walked.step_pullback(state, np.array([clock]), StateTangent.zeros(2, 9), theta_bar)
        slopes.append(theta_bar[0])
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-6)
    with pytest.raises(ValueError, match="last"):
        tracking([0.05], clock=0)


def test_clock_moves_the_frames():
    """A later start of the clock sees later parts of the recording."""
    shift = 0.037
    plain = tracking([0.05, 0.1, 0.22])
    clocked = replace(plain, times=plain.times + shift, clock=0, clock_start=0.01, last=3)
    run = states(path, 3)
    assert total(clocked, run, np.array([0.01 + shift])) == pytest.approx(total(plain, run, THETA), rel=1e-12)
    assert clocked.simulation_times(np.array([0.01 + shift])) == pytest.approx(plain.times)
    early = replace(plain, clock=0, clock_start=0.0, last=3)
    first = run[0]
    assert early.frames(first, np.array([0.15])).tolist() == [0, 1], "frames before t = 0 see the start"


def test_clock_is_smooth_at_the_start():
    """A frame at t = 0 exactly moves with the initial velocity, whichever way the clock goes."""
    objective = replace(tracking([0.0, 0.05]), clock=0, last=3)
    run = states(path, 3)

    def value(clock):
        return total(objective, run, np.array([clock]))

    theta_bar = np.zeros(1)
    for state in run:
        objective.step_pullback(state, np.zeros(1), StateTangent.zeros(2, 9), theta_bar)
    h = 1e-6
    assert (value(h) - value(-h)) / (2 * h) == pytest.approx(theta_bar[0], rel=1e-5)


# --- in runs ---------------------------------------------------------------------------------------------------------

SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 8, "newton": {"atol": 1e-13, "rtol": 0}},
    "bodies": {
        "box": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.08, 0.06], "divisions": [1, 1, 1]},
            "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 200, "viscosity": 2},
            "position": [0.1, 0.2, 0.034],
            "orientation": [0.9, 0.1, -0.3, 0.3],
            "velocity": [0.5, 0.1, -0.4],
            "angular_velocity": [1.0, 2.0, 0.5],
        }
    },
    "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    "markers": {
        "top": {"body": "box", "point": [0.01, 0, 0.03]},
        "side": {"body": "box", "nodes": [0, 1, 4], "weights": [1, 2, 1]},
    },
}
POSE_TARGET = {"translation": [0.1, 0.2, 0.1], "orientation": [0.6, 0.0, 0.8, 0.0]}
OBJECTIVES = {
    "point": {"type": "point", "marker": "top", "target": [0.1, 0, 0.1], "time": "end"},
    "point with axes": {"type": "point", "marker": "side", "target": [0.1, 0, 0.1], "axes": "xz", "time": 0.025},
    "line": {"type": "line", "marker": "top", "point": [0, 0, 0.1], "direction": [1, 2, 2], "window": [0.0, 0.05]},
    "pose": {"type": "pose", "body": "box", **POSE_TARGET, "window": [0.021, 0.08]},
}


def length(quaternion):
    return (np.array(quaternion) / np.linalg.norm(quaternion)).tolist()


def scene(folder=".", **sections):
    raw = {**SCENE, **sections}
    raw["bodies"]["box"]["orientation"] = length(raw["bodies"]["box"]["orientation"])
    return scene_from_dict(raw, folder=folder)


def rotated(quaternion, x):
    """Rotate by a unit quaternion, written out."""
    w, u = quaternion[0], np.array(quaternion[1:])
    return x + 2 * np.cross(u, np.cross(u, x) + w * x)


def by_hand(kind, built, trajectory):
    """The objective as the format describes it."""
    item = OBJECTIVES[kind]
    q = trajectory.q.reshape(9, -1, 3)
    places = np.stack([built.markers.points(trajectory.kinematics(k), built.theta)[0] for k in range(9)])
    if kind == "point":
        return ((places[8, 0] - item["target"]) ** 2).sum()
    if kind == "point with axes":
        velocities = np.stack([built.markers.points(trajectory.kinematics(k), built.theta)[1] for k in range(9)])
        x0, v0, x1, v1 = hermite(0.5, 0.01)
        middle = x0 * places[2, 1] + v0 * velocities[2, 1] + x1 * places[3, 1] + v1 * velocities[3, 1]
        return ((middle - item["target"])[[0, 2]] ** 2).sum()
    if kind == "line":
        away = places[:6, 0] - np.array(item["point"])
        return (np.cross(away, np.array(item["direction"]) / 3.0) ** 2).sum(axis=1).mean()
    target = rotated(item["orientation"], built.model.bodies[0].mesh.points) + item["translation"]
    return ((q[3:] - target) ** 2).sum(axis=2).mean()


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_targets(kind):
    """Points, lines and poses: values as the format says, gradients as differences say."""
    loaded = scene(objective=[OBJECTIVES[kind]], parameters=[{"path": "bodies.box.velocity"}])
    problem = loaded.inverse_problem()
    built = loaded.build()
    value, runs = problem.value(problem.x0)
    assert value == pytest.approx(by_hand(kind, built, runs["scene"]), rel=1e-9)
    (experiment,) = problem.experiments
    check_run(experiment.simulation, experiment.objective, built)


def test_pose_from_a_file(tmp_path):
    target = np.random.default_rng(0).normal(size=(8, 3))
    np.savetxt(tmp_path / "pose.csv", target, delimiter=",")
    item = {"type": "pose", "body": "box", "positions_file": "pose.csv", "time": "end"}
    problem = scene(tmp_path, objective=[item], parameters=[{"path": "gravity"}]).inverse_problem()
    value, runs = problem.value(problem.x0)
    assert value == pytest.approx(((runs["scene"].q[-1].reshape(8, 3) - target) ** 2).sum(axis=1).mean())


def check_run(
    simulation, objective, built, paths=("velocity", "orientation", "position", "material.young"), clock=True
):
    """The gradient of a run by the scene's numbers against replayed differences."""
    ties, s = built.numbers.ties, built.numbers.values
    theta = ties.forward(s)
    found = value_and_gradient(simulation, objective, theta)
    gradient = ties.pullback(s, found.gradient)
    _, trajectory = evaluate(simulation, objective, theta)
    names = [f"bodies.box.{path}" for path in paths]
    names += ["recording.time_offset"] if clock and "recording.time_offset" in built.numbers.layout else []
    for name in names:
        for i in built.numbers.layout[name].indices.ravel():
            # the interpolant of a clock bends at every step: keep to one interval
            size = 0.01 if name == "recording.time_offset" else max(abs(s[i]), 0.01)
            d = np.zeros(s.size)
            d[i] = 1e-5 * size
            ends = [
                evaluate(simulation, objective, ties.forward(s + x * d), replay=trajectory.replay)[0] for x in (1, -1)
            ]
            difference = (ends[0] - ends[1]) / 2e-5
            norm = abs(found.value) + np.abs(gradient * np.abs(s)).max()
            assert difference == pytest.approx(gradient[i] * size, rel=1e-6, abs=1e-7 * norm), f"{name} {i}"
    return found, trajectory


#: A clock of 1/120 s; on the steps; from the start to far after the end.
CLOCKS = {
    "120 Hz": np.arange(30) / 120.0,
    "on the steps": np.arange(12) * 0.01,
    "one frame at the start": np.array([0.0]),
    "one frame at the end": np.array([0.08]),
    "slow": np.array([0.003, 0.0405, 0.079]),
}


@pytest.mark.parametrize("displacement", [False, True], ids=["positions", "displacement"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_recordings(tmp_path, clock, displacement):
    """Recordings on clocks of their own, with holes and a mask: the mean over what is seen, and its gradient."""
    times = CLOCKS[clock] + 2.5
    rng = np.random.default_rng(6)
    positions = rng.normal(size=(times.size, 2, 3)) * 0.02 + np.array([0.1, 0.2, 0.06])
    valid = np.ones((times.size, 2), dtype=bool)
    if times.size > 3:
        valid[2, 1] = valid[3, 0] = False
    positions[~valid] = np.nan
    write_csv(tmp_path / "r.csv", Recording(("T", "S"), times, positions, valid, ""))
    recording = {
        "file": "r.csv",
        "markers": {"S": "side", "T": "top"},
        "time_offset": 2.5,
        "displacement": displacement,
        "mask": [{"marker": "T", "from": 0.045, "to": 0.055}],
    }
    loaded = scene(
        tmp_path, recording=recording, objective=[{"type": "markers"}], parameters=[{"path": "bodies.box.velocity"}]
    )
    problem, built = loaded.inverse_problem(), loaded.build()
    (experiment,) = problem.experiments
    own = CLOCKS[clock][CLOCKS[clock] <= 0.08 + 1e-9]
    valid = valid[: own.size, ::-1].copy()
    valid[(own > 0.045) & (own < 0.055), 1] = False
    assert experiment.recording.names == ("side", "top")
    assert experiment.recording.times == pytest.approx(own, abs=1e-12)
    assert (experiment.recording.valid == valid).all()
    if displacement and own.size == 1:  # the displacement from a frame is zero at that frame
        with pytest.raises(InputError, match="no target or recorded frame"):
            problem.value(problem.x0)
        return
    value, runs = problem.value(problem.x0)
    squares, trajectory, origin = [], runs["scene"], None
    places, velocities = (
        np.stack([built.markers.points(trajectory.kinematics(k), built.theta)[i][::-1] for k in range(9)])
        for i in (0, 1)
    )
    marks = positions[: own.size, ::-1]
    for f, t in enumerate(own):
        k = min(int(t / 0.01), 7)
        x0, v0, x1, v1 = hermite(t / 0.01 - k, 0.01)
        seen = x0 * places[k] + v0 * velocities[k] + x1 * places[k + 1] + v1 * velocities[k + 1]
        origin = seen if origin is None else origin  # displacements count from the first frame, on both sides
        away = seen - marks[f] - ((origin - marks[0]) if displacement else 0.0)
        squares += [(away[j] ** 2).sum() for j in range(2) if valid[f, j]]
    assert value == pytest.approx(np.mean(squares), rel=1e-8, abs=1e-24)
    (part,) = experiment.objective.objectives
    fixed = WeightedSum((1.0,), (replace(part, clock=None),))
    check_run(experiment.simulation, fixed, built, paths=("velocity", "orientation"), clock=False)
    # With the clock: away from t = 0 and the end, where the interpolant bends.
    shift = -1e-4 if own[0] > 0.0 else 1e-4
    reference = None if part.reference is None else part.reference + shift
    inside = replace(part, times=part.times + shift, reference=reference)
    check_run(experiment.simulation, WeightedSum((1.0,), (inside,)), built)


@pytest.mark.parametrize("initial", ["given", "equilibrium"])
@pytest.mark.parametrize("crop", [[0.0, 0.08], [0.0312, 0.08]], ids=["from the start", "from a frame between steps"])
def test_displacements_of_a_run(tmp_path, crop, initial):
    """Reverse, residuals with their tangents, and differences; with the clock, and with checkpoints."""
    times = np.arange(30) / 120.0
    positions = np.random.default_rng(6).normal(size=(30, 2, 3)) * 0.02
    seen = np.ones((30, 2), dtype=bool)
    seen[6, 1] = False
    positions[6, 1] = np.nan
    write_csv(tmp_path / "r.csv", Recording(("top", "side"), times + 2.5, positions, seen, ""))
    recording = {"file": "r.csv", "markers": {"top": "top", "side": "side"}, "time_offset": 2.4993}
    recording |= {"displacement": True, "crop": crop}
    parameters = [{"path": f"bodies.box.{key}"} for key in ("velocity", "orientation", "material.young")]
    parameters.append({"path": "recording.time_offset", "scale": 0.01})
    sections = {"time": {**SCENE["time"], "initial": initial}}
    if initial == "equilibrium":
        pin = {"where": {"box": {"max": [-0.04, None, None]}}}
        load = {"where": {"box": {"min": [0.04, None, None]}}, "force": {"signal": "push"}}
        sections["bodies"] = {"box": {**SCENE["bodies"]["box"], "pins": [pin], "loads": [load]}}
        push = {"type": "sine", "offset": [0, 0, 0.2], "amplitude": [0, 0.5, 0.5], "frequency": 8}
        sections["signals"] = {"push": push}
        sections["obstacles"], parameters = {}, parameters[1:]
        parameters[1]["transform"] = "log"
    loaded = scene(tmp_path, recording=recording, objective=[{"type": "markers"}], parameters=parameters, **sections)
    problem, built = loaded.inverse_problem(), loaded.build()
    (part,) = problem.experiments[0].objective.objectives
    assert part.reference == part.times[0] and (part.reference > 0.03) == (crop[0] > 0.0)
    x = problem.x0
    value, gradient = problem.value_and_grad(x)
    again, same = problem.value_and_grad(x, schedule=Checkpoints(3))
    assert (again, same.tolist()) == (value, gradient.tolist())
    rho, jacobian = problem.residuals_and_jacobian(x)
    assert rho @ rho == pytest.approx(value, rel=1e-12)
    assert 2.0 * jacobian.transposed(rho) == pytest.approx(gradient, rel=1e-9, abs=1e-10 * np.abs(gradient).max())
    simulation, theta = built.simulation, problem.theta(x, problem.experiments[0])
    directions = problem.map_of(problem.experiments[0]).jacobian(x)
    tangents = pushforward(simulation, simulation.run(theta), theta, directions)
    forward = tangents.derivative(problem.experiments[0].objective, simulation.run(theta), theta)
    assert forward == pytest.approx(gradient, rel=1e-9, abs=1e-10 * np.abs(gradient).max())
    runs = {name: run.replay for name, run in problem.value(x)[1].items()}
    size = np.abs(gradient).max()
    for i in range(problem.n):
        d = np.zeros(problem.n)
        d[i] = 1e-5 * max(abs(x[i]), 0.1)
        ends = [problem.value(x + s * d, replay=runs)[0] for s in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * d[i]) == pytest.approx(gradient[i], rel=1e-5, abs=1e-6 * size)


def test_displacements_from_a_start_that_no_parameter_moves(tmp_path):
    """Gauss-Newton on a material alone: the place from which displacements count has no tangents."""
    times = np.arange(5) / 100.0
    drop = np.array([[0.1, 0.0, -4.0 * t * t] for t in times])
    seen = np.ones((5, 1), dtype=bool)
    write_csv(tmp_path / "take.csv", Recording(("tip",), times, drop[:, None], seen))
    scene = scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.01, "steps": 4, "newton": {"atol": 1e-11}},
            "bodies": {
                "beam": {
                    "type": "soft",
                    "mesh": {"shape": "box", "size": [0.1, 0.03, 0.03], "divisions": [3, 1, 1]},
                    "material": {"young": 2e4, "poisson": 0.3, "density": 1000, "viscosity": 10.0},
                    "pins": [{"where": {"box": {"max": [-0.05, None, None]}}}],
                }
            },
            "markers": {"tip": {"body": "beam", "point": [0.05, 0, 0]}},
            "recording": {"file": "take.csv", "markers": {"tip": "tip"}, "displacement": True},
            "objective": [{"type": "markers"}],
            "parameters": [{"path": "bodies.beam.material.young", "transform": "log"}],
        },
        folder=tmp_path,
    )
    problem = scene.inverse_problem()
    rho, jacobian = problem.residuals_and_jacobian(problem.x0)
    value, gradient = problem.value_and_grad(problem.x0)
    assert rho @ rho == pytest.approx(value, rel=1e-12)
    assert abs(gradient[0]) > 1e-9
    assert 2.0 * jacobian.transposed(rho) == pytest.approx(gradient, rel=1e-9)
