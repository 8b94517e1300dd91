"""Objectives of a scene with targets: points, lines, tracks, poses, nearest passages, contacts, and recorded states."""

import zipfile
from dataclasses import replace

import numpy as np

from add.bodies import SoftBody
from add.equations import charts
from add.equations.kinematics import State
from add.equations.points import NodePoints, PointMap
from add.equations.sites import SiteKind, SitePoints, gather
from add.errors import InputError
from add.geometry import SoftMesh, volume
from add.geometry.boundary import neighbours
from add.io.trajectory_file import read_run
from add.joints.laws import BodySite
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.model.build import place_site
from add.objectives import Roughness, Tracking, over_time as measures
from add.scene.build.built import BuiltScene
from add.scene.build.materials import number_table
from add.scene.build.scenery import obstacle
from add.scene.read.paths import asked_for_by
from add.scene.spec.objective import (
    ContactObjectiveSpec,
    LineObjectiveSpec,
    NearestObjectiveSpec,
    OneStepObjectiveSpec,
    PointObjectiveSpec,
    PoseObjectiveSpec,
    PriorObjectiveSpec,
    ProximityObjectiveSpec,
    RoughnessObjectiveSpec,
    SmoothnessObjectiveSpec,
    TrackObjectiveSpec,
)
from add.scene.spec.scene import SceneSpec
from add.simulation.composed import RecordedStates, Restarted
from add.simulation.run import Simulation
from add.ties import unit_vector
from add.typing import FloatArray, IntArray


def target_tracking(item: object, built: BuiltScene, place: str) -> Tracking:
    """Return the objective of an entry with a target; ``place`` is that of the entry."""
    assert isinstance(item, PointObjectiveSpec | LineObjectiveSpec | PoseObjectiveSpec | TrackObjectiveSpec)
    time = built.scene.time
    if isinstance(item, TrackObjectiveSpec):
        path = np.array(item.values)[:, None]
        points = built.marker(item.marker)
        shares = np.full((len(item.times), 1), 1.0 / len(item.times))
        return Tracking(points, time.dt, np.array(item.times), path, shares, _onto(item.axes))
    if item.window is not None:
        times = at_steps(np.array([time.end]), time.dt, *item.window)
        if not times.size:
            raise InputError("no step ends in the window", place=f"{place}.window", found=list(item.window))
    else:
        assert item.time is not None
        times = np.array([time.end if item.time == "end" else item.time])
    projector = np.eye(3)
    if isinstance(item, PoseObjectiveSpec):
        points, rest = _pose_points(item, built, place)
        target = _pose(item, rest, place)
    else:
        points = built.marker(item.marker)
        if isinstance(item, PointObjectiveSpec):
            target = np.array([item.target])
            projector = _onto(item.axes)
        else:
            direction = unit_vector(np.array(item.direction))
            target = np.array([item.point])
            projector = np.eye(3) - np.outer(direction, direction)
    targets = np.broadcast_to(target, (times.size, *target.shape))
    weights = np.full(targets.shape[:2], 1.0 / (times.size * target.shape[0]))
    return Tracking(points, time.dt, times, targets, weights, projector)


def _onto(axes: str) -> FloatArray:
    """Return the projector onto some of the world's axes."""
    return np.diag([float(axis in axes) for axis in "xyz"])


def _pose_points(item: PoseObjectiveSpec, built: BuiltScene, place: str) -> tuple[PointMap, FloatArray]:
    """Return the points by which a pose is compared, and their places in the rest frame."""
    model, at = built.model, built.model.layouts
    body = model.body(item.body)
    if body.has_frame:
        block = at.parameters[f"{place}.points"]
        point = BodySite(SiteKind.POINT, item.body)
        sites = [place_site(point, arm, model.bodies, at) for arm in block.indices]
        return model.lifted(SitePoints(gather(sites))), built.theta[block.indices]
    nodes = at.rows[item.body].start // 3 + np.arange(body.n_nodes)
    return model.lifted(NodePoints(nodes)), body.rest[: body.n_nodes]


def _pose(item: PoseObjectiveSpec, rest: FloatArray, place: str) -> FloatArray:
    if item.positions_file is not None:
        at = f"{place}.positions_file"
        with asked_for_by(at):
            target = number_table(item.positions_file)
        if target.shape != rest.shape:
            raise InputError(
                f"{item.positions_file}: the file does not fit the body",
                place=at,
                found=f"{target.shape} numbers",
                expected=f"{rest.shape}",
            )
        return target
    rotation = np.eye(3) if item.orientation is None else rotation_matrix(rotation_vector(item.orientation))
    return rest @ rotation.T + np.array(item.translation)


def at_steps(times: FloatArray, dt: float, start: float, stop: float) -> FloatArray:
    """Return the multiples of ``dt`` in [start, stop] up to the last of ``times``."""
    steps = np.arange(int(np.ceil(start / dt - 1e-9)), int(np.floor(stop / dt + 1e-9)) + 1)
    return steps[steps * dt <= times[-1] + 1e-9] * dt


def over_time(
    item: NearestObjectiveSpec | ContactObjectiveSpec, built: BuiltScene, place: str
) -> measures.SoftMinimum | measures.MeanOverTime:
    """Return the objective of an entry; ``place`` is that of the entry."""
    time = built.scene.time
    first, last = measures.steps_within(time.dt, *(item.window or (0.0, time.end)))
    if first > last:
        raise InputError("no step ends in the window", place=f"{place}.window", found=list(item.window or ()))
    points = built.marker(item.marker)
    if isinstance(item, NearestObjectiveSpec):
        along = None if item.moving is None else unit_vector(np.array(item.moving))
        target = measures.SquaredDistance(np.array(item.target), _onto(item.axes))
        return measures.SoftMinimum(points, target, time.dt, first, last, item.softness**2, along)
    shape = obstacle(item.obstacle, built.scene.obstacles[item.obstacle])
    if shape.mesh is not None:
        raise InputError(
            "a contact is judged by shapes with a formula", place=f"{place}.obstacle", found="a mesh",
            expected="a plane, sphere, box, capsule or cylinder",
        )  # fmt: skip
    if built.scene.obstacles[item.obstacle].adjustable:
        raise InputError(
            "a contact is judged by an obstacle whose place is no parameter", place=f"{place}.obstacle",
            found="an adjustable one", expected='"adjustable": false',
        )  # fmt: skip
    surface = measures.Surface(shape.kind, np.array(shape.size), shape.rotation, shape.position, shape.velocity)
    if item.wanted:
        measure: measures.Measure = measures.Gap(surface, item.radius, 1.0)
        return measures.SoftMinimum(points, measure, time.dt, first, last, item.softness**2)
    return measures.MeanOverTime(
        points, measures.Gap(surface, item.radius + item.margin, -1.0), time.dt, first, last, last - first + 1
    )


def roughness(item: RoughnessObjectiveSpec, built: BuiltScene, place: str) -> Roughness:
    """Return the objective of an entry; ``place`` is that of the entry."""
    path = f"{place}.field"
    _, name, *_ = [*item.field.split("."), ""]
    known = [body for body in built.model.bodies if body.name == name and isinstance(body, SoftBody)]
    regions = [(body, region) for body in known for region in body.materials
             if item.field.startswith(f"{region.place(name)}.material.")]  # fmt: skip
    places = built.numbers.place(item.field)
    at, _, key = item.field.rpartition(".material.")
    two = key == "poisson" or (key == "young" and built.numbers.place(f"{at}.material.poisson").ndim)
    if not regions or two or places.shape != regions[0][1].elements.shape:
        raise InputError("this is no field over the elements of a body", place=path, found=f"'{item.field}'",
                         expected="a modulus with a number for each element, beside one Poisson's ratio")  # fmt: skip
    body, region = regions[0]
    mesh = SoftMesh(body.mesh.points, body.mesh.cells[region.elements], body.mesh.family)
    pairs, areas, distances = neighbours(mesh)
    size = volume(mesh) ** (1.0 / 3.0)
    softness = item.softness if item.norm == "variation" else None
    weights = areas / (size**2) if softness is not None else areas / (distances * size)
    # With one Poisson's ratio mu is Young's modulus by a factor: a constant beside the logarithm.
    key = {"young": "mu"}.get(key, key)
    block = built.model.system.parameters[f"{region.place(name)}.{key}"].indices
    return Roughness(block[pairs], weights, softness)


#: What may stand beside it: objectives that see no motion.
_STILL = (PriorObjectiveSpec, SmoothnessObjectiveSpec, ProximityObjectiveSpec, RoughnessObjectiveSpec)

#: How far from a step a recorded time may be, as a share of the step.
_CLOSE = 1e-3


def judged_simulation(spec: SceneSpec, built: BuiltScene) -> Simulation:
    """Return the simulation that the scene's objective judges: its own, or single steps from recorded states.

    Raises
    ------
    InputError
        If the recorded states do not fit, or another objective judges the motion, too.
    """
    for k, item in enumerate(spec.objective):
        if isinstance(item, OneStepObjectiveSpec):
            others = [i for i, other in enumerate(spec.objective) if i != k and not isinstance(other, _STILL)]
            if others or len(spec.experiments) > 1:
                place = f"objective.{others[0]}" if others else "experiments"
                raise InputError(
                    "single steps from recorded states are judged by 'one-step' alone, in one experiment", place=place
                )
            return _restarted(built, _states(item, built, f"objective.{k}"))
    return built.simulation


def one_step_objective(item: OneStepObjectiveSpec, built: BuiltScene, place: str) -> measures.OneStep:
    """Return the objective; see `judged_simulation` for the steps that it judges."""
    recorded, system = _states(item, built, place), built.model.system
    moving = [body.name for body in built.model.bodies if system.dofs[body.name].size]
    names = moving if item.bodies is None else item.bodies
    for k, name in enumerate(names):
        if name not in system.dofs:
            raise InputError("there is no such body", place=f"{place}.bodies.{k}", found=f"'{name}'")
        if not system.dofs[name].size:
            raise InputError(
                "a link has no coordinates of its own", place=f"{place}.bodies.{k}", found=f"'{name}'",
                expected=f"its articulated body, '{name.split('/')[0]}'",
            )  # fmt: skip
    rows = np.concatenate([system.dofs[name].indices.ravel() for name in names])
    rows = rows[system.partition.is_free[rows]]
    dt = built.simulation.stepper.dt
    counts = np.arange(recorded.n_steps + 1) <= built.simulation.n_steps
    by_place, by_speed = (np.full(rows.size, np.sqrt(w)) for w in (item.q, item.v + item.a / dt**2))
    return measures.OneStep(recorded.q, recorded.v, rows, system.rotations, by_place, by_speed, counts, dt)


def _restarted(built: BuiltScene, recorded: RecordedStates) -> Simulation:
    simulation = built.simulation
    if simulation.differentiable.remembers:
        raise InputError(
            "recorded states do not say what relaxing stress remembers", found="bodies.*.material.relaxation",
            expected="an objective of whole runs",
        )  # fmt: skip
    stepper = Restarted(simulation.differentiable, recorded)
    return replace(simulation, stepper=stepper, n_steps=min(simulation.n_steps, recorded.n_steps))


def _states(item: OneStepObjectiveSpec, built: BuiltScene, place: str) -> RecordedStates:
    """Read recorded states at the steps of a simulation."""
    at, dt, n = f"{place}.file", built.simulation.stepper.dt, built.model.system.n
    with asked_for_by(at):
        t, q, v = _read(item.file, at)
    if t.ndim != 1 or q.shape != (t.size, n) or (v is not None and v.shape != q.shape):
        raise InputError(
            f"{item.file}: these are no states of this scene", place=at,
            found=f"t {t.shape}, q {q.shape}" + ("" if v is None else f", v {v.shape}"), expected=f"q and v (k, {n})",
        )  # fmt: skip
    if not all(np.isfinite(values).all() for values in (t, q, *([] if v is None else [v]))):
        raise InputError(f"{item.file}: a number is not finite", place=at)
    steps = int(np.floor(t.max(initial=0.0) / dt + _CLOSE))
    wanted: FloatArray = dt * np.arange(steps + 1, dtype=float)
    near = _nearest(t, wanted)
    missing = wanted[np.abs(t[near] - wanted) > _CLOSE * dt] if t.size else wanted
    if steps < 1 or missing.size:
        raise InputError(
            f"{item.file}: a recorded state is needed at each step of {dt:g} s", place=at,
            found=f"none at t = {missing[0]:g} s" if missing.size else f"{t.size} states",
        )  # fmt: skip
    q, rotations = q[near].copy(), built.model.system.rotations
    v = _differences(q, dt, rotations, at) if v is None else v[near].copy()
    for k in range(q.shape[0]):
        beyond = charts.beyond(q[k], rotations)
        if beyond.size:
            state = charts.change(State(0.0, k, q[k : k + 1], v[k : k + 1]), beyond)
            q[k], v[k] = state.q[0], state.v[0]
    return RecordedStates(q, v)


def _nearest(t: FloatArray, wanted: FloatArray) -> IntArray:
    """Return the recorded times next to the wanted ones, by number."""
    order = np.argsort(t, kind="stable")
    right = np.clip(np.searchsorted(t[order], wanted), 0, max(t.size - 1, 0))
    left = np.maximum(right - 1, 0)
    if not t.size:
        return np.zeros(0, dtype=np.int64)
    closer = np.abs(t[order[left]] - wanted) < np.abs(t[order[right]] - wanted)
    return np.asarray(order[np.where(closer, left, right)])


def _differences(q: FloatArray, dt: float, rotations: IntArray, place: str) -> FloatArray:
    """Return the velocities that BDF1 has between recorded coordinates; the first is that of the first step."""
    v = np.diff(q, axis=0) / dt
    turned = v[:, rotations[:, None] + np.arange(3)] * dt if rotations.size else np.zeros((0, 0, 3))
    if (np.linalg.norm(turned, axis=2) > np.pi).any():
        raise InputError(
            "a rotation vector changes its chart: velocities cannot be differences", place=place, expected="v (k, n)"
        )
    return np.concatenate([v[:1], v])


def _read(file: str, place: str) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return times, coordinates and velocities of a run or of arrays."""
    if not file.endswith(".npz"):
        run = read_run(file)
        return run.t, run.q, run.v
    try:
        with np.load(file, allow_pickle=False) as arrays:
            numbers = {key: np.asarray(arrays[key], dtype=float) for key in ("t", "q", "v") if key in arrays}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{file}: no arrays of numbers: {error}", place=place) from None
    if not {"t", "q"} <= numbers.keys():
        raise InputError(f"{file}: these arrays are needed", place=place, found=", ".join(numbers), expected="t, q")
    return numbers["t"], numbers["q"], numbers.get("v")
