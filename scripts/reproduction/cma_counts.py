"""CMA-ES for as many simulations as were published, beside gradients: the throw of Fig. 10a and the strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.errors import SolverError
from add.inverse import InverseProblem, LoggedEvaluation
from add.scene import Scene, apply_overrides
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, Skipped, clock
from scripts.reproduction.fig10a_throws import SCENE, SHORT, STARTS
from scripts.reproduction.running import scene
from scripts.reproduction.tasks import Tasks

SEED = 7


@final
@dataclass(frozen=True)
class Search:
    """One comparison.

    Attributes
    ----------
    key, title : str
    scene : whether it is a short run -> Scene
    spread : standard deviation of the first samples, in x (the parameters over their scale)
    most : simulations of CMA-ES
    method : the one with gradients
    wanted : float
        Phi/Phi_0 that both are asked for.
    published : its key of `PUBLISHED`, or None
    """

    key: str
    title: str
    scene: Callable[[bool], Scene]
    spread: float
    most: int
    method: str
    wanted: float
    published: str | None = None


def _throw(short: bool) -> Scene:
    return scene(SCENE, (SHORT if short else {}) | {"bodies.ball.velocity": list(STARTS[2][0])})


def _strings(short: bool) -> Scene:
    return scene("strings_cube", {"optimizer.max_evaluations": 2} if short else {})


SEARCHES = (
    Search("fig10a", "Fig. 10a, two bounces", _throw, 0.4, 1042, "l-bfgs-b", 1e-6, "cma.simulations"),
    Search("strings", "cube on strings, 360 numbers", _strings, 0.1, 20000, "gauss-newton", 1e-3, "cma.strings"),
)


def cma_values(problem: InverseProblem, search: Search, most: int, tasks: Tasks) -> tuple[np.ndarray, float]:
    """Return the objective of every simulation of CMA-ES, infinite where one failed, and their processor time [s]."""
    import cma

    values: list[float] = []
    seconds = 0.0

    def simulated(x: np.ndarray) -> list[float]:
        with clock() as taken:
            try:
                value = problem.value(x)[0]
            except SolverError:
                value = float("inf")
        return [value, taken.seconds]

    def objective(x: np.ndarray) -> float:
        nonlocal seconds
        # The samples follow from the seed and the values before: a search that was stopped meets the same points.
        value, taken = tasks(f"{search.key} {len(values)}", lambda: simulated(np.asarray(x)))
        values.append(value)
        seconds += taken
        return float(value)

    first = objective(problem.x0)
    options = {"maxfevals": most - 1, "seed": SEED, "verbose": -9, "tolx": 0.0, "tolfun": 0.0, "tolfunhist": 0.0,
               "tolstagnation": 10**9, "ftarget": search.wanted * first}  # fmt: skip
    cma.fmin2(objective, problem.x0, search.spread, options)
    return np.array(values), seconds


def gradient_values(problem: InverseProblem) -> tuple[np.ndarray, float]:
    """Return the objective of every simulation of the scene's own optimiser, and its processor time [s]."""
    values: list[float] = []

    def note(evaluation: LoggedEvaluation, _: bool) -> None:
        values.append(evaluation.value)

    with clock() as taken:
        problem.optimize(progress=note)
    return np.array(values), taken.seconds


def reached(values: np.ndarray, wanted: float) -> str:
    """Return after how many simulations a search came to ``wanted`` of its first value, as text."""
    near = np.flatnonzero(values <= wanted * values[0])
    return str(int(near[0]) + 1) if near.size else f"not in {values.size}"


def run(context: Context) -> Outcome:
    """Run CMA-ES and the method with gradients from the same starts."""
    try:
        import cma  # noqa: F401
    except ImportError:
        raise Skipped("needs the package cma: pip install 'add-sim[reproduction]'") from None
    tasks = context.tasks("cma_counts")
    rows: list[Row] = []
    values: dict[str, Any] = {}
    name = "cma_counts.png"
    with figure(context.image(name), 8.2, 3.2) as drawn:
        for search, axes in zip(SEARCHES, drawn.subplots(1, len(SEARCHES)), strict=True):
            base = search.scene(context.short)
            most = 12 if context.short else search.most
            limit = 3 if context.short else 40
            problem = _with(base, search.method, limit).inverse_problem()
            by_samples, seconds = cma_values(problem, search, most, tasks)
            by_gradients, taken = gradient_values(problem)
            for label, found, time in (("CMA-ES", by_samples, seconds), (search.method, by_gradients, taken)):
                best = np.minimum.accumulate(found) / found[0]
                axes.loglog(np.arange(1, best.size + 1), np.maximum(best, 1e-30), label=label)
                is_cma = label == "CMA-ES"
                rows += [
                    Row(f"{search.title}, {label}: simulations to Phi/Phi_0 = {search.wanted:g}",
                        reached(found, search.wanted), search.published if is_cma else None),
                    Row(f"{search.title}, {label}: Phi/Phi_0 after {found.size} simulations", f"{best[-1]:.1e}"),
                    Row(f"{search.title}, {label}: time [s]", f"{time:.0f}"),
                ]  # fmt: skip
                values[f"{search.key}.{label}"] = {"reduction": float(best[-1]), "simulations": int(found.size)}
            axes.axhline(search.wanted, color="k", lw=0.6, ls=":")
            axes.set(xlabel="simulations", ylabel="$\\Phi/\\Phi_0$, best so far", title=search.title)
            axes.legend()
    spreads = "; ".join(f"{s.title}: {s.spread:g}" for s in SEARCHES)
    notes = (
        f"CMA-ES of the package cma, seed {SEED}, from the scene's start; first standard deviations, over the scales "
        f"of the parameters: {spreads}. It ends where it arrives or at the published count; for the strings none was "
        f"published, and {SEARCHES[1].most} are allowed.",
    )
    return Outcome(tuple(rows), {name: "Best objective over simulations."}, notes, values)


def _with(base: Scene, method: str, most: int) -> Scene:
    return apply_overrides(base, {"optimizer.method": method, "optimizer.max_evaluations": most})


ENTRY = Entry(
    "cma_counts",
    "CMA-ES to its published counts",
    "CMA-ES for the 1042 simulations that the paper gave it on Fig. 10a, and on a trajectory optimisation, of which "
    "the paper says that it found nothing in hours.",
    run,
    long=True,
)
