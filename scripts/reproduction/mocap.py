"""Fits of a foam body to its recording (Figs. 7 and 8): what was true, where it began, what was found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.inverse import LoggedEvaluation
from add.scene import Scene, apply_overrides
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import ROOT, Clock, Context, Outcome, Row, clock
from scripts.reproduction.running import iterations, picture, scene

#: Of the markers that are drawn.
AXES = "xyz"


@final
@dataclass(frozen=True)
class Recorded:
    """One of the two recordings.

    Attributes
    ----------
    figure : "fig7" or "fig8"
    scene, recording, body : names
    short : changes of the scene for a short run
    """

    figure: str
    scene: str
    recording: str
    body: str
    short: Mapping[str, Any]


def young(mu: float, lame: float) -> float:
    """Return Young's modulus of Lamé's constants [Pa]."""
    return mu * (3.0 * lame + 2.0 * mu) / (lame + mu)


def marker_paths(points, problem, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, Clock]:  # type: ignore[no-untyped-def]
    """Return times, the markers' places (k + 1, m, 3) of a run at x, and what it took."""
    with clock() as taken:
        _, runs = problem.value(x)
    (run,) = runs.values()
    experiment = problem.experiments[0]
    theta = problem.theta(x, experiment)
    return run.t, np.array([points.points(run.kinematics(k), theta)[0] for k in range(run.n_steps + 1)]), taken


def materials(base: Scene, values: Mapping[str, np.ndarray], body: str) -> dict[str, float]:
    """Return the five numbers of a material and its contacts, as the paper lists them."""
    at = f"bodies.{body}.material"
    number = {key: float(np.atleast_1d(value)[0]) for key, value in values.items() if np.size(value) == 1}
    return {
        "E [Pa]": young(number[f"{at}.mu"], number[f"{at}.lambda"]),
        "mu [Pa]": number[f"{at}.mu"],
        "lambda [Pa]": number[f"{at}.lambda"],
        "viscosity [Pa s]": number[f"{at}.viscosity"],
        "friction of the floor [-]": number["contact.friction"],
        "friction of the wall [-]": number["contact.pairs.0.friction"],
    }


def truth_misfit(base: Scene, truth: Mapping[str, Any]) -> float:
    """Return the root mean squared distance of the markers with the true numbers in the scene that is fitted [m]."""
    problem = apply_overrides(base, truth).inverse_problem()
    return float(np.sqrt(problem.value(problem.x0)[0]))


def fit(case: Recorded, context: Context) -> Outcome:
    """Fit all parameters in the scene's phases and compare them with the truth."""
    base = scene(case.scene, case.short if context.short else {})
    truth = json.loads((ROOT / "data" / "recordings" / f"{case.recording}.json").read_text(encoding="utf-8"))
    built, problem = base.build(), base.inverse_problem()
    values: list[float] = []
    phases: list[str] = []

    def note(evaluation: LoggedEvaluation, _: bool) -> None:
        values.append(evaluation.value)
        phases.append(evaluation.phase)

    problem.residuals(problem.x0, window=(0.0, 5 * base.time.dt))  # compiles what is not compiled
    with clock() as taken:
        found = problem.optimize(progress=note)

    def named(x: np.ndarray) -> dict[str, np.ndarray]:
        physical = problem.values(x)
        return {p.name: physical[p.slice] for p in problem.parameters}

    start, end = (materials(base, named(x), case.body) for x in (problem.x0, found.x))
    true = materials(base, truth["parameters"], case.body)
    t, before, _ = marker_paths(built.markers, problem, problem.x0)
    _, after, one = marker_paths(built.markers, problem, found.x)
    _, runs = problem.value(found.x)
    (run,) = runs.values()
    rms = float(np.sqrt(problem.value(found.x)[0]))
    at_start = float(np.sqrt(problem.value(problem.x0)[0]))
    at_truth = 0.0 if context.short else truth_misfit(base, truth["parameters"])
    rows = [
        Row(f"{key}: start -> found (truth)", f"{start[key]:.4g} -> {end[key]:.4g} ({true[key]:.4g})",
            f"{case.figure}.{key.split()[0]}" if key.split()[0] in ("E", "viscosity") else
            f"{case.figure}.friction" if "floor" in key else None)
        for key in true
    ]  # fmt: skip
    noise = 1e3 * truth["noise_m"] * np.sqrt(3.0)
    elements = built.model.bodies[0].mesh.n_elements
    rows += [
        Row("elements", str(elements), f"{case.figure}.elements"),
        Row(f"distance of the markers, root mean square, start -> found (noise: {noise:.2f}) [mm]",
            f"{1e3 * at_start:.1f} -> {1e3 * rms:.2f}"),
        Row("one simulation [s]", f"{one.seconds:.2f}", f"{case.figure}.seconds"),
        Row("Newton iterations a step", f"{iterations(run):.2f}"),
        Row("simulations", str(len(values)), f"{case.figure}.simulations"),
        Row("optimisation [s]", f"{taken.seconds:.0f}", f"{case.figure}.optimisation"),
    ]  # fmt: skip
    name = f"{case.figure.replace('fig', 'fig0')}.png"
    draw(case, context, name, base, problem, run, t, before, after, values, phases)
    notes = (
        "The paper's recording is not public. This one is synthetic: made with the material that the paper found, on "
        "other elements, with half the time step and with noise, and with markers at points where the paper has "
        f"patches. Time step {1e3 * base.time.dt:g} ms (the paper: 5 ms), bdf2 from its second-order start. The "
        "viscosity is the paper's number times 64, as its program counts. Gauss-Newton with forward sensitivities; "
        "the paper has L-BFGS. With other elements and another step the motion after the bounces is another one, so "
        "that the true numbers would not fit the recording best either"
        + (f" (they leave {1e3 * at_truth:.0f} mm over the whole run)." if not context.short else "."),
        "Friction beyond the one at which a bounce sticks leaves no trace in a recording, and so is not found. "
        f"Bounded: at most {base.optimizer.max_evaluations} simulations a stage.",
    )
    kept = {"seconds": one.seconds, "optimisation": taken.seconds, "simulations": len(values), "rms": rms,
            "errors": {key: end[key] / true[key] - 1.0 for key in true}}  # fmt: skip
    caption = "The recorded markers (dots), the start (dashed) and what was found; the objective; the run found."
    return Outcome(tuple(rows), {name: caption}, notes, kept)


def draw(case, context, name, base, problem, run, t, before, after, values, phases) -> None:  # type: ignore[no-untyped-def]
    """Draw the paths of one marker, the convergence and pictures."""
    recording = problem.experiments[0].recording
    with figure(context.image(name), 8.2, 4.6) as drawn:
        upper, lower = drawn.subfigures(2, 1, height_ratios=(1.2, 1.0))
        left, right = upper.subplots(1, 2, width_ratios=(1.6, 1))
        for axis in (0, 2):
            seen = recording.valid[:, 0]
            left.plot(recording.times[seen], recording.positions[seen, 0, axis], ".", color=f"C{axis}", ms=2.5)
            left.plot(t, after[:, 0, axis], f"C{axis}", lw=1.0, label=f"{AXES[axis]}")
            left.plot(t, before[:, 0, axis], f"C{axis}", lw=0.8, ls="--")
        left.set(xlabel="t [s]", ylabel="[m]", title=f"marker '{recording.names[0]}'", xlim=(0, t[-1]))
        left.legend()
        counted = np.arange(1, len(values) + 1)
        for k, phase in enumerate(dict.fromkeys(phases)):
            part = np.array([p == phase for p in phases])
            right.semilogy(counted[part], 1e3 * np.sqrt(np.array(values)[part]), f"C{k}.-", ms=3, lw=0.8, label=phase)
        right.set(xlabel="simulations", ylabel="markers, root mean square [mm]")
        right.legend(fontsize=6.5, ncols=2)
        if not context.short:
            built, theta = base.build(), problem.theta(problem.x0, problem.experiments[0])
            moments = np.array([0.0, 0.35, 0.65, 1.0]) * t[-1]
            for panel, moment in zip(lower.subplots(1, 4), moments, strict=True):
                show(panel, picture(built, run, theta, float(moment), (800, 640)), f"t = {moment:.2g} s")
