"""Once the branch is settled, Newton converges quadratically in all friction laws, down to round-off."""

from itertools import pairwise

import numpy as np
import pytest
from support.rigid_models import PAIRS
from support.small_models import two_bodies

from add.contact import FrictionLaw
from add.geometry import TET10
from add.scene import scene_from_dict
from add.simulation import BDF
from add.simulation.run import Simulation
from add.solve.newton import Solve
from add.solve.step_equations import NewtonOptions, Status, StepEquations

LAWS = (FrictionLaw.LINEAR, FrictionLaw.TANH, FrictionLaw.HYBRID)
C = 20.0  # 1/N
EXACT = NewtonOptions(atol=0.0, rtol=0.0, max_iterations=40)
MODELS = {
    "soft": lambda law: two_bodies(TET10, law=law, mu_slide=1.0)[1],
    "rigid": lambda law: PAIRS["rigid-on-world"](law, BDF(0.002, 2, newton=NewtonOptions(1e-12, 0.0)))[1],
    "soft-on-rigid": lambda law: PAIRS["soft-on-rigid"](law, BDF(0.002, 1, newton=NewtonOptions(1e-12, 0.0)))[1],
}


def tail(simulation: Simulation, k: int, size: float) -> list[float]:
    """Return the residuals of step ``k`` of a run from a guess beside its solution, on the recorded branch."""
    run = simulation.run(n_steps=k + 1)
    state, record = run.state(k), run.records[k]
    q_star = sum(a * q for a, q in zip(record.alpha, state.q, strict=False))
    v_star = sum(a * v for a, v in zip(record.alpha, state.v, strict=False))
    u = record.kin.q - q_star
    equations = StepEquations(
        q_star, v_star, record.c, record.kin.t, record.kin.step, u[simulation.system.partition.prescribed]
    )
    work = Solve(
        simulation.assembler(), equations, simulation.theta, EXACT, simulation.system.on_branch(record.decisions)
    )
    rng = np.random.default_rng(k)
    result = work.iterate(work.guess(u + size * rng.normal(size=u.size)), 0.0, 0)
    assert result.report.status is Status.ROUND_OFF
    assert np.abs(result.kin.q - record.kin.q).max() < 1e-9
    return list(result.report.history)


@pytest.mark.parametrize("law", LAWS, ids=[law.name.lower() for law in LAWS])
@pytest.mark.parametrize("model", MODELS)
def test_quadratic_tail(model: str, law: FrictionLaw) -> None:
    """Below 0.01 N the residual r is followed by at most C r^2, or by round-off."""
    simulation = MODELS[model](law)
    run, deciding = simulation.run(), simulation.system.deciding
    touching = [
        k
        for k, record in enumerate(run.records)
        if any(d.describe(x).get("touching") for d, x in zip(deciding, record.decisions, strict=True))
    ]
    seen = 0
    for k in touching[:: max(1, len(touching) // 4)]:
        history = tail(simulation, k, 1e-5)
        print([f"{r:.0e}" for r in history])
        floor = 100.0 * min(history)
        for r, following in pairwise(history):
            if floor < r < 1e-2:
                assert following <= max(C * r**2, floor)
                seen += following > floor
    assert seen > 0


def test_small_tissue_moves() -> None:
    """A cube of 0.5 mm that sags: 1e-9 N would be a thousandth of its weight, and first guesses solutions."""
    size = 5e-4
    tissue = {
        "type": "soft", "mesh": {"shape": "box", "size": [size] * 3, "divisions": [2, 2, 2]},
        "material": {"model": "neo-hookean", "young": 1000, "poisson": 0.3, "density": 1000, "viscosity": 1.0},
        "pins": [{"where": {"box": {"max": [None, None, -0.49 * size]}}}],
    }  # fmt: skip
    raw = {"schema": "add-scene/1", "gravity": [3, 0, -9.81], "bodies": {"tissue": tissue}}
    ways = []
    for newton in ({}, {"atol": 0, "rtol": 1e-12}):
        run = scene_from_dict(raw | {"time": {"dt": 0.001, "steps": 30, "newton": newton}}).build().run()
        ways.append(run.q - run.q[0])
    assert np.abs(ways[0] - ways[1]).max() < 1e-4 * np.abs(ways[1]).max()  # 0.01 with 1e-9 N
