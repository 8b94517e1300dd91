"""Features that are each tested alone, together."""

import numpy as np
import pytest

import add
from add.commands.check_gradient import check_gradients
from add.scene.build.unread import open_joints


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
    assert "contact.damping_ramp" in str(error.value)


def test_attachments_say_where_a_loop_that_closes_moves_their_link() -> None:
    """A rope on a bar of two slides that a loop moves by 20 mm: its node starts that far from its place on the bar."""
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 1},
        "bodies": {
            "bar": {
                "type": "articulated",
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
    (said,) = open_joints(add.scene_from_dict(scene).build())
    assert said.startswith("couplings.knot: nodes are attached where the link is before its loops close, up to 0.02 m")
