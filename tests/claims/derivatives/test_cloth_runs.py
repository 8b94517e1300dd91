"""Gradients of runs of cloth and rods by every number, with contact and air, by both integrators."""

from pathlib import Path

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run
from support.tiers import long_case

import add
from add.scene.build.inverse_problem import inverse_problem

MEMBRANES = {
    "neo-hookean": {"young": 2e4, "poisson": 0.3},
    "stvk": {"young": 2e4, "poisson": 0.25},
    "orthotropic": {"k11": 30.0, "k22": 20.0, "k12": 5.0, "k33": 12.0},
    "table": {
        "strains": [0, 1e-3, 5e-3],
        "k11": [20.0, 40.0, 90.0],
        "k22": [15.0, 30.0, 60.0],
        "k12": 4.0,
        "k33": [10.0, 14.0, 12.0],
    },
    "baraff-witkin": {"k_u": 30.0, "k_v": 20.0, "k_s": 6.0},
    "formula": {
        # That of tests/unit/derivatives/test_strained.py, whose kernels serve both.
        "energy": "a*(C11 - 1)**2 + b*(C22 - 1)**2 + c*exp(C12**2) + a*log(C11*C22 - C12**2)**2 - c",
        "numbers": {"a": 2e3, "b": 3e3, "c": 2.5e3},
    },
}
BENDINGS = {
    "hinge": {"stiffness": 2e-4, "damping": 1e-5},
    "plate": {"rigidity": 5e-4, "poisson": 0.2, "damping": 2e-5},
}


def scene(membrane: str, bending: str, integrator: str) -> dict:
    """Return a cloth, one corner held, that falls onto a ball in the wind and is sewn to itself."""
    own = {"model": membrane, "viscosity": 2e-3, **MEMBRANES[membrane]}
    thick = {"thickness": 1e-3} if membrane in ("neo-hookean", "stvk", "formula") else {}
    cloth = {
        "type": "cloth", "mesh": {"shape": "rectangle", "size": [0.3, 0.3], "cells": [3, 3]}, "warp": [1, 0.4, 0],
        "material": {
            "density": 0.3, **thick, "rayleigh_mass": 0.5, "membrane": own,
            "bending": {"model": bending, **BENDINGS[bending]},
        },
        "pins": [{"where": {"nodes": [0]}}], "position": [0, 0, 0.02], "velocity": [0, 0, -0.5],
        "seams": [{"a": [15], "b": [14], "stiffness": 1.0, "damping": 0.05}],
    }  # fmt: skip
    air = {"type": "air", "body": "cloth", "density": 1.2, "coefficient": 1.5, "friction": 0.05, "wind": [2, 1, 0.5]}
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "steps": 10, "integrator": integrator, "newton": {"atol": 1e-12, "rtol": 1e-13}},
        "bodies": {"cloth": cloth},
        "obstacles": {"ball": {"shape": "sphere", "center": [0.05, 0.03, -0.1], "radius": 0.1}},
        "contact": {"stiffness": 200, "friction": 0.3, "damping": 0.2, "onset": 0.004, "damping_ramp": 0.004},
        "couplings": {"air": air},
        "markers": {
            "tip": {"body": "cloth", "point": [0.15, 0.15, 0]}, "side": {"body": "cloth", "point": [-0.15, 0.15, 0]},
        },
        "objective": [
            {"type": "point", "marker": "tip", "target": [0.1, 0.2, 0.1], "time": 0.1},
            {"type": "point", "marker": "side", "target": [0.3, 0.1, -0.2], "time": 0.06},
        ],
        "parameters": [{"path": "contact.stiffness"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("membrane", "bending", "integrator"),
    [
        ("neo-hookean", "hinge", "bdf2"), ("orthotropic", "plate", "bdf1"), ("formula", "hinge", "bdf1"),
        ("table", "hinge", "bdf2"),
        long_case("stvk", "plate", "bdf2"), long_case("baraff-witkin", "hinge", "bdf2"),
        long_case("neo-hookean", "plate", "bdf1"), long_case("stvk", "hinge", "bdf1"),
        long_case("orthotropic", "hinge", "bdf2"), long_case("baraff-witkin", "plate", "bdf1"),
        long_case("formula", "plate", "bdf2"),
    ],
)  # fmt: skip
def test_cloth(membrane: str, bending: str, integrator: str) -> None:
    """Reverse is forward to 1e-10 and replayed differences to 1e-6, by every number of theta; the ball is touched."""
    (experiment,) = inverse_problem(add.scene_from_dict(scene(membrane, bending, integrator))).experiments
    simulation = experiment.simulation
    assert simulation.packed is not None, simulation.by_terms
    run = check_gradient_of_run(simulation, experiment.objective)
    assert sum(len(decision) for record in run.records for decision in record.decisions) > 0
    names = [entry.name for entry in simulation.system.parameters.entries]
    for part in ("membrane", "bending", "seams", "density", "rayleigh_mass", "couplings.air", "contact"):
        assert any(part in name for name in names), part


def test_closed_seam(tmp_path: Path) -> None:
    """Two halves lie on each other along their seam; the gradient by a load of zero sees what holds and damps it."""
    points = [(0.1 * i, 0.1 * j) for i in (0, 1, 1, 2) for j in range(3)]
    cells = [(6 * half + j, 6 * half + 3 + j) for half in range(2) for j in range(2)]
    faces = [face for a, b in cells for face in ((a, b, b + 1), (a, b + 1, a + 1))]
    lines = [*("v {} {} 0".format(*p) for p in points), *("f {} {} {}".format(*(n + 1 for n in f)) for f in faces)]
    (tmp_path / "halves.obj").write_text("\n".join(lines))
    given = scene("neo-hookean", "hinge", "bdf2")
    cloth = given["bodies"]["cloth"] | {
        "mesh": {"file": str(tmp_path / "halves.obj")}, "velocity": [0, 0, 0],
        "pins": [{"where": {"nodes": [0, 1, 2]}}],
        "loads": [{"where": {"nodes": [9, 10, 11]}, "force": [0, 0, 0]}],
        "seams": [{"a": [3, 4, 5], "b": [6, 7, 8], "stiffness": 50.0, "damping": 0.5}],
    }  # fmt: skip
    given |= {"gravity": [0, 0, 0], "bodies": {"cloth": cloth}, "couplings": {}, "obstacles": {}, "contact": {}}
    given |= {
        "parameters": [{"path": "bodies.cloth.loads.0.force"}],
        "markers": {"tip": {"body": "cloth", "nodes": [3]}},
    }
    given["objective"] = [{"type": "point", "marker": "tip", "target": [0.1, 0.1, 0.1], "time": 0.1}]
    problem = inverse_problem(add.scene_from_dict(given))
    _, found = problem.value_and_grad(problem.x0)
    for k in range(2):  # along the cloth, across the seam and along it; out of the plane it is slack
        step = 1e-4 * np.eye(3)[k]
        up, down = (problem.value_and_grad(problem.x0 + sign * step)[0] for sign in (1, -1))
        assert found[k] == pytest.approx((up - down) / 2e-4, rel=1e-5)


def test_rod() -> None:
    """A string with a stiff turn swings into a ball."""
    rod = {
        "type": "rod", "mesh": {"points": [[0, 0, 0], [0.1, 0, 0], [0.18, 0.05, 0], [0.28, 0.03, 0.04], [0.36, 0, 0]]},
        "density": 0.05, "stretching": 50.0, "bending": 2e-4, "damping": 0.02, "rayleigh_mass": 0.3,
        "pins": [{"where": {"nodes": [0, 1]}}],
    }  # fmt: skip
    given = scene("neo-hookean", "hinge", "bdf2") | {"bodies": {"rod": rod}, "couplings": {}}
    given["obstacles"]["ball"] |= {"center": [0.3, 0.02, -0.11]}
    given["markers"] = {
        "tip": {"body": "rod", "point": [0.36, 0, 0]},
        "side": {"body": "rod", "point": [0.18, 0.05, 0]},
    }
    (experiment,) = inverse_problem(add.scene_from_dict(given)).experiments
    run = check_gradient_of_run(experiment.simulation, experiment.objective)
    assert sum(len(decision) for record in run.records for decision in record.decisions) > 0


def test_cloth_on_a_block() -> None:
    """A cloth meets a block by its mesh; the way back takes the branches of its pairs."""
    given = scene("orthotropic", "hinge", "bdf2")
    given["bodies"]["block"] = {
        "type": "kinematic", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "position": [0.05, 0.03, -0.05],
    }  # fmt: skip
    given["bodies"]["cloth"] |= {"contact": {"thickness": 0.01}, "seams": []}
    given["obstacles"] = {}
    given["contact"] = {
        "friction": 0.3, "damping": 0.2, "mesh": {"stiffness": 2e4, "onset": 0.003, "damping_ramp": 0.003},
        "pairs": [{"body": "cloth", "obstacle": "block", "by_meshes": True}],
    }  # fmt: skip
    given["parameters"] = [{"path": "contact.mesh.stiffness"}]
    (experiment,) = inverse_problem(add.scene_from_dict(given)).experiments
    run = check_gradient_of_run(experiment.simulation, experiment.objective)
    assert sum(len(decision) for record in run.records for decision in record.decisions) > 0
