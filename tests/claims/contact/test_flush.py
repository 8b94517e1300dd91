"""Equal boxes, cylinders and logs whose faces are flush stand on each other: corners meet the faces they look at."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.run_checks import check_gradient_of_run, tight
from support.small_models import RoughObjective
from support.tiers import long_case

from add.commands.check_gradient import check_gradients
from add.errors import SolverError
from add.kernels.contact_pairs import BITS, FACE, FEATURE, PAIR
from add.kernels.distance import (
    AWAY,
    BESIDE,
    BOTTOM,
    FLUSH,
    SIDE,
    TOP,
    distance_branch,
    distance_feature,
    facing_feature,
)
from add.kernels.shape_codes import BOX, CYLINDER
from add.scene import scene_from_dict
from add.scene.build.run_data import Energies
from add.solve import fallbacks

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


def towers() -> Iterator[Any]:
    """Shape, turn and law, any two of them together in a quick case."""
    laws = enumerate(("tanh", "hybrid", "impulse"))
    for (k, shape), (j, turn), (n, law) in product(enumerate(SHAPES), enumerate((0.0, 0.3)), laws):
        yield (pytest.param if (k + j + n) % 2 == 0 else long_case)(shape, turn, law)


@pytest.mark.parametrize(("shape", "turn", "law"), list(towers()))
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


def thrown(law: str, steps: int, at: Sequence[float], velocity: Sequence[float], spin: Sequence[float]) -> Any:
    """A box above another one, of which it is above ``at``, its last number the half of the angle it is turned by."""
    raw = scene(SHAPES["box"], [(0, 0, HALF), (at[0], at[1], at[2])], law, steps)
    raw["bodies"]["b1"] |= {"velocity": velocity, "angular_velocity": spin}
    raw["bodies"]["b1"]["orientation"] = [np.cos(at[3]), 0, 0, np.sin(at[3])]
    return raw


def check_gradient(raw: dict[str, Any]) -> Any:
    """Whole-run gradients by all numbers; returns the run."""
    objective = RoughObjective(np.random.default_rng(1).normal(size=12))
    simulation = scene_from_dict(raw).build().simulation
    return check_gradient_of_run(simulation if "impulse" in raw["contact"].values() else tight(simulation), objective)


@pytest.mark.parametrize("law", ["tanh", "hybrid", "impulse"])
def test_gradients(law: str) -> None:
    check_gradient(thrown(law, 5, [0.2 * HALF, 0, 3 * HALF, 0], [0.3, 0, -0.2], [0.1, 0.2, 0.02]))


@pytest.mark.parametrize("law", ["tanh", "hybrid"])
def test_gradients_as_a_corner_leaves_a_flush_face(law: str) -> None:
    """The face that it meets goes on beside the edge, and falls away."""
    run = check_gradient(thrown(law, 5, [0.9 * HALF, 0.01 * HALF, 3 * HALF, 0], [0.3, 0.1, -0.2], [0.1, 0.2, 0.02]))
    assert any((np.asarray(record.decisions[0])[:, FEATURE] >= BESIDE).any() for record in run.records)


@pytest.mark.parametrize("law", ["tanh", "hybrid"])
def test_gradients_through_a_step_between_two_faces(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a box that slides over another one, with faces kept from before the step, as where a force jumps."""
    others = fallbacks._attempts

    def kept_faces(work: Any, guesses: Any, share: float, attempts: int | None, before: Any) -> Any:
        found = None
        if work.equations.step in (2, 4) and work.replay is None and before is not None:
            found = fallbacks._by_faces(work, [before.q - work.equations.q_star], before, 9, share)
        return found or others(work, guesses, share, attempts, before)

    monkeypatch.setattr(fallbacks, "_attempts", kept_faces)
    monkeypatch.setattr(fallbacks, "at_rest", lambda work, before: None)  # the lower box would be held at once
    raw = thrown(law, 5, [0.2 * HALF, 0, 3 * HALF, 0], [0.3, 0, -0.2], [0.1, 0.2, 0.02])
    objective = RoughObjective(np.random.default_rng(1).normal(size=12))
    run = check_gradient_of_run(tight(by_terms(scene_from_dict(raw).build().simulation)), objective)
    kept = [bool((np.asarray(record.decisions[0])[:, BITS] & FACE).any()) for record in run.records]
    assert kept == [False, True, False, True, False]


def test_no_energy_comes_with_kept_faces() -> None:
    """Of two boxes that turn in each other a corner comes into line 2 cm deep: 75 J, of 9 that there are."""
    raw = thrown("tanh", 12, [-0.049, 0.0027, 3 * HALF + 0.002, -0.0495], [-2.5, 0.405, -0.976], [0.857, 0.631, -3.02])
    raw["time"]["dt"] = 0.008
    raw["bodies"]["log"] = raw["bodies"]["b0"] | {"position": [1.5, 0, 0.1], "velocity": [0, 0, -8]}
    raw["bodies"]["log"] |= {"geometry": SHAPES["tin"] | {"radius": 0.05, "half_length": 0.2}, "orientation": LYING}
    built = scene_from_dict(raw).build()
    try:
        run = built.run()
    except SolverError as error:
        run = error.trajectory
        assert "the force jumps" in str(error)
    energies = Energies(built, built.theta)
    total = [sum(energies.at(run.kinematics(k)).values()) for k in range(run.n_steps + 1)]
    assert run.n_steps >= 6 and max(total) < 1.001 * total[0]


def test_faces_are_kept_of_rims_and_of_boxes_that_arrive_within_the_step() -> None:
    """Each meets the floor by what it is near before the step, at the speed that it has."""
    raw = scene(SHAPES["box"], [(0, 0, 1.3 * HALF)], "tanh", 4, velocity=[0, 0, -5])
    raw["bodies"]["log"] = raw["bodies"]["b0"] | {"geometry": SHAPES["tin"], "position": [0.5, 0, 1.3 * HALF]}
    raw["bodies"]["log"]["orientation"] = LYING
    simulation = scene_from_dict(raw).build().simulation
    term, begin = simulation.system.deciding[0], simulation.run(n_steps=0).kinematics(0)
    rows = term.keep_faces(begin, simulation.theta, 0.01)
    assert term.decide(begin, simulation.theta).size == 0
    near = {int(carrier) for carrier in term.arrays.points[rows[:, PAIR] // term.n_shapes, 0]}
    assert near == {0, 6} and np.all(rows[:, BITS] == FACE)
    assert not term.keep_faces(begin, simulation.theta, 1e-4).size


@pytest.mark.parametrize("law", ["tanh", "impulse"])
@pytest.mark.parametrize("overlap", [0.01, 0.04])
def test_a_log_that_bears_by_little_of_its_ends_rolls(overlap: float, law: str) -> None:
    """The faces under it go on beyond their edges by more than that."""
    raw = scene({"shape": "cylinder", "radius": 0.05, "half_length": 0.25}, [(0, -0.3, 0.05)], law, 100)
    raw["bodies"]["b0"] |= {"velocity": [0, 0.5, 0], "angular_velocity": [-10, 0, 0]}
    raw["bodies"]["b0"]["orientation"] = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
    raw["obstacles"] = {
        f"o{k}": {"shape": "box", "center": [way * (0.45 - overlap), 0, -0.1], "half_size": [0.2, 0.6, 0.1]}
        for k, way in enumerate((-1, 1))
    }
    end = places(raw)
    assert end[0, 1] == pytest.approx(-0.05, abs=4e-3)


def test_laws_with_a_reach_see_edges_where_they_are() -> None:
    """A corner 5 mm beside an edge and 0.2 mm above it is 5 mm away."""
    raw = scene(SHAPES["box"], [(0, 0, HALF), (0.005, 0, 3.002 * HALF)], "tanh", 1)
    raw["contact"] |= {"law": "penalty+wall", "thickness": 0.003, "stiffness": 1e5}
    del raw["obstacles"]
    raw["gravity"] = [0, 0, 0]
    simulation = scene_from_dict(raw).build().simulation
    term = simulation.system.deciding[0]
    rows = term.decide(simulation.run(n_steps=0).kinematics(0), simulation.theta)
    assert rows.shape[0] == 4 and np.all(rows[:, FEATURE] < BESIDE)


@pytest.mark.parametrize("speed", [3.0, 5.0])
def test_a_wall_is_knocked_apart(speed: float) -> None:
    """Ten flush bricks and a ball: every step is found, no energy gained."""
    half, bodies = np.array([0.1, 0.05, 0.05]), {}
    for row in range(4):
        for k in range(3 - row % 2):
            place = [(2 * k - 2 + row % 2) * half[0], 0.0, (2 * row + 1) * half[2]]
            geometry = {"shape": "box", "size": list(2 * half)}
            bodies[f"b{row}{k}"] = {"type": "rigid", "geometry": geometry, "density": 800, "position": place}
    ball = {"shape": "sphere", "radius": 0.08}
    bodies["ball"] = {
        "type": "rigid", "geometry": ball, "density": 1500, "position": [0.03, -0.3, 0.2], "velocity": [0.1, speed, 0]
    }  # fmt: skip
    raw = scene(SHAPES["box"], [], "tanh", 120) | {"bodies": bodies}
    raw["time"]["dt"] = 0.004
    built = scene_from_dict(raw).build()
    run, energies = built.run(), Energies(built, built.theta)
    assert run.q[-1].reshape(-1, 6)[:, 1].max() > 0.1
    total = [sum(energies.at(run.kinematics(k)).values()) for k in range(0, 121, 5)]
    assert max(total) < 1.001 * total[0]


@pytest.mark.parametrize("law", ["tanh", "hybrid", "linear"])
@pytest.mark.parametrize(("beside", "speed"), [((9e-5, -7e-5), 1.2), ((0.0, 2e-3), 1.8), ((0.0, 0.0), 2.9)])
def test_a_brick_falls_on_an_equal_one(law: str, beside: tuple[float, float], speed: float) -> None:
    """Almost flush, by up to two fifths of its thickness a step: it comes to lie on the other one."""
    size, dt = [0.06, 0.03, 0.018], 0.0025
    brick = {"type": "rigid", "geometry": {"shape": "box", "size": size}, "density": 1500}
    bodies = {
        "below": brick | {"position": [0, 0, 0.009]},
        "above": brick | {"position": [*beside, 0.0324], "velocity": [0, 0, -speed], "angular_velocity": [0.02, 0, 0]},
    }
    floor = {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": 160},
        "contact": {"friction": 0.5, "friction_law": law},
        "obstacles": {"floor": floor},
        "bodies": bodies,
    }
    run = scene_from_dict(raw).build().run()
    apart = run.q[:, 8] - run.q[:, 2]
    assert apart.min() > 0.6 * size[2] and abs(apart[-1] - size[2]) < 0.02 * size[2]


def test_a_corner_meets_the_nearest_face_it_looks_at() -> None:
    """Of those that it does not look away from, however it is turned and how deep, down to half of the thinnest way."""
    size, rng, changed = np.array([0.3, 0.2, 0.1]), np.random.default_rng(2), 0
    for k in range(4000):
        X, M = rng.uniform(-1.0, 1.0, 3) * size, rng.normal(size=3)
        M = np.sqrt(3.0) * M / np.linalg.norm(M) if k % 2 else np.sign(M) * (1.0 + 0.09 * rng.uniform(-1.0, 1.0))
        found = facing_feature(BOX, size, *X, *M, 1.0)
        beyond, against = np.abs(X) - size, -np.sign(X) * M
        axis = int(np.argmax(np.where(against > -AWAY, beyond, -np.inf)))
        if against[axis] <= 0.0 or beyond[axis] < -size.min() or against.min() > -AWAY:
            assert found == distance_feature(BOX, size, *X)
            continue
        assert found == 13 + int(np.sign(X[axis])) * (9, 3, 1)[axis]
        changed += found != distance_feature(BOX, size, *X)
    assert changed > 10
    tin = np.array([0.3, 0.1, 0.0])
    assert facing_feature(CYLINDER, tin, 0.3 * (1 - 1e-6), 0.0, 0.09, 1.0, 0.0, -1.0, 1.0) == TOP
    assert facing_feature(CYLINDER, tin, 0.29, 0.0, 0.1 * (1 - 1e-6), -1.0, 0.0, 1.0, 1.0) == SIDE
    assert facing_feature(CYLINDER, tin, 0.28, 0.0, -0.0999, 1.0, 0.0, 1.0, 1.0) == BOTTOM


@pytest.mark.parametrize("kind", [BOX, CYLINDER])
def test_faces_go_on_smoothly_beside_edges(kind: int) -> None:
    """Gap and normal of a corner do not change where it passes an edge to a face in line, or two at once."""
    size = np.array([0.3, 0.2, 0.1 if kind == BOX else 0.0])
    half = size if kind == BOX else size[[0, 0, 1]]
    n, H, steps = np.zeros((2, 3)), np.zeros((3, 3)), 0
    for axis in (0, 1, 2) if kind == BOX else (0, 2):
        for k in range(4):
            inwards = np.where(np.arange(3) == axis, -1.0, 1.0) * ([1, 0, 1] if kind == CYLINDER else [1, 1, 1])
            X = half * np.where(inwards < 0, 0.99, 1.0) * ([1, 0, 1] if kind == CYLINDER else [1, 1, 1])
            away = (inwards > 0) * [(k & 1) or kind == CYLINDER, k >> 1 or kind == CYLINDER, 1 if axis == 0 else 0]
            gaps = []
            for side, nose in zip((-1e-10, 1e-10), n, strict=True):
                place = X + (side + FLUSH * half) * away - 1e-6 * (inwards > 0) * (away == 0)
                found = facing_feature(kind, size, *place, *inwards, 0.05)
                assert (found >= BESIDE) == (side > 0.0 and bool(away.any()))
                gaps.append(distance_branch(kind, size, *place, found, 1, nose, H))
                steps += found >= BESIDE
            assert gaps[1] == pytest.approx(gaps[0], abs=1e-14)
            assert n[1] == pytest.approx(n[0], abs=1e-7)
    assert steps >= 6


@pytest.mark.parametrize("law", ["tanh", "linear", "hybrid"])
def test_bodies_that_fall_together_do_not_touch_by_round_off(law: str) -> None:
    """Gaps of zero, give or take round-off: what moves one of two cubes does not move the other, nor its gradient.

    Contact of 1e-25 N had the slope of friction at rest: derivatives by sideways velocities were up to 19 times too
    large.
    """
    raw = scene(SHAPES["box"], [(0, 0, 0.3), (0, 0, 0.3 + 2 * HALF)], law, 20)
    for found in check_gradients(scene_from_dict(raw), n_steps=20, free=False):
        assert found.decisions["touching"] == 0
        assert found.passed
