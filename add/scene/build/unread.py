"""Values of a scene's file that no part of the run reads, and starts and motions that are probably not meant.

The specs say of their fields when nothing reads them.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from add.bodies.nodal import NodalBody
from add.contact import BodyContact
from add.equations.kinematics import Kinematics
from add.equations.signals import SignalParameter
from add.equations.sites import SitePoints, gather
from add.joints.laws import ElasticJoint, JointPart
from add.model import meeting_meshes
from add.model.build import system_site
from add.scene.build.built import BuiltScene, size_of
from add.scene.build.default_contact import NUMBERS, default_contact, read_by_contact
from add.scene.build.mesh_contact import meeting_names
from add.scene.spec.actuation import DriveSpec, JoinedChamberSpec
from add.scene.spec.bodies import PinSpec
from add.scene.spec.common import Facts, SignalReferenceSpec, objects_in
from add.scene.spec.contact import NodeContactSpec
from add.scene.spec.couplings import (
    AirSpec,
    BallSpec,
    DragSpec,
    EndSpec,
    FixedSpec,
    HardeningSpringSpec,
    HingeSpec,
    SpringSpec,
    TorqueSpec,
    _PairSpec,
)
from add.scene.spec.links import robot_of, trees
from add.scene.spec.rigid import KinematicBodySpec
from add.scene.spec.signals import ConstantSignalSpec, SineSignalSpec, SplineSignalSpec, TableSignalSpec
from add.summary import few
from add.typing import BoolArray, FloatArray


def unread(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each value that a file gives, other than by default, and no part of the run reads."""
    scene, numbers = built.scene, built.numbers
    known = {entry.name: entry.indices.ravel() for entry in numbers.layout.entries}
    wanted = {item.path for item in scene.parameters}

    def vanishes(path: str) -> bool:
        if path in wanted:
            return False
        return path not in known or not numbers.values[known[path]].any()

    def idle(path: str) -> bool:
        if path in wanted:
            return False
        targets = {theta[name].start for name in numbers.targets(path) if not (by_formula and name.endswith(".c_f"))}
        return targets.isdisjoint(of_contact)

    theta, of_contact = built.model.system.parameters, read_by_contact(built)
    by_formula = not built.model.contact.curve.takes_friction
    meshes_meet = bool(meeting_meshes(built.model.bodies, built.model.contact).pairs)
    starts = (item.b.body for item in scene.couplings.values() if isinstance(item, HingeSpec) and item.start)
    facts = Facts(
        scene.contact.friction_law,
        meshes_meet,
        bool(of_contact),
        idle,
        any(isinstance(body, NodalBody) for body in built.model.bodies),
        frozenset(name for name in starts if name is not None),
        vanishes,
        frozenset(side for row in scene.contact.pairs for side in row.sides),
        _meeting(built),
    )
    for path, spec in objects_in(scene, ""):
        for key, why in spec.unread(facts, path).items():
            *outer, name = key.split(".")
            owner: Any = reduce(getattr, outer, spec)
            key = type(owner).model_fields[name].alias or key
            place = f"{path}.{key}" if path else key
            if not owner.says(name):
                continue
            if path.partition(".")[0] != "contact" or _by_rule(built).get(place) != getattr(owner, name):
                yield f"{place}: nothing reads this: {why}"


def _by_rule(built: BuiltScene) -> dict[str, float]:
    """Return path -> value of the numbers that contact has by weight and size: no file need have given them."""
    contact, none = built.scene.contact, dict.fromkeys(NUMBERS)
    own = none | {"nodes": NodeContactSpec(), "mesh": contact.mesh.model_copy(update=none | {"stick_stiffness": None})}
    return default_contact(built.scene.model_copy(update={"contact": contact.model_copy(update=own)}), built)


def _meeting(built: BuiltScene) -> frozenset[frozenset[str]]:
    """Return the bodies and links, by name, that may meet each other, by points and shapes or by meshes."""
    names = [body.name for body in built.model.bodies]
    found = {frozenset(pair) for pair in meeting_names(built.model)}
    for term in built.model.term(BodyContact):
        for owner, shapes in term.met_shapes().items():
            met = np.unique(term.shape_owner[shapes]).tolist()
            found |= {frozenset((names[owner], names[k])) for k in met if max(k, owner) < len(names)}
    return frozenset(found)


def unread_signals(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each signal that nothing follows."""
    scene = built.scene
    asked = {getattr(spec, "signal", None) for _, spec in objects_in(scene, "")}
    for name in scene.signals:
        if name not in asked:
            yield f"signals.{name}: nothing reads this: no body, coupling or objective follows it"


def _rows(built: BuiltScene, value: Any) -> FloatArray:
    """Return the vectors (n, 3) that a value of a scene, or the signal that it names, is made of."""
    spec: Any = ConstantSignalSpec(value=value) if not isinstance(value, SignalReferenceSpec) else None
    spec = spec or built.scene.signals[value.signal]
    given: list[Any] = [getattr(spec, key, None) for key in ("values", "value", "amplitude", "offset")]
    return np.concatenate([np.zeros((0, 3)), *(np.reshape(rows, (-1, 3)) for rows in given if np.size(rows) % 3 == 0)])


def unread_motions(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each pin whose motion leads along an axis that it leaves free."""
    for place, pin in objects_in(built.scene.bodies, "bodies"):
        if not isinstance(pin, PinSpec) or pin.motion is None:
            continue
        led = (_rows(built, pin.motion) != 0.0).sum(axis=0)
        lost = [axis for k, axis in enumerate("xyz") if led[k] and axis not in pin.axes]
        if lost:
            yield f"{place}.motion: nothing reads what it says along {', '.join(lost)}: `axes` leaves that free"


def added_rotations(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each kinematic body whose rotation is not about the axis by which it begins turned."""
    for name, body in built.scene.bodies.items():
        if not isinstance(body, KinematicBodySpec) or body.rotation is None or not any(body.orientation[1:]):
            continue
        axis, rows = np.array(body.orientation[1:]), _rows(built, body.rotation)
        across = np.linalg.norm(np.cross(rows, axis / np.linalg.norm(axis)), axis=1).max(initial=0.0)
        if across > 0.01:
            yield (
                f"bodies.{name}.rotation: it adds to the rotation vector of 'orientation', which has another axis, so "
                "that the body turns about neither; begin unturned, and let the shape or the signal have that turn"
            )


def drawn_starts(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each pin and anchor that draws a part of a body away from where the rest of it starts."""
    model, theta = built.model, built.theta
    if built.scene.time.initial == "equilibrium":
        return
    q = model.initial.evaluate(theta)[0]
    for body in model.bodies:
        if not isinstance(body, NodalBody) or (own := body.own_nodes).size == 0:
            continue
        start, size = q[model.layouts.dofs[body.name].slice].reshape(-1, 3), float(np.ptp(body.rest, axis=0).max())
        away: dict[str, float] = {}
        for k, pin in enumerate(body.pins):
            if pin.motion and not np.isin(own, np.concatenate([pin.nodes for pin in body.pins])).all():
                away[f"pins.{k}.motion"] = float(np.linalg.norm(_first(built, pin.motion)[list(pin.axes)]))
        for k, anchor in enumerate(getattr(body, "anchors", ())):
            if np.isin(anchor.nodes, own).all():
                there = anchor.weights @ start[np.searchsorted(own, anchor.nodes)]
                away[f"anchors.{k}.place"] = float(np.linalg.norm(_first(built, anchor.place) - there))
        for key, distance in away.items():
            if distance > _DRAWN * size:
                yield (
                    f"bodies.{body.name}.{key}: it begins {distance:.3g} m away from where the body starts, which is "
                    "drawn there at once; begin there, or from 'equilibrium' (time.initial)"
                )


def _first(built: BuiltScene, motion: SignalParameter) -> FloatArray:
    """Return the value (3,) of a motion at t = 0."""
    rows, weights = motion.signal.acting(0.0)
    return weights @ built.theta[built.model.layouts.parameters[motion.parameter].indices[rows]]


def added_forces(built: BuiltScene) -> Iterator[str]:
    """Yield one text for entries that act alike on one body or joint, and for drives of a joint that is led.

    A drive of position beside one of torque is a servo with what it is to bear.
    """
    air: dict[str, list[tuple[str, Any]]] = {}
    for name, item in built.scene.couplings.items():
        if isinstance(item, AirSpec | DragSpec):
            owner, at = (item.body, None) if isinstance(item, AirSpec) else (str(item.on.body), item.on.at)
            air.setdefault(owner, []).append((name, at))
    for owner, acting in air.items():
        places = [at for _, at in acting]
        if len(acting) > 1 and (None in places or len({*places}) < len(places)):
            names = " and ".join(f"couplings.{name}" for name, _ in acting)
            yield f"{names}: the air acts on '{owner}' by each of them, and they add up; one of them is enough"
    for name, body in built.scene.bodies.items():
        joined: dict[tuple[int, ...], int] = {}
        for k, edge in enumerate(getattr(getattr(body, "mesh", None), "edges", ())):
            if (first := joined.setdefault(tuple(sorted(edge)), k)) != k:
                yield f"bodies.{name}.mesh.edges.{k}: edges.{first} joins these two nodes, too, and both springs add up"
    for name, tree in trees(built.scene).items():
        of_file = {item.name: item for item in robot_of(name, tree).actuators}
        taken = {drive.actuator for drive in tree.drives.values()}
        unsaid = [key for key in of_file if tree.actuators and key not in taken]
        drives = tree.drives | {key: DriveSpec(actuator=key, input=0.0) for key in unsaid}
        alike: dict[tuple[str, str, str], list[str]] = {}
        for key, drive in drives.items():
            what, target, by = "joint" if drive.joint else "tendon", str(drive.joint or drive.tendon), str(drive.type)
            if drive.actuator is not None:
                own = of_file[drive.actuator]
                if own.muscle or own.transmission == "place":
                    continue
                what, target = own.transmission, own.target
                by = "position" if own.bias[1] else "velocity" if own.bias[2] else "torque"
            alike.setdefault((what, target, by), []).append(key)
        for (what, target, by), keys in alike.items():
            if all(drives[key].actuator for key in keys):  # as the robot's file has them
                continue
            named = " and ".join(f"drives.{key}" for key in keys)
            if what == "joint" and target in tree.joints and tree.joints[target].motion is not None:
                yield f"bodies.{name}: {named}: nothing moves by it, joint '{target}' has a given motion"
            elif len(keys) > 1:
                yield (
                    f"bodies.{name}: {named} are drives of type '{by}' of one {what}, '{target}', and add up; one of "
                    "them is enough"
                )


def added_pairs(built: BuiltScene) -> Iterator[str]:
    """Yield one text for couplings of one kind between the same places, and for muscles of one course."""
    alike: dict[Any, list[str]] = {}
    for name, item in built.scene.couplings.items():
        if isinstance(item, _PairSpec):
            ends = frozenset((end.body, end.at) for end in (item.a, item.b))
            alike.setdefault((item.type, ends, getattr(item, "axis", None)), []).append(f"couplings.{name}")
    for name, body in built.scene.bodies.items():
        for key, muscle in getattr(body, "muscles", {}).items():
            course = [getattr(muscle, word, None) for word in ("where", "fibres", "points")]
            alike.setdefault((name, muscle.type, repr(course)), []).append(f"bodies.{name}.muscles.{key}")
    for places in alike.values():
        if len(places) > 1:
            yield f"{few(places, 4, by=' and ')}: they act alike between the same places, and add up"


def idle_forces(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each force by which nothing moves: all that it acts on has given motions, or stands still."""
    bodies, held = built.scene.bodies, _held(built)
    for name, item in built.scene.couplings.items():
        ends = [spec.body for _, spec in objects_in(item, "") if isinstance(spec, EndSpec | TorqueSpec | AirSpec)]
        led = sorted({end for end in ends if end is not None})
        if led and all(end.partition("/")[0] in held for end in led):
            how = " have given motions" if len(led) > 1 else " has a given motion"
            if not all(isinstance(bodies.get(end), KinematicBodySpec) for end in led):
                how = ": all coordinates are pinned, or have given motions"
            yield f"couplings.{name}: nothing moves by it: {' and '.join(map(repr, led))}{how}"
    joined = any(isinstance(spec, JoinedChamberSpec) for _, spec in objects_in(bodies, "bodies"))
    for one in built.model.bodies:
        if not isinstance(one, NodalBody):
            continue
        at, kinds = f"bodies.{one.name}", ("muscles", "chambers")[: 2 - joined] if one.name in held else ()
        places = [f"{at}.{kind}.{key}" for kind in kinds for key in getattr(bodies[one.name], kind, {})]
        pinned: BoolArray = np.zeros(one.rest.shape, dtype=bool)
        for pin in one.pins:
            pinned[np.ix_(pin.nodes, np.array(pin.axes))] = True
        places += [f"{at}.loads.{k}" for k, load in enumerate(one.loads) if pinned[load.nodes].all()]
        if places:
            yield f"{few(places, 4)}: nothing moves by it: all nodes that it acts on are pinned"


def _held(built: BuiltScene) -> set[str]:
    """Return the bodies all of whose coordinates are pinned, or have given motions."""
    system = built.model.system
    led = np.isin(np.arange(system.n), system.partition.prescribed)
    entries = {entry.name: led[entry.slice] for entry in system.dofs.entries}
    return {name for name, part in entries.items() if part.size and part.all()}


def unread_starts(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each velocity that a run from equilibrium does not start with."""
    if built.scene.time.initial != "equilibrium":
        return
    for place, spec in objects_in(built.scene.bodies, "bodies"):
        for key in ("velocity", "angular_velocity", "rate"):
            if key in type(spec).model_fields and np.any(getattr(spec, key) or 0.0):
                yield f"{place}.{key}: nothing reads this: a run from equilibrium starts at rest"


#: Distance, as a part of the body, by which a pin or an anchor may begin away from where it starts.
_DRAWN = 0.01
#: Steps in a period of a sine below which it is in doubt; the share of its range by which a sample leaves what steps
#: meet on both of its sides.
_PERIOD, _LEFT_OUT = 6.0, 0.2


def unmet_signals(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each signal that does between the ends of steps what none of them meets."""
    from scipy.interpolate import CubicSpline

    time = built.scene.time
    end = time.n_steps * time.dt
    for name, spec in built.scene.signals.items():
        if isinstance(spec, SineSignalSpec) and spec.frequency * time.dt > 1.0 / _PERIOD:
            yield (
                f"signals.{name}.frequency: a period is {1.0 / (spec.frequency * time.dt):.2g} steps long, which meet "
                f"it at their ends alone; a time.dt of {0.05 / spec.frequency:.1g} s resolves it"
            )
        if not isinstance(spec, TableSignalSpec | SplineSignalSpec):
            continue
        times, values = np.array(spec.times), np.array(spec.values).reshape(len(spec.times), -1)
        inside = np.flatnonzero((times > 0.0) & (times < end))
        if not inside.size:
            continue
        after = np.ceil(times[inside] / time.dt)
        asked = np.clip(time.dt * np.array([after - 1.0, after]), times[0], times[-1])
        kind = CubicSpline(times, values, bc_type="natural") if isinstance(spec, SplineSignalSpec) else None
        met = kind(asked) if kind else np.stack([np.interp(asked, times, column) for column in values.T], axis=2)
        low, high = met.min(axis=0), met.max(axis=0)
        beyond = np.maximum(values[inside] - high, low - values[inside]).max(axis=1, initial=0.0)
        if beyond.max(initial=0.0) > _LEFT_OUT * np.ptp(values, axis=0).max():
            k = int(inside[beyond.argmax()])
            near = float(np.diff(times)[max(k - 1, 0) : k + 1].min())
            yield (
                f"signals.{name}.values.{k}: steps meet signals at their ends alone, and none is near "
                f"t = {times[k]:g} s; a time.dt of {near:.1g} s resolves it"
            )


# --- ends of couplings ----------------------------------------------------------------------------------------------

#: Share of the size of the larger body by which the ends of a joint may start apart: rounding of files.
OPEN = 0.01
#: Share of its rest length below which a spring's ends are at one place: rounding.
CLOSED = 1e-9


def _joined(built: BuiltScene) -> Iterator[tuple[str, JointPart, Any, bool]]:
    """Yield name, part and coupling of each part between bodies, and whether it holds two points of a coupling."""
    for name, part in zip(built.part_owners, built.model.joint_parts, strict=True):
        of_points = part.term is ElasticJoint and part.numbers[0] == f"couplings.{name}.stiffness"
        yield name, part, built.scene.couplings.get(name), of_points


def open_joints(built: BuiltScene) -> Iterator[str]:
    """Yield joints whose ends do not start together."""
    kin = built.model.begins(built.theta)
    for name, part, item, of_points in _joined(built):
        if not of_points or not isinstance(item, BallSpec | FixedSpec | HingeSpec):
            continue
        gap = _distance(built, part, kin)
        sizes = [size_of(built, end.body) for end in (item.a, item.b) if end.body is not None]
        if gap > OPEN * np.fmax.reduce(sizes):
            yield (
                f"couplings.{name}: its ends start {gap:.3g} m apart, and {gap * item.stiffness:.3g} N draw them "
                "together at once; places are in the frames of the bodies"
            )


def aimless_springs(built: BuiltScene) -> Iterator[str]:
    """Yield springs whose ends start at one place: those of some length, and those that nothing says have none.

    The line between the ends has no direction there, so that the force, -k (l - L) along it, is none, and neither is
    its slope: a body that is held by such a spring stays, and a fit of k ends where it began.
    """
    kin = built.model.begins(built.theta)
    for name, part, item, _ in _joined(built):
        if not isinstance(item, SpringSpec | HardeningSpringSpec):
            continue
        if item.length is None:
            given = item.a.at is not None and item.b.at is not None
            if given and not built.theta[built.model.system.parameters[f"couplings.{name}.length"].start]:
                yield (
                    f"couplings.{name}: its ends start at one place, so that without a length it has none, and draws "
                    "them together from all directions; 'length': 0 says that this is meant"
                )
            continue
        if not item.length or _distance(built, part, kin) > CLOSED * item.length:
            continue
        text = (
            f"couplings.{name}: its ends start at one place, where a spring of {item.length:g} m has no direction: it "
            "neither pushes nor pulls there, and the motion does not depend on its numbers"
        )
        for key, end in (("a", item.a), ("b", item.b)):
            if end.at is None:
                text += f"; without {key}.at that end is where the other one starts, in the frame of {end.body!r}"
        yield text


def _distance(built: BuiltScene, part: JointPart, kin: Kinematics) -> float:
    """Return how far apart the two ends of a coupling start [m]."""
    model = built.model
    ends = SitePoints(gather([system_site(site, model.bodies, model.layouts) for site in part.sites[:2]]))
    return float(np.linalg.norm(np.diff(ends.points(kin, built.theta)[0], axis=0)))


#: What this module doubts, in the order in which it is said.
DOUBTS = (
    open_joints, aimless_springs, unread, unread_signals, unread_motions, unread_starts, unmet_signals,
    added_rotations, added_forces, added_pairs, drawn_starts, idle_forces,
)  # fmt: skip
