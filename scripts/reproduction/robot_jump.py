"""Atlas jumps from the ground: torques of its legs by gradients through penalty contact (Werling et al. 2021)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import add
from add.inverse import InverseProblem
from add.scene import Scene
from add.scene.robots.model import Robot
from add.typing import FloatArray
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.held_differences import slope_error
from scripts.reproduction.robot_scenes import model, robot_scene

#: The robot's file; step [s], steps of a jump, coefficients of a torque, evaluations; steps of the run that is timed.
FILE, DT, STEPS, ROWS, MOST, TIMED = "atlas_v4.urdf", 1e-3, 400, 10, 40, 500
#: How far hips and ankles bend at the start, and half the knees [rad]; where the pelvis then is [m].
BEND, HEIGHT = 0.8, 0.7302
#: Servos of all joints while it stands, of the upper body while it jumps: stiffness [N m/rad], damping [N m s/rad].
SERVO = {"type": "position", "stiffness": 2e4, "damping": 500.0}
#: Stops of the legs' joints [N m/rad, N m s/rad].
STOPS = {"limit_stiffness": 2e4, "limit_damping": 100.0}
#: What is guessed: torques of hips, knees and ankles over those of standing.
PUSH = (1.0, 1.0, 1.3, 1.3, 1.3, 1.3, 1.2, 0.5, 0.5, 0.5)
#: How far the pelvis is to rise until the end [m].
RISE = 0.4
#: What is said of a run.
HEADS = "both feet above the ground [cm]; deepest corner [mm]; largest tilt of the pelvis [degrees]"
CONTACT = {
    "friction_law": "tanh", "friction": 1.0, "stiffness": 1e6, "damping": 2e3, "damping_ramp": 5e-4, "onset": 5e-4,
    "stick_stiffness": 2e3, "between_bodies": False,
}  # fmt: skip
#: Of a foot in its frame [m]: height of the sole, x of heel and tip, and corners of both boxes of the sole.
SOLE, HEEL, TIP = -0.0741, -0.0905, 0.1725
CORNERS = ((HEEL, 0.0669), (0.1365, 0.0669), (TIP, 0.04))


class Stand(NamedTuple):
    """Atlas at rest on bent legs: its coordinates, and the torques that hold it [N m]."""

    q: FloatArray
    torques: dict[str, float]


def atlas(joints: dict[str, dict[str, float]], steps: int, dt: float, **body: Any) -> dict[str, Any]:
    """Return Atlas over a floor that its feet touch, and nothing else of it."""
    links = {link.name: {"shapes": []} for link in _file().links if not link.name.endswith("foot")}
    raw = robot_scene(FILE, {}, dt=dt, steps=steps, base="free", ignore=["mesh"], limits="penalty", joints=joints,
                      links=links, **body)  # fmt: skip
    return raw | {"contact": CONTACT, "markers": _markers()}


def standing(steps: int) -> Stand:
    """Let servos hold Atlas on bent legs until it rests."""
    bent = {"hpy": -BEND, "kny": 2.0 * BEND, "aky": -BEND}
    wanted = {name: next((v for end, v in bent.items() if name.endswith(f"leg_{end}")), 0.0) for name in _hinges()}
    joints = {name: {"value": value} for name, value in wanted.items()}
    drives = {name: SERVO | {"joint": name, "input": value} for name, value in wanted.items()}
    raw = atlas(joints, steps, 2e-3, position=[0, 0, HEIGHT], drives=drives)
    run = add.scene_from_dict(raw).build().run()
    q, v = run.q[-1], run.v[-1]
    held = SERVO["stiffness"] * (np.array(list(wanted.values())) - q[6:]) - SERVO["damping"] * v[6:]
    return Stand(q, dict(zip(wanted, held.tolist(), strict=True)))


def jump(stand: Stand, steps: int, most: int) -> dict[str, Any]:
    """Return the jump: torques of the legs are cubic B-splines within the file's limits, servos hold the rest."""
    places = dict(zip(stand.torques, stand.q[6:].tolist(), strict=True))
    legs = {name: effort for name, effort in _hinges().items() if "_leg_" in name}
    joints = {name: {"value": value} | (STOPS if name in legs else {}) for name, value in places.items()}
    drives: dict[str, Any] = {}
    signals, parameters = {}, []
    for name, torque in stand.torques.items():
        if name not in legs:
            drives[name] = SERVO | {"joint": name, "input": places[name] + torque / SERVO["stiffness"]}
            continue
        drives[name] = {"joint": name, "input": {"signal": name}}
        shape = np.array(PUSH) if name.endswith("y") else np.ones(ROWS)
        guess = np.clip(torque * shape, -legs[name], legs[name])
        signals[name] = {"type": "control", "basis": "cubic", "rows": ROWS, "values": guess.tolist()}
        parameters.append(
            {"path": f"signals.{name}.values", "bounds": [-legs[name], legs[name]], "scale": 0.1 * legs[name]}
        )
    x, y, z, w = Rotation.from_rotvec(stand.q[3:6]).as_quat().tolist()
    raw = atlas(joints, steps, DT, position=stand.q[:3].tolist(), orientation=[w, x, y, z], drives=drives)
    # Not the feet: whether an ankle slaps its stop after take-off decides where they are, and the landscape is rough.
    rise = RISE * (steps / STEPS) ** 2  # by the same acceleration
    high = {"type": "point", "marker": "pelvis", "target": [0, 0, stand.q[2] + rise], "axes": "z", "time": "end"}
    upright = [{"type": "point", "marker": "up", "target": [0, 0, 1], "time": share * steps * DT, "weight": 0.1}
               for share in (0.2, 0.4, 0.6, 0.8, 1.0)]  # fmt: skip
    return raw | {
        "signals": signals, "parameters": parameters, "objective": [high, *upright],
        "optimizer": {"method": "l-bfgs-b", "max_evaluations": most},
    }  # fmt: skip


def _file() -> Robot:
    return add.read_robot(model(FILE), base="free", ignore=["mesh"])


def _hinges() -> dict[str, float]:
    """Return hinge -> largest torque [N m], in the order of the coordinates."""
    return {joint.name: joint.effort for joint in _file().joints if joint.kind == "hinge"}


def _markers() -> dict[str, Any]:
    """Return the pelvis's place and axis, and the corners of the soles."""
    pelvis = "robot/pelvis"
    out: dict[str, Any] = {
        "pelvis": {"body": pelvis, "point": [0, 0, 0]}, "up": {"body": pelvis, "direction": [0, 0, 1]}
    }  # fmt: skip
    for side in "lr":
        for k, (x, y) in enumerate(CORNERS):
            out |= {f"{side} corner {k}{s}": {"body": f"robot/{side}_foot", "point": [x, s * y, SOLE]} for s in (1, -1)}
    return out


class Jump(NamedTuple):
    """A run: lowest corner of both soles over time (k + 1,) [m], and the largest tilt of the pelvis [degrees]."""

    lowest: FloatArray
    tilt: float

    @property
    def lift(self) -> float:
        """How high both feet are at once at the most [m]."""
        return float(self.lowest.max())

    @property
    def depth(self) -> float:
        """How deep a corner sinks in at the most [m]."""
        return float(-self.lowest.min())


def jumped(scene: Scene, problem: InverseProblem, x: FloatArray) -> Jump:
    """Return the run with parameters x."""
    (run,) = problem.value(x)[1].values()
    built = scene.build()
    places = np.array([built.markers.points(run.kinematics(k), built.theta)[0] for k in range(run.n_steps + 1)])
    corners = [k for k, name in enumerate(built.marker_names) if "corner" in name]
    up = places[:, built.marker_names.index("up"), 2]
    return Jump(places[:, corners, 2].min(axis=1), float(np.degrees(np.arccos(np.clip(up, -1.0, 1.0)).max())))


def run(context: Context) -> Outcome:
    """Stand, guess, optimise, look."""
    settle, steps, most = (300, 60, 3) if context.short else (1500, STEPS, MOST)
    stand = standing(settle)
    raw = jump(stand, steps, most)
    scene = add.scene_from_dict(raw)
    problem = scene.inverse_problem()
    guess = jumped(scene, problem, problem.x0)
    with clock() as taken:
        result = problem.optimize()
    found = jumped(scene, problem, result.x)
    timed = steps if context.short else TIMED
    one, back = _seconds(add.scene_from_dict(jump(stand, timed, 1)).inverse_problem())
    tight = add.scene_from_dict(raw | {"time": raw["time"] | {"newton": {"atol": 1e-11, "rtol": 1e-13}}})
    error = slope_error(tight.inverse_problem(), problem.x0)
    rows = [
        Row(f"the guess: {HEADS}", _said(guess)),
        Row(f"found: {HEADS}", _said(found)),
        Row("found: runs; time [s]", f"{result.evaluations}; {taken.seconds:.0f}"),
        Row(f"the guess over {timed} steps: a run; the same with its gradient by {problem.n} numbers [s]",
            f"{one:.2f}; {back:.2f}"),
        Row("slope of the guess along its gradient: error against differences with contacts held", f"{error:.1e}"),
    ]  # fmt: skip
    with figure(context.image("robot_jump.png"), 5.0, 2.4) as drawn:
        axes = drawn.subplots()
        for name, motion in (("guess", guess), ("found", found)):
            axes.plot(np.arange(steps + 1) * DT, 100.0 * motion.lowest, label=name)
        axes.set(xlabel="time [s]", ylabel="lowest corner of both soles [cm]")
        axes.legend()
    values = {
        "lift": [guess.lift, found.lift], "depth": [guess.depth, found.depth], "seconds": back, "error": error,
        "objective": [problem.value(problem.x0)[0], result.value],
    }  # fmt: skip
    return Outcome(tuple(rows), {"robot_jump.png": "How high both feet are at once."}, NOTES, values)


def _seconds(problem: InverseProblem) -> tuple[float, float]:
    """Return the least time of three of a value at the guess and of one with its gradient [s]."""
    found = []
    for work in (problem.value, problem.value_and_grad):
        times = []
        for _ in range(3):
            with clock() as taken:
                work(problem.x0)
            times.append(taken.seconds)
        found.append(min(times))
    return found[0], found[1]


def _said(motion: Jump) -> str:
    return f"{100.0 * motion.lift:.1f}; {1e3 * motion.depth:.2f}; {motion.tilt:.0f}"


NOTES = (
    "Atlas, 182 kg and 36 coordinates, rests on bent legs; the torques of its twelve leg joints over 0.4 s are cubic "
    f"B-splines of {ROWS} coefficients within the limits of its file, servos hold the upper body. The pelvis is to be "
    f"{RISE:g} m higher after {STEPS * DT:g} s, and upright; it still rises then. The guess is the torques of "
    "standing, by 0.3 more for hips, knees and ankles during the push. Penalty contact of 1e6 N/m a corner of the "
    f"soles, compiled steps; {MOST} evaluations of L-BFGS-B at most. With the feet's height as the objective the "
    "search stalls: whether an ankle slaps its stop after take-off decides where a foot is. The longer the run, the "
    "smaller the differences that see its slope: 1e-7 after take-off, where 1e-4 is enough before.",
)

ENTRY = Entry(
    "robots8",
    "Robots: Atlas jumps",
    "Atlas stands on bent legs and is to have both feet off the ground, by torques that gradients through contact find "
    "in single shooting. Published is a video.",
    run,
)
