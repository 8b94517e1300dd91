"""Single steps from stored states, by the fast back end and by SuperLU at its defaults: they have to be the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from add.equations.kinematics import StateTangent
from add.linalg import factorization_for
from add.scene import apply_overrides, load_scene
from add.simulation import BDF, Record
from add.simulation.run import Simulation
from add.simulation.stepper import TakenStep
from add.simulation.substeps import whole_steps
from add.solve.step_equations import NewtonOptions
from add.typing import FloatArray
from benchmarks.backends import DefaultLU

SCENES = Path(__file__).parents[1] / "scenes"

#: Wanted of all relative differences.
TOLERANCE = 1e-10

#: Name, file, law or None, states from which a step is taken.
CASES = (
    ("cylinder, linear", "fig2_cylinder_linear", "linear", (25, 35, 60)),
    ("cylinder, tanh", "fig2_cylinder_linear", "tanh", (25, 35, 60)),
    ("cylinder, hybrid", "fig2_cylinder_linear", "hybrid", (25, 35, 60)),
    ("robot", "robot_rigid", None, (5, 20, 40)),
)

#: Both are solved as far as round-off lets them.
TIGHT = NewtonOptions(atol=0.0, rtol=1e-15)


def difference(simulation: Simulation, steps: tuple[int, ...]) -> dict[str, float]:
    """Return the largest differences over the steps that follow these states.

    Of the velocities, relative to the largest; of the reactions of what is held, likewise; of the cotangents of the
    state before and of theta, pulled back through the same record. Also whether all decisions were the same.
    """
    stepper = whole_steps(simulation.stepper)
    assert isinstance(stepper, BDF)
    tight = replace(stepper, newton=TIGHT)
    trajectory = simulation.run(n_steps=max(steps))
    fast, slow = (replace(simulation, stepper=tight, solver=s) for s in (factorization_for, lambda n: DefaultLU()))
    step = reaction = cotangent = 0.0
    rows, same = 0, True
    for k in steps:
        state = trajectory.state(k)
        a, b = (s.stepper.step(s.assembler(), state, s.theta)[1] for s in (fast, slow))
        same = same and a.mu.size == b.mu.size and _equal(a.decisions, b.decisions)
        step = max(step, _relative(a.kin.v, b.kin.v))
        if same and b.mu.size:
            reaction, rows = max(reaction, _relative(a.mu, b.mu)), max(rows, b.mu.size)
        bars = zip(_pulled_back(fast, b), _pulled_back(slow, b), strict=True)
        cotangent = max(cotangent, *(_relative(x, y) for x, y in bars))
    return {
        "step": step,
        "reactions": reaction,
        "cotangents": cotangent,
        "multipliers": rows,
        "same_decisions": float(same),
    }


def _relative(a: FloatArray, b: FloatArray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def _pulled_back(simulation: Simulation, record: Record) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the cotangents of the state before a step and of theta, for a fixed one behind it."""
    rng = np.random.default_rng(0)
    n, theta_bar = simulation.system.n, np.zeros(simulation.theta.size)
    behind = StateTangent(rng.normal(size=(2, n)), rng.normal(size=(2, n)))
    bar = simulation.stepper.pullback(TakenStep(simulation.assembler(), record, simulation.theta), behind, theta_bar)
    return bar.q, bar.v, theta_bar


def _equal(a: object, b: object) -> bool:
    """Whether two decisions are the same, whatever they are made of."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        # Decisions are whole numbers; what floats a term keeps beside them follows from the coordinates.
        return a.dtype.kind == "f" or np.array_equal(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(_equal(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__)
    return isinstance(a, float) or a == b


def case(name: str) -> dict[str, float]:
    """Return the differences of one case."""
    file, law, steps = next(c[1:] for c in CASES if c[0] == name)
    scene = load_scene(SCENES / f"{file}.json")
    if law:
        scene = apply_overrides(scene, {"contact.friction_law": law})
    return difference(scene.build().simulation, steps)


def exactness(small: bool) -> list[dict[str, object]]:
    """Compare all cases; they are quick enough for both versions."""
    rows: list[dict[str, object]] = []
    for name, _, _, steps in CASES:
        row = case(name)
        rows.append({"scene": name, "steps": list(steps), **row})
        print(
            f"{name:20} step {row['step']:.1e}, reactions {row['reactions']:.1e} ({row['multipliers']:.0f}), "
            f"cotangents {row['cotangents']:.1e}",
            flush=True,
        )
    return rows
