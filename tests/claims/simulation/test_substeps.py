"""Steps that are divided where no solution is found or an impact is not resolved, and their derivatives."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fuzz.default_drops import drop
from support.compiled_runs import by_terms
from support.places import TESTS
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective
from support.tiers import long_case

from add.adjoint import evaluate, pushforward, value_and_gradient
from add.errors import SolverError
from add.kernels.contact_pairs import ACTIVE, BITS, SLIP, STICKS
from add.kernels.rotation import left_jacobian
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import Energies
from add.simulation.bdf import BDF
from add.simulation.impacts import UNRESOLVED
from add.simulation.run import Trajectory
from add.simulation.substeps import whole_steps

FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
#: Beyond pi within the impact.
TURNED = np.array([0.05, 0.94, 0.31, 0.1])


def thrown(integrator: str, law: str, **changes: Any) -> dict[str, Any]:
    """A flat box, thrown onto a floor fast enough to move through it in a step; it turns beyond pi."""
    return {
        "schema": "add-scene/1",
        "time": {
            "dt": 0.01,
            "steps": 8,
            "integrator": integrator,
            "substeps": "auto",
            "newton": {"atol": 1e-12, "rtol": 1e-13, "max_iterations": 100},
        }
        | changes,
        "bodies": {
            "box": {
                "type": "rigid",
                "geometry": {"shape": "box", "size": [0.12, 0.1, 0.03]},
                "mass": 0.4,
                "position": [0, 0, 0.14],
                "orientation": (TURNED / np.linalg.norm(TURNED)).tolist(),
                "velocity": [0.8, 0.3, -3.0],
                "angular_velocity": [11.0, 4.3, 1.4],
            }
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0.05, 1]}},
        "contact": {
            "friction": 0.8 if law == "hybrid" else 0.4,
            "friction_law": law,
            "stiffness": 2e5,
            "damping": 100,
            "onset": 0.002,
            "damping_ramp": 0.002,
        },
    }


def swung(integrator: str, height: float, **changes: Any) -> dict[str, Any]:
    """A light link that spins and carries a heavy one: the coordinates of the tree are those of the light one."""
    links = {
        name: {"mass": mass, "shapes": [{"geometry": {"shape": "capsule", "radius": 0.05, "half_length": 0.12},
                                         "position": [0, 0, -0.12]}]}
        for name, mass in (("light", 0.1), ("heavy", 3.0))
    }  # fmt: skip
    hinge = {"type": "hinge", "parent": "light", "axis": [1, 0, 0], "position": [0, 0, -0.24], "rate": -50}
    raw = thrown(integrator, "linear", **changes)
    raw["time"]["dt"] = 0.006
    raw["contact"]["between_bodies"] = False
    raw["bodies"] = {
        "tree": {"type": "articulated", "base": "free", "links": links, "joints": {"light": {}, "heavy": hinge},
                 "position": [0, 0, height], "velocity": [0, 0, -2.0], "angular_velocity": [60, 0, 0]}
    }  # fmt: skip
    return raw


def gain(of: BuiltScene, trajectory: Trajectory) -> float:
    """Energy that a run gains, as a share of that of the start."""
    steps = range(trajectory.n_steps + 1)
    energies = [sum(Energies(of, of.theta).at(trajectory.kinematics(k)).values()) for k in steps]
    return max(energies) / energies[0] - 1.0


def divided(trajectory: Trajectory) -> list[int]:
    return [len(record.inner) for record in trajectory.records]


def built(raw: dict[str, Any]) -> BuiltScene:
    return scene_from_dict(raw).build()


def across(of: BuiltScene) -> BuiltScene:
    """The scene with steps that look across impacts."""
    return replace(of, simulation=replace(of.simulation, stepper=whole_steps(of.simulation.stepper)))


def test_spins_are_angular_velocities() -> None:
    """Also of rotation vectors that are tiny or zero."""
    impacts, rng = built(thrown("bdf2", "linear")).simulation.stepper.impacts, np.random.default_rng(0)
    for size in (0.0, 1e-9, 1e-4, 0.1, 3.0):
        x, v = size * rng.normal(size=(2, 6)), rng.normal(size=(2, 6))
        wanted = [[left_jacobian(w) @ rate] for w, rate in zip(x[:, 3:], v[:, 3:], strict=True)]
        assert np.allclose(impacts.spins(x, v), wanted, rtol=0.0, atol=1e-14)


def test_a_fall_is_not_sudden() -> None:
    """What changes velocities by as much as in the step before is none, and the end of it is."""
    stepper = built(thrown("bdf2", "linear")).simulation.stepper
    change = np.full((4, stepper.impacts.lift.rows.n), 10.0)
    assert not stepper.impacts.sudden(change, stepper.dt, np.ones(1, dtype=bool), 0.02).any()
    change[2:] = -10.0
    assert stepper.impacts.sudden(change, stepper.dt, np.ones(1, dtype=bool), 0.02).tolist() == [False, True, False]


def test_a_step_that_stops_the_end_of_a_plank_is_divided() -> None:
    """Its middle hardly moves; in a whole step it went into the block on it, with forty times the energy."""
    plank = {"type": "rigid", "geometry": {"shape": "box", "size": [0.2387174, 0.02387174, 0.005967935]},
             "density": 234.3596, "position": [0, 0, 0.02709442], "collision": {"spacing": 0.005967935}}  # fmt: skip
    block = {"type": "rigid", "geometry": {"shape": "box", "size": [0.0179038, 0.0179038, 0.0179038]},
             "density": 1588.058, "position": [0.09548696, 0, 0.1038122]}  # fmt: skip
    log = {"shape": "cylinder", "radius": 0.01193587, "half_length": 0.03580761, "center": [0, 0, 0.01193587],
           "orientation": [np.sqrt(0.5), np.sqrt(0.5), 0, 0]}  # fmt: skip
    of = built({
        "schema": "add-scene/1", "time": {"dt": 0.007183807, "steps": 23}, "bodies": {"plank": plank, "block": block},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}, "log": log},
        "contact": {"friction": 0.09520667},
    })  # fmt: skip
    trajectory = of.run()
    assert max(divided(trajectory)) >= 16 and gain(of, trajectory) < 1e-3


@pytest.mark.parametrize("law", ["linear", "tanh", "hybrid"])
@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_gradients_go_through_divided_steps(integrator: str, law: str) -> None:
    simulation = built(thrown(integrator, law)).simulation
    objective = RoughObjective(np.random.default_rng(0).normal(size=simulation.system.n))
    trajectory = check_gradient_of_run(simulation, objective)
    assert max(divided(trajectory)) >= 16
    assert any(n and record.charts.size for n, record in zip(divided(trajectory), trajectory.records, strict=True))
    bits = np.concatenate([part.decisions[0][:, BITS] for record in trajectory.records for part in record.inner])
    wanted = {"linear": [ACTIVE, SLIP], "tanh": [ACTIVE], "hybrid": [ACTIVE, SLIP, STICKS]}[law]
    assert all((bits & bit).any() for bit in wanted)


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_swings_of_light_links_are_divided(integrator: str) -> None:
    """Nothing touches; in whole steps of a third of a radian the tree gains energy."""
    gains = {}
    for way in ("off", "auto", None):
        of = built(swung(integrator, 3.0, substeps=way, steps=60))
        trajectory = of.run()
        gains[way] = gain(of, trajectory)
        assert not any(record.decisions[0].size for record in trajectory.records)
        assert any(divided(trajectory)) == (way != "off")
    assert gains["auto"] < 0.02 and gains[None] < 0.02 and gains["off"] > 0.1


#: Drops with numbers of contact that gained energy, in how many steps: two whose first guess leads to a second solution
#: or to none, a capsule that turns by a radian a step, trees that swing, soft bodies whose nodes stop at once.
GAINED = {5589: 8, 91266: 82, 5894: 140, 5967: 64, 91083: 20, 122371: 200}


@pytest.mark.parametrize("seed", GAINED)
def test_drops_with_given_numbers_gain_nothing(seed: int) -> None:
    raw = drop(seed)
    assert raw["contact"]["stiffness"]
    of, n = built(raw), GAINED[seed]
    trajectory = of.run(n_steps=n)
    assert any(divided(trajectory)) and gain(of, trajectory) < 0.01
    assert gain(of, across(of).run(n_steps=n)) > 0.03 or seed == 5589  # which goes astray behind its eighth step


@pytest.mark.parametrize("seed", [5967, 91083])
def test_gradients_go_through_what_is_divided_with_given_numbers(seed: int) -> None:
    """A tree that swings, and a soft body whose nodes stop: the sweeps and replayed differences agree."""
    raw = drop(seed)
    raw["time"]["newton"] = {"atol": 1e-12, "rtol": 1e-13, "max_iterations": 100}
    simulation = built(raw).simulation
    steps = {5967: 59, 91083: 13}[seed]
    objective = RoughObjective(np.random.default_rng(0).normal(size=simulation.system.n))
    theta = simulation.theta
    _, trajectory = evaluate(simulation, objective, n_steps=steps)
    assert max(divided(trajectory)) > 1
    reverse = value_and_gradient(simulation, objective, n_steps=steps)
    direction = np.random.default_rng(1).normal(size=theta.size) * np.abs(theta)
    (slope,) = pushforward(simulation, trajectory, theta, [direction]).derivative(objective, trajectory, theta)
    assert reverse.gradient @ direction == pytest.approx(slope, rel=1e-9)
    h = 1e-7
    ends = [
        evaluate(simulation, objective, theta + s * direction, replay=trajectory.replay, n_steps=steps)[0]
        for s in (h, -h)
    ]
    assert (ends[0] - ends[1]) / (2.0 * h) == pytest.approx(slope, rel=1e-5)


def test_gradients_go_through_divided_steps_of_trees() -> None:
    simulation = built(swung("bdf2", 0.45, steps=3)).simulation
    trajectory = check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(0).normal(size=7)))
    touching = [any(part.decisions[0].size for part in record.inner) for record in trajectory.records]
    assert any(touching) and any(n and not touch for n, touch in zip(divided(trajectory), touching, strict=True))


def landed(integrator: str, **changes: Any) -> dict[str, Any]:
    """A cube that lands flat: many points are far stiffer than one."""
    raw = thrown(integrator, "linear", **changes)
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "collision": {"spacing": 0.012}}
    raw["bodies"]["box"] = box | {"mass": 1.0, "position": [0, 0, 0.08], "velocity": [0.1, 0, -0.9]}
    raw["obstacles"]["floor"]["normal"] = [0, 0, 1]
    raw["contact"] |= {"stiffness": 1e5, "damping": 300}
    return raw


def test_a_flat_landing_gains_nothing() -> None:
    """Velocities from two steps point up while the box goes down, and damping presses it in; bdf1 has none of it."""
    for way in ("off", None, "auto"):
        of = built(landed("bdf2", substeps=way, steps=20))
        trajectory = of.run()
        assert any(divided(trajectory)) and gain(of, trajectory) < 1e-3
    assert gain(of, across(of).run()) > 1.0
    assert max(divided(trajectory)) == 1 and divided(trajectory).count(0) > 15
    assert np.abs(trajectory.v[-1][2]) < 1e-4
    assert not any(divided(built(landed("bdf1")).run())), "its whole steps are such steps"


def test_a_flat_landing_beside_a_tree_is_seen() -> None:
    """Links that turn slowly are not looked at with numbers given: their frames are not asked for."""
    alone, beside = landed("bdf2", substeps=None), landed("bdf2", substeps=None)
    tree = swung("bdf2", 3.0)["bodies"]["tree"]
    tree["joints"]["heavy"]["rate"] = 0
    beside["bodies"] = {"tree": tree | {"angular_velocity": [0, 0, 0], "position": [2, 0, 3]}, **beside["bodies"]}
    runs = [built(raw) for raw in (alone, beside)]
    ends = [of.run() for of in runs]
    stepper = runs[1].simulation.stepper
    assert not stepper.impacts.by_coordinates and stepper.impacts.still(np.array(ends[1].v), stepper.dt)
    assert divided(ends[0]) == divided(ends[1]) and max(divided(ends[0])) == 1


@pytest.mark.parametrize("way", ["auto", None])
def test_gradients_go_through_a_flat_landing(way: str | None) -> None:
    simulation = built(landed("bdf2", substeps=way)).simulation
    objective = RoughObjective(np.random.default_rng(0).normal(size=simulation.system.n))
    trajectory = check_gradient_of_run(simulation, objective)
    assert max(divided(trajectory)) == 1


def test_the_step_behind_a_divided_one_looks_back_to_one_state() -> None:
    trajectory = built(thrown("bdf2", "linear")).run()
    order = [len(record.alpha) for record in trajectory.records]
    parts = divided(trajectory)
    for before, n, own in zip(parts[1:], parts[2:], order[2:], strict=False):
        assert own == (1 if before or n else 2)
    assert {1, 2} <= set(order[1:])


def test_a_run_goes_on_behind_a_divided_step_to_the_bit() -> None:
    simulation = built(thrown("bdf2", "hybrid")).simulation
    trajectory = simulation.run()
    at = 1 + next(k for k, n in enumerate(divided(trajectory)) if n)
    again = simulation.run(state=trajectory.state(at))
    assert np.array_equal(again.q, trajectory.q[at:]) and np.array_equal(again.v, trajectory.v[at:])


def test_compiled_parts_are_those_of_the_terms() -> None:
    simulation = built(thrown("bdf2", "linear")).simulation
    assert not simulation.by_terms
    one, other = simulation.run(), by_terms(simulation).run()
    assert divided(one) == divided(other)
    assert np.allclose(one.q, other.q, rtol=0.0, atol=1e-9)


def test_what_is_called_calm_is_neither_unresolved_nor_sudden() -> None:
    """Changes of a tree and of a flat box from tiny to violent, with contact everywhere."""
    raw, rng = swung("bdf2", 3.0), np.random.default_rng(0)
    raw["bodies"]["box"] = thrown("bdf2", "linear")["bodies"]["box"]
    stepper = built(raw).simulation.stepper
    impacts, dt, touching = stepper.impacts, stepper.dt, np.ones(1, dtype=bool)
    found = []
    for size in np.geomspace(1e-3, 10.0, 200):
        velocities = size * (2.0 * rng.normal(size=impacts.lift.rows.n) + rng.normal(size=(5, impacts.lift.rows.n)))
        change, v = np.diff(velocities, axis=0), velocities[2:]
        least = 0.02 if size < 1.0 else np.inf
        x = rng.normal(size=impacts.lift.rows.n) + dt * np.cumsum(velocities[1:], axis=0)
        spun = np.diff(impacts.spins(x, velocities[1:]), axis=0)
        quiet = bool((impacts.moved(change[1:], spun, x[1:], v, dt, touching) <= UNRESOLVED).all())
        quiet &= not impacts.sudden(change, dt, touching, least).any()
        found.append((impacts.calm(change, v, dt, least), quiet))
    assert (True, False) not in found
    assert {(True, True), (False, True), (False, False)} == set(found)
    assert sum(calm for calm, _ in found) > 0.5 * sum(quiet for _, quiet in found)


def test_a_damping_that_springs_outweigh_feeds_nothing() -> None:
    """Given numbers: below a thousandth of the stiffness times dt steps are whole ones, as they are without any."""
    raw = thrown("bdf1", "linear")
    del raw["time"]["substeps"]
    runs = []
    for damping in (300.0, 3.0, 1.0, 0.0):
        raw["contact"]["damping"] = damping
        runs.append(built(raw).run())
    assert [any(n > 1 for n in divided(run)) for run in runs] == [True, True, False, False]
    assert any(record.decisions[0].size for record in runs[2].records), "it touches"


def test_nothing_is_divided_where_nothing_meets() -> None:
    """Without an impact the steps are those of a scene without substeps, to the bit."""
    raw = thrown("bdf2", "linear", steps=3)
    runs = [built(raw | {"time": raw["time"] | {"substeps": way}}).run() for way in ("auto", "off")]
    assert np.array_equal(runs[0].q, runs[1].q)
    assert not any(divided(runs[0]))


@pytest.mark.parametrize("law", ["linear", "hybrid"])
def test_gradients_go_through_whole_steps_of_impacts(law: str) -> None:
    """None is divided, some look back once."""
    simulation = built(thrown("bdf2", law, substeps="off")).simulation
    objective = RoughObjective(np.random.default_rng(0).normal(size=simulation.system.n))
    trajectory = check_gradient_of_run(simulation, objective)
    assert set(divided(trajectory)) == {0, 1}


def test_a_kink_of_the_loose_solution_is_left() -> None:
    """Nearly solved with the linear law a small cylinder ends at a kink; held or creeping, none of the step is near."""
    body = {
        "type": "rigid", "density": 278.06682943812564,
        "geometry": {"shape": "cylinder", "radius": 0.007782190779135304, "half_length": 0.0073179017174020465},
        "position": [-0.868, -0.108, 0.00731], "orientation": [0.9985607, 1.2979e-05, 4.8587e-04, -0.0536307],
        "velocity": [-0.642, 0.0861, -0.151], "angular_velocity": [-10.3, -80.1, -0.201],
    }  # fmt: skip
    raw = thrown("bdf1", "hybrid") | {"bodies": {"a": body}, "obstacles": FLOOR}
    raw["time"] = {
        "dt": 0.016258,
        "steps": 1,
        "integrator": "bdf1",
        "substeps": "off",
        "newton": {"max_iterations": 20},
    }
    raw["contact"] |= {"friction": 0.4377, "stiffness": 12189, "damping": 10.182, "onset": 1e-3, "damping_ramp": 1e-3}
    assert built(raw).run().n_steps == 1


@pytest.mark.parametrize("law", [long_case("linear"), "hybrid"])  # under tanh the step has a solution
def test_gradients_go_through_a_step_that_had_no_solution(law: str) -> None:
    """Of a scene that gives its numbers and asks for nothing: one step is divided, all others are whole."""
    raw = json.loads((TESTS / "claims" / "fuzz" / "drops" / "drop_26.json").read_text())
    raw["contact"]["friction_law"] = law
    simulation = built(raw | {"time": raw["time"] | {"steps": 12}}).simulation
    assert not simulation.stepper.impacts.eager
    objective = RoughObjective(np.random.default_rng(0).normal(size=simulation.system.n))
    trajectory = check_gradient_of_run(simulation, objective)
    (k,) = np.flatnonzero(divided(trajectory))
    assert 0 < k < trajectory.n_steps - 1
    assert any(part.decisions[0].size for part in trajectory.records[k].inner), "it touches"


@pytest.mark.parametrize("number", [26, 49])
def test_steps_without_solution_are_divided(number: int) -> None:
    """Damping that jumps where a corner touches leaves these steps no solution; parts of them have one."""
    raw = json.loads((TESTS / "claims" / "fuzz" / "drops" / f"drop_{number}.json").read_text())
    raw["time"]["substeps"] = "auto"
    trajectory = built(raw).run()
    assert trajectory.n_steps == raw["time"]["steps"]
    assert sum(n > 0 for n in divided(trajectory)) == 1


def test_a_whole_step_without_a_solution_is_one_of_bdf1_and_none_looks_across_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where bdf2 finds none, with `off`: the next step begins anew behind the impact, and the run goes on."""
    raw = thrown("bdf2", "linear", substeps="off", steps=12)
    simulation = scene_from_dict(raw).build().simulation
    steps, fails = BDF.steps, 9

    def failing(self: BDF, assembler: Any, state: Any, theta: Any, n: int) -> Any:
        if self.bdf_order == 2 and state.step <= fails < state.step + n:
            if state.step == fails:
                raise SolverError("no solution")
            n = fails - state.step
        return steps(self, assembler, state, theta, n)

    monkeypatch.setattr(BDF, "steps", failing)
    found = simulation.run(n_steps=12)
    assert [len(record.inner or ()) for record in found.records[8:]] == [0, 1, 0, 0]
    assert [len(record.alpha) for record in found.records[8:]] == [2, 1, 1, 2]
