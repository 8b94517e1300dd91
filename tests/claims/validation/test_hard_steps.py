"""Steps far longer than an impact: where every guess is in a wrong set of touching corners."""

from dataclasses import replace
from typing import final

import numpy as np
import pytest
from fuzz.drops import drop
from support.rigid_cases import Rigid, box, box_moments, floor
from support.small_models import RoughObjective

from add.adjoint import Checkpoints, evaluate, pushforward, value_and_gradient
from add.contact import FrictionLaw
from add.errors import SolverError
from add.linalg import Factorization
from add.linalg.multifrontal import DenseLU
from add.linalg.pattern import Pattern
from add.model import ContactModel
from add.scene import scene_from_dict
from add.simulation import BDF
from add.simulation.run import Simulation
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions
from add.typing import FloatArray

DT, K_N, MASS, SIZE = 1.0 / 60.0, 5e4, 0.1, (0.1, 0.1, 0.1)


def _tumbling(seed: int, n_steps: int) -> Simulation:
    """A cube falls on a floor, omega dt = 23 for all corners together, with damping and friction."""
    rng = np.random.default_rng(seed)
    model = ContactModel(law=FrictionLaw.LINEAR, ramp=5e-4)
    setup = Rigid.of([box("cube", SIZE)], [floor()], model)
    setup.body("cube", MASS, box_moments(MASS, SIZE), position=(0, 0, 0.35), velocity=(0.3, 0, 0),
               orientation=rng.normal(size=3), angular_velocity=3.0 * rng.normal(size=3))  # fmt: skip
    for key, value in (("k_n", K_N), ("k_d", 20.0), ("k_t", K_N * DT), ("c_f", 0.5)):
        setup.view(f"contact.cube.floor.{key}")[...] = value
    system = setup.model.system
    stepper = BDF(DT, 2, newton=NewtonOptions(1e-9, 1e-10))
    return Simulation(system, GivenStart(setup.model.initial), stepper, n_steps, setup.theta)


@pytest.mark.parametrize("seed", range(6))
def test_tumbling_cubes(seed: int) -> None:
    """Without proximal steps and continuation in the stiffness nearly all of these runs end in the first impact."""
    run = _tumbling(seed, 150).run()
    assert 0.0 < run.q[:, 2].min()
    assert run.q[:, 2].max() < 0.5
    assert sum(record.report.attempt >= 3 for record in run.records) < 20


def test_gradient_through_rescued_steps() -> None:
    """A rescued step is a solution like any other: the sweeps agree and a replayed run stays on it."""
    simulation = _tumbling(0, 40)
    objective = RoughObjective(np.random.default_rng(0).normal(size=simulation.system.n))
    value, trajectory = evaluate(simulation, objective)
    assert max(record.report.attempt for record in trajectory.records) in (3, 5)
    reverse = value_and_gradient(simulation, objective)
    again = value_and_gradient(simulation, objective, schedule=Checkpoints(4))
    assert again.value == value
    assert np.array_equal(again.gradient, reverse.gradient)
    theta = simulation.theta
    direction = np.random.default_rng(1).normal(size=theta.size) * np.where(theta != 0.0, np.abs(theta), 0.1)
    (slope,) = pushforward(simulation, trajectory, theta, [direction]).derivative(objective, trajectory, theta)
    assert reverse.gradient @ direction == pytest.approx(slope, rel=1e-9)
    h = 1e-6
    ends = [evaluate(simulation, objective, theta + s * direction, replay=trajectory.replay)[0] for s in (h, -h)]
    assert (ends[0] - ends[1]) / (2.0 * h) == pytest.approx(slope, rel=1e-4)


@final
class Failing(Factorization):
    """Finds Newton's increments, and calls the matrix singular for every other right-hand side."""

    def __init__(self) -> None:
        self._inner = DenseLU()

    def factor(self, pattern: Pattern, data: FloatArray) -> None:
        """Factor."""
        self._inner.factor(pattern, data)

    def increment(self, b: FloatArray) -> FloatArray:
        """Solve."""
        return self._inner.solve(b)

    def solve(self, b: FloatArray) -> FloatArray:
        """Fail."""
        raise SolverError("the Jacobian is singular")

    solve_transposed = solve


def test_singular_matrix_within_the_line_search_ends_no_run() -> None:
    """The natural monotonicity test solves once more by the factors; a failure there is a trial that does not pass."""
    simulation = scene_from_dict(drop(97)).build().simulation
    run = replace(simulation, solver=lambda n: Failing()).run(n_steps=30)
    assert run.n_steps == 30


def test_errors_of_derivatives_name_their_step() -> None:
    simulation = replace(scene_from_dict(drop(97)).build().simulation, solver=lambda n: Failing())
    objective = RoughObjective(np.ones(simulation.system.n))
    with pytest.raises(SolverError, match=r"derivative of step 3 \(t=0.05 s\): the Jacobian is singular; try time.dt"):
        value_and_gradient(simulation, objective, n_steps=3)
    _, trajectory = evaluate(simulation, objective, n_steps=3)
    with pytest.raises(SolverError, match=r"derivative of step 1 \(t=0.0166667 s\): .*; try time.dt = 0.00417 s"):
        pushforward(simulation, trajectory, simulation.theta, [np.ones(simulation.theta.size)])
