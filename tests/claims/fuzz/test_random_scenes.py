"""Random scenes: forward = reverse = differences, and every number means the same as a parameter and in the file."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from fuzz.random_scenes import JOINTS, KINDS, random_scene

from add.errors import SolverError
from add.scene.build.write_back import with_values
from add.simulation.substeps import whole_steps
from add.solve.step_equations import NewtonOptions

QUICK, LONG = 26, 1000
TOLERANCE = 2e-6


def tight(problem):
    """Return the problem with steps solved to round-off."""
    options = NewtonOptions(atol=1e-13, rtol=1e-13, max_iterations=80)
    experiments = []
    for item in problem.experiments:
        stepper = replace(whole_steps(item.simulation.stepper), newton=options)
        experiments.append(replace(item, simulation=replace(item.simulation, stepper=stepper)))
    return replace(problem, experiments=tuple(experiments))


def check(seed, folder):
    """Return what was seen in the scene of one seed; None where its run has no solution."""
    scene = random_scene(seed, folder)
    problem = tight(scene.inverse_problem())
    rng = np.random.default_rng(seed)
    # Off the file's own numbers, where a default that is frozen would show.
    lower, upper = problem.bounds
    x = np.clip(problem.x0 + 0.02 * np.abs(rng.normal(size=problem.n)), lower, upper)
    try:
        value, gradient = problem.value_and_grad(x)
        _, runs = problem.value(x)
    except SolverError:
        return None
    replay = {name: run.replay for name, run in runs.items()}
    where = f"seed {seed}: {[p['path'] for p in scene.raw['parameters']]}"

    rho, jacobian = problem.residuals_and_jacobian(x)
    norm = max(float(np.linalg.norm(gradient)), 1e-9)
    assert rho @ rho == pytest.approx(value, rel=1e-10), where
    assert 2.0 * jacobian.transposed(rho) == pytest.approx(gradient, abs=1e-7 * norm), where

    direction = rng.normal(size=problem.n)
    slope = float(gradient @ direction)
    errors = []
    for h in (1e-5, 1e-4, 1e-6):
        try:
            ends = [problem.value(x + sign * h * direction, replay=replay)[0] for sign in (1.0, -1.0)]
        except SolverError:
            continue
        errors.append(abs((ends[0] - ends[1]) / (2.0 * h) - slope) / (norm * np.linalg.norm(direction)))
        if errors[-1] < TOLERANCE:
            break
    assert errors and min(errors) < TOLERANCE, f"{where}: {errors}"

    again = with_values(scene, problem, x)
    rebuilt = tight(again.inverse_problem())
    for old, new in zip(problem.experiments, rebuilt.experiments, strict=True):
        theta, anew = problem.theta(x, old), rebuilt.theta(rebuilt.x0, new)
        assert anew == pytest.approx(theta, rel=1e-10, abs=1e-12), where
    # A step that takes fallbacks may have more than one solution, and rounding chooses among them.
    records = [part for run in runs.values() for record in run.records for part in (record, *record.inner)]
    if not any(record.report.attempt for record in records):
        assert rebuilt.value(rebuilt.x0)[0] == pytest.approx(value, rel=1e-7, abs=1e-12), where
    touched = any(
        term.describe(decision).get("touching", 0)
        for name, run in runs.items()
        for record in run.records
        for term, decision in zip(
            next(e for e in problem.experiments if e.name == name).simulation.system.deciding,
            record.decisions,
            strict=True,
        )
    )
    seen = [body["type"] for body in scene.raw["bodies"].values()]
    seen += [item["type"] for item in scene.raw["couplings"].values()]
    seen += [scene.raw["contact"]["friction_law"], scene.raw["time"]["integrator"]]
    seen += [key for key in ("experiments", "recording") if key in scene.raw] + ["touches"] * touched
    seen += ["direction"] * any(p["path"].endswith((".axis", ".direction")) for p in scene.raw["parameters"])
    return seen


def run(seeds, folder):
    seen, failed = Counter(), 0
    for seed in seeds:
        found = check(seed, folder)
        if found is None:
            failed += 1
        else:
            seen.update(set(found))
    return seen, failed


def test_forward_reverse_differences_and_the_rebuilt_scene_agree(tmp_path):
    seen, failed = run(range(QUICK), tmp_path)
    assert failed <= 0.1 * QUICK
    bodies = {"soft", "particles", "rigid", "kinematic"}
    laws = {"linear", "tanh", "hybrid", "none", "bdf1", "bdf2"}
    assert bodies | laws | set(JOINTS) | {"experiments", "recording", "direction"} <= set(seen), seen
    assert seen["touches"] > QUICK // 3, seen
    assert len(KINDS) == 8


@pytest.mark.slow
def test_many_random_scenes(tmp_path):
    _, failed = run(range(QUICK, QUICK + LONG), tmp_path)
    assert failed <= 0.1 * LONG
