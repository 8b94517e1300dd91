"""Compiled steps against those of the terms, which are their definition."""

import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compiled_runs import by_terms
from support.places import SCENES
from support.processes import FORKS
from support.rigid_cases import chart_changes
from support.rigid_models import PAIRS, linkage
from support.small_models import two_bodies
from support.tiers import long_case

import add.compiled.run
from add.adjoint import Checkpoints, Cotangents, StoreAll, pullback, pushforward, value_and_gradient
from add.commands.check_gradient import probe
from add.compiled.run import CompiledRun
from add.compiled.steps import take_steps
from add.contact import BodyContact, MeshContact
from add.contact.formulas import FrictionLaw
from add.contact.limits import CollisionLimit
from add.equations.term import Constraint, DecidingTerm, StickConstraint, Term
from add.geometry import HEX8
from add.kernels.contact_pairs import PAIR
from add.scene import apply_overrides, load_scene, scene_from_dict
from add.simulation import BDF, StartUp
from add.simulation.bdf import state_after
from add.simulation.kept_states import Records
from add.simulation.run import Simulation, Trajectory
from add.simulation.substeps import whole_steps
from add.solve.step_equations import NewtonOptions
from add.terms.rigid_inertia import TreeInertia

#: Scenes that take compiled steps.
SMALL = (
    "rigid_ball_throw", "bouncing_throw", "strings_cube", "bands_cubes", "robot_rigid", "sheet_flip", "yeoh_strip",
    "ball_size",
)  # fmt: skip
#: And those of them whose matrices are sparse: contact, given motions, anchors and loads, three laws, weak springs.
SPARSE = ("ball_on_floor", "fig2_cylinder_tanh", "robot_soft_feet", "hung_load", "three_laws")

STEPPERS = {
    "bdf1": BDF(2e-3, 1),
    "bdf2": BDF(2e-3, 2),
    "straight-line": BDF(2e-3, 2, StartUp.STRAIGHT_LINE),
    "l1, reuse": BDF(2e-3, 2, newton=NewtonOptions(norm=1, reuse=0.3)),
}


def assert_same(simulation: Simulation, n_steps: int, tolerance: float = 1e-10) -> tuple[Trajectory, Trajectory]:
    """Runs, decisions, iterations, replays and pull-backs of random cotangents agree."""
    terms = by_terms(simulation)
    assert simulation.packed is not None, simulation.by_terms
    assert terms.packed is None
    found, expected = simulation.run(n_steps=n_steps), terms.run(n_steps=n_steps)
    scale = np.abs(expected.v).max() + 1.0
    assert np.abs(found.q - expected.q).max() < tolerance * scale
    assert np.abs(found.v - expected.v).max() < tolerance * scale
    for k, (mine, theirs) in enumerate(zip(found.records, expected.records, strict=True)):
        assert all(np.array_equal(a, b) for a, b in zip(mine.decisions, theirs.decisions, strict=True)), k
        assert np.array_equal(mine.charts, theirs.charts)
        assert mine.alpha == theirs.alpha
        assert mine.kin.t == theirs.kin.t
        assert mine.kin.step == theirs.kin.step
    for a, b in zip(found.states(), expected.states(), strict=True):
        assert np.abs(a.q - b.q).max() < tolerance * scale
        assert np.abs(a.v - b.v).max() < tolerance * scale
    rng = np.random.default_rng(3)
    cotangents = Cotangents(rng.normal(size=found.q.shape), rng.normal(size=found.q.shape))
    gradient = pullback(simulation, found, simulation.theta, cotangents)
    wanted = pullback(terms, expected, simulation.theta, cotangents)
    size = np.abs(wanted).max()
    assert size > 0.0
    assert np.abs(gradient - wanted).max() < 1e3 * tolerance * size
    replayed = simulation.run(n_steps=n_steps, replay=expected.replay)
    assert np.abs(replayed.q - expected.q).max() < 1e3 * tolerance * scale
    return found, expected


def assert_same_from_states(simulation: Simulation, run: Trajectory) -> None:
    """Steps from the states of a run agree to 1e-12, with their multipliers; so do pull-backs of the same run."""
    stepper = whole_steps(simulation.differentiable)
    terms, theta, dt = by_terms(simulation), simulation.theta, stepper.dt
    assert simulation.assembler().compiled is not None and terms.assembler().compiled is None
    both = [s.assembler() for s in (simulation, terms)]
    for state in list(run.states())[:-1:3]:
        (_, record), (_, wanted) = (stepper.step(assembler, state, theta) for assembler in both)
        assert record.report.iterations == wanted.report.iterations
        assert np.isclose(record.report.history[0], wanted.report.history[0], rtol=1e-9)
        size = np.abs(wanted.kin.q).max()
        assert np.abs(record.kin.q - wanted.kin.q).max() <= 1e-12 * size
        # Forces of multipliers are those of inertia: coordinates are rounded, and differ over dt^2.
        assert record.mu.size == wanted.mu.size == simulation.system.n_multipliers
        assert np.allclose(record.mu, wanted.mu, rtol=1e-9, atol=1e-12 * size / dt**2)
    bars = Cotangents(*np.random.default_rng(7).normal(size=(2, *run.q.shape)))
    gradient, wanted_one = (pullback(s, run, theta, bars) for s in (simulation, terms))
    assert np.abs(gradient - wanted_one).max() <= 1e-10 * np.abs(wanted_one).max()


def assert_same_tangents(simulation: Simulation, run: Trajectory) -> None:
    """Tangents along single numbers of theta and along all of them at once agree, on the same decisions."""
    theta, n = simulation.theta, simulation.theta.size
    directions = np.zeros((n, 14))
    chosen = np.linspace(0, n - 1, min(n, 12)).astype(int)
    directions[chosen, np.arange(chosen.size)] = 1.0
    directions[:, 12:] = np.random.default_rng(5).normal(size=(n, 2)) * np.abs(theta)[:, None]
    found, expected = (pushforward(s, run, theta, directions) for s in (simulation, by_terms(simulation)))
    assert expected.q[:12].any()
    size = np.abs([expected.q, expected.v]).max(axis=(0, 2, 3))[:, None, None]
    for mine, theirs in ((found.q, expected.q), (found.v, expected.v)):
        assert (np.abs(mine - theirs) <= 1e-9 * size + 1e-14).all()  # or nothing but rounding


@pytest.mark.parametrize("name", SMALL)
def test_scenes(name: str) -> None:
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    found, expected = assert_same(simulation, min(simulation.n_steps, 80))
    assert_same_tangents(simulation, simulation.run(n_steps=8))
    mine, theirs = ([r.report for r in run.records] for run in (found, expected))
    assert [r.iterations for r in mine] == [r.iterations for r in theirs]
    assert [r.status for r in mine] == [r.status for r in theirs]
    assert np.allclose([r.tolerance for r in mine], [r.tolerance for r in theirs], rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_matrices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers to the bit, backwards to round-off; tangents and single derivatives take those of the terms."""
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    assert simulation.packed is not None, simulation.by_terms
    assert simulation.packed.sparse
    with monkeypatch.context() as patch:
        patch.setattr(BDF, "_by_terms", None)  # a step that the terms had to take would be theirs, and an error here
        simulation.run(n_steps=12)
    found, expected = assert_same(simulation, 12)
    assert np.array_equal(found.q, expected.q)
    mine, theirs = ([r.report for r in run.records] for run in (found, expected))
    assert [(r.iterations, r.factorizations, r.status) for r in mine] == [
        (r.iterations, r.factorizations, r.status) for r in theirs
    ]
    directions = np.random.default_rng(5).normal(size=(simulation.theta.size, 2)) * simulation.theta[:, None]
    tangents, wanted = (pushforward(s, found, s.theta, directions) for s in (simulation, by_terms(simulation)))
    assert np.abs(tangents.q - wanted.q).max() <= 1e-9 * np.abs(wanted.q).max()
    if simulation.system.n < 300:
        ours, other = (s.step_derivatives().jacobians(found.step(5)) for s in (simulation, by_terms(simulation)))
        assert np.array_equal(ours.transition, other.transition)


@pytest.mark.parametrize("kind", ["gas", "volume"])
@pytest.mark.parametrize("sparse", [False, True])
def test_chambers(sparse: bool, kind: str) -> None:
    """A finger with a gas in it, or a volume, that a signal changes; a point of it is held, the other end pinned."""
    x, y, z = cells = (4, 3, 6) if sparse else (3, 3, 3)
    volume = 0.018 * 0.024 * 0.05 * (x - 2) * (y - 2) * (z - 2) / (x * y * z)
    air = {"type": kind, "pressure" if kind == "gas" else "volume": {"signal": "in"}}
    values = [101325, 150000] if kind == "gas" else [volume, 1.2 * volume]
    finger = {
        "type": "soft", "element": "hex8",
        "mesh": {"shape": "box", "size": [0.018, 0.024, 0.05], "divisions": list(cells),
                 "hollows": [[[1, 1, 1], [x - 1, y - 1, z - 1]]]},
        "material": {"model": "neo-hookean", "young": 250000, "poisson": 0.4, "density": 1070, "viscosity": 200},
        "pins": [{"where": {"box": {"min": [None, None, 0.024]}}}], "anchors": [{"at": [0.001, 0.002, -0.024]}],
        "chambers": {"air": air},
    }  # fmt: skip
    signal = {"type": "table", "times": [0, 0.1], "values": values}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.005, "steps": 20}, "bodies": {"b": finger}}
    raw["signals"] = {"in": signal}
    simulation = scene_from_dict(raw).build().simulation
    assert simulation.packed is not None, simulation.by_terms
    assert simulation.packed.sparse == sparse
    found, expected = assert_same(simulation, 20, 1e-11)
    assert_same_from_states(simulation, found)
    assert isinstance(found.records, Records) and next(found.records.blocks())[1] is not None, "a block of steps"
    assert [r.report.factorizations for r in found.records] == [r.report.factorizations for r in expected.records]
    if not simulation.packed.sparse:
        assert_same_tangents(simulation, found)


def test_threads_share_large_systems() -> None:
    """With several threads sweeps through steps with sparse matrices are shared, and so are not compiled."""
    simulation = replace(load_scene(SCENES / "hung_load.json").build().simulation, threads=2)
    assert simulation.assembler().compiled is not None
    assert simulation.assembler(sweeping=True).compiled is None
    run = simulation.run(n_steps=4)
    bars = Cotangents(np.ones_like(run.q), np.ones_like(run.q))
    shared, alone = (pullback(replace(simulation, threads=k), run, simulation.theta, bars) for k in (2, 1))
    assert np.abs(shared - alone).max() <= 1e-10 * np.abs(alone).max()


def test_an_adjustable_obstacle() -> None:
    scene = load_scene(SCENES / "rigid_ball_throw.json")
    changes = {"bodies.ball.position": [0, 0, 0.0505], "bodies.ball.velocity": [2, 0.3, -1]}
    for name in scene.obstacles:
        changes |= {f"obstacles.{name}.adjustable": True, f"obstacles.{name}.velocity": [0.1, 0.0, 0.2]}
    simulation = apply_overrides(scene, changes).build().simulation
    found, _ = assert_same(simulation, 60)
    assert any(d.size for r in found.records for d in r.decisions), "nothing touched"


@pytest.mark.parametrize("beside", ["a tin", "an arm", "a soft block", "two soft blocks"])
def test_sizes_that_are_numbers(beside: str) -> None:
    """Arrays of contact follow them, in systems of every sort: dense, with trees, sparse ones, and ones that change."""
    shape = {"shape": "cylinder", "radius": 0.06, "half_length": 0.04, "adjustable": True}
    tin = {"type": "rigid", "geometry": shape, "density": 500, "position": [0, 0, 0.041], "velocity": [0.2, 0.1, -0.5]}
    more: dict[str, Any] = {"other": tin | {"position": [0.02, 0.01, 0.122]}}
    if beside == "an arm":
        ball = {"geometry": {"shape": "sphere", "radius": 0.05}, "position": [0.2, 0, 0]}
        hinge = {"axis": [0, 1, 0], "position": [-0.2, 0, 0.13]}
        links = {"arm": {"mass": 0.3, "shapes": [ball]}}
        more = {"other": {"type": "articulated", "links": links, "joints": {"arm": hinge}}}
    elif "soft" in beside:
        rubber = {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 300}
        divisions, places = ([4, 4, 2], [0.107]) if beside == "a soft block" else ([1, 1, 1], [0.107, 0.159])
        mesh = {"shape": "box", "size": [0.1, 0.1, 0.05], "divisions": divisions}
        block = {"type": "soft", "material": rubber, "mesh": mesh}
        more = {f"block {k}": block | {"position": [0.0, 0.0, z]} for k, z in enumerate(places)}
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.002, "steps": 25}, "bodies": {"tin": tin} | more,
        "contact": {"stiffness": 1e3, "friction": 0.3},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
    }  # fmt: skip
    simulation = scene_from_dict(raw).build().simulation
    assert simulation.packed is not None, simulation.by_terms
    assert bool(simulation.packed.changing) is (beside == "two soft blocks")
    assert simulation.packed.sparse is (beside == "a soft block")
    term, *_ = simulation.packed.sized.values()
    assert isinstance(term, BodyContact) and term.sizes is not None
    runs = []
    for grown in (1.0, 1.03):
        theta = simulation.theta.copy()
        theta[term.sizes.growth.shapes[term.sizes.growth.shapes >= 0]] *= grown
        runs.append(assert_same(replace(simulation, theta=theta), 25 if "soft" not in beside else 8)[0])
    assert any(d.size for r in runs[1].records for d in r.decisions), "nothing touched"
    assert not np.array_equal(runs[0].q, runs[1].q)


def test_air() -> None:
    """On a closed surface, on a sheet, and on bodies as wholes, in gusts."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.3, 0.4]}, "density": 5,
           "angular_velocity": [1, 2, 3], "velocity": [1, 0, -1]}  # fmt: skip
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 0.05, "position": [1, 0, 0]}
    sheet = {"type": "mass-spring", "mesh": {"shape": "sheet", "size": [0.4, 0.3], "divisions": [2, 2]},
             "mass": 0.02, "stiffness": 50, "damping": 0.1, "position": [0, 0, 2]}  # fmt: skip
    wind = {"wind": {"signal": "gusts"}, "density": 1.3}
    gusts = {"type": "sine", "offset": [3, 1, 0.5], "amplitude": [2, 1, 1], "frequency": 2}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 60, "integrator": "bdf2"},
        "bodies": {"box": box, "ball": ball, "sheet": sheet},
        "signals": {"gusts": gusts},
        "couplings": {
            "on box": {"type": "air", "body": "box", "friction": 0.1, **wind},
            "on sheet": {"type": "air", "body": "sheet", "friction": 0.1, **wind},
            "on ball": {"type": "drag", "on": {"body": "ball", "at": [0.02, 0, 0]}, **wind},
        },
        "contact": {"between_bodies": False},
    }
    simulation = scene_from_dict(raw).build().simulation
    found, _ = assert_same(simulation, 60)
    assert_same_tangents(simulation, found)


@pytest.mark.parametrize("law", ["linear", "tanh"])
def test_friction_by_speed_and_of_spins(law: str) -> None:
    """Of a box that tumbles over a floor, and of a sheet that slides on it."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.08, 0.06]}, "density": 200,
           "position": [0, 0, 0.055], "velocity": [0.5, 0.1, -0.7], "angular_velocity": [2, 1, 4]}  # fmt: skip
    sheet = {"type": "mass-spring", "mesh": {"shape": "sheet", "size": [0.1, 0.1], "divisions": [2, 2]}, "mass": 0.02,
             "stiffness": 50, "damping": 0.1, "position": [0, 0.5, 0.002], "velocity": [0.3, 0.1, -0.2]}  # fmt: skip
    couples = {"torsional_friction": 4e-3, "rolling_friction": 3e-3, "spin_rate": 1.0}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "steps": 60, "integrator": "bdf2"},
        "bodies": {"box": box, "sheet": sheet},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {
            "stiffness": 2000, "damping": 1, "friction": 0.35, "static_friction": 0.6, "stribeck_speed": 0.3,
            "friction_law": law, "stick_stiffness": 6, "pairs": [{"between": ["box", "floor"], **couples}],
        },
    }  # fmt: skip
    simulation = scene_from_dict(raw).build().simulation
    found, _ = assert_same(simulation, 60)
    assert_same_tangents(simulation, found)
    (contact,) = simulation.system.deciding
    assert isinstance(contact, BodyContact)
    touched = np.concatenate([record.decisions[0][:, PAIR] for record in found.records]) // contact.n_shapes
    assert set(contact.owner[touched]) == {0, 1}, "one of them touched nothing"


def crossed_bars() -> Simulation:
    """Two bars of which one falls on edges of the other, and one that is led: few coordinates, by meshes."""
    bar = {"type": "rigid", "density": 500.0, "geometry": {"shape": "box", "size": [0.1, 1.0, 0.1]}}
    low = {"type": "kinematic", "geometry": {"shape": "box", "size": [1.0, 0.1, 0.1]}, "translation": {"signal": "up"}}
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "steps": 60},
        "bodies": {"low": low, "one": bar | {"position": [0.02, 0.01, 0.112], "velocity": [0.1, 0, -0.5]}},
        "signals": {"up": {"type": "sine", "amplitude": [0.0, 0.0, 0.01], "frequency": 5.0}},
        "contact": {
            "friction": 0.3,
            "mesh": {"thickness": 0.01, "stiffness": 1e8, "damping": 1e5},
            "pairs": [{"between": ["low", "one"], "by_meshes": True}],
        },
    }
    return scene_from_dict(raw).build().simulation


#: Scenes with contact between meshes: steps in which they touch, and how many patterns these have at least.
MESHES = {"two_soft_balls": (30, 5), "cloth_on_block": (16, 3), "pressed_ball": (20, 3)}


@pytest.mark.parametrize("name", MESHES)
def test_contact_between_meshes(name: str) -> None:
    """Patterns change from step to step, and trials go no further than they may."""
    n_steps, n_patterns = MESHES[name]
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    assert simulation.packed is not None, simulation.by_terms
    assert simulation.packed.changing
    found, _ = assert_same(simulation, n_steps, 1e-12)
    assert max(record.decisions[-1].shape[0] for record in found.records) >= 5, "meshes did not touch"
    assert len({record.solution.candidates[-1].tobytes() for record in found.records}) >= n_patterns
    directions = np.random.default_rng(5).normal(size=(simulation.theta.size, 2)) * simulation.theta[:, None]
    tangents, wanted = (pushforward(s, found, s.theta, directions) for s in (simulation, by_terms(simulation)))
    assert np.abs(tangents.q - wanted.q).max() <= 1e-9 * np.abs(wanted.q).max()


def test_few_bodies_by_meshes() -> None:
    simulation = crossed_bars()
    found, _ = assert_same(simulation, 60)
    assert_same_tangents(simulation, found)
    assert any(record.decisions[-1].size for record in found.records), "nothing touched"
    steps = [s.step_derivatives().jacobians(found.step(40)) for s in (simulation, by_terms(simulation))]
    assert np.abs(steps[0].transition - steps[1].transition).max() < 1e-9 * np.abs(steps[1].transition).max()


def test_what_is_near_changes_no_number() -> None:
    """A run that goes on knows no pairs and no patterns of before, and a gradient by checkpoints meets them anew."""
    built = load_scene(SCENES / "two_soft_balls.json").build()
    simulation, objective = built.simulation, probe(built, 30, 0)
    whole = simulation.run(n_steps=30)
    (contact,) = simulation.system.deciding
    assert isinstance(contact, MeshContact)
    rest = load_scene(SCENES / "two_soft_balls.json").build().simulation.run(n_steps=30, state=whole.state(17))
    assert np.array_equal(rest.q, whole.q[17:])
    stored, parts = (
        value_and_gradient(simulation, objective, n_steps=30, schedule=schedule)
        for schedule in (StoreAll(), Checkpoints(7))
    )
    assert stored.value == parts.value
    assert np.array_equal(stored.gradient, parts.gradient)


def test_shortened_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bodies that fall on each other; what the limit raises comes through the compiled call."""
    simulation = load_scene(SCENES / "falling_things.json").build().simulation
    simulation = replace(simulation, stepper=whole_steps(simulation.stepper))
    state, shares, ask = simulation.run(n_steps=80).state(80), [], CollisionLimit.share

    def asked(self, q0, q1, theta):
        shares.append(ask(self, q0, q1, theta))
        return shares[-1]

    monkeypatch.setattr(CollisionLimit, "share", asked)
    run = simulation.run(n_steps=84, state=state)
    mine, shares = shares, []
    expected = by_terms(simulation).run(n_steps=84, state=state)
    assert min(mine) < 1.0
    assert np.allclose(mine, shares, rtol=1e-9)
    assert np.abs(run.q - expected.q).max() < 1e-12

    def interrupted(self, q0, q1, theta):
        raise KeyboardInterrupt

    monkeypatch.setattr(CollisionLimit, "share", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulation.run(n_steps=81, state=state)


def test_pairs_beyond_the_candidates_are_left_to_the_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern has no place for what was no candidate: the step is begun anew, with one that has."""
    simulation = load_scene(SCENES / "two_soft_balls.json").build().simulation
    simulation = replace(simulation, stepper=whole_steps(simulation.stepper))
    state = simulation.run(n_steps=20).state(20)
    expected = by_terms(simulation).run(n_steps=22, state=state)
    assert len(expected.records) == 2
    assert all(record.decisions[0].size for record in expected.records)
    monkeypatch.setattr(MeshContact, "candidates", lambda self, kin, theta, dt: np.zeros(0, dtype=np.int64))
    found = simulation.run(n_steps=22, state=state)
    assert np.abs(found.q - expected.q).max() < 1e-12


@pytest.mark.parametrize("law", ["penalty+wall", "log-barrier"])
def test_laws_with_a_wall(law: str) -> None:
    simulation = under_law(law)
    found, _ = assert_same(simulation, min(simulation.n_steps, 150))
    assert_same_tangents(simulation, found)
    assert any(record.decisions[0].size for record in found.records), "nothing touched"


def test_a_law_with_a_layer() -> None:
    """The force sets in before anything touches; the thickness of its layer is a number like any other."""
    simulation = under_law("soft-max")
    found, _ = assert_same(simulation, min(simulation.n_steps, 150))
    assert_same_tangents(simulation, found)
    assert any(record.decisions[0].size for record in found.records), "nothing touched"


@pytest.mark.parametrize("name", ["cube_toss", "double_pendulum", "elbow_toss"])
def test_scenes_with_recordings(name: str, data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADD_DATA", str(data_root))
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    assert_same(simulation, min(simulation.n_steps, 60))


def test_what_flies_between_impacts() -> None:
    """Contact by impulses: steps are compiled while nothing is near, and no landing is missed at any step."""
    cube = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1] * 3}, "mass": 0.4, "position": [0, 0, 0.3]}
    scene = {
        "schema": "add-scene/1", "time": {"dt": 0.004, "steps": 130, "integrator": "bdf1"},
        "bodies": {"cube": cube | {"velocity": [1.0, 0.2, 0.5], "angular_velocity": [3.0, 5.0, 2.0]}},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction_law": "impulse", "friction": 0.3,
                    "pairs": [{"body": "cube", "obstacle": "floor", "restitution": 0.5}]},
    }  # fmt: skip
    simulation = scene_from_dict(scene).build().simulation
    terms, found = by_terms(simulation), simulation.run()
    expected = terms.run()
    assert isinstance(found.records, Records)
    near = [record.carry.marks[0].size > 0 for record in expected.records]
    compiled = np.zeros(len(near), dtype=bool)
    for first, block, n in found.records.blocks():
        compiled[first : first + n] = block is not None
    assert compiled.sum() > 100
    assert not (compiled & near).any()
    assert sum(near) >= 2
    assert np.abs(found.q - expected.q).max() < 1e-8
    bars = Cotangents(*np.random.default_rng(3).normal(size=(2, *found.q.shape)))
    gradient, wanted = (pullback(s, found, s.theta, bars) for s in (simulation, terms))
    assert np.abs(gradient - wanted).max() < 1e-11 * np.abs(wanted).max()
    along = simulation.theta[:, None] * np.random.default_rng(5).normal(size=(simulation.theta.size, 2))
    tangents = pushforward(simulation, found, simulation.theta, along)
    dot = (bars.q * tangents.q).sum(axis=(1, 2)) + (bars.v * tangents.v).sum(axis=(1, 2))
    assert dot == pytest.approx(gradient @ along, rel=1e-10)
    replayed = simulation.run(replay=found.replay)
    assert np.abs(replayed.q - found.q).max() < 1e-8


def test_what_slides_under_hybrid_friction() -> None:
    """Steps are compiled while all corners slide, and those of the terms once the cube is held."""
    cube = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1] * 3}, "mass": 0.4, "position": [0, 0, 0.05]}
    scene = {
        "schema": "add-scene/1", "time": {"dt": 0.005, "steps": 100},
        "bodies": {"cube": cube | {"velocity": [0.8, 0.1, 0.0]}},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction_law": "hybrid", "friction": 0.3, "stiffness": 1e4, "damping": 10.0},
    }  # fmt: skip
    simulation = scene_from_dict(scene).build().simulation
    found, expected = assert_same(simulation, simulation.n_steps, 1e-9)
    assert_same_tangents(simulation, found)
    assert isinstance(found.records, Records)
    reports = [[record.report for record in run.records] for run in (found, expected)]
    assert all(len(report.history) == report.iterations + 1 for report in reports[0])
    mine, theirs = (sum(report.iterations for report in one) for one in reports)
    assert abs(mine - theirs) <= 0.05 * theirs  # what the compiled step has done counts
    compiled = sum(n for _, block, n in found.records.blocks() if block is not None)
    held = sum(record.mu.size > 0 for record in found.records)
    assert compiled > 40
    assert held > 20
    assert compiled + held > 95


#: Every two of pair, stepper and law meet in one of twenty cases; the other sixty of the product are long.
LAWS = (FrictionLaw.NONE, FrictionLaw.LINEAR, FrictionLaw.TANH, FrictionLaw.HYBRID)
PRODUCT = [
    (pytest.param if (i + j - k) % len(LAWS) == 0 else long_case)(pair, stepper, law)
    for i, pair in enumerate(PAIRS)
    for j, stepper in enumerate(STEPPERS)
    for k, law in enumerate(LAWS)
]


@pytest.mark.parametrize(("pair", "stepper", "law"), PRODUCT)
def test_pairs(pair: str, stepper: str, law: FrictionLaw) -> None:
    _, simulation = PAIRS[pair](law, STEPPERS[stepper])
    # Under hybrid friction the terms go in stages: where factors are used again, another way to the same tolerance.
    tolerance = 1e-8 if law is FrictionLaw.HYBRID and simulation.stepper.newton.reuse else 1e-10
    found, _ = assert_same(simulation, simulation.n_steps, tolerance)
    if stepper == "bdf2":
        assert_same_tangents(simulation, found)
    assert any(d.size for r in found.records for d in r.decisions), "nothing touched"
    if pair in ("rigid-on-world", "rigid-on-rigid"):
        assert chart_changes(found) > 0


@pytest.mark.parametrize("taken", (lambda simulation: simulation, by_terms))
def test_a_point_held_alone_bears_nothing_along_its_normal(taken: Callable[[Simulation], Simulation]) -> None:
    """A reaction of 3.6 kN along the normal, which does nothing, was found beside 1.3 N across, and let it go."""
    _, simulation = PAIRS["rigid-on-rigid"](FrictionLaw.HYBRID, STEPPERS["straight-line"])
    held = [record.mu for record in taken(simulation).run(n_steps=13).records[-2:]]
    assert all(mu.size == 3 and 0.01 < np.linalg.norm(mu) < 10.0 for mu in held), held


@pytest.mark.parametrize("stepper", STEPPERS)
def test_every_coupling(stepper: str) -> None:
    _, simulation = linkage(STEPPERS[stepper])
    found, _ = assert_same(simulation, simulation.n_steps)
    assert_same_tangents(simulation, found)
    known = {type(term) for term in (*simulation.system.terms, *simulation.system.deciding)}
    assert len(known) > 10


def test_checkpoints_are_equal_to_the_bit() -> None:
    built = load_scene(SCENES / "strings_cube.json").build()
    simulation, objective = built.simulation, probe(built, 150, 0)
    whole = value_and_gradient(simulation, objective, n_steps=150)
    parts = value_and_gradient(simulation, objective, n_steps=150, schedule=Checkpoints(17))
    assert whole.value == parts.value
    assert np.array_equal(whole.gradient, parts.gradient)


def test_a_run_goes_on_to_the_bit() -> None:
    simulation = load_scene(SCENES / "strings_cube.json").build().simulation
    whole = simulation.run(n_steps=100)
    rest = simulation.run(n_steps=100, state=whole.state(37))
    assert np.array_equal(rest.q, whole.q[37:])
    by_hand = whole.state(37)
    for _ in range(5):
        by_hand, _ = simulation.step(by_hand)
    assert np.array_equal(by_hand.q[0], whole.q[42])


def test_what_memory_holds_before_changes_nothing() -> None:
    """Multipliers weigh in the merit by the first matrix: before there is one, no number may be read."""
    simulation = two_bodies(HEX8, law=FrictionLaw.LINEAR, order=1, mu_slide=0.3, n_steps=1)[1]
    assert simulation.packed is not None and simulation.system.n_multipliers
    expected = simulation.run().q
    for _ in range(20):
        left = [np.full(n, np.nan) for n in range(1, 400) for _ in range(5)]
        del left
        assert np.array_equal(simulation.run().q, expected)


def test_arrays_of_any_kind_are_taken() -> None:
    """Nothing is compiled anew for a theta that is read-only or strided."""
    simulation = load_scene(SCENES / "strings_cube.json").build().simulation
    expected = simulation.run(n_steps=3).q
    fixed = simulation.theta.copy()
    fixed.setflags(write=False)
    strided = np.repeat(simulation.theta, 2)[::2]
    for theta in (fixed, strided):
        assert np.array_equal(simulation.run(theta, n_steps=3).q, expected)


@pytest.mark.parametrize("name", ["bands_cubes", "hung_load"])
def test_a_step_that_needs_a_fallback_takes_the_terms(name: str) -> None:
    """With one iteration no step is found by the normal path; both take the same fallbacks."""
    scene = load_scene(SCENES / f"{name}.json").build().simulation
    stepper = replace(whole_steps(scene.stepper), newton=NewtonOptions(max_iterations=1))
    ends = []
    for simulation in (replace(scene, stepper=stepper), by_terms(replace(scene, stepper=stepper))):
        run = simulation.run(n_steps=6)
        ends.append([record.report.attempt for record in run.records])
    assert ends[0] == ends[1]
    assert max(ends[0]) > 0


def test_a_hard_step_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that ends before a step which the normal path does not find leaves it to the terms."""
    scene = load_scene(SCENES / "bands_cubes.json").build().simulation
    simulation = replace(scene, stepper=replace(whole_steps(scene.stepper), newton=NewtonOptions(max_iterations=2)))
    take, ended, cut = CompiledRun.take, [], []

    def counted(self, timing, criteria, before, n, theta, replay=None):
        block = take(self, timing, criteria, before, n, theta, replay)
        ahead = state_after(block, block.n - 1).q[0] if block.n else before[0][0]
        if self.failed(timing._replace(first=timing.first + block.n), ahead, theta) is not None:
            ended.append(timing.first + block.n)
            cut.append(block.n)
        return block

    monkeypatch.setattr(CompiledRun, "take", counted)
    simulation.run(n_steps=150)
    assert max(cut, default=0) > 0, "no block was cut by a hard step"
    assert len(ended) == len(set(ended))


def test_what_a_block_returns_owns_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks work on views of arrays without owners; what they return, also of a hard step, are none."""
    scene = load_scene(SCENES / "bands_cubes.json").build().simulation
    stepper, returned = replace(whole_steps(scene.stepper), newton=NewtonOptions(max_iterations=1)), []

    def kept(*arguments):
        returned.append(take_steps(*arguments))
        return returned[-1]

    monkeypatch.setattr(add.compiled.run, "take_steps", kept)
    replace(scene, stepper=stepper).run(n_steps=10)
    _, *fields, (u, chosen, iterations, _, scale) = returned[0]
    assert iterations > 0 and scale > 0.0, "no step was hard"
    assert all(array.flags.owndata or array.base is not None for array in (*fields, u, *chosen))


def concrete(base: type) -> set[type]:
    """All classes of the package below a base that nothing derives from."""
    found: set[type] = set()
    for kind in base.__subclasses__():
        found |= concrete(kind) if kind.__subclasses__() else {kind}
    return {kind for kind in found if kind.__module__.startswith("add.")}


def under_law(law: str) -> Simulation:
    """Return the throw of a rigid ball under another law of the normal force."""
    changed = {"contact.law": law, "contact.thickness": 1e-3, "contact.onset": 0.0, "contact.damping_ramp": 0.0}
    return apply_overrides(load_scene(SCENES / "rigid_ball_throw.json"), changed).build().simulation


def test_what_compiled_steps_lack() -> None:
    """Every family of forces is compiled, or is named here."""
    lacks = {
        "LiftedTerm",  # its inner term is compiled, over the rows of links
        "LiftedDecidingTerm",
        "LiftedConstraint",  # its inner one is compiled
        *(kind.__name__ for kind in concrete(StickConstraint)),  # what is held belongs to the terms
    }
    branches = {kind.__name__ for kind in concrete(Term) if kind.__name__.endswith("Branch")}
    families = {kind.__name__ for base in (Term, DecidingTerm, Constraint) for kind in concrete(base)} - branches
    compiled = {
        kind.__name__
        for base in (Term, DecidingTerm, Constraint)
        for kind in concrete(base)
        if kind.family is not base.family or kind is TreeInertia  # part of the lift itself
    }
    assert families - compiled == lacks


@pytest.mark.parametrize(
    ("scene", "reason"),
    [("fig2_cylinder_exact", "steps of ExactContact"), ("swinging_strip", "steps of DiagonallyImplicit")],
)
def test_the_reason_names_what_stands_in_the_way(scene: str, reason: str) -> None:
    simulation = load_scene(SCENES / f"{scene}.json").build().simulation
    assert simulation.packed is None
    assert simulation.by_terms == reason


class Wall(Constraint):
    """An equation from outside: the first coordinate stays zero."""

    n_rows = 1

    def pattern(self, first):
        return np.array([first, 0]), np.array([0, first])

    def residual(self, kin, mu, theta, out, rows):
        out[0] += mu[0]
        rows[0] += kin.q[0]

    def jacobian(self, kin, mu, theta, weights, data, slots):
        data[slots] += [weights.q, weights.multiplier]


def test_equations_without_a_family_go_on_in_python() -> None:
    simulation = load_scene(SCENES / "rigid_ball_throw.json").build().simulation
    walled = replace(simulation, system=replace(simulation.system, constraints=(Wall(),)))
    assert walled.packed is None and walled.by_terms == "Wall"
    free, held = (s.run(n_steps=5) for s in (simulation, walled))
    assert np.abs(free.q[:, 0]).max() > 1e-3 and np.abs(held.q[:, 0]).max() < 1e-12
    assert np.abs(held.q[:, 1:3] - free.q[:, 1:3]).max() < 1e-9


def gone_on(pickled: bytes) -> tuple[float, float, int]:
    simulation, trajectory = pickle.loads(pickled)
    return simulation.run(n_steps=4).q.sum(), trajectory.q.sum(), len(trajectory.records[3].decisions)


@pytest.mark.parametrize("name", ["strings_cube", "sticking_arm"])
def test_simulations_go_to_other_processes(name: str) -> None:
    """With what they have computed: addresses of compiled functions, which differ there, stay here."""
    simulation = load_scene(SCENES / f"{name}.json").build().simulation
    trajectory = simulation.run(n_steps=4)
    pickled = pickle.dumps((simulation, trajectory))
    assert len(pickled) < 200_000, "no compiled functions"
    with ProcessPoolExecutor(1, mp_context=FORKS) as pool:
        found = pool.submit(gone_on, pickled).result()
    end = trajectory.q.sum()
    assert found == (end, end, len(simulation.system.deciding))
