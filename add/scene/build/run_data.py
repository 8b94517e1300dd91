"""From a trajectory to the arrays of a run folder, from which runs are drawn: bodies, joints, goals, energies."""

from itertools import pairwise
from typing import Any, final

import numpy as np

from add.contact import BodyContact, MeshContact
from add.contact.surfaces import ContactPlaces
from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedTerm
from add.equations.sites import Site, SitePoints, gather
from add.equations.system import System
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import (
    BodyData,
    ContactData,
    GoalData,
    JointData,
    LineData,
    MassSpringData,
    ObstacleData,
    SolidData,
)
from add.joints.law import PLACE
from add.joints.law_term import DecidingJointLaw, JointLaw
from add.joints.laws import BodySite, ElasticJoint, PointForce, Slider
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.mocap import Recording
from add.model import Obstacle, storing_chambers
from add.model.build import system_site
from add.scene.build.built import BuiltScene, contact_forces, contact_terms
from add.scene.build.numbers import CLOCK
from add.scene.build.recordings import placed_positions
from add.scene.spec.couplings import BallSpec, FixedSpec, ForceSpec, HingeSpec, SliderSpec, TorqueSpec
from add.scene.spec.objective import NearestObjectiveSpec, PointObjectiveSpec, PoseObjectiveSpec
from add.simulation import ContactForces, Record
from add.simulation.run import Trajectory
from add.solve.step_matrix import Assembler
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


@final
class JointTracks:
    """Follows springs, cables, given forces and joints over the kept states.

    Parameters
    ----------
    built : BuiltScene
    theta : (n_theta,)
    n_states : int
    """

    def __init__(self, built: BuiltScene, theta: FloatArray, n_states: int) -> None:
        spec, joint_parts = built.scene.couplings, built.model.joint_parts
        self._theta, self._layout = theta, built.model.system.parameters
        self._model = built.model
        self._rows: list[Site] = []
        # Joint parts come in the order of the scene, springs and forces one a coupling, behind those of bodies.
        names = [name for name, item in spec.items() if item.term and item.term.law.slots == (PLACE, PLACE)]
        springs = [part for part in joint_parts if part.term.law.slots == (PLACE, PLACE)]
        self._springs = [
            (name, part, self._site(part.sites[0]), self._site(part.sites[1]))
            for name, part in zip(names, springs, strict=True)
        ]
        pushes = [(name, item) for name, item in spec.items() if isinstance(item, ForceSpec | TorqueSpec)]
        forces = [part for part in joint_parts if part.term is PointForce]
        self._loads = [
            (name, part, self._site(part.sites[0]))
            for (name, item), part in zip(pushes, forces[len(forces) - len(pushes) :], strict=True)
            if isinstance(item, ForceSpec)
        ]
        self._joints: list[tuple[str, int, int]] = []
        for name, item in spec.items():
            if isinstance(item, BallSpec | HingeSpec | FixedSpec | SliderSpec):
                bonds = [part for part in joint_parts if part.term in (ElasticJoint, Slider)]
                place = next(part for part in bonds if part.numbers[0] == f"couplings.{name}.stiffness")
                axes = [*place.sites[2:], *(b.sites[0] for b in bonds if b.sites[0].arm == f"couplings.{name}.axis.a")]
                self._joints.append((name, self._site(place.sites[0]), self._site(axes[0]) if axes else -1))
        self._points = built.model.lifted(SitePoints(gather(self._rows))) if self._rows else None
        self._places = np.zeros((n_states, len(self._rows), 3))
        self._tension = np.zeros((n_states, len(self._springs)))
        self._force = np.zeros((n_states, len(self._loads), 3))

    def _site(self, site: BodySite) -> int:
        self._rows.append(system_site(site, self._model.bodies, self._model.layouts))
        return len(self._rows) - 1

    def record(self, i: int, kin: Kinematics) -> None:
        """Keep state number ``i`` of the kept ones."""
        if self._points is None:
            return
        y, rate = self._points.points(kin, self._theta)
        self._places[i] = y
        for j, (_, part, a, b) in enumerate(self._springs):
            f, p = np.zeros((2, 3)), np.array([[float(self._layout.view(self._theta, name)) for name in part.numbers]])
            part.term.law.force(y[[a, b]], rate[[a, b]], p, False, np.zeros(1, dtype=np.int8), f)
            length = float(np.linalg.norm(y[a] - y[b]))
            self._tension[i, j] = -f[0] @ (y[a] - y[b]) / length if length else 0.0
        for j, (_, load, _) in enumerate(self._loads):
            assert load.drive is not None
            rows = self._layout.view(self._theta, load.drive.parameter)
            self._force[i, j] = load.drive.signal.weights(kin.t) @ rows

    def lines(self) -> dict[str, LineData]:
        """Return springs, cables and given forces."""
        out = {}
        for j, (name, part, a, b) in enumerate(self._springs):
            kind = "cable" if part.term.law.branches else "spring"
            out[name] = LineData(kind, self._places[:, [a, b]], self._tension[:, j])
        for j, (name, _, on) in enumerate(self._loads):
            force = self._force[:, j]
            size = np.linalg.norm(force, axis=1)
            unit = np.divide(force, size[:, None], out=np.zeros_like(force), where=size[:, None] > 0.0)
            out[name] = LineData("load", np.stack([self._places[:, on], self._places[:, on] + unit], axis=1), size)
        return out

    def joints(self) -> dict[str, JointData]:
        """Return places and axes of joints."""
        unknown = np.full((self._places.shape[0], 3), np.nan)
        return {
            name: JointData(self._places[:, place], self._places[:, axis] if axis >= 0 else unknown)
            for name, place, axis in self._joints
        }


@final
class ContactTracks:
    """Follows the contacts of points on rigid bodies, and pairs of meshes; those of other nodes are forces on nodes."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._terms = sorted(contact_terms(system), key=lambda pair: isinstance(pair[1], MeshContact))
        self._offsets = [0]
        self._places: list[FloatArray] = [np.zeros((0, 3))]
        self._forces: list[FloatArray] = [np.zeros((0, 3))]
        self._modes: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        self._margins: list[FloatArray] = [np.zeros(0)]

    def record(
        self, kin: Kinematics, theta: FloatArray, record: Record | None, solved: ContactForces | None = None
    ) -> None:
        """Keep the next state, in the branch of its record or in the one that holds there, or as the step solved it."""
        count = 0
        for i, term in self._terms:
            decision, reactions = term.decide(kin, theta) if record is None else record.decisions[i], None
            if record is not None:
                if not decision.size:  # a start is asked in any case: what it calls is compiled ahead of a run
                    continue
                reactions = self._system.on_branch(record.decisions).reactions(i, record.mu)
            contacts = term.places(kin, theta, decision, reactions)
            carried: Any = slice(None)
            if isinstance(term, BodyContact) and isinstance(contacts, ContactPlaces):
                carried = term.rigid[contacts.point]
            self._places.append(contacts.place[carried])
            self._forces.append(contacts.force[carried])
            count += self._places[-1].shape[0]
        if solved is not None:
            self._places.append(solved.places[solved.on_rigid])
            self._forces.append(solved.forces[solved.on_rigid])
            count += int(solved.on_rigid.sum())
            if solved.modes.size:
                self._modes.append(solved.modes[solved.on_rigid])
                self._margins.append(solved.margins[solved.on_rigid])
        self._offsets.append(self._offsets[-1] + count)

    def data(self) -> ContactData:
        """Return all contacts."""
        if not self._terms and not self._offsets[-1]:
            return ContactData()
        offsets = np.array(self._offsets, dtype=np.int64)
        places, forces = np.concatenate(self._places), np.concatenate(self._forces)
        return ContactData(offsets, places, forces, np.concatenate(self._modes), np.concatenate(self._margins))


def goals(built: BuiltScene) -> dict[str, GoalData]:
    """Return the points and poses that the objective wants, named by the marker or body that should be there."""
    spec, model = built.scene, built.model
    rest = {body.name: body.rest for body in model.bodies if not body.has_frame}
    out: dict[str, GoalData] = {}
    for k, item in enumerate(spec.objective):
        if isinstance(item, PointObjectiveSpec | NearestObjectiveSpec):
            # A target on one axis is a plane, not a place; and a direction is none either.
            if len(item.axes) > 1 and not spec.is_direction(item.marker):
                out[_free(item.marker, k, out)] = GoalData(np.array([item.target]))
        elif isinstance(item, PoseObjectiveSpec) and item.translation is not None:
            turn = np.eye(3) if item.orientation is None else rotation_matrix(rotation_vector(item.orientation))
            move = np.array(item.translation)
            points = rest.get(item.body, np.zeros((0, 3))) @ turn.T + move
            out[_free(item.body, k, out)] = GoalData(points, item.body, turn, move)
    return out


def _free(name: str, k: int, taken: dict[str, GoalData]) -> str:
    return f"{name} {k}" if name in taken else name


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

        def of(*kinds: type) -> list[Any]:
            return [term for kind in kinds for term in model.term(kind)]

        couplings = of(JointLaw, DecidingJointLaw, JointSprings, JointLimits, BallLimits, OnLengths)
        chambers, muscles = storing_chambers(model), of(Muscle, VolumetricActuator)
        extra = {"coupling": couplings, "chambers": chambers, "muscles": muscles}
        self._storing = {"elastic": of(Elastic, Strained), "gravity": of(Gravity, TreeInertia)}
        self._storing |= {name: terms for name, terms in extra.items() if terms}
        self._storing["contact"] = [term for _, term in contacts]

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
        energies = [term.inner.kinetic_energy(lifted, self._theta) for term in terms if isinstance(term, LiftedTerm)]
        energies += [term.kinetic_energy(kin, self._theta) for term in terms if not isinstance(term, LiftedTerm)]
        return float(sum(energies))


def start_data(built: BuiltScene, *, contacts: bool = True) -> RunData:
    """Return a run of no step, for a picture: the start by the terms, since compiled steps take longer to load.

    Without energies and, on request, contact forces: no picture shows them, and what finds them would be compiled.
    """
    simulation = built.simulation
    assembler = Assembler(simulation.system, simulation.solver(simulation.system.n_unknowns))
    state, record = simulation.begin(assembler, built.theta)
    run = Trajectory(np.array([state.t]), state.q[:1], state.v[:1], record, [], state)
    return run_data(built, run, built.theta, energies=False, contacts=contacts)


def run_data(
    built: BuiltScene,
    trajectory: Trajectory,
    theta: FloatArray,
    *,
    every: int = 1,
    recording: Recording | None = None,
    origin: FloatArray | None = None,
    energies: bool = True,
    contacts: bool = True,
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
    energies, contacts : bool
        Whether these are found.
    """
    whole = -trajectory.initial.step % every
    kept = np.unique([0, *range(whole, trajectory.n_steps + 1, every), trajectory.n_steps])
    model, system = built.model, built.simulation.system
    stored = Energies(built, theta)
    energy = {name: np.zeros(kept.size) for name in stored.names if energies}
    q, v, force = (np.zeros((kept.size, model.lift.rows.n)) for _ in range(3))
    markers = np.zeros((kept.size, len(built.marker_names), 3))
    joints, touching = JointTracks(built, theta, kept.size), ContactTracks(system)
    for i, k in enumerate(kept):
        kin = trajectory.kinematics(int(k))
        at = model.lift.kinematics(kin, theta)
        q[i], v[i] = at.q, at.v
        if energies:
            for name, value in stored.at(kin).items():
                energy[name][i] = value
        joints.record(i, kin)
        if contacts:
            record = trajectory.records[k - 1] if k else None
            force[i], solved = contact_forces(model, built.simulation, kin, record, theta)
            touching.record(at, theta, record, solved)
        if built.marker_names:
            markers[i] = built.markers.points(kin, theta)[0]
    reports = [record.report for record in trajectory.records]
    between = [reports[a:b] for a, b in pairwise(kept)]
    layout = system.parameters
    drawn: dict[str, Any] = dict.fromkeys(_PICTURES, ())
    for body in model.bodies:
        picture = body.picture(theta, model.layouts)
        if picture is None:
            continue
        kind, values = picture
        drawn[kind] += (_PICTURES[kind](name=body.name, start=model.lift.rows[body.name].start, **values),)
    obstacles = tuple(
        ObstacleData(o.name, o.kind, np.array(o.size), o.rotation, o.position, o.velocity, *_triangles(o))
        for o in model.obstacles_at(theta)
    )
    # Directions are no places.
    directions = {name for name in built.marker_names if built.scene.is_direction(name)}
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
        newton_iterations=np.array([sum(one.iterations for one in some) for some in between], dtype=np.int64),
        newton_residual=np.array([max(one.residual for one in some) for some in between]),
        contact_force=force,
        obstacles=obstacles,
        markers={name: markers[:, j] for j, name in enumerate(built.marker_names) if name not in directions},
        targets=targets,
        lines=joints.lines(),
        joints=joints.joints(),
        contacts=touching.data() if contacts else ContactData(),
        goals=goals(built),
        carry=trajectory.state(trajectory.n_steps).carry,
        **drawn,
    )


def _triangles(obstacle: Obstacle) -> tuple[FloatArray, IntArray] | tuple[()]:
    """Return vertices and triangles of an obstacle that is a mesh."""
    return () if obstacle.mesh is None else (obstacle.mesh.vertices, obstacle.mesh.triangles)
