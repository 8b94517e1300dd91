"""Many runs at once."""

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.places import SCENES
from support.processes import FORKS

from add.adjoint import Cotangents, pullback, rollout_batch
from add.errors import InputError
from add.scene import load_scene
from add.simulation.run import Simulation


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return load_scene(SCENES / "bands_cubes.json").build().simulation


@pytest.fixture
def thetas(simulation: Simulation, rng: np.random.Generator) -> np.ndarray:
    return simulation.theta * (1.0 + 1e-3 * rng.normal(size=(5, simulation.theta.size)))


def test_members_are_single_runs_to_the_bit(simulation: Simulation, thetas: np.ndarray) -> None:
    expected = [simulation.run(theta, n_steps=30) for theta in thetas]
    rng = np.random.default_rng(0)
    bars = rng.normal(size=(2, 5, 31, simulation.system.n))
    pairs = enumerate(zip(expected, thetas, strict=True))
    gradients = [pullback(simulation, run, theta, Cotangents(*bars[:, k])) for k, (run, theta) in pairs]
    for workers in (1, 2, 3):
        batch = rollout_batch(simulation, thetas, n_steps=30, workers=workers)
        assert not batch.failures
        assert np.array_equal(batch.q, [run.q for run in expected])
        assert np.array_equal(batch.v, [run.v for run in expected])
        found = batch.pullback(*bars)
        assert np.array_equal(found.theta, gradients)
        assert not found.q.any()


def test_processes_give_the_same(simulation: Simulation, thetas: np.ndarray) -> None:
    expected = rollout_batch(simulation, thetas, n_steps=12, workers=1)
    bars = np.random.default_rng(0).normal(size=(2, *expected.q.shape))
    # JAX, which other tests of this process may have started, has threads: no forks of this one then.
    with ProcessPoolExecutor(2, mp_context=FORKS) as pool:
        batch = rollout_batch(simulation, thetas, n_steps=12, executor=pool)
        assert np.array_equal(batch.q, expected.q)
        assert np.array_equal(batch.pullback(*bars).theta, expected.pullback(*bars).theta)


def test_gradients_by_given_states(simulation: Simulation) -> None:
    rng = np.random.default_rng(1)
    theta = simulation.theta
    first = simulation.run(n_steps=1).state(0)
    free = simulation.system.partition.free
    q, v = first.q[0], first.v[0]
    bars = rng.normal(size=(2, 1, 11, simulation.system.n))

    def run(q, v):
        return rollout_batch(simulation, theta[None], [simulation.state(q, v)], n_steps=10, workers=1)

    def value(q, v):
        batch = run(q, v)
        return float((bars[0] * batch.q).sum() + (bars[1] * batch.v).sum())

    found = run(q, v).pullback(*bars)
    for name in ("q", "v"):
        step = np.zeros(simulation.system.n)
        step[free] = rng.normal(size=free.size)
        h = 1e-6
        moved = [(q + s * h * step, v) if name == "q" else (q, v + s * h * step) for s in (1, -1)]
        difference = (value(*moved[0]) - value(*moved[1])) / (2 * h)
        slope = float(getattr(found, name)[0, 0] @ step)
        assert slope == pytest.approx(difference, rel=1e-5)
        assert abs(slope) > 1e-3


def test_a_failure_names_its_member_and_keeps_the_others(simulation: Simulation) -> None:
    """Forces that overflow have no finite residual."""
    thetas = np.repeat(simulation.theta[None], 3, axis=0)
    for entry in simulation.system.parameters.entries:
        if entry.name.endswith("band.stiffness"):
            thetas[1, entry.slice] = 1e307
    with np.errstate(all="ignore"):  # of this thread: one worker
        batch = rollout_batch(simulation, thetas, n_steps=20, workers=1)
    assert list(batch.failures) == [1]
    assert "member 1: step 1" in str(batch.failures[1])
    good = simulation.run(n_steps=20)
    for k in (0, 2):
        assert np.array_equal(batch.q[k], good.q)
    assert np.isnan(batch.q[1, -1]).all()
    found = batch.pullback(np.ones_like(batch.q), np.ones_like(batch.q))
    assert np.isnan(found.theta[1]).all()
    assert np.isfinite(found.theta[[0, 2]]).all()


def test_the_terms_run_in_batches_too(simulation: Simulation, thetas: np.ndarray) -> None:
    batch = rollout_batch(by_terms(simulation), thetas[:2], n_steps=8, workers=2)
    compiled = rollout_batch(simulation, thetas[:2], n_steps=8, workers=2)
    assert np.allclose(batch.q, compiled.q, atol=1e-12)


def test_bad_input(simulation: Simulation) -> None:
    theta = simulation.theta
    with pytest.raises(InputError, match="row of parameters"):
        rollout_batch(simulation, theta)
    with pytest.raises(InputError, match="row of parameters"):
        rollout_batch(simulation, np.zeros((2, theta.size + 1)))
    wrong = np.repeat(theta[None], 4, axis=0)
    wrong[2, 5] = np.nan
    with pytest.raises(InputError, match="member 2"):
        rollout_batch(simulation, wrong)
    state = simulation.run(n_steps=1).state(0)
    with pytest.raises(InputError, match="one state a member"):
        rollout_batch(simulation, theta[None], [state, state])
    batch = rollout_batch(simulation, theta[None], n_steps=3)
    with pytest.raises(InputError, match="one cotangent"):
        batch.pullback(np.zeros((1, 3, simulation.system.n)), np.zeros((1, 3, simulation.system.n)))


def test_numbers_of_a_scene_by_their_paths() -> None:
    built = load_scene(SCENES / "bands_cubes.json").build()
    masses = np.array([0.9, 1.1]) * built.numbers.values[built.numbers.resolve("bodies.lower.mass")[0]]
    places = np.array([[0.0, 0.0, 0.0], [0.001, 0.0, 0.002]])
    start = built.numbers.values[built.numbers.resolve("bodies.lower.position")[0]]
    inputs = {"bodies.lower.mass": masses, "bodies.lower.position": start + places}
    runs = built.rollouts(inputs, n_steps=20, workers=1)
    assert not np.array_equal(runs.batch.q[0], runs.batch.q[1])
    bars = np.random.default_rng(2).normal(size=(2, *runs.batch.q.shape))
    found = runs.pullback(*bars)
    assert found["bodies.lower.position"].shape == (2, 3)

    def value(change: float) -> float:
        batch = built.rollouts(
            inputs | {"bodies.lower.mass": masses * [1.0, 1.0 + change]}, n_steps=20, workers=1
        ).batch
        return float((bars[0, 1] * batch.q[1]).sum() + (bars[1, 1] * batch.v[1]).sum())

    difference = (value(1e-6) - value(-1e-6)) / 2e-6
    assert found["bodies.lower.mass"][1] * masses[1] == pytest.approx(difference, rel=1e-4)
    with pytest.raises(InputError, match="do not fit"):
        built.rollouts({"bodies.lower.mass": np.zeros((2, 3))})
    with pytest.raises(InputError, match="row a member"):
        built.rollouts({"bodies.lower.mass": masses, "bodies.lower.position": start})
    with pytest.raises(InputError, match="cannot be a parameter"):
        built.rollouts({"time.dt": masses})
