"""Articulated bodies of the scene format: trees of links, written in the scene or read from a robot's file."""

from dataclasses import replace
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field, PrivateAttr

from add.errors import InputError
from add.scene.read.paths import require_known
from add.scene.robots.inertia import from_quaternion, six_of
from add.scene.robots.model import WORLD, Robot, RobotJoint, RobotLoop, RobotTendon
from add.scene.spec import actuation, kinds
from add.scene.spec.common import BodyContactSpec, Facts, Role, Spec
from add.scene.spec.couplings import ScalarValueSpec
from add.scene.spec.kinds import problem
from add.scene.spec.rigid import GeometrySpec, Inertia6
from add.typing import FloatArray

#: How a robot's file is read.
OF_FILES = ("up", "ignore", "repair", "srdf", "packages", "visual")
_Part = TypeVar("_Part", RobotJoint, RobotTendon)


class LinkShapeSpec(Spec):
    """A shape fixed to a link.

    Attributes
    ----------
    orientation : of the shape's frame in the link's frame [-]
    """

    geometry: GeometrySpec = Field(description="the shape, in its own frame")
    position: kinds.Vector3 = Field((0.0, 0.0, 0.0), description="origin of the shape's frame in the link's frame [m]")
    orientation: kinds.Quaternion = (1.0, 0.0, 0.0, 0.0)


class LinkSpec(Spec, numbers=Role.PROPERTY):
    """A link, or what is said otherwise than in the robot's file.

    Attributes
    ----------
    inertia : Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of mass in the link's axes [kg m^2]; null = the file's, or
        that of the shapes
    center_of_mass : in the link's frame [m]; null = the file's, or that of the shapes
    """

    shapes: tuple[LinkShapeSpec, ...] | None = Field(None, description="what it touches by; null = the file's, or none")
    mass: kinds.Positive | None = Field(None, description="mass [kg]; null = the file's, or by `density`")
    density: kinds.Positive | None = Field(None, description="mass density of the shapes [kg/m^3]")
    inertia: Inertia6 | None = None
    center_of_mass: kinds.Vector3 | None = None


class MimicSpec(Spec):
    """A joint that follows another one: its coordinate is factor times that one's plus offset."""

    joint: kinds.Name = Field(description="name of the other joint")
    factor: kinds.Number = Field(1.0, description="factor [-]")
    offset: kinds.Number = Field(0.0, description="offset [rad, m]")


class TreeJointSpec(Spec, numbers=Role.PROPERTY):
    """A joint, or what is said otherwise than in the robot's file.

    Units are those of angles or of lengths, by its type.

    Attributes
    ----------
    position : its frame's origin in the parent's frame [m]; null = 0, 0, 0
    orientation : its frame in the parent's frame [-]; null = 1, 0, 0, 0
    value : where it starts [rad, m]: angle, way or, of a ball, rotation vector; null = the file's, or 0
    rate : how fast it starts [rad/s, m/s]; null = 0
    stiffness : of its spring [N m/rad, N/m]; null = the file's, or 0
    rest : where the spring is at rest [rad, m]; null = the file's, or 0
    dry_friction : tau, the largest torque or force of dry friction [N m, N]; null = the file's, or 0
    dry_friction_law : its law, as the body's `dry_friction_law` says; null = the body's
    slip_speed : rate at which dry friction is felt [rad/s, m/s]; null = 0.01, or 0.001 by the law `hybrid`
    armature : inertia of its motor [kg m^2, kg]; null = the file's, or 0
    limit_stiffness : stiffness of its stops [N m/rad, N/m]; null = 1000, or more: the weight that it may bear presses a
        hinge by at most 0.01 rad, a slide by a hundredth of its way, and throws it five times as far
    limit_damping : damping of its stops [N m s/rad, N s/m]; null = 1 beside a given stiffness, else at least 1: half of
        the critical one of what it carries
    motion : given motion, added to `value` [rad, m]: its torque is a result; null = it is free to move
    """

    type: Literal["hinge", "slide", "ball", "fixed"] | None = Field(None, description="kind of joint; null = hinge")
    parent: kinds.Name | None = Field(None, description="link that carries it; null = the base")
    child: kinds.Name | None = Field(None, description="link that it carries; null = the one of its own name")
    position: kinds.Vector3 | None = None
    orientation: kinds.Quaternion | None = None
    axis: kinds.Direction | None = Field(None, description="axis of a hinge or slide in its frame [-]; null = 0, 0, 1")
    mimic: MimicSpec | None = Field(None, description="another joint that it follows")
    value: Annotated[kinds.NumberOrVectorSpec | None, Role.STATE] = None
    rate: Annotated[kinds.NumberOrVectorSpec | None, Role.STATE] = None
    stiffness: kinds.NonNegative | None = None
    rest: kinds.NumberOrVectorSpec | None = None
    damping: kinds.NonNegative | None = Field(None, description="damping [N m s/rad, N s/m]; null = the file's, or 0")
    dry_friction: kinds.NonNegative | None = None
    dry_friction_law: Literal["tanh", "hybrid"] | None = None
    slip_speed: kinds.Positive | None = None
    armature: kinds.NonNegative | None = None
    lower: kinds.Number | None = Field(None, description="lower limit [rad, m]; null = the file's, or none")
    upper: kinds.Number | None = Field(None, description="upper limit [rad, m]; null = the file's, or none")
    limit_stiffness: kinds.Positive | None = None
    limit_damping: kinds.NonNegative | None = None
    motion: ScalarValueSpec | None = None

    def model_post_init(self, context: Any) -> None:
        if self.mimic is not None and (self.value is not None or self.motion is not None):
            raise problem("a joint that follows another one has no motion of its own", key="mimic")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        out = {} if self.type in (None, "hinge", "slide") else {"axis": f"a joint of type '{self.type}' has none"}
        out |= {} if self.motion is None else {"rate": "the given motion has a rate of its own"}
        return out | actuation.without_partner(facts, path, ("slip_speed", "dry_friction_law"))


def numbers_of(robot: Robot, keyframe: str | None = None) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what a robot's file says of links and joints, under the keys by which a scene says it otherwise."""
    links = {
        link.name: {"mass": link.mass, "inertia": six_of(link.inertia).tolist(), "center_of_mass": link.centre.tolist()}
        for link in robot.links
        if link.mass > 0.0
    }
    joints: dict[str, dict[str, Any]] = {}
    for joint in robot.joints:
        if joint.mimic is not None:  # what the joint that it mimics gets of it
            joints[joint.name] = _given(joint, "damping", "dry_friction", "armature")
        elif joint.kind in ("hinge", "slide"):
            own = {"value": joint.start, "rate": 0.0, "rest": joint.reference}
            joints[joint.name] = own | _given(joint, "dry_friction", "stiffness", "damping", "armature")
        elif joint.kind == "ball":
            zeros: dict[str, Any] = {key: [0.0] * 3 for key in ("value", "rate", "rest")}
            joints[joint.name] = zeros | _given(joint, "stiffness", "damping", "armature")
    for name, pose in robot.keyframes.get(keyframe or "", {}).items():
        if "value" in joints.get(name, {}):
            joints[name]["value"] = pose.tolist() if pose.size > 1 else float(pose[0])
    tendons: dict[str, dict[str, Any]] = {}
    for tendon in robot.tendons:
        tendons[tendon.name] = {"joints": dict(tendon.joints)} | _given(tendon, "stiffness", "damping", "dry_friction")
        if tendon.rest[0] == tendon.rest[1]:
            tendons[tendon.name]["rest"] = tendon.rest[0]
    return {"links": links, "joints": joints, "tendons": tendons}


def _given(part: RobotJoint | RobotTendon, *keys: str) -> dict[str, float]:
    """Return numbers of a joint or a tendon, with the limits that it has."""
    out = {key: getattr(part, key) for key in keys}
    return out | {key: value for key in ("lower", "upper") if isfinite(value := getattr(part, key))}


class ArticulatedBodySpec(Spec):
    """A tree of links whose coordinates are those of its joints.

    It is read from a robot's file (`model`), whose numbers `links` and `joints` may replace, or written here. A link is
    a body of the name `<body>/<link>` for markers, couplings, contact and objectives.

    Attributes
    ----------
    base : whether the first link moves freely; null = fixed in a URDF or here, as it says in an MJCF or SDF
    ignore : things of the file to leave out that would change the motion
    repair : whether impossible inertias of a URDF are mended, see `add info --repair`
    keyframe : pose of an MJCF in which joints start that say no `value`; null = the file's zero pose
    position : of the free link's frame, instead of where the file has it; where the base stands still, of the file's
        world, in which it places the links [m]; null = as in the file
    orientation : of the same frame [-]; null = as in the file
    velocity : of a free link's frame origin [m/s]
    angular_velocity : of a free link, world axes [rad/s]
    limits : stops of its hinges and slides: springs and dampers, or `hard`, with the friction law `impulse`: they give
        not at all, and stop what arrives without a rebound
    dry_friction_law : dry friction of its joints: tau tanh(rate / slip_speed), which creeps, or `hybrid`: a joint at
        rest is held by an equation while that takes no more than tau, and slips with tau
    actuators : whether the file's actuators act, with control 0 where no drive has them
    static_shapes : whether shapes of the file that stand still become obstacles, `<body> <shape>`
    self_collision : whether links that no joint joins meet each other; "not-at-start" = but for those that touch where
        they start
    spacing : largest distance between neighbouring contact points on edges and axes of links' shapes [m]; null = the
        fewest: corners and ends, between which an edge or axis of another link may slip through
    meshes : what meshes of links touch by: themselves, or their convex hulls; null = themselves, but the hull, with a
        warning, of one that is not closed or otherwise no solid
    """

    type: Literal["articulated"] = Field("articulated", description="kind of body")
    model: kinds.FilePath | None = Field(None, description="URDF, SDF or MJCF file; null = the tree is written here")
    base: Literal["fixed", "free"] | None = None
    up: Literal["x", "y", "z"] = Field("z", description="axis of the file that points up")
    ignore: tuple[kinds.Text, ...] = ()
    repair: kinds.Flag = False
    srdf: kinds.FilePath | None = Field(None, description="SRDF file whose pairs of links of a URDF never touch")
    packages: dict[kinds.Name, kinds.FilePath] = Field(
        default_factory=dict, description="package of a URDF -> its folder"
    )
    visual: kinds.Flag = Field(False, description="whether meshes for pictures of a URDF are read and drawn")
    keyframe: kinds.Text | None = None
    position: Annotated[kinds.Vector3 | None, Role.STATE] = None
    orientation: Annotated[kinds.Quaternion | None, Role.STATE] = None
    velocity: Annotated[kinds.Vector3, Role.STATE] = (0.0, 0.0, 0.0)
    angular_velocity: Annotated[kinds.Vector3, Role.STATE] = (0.0, 0.0, 0.0)
    links: dict[kinds.Name, LinkSpec] = Field(default_factory=dict, description="name -> link")
    joints: dict[kinds.Name, TreeJointSpec] = Field(default_factory=dict, description="name -> joint, parents first")
    drives: dict[kinds.Name, actuation.DriveSpec] = Field(
        default_factory=dict, description="name -> actuator of a joint or tendon"
    )
    limits: Literal["penalty", "hard"] = "penalty"
    dry_friction_law: Literal["tanh", "hybrid"] = "tanh"
    tendons: dict[kinds.Name, actuation.TendonSpec] = Field(default_factory=dict, description="name -> fixed tendon")
    fluid: actuation.FluidSpec | None = Field(
        None, description="fluid around all its links; null = the file's, or none"
    )
    loops: dict[kinds.Name, actuation.LoopSpec] = Field(
        default_factory=dict, description="name -> equations that close a loop of links, or couple joints"
    )
    actuators: kinds.Flag = False
    static_shapes: kinds.Flag = False
    limit_onset: kinds.Positive = Field(1e-3, description="way over which the stops of joints begin to act [rad, m]")
    self_collision: kinds.Flag | Literal["not-at-start"] = False
    spacing: kinds.Positive | None = None
    meshes: Literal["exact", "hull"] | None = None
    contact: BodyContactSpec | None = Field(None, description="contact class of all links; null = one of its own")
    _robot: Robot | None = PrivateAttr(default=None)
    #: That of the file, where somebody has read it before.
    _read: Robot | None = PrivateAttr(default=None)

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        name, joints = path.partition(".")[2], self._robot.joints if self._robot else ()
        links = self._robot.links if self._robot else ()
        shapes = {shape.shape for link in links for shape in link.collision}
        out = {} if "mesh" in shapes else {"meshes": "no link has a mesh that may touch"}
        if not shapes & {"box", "capsule", "cylinder"}:
            out["spacing"] = "no link has edges or an axis that may touch"
        if not any(all(side.startswith(f"{name}/") for side in pair) for pair in facts.meeting):
            out["self_collision"] = "no two of its links can touch each other"
        if all(facts.vanishes(f"{path}.joints.{joint.name}.dry_friction") for joint in joints):
            out["dry_friction_law"] = "no joint has dry friction"
        if all(facts.vanishes(f"{path}.joints.{joint.name}.limit_stiffness") for joint in joints):
            out |= dict.fromkeys(("limit_onset", "limits"), "no joint has a lower or upper limit")
        return out

    def model_post_init(self, context: Any) -> None:
        if self.model is None:
            if not self.joints or not self.links:
                raise problem("a tree without 'model' needs links and joints", key="links")
            for key in (*OF_FILES, "keyframe", "actuators", "static_shapes"):
                if self.says(key):
                    raise problem("goes with 'model'", key=key)
            for name, tendon in self.tendons.items():
                if not tendon.joints:
                    raise problem("a tendon needs joints", key=f"tendons.{name}.joints")
        else:
            for name, joint in self.joints.items():
                for key in ("type", "parent", "child", "position", "orientation", "axis", "mimic"):
                    if getattr(joint, key) is not None:
                        raise problem("the robot's file says this", key=f"joints.{name}.{key}")
            for name, link in self.links.items():
                if link.density is not None:
                    raise problem("give its mass", key=f"links.{name}.density")
        if self.limits == "hard":
            for name, joint in self.joints.items():
                for key in ("limit_stiffness", "limit_damping"):
                    if getattr(joint, key) is not None:
                        raise problem("hard limits have none", key=f"joints.{name}.{key}")
            if self.says("limit_onset"):
                raise problem("hard limits have none", key="limit_onset")


# --- Loops and tendons that a scene gives to an articulated body, as parts of a robot ---------------------------------


def with_parts(robot: Robot, body: ArticulatedBodySpec, at: str) -> Robot:
    """Return a robot with the loops and tendons that the scene gives it, and the numbers that it says of joints.

    Loops and tendons of its file come first.

    Raises
    ------
    InputError
        For names that are not there, or there already.
    """
    loops = list(robot.loops)
    for name, item in body.loops.items():
        place = f"{at}.loops.{name}"
        if any(loop.name == name for loop in robot.loops):
            raise InputError("the robot's file has a loop of this name", place=place)
        loops.append(_joint_loop(robot, name, item, place) if isinstance(item, actuation.JointLoopSpec) else _link_loop(
            robot, name, item, place
        ))  # fmt: skip
    tendons = {tendon.name: tendon for tendon in robot.tendons}
    for name, said in body.tendons.items():
        tendons[name] = _tendon(robot, name, said, tendons.get(name), f"{at}.tendons.{name}")
    joints = (_with(joint, body.joints.get(joint.name), *_OF_BOTH, "armature") for joint in robot.joints)
    return replace(robot, joints=tuple(joints), loops=tuple(loops), tendons=tuple(tendons.values()))


#: Numbers of joints and tendons that a file says, too.
_OF_BOTH = ("stiffness", "damping", "dry_friction", "lower", "upper")


def _with(part: _Part, said: TreeJointSpec | actuation.TendonSpec | None, *keys: str) -> _Part:
    """Return a joint or a tendon with the numbers of these keys that the scene says."""
    return replace(part, **{key: value for key in keys if (value := getattr(said, key, None)) is not None})


def _link_loop(robot: Robot, name: str, item: actuation.LinkLoopSpec, place: str) -> RobotLoop:
    ends = [_end(robot, end, f"{place}.{key}.link") for key, end in (("a", item.a), ("b", item.b))]
    return RobotLoop(
        name,
        item.type,
        tuple(link for link, _, _ in ends),
        np.stack([position for _, position, _ in ends]),
        np.stack([rotation for _, _, rotation in ends]),
        length=item.length or 0.0,
    )


def _end(robot: Robot, end: actuation.LoopEndSpec, place: str) -> tuple[str, FloatArray, FloatArray]:
    position, rotation = np.array(end.position), from_quaternion(end.orientation)
    if end.link is None:
        return WORLD, position, rotation
    require_known("link", end.link, [link.name for link in robot.links] + list(robot.frames), place)
    link, origin, turn = robot.place(end.link)
    return link, origin + turn @ position, turn @ rotation


def _joint_loop(robot: Robot, name: str, item: actuation.JointLoopSpec, place: str) -> RobotLoop:
    known = [joint.name for joint in robot.joints]
    names = [item.joint] if item.other is None else [item.joint, item.other]
    for key, joint in zip(("joint", "other"), names, strict=False):
        require_known("joint", joint, known, f"{place}.{key}")
    # A robot's polynomials count from where its joints start, those of a scene from zero.
    start = {joint.name: joint.start for joint in robot.joints}
    polynomial = np.polynomial.Polynomial(item.coefficients)
    if item.other is not None:
        polynomial = polynomial(np.polynomial.Polynomial([start[item.other], 1.0]))
    coefficients = np.zeros(5)
    coefficients[: polynomial.coef.size] = polynomial.coef
    coefficients[0] -= start[item.joint]
    return RobotLoop(name, "joints", joints=tuple(names), coefficients=tuple(coefficients.tolist()))


def _tendon(robot: Robot, name: str, said: actuation.TendonSpec, own: RobotTendon | None, place: str) -> RobotTendon:
    """Return the file's tendon with what the scene says otherwise, or the scene's."""
    made = own or RobotTendon(name, ())
    if said.joints is not None:
        for joint in said.joints:
            require_known("joint", joint, [item.name for item in robot.joints], f"{place}.joints")
        made = replace(made, joints=tuple(said.joints.items()), segments=())
    elif own is None:
        raise InputError("the robot's file has no tendon of this name: give its joints", place=place)
    if said.rest is not None:
        made = replace(made, rest=(said.rest, said.rest))
    return _with(made, said, *_OF_BOTH)
