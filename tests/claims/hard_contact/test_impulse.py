"""Contact in velocities: closed forms, gradients of whole runs through all modes, errors."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.impulse_scenes import CUBE, G, end_and_slopes, scene
from support.places import ROOT, SPECS
from support.rigid_models import DT, NEWTON, PAIRS
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective

import add
from add.contact import FrictionLaw
from add.errors import InputError, SolverError
from add.hard_contact import ImpulseOptions, with_impulse_contact
from add.hard_contact.impulse_coupling import CarriedImpulses
from add.kernels.cone_modes import SEPARATE, SLIDE, STICK
from add.simulation import BDF
from add.simulation.run import Simulation, Trajectory

RING = ROOT / "data" / "meshes" / "ring.obj"
ANALYTIC = SPECS / "hard-contact" / "reference" / "analytic"


def reference(name: str) -> dict:
    """Return a closed form, or skip."""
    path = ANALYTIC / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no reference at {path}")
    return json.loads(path.read_text())


def modes(trajectory: Trajectory) -> tuple[Counter, int]:
    """Return how often each mode holds, and how often a pair changes its own between two steps."""
    seen, before, switches = Counter(), {}, 0
    for record in trajectory.records:
        kept = CarriedImpulses.of(record.carry)
        now = dict(zip(kept.near.pair.tolist(), kept.modes.tolist(), strict=True))
        seen.update(now.values())
        switches += sum(before.get(pair, SEPARATE) != mode for pair, mode in now.items())
        before = now
    return seen, switches


@pytest.mark.parametrize("pair", PAIRS)
def test_gradient_of_run(pair: str) -> None:
    """Nodes and rigid bodies on the world, on rigid bodies, on moving ones: reverse, forward, replayed differences."""
    model, simulation = PAIRS[pair](FrictionLaw.LINEAR, BDF(DT, 1, newton=NEWTON))
    simulation = with_impulse_contact(simulation)
    seen, switches = modes(simulation.run())
    assert seen[SLIDE] and switches
    check_gradient_of_run(simulation, RoughObjective(np.random.default_rng(0).normal(size=model.system.n)))


def test_replay_follows_slip_that_turns_far() -> None:
    """A direction along which full Newton steps on held modes went to and fro: slip of 0.2 m/s comes down to 0.01."""
    _, simulation = PAIRS["soft-on-rigid"](FrictionLaw.LINEAR, BDF(DT, 1, newton=NEWTON))
    simulation = with_impulse_contact(simulation)
    theta, run = simulation.theta, simulation.run()
    direction = np.random.default_rng(32).normal(size=theta.size) * np.where(theta != 0.0, np.abs(theta), 0.1)
    replayed = simulation.run(theta + 2e-3 * direction, replay=run.replay)
    assert modes(replayed) == modes(run)


def test_sliding_cube_stops_where_it_should() -> None:
    """The discrete answer: v_k = v_0 - k mu g h while positive, then exactly zero; with its derivatives."""
    data = reference("sliding_cube_stop")
    given = data["inputs"]
    for row in data["one_step_implicit"]:
        h, n = row["h"], row["sliding_steps"]
        raw = scene(CUBE | {"velocity": [given["v0"], 0, 0]}, dt=h, steps=n + 20, friction=given["mu"])
        x, slopes = end_and_slopes(raw, 0, "bodies.body.velocity", "contact.friction", "bodies.body.mass")
        assert x == pytest.approx(row["distance"], abs=1e-10)
        assert slopes == pytest.approx([row["d_by_v0"], row["d_by_mu"], 0.0], abs=1e-9)


@pytest.mark.parametrize("angle", np.linspace(0.0, np.pi / 2, 7))
def test_sliding_is_isotropic(angle: float) -> None:
    raw = scene(CUBE | {"velocity": [2.0 * np.cos(angle), 2.0 * np.sin(angle), 0]}, dt=0.005, steps=140)
    end = add.scene_from_dict(raw).build().run().state(140).q[0]
    assert np.hypot(end[0], end[1]) == pytest.approx(0.5046869, abs=1e-12)
    assert np.abs(end[3:]).max() < 1e-12


def test_incline_near_the_critical_angle() -> None:
    """Below it nothing moves, to the last bit but rounding; beyond it the discrete answer."""
    for row in reference("incline_at_critical_angle")["rows"]:
        angle, h = row["angle"], row["h"]
        gravity = [G * np.sin(angle), 0.0, -G * np.cos(angle)]
        raw = scene(CUBE, dt=h, steps=round(row["T"] / h), friction=0.5, gravity=gravity)
        x, (by_mu,) = end_and_slopes(raw, 0, "contact.friction")
        assert x == pytest.approx(row["x_one_step_implicit"], abs=1e-10)
        assert by_mu == pytest.approx(row["dx_dmu_one_step"], abs=1e-8)


@pytest.mark.parametrize("e", [0.0, 0.4, 0.8, 1.0])
def test_bounces(e: float) -> None:
    """A ball returns with e times the speed of its approach; with e = 1 it never gains height."""
    ball = {"geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.2, "position": [0, 0, 1.05]}
    pairs = [{"body": "body", "obstacle": "floor", "restitution": e}] if e else []
    built = add.scene_from_dict(scene(ball, dt=1e-3, steps=1500, friction=0.0, pairs=pairs)).build()
    run = built.run()
    speed = np.array([state.v[0, 2] for state in (run.state(k) for k in range(1501))])
    hits = np.flatnonzero((speed[:-1] < -0.1) & (speed[1:] > -1e-12))
    assert hits.size >= 1
    for k in hits:
        # The gravity of its step acts before and after the bounce.
        assert speed[k + 1] == pytest.approx(-e * speed[k], abs=(1.0 + e) * G * 1e-3 if e else 0.06)
    height = [run.state(k).q[0, 2] - 0.05 for k in range(1501)]
    assert min(height) > -1e-9 and max(height) <= 1.0
    energy = np.array(height) * G + 0.5 * speed**2
    assert np.diff(energy).max() <= 1e-12


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_gradient_of_a_tumbling_cube(e: float) -> None:
    """Every number of theta, the restitution and the centre of mass among them, through impacts, slip and stick."""
    body = CUBE | {
        "position": [0, 0, 0.25], "orientation": [0.9621028, 0.2025480, 0.1519110, 0.1012740],
        "velocity": [0.8, 0.1, -0.5], "angular_velocity": [1, 5, 2],
    }  # fmt: skip
    pairs = [{"body": "body", "obstacle": "floor", "restitution": e}] if e else []
    raw = scene(body, dt=0.004, steps=90, friction=0.1 if e else 0.3, pairs=pairs)
    raw["bodies"]["body"]["geometry"] = {"shape": "box", "size": [0.2, 0.15, 0.1]}
    built = add.scene_from_dict(raw).build()
    run = built.run()
    seen, switches = modes(run)
    assert seen[SLIDE] and switches >= 2
    impacts = sum(CarriedImpulses.of(record.carry).near.impact.sum() for record in run.records)
    assert bool(impacts) is (e > 0.0)
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(1).normal(size=6)))


def test_gradient_with_pyramids() -> None:
    """Friction in two tangents: on a floor, and on a ball that rolls on, whose normals take the tangents along."""
    body = CUBE | {
        "position": [0, 0, 0.25], "orientation": [0.9621028, 0.2025480, 0.1519110, 0.1012740],
        "velocity": [0.8, 0.1, -0.5], "angular_velocity": [1, 5, 2],
    }  # fmt: skip
    raw = scene(body, dt=0.004, steps=70, friction=0.3)
    raw["contact"]["friction_cone"] = "pyramid"
    raw["obstacles"]["post"] = {"shape": "sphere", "radius": 0.08, "center": [0.28, 0.05, 0.03]}
    built = add.scene_from_dict(raw).build()
    seen, switches = modes(built.run())
    assert len(seen) >= 5 and switches
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(1).normal(size=6)))


def test_pyramid_brakes_more_across_its_axes() -> None:
    """By sqrt(2) at 45 degrees, where the cone has one distance for all directions."""
    way = {}
    for cone in ("round", "pyramid"):
        for angle in (0.0, np.pi / 4):
            raw = scene(CUBE | {"velocity": [2.0 * np.cos(angle), 2.0 * np.sin(angle), 0]}, dt=0.005, steps=140)
            raw["contact"]["friction_cone"] = cone
            end = add.scene_from_dict(raw).build().run().state(140).q[0]
            way[cone, angle] = np.hypot(end[0], end[1])
    assert way["pyramid", 0.0] == pytest.approx(way["round", 0.0], abs=1e-12)
    # Steps are counted: the way is v^2/(2 mu g) + v dt/2 less what the last step has too much.
    assert way["pyramid", np.pi / 4] == pytest.approx(way["round", np.pi / 4] / np.sqrt(2.0), rel=0.005)


def test_gradient_through_sticking() -> None:
    """A cube that stops sticks on redundant corners: loads, tangential starts and friction change nothing then."""
    raw = scene(CUBE | {"velocity": [0.3, 0.1, 0.0]}, dt=0.005, steps=40)
    built = add.scene_from_dict(raw).build()
    run = built.run()
    seen, _ = modes(run)
    assert seen[SLIDE] and seen[STICK]
    assert CarriedImpulses.of(run.records[-1].carry).modes.tolist() == [STICK] * 4
    check_gradient_of_run(built.simulation, RoughObjective(np.random.default_rng(2).normal(size=6)))


@pytest.mark.parametrize(
    ("boxes", "steps"), [(4, 200), pytest.param(10, 1000, marks=pytest.mark.slow)], ids=["four, 2 s", "ten, 10 s"]
)
def test_stack_rests(boxes: int, steps: int) -> None:
    """Boxes, each a little smaller than the one below: no drift, no speed."""
    bodies = {
        f"b{k}": {"type": "rigid", "geometry": {"shape": "box", "size": [0.4 - 0.02 * k] * 2 + [0.1]},
                  "mass": 1.0 + k % 3, "position": [0.002 * (k % 2), 0, 0.05 + 0.1 * k]} for k in range(boxes)
    }  # fmt: skip
    raw = scene({}, dt=0.01, steps=steps, friction=0.5)
    raw["bodies"] = bodies
    built = add.scene_from_dict(raw).build()
    run = built.run()
    start, end = run.state(0), run.state(steps)
    assert np.abs(end.q[0] - start.q[0]).max() < 1e-9
    assert np.abs(end.v[0]).max() < 1e-9


def test_start_inside_the_floor_is_slow() -> None:
    """A body that starts 0.1 m deep comes up with the speed of the limit, not 20 m/s; scenes refuse such a start."""
    raw = scene(CUBE | {"position": [0, 0, 0.0]}, dt=0.005, steps=3)
    with pytest.raises(InputError, match=r"0\.1 m deep inside floor") as refused:
        add.scene_from_dict(raw).build()
    assert refused.value.place == "bodies.body"
    for options, speed in ((ImpulseOptions(stabilisation_speed=0.5), 0.5), (ImpulseOptions(), 1.0)):
        found = with_impulse_contact(_penalty(raw), options).run()
        assert found.state(1).v[0, 2] == pytest.approx(speed, abs=1e-9)


def _penalty(raw: dict) -> Simulation:
    """Return the scene with linear friction, whose contact a caller replaces."""
    raw = json.loads(json.dumps(raw))
    raw["contact"]["friction_law"] = "linear"
    return add.scene_from_dict(raw).build().simulation


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        ({"integrator": "bdf2"}, "time.integrator", "'impulse' steps velocities by bdf1"),
        ({"initial": "equilibrium"}, "time.initial", "starts from a given state"),
    ],
)
def test_refused_scenes(change: dict, place: str, message: str) -> None:
    raw = scene(CUBE, dt=0.01, steps=3)
    raw["time"] |= change
    with pytest.raises(InputError, match=message) as caught:
        add.scene_from_dict(raw)
    assert caught.value.place == place


def test_stiffness_is_no_number() -> None:
    """No motion depends on it: it is not offered, and a parameter that names it is refused by name."""
    raw = scene(CUBE, dt=0.01, steps=3, pairs=[{"body": "body", "obstacle": "floor", "restitution": 0.5}])
    raw["contact"] |= {"stiffness": 2e4, "damping": 3.0, "stick_stiffness": 10.0}
    built = add.scene_from_dict(raw).build()
    named = [entry.name for entry in built.numbers.layout.entries if entry.name.startswith("contact")]
    assert named == ["contact.friction", "contact.pairs.0.restitution"]
    for name in ("stiffness", "damping", "stick_stiffness"):
        with pytest.raises(InputError, match=f"by impulses has no {name.replace('_', ' ')}"):
            built.numbers.resolve(f"contact.{name}")
    raw["markers"] = {"c": {"body": "body", "center_of_mass": True}}
    raw["objective"] = [{"type": "point", "marker": "c", "target": [0, 0, 0], "time": "end"}]
    raw["parameters"] = [{"path": "contact.stiffness"}]
    with pytest.raises(InputError, match="by impulses has no stiffness") as caught:
        add.scene_from_dict(raw).inverse_problem()
    assert caught.value.place == "parameters.0.path"


@pytest.mark.parametrize("law", ["exact", "impulse"])
def test_closed_meshes_are_refused(law: str) -> None:
    """Their distances are not evaluated by these steppers."""
    raw = scene(CUBE, dt=0.01, steps=3)
    raw["contact"]["friction_law"] = law
    raw["obstacles"]["rock"] = {"shape": "mesh", "file": str(RING)}
    with pytest.raises(InputError, match="knows no closed meshes") as caught:
        add.scene_from_dict(raw)
    assert caught.value.place == "obstacles.rock"


@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_refused_restitution(value: float) -> None:
    raw = scene(CUBE, dt=0.01, steps=3, pairs=[{"body": "body", "obstacle": "floor", "restitution": value}])
    with pytest.raises(InputError, match=r"contact\.pairs\.0\.restitution"):
        add.scene_from_dict(raw)


def test_unsolved_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step without a certified solution names step, time, contacts and modes, and keeps the steps before."""
    from add.hard_contact import impulse_part, impulse_solve

    built = add.scene_from_dict(scene(CUBE | {"position": [0, 0, 0.12]}, dt=0.01, steps=30)).build()
    whole = impulse_solve.solve

    def poor(*args, **options):
        found = whole(*args, **options)
        return found if not found.cones.kind.size else replace(found, natural_map=1e-3)

    monkeypatch.setattr(impulse_solve, "solve", poor)
    monkeypatch.setattr(impulse_part, "at_hand", lambda: False)
    with pytest.raises(SolverError, match=r"step \d+ \(t=.*\): no solution of the contacts.*4 near.*stick") as caught:
        built.run()
    assert caught.value.trajectory.n_steps > 2


def test_a_step_without_solution_is_halved() -> None:
    """A thin body that spins fast: its operator is far from symmetric. The halves are solved, and differentiated."""
    raw = json.loads((Path(__file__).parent / "impulse_capsule.json").read_text())
    simulation = add.scene_from_dict(raw).build().simulation
    trajectory = simulation.run()
    assert trajectory.n_steps == 36
    k = next(k for k, record in enumerate(trajectory.records) if len(record.inner) > 1)
    step, stepper, assembler = trajectory.step(k), simulation.differentiable, simulation.assembler()
    found = simulation.step_derivatives().jacobians(step).transition
    assert np.abs(found).max() > 1.0

    def after(column: int, size: float) -> np.ndarray:
        q, v = step.before.q.copy(), step.before.v.copy()
        (q if column < 6 else v)[0, column % 6] += size
        state = stepper.step(assembler, replace(step.before, q=q, v=v), simulation.theta, step.record)[0]
        return np.concatenate([state.q[0], state.v[0]])

    for column in range(12):
        slope = (after(column, 1e-7) - after(column, -1e-7)) / 2e-7
        assert slope == pytest.approx(found[:12, column], rel=1e-5, abs=1e-5 * np.abs(found).max())
