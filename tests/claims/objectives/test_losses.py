"""Robust losses: values, slopes, derivatives of the residuals, and a fit that swapped markers do not spoil."""

from dataclasses import replace

import numpy as np
import pytest

from add.adjoint import value_and_gradient
from add.equations.kinematics import Directions, State, StateTangent, StateTangents
from add.equations.points import WeightedPoints
from add.errors import InputError
from add.mocap import Recording, write_csv
from add.objectives import Cauchy, Huber, SoftL1, Tracking
from add.objectives.regularisers import bend, bending
from add.scene import scene_from_dict

LOSSES = [Huber(0.5), SoftL1(0.5), Cauchy(0.5)]
POINTS = WeightedPoints(np.array([[0, 0], [1, 2]]), np.array([[1.0, 0.0], [0.25, 0.75]]))


@pytest.mark.parametrize("loss", LOSSES)
def test_value_and_slope(loss):
    s = np.array([1e-6, 0.1, 0.49, 0.51, 1.0, 30.0])
    h = 1e-6 * s**2
    np.testing.assert_allclose((loss.value(s**2 + h) - loss.value(s**2 - h)) / (2 * h), loss.slope(s**2), rtol=1e-6)
    assert loss.value(np.array([1e-12]))[0] == pytest.approx(1e-12, rel=1e-9)  # a square near zero
    assert (np.diff(loss.slope(s**2)) <= 0.0).all() and loss.slope(s[-1:] ** 2)[0] < 0.02


def test_known_values():
    far = np.array([4.0])  # s = 2, k = 0.5
    assert Huber(0.5).value(far)[0] == pytest.approx(2 * 0.5 * 2 - 0.25)
    assert SoftL1(0.5).value(far)[0] == pytest.approx(0.5 * (np.sqrt(17) - 1))
    assert Cauchy(0.5).value(far)[0] == pytest.approx(0.25 * np.log(17))


@pytest.mark.parametrize("loss", LOSSES)
def test_residuals_and_their_derivative(loss):
    rng = np.random.default_rng(2)
    d = rng.normal(size=(8, 3)) * np.array([0.0, 1e-9, 0.01, 0.1, 0.3, 1.0, 3.0, 30.0])[:, None]
    r = bend(loss, d)
    np.testing.assert_allclose((r * r).sum(axis=1), loss.value((d * d).sum(axis=1)), rtol=1e-12, atol=1e-30)
    dot = rng.normal(size=(8, 3))
    h = 1e-6
    scores = replace(loss, scores=True)
    np.testing.assert_allclose(bend(scores, d), loss.slope((d * d).sum(axis=1))[:, None] * d, rtol=1e-12)
    for bent in (loss, scores):
        found = (bend(bent, d + h * dot) - bend(bent, d - h * dot)) / (2 * h)
        np.testing.assert_allclose(np.einsum("pij,pj->pi", bending(bent, d), dot), found, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reference", [None, 0.0])
def test_derivatives_of_the_tracking(loss, reference):
    """Pull-back and tangents against differences, with samples on both sides of the scale."""
    rng = np.random.default_rng(5)
    times = np.array([0.013, 0.05, 0.0999])
    targets = rng.normal(size=(3, 2, 3)) * np.array([0.1, 0.1, 3.0])[:, None, None]
    tracking = Tracking(
        POINTS, 0.1, times, targets, rng.uniform(0.5, 2.0, (3, 2)), np.diag([1.0, 1.0, 0.0]), reference, loss=loss
    )
    theta = np.zeros(1)
    q = rng.normal(size=(2, 9)) * 0.3
    first = State(0.0, 0, np.stack([q[1], q[1]]), np.zeros((2, 9)))
    state = State(0.1, 1, q, rng.normal(size=(2, 9)) * 0.1)

    def value(at: State) -> float:
        walked = tracking.for_run()
        walked.step_residuals(first, theta)
        return walked.step_value(at, theta)

    walked = tracking.for_run()
    walked.step_residuals(first, theta)
    sizes = np.linalg.norm(np.concatenate([d for _, d in walked.differences(state, theta)]), axis=1)
    assert sizes.min() < loss.scale < sizes.max()
    bar = StateTangent.zeros_like(state)
    walked.step_pullback(state, theta, bar, np.zeros(1))
    tangent = StateTangent(rng.normal(size=(2, 9)), rng.normal(size=(2, 9)))
    h = 1e-6
    ends = [replace(state, q=state.q + s * h * tangent.q, v=state.v + s * h * tangent.v) for s in (1, -1)]
    slope = (value(ends[0]) - value(ends[1])) / (2 * h)
    assert np.vdot(bar.q, tangent.q) + np.vdot(bar.v, tangent.v) == pytest.approx(slope, rel=1e-6)
    moved = StateTangents(np.arange(1), StateTangent(tangent.q[:, :, None], tangent.v[:, :, None]))
    still = StateTangents(
        np.arange(1), StateTangent.zeros_like(replace(first, q=first.q[:, :, None], v=first.v[:, :, None]))
    )
    walked.step_residual_tangents(first, theta, still, Directions.of(np.zeros((1, 1))))
    found = walked.step_residual_tangents(state, theta, moved, Directions.of(np.zeros((1, 1))))
    along = 2.0 * walked.step_residuals(state, theta) @ found.values[:, 0]
    assert along == pytest.approx(slope, rel=1e-6)


def scene(folder, **loss):
    """A particle with a constant velocity of 1 m/s, whose marker was another for a tenth of the frames."""
    times = np.arange(0.0, 0.5001, 0.01)
    places = np.zeros((times.size, 1, 3))
    places[:, 0, 0] = times + 1e-3 * np.random.default_rng(0).normal(size=times.size)
    places[30:35, 0, 0] += 0.7
    write_csv(folder / "r.csv", Recording(("m",), times, places, np.ones((times.size, 1), dtype=bool), ""))
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.01, "duration": 0.5},
            "gravity": [0, 0, 0],
            "bodies": {
                "p": {"type": "mass-spring", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0, "velocity": [0.5, 0, 0]}
            },
            "markers": {"m": {"body": "p", "nodes": [0]}},
            "recording": {"file": str(folder / "r.csv"), "markers": {"m": "m"}},
            "objective": [{"type": "markers", **loss}],
            "parameters": [{"path": "bodies.p.velocity", "components": [0]}],
        }
    )


@pytest.mark.parametrize("method", ["l-bfgs-b", "gauss-newton"])
@pytest.mark.parametrize(("loss", "error"), [("huber", 3e-3), ("soft-l1", 3e-3), ("cauchy", 2e-4)])
def test_swapped_markers_do_not_spoil_a_fit(loss, error, method, tmp_path):
    from add.scene import apply_overrides

    def found(**section) -> float:
        asked = apply_overrides(scene(tmp_path, **section), {"optimizer": {"method": method}})
        problem = asked.inverse_problem()
        return float(problem.values(problem.optimize().x)[0])

    asked = scene(tmp_path).inverse_problem().experiments[0].recording
    times, places = asked.times, asked.positions[:, 0, 0]
    good = np.abs(places - times) < 0.1
    clean = (times[good] @ places[good]) / (times[good] @ times[good])  # without the frames that are another's
    assert abs(clean - 1.0) < 2e-3
    assert abs(found() - clean) > 0.1
    assert abs(found(loss=loss, loss_scale=0.003) - clean) < error


@pytest.mark.parametrize("displacement", [False, True])
@pytest.mark.parametrize("loss", ["huber", "soft-l1", "cauchy"])
def test_gradients_of_runs(loss, displacement, tmp_path):
    """Reverse sweep, forward residuals and differences of the whole run agree."""
    from add.scene import apply_overrides

    asked = scene(tmp_path, loss=loss, loss_scale=0.01)
    problem = apply_overrides(asked, {"recording.displacement": displacement}).inverse_problem()
    x = problem.x0
    value, gradient = problem.value_and_grad(x)
    h = 1e-6
    difference = (problem.value(x + h)[0] - problem.value(x - h)[0]) / (2 * h)
    assert gradient[0] == pytest.approx(difference, rel=1e-6)
    rho, jacobian = problem.residuals_and_jacobian(x)
    assert rho @ rho == pytest.approx(value, rel=1e-12)
    assert 2 * (jacobian.array().T @ rho)[0] == pytest.approx(gradient[0], rel=1e-9)
    experiment = problem.experiments[0]
    again = value_and_gradient(experiment.simulation, experiment.objective, problem.theta(x, experiment))
    assert again.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("section", [{"loss": "huber"}, {"loss_scale": 0.01}, {"loss": "tukey", "loss_scale": 0.01}])
def test_bad_losses(section, tmp_path):
    with pytest.raises(InputError, match=r"objective\.0\.loss"):
        scene(tmp_path, **section)
