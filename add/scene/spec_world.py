"""Signals, obstacles and contact of the scene format."""

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from add.scene.spec_common import (
    Direction,
    Flag,
    Name,
    NonNegative,
    Number,
    Positive,
    PositiveVector3,
    Quaternion,
    Spec,
    Vector3,
    by_value,
    problem,
)

# --- signals ---------------------------------------------------------------------------------------------------------


class ConstantSignalSpec(Spec):
    """The same value at all times."""

    type: Literal["constant"] = Field(description="kind of signal")
    value: Vector3 = Field(description="value, in the unit of what it drives")


class SineSignalSpec(Spec):
    """offset + amplitude sin(2 pi frequency t + phase)."""

    type: Literal["sine"] = Field(description="kind of signal")
    amplitude: Vector3 = Field(description="amplitude, in the unit of what it drives")
    frequency: Positive = Field(description="frequency [Hz]")
    phase: Number = Field(0.0, description="phase at t = 0 [rad]")
    offset: Vector3 = Field((0.0, 0.0, 0.0), description="mean value, in the unit of what it drives")


class _SampledSignalSpec(Spec):
    """Values at given times; before the first and after the last time the value stays."""

    times: tuple[Number, ...] = Field(min_length=2, description="times of the samples, increasing [s]")
    values: tuple[Vector3, ...] = Field(min_length=2, description="values, in the unit of what it drives; one per time")

    @model_validator(mode="after")
    def _check(self) -> "_SampledSignalSpec":
        for k, (before, after) in enumerate(zip(self.times[:-1], self.times[1:], strict=True)):
            if after <= before:
                raise problem(
                    "times must increase", key=f"times.{k + 1}", found=f"{after:g}", expected=f"above {before:g}"
                )
        if len(self.values) != len(self.times):
            raise problem(
                "as many values as times are needed",
                key="values",
                found=f"{len(self.values)} values",
                expected=f"{len(self.times)}",
            )
        return self


class TableSignalSpec(_SampledSignalSpec):
    """Linear interpolation between samples; before the first and after the last time the value stays."""

    type: Literal["table"] = Field(description="kind of signal")


class SplineSignalSpec(_SampledSignalSpec):
    """Natural cubic spline through the samples; before the first and after the last time the value stays."""

    type: Literal["spline"] = Field(description="kind of signal")


SignalSpec = Annotated[
    Annotated[TableSignalSpec, Tag("<table>")]
    | Annotated[SplineSignalSpec, Tag("<spline>")]
    | Annotated[ConstantSignalSpec, Tag("<constant>")]
    | Annotated[SineSignalSpec, Tag("<sine>")],
    by_value("type", "table", "spline", "constant", "sine"),
]

# --- obstacles -------------------------------------------------------------------------------------------------------


class _ObstacleSpec(Spec):
    velocity: Vector3 = Field((0.0, 0.0, 0.0), description="constant velocity of the obstacle [m/s]")


class PlaneSpec(_ObstacleSpec):
    """The half space behind a plane."""

    shape: Literal["plane"] = Field(description="kind of obstacle")
    point: Vector3 = Field(description="a point of the plane at t = 0 [m]")
    normal: Direction = Field(description="direction of the free side; any length above 0 [-]")


class SphereSpec(_ObstacleSpec):
    """A ball."""

    shape: Literal["sphere"] = Field(description="kind of obstacle")
    center: Vector3 = Field(description="centre at t = 0 [m]")
    radius: Positive = Field(description="radius [m]")


class _OrientedSpec(_ObstacleSpec):
    center: Vector3 = Field(description="centre at t = 0 [m]")
    orientation: Quaternion = Field((1.0, 0.0, 0.0, 0.0), description="unit quaternion w, x, y, z [-]")


class BoxObstacleSpec(_OrientedSpec):
    """A box."""

    shape: Literal["box"] = Field(description="kind of obstacle")
    half_size: PositiveVector3 = Field(description="half the edge lengths along its x, y, z [m]")


class CapsuleSpec(_OrientedSpec):
    """A cylinder along its z axis with round ends."""

    shape: Literal["capsule"] = Field(description="kind of obstacle")
    radius: Positive = Field(description="radius [m]")
    half_length: Positive = Field(description="half the length of the straight part [m]")


class CylinderSpec(_OrientedSpec):
    """A cylinder along its z axis with flat ends."""

    shape: Literal["cylinder"] = Field(description="kind of obstacle")
    radius: Positive = Field(description="radius [m]")
    half_length: Positive = Field(description="half the length [m]")


ObstacleSpec = Annotated[
    Annotated[PlaneSpec, Tag("<plane>")]
    | Annotated[SphereSpec, Tag("<sphere>")]
    | Annotated[BoxObstacleSpec, Tag("<box>")]
    | Annotated[CapsuleSpec, Tag("<capsule>")]
    | Annotated[CylinderSpec, Tag("<cylinder>")],
    by_value("shape", "plane", "sphere", "box", "capsule", "cylinder"),
]

# --- contact ---------------------------------------------------------------------------------------------------------


class ContactPairSpec(Spec):
    """What differs for one body on one obstacle; null takes the value of `contact`."""

    body: Name = Field(description="name of a body")
    obstacle: Name = Field(description="name of an obstacle")
    stiffness: Positive | None = Field(None, description="k_n [N/m], or [N/m^3] per area")
    friction: NonNegative | None = Field(None, description="Coulomb's coefficient [-]")
    damping: NonNegative | None = Field(None, description="k_d [N s/m], or [N s/m^3] per area")
    stick_stiffness: Positive | None = Field(None, description="k_t [N s/m], or [N s/m^3] per area")
    enabled: Flag = Field(True, description="false: this body passes through this obstacle")


class ContactSpec(Spec):
    """Penalty contact of every body with every obstacle."""

    stiffness: Positive = Field(1e3, description="normal stiffness k_n [N/m], or [N/m^3] per area")
    stiffness_per: Literal["node", "area"] = Field(
        "node",
        description="whether stiffness, damping and stick stiffness count per surface node, or per rest area (then the "
        "answer does not change with the mesh)",
    )
    friction_law: Literal["linear", "tanh", "none"] = Field(
        "linear",
        description="`linear`: f_t = -t min(k_t |v_t|, c_f f_n); `tanh`: f_t = -t c_f f_n tanh(k_t |v_t| / (c_f f_n))",
    )
    friction: NonNegative = Field(0.4, description="Coulomb's coefficient c_f [-]")
    stick_stiffness: Positive | None = Field(
        None, description="k_t [N s/m], or [N s/m^3] per area; null = k_n times the step of `stick_stiffness_rule`"
    )
    stick_stiffness_rule: Literal["dt", "effective-dt"] = Field(
        "dt",
        description="the step in k_t = k_n dt: `dt`, or `effective-dt`, the integrator's own (dt for bdf1, 2/3 dt for "
        "bdf2)",
    )
    damping: NonNegative = Field(0.0, description="normal damping k_d [N s/m], or [N s/m^3] per area")
    damping_ramp: NonNegative = Field(0.0, description="depth over which the damping sets in [m]; 0 = at once")
    onset: NonNegative = Field(
        0.0, description="depth delta over which the stiffness sets in [m]: f_n = k_n d^2 / (2 delta) for d < delta"
    )
    coulomb_normal: Literal["elastic", "total"] = Field(
        "elastic", description="normal force in Coulomb's limit: `elastic` part only, or `total` with damping"
    )
    pairs: tuple[ContactPairSpec, ...] = Field((), description="pairs that differ from the above or are switched off")
