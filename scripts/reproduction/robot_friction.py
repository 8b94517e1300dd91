"""Friction of a car's tyres from a recording of how it skids (after Qiao, Liang, Koltun, Lin 2021)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import add
from add.typing import FloatArray
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.held_differences import gradient_error

#: Friction; noise of a recorded position [m]; time between samples and length of the recording [s]; step [s].
TRUTH, NOISE, SAMPLE, END, DT = 0.6, 1e-3, 0.01, 1.0, 1e-3
#: Radius of the wheels, half the wheelbase and half the track [m].
RADIUS, LENGTH, WIDTH = 0.05, 0.15, 0.1
#: Speed along the car and sideways [m/s], rate of turning [rad/s].
SPEED, SIDEWAYS, TURN = 3.0, 0.5, 3.0
#: Where fits begin; numbers that may be unknown besides, with their start and scale.
STARTS = (0.2, 0.4, 1.0)
UNKNOWN = {"bodies.car.velocity": (0, 2.9, 0.1), "bodies.car.angular_velocity": (2, 2.7, 0.5)}
#: Markers on the chassis [m].
MARKERS = {"front": (0.2, 0.0, 0.05), "left": (-0.1, 0.08, 0.05), "right": (-0.1, -0.08, 0.05)}


def car(dt: float) -> dict[str, Any]:
    """Return a car that turns and slides sideways on a floor, rear wheels braked and front wheels free."""
    links: dict[str, Any] = {
        "chassis": {"mass": 2.0, "inertia": [0.01, 0.03, 0.035, 0, 0, 0], "center_of_mass": [0, 0, 0]}
    }
    joints: dict[str, Any] = {"chassis": {}}  # moves freely
    drives = {}
    for end, x in (("front", LENGTH), ("rear", -LENGTH)):
        for side, y in (("left", WIDTH), ("right", -WIDTH)):
            name = f"{end} {side}"
            shape = {"geometry": {"shape": "sphere", "radius": RADIUS}}
            links[name] = {"mass": 0.1, "shapes": [shape]}
            joints[name] = {
                "parent": "chassis", "position": [x, y, 0], "axis": [0, 1, 0], "rate": SPEED / RADIUS, "damping": 1e-4
            }  # fmt: skip
            if end == "rear":
                drives[name] = {"joint": name, "type": "velocity", "input": 0.0, "damping": 1.0, "limit": 1.0}
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": round(END / dt), "integrator": "bdf2", "newton": {"atol": 1e-10, "rtol": 1e-12}},
        "gravity": [0, 0, -9.81],
        "bodies": {
            "car": {
                "type": "articulated", "base": "free", "position": [0, 0, RADIUS - 6e-4], "links": links,
                "joints": joints, "drives": drives,
                "velocity": [SPEED, SIDEWAYS, 0], "angular_velocity": [0, 0, TURN],
            }
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {
            "friction_law": "tanh", "friction": TRUTH, "stiffness": 1e4, "stick_stiffness": 500.0, "damping": 100.0,
            "damping_ramp": 5e-4, "between_bodies": False,
        },
        "markers": {name: {"body": "car/chassis", "point": list(place)} for name, place in MARKERS.items()},
    }  # fmt: skip


def recorded(raw: dict[str, Any], finer: int = 2) -> dict[str, FloatArray]:
    """Return where the markers are at the samples, of a run with a part of the step (k, 3) [m]."""
    fine = copy.deepcopy(raw)
    fine["time"] |= {"dt": raw["time"]["dt"] / finer, "steps": finer * raw["time"]["steps"]}
    built = add.scene_from_dict(fine).build()
    run = built.run()
    each = round(SAMPLE / fine["time"]["dt"])
    states = [run.kinematics(k) for k in range(each, run.n_steps + 1, each)]
    places = np.array([built.markers.points(kin, built.theta)[0] for kin in states])
    return {name: places[:, k] for k, name in enumerate(MARKERS)}


def fitted(raw: dict[str, Any], paths: dict[str, FloatArray], start: float, *, alone: bool) -> dict[str, Any]:
    """Return the scene that asks for noisy paths; the friction is unknown, or the motion at the start besides."""
    out = copy.deepcopy(raw)
    for name, path in paths.items():
        times = (SAMPLE * (1 + np.arange(len(path)))).round(12).tolist()
        asked = {"type": "track", "marker": name, "times": times, "values": path.tolist()}
        out.setdefault("objective", []).append(asked)
    out["parameters"] = [{"path": "contact.friction", "start": start, "transform": "log", "scale": 0.3}]
    if not alone:
        for path, (component, value, scale) in UNKNOWN.items():
            out["parameters"].append({"path": path, "components": [component], "start": value, "scale": scale})
    out["optimizer"] = {"method": "gauss-newton", "max_evaluations": 25, "objective_tolerance": 1e-10}
    return out


def noisy(paths: dict[str, FloatArray], seed: int) -> dict[str, FloatArray]:
    """Return the paths with white noise."""
    rng = np.random.default_rng(seed)
    return {name: path + NOISE * rng.normal(size=path.shape) for name, path in paths.items()}


def with_one_step(raw: dict[str, Any], seeds: int) -> list[float]:
    """Return the friction that each seed gives, friction alone unknown, if the recording has the step of the fits."""
    paths, found = recorded(raw, 1), []
    for seed in range(seeds):
        problem = add.scene_from_dict(fitted(raw, noisy(paths, seed), STARTS[1], alone=True)).inverse_problem()
        found.append(float(problem.values(problem.optimize().x)[0]))
    return found


def one_step_row(found: list[float]) -> Row:
    """Return what `with_one_step` found as it is printed."""
    return Row(
        "friction alone, recording with the step of the fits: mu; largest error, relative",
        f"{np.mean(found):.5f} +- {np.std(found):.5f}; {np.abs(np.array(found) - TRUTH).max() / TRUTH:.1e}",
    )


def bound(problem: add.inverse.InverseProblem, x: FloatArray, samples: int) -> float:
    """Return the Cramer-Rao bound of the friction at x, for white noise on every coordinate of every sample."""
    jacobian = problem.jacobian(problem.residuals(x)).dense
    # Residuals are over the root of the number of samples of a marker.
    covariance = NOISE**2 / samples * np.linalg.inv(jacobian.T @ jacobian)
    return float(problem.design.jacobian(x).toarray()[0, 0] * np.sqrt(covariance[0, 0]))


def run(context: Context) -> Outcome:
    """Fit all seeds, friction alone and with the motion at the start, and one seed from three starts."""
    dt, seeds = (2e-3, 1) if context.short else (DT, 5)
    raw = car(dt)
    paths = recorded(raw)
    samples = len(next(iter(paths.values())))
    rows, values = [], {}
    for label, alone in (("friction alone", True), ("speed and turn unknown besides", False)):
        found, runs, spread = [], [], 0.0
        for seed in range(seeds):
            ends = []
            for start in STARTS if seed == 0 and alone else STARTS[1:2]:
                problem = add.scene_from_dict(fitted(raw, noisy(paths, seed), start, alone=alone)).inverse_problem()
                if not found and not ends and alone:
                    error = gradient_error(problem, problem.x0)
                result = problem.optimize()
                ends.append(float(problem.values(result.x)[0]))
                runs.append(result.evaluations)
            spread = max(spread, float(np.ptp(ends)))
            found.append(ends[-1])
        limit = bound(problem, result.x, samples)
        off = np.array(found) - TRUTH
        values[label] = {"found": found, "bound": limit, "spread": spread, "runs": runs}
        rows += [
            Row(f"{label}: mu (truth {TRUTH:g}); its bound",
                f"{np.mean(found):.5f} +- {np.std(found):.5f}; {limit:.5f}", "robots6.friction"),
            Row(f"{label}: largest error of {seeds} seeds, relative; over the bound",
                f"{np.abs(off).max() / TRUTH:.1e}; {np.abs(off).max() / limit:.1f}"),
            Row(f"{label}: runs a fit", f"{min(runs)} to {max(runs)}"),
        ]  # fmt: skip
    values["error"] = error
    first = values["friction alone"]
    rows += [
        one_step_row(with_one_step(raw, seeds)),
        Row(f"distance between fits from mu = {', '.join(map(str, STARTS))}", f"{first['spread']:.1e}"),
        Row("gradient by friction, error against differences with contacts held", f"{error:.1e}"),
    ]
    with figure(context.image("robot_friction.png"), 6.4, 2.4) as drawn:
        path_axes, found_axes = drawn.subplots(1, 2)
        for name, path in paths.items():
            path_axes.plot(path[:, 0], path[:, 1], ".", ms=2.5, label=name)
        path_axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
        path_axes.legend()
        for k, label in enumerate(("friction alone", "speed and turn unknown besides")):
            one = values[label]
            x = np.arange(seeds) + 0.2 * k
            found_axes.errorbar(x, one["found"], yerr=one["bound"], fmt="o", ms=3, lw=1, label=label)
        found_axes.axhline(TRUTH, color="k", lw=0.6)
        found_axes.set(xlabel="seed of the noise", ylabel="friction found")
        found_axes.legend()
    caption = "Recorded markers, from above; what each seed gives, with its bound; line: the truth."
    return Outcome(tuple(rows), {"robot_friction.png": caption}, NOTES, values)


NOTES = (
    "The recording is simulated with half the step of the fits: three markers at 100 Hz over 1 s with white noise "
    "of 1 mm. The bound is Cramer and Rao's, sigma (J^T J)^-1/2; what an error has beyond it is the step's. The "
    "car is ours: a chassis of 2 kg that moves freely and four wheels on hinges; the rear ones are braked until "
    "they lock, the front ones roll, and the car turns as it skids. Tanh friction, which creeps, in model and "
    "recording alike.",
)

ENTRY = Entry(
    "robots6",
    "Robots: friction from motion",
    "A car with locked rear wheels skids over a floor; the friction of its tyres is found from markers on the chassis "
    "(after the racecar of Qiao, Liang, Koltun, Lin, ICML 2021).",
    run,
)
