"""Elastic laws with names of the scene format, with damping, and with stress that relaxes by a Prony series."""

import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from add.materials import (
    DIRECTIONS,
    NEWTONIAN,
    POWER_LAW,
    RATES,
    Dissipation,
    Material,
    dissipation_law,
    material,
)
from add.scene.spec import kinds
from add.scene.spec.common import Facts, Role, Spec, _FormulaSpec, said_of
from add.scene.spec.extension import Extension
from add.scene.spec.kinds import problem
from add.scene.spec.signals import (
    FibresSpec,
    FieldValue,
    NonNegativeField,
    NumberField,
    Poisson,
    PoissonField,
    PositiveField,
)


class BranchSpec(Spec, numbers=Role.PROPERTY):
    """A branch of relaxing stress: a share of that of fast motion fades with time, a term of a Prony series.

    Attributes
    ----------
    share : g of the stress of fast motion [-]; all together below 1
    """

    share: Annotated[kinds.Positive, Field(lt=1)]
    time: kinds.Positive = Field(description="tau in which it fades to 1/e [s]")


class BandSpec(Spec, numbers=Role.PROPERTY):
    """Branches that lose the same part of the energy of a vibration at all frequencies of a band, two a decade.

    Attributes
    ----------
    loss : loss factor tan(delta) [-]; a free vibration decays by a factor exp(-pi tan(delta)) a period
    """

    loss: Annotated[kinds.Positive, Field(le=0.5)]
    frequencies: tuple[kinds.Positive, kinds.Positive] = Field(description="from the lowest to the highest [Hz]")

    @property
    def times(self) -> tuple[float, ...]:
        """The times of the branches [s], one over the angular frequencies."""
        low, high = self.frequencies
        n = max(2, math.ceil(2.0 * math.log10(high / low)) + 1)
        return tuple(1.0 / (2.0 * math.pi * low * (high / low) ** (k / (n - 1))) for k in range(n))

    def model_post_init(self, context: Any) -> None:
        low, high = self.frequencies
        if low >= high or high > 1e6 * low:
            raise problem(
                "a band goes from a lower to a higher frequency, over six decades at most", key="frequencies",
                found=f"[{low:g}, {high:g}]", expected="the lower one first",
            )  # fmt: skip


RelaxationSpec = Annotated[BranchSpec | BandSpec, kinds.by_key("share", "loss")]


class FormulaViscositySpec(_FormulaSpec):
    """Viscosity by formula: the stress is the slope of a dissipation potential by D = sym(F^T dF/dt).

    At rest (trD = DD = 0) it must be free of stress and drive nothing.

    Attributes
    ----------
    dissipation : potential psi [W/m^3] of trD = tr D [1/s], with mean dilatation the element's mean, of DD = D : D
        [1/s^2] and the names in `numbers`
    units : units of numbers, for reports; those of which it says none are in Pa s
    """

    type: Literal["formula"] = Field("formula", description="the viscosity is a formula of this scene")
    dissipation: kinds.NonEmpty
    numbers: dict[kinds.Name, kinds.Number] = Field({}, description="numbers of the formula by name, each a parameter")

    @property
    def law(self) -> Dissipation:
        """The law."""
        return dissipation_law(self.dissipation, tuple(sorted(self.numbers)), tuple(sorted(self.units.items())))

    def number(self, key: str) -> float:
        """Return a number by what follows ``viscosity.`` in its key."""
        return self.numbers[key.removeprefix("numbers.")]

    def model_post_init(self, context: Any) -> None:
        self.check_formula(RATES, lambda: self.law.require_sound(self.numbers), "dissipation")


class ViscosityExtension(Extension, numbers=Role.PROPERTY):
    """Base of laws of viscosity: a subclass has the formula of its ``dissipation`` and the units of its ``columns``.

    Columns are fields, and symbols of the formula, as are trD and DD (`FormulaViscositySpec`).
    """

    dissipation: ClassVar[str] = ""
    columns: ClassVar[dict[str, str]] = {}

    @property
    def law(self) -> Dissipation:
        """The law."""
        return dissipation_law(self.dissipation, tuple(self.columns), tuple(self.columns.items()), "viscosity.")

    def number(self, key: str) -> float:
        """Return a number by what follows ``viscosity.`` in its key."""
        return float(getattr(self, key))

    def model_post_init(self, context: Any) -> None:
        with said_of(f"the extension '{self.type}'", "dissipation"):
            self.law.require_sound({key: self.number(key) for key in self.columns})


ViscositySpec = Annotated[
    kinds.NonNegative
    | Annotated[
        FormulaViscositySpec | ViscosityExtension,
        kinds.by_value("type", default="formula", further=ViscosityExtension),
    ],
    kinds.by_type("a number, or an object", number=(int, float), object=(dict, FormulaViscositySpec, Extension)),
]


class _MaterialSpec(Spec, numbers=Role.PROPERTY):
    """Materials of soft bodies.

    Attributes
    ----------
    viscosity : nu of the rotation-invariant viscous stress P = nu F D, D = sym(F^T dF/dt), or a law [Pa s]
    viscosity_exponent : h [-] of a viscosity that follows the rate, P = nu |D|^(h - 2) F D with |D| in 1/s: nu is that
        at a rate of 1/s; below 2 it is softer the faster; null = 2, or what the law of `viscosity` says
    """

    density: kinds.Positive = Field(description="mass density at rest [kg/m^3]")
    viscosity: ViscositySpec = 0.0
    viscosity_exponent: Annotated[kinds.Number, Field(ge=1, le=4)] | None = None
    rayleigh_mass: kinds.NonNegative = Field(0.0, description="damping proportional to mass [1/s]")
    rayleigh_stiffness: kinds.NonNegative = Field(0.0, description="damping proportional to stiffness [s]")
    relaxation: dict[kinds.Name, RelaxationSpec] = Field(
        {},
        description="how stress relaxes: branches by name. Moduli are those of fast motion; at rest what does not "
        "relax is left",
    )
    model: str
    #: The law of a material whose model is a name.
    like: ClassVar[str] = ""

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        return {"viscosity_exponent": "there is no viscosity"} if facts.vanishes(f"{path}.viscosity") else {}

    @property
    def dissipation_law(self) -> Dissipation:
        """The law of viscosity."""
        if isinstance(self.viscosity, float):
            return NEWTONIAN if self.viscosity_exponent is None else POWER_LAW
        return self.viscosity.law

    @model_validator(mode="after")
    def _check_exponent(self) -> Self:
        if self.viscosity_exponent is not None and not isinstance(self.viscosity, float):
            raise problem("this is of a viscosity that is a number", key="viscosity_exponent",
                          found=f"{self.viscosity_exponent:g}", expected="null beside a law")  # fmt: skip
        return self

    def rate_number(self, key: str) -> float:
        """Return a number of the law of viscosity by its key."""
        law = self.viscosity
        return float(getattr(self, key)) if isinstance(law, float) else law.number(key.removeprefix("viscosity."))

    @property
    def law(self) -> Material:
        """The elastic law."""
        return material(self.like or self.model, getattr(self, "volumetric", None))

    @property
    def branches(self) -> tuple[tuple[str, BranchSpec | BandSpec, int], ...]:
        """Name, spec and number of branches of everything that relaxes."""
        items = self.relaxation.items()
        return tuple((name, item, len(item.times) if isinstance(item, BandSpec) else 1) for name, item in items)

    def modulus(self, key: str) -> FieldValue | None:
        """Return a parameter of the elastic law by its key in the file."""
        return getattr(self, "lambda_" if key == "lambda" else key)

    @property
    def directions(self) -> FibresSpec | None:
        """Directions of fibres; None of materials without."""
        return getattr(self, "fibres", None)

    @property
    def across(self) -> bool:
        """Whether the sheets have to lie across the fibres."""
        return False

    def check_directions(self) -> None:
        """Refuse directions that the law does not take, and none that it does."""
        taken = [modulus.key.partition(".")[0] for modulus in self.law.parameters if modulus in DIRECTIONS]
        for key in ("fibre", "sheet"):
            given = getattr(self.directions, key, None) is not None
            if given and key not in taken:
                raise problem("the law does not have this direction", key=f"fibres.{key}", found="a direction")
            if not given and key in taken:
                raise problem("the law needs this direction", key="fibres", found=f"no '{key}'", expected=f"'{key}'")


def _check_powers(spec: _MaterialSpec, n: int, text: str, share: Callable[[float, float], float]) -> None:
    """Refuse exponents of zero, and a shear modulus, a sum of shares of the powers, that is not positive."""
    pairs = [(spec.modulus(f"mu{k}"), spec.modulus(f"alpha{k}")) for k in range(1, n + 1)]
    for k, (_, alpha) in enumerate(pairs):
        if alpha == 0.0:
            raise problem("a power of 0 stretches nothing", key=f"alpha{k + 1}", found="0", expected="another number")
    numbers = [(mu, alpha) for mu, alpha in pairs if isinstance(mu, float) and isinstance(alpha, float)]
    mu = sum(share(*pair) for pair in numbers)
    if len(numbers) == n and mu <= 0.0:
        raise problem("the material is not stable at small strains (Drucker)", key="mu1",
                      found=f"a shear modulus {text} of {mu:g} Pa", expected="above 0")  # fmt: skip


class MaterialSpec(_MaterialSpec):
    """An elastic material with damping: give `young` and `poisson`, or `mu` and `lambda`.

    Attributes
    ----------
    model : energy density: `neo-hookean` is mu/2 (tr C - 3) - mu ln J + lambda/2 (ln J)^2; `neo-hookean-ciarlet` is
        mu/2 (tr C - 3 - 2 ln J) + lambda/2 ((J^2 - 1)/2 - ln J); `stvk` (St. Venant-Kirchhoff) is mu E : E + lambda/2
        (tr E)^2, which softens in compression; `corotated` is mu sum (l_i - 1)^2 + lambda/2 (sum l_i - 3)^2 of the
        principal stretches l_i; `linear` has the small strain sym F - I for E, and takes a rotation for a strain: small
        motions only
    poisson : Poisson's ratio [-], in (-1, 0.5); 0.5 is incompressible and not available
    """

    model: Literal["neo-hookean", "neo-hookean-ciarlet", "stvk", "linear", "corotated"] = "neo-hookean"
    young: PositiveField | None = Field(None, description="Young's modulus [Pa]")
    poisson: PoissonField | None = None
    mu: PositiveField | None = Field(None, description="shear modulus, Lame's second parameter [Pa]")
    lambda_: NumberField | None = Field(None, alias="lambda", description="Lame's first parameter [Pa], above -2/3 mu")

    def model_post_init(self, context: Any) -> None:
        given = {key for key in ("young", "poisson", "mu", "lambda") if self.modulus(key) is not None}
        if given not in ({"young", "poisson"}, {"mu", "lambda"}):
            raise problem(
                "the stiffness needs exactly one of two pairs",
                found=" and ".join(f"'{key}'" for key in sorted(given)) or "none of them",
                expected="'young' and 'poisson', or 'mu' and 'lambda'",
            )
        pair = self.mu, self.lambda_
        if isinstance(pair[0], float) and isinstance(pair[1], float) and pair[1] <= -2.0 / 3.0 * pair[0]:
            raise problem(
                "the bulk modulus lambda + 2/3 mu must be positive",
                key="lambda",
                found=f"{pair[1]:g}",
                expected=f"above {-2.0 / 3.0 * pair[0]:g}",
            )


class _RubberSpec(_MaterialSpec):
    """Materials with an energy of changes of volume of its own.

    Attributes
    ----------
    volumetric : energy U of changes of volume: `quadratic` kappa/2 (J - 1)^2, `logarithmic` kappa/2 (ln J)^2, `ciarlet`
        kappa/2 ((J^2 - 1)/2 - ln J); null = that of the law
    """

    kappa: PositiveField = Field(description="bulk modulus [Pa]")
    volumetric: Literal["quadratic", "logarithmic", "ciarlet"] | None = None


class MooneyRivlinMaterialSpec(_RubberSpec):
    """Rubber with damping, W = c10 (I1b - 3) + c01 (I2b - 3) + kappa/2 (J - 1)^2.

    I1b = tr C / J^(2/3) and I2b = ((tr C)^2 - tr C^2) / (2 J^(4/3)) do not see changes of volume.
    """

    model: Literal["mooney-rivlin"] = Field("mooney-rivlin", description="elastic law; its mu is 2 (c10 + c01)")
    c10: PositiveField = Field(description="modulus of the first isochoric invariant [Pa]")
    c01: NonNegativeField = Field(description="modulus of the second isochoric invariant [Pa]")


class YeohMaterialSpec(_RubberSpec):
    """Rubber and silicone, W = c10 (I1b - 3) + c20 (I1b - 3)^2 + c30 (I1b - 3)^3 + kappa/2 (J - 1)^2."""

    model: Literal["yeoh"] = Field("yeoh", description="elastic law; its mu is 2 c10")
    c10: PositiveField = Field(description="modulus of the first power [Pa]")
    c20: NumberField = Field(description="modulus of the second power [Pa]; below zero it softens before it stiffens")
    c30: NumberField = Field(0.0, description="modulus of the third power [Pa]")


class GentMaterialSpec(_RubberSpec):
    """Rubber whose chains can be stretched so far, W = -mu/2 J_m ln(1 - (I1b - 3)/J_m) + U(J).

    I1b - 3 never reaches `limit`, J_m: there the energy is infinite. U = kappa/2 ((J^2 - 1)/2 - ln J).
    """

    model: Literal["gent"] = Field("gent", description="elastic law")
    mu: PositiveField = Field(description="shear modulus [Pa]")
    limit: PositiveField = Field(description="J_m, what I1b - 3 stays below [-]")


class OgdenMaterialSpec(_RubberSpec):
    """Rubber in powers of the stretches, W = sum_k mu_k/alpha_k (l1b^alpha_k + l2b^alpha_k + l3b^alpha_k - 3) + U(J).

    l_ib = l_i / J^(1/3) do not see changes of volume; U = kappa/2 (J - 1)^2. Its mu is sum mu_k alpha_k / 2.

    Attributes
    ----------
    model : elastic law; other programs have other mu_k, see docs/materials.md
    """

    model: Literal["ogden"] = "ogden"
    mu1: NumberField = Field(description="modulus of the first power [Pa]")
    alpha1: NumberField = Field(description="exponent of the first power [-]")
    mu2: NumberField = Field(0.0, description="modulus of the second power [Pa]")
    alpha2: NumberField = Field(2.0, description="exponent of the second power [-]")
    mu3: NumberField = Field(0.0, description="modulus of the third power [Pa]")
    alpha3: NumberField = Field(-2.0, description="exponent of the third power [-]")

    def model_post_init(self, context: Any) -> None:
        _check_powers(self, 3, "sum mu_k alpha_k / 2", lambda mu, alpha: 0.5 * mu * alpha)


class HyperfoamMaterialSpec(_MaterialSpec):
    """Foam in powers of the stretches (Hill 1978; Storakers 1986), of one Poisson's ratio at all strains.

    W = sum_k 2 mu_k/alpha_k^2 (l1^alpha_k + l2^alpha_k + l3^alpha_k - 3 + (J^(-alpha_k beta) - 1)/beta) with beta =
    nu/(1 - 2 nu). Its mu is sum mu_k.
    """

    model: Literal["hyperfoam"] = Field("hyperfoam", description="elastic law")
    mu1: NumberField = Field(description="modulus of the first power [Pa]")
    alpha1: NumberField = Field(description="exponent of the first power [-]")
    mu2: NumberField = Field(0.0, description="modulus of the second power [Pa]")
    alpha2: NumberField = Field(-2.0, description="exponent of the second power [-]")
    poisson: Poisson = Field(description="Poisson's ratio [-], in (-1, 0.5); 0 divides by itself, and 0.001 is as good")

    def model_post_init(self, context: Any) -> None:
        _check_powers(self, 2, "sum mu_k", lambda mu, _: mu)
        if self.poisson == 0.0:
            raise problem("a ratio of 0 divides by itself", key="poisson", found="0", expected="0.001 for no ratio")


class HolzapfelOgdenMaterialSpec(_RubberSpec):
    """Heart muscle with fibres and sheets, which pull in tension only (Holzapfel & Ogden 2009).

    W = a/2b (exp(b (I1b - 3)) - 1) + sum_{f,s} a_i/2b_i (exp(b_i max(I_i - 1, 0)^2) - 1) + a_fs/2b_fs (exp(b_fs I8^2) -
    1) + U(J), with I4 and I6 for I_f and I_s, and U = kappa/2 ((J^2 - 1)/2 - ln J).
    """

    model: Literal["holzapfel-ogden"] = Field("holzapfel-ogden", description="elastic law; its mu is a, without fibres")
    fibres: FibresSpec = Field(description="directions of fibres and sheets")
    a: PositiveField = Field(description="modulus of the ground [Pa]")
    b: PositiveField = Field(description="exponent of the ground [-]")
    a_f: NonNegativeField = Field(description="modulus of the fibres [Pa]")
    b_f: PositiveField = Field(description="exponent of the fibres [-]")
    a_s: NonNegativeField = Field(description="modulus of the sheets [Pa]")
    b_s: PositiveField = Field(description="exponent of the sheets [-]")
    a_fs: NonNegativeField = Field(description="modulus of the shear between them [Pa]")
    b_fs: PositiveField = Field(description="exponent of the shear between them [-]")

    #: True: I8 is zero at rest.
    across: ClassVar[bool] = True

    def model_post_init(self, context: Any) -> None:
        self.check_directions()


class HgoMaterialSpec(_RubberSpec):
    """Walls of arteries (Gasser, Ogden & Holzapfel 2006), W = c/2 (I1b - 3) + k1/2k2 (exp(k2 max(E, 0)^2) - 1) + U(J).

    E = d (I1b - 3) + (1 - 3 d)(I4b - 1) with the dispersion d of the fibres; U = kappa/2 ((J^2 - 1)/2 - ln J).

    Attributes
    ----------
    dispersion : d, 0 for fibres in one direction, 1/3 for all directions alike [-]
    """

    model: Literal["hgo"] = Field("hgo", description="elastic law; its mu is c, without fibres")
    fibres: FibresSpec = Field(description="direction of the fibres")
    c: PositiveField = Field(description="shear modulus of the ground [Pa]")
    k1: NonNegativeField = Field(description="modulus of the fibres [Pa]")
    k2: PositiveField = Field(description="exponent of the fibres [-]")
    dispersion: Annotated[kinds.Number, Field(ge=0, le=1 / 3)]

    def model_post_init(self, context: Any) -> None:
        self.check_directions()
