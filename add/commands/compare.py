"""One scene under several friction laws: where bodies end, what the objective's gradient is, what it costs."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final, get_args

import numpy as np

from add.adjoint import value_and_gradient
from add.errors import AddError, InputError
from add.scene import Scene, scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.inverse_problem import scene_objective
from add.scene.build.targets import judged_simulation
from add.scene.spec.contact import ContactSpec
from add.simulation import DifferentiableStepper
from add.typing import FloatArray

#: All friction laws of scenes.
LAWS: tuple[str, ...] = get_args(ContactSpec.model_fields["friction_law"].annotation)

#: Settings of contact that one law alone reads.
_OF_IMPULSES = ("friction_cone", "impact_time")

#: Where a scene names no parameters, blocks of more numbers than this are left out.
MOST = 6


@final
@dataclass(frozen=True)
class LawRun:
    """A scene under one law.

    Attributes
    ----------
    law : str
    changed : tuple of str
        What else of the scene had to change, for people.
    refused : str
        Why it cannot run under this law, or where the run ended; empty where it came to its end.
    steps : int
        Steps that were taken.
    ends : body -> (3,) place of its centre at the end [m]
    value : float or None
        Objective; None without one.
    gradient : path -> derivatives of the objective; empty where the law has none
    forward, both : float
        Wall time of the run, and of a run with its gradient [s]; kernels were at hand.
    """

    law: str
    changed: tuple[str, ...] = ()
    refused: str = ""
    steps: int = 0
    ends: dict[str, FloatArray] = field(default_factory=dict)
    value: float | None = None
    gradient: dict[str, FloatArray] = field(default_factory=dict)
    forward: float = 0.0
    both: float = 0.0


def require_laws(laws: Sequence[str]) -> None:
    """Refuse what is no law, or the same one twice.

    Raises
    ------
    InputError
    """
    for k, law in enumerate(laws):
        if law not in LAWS or law in laws[:k]:
            what = "is named twice" if law in LAWS else "is no friction law"
            raise InputError(f"'{law}' {what}", place="--laws", found=",".join(laws), expected=", ".join(LAWS))


def under_law(scene: Scene, law: str) -> tuple[Scene, tuple[str, ...]]:
    """Return the scene under another law, and what else had to change with it.

    Raises
    ------
    InputError
        If the law does not know something that the scene has.
    """
    raw, changed = copy.deepcopy(dict(scene.raw)), []
    contact = raw.setdefault("contact", {})
    contact["friction_law"] = law
    if law != "impulse":
        changed += ["exact gradients"] if raw.pop("gradient", None) else []
        changed += [f"without {key}" for key in _OF_IMPULSES if contact.pop(key, None) is not None]
    elif scene.time.integrator != "bdf1":
        raw.setdefault("time", {})["integrator"] = "bdf1"
        changed.append("by bdf1")
    if law == "exact":
        bouncing = [pair for pair in contact.get("pairs", []) if pair.pop("restitution", None) is not None]
        changed += ["impacts are plastic"] if bouncing else []
    folder = None if scene.source is None else scene.source.absolute().parent
    return scene_from_dict(raw, folder=folder), tuple(changed)


def compare_laws(scene: Scene, laws: Sequence[str]) -> list[LawRun]:
    """Run a scene under several laws.

    Parameters
    ----------
    scene : Scene
        Without experiments.
    laws : of `LAWS`

    Raises
    ------
    InputError
        If a law is unknown, or the scene has experiments.
    """
    require_laws(laws)
    if scene.experiments:
        raise InputError("laws are compared on one run", file=scene.source, place="experiments", expected="none")
    return [_run(scene, law) for law in laws]


def _run(scene: Scene, law: str) -> LawRun:
    try:
        other, changed = under_law(scene, law)
        built = other.build()
    except InputError as error:
        return LawRun(law, refused=str(error))
    try:
        built.run(n_steps=min(2, built.simulation.n_steps))  # kernels are loaded, or compiled
        begin = time.perf_counter()
        trajectory = built.run()
        forward = time.perf_counter() - begin
    except AddError as error:
        part = getattr(error, "trajectory", None)
        return LawRun(law, changed, str(error), steps=part.n_steps if part is not None else 0)
    n = trajectory.n_steps
    last = built.model.lift.kinematics(trajectory.kinematics(n), built.theta)
    masses = np.ones(built.model.lift.rows.n // 3)
    states = {b.name: b.state(last, masses, built.theta, built.model.layouts) for b in built.model.bodies}
    ends = {name: np.asarray(state["centre"], dtype=float) for name, state in states.items()}
    run = LawRun(law, changed, "", n, ends, forward=forward)
    objective = scene_objective(other, built, "scene", n)
    if objective is None or not isinstance(built.simulation.stepper, DifferentiableStepper):
        return run
    begin = time.perf_counter()
    evaluation = value_and_gradient(judged_simulation(other, built), objective, built.theta)
    both = time.perf_counter() - begin
    by_number = built.numbers.ties.pullback(built.numbers.values, evaluation.gradient)
    gradient = {path: by_number[index] for path, index in _numbers(other, built).items()}
    return replace(run, value=evaluation.value, gradient=gradient, both=both)


def _numbers(scene: Scene, built: BuiltScene) -> dict[str, Any]:
    """Return the numbers by which is differentiated: the scene's parameters, or all that are no long blocks."""
    if scene.parameters:
        paths = [path for item in scene.parameters for path in item.all_paths()]
    else:
        paths = [entry.name for entry in built.numbers.layout.entries if entry.size <= MOST]
    out = {}
    for path in paths:
        try:
            out[path] = built.numbers.resolve(path)[0]
        except InputError:  # a number that this law does not have
            continue
    return out


def comparison_text(runs: Sequence[LawRun]) -> str:
    """Lay the runs out side by side, one column a law."""
    rows: list[tuple[str, list[str]]] = []

    def add(name: str, cells: list[str]) -> None:
        if any(cell != "-" for cell in cells):
            rows.append((name, cells))

    bodies = list(dict.fromkeys(name for run in runs for name in run.ends))
    for body in bodies:
        for a, axis in enumerate("xyz"):
            add(f"{body} {axis} [m]", [f"{run.ends[body][a]:.6g}" if body in run.ends else "-" for run in runs])
    add("objective", ["-" if run.value is None else f"{run.value:.6g}" for run in runs])
    paths = {path: values.size for run in runs for path, values in run.gradient.items()}
    for path, size in paths.items():
        for k in range(size):
            name = f"d/d {path}" + (f"[{k}]" if size > 1 else "")
            add(name, [f"{run.gradient[path][k]:.4e}" if path in run.gradient else "-" for run in runs])
    add("steps", [str(run.steps) if run.steps else "-" for run in runs])
    add("run [ms a step]", [f"{1e3 * run.forward / run.steps:.3f}" if run.forward else "-" for run in runs])
    add("with its gradient", [f"{1e3 * run.both / run.steps:.3f}" if run.gradient else "-" for run in runs])
    head = max([len(name) for name, _ in rows] + [4])
    wide = [max([len(cells[k]) for _, cells in rows] + [len(run.law)]) for k, run in enumerate(runs)]
    table = [("law", [run.law for run in runs]), *rows]
    lines = [
        "  ".join([name.ljust(head), *(cell.rjust(width) for cell, width in zip(cells, wide, strict=True))])
        for name, cells in table
    ]
    lines += [f"{run.law}: {', '.join(run.changed)}" for run in runs if run.changed]
    lines += [f"{run.law}: no run: {run.refused}" for run in runs if run.refused]
    return "\n".join(lines)
