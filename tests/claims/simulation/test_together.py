"""Features that are each tested alone, together."""

import json

import numpy as np
import pytest
from support.places import SCENES

import add
from add.commands.check_gradient import check_gradients
from add.kernels.rotation import rotation_matrix


@pytest.mark.parametrize("shape", ["sphere", "capsule"])
def test_a_node_within_rounding_of_an_axis_is_pushed_out_as_one_on_it(shape: str) -> None:
    """Where the curvature was 1e17/m any step counted as solved but for rounding: 30 N were left, and nothing moved."""
    bar = {"shape": shape, "center": [0.5, 0, 0.2], "radius": 0.015}
    bar |= {"orientation": [np.sqrt(0.5), np.sqrt(0.5), 0, 0], "half_length": 0.1} if shape == "capsule" else {}
    ends = []
    for away in (0.0, 2.8e-17, -2.8e-17, 1e-14):
        points = [[0.5, 0, 0.2 - away], [0.54, 0, 0.2], [0.58, 0, 0.2]]
        scene = {
            "schema": "add-scene/1",
            "time": {"dt": 0.004, "steps": 2},
            "bodies": {"rope": {"type": "rod", "mesh": {"points": points}, "density": 0.05, "stretching": 200}},
            "obstacles": {"bar": bar},
            "contact": {"stiffness": 2e3, "friction_law": "none"},
        }
        run = add.scene_from_dict(scene).build().run()
        assert max(record.report.residual for record in run.records) < 1e-8
        ends.append(run.q[-1])
    assert np.ptp(ends, axis=0).max() < 1e-8


def test_a_number_that_is_zero_does_not_outweigh_the_others_in_a_check() -> None:
    """The bending damping of a cloth is 0, and 1 N m s beyond all: by that the check failed, and hid all others."""
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 4},
        "bodies": {
            "sheet": {
                "type": "cloth",
                "mesh": {"shape": "rectangle", "size": [0.2, 0.2], "cells": [2, 2]},
                "material": {
                    "density": 0.2,
                    "membrane": {"model": "orthotropic", "k11": 100, "k22": 100, "k12": 10, "k33": 40},
                    "bending": {"model": "plate", "rigidity": 2e-5},
                },
                "pins": [{"where": {"box": {"min": [None, 0.099, None]}}}],
            }
        },
        "markers": {"corner": {"body": "sheet", "nodes": [0]}},
        "objective": [{"type": "point", "marker": "corner", "target": [0, 0, 0.1], "time": "end"}],
    }
    (found,) = check_gradients(add.scene_from_dict(scene), free=False)
    slopes = {p.name: abs(p.adjoint) for p in found.parameters}
    damping = slopes.pop("bodies.sheet.material.bending.damping")
    assert 0.0 < damping <= 1.01 * np.linalg.norm(list(slopes.values()))
    assert max(p.replayed_error for p in found.parameters) < 1e-6


def test_what_was_tried_is_no_remedy() -> None:
    """A block of one element that no iteration solves: its steps were divided, so that to divide them is no advice."""
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 1, "newton": {"max_iterations": 1}},
        "bodies": {
            "block": {
                "type": "soft",
                "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
                "material": {"young": 1e4, "poisson": 0.3, "density": 500},
                "angular_velocity": [3000, 20, 10],
            }
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, -0.06], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 2e3},
    }
    with pytest.raises(add.SolverError, match="its parts, up to 64, found none either") as error:
        add.scene_from_dict(scene).build().run()
    assert "substeps" not in str(error.value)
    assert "contact.onset" in str(error.value) and "damping_ramp" not in str(error.value)  # nothing is damped


def test_damping_without_a_ramp_is_what_keeps_cloth_from_a_step() -> None:
    """A ramp of 10 um or 1 mm helps; an onset, a softer contact, steps of a sixteenth did not, of 8 by 8 cells."""
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.004, "steps": 16},
        "bodies": {
            "sheet": {
                "type": "cloth",
                "mesh": {"shape": "rectangle", "size": [0.3, 0.3], "cells": [2, 2]},
                "position": [0, 0, 0.02],
                "material": {
                    "density": 0.2,
                    "membrane": {"model": "orthotropic", "k11": 100, "k22": 100, "k12": 10, "k33": 40},
                    "bending": {"model": "plate", "rigidity": 2e-5},
                },
            }
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 2e3, "damping": 20.0, "friction_law": "none"},
    }
    with pytest.raises(add.SolverError, match=r"; let damping set in along a contact.damping_ramp: .* or try time.dt"):
        add.scene_from_dict(scene).build().run()
    scene["contact"]["damping_ramp"] = 1e-4
    add.scene_from_dict(scene).build().run()


def test_couplings_read_where_links_start_with_their_loops_closed() -> None:
    """A rope and springs on a bar of two slides that a loop moves by 20 mm as it closes."""
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 1},
        "bodies": {
            "bar": {
                "type": "articulated",
                "position": [0, 0, 0],
                "links": {"a": {"mass": 1, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}},
                "joints": {"a": {"type": "slide", "axis": [1, 0, 0]}},
                "loops": {"stop": {"type": "joints", "joint": "a", "other": "b", "coefficients": [0.02, 0]}},
            },
            "rope": {
                "type": "rod",
                "mesh": {"points": [[0, 0, 0], [0, 0, -0.1]]},
                "density": 0.05,
                "stretching": 200,
            },
        },
        "couplings": {
            "knot": {"type": "attachment", "nodes": "rope", "where": {"nodes": [0]}, "body": "bar/a", "stiffness": 100}
        },
    }
    scene["bodies"]["bar"]["links"]["b"] = scene["bodies"]["bar"]["links"]["a"]
    scene["bodies"]["bar"]["joints"]["b"] = {"type": "slide", "axis": [0, 1, 0], "parent": "a"}
    spring = {"type": "spring", "a": {"body": "bar/b", "at": [0, 0, 0]}, "stiffness": 50}
    scene["couplings"] |= {"line": spring | {"b": {"at": [0.3, 0, 0]}}, "here": spring | {"length": 0, "b": {}}}
    scene["parameters"] = [{"path": "bodies.bar.loops.stop.coefficients"}, {"path": "bodies.bar.position"}]
    built = add.scene_from_dict(scene).build()
    kin, theta = built.model.at_start(built.theta), built.model.system.parameters
    x = kin.q[built.model.lift.rows["bar/b"].slice][:3]
    assert np.abs(x).max() > 5e-3
    assert theta.view(built.theta, "couplings.knot.places.0") == pytest.approx(-x, abs=1e-12)
    assert theta.view(built.theta, "couplings.line.length") == pytest.approx(np.linalg.norm(x - [0.3, 0, 0]), abs=1e-12)
    assert theta.view(built.theta, "couplings.here.b.at") == pytest.approx(x, abs=1e-12)


@pytest.mark.parametrize("name", ["coupler", "rocker"])
def test_springs_at_links_of_a_loop_know_how_it_closes(name: str) -> None:
    """Their lengths follow all that moves the closed pose of a four-bar, which starts open; slopes by differences."""
    raw = json.loads((SCENES / "four_bar.json").read_text())
    spring = {"type": "spring", "a": {"body": f"bar/{name}", "at": [0.01, 0, 0.02]}, "b": {"at": [0.3, 0.1, 0]}}
    raw["bodies"]["bar"]["joints"]["rocker"]["value"] = 2.2  # the loop is open by 4 cm
    raw["couplings"] = {"line": spring | {"stiffness": 5.0}}
    built = add.scene_from_dict(raw).build()
    ties, s = built.numbers.ties, built.numbers.values
    at = built.model.system.parameters["couplings.line.length"].start
    x = built.model.at_start(built.theta).q[built.model.lift.rows[f"bar/{name}"].slice]
    place = x[:3] + rotation_matrix(x[3:]) @ [0.01, 0, 0.02]
    assert built.theta[at] == pytest.approx(np.linalg.norm(place - [0.3, 0.1, 0]), abs=1e-12)
    slope = ties.jacobian(s).toarray()[at]
    h = 1e-6
    found = [(ties.forward(s + h * e)[at] - ties.forward(s - h * e)[at]) / (2 * h) for e in np.eye(s.size)]
    assert np.count_nonzero(np.abs(slope) > 1e-3) > 8
    assert slope == pytest.approx(np.array(found), abs=2e-8)


def test_loops_close_around_joints_where_their_motion_begins() -> None:
    """A crank whose motion begins 0.3 rad away, at 5.7 rad/s: its loop closed around the crank before."""
    raw = json.loads((SCENES / "four_bar.json").read_text())
    raw["signals"]["turn"]["values"] = [0.3, 6]
    for key in ("parameters", "objective", "optimizer", "check", "expect"):
        raw.pop(key, None)
    built = add.scene_from_dict(raw).build()
    path, values = "signals.turn.values", np.array([0.3, 6.0])
    run = built.rollout({path: values}, n_steps=2)
    assert run.q[0, 0] == pytest.approx(-0.2) and run.v[0, 0] == pytest.approx(5.7)
    assert np.abs((run.q[1] - run.q[0]) / 0.005 - run.v[0]).max() < 0.05  # 95 rad/s in the first step
    bars = np.random.default_rng(0).standard_normal((2, *run.q.shape))
    h, dot = 1e-6, np.array([0.4, -1.0])
    ends = [built.rollout({path: values + s * h * dot}, n_steps=2) for s in (1, -1)]
    slope = sum(np.vdot(bar, getattr(ends[0], x) - getattr(ends[1], x)) for x, bar in zip("qv", bars, strict=True))
    assert run.vjp(*bars)[path] @ dot == pytest.approx(slope / (2 * h), rel=1e-6)
    tangents = run.jvp({path: dot})
    assert sum(map(np.vdot, bars, tangents)) == pytest.approx(run.vjp(*bars)[path] @ dot, rel=1e-10)


@pytest.mark.parametrize("ends", ["ab", "ba"])
def test_a_hinge_does_not_start_at_a_link(ends: str) -> None:
    """What the error said was a list of all blocks of numbers."""
    link = {"mass": 1, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}
    tree = {"type": "articulated", "links": {"a": link}, "joints": {"a": {"type": "slide", "axis": [1, 0, 0]}}}
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.02}, "mass": 0.1}
    places = {ends[0]: {"body": "t/a", "at": [0.1, 0, 0]}, ends[1]: {"body": "w", "at": [0, 0, 0.05]}}
    hinge = {"type": "hinge", "axis": [0, 1, 0], "stiffness": 1e4, "angular_stiffness": 10, "start": {"angle": 0.2}}
    scene = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 5}, "bodies": {"t": tree, "w": ball}}
    with pytest.raises(add.InputError, match=r"couplings.h.start: a link starts .* \(found 't/a'"):
        add.scene_from_dict(scene | {"couplings": {"h": hinge | places}}).build()
