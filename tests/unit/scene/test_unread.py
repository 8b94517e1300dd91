"""What a file says and nothing reads is named, and only that."""

import math
from pathlib import Path

import pytest
from support.impulse_scenes import CUBE, scene
from support.places import SCENES

import add
from add.scene.build.file_doubts import doubts_of_clouds, doubts_of_recording
from add.scene.build.unread import (
    added_pairs,
    added_rotations,
    drawn_starts,
    idle_forces,
    unmet_signals,
    unread,
    unread_motions,
    unread_signals,
    unread_starts,
)

BALL = {"geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.2, "position": [0, 0, 0.2]}
PAIR = {"body": "body", "obstacle": "floor"}


def of_contact(law: str, **contact: object) -> dict:
    raw = scene(CUBE, dt=0.01, steps=3)
    raw["contact"] |= {"friction_law": law, **contact}
    return raw


def of_body(collision: dict, body: dict = CUBE) -> dict:
    raw = of_contact("linear")
    raw["bodies"]["body"] |= body | {"collision": collision}
    return raw


def of_optimizer(**optimizer: object) -> dict:
    raw = of_contact("linear")
    raw["parameters"], raw["optimizer"] = [{"path": "contact.friction"}], optimizer
    raw["markers"] = {"m": {"body": "body", "center_of_mass": True}}
    raw["objective"] = [{"type": "point", "marker": "m", "target": [0, 0, 0], "time": "end"}]
    return raw


def of_joint(**joint: object) -> dict:
    link = {"mass": 1.0, "center_of_mass": [0, 0, -0.5], "inertia": [0.1, 0.1, 0.1, 0, 0, 0]}
    arm = {
        "type": "articulated",
        "links": {"arm": link},
        "joints": {"hinge": {"child": "arm", "axis": [0, 1, 0]} | joint},
    }
    return {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 3}, "bodies": {"a": arm}}


def of_time(**time: object) -> dict:
    raw = of_contact("linear")
    raw["time"] |= time
    return raw


def of_hinge(**body: object) -> dict:
    """A box that the start of a hinge places."""
    raw = of_contact("linear")
    raw["bodies"]["arm"] = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1] * 3}, "mass": 1.0} | body
    ends = {"a": {"body": "body"}, "b": {"body": "arm", "at": [0, 0, -0.2]}}
    hinge = {"type": "hinge", "axis": [0, 1, 0], "stiffness": 1e4, "angular_stiffness": 10.0, "start": {"rate": 1.0}}
    return raw | {"couplings": {"hinge": hinge | ends}}


def of_net(**body: object) -> dict:
    """A point mass."""
    raw = of_contact("linear")
    raw["bodies"]["net"] = {"type": "mass-spring", "mesh": {"points": [[0, 0, 1.0]]}, "mass": 0.1} | body
    return raw


def of_tree(n: int, **body: object) -> dict:
    """A chain of capsules, each of which a hinge joins to the one before."""
    raw = of_contact("linear")
    capsule = {"geometry": {"shape": "capsule", "radius": 0.02, "half_length": 0.05}, "position": [0, 0, -0.06]}
    hinges = [{"type": "hinge", "axis": [0, 1, 0], "parent": f"l{k}", "position": [0, 0, -0.12]} for k in range(n - 1)]
    raw["bodies"]["t"] = {
        "type": "articulated",
        "base": "free",
        "links": {f"l{k}": {"mass": 0.3, "shapes": [capsule]} for k in range(n)},
        "joints": {f"l{k}": joint for k, joint in enumerate([{}, *hinges])},
    } | body
    return raw


def of_boxes() -> dict:
    """A chain of three boxes of which the first and the last meet by their edges and faces."""
    raw = of_tree(3, self_collision=True)
    for link in raw["bodies"]["t"]["links"].values():
        link["shapes"] = [{"geometry": {"shape": "box", "size": [0.04, 0.04, 0.1]}, "position": [0, 0, -0.06]}]
    raw["contact"]["pairs"] = [{"between": ["t/l0", "t/l2"], "by_meshes": True}]
    return raw


def of_coupling(*, apart: bool) -> dict:
    """A spring between two boxes that meet although it joins them, or that pass through each other in any case."""
    raw = of_hinge()
    raw["contact"]["between_bodies"] = not apart
    ends = {key: raw["couplings"]["hinge"][key] for key in ("a", "b")}
    return raw | {"couplings": {"spring": {"type": "spring", "stiffness": 1.0, "collide": True} | ends}}


def of_soft(**material: object) -> dict:
    raw = of_contact("linear")
    known = {"model": "neo-hookean", "young": 1e4, "poisson": 0.3, "density": 1e3}
    box = {"shape": "box", "size": [0.1] * 3, "divisions": [1] * 3}
    raw["bodies"]["soft"] = {"type": "soft", "mesh": box, "position": [0, 0, 1], "material": known | material}
    return raw


def of_field(**roughness: object) -> dict:
    """A fit of a modulus that is a field."""
    path = "bodies.soft.material.young"
    raw = of_soft(young={"each": 1e4}) | {"parameters": [{"path": path}]}
    return raw | {"objective": [{"type": "roughness", "field": path} | roughness]}


def of_goal(**goal: object) -> dict:
    raw = of_optimizer()
    raw["objective"] = [{"type": "contact", "marker": "m", "obstacle": "floor"} | goal]
    return raw


def alone(**contact: object) -> dict:
    raw = of_contact("linear", **contact)
    del raw["obstacles"]
    return raw


def of_frame(**contact: object) -> dict:
    """A body and another one without a surface."""
    raw = of_contact("linear", **contact)
    raw["bodies"]["frame"] = {"type": "rigid", "mass": 1.0, "inertia": [1, 1, 1, 0, 0, 0]}
    return raw


PULL = {"type": "force", "on": {"body": "body"}, "force": [1, 0, 0], "collide": True}
LONE = {"between_bodies": False}
FRAME, CURVE = {"between": ["frame", "floor"]}, {"coefficient": "0.3 + slope*u", "numbers": {"slope": 0.1}}
IDLE = {
    "stiffness": 1e5, "damping": 5.0, "onset": 1e-3, "damping_ramp": 1e-3, "friction": 0.3, "stick_stiffness": 30.0,
    "rolling_friction": 0.1, "friction_curve": CURVE, "coulomb_normal": "total", "stiffness_per": "area",
}  # fmt: skip
HARD = {
    "stiffness": 1e5, "damping": 5.0, "stick_stiffness": 10.0, "onset": 1e-3, "damping_ramp": 1e-3,
    "adhesive_damping": True, "coulomb_normal": "total", "stiffness_per": "area",
}  # fmt: skip

CASES = [
    *((of_contact("impulse", **{key: value}), f"contact.{key}") for key, value in HARD.items()),
    (of_contact("impulse", pairs=[PAIR | {"stiffness": 1e4}]), "contact.pairs.0.stiffness"),
    (of_contact("impulse", pairs=[PAIR | {"damping": 1.0}]), "contact.pairs.0.damping"),
    (of_contact("exact", stiffness=1e5), "contact.stiffness"),
    (of_contact("linear", pairs=[PAIR | {"touching": 4}]), "contact.pairs.0.touching"),
    (of_contact("linear", pairs=[PAIR | {"friction": 0.1, "enabled": False}]), "contact.pairs.0.friction"),
    (of_contact("linear", mesh={"stiffness": 1e6}), "contact.mesh.stiffness"),
    (of_contact("none", friction=0.7), "contact.friction"),
    (of_contact("none", friction=0.4, pairs=[PAIR | {"friction": 0.1}]), "contact.pairs.0.friction"),
    (
        of_contact("none", stiffness=1e4, friction=0.4, stick_stiffness_rule="effective-dt"),
        "contact.stick_stiffness_rule",
    ),
    (of_contact("linear", friction=0.0, stiffness=1e4, coulomb_normal="total"), "contact.coulomb_normal"),
    (of_contact("linear", stiffness=1e4, damping_ramp=0.01), "contact.damping_ramp"),
    (of_contact("linear", stiffness=1e4, adhesive_damping=True), "contact.adhesive_damping"),
    (of_contact("linear", nodes={"stiffness": 1e3}), "contact.nodes.stiffness"),
    (of_net(stiffness=5.0), "bodies.net.stiffness"),
    (of_net(angular_velocity=[0, 0, 1]), "bodies.net.angular_velocity"),
    (of_time(newton={"reuse": 0.1}) | {"contact": {"friction_law": "impulse"}}, "time.newton.reuse"),
    (of_time(start="straight-line"), "time.start"),
    (of_body({"closed": True}), "bodies.body.collision.closed"),
    (of_body({"spacing": 1.0}), "bodies.body.collision.spacing"),
    (of_body({"spacing": 0.01}, BALL), "bodies.body.collision.spacing"),
    (of_body({"spacing": 0.05, "points": False}), "bodies.body.collision.spacing"),
    (of_optimizer(method="l-bfgs-b", rate=0.5), "optimizer.rate"),
    (of_optimizer(method="gauss-newton", momentum=0.5), "optimizer.momentum"),
    (of_optimizer(method="adam", damping=0.5), "optimizer.damping"),
    (of_optimizer(method="sgd", objective_tolerance=0.1), "optimizer.objective_tolerance"),
    (of_optimizer(method="adam", decay_every=3), "optimizer.decay_every"),
    (of_joint(rest=0.1), "bodies.a.joints.hinge.rest"),
    (of_joint(slip_speed=0.1), "bodies.a.joints.hinge.slip_speed"),
    (of_joint(dry_friction_law="hybrid"), "bodies.a.joints.hinge.dry_friction_law"),
    (of_joint(limit_stiffness=10.0), "bodies.a.joints.hinge.limit_stiffness"),
    (of_joint(limit_damping=10.0), "bodies.a.joints.hinge.limit_damping"),
    (of_joint(type="ball"), "bodies.a.joints.hinge.axis"),
    (of_tree(2, meshes="hull"), "bodies.t.meshes"),
    (of_joint() | {"bodies": {"a": of_joint()["bodies"]["a"] | {"spacing": 0.1}}}, "bodies.a.spacing"),
    (of_coupling(apart=True), "couplings.spring.collide"),
    (of_soft(viscosity_exponent=1.5), "bodies.soft.material.viscosity_exponent"),
    (of_field(softness=0.1), "objective.0.softness"),
    (of_goal(margin=0.1), "objective.0.margin"),
    (of_goal(wanted=False, softness=0.1), "objective.0.softness"),
    (of_optimizer(starts={"seed": 3}), "optimizer.starts.seed"),
    (of_optimizer(starts={"spread": 0.3}), "optimizer.starts.spread"),
    (of_optimizer() | {"gradient": {"relaxation": 0.1}}, "gradient.relaxation"),
    *(
        (
            of_frame() | {"bodies": {"frame": of_frame()["bodies"]["frame"] | {"collision": {key: value}}}},
            f"bodies.frame.collision.{key}",
        )
        for key, value in (("points", False), ("shape", False), ("spacing", 0.1))
    ),
    (
        of_contact("linear")
        | {"bodies": {"k": {"type": "kinematic", "geometry": BALL["geometry"], "collision": {"points": False}}}},
        "bodies.k.collision.points",
    ),
    (of_hinge(position=[0, 0, 1]), "bodies.arm.position"),
    (of_hinge(velocity=[0, 0, 1]), "bodies.arm.velocity"),
    (of_hinge(angular_velocity=[0, 0, 1]), "bodies.arm.angular_velocity"),
    *((alone(**{key: value}), f"contact.{key}") for key, value in IDLE.items()),
    (alone() | {"contact": {"friction_law": "hybrid"}}, "contact.friction_law"),
    (of_contact("linear", friction=0.7, pairs=[PAIR | {"friction": 0.5}]), "contact.friction"),
    (of_contact("linear", stiffness=1e4, damping=9.0, pairs=[PAIR | {"restitution": 0.5}]), "contact.damping"),
    (of_contact("linear", friction=0.7, friction_curve=CURVE), "contact.friction"),
    (of_contact("linear", friction_curve=CURVE, pairs=[PAIR | {"friction": 0.5}]), "contact.pairs.0.friction"),
    *((of_frame(pairs=[FRAME | {key: 0.5}]), f"contact.pairs.0.{key}") for key in ("stiffness", "friction")),
    (of_frame(pairs=[PAIR, FRAME | {"restitution": 0.5}]), "contact.pairs.1.restitution"),
    (of_contact("impulse", impact_time="step"), "contact.impact_time"),
    (of_net() | {"obstacles": {}, "contact": LONE | {"nodes": {"damping": 1.0}}}, "contact.nodes.damping"),
    (of_contact("linear") | {"couplings": {"pull": PULL}}, "couplings.pull.collide"),
    (of_body({}, CUBE | {"contact": {"thickness": 0.01}}), "bodies.body.contact.thickness"),
    (of_body({}, CUBE | {"contact": {"class": "cubes"}}), "bodies.body.contact.class"),
    (of_tree(2, self_collision=True), "bodies.t.self_collision"),
    (of_tree(2, dry_friction_law="hybrid"), "bodies.t.dry_friction_law"),
    (of_tree(2, limit_onset=0.01), "bodies.t.limit_onset"),
    (of_tree(3, self_collision=True, contact={"class": "arms"}), "bodies.t.contact.class"),
]


@pytest.mark.parametrize(("raw", "place"), CASES, ids=[place for _, place in CASES])
def test_named(raw: dict, place: str) -> None:
    found = list(unread(add.scene_from_dict(raw).build()))
    assert [text.partition(":")[0] for text in found] == [place]


@pytest.mark.parametrize(
    "raw",
    [
        of_contact("linear", **(HARD | {"coulomb_normal": "elastic"})),
        of_contact("linear", pairs=[PAIR | {"touching": 4, "restitution": 0.5}]),
        of_contact("impulse", impact_time="step", pairs=[PAIR | {"restitution": 0.5}]),
        of_body({"spacing": 0.05}),
        of_optimizer(method="adam", rate=0.5, beta1=0.8, decay=0.9, decay_every=3),
        of_optimizer(method="gauss-newton", objective_tolerance=0.1),
        of_joint(rest=0.1, stiffness=3.0),
        of_tree(3, self_collision=True),
        of_boxes(),
        of_tree(2, contact={"class": "arms"}) | {"contact": {"pairs": [{"between": ["arms", "floor"], "friction": 0}]}},
        of_joint(slip_speed=0.1, dry_friction=0.2, dry_friction_law="tanh"),
        of_joint(limit_stiffness=10.0, lower=-1.0, upper=1.0),
        of_tree(2, spacing=0.05),
        of_coupling(apart=False),
        of_soft(viscosity=1.0, viscosity_exponent=1.5),
        of_soft(viscosity_exponent=1.5) | {"parameters": [{"path": "bodies.soft.material.viscosity"}]},
        of_field(norm="variation", softness=0.1),
        of_goal(softness=0.1),
        of_goal(wanted=False, margin=0.1),
        of_optimizer(starts={"count": 2, "seed": 3, "spread": 0.3}),
        of_optimizer()
        | {"gradient": {"relaxation": 0.1, "contact": "relaxed"}, "contact": {"friction_law": "impulse"}},
        of_hinge(orientation=[0.6, 0, 0.8, 0]),
        of_contact("linear", stiffness=1e4, damping_ramp=0.01, pairs=[PAIR | {"restitution": 0.5}]),
        of_contact("linear", stiffness=1e4, stick_stiffness=5.0, pairs=[PAIR | {"friction": 0.5}]),
        of_contact("linear", stiffness=1e4, damping=0.0, damping_ramp=0.01)
        | {"parameters": [{"path": "contact.damping"}]},
    ],
)
def test_what_is_read_is_not_named(raw: dict) -> None:
    assert not list(unread(add.scene_from_dict(raw).build()))


@pytest.mark.parametrize("name", ["cube_stops_impulse", "three_frictions", "bouncing_throw", "sticking_arm"])
def test_scenes_of_the_repository_say_nothing_idle(name: str) -> None:
    assert not list(unread(add.load_scene(SCENES / f"{name}.json").build()))


def test_signals_that_nothing_follows() -> None:
    raw = of_contact("linear")
    sine = {"type": "sine", "amplitude": [0, 0, 1], "frequency": 1}
    raw |= {"signals": {"idle": sine, "push": sine}}
    raw["couplings"] = {"pull": {"type": "force", "on": {"body": "body"}, "force": {"signal": "push"}}}
    assert [text.partition(":")[0] for text in unread_signals(add.scene_from_dict(raw).build())] == ["signals.idle"]


@pytest.mark.parametrize(
    ("axes", "motion", "lost"),
    [
        ("x", [0.01, 0.02, 0], "y"),
        ("x", [0.01, 0, 0], None),
        ("xyz", [0.01, 0.02, 0], None),
        ("xy", {"signal": "s"}, "z"),
        ("yz", {"signal": "s"}, None),
    ],
)
def test_motions_along_axes_that_a_pin_leaves_free(axes: str, motion: object, lost: str | None) -> None:
    sheet = {"type": "mass-spring", "mesh": {"shape": "sheet", "size": [0.1, 0.1], "divisions": [2, 2]}, "mass": 0.1}
    sheet |= {"pins": [{"where": {"nodes": [0]}, "axes": axes, "motion": motion}]}
    signals = {"s": {"type": "table", "times": [0, 1], "values": [[0, 0, 0], [0, 0.1, 0.1]]}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 3}, "bodies": {"b": sheet}, "signals": signals}
    texts = list(unread_motions(add.scene_from_dict(raw).build()))
    assert [text.partition(" along ")[2].partition(":")[0] for text in texts] == ([lost] if lost else [])


BAR = {
    "type": "soft",
    "mesh": {"shape": "box", "size": [0.1, 0.1, 0.3], "divisions": [1, 1, 2]},
    "material": {"young": 2e4, "poisson": 0.3, "density": 1000},
    "position": [1, 0, 0],
}
TOP = {"box": {"min": [None, None, 0.149]}}


@pytest.mark.parametrize(
    ("body", "initial", "named"),
    [
        ({"pins": [{"where": TOP, "motion": [0.02, 0, 0]}]}, "given", ["bodies.b.pins.0.motion"]),
        ({"pins": [{"where": TOP, "motion": [0.02, 0, 0]}]}, "equilibrium", []),
        ({"pins": [{"where": TOP, "axes": "y", "motion": [0.02, 0, 0]}]}, "given", []),
        ({"pins": [{"where": TOP, "motion": {"signal": "s"}}]}, "given", []),
        ({"pins": [{"where": {"all": True}, "motion": [0.02, 0, 0]}]}, "given", []),
        ({"anchors": [{"at": [0, 0, 0.15], "place": [1.05, 0, 0.15]}]}, "given", ["bodies.b.anchors.0.place"]),
        ({"anchors": [{"at": [0, 0, 0.15], "place": [1, 0, 0.15]}]}, "given", []),
        ({"anchors": [{"at": [0, 0, 0.15]}]}, "given", []),
    ],
)
def test_pins_and_anchors_that_begin_away_from_the_body(body: dict, initial: str, named: list[str]) -> None:
    signals = {"s": {"type": "table", "times": [0, 1], "values": [[0, 0, 0], [0.1, 0, 0]]}}
    time = {"dt": 0.01, "steps": 3, "initial": initial}
    raw = {"schema": "add-scene/1", "time": time, "bodies": {"b": BAR | body}, "signals": signals}
    texts = list(drawn_starts(add.scene_from_dict(raw).build()))
    assert [text.partition(":")[0] for text in texts] == named


def test_velocities_beside_a_start_in_equilibrium() -> None:
    raw = of_joint(rate=1.0, stiffness=30.0)
    assert not list(unread_starts(add.scene_from_dict(raw).build()))
    raw["time"] |= {"initial": "equilibrium"}
    (text,) = unread_starts(add.scene_from_dict(raw).build())
    assert text.startswith("bodies.a.joints.hinge.rate: nothing reads this")


def test_a_rate_beside_a_given_motion() -> None:
    (text,) = unread(add.scene_from_dict(of_joint(rate=1.0, motion=0.3)).build())
    assert text.startswith("bodies.a.joints.hinge.rate: nothing reads this")


@pytest.mark.parametrize(
    ("turn", "rotation", "named"),
    [("x", [0, 0, 3], True), ("x", {"signal": "s"}, True), ("z", {"signal": "s"}, False), ("x", [3, 0, 0], False)],
)
def test_rotations_that_add_to_a_turn_about_another_axis(turn: str, rotation: object, named: bool) -> None:
    half = math.sqrt(0.5)
    orientation = [half, *(half * (axis == turn) for axis in "xyz")]
    raw = of_contact("linear")
    raw["bodies"]["wheel"] = {"type": "kinematic", "orientation": orientation, "rotation": rotation}
    raw["signals"] = {"s": {"type": "table", "times": [0, 1], "values": [[0, 0, 0], [0, 0, 3]]}}
    texts = list(added_rotations(add.scene_from_dict(raw).build()))
    assert [text.partition(":")[0] for text in texts] == ["bodies.wheel.rotation"] * named


WHEEL, DOOR = ({"body": name, "at": [0, 0, 0]} for name in ("wheel", "door"))


@pytest.mark.parametrize(
    ("coupling", "text"),
    [
        ({"type": "torque", "body": "wheel", "torque": [1, 0, 0]}, "'wheel' has a given motion"),
        ({"type": "force", "on": WHEEL, "force": [1, 0, 0]}, "'wheel' has a given motion"),
        ({"type": "spring", "a": WHEEL, "b": {"at": [0, 0, 1]}, "stiffness": 9}, "'wheel' has a given motion"),
        ({"type": "spring", "a": WHEEL, "b": DOOR, "stiffness": 9}, "'door' and 'wheel' have given motions"),
        ({"type": "spring", "a": WHEEL, "b": {"body": "body"}, "stiffness": 9}, None),
        ({"type": "torque", "body": "body", "torque": [1, 0, 0]}, None),
    ],
)
def test_couplings_by_which_nothing_moves(coupling: dict, text: str | None) -> None:
    """What has a given motion takes no notice of forces."""
    raw = of_contact("linear")
    raw["bodies"] |= {name: {"type": "kinematic", "position": [k, 0, 1]} for k, name in enumerate(("wheel", "door"))}
    raw["couplings"] = {"c": coupling}
    found = list(idle_forces(add.scene_from_dict(raw).build()))
    assert found == ([] if text is None else [f"couplings.c: nothing moves by it: {text}"])


SOFT_CUBE = {
    "type": "soft", "mesh": {"shape": "box", "size": [1, 1, 1], "divisions": [1, 1, 1]},
    "material": {"model": "neo-hookean", "young": 1e4, "poisson": 0.3, "density": 1e3},
}  # fmt: skip
ALL, TOP = {"all": True}, {"box": {"min": [-9, -9, 0.4], "max": [9, 9, 9]}}
MUSCLE = {"type": "active-stress", "activation": 0.5, "strength": 1e3, "fibres": {"direction": [0, 0, 1]}}


def built_of(bodies: dict, **more: object) -> add.scene.build.built.BuiltScene:
    return add.scene_from_dict(
        {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "bodies": bodies, **more}
    ).build()


@pytest.mark.parametrize(
    ("pins", "named"),
    [
        ([{"where": ALL}], "bodies.c.muscles.m, bodies.c.loads.0, bodies.c.loads.1"),
        (
            [{"where": ALL, "axes": "xy"}, {"where": ALL, "axes": "z"}],
            "bodies.c.muscles.m, bodies.c.loads.0, bodies.c.loads.1",
        ),
        ([{"where": TOP}], "bodies.c.loads.1"),
        ([{"where": ALL, "axes": "xy"}], None),
        ([], None),
    ],
)
def test_forces_on_what_is_pinned(pins: list, named: str | None) -> None:
    """All of it, by one pin or by several, or the nodes of a load alone."""
    loads = [{"where": ALL, "force": [0, 0, 1]}, {"where": TOP, "force": [0, 0, 1]}]
    cube = SOFT_CUBE | {"pins": pins, "loads": loads, "muscles": {"m": MUSCLE}}
    force = {"type": "force", "on": {"body": "c", "at": [0, 0, 0]}, "force": [0, 0, 1]}
    texts = list(idle_forces(built_of({"c": cube}, couplings={"f": force})))
    wanted = [f"{named}: nothing moves by it: all nodes that it acts on are pinned"] if named else []
    if named and "muscles" in named:
        wanted = ["couplings.f: nothing moves by it: 'c': all coordinates are pinned, or have given motions", *wanted]
    assert texts == wanted


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, True),
        ({"stiffness": 3}, True),
        ({"a": {"body": "c", "at": [0, 0, 0.1]}}, False),
        ({"type": "cable"}, False),
    ],
)
def test_springs_that_add_up(changed: dict, said: bool) -> None:
    """Those of one kind between the same places, whichever end is called first; the ends of others are elsewhere."""
    one = {"type": "spring", "a": {"at": [0, 0, 2]}, "b": {"body": "c", "at": [0, 0, 0]}, "stiffness": 5}
    two = one | {"a": one["b"], "b": one["a"]} | changed
    texts = list(added_pairs(built_of({"c": SOFT_CUBE}, couplings={"one": one, "two": two})))
    assert texts == ["couplings.one and couplings.two: they act alike between the same places, and add up"] * said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"strength": 5.0}, True),
        ({"fibres": {"direction": [1, 0, 0]}}, False),
        ({"where": TOP | {"box": {"min": [-9, -9, -9], "max": [9, 9, 9]}}}, False),
    ],
)
def test_muscles_that_add_up(changed: dict, said: bool) -> None:
    cube = SOFT_CUBE | {"muscles": {"one": MUSCLE, "two": MUSCLE | changed}}
    texts = list(added_pairs(built_of({"c": cube})))
    assert (
        texts
        == ["bodies.c.muscles.one and bodies.c.muscles.two: they act alike between the same places, and add up"] * said
    )


def test_displacements_of_angles(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("time_s,knee_rad\n0,0\n0.01,0.1\n0.02,0.2\n")
    raw = of_joint()
    raw["markers"] = {"d": {"body": "a/arm", "direction": [0, 0, 1]}}
    angle = {"marker": "d", "axis": [0, 1, 0], "zero": [0, 0, 1]}
    raw["recording"] = {"file": str(tmp_path / "r.csv"), "angles": {"knee": angle}, "displacement": True}
    found = [text.partition(":")[0] for text in unread(add.scene_from_dict(raw).build())]
    assert found == ["recording.displacement"]


def test_a_place_of_displacements(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("time_s,m_x_m,m_y_m,m_z_m\n" + "".join(f"{0.01 * k},0,0,0.1\n" for k in range(4)))
    raw = of_optimizer()
    place = {"move": [0.1, 0, 0], "turn": [0.1, 0, 0]}
    raw["recording"] = {"file": str(tmp_path / "r.csv"), "markers": {"m": "m"}, "displacement": True, "place": place}
    found = [text.partition(":")[0] for text in unread(add.scene_from_dict(raw).build())]
    assert found == ["recording.place.move"]


def test_a_rate_of_a_cloud_with_times(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("time_s,x_m,y_m,z_m\n0,0,0,1\n0.01,0,0,1\n")
    raw = of_soft()
    raw["objective"] = [{"type": "cloud", "body": "soft", "file": str(tmp_path / "c.csv"), "rate": 30.0}]
    found = [text.partition(":")[0] for text in doubts_of_clouds(add.scene_from_dict(raw).build())]
    assert found == ["objective.0.rate"]


def test_a_mask_without_frames(tmp_path: Path) -> None:
    """A mask on another clock leaves out nothing."""
    (tmp_path / "r.csv").write_text("time_s,m_x_m,m_y_m,m_z_m\n" + "".join(f"{0.01 * k},0,0,0.1\n" for k in range(4)))
    raw = scene(CUBE, dt=0.01, steps=3)
    raw["markers"] = {"m": {"body": "body", "center_of_mass": True}}
    raw["recording"] = {
        "file": str(tmp_path / "r.csv"),
        "markers": {"m": "m"},
        "mask": [{"marker": "m", "from": 5.0, "to": 6.0}],
    }
    raw["objective"] = [{"type": "markers"}]
    texts = list(doubts_of_recording(add.scene_from_dict(raw).build()))
    assert any(text.startswith("recording.mask.0: no frame lies between 5 and 6 s") for text in texts)


PULSE = {"times": [0, 0.202, 0.204, 0.206, 1], "values": [[x, 0, 0] for x in (0, 0, 1, 0, 0)]}
JUMP = {"times": [0, 0.2049, 0.205, 1], "values": [[x, 0, 0] for x in (0, 0, 1, 1)]}
FINE = {"times": [k / 500 for k in range(501)], "values": [[math.sin(9 * k / 500), 0, 0] for k in range(501)]}
MISSED = (
    "signals.s.values.2: steps meet signals at their ends alone, and none is near t = 0.204 s; a time.dt of 0.002 s"
)


@pytest.mark.parametrize(
    ("signal", "said"),
    [
        ({"type": "sine", "amplitude": [0.1, 0, 0], "frequency": 95}, "signals.s.frequency: a period is 1.1 steps"),
        ({"type": "sine", "amplitude": [0.1, 0, 0], "frequency": 5}, ""),
        ({"type": "table"} | PULSE, MISSED),
        ({"type": "spline"} | PULSE, MISSED),
        ({"type": "table"} | JUMP, ""),
        ({"type": "table", "times": [0, 1], "values": [[0, 0, 0], [1, 0, 0]]}, ""),
        ({"type": "spline", "times": [-1, 0], "values": [[0, 0, 0], [1, 0, 0]]}, ""),
        ({"type": "table"} | FINE, ""),
    ],
)
def test_what_a_signal_does_between_steps_is_named(signal: dict[str, object], said: str) -> None:
    """A sine of 95 Hz looks like one of 5 Hz to steps of 10 ms; jumps and fine samples are as they should be."""
    body = {"type": "kinematic", "geometry": {"shape": "sphere", "radius": 0.1}, "translation": {"signal": "s"}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "duration": 1}, "bodies": {"b": body}}
    texts = [*unmet_signals(add.scene_from_dict(raw | {"signals": {"s": signal}}).build())]
    assert [said in text for text in texts] == [True] * bool(said)
