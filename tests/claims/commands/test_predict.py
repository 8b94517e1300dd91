"""`add predict` and `add carry`: numbers of a fit and their errors in another motion, against closed forms."""

import csv
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from support.places import SCENES

from add.commands.cli import cli
from add.commands.fitted_numbers import carried, of_one_motion, require_same_laws
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.mocap import Recording, write_csv
from add.scene import scene_from_dict

TIMES = np.arange(1, 49) / 120.0
NOISE = 1e-3


def scene(folder, name, *, gravity=-9.0, start=(0.0, 0.0, 0.0), duration=0.4, **sections):
    """A particle in free fall: z = z0 + g t^2 / 2, linear in g; stepped so that it is met within 1e-4 m."""
    raw = {
        "schema": "add-scene/1",
        "name": name,
        "time": {"dt": 0.005, "duration": duration},
        "gravity": [0, 0, gravity],
        "bodies": {"p": {"type": "particles", "mesh": {"points": [list(start)]}, "mass": 1.0}},
        "markers": {"m": {"body": "p", "nodes": [0]}},
        **sections,
    }
    (folder / f"{name}.json").write_text(json.dumps(raw))
    return str(folder / f"{name}.json")


def record(folder, name, start=0.0, seed=0):
    places = NOISE * np.random.default_rng(seed).normal(size=(TIMES.size, 1, 3))
    places[:, 0, 2] += start - 0.5 * 9.81 * TIMES**2
    write_csv(folder / name, Recording(("m",), TIMES, places, np.ones((TIMES.size, 1), bool), ""))
    return {"file": name, "markers": {"m": "m"}}


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    sections = {
        "recording": record(folder, "a.csv"),
        "objective": [{"type": "markers"}],
        "parameters": [{"path": "gravity", "components": [2]}],
        "optimizer": {"method": "gauss-newton"},
    }
    asked = CliRunner().invoke(cli, ["optimize", scene(folder, "fall", **sections), "-o", str(folder / "run")])
    assert asked.exit_code == 0, asked.output
    return folder


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_error_of_a_later_place(fit, tmp_path):
    """sd(z(t)) = t^2 / 2 sd(g), for a longer fall from another height."""
    other = scene(tmp_path, "longer", gravity=-5.0, start=(0, 0, 2.0), duration=0.6)
    asked = run("predict", fit / "run", other, "-o", tmp_path / "p.csv", "--picture", tmp_path / "p.png")
    assert asked.exit_code == 0, asked.output
    entry = json.loads((fit / "run" / "result.json").read_text())["parameters"]["gravity[2]"]
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    times = np.array([float(row["time_s"]) for row in rows])
    assert times[-1] == pytest.approx(0.6)
    places, errors = (np.array([float(row[key]) for row in rows]) for key in ("z_m", "sd_z_m"))
    assert places == pytest.approx(2.0 + 0.5 * entry["value"] * times**2, abs=2e-4)
    assert errors[1:] == pytest.approx(0.5 * entry["standard_error"] * times[1:] ** 2, rel=0.02, abs=2e-7)
    assert all(float(row["sd_x_m"]) == 0.0 for row in rows)
    assert (tmp_path / "p.png").stat().st_size > 5000
    assert "largest standard deviation" in asked.output
    said = f"gravity[2] = {entry['value']:.6g} +- {entry['standard_error']:.2g} m/s^2"
    assert said in asked.output and said in run("info", fit / "run").output


def test_band_holds_another_recording(fit, tmp_path):
    other = scene(tmp_path, "again", start=(0, 0, 1.0), recording=record(tmp_path, "b.csv", start=1.0, seed=5))
    asked = run("predict", fit / "run", other, "-o", tmp_path / "p.csv", "--json")
    assert asked.exit_code == 0, asked.output
    said = json.loads(asked.stdout)
    assert 0.88 < said["within_band"] <= 1.0
    assert said["rms"] == pytest.approx(np.sqrt(3) * NOISE, rel=0.15)


def test_coordinates_that_cannot_move_do_not_count(fit, tmp_path, caplog):
    """With a tenth more of gravity two of three coordinates fit by themselves, and no longer make 67 %."""
    other = record(tmp_path, "c.csv", start=1.0, seed=7)
    lines = (tmp_path / "c.csv").read_text().splitlines()
    table = np.array([[float(value) for value in line.split(",")[:4]] for line in lines[1:]])
    table[:, 3] -= 0.05 * 9.81 * table[:, 0] ** 2
    rows = [",".join(f"{value:.9g}" for value in row) for row in table]
    (tmp_path / "c.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    scene_file = scene(tmp_path, "again", start=(0, 0, 1.0), recording=other)
    asked = run("predict", fit / "run", scene_file, "-o", tmp_path / "p.csv", "--json")
    assert asked.exit_code == 0, asked.output
    said = json.loads(asked.stdout)
    assert said["coordinates"] == TIMES.size
    assert said["within_band"] < 0.4
    assert "does not hold for this motion" in said["verdict"] and said["verdict"] in caplog.text


def test_a_band_that_leaves_the_scene_is_a_warning(fit, tmp_path, caplog):
    shutil.copytree(fit / "run", tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    entry = result["parameters"]["gravity[2]"]
    entry["standard_error"] = entry["errors"]["noise"] = 5e4
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    asked = run("predict", tmp_path / "run", scene(tmp_path, "longer"), "-o", tmp_path / "p.csv")
    assert asked.exit_code == 0, asked.output
    assert "it leaves the scene" in caplog.text and "gravity[2] = -9." in caplog.text


def test_discretisation_errors_of_two_numbers_go_together(fit, tmp_path):
    """z = z0 + v t + g t^2 / 2 with v and g off by (0.1, -0.5) times one factor: sd(z) = |0.1 t - 0.25 t^2|."""
    numbers = {"bodies.p.velocity[2]": (1.0, 0.1), "gravity[2]": (-9.0, 0.5)}
    shutil.copytree(fit / "run", tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    known = result["parameters"]["gravity[2]"]
    result["parameters"] = {
        label: known | {"value": value, "errors": {"noise": 0.0, "discretisation": off}}
        for label, (value, off) in numbers.items()
    }
    result["uncertainty"]["shifts"] = {"labels": [*numbers], "vectors": [[0.1, -0.5]]}
    other = scene(tmp_path, "longer", duration=0.6)
    asked = ["predict", tmp_path / "run", other, "-o", tmp_path / "p.csv"]
    asked += [text for label in numbers for text in ("--parameter", label)]

    def errors():
        (tmp_path / "run" / "result.json").write_text(json.dumps(result))
        done = run(*asked)
        assert done.exit_code == 0, done.output
        rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
        return np.array([[float(row["time_s"]), float(row["sd_z_m"])] for row in rows]).T

    t, together = errors()
    assert together == pytest.approx(np.abs(0.1 * t - 0.25 * t**2), abs=5e-4)
    del result["uncertainty"]["shifts"]  # as an older version wrote it: each for itself
    t, alone = errors()
    assert alone == pytest.approx(np.hypot(0.1 * t, 0.25 * t**2), abs=5e-4)


def test_refusals(fit, tmp_path):
    other = scene(tmp_path, "longer")
    asked = run("predict", fit / "run", other, "-o", tmp_path / "p.csv", "--parameter", "contact.friction")
    assert isinstance(asked.exception, InputError) and "no such number" in str(asked.exception)
    assert run("simulate", other, "-o", tmp_path / "sim").exit_code == 0
    asked = run("predict", tmp_path / "sim", other, "-o", tmp_path / "p.csv")
    assert isinstance(asked.exception, InputError) and "no fit" in str(asked.exception)


def test_numbers_are_carried_into_another_scene(fit, tmp_path):
    """The scene that is written has the fit's number, its own other numbers, and starts its own search there."""
    sections = {
        "objective": [{"type": "point", "marker": "m", "target": [0, 0, -1], "time": "end"}],
        "parameters": [{"path": "gravity", "components": [2], "start": -3.0}, {"path": "bodies.p.velocity"}],
    }
    other, written = scene(tmp_path, "other", start=(0, 0, 2.0), **sections), tmp_path / "carried.json"
    asked = run("carry", fit / "run", other, "-o", written)
    assert asked.exit_code == 0, asked.output
    entry = json.loads((fit / "run" / "result.json").read_text())["parameters"]["gravity[2]"]
    raw = json.loads(written.read_text())
    assert raw["gravity"] == [0, 0, entry["value"]] and f"gravity[2] = {entry['value']:.6g} +- " in asked.output
    assert "start" not in raw["parameters"][0] and raw["bodies"]["p"]["mesh"] == {"points": [[0, 0, 2.0]]}
    again = run("carry", fit / "run", other, "-o", written)
    assert isinstance(again.exception, InputError) and "--force" in str(again.exception)
    assert run("carry", fit / "run", other, "-o", written, "--force", "--parameter", "gravity").exit_code == 0
    lost = run("carry", fit / "run", other, "-o", tmp_path / "none" / "c.json")
    assert isinstance(lost.exception, InputError) and "no such folder" in str(lost.exception)


def test_numbers_of_another_law_are_refused(tmp_path):
    """c10 of a formula is another number in another formula, and in Mooney's law."""
    raw = json.loads((SCENES / "yeoh_strip.json").read_text(encoding="utf-8"))
    del raw["expect"]
    folder = RunFolder(tmp_path / "run")
    folder.scene.write_text(json.dumps(raw))
    label = "bodies.strip.material.numbers.c10"
    require_same_laws(folder, scene_from_dict(raw), [label])
    material = raw["bodies"]["strip"]["material"]
    material["energy"] = material["energy"].replace("c20*(I1b - 3)**2", "c20*(I2b - 3)")
    with pytest.raises(InputError, match=r"of another law.*I2b") as error:
        require_same_laws(folder, scene_from_dict(raw), [label])
    assert "bodies.strip.material.energy" in str(error.value)
    raw["bodies"]["strip"]["material"] = {
        "model": "mooney-rivlin",
        "c10": 1e4,
        "c01": 1.0,
        "kappa": 1e6,
        "density": 1e3,
    }
    raw["parameters"] = []
    with pytest.raises(InputError, match=r"of another law.*'mooney-rivlin'.*'formula'"):
        require_same_laws(folder, scene_from_dict(raw), [label])


@pytest.mark.parametrize(
    ("where", "other", "label", "words"),
    [
        ("membrane", {"model": "stvk", "young": 1e5, "poisson": 0.3}, "membrane.young", "'stvk'.*'neo-hookean'"),
        ("bending", {"model": "plate", "rigidity": 1e-5}, "bending.damping", "'plate'.*'hinge'"),
    ],
)
def test_numbers_of_another_cloth_are_refused(tmp_path, where, other, label, words):
    """Models that a fit leaves open are the default ones; a body of another kind has another density."""
    raw = json.loads((SCENES / "cloth_on_block.json").read_text(encoding="utf-8"))
    material = raw["bodies"]["cloth"]["material"]
    del material["membrane"]["model"], material["bending"]["model"]
    folder, label = RunFolder(tmp_path / "run"), f"bodies.cloth.material.{label}"
    folder.scene.write_text(json.dumps(raw))
    labels = [label, "bodies.cloth.material.density"]
    require_same_laws(folder, scene_from_dict(raw), labels)
    material[where] = other
    with pytest.raises(InputError, match=rf"of another law.*{words}") as error:
        require_same_laws(folder, scene_from_dict(raw), labels)
    assert f"material.{where}.model" in str(error.value)
    folder.scene.write_text(json.dumps({"bodies": {"cloth": {"type": "soft", "material": {"density": 1000}}}}))
    with pytest.raises(InputError, match=r"of another law.*'cloth'.*'soft'"):
        require_same_laws(folder, scene_from_dict(raw), labels[1:])


def test_what_travels_is_what_the_format_calls_a_property():
    """Starts of joints and of hinges stay behind like those of bodies; the place of a joint in a robot goes along."""
    starts = (
        "bodies.arm.joints.j.value",
        "bodies.arm.joints.j.rate",
        "couplings.h.start.angle",
        "couplings.h.start.rate",
    )
    driven = ("signals.push.values[3]", "bodies.b.loads.0.force[2]", "couplings.h.motor.angle", "couplings.f.wind[0]")
    seen = ("recording.place.move[0]", "objective.0.time_offset")
    kept = ("bodies.arm.joints.j.position[0]", "bodies.arm.joints.j.damping", "couplings.h.friction.viscous",
            "bodies.a.mass+bodies.b.mass")  # fmt: skip
    known = dict.fromkeys([*starts, *driven, *seen, *kept, "bodies.a.mass+bodies.b.velocity[0]", "contact.friction@a"])
    assert tuple(carried({"parameters": known})) == kept
    why = of_one_motion(known)
    assert {why[label] for label in starts} == {"where the motion starts"}
    assert {why[label] for label in driven} == {"what drives the motion"}
    assert {why[label] for label in seen} == {"when and from where it was recorded"}
    assert why["contact.friction@a"] == "of one take"


@pytest.mark.parametrize("command", ["predict", "carry"])
def test_another_motion_keeps_its_own_start(fit, tmp_path, command):
    """A pendulum that a take let go at 0.3 rad is let go here at 1 rad: the damping goes along, the start does not."""
    shutil.copytree(fit / "run", tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    known = {"bodies.arm.joints.swing.damping": 0.2, "bodies.arm.joints.swing.value": 0.3}
    entry = result["parameters"]["gravity[2]"]
    result["parameters"] = {label: entry | {"value": value} for label, value in known.items()}
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2},
        "bodies": {"arm": {
            "type": "articulated",
            "links": {"rod": {"mass": 1.0, "inertia": [0.01, 0.01, 0.01, 0, 0, 0], "center_of_mass": [0, 0, -0.5]}},
            "joints": {"swing": {"child": "rod", "axis": [0, 1, 0], "value": 1.0, "damping": 0.01}},
        }},
        "markers": {"tip": {"body": "arm/rod", "point": [0, 0, -1.0]}},
    }  # fmt: skip
    (tmp_path / "swing.json").write_text(json.dumps(raw))
    asked = run(command, tmp_path / "run", tmp_path / "swing.json", "-o", tmp_path / "out")
    assert asked.exit_code == 0, asked.output
    assert "stays behind, where the motion starts: bodies.arm.joints.swing.value (--parameter" in asked.output
    if command == "carry":
        joint = json.loads((tmp_path / "out").read_text())["bodies"]["arm"]["joints"]["swing"]
        assert joint["value"] == 1.0 and joint["damping"] == 0.2
    else:
        first = next(csv.DictReader((tmp_path / "out").read_text().splitlines()))
        assert [float(first["x_m"]), float(first["z_m"])] == pytest.approx([-np.sin(1.0), -np.cos(1.0)], abs=1e-9)


def test_numbers_that_share_a_value_and_numbers_of_a_take(fit, tmp_path):
    """One value for two bodies goes into both; a start of one take goes along if it is asked for by its own name."""
    shutil.copytree(fit / "run", tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    entry = result["parameters"]["gravity[2]"]
    known = {"bodies.p.mass+bodies.q.mass": 2.5, "bodies.p.velocity@first[2]": 0.5}
    result["parameters"] = {label: entry | {"value": value} for label, value in known.items()}
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    body = {"type": "particles", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0}
    other = scene(tmp_path, "two", bodies={"p": body, "q": body})
    assert run("carry", tmp_path / "run", other, "-o", tmp_path / "a.json").exit_code == 0
    bodies = json.loads((tmp_path / "a.json").read_text())["bodies"]
    assert bodies["p"]["mass"] == bodies["q"]["mass"] == 2.5 and "velocity" not in bodies["p"]
    asked = run("carry", tmp_path / "run", other, "-o", tmp_path / "b.json", "--parameter", "bodies.p.velocity@first")
    assert asked.exit_code == 0, asked.output
    assert json.loads((tmp_path / "b.json").read_text())["bodies"]["p"]["velocity"] == [0, 0, 0.5]
    asked = run("predict", tmp_path / "run", other, "-o", tmp_path / "p.csv", "--parameter", "bodies.q.mass")
    assert asked.exit_code == 0, asked.output


def test_starts_and_numbers_of_one_take_stay_behind():
    known = {
        "bodies.b.material.young": {},
        "bodies.b.velocity[0]": {},
        "contact.friction@a": {},
        "recording.time_offset": {},
    }
    assert list(carried({"parameters": known})) == ["bodies.b.material.young"]
    for asked in ("bodies.b.velocity[0]", "bodies.b.velocity"):
        assert list(carried({"parameters": known}, (asked,))) == ["bodies.b.velocity[0]"]
    with pytest.raises(InputError, match="holds for another motion"):
        carried({"parameters": {"bodies.b.velocity[0]": {}}})
