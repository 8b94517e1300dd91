"""Gradients of whole runs: reverse against forward mode, against replayed differences, and Taylor remainders."""

import numpy as np
import pytest
from derivatives.small_models import RoughObjective, hanging_block, two_bodies

from add.adjoint import Checkpoints, evaluate, forward_tangents, value_and_gradient
from add.contact import FrictionLaw
from add.fem import HEX8, TET4, TET10
from add.kernels import contact as contact_kernel
from add.steppers import StartUp

CASES = {
    "tet4-bdf1-linear": lambda: two_bodies(TET4, order=1),
    "tet4-bdf2-linear-stick": lambda: two_bodies(TET4, mu_slide=3.0, n_steps=10),
    "tet4-bdf2-line-tanh": lambda: two_bodies(TET4, law=FrictionLaw.TANH, start_up=StartUp.STRAIGHT_LINE),
    "tet10-mean-bdf2-tanh-onset": lambda: two_bodies(TET10, mean_dilatation=True, law=FrictionLaw.TANH, onset=1e-3),
    "tet10-bdf1-tanh": lambda: two_bodies(TET10, law=FrictionLaw.TANH, order=1, n_steps=8),
    "hex8-mean-bdf2-line-linear": lambda: two_bodies(HEX8, mean_dilatation=True, start_up=StartUp.STRAIGHT_LINE),
    "hex8-bdf2-linear": lambda: two_bodies(HEX8, onset=1e-3),
    "hex8-bdf2-frictionless": lambda: two_bodies(HEX8, law=FrictionLaw.NONE, n_steps=8),
    "tet10-equilibrium": lambda: hanging_block(TET10, mean_dilatation=True),
    "hex8-equilibrium": lambda: hanging_block(HEX8, mean_dilatation=False),
}


def _counts(model, trajectory) -> dict[str, int]:
    seen: dict[str, int] = {}
    for record in trajectory.records:
        for key, count in model.system.deciding[0].describe(record.decisions[0]).items():
            seen[key] = seen.get(key, 0) + count
    return seen


@pytest.mark.parametrize("case", CASES)
def test_gradient_of_run(case: str) -> None:
    model, simulation = CASES[case]()
    theta = simulation.theta
    objective = RoughObjective(np.random.default_rng(0).normal(size=model.system.n))
    value, trajectory = evaluate(simulation, objective)
    counts = _counts(model, trajectory)
    assert counts["touching"] > 0
    if "linear" in case:
        assert counts["sticking" if "stick" in case else "slipping"] > 0

    reverse = value_and_gradient(simulation, objective)
    assert reverse.value == value

    # Checkpoints: bit-equal, since a step depends on its state alone.
    again = value_and_gradient(simulation, objective, schedule=Checkpoints(5))
    assert again.value == value
    assert np.array_equal(again.gradient, reverse.gradient)

    scale = np.where(theta != 0.0, np.abs(theta), 0.1)
    norm = np.linalg.norm(reverse.gradient * scale)
    rng = np.random.default_rng(3)
    directions = [rng.normal(size=theta.size) * scale for _ in range(3)]

    forward = forward_tangents(simulation, trajectory, theta, directions)
    slopes = forward.derivative(objective, trajectory, theta, directions)
    for direction, slope in zip(directions, slopes, strict=True):
        assert reverse.gradient @ direction == pytest.approx(slope, rel=1e-10, abs=1e-10 * norm)

    def at(point):
        return evaluate(simulation, objective, point, replay=trajectory.replay)[0]

    assert at(theta) == pytest.approx(value, rel=1e-12)
    layout = model.system.parameters
    for i in range(theta.size):
        errors = []
        # The best of a few steps: truncation at large, round-off at small ones.
        for size in (1e-4, 1e-5, 1e-6):
            step = np.zeros_like(theta)
            step[i] = size * scale[i]
            slope = (at(theta + step) - at(theta - step)) / (2.0 * size)
            errors.append(abs(slope - reverse.gradient[i] * scale[i]) / norm)
            if errors[-1] < 1e-6:
                break
        assert min(errors) < 1e-6, f"{layout.describe(i)}: {errors}"

    # Taylor remainder of the replayed run along one direction: second order.
    direction = directions[0]
    sizes = np.array([1e-3, 5e-4, 2.5e-4]) * 0.2
    slope = reverse.gradient @ direction
    remainders = np.array([abs(at(theta + h * direction) - value - h * slope) for h in sizes])
    rates = np.log2(remainders[:-1] / remainders[1:])
    assert np.all((rates > 1.9) & (rates < 2.1)), rates


def test_all_contact_branches_are_seen() -> None:
    """The cases together reach stick, slip, onset and the damping ramp."""
    seen = 0
    for case in ("tet4-bdf1-linear", "tet4-bdf2-linear-stick", "hex8-bdf2-linear"):
        _, simulation = CASES[case]()
        for record in simulation.run().records:
            codes = record.decisions[0]
            seen |= int(np.bitwise_or.reduce(codes[codes > 0], initial=0))
            sticking = codes & (contact_kernel.ACTIVE | contact_kernel.SLIP) == contact_kernel.ACTIVE
            seen |= (1 << 30) if sticking.any() else 0
    for bit in (contact_kernel.ACTIVE, contact_kernel.SLIP, contact_kernel.QUADRATIC, contact_kernel.RAMPING, 1 << 30):
        assert seen & bit
