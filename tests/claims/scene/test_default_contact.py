"""Contact of scenes that give no numbers: depths, rebounds, what is said, and what is kept."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from fuzz import soft_pairs
from fuzz.default_drops import drop, run
from support.places import SHARED
from support.tiers import long_case

from add.commands.cli import cli
from add.commands.convergence_file import with_shorter_steps
from add.commands.sunk_log import SunkLog
from add.commands.whole_run import gained
from add.scene import apply_overrides, experiment_scenes, load_scene, scene_from_dict
from add.scene.build.default_contact import RESTITUTION, said_numbers
from add.scene.build.run_data import Energies
from add.scene.build.scene import with_contact
from add.scene.build.write_back import with_values
from add.simulation import BDF
from add.simulation.substeps import Substeps

FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}


def ball(radius=0.05, density=1000.0, height=0.0, dt=0.001, duration=0.3, **more):
    """A ball at a height over the floor."""
    body = {"type": "rigid", "geometry": {"shape": "sphere", "radius": radius}, "density": density,
            "position": [0, 0, radius + height]}  # fmt: skip
    time = {"dt": dt, "duration": duration}
    return {"schema": "add-scene/1", "time": time, "bodies": {"b": body}, "obstacles": FLOOR, "contact": {}} | more


@pytest.mark.parametrize("density", [20.0, 8000.0])
@pytest.mark.parametrize("radius", [0.005, 0.5])
def test_depths_of_a_ball(radius: float, density: float) -> None:
    """At rest below 1 % of its diameter, in an impact about a tenth; it rebounds with the speed that is said."""
    rest = scene_from_dict(ball(radius, density)).build().run()
    assert 0.0 < radius - rest.q[-1][2] < 0.01 * 2.0 * radius
    height = 8.0 * radius
    fall = np.sqrt(2.0 * height / 9.81)
    built = scene_from_dict(ball(radius, density, height, dt=fall / 1000.0, duration=1.6 * fall)).build()
    trajectory = built.run()
    assert 0.03 < (radius - trajectory.q[:, 2].min()) / (2.0 * radius) < 0.1
    assert trajectory.v[:, 2].max() == pytest.approx(RESTITUTION * np.sqrt(2.0 * 9.81 * height), rel=0.15)


@pytest.mark.parametrize("name", ["sinks_default", "gains_energy_default"])
def test_scenes_that_went_wrong(name: str) -> None:
    """A ball's centre went below the floor; another one gained 18 % of its energy."""
    path = SHARED / "repro" / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"no such file: {path}")
    built = load_scene(path).build()
    trajectory = built.run()
    radius = built.scene.bodies["b"].geometry.radius
    energy = 0.5 * (trajectory.v[:, :3] ** 2).sum(axis=1) + 9.81 * trajectory.q[:, 2]
    assert trajectory.q[:, 2].min() > 0.8 * radius and energy.max() < 1.01 * energy[0]


@pytest.mark.parametrize("name", ["soft_pair_crawls", "soft_on_soft_fast"])
def test_pairs_of_soft_bodies_that_found_no_step(name: str) -> None:
    path = SHARED / "repro" / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"no such file: {path}")
    built = load_scene(path).build()
    trajectory = built.run()
    assert trajectory.n_steps == built.scene.time.n_steps
    assert np.mean([record.report.iterations for record in trajectory.records]) < 4.0


@pytest.mark.parametrize("seed", [2, long_case(3), 6, 7, long_case(13), 115])
def test_random_drops(seed: int) -> None:
    """See `fuzz.default_drops` for a thousand."""
    outcome = run(seed)
    assert outcome.kind.startswith("default") and not outcome.message
    assert outcome.lowest > 0.0 and outcome.gain < 0.01


@pytest.mark.parametrize("seed", [1, 8, 14])
def test_random_pairs_of_soft_bodies(seed: int) -> None:
    """See `fuzz.soft_pairs` for a hundred."""
    outcome = soft_pairs.run(seed)
    assert outcome.touched and not outcome.message and not outcome.through and outcome.lost < 1e-12


def test_numbers_are_those_of_the_start_and_no_ties() -> None:
    """A changed density changes the motion, and not the contact; the scene that is built with it has another one."""
    built = scene_from_dict(ball()).build()
    values = built.numbers.values.copy()
    index, _ = built.numbers.resolve("bodies.b.density")
    place, _ = built.numbers.resolve("contact.stiffness")
    values[index] *= 2.0
    theta = built.numbers.ties.forward(values)
    k_n = [entry.indices for entry in built.model.system.parameters.entries if entry.name.endswith(".k_n")]
    assert np.array_equal(theta[np.ravel(k_n)], built.theta[np.ravel(k_n)])
    assert built.scene.contact.stiffness == values[place[0]]
    other = apply_overrides(scene_from_dict(ball()), {"bodies.b.density": 2000.0}).build()
    assert other.scene.contact.stiffness == pytest.approx(2.0 * values[place[0]], rel=0.01)


def test_a_body_at_rest_counts_with_what_comes() -> None:
    """Without gravity, too; and what has no size gets one from its mass."""
    raw = ball(gravity=[0, 0, 0])
    alone = scene_from_dict(raw).build().scene.contact.stiffness
    raw["bodies"]["fast"] = raw["bodies"]["b"] | {"position": [1, 0, 0.05], "velocity": [-20, 0, 0]}
    assert scene_from_dict(raw).build().scene.contact.stiffness > 10.0 * alone
    mass = {"type": "mass-spring", "mesh": {"points": [[0, 0, 0]]}, "mass": 0.1}
    raw["bodies"] = {"b": mass | {"position": [0, 0, 0.1]}}
    assert np.isfinite(scene_from_dict(raw | {"gravity": [0, 0, -9.81]}).build().scene.contact.stiffness)


def test_check_says_how_far_lighter_bodies_take_less_time() -> None:
    """Damping and friction at rest go by the heaviest body: by the root of the masses, they are a light body's own."""
    raw = ball(0.05, 2000.0)
    for radius, words in ((0.02, 0), (0.003, 1)):
        light = {"type": "rigid", "geometry": {"shape": "sphere", "radius": radius}, "density": 1500.0}
        scene = scene_from_dict(raw | {"bodies": raw["bodies"] | {"marble": light | {"position": [0.3, 0, 0.1]}}})
        built = scene.build()
        said = [text for text in said_numbers(scene, built) if "'marble' weighs 2e-04 of 'b'" in text]
        assert len(said) == words
    contact, share = built.scene.contact, np.sqrt(1500.0 * 0.003**3 / (2000.0 * 0.05**3))
    damping, stick = f"damping {contact.damping * share:.2g} N s/m", f"{contact.stiffness * 0.001 * share:.2g} N s/m"
    assert f"{damping} and stick_stiffness {stick}, help" in said[0]


def test_given_numbers_are_kept() -> None:
    contact = scene_from_dict(ball(contact={"stiffness": 1e3})).build().scene.contact
    assert (contact.stiffness, contact.damping, contact.onset) == (1e3, None, None)
    contact = scene_from_dict(ball(contact={"damping": 3.0, "onset": 1e-4})).build().scene.contact
    assert (contact.damping, contact.onset) == (3.0, 1e-4) and contact.stiffness is not None


def test_a_restitution_is_that_of_its_pair() -> None:
    """Without an onset, which would change it, and with a ramp too short to."""
    pairs = [{"between": ["b", "floor"], "restitution": 0.7}]
    built = scene_from_dict(ball(height=0.2, duration=0.35, dt=2e-4, contact={"pairs": pairs})).build()
    contact = built.scene.contact
    assert contact.onset == 0.0 < contact.damping_ramp < 1e-4 * 0.1
    assert built.run().v[:, 2].max() == pytest.approx(0.7 * np.sqrt(2.0 * 9.81 * 0.2), rel=0.02)


@pytest.mark.parametrize("orientation", [[0.3, 0.5, -0.8, 0], [-0.3, -0.1, 0.9, 0.3]])
def test_a_box_with_a_restitution_finds_its_steps(orientation: list[float]) -> None:
    """Steps of 12 ms and corners that touch one by one; damping that jumped left such steps without a solution."""
    body = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.06, 0.04]}, "density": 1000.0}
    body |= {"position": [0, 0, 0.15], "orientation": (np.array(orientation) / np.linalg.norm(orientation)).tolist()}
    pairs = [{"between": ["b", "floor"], "restitution": 0.5}]
    raw = ball(dt=0.012, duration=0.45, contact={"friction": 0.8, "pairs": pairs}) | {"bodies": {"b": body}}
    scene_from_dict(raw).build().run()


def test_soft_nodes_have_numbers_of_their_own() -> None:
    material = {"young": 1e4, "poisson": 0.3, "density": 300.0}
    mesh = {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [2, 2, 2]}
    raw = ball()
    raw["bodies"]["s"] = {"type": "soft", "mesh": mesh, "material": material, "position": [0.4, 0, 0.06]}
    contact = scene_from_dict(raw).build().scene.contact
    assert contact.nodes.stiffness < 0.2 * contact.stiffness  # 10 E h
    assert scene_from_dict(scene_from_dict(raw).build().scene.raw).build().scene.contact == contact


def test_the_result_of_a_fit_keeps_them() -> None:
    """The scene that is written back has the numbers of the one that was fitted, whatever was found."""
    raw = ball(height=0.1, duration=0.02) | {
        "markers": {"m": {"body": "b", "point": [0, 0, 0]}},
        "objective": [{"type": "point", "marker": "m", "target": [0, 0, 0], "time": "end"}],
        "parameters": [{"path": "bodies.b.velocity"}],
    }
    scene = scene_from_dict(raw)
    found = with_values(scene, scene.inverse_problem(), np.array([3.0, 0.0, -4.0]))
    assert found.raw["contact"]["stiffness"] == scene.build().scene.contact.stiffness
    assert apply_overrides(scene, {"bodies.b.velocity": [3, 0, -4]}).build().scene.contact != found.contact


def test_check_and_run_say_it(tmp_path: Path) -> None:
    """Check names numbers and step, the run's folder keeps them, and a centre below the floor is a warning."""
    frame = {"floor": FLOOR["floor"] | {"adjustable": True}}  # a body of its own
    soft = {"stiffness": 100.0}
    for name, contact, floor in (("open", {}, FLOOR), ("soft", soft, FLOOR), ("own", soft, frame)):
        raw = ball(height=0.3, dt=0.002, contact=contact, obstacles=floor)
        (tmp_path / f"{name}.json").write_text(json.dumps(raw))
    runner = CliRunner()
    said = runner.invoke(cli, ["check", str(tmp_path / "open.json")])
    assert (
        said.exit_code == 0 and "by weight and size: contact.stiffness" in said.output and "resolves it" in said.output
    )
    for name in ("open", "soft", "own"):
        done = runner.invoke(cli, ["simulate", str(tmp_path / f"{name}.json"), "-o", str(tmp_path / name), "--json"])
        assert done.exit_code == 0
    kept = json.loads((tmp_path / "open" / "scene.json").read_text())
    assert kept["contact"]["stiffness"] > 1e3 and kept["time"]["substeps"] == "auto"
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("open", "soft", "own")]
    assert "sunk" not in results[0] and results[2]["sunk"][0]["bodies"] == ["b", "floor"]
    (sunk,) = results[1]["sunk"]
    assert (
        sunk["bodies"] == ["b", "floor"] and sunk["depth"] > 0.0 and "the middle of b is inside floor" in sunk["text"]
    )


def test_steps_are_divided_where_contact_has_no_numbers() -> None:
    """By default, not against what is said, not where nothing touches; single steps are whole."""
    flat = ball(0.005, height=0.4, dt=1 / 60, duration=0.6)
    flat["time"]["integrator"] = "bdf2"
    built = scene_from_dict(flat).build()
    run = built.run()
    energies = [sum(Energies(built, built.theta).at(run.kinematics(k)).values()) for k in range(run.n_steps + 1)]
    assert any(record.inner for record in run.records) and max(energies) < 1.001 * energies[0]
    assert isinstance(built.simulation.stepper, Substeps) and isinstance(built.step_function().simulation.stepper, BDF)
    for more in ({"contact": {"stiffness": 1e4}}, {"time": flat["time"] | {"substeps": "off"}}, {"obstacles": {}}):
        stepper = scene_from_dict(flat | more).build().simulation.stepper
        assert isinstance(stepper, BDF) or stepper.impacts is None or not stepper.impacts.eager


def test_surfaces_with_their_stiffness_have_numbers() -> None:
    """Where meshes alone meet and their stiffness is given steps are whole; not where nodes meet a floor, too."""
    mesh = {"shape": "rectangle", "size": [0.2, 0.2], "cells": [2, 2]}
    material = {"density": 0.2, "thickness": 1e-3, "membrane": {"young": 1e5, "poisson": 0.3}}
    bodies = {
        "sheet": {"type": "cloth", "mesh": mesh, "material": material},
        "block": {"type": "kinematic", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "position": [0, 0, -0.1]},
    }  # fmt: skip
    pairs = [{"between": ["sheet", "block"], "by_meshes": True}]
    raw = ball() | {"bodies": bodies, "obstacles": {}, "contact": {"mesh": {"thickness": 0.01}, "pairs": pairs}}

    def divided(**more: object) -> bool:
        return scene_from_dict(raw | more).build().simulation.stepper.impacts is not None

    given = raw["contact"] | {"mesh": {"thickness": 0.01, "stiffness": 1e5}}
    assert divided() and not divided(contact=given) and divided(contact=given, obstacles=FLOOR)
    assert divided(contact=given, time=raw["time"] | {"substeps": "auto"})


def test_a_step_that_is_too_long_is_a_warning() -> None:
    from add.scene.build.doubts import doubts

    thrown = ball(0.005, height=1.0, dt=1 / 60)
    assert not doubts(scene_from_dict(thrown).build()), "it is divided"
    thrown["time"]["substeps"] = "off"
    texts = doubts(scene_from_dict(thrown).build())
    assert len(texts) == 1 and "times its thinnest part in a step" in texts[0]
    assert not doubts(scene_from_dict(ball(height=0.3)).build())
    raw = drop(5028)  # a tree
    raw["time"]["substeps"] = "off"
    (text,) = doubts(scene_from_dict(raw).build())
    assert "an impact of 'a' at" in text and "1.3 times its thinnest part" in text
    raw["bodies"]["a"] |= {"base": "fixed", "velocity": [0, 0, 0], "angular_velocity": [0, 0, 0]}
    assert not [text for text in doubts(scene_from_dict(raw).build()) if "thinnest part" in text]


@pytest.mark.parametrize("change", ["whole steps", "divided", "fed"])
def test_energy_that_a_run_gains_is_said(change: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With one remedy, which mends it; and not where something feeds the scene."""
    raw = drop(5196)  # a tree whose joints turn far within the step of an impact
    raw["time"]["substeps"] = "auto" if change == "divided" else "off"
    if change == "fed":
        raw["obstacles"]["floor"]["velocity"] = [1e-9, 0, 0]
    (tmp_path / "a.json").write_text(json.dumps(raw))
    ended = CliRunner().invoke(cli, ["simulate", str(tmp_path / "a.json"), "-o", str(tmp_path / "a")])
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    assert ended.exit_code == 0 and ("gained" in result) == (change == "whole steps")
    if "gained" in result:
        (said,) = result["gained"]
        assert said["energy"] > 0.0 and said["text"].endswith("time.substeps 'auto' helps")
        assert said["text"] in caplog.text


def test_the_remedy_is_one_of_the_scene() -> None:
    """Where no step is divided, or all are that ask for it, only smaller ones are left."""
    data = SimpleNamespace(t=[0.0, 0.1], energy={"kinetic": np.array([1.0, 1.5]), "gravity": np.zeros(2)})
    given = {"stiffness": 1e4, "damping": 1.0}
    for contact in ({"friction_law": "impulse"}, {"friction_law": "linear"}, given):
        raw = ball(dt=0.01, contact=contact)
        built = scene_from_dict(raw | {"time": raw["time"] | {"integrator": "bdf1"}}).build()
        (said,) = gained(built, built.run(n_steps=0), data)["gained"]
        assert "grows by 0.5 J, 33% of what moves, until t = 0.1 s" in said["text"]
        assert said["text"].endswith("a smaller time.dt, such as 0.003 s, helps")


def test_a_turned_robot_has_the_same_numbers() -> None:
    """Its extent is along the axes of its base: turned by 45 degrees it had twice the stiffness."""
    plate = {"shapes": [{"geometry": {"shape": "box", "size": [0.05, 0.05, 0.002]}}], "mass": 0.1}
    links = {f"l{k}": plate for k in range(5)}
    joints = {
        f"j{k}": {"parent": f"l{k}", "child": f"l{k + 1}", "axis": [0, 1, 0], "position": [0.1, 0, 0]} for k in range(4)
    }
    joints = {"root": {"type": "fixed", "child": "l0"}} | joints

    def stiffness(degrees: float) -> float:
        half = np.radians(degrees) / 2.0
        turn = {"orientation": [np.cos(half), 0, 0, np.sin(half)], "position": [0, 0, 0.2]}
        tree = {"type": "articulated", "base": "free", "links": links, "joints": joints, **turn}
        return scene_from_dict(ball() | {"bodies": {"t": tree}}).build().scene.contact.stiffness

    assert stiffness(0.0) == stiffness(45.0) == stiffness(90.0)

    def on_turntable(**said: object) -> float:
        posed = joints | {"root": {"type": "hinge", "axis": [0, 0, 1], "child": "l0", **said}}
        tree = {"type": "articulated", "links": links, "joints": posed, "position": [0, 0, 0.2]}
        return scene_from_dict(ball() | {"bodies": {"t": tree}}).build().scene.contact.stiffness

    assert on_turntable() == on_turntable(value=0.7) == on_turntable(motion=0.7)


def test_given_motions_have_begun() -> None:
    """Heights of fall, and speeds, are those of t = 0: a table led there stood where the scene had put it."""

    def numbers(**table: object) -> list[float]:
        table |= {"type": "kinematic", "geometry": {"shape": "box", "size": [1.0, 1.0, 0.1]}}
        signals = {"down": {"type": "table", "times": [0, 1], "values": [[0, 0, -1.05], [0, 0, -1.05]]}}
        raw = ball(height=0.1, signals=signals)
        built = scene_from_dict(raw | {"bodies": raw["bodies"] | {"table": table}, "obstacles": {}}).build()
        return [built.scene.contact.stiffness, built.scene.contact.damping]

    led = numbers(translation={"signal": "down"})
    assert led == numbers(position=[0, 0, -1.05]) != numbers(position=[0, 0, -0.05])


def test_a_tree_with_a_ball_joint_may_gain() -> None:
    """Its damping takes energy, and its armature is counted."""
    shape = {"geometry": {"shape": "sphere", "radius": 0.02}}
    links = {name: {"mass": 1.0, "shapes": [shape]} for name in "lm"}
    joints = {"l": {}, "m": {"type": "ball", "parent": "l", "position": [0, 0, 0.1], "damping": 0.1, "armature": 1e-3}}
    tree = {"type": "articulated", "base": "free", "links": links, "joints": joints, "position": [0, 0, 1]}
    built = scene_from_dict(ball() | {"bodies": {"t": tree}}).build()
    data = SimpleNamespace(t=[0.0, 0.1], energy={"kinetic": np.array([1.0, 1.5]), "gravity": np.zeros(2)})
    assert gained(built, built.run(n_steps=0), data)["gained"]


def test_rounding_of_what_does_not_move_is_no_gain() -> None:
    """A rod that hangs in its equilibrium, of which nothing moves, ended in a division by zero."""
    built = scene_from_dict(ball()).build()
    still = {"kinetic": np.zeros(2), "gravity": np.full(2, -4.0), "elastic": np.array([1.0, 1.0 + 4e-16])}
    assert gained(built, built.run(n_steps=0), SimpleNamespace(t=[0.0, 0.1], energy=still)) == {}


MARKED = {
    "markers": {"m": {"body": "b", "point": [0, 0, 0]}},
    "objective": [{"type": "point", "marker": "m", "target": [0, 0, 0], "time": "end"}],
    "parameters": [{"path": "bodies.b.velocity"}],
}


@pytest.mark.parametrize(
    "overrides",
    [
        {"contact.law": "soft-max", "contact.thickness": 0.01},
        {"contact.stiffness_per": "area"},
        {"contact.stiffness": 500.0},
        {"contact": {"stiffness": 500.0}},
        {"contact.friction_law": "hybrid"},
        {"contact.damping": 3.0},
    ],
)
def test_an_experiment_that_changes_contact_has_its_own_numbers(overrides) -> None:
    """Those of the scene that it runs, alone; others share the scene's, whatever they change."""
    items = [{"name": "one", "overrides": {"bodies.b.density": 8000.0}}, {"name": "two", "overrides": overrides}]
    scene = scene_from_dict(ball() | MARKED | {"experiments": items})
    settled = with_contact(scene)
    shared, own = (item.build() for item in experiment_scenes(settled).values())
    assert shared.scene.contact == scene_from_dict(ball()).build().scene.contact
    alone = experiment_scenes(scene)["two"].build()
    assert own.scene.contact == alone.scene.contact
    assert np.array_equal(own.theta, alone.theta)
    again = scene_from_dict(settled.raw)  # what a folder keeps
    assert experiment_scenes(again)["two"].build().scene.contact == alone.scene.contact
    assert len(scene.inverse_problem().experiments) == 2


MATERIAL = {"young": 1e4, "poisson": 0.3, "density": 300.0}
CUBE = {"type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [2, 2, 2]}, "material": MATERIAL}


def with_cubes(contact, **bodies):
    raw = ball(contact=contact)
    return scene_from_dict(raw | {"bodies": bodies or raw["bodies"] | {"s": CUBE | {"position": [0.4, 0, 0.06]}}})


def test_given_numbers_count_for_nodes_and_meshes() -> None:
    nodes = with_cubes({"damping": 0.0, "onset": 1e-4}).build().scene.contact
    assert nodes.nodes.stiffness and nodes.nodes.damping is None and nodes.onset == 1e-4
    cubes = {"s": CUBE | {"position": [0, 0, 0.06]}, "t": CUBE | {"position": [0, 0, 0.2]}}
    given = {"damping": 0.0, "onset": 1e-4, "damping_ramp": 1e-4, "stick_stiffness": 5.0}
    built = with_cubes(given, **cubes).build()
    mesh = built.scene.contact.mesh
    assert mesh.stiffness and mesh.damping is mesh.onset is mesh.damping_ramp is None
    assert mesh.stick_stiffness == pytest.approx(5.0 / (0.06 / 26), rel=0.01), "over the area of a vertex"
    open_one, softer = (
        with_cubes({"mesh": {"stiffness": k} if k else {}}, **cubes).build().scene.contact.mesh for k in (None, 1e5)
    )
    assert softer.damping == pytest.approx(open_one.damping * np.sqrt(1e5 / open_one.stiffness), rel=0.01)


def test_shorter_steps_keep_the_friction_of_nodes_and_meshes() -> None:
    scene = with_cubes({})
    finer = with_shorter_steps(scene, 2)
    numbers = []
    for item in (scene, finer):
        built = item.build()
        names = [entry.name for entry in built.model.system.parameters.entries if entry.name.endswith(".k_t")]
        numbers.append({name: float(built.model.system.parameters.view(built.theta, name)) for name in names})
    assert numbers[0] == pytest.approx(numbers[1]) and len(set(numbers[0].values())) > 1


def test_a_class_of_both_kinds_has_both_numbers() -> None:
    raw = ball()
    raw["bodies"] = {"b": raw["bodies"]["b"], "s": CUBE | {"position": [0.4, 0, 0.06]}}
    for body in raw["bodies"].values():
        body["contact"] = {"class": "x"}
    raw["contact"] = {"pairs": [{"between": ["x", "floor"], "friction": 0.1}]}
    built = scene_from_dict(raw).build()
    layout = built.model.system.parameters
    contact = built.scene.contact
    found = {entry.name: float(layout.view(built.theta, entry.name)) for entry in layout.entries
             if entry.name.endswith(("floor.k_n", "floor.c_f"))}  # fmt: skip
    assert set(found.values()) == {contact.stiffness, contact.nodes.stiffness, 0.1}


def test_what_may_not_touch_does_not_count() -> None:
    alone = scene_from_dict(ball()).build().scene.contact
    plate = {"shape": "box", "center": [9, 9, 9], "half_size": [1, 1, 5e-4]}
    off = {"pairs": [{"between": ["b", "plate"], "enabled": False}]}
    assert scene_from_dict(ball(obstacles=FLOOR | {"plate": plate}, contact=off)).build().scene.contact == (
        alone.model_copy(
            update={"pairs": scene_from_dict(ball(obstacles=FLOOR | {"plate": plate}, contact=off)).contact.pairs}
        )
    )
    raw = ball(contact={"between_bodies": False, "pairs": [{"between": ["heavy", "floor"], "enabled": False}]})
    raw["bodies"]["heavy"] = raw["bodies"]["b"] | {"density": 1e6, "position": [2, 0, 3]}
    assert scene_from_dict(raw).build().scene.contact.stiffness == alone.stiffness


def test_what_comes_on_a_given_way_counts() -> None:
    wall = {"shape": "box", "center": [1.0, 0, 0.1], "half_size": [0.2, 0.2, 0.2], "velocity": [-40, 0, 0]}
    raw = ball(dt=1e-4, duration=0.03, gravity=[0, 0, 0], obstacles={"wall": wall})
    trajectory = scene_from_dict(raw).build().run()
    depth = 0.05 - (trajectory.q[:, 0] - (0.8 - 40 * trajectory.t)) * -1.0
    touching = depth[depth < 0.05]
    assert depth.max() < 0.011 + 0.05 and touching.size
    still = raw | {"obstacles": {"wall": wall | {"velocity": [0, 0, 0]}}}
    assert scene_from_dict(raw).build().scene.contact.stiffness > scene_from_dict(still).build().scene.contact.stiffness


def test_a_sheet_over_a_ball_has_not_sunk(tmp_path: Path) -> None:
    """The mean of its nodes is inside."""
    sheet = {"type": "mass-spring", "mesh": {"shape": "sheet", "size": [0.6, 0.6], "divisions": [8, 8]}, "mass": 0.2,
             "stiffness": 200, "damping": 0.2, "position": [0, 0, 0.12]}  # fmt: skip
    raw = {"schema": "add-scene/1", "time": {"dt": 0.004, "steps": 60}, "bodies": {"c": sheet}, "contact": {},
           "obstacles": {"o": {"shape": "sphere", "center": [0, 0, 0], "radius": 0.1}}}  # fmt: skip
    (tmp_path / "cloth.json").write_text(json.dumps(raw))
    done = CliRunner().invoke(cli, ["simulate", str(tmp_path / "cloth.json"), "-o", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "sunk" not in result and result["bodies"]["c"]["centre"][2] < 0.09


def test_links_without_shapes_that_pass_a_floor_are_said() -> None:
    """A block on the floor whose link hangs through it, as of a robot whose file has few collision shapes."""
    block = {"mass": 1.0, "shapes": [{"geometry": {"shape": "box", "size": [0.2, 0.2, 0.05]}}]}
    bare = {"mass": 0.2, "inertia": [1e-3, 1e-3, 1e-3, 0, 0, 0], "center_of_mass": [0, 0, -0.1]}
    joints = {"block": {}, "bare": {"type": "hinge", "parent": "block", "axis": [1, 0, 0], "damping": 0.01}}
    for first, wanted in ((block, {("t/bare", "floor")}), (bare, set())):
        links = {"block": first, "bare": bare}
        tree = {"type": "articulated", "base": "free", "position": [0, 0, 0.3], "links": links, "joints": joints}
        built = scene_from_dict(ball() | {"bodies": {"t": tree}, "time": {"dt": 0.005, "steps": 80}}).build()
        log = SunkLog()
        for record in built.run().records:
            log.add(built, record, built.theta)
        assert set(log.seen) == wanted
        texts = [found["text"] for found in SunkLog.parsed(log.plain()).described()]
        assert len(texts) == len(wanted) and all("t/bare" in text and "no shapes" in text for text in texts)


@pytest.mark.skipif(not (SHARED / "repro").is_dir(), reason="the shared scenes are not there")
def test_a_step_without_a_solution_is_divided_whatever_the_numbers() -> None:
    """A ball between two faces of a bowl, whose force jumps."""
    scene = load_scene(SHARED / "repro" / "pile_in_bowl.json")
    run = scene.build().run()
    assert run.n_steps == 150 and any(record.inner for record in run.records)
    whole = apply_overrides(scene, {"time.substeps": "off"}).build()
    assert whole.run().n_steps == 150
