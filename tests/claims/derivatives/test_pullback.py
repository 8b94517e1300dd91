"""The pull-back of a run is the transpose of its push-forward, and what gradients of objectives are built from.

Over integrators, friction laws and kinds of bodies, with random cotangents of q and v at every state.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import final

import numpy as np
import pytest
from support.rigid_models import DT, NEWTON, PAIRS, linkage
from support.run_checks import events
from support.small_models import hanging_block, two_bodies

from add.adjoint import Cotangents, pullback, pushforward, value_and_gradient
from add.contact import FrictionLaw
from add.equations.kinematics import State, StateTangent
from add.errors import InputError
from add.geometry import HEX8, TET4, TET10
from add.objectives import Objective
from add.simulation import BDF, StartUp
from add.simulation.run import Simulation, Trajectory

#: Integrators of rigid bodies, and (order, start) of the soft models, which make their own.
STEPPERS = {
    "bdf1": BDF(DT, 1, newton=NEWTON),
    "bdf2": BDF(DT, 2, newton=NEWTON),
    "bdf2-line": BDF(DT, 2, StartUp.STRAIGHT_LINE, NEWTON),
}
ORDERS = {"bdf1": (1, StartUp.BDF1), "bdf2": (2, StartUp.BDF1), "bdf2-line": (2, StartUp.STRAIGHT_LINE)}


def _soft(law: FrictionLaw, stepper: str) -> Simulation:
    order, start_up = ORDERS[stepper]
    # Enough friction that hybrid friction sticks within the run.
    mu = {FrictionLaw.HYBRID: 8.0}.get(law, 0.3)
    return two_bodies(HEX8, law=law, order=order, start_up=start_up, mu_slide=mu, n_steps=20)[1]


CASES = {
    **{f"soft-{law.name.lower()}-{key}": (_soft, law, key) for law, key in product(FrictionLaw, STEPPERS)},
    **{
        f"{pair}-{law.name.lower()}-{key}": (lambda law, key, make=make: make(law, STEPPERS[key])[1], law, key)
        for (pair, make), law, key in product(PAIRS.items(), FrictionLaw, STEPPERS)
    },
}


def _cases() -> list:
    """Each body kind with each law and each integrator in the quick suite; all combinations in the slow one."""
    out = []
    for n, name in enumerate(CASES):
        i, j, k = n // 12, n // 3 % 4, n % 3
        marks = () if (i + j + k) % 3 == 0 else pytest.mark.slow
        out.append(pytest.param(name, marks=marks))
    return out


def products(simulation: Simulation, trajectory: Trajectory, seed: int = 0) -> tuple[float, float, float]:
    """Return <cotangent, pushforward>, <pullback, tangent> and the sum of the sizes of the first one's products."""
    rng, theta = np.random.default_rng(seed), simulation.theta
    direction = rng.normal(size=theta.size) * np.where(theta != 0.0, np.abs(theta), 0.1)
    bar = Cotangents(rng.normal(size=trajectory.q.shape), rng.normal(size=trajectory.v.shape))
    tangents = pushforward(simulation, trajectory, theta, [direction])
    parts = np.concatenate([(bar.q * tangents.q[0]).ravel(), (bar.v * tangents.v[0]).ravel()])
    return float(parts.sum()), float(pullback(simulation, trajectory, theta, bar) @ direction), float(abs(parts).sum())


@pytest.mark.parametrize("case", _cases())
def test_pullback_is_the_transpose(case: str) -> None:
    make, law, key = CASES[case]
    simulation = make(law, key)
    trajectory = simulation.run()
    seen = events(simulation, trajectory)
    assert seen["impacts"] and seen["touching"]
    if law in (FrictionLaw.LINEAR, FrictionLaw.HYBRID):
        assert seen["sticking"] + seen["slipping"]
    if not case.startswith("soft"):
        assert seen["charts"]
    for seed in range(3):
        forward, backward, size = products(simulation, trajectory, seed)
        print(f"{case}: {abs(forward - backward) / size:.1e}")
        assert abs(forward - backward) <= 1e-12 * size


@pytest.mark.parametrize(
    "make",
    [
        lambda: hanging_block(TET10, mean_dilatation=True)[1],
        lambda: hanging_block(HEX8, mean_dilatation=False)[1],
        lambda: linkage(STEPPERS["bdf2"])[1],
        lambda: replace(two_bodies(TET4, n_steps=10)[1], threads=3),
    ],
    ids=["equilibrium-tet10", "equilibrium-hex8", "joints", "threads"],
)
def test_pullback_of_other_runs_is_the_transpose(make) -> None:
    """Starts from equilibrium, every kind of joint, and several threads."""
    simulation = make()
    trajectory = simulation.run()
    for seed in range(3):
        forward, backward, size = products(simulation, trajectory, seed)
        assert abs(forward - backward) <= 1e-12 * size


@final
@dataclass(frozen=True)
class _Newest(Objective):
    """sum over states of |w * q|^2 / 2 + sin(w . v), and theta . theta / 2: derivatives of all states and of theta."""

    weights: np.ndarray

    def step_value(self, state: State, theta: np.ndarray) -> float:
        return float(0.5 * np.sum((self.weights * state.q[0]) ** 2) + np.sin(self.weights @ state.v[0]))

    def step_pullback(self, state: State, theta: np.ndarray, state_bar: StateTangent, theta_bar: np.ndarray) -> None:
        state_bar.q[0] += self.weights**2 * state.q[0]
        state_bar.v[0] += np.cos(self.weights @ state.v[0]) * self.weights

    def parameter_value(self, theta: np.ndarray) -> float:
        return float(0.5 * theta @ theta)

    def parameter_gradient(self, theta: np.ndarray, theta_bar: np.ndarray) -> None:
        theta_bar += theta


@pytest.mark.parametrize("case", [name for name in CASES if name.endswith("linear-bdf2")])
def test_gradients_are_built_from_it(case: str) -> None:
    """An objective's derivatives by all states, given as cotangents, are pulled back to its gradient."""
    make, law, key = CASES[case]
    simulation = make(law, key)
    trajectory, theta = simulation.run(), simulation.theta
    objective = _Newest(np.random.default_rng(0).normal(size=simulation.system.n))
    bars = [StateTangent.zeros_like(state) for state in trajectory.states()]
    for state, bar in zip(trajectory.states(), bars, strict=True):
        objective.step_pullback(state, theta, bar, np.zeros_like(theta))
    cotangents = Cotangents(np.stack([bar.q[0] for bar in bars]), np.stack([bar.v[0] for bar in bars]))
    wanted = value_and_gradient(simulation, objective).gradient
    found = pullback(simulation, trajectory, theta, cotangents) + theta
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14 * np.abs(wanted).max())


def test_what_does_not_fit_is_refused() -> None:
    simulation = two_bodies(TET4, n_steps=4)[1]
    trajectory = simulation.run()
    theta, zeros = simulation.theta, np.zeros_like(trajectory.q)
    with pytest.raises(InputError, match="one cotangent a coordinate and state"):
        pullback(simulation, trajectory, theta, Cotangents(zeros[1:], zeros))
    with pytest.raises(InputError, match="a state of its own"):
        pullback(simulation, trajectory.after(2), theta, Cotangents(zeros[2:], zeros[2:]))
    assert not pullback(simulation, trajectory, theta, Cotangents(zeros, zeros)).any()


def test_states_carry_their_memory() -> None:
    """The carry of a state goes with it through slices of a trajectory."""
    simulation = two_bodies(TET4, n_steps=3)[1]
    trajectory = simulation.run()
    for k in range(4):
        state = trajectory.state(k)
        assert isinstance(state, State) and state.carry.memory.size == 0 and state.carry.marks == ()
    assert trajectory.after(2).initial.carry is trajectory.records[1].carry
