"""Small soft bodies with a hollow, and the check of a run's gradient by some of their numbers."""

from typing import Any

import numpy as np
from support.small_models import RoughObjective

from add.adjoint import evaluate, pushforward, value_and_gradient
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene


def hollow_block(
    steps: int = 20, integrator: str = "bdf1", signals: Any = None, dt: float = 0.005, **body: Any
) -> dict[str, Any]:
    """Return a scene of a block of 26 hexahedra around a hollow, held at one end."""
    block: dict[str, Any] = {
        "type": "soft",
        "element": "hex8",
        "mesh": {
            "shape": "box",
            "size": [0.06, 0.05, 0.04],
            "divisions": [3, 3, 3],
            "hollows": [[[1, 1, 1], [2, 2, 2]]],
        },
        "material": {"young": 5e4, "poisson": 0.4, "density": 1000, "viscosity": 20},
        "pins": [{"where": {"box": {"max": [-0.029, None, None]}}}],
    }
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps, "integrator": integrator, "newton": {"atol": 1e-12, "rtol": 0}},
        "signals": signals or {},
        "bodies": {"block": block | body},
    }


def check_gradient(scene: dict[str, Any], *blocks: str) -> BuiltScene:
    """Compare the gradient of a run by blocks of theta: reverse with forward mode, and with replayed differences."""
    built = scene_from_dict(scene).build()
    simulation, theta, layout = built.simulation, built.theta, built.model.system.parameters
    objective = RoughObjective(np.random.default_rng(0).normal(size=built.model.system.n))
    trajectory = evaluate(simulation, objective)[1]
    reverse = value_and_gradient(simulation, objective).gradient
    scale = np.where(theta != 0.0, np.abs(theta), 0.1)
    norm = np.linalg.norm(reverse * scale)
    indices = np.concatenate([layout[name].indices.ravel() for name in blocks])
    directions = [*np.eye(theta.size)[indices] * scale, np.random.default_rng(3).normal(size=theta.size) * scale]
    slopes = pushforward(simulation, trajectory, theta, directions).derivative(objective, trajectory, theta)
    for direction, slope in zip(directions, slopes, strict=True):
        assert abs(reverse @ direction - slope) < 1e-10 * norm
    # Of the numbers asked for alone: others may matter more by far.
    largest = np.abs(slopes[:-1]).max()
    assert np.abs(slopes[:-1]).min() > 1e-4 * largest > 0.0, "a number does not act"

    def at(point: np.ndarray) -> float:
        return evaluate(simulation, objective, point, replay=trajectory.replay)[0]

    def error(direction: np.ndarray) -> float:
        errors = []
        for size in (1e-4, 1e-5, 1e-6):
            difference = (at(theta + size * direction) - at(theta - size * direction)) / (2.0 * size)
            errors.append(abs(difference - reverse @ direction) / largest)
            if errors[-1] < 1e-6:
                break
        return float(min(errors))

    # All at once, with weights that hide no error of one; one by one where that does not agree.
    rng = np.random.default_rng(5)
    weights = rng.choice([-1.0, 1.0], indices.size) * rng.uniform(0.5, 1.0, indices.size)
    if error(weights @ directions[:-1]) > 1e-6:
        for index, direction in zip(indices, directions, strict=False):
            assert error(direction) < 1e-6, layout.describe(int(index))
    return built
