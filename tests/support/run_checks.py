"""The comparisons that every gradient of a run has to pass, and what happened in the run."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from add.adjoint import Checkpoints, States, evaluate, pushforward, value_and_gradient
from add.contact import BodyContact
from add.errors import SolverError
from add.kernels.contact_pairs import ACTIVE, BITS, PAIR, SLIP, STICKS
from add.objectives.base import Objective
from add.simulation.run import Simulation, Trajectory
from add.simulation.substeps import whole_steps

#: Parameters that are differenced at once.
TOGETHER = 48


def tight(simulation: Simulation) -> Simulation:
    """Solve whole steps to round-off, as differences of runs ask for."""
    stepper = whole_steps(simulation.stepper)
    return replace(simulation, stepper=replace(stepper, newton=replace(stepper.newton, atol=1e-12, rtol=1e-13)))


def check_gradient_of_run(simulation: Simulation, objective: Objective, *, together: int = TOGETHER) -> Trajectory:
    """Reverse mode by every schedule, forward mode, replayed differences of every parameter, Taylor remainders.

    The differences are along sums of ``together`` parameters with random weights, and of the halves of such that do
    not agree: an error of one is seen as well, and where it is.
    """
    theta, layout = simulation.theta, simulation.system.parameters
    value, trajectory = evaluate(simulation, objective)
    reverse = value_and_gradient(simulation, objective)
    assert reverse.value == value

    # Records made again from states and decisions: bit-equal, since a step depends on its state alone.
    kept = value_and_gradient(simulation, objective, schedule=States())
    assert kept.value == value
    assert np.array_equal(kept.gradient, reverse.gradient)

    # And so are checkpoints, over several segments, with threads that linearise ahead: without them, the segments are
    # the same. With sparse matrices threads take the steps of the terms, and compiled ones add what hybrid friction and
    # meshes give in another order; there, checkpoints are asked without threads, too.
    threaded, packed = replace(simulation, threads=3), simulation.packed
    rounding = 1e-12 if packed is not None and packed.sparse else 0.0
    for one, tolerance in ((threaded, rounding), *([(simulation, 0.0)] if rounding else [])):
        again = value_and_gradient(one, objective, schedule=Checkpoints(5))
        assert (one is threaded and rounding) or again.value == value
        assert np.abs(again.gradient - reverse.gradient).max() <= tolerance * np.abs(reverse.gradient).max()

    scale = np.where(theta != 0.0, np.abs(theta), 0.1)
    norm = np.linalg.norm(reverse.gradient * scale)
    rng = np.random.default_rng(3)
    directions = [rng.normal(size=theta.size) * scale for _ in range(3)]

    forward = pushforward(simulation, trajectory, theta, directions)
    slopes = forward.derivative(objective, trajectory, theta)
    again = pushforward(threaded, trajectory, theta, directions).derivative(objective, trajectory, theta)
    assert np.array_equal(again, slopes)
    for direction, slope in zip(directions, slopes, strict=True):
        assert reverse.gradient @ direction == pytest.approx(slope, rel=1e-10, abs=1e-10 * norm)

    def at(point: np.ndarray) -> float:
        return evaluate(simulation, objective, point, replay=trajectory.replay)[0]

    base = at(theta)
    assert base == pytest.approx(value, rel=1e-11)
    ways = rng.choice([-1.0, 1.0], theta.size) * rng.uniform(0.5, 1.0, theta.size) * scale

    def agree(some: slice) -> None:
        # The best of a few steps, most often the first: truncation at large, round-off at small ones; held branches end
        # somewhere.
        way, errors = np.zeros_like(theta), []
        way[some] = ways[some]
        for size in (1e-5, 1e-4, 1e-6, 1e-7):
            try:
                slope = (at(theta + size * way) - at(theta - size * way)) / (2.0 * size)
            except SolverError:
                continue
            errors.append(abs(slope - reverse.gradient @ way) / norm)
            if errors[-1] < 1e-6:
                return
        n = some.stop - some.start
        assert n > 1, f"{layout.describe(some.start)}: {errors}"
        for part in (slice(some.start, some.start + n // 2), slice(some.start + n // 2, some.stop)):
            agree(part)

    for begin in range(0, theta.size, together):
        agree(slice(begin, min(begin + together, theta.size)))

    # Taylor remainder of the replayed run: second order, where h is small enough for the first term of the remainder to
    # rule and large enough for it to stand above round-off. Along one direction in many the second derivative is small.
    for direction in directions:
        slope = reverse.gradient @ direction
        remainders: list[float] = []
        for h in 2e-4 * 0.5 ** np.arange(9):
            remainders.append(abs(at(theta + h * direction) - base - h * slope))
            rates = np.log2(remainders[:-1]) - np.log2(remainders[1:])
            if len(rates) > 1 and np.all((rates[-2:] > 1.9) & (rates[-2:] < 2.1)):
                return trajectory
    raise AssertionError(f"rates of the Taylor remainder: {rates}")


def events(simulation: Simulation, trajectory: Trajectory) -> Counter[str]:
    """Count changes of chart and, over all deciding terms, what their decisions say and how they change.

    Of contacts, ``impacts`` are pairs that begin to touch, ``partings`` such as end, ``switches`` such as go from stick
    to slip or back while they touch (linear and hybrid law). Of others (cables, stops), the class' name counts changes.
    """
    seen: Counter[str] = Counter()
    before: list[np.ndarray] = []
    for record in trajectory.records:
        seen["charts"] += record.charts.size
        decisions = [np.asarray(decision) for decision in record.decisions]
        for term, decision in zip(simulation.system.deciding, decisions, strict=True):
            seen.update(term.describe(decision))
        for term, old, new in zip(simulation.system.deciding, before, decisions, strict=False):
            if not isinstance(term, BodyContact):
                seen[type(term).__name__] += term.changes(old, new)
                continue
            was, touching = (dict(rows[rows[:, BITS] & ACTIVE != 0][:, [PAIR, BITS]].tolist()) for rows in (old, new))
            seen["impacts"] += len(touching.keys() - was.keys())
            seen["partings"] += len(was.keys() - touching.keys())
            both = was.keys() & touching.keys()
            seen["switches"] += sum((was[pair] ^ touching[pair]) & (SLIP | STICKS) != 0 for pair in both)
        before = decisions
    return seen
