"""Actuators and ties of bodies in the scene format: chambers, muscles; drives, tendons and loops of trees."""

from typing import Annotated, Any, Literal

from pydantic import Field

from add.scene.spec import kinds
from add.scene.spec.common import Facts, Role, SelectorSpec, Spec, exactly_one
from add.scene.spec.couplings import ScalarValueSpec
from add.scene.spec.kinds import problem
from add.scene.spec.signals import DirectionFieldSpec
from add.terms.pressure import ATMOSPHERE


class _ChamberSpec(Spec, numbers=Role.PROPERTY):
    """Keys that every kind of chamber has.

    Attributes
    ----------
    cavity : which hollow inside the body, from 0, in the order of their lowest nodes; null = the only one
    where : instead of a hollow: the faces of the surface all of whose nodes are selected, in the rest frame of the mesh
    """

    cavity: kinds.Index | None = None
    where: SelectorSpec | None = None

    def model_post_init(self, context: Any) -> None:
        if self.cavity is not None and self.where is not None:
            raise problem("a chamber is a hollow or a selection", key="where", found="both", expected="one of them")


class PressureChamberSpec(_ChamberSpec):
    """A given pressure on the walls, which follows them: of a closed chamber, or of an open part of the surface."""

    type: Literal["pressure"] = Field("pressure", description="kind of chamber")
    pressure: ScalarValueSpec = Field(description="p above that around the body, over time [Pa]")


class GasChamberSpec(_ChamberSpec):
    """A gas at one temperature in a closed chamber: p = p_0 V_0 / V - p_atm above that around the body.

    Attributes
    ----------
    pressure : p_0, absolute, at the volume V_0, over time [Pa]: one that grows is gas pumped in
    """

    type: Literal["gas"] = Field("gas", description="kind of chamber")
    pressure: ScalarValueSpec = ATMOSPHERE
    rest_volume: kinds.Positive | None = Field(None, description="V_0 [m^3]; null = the chamber's at rest")
    atmosphere: kinds.Positive = Field(ATMOSPHERE, description="p_atm around the body [Pa]")


class VolumeChamberSpec(_ChamberSpec):
    """A closed chamber whose volume is given: a liquid that is pumped in and out. Its pressure is a reaction."""

    type: Literal["volume"] = Field("volume", description="kind of chamber")
    volume: ScalarValueSpec | None = Field(None, description="V over time [m^3]; null = the chamber's at rest, always")


class JoinedChamberSpec(_ChamberSpec):
    """A closed chamber that shares the pressure and the content of another one: their volumes add up."""

    type: Literal["joined"] = Field("joined", description="kind of chamber")
    to: kinds.NonEmpty = Field(description="the other, not itself joined: `chamber` of this body, or `body/chamber`")


ChamberSpec = Annotated[
    PressureChamberSpec | GasChamberSpec | VolumeChamberSpec | JoinedChamberSpec,
    kinds.by_value("type"),
]


class _MuscleSpec(Spec, numbers=Role.PROPERTY):
    """Muscles of a soft body.

    Attributes
    ----------
    where : its elements, all of whose nodes are selected, in the rest frame of the mesh; null = all
    """

    where: SelectorSpec | None = None


class ActivationDynamicsSpec(Spec, numbers=Role.PROPERTY):
    """How the activation a of a muscle follows what excites it, u: a' = (u - a)/tau.

    tau = rise (1/2 + 3a/2) where u > a, fall/(1/2 + 3a/2) where not (Millard et al. 2013, MuJoCo).
    """

    rise: kinds.Positive = Field(0.01, description="time of activation [s]")
    fall: kinds.Positive = Field(0.04, description="time of deactivation [s]")


class _FibreMuscleSpec(_MuscleSpec):
    """Muscles that pull along fibres.

    Attributes
    ----------
    activation : a over time, 0 at rest to 1 [-]; with `dynamics` the excitation u that a follows
    dynamics : how a follows u, from a = u at the start; null = at once
    points : instead of fibres: a line through these points of the body at rest [m], with one tension
    """

    activation: ScalarValueSpec
    dynamics: ActivationDynamicsSpec | None = None
    fibres: DirectionFieldSpec | None = Field(None, description="direction of the fibres in every element at rest")
    points: Annotated[tuple[kinds.Vector3, ...] | None, Field(min_length=2)] = None
    optimal: kinds.Positive = Field(1.0, description="stretch l_o of the fibre at which it is at its best [-]")

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "fibres", "points")
        if self.points is not None and self.where is not None:
            raise problem("a line through points has no elements", key="where", found="both", expected="one of them")


class ActiveStressMuscleSpec(_FibreMuscleSpec):
    """A muscle with the tension a s exp(-((l - l_o)/w)^2) along its fibres, l their stretch."""

    type: Literal["active-stress"] = Field("active-stress", description="kind of muscle")
    strength: kinds.NonNegative = Field(description="s, the most [Pa], of a line [N]")
    width: kinds.Positive = Field(0.5, description="w of the bell [-]")


class QuadraticMuscleSpec(_FibreMuscleSpec):
    """A muscle with the energy k/2 (l - l_o (1 - c a))^2 of its fibres' stretch l: springs that shorten."""

    type: Literal["quadratic-fibre"] = Field("quadratic-fibre", description="kind of muscle")
    stiffness: kinds.Positive = Field(description="k [Pa], of a line [N]")
    contraction: kinds.NonNegative = Field(1.0, description="c, the part by which full activation shortens them [-]")


class HillMuscleSpec(_FibreMuscleSpec):
    """A muscle with the tension F_0 (a f_L f_V + f_P) along its fibres, by MuJoCo's curves of length and speed.

    Attributes
    ----------
    shortest : l_min, where f_L begins [optimal lengths]
    """

    type: Literal["hill"] = Field("hill", description="kind of muscle")
    strength: kinds.NonNegative = Field(description="F_0, the most at rest [Pa], of a line [N]")
    speed: kinds.Positive = Field(1.5, description="v_max, the fastest shortening [optimal lengths/s]")
    shortest: Annotated[kinds.Positive, Field(lt=1)] = 0.5
    longest: Annotated[kinds.Number, Field(gt=1)] = Field(1.6, description="l_max, where f_L ends [optimal lengths]")
    passive: kinds.NonNegative = Field(1.3, description="f_P at l_max [-]")
    lengthening: Annotated[kinds.Number, Field(gt=1)] = Field(1.2, description="f_V of fast lengthening [-]")


class VolumetricActuatorSpec(_MuscleSpec):
    """Cells that take a volume: the energy k/2 (J - a)^2 of every point, J its volume over that at rest."""

    type: Literal["volumetric-actuator"] = Field("volumetric-actuator", description="kind of muscle")
    stiffness: kinds.Positive = Field(description="k [Pa]")
    volume: ScalarValueSpec = Field(description="a over time, 1 = as at rest [-]")


MuscleSpec = Annotated[
    ActiveStressMuscleSpec | QuadraticMuscleSpec | HillMuscleSpec | VolumetricActuatorSpec,
    kinds.by_value("type"),
]


class DriveSpec(Spec, numbers=Role.PROPERTY):
    """An actuator of a joint, of a tendon, or as the robot's file says it.

    `torque`: the input itself. `position`: stiffness (input - q) - damping q'. `velocity`: damping (input - q').

    Attributes
    ----------
    actuator : name of an actuator of the robot's file, which says all but the input, its control
    input : torque or force [N m, N], angle or way [rad, m], or rate [rad/s, m/s] over time
    damping : of `position` and `velocity` drives [N m s/rad, N s/m]
    limit : largest torque or force [N m, N]; "file" = what the file says of its joint (effort); null = none
    """

    type: Literal["torque", "position", "velocity"] = Field("torque", description="kind of actuator")
    joint: kinds.Name | None = Field(None, description="name of a hinge or slide that it drives")
    tendon: kinds.Name | None = Field(None, description="name of a tendon that it drives: q is its length")
    actuator: kinds.Name | None = None
    input: ScalarValueSpec
    stiffness: kinds.NonNegative | None = Field(None, description="of a `position` drive [N m/rad, N/m]")
    damping: kinds.NonNegative | None = None
    limit: kinds.Positive | Literal["file"] | None = None

    def model_post_init(self, context: Any) -> None:
        if sum(item is not None for item in (self.joint, self.tendon, self.actuator)) != 1:
            raise problem("give exactly one of 'joint', 'tendon' and 'actuator'", key="joint")
        if self.actuator is not None:
            for key in ("type", "stiffness", "damping", "limit"):
                if self.says(key):
                    raise problem("the robot's file says this", key=key)
            return
        needed = {"torque": (), "position": ("stiffness",), "velocity": ("damping",)}[self.type]
        allowed = {"torque": (), "position": ("stiffness", "damping"), "velocity": ("damping",)}[self.type]
        for key in ("stiffness", "damping"):
            if getattr(self, key) is None and key in needed:
                raise problem(f"a {self.type} drive needs it", key=key)
            if getattr(self, key) is not None and key not in allowed:
                raise problem(f"a {self.type} drive has none", key=key)


def without_partner(facts: Facts, path: str, of_friction: tuple[str, ...]) -> dict[str, str]:
    """Return what a spring, dry friction or limits would need that a joint or tendon has not."""
    out = {}
    if facts.vanishes(f"{path}.stiffness"):
        out["rest"] = "there is no 'stiffness'"
    if facts.vanishes(f"{path}.dry_friction"):
        out |= dict.fromkeys(of_friction, "there is no 'dry_friction'")
    if facts.vanishes(f"{path}.limit_stiffness"):
        out |= dict.fromkeys(("limit_stiffness", "limit_damping"), "there is no 'lower' or 'upper'")
    return out


class TendonSpec(Spec, numbers=Role.PROPERTY):
    """A fixed tendon: its length l = sum of factors times coordinates has a spring, damping, dry friction, limits.

    Or what is said otherwise than in the robot's file.

    Attributes
    ----------
    joints : name of a hinge or slide -> factor [m/rad, -]; null = the file's
    rest : length at which the spring is at rest [m]; null = the file's, or 0
    dry_friction : force of dry friction, as of joints [N]; null = the file's, or 0
    """

    joints: dict[kinds.Name, kinds.Number] | None = None
    stiffness: kinds.NonNegative | None = Field(None, description="of its spring [N/m]; null = the file's, or 0")
    rest: kinds.Number | None = None
    damping: kinds.NonNegative | None = Field(None, description="damping [N s/m]; null = the file's, or 0")
    dry_friction: kinds.NonNegative | None = None
    slip_speed: kinds.Positive | None = Field(None, description="rate at which dry friction is felt [m/s]; null = 0.01")
    lower: kinds.Number | None = Field(None, description="lower limit of the length [m]; null = the file's, or none")
    upper: kinds.Number | None = Field(None, description="upper limit of the length [m]; null = the file's, or none")
    limit_stiffness: kinds.Positive | None = Field(None, description="stiffness of its stops [N/m]; null = 1000")
    limit_damping: kinds.NonNegative | None = Field(None, description="damping of its stops [N s/m]; null = 1")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        return without_partner(facts, path, ("slip_speed",))


class FluidSpec(Spec, numbers=Role.PROPERTY):
    """A fluid around all links of a robot, or what is said otherwise than in its file.

    Each body is a box of its mass and moments of inertia with edges d to it, as in MuJoCo: along and about each axis i
    it feels the forces -3 pi beta d v_i - rho/2 d_j d_k |v_i| v_i and the torques -pi beta d^3 omega_i
    - rho/64 d_i (d_j^4 + d_k^4) |omega_i| omega_i, d the mean edge, v the velocity against the wind. Boxes stay what
    they are where masses change. Geoms of an MJCF whose `fluidshape` is `ellipsoid` are ellipsoids to it, with lift.

    Attributes
    ----------
    wind : velocity of the fluid, world axes [m/s]; null = the file's, or 0
    """

    density: kinds.NonNegative | None = Field(None, description="rho [kg/m^3]; null = the file's, or 0")
    viscosity: kinds.NonNegative | None = Field(None, description="beta [Pa s]; null = the file's, or 0")
    wind: kinds.Vector3 | None = None


class LoopEndSpec(Spec, numbers=Role.PROPERTY):
    """A frame on a link, or on the base."""

    link: kinds.Name | None = Field(None, description="name of a link; null = the base")
    position: kinds.Vector3 = Field((0.0, 0.0, 0.0), description="origin of the frame in the link's frame [m]")
    orientation: kinds.Quaternion = Field((1.0, 0.0, 0.0, 0.0), description="of the frame in the link's frame [-]")


class LinkLoopSpec(Spec, numbers=Role.PROPERTY):
    """Equations that two frames meet exactly, by multipliers.

    `point`: their origins coincide. `hinge`: their z axes too. `fixed`: the frames coincide. `slider`: the frames
    coincide but for a way along z. `distance`: the origins keep their distance.
    """

    type: Literal["point", "hinge", "fixed", "slider", "distance"] = Field(description="kind of loop")
    a: LoopEndSpec = Field(description="one frame")
    b: LoopEndSpec = Field(description="the other frame")
    length: kinds.Positive | None = Field(None, description="of a `distance` [m]")

    def model_post_init(self, context: Any) -> None:
        if (self.length is not None) != (self.type == "distance"):
            raise problem("goes with a 'distance', which needs it", key="length")


class JointLoopSpec(Spec, numbers=Role.PROPERTY):
    """An equation between two joints: q = sum of coefficients a_k q_other^k.

    Attributes
    ----------
    other : name of another one; null = the joint keeps the first coefficient
    coefficients : a_0 to, at most, a_4 [rad, m]
    """

    type: Literal["joints"] = Field("joints", description="kind of loop")
    joint: kinds.Name = Field(description="name of a hinge or slide")
    other: kinds.Name | None = None
    coefficients: Annotated[tuple[kinds.Number, ...], Field(min_length=1, max_length=5)]

    def model_post_init(self, context: Any) -> None:
        if self.other is None and len(self.coefficients) > 1:
            raise problem("one joint has one coefficient", key="coefficients")
        if self.other == self.joint:
            raise problem("a joint follows another one", key="other")


LoopSpec = Annotated[
    LinkLoopSpec | JointLoopSpec,
    kinds.by_value("type"),
]
