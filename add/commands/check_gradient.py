"""Check whether the gradient of a scene is right, and whether it is useful (`add check --gradient`)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from add.adjoint import evaluate, pushforward, value_and_gradient
from add.commands.run_summary import WeakLog
from add.equations.layout import ParameterLayout
from add.equations.points import NodePoints
from add.equations.tree_embedding import TreeEmbedding
from add.errors import SolverError
from add.objectives import Objective, Tracking, WeightedSum
from add.scene import Scene, apply_overrides, experiment_scenes
from add.scene.build.built import BuiltScene
from add.scene.build.inverse_problem import scene_objective
from add.scene.build.targets import judged_simulation
from add.simulation.run import Replay, Simulation, Trajectory
from add.typing import FloatArray, IntArray

#: What counts as a typical size of a number that is zero, or of a reading of a clock, by unit.
_TYPICAL = {
    "m": 0.01, "rad": 0.1, "m/s": 0.1, "rad/s": 1.0, "m/s^2": 1.0, "N": 0.1, "kg": 0.01, "Pa": 1e3, "Pa s": 1.0,
    "1/s": 1.0, "s": 1e-3, "-": 0.1, "kg/m^3": 100.0, "N s/m": 0.1, "N s/m/m^2": 1e3,
}  # fmt: skip

#: Rotation vectors of links beyond this have no targets drawn for them [rad].
FAR_TURNED = 2.0

#: Relative steps of the central differences; truncation falls with the square, round-off grows with the inverse.
STEPS = (1e-4, 1e-5, 1e-6, 1e-7)

#: Of a block of more numbers than this (rows of a control), so many are differenced one by one. The directions of the
#: Taylor rates and of the forward mode have all of them.
SAMPLE = 24

#: Replayed differences must agree with the adjoint to this part of the gradient's norm.
TOLERANCE = 1e-6

#: The relative step over which the free slope is called coarse: about what an optimiser's line search sees.
COARSE = 1e-2

#: Pairs of gradients within `COARSE` that tell how far one of them may be believed; the growth of a slope from halfway
#: on beyond which it is no power of time (2: a flight, 4: a force); how many times what it leaves a line is to say.
NEARBY, GROWTH, STRAIGHT = 3, 20.0, 3.0


class ParameterCheck(NamedTuple):
    """One scalar; all derivatives are by the relative size: scale * d/ds.

    Attributes
    ----------
    name, unit : str
    value, scale : float
    adjoint : float
    replayed, replayed_error : float
        Best central difference with the recorded decisions held; |difference - adjoint| / norm of the gradient.
    free, free_error : float
        The same with decisions free, over the same steps.
    coarse : float
        Free slope over a relative step of 1e-2.
    changed : int
        Contact decisions that differ between the two ends of the smallest free step at which any differs; 0 if none.

    Without free runs these are NaN (the error inf) and 0.
    """

    name: str
    unit: str
    value: float
    scale: float
    adjoint: float
    replayed: float
    replayed_error: float
    free: float
    free_error: float
    coarse: float
    changed: int


class GradientCheck(NamedTuple):
    """The check of one experiment.

    Attributes
    ----------
    experiment : str
    n_steps : int
    value : float
    norm : float
        Of the relative gradient.
    parameters : tuple of ParameterCheck
    taylor_rates : tuple of float
        Of the remainder along a seeded random direction, decisions held.
    forward_error : float
        Largest relative difference between forward and reverse mode over the directions tried.
    decisions : dict
        Counts over the window: touching, sticking, slipping.
    n_numbers : int
        All numbers of the scene; of blocks of more than `SAMPLE` only so many are in ``parameters``.
    weak : tuple of str
        Contacts on the border of two modes, one text a pair.
    growth, signal : float
        See `trust`.
    drawn : bool
        Whether the objective is not the scene's, which sees nothing in the window, but that of `probe`.
    """

    experiment: str
    n_steps: int
    value: float
    norm: float
    parameters: tuple[ParameterCheck, ...]
    taylor_rates: tuple[float, ...]
    forward_error: float
    decisions: dict[str, int]
    n_numbers: int
    weak: tuple[str, ...] = ()
    growth: float = np.nan
    signal: float = np.nan
    drawn: bool = False

    @property
    def worst(self) -> float:
        """Largest error of the replayed differences."""
        return max(p.replayed_error for p in self.parameters)

    @property
    def passed(self) -> bool:
        """Whether adjoint, differences, Taylor rate and forward mode agree."""
        rates = all(1.9 <= r <= 2.1 for r in self.taylor_rates)
        return self.worst <= TOLERANCE and rates and self.forward_error <= 1e-10

    @property
    def warnings(self) -> list[str]:
        """Name contacts whose derivatives are one-sided, and the parameters whose free slope is not the adjoint's."""
        out = list(self.weak)
        if self.growth > GROWTH or self.signal < STRAIGHT:
            out.append(
                f"a gradient to be trusted with care: slopes grow {self.growth:.3g} times from halfway to the end, a "
                f"line through the gradients within {100 * COARSE:g} % says {self.signal:.3g} times what it leaves"
            )
        for p in self.parameters:
            if abs(p.coarse - p.adjoint) > 0.5 * max(abs(p.adjoint), 0.05 * self.norm):
                out.append(
                    f"{p.name}: the slope over {100 * COARSE:g} % is {p.coarse:.3g}, the exact gradient "
                    f"{p.adjoint:.3g} ({p.changed} decisions change)"
                )
        return out


def tight(simulation: Simulation) -> Simulation:
    """Return the simulation with Newton driven to round-off: differences of runs see its tolerance as noise."""
    stepper = simulation.differentiable
    options = replace(stepper.newton, atol=min(stepper.newton.atol, 1e-13), rtol=0.0, max_iterations=100)
    return replace(simulation, stepper=stepper.solved_by(options), start=simulation.start.solved_by(options))


def probe(built: BuiltScene, n_steps: int, seed: int) -> Objective:
    """Return an objective for scenes that have none: seeded targets for all nodes at the window's end."""
    rng = np.random.default_rng(seed)
    lift, dt, x = built.model.lift, built.simulation.stepper.dt, built.model.at_start(built.theta).q.reshape(-1, 3)
    n, first = len(x), built.model.lift.n_same // 3
    targets = x[None] + 0.05 * rng.normal(size=(1, n, 3))
    weights = rng.uniform(0.5, 1.5, size=(1, n)) / n
    for one in lift.embeddings:
        if isinstance(one, TreeEmbedding):  # of links, behind their places: rotation vectors, which jump at pi
            rotations = slice(first + 1, first + one.n_rows // 3, 2)
            weights[0, rotations] *= np.linalg.norm(x[rotations], axis=1) < FAR_TURNED
        first += one.n_rows // 3
    points = built.model.lifted(NodePoints(np.arange(n)))
    return WeightedSum((1.0,), (Tracking(points, dt, np.array([n_steps * dt]), targets, weights, np.eye(3)),))


def check_gradients(
    scene: Scene,
    *,
    n_steps: int | None = None,
    seed: int = 0,
    free: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> list[GradientCheck]:
    """Check the gradient of a scene with respect to every number that it can be differentiated by.

    Parameters
    ----------
    scene : Scene
    n_steps : int, optional
        Length of the window; default: the scene's ``check.steps``, else at most 40 steps.
    seed : int
        Of directions and probe.
    free : bool
        False: ask only whether the gradient is right (`GradientCheck.passed`), which half the runs or fewer say. Slopes
        with decisions free and `trust` tell whether it is useful.
    progress : called with (done, total) differences

    Returns
    -------
    list of GradientCheck, one an experiment

    Raises
    ------
    InputError
        If the steps of an experiment have no derivative.
    """
    if scene.gradient.contact != "exact":  # what is checked is what steps do
        scene = apply_overrides(scene, {"gradient.contact": "exact"})
    from add.scene.build.scene import build, with_contact

    out, asked = [], (seed, free)
    scene = with_contact(scene)
    for name, item in experiment_scenes(scene).items():
        built = build(item)
        simulation = judged_simulation(scene, built)
        steps = min(n_steps or (scene.check.steps if scene.check else None) or 40, simulation.n_steps)
        judged = scene_objective(scene, built, name, steps)
        objective = judged or probe(built, steps, seed)
        found = _check(name, replace(built, simulation=simulation), objective, steps, asked, progress)
        out.append(found._replace(drawn=judged is None))
    return out


def _check(
    name: str, built: BuiltScene, objective: Objective, n_steps: int, asked: tuple[int, bool],
    progress: Callable[[int, int], None] | None,
) -> GradientCheck:  # fmt: skip
    (seed, free), simulation = asked, tight(built.simulation)
    ties, s = built.numbers.ties, built.numbers.values
    layout = built.numbers.layout
    scale = np.empty(layout.n)
    for entry in layout.entries:
        # A reading of a clock may be large where nothing slow happens.
        size = 0.0 if entry.name.endswith("time_offset") else float(np.abs(s[entry.slice]).max())
        scale[entry.slice] = size if size > 0.0 else _TYPICAL.get(entry.unit, 1.0)

    def at(point: FloatArray, replay: Replay | None = None) -> tuple[float, Trajectory]:
        return evaluate(simulation, objective, ties.forward(point), n_steps=n_steps, replay=replay)

    def gradient_at(point: FloatArray) -> FloatArray:
        found = value_and_gradient(simulation, objective, ties.forward(point), n_steps=n_steps)
        return ties.pullback(point, found.gradient) * scale

    value, trajectory = at(s)
    replay, theta = trajectory.replay, ties.forward(s)
    gradient = gradient_at(s)
    zero = np.concatenate([np.full(s[e.slice].size, not s[e.slice].any()) for e in layout.entries])
    others = float(np.linalg.norm(gradient[~zero]))
    if others > 1e-12 * abs(value):  # a cloth's damping of 1e-6 N m s is much: zeros count for no more than others
        share = np.where(zero, others / np.maximum(np.abs(gradient), others), 1.0)
        scale, gradient = scale * share, gradient * share
    norm = float(np.linalg.norm(gradient)) or 1.0

    rng, inward = np.random.default_rng(seed), built.numbers.inward()
    checks = []
    chosen = _chosen(layout, gradient, rng)
    for k, i in enumerate(chosen):
        checks.append(_parameter(int(i), layout, s, scale, gradient, at, replay, simulation, inward, free))
        if progress:
            progress(k + 1, chosen.size)

    directions = [rng.normal(size=layout.n) * scale for _ in range(2)]
    slope = float(gradient @ (directions[0] / scale))
    rates = taylor_rates(lambda h: at(s + h * directions[0], replay)[0], value, slope)
    theta_dots = [ties.pushforward(s, d) for d in directions]
    tangents = pushforward(simulation, trajectory, theta, theta_dots)
    slopes = tangents.derivative(objective, trajectory, theta)
    errors = [
        abs(slope - gradient @ (d / scale)) / max(abs(slope), 1e-6 * norm)
        for slope, d in zip(slopes, directions, strict=True)
    ]
    counts, weak = Counter[str](), WeakLog()
    for record in trajectory.records:
        for term, decision in zip(simulation.system.deciding, record.decisions, strict=True):
            counts.update(term.describe(decision))
        forces = simulation.stepper.contact_forces(record, theta)
        if forces:
            counts.update(forces.counts)
            weak.add(built, record.kin.t, forces)
    texts = tuple(pair["text"] for pair in weak.described())
    growth = signal = np.nan
    if free:
        growth, signal = trust(tangents.q, gradient_at, s, gradient, np.where(inward, 0.0, scale), seed)
    return GradientCheck(
        name, n_steps, value, norm, tuple(checks), rates, float(max(errors)), counts, layout.n, texts, growth, signal
    )


def _chosen(layout: ParameterLayout, gradient: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return the numbers to difference: of a large block, those of the largest derivatives and as many drawn."""
    out = []
    for entry in layout.entries:
        index = entry.indices.ravel()
        if index.size > SAMPLE:
            order = np.argsort(-np.abs(gradient[index]), kind="stable")
            half = SAMPLE // 2
            index = index[np.concatenate([order[:half], rng.choice(order[half:], SAMPLE - half, replace=False)])]
        out.append(np.sort(index))
    return np.concatenate(out)


def _parameter(
    i: int, layout: ParameterLayout, s: FloatArray, scale: FloatArray, gradient: FloatArray,
    at: Callable[..., tuple[float, Trajectory]], replay: Replay, simulation: Simulation, inward: FloatArray, free: bool,
) -> ParameterCheck:  # fmt: skip
    norm, unit = float(np.linalg.norm(gradient)) or 1.0, np.zeros_like(s)
    unit[i] = scale[i]

    def slope(h: float, held: Replay | None) -> tuple[float, int]:
        # Beyond a limit of the format 1 % is another physics: an armature below zero feeds what turns.
        ways = (inward[i], 0.0) if h == COARSE and inward[i] else (1.0, -1.0)
        ends = [at(s + way * h * unit, held) for way in ways]
        changed = 0
        if held is None:
            for a, b in zip(ends[0][1].records, ends[1][1].records, strict=True):
                chosen = zip(simulation.system.deciding, a.decisions, b.decisions, strict=True)
                changed += sum(term.changes(x, y) for term, x, y in chosen)
                changed += simulation.stepper.contact_changes(a, b)
        return (ends[0][0] - ends[1][0]) / ((ways[0] - ways[1]) * h), changed

    def best(steps: Sequence[float], held: Replay | None, enough: float) -> tuple[float, float, int]:
        """Return the slope nearest to the gradient's, how far it is off, and the first number of changed decisions."""
        difference, error, changed = np.nan, np.inf, 0
        for h in steps:
            try:
                value, differ = slope(h, held)
            except SolverError:
                continue
            changed = changed or differ
            if abs(value - gradient[i]) / norm < error:
                difference, error = value, abs(value - gradient[i]) / norm
            if error < enough and not differ:
                break
        return float(difference), float(error), changed

    replayed = best(STEPS, replay, 0.01 * TOLERANCE)  # far below the tolerance no smaller step is needed
    unheld = best(STEPS[::2] if free else (), None, TOLERANCE)
    coarse = best((COARSE,) if free else (), None, TOLERANCE)
    entry = layout.entry_of(i)
    here = float(s[i]), float(scale[i]), float(gradient[i])
    changed = unheld[2] or coarse[2]
    return ParameterCheck(layout.describe(i), entry.unit, *here, *replayed[:2], *unheld[:2], coarse[0], changed)


def taylor_rates(f: Callable[[float], float], value: float, slope: float) -> tuple[float, ...]:
    """Return the orders of |f(h) - f(0) - h slope| over halvings of h, from a step at which round-off does not show.

    The largest step is lowered until the remainders fall in order, since replayed branches may end (inverted
    elements, a stiff impact) and higher terms may dominate at large steps. What is wrong in a slope falls with the
    first order, and shows the more the smaller the step.
    """
    best: tuple[float, ...] = (np.nan, np.nan)
    for start in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6):
        try:
            remainders = [abs(f(start * 0.5**k) - value - start * 0.5**k * slope) for k in range(3)]
        except SolverError:
            continue
        if min(remainders) <= 0.0:
            continue
        rates = tuple(float(np.log2(a / b)) for a, b in pairwise(remainders))
        if not np.isfinite(best).all() or max(abs(r - 2.0) for r in rates) < max(abs(r - 2.0) for r in best):
            best = rates
        if max(abs(r - 2.0) for r in best) < 0.05:
            break
    return best


def trust(
    tangents: FloatArray, gradient: Callable[[FloatArray], FloatArray], s: FloatArray, here: FloatArray,
    scale: FloatArray, seed: int,
) -> tuple[float, float]:  # fmt: skip
    """Return how far a gradient may be believed: the growth of slopes along the run, and how far gradients are a line.

    Growth is |q_dot| at the end over that halfway, of the tangents (d, k + 1, n) of a run. The other number is of
    `NEARBY` pairs of gradients at s +- d, d = 1e-2 scale N(0, 1), with odd parts o = (g+ - g-)/2 and even parts
    e = (g+ + g-)/2: sqrt(|mean e|^2 + mean |o|^2) / rms |e - g(s)|. Near a minimum gradients change their sign, and
    are a line through it; in chaos even parts are as large as odd ones, and most of a gradient is the place where it
    was taken: about 1. NaN where slopes are zero halfway, or no pair is there; pairs that fail are left out.
    """
    rng, pairs = np.random.default_rng(seed), []
    for _ in range(NEARBY):
        step = COARSE * scale * rng.normal(size=s.size)
        try:
            pairs.append((gradient(s + step), gradient(s - step)))
        except SolverError:
            continue
    sizes = np.linalg.norm(tangents, axis=(0, 2))
    half, end = sizes[len(sizes) // 2], sizes[-1]
    growth = float(end / half) if half > 0.0 else np.nan
    if not pairs:
        return growth, np.nan
    ends = np.array(pairs)
    even, odd = ends.mean(axis=1), 0.5 * (ends[:, 0] - ends[:, 1])
    line = np.sum(even.mean(axis=0) ** 2) + np.mean(np.sum(odd**2, axis=1))
    left = float(np.mean(np.sum((even - here) ** 2, axis=1)))
    return growth, float(np.sqrt(line / left)) if left > 0.0 else np.inf
