"""CMA-ES for as many simulations as were published, beside gradients: the throws of Figs. 10a, 11b and the strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.errors import SolverError
from add.inverse import InverseProblem, LoggedEvaluation
from add.scene import Scene, apply_overrides
from scripts.reproduction.bunny import bunny_scene
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import LONG_RUNS, Context, Entry, Outcome, Row, Skipped, clock
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


def _bunny(short: bool) -> Scene:
    folder = LONG_RUNS / ("bunny, short" if short else "bunny")
    folder.mkdir(parents=True, exist_ok=True)
    return bunny_scene(folder, {"time.steps": 12} if short else {}, 4 if short else 200, wall=True)


SEARCHES = (
    Search("fig10a", "Fig. 10a, two bounces", _throw, 0.4, 1042, "l-bfgs-b", 1e-6, "cma.simulations"),
    Search("strings", "cube on strings, 360 numbers", _strings, 0.1, 8000, "gauss-newton", 1e-3, "cma.strings"),
    Search("fig11b", "Fig. 11b, a bunny", _bunny, 0.4, 8000, "gauss-newton", 1e-2, "cma.bunny"),
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


def gradient_values(problem: InverseProblem) -> tuple[list[float], float]:
    """Return the objective of every simulation of the scene's own optimiser, and its processor time [s]."""
    values: list[float] = []

    def note(evaluation: LoggedEvaluation, _: bool) -> None:
        values.append(evaluation.value)

    with clock() as taken:
        problem.optimize(progress=note)
    return values, taken.seconds


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
    name, stopped = "cma_counts.png", ""
    with figure(context.image(name), 9.6, 3.2) as drawn:
        for search, axes in zip(SEARCHES, drawn.subplots(1, len(SEARCHES)), strict=True):
            try:
                base = search.scene(context.short)
            except Skipped as reason:
                stopped += f"{search.title} was left out: {reason}. "
                axes.set_visible(False)
                continue
            most = 12 if context.short else search.most
            if context.partial:
                done = sum(name.startswith(f"{search.key} ") for name in tasks.known)
                if done < most:
                    stopped += (
                        f"The search of {search.title} was stopped at {done} of its {most} simulations: "
                        "`make reproduce-long` goes on. "
                    )
                if not done or f"{search.key}, {search.method}" not in tasks.known:
                    axes.set_visible(False)
                    continue
                most = min(most, done)
            limit = 3 if context.short else 40
            problem = _with(base, search.method, limit).inverse_problem()
            found, taken = tasks(f"{search.key}, {search.method}", lambda p=problem: gradient_values(p))
            by_samples, seconds = cma_values(problem, search, most, tasks)
            by_gradients = np.array(found)
            for label, counted, time in (("CMA-ES", by_samples, seconds), (search.method, by_gradients, taken)):
                best = np.minimum.accumulate(counted) / counted[0]
                axes.loglog(np.arange(1, best.size + 1), np.maximum(best, 1e-30), label=label)
                is_cma = label == "CMA-ES"
                rows += [
                    Row(f"{search.title}, {label}: simulations to Phi/Phi_0 = {search.wanted:g}",
                        reached(counted, search.wanted), search.published if is_cma else None),
                    Row(f"{search.title}, {label}: Phi/Phi_0 after {counted.size} simulations", f"{best[-1]:.1e}"),
                    Row(f"{search.title}, {label}: time [s]", f"{time:.0f}"),
                ]  # fmt: skip
                values[f"{search.key}.{label}"] = {"reduction": float(best[-1]), "simulations": int(counted.size)}
            axes.axhline(search.wanted, color="k", lw=0.6, ls=":")
            axes.set(xlabel="simulations", ylabel="$\\Phi/\\Phi_0$, best so far", title=search.title)
            axes.legend()
    spreads = "; ".join(f"{s.title}: {s.spread:g}" for s in SEARCHES)
    notes = (
        f"{stopped}CMA-ES of the package cma, seed {SEED}, from the scene's start; first standard deviations, over the "
        f"scales of the parameters: {spreads}. It ends where it arrives or at the published count; for the strings "
        f"none was published, and {SEARCHES[1].most} are allowed, the number that was not enough on Fig. 11b.",
    )
    return Outcome(tuple(rows), {name: "Best objective over simulations."}, notes, values)


def _with(base: Scene, method: str, most: int) -> Scene:
    return apply_overrides(base, {"optimizer.method": method, "optimizer.max_evaluations": most})


ENTRY = Entry(
    "cma_counts",
    "CMA-ES to its published counts",
    "CMA-ES for the 1042 simulations that the paper gave it on Fig. 10a and the 8000 of Fig. 11b, and on a trajectory "
    "optimisation, of which the paper says that it found nothing in hours.",
    run,
    long=True,
)
