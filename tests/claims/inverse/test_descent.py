"""Descent with momentum, Adam, and several starts."""

import numpy as np
import pytest

from add.inverse import Adam, GradientDescent, LoggedEvaluation, MemoryLog, Phase, RateSchedule, Starts
from add.scene import scene_from_dict

FLIGHT = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 20, "integrator": "bdf1"},
    "bodies": {
        "ball": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1, "velocity": [1, 0, 2]}
    },
    "markers": {"centre": {"body": "ball", "center_of_mass": True}},
    "objective": [{"type": "point", "marker": "centre", "target": [0.4, 0.1, 0], "time": "end"}],
    "parameters": [{"path": "bodies.ball.velocity", "scale": 1.0}],
}


def problem(optimizer: dict, **changes):
    return scene_from_dict(FLIGHT | changes | {"optimizer": optimizer}).inverse_problem()


def reference(
    kind: str, gradient, x: np.ndarray, steps: int, rate: float, decay: float, every: int
) -> list[np.ndarray]:
    """The textbook's recursions, written out."""
    out, m, s = [x], np.zeros_like(x), np.zeros_like(x)
    for k in range(steps):
        g = gradient(x)
        eta = rate * decay ** (k // every)
        if kind == "sgd":
            m = 0.8 * m + g
            x = x - eta * m
        else:
            m, s = 0.7 * m + 0.3 * g, 0.9 * s + 0.1 * g**2
            x = x - eta * (m / (1 - 0.7 ** (k + 1))) / (np.sqrt(s / (1 - 0.9 ** (k + 1))) + 1e-8)
        out.append(x)
    return out


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_iterates_are_those_of_the_textbook(kind):
    """Of an objective whose gradient is linear: a ball in flight, t = 0.2 s."""
    settings = {"method": kind, "rate": 0.3, "decay": 0.5, "decay_every": 4, "max_evaluations": 12}
    settings |= {"momentum": 0.8} if kind == "sgd" else {"beta1": 0.7, "beta2": 0.9}
    made = problem(settings)
    first, _ = made.value_and_grad(made.x0)
    log = MemoryLog()
    found = made.optimizer.run(made, log=log)
    expected = reference(kind, lambda x: made.value_and_grad(x)[1] / first, made.x0, 11, 0.3, 0.5, 4)
    assert np.allclose([one.x for one in log.evaluations], expected, rtol=1e-12)
    assert found.value == min(one.value for one in log.evaluations) < first
    assert found.phases[0].evaluations == 12


def test_it_ends_where_the_gradient_does():
    made = problem({"method": "sgd", "rate": 3.0, "momentum": 0.5, "gradient_tolerance": 1e-9, "max_evaluations": 500})
    found = made.optimizer.run(made)
    # Closed form of 20 steps of BDF1: z = v t - g t (t + dt) / 2.
    assert found.x == pytest.approx([2.0, 0.5, 9.81 * 0.21 / 2], rel=1e-6)
    assert found.phases[0].status == "the projected gradient is small" and found.evaluations < 500


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_bounds_hold(kind):
    made = problem(
        {"method": kind, "rate": 2.0, "max_evaluations": 60},
        parameters=[{"path": "bodies.ball.velocity", "bounds": [-0.2, 1.5], "scale": 1.0, "start": [1, 0, 1]}],
    )
    log = MemoryLog()
    found = made.optimizer.run(made, log=log)
    assert all((one.x >= -0.2).all() and (one.x <= 1.5).all() for one in log.evaluations)
    assert found.x[[0, 2]] == pytest.approx([1.5, 1.0301], abs=0.1)


def test_phases_follow_one_another():
    phases = [{"name": "across", "parameters": ["bodies.ball.velocity"], "max_evaluations": 5}, {"name": "all"}]
    made = problem({"method": "adam", "rate": 0.2, "phases": phases, "max_evaluations": 7})
    found = made.optimizer.run(made)
    assert [(phase.name, phase.evaluations) for phase in found.phases] == [("across", 5), ("all", 7)]
    assert found.phases[1].start == found.phases[0].end


class _Replay(MemoryLog):
    """A log of an earlier run."""

    def __init__(self, known: list[LoggedEvaluation]) -> None:
        super().__init__()
        self.known, self.used = known, 0

    def lookup(self, phase, index, x):
        if index < len(self.known) and np.array_equal(self.known[index].x, x):
            self.used += 1
            return self.known[index]
        return None


def test_a_killed_run_goes_on_bit_equal():
    made = problem({"method": "adam", "rate": 0.2, "max_evaluations": 10, "starts": {"count": 2, "seed": 4}})
    whole, again = MemoryLog(), None
    first = made.optimizer.run(made, log=whole)
    again = _Replay(whole.evaluations[:13])
    second = made.optimizer.run(made, log=again)
    assert again.used == 13 and np.array_equal(first.x, second.x)


def test_a_run_that_fails_is_stepped_back_from(monkeypatch):
    from add.errors import SolverError
    from add.inverse.problem import InverseProblem

    made = problem({"method": "sgd", "rate": 60.0, "momentum": 0.0, "max_evaluations": 30})
    whole = InverseProblem.value_and_grad

    def failing(self, x, **options):
        if x[0] > 2.2:
            raise SolverError("step 1: too fast")
        return whole(self, x, **options)

    monkeypatch.setattr(InverseProblem, "value_and_grad", failing)
    log = MemoryLog()
    found = made.optimizer.run(made, log=log)
    assert any(not np.isfinite(one.value) for one in log.evaluations)
    k = next(i for i, one in enumerate(log.evaluations) if not np.isfinite(one.value))
    assert np.allclose(log.evaluations[k + 1].x, 0.5 * (log.evaluations[k].x + log.evaluations[k - 1].x))
    assert found.value < log.evaluations[0].value


def test_a_scene_has_several_starts():
    made = problem({"method": "l-bfgs-b", "starts": {"count": 4, "seed": 1}, "max_evaluations": 40})
    points = made.optimizer.starts.points(made, made.x0)
    assert np.array_equal(points[0], made.x0) and len(points) == 4
    assert np.abs(np.array(points) - made.x0).max() <= 1.0
    found = made.optimizer.run(made)
    alone = problem({"method": "l-bfgs-b", "max_evaluations": 40})
    assert found.evaluations > alone.optimizer.run(alone).evaluations
    assert found.value <= alone.optimizer.run(alone).value


def test_starts_lie_between_bounds():
    made = problem({}, parameters=[{"path": "bodies.ball.velocity", "bounds": [-4, 6], "scale": 2.0}])
    points = np.array(Starts(200, 3).points(made, made.x0))[1:]
    assert points.min() > -2 and points.max() < 3 and points.min() < -1.8 and points.max() > 2.8
    assert np.array_equal(points, np.array(Starts(200, 3).points(made, made.x0))[1:])


def test_the_lowest_start_is_kept():
    """Two valleys, the deeper one away from the given start."""

    class Valleys:
        bounds = np.array([-3.0]), np.array([3.0])
        x0 = np.array([-1.2])

        @staticmethod
        def index_of(names):
            return np.array([0])

        @staticmethod
        def value_and_grad(x, **options):
            return float((x[0] ** 2 - 1) ** 2 - 0.5 * x[0] + 1.0), np.array([4 * x[0] * (x[0] ** 2 - 1) - 0.5])

    def lowest(count):
        method = GradientDescent((Phase("all", None, None, 80),), RateSchedule(0.05), 0.5, starts=Starts(count, 2))
        return method.run(Valleys()).x[0]

    assert lowest(1) == pytest.approx(-0.93, abs=0.02)
    assert lowest(6) == pytest.approx(1.06, abs=0.02)
    assert Adam((Phase("all", None, None, 300),), RateSchedule(0.05)).run(Valleys()).x[0] == pytest.approx(
        -0.93, abs=0.02
    )
