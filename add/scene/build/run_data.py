"""From a trajectory to the arrays of a run folder, from which runs are drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedTerm
from add.io.trajectory import BodyData, MassSpringData, ObstacleData, RunData, SolidData
from add.joints.law_term import DecidingJointLaw, JointLaw
from add.mocap import Recording
from add.model import Obstacle, storing_chambers
from add.scene.build.built import BuiltScene, contact_forces, contact_terms
from add.scene.build.drawing_data import ContactTracks, JointTracks, goals
from add.scene.build.numbers import CLOCK
from add.scene.build.recordings import placed_positions
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


@final
class Energies:
    """Energies of a scene by kind [J]: "kinetic", and what its terms store; "coupling" is that of springs and joints.

    Parameters
    ----------
    built : BuiltScene
    theta : (n_theta,)
    """

    def __init__(self, built: BuiltScene, theta: FloatArray) -> None:
        self._model, self._theta = built.model, theta
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
        self._storing = kinds | {"contact": [term for _, term in contacts]}

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds."""
        return ("kinetic", *self._storing)

    def at(self, kin: Kinematics) -> dict[str, float]:
        """Return the energies of a state."""
        lifted = self._model.lift.kinematics(kin, self._theta)
        out = {"kinetic": self._kinetic(kin, lifted)}
        for name, terms in self._storing.items():
            states = [kin if isinstance(term, _OF_TREES) else lifted for term in terms]
            stored = [term.energy(state, self._theta) for term, state in zip(terms, states, strict=True)]
            out[name] = float(sum(stored))
        return out

    def _kinetic(self, kin: Kinematics, lifted: Kinematics) -> float:
        terms = self._model.system.terms
        found = [term.inner.kinetic_energy(lifted, self._theta) for term in terms if isinstance(term, LiftedTerm)]
        found += [term.kinetic_energy(kin, self._theta) for term in terms if not isinstance(term, LiftedTerm)]
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
    energies = Energies(built, theta)
    energy = {name: np.zeros(kept.size) for name in energies.names}
    q, v, force = (np.zeros((kept.size, model.lift.rows.n)) for _ in range(3))
    markers = np.zeros((kept.size, len(built.marker_names), 3))
    joints, touching = JointTracks(built, theta, kept.size), ContactTracks(system)
    for i, k in enumerate(kept):
        kin = trajectory.kinematics(int(k))
        at = model.lift.kinematics(kin, theta)
        q[i], v[i] = at.q, at.v
        for name, value in energies.at(kin).items():
            energy[name][i] = value
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
