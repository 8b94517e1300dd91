"""From a trajectory to the arrays and numbers of a run folder."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from add.commands.drawing_data import ContactTracks, JointTracks, goals
from add.commands.impact_log import impact_json
from add.commands.step_counts import Tally
from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedTerm
from add.io.trajectory import BodyData, MassSpringData, ObstacleData, RunData, SolidData
from add.joints.law_term import DecidingJointLaw, JointLaw
from add.mocap import Recording
from add.model import Model, Obstacle, storing_chambers
from add.model.impacts import worth_saying
from add.scene.build.built import BuiltScene
from add.scene.build.contact_forces import contact_forces, contact_terms
from add.scene.build.numbers import CLOCK
from add.scene.build.placements import placed_positions
from add.scene.spec.markers import DirectionMarkerSpec
from add.simulation.run import Trajectory
from add.terms import (
    BallLimits,
    Elastic,
    Gravity,
    JointLimits,
    JointSprings,
    Muscle,
    OnLengths,
    Strained,
    TreeInertia,
    VolumetricActuator,
)
from add.typing import FloatArray, IntArray

#: The groups of a trajectory that bodies are drawn from.
_PICTURES: dict[str, type] = {"bodies": BodyData, "sheets": MassSpringData, "solids": SolidData}


#: Terms in the coordinates of trees that store energy.
_OF_TREES = (BallLimits, JointLimits, JointSprings, OnLengths, TreeInertia)


def _storing(built: BuiltScene) -> dict[str, list[Any]]:
    """Return the terms that store each kind of energy; "coupling" is that of springs, joints and motors."""
    model, contacts = built.model, contact_terms(built.simulation.system)
    kinds: dict[str, list[Any]] = {
        "elastic": [*model.term(Elastic), *model.term(Strained)],
        "gravity": [*model.term(Gravity), *model.term(TreeInertia)],
    }
    couplings = [
        term
        for kind in (JointLaw, DecidingJointLaw, JointSprings, JointLimits, BallLimits, OnLengths)
        for term in model.term(kind)
    ]
    chambers, muscles = storing_chambers(model), [*model.term(Muscle), *model.term(VolumetricActuator)]
    found = {"coupling": couplings, "chambers": chambers, "muscles": muscles}
    kinds |= {name: terms for name, terms in found.items() if terms}
    return kinds | {"contact": [term for _, term in contacts]}


def _stored(terms: list[Any], kin: Kinematics, at: Kinematics, theta: FloatArray) -> float:
    """Return the energy of terms, those of trees at ``kin`` (of q), others ``at`` the rows of X."""
    return float(sum(term.energy(kin if isinstance(term, _OF_TREES) else at, theta) for term in terms))


def _kinetic_energy(model: Model, kin: Kinematics, theta: FloatArray) -> float:
    at = model.lift.kinematics(kin, theta)
    lifted = [term.inner for term in model.system.terms if isinstance(term, LiftedTerm)]
    own = [term for term in model.system.terms if not isinstance(term, LiftedTerm)]
    found = [*(term.kinetic_energy(at, theta) for term in lifted), *(term.kinetic_energy(kin, theta) for term in own)]
    return float(sum(found))


def run_data(
    built: BuiltScene,
    trajectory: Trajectory,
    theta: FloatArray,
    *,
    every: int = 1,
    recording: Recording | None = None,
    origin: FloatArray | None = None,
) -> RunData:
    """Return the states that are kept of a run: the first, every ``every``-th from t = 0, and the last.

    Parameters
    ----------
    built, trajectory, theta : of the run
    every : int
    recording : Recording, optional
        Its markers are the run's targets.
    origin : (n_markers of the recording, 3), optional
        Of a recording whose displacements count: where the simulated markers are at its first frame [m].
    """
    whole = -trajectory.initial.step % every
    kept = np.unique([0, *range(whole, trajectory.n_steps + 1, every), trajectory.n_steps])
    model, system, stepper = built.model, built.simulation.system, built.simulation.stepper
    kinds = _storing(built)
    energy = {name: np.zeros(kept.size) for name in ("kinetic", *kinds)}
    q, v, force = (np.zeros((kept.size, model.lift.rows.n)) for _ in range(3))
    markers = np.zeros((kept.size, len(built.marker_names), 3))
    joints, touching = JointTracks(built, theta, kept.size), ContactTracks(system)
    for i, k in enumerate(kept):
        kin = trajectory.kinematics(int(k))
        energy["kinetic"][i] = _kinetic_energy(model, kin, theta)
        at = model.lift.kinematics(kin, theta)
        q[i], v[i] = at.q, at.v
        for name, terms in kinds.items():
            energy[name][i] = _stored(terms, kin, at, theta)
        record = trajectory.records[k - 1] if k else None
        solved = stepper.contact_forces(record, theta) if record else None
        force[i] = contact_forces(model, built.simulation, kin, record, theta)
        joints.record(i, kin)
        touching.record(at, theta, record, solved)
        if built.marker_names:
            markers[i] = built.markers.points(kin, theta)[0]
    iterations = np.array([record.report.iterations for record in trajectory.records], dtype=np.int64)
    residual = np.array([record.report.residual for record in trajectory.records])
    layout = system.parameters
    drawn: dict[str, list[Any]] = {kind: [] for kind in _PICTURES}
    for body in model.bodies:
        picture = body.picture(theta, model.layouts)
        if picture is None:
            continue
        kind, values = picture
        drawn[kind].append(_PICTURES[kind](name=body.name, start=model.lift.rows[body.name].start, **values))
    obstacles = tuple(
        ObstacleData(o.name, o.kind, np.array(o.size), o.rotation, o.position, o.velocity, *_triangles(o))
        for o in model.obstacles_at(theta)
    )
    # Directions are no places.
    given = built.scene.markers
    directions = {name for name in built.marker_names if isinstance(given[name], DirectionMarkerSpec)}
    targets = {}
    if recording is not None:
        spec = built.scene.recording
        # Displacements are drawn from where the simulated markers are when they count from.
        positions = placed_positions(built.scene, layout, recording, theta)
        offset = np.zeros((recording.n_markers, 3)) if origin is None else origin - positions[0]
        # A fitted clock shifts the recording.
        shift = 0.0 if spec is None else spec.time_offset - float(layout.view(theta, CLOCK))
        for j, name in enumerate(recording.names):
            if name in directions:
                continue
            targets[name] = (recording.times + shift, positions[:, j] + offset[j])
    return RunData(
        t=trajectory.t[kept],
        q=q,
        v=v,
        energy=energy,
        newton_iterations=np.array([iterations[a:b].sum() for a, b in pairwise(kept)], dtype=np.int64),
        newton_residual=np.array([residual[a:b].max() for a, b in pairwise(kept)]),
        contact_force=force,
        bodies=tuple(drawn["bodies"]),
        obstacles=obstacles,
        markers={name: markers[:, j] for j, name in enumerate(built.marker_names) if name not in directions},
        targets=targets,
        sheets=tuple(drawn["sheets"]),
        solids=tuple(drawn["solids"]),
        lines=joints.lines(),
        joints=joints.joints(),
        contacts=touching.data(),
        goals=goals(built),
        carry=trajectory.state(trajectory.n_steps).carry,
    )


def _triangles(obstacle: Obstacle) -> tuple[FloatArray, IntArray] | tuple[()]:
    """Return vertices and triangles of an obstacle that is a mesh."""
    return () if obstacle.mesh is None else (obstacle.mesh.vertices, obstacle.mesh.triangles)


def summary(
    built: BuiltScene,
    trajectory: Trajectory,
    theta: FloatArray,
    *,
    before: Tally | None = None,
    start: Kinematics | None = None,
) -> dict[str, Any]:
    """Return the numbers of a run that reports and ``expect`` blocks name.

    Parameters
    ----------
    built, trajectory, theta
    before : Tally, optional
        Of the steps before the trajectory, where a run was gone on with.
    start : Kinematics, optional
        At t = 0; default: the trajectory's first.
    """
    model = built.model
    last = trajectory.kinematics(trajectory.n_steps)
    tally = (before or Tally()).add(built, trajectory, theta)
    out: dict[str, Any] = {
        "steps": tally.steps,
        "end_time": float(trajectory.t[-1]),
        "newton": {
            "iterations_per_step": tally.iterations / tally.steps if tally.steps else 0.0,
            "most_iterations": tally.most_iterations,
            "factorizations": tally.factorizations,
            "fallbacks": tally.fallbacks,
            "divided": tally.divided,
        },
        "energy": {"kinetic": _kinetic_energy(model, last, theta)},
        "bodies": {},
        "markers": {},
    }
    lifted = model.lift.kinematics(last, theta)
    for name, terms in _storing(built).items():
        out["energy"][name] = _stored(terms, last, lifted, theta)
    masses = model.node_masses(theta)
    out["bodies"] = {body.name: body.state(lifted, masses, theta, model.layouts) for body in model.bodies}
    if built.marker_names:
        places = built.markers.points(last, theta)[0]
        first = built.markers.points(start or trajectory.kinematics(0), theta)[0]
        for j, name in enumerate(built.marker_names):
            out["markers"][name] = {
                "final": places[j].tolist(),
                "displacement": (places[j] - first[j]).tolist(),
            }
    if tally.chambers:
        out["chambers"] = tally.chambers
    for key, counts in tally.events.items():
        if counts or key == "contact":
            out[key] = counts
    impacts = worth_saying(tally.impacts.shortest(built, theta))
    if impacts:
        out["impacts"] = [impact_json(impact) for impact in impacts]
    if tally.weak.natural_map > 0.0:
        out["contact_certificate"] = {"natural_map": tally.weak.natural_map}
    if tally.weak.seen:
        out["weak_contacts"] = tally.weak.described()
    if tally.depths.seen:
        out["mesh_depths"] = tally.depths.described()
    if tally.sunk.seen:
        out["sunk"] = tally.sunk.described()
    return out
