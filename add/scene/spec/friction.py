"""Friction beyond one coefficient: what the coefficient follows, torsional and rolling friction."""

from pydantic import Field

from add.contact import CurveNumber, FrictionCurve
from add.kernels.contact_laws import FADING, STRIBECK
from add.scene.spec.common import NonNegative, Positive, Role, Spec

#: The rate at which couples set in where nothing is said [rad/s].
SPIN_RATE = 0.1

#: What the coefficient of friction may follow: two fields of `_FurtherFriction` each, of which the first asks for it.
CURVES = (
    FrictionCurve(STRIBECK, (CurveNumber("static_friction", "-", True), CurveNumber("stribeck_speed", "m/s"))),
    FrictionCurve(FADING, (CurveNumber("faded_friction", "-", True), CurveNumber("fading_power", "W{per}"))),
)


class _FurtherFriction(Spec, numbers=Role.PROPERTY):
    """Numbers of contact that `friction` alone leaves out; null takes those of the whole scene, or none."""

    static_friction: NonNegative | None = Field(
        None,
        description="coefficient of friction at rest c_s [-]; `friction` is then that of sliding c_f, between them "
        "c_f + (c_s - c_f) exp(-(|v_t| / v_s)^2); null = `friction`, or what `contact` says where a row gives none",
    )
    stribeck_speed: Positive | None = Field(
        None, description="speed v_s above which friction is that of sliding [m/s]; `static_friction` needs it"
    )
    faded_friction: NonNegative | None = Field(
        None,
        description="coefficient c_r [-] of a contact that friction has heated; `friction` is then that without heat, "
        "between them c_r + (c_f - c_r) / (1 + f_n |v_t| / P); null = `friction`, or what `contact` says where a row "
        "gives none",
    )
    fading_power: Positive | None = Field(
        None,
        description="power P of the normal force over the slip [W], or [W/m^2] per area, at which half of that is "
        "lost; `faded_friction` needs it",
    )
    torsional_friction: NonNegative | None = Field(
        None,
        description="c_t [m] of the couple c_t f_n tanh(omega_n / w_0) against the spin about the normal, at points of "
        "rigid bodies and links",
    )
    rolling_friction: NonNegative | None = Field(
        None,
        description="c_r [m] of the couple c_r f_n tanh(|omega_t| / w_0) against rolling, at points of rigid bodies "
        "and links",
    )
    spin_rate: Positive | None = Field(
        None, description=f"w_0, at which torsional and rolling friction set in [rad/s]; null = {SPIN_RATE}"
    )
