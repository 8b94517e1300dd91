"""Runs of a scene with drawn numbers: what is seen of each, and the workers that do them."""

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.special import ndtri

from add.bodies import LinkBody, RigidBody, TreeBody
from add.commands.parallel.workers import Work
from add.commands.predict import Motion, View
from add.errors import SolverError
from add.inverse.sampling import Discrepancy, Drawn
from add.kernels.trees import HINGE
from add.linalg import one_blas_thread
from add.objectives import Objective
from add.objectives.base import total
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene, contact_forces, contact_terms
from add.scene.build.inverse_problem import scene_objective
from add.scene.build.scene import build
from add.scene.read.reader import experiment_scenes
from add.scene.spec.rigid import BoxGeometrySpec, CylinderGeometrySpec
from add.simulation.run import Trajectory
from add.typing import BoolArray, FloatArray

#: A cylinder whose axis is steeper than this against the vertical stands, on one end or the other; else it lies.
STANDS = np.cos(np.pi / 4.0)


class Watch(NamedTuple):
    """The bodies, angles, contacts and sides that are watched in a run beside its markers.

    Attributes
    ----------
    bodies : name -> first row in X of bodies with a pose, links included
    hinges : name -> coordinate in q
    ends : name -> (first row in X, whether it is a cylinder) of bodies of which one side is up at the end
    up : (3,) against gravity
    touching : name -> rows in X of bodies that may touch
    objective : Objective, optional
    """

    bodies: dict[str, int]
    hinges: dict[str, int]
    ends: dict[str, tuple[int, bool]]
    up: FloatArray
    touching: dict[str, slice]
    objective: Objective | None

    @classmethod
    def of(cls, built: BuiltScene) -> "Watch":
        """Return what there is to see in a scene."""
        model, scene = built.model, built.scene
        posed = [body.name for body in model.bodies if isinstance(body, RigidBody | LinkBody)]
        hinges: dict[str, int] = {}
        for tree in (body for body in model.bodies if isinstance(body, TreeBody)):
            at = np.cumsum([model.lift.dofs[tree.name].start, *(joint.n for joint in tree.joints)])
            hinges |= {
                f"{tree.name}/{joint.name}": int(first)
                for joint, first in zip(tree.joints, at, strict=False)
                if joint.kind == HINGE and joint.n
            }
        ends = {}
        gravity = np.array(scene.gravity, dtype=float)
        weight = float(np.linalg.norm(gravity))
        for name in posed if weight > 0.0 else ():
            shape = getattr(scene.bodies.get(name), "geometry", None)
            if isinstance(shape, BoxGeometrySpec | CylinderGeometrySpec) and model.body(name).moves:
                ends[name] = (model.lift.rows[name].start, isinstance(shape, CylinderGeometrySpec))
        meets = bool(contact_terms(built.simulation.system)) or scene.contact.friction_law in ("exact", "impulse")
        touching = {
            body.name: model.lift.rows[body.name].slice
            for body in model.bodies
            if meets and body.name in model.lift.rows
        }
        objective = None
        if scene.objective and not scene.experiments:
            name = next(iter(experiment_scenes(scene)))
            objective = scene_objective(scene, built, name, built.simulation.n_steps)
        return cls({name: model.lift.rows[name].start for name in posed}, hinges, ends,
                   -gravity / max(weight, 1e-300), touching, objective)  # fmt: skip

    def seen(self, view: View, run: Trajectory, theta: FloatArray) -> "Watched":
        """Return what is seen of a run."""
        built, dt = view.built, view.built.simulation.stepper.dt
        steps = np.clip(np.rint(view.times / dt).astype(int), 0, run.n_steps)
        at = [built.model.lift.kinematics(run.kinematics(int(k)), theta).q for k in steps]
        rows = np.array([[*range(start, start + 6)] for start in self.bodies.values()], dtype=int).reshape(-1, 6)
        poses = np.array([x[rows] for x in at])
        last = built.model.lift.kinematics(run.kinematics(run.n_steps), theta).q
        return Watched(
            view.places(run, theta),
            poses[..., :3],
            poses[..., 3:],
            np.array([[run.q[k, column] for column in self.hinges.values()] for k in steps]).reshape(steps.size, -1),
            None if self.objective is None else _judged(self.objective, run, theta),
            self._touches(built, run, theta),
            {
                name: side_up(last[start + 3 : start + 6], self.up, round_)
                for name, (start, round_) in self.ends.items()
            },
        )

    def _touches(self, built: BuiltScene, run: Trajectory, theta: FloatArray) -> dict[str, float | None]:
        """Return when each body first touched something [s]; None where it did not."""
        out: dict[str, float | None] = dict.fromkeys(self.touching)
        terms = contact_terms(built.simulation.system)
        for k, record in enumerate(run.records if out else (), start=1):
            touching = any(len(record.decisions[number]) for number, _ in terms)
            if not touching and built.simulation.stepper.contact_forces(record, theta) is None:
                continue
            force, _ = contact_forces(built.model, built.simulation, run.kinematics(k), record, theta)
            for name, part in self.touching.items():
                if out[name] is None and force[part].any():
                    out[name] = float(run.t[k])
            if None not in out.values():
                break
        return out


def side_up(turn: FloatArray, up: FloatArray, is_round: bool = False) -> str:
    """Return which side is up, +x to -z of a body's own axes; of a cylinder which end, or that it lies.

    Parameters
    ----------
    turn : (3,) rotation vector of the body [rad]
    up : (3,) against gravity
    """
    local = Rotation.from_rotvec(turn).inv().apply(up)
    if is_round:
        return ("+z up" if local[2] > 0.0 else "-z up") if abs(local[2]) > STANDS else "lies"
    k = int(np.argmax(np.abs(local)))
    return f"{'+' if local[k] > 0.0 else '-'}{'xyz'[k]} up"


def _judged(objective: Objective, run: Trajectory, theta: FloatArray) -> float:
    """Return the objective of a run; squares of all frames at once."""
    judged = objective.for_run()
    try:
        parts = judged.as_squares()
    except TypeError:
        return float(total(judged, run.states(), theta))
    residuals = [(w, part.run_residuals(run, theta), part.parameter_residuals(theta)) for w, part in parts]
    return float(sum(w * (of_run @ of_run + own @ own) for w, of_run, own in residuals))


class Watched(NamedTuple):
    """The motion of one run, and how it ended.

    Attributes
    ----------
    markers : (nf, nm, 3) places [m] and directions
    centres, turns : (nf, nb, 3) of bodies [m], rotation vectors [rad]
    angles : (nf, na) of hinges [rad]
    objective : float, optional
    touches : body -> first time, or None [s]
    ends : body -> side
    """

    markers: FloatArray
    centres: FloatArray
    turns: FloatArray
    angles: FloatArray
    objective: float | None
    touches: dict[str, float | None]
    ends: dict[str, str]

    def line(self) -> dict[str, Any]:
        """Return the JSON of it; arrays as little-endian doubles in base64."""
        arrays = {key: value for key, value in self._asdict().items() if isinstance(value, np.ndarray)}
        packed = {
            key: [base64.b64encode(value.astype("<f8").tobytes()).decode(), *value.shape]
            for key, value in arrays.items()
        }
        return packed | {"objective": self.objective, "touches": self.touches, "ends": self.ends}

    @classmethod
    def parsed(cls, line: dict[str, Any]) -> "Watched":
        """Return what a line holds."""
        arrays = {
            key: np.frombuffer(base64.b64decode(line[key][0]), dtype="<f8").reshape(line[key][1:]).astype(float)
            for key in ("markers", "centres", "turns", "angles")
        }
        return cls(**arrays, objective=line["objective"], touches=line["touches"], ends=line["ends"])


class Run(NamedTuple):
    """One finished draw: what was seen, or why its run failed."""

    seen: Watched | None
    seconds: float
    failed: str = ""


@final
@dataclass(frozen=True, eq=False)
class Sampling(Work[int, Run]):
    """Runs a scene with the k-th of the drawn values.

    Attributes
    ----------
    raw : the scene
    targets, names, times : see `add.commands.predict.View`
    values : (n_draws, n)
    """

    raw: dict[str, Any]
    targets: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    times: FloatArray
    values: FloatArray

    def prepare(self) -> Callable[[int], Run]:
        """Return the function; called once in every worker."""
        built = build(scene_from_dict(self.raw))
        view, watch = View(built, self.targets, self.names, self.times), Watch.of(built)
        return lambda k: _run(view, watch, self.values[k])


def _run(view: View, watch: Watch, values: FloatArray) -> Run:
    begin = time.perf_counter()
    try:
        with one_blas_thread():
            theta = view.theta(values)
            run = view.built.simulation.run(theta)
            return Run(watch.seen(view, run, theta), time.perf_counter() - begin)
    except SolverError as error:
        return Run(None, time.perf_counter() - begin, str(error) or "no solution")


class Sampled(NamedTuple):
    """The runs of a prediction.

    Attributes
    ----------
    motion : Motion
    drawn : Drawn
    runs : number of the draw -> Run
    discrepancies : whether of directions -> Discrepancy; None: what the fit left over is white noise
    seen_until : what the start has seen of this motion [s]
    """

    motion: Motion
    drawn: Drawn
    runs: dict[int, Run]
    discrepancies: dict[bool, Discrepancy] | None = None
    seen_until: float = 0.0

    @property
    def kept(self) -> list[int]:
        """Numbers of the draws whose runs came to their end."""
        return sorted(k for k, run in self.runs.items() if run.seen is not None)

    @property
    def seen(self) -> list[Watched]:
        """The motions of these runs."""
        return [seen for k in self.kept if (seen := self.runs[k].seen) is not None]

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """Names of the bodies with poses, and of the hinges."""
        watch = Watch.of(self.motion.view.built)
        return list(watch.bodies), list(watch.hinges)

    def misfit(self, times: FloatArray, moves: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the misfit (nf, nm) of a coordinate of each marker over time, and the noise (nm,) beside it.

        Parameters
        ----------
        times : (nf,) [s]
        moves : (nm, 3) coordinates that move; what is left over, and what the samples spread, is the mean over all
        """
        noise, misfit = self.motion.noise.copy(), np.zeros((times.size, self.motion.noise.size))
        for of_directions, discrepancy in (self.discrepancies or {}).items():
            chosen = self.motion.view.directions == of_directions
            if not (counted := moves & chosen[:, None]).any():
                continue
            # The width of the band in place of a deviation, and the median: runs that go astray count little.
            low, high = np.quantile(self.stacked("markers")[:, :, counted], (0.05, 0.95), axis=0)
            spread = np.median(high - low, axis=1) / np.ptp(ndtri((0.05, 0.95))) * np.sqrt(moves[chosen].mean())
            since = times - (self.seen_until if discrepancy.predicted else 0.0)
            misfit[:, chosen], noise[chosen] = discrepancy.beyond(spread, since)[:, None], discrepancy.noise
        return misfit, noise

    def stacked(self, name: str) -> FloatArray:
        """Return an array of all finished runs (n, ...)."""
        return np.stack([getattr(seen, name) for seen in self.seen])

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return the numbers as ``result.json`` has them, with the 95 % interval of their draws."""
        numbers, layout = self.motion.numbers, self.motion.view.built.numbers.layout
        ends = np.quantile(self.drawn.values, [0.025, 0.975], axis=0)
        out = {}
        for k, label in enumerate(numbers.labels):
            fixed = label in numbers.held
            out[label] = {
                "value": numbers.values[k],
                "unit": layout.entry_of(self.motion.view.targets[k][0]).unit,
                "drawn_from": numbers.held.get(label) or numbers.sources[label],
                "interval_lower": None if fixed else ends[0, k],
                "interval_upper": None if fixed else ends[1, k],
                "outside": self.drawn.outside[k],
            }
        return out
