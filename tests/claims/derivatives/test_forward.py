"""Forward tangents along many directions at once: against single ones, against the adjoint, and only where they act."""

import numpy as np
import pytest
import scipy.sparse as sp
from support.small_models import RoughObjective, hanging_block, two_bodies

from add.adjoint import evaluate, pushforward, value_and_gradient
from add.contact import FrictionLaw
from add.equations.kinematics import Directions, StateTangents, ThetaMap, push
from add.geometry import HEX8, TET4
from add.scene import scene_from_dict

CASES = {
    "bodies": lambda: two_bodies(TET4, n_steps=10),
    "bodies-tanh": lambda: two_bodies(HEX8, law=FrictionLaw.TANH, order=1, n_steps=8),
    "equilibrium": lambda: hanging_block(HEX8, mean_dilatation=False),
}


@pytest.mark.parametrize("case", CASES)
def test_every_entry_of_theta_at_once(case, rng):
    """The identity as a sparse matrix, as a dense one and a few dense directions: all are the adjoint's gradient."""
    model, simulation = CASES[case]()
    theta = simulation.theta
    objective = RoughObjective(np.random.default_rng(0).normal(size=model.system.n))
    _, run = evaluate(simulation, objective)
    gradient = value_and_gradient(simulation, objective).gradient
    scale = np.where(theta != 0.0, np.abs(theta), 0.1)
    norm = np.linalg.norm(gradient * scale)
    sparse = pushforward(simulation, run, theta, sp.diags_array(scale, format="csc"))
    assert np.abs(sparse.derivative(objective, run, theta) - gradient * scale).max() < 1e-10 * norm
    dense = pushforward(simulation, run, theta, np.diag(scale))
    assert np.array_equal(dense.q, sparse.q) and np.array_equal(dense.v, sparse.v)
    mix = rng.normal(size=(theta.size, 3)) * scale[:, None]
    few = pushforward(simulation, run, theta, list(mix.T))
    together = np.einsum("kj,ksn->jsn", mix / scale[:, None], sparse.q)
    assert few.q == pytest.approx(together, rel=1e-9, abs=1e-11 * np.abs(together).max())


def scene(basis, rows=12):
    values = (0.01 * np.random.default_rng(5).normal(size=(rows, 3))).tolist()
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.005, "steps": 24, "newton": {"atol": 1e-13, "rtol": 0}},
            "bodies": {
                "box": {
                    "type": "soft",
                    "mesh": {"shape": "box", "size": [0.1, 0.05, 0.05], "divisions": [2, 1, 1]},
                    "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 200, "viscosity": 2},
                    "pins": [{"where": {"box": {"max": [-0.04, None, None]}}, "motion": {"signal": "hand"}}],
                    "loads": [{"where": {"box": {"min": [0.04, None, None]}}, "force": {"signal": "push"}}],
                }
            },
            "signals": {
                "hand": {"type": "control", "basis": basis, "rows": rows, "values": values},
                "push": {"type": "control", "basis": basis, "rows": rows, "start": 0.02, "end": 0.1, "values": values},
            },
            "markers": {"tip": {"body": "box", "point": [0.05, 0, 0]}},
            "objective": [
                {"type": "point", "marker": "tip", "target": [0.1, 0.02, 0.01], "time": "end"},
                {"type": "smoothness", "signal": "push", "weight": 0.3},
                {"type": "smoothness", "signal": "hand", "weight": 0.1},
            ],
            "parameters": [{"path": "signals.hand.values"}, {"path": "signals.push.values"}],
        }
    )


@pytest.mark.parametrize("basis", ["constant", "linear", "cubic"])
def test_controls_set_in_when_they_act(basis):
    problem = scene(basis).inverse_problem()
    (experiment,) = problem.experiments
    mapping = problem.map_of(experiment)
    theta = mapping.forward(problem.x0)
    run = experiment.simulation.run(theta)
    found = pushforward(experiment.simulation, run, theta, mapping.jacobian(problem.x0))
    slopes = found.derivative(experiment.objective, run, theta)
    _, gradient = problem.value_and_grad(problem.x0)
    assert slopes == pytest.approx(gradient, rel=1e-10, abs=1e-10 * np.abs(gradient).max())
    counts = [state.index.size for state in found.states]
    assert counts == sorted(counts) and counts[0] < counts[5] < counts[-1] == problem.n
    assert np.unique(found.states[-1].index).size == problem.n
    # What has not set in has no tangent, what has set in moves something in the end.
    for k, state in enumerate(found.states):
        late = np.setdiff1d(np.arange(problem.n), state.index)
        assert not found.q[late, k].any() and not found.v[late, k].any()
    assert (np.abs(found.v).max(axis=(1, 2)) > 0.0).all()


def test_push_counts_what_it_reads(rng):
    """One call an entry that is read and moved, or one a direction, whichever is fewer; parts add."""
    a, b = rng.normal(size=(4, 50)), rng.normal(size=(4, 50))
    a[:, 3:] = 0.0
    calls = []

    def part(matrix):
        def jvp(dot, out):
            calls.append(dot)
            out += matrix @ dot

        def vjp(bar, out):
            out += matrix.T @ bar

        return ThetaMap(jvp, vjp)

    wide = sp.random_array((50, 200), density=0.3, format="csr", rng=rng)
    found = push([part(a)], 4, Directions.of(wide))
    assert len(calls) == 3
    whole = np.zeros((4, 200))
    whole[:, found.index] = found.values
    assert whole == pytest.approx(a @ wide.toarray(), abs=1e-13)
    calls.clear()
    few = rng.normal(size=(50, 2))
    assert push([part(a), part(b)], 4, Directions.of(few)).values == pytest.approx((a + b) @ few, abs=1e-12)
    assert len(calls) == 4
    nothing = push([part(a)], 4, Directions.of(sp.csr_array((50, 7))))
    assert nothing.index.size == 0 and nothing.values.shape == (4, 0)


def test_state_tangents_grow():
    from add.equations.kinematics import StateTangent

    dot = StateTangent(np.ones((2, 3, 2)), np.ones((2, 3, 2)))
    grown = StateTangents(np.array([5, 1]), dot).including(np.array([1, 7]), np.array([0]))
    assert grown.index.tolist() == [5, 1, 0, 7]
    assert grown.places(np.array([0, 1, 5, 7])).tolist() == [2, 1, 0, 3]
    assert grown.dot.q.shape == (2, 3, 4) and not grown.dot.q[:, :, 2:].any() and grown.dot.v[:, :, :2].all()
