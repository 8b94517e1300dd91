"""From a scene to an `InverseProblem`: experiments, objective, parameters, phases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from add.adjoint import Checkpoints, Schedule, States, StoreAll
from add.errors import InputError, naming
from add.inverse.experiment import Experiment
from add.inverse.maps import DesignParameter, Linear, Log, Prior, Softplus, Transform
from add.inverse.optimizers import Starts
from add.inverse.optimizers.descent import LBFGSB, Adam, GradientDescent, RateSchedule
from add.inverse.optimizers.levenberg_marquardt import LevenbergMarquardt
from add.inverse.optimizers.phases import NumberOverride, Phase, PhasedOptimizer
from add.inverse.problem import InverseProblem
from add.mocap import Recording
from add.objectives import Objective, Proximity, Smoothness, Tracking, WeightedSum
from add.scene.build.built import BuiltScene
from add.scene.build.numbers import CLOCK
from add.scene.build.recordings import cloud_tracking, load_recording, loss_of, recording_placement, whitened
from add.scene.build.scene import build, with_contact
from add.scene.build.selections import weighed_by
from add.scene.build.targets import judged_simulation, one_step_objective, over_time, roughness, target_tracking
from add.scene.read.paths import get_value
from add.scene.read.reader import experiment_scenes
from add.scene.read.recorded_starts import numbers_of
from add.scene.spec import objective
from add.scene.spec.extension import answer
from add.scene.spec.markers import CloudObjectiveSpec
from add.scene.spec.optimizer import OptimizerExtension
from add.scene.spec.roles import Limits
from add.scene.spec.scene import SceneSpec
from add.summary import counted
from add.typing import FloatArray

# --- Overrides of an optimiser's phases: checked as a scene, then turned into numbers ---------------------------------


def number_overrides(
    overrides: Mapping[str, Any], built: Mapping[str, BuiltScene], parameters: Sequence[DesignParameter], place: str
) -> tuple[NumberOverride, ...]:
    """Return the changes by the overrides of a phase in the numbers of every experiment.

    Parameters
    ----------
    overrides : path into the scene -> value, in SI units; orientations and directions are written as in the scene
    built : experiment name -> BuiltScene
    parameters : those of the scene
    place : of the overrides in the scene

    Raises
    ------
    InputError
        If a path names no number that a run could be differentiated by, or one that a parameter sets, or the value
        has not its size.
    """
    out = []
    for name, scene in built.items():
        taken = {int(i) for p in parameters for index in p.targets.get(name, ()) for i in index}
        for path, value in overrides.items():
            try:
                index, _ = scene.numbers.resolve(path)
            except InputError:
                raise InputError(
                    "this number cannot change from phase to phase: it is no part of what the motion is differentiated "
                    "by (only numbers that could be parameters are)",
                    place=f"{place}.{path}",
                    found=f"'{path}'",
                ) from None
            if taken & set(index.tolist()):
                raise InputError(
                    "this number belongs to a parameter, which would win", place=f"{place}.{path}", found=f"'{path}'"
                )
            values = numbers_of(path, value, get_value(scene.scene.full(), path))
            if values.size != index.size:
                raise InputError(
                    "the override has not the size of what it replaces",
                    place=f"{place}.{path}",
                    found=counted(values.size, "number"),
                    expected=f"{index.size}",
                )
            out.append(NumberOverride(name, index, values))
    return tuple(out)


# ----------------------------------------------------------------------------------------------------------------------

TRANSFORMS: dict[str, Transform] = {"linear": Linear(), "log": Log(), "softplus": Softplus()}


#: The share of a start's distance to a limit that is excluded within which no number comes.
INSIDE = 1e-6

_SCHEDULES: dict[str, Schedule] = {"all": StoreAll(), "states": States(), "checkpoints": Checkpoints()}


def inverse_problem(scene: SceneSpec) -> InverseProblem:
    """Build the inverse problem of a scene.

    Raises
    ------
    InputError
        If there is nothing to optimise, or a recording or parameter does not fit; names
        the file and the place.
    """
    with naming(file=scene.source):
        return _inverse_problem(scene)


def _inverse_problem(scene: SceneSpec) -> InverseProblem:
    spec = scene = with_contact(scene)
    if not spec.objective:
        raise InputError("there is nothing to minimise", place="objective", expected="at least one entry")
    if not spec.parameters:
        raise InputError("there is nothing to change", place="parameters", expected="at least one entry")
    scenes = experiment_scenes(scene)
    built = {name: build(item) for name, item in scenes.items()}
    parameters = _parameters(spec, built)
    fitted: list[Experiment] = []
    validated: list[Experiment] = []
    for k, (name, item) in enumerate(built.items()):
        use = spec.experiments[k].use if spec.experiments else "fit"
        (fitted if use == "fit" else validated).append(_experiment(name, item, spec, parameters))
    chosen = optimizer(scene, built)
    return InverseProblem(
        tuple(fitted), tuple(parameters), _priors(spec, parameters), chosen, validation=tuple(validated)
    )


def optimizer(scene: SceneSpec, built: dict[str, BuiltScene] | None = None) -> PhasedOptimizer:
    """Return the scene's optimiser with its phases.

    Parameters
    ----------
    scene : SceneSpec
    built : experiment name -> BuiltScene, optional
        Whose numbers the phases override; built here where it is needed and not given.
    """
    spec = scene.optimizer
    parameters: list[DesignParameter] = []
    if any(phase.overrides for phase in spec.phases):
        scene = with_contact(scene)
        built = built or {name: build(item) for name, item in experiment_scenes(scene).items()}
        parameters = _parameters(scene, built)
    phases = []
    for k, phase in enumerate(spec.phases):
        # Without a window every experiment counts over its own run, which need not be as long as the scene's.
        window = phase.window if phase.end_time is None else (0.0, phase.end_time)
        most = phase.max_evaluations or spec.max_evaluations
        overrides = number_overrides(phase.overrides, built or {}, parameters, f"optimizer.phases.{k}.overrides")
        phases.append(Phase(phase.name, phase.parameters, window, most, overrides))
    if not phases:
        phases = [Phase("all", None, None, spec.max_evaluations)]
    starts = Starts(spec.starts.count, spec.starts.seed, spec.starts.spread, spec.starts.keep)
    rates = RateSchedule(spec.rate, spec.decay, spec.decay_every)
    tolerances = spec.gradient_tolerance, spec.objective_tolerance
    if isinstance(spec.method, OptimizerExtension):
        return answer(PhasedOptimizer, spec.method, "optimizer.method", spec.method.optimizer, tuple(phases), starts)  # type: ignore[type-abstract]
    if spec.method == "gauss-newton":
        return LevenbergMarquardt(tuple(phases), spec.damping, *tolerances, starts=starts)
    if spec.method == "adam":
        return Adam(tuple(phases), rates, spec.beta1, spec.beta2, gradient_tolerance=tolerances[0], starts=starts)
    if spec.method == "sgd":
        return GradientDescent(tuple(phases), rates, spec.momentum, gradient_tolerance=tolerances[0], starts=starts)
    return LBFGSB(tuple(phases), spec.history, *tolerances, starts=starts)


def scene_objective(scene: SceneSpec, built: BuiltScene, name: str, n_steps: int) -> Objective | None:
    """Return the scene's objective of one experiment over its first ``n_steps`` steps.

    None if it sees nothing there.
    """
    spec = scene
    if not any(not isinstance(item, objective.PriorObjectiveSpec) for item in spec.objective):
        return None
    experiment = _experiment(name, built, spec, [])
    try:
        judged, _ = experiment.within((0.0, n_steps * built.simulation.stepper.dt))
    except InputError:
        return None
    return judged


def _parameters(spec: SceneSpec, built: dict[str, BuiltScene]) -> list[DesignParameter]:
    out, start, weights = [], 0, weighed_by(spec)
    for k, item in enumerate(spec.parameters):
        for path in item.all_paths():
            if path in weights:
                said = f"marker '{weights[path]}' is a centre of mass that this number moves within the body"
                raise InputError(
                    said, place=f"parameters.{k}", found=path, expected="a marker at a 'point' or on 'nodes'"
                )
        parameter = _parameter(item, built, start, f"parameters.{k}")
        out.append(parameter)
        start += parameter.n
    return out


def _parameter(item: objective.ParameterSpec, built: dict[str, BuiltScene], first: int, place: str) -> DesignParameter:
    names = [item.experiment] if item.experiment else list(built)
    targets: dict[str, tuple[np.ndarray, ...]] = {}
    unit = ""
    for name in names:
        numbers = built[name].numbers
        rows = []
        for path in item.all_paths():
            try:
                index, unit = numbers.resolve(path)
            except InputError as error:
                error.place = f"{place}.path"
                error.found = path
                raise
            if item.components is not None:
                if max(item.components) >= index.size:
                    raise InputError(
                        "there is no such component",
                        place=f"{place}.components",
                        found=max(item.components),
                        expected=f"0..{index.size - 1}",
                    )
                index = index[list(item.components)]
            rows.append(index)
        if len({row.size for row in rows}) > 1:
            raise InputError("paths that share a value must have the same size", place=f"{place}.paths")
        targets[name] = tuple(rows)
    current = built[names[0]].numbers.values[targets[names[0]][0]]
    start = current if item.start is None else np.broadcast_to(np.array(item.start, dtype=float), current.shape)
    transform = TRANSFORMS[item.transform]
    limits = [built[name].numbers.limits(path) for name in names for path in item.all_paths()]
    for limit in limits:
        if item.start is not None and (broken := limit.broken(start)).any():
            said = "the format does not allow this value"
            raise InputError(said, place=f"{place}.start", found=f"{start[broken][0]:g}", expected=str(limit))
    lower, upper = bounds_of(item, limits, start)
    y = transform.inverse(start.astype(float))
    if item.scale is not None:
        scale = item.scale
    else:
        # In the transformed unit: relative steps for log, the size of the start otherwise.
        scale = 1.0 if isinstance(transform, Log) else (float(np.abs(y).max()) or 1.0)
    return DesignParameter(
        name="+".join(item.all_paths()) + (f"@{item.experiment}" if item.experiment else ""),
        unit=unit,
        first=first,
        start=start.astype(float),
        transform=transform,
        scale=scale,
        lower=lower,
        upper=upper,
        entries=item.components or tuple(range(start.size)),
        targets=targets,
    )


def bounds_of(item: objective.ParameterSpec, limits: Sequence[Limits], start: FloatArray) -> tuple[float, float]:
    """Return the bounds of a parameter: those that it says, within what the scene's format demands of the number.

    A limit that is itself excluded, such as zero of a stiffness, is kept away from by a share of the start's distance.
    """
    low, high = item.bounds or (None, None)
    lower, upper = -np.inf if low is None else low, np.inf if high is None else high
    for limit in limits:
        if item.transform == "linear":  # the others keep above zero by themselves
            room = INSIDE * float(np.abs(start - limit.low).min()) if limit.open_low else 0.0
            lower = max(lower, limit.low + room)
        room = INSIDE * float(np.abs(start - limit.high).min()) if limit.open_high else 0.0
        upper = min(upper, limit.high - room)
    return lower, upper


def _priors(spec: SceneSpec, parameters: list[DesignParameter]) -> tuple[Prior, ...]:
    out = []
    for item in spec.objective:
        if isinstance(item, objective.PriorObjectiveSpec):
            meant = [np.arange(p.first, p.first + p.n) for p in parameters if p.answers_to(item.parameter)]
            out.append(Prior(np.concatenate(meant), item.mean, item.sigma, item.weight))
    return tuple(out)


def _experiment(name: str, built: BuiltScene, spec: SceneSpec, parameters: list[DesignParameter]) -> Experiment:
    of_own = [k for k, item in enumerate(spec.experiments) if item.name == name and item.recording is not None]
    place = f"experiments.{of_own[0]}.recording" if of_own else "recording"
    weights: list[float] = []
    parts: list[Objective] = []
    recording: Recording | None = None
    followed: Tracking | None = None
    for k, item in enumerate(spec.objective):
        if isinstance(item, objective.PriorObjectiveSpec):
            continue
        at = f"objective.{k}"
        if isinstance(item, objective.MarkersObjectiveSpec):
            recording, tracking = _marker_tracking(built, place)
            loss = loss_of(item)
            weighted = whitened(built.scene, recording, tracking, loss, place)
            followed = tracking if loss is None else replace(tracking, loss=loss)
            parts.append(followed if weighted is None else weighted)
        elif isinstance(item, CloudObjectiveSpec):
            cloud = built.scene.objective[k]  # files and placements are those of the experiment
            assert isinstance(cloud, CloudObjectiveSpec)
            parts.append(cloud_tracking(cloud, built, k))
        elif isinstance(item, objective.ObjectiveExtension):
            parts.append(answer(Objective, item, at, item.objective, built, at))  # type: ignore[type-abstract]
        else:
            parts.append(_MAKERS.get(type(item), target_tracking)(item, built, at))
        weights.append(item.weight)
    whole = WeightedSum(tuple(weights), tuple(parts))
    ties, numbers = built.numbers.ties, built.numbers.values
    simulation, schedule = judged_simulation(spec, built), _SCHEDULES[built.scene.gradient.schedule]
    return Experiment(name, simulation, whole, ties, numbers, recording, followed, schedule)


def _regulariser(
    item: objective.SmoothnessObjectiveSpec | objective.ProximityObjectiveSpec, built: BuiltScene, place: str
) -> Smoothness | Proximity:
    layout = built.model.system.parameters
    blocks = [entry for entry in layout.entries if entry.name.startswith(f"signals.{item.signal}.")]
    if not blocks:
        raise InputError("this signal drives nothing", place=f"{place}.signal", found=f"'{item.signal}'")
    # A signal that drives several things has the same numbers in every block: one speaks for all.
    table = blocks[0].indices
    if isinstance(item, objective.SmoothnessObjectiveSpec):
        return Smoothness(table)
    if item.rows is not None:
        centre = np.reshape(np.array(item.rows, dtype=float), (len(item.rows), -1))
        if centre.shape != table.shape:
            raise InputError(
                f"the signal has {table.shape[0]} rows of {table.shape[1]} numbers",
                place=f"{place}.rows",
                found=f"{centre.shape[0]} rows of {centre.shape[1]}",
            )
        return Proximity(table, centre)
    if item.value is None:
        return Proximity(table, built.theta[table])
    centre = np.atleast_1d(np.array(item.value, dtype=float))
    if centre.size != table.shape[1]:
        raise InputError(
            f"the signal has {table.shape[1]} numbers a row", place=f"{place}.value", found=f"{centre.size}"
        )
    return Proximity(table, centre)


#: What makes the objectives that look at neither recording nor extension, and have no target at a time.
_MAKERS: dict[type, Callable[[Any, BuiltScene, str], Objective]] = {
    objective.OneStepObjectiveSpec: one_step_objective,
    objective.NearestObjectiveSpec: over_time,
    objective.ContactObjectiveSpec: over_time,
    objective.SmoothnessObjectiveSpec: _regulariser,
    objective.ProximityObjectiveSpec: _regulariser,
    objective.RoughnessObjectiveSpec: roughness,
}


def _marker_tracking(built: BuiltScene, place: str) -> tuple[Recording, Tracking]:
    spec = built.scene
    if spec.recording is None:
        raise InputError("the objective follows markers, but there is no recording", place=place)
    recording = load_recording(spec, place)
    rows = [built.marker_names.index(name) for name in recording.names]
    points = built.markers.select(np.asarray(rows))
    targets = recording.positions
    reference = None
    if spec.recording.displacement:
        reference = float(recording.times[0])
        if not recording.valid[0].all():
            missing = [n for n, ok in zip(recording.names, recording.valid[0], strict=True) if not ok]
            raise InputError(
                "displacements need every marker in the first frame that counts", place=place, found=f"no {missing[0]}"
            )
        targets = targets - targets[0]
    weights = recording.valid / recording.valid.sum()
    projector = np.eye(3)
    clock = built.model.system.parameters[CLOCK].start
    tracking = Tracking(
        points,
        spec.time.dt,
        recording.times,
        targets,
        weights,
        projector,
        reference,
        clock,
        spec.recording.time_offset,
        spec.time.n_steps,
        placement=recording_placement(spec, built.model.system.parameters, recording.names),
        rests=spec.recording.rest is not None,
    )
    return recording, tracking
