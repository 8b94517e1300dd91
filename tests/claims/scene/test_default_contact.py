"""Contact of scenes that give no numbers: depths, rebounds, what is said, and what is kept."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fuzz import soft_pairs
from fuzz.default_drops import run
from support.places import SHARED

from add.commands.cli import cli
from add.scene import apply_overrides, load_scene, scene_from_dict
from add.scene.build.default_contact import RESTITUTION
from add.scene.build.write_back import with_values

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


@pytest.mark.parametrize("seed", [2, 3, 6, 7, 13, 115])
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


def test_given_numbers_are_kept() -> None:
    contact = scene_from_dict(ball(contact={"stiffness": 1e3})).build().scene.contact
    assert (contact.stiffness, contact.damping, contact.onset) == (1e3, None, None)
    contact = scene_from_dict(ball(contact={"damping": 3.0, "onset": 1e-4})).build().scene.contact
    assert (contact.damping, contact.onset) == (3.0, 1e-4) and contact.stiffness is not None


def test_a_restitution_is_that_of_its_pair() -> None:
    """Without onset and ramp, which would change it."""
    pairs = [{"between": ["b", "floor"], "restitution": 0.7}]
    built = scene_from_dict(ball(height=0.2, duration=0.35, dt=2e-4, contact={"pairs": pairs})).build()
    assert built.scene.contact.onset == built.scene.contact.damping_ramp == 0.0
    assert built.run().v[:, 2].max() == pytest.approx(0.7 * np.sqrt(2.0 * 9.81 * 0.2), rel=0.02)


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
    assert json.loads((tmp_path / "open" / "scene.json").read_text())["contact"]["stiffness"] > 1e3
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("open", "soft", "own")]
    assert "sunk" not in results[0] and results[2]["sunk"][0]["bodies"] == ["b", "floor"]
    (sunk,) = results[1]["sunk"]
    assert (
        sunk["bodies"] == ["b", "floor"] and sunk["depth"] > 0.0 and "the middle of b is inside floor" in sunk["text"]
    )


def test_a_step_that_is_too_long_is_a_warning() -> None:
    from add.scene.build.doubts import doubts

    texts = doubts(scene_from_dict(ball(0.005, height=1.0, dt=1 / 60)).build())
    assert len(texts) == 1 and "times its thinnest part in a step" in texts[0]
    assert not doubts(scene_from_dict(ball(height=0.3)).build())
