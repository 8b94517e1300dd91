"""Rigid bodies and cloth move each other: a ball in a free sheet, a trampoline, dominoes, a mass (Qiao et al.)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from add.contact import MeshContact
from add.contact.crossings import Primitives, crossings
from add.equations.kinematics import Kinematics
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from add.terms import Inertia, RigidInertia
from add.typing import FloatArray
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.held_differences import slope_error
from scripts.reproduction.running import picture

#: Dominoes, as published: the distance between two [m], the pusher's speed [m/s], gravity [m/s^2], step [s].
DISTANCE, SPEED, GRAVITY, DT = 0.5, 3.0, 3.8, 0.02
#: The momentum that two cubes are to have [kg m/s], as published.
WANTED = 3.0
CLOTH = {
    "density": 0.2,
    "thickness": 1e-3,
    "membrane": {"model": "neo-hookean", "young": 2e5, "poisson": 0.3, "viscosity": 0.05},
    "bending": {"model": "hinge", "stiffness": 1e-4, "damping": 1e-5},
}
MESH = {"stiffness": 1e5, "onset": 2e-3, "damping": 100}


def scene(bodies: dict[str, Any], pairs: list[list[str]], dt: float, steps: int, **more: Any) -> dict[str, Any]:
    """Return bodies of which some meet by their meshes; the objective is where the first and the last one end."""
    seen = [next(name for name, body in bodies.items() if body["type"] != "kinematic"), list(bodies)[-1]]
    points = [{"point": [0, 0, 0]} if bodies[name]["type"] == "cloth" else {"center_of_mass": True} for name in seen]
    asked = {"type": "point", "target": [0, 0, 0], "time": "end"}
    return {
        "schema": "add-scene/1",
        "time": {"dt": dt, "steps": steps, "integrator": "bdf1", "newton": {"atol": 1e-11, "rtol": 1e-12}},
        "bodies": bodies,
        "contact": {
            "friction": 0.3, "friction_law": "tanh", "mesh": MESH,
            "pairs": [{"between": pair, "by_meshes": True} for pair in pairs],
        },
        "markers": {name: {"body": name, **point} for name, point in zip(seen, points, strict=True)},
        "objective": [asked | {"marker": name} for name in seen],
        "parameters": [{"path": f"bodies.{seen[0]}.velocity"}],
    } | more  # fmt: skip


def sheet(size: float, cells: int, **more: Any) -> dict[str, Any]:
    """Return a square of cloth."""
    mesh = {"shape": "rectangle", "size": [size, size], "cells": [cells, cells], "diagonals": "irregular"}
    return {"type": "cloth", "mesh": mesh, "material": CLOTH, "contact": {"thickness": 0.01}, **more}


def ball(**more: Any) -> dict[str, Any]:
    """Return a rigid ball of 0.2 kg."""
    return {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 0.2, **more}


def thrown(steps: int) -> dict[str, Any]:
    """Return a ball that flies into a free sheet, without gravity."""
    bodies = {"ball": ball(position=[0.05, 0.1, 0.15], velocity=[0.5, 0, -2]), "sheet": sheet(1.0, 8)}
    return scene(bodies, [["ball", "sheet"]], 0.005, steps, gravity=[0, 0, 0])


def trampoline(steps: int) -> dict[str, Any]:
    """Return a ball that falls on a sheet whose border is held."""
    ends = [("min", 0.499, None), ("min", None, 0.499), ("max", -0.499, None), ("max", None, -0.499)]
    held = [{"where": {"box": {side: [x, y, None]}}} for side, x, y in ends]
    bodies = {"ball": ball(position=[0.02, 0.03, 0.5]), "sheet": sheet(1.0, 8, pins=held)}
    return scene(bodies, [["ball", "sheet"]], 0.005, steps)


def dominoes(steps: int) -> dict[str, Any]:
    """Return four slabs in a row on a floor, a pusher, and a sheet on two rims that the last one falls on."""
    slab = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.4, 1.0]}, "density": 100}
    bodies: dict[str, Any] = {f"domino {k}": slab | {"position": [DISTANCE * k, 0, 0.5]} for k in range(4)}
    pusher = {"type": "kinematic", "geometry": {"shape": "box", "size": [0.1, 0.4, 0.2]}, "position": [-0.2, 0, 0.8]}
    way = {"type": "table", "times": [0, 0.2], "values": [[0, 0, 0], [0.2 * SPEED, 0, 0]]}
    held = [{"where": {"box": {"min": [None, 0.699, None]}}}, {"where": {"box": {"max": [None, -0.699, None]}}}]
    bodies |= {"pusher": pusher | {"translation": {"signal": "way"}}}
    bodies |= {"sheet": sheet(1.4, 10, position=[2.4, 0, 0.4], pins=held)}
    pairs = [[f"domino {k}", f"domino {k + 1}"] for k in range(3)]
    pairs += [["pusher", "domino 0"], ["domino 3", "sheet"], ["domino 2", "sheet"]]
    floor = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
    return scene(bodies, pairs, 0.25 * DT, steps, gravity=[0, 0, -GRAVITY], obstacles=floor, signals={"way": way})


def momentum(built: BuiltScene, run: Trajectory, k: int) -> FloatArray:
    """Return the momentum of ball and sheet after k steps [kg m/s]."""
    q, v = run.state(k).q[0], run.state(k).v[0]
    r, dofs = np.zeros(v.size), built.model.system.dofs
    for term in (*built.model.term(Inertia), *built.model.term(RigidInertia)):
        term.residual(Kinematics(q, np.zeros_like(v), v, 0.0, 0), built.theta, r)
    return np.asarray(dofs.view(r, "sheet").reshape(-1, 3).sum(axis=0) + r[dofs["ball"].start :][:3])


def crossing_pairs(built: BuiltScene, run: Trajectory) -> int:
    """Return how many pairs of an edge and a face pass through each other, over all steps."""
    (term,) = built.model.term(MeshContact)
    surface, primitives = term.surface, Primitives.of(term.surface)
    places = (surface.places(run.kinematics(k).q, built.theta) for k in range(run.n_steps + 1))
    return sum(len(crossings(primitives, x)) for x in places)


def mass_of(wanted: float) -> tuple[float, int, float]:
    """Return the mass with which two cubes that collide have a momentum, runs that Newton's method took, its error."""
    cube = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}}
    bodies = {"a": cube | {"mass": 1, "velocity": [2, 0, 0]}, "b": cube | {"mass": 1, "position": [0.15, 0, 0]}}
    raw = scene(bodies, [["a", "b"]], DT, 20, gravity=[0, 0, 0])
    built = add.scene_from_dict(raw).build()
    a, b = (built.model.system.dofs[name].start for name in "ab")
    mass, most = 1.0, 10
    for count in range(1, most + 1):
        runs = built.rollouts({"bodies.a.mass": [mass]}, n_steps=20)
        v = runs.batch.v
        error = float(mass * v[0, -1, a] + v[0, -1, b]) - wanted
        if abs(error) < 1e-6 or count == most:
            break
        bars = np.zeros_like(v)
        bars[0, -1, a], bars[0, -1, b] = mass, 1.0
        slope = float(runs.pullback(np.zeros_like(v), bars)["bodies.a.mass"][0] + v[0, -1, a])
        mass -= error / slope
    return mass, count, abs(error)


def run(context: Context) -> Outcome:
    """All of them."""
    scenes = {
        "ball in a free sheet": thrown(20 if context.short else 60),
        "trampoline": trampoline(70 if context.short else 240),
        "dominoes": dominoes(40 if context.short else 300),
    }
    rows, values, pixels = [], {}, []
    for name, raw in scenes.items():
        asked = add.scene_from_dict(raw)
        built, problem = asked.build(), asked.inverse_problem()
        found = built.run()
        crossing, error = crossing_pairs(built, found), slope_error(problem, problem.x0)
        rows.append(
            Row(f"{name}: pairs that cross, over {found.n_steps} steps; gradient's error against held differences",
                f"{crossing}; {error:.0e}")
        )  # fmt: skip
        values[name] = {"crossing": crossing, "error": error}
        if name == "ball in a free sheet":
            begin, end = (momentum(built, found, k) for k in (0, found.n_steps))
            values["momentum"] = float(np.abs(end - begin).max() / np.linalg.norm(begin))
            rows.append(Row(f"{name}: change of the momentum, over what it was", f"{values['momentum']:.0e}"))
        pixels.append(picture(built, found, built.theta, float(found.t[-1]), (420, 330)))
    mass, runs, error = mass_of(WANTED)
    rows.append(
        Row("two cubes: mass for a momentum of 3 kg m/s; runs; error [kg m/s]", f"{mass:.6f}; {runs}; {error:.0e}")
    )
    values["mass"] = {"runs": runs, "error": error}
    with figure(context.image("cloth_impacts.png"), 6.4, 2.0) as drawn:
        for axes, name, shown in zip(drawn.subplots(1, 3), scenes, pixels, strict=True):
            show(axes, shown, name)
    return Outcome(tuple(rows), {"cloth_impacts.png": "The three scenes at their ends."}, NOTES, values)


NOTES = (
    "Published are pictures. Four dominoes of 0.1 x 0.4 x 1 m, 0.5 m apart, a pusher of 3 m/s and gravity of 3.8 "
    "m/s^2 as published, steps of 5 ms for the published 20 ms; a ball in place of the bunny and the armadillo. The "
    "gradients are by three components of a velocity.",
)

ENTRY = Entry(
    "cloth3",
    "Cloth: a ball, a trampoline, dominoes",
    "Rigid bodies and cloth move each other: a ball flies into a free sheet, one falls on a sheet whose border is "
    "held, dominoes fall on each other and on a sheet; and a mass is found from the momentum of two cubes that "
    "collide (after Qiao, Liang, Koltun, Lin, ICML 2020).",
    run,
)
