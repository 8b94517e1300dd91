"""A cloth crumples in a pyramid: what a step backward takes, and what of it is contact (Liang, Lin, Koltun 2019)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import add
from add.adjoint.reverse import Cotangents, pullback_to_state
from add.contact import MeshContact
from add.equations.kinematics import Weights
from add.linalg import one_blas_thread
from add.linalg.pattern import Pattern
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from scripts.reproduction.cloth_impacts import crossing_pairs
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import fallbacks, iterations

#: Cells along an edge; steps until the cloth lies in the pyramid, and steps that are measured.
CELLS, BEFORE, MEASURED = (16, 32, 64), 120, 30
#: Our step [s]; thickness of the skins [m], as published.
DT, SKIN = 0.005, 5e-3
PYRAMID = "v 0 0 0\nv 1 1 1\nv -1 1 1\nv -1 -1 1\nv 1 -1 1\nf 1 2 3\nf 1 3 4\nf 1 4 5\nf 1 5 2\n"


def scene(bodies: dict[str, Any], steps: int) -> dict[str, Any]:
    """Return a cloth and bodies that it meets, as itself, by meshes."""
    return {
        "schema": "add-scene/1",
        "time": {"dt": DT, "steps": steps, "integrator": "bdf1"},
        "gravity": [0, 0, -9.8],
        "bodies": bodies,
        "contact": {
            "friction": 0.3,
            "mesh": {"thickness": SKIN, "stiffness": 1e5, "onset": 1e-3, "damping": 20},
            "pairs": [{"between": ["cloth", name], "by_meshes": True} for name in bodies if name != "cloth"],
        },
    }


def cloth(cells: int, **more: Any) -> dict[str, Any]:
    """Return a square of cloth of 1 m."""
    material = {
        "density": 0.187,
        "thickness": 5e-4,
        "membrane": {"model": "neo-hookean", "young": 5e4, "poisson": 0.3, "viscosity": 0.01},
        "bending": {"model": "hinge", "stiffness": 7e-6, "damping": 1e-7},
    }
    mesh = {"shape": "rectangle", "size": [1, 1], "cells": [cells, cells]}
    return {"type": "cloth", "mesh": mesh, "material": material, "contact": {"self": True}, **more}


def crumpling(cells: int, pyramid: Path) -> dict[str, Any]:
    """Return a square of cloth, slightly turned, above an upturned pyramid of four faces."""
    above = cloth(cells, position=[0.02, 0.01, 0.75], orientation=[0.991444861, 0.130526192, 0, 0])
    held = {"type": "kinematic", "geometry": {"file": str(pyramid)}}
    return scene({"cloth": above, "pyramid": held}, BEFORE + MEASURED)


def shares(built: BuiltScene, part: Trajectory) -> tuple[float, float, float]:
    """Return the seconds of assembly, factors and a solve, the same with patterns and orders, and of contact, a step.

    Contact is what a step backward asks of it, on the recorded pairs: the places of its matrix, its matrix, and in one
    call the products of the adjoint with its derivatives by numbers and by rates.
    """
    system, theta = built.simulation.system, built.theta
    (term,) = built.model.term(MeshContact)
    assembler, number, free = built.simulation.assembler(), system.deciding.index(term), system.partition.free.size
    adjoint = np.random.default_rng(0).normal(size=system.n)
    taken = []
    for _ in range(2):  # the first time with the analyses of all patterns
        with clock() as units:
            for record in part.records:
                branch = system.on_branch(record.decisions)
                weights = Weights(1.0, record.c, record.c**2, 1.0)
                assembler.factor(record.kin, record.mu, theta, weights, branch).solve_transposed(adjoint[:free])
        taken.append(units.seconds / part.n_steps)
        with clock() as contact:
            for record in part.records:
                touching, by_numbers = term.on_branch(record.decisions[number]), np.zeros(theta.size + system.n)
                pattern = Pattern.build(system.n, [touching.pattern()])
                weights = Weights(1.0, record.c, 0.0, 1.0)
                touching.jacobian(record.kin, theta, weights, pattern.new_data(), pattern.slots[0])
                touching.at(theta).parameters(record.kin, theta, touching.decided, False, adjoint, by_numbers)
    return taken[1], taken[0], contact.seconds / part.n_steps


def run(context: Context) -> Outcome:
    """All sizes."""
    sizes, before, measured = ((8,), 60, 5) if context.short else (CELLS, BEFORE, MEASURED)
    rows, values = list[Row](), dict[str, Any]()
    with tempfile.TemporaryDirectory() as folder, one_blas_thread():
        pyramid = Path(folder) / "pyramid.obj"
        pyramid.write_text(PYRAMID, encoding="utf-8")
        for n in sizes:
            built = add.scene_from_dict(crumpling(n, pyramid)).build()
            simulation, (term,) = built.simulation, built.model.term(MeshContact)
            simulation.run(n_steps=2)
            with clock() as forward:
                first = simulation.run(n_steps=before)
                part = simulation.run(n_steps=before + measured, state=first.state(before))
            bars = Cotangents(np.zeros(part.q.shape), np.zeros(part.q.shape))
            bars.q[-1] = 1.0
            whole = np.inf
            for _ in range(3):
                with clock() as backward:
                    pullback_to_state(simulation, part, built.theta, bars)
                whole = min(whole, backward.seconds / measured)
            units, anew, contact = shares(built, part)
            number = simulation.system.deciding.index(term)
            touching = [term.describe(record.decisions[number])["touching"] for record in part.records]
            crossing = crossing_pairs(built, first) + crossing_pairs(built, part)
            key = f"cloth2.{n}" if n in CELLS else None
            rows += [
                Row(f"{n} x {n} ({(n + 1) ** 2} nodes, {np.mean(touching):.0f} pairs touch): "
                    "contact in a step backward [ms]", f"{1e3 * contact:.2f}", key),
                Row(f"{n} x {n}: a step backward [ms]; over assembly, factors and a solve; with their analysis",
                    f"{1e3 * whole:.1f}; {whole / units:.2f}; {whole / anew:.2f}"),
                Row(f"{n} x {n}: a step forward [ms]; iterations a step; steps beyond Newton's normal path",
                    f"{1e3 * forward.seconds / (before + measured):.0f}; {iterations(part):.1f}; "
                    f"{fallbacks(first) + fallbacks(part)}"),
                Row(f"{n} x {n}: pairs that cross, over all steps", str(crossing)),
            ]  # fmt: skip
            values[str(n)] = {"contact": contact, "backward": whole, "units": units, "anew": anew,
                              "touching": max(touching), "crossing": crossing}  # fmt: skip
    if len(sizes) > 1:
        growth = np.diff(np.log([[values[str(n)][k] for k in ("contact", "backward")] for n in sizes]), axis=0)
        nodes = np.diff(np.log([(n + 1.0) ** 2 for n in sizes]))[:, None]
        text = "; ".join(", ".join(f"{power:.2f}" for power in column) for column in (growth / nodes).T)
        rows.append(Row("powers of the number of nodes: contact; the whole step backward", text))
    return Outcome(tuple(rows), {}, NOTES, values)


NOTES = (
    "Published is the time of the layer that solves and differentiates impact zones, by QR, a step. Here contact is "
    "a force of the step like others; its time is that of its own parts on the pairs of the run: places, matrix, "
    "products of the adjoint by numbers and rates. Steps of 5 ms, 120 and then the 30 that are measured, where the "
    "published ones are of 20 ms: at 20 ms many steps need fallbacks and take seconds. One step by impact zones is "
    "below. A neo-Hookean cloth of 25 N/m stands for the measured fabric. Diagonals alternate: on an irregular mesh "
    "of 64 x 64 cells some edges without a common node are nearer at rest than 1.5 times the published skin, so that"
    " they do not push each other, and a step in which one is folded onto the other has surfaces in its way and no "
    "force from them.",
)

ENTRY = Entry(
    "cloth2",
    "Cloth: crumpled in a pyramid",
    "A square of cloth of 1 m falls into an upturned pyramid and crumples, with contact of cloth and pyramid and of "
    "the cloth with itself: a step backward, at three sizes (after Liang, Lin, Koltun, *Differentiable cloth "
    "simulation for inverse problems*, NeurIPS 2019).",
    run,
)
