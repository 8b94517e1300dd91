"""A body whose middle goes below a surface that it should meet from outside is said, whatever both are."""

import json
from typing import Any
from unittest import mock

import pytest
from fuzz.default_drops import drop

from add.commands import sunk_log
from add.commands.run_summary import Tally
from add.commands.sunk_log import SunkLog
from add.commands.whole_run import tumbled
from add.scene import scene_from_dict
from add.scene.build.doubts import doubts
from add.scene.build.run_data import run_data

CAPSULE = {"geometry": {"shape": "capsule", "radius": 0.03, "half_length": 0.1}}
MATERIAL = {"model": "neo-hookean", "young": 1e5, "poisson": 0.3, "density": 2000.0, "viscosity": 5.0}
CLOTH = {"density": 2000.0, "thickness": 1e-3, "membrane": {"young": 1e6, "poisson": 0.3}}
THIN = {
    "net": {"type": "mass-spring", "mesh": {"shape": "sheet", "size": [0.2, 0.2], "divisions": [3, 3]}, "mass": 2.0,
            "stiffness": 500.0, "damping": 1.0},
    "point": {"type": "mass-spring", "mesh": {"points": [[0, 0, 0]]}, "mass": 2.0},
    "cloth": {"type": "cloth", "mesh": {"shape": "rectangle", "size": [0.2, 0.2], "cells": [3, 3]}, "material": CLOTH},
    "rod": {"type": "rod", "mesh": {"shape": "line", "length": 0.3, "segments": 4}, "density": 5.0, "stretching": 1e3},
}  # fmt: skip
BODIES = THIN | {
    "rigid": {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "mass": 5.0},
    "link": {"type": "articulated", "base": "free", "links": {"l": {"mass": 3.0, "shapes": [CAPSULE]}},
             "joints": {"l": {}}},
    "soft": {"type": "soft", "element": "tet4", "material": MATERIAL,
             "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]}},
}  # fmt: skip
BLOCK = {"shape": "box", "size": [4, 4, 2]}
TABLE = {"mass": 1e6, "shapes": [{"geometry": BLOCK}]}
LED = {"type": "kinematic", "geometry": BLOCK, "position": [0, 0, 0.5], "translation": [0, 0, -1.5]}
SIDES: dict[str, dict[str, Any]] = {
    "plane": {"obstacles": {"s": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}},
    "plate": {"obstacles": {"s": {"shape": "box", "center": [0, 0, -0.05], "half_size": [2, 2, 0.05]}}},
    "rigid": {"s": {"type": "rigid", "geometry": BLOCK, "mass": 1e9, "position": [0, 0, -1]}},
    "link": {"s": {"type": "articulated", "base": "fixed", "position": [0, 0, -1], "links": {"t": TABLE},
                   "joints": {"t": {"type": "hinge", "axis": [0, 0, 1], "damping": 1e3}}}},
}  # fmt: skip


def seen(body: str, side: str | dict[str, Any], **contact: Any) -> set[tuple[str, str]]:
    """Return what the run of a body that falls on a side says."""
    more = SIDES[side] if isinstance(side, str) else side
    bodies = {"b": BODIES[body] | {"position": [0, 0, 0.12]}} | ({} if "obstacles" in more else more)
    raw = {"schema": "add-scene/1", "time": {"dt": 0.005, "duration": 0.5}, "bodies": bodies, "contact": contact}
    raw |= {"obstacles": more["obstacles"]} if "obstacles" in more else {}
    if side == "rigid":  # which would fall, too
        raw["gravity"] = [0, 0, 0]
        bodies["b"]["velocity"] = [0, 0, -2.0]
    built = scene_from_dict(raw).build()
    log = SunkLog()
    for record in built.run().records:
        log.add(built, record, built.theta)
    assert SunkLog.parsed(log.plain()) == log
    return set(log.seen)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("body", BODIES)
def test_what_sinks_is_said(body: str, side: str) -> None:
    """Under forces that carry nothing, also of bodies that forces move, and between the ends of a capsule."""
    name, other = "b/l" if body == "link" else "b", "s/t" if side == "link" else "s"
    assert (name, other) in seen(body, side, stiffness=10.0, damping=0.1)


def test_what_sinks_in_what_is_led_away_from_it_is_said() -> None:
    """Where the scene puts the block the body is inside: nothing that started inside was news."""
    assert ("b", "s") in seen("rigid", {"s": LED}, stiffness=10.0, damping=0.1)


@pytest.mark.parametrize("body", THIN)
def test_what_lies_flat_has_not_sunk(body: str) -> None:
    """All of its nodes are below the surface."""
    assert not seen(body, "plane")


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        (BODIES["rigid"], "a finer bodies.b.collision.spacing"),
        (BODIES["rigid"] | {"collision": {"spacing": 0.015}}, "a stiffer contact.stiffness"),
        (BODIES["link"] | {"orientation": [0.8, 0, 0.6, 0]}, "a finer bodies.b.spacing"),
    ],
)
def test_what_a_thin_post_goes_through_between_its_points(body: dict[str, Any], remedy: str) -> None:
    """No stiffness holds a body none of whose points touches, where the post has none either."""
    post = {"type": "kinematic", "position": [0, 0, -0.1], "collision": {"points": False}}
    post["geometry"] = {"shape": "box", "size": [0.02, 0.02, 0.2]}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.005, "steps": 50}, "contact": {"stiffness": 10.0, "damping": 0.1}}
    raw |= {"bodies": {"b": body | {"position": [0, 0, 0.12]}, "post": post}}
    built = scene_from_dict(raw).build()
    log = SunkLog()
    for record in built.run().records:
        log.add(built, record, built.theta)
    assert [entry["text"].partition(": ")[2] for entry in log.described() if remedy in entry["text"]]


@pytest.mark.parametrize("side", ["plate", "rising", "link"])
@pytest.mark.parametrize("body", ["rigid", "soft", "net"])
def test_only_steps_in_which_something_may_sink_are_looked_at(body: str, side: str) -> None:
    """A log that looks at each, as one that goes on from a file does, says the same of bodies that fall and turn."""
    more = SIDES.get(side, {"obstacles": {"s": SIDES["plate"]["obstacles"]["s"] | {"velocity": [0, 0, 0.5]}}})
    moves = {"position": [0, 0, 0.5]} | ({"angular_velocity": [3, 1, 0]} if body == "rigid" else {})
    bodies = {"b": BODIES[body] | moves} | ({} if "obstacles" in more else more)
    raw = {"schema": "add-scene/1", "time": {"dt": 0.005, "steps": 80}, "bodies": bodies}
    raw |= {"contact": {"stiffness": 10.0, "damping": 0.1}}
    raw |= {"obstacles": more["obstacles"]} if "obstacles" in more else {}
    built = scene_from_dict(raw).build()
    run, log, each = built.run(), SunkLog(), SunkLog()
    with mock.patch.object(sunk_log, "_gaps", wraps=sunk_log._gaps) as gaps:
        for k, record in enumerate(run.records):
            log.add(built, record, built.theta, None if k else run.kinematics(0))
        looks = gaps.call_count
    for k, record in enumerate(run.records):
        each = SunkLog.parsed(each.plain())
        each.add(built, record, built.theta, run.kinematics(k))
    assert each == log and log.seen
    assert looks < 60


BALL = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.5}
WALL: dict[str, Any] = {"shape": "box", "half_size": [0.01, 1, 1]}
PLATE = {"type": "rigid", "geometry": {"shape": "box", "size": [0.02, 2, 2]}, "mass": 50.0, "position": [1.2, 0, 0]}


@pytest.mark.parametrize(
    ("ball", "more", "said"),
    [
        ({"velocity": [50, 0, 0]}, {"obstacles": {"w": WALL | {"center": [1.2, 0, 0]}}}, {("b", "w")}),
        ({}, {"obstacles": {"w": WALL | {"center": [1.2, 0, 0], "velocity": [-50, 0, 0]}}}, {("b", "w")}),
        ({"velocity": [50, 0, 0]}, {"w": PLATE}, {("b", "w"), ("w", "b")}),
        ({"velocity": [50, 0, 0]}, {"obstacles": {"w": WALL | {"center": [1.2, 1.2, 0]}}}, set()),
        ({"velocity": [0.5, 0, 0]}, {"obstacles": {"w": WALL | {"center": [0.08, 0, 0]}}}, set()),
        # In the first step.
        ({"velocity": [250, 0, 0]}, {"obstacles": {"w": WALL | {"center": [1.2, 0, 0]}}}, {("b", "w")}),
    ],
)
def test_what_goes_through_a_wall_within_a_step(ball: dict[str, Any], more: dict[str, Any], said: set[Any]) -> None:
    """Its middle is inside at no end of a step; beside the wall, and slow enough to meet it, nothing is said."""
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 8}, "gravity": [0, 0, 0]}
    obstacles = {"obstacles": more["obstacles"]} if "obstacles" in more else {}
    raw |= {"bodies": {"b": BALL | ball} | ({} if obstacles else more)} | obstacles
    built = scene_from_dict(raw | {"contact": {}}).build()
    log, run = SunkLog(), built.run()
    for k, record in enumerate(run.records):
        log.add(built, record, built.theta, None if k else run.kinematics(0))
    assert SunkLog.parsed(log.plain()) == log
    assert set(log.seen) == said
    for entry in log.described():
        assert "goes through" in entry["text"] and "time.dt" in entry["text"]


@pytest.mark.parametrize(
    ("spin", "dt", "said"),
    [([100, 2, 100], 5e-3, True), ([100, 2, 100], 1e-3, False), ([0, 0, 150], 5e-3, False), ([0, 0, 0], 5e-3, False)],
)
def test_what_tumbles_faster_than_steps_resolve(spin: list[float], dt: float, said: bool) -> None:
    """A box that turns by 0.7 rad a step about a changing axis; about its own, driven or not, any rate is right."""
    body = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.2, 0.3]}, "density": 1000.0}
    raw = {"schema": "add-scene/1", "time": {"dt": dt, "duration": 0.05}, "gravity": [0, 0, 0]}
    raw |= {} if any(spin) else {"couplings": {"t": {"type": "torque", "body": "b", "torque": [0, 0, 200.0]}}}
    built = scene_from_dict(raw | {"bodies": {"b": body | {"angular_velocity": spin}}}).build()
    found = tumbled(built, run_data(built, built.run(), built.theta), {})
    assert bool(found) == said
    if said:
        (entry,) = found["tumbled"]
        assert 0.6 < entry["turn"] < 0.9 and "time.dt of 0.0007 s" in entry["text"]


def test_parts_of_a_step_resolve_what_tumbles() -> None:
    """A box of 3 cm that tumbles on a floor, in parts of a step that turn it less."""
    raw = drop(850059)
    raw["bodies"]["a"]["geometry"] = {"shape": "box", "size": [0.03, 0.02, 0.01]}
    built = scene_from_dict(raw).build()
    run = built.run()
    tally, data = Tally().add(built, run, built.theta), run_data(built, run, built.theta)
    assert tally.divided == len(tally.parts) and Tally.parsed(json.loads(json.dumps(tally.plain()))) == tally
    assert tumbled(built, data, {}) and not tumbled(built, data, tally.parts)


def test_links_without_shapes_hang_into_moving_bodies_unsaid() -> None:
    """The hand of a gripper may be inside what it holds; that is of its file."""
    hand = {"mass": 0.1, "inertia": [1e-4, 1e-4, 1e-4, 0, 0, 0]}
    bar = {"mass": 1.0, "shapes": [CAPSULE | {"position": [1, 0, 0]}]}
    joints = {"hand": {"type": "slide", "axis": [0, 0, 1], "rate": -1.0}, "bar": {"type": "hinge", "axis": [0, 0, 1]}}
    tree = {"type": "articulated", "base": "fixed", "links": {"hand": hand, "bar": bar}, "joints": joints}
    for kind, wanted in (("rigid", set()), ("kinematic", {("t/hand", "b")})):
        block = {"type": kind, "geometry": BLOCK, "position": [0, 0, -1.1]} | ({"mass": 5.0} if kind == "rigid" else {})
        raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 40}, "gravity": [0, 0, 0]}
        built = scene_from_dict(raw | {"bodies": {"t": tree, "b": block}}).build()
        log = SunkLog()
        for record in built.run().records:
            log.add(built, record, built.theta)
        assert set(log.seen) == wanted


@pytest.mark.parametrize(("edge", "said"), [(0.1, True), (0.9, False)])
def test_a_box_that_fits_between_the_nodes_it_meets_is_doubted(edge: float, said: bool) -> None:
    """Nodes of a coarse block alone meet the shape of a small box."""
    mesh = {"shape": "box", "size": [2, 2, 1], "divisions": [2, 2, 1]}
    block = {"type": "soft", "element": "tet4", "mesh": mesh, "material": MATERIAL, "position": [0, 0, -0.5]}
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [edge] * 3}, "mass": 1.0, "position": [0.3, 0.2, 0.6]}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 20}, "bodies": {"block": block, "box": box}}
    texts = doubts(scene_from_dict(raw).build())
    assert any("box and block" in text and "pass between nodes" in text for text in texts) == said
