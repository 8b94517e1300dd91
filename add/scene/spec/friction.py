"""Laws of contact beyond numbers: what friction follows, the normal force, torsional and rolling friction."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from add.contact import CurveNumber, FrictionCurve, NormalFormula
from add.contact.formulas import SLIDING
from add.scene.spec import kinds
from add.scene.spec.common import Role, Spec, _FormulaSpec, said_of
from add.scene.spec.extension import Extension

#: The rate at which couples set in where nothing is said [rad/s].
SPIN_RATE = 0.1


#: What the coefficient of friction may follow: two fields of `_FurtherFriction` each, of which the first asks for it.
CURVES = (
    # Stribeck's curve with the exponent two (Armstrong-Helouvry, Dupont & Canudas de Wit 1994).
    FrictionCurve(
        "mu + (static_friction - mu)*exp(-(u/stribeck_speed)**2)",
        (CurveNumber("static_friction", "-", True), CurveNumber("stribeck_speed", "m/s")),
    ),
    # By the heat that friction makes, as of brakes (their pv value) and of contacts that flash (Rice 2006, J. Geophys.
    # Res. 111, for the speed alone).
    FrictionCurve(
        "faded_friction + (mu - faded_friction)/(1 + f_n*u/fading_power)",
        (CurveNumber("faded_friction", "-", True), CurveNumber("fading_power", "W{per}")),
    ),
)


class FrictionFormulaSpec(_FormulaSpec):
    """The coefficient of friction by formula.

    Attributes
    ----------
    coefficient : coefficient [-] of the speed of sliding u [m/s], the normal force f_n [N] of a point, or [N/m^2] per
        area, mu = `contact.friction` (of a pair its own), and the names in `numbers`
    """

    type: Literal["formula"] = Field("formula", description="the coefficient is a formula of this scene")
    coefficient: kinds.Text
    numbers: dict[kinds.Name, kinds.Number] = Field({}, description="numbers of the formula by name, two at most")

    @property
    def curve(self) -> FrictionCurve:
        """The curve."""
        numbers = (CurveNumber(f"coefficient.{name}", self.units.get(name, "-")) for name in sorted(self.numbers))
        return FrictionCurve(self.coefficient, tuple(numbers))

    def paths(self) -> dict[str, tuple[str, float]]:
        """Return path below the curve and value of each number, by its name in theta."""
        return {f"coefficient.{name}": (f"numbers.{name}", value) for name, value in self.numbers.items()}

    def model_post_init(self, context: Any) -> None:
        self.check_formula(SLIDING, lambda: self.curve.require_sound(self.numbers, 0.5))


class FrictionExtension(Extension, numbers=Role.PROPERTY):
    """Base of laws of friction: a subclass has the formula of its ``coefficient`` and the units of its ``columns``.

    Columns are fields, two at most, and symbols of the formula, as are u, f_n and mu (`FrictionFormulaSpec`).
    """

    coefficient: ClassVar[str] = ""
    columns: ClassVar[dict[str, str]] = {}

    @property
    def curve(self) -> FrictionCurve:
        """The curve."""
        numbers = (CurveNumber(f"coefficient.{key}", unit) for key, unit in self.columns.items())
        return FrictionCurve(self.coefficient, tuple(numbers))

    def paths(self) -> dict[str, tuple[str, float]]:
        """Return path below the curve and value of each number, by its name in theta."""
        return {f"coefficient.{key}": (key, getattr(self, key)) for key in self.columns}

    def model_post_init(self, context: Any) -> None:
        with said_of(f"the extension '{self.type}'"):
            self.curve.require_sound({key: getattr(self, key) for key in self.columns}, 0.5)


FrictionCurveSpec = Annotated[
    FrictionFormulaSpec | FrictionExtension,
    kinds.by_value("type", default="formula", further=FrictionExtension),
]


class _NormalSpec(Spec):
    @property
    def law(self) -> NormalFormula:
        """The law."""
        return NormalFormula(self.energy, self.damping)  # type: ignore[attr-defined]

    def model_post_init(self, context: Any) -> None:
        with said_of(f"the extension '{self}'" if isinstance(self, Extension) else ""):
            self.law.require_sound()


class NormalFormulaSpec(_NormalSpec):
    """The law of the normal force by formula: f_n = k_n dE/dd - k_d s v_n at the depth d.

    Attributes
    ----------
    energy : energy E [m^2] at unit stiffness, of the depth d [m] and, of laws that act in a layer around shapes before
        they are touched, of its thickness r [m]: d is then r minus the gap. Zero at d = 0, as is dE/dd
    damping : share s [-] of the damping that acts, of the same; nothing: as `damping_ramp` says
    """

    type: Literal["formula"] = Field("formula", description="the law is a formula of this scene")
    energy: kinds.Text
    damping: kinds.Text = ""


class NormalExtension(Extension, _NormalSpec):
    """Base of laws of the normal force: a subclass has the formulas ``energy`` and, if it likes, ``damping``."""

    energy: ClassVar[str] = ""
    damping: ClassVar[str] = ""


NormalLawSpec = Annotated[
    Literal["penalty", "penalty+wall", "soft-max", "log-barrier"]
    | Annotated[
        NormalFormulaSpec | NormalExtension,
        kinds.by_value("type", default="formula", further=NormalExtension),
    ],
    kinds.by_type("the name of a law, or an object", name=str, object=(dict, NormalFormulaSpec, NormalExtension)),
]


class _FurtherFriction(Spec, numbers=Role.PROPERTY):
    """Numbers of contact that `friction` alone leaves out; null takes those of the whole scene, or none.

    Attributes
    ----------
    static_friction : coefficient of friction at rest c_s [-]; `friction` is then that of sliding c_f, between them c_f
        + (c_s - c_f) exp(-(|v_t| / v_s)^2); null = `friction`, or what `contact` says where a row gives none
    stribeck_speed : speed v_s above which friction is that of sliding [m/s]; `static_friction` needs it
    faded_friction : coefficient c_r [-] of a contact that friction has heated; `friction` is then that without heat,
        between them c_r + (c_f - c_r) / (1 + f_n |v_t| / P); null = `friction`, or what `contact` says where a row
        gives none
    fading_power : power P of the normal force over the slip [W], or [W/m^2] per area, at which half of that is lost;
        `faded_friction` needs it
    torsional_friction : c_t [m] of the couple c_t f_n tanh(omega_n / w_0) against the spin about the normal, at points
        of rigid bodies and links
    rolling_friction : c_r [m] of the couple c_r f_n tanh(|omega_t| / w_0) against rolling, at points of rigid bodies
        and links
    """

    static_friction: kinds.NonNegative | None = None
    stribeck_speed: kinds.Positive | None = None
    faded_friction: kinds.NonNegative | None = None
    fading_power: kinds.Positive | None = None
    torsional_friction: kinds.NonNegative | None = None
    rolling_friction: kinds.NonNegative | None = None
    spin_rate: kinds.Positive | None = Field(
        None, description=f"w_0, at which torsional and rolling friction set in [rad/s]; null = {SPIN_RATE}"
    )
