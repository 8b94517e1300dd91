"""Warnings of what can be simulated, but is probably not meant; --strict makes them errors."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from add.commands.cli import cli
from add.scene import experiment_scenes, load_scene, scene_from_dict
from add.scene.build.doubts import doubts, warn

SOFT = {
    "type": "soft",
    "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
    "material": {"model": "neo-hookean", "young": 2e4, "poisson": 0.3, "density": 1e3},
}
BOX = {"type": "rigid", "mass": 1.0, "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}}
TIME = {"dt": 0.01, "duration": 0.2}


def raw(bodies, **more):
    return {"schema": "add-scene/1", "time": TIME, "bodies": bodies, **more}


def warned(bodies, **more):
    return doubts(scene_from_dict(raw(bodies, **more)).build())


def at(body, x):
    return {**body, "position": [x, 0, 1]}


def test_nothing_to_say():
    assert warned({"a": at(SOFT, 0), "b": at(BOX, 1)}) == []


@pytest.mark.parametrize(
    ("material", "words"),
    [
        ({"young": 20.0, "poisson": 0.3}, "bodies.a.material: Young's modulus is 20 Pa, softer than any solid"),
        ({"young": 900.0, "poisson": 0.3}, "less than the weight of 0.1 m of it on its area, 981 Pa"),
        ({"mu": 300.0, "lambda": 400.0}, "it cannot carry itself"),
    ],
)
def test_moduli_in_the_wrong_unit(material, words):
    soft = SOFT | {"material": {"model": "neo-hookean", "density": 1e3} | material}
    (text,) = warned({"a": soft})
    assert words in text
    if material.get("young") != 20.0:
        assert warned({"a": soft}, gravity=[0, 0, 0]) == [], "nothing pulls at it"


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ({"orientation": [0.96, 0.28, 0, 0]}, "of up to 0.16 from"), ({"angular_velocity": [0, 3, 0]}, "0.17 from"),
        ({"orientation": [0.99995, 0.0099998749992, 0, 0], "angular_velocity": [0, 0.05, 0]}, ""),
    ],
)  # fmt: skip
def test_rotations_of_a_linear_material(start, said):
    linear = SOFT | {"material": SOFT["material"] | {"model": "linear"}} | start
    texts = warned({"a": linear})
    assert bool(texts) == bool(said)
    if said:
        assert texts[0].startswith("bodies.a.material: to 'linear' a rotation is a strain") and said in texts[0]
    region = {"core": {"where": {"box": {"max": [0, 0, 0]}}, "material": linear["material"]}}
    bars = SOFT["mesh"] | {"divisions": [2, 2, 2]}
    assert bool(warned({"a": SOFT | {"mesh": bars, "regions": region} | start})) == bool(said)
    assert warned({"a": SOFT | {"material": SOFT["material"] | {"model": "corotated"}} | start}) == []


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("nu/2*DD", None),
        ("nu/2*(DD - trD**2/3)", None),  # of shape alone: a rate of the volume costs nothing, but for rounding
        ("nu*((1 + DD)**0.75 - 1)", None),
        ("nu/2*DD + nu/6*trD**3/(1 + trD**2)", None),
        ("nu/2*DD - nu/400*DD**2", 10.0),  # 2 psi_2 = nu - nu/100 DD
        ("nu/2*DD + nu/300*trD**3", 19.2),  # nu DD + nu/100 trD^3, least where trD = -sqrt(3) |D|
    ],
)
def test_viscosities_that_drive_fast_motion(text, speed):
    """At rest all are sound; the power of the stress, psi_1 tr D + 2 psi_2 DD, is looked at over many rates."""
    material = {"young": 1e5, "poisson": 0.3, "density": 1e3, "viscosity": {"dissipation": text, "numbers": {"nu": 2}}}
    mesh = {"shape": "box", "size": [1, 1, 1], "divisions": [1, 1, 1]}
    texts = [one for one in warned({"b": {"type": "soft", "mesh": mesh, "material": material}}) if "drives" in one]
    assert bool(texts) == (speed is not None)
    if speed:
        assert "bodies.b.material.viscosity: it drives in place of braking" in texts[0]
        found = float(texts[0].partition("|D| = ")[2].partition("/s")[0])
        assert speed < found < 1.6 * speed


@pytest.mark.parametrize(
    ("element", "mean", "said"),
    [("tet4", True, True), ("tet4", False, False), ("tet10", True, False), (None, True, True)],
)
def test_mean_dilatation_of_linear_tetrahedra(element, mean, said):
    """Each has one volume: the motion was the same to the bit, and as locked."""
    texts = warned({"b": at(SOFT, 0) | {"element": element, "mean_dilatation": mean}})
    assert [text.partition(":")[0] for text in texts] == ["bodies.b.mean_dilatation"] * said


@pytest.mark.parametrize(
    ("activation", "signal", "said"),
    [
        (0.0, None, None),
        (1.0, None, None),
        (30.0, None, "from 30 to 30"),
        (-0.1, None, "from -0.1 to -0.1"),
        ({"signal": "a"}, {"type": "control", "rows": 2, "values": [0.0, 1.2]}, "from 0 to 1.2"),
        ({"signal": "a"}, {"type": "sine", "amplitude": 0.6, "frequency": 2.0, "offset": 0.5}, "from -0.1 to 1.1"),
        ({"signal": "a"}, {"type": "sine", "amplitude": 0.5, "frequency": 2.0, "offset": 0.5}, None),
        ({"signal": "a"}, {"type": "constant", "value": 0.7}, None),
    ],
)
def test_activations_that_no_muscle_has(activation, signal, said):
    """Such as per cent."""
    muscle = {"type": "hill", "strength": 1e3, "activation": activation, "fibres": {"direction": [1, 0, 0]}}
    signals = {"signals": {"a": signal}} if signal else {}
    texts = warned({"b": at(SOFT, 0) | {"muscles": {"m": muscle}}}, **signals)
    assert [text for text in texts if "activation" in text] == (
        [] if said is None else [f"bodies.b.muscles.m.activation: {said}: 0 is a muscle at rest, 1 all that it has"]
    )


def test_two_steps():
    (text,) = warned({"a": SOFT}, time={"dt": 0.1, "duration": 0.2})
    assert text.startswith("time.dt: the run has only 2 steps of 0.1 s")


def test_friction_that_is_to_be_found_and_creeps_with_the_step():
    floor = {"obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}}
    sought = floor | {"parameters": [{"path": "contact.friction", "transform": "log"}]}
    law = {"friction_law": "tanh", "friction": 0.3, "stiffness": 1e4}
    (text,) = warned({"a": at(BOX, 0)}, contact=law, **sought)
    assert text.startswith("contact.stick_stiffness: contact.friction is to be found") and "(0.01 s)" in text
    assert warned({"a": at(BOX, 0)}, contact=law, **floor) == [], "nothing is to be found"
    assert warned({"a": at(BOX, 0)}, contact=law | {"stick_stiffness": 50.0}, **sought) == []
    assert warned({"a": at(BOX, 0)}, contact=law | {"friction_law": "hybrid"}, **sought) == [], (
        "what sticks does not creep"
    )


@pytest.mark.parametrize("scale", [1e5, 1e-6])
def test_sizes_that_no_body_has(scale):
    (text,) = warned({"a": SOFT | {"scale": scale, "material": SOFT["material"] | {"young": 1e9}}})
    assert text.startswith("bodies.a: it is ") and "m across" in text


EXACT = {"friction_law": "exact"}


def test_bodies_that_cannot_touch():
    """Points of one meet the shape of the other, or meshes meet; there are no meshes in exact contact."""
    assert warned({"a": at(SOFT, 0), "b": at(SOFT, 1), "box": at(BOX, 2)}) == []
    (text,) = warned({"a": at(SOFT, 0), "b": at(SOFT, 1), "box": at(BOX, 2)}, contact=EXACT)
    assert text.startswith("contact.between_bodies: a and b pass through each other")
    assert warned({"a": at(SOFT, 0), "b": at(SOFT, 1)}, contact=EXACT | {"between_bodies": False}) == []
    off = {"pairs": [{"body": "b", "obstacle": "a", "enabled": False}]}
    assert warned({"a": at(SOFT, 0), "b": at(SOFT, 1), "box": at(BOX, 2)}, contact=EXACT | off) == []
    several = {f"s{k}": at(SOFT, k) for k in range(4)}
    (text,) = warned(several, contact=EXACT)
    assert "s0 and s1, s0 and s2, s0 and s3 and 3 more pairs" in text
    a, b = ({"body": name, "at": [0, 0, 0]} for name in "ab")
    spring = {"type": "spring", "a": a, "b": b, "stiffness": 1.0}
    joined = {"a": at(SOFT, 0), "b": at(SOFT, 1)}
    assert warned(joined, couplings={"c": spring}, contact=EXACT) == [], "bodies that are joined do not touch"
    apart, idle = warned(joined, couplings={"c": spring | {"collide": True}}, contact=EXACT)
    assert apart.startswith("contact.between_bodies: a and b") and idle.startswith("couplings.c.collide: nothing reads")


def test_meshes_stick_under_hybrid_friction():
    assert warned({"a": at(SOFT, 0), "b": at(SOFT, 1)}, contact={"friction_law": "hybrid"}) == []


def test_a_marker_off_its_body():
    (text,) = warned({"b": BOX}, markers={"m": {"body": "b", "point": [0, 50.0, 0]}})
    assert text.startswith("markers.m.point: it is 50 m off its body 'b'")
    assert warned({"b": BOX}, markers={"m": {"body": "b", "point": [0, 0.2, 0]}}) == []


def recorded(tmp_path, positions, times=(0.0, 0.1), **more):
    path = tmp_path / "take.csv"
    rows = np.column_stack([times, positions])
    np.savetxt(path, rows, delimiter=",", header="time_s,m_x_m,m_y_m,m_z_m", comments="")
    recording = {"file": str(path), "markers": {"m": "m"}, **more}
    markers = {"m": {"body": "b", "point": [0, 0, 0]}}
    return warned({"b": at(BOX, 0)}, markers=markers, recording=recording)


def test_millimetres_under_a_header_in_metres(tmp_path):
    (text,) = recorded(tmp_path, [[0, 0, 1000.0], [0, 0, 990.0]])
    assert text.startswith("recording: marker 'm' is first seen 999 m from where the scene starts it")
    assert "are these millimetres? 'scale' takes 0.001" in text
    assert recorded(tmp_path, [[0, 0, 1.0], [0, 0, 0.99]]) == []
    assert recorded(tmp_path, [[0, 0, 1000.0], [0, 0, 990.0]], scale=1e-3) == []


def test_a_marker_far_from_where_the_scene_starts_it(tmp_path):
    (text,) = recorded(tmp_path, [[3.0, 0, 1.0], [3.0, 0, 0.99]])
    assert "3 m from where the scene starts it" in text and "millimetres" not in text
    # What falls has a way to go before it is first seen.
    times = (0.15, 0.2)
    assert recorded(tmp_path, [[0, 0, 0.6], [0, 0, 0.5]], times) == []


def test_displacements_a_thousand_times_too_large(tmp_path):
    (text,) = recorded(tmp_path, [[0, 0, 0.0], [0, 0, 40.0]], displacement=True)
    assert text.startswith("recording: marker 'm' moves by 40 m") and "millimetres" in text


@pytest.mark.parametrize("displacement", [False, True])
def test_a_particle_has_no_size(tmp_path, displacement):
    """Noise of a tenth of a millimetre, and a motion of metres: nothing says how far a point may go."""
    path = tmp_path / "take.csv"
    rows = [[0.0, 1e-4 * (not displacement), 0, 0], [0.1, 0.5, 0, 0]]
    np.savetxt(path, rows, delimiter=",", header="time_s,m_x_m,m_y_m,m_z_m", comments="")
    body = {"type": "particles", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0, "velocity": [5.0, 0, 0]}
    recording = {"file": str(path), "markers": {"m": "m"}, "displacement": displacement}
    assert warned({"b": body}, markers={"m": {"body": "b", "nodes": [0]}}, recording=recording) == []


def test_a_flat_beam_carries_what_a_tower_cannot():
    soft = SOFT | {"mesh": {"shape": "box", "size": [1.0, 0.05, 0.05], "divisions": [8, 1, 1]}}
    soft |= {"material": SOFT["material"] | {"young": 5e3}}
    assert warned({"a": soft}) == []
    (text,) = warned({"a": soft | {"orientation": [0.5**0.5, 0, 0.5**0.5, 0]}})
    assert "less than the weight of 1 m of it" in text


def run(*arguments):
    return CliRunner().invoke(cli, [str(x) for x in arguments])


def test_strict(tmp_path):
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_text(json.dumps(raw({"a": at(SOFT, 0), "b": at(SOFT, 1)}, contact=EXACT)))
    good.write_text(json.dumps(raw({"a": at(SOFT, 0)})))
    assert run("check", bad).exit_code == 0
    for command in (["check", bad], ["simulate", bad, "-o", tmp_path / "run"]):
        stopped = run(*command, "--strict")
        assert stopped.exception.exit_code == 2
        assert "pass through each other" in str(stopped.exception)
        assert "--strict makes warnings errors" in str(stopped.exception)
    assert not (tmp_path / "run").exists(), "nothing was begun"
    assert run("check", good, "--strict").exit_code == 0


def test_strict_fails_at_the_end_for_what_is_warned_of_later(tmp_path):
    """A parameter that ends on its bound is only known after the fit, whose results are kept."""
    path = tmp_path / "fit.json"
    objective = [{"type": "point", "marker": "m", "target": [5, 0, 0], "time": "end"}]
    parameters = [{"path": "bodies.b.velocity", "components": [0], "bounds": [-1.0, 1.0]}]
    markers = {"m": {"body": "b", "point": [0, 0, 0]}}
    path.write_text(json.dumps(raw({"b": at(BOX, 0)}, markers=markers, objective=objective, parameters=parameters)))
    assert load_scene(path)
    stopped = run("optimize", path, "-o", tmp_path / "run", "--strict")
    assert stopped.exception.exit_code == 2 and "ended on its bound" in str(stopped.exception)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["status"] == "done"


# --- data that cannot be meant ----------------------------------------------------------------------------------------

CORNERS = {"a": [0.05, 0.05, 0.05], "b": [-0.05, 0.05, 0.05], "c": [-0.05, -0.05, 0.05], "d": [0.05, -0.03, -0.05]}


def take(tmp_path, places, times, **more):
    """A box at (0, 0, 1) whose corners are seen; ``places`` (nf, 4, 3) are from the box's centre."""
    header = ",".join(["time_s", *(f"{name.upper()}_{axis}_m" for name in CORNERS for axis in "xyz")])
    rows = np.column_stack([times, np.add(places, [0, 0, 1.0]).reshape(len(times), -1)])
    np.savetxt(tmp_path / "take.csv", rows, delimiter=",", header=header, comments="")
    (tmp_path / "take.csv").write_text((tmp_path / "take.csv").read_text().replace("nan", ""))
    recording = {"file": str(tmp_path / "take.csv"), "markers": {name.upper(): name for name in CORNERS}}
    markers = {name: {"body": "box", "point": point} for name, point in CORNERS.items()}
    return warned(
        {"box": at(BOX, 0)}, gravity=[0, 0, 0], markers=markers, recording=recording | more.pop("recording", {}), **more
    )


def still(n=20):
    return np.repeat(np.array([list(CORNERS.values())]), n, axis=0)


TAKE = 0.01 * np.arange(20)


def test_a_marker_that_is_never_seen(tmp_path):
    places = still()
    places[:, 2] = np.nan
    (text,) = take(tmp_path, places, TAKE)
    assert text == "recording.markers: 'c': the file names them and no frame has them"


def test_a_take_that_is_mostly_empty(tmp_path):
    places = still()
    places[4:] = np.nan
    (text,) = take(tmp_path, places, TAKE)
    assert text.endswith("4 of 20 frames of the run have a marker, the others are empty")


def test_a_recording_that_cannot_be_read(tmp_path):
    """A run does without it, a fit does not: check says so."""
    (text,) = take(tmp_path, still(), TAKE[::-1])
    assert text.startswith("the recording cannot be read: recording: ") and "the time runs backwards" in text


def test_times_in_milliseconds(tmp_path):
    """One of 20 frames counts; a take that is longer than the run by far is in doubt, too, unless `crop` says so."""
    (text,) = take(tmp_path, still(), 1e3 * TAKE)
    assert "1 of 20 frames lie within the run, 0 to 0.2 s" in text and "are these milliseconds?" in text
    (text,) = take(tmp_path, still(), 4.0 * TAKE)
    assert "6 of 20 frames lie within the run" in text and "recording.crop says which are meant" in text
    assert take(tmp_path, still(), 4.0 * TAKE, recording={"crop": [0.0, 0.2]}) == []
    assert take(tmp_path, still(), TAKE) == []


def test_names_that_are_exchanged_and_axes_that_are_mirrored(tmp_path):
    (text,) = take(tmp_path, still()[:, [0, 2, 1, 3]], TAKE)
    assert text.startswith("recording.markers: are names exchanged? At the start 'b' lies where 'c' should be")
    two = {"recording": {"markers": {"A": "b", "B": "a"}}}
    (text,) = take(tmp_path, still(), TAKE, **two)
    assert text.startswith("recording.markers: are names exchanged?")
    (text,) = take(tmp_path, still() * [1, -1, 1], TAKE)
    assert text.startswith("recording: are its axes mirrored? With (+x, -y, +z) in the place of (x, y, z)")
    (text,) = take(tmp_path, still()[:, :, [0, 2, 1]] * [1, -1, 1], TAKE)
    assert text.startswith("recording: are its axes turned?")
    turned = {"parameters": [{"path": "bodies.box.orientation"}]}
    assert take(tmp_path, still() * [1, -1, 1], TAKE, **turned) == [], "how it lies is to be found"


def test_labels_exchanged_in_a_take(tmp_path):
    """The mask that is said leaves the frames out, and then there is nothing to say."""
    places = still(40)
    places[10:16, [0, 1]] = places[10:16, [1, 0]]
    times = 0.005 * np.arange(40)
    (text,) = take(tmp_path, places, times)
    assert "a and b exchanged from 0.050 to 0.075 s?" in text
    mask = json.loads("{" + text[text.index('"mask"') :] + "}")["mask"]
    assert {item["marker"] for item in mask} == {"A", "B"}
    assert take(tmp_path, places, times, recording={"mask": mask}) == []


def test_a_centre_of_mass_off_its_body():
    (text,) = warned({"b": BOX | {"center_of_mass": [5.0, 0, 0]}})
    assert text.startswith("bodies.b.center_of_mass: it is 4.95 m off its body, which is 0.1 m across")
    assert warned({"b": BOX | {"center_of_mass": [0.1, 0, 0]}}) == []
    rod = {
        "mass": 1.0,
        "inertia": [1, 1, 1, 0, 0, 0],
        "center_of_mass": [0, 0, 3.0],
        "shapes": [{"geometry": BOX["geometry"]}],
    }
    (text,) = warned({"arm": {"type": "articulated", "links": {"rod": rod}, "joints": {"j": {"child": "rod"}}}})
    assert text.startswith("bodies.arm.links.rod.center_of_mass: it is 2.95 m off its body")


def test_joints_that_start_beyond_their_stops():
    def arm(**joint):
        links = {"rod": {"mass": 1.0, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}}
        return {"arm": {"type": "articulated", "links": links, "joints": {"j": {"child": "rod", **joint}}}}

    (text,) = warned(arm(value=1.7, lower=-1.0, upper=1.5))
    assert text.startswith("bodies.arm.joints.j.value: starts at 1.7, 0.2 beyond its upper stop at 1.5 (rad, m)")
    assert warned(arm(value=1.5, lower=-1.0, upper=1.5)) == []
    hinge = {"type": "hinge", "a": {"at": [0, 0, 0]}, "b": {"body": "b", "at": [0, 0, 0]}, "axis": [0, 1, 0],
             "stiffness": 1e4, "angular_stiffness": 1e2, "start": {"angle": -2.0},
             "limits": {"lower": -1.0, "upper": 1.0, "stiffness": 10.0}}  # fmt: skip
    (text,) = warned({"b": BOX}, couplings={"h": hinge})
    assert text.startswith("couplings.h.start.angle: starts at -2, 1 beyond its lower stop at -1")


@pytest.mark.parametrize(
    ("kind", "at", "said"), [("hinge", -0.03, True), ("ball", -0.03, True), ("hinge", -0.07, False)]
)
def test_joints_whose_ends_start_apart(kind: str, at: float, said: bool) -> None:
    """A place on the wrong side of a body; one that meets the other end is no doubt."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.06, 0.06, 0.06]}, "density": 800}
    joint = {
        "type": kind,
        "a": {"body": "a", "at": [0.03, 0, 0]},
        "b": {"body": "b", "at": [at, 0, 0]},
        "stiffness": 800,
    }
    joint |= {"axis": [0, 1, 0], "angular_stiffness": 4} if kind == "hinge" else {}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": 20}, "couplings": {"j": joint}}
    built = scene_from_dict(raw | {"bodies": {"a": box, "b": box | {"position": [0.1, 0, 0]}}}).build()
    assert any("couplings.j: its ends start 0.04 m apart, and 32 N" in text for text in doubts(built)) == said


@pytest.mark.parametrize(("at", "length", "said"), [(None, 0.2, True), ([0, 0, 0], 0.2, False), (None, None, False)])
def test_a_spring_whose_ends_start_at_one_place_has_no_direction(at, length, said) -> None:
    """A place that is left out is where the other end starts, and 0.2 m are then no force in any direction."""
    ends = {"a": {"at": [0, 0, 0]}, "b": {"body": "b", "at": at}}
    spring = {"type": "spring", "stiffness": 30, "length": length, **ends}
    texts = warned({"b": BOX | {"position": [1, 0, 0]}}, couplings={"s": spring})
    start = "couplings.s: its ends start at one place, where a spring of 0.2 m has no direction"
    assert any(text.startswith(start) and text.endswith("in the frame of 'b'") for text in texts) == said, texts


def test_a_spring_without_a_length_whose_ends_meet_has_none_and_all_directions() -> None:
    """Between turned bodies it was 3e-17 m long, and stiff along that direction alone: slopes were off by a tenth."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.01}, "mass": 0.5}
    bodies = {
        "b": ball | {"position": [0.1, 0.2, 1], "orientation": [0.5, 0.1, -0.7, 0.5]},
        "c": ball | {"position": [0.15, 0.25, 1.02], "orientation": [0.1, -0.1, 0.7, 0.7], "velocity": [0, 0, 0]},
    }
    ends = {"a": {"body": "b", "at": [0.013, 0.02, 0.03]}, "b": {"body": "c"}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 10}, "gravity": [0, 0, 0], "bodies": bodies}
    raw["couplings"] = {"s": {"type": "spring", "stiffness": 100, **ends}}
    built = scene_from_dict(raw).build()
    assert built.model.system.parameters.view(built.theta, "couplings.s.length") == 0.0
    path, e = "bodies.c.velocity", 1e-5 * np.array([0.3, -0.5, 0.8])
    found = built.rollout({path: np.zeros(3)}).jvp({path: e})[0][-1]
    ends = [built.rollout({path: s * e}).q[-1] for s in (1, -1)]
    assert found == pytest.approx(0.5 * (ends[0] - ends[1]), rel=1e-3, abs=1e-10)


def test_springs_whose_ends_meet_by_given_places_are_named() -> None:
    """As where a place was forgotten to be changed; a length of 0 says that they are to hold both together."""
    ends = {"a": {"at": [1, 0, 0]}, "b": {"body": "b", "at": [0, 0, 0]}}
    for length in (None, 0):
        spring = {"type": "spring", "stiffness": 30, "length": length, **ends}
        texts = warned({"b": BOX | {"position": [1, 0, 0]}}, couplings={"s": spring})
        said = any(text.startswith("couplings.s: its ends start at one place, so that without") for text in texts)
        assert said == (length is None), texts


def test_ends_of_a_joint_are_where_a_motion_begins() -> None:
    """Its ends met where the scene puts them, and were 0.4 m apart in the first step."""
    link = {"mass": 1, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}
    joint = {"type": "slide", "axis": [1, 0, 0], "motion": {"signal": "x"}}
    bodies = {"t": {"type": "articulated", "links": {"a": link}, "joints": {"a": joint}}, "b": BOX}
    coupling = {"type": "ball", "a": {"body": "t/a", "at": [0, 0, 0]}, "b": {"body": "b", "at": [0, 0, 0]}}
    for first, said in ((0.4, True), (0.0, False)):
        signals = {"x": {"type": "table", "times": [0, 1], "values": [first, 1]}}
        texts = warned(bodies, couplings={"c": coupling | {"stiffness": 10}}, signals=signals)
        assert any(text.startswith("couplings.c: its ends start 0.4 m apart") for text in texts) == said


def test_air_twice_on_one_body():
    air = {"type": "air", "body": "a"}
    drag = {"type": "drag", "on": {"body": "a", "at": [0, 0, 0]}, "area": 0.01}
    assert warned({"a": at(SOFT, 0)}, couplings={"one": air}) == []
    for other in (air, drag):
        (text,) = warned({"a": at(SOFT, 0)}, couplings={"one": air, "two": other})
        assert text.startswith("couplings.one and couplings.two: the air acts on 'a' by each of them")
    further = drag | {"on": {"body": "a", "at": [0.05, 0, 0]}}
    assert warned({"a": at(SOFT, 0)}, couplings={"one": drag, "two": further}) == []
    assert len(warned({"a": at(SOFT, 0)}, couplings={"one": drag, "two": drag})) == 1


def test_springs_twice_between_two_nodes():
    edges = [[0, 1], [1, 2], [2, 1]]
    net = {"type": "mass-spring", "mesh": {"points": [[0, 0, 0], [1, 0, 0], [2, 0, 0]], "edges": edges}, "mass": 1.0}
    assert warned({"n": net}) == ["bodies.n.mesh.edges.2: edges.1 joins these two nodes, too, and both springs add up"]


def test_drives_that_add_up_or_move_nothing(tmp_path):
    links = {key: {"mass": 1.0, "shapes": [{"geometry": BOX["geometry"]}]} for key in "lm"}
    servo = {"type": "position", "joint": "l", "stiffness": 10, "input": 0.1}
    torque = {"type": "torque", "joint": "l", "input": 0.4}

    def said(drives, **more):
        joints = {"l": {"axis": [0, 1, 0]}, "m": {"axis": [0, 1, 0], "parent": "l", "position": [1, 0, 0]} | more}
        tree = {"type": "articulated", "base": "fixed", "links": links, "joints": joints, "drives": drives}
        return warned({"t": tree})

    assert said({"a": servo, "b": torque, "c": servo | {"joint": "m"}}) == []
    for one in (servo, torque):
        (text,) = said({"a": one, "b": one})
        assert text.startswith("bodies.t: drives.a and drives.b are drives of type '") and "'l', and add up" in text
    (text,) = said({"a": servo | {"joint": "m"}}, motion=0.3)
    assert text == "bodies.t: drives.a: nothing moves by it, joint 'm' has a given motion"
    (tmp_path / "arm.xml").write_text(
        """<mujoco><worldbody><body name="l"><joint name="l" axis="0 1 0"/><geom size="0.1"/></body></worldbody>
        <actuator><position name="file" joint="l" kp="5"/><motor name="more" joint="l"/></actuator></mujoco>"""
    )
    tree = {"type": "articulated", "model": str(tmp_path / "arm.xml"), "actuators": True}
    assert warned({"t": tree}) == []
    (text,) = warned({"t": tree | {"drives": {"a": servo}}})
    assert "drives.a and drives.file are drives of type 'position'" in text


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (90.0, "asks 'l' for 90, beyond its upper stop at 1"),
        (-0.6, "asks 'l' for -0.6, beyond its lower stop at -0.5"),
        ([0.0, 0.9, 1.1], "asks 'l' for 1.1, beyond its upper stop at 1"),
        ([-0.5, 1.0], None),
        (0.3, None),
    ],
)
def test_servos_that_are_sent_beyond_the_stops(sent, said):
    """Of the joint, such as in degrees; a drive of torque has no place to go to."""
    link = {"mass": 1.0, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}
    joint = {"type": "hinge", "axis": [0, 1, 0], "lower": -0.5, "upper": 1.0}
    signal = {"type": "table", "times": list(range(len(sent))), "values": sent} if isinstance(sent, list) else None
    where = {"signal": "s"} if signal else sent
    drives = {"servo": {"joint": "l", "type": "position", "stiffness": 9, "input": where}}
    tree = {"type": "articulated", "links": {"l": link}, "joints": {"l": joint}}
    more = {"signals": {"s": signal}} if signal else {}
    texts = [text for text in warned({"t": tree | {"drives": drives}}, **more) if "servo" in text]
    assert texts == ([] if said is None else [f"bodies.t.drives.servo.input: {said} (rad, m)"])
    if not signal:
        drives = {"servo": {"joint": "l", "input": where}}
        assert not [text for text in warned({"t": tree | {"drives": drives}}) if "beyond its" in text]


def test_lengths_that_experiments_do_not_share():
    """Of a spring whose length is that of its start, where a motion begins elsewhere in the second experiment."""
    led = {"type": "kinematic", "geometry": BOX["geometry"], "position": [0, 0, 1], "translation": {"signal": "way"}}
    spring = {
        "type": "spring",
        "stiffness": 100,
        "a": {"body": "k", "at": [0, 0, 0]},
        "b": {"body": "m", "at": [0] * 3},
    }

    def said(begins, **more):
        way = {"type": "table", "times": [0, 1], "values": [[0, 0, 0], [0, 0, 0.1]]}
        there = {"signals.way.values": [[0, 0, begins], [0, 0, 0.2]]}
        experiments = [{"name": "one"}, {"name": "two", "overrides": there}]
        scene = raw({"k": led, "m": BOX}, signals={"way": way}, couplings={"s": spring | more}, experiments=experiments)
        return warn({name: item.build() for name, item in experiment_scenes(scene_from_dict(scene)).items()})

    (text,) = said(0.1)
    assert text.startswith("couplings.s.length: it is not given") and text.endswith(
        "1 m in 'one', 1.1 m in 'two'; give it"
    )
    assert said(0.0) == said(0.1, length=1.0) == []
