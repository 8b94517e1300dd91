"""Equal boxes, cylinders and logs whose faces are flush stand on each other: corners meet the faces they look at."""

from typing import Any

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

from add.kernels.distance import BOTTOM, DEEP, SIDE, TOP, distance_feature, facing_feature
from add.kernels.shape_codes import BOX, CYLINDER
from add.scene import scene_from_dict

HALF = 0.1
SHAPES = {
    "box": {"shape": "box", "size": [2 * HALF] * 3},
    "tin": {"shape": "cylinder", "radius": HALF, "half_length": HALF},
}
LYING = [np.sqrt(0.5), np.sqrt(0.5), 0, 0]


def scene(geometry: dict[str, Any], places: list[tuple[float, float, float]], law: str, steps: int, **more: Any) -> Any:
    """Equal bodies on a floor."""
    bodies = {
        f"b{k}": {"type": "rigid", "geometry": geometry, "density": 500, "position": list(place), **more}
        for k, place in enumerate(places)
    }
    time = {"dt": 0.005, "steps": steps} | ({"integrator": "bdf1"} if law == "impulse" else {})
    floor = {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}
    return {
        "schema": "add-scene/1", "time": time, "contact": {"friction": 0.5, "friction_law": law},
        "obstacles": {"floor": floor}, "bodies": bodies,
    }  # fmt: skip


def places(raw: dict[str, Any]) -> np.ndarray:
    """Where the bodies are at the end (n, 3)."""
    run = scene_from_dict(raw).build().run()
    return np.asarray(run.q[-1].reshape(-1, 6)[:, :3])


@pytest.mark.parametrize("law", ["tanh", "hybrid", "impulse"])
@pytest.mark.parametrize("turn", [0.0, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
def test_towers_stand(shape: str, turn: float, law: str) -> None:
    """Three of one size, one exactly above the other."""
    tower = [(0.0, 0.0, HALF * (1 + 2 * k)) for k in range(3)]
    end = places(scene(SHAPES[shape], tower, law, 100, orientation=[np.cos(turn), 0, 0, np.sin(turn)]))
    np.testing.assert_allclose(end[:, 2], [HALF, 3 * HALF, 5 * HALF], atol=0.03 * HALF)
    assert np.abs(end[:, :2]).max() < 1e-3


@pytest.mark.parametrize("law", ["tanh", "impulse"])
def test_bricks_in_a_wall(law: str) -> None:
    """A brick on two, half over each, of one depth."""
    wall = [(-HALF, 0.0, HALF), (HALF, 0.0, HALF), (0.0, 0.0, 3 * HALF)]
    end = places(scene(SHAPES["box"], wall, law, 80))
    np.testing.assert_allclose(end, wall, atol=0.03 * HALF)


@pytest.mark.parametrize("law", ["tanh", "impulse"])
def test_logs_on_logs(law: str) -> None:
    """Two equal logs side by side bear a third, all ends flush."""
    pyramid = [(0.0, 0.0, HALF), (2 * HALF, 0.0, HALF), (HALF, 0.0, HALF * (1 + np.sqrt(3)))]
    end = places(scene(SHAPES["tin"] | {"half_length": 0.2}, pyramid, law, 60, orientation=LYING))
    np.testing.assert_allclose(end, pyramid, atol=0.05 * HALF)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_slides_on_one_floor_meets(shape: str) -> None:
    """Their lower and their upper faces are flush as one slides into the other."""
    raw = scene(SHAPES[shape], [(0, 0, HALF), (0.25, 0, HALF)], "tanh", 100)
    raw["contact"]["friction"] = 0.05
    raw["bodies"]["b0"]["velocity"] = [1.5, 0, 0]
    end = places(raw)
    assert end[1, 0] - end[0, 0] > 1.95 * HALF and end[1, 0] > 0.3


@pytest.mark.parametrize("law", ["tanh", "hybrid", "impulse"])
def test_gradients(law: str) -> None:
    raw = scene(SHAPES["box"], [(0, 0, HALF), (0.2 * HALF, 0, 3 * HALF)], law, 5)
    raw["bodies"]["b1"]["velocity"] = [0.3, 0, -0.2]
    raw["bodies"]["b1"]["angular_velocity"] = [0.1, 0.2, 0.02]
    check_gradient_of_run(
        scene_from_dict(raw).build().simulation, RoughObjective(np.random.default_rng(1).normal(size=12))
    )


def test_a_corner_meets_the_nearest_face_it_looks_at() -> None:
    size, rng, changed = np.array([0.3, 0.2, 0.1]), np.random.default_rng(2), 0
    for _ in range(2000):
        X, M = rng.uniform(-1.0, 1.0, 3) * size, np.sign(rng.normal(size=3)) * (1.0 + 0.09 * rng.uniform(-1.0, 1.0))
        found = facing_feature(BOX, size, *X, *M)
        beyond, against = np.abs(X) - size, -np.sign(X) * M
        axis = int(np.argmax(np.where(against > 0.0, beyond, -np.inf)))
        if against.max() < 0.0 or beyond[axis] < -DEEP * 0.1:
            assert found == distance_feature(BOX, size, *X)
            continue
        assert found == 13 + int(np.sign(X[axis])) * (9, 3, 1)[axis]
        changed += found != distance_feature(BOX, size, *X)
        assert facing_feature(BOX, size, *X, *(1.3 * M)) == distance_feature(BOX, size, *X)
    assert changed > 10
    tin = np.array([0.3, 0.1, 0.0])
    rim, end = (0.3 * (1 + 1e-6), 0.0, 0.09), (0.29, 0.0, 0.1 * (1 + 1e-6))
    assert facing_feature(CYLINDER, tin, *rim, 1.0, 0.0, -1.0) == TOP
    assert facing_feature(CYLINDER, tin, *end, -1.0, 0.0, 1.0) == SIDE
    assert facing_feature(CYLINDER, tin, 0.28, 0.0, -0.0999, 1.0, 0.0, 1.0) == BOTTOM
    assert facing_feature(CYLINDER, tin, 0.32, 0.0, 0.09, 1.0, 0.0, -1.0) == SIDE  # beside it, further than flush
