"""The numbers of a run that reports and ``expect`` blocks name, with its counts step by step."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np

from add.commands.pair_logs import DepthLog, ImpactLog, PairLog, StopLog, impact_json
from add.commands.sunk_log import SunkLog
from add.contact import BodyContact, MeshContact
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.hard_contact import contact_term
from add.io.runfolder import RESULT, RunFolder
from add.joints.law_term import DecidingJointLaw
from add.model.impacts import names, worth_saying
from add.scene import Scene
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import Energies
from add.simulation import ContactForces, WeakContact
from add.simulation.run import Trajectory
from add.summary import fields_of
from add.typing import FloatArray


@final
@dataclass
class WeakPair:
    """The weakly active contacts of a body and what it touches.

    Attributes
    ----------
    count : int
        Contacts, over all steps.
    first, last : float
        Times of the first and the last one [s].
    margin : float
        The least.
    """

    count: int = 0
    first: float = 0.0
    last: float = 0.0
    margin: float = 1.0


@final
@dataclass
class WeakLog(PairLog[WeakPair]):
    """Weakly active contacts.

    Attributes
    ----------
    natural_map : float
        The worst of all steps.
    """

    KIND = WeakPair
    natural_map: float = 0.0

    def add(self, built: BuiltScene, time: float, solved: ContactForces) -> None:
        """Count those of a step that ends at ``time``."""
        self.natural_map = max(self.natural_map, solved.natural_map)
        for contact in solved.weak:
            pair = self.seen.setdefault(_touching(built, contact), WeakPair(first=time))
            pair.count, pair.last, pair.margin = pair.count + 1, time, min(pair.margin, contact.margin)

    def described(self) -> list[dict[str, Any]]:
        """Return the pairs for ``result.json``."""
        return [
            {"bodies": list(pair), **vars(weak), "text": _text(pair, weak)}
            for pair, weak in sorted(self.seen.items(), key=lambda item: item[1].first)
        ]

    def plain(self) -> dict[str, Any]:
        return super().plain() | {"natural_map": self.natural_map}

    @classmethod
    def parsed(cls, found: Any) -> Self:
        log = super().parsed(found)
        log.natural_map = float(found["natural_map"])
        return log


def _touching(built: BuiltScene, contact: WeakContact) -> tuple[str, str]:
    """Return the names of the body of the point, and of what carries the shape."""
    owners, columns = names(built.model)
    term = contact_term(built.model.system)[0]
    assert term is not None
    return owners[term.owner[contact.point]], columns[contact.shape]


def _text(pair: tuple[str, str], found: WeakPair) -> str:
    number = "1 contact is" if found.count == 1 else f"{found.count} contacts are"
    at = f"at t = {found.first:.6g} s" if found.count == 1 else f"from t = {found.first:.6g} to {found.last:.6g} s"
    return (
        f"{pair[0]} on {pair[1]}: {number} on the border of two modes, {at} (margin {found.margin:.1e}): derivatives "
        "there are one-sided"
    )


_COUNTS = ("steps", "iterations", "most_iterations", "factorizations", "fallbacks", "divided")
_LOGS: dict[str, Any] = {"impacts": ImpactLog, "weak": WeakLog, "depths": DepthLog, "sunk": SunkLog,
                         "stops": StopLog}  # fmt: skip
_KINDS = {"contact": (BodyContact, MeshContact), "couplings": (DecidingJointLaw,)}


@final
@dataclass
class Tally:
    """Counts over steps.

    Attributes
    ----------
    steps, iterations, most_iterations, factorizations, fallbacks, divided : int
    parts : number of a step that is divided -> of how many parts it is
    events : "contact" or "couplings" -> how often, over all steps, things touched, stuck, hung slack ...
    impacts : ImpactLog
    weak : WeakLog
    depths : DepthLog
    sunk : SunkLog
    stops : StopLog
    chambers : ``body/chamber`` -> pressure, and volume of closed ones, at the end of the last step
    ties : ``body/carrier`` -> force and torque on the carrier of nodes that multipliers hold, likewise
    """

    steps: int = 0
    iterations: int = 0
    most_iterations: int = 0
    factorizations: int = 0
    fallbacks: int = 0
    divided: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    events: dict[str, Counter[str]] = field(default_factory=lambda: {key: Counter() for key in _KINDS})
    impacts: ImpactLog = field(default_factory=ImpactLog)
    weak: WeakLog = field(default_factory=WeakLog)
    depths: DepthLog = field(default_factory=DepthLog)
    sunk: SunkLog = field(default_factory=SunkLog)
    stops: StopLog = field(default_factory=StopLog)
    chambers: dict[str, dict[str, float]] = field(default_factory=dict)
    ties: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, built: BuiltScene, trajectory: Trajectory, theta: FloatArray) -> Self:
        """Count the steps of a trajectory, too."""
        self.impacts.add(built, trajectory, theta)
        self.stops.add(built, trajectory, theta)
        for k, record in enumerate(trajectory.records):
            report = record.report
            self.steps += 1
            self.iterations += report.iterations
            self.most_iterations = max(self.most_iterations, report.iterations)
            self.factorizations += report.factorizations
            self.fallbacks += report.attempt > 0
            if len(record.inner) > 1 and len(record.inner[-1].alpha) == 1:  # stages look back to several
                self.divided += 1
                longest = max(part.solution.dt for part in record.inner)  # halves under `impulse` differ
                self.parts[self.steps] = round(built.scene.time.dt / longest)
            self.depths.add(built, record, theta)
            self.sunk.add(built, record, theta, None if k else trajectory.kinematics(0))
            for term, decision in zip(built.simulation.system.deciding, record.decisions, strict=True):
                for key, kinds in _KINDS.items():
                    if isinstance(term, kinds):
                        self.events[key].update(term.describe(decision))
            solved = built.simulation.stepper.contact_forces(record, theta)
            if solved is not None:
                self.events["contact"].update(solved.counts)
                self.weak.add(built, record.kin.t, solved)
        if trajectory.records:
            chambers = built.chambers(trajectory.records[-1], theta)
            pairs = {name: state._asdict().items() for name, state in chambers.items()}
            self.chambers = {name: {key: x for key, x in pair if math.isfinite(x)} for name, pair in pairs.items()}
            held = built.ties(trajectory.records[-1], theta)
            self.ties = {
                name: {"force": one.force.tolist(), "torque": one.torque.tolist()} for name, one in held.items()
            }
        return self

    def plain(self) -> dict[str, Any]:
        """Return the tally as JSON knows it."""
        return vars(self) | {key: getattr(self, key).plain() for key in _LOGS}

    @classmethod
    def parsed(cls, found: Mapping[str, Any]) -> Self:
        """Return the counts of which `plain` is the JSON.

        Raises
        ------
        ValueError, TypeError, KeyError
            If it is none.
        """
        events = {key: Counter({str(event): int(n) for event, n in found["events"][key].items()}) for key in _KINDS}
        # Earlier versions lacked some.
        earlier = {"divided": 0, "parts": {}, "sunk": [], "stops": {"seen": []}, "chambers": {}, "ties": {}}
        known: dict[str, Any] = earlier | dict(found)
        parts: dict[str, Any] = {key: int(known[key]) for key in _COUNTS}
        parts["parts"] = {int(step): int(n) for step, n in known["parts"].items()}
        parts |= {key: kind.parsed(known[key]) for key, kind in _LOGS.items()}
        return cls(**parts, events=events, chambers=dict(known["chambers"]), ties=dict(known["ties"]))


# --- The numbers of a run that reports and ``expect`` blocks name, and those that a scene says it should give ---------


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
    lifted, masses = model.lift.kinematics(last, theta), model.node_masses(theta)
    out: dict[str, Any] = {
        "steps": tally.steps,
        "end_time": float(trajectory.t[-1]),
        "newton": {
            "iterations_per_step": tally.iterations / tally.steps if tally.steps else 0.0,
            **fields_of(tally, *_COUNTS[2:]),
        },
        "energy": Energies(built, theta).at(last),
        "bodies": {body.name: body.state(lifted, masses, theta, model.layouts) for body in model.bodies},
        "markers": {},
    }
    if built.marker_names:
        places = built.markers.points(last, theta)[0]
        first = built.markers.points(start or trajectory.kinematics(0), theta)[0]
        for j, name in enumerate(built.marker_names):
            out["markers"][name] = {
                "final": places[j].tolist(),
                "displacement": (places[j] - first[j]).tolist(),
            }
    for key, counts in tally.events.items():
        if counts or key == "contact":
            out[key] = counts
    impacts = worth_saying(tally.impacts.shortest(built, theta))
    natural_map = tally.weak.natural_map
    said = {
        "chambers": tally.chambers, "ties": tally.ties, "impacts": [impact_json(impact) for impact in impacts],
        "contact_certificate": {"natural_map": natural_map} if natural_map > 0.0 else {},
        "weak_contacts": tally.weak.described(), "mesh_depths": tally.depths.described(),
        "sunk": tally.sunk.described(), "beyond_stops": tally.stops.described(),
    }  # fmt: skip
    return out | {key: value for key, value in said.items() if value}


def _lookup(node: Any, keys: list[str]) -> Any:
    """Return the entry at a path; names of parameters have dots of their own."""
    if not keys:
        return node
    if isinstance(node, dict):
        for cut in range(len(keys), 0, -1):
            name = ".".join(keys[:cut])
            if name in node:
                return _lookup(node[name], keys[cut:])
    if isinstance(node, list) and keys[0].isdigit() and int(keys[0]) < len(node):
        return _lookup(node[int(keys[0])], keys[1:])
    return None


def checks_of(scene: Scene, command: str, result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Compare a result with the scene's ``expect`` entries of this command; return what stands in ``result.json``.

    Raises
    ------
    InputError
        If an entry names something that the result does not have.
    """
    out: dict[str, dict[str, Any]] = {}
    for path, item in scene.expect.get(command, {}).items():
        entry = _lookup(result, path.split("."))
        if entry is None:
            raise InputError(
                "the result has no such number",
                file=scene.source,
                place=f"expect.{command}.{path}",
                expected=", ".join(result),
            )
        try:
            number = np.asarray(entry, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                "this is no number of the result",
                file=scene.source,
                place=f"expect.{command}.{path}",
                found=f"an entry with {', '.join(entry)}" if isinstance(entry, dict) else repr(entry),
            ) from None
        passed, wanted = True, []
        if item.value is not None:
            value = np.asarray(item.value, dtype=float)
            room = (item.abs_tol or 0.0) + (item.rel_tol or 0.0) * np.abs(value)
            passed &= number.shape == value.shape and bool(np.all(np.abs(number - value) <= room))
            wanted.append(f"{value.tolist()} +- {np.max(room):.3g}")
        if item.min is not None:
            passed &= bool(np.all(number >= item.min))
            wanted.append(f">= {item.min:g}")
        if item.max is not None:
            passed &= bool(np.all(number <= item.max))
            wanted.append(f"<= {item.max:g}")
        out[path] = {"passed": passed, "value": number.tolist(), "expected": ", ".join(wanted)}
    return out


def write_checked(scene: Scene, command: str, result: dict[str, Any], folder: RunFolder) -> dict[str, Any]:
    """Return a result with its checks, written; before its file says that the run is done: one killed here goes on."""
    try:
        result["checks"] = checks_of(scene, command, result)
    except InputError:
        folder.write_json(RESULT, result)
        raise
    folder.write_json(RESULT, result)
    return result
