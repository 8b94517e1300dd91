"""Objects that files outside the package bring: each in a scene, with its derivatives, named in errors and results."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.integrate import solve_ivp
from support.run_checks import check_gradient_of_run

import add
from add.commands.cli import cli, main
from add.commands.marker_fits import target_fits
from add.commands.report_texts import targets_left
from add.errors import InputError
from add.extensions import CouplingExtension, Extension, ObjectiveExtension, PairExtension, SolverExtension, load_file
from add.joints.law_term import TURN, JointFormula
from add.machine.foreign import VARIABLE, load_installed
from add.mocap import read_take
from add.scene.build.inverse_problem import inverse_problem
from add.scene.spec.couplings import SpringSpec
from add.scene.spec.kinds import by_value
from add.scene.spec.roles import json_schema

FOLDER = Path(__file__).parents[1] / "extensions"

ANGRY = """from typing import Literal
from add.extensions import ObjectiveExtension
from add.objectives import Objective
class Angry(Objective):
    def step_value(self, state, theta):
        return 1.0 / (state.step - state.step)
    def step_pullback(self, *arguments):
        pass
class AngryGoal(ObjectiveExtension):
    type: Literal["angry"] = "angry"
    def objective(self, built, place):
        return Angry()
"""


@pytest.fixture(scope="module", autouse=True)
def extensions():
    """Import all files, as `add --extension FILE` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")
        patch.syspath_prepend(str(FOLDER))
        yield {file.stem: load_file(file) for file in sorted(FOLDER.glob("*.py"))}


def air_spring(**time):
    """Return a ball that an air spring carries."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 25, **time},
        "bodies": {
            "ball": {
                "type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 2, "position": [0, 0, 0.3],
            }
        },
        "couplings": {
            "spring": {
                "type": "air-spring", "a": {"body": "ball", "at": [0.01, 0, 0]}, "b": {"at": [0, 0, 0]},
                "force": 30.0, "damping": 4.0, "length": 0.25,
            }
        },
        "objective": [{"type": "calm", "body": "ball", "after": 0.05}],
        "parameters": [{"path": "couplings.spring.exponent"}, {"path": "couplings.spring.force"}],
    }  # fmt: skip


def rod(segments, **time):
    """Return a rod that two of its nodes clamp at a body that stands still."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 12, **time},
        "bodies": {
            "wall": {"type": "kinematic"},
            "rod": {
                "type": "thin-rod", "length": 1.0, "segments": segments, "mass": 0.01, "stretching": 1e4,
                "bending": 0.5, "damping": 1.0,
            },
        },
        "couplings": {
            "clamp": {
                "type": "attachment", "nodes": "rod", "body": "wall", "stiffness": 1e6,
                "where": {"box": {"max": [1.01 / segments, None, None]}},
            }
        },
        "objective": [{"type": "calm", "body": "rod"}],
        "parameters": [{"path": "bodies.rod.bending"}],
    }  # fmt: skip


def test_an_objective_says_how_far_it_is_off():
    """What `off` returns stands in the result, in the root of the unit; of one without it nothing."""
    scene = add.scene_from_dict(air_spring(steps=10))
    built, (experiment,) = scene.build(), inverse_problem(scene).experiments
    run = built.run()
    (found,) = target_fits(scene, experiment, run, built.theta)
    speeds = np.linalg.norm(run.v[6:], axis=1)
    assert (found["type"], found["of"], found["unit"]) == ("calm", "ball", "m/s")
    assert found["worst"] == pytest.approx(speeds.max()) and found["rms"] ** 2 == pytest.approx(np.mean(speeds**2))
    assert targets_left({"experiments": {"run": {"targets": [found]}}})[0].endswith("m/s (objective.0, calm of ball)")


def checked(scene):
    """Return the run of a scene after all checks of its gradient."""
    (experiment,) = inverse_problem(add.scene_from_dict(scene)).experiments
    return check_gradient_of_run(experiment.simulation, experiment.objective)


def test_a_joint_law_and_an_objective():
    """It moves as m z_ddot = F_0 (L/z)^gamma - c z_dot - m g, solved by SciPy; its gradients are exact."""
    run = checked(air_spring())
    assert run.v[:, 2].max() > 0.1
    scene = air_spring(dt=0.001, steps=250)
    scene["couplings"]["spring"]["a"]["at"] = [0, 0, 0]
    run = add.scene_from_dict(scene).build().run()

    def motion(t, y):
        return y[1], (30.0 * (0.25 / y[0]) ** 1.4 - 4.0 * y[1]) / 2.0 - 9.81

    found = solve_ivp(motion, (0.0, 0.25), (0.3, 0.0), rtol=1e-10, atol=1e-12)
    assert run.q[-1, 2] == pytest.approx(found.y[0, -1], abs=2e-6)


def test_it_takes_compiled_steps_and_those_of_terms_are_the_same():
    built = add.scene_from_dict(air_spring()).build()
    assert built.simulation.packed is not None, built.simulation.by_terms
    plain = add.scene_from_dict(air_spring(linear_solver={"type": "plain-superlu"})).build()
    assert plain.simulation.by_terms == "another solver of linear systems is asked for"
    assert np.abs(plain.run().q - built.run().q).max() < 1e-12


def test_an_integrator():
    """Without its share it is BDF1, and with one of order one; its gradients are exact."""

    def heights(integrator, finer=1):
        time = {"integrator": integrator, "dt": 0.01 / finer, "steps": 25 * finer}
        return add.scene_from_dict(air_spring(**time)).build().run().q[::finer, 2]

    exact = heights("bdf2", 16)
    shares = [{"type": "blended-bdf", "share": share} for share in (0.0, 0.6)]
    assert heights(shares[0]) == pytest.approx(heights("bdf1"), abs=1e-12)
    errors = [np.abs(heights(shares[1], finer) - exact).max() for finer in (2, 4)]
    assert errors[1] == pytest.approx(0.5 * errors[0], rel=0.1)
    checked(air_spring(integrator=shares[1]))


def test_a_body():
    """The end of a clamped rod sags by m g L^3 / (8 E I), of first order in the length of its segments."""
    sags = []
    for n in (10, 20):
        run = add.scene_from_dict(rod(n, initial="equilibrium")).build().run(n_steps=1)
        sags.append(-run.q[0, 3 * n + 2])
    exact = 0.01 * 9.81 / 8 / 0.5
    assert sags[0] < sags[1] < exact
    assert 2 * sags[1] - sags[0] == pytest.approx(exact, rel=0.02)
    checked(rod(4))


def test_a_force():
    """A ball in free flight slows as v/(1 + k A v t/m), A the sum over its nodes; its gradients are exact."""
    ball = {
        "type": "soft", "mesh": {"shape": "sphere", "radius": 0.05, "edge": 0.05}, "velocity": [5, 0, 0],
        "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 20},
    }  # fmt: skip
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "steps": 10},
        "gravity": [0, 0, 0],
        "bodies": {"ball": ball},
        "couplings": {"air": {"type": "surface-drag", "body": "ball", "coefficient": 3.0}},
        "objective": [{"type": "calm", "body": "ball"}],
        "parameters": [{"path": "couplings.air.coefficient"}],
    }
    run = checked(scene)
    (body,) = add.scene_from_dict(scene).build().model.bodies
    masses = add.scene_from_dict(scene).build().model.node_masses(add.scene_from_dict(scene).build().theta)
    rate = 3.0 * body.surface.areas.sum() * 5.0 / masses.sum()
    speed = masses @ run.v[-1].reshape(-1, 3)[:, 0] / masses.sum()
    assert speed == pytest.approx(5.0 / (1.0 + rate * 0.02), rel=5e-3) and speed < 4.95


def test_laws_of_contact():
    """A friction law and a normal law, with derivatives of a run by their numbers; the same by formulas of a scene."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.02]}, "mass": 0.5}
    named = {"law": {"type": "skin"}, "friction_curve": {"type": "rubber", "growth": 0.2, "slow": 0.1}}
    numbers = {"growth": 0.2, "slow": 0.1}
    written = {
        "law": {"energy": "d**3/(d + 0.001)", "damping": "d/(d + 0.001)"},
        "friction_curve": {"coefficient": "mu*(1 + growth*log(1 + u/slow))", "numbers": numbers},
    }
    scenes = [
        add.scene_from_dict({
            "schema": "add-scene/1",
            "time": {"dt": 0.002, "steps": 30},
            "bodies": {"box": box | {"position": [0, 0, 0.012], "velocity": [0.5, 0, -0.2]}},
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
            "contact": {"stiffness": 5e4, "damping": 20, "friction": 0.3, **laws},
            "objective": [{"type": "calm", "body": "box", "after": 0.05}],
            "parameters": [{"path": "contact.friction"}],
        })
        for laws in (named, written)
    ]  # fmt: skip
    runs = [scene.build().run() for scene in scenes]
    assert runs[0].v[-1, 0] < 0.4
    assert np.array_equal(runs[0].q, runs[1].q)
    problem = inverse_problem(scenes[0])
    check_gradient_of_run(scenes[0].build().simulation, problem.experiments[0].objective)
    assert "contact.friction_curve.growth" in scenes[0].build().numbers.layout
    with pytest.raises(InputError, match=r"contact\.friction_curve\.slow"):
        add.apply_overrides(scenes[0], {"contact.friction_curve.slow": -1.0})


def test_an_elastic_law():
    """Yeoh's by a file, by a formula of the scene and by its name: equal runs; its numbers are parameters."""

    def scene(material):
        return add.scene_from_dict({
            "schema": "add-scene/1",
            "time": {"dt": 0.005, "steps": 10, "newton": {"atol": 1e-12, "rtol": 0}},
            "bodies": {
                "strip": {
                    "type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.02, 0.02], "divisions": [2, 1, 1]},
                    "material": {"density": 1000} | material,
                    "pins": [{"where": {"box": {"max": [-0.0499, None, None]}}}],
                }
            },
            "objective": [{"type": "calm", "body": "strip", "after": 0.01}],
            "parameters": [{"path": "bodies.strip.material.c20"}] if "type" in material else [],
        })  # fmt: skip

    numbers = {"c10": 2e4, "c20": 3e3}
    text = "c10*(I1b - 3) + c20*(I1b - 3)**2 + 20*c10*(J - 1)**2"
    named = scene({"type": "rubber"} | numbers)
    by_formula = scene({"model": "formula", "energy": text, "numbers": numbers})
    by_name = scene({"model": "yeoh", "kappa": 40 * 2e4} | numbers)
    runs = [one.build().run().q for one in (named, by_formula, by_name)]
    assert np.array_equal(runs[0], runs[1])
    np.testing.assert_allclose(runs[2], runs[0], rtol=0, atol=1e-12)
    assert np.abs(runs[0][-1] - runs[0][0]).max() > 1e-3
    check_gradient_of_run(named.build().simulation, inverse_problem(named).experiments[0].objective)
    assert named.build().numbers.layout["bodies.strip.material.c20"].unit == "Pa"
    with pytest.raises(InputError, match=r"strip\.material\.c10.*greater than 0|above 0"):
        scene({"type": "rubber", "c10": -2e4, "c20": 0})
    with pytest.raises(InputError, match="unknown key"):
        scene({"type": "no-rubber"} | numbers)


def test_a_law_of_viscosity():
    """A block of neo-Hooke's law whose upper face moves along z alone: one coordinate, the stretch s in F_zz.

    D = s s_dot e_z e_z, so that rho h^2/2 s_ddot = -(mu (s - 1/s) + lambda ln(s)/s + eta s^2 s_dot).
    """
    size, mu, lame, given = 0.1, 2e3, 1e3, {"eta_0": 60.0, "eta_inf": 4.0, "l": 0.3, "n": 0.4}

    def scene(viscosity, dt=1e-3, n_steps=80):
        return add.scene_from_dict({
            "schema": "add-scene/1",
            "time": {"dt": dt, "steps": n_steps, "newton": {"atol": 1e-12, "rtol": 0}},
            "gravity": [0, 0, 0],
            "bodies": {
                "block": {
                    "type": "soft", "mesh": {"shape": "box", "size": [size] * 3, "divisions": [1, 1, 1]},
                    "element": "hex8", "mass": "lumped", "velocity": [0, 0, 2.0],
                    "material": {"mu": mu, "lambda": lame, "density": 1000, "viscosity": viscosity},
                    "pins": [
                        {"where": {"box": {"max": [None, None, -0.0499]}}},
                        {"where": {"box": {"min": [None, None, 0.0499]}}, "axes": "xy"},
                    ],
                }
            },
            "objective": [{"type": "calm", "body": "block", "after": 0.002}],
            "parameters": [{"path": "bodies.block.material.viscosity.l"}] if isinstance(viscosity, dict) else [],
        })  # fmt: skip

    def motion(t, y):
        stretch, rate = y
        square = (given["l"] * stretch * rate) ** 2
        eta = given["eta_inf"] + (given["eta_0"] - given["eta_inf"]) * (1 + square) ** -0.3
        pull = mu * (stretch - 1 / stretch) + lame * np.log(stretch) / stretch
        return rate, -(pull + eta * stretch**2 * rate) * 2.0 / (1000.0 * size**2)

    thinning = scene({"type": "carreau"} | given).build()
    run = thinning.run()
    top = 3 * np.argmax(run.q[0][2::3]) + 2
    expected = solve_ivp(motion, (0, run.t[-1]), (1.0, 2.0 / size), rtol=1e-9, t_eval=run.t).y[0]
    found = 1.0 + (run.q[:, top] - run.q[0, top]) / size
    assert np.ptp(expected) > 0.5 and np.abs(found - expected).max() < 2e-3 * np.ptp(expected)
    constant = scene(given["eta_0"]).build().run()
    assert np.abs(constant.q[:, top] - run.q[:, top]).max() > 0.1 * size * np.ptp(expected)
    check_gradient_of_run(
        scene({"type": "carreau"} | given, n_steps=6).build().simulation,
        inverse_problem(scene({"type": "carreau"} | given, n_steps=6)).experiments[0].objective,
    )
    assert thinning.numbers.layout["bodies.block.material.viscosity.l"].unit == "s"
    with pytest.raises(InputError, match=r"block\.material\.viscosity.*'carreau', dissipation: .*no value at rest"):
        scene({"type": "carreau"} | given | {"n": -1.0})
    with pytest.raises(InputError, match=r"carreau"):
        scene({"type": "carreaux"} | given)


def test_a_format_of_recordings(tmp_path):
    file = tmp_path / "hand.txt"
    file.write_text("#markers 1\nm1 0.0 0 0 1\nm2 0.0 1 0 1\nm1 0.1 0 0 2\n")
    take = read_take(file)
    assert take.format == "lines of markers" and take.markers.names == ("m1", "m2")
    assert take.markers.positions[1, 0].tolist() == [0.0, 0.0, 2.0] and not take.markers.valid[1, 1]
    file.write_text("#markers 1\nm1 0.0 0 zero 1\n")
    with pytest.raises(InputError, match="line 2: lines of markers: not a marker"):
        read_take(file)


def test_a_format_of_robots(tmp_path):
    """As the scene writes the same chain by itself."""
    file = tmp_path / "chain.sticks"
    file.write_text("#sticks 1\nupper 0.3 0.2\nlower 0.2 0.1\n")
    time = {"dt": 0.01, "steps": 20}
    starts = {"to_upper": {"value": 0.4}, "to_lower": {"rate": 1.0}}
    read = add.scene_from_dict(
        {"schema": "add-scene/1", "time": time,
         "bodies": {"arm": {"type": "articulated", "model": str(file), "joints": starts}}}
    )  # fmt: skip

    def stick(l, m):
        inertia = [m * l**2 / 12, m * l**2 / 12, m * l**2 / 120, 0, 0, 0]
        return {"mass": m, "inertia": inertia, "center_of_mass": [0, 0, -0.5 * l]}

    joints = {
        "to_upper": {"child": "upper", "axis": [0, 1, 0], "value": 0.4},
        "to_lower": {"parent": "upper", "child": "lower", "axis": [0, 1, 0], "position": [0, 0, -0.3], "rate": 1.0},
    }  # fmt: skip
    arm = {"type": "articulated", "links": {"upper": stick(0.3, 0.2), "lower": stick(0.2, 0.1)}, "joints": joints}
    written = add.scene_from_dict({"schema": "add-scene/1", "time": time, "bodies": {"arm": arm}})
    assert read.build().run().q == pytest.approx(written.build().run().q, abs=1e-12)
    with pytest.raises(InputError, match="option `visual` is for URDF and SDF files"):
        add.read_robot(file, visual=True)
    file.write_text("#sticks 1\nupper long 0.2\n")
    with pytest.raises(InputError, match="line 2: not a stick"):
        add.read_robot(file)


def test_an_optimiser():
    """As L-BFGS-B: where a ball has to be thrown to."""
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20},
        "bodies": {"ball": {"type": "rigid", "mass": 0.2, "geometry": {"shape": "sphere", "radius": 0.05}}},
        "markers": {"middle": {"body": "ball", "point": [0, 0, 0]}},
        "objective": [{"type": "point", "marker": "middle", "target": [0.3, -0.1, 0.2], "time": "end"}],
        "parameters": [{"path": "bodies.ball.velocity"}],
    }  # fmt: skip
    wanted = add.scene_from_dict(raw).inverse_problem().optimize()
    scene = add.scene_from_dict(raw | {"optimizer": {"method": {"type": "spectral-gradient"}, "max_evaluations": 40}})
    problem = scene.inverse_problem()
    found = problem.optimize()
    assert found.phases[0].status == "the gradient is small"
    assert found.x == pytest.approx(wanted.x, abs=1e-6)
    written = json.loads(scene.model_dump_json())["optimizer"]["method"]
    assert written == {"type": "spectral-gradient", "first": 0.1}
    with pytest.raises(InputError, match=r"optimizer.method.*no extension has this name"):
        add.scene_from_dict(raw | {"optimizer": {"method": {"type": "no such"}}})


def test_errors_name_extensions():
    scene = air_spring()
    scene["couplings"]["spring"] |= {"force": -1.0, "frce": 3.0}
    with pytest.raises(InputError, match=r"spring\.force: impossible value.*above 0: F_0") as caught:
        add.scene_from_dict(scene)
    assert "frce: unknown key" in str(caught.value) and "did you mean 'force'" in str(caught.value)
    scene = air_spring()
    scene["couplings"]["spring"]["type"] = "air-sprin"
    with pytest.raises(InputError, match=r"unknown kind.*'air-spring'.*did you mean 'air-spring'"):
        add.scene_from_dict(scene)
    with pytest.raises(InputError, match=r"time\.integrator\.type: no extension has this name.*'blended-bdf'"):
        add.scene_from_dict(air_spring(integrator={"type": "leapfrog"}))
    scene = air_spring()
    scene["objective"][0]["body"] = "bal"
    with pytest.raises(InputError, match=r"objective\.0\.body.*no such body"):
        inverse_problem(add.scene_from_dict(scene))


def test_they_are_in_the_schema_and_written_back():
    assert '"air-spring"' in json.dumps(json_schema()) and '"thin-rod"' in json.dumps(json_schema())
    full = add.scene_from_dict(air_spring()).full()["couplings"]["spring"]
    assert full["exponent"] == 1.4 and full["a"]["body"] == "ball"


def test_a_name_that_two_have():
    class Own(Extension):
        """A kind of its own."""

    class One(Own):
        """One."""

        type: Literal["same"] = "same"

    class Other(Own):
        """Another one."""

        type: Literal["same"] = "same"

    with pytest.raises(InputError, match=r"two extensions have the name 'same'.*One and .*Other"):
        Own.known()


def test_names_that_no_scene_could_write():
    for words in (Literal["<k>"], Literal[""], Literal["one", "other"], str):
        with pytest.raises(InputError, match=r"Faulty\.type: an extension needs a name of its own"):
            type("Faulty", (CouplingExtension,), {"__doc__": "A.", "__annotations__": {"type": words}})
    with pytest.raises(InputError, match="derives from one of the kinds"):
        type("Faulty", (Extension,), {"__doc__": "A.", "__annotations__": {"type": Literal["k"]}})


def test_the_name_of_a_kind_of_the_format():
    """It would never be asked."""

    class Own(Extension):
        """A kind of its own."""

    class One(Own):
        """One."""

        type: Literal["spring"] = "spring"

    choose = by_value("type", further=Own).among((SpringSpec, Own)).branch
    with pytest.raises(InputError, match=r"name of a kind of the format, 'spring' .*One"):
        choose({"type": One().type})


@pytest.mark.parametrize(
    ("term", "columns", "message"),
    [
        (JointFormula("f*l", ""), {"g": "N"}, "a column of a law is a field"),
        (
            JointFormula("f*l", ""),
            {},
            "the numbers of its force dV/dl . D .found none; expected f",
        ),
        (JointFormula("f*l", ""), {"collide": "-", "type": "-"}, "found collide, type; expected f"),
        (JointFormula("f*length", ""), {"type": "-"}, "found type; expected none, as the formula stands"),
        (JointFormula("f*angle", "", TURN), {"type": "N"}, "of their distance l .found angle"),
    ],
)
def test_columns_that_do_not_fit_a_law(term, columns, message):
    words = {"__doc__": "A.", "__annotations__": {"type": Literal["faulty columns"]}}
    with pytest.raises(InputError, match=message):
        type("Faulty", (PairExtension,), words | {"term": term, "columns": columns})


def test_the_columns_of_a_formula_go_by_their_names():
    """Numbers of a formula whose columns are not in alphabetical order are those of their names."""

    class Magnet(PairExtension):
        """Two places that attract each other, V = -strength/(l + core)."""

        term = JointFormula("-strength/(l + core)", "")
        columns: ClassVar[dict[str, str]] = {"strength": "J m", "core": "m"}
        type: Literal["magnet"] = "magnet"
        strength: float
        core: float

    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1, "position": [0.3, 0, 0]}
    magnet = {
        "type": "magnet",
        "a": {"at": [0, 0, 0]},
        "b": {"body": "ball", "at": [0, 0, 0]},
        "strength": 0.5,
        "core": 0.2,
    }
    raw = {
        "schema": "add-scene/1", "time": {"dt": 0.001, "steps": 1, "integrator": "bdf1"}, "gravity": [0, 0, 0],
        "bodies": {"ball": ball}, "couplings": {"magnet": magnet},
    }  # fmt: skip
    # A key that no coupling has was looked for among the kinds of this extension without an end.
    with pytest.raises(InputError, match=r"couplings.magnet.a.point: unknown key .expected one of at, body"):
        add.scene_from_dict(raw | {"couplings": {"magnet": magnet | {"a": {"point": [0, 0, 0]}}}})
    run = add.scene_from_dict(raw).build().run()
    assert run.v[-1, 0] == pytest.approx(-0.001 * 0.5 / (0.3 + 0.2) ** 2, rel=1e-4)


def test_an_extension_that_fails_is_named_with_the_line():
    class Failing(CouplingExtension):
        """Fails."""

        type: Literal["failing coupling"] = "failing coupling"

        def build(self, place, bodies, parts, driven):
            raise KeyError(place)

    class FailingSolver(SolverExtension):
        """Has none."""

        type: Literal["failing solver"] = "failing solver"

        def factorization(self, n):
            return None

    class FailingGoal(ObjectiveExtension):
        """Has none."""

        type: Literal["failing objective"] = "failing objective"

        def objective(self, built, place):
            return None

    scene = air_spring() | {"couplings": {"c": {"type": "failing coupling"}}, "parameters": []}
    line = rf"KeyError.*{Path(__file__).name}:\d+"
    with pytest.raises(InputError, match=rf"couplings\.c: the extension .* fails .*{line}"):
        add.scene_from_dict(scene).build()
    scene = air_spring(linear_solver={"type": "failing solver"})
    with pytest.raises(InputError, match=r"time\.linear_solver: .* NoneType, not of Factorization"):
        add.scene_from_dict(scene).build().run(n_steps=1)
    scene = air_spring() | {"objective": [{"type": "failing objective"}]}
    with pytest.raises(InputError, match=r"objective\.0: .* NoneType, not of Objective"):
        inverse_problem(add.scene_from_dict(scene))


def test_an_extension_that_fails_while_a_command_runs(tmp_path, monkeypatch, capsys):
    """One error with file and line, exit code 2; what fails elsewhere stays a traceback."""
    monkeypatch.setenv(VARIABLE, "")
    file = tmp_path / "angry_goal.py"
    file.write_text(ANGRY)
    scene = tmp_path / "scene.json"
    wanted = {"objective": [{"type": "angry"}], "parameters": [{"path": "couplings.spring.force"}]}
    scene.write_text(json.dumps(air_spring() | wanted))
    with pytest.raises(SystemExit) as left:
        main(["--extension", str(file), "optimize", str(scene), "-o", str(tmp_path / "run")])
    said = capsys.readouterr().err
    assert left.value.code == 2 and f"{file}:6: the extension fails (found ZeroDivisionError" in said, said
    assert "Traceback" not in said


def test_files_that_are_no_extensions(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    cases = {"time.py": "name of its own", "leaves.py": "SystemExit: 3", f"a{os.pathsep}b/law.py": "a path without"}
    for name, words in cases.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit(3)\n")
        with pytest.raises(InputError, match=words):
            load_file(tmp_path / name)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none.py"))
    load_installed.cache_clear()
    with pytest.raises(InputError, match=rf"none\.py: {VARIABLE}: no extension"):
        add.scene_from_dict(air_spring(integrator={"type": "leapfrog"}))


def test_classes_typed_at_a_prompt(tmp_path):
    """They have no file, and runs with them no version."""
    source = """
from typing import Literal
import sys
import add
from add.commands.simulate import simulate_scene
from add.extensions import CouplingExtension
from add.io.runfolder import RunFolder
class Nothing(CouplingExtension):
    "Does nothing."
    type: Literal["nothing"] = "nothing"
    def build(self, place, bodies, parts, driven):
        pass
body = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1}
scene = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "bodies": {"b": body}}
scene = add.scene_from_dict(scene | {"couplings": {"c": {"type": "nothing"}}})
simulate_scene(scene, RunFolder(sys.argv[1]))
"""
    command = [sys.executable, "-c", source, str(tmp_path / "run")]
    found = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert json.loads((tmp_path / "run" / "versions.json").read_text())["extension nothing"] == ""


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    scene, bad = tmp_path / "scene.json", tmp_path / "broken_law.py"
    scene.write_text(json.dumps(air_spring(steps=3)))
    run = CliRunner().invoke(
        cli, ["--extension", str(FOLDER / "buffers.py"), "simulate", str(scene), "-o", str(tmp_path / "run")]
    )
    assert run.exit_code == 0, run.output
    versions = json.loads((tmp_path / "run" / "versions.json").read_text())
    assert versions["extension air-spring"].startswith("sha256 ")
    bad.write_text("1/0\n")
    for file, words in ((bad, "ZeroDivisionError"), (tmp_path / "none.py", "no Python file")):
        found = CliRunner().invoke(cli, ["--extension", str(file), "simulate", str(scene)])
        assert isinstance(found.exception, InputError) and words in str(found.exception)
    assert "broken_law" not in sys.modules
