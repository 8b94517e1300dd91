"""Loops, couplings of joints, tendons and actuators of articulated bodies, with the numbers that they bring."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from scipy.spatial.transform import Rotation

from add.bodies import tree_parts
from add.bodies.tree_joints import TreeJoint
from add.equations.signals import SignalParameter
from add.errors import InputError
from add.kernels.muscles import AFFINE, MUSCLE
from add.kernels.paths import CYLINDER
from add.kernels.trees import FIXED
from add.scene.build.ties import Derived, SceneParts
from add.scene.read.paths import require_known
from add.scene.robots.inertia import free_name
from add.scene.robots.model import WORLD, LinkPlace, Robot, RobotActuator, RobotJoint, RobotLoop, RobotTendon
from add.scene.spec.actuation import DriveSpec, JointLoopSpec, TendonSpec
from add.scene.spec.articulated import ArticulatedBodySpec, TreeJointSpec
from add.terms import Activation, Integral, Lag
from add.ties import WeightedSum

_ROWS = {
    "point": tree_parts.POINT_ROWS, "hinge": tree_parts.HINGE_ROWS, "fixed": tree_parts.FIXED_ROWS,
    "slider": tree_parts.SLIDER_ROWS, "distance": tree_parts.DISTANCE_ROWS,
}  # fmt: skip
_FOLLOWING: dict[str, type[Activation] | type[Lag] | type[Integral]] = {
    "muscle": Activation, "filter": Lag, "integrator": Integral,
}  # fmt: skip
_NO_TENDON = TendonSpec()
#: What tendons, and joints that bear little, have where neither scene nor file says anything.
DEFAULTS = {"slip_speed": 0.01, "limit_stiffness": 1e3, "limit_damping": 1.0}
#: How far weight may press a joint into its stop that nobody gave a stiffness, and throw it when it falls by the whole
#: way: angles [rad] of hinges, shares of the way of slides.
PRESSED, THROWN = 0.01, 0.05
#: The longest way that counts [rad, m], also of joints with one stop.
LONGEST = 1.0
#: Share of the energy of a fall that a stop of half the critical damping stores.
STORED = 0.3
#: Gravity that stops are reckoned with [m/s^2]: a number that is not to change with that of the scene.
GRAVITY = 9.81


@final
@dataclass
class TreeExtras:
    """Parts of a tree, the ``body`` at a path of the scene, beside its joints.

    ``places`` are links without mass that loops end on.
    """

    at: str
    robot: Robot
    body: ArticulatedBodySpec
    parts: SceneParts
    places: list[TreeJoint] = field(default_factory=list)
    loops: list[tree_parts.TreeLoop] = field(default_factory=list)
    couplings: list[tree_parts.TreeCoupling] = field(default_factory=list)
    tendons: list[tree_parts.TreeTendon] = field(default_factory=list)
    drives: list[tree_parts.TreeDrive] = field(default_factory=list)
    ways: dict[str, tree_parts.TreePath] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.carrier = {WORLD: -1} | {link.name: k for k, link in enumerate(self.robot.links)}
        self.by_name = {tendon.name: tendon for tendon in self.robot.tendons}
        self.taken = {*(joint.name for joint in self.robot.joints), *self.carrier, *self.robot.frames}

    def number(self, path: str, value: object, unit: str, *, fixed: bool = False, target: str = "") -> None:
        """Add a number of the scene, or with ``fixed`` one that only the file says."""
        self.parts.add(path, value, unit, ((target or path, 1.0),), fixed=fixed)

    def place(self, path: str, name: str, at: LinkPlace, *, fixed: bool = True) -> str:
        """Add a place on a link, and where it is there; return its name, which no other has."""
        name = free_name(name, self.taken)
        self.places.append(TreeJoint(name, FIXED, self.carrier[at.link], name, massless=True))
        turn = Rotation.from_matrix(at.rotation).as_rotvec()
        for word, value, unit in (("position", at.position, "m"), ("orientation", turn, "rad")):
            self.number(f"{path}.{word}", value, unit, fixed=fixed, target=f"{self.at}.joints.{name}.{word}")
        return name

    def coordinates(self, pairs: Iterable[tuple[str, float]], place: str) -> tuple[int, ...]:
        """Return the numbers of the joints of a sum."""
        return tuple(coordinate(self.robot.joints, name, place) for name, _ in pairs)


def tree_extras(at: str, robot: Robot, body: ArticulatedBodySpec, parts: SceneParts) -> TreeExtras:
    """Return loops, couplings of joints, tendons and actuators of a robot.

    Raises
    ------
    InputError
        For what a tree cannot have.
    """
    out = TreeExtras(at, robot, body, parts)
    for key, item in body.drives.items():
        if item.joint is not None:
            _driven(f"{at}.drives.{key}", item, out)
    for loop in robot.loops:
        if loop.kind in ("joints", "tendons"):
            _coupling(loop, out)
        else:
            _loop(loop, out)
    for tendon in robot.tendons:
        if tendon.segments:
            out.ways[tendon.name] = _way(tendon, out)
        _tendon(tendon, out)
    items = dict(body.drives)
    if body.actuators:
        taken = {item.actuator for item in items.values()}
        for actuator in robot.actuators:
            if actuator.name not in taken:
                if actuator.name in items:
                    raise InputError(
                        "a drive has the name of an actuator that acts", place=f"{at}.drives.{actuator.name}"
                    )
                items[actuator.name] = DriveSpec(actuator=actuator.name, input=0.0)
    for key, item in items.items():
        if item.actuator is not None:
            _actuator(f"{at}.drives.{key}", item, item.actuator, out, key in body.drives)
        elif item.tendon is not None:
            _driven(f"{at}.drives.{key}", item, out)
    return out


def coordinate(joints: Sequence[RobotJoint], name: str, place: str) -> int:
    """Return the number of a hinge or slide that follows no other."""
    number = {joint.name: k for k, joint in enumerate(joints)}
    require_known("joint", name, number, place)
    joint = joints[number[name]]
    if joint.kind not in ("hinge", "slide") or joint.mimic is not None:
        raise InputError("only hinges and slides that mimic no other", place=place, found=f"'{name}'")
    return number[name]


def _loop(loop: RobotLoop, out: TreeExtras) -> None:
    path, fixed = f"{out.at}.loops.{loop.name}", loop.name not in out.body.loops
    places = map(LinkPlace, loop.links, loop.positions, loop.rotations)
    a, b = (
        out.place(f"{path}.{key}", f"{loop.name}_{key}", at, fixed=fixed) for key, at in zip("ab", places, strict=True)
    )
    out.loops.append(tree_parts.TreeLoop(path, a, b, _ROWS[loop.kind]))
    if loop.kind == "distance":
        out.number(f"{path}.length", loop.length, "m", fixed=fixed)


def _coupling(loop: RobotLoop, out: TreeExtras) -> None:
    path, joints = f"{out.at}.loops.{loop.name}", out.robot.joints
    sums: list[tuple[tuple[str, float], ...]] = [((name, 1.0),) for name in loop.joints]
    blocks = ["", ""]
    if loop.kind == "tendons":
        sums = [out.by_name[name].joints for name in loop.joints]
        blocks[: len(sums)] = [f"{out.at}.tendons.{name}.factors" for name in loop.joints]
    chosen = [out.coordinates(pairs, path) for pairs in sums]
    start = [
        sum(factor * joints[k].start for k, (_, factor) in zip(numbers, pairs, strict=True))
        for numbers, pairs in zip(chosen, sums, strict=True)
    ]
    # The scene's own coefficients are other ones where joints do not start from zero.
    said, coefficients, own = out.body.loops.get(loop.name), loop.coefficients, False
    if isinstance(said, JointLoopSpec) and not any(start):
        coefficients, own = coefficients[: len(said.coefficients)], True
    y, x, starts = chosen[0], (*chosen, ())[1], (start[0], (*start, 0.0)[1])
    out.couplings.append(tree_parts.TreeCoupling(path, y, x, starts, len(coefficients), (blocks[0], blocks[1])))
    out.number(f"{path}.coefficients", coefficients, "-", fixed=not own)


def _way(tendon: RobotTendon, out: TreeExtras) -> tree_parts.TreePath:
    """Add the places of a spatial tendon to the links that carry them, each once; return its course."""
    links: dict[tuple[str, tuple[float, ...]], str] = {}
    segments, sizes = [], []
    for part in tendon.segments:
        places = []
        for link, position in part.places:
            key = link, tuple(position.tolist())
            if key not in links:
                path, name = f"{out.at}.tendons.{tendon.name}.places.{len(links)}", f"{tendon.name}_{len(links)}"
                links[key] = out.place(path, name, LinkPlace(link, position, np.eye(3)))
            places.append(list(links).index(key))
        kind = ("", "sphere", "cylinder").index(part.around)
        axis = places[3:4] if kind == CYLINDER else [-1]
        side = places[4 if kind == CYLINDER else 3 :] or [-1]
        segments.append([kind, *places[:2], *(places[2:3] or [-1]), *axis, *side])
        sizes.append([part.weight, part.radius])
    return tree_parts.TreePath(tuple(links.values()), np.array(segments), np.array(sizes))


def _tendon(tendon: RobotTendon, out: TreeExtras) -> None:
    path, said = f"{out.at}.tendons.{tendon.name}", out.body.tendons.get(tendon.name, _NO_TENDON)
    chosen = out.coordinates(tendon.joints, f"{path}.joints")
    if not chosen and not tendon.segments:
        raise InputError("a tendon needs joints", place=f"{path}.joints")
    banded = tendon.rest[0] < tendon.rest[1] and tendon.stiffness > 0.0
    limited = bool(np.isfinite(tendon.lower) or np.isfinite(tendon.upper))
    out.tendons.append(tree_parts.TreeTendon(path, chosen, banded, limited, out.ways.get(tendon.name)))
    for k, (joint, factor) in enumerate(tendon.joints):
        out.number(f"{path}.joints.{joint}", factor, "-", target=f"{path}.factors#{k}")
    values: dict[str, object] = {"stiffness": tendon.stiffness}
    if banded:
        out.number(f"{path}.rest", tendon.rest, "m", fixed=True)
        out.number(f"{path}.none", 0.0, "N s/m", fixed=True)
    else:
        values["rest"] = tendon.rest[0]
    values |= {"damping": tendon.damping, "dry_friction": tendon.dry_friction, "slip_speed": usual(said, "slip_speed")}
    if limited:
        values |= bounded(path, tendon.lower, tendon.upper)
        values |= {key: usual(said, key) for key in ("limit_stiffness", "limit_damping")}
    for key, value in values.items():
        out.number(f"{path}.{key}", value, TendonSpec.unit_of(key))


def usual(said: TreeJointSpec | TendonSpec, key: str, default: float | None = None) -> float:
    """Return what the scene says of a joint or a tendon, else ``default``, or what stands in `DEFAULTS`."""
    given = getattr(said, key)
    return float(given if given is not None else DEFAULTS[key] if default is None else default)


def stop_by_weight(robot: Robot, k: int, way: float, followers: Sequence[RobotJoint]) -> dict[str, float]:
    """Return stiffness and damping of the stops of joint ``k``, at least `DEFAULTS`, of three digits.

    A slide bears the weight W of what it carries, a hinge that of each link at the whole length of the way to it, and
    both bear what joints bear that mimic them. Where the base is free, the joint may be what all of the robot stands
    on. At rest W presses by at most `PRESSED`, and a fall over the way h by `THROWN`, beside the onset:

        k = W max(1/PRESSED, 2 STORED h/THROWN^2)    (of slides both are shares of h)

    The damping is half of the critical one of what the joint carries. Both are constants, which follow no number.

    Parameters
    ----------
    robot : Robot
    k : number of the joint
    way : from stop to stop, at most `LONGEST` counts [rad, m]
    followers : joints that mimic it
    """
    joint, number = robot.joints[k], {one.name: i for i, one in enumerate(robot.joints)}
    bears, inertia = _borne(robot, k)
    for one in followers:
        assert one.mimic is not None
        more, carried = _borne(robot, number[one.name])
        bears, inertia = bears + abs(one.mimic[1]) * more, inertia + one.mimic[1] ** 2 * carried
    way = min(way, LONGEST)
    fall, unit = (1.0, way or np.inf) if joint.kind == "slide" else (way, 1.0)
    stiffness = GRAVITY * bears / unit * max(1.0 / PRESSED, 2.0 * STORED * fall / THROWN**2)
    stiffness = max(DEFAULTS["limit_stiffness"], float(f"{stiffness:.3g}"))
    damping = max(DEFAULTS["limit_damping"], float(f"{np.sqrt(stiffness * inertia):.3g}"))
    return {"limit_stiffness": stiffness, "limit_damping": damping}


def _borne(robot: Robot, k: int) -> tuple[float, float]:
    """Return the mass that joint ``k`` bears, times its lever of hinges, and the inertia of what it carries."""
    joint, number = robot.joints[k], {link.name: i for i, link in enumerate(robot.links)}
    ways = {k: 0.0}
    for i, other in enumerate(robot.joints):
        if (parent := number.get(other.parent)) in ways and i != k:
            ways[i] = ways[parent] + float(np.linalg.norm(other.position))
    carried = np.array([robot.links[i].mass for i in ways])
    far = np.array([way + float(np.linalg.norm(robot.links[i].centre)) for i, way in ways.items()])
    far = np.ones(far.size) if joint.kind == "slide" else far
    free = any(one.kind == "free" for one in robot.joints)
    whole = sum(link.mass for link in robot.links) * float(far.max()) if free else 0.0
    return max(float(carried @ far), whole), float(carried @ far**2) + joint.armature


def bounded(at: str, lower: float, upper: float, found: str | None = None) -> dict[str, float]:
    """Return limits as numbers: one that is not there lies so far away that nothing reaches it.

    Raises
    ------
    InputError
        If they leave no way; ``found`` words them.
    """
    low, high = np.nan_to_num([lower, upper], posinf=1e9, neginf=-1e9).tolist()
    if low >= high:
        raise InputError("the lower limit is not below the upper one", place=at, found=found)
    return {"lower": low, "upper": high}


def _driven(at: str, item: DriveSpec, out: TreeExtras) -> None:
    """Add a drive of a joint or a tendon: a torque, a position or a velocity servo of its coordinate or length."""
    limit = np.inf if item.limit is None else item.limit
    if item.tendon is not None:
        require_known("tendon", item.tendon, out.by_name, f"{at}.tendon")
        if limit == "file":
            raise InputError(
                "a tendon has no effort in a file", place=f"{at}.limit", found="'file'", expected="a number"
            )
        chosen = out.coordinates(out.by_name[item.tendon].joints, at)
        factors, way, of_length = f"{out.at}.tendons.{item.tendon}.factors", out.ways.get(item.tendon), True
    else:
        chosen, factors, way = (coordinate(out.robot.joints, str(item.joint), f"{at}.joint"),), "", None
        joint = out.robot.joints[chosen[0]]
        of_length = joint.kind == "slide"
        if limit == "file":
            limit = joint.effort
            if not 0.0 < limit < np.inf:
                raise InputError("the robot's file gives this joint no effort", place=f"{at}.limit", found=f"{limit:g}")
    unit = {"torque": ("N m", "N"), "position": ("rad", "m"), "velocity": ("rad/s", "m/s")}[item.type][of_length]
    driven = out.parts.signal(item.input, f"{at}.input", unit, 1)
    gain, by_place, by_rate = (f"{at}.{name}" for name in ("g0", "b1", "b2"))
    if item.type == "torque":
        out.parts.add(gain, 1.0, "-", fixed=True)
    of_rate = [(gain, 1.0), (by_rate, -1.0)] if item.type == "velocity" else [(by_rate, -1.0)]
    for key, targets in (("stiffness", [(gain, 1.0), (by_place, -1.0)]), ("damping", of_rate)):
        value = getattr(item, key)
        if value is not None:
            out.parts.add(f"{at}.{key}", value, item.unit_of(key, of_length), targets)
    force = -float(limit), float(limit)
    out.drives.append(tree_parts.TreeDrive(at, chosen, factors, driven, force=force, way=way))


def _actuator(at: str, item: DriveSpec, name: str, out: TreeExtras, said: bool) -> None:
    """Add an actuator of the file."""
    known = {actuator.name: actuator for actuator in out.robot.actuators}
    require_known("actuator", name, known, f"{at}.actuator")
    actuator = known[name]
    pairs: tuple[tuple[str, float], ...] = ()
    place, way = "", None
    if actuator.transmission == "tendon":
        pairs, way = out.by_name[actuator.target].joints, out.ways.get(actuator.target)
    elif actuator.transmission == "joint":
        pairs = ((actuator.target, 1.0),)
    else:
        place = out.place(f"{at}.place", f"{actuator.name}_place", out.robot.place(actuator.target))
    chosen = out.coordinates(pairs, f"{at}.actuator")
    force = _bounded(at, actuator, out.robot)
    drive = out.parts.signal(item.input, f"{at}.input", "-", 1)
    if not said:  # nothing in the scene: its control is zero
        out.parts.numbers[:] = [entry for entry in out.parts.numbers if entry.path != f"{at}.input"]
    if pairs:
        out.number(f"{at}.factors", [actuator.gear[0] * factor for _, factor in pairs], "-", fixed=True)
    state, law = _state(at, actuator, drive, out), MUSCLE if actuator.muscle else AFFINE
    control = actuator.control if state is None else (-np.inf, np.inf)
    gear, wrench = actuator.gear[0], actuator.gear
    out.drives.append(
        tree_parts.TreeDrive(at, chosen, f"{at}.factors", drive, control, force, law, way, gear, place, wrench, state)
    )
    numbers = actuator.muscle or (*actuator.gain, *actuator.bias)
    for (key, unit), value in zip(tree_parts.ACTUATOR_NUMBERS[law], numbers, strict=True):
        out.number(f"{at}.{key}", value, unit or "-", fixed=True)


def _state(
    at: str, actuator: RobotActuator, drive: SignalParameter, out: TreeExtras
) -> tree_parts.ActuatorState | None:
    """Add the numbers of an activation that follows the control; return how it does."""
    if not actuator.dynamics:
        return None
    low, high = actuator.control
    if actuator.dynamics == "muscle":
        low, high = max(low, 0.0), min(high, 1.0)
    out.number(f"{at}.times", actuator.times, "s", fixed=True)
    # Where nothing is remembered yet it is what it would follow.
    weights = drive.signal.weights(0.0) * (actuator.dynamics != "integrator")
    ends = max(low, actuator.activation[0]), min(high, actuator.activation[1])
    rule = WeightedSum(tuple(weights), limits=ends if actuator.dynamics != "integrator" else actuator.activation)
    out.parts.derived.append(Derived((f"{at}.activation",), rule, (drive.parameter,)))
    return tree_parts.ActuatorState(
        _FOLLOWING[actuator.dynamics], len(actuator.times), (low, high), actuator.activation
    )


def _bounded(at: str, actuator: RobotActuator, robot: Robot) -> tuple[float, float]:
    """Return the limits of an actuator's force, those of its joint in it."""
    lower, upper = actuator.force
    joints = {joint.name: joint for joint in robot.joints}
    if actuator.transmission != "joint" or not np.isfinite(joints[actuator.target].effort):
        return lower, upper
    same = [item.name for item in robot.actuators if item.target == actuator.target and item.transmission == "joint"]
    gear = abs(actuator.gear[0])
    if len(same) > 1:
        raise InputError(
            "the file limits the sum of several actuators' forces on a joint", place=f"{at}.actuator", found=f"{same}",
            expected="one actuator on each joint with actuatorfrcrange",
        )  # fmt: skip
    most = joints[actuator.target].effort / gear if gear else np.inf
    return max(lower, -most), min(upper, most)
