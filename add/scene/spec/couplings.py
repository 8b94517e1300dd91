"""Springs, joints, motors and forces of the scene format."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from add.errors import InputError
from add.joints.law_term import LINE, TURN, DecidingJointLaw, JointFormula, JointLaw, Measure
from add.joints.laws import HARDENING_SPRING, Cable, ElasticJoint, Spring
from add.scene.spec import kinds
from add.scene.spec.common import Facts, Role, SelectorSpec, SignalReferenceSpec, Spec, ValueSpec, _FormulaSpec
from add.scene.spec.extension import Extension
from add.scene.spec.kinds import problem

ScalarValueSpec = Annotated[
    kinds.Number | SignalReferenceSpec,
    kinds.by_type('a number or {"signal": name}', number=(int, float), signal=(dict, SignalReferenceSpec)),
    Role.DRIVE,
]
Stop = Annotated[kinds.Number, Field(gt=-3.14, lt=3.14)]  # less than half a turn


class EndSpec(Spec, numbers=Role.PROPERTY):
    """One end of a coupling: a place on a body, or in the world.

    Attributes
    ----------
    at : place in the body's rest frame, or in the world [m]; null = where the other end starts (for the only node of a
        body: that node)
    """

    body: kinds.BodyName | None = Field(None, description="name of a body; null = the world")
    at: kinds.Vector3 | None = None


class _CouplingSpec(Spec, numbers=Role.PROPERTY):
    #: Of couplings that are one law between two places: its term, and fields and units of its columns in their order.
    term: ClassVar[type[JointLaw] | type[DecidingJointLaw] | JointFormula | None] = None
    columns: ClassVar[dict[str, str]] = {}

    collide: kinds.Flag = Field(False, description="whether the two bodies still meet each other")

    @property
    def joins(self) -> tuple[str, str] | None:
        """The bodies that it joins, "" for the world; None of what acts on one body."""
        return None

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        if self.joins is None:
            return {"collide": "it acts on one body"}
        return {} if frozenset(self.joins) in facts.meeting else {"collide": "its ends cannot touch each other"}

    def column(self, key: str) -> float | None:
        """Return a number of the law by its key in ``columns``."""
        return getattr(self, key)


class _PairSpec(_CouplingSpec):
    a: EndSpec = Field(description="first end")
    b: EndSpec = Field(description="second end")

    @property
    def joins(self) -> tuple[str, str] | None:
        """Its two bodies."""
        return self.a.body or "", self.b.body or ""

    def model_post_init(self, context: Any) -> None:
        if self.a.body == self.b.body:
            found = "the world" if self.a.body is None else f"'{self.a.body}' at both ends"
            raise problem("a coupling joins two different bodies", key="b.body", found=found)
        if self.a.at is None and self.b.at is None:
            raise problem("at least one end needs its place", key="a.at", found="null at both ends")


_TOGETHER = {"stiffness": "N/m", "damping": "N s/m"}


class _AlongSpec(_PairSpec):
    columns = _TOGETHER | {"length": "m"}

    stiffness: kinds.Positive = Field(description="k [N/m]")
    damping: kinds.NonNegative = Field(0.0, description="damping along the line [N s/m]")
    length: kinds.NonNegative | None = Field(None, description="rest length [m]; null = the distance at a run's t = 0")


class SpringSpec(_AlongSpec):
    """A spring: pulls and pushes along the line between its ends."""

    term = Spring

    type: Literal["spring"] = Field("spring", description="kind of coupling")


class HardeningSpringSpec(_AlongSpec):
    """A spring whose stiffness grows with its stretch, as that of bungee cords, buffers and ligaments does."""

    term = HARDENING_SPRING
    columns: ClassVar[dict[str, str]] = {"cubic": "N/m^3", "damping": "N s/m", "length": "m", "stiffness": "N/m"}

    type: Literal["hardening-spring"] = Field("hardening-spring", description="kind of coupling")
    stiffness: kinds.NonNegative = Field(description="k of a small stretch x [N/m], F = k x + k_3 x^3")
    cubic: kinds.NonNegative = Field(description="k_3 [N/m^3]")


class _JointFormulaSpec(_FormulaSpec):
    energy: kinds.Text = ""
    resistance: kinds.Text = ""
    measure: ClassVar[Measure]

    @property
    def formula(self) -> JointFormula:
        """The law."""
        return JointFormula(self.energy, self.resistance, self.measure)

    @property
    def columns(self) -> dict[str, str]:
        """Units of the numbers, in the order of the law."""
        return {f"numbers.{name}": self.units.get(name, "-") for name in self.formula.numbers}

    def column(self, key: str) -> float | None:
        """Return a number by its key in ``columns``."""
        return self.numbers[key.removeprefix("numbers.")]

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self.check_formula(self.measure.names, lambda: self.formula.require_readable(self.numbers))


class FormulaCouplingSpec(_JointFormulaSpec, _PairSpec):  # type: ignore[override]
    """A coupling by formula: a force dV/dl + D along the line between its ends, l long, against their going apart.

    Attributes
    ----------
    energy : energy V [J] of the distance `l` [m] and the names in `numbers`, as k/2*(l - L)**2
    resistance : D [N], what draws the ends together beside dV/dl, of `l` and its rate `l_dot` [m/s], as c*l_dot
    """

    measure = LINE

    type: Literal["formula"] = Field("formula", description="kind of coupling")
    energy: kinds.Text = ""
    resistance: kinds.Text = ""

    @property
    def term(self) -> JointFormula:  # type: ignore[override]
        """The law."""
        return self.formula


class HingeFormulaSpec(_JointFormulaSpec):
    """A torque about a hinge by formula: dV/dangle + D against a growing angle, which lies between -pi and pi.

    A law that is not the same at both ends of that range jumps there.

    Attributes
    ----------
    energy : energy V [J] of the `angle` from the initial pose [rad] and the names in `numbers`
    resistance : D [N m], what resists beside dV/dangle, of `angle` and its `rate` [rad/s], as c*rate
    """

    measure = TURN

    energy: kinds.Text = ""
    resistance: kinds.Text = ""


class CableSpec(_AlongSpec):
    """A string: pulls, and is damped, when it is longer than its length, and never pushes.

    Attributes
    ----------
    length : length above which it pulls [m]; null = the distance at a run's t = 0
    """

    term = Cable

    type: Literal["cable"] = Field("cable", description="kind of coupling")
    length: kinds.NonNegative | None = None


class BallSpec(_PairSpec):
    """A ball joint: two points stay together, E = k/2 |x_a - x_b|^2."""

    term = ElasticJoint
    columns = _TOGETHER

    type: Literal["ball"] = Field("ball", description="kind of coupling")
    stiffness: kinds.Positive = Field(description="k [N/m]")
    damping: kinds.NonNegative = Field(0.0, description="damping of the gap [N s/m]")


class _TurningSpec(_PairSpec):
    stiffness: kinds.Positive = Field(description="k of the points, of a slider across its axis [N/m]")
    angular_stiffness: kinds.Positive = Field(description="torque per angle, of a hinge between the two axes [N m/rad]")
    damping: kinds.NonNegative = Field(0.0, description="damping of the gap [N s/m]")
    angular_damping: kinds.NonNegative = Field(0.0, description="k_md, torque per relative angular velocity [N m s]")


class FixedSpec(_TurningSpec):
    """Two bodies stay as they start, relative to each other."""

    type: Literal["fixed"] = Field("fixed", description="kind of coupling")


class MotorSpec(Spec, numbers=Role.PROPERTY):
    """Holds the angle of a hinge at a target: E = k (1 - cos(phi - target))."""

    angle: ScalarValueSpec = Field(description="target angle over time, from the initial pose [rad]")
    stiffness: kinds.Positive = Field(description="k, torque per small angle [N m/rad]")


class LimitsSpec(Spec, numbers=Role.PROPERTY):
    """Stops of a hinge."""

    lower: Stop = Field(description="lowest angle from the initial pose [rad]")
    upper: Stop = Field(description="highest angle [rad]")
    stiffness: kinds.Positive = Field(description="torque per angle beyond a stop [N m/rad]")
    damping: kinds.NonNegative = Field(0.0, description="torque per rate beyond a stop [N m s]")

    def model_post_init(self, context: Any) -> None:
        if self.lower >= self.upper:
            raise problem("the lower stop lies above the upper one", key="lower", found=f"{self.lower:g}",
                          expected=f"below {self.upper:g}")  # fmt: skip


class JointFrictionSpec(Spec, numbers=Role.PROPERTY):
    """Friction about a hinge's axis: torque -(viscous s + coulomb tanh(s / rate)), s the relative rate."""

    viscous: kinds.NonNegative = Field(0.0, description="torque per rate [N m s]")
    coulomb: kinds.NonNegative = Field(0.0, description="dry friction torque [N m]")
    rate: kinds.Positive = Field(0.1, description="rate over which dry friction sets in [rad/s]")


class HingeStartSpec(Spec, numbers=Role.STATE):
    """The start of `b`: on the hinge, turned against `a`. Its own position and velocities in the scene do not count.

    Attributes
    ----------
    angle : angle about the axis; at 0 the orientations are those of the scene [rad]
    """

    angle: kinds.Number = 0.0
    rate: kinds.Number = Field(0.0, description="its rate [rad/s]")


class HingeSpec(_TurningSpec):
    """A hinge: two points and one axis stay together. `axis` is given in the frame of `a`."""

    type: Literal["hinge"] = Field("hinge", description="kind of coupling")
    axis: kinds.Direction = Field(description="axis in the frame of `a`; any length above 0 [-]")
    motor: MotorSpec | None = Field(None, description="drives the angle")
    limits: LimitsSpec | None = Field(None, description="stops")
    friction: JointFrictionSpec | None = Field(None, description="friction about the axis")
    formula: HingeFormulaSpec | None = Field(None, description="torque by a formula of the angle")
    start: HingeStartSpec | None = Field(None, description="start `b` on the hinge; null = where the scene puts it")
    torque: ScalarValueSpec | None = Field(None, description="torque about the axis on `b`, the opposite on `a` [N m]")


class SliderSpec(_TurningSpec):
    """A prismatic joint: `b` moves along an axis of `a` and does not turn against it."""

    type: Literal["slider"] = Field("slider", description="kind of coupling")
    axis: kinds.Direction = Field(description="axis in the frame of `a`; any length above 0 [-]")


class AttachmentSpec(_CouplingSpec):
    """Nodes of a soft or mass-spring body held at their initial places in the frame of a rigid one, or of the world."""

    type: Literal["attachment"] = Field("attachment", description="kind of coupling")
    nodes: Annotated[kinds.Name, kinds.Refers("body")] = Field(description="name of the body with nodes")
    where: SelectorSpec = Field(description="the nodes, in the rest frame of its mesh")
    body: kinds.BodyName | None = Field(None, description="name of the rigid body; null = the world")
    stiffness: kinds.Positive = Field(description="k per node [N/m]")
    damping: kinds.NonNegative = Field(0.0, description="damping per node [N s/m]")

    @property
    def joins(self) -> tuple[str, str] | None:
        """The body with nodes, and the rigid one."""
        return self.nodes, self.body or ""


class ForceSpec(_CouplingSpec):
    """A force on a point of a body, in world axes."""

    type: Literal["force"] = Field("force", description="kind of coupling")
    on: EndSpec = Field(description="where it acts")
    force: ValueSpec = Field(description="force over time [N]")

    def model_post_init(self, context: Any) -> None:
        if self.on.body is None:
            raise problem("a force acts on a body", key="on.body", found="null")


class TorqueSpec(_CouplingSpec):
    """A torque on a rigid body, in world axes."""

    type: Literal["torque"] = Field("torque", description="kind of coupling")
    body: kinds.BodyName = Field(description="name of a rigid body")
    torque: ValueSpec = Field(description="torque over time [N m]")


class DragSpec(_CouplingSpec):
    """Drag of the air on a body as a whole: density * coefficient * area * |u| u / 2, u the wind against it."""

    type: Literal["drag"] = Field("drag", description="kind of coupling")
    on: EndSpec = Field(description="where it acts: the point whose velocity counts")
    density: kinds.Positive = Field(1.2, description="density of the air, or of the medium [kg/m^3]")
    coefficient: kinds.NonNegative = Field(0.47, description="drag coefficient, 0.47 for a ball [-]")
    area: kinds.Positive | None = Field(None, description="cross-section [m^2]; null = that of a rigid ball")
    wind: ValueSpec = Field((0.0, 0.0, 0.0), description="velocity of the air over time [m/s]")

    def model_post_init(self, context: Any) -> None:
        if self.on.body is None:
            raise problem("a drag acts on a body", key="on.body", found="null")


class AirSpec(_CouplingSpec):
    """Air on all faces of a body's surface: pressure density * coefficient * s^2 / 2 against it, friction along it.

    Attributes
    ----------
    coefficient : of the pressure [-]; 2 = it is stopped (1 for a ball as a whole); from outside alone if closed
    depth : of the layer of it that a face accelerates [m]; null = none
    """

    type: Literal["air"] = Field("air", description="kind of coupling")
    body: kinds.BodyName = Field(description="name of a soft, mass-spring or rigid body with a surface of triangles")
    density: kinds.Positive = Field(1.2, description="density of the air, or of the medium [kg/m^3]")
    coefficient: kinds.NonNegative = 2.0
    friction: kinds.NonNegative = Field(0.0, description="along the face, over its area and the speed [kg/(m^2 s)]")
    depth: kinds.Positive | None = None
    wind: ValueSpec = Field((0.0, 0.0, 0.0), description="velocity of the air over time [m/s]")


class CouplingExtension(Extension, _CouplingSpec):
    """Base of couplings that extensions bring; those between two places derive from `PairExtension`."""

    def build(self, place: str, bodies: Any, parts: Any, driven: Any) -> None:
        """Add joint parts, terms of its own, and numbers.

        Parameters
        ----------
        place : path of the coupling in the scene
        bodies : what `add.scene.build.joints.couplings` knows of the bodies
            ``nodal[name]`` are those of nodes, ``framed[name]`` those with a frame, ``pose(name)`` is a start.
        parts : SceneParts, which takes them
            ``number(path, value, unit)`` is the name of a new parameter; ``terms`` takes functions of all bodies and
            their `Layouts` that return terms.
        driven : what makes signals of values
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it is built")


class PairExtension(CouplingExtension, _PairSpec):
    """Base of laws between two places: a subclass names its ``term`` and the units of its ``columns``, in their order.

    The term is a class, or a formula of the distance ``l``, of whose force the columns are the numbers, in any order;
    without one, ``build`` adds the parts.
    ``length``, if it is a column and null in a scene, is the distance at the start.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse columns that are no fields, or not the numbers of the law; those of a formula go by their names."""
        super().__pydantic_init_subclass__(**kwargs)
        at, term, keys = f"{cls.__module__}.{cls.__qualname__}.columns", cls.term, list(cls.columns)
        if not cls.model_fields.keys() >= set(keys):
            raise InputError("a column of a law is a field", place=at, found=", ".join(keys), expected="its fields")
        if isinstance(term, JointFormula) and term.measure is not LINE:
            raise InputError("a law between two places is of their distance l", place=at, found=term.measure.names[0])
        if isinstance(term, JointFormula):
            if set(keys) != set(term.numbers):
                raise InputError(
                    "the columns of a law by formula are the numbers of its force dV/dl + D", place=at,
                    found=", ".join(keys) or "none", expected=", ".join(term.numbers) or "none, as the formula stands",
                )  # fmt: skip
            cls.columns = {key: cls.columns[key] for key in term.numbers}
            return
        needed = term.law.n_columns if term else len(keys)
        if needed != len(keys):
            raise InputError("each number of a law has a column", place=at, found=len(keys), expected=needed)


CouplingSpec = Annotated[
    SpringSpec
    | HardeningSpringSpec
    | FormulaCouplingSpec
    | CableSpec
    | BallSpec
    | HingeSpec
    | FixedSpec
    | SliderSpec
    | AttachmentSpec
    | ForceSpec
    | TorqueSpec
    | DragSpec
    | AirSpec
    | CouplingExtension,
    kinds.by_value("type", further=CouplingExtension),
]
