"""From a trajectory to the arrays and numbers of a run folder."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from add.io.results import MODELS, BodyData, ObstacleData, RunData
from add.mocap import Recording
from add.model import Model
from add.scene.builder import BuiltScene
from add.scene.numbers import CLOCK
from add.simulate import Trajectory
from add.terms import Elastic, Gravity, Inertia
from add.typing import FloatArray


def _storing(model: Model) -> dict[str, list[Any]]:
    """Return the terms that store each kind of energy."""
    return {"elastic": model.term(Elastic), "gravity": model.term(Gravity), "contact": list(model.system.deciding)}


def run_data(
    built: BuiltScene,
    trajectory: Trajectory,
    theta: FloatArray,
    *,
    every: int = 1,
    recording: Recording | None = None,
) -> RunData:
    """Return what is kept of a run: every ``every``-th state and the last."""
    kept = np.unique([*range(0, trajectory.n_steps + 1, every), trajectory.n_steps])
    model, system = built.model, built.model.system
    inertia: Inertia = model.term(Inertia)[0]
    kinds = _storing(model)
    energy = {name: np.zeros(kept.size) for name in ("kinetic", *kinds)}
    force = np.zeros((kept.size, system.n))
    markers = np.zeros((kept.size, len(built.marker_names), 3))
    for i, k in enumerate(kept):
        kin = trajectory.kinematics(int(k))
        energy["kinetic"][i] = inertia.kinetic_energy(kin, theta)
        for name, terms in kinds.items():
            energy[name][i] = sum(term.energy(kin, theta) for term in terms)
        for contact in system.deciding:
            force[i] += contact.forces(kin, theta)
        if built.marker_names:
            markers[i] = built.markers.points(kin)[0]
    iterations = np.array([record.report.iterations for record in trajectory.records], dtype=np.int64)
    residual = np.array([record.report.residual for record in trajectory.records])
    layout = system.parameters
    bodies = tuple(
        BodyData(
            body.name,
            system.dofs[body.name].start,
            body.mesh.family.name,
            body.mesh.points,
            body.mesh.cells,
            surface.triangles,
            float(layout.view(theta, f"bodies.{body.name}.mu")),
            float(layout.view(theta, f"bodies.{body.name}.lambda")),
            MODELS[body.form],
            body.mean_dilatation,
        )
        for body, surface in zip(model.bodies, model.surfaces, strict=True)
    )
    obstacles = tuple(
        ObstacleData(o.name, o.kind, np.array(o.size), o.rotation, o.position, o.velocity) for o in model.obstacles
    )
    targets = {}
    if recording is not None:
        spec = built.scene.spec.recording
        offset = np.zeros((recording.positions.shape[1], 3))
        if spec is not None and spec.displacement:
            first = built.markers.points(trajectory.kinematics(0))[0]
            rows = [built.marker_names.index(name) for name in recording.names]
            offset = first[rows] - recording.positions[0]
        # A fitted clock shifts the recording.
        shift = 0.0 if spec is None else spec.time_offset - float(layout.view(theta, CLOCK))
        for j, name in enumerate(recording.names):
            targets[name] = (recording.times + shift, recording.positions[:, j] + offset[j])
    return RunData(
        t=trajectory.t[kept],
        q=trajectory.q[kept],
        v=trajectory.v[kept],
        energy=energy,
        newton_iterations=np.array(
            [iterations[a:b].sum() for a, b in pairwise(kept)], dtype=np.int64
        ),
        newton_residual=np.array([residual[a:b].max() for a, b in pairwise(kept)]),
        contact_force=force,
        bodies=bodies,
        obstacles=obstacles,
        markers={name: markers[:, j] for j, name in enumerate(built.marker_names)},
        targets=targets,
    )


def summary(built: BuiltScene, trajectory: Trajectory, theta: FloatArray) -> dict[str, Any]:
    """Return the numbers of a run that reports and ``expect`` blocks name."""
    model = built.model
    inertia: Inertia = model.term(Inertia)[0]
    last = trajectory.kinematics(trajectory.n_steps)
    iterations = [record.report.iterations for record in trajectory.records]
    factorizations = [record.report.factorizations for record in trajectory.records]
    out: dict[str, Any] = {
        "steps": trajectory.n_steps,
        "end_time": float(trajectory.t[-1]),
        "newton": {
            "iterations_per_step": float(np.mean(iterations)) if iterations else 0.0,
            "most_iterations": max(iterations, default=0),
            "factorizations": int(sum(factorizations)),
            "fallbacks": sum(record.report.rung > 0 for record in trajectory.records),
        },
        "energy": {"kinetic": inertia.kinetic_energy(last, theta)},
        "bodies": {},
        "markers": {},
    }
    for name, terms in _storing(model).items():
        out["energy"][name] = float(sum(term.energy(last, theta) for term in terms))
    weights = np.bincount(inertia.rows, inertia.mass[:, 2] * theta[inertia.density], minlength=model.system.n // 3)
    for body, first in zip(model.bodies, model.first_node, strict=True):
        rows = slice(first, first + body.mesh.n_nodes)
        share = weights[rows] / weights[rows].sum()
        centre, velocity = (share @ x.reshape(-1, 3)[rows] for x in (last.q, last.v))
        out["bodies"][body.name] = {
            "mass": float(weights[rows].sum()),
            "centre": centre.tolist(),
            "velocity": velocity.tolist(),
            "speed": float(np.linalg.norm(velocity)),
            "nodes": body.mesh.n_nodes,
            "elements": body.mesh.n_elements,
        }
    if built.marker_names:
        places = built.markers.points(last)[0]
        start = built.markers.points(trajectory.kinematics(0))[0]
        for j, name in enumerate(built.marker_names):
            out["markers"][name] = {
                "final": places[j].tolist(),
                "displacement": (places[j] - start[j]).tolist(),
            }
    counts: dict[str, int] = {}
    for record in trajectory.records:
        for term, decision in zip(model.system.deciding, record.decisions, strict=True):
            for key, number in term.describe(decision).items():
                counts[key] = counts.get(key, 0) + number
    out["contact"] = counts
    return out
