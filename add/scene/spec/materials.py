"""Materials of the scene format: laws with names, materials with names, laws by formula; membranes and bending."""

from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from add.errors import InputError
from add.materials import DIRECTIONS, FOAMS, INVARIANTS, SILICONES, Formula, Material, formula_law
from add.materials.strains import BENDINGS, MEMBRANES, StrainLaw, membrane_formula, membrane_table
from add.scene.spec import kinds, material_laws
from add.scene.spec.common import Role, Spec, _FormulaSpec
from add.scene.spec.extension import Extension
from add.scene.spec.kinds import problem
from add.scene.spec.signals import FibresSpec, FieldValue, NumberField, Poisson

_NAMED = SILICONES | FOAMS


class NamedMaterialSpec(material_laws._MaterialSpec):
    """A material by its name: what is not given is the number of its row in docs/materials.md."""

    @property
    def source(self) -> str:
        """The source of the numbers, and which are the scene's own."""
        row = _NAMED[self.model]
        changed = [key for key, number in row.numbers.items() if getattr(self, key) != number]
        return f"{self.model}: {row.source}" + (f"; {', '.join(changed)} of the scene" if changed else "")

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: Any) -> Any:
        row = _NAMED.get(str(data.get("model"))) if isinstance(data, dict) else None
        return data if row is None else row.numbers | {key: item for key, item in data.items() if item is not None}


class SiliconeMaterialSpec(NamedMaterialSpec, material_laws._RubberSpec):
    """A silicone by its name, of the law `yeoh`: what is not given is the number of its row in docs/materials.md."""

    like = "yeoh"

    model: Literal[
        "ecoflex-00-10", "ecoflex-00-30", "ecoflex-00-50", "dragon-skin-10", "dragon-skin-20", "dragon-skin-30"
    ] = Field(description="name of the silicone")
    density: kinds.Positive | None = Field(None, description="mass density at rest [kg/m^3]; null = the table's")  # type: ignore[assignment]
    c10: kinds.Positive | None = Field(None, description="modulus of the first power [Pa]; null = the table's")
    c20: kinds.Number | None = Field(None, description="modulus of the second power [Pa]; null = the table's")
    c30: kinds.Number | None = Field(None, description="modulus of the third power [Pa]; null = the table's, 0")
    kappa: kinds.Positive | None = Field(None, description="bulk modulus [Pa]; null = the table's, of nu = 0.49")  # type: ignore[assignment]


class FoamMaterialSpec(NamedMaterialSpec, material_laws.HyperfoamMaterialSpec):
    """A foam by its name, of the law `hyperfoam`: what is not given is the number of its row in docs/materials.md.

    The source has no density.
    """

    like = "hyperfoam"

    model: Literal["asics-ff-leap", "asics-ff-turbo-plus"] = Field(description="name of the foam")  # type: ignore[assignment]
    mu1: kinds.Number | None = Field(None, description="modulus of the first power [Pa]; null = the table's")  # type: ignore[assignment]
    alpha1: kinds.Number | None = Field(None, description="exponent of the first power [-]; null = the table's")  # type: ignore[assignment]
    mu2: kinds.Number | None = Field(None, description="modulus of the second power [Pa]; null = the table's")  # type: ignore[assignment]
    alpha2: kinds.Number | None = Field(None, description="exponent of the second power [-]; null = the table's")  # type: ignore[assignment]
    poisson: Poisson | None = Field(None, description="Poisson's ratio [-]; null = the table's, 0.001")  # type: ignore[assignment]


def _one_of(value: FieldValue) -> float | None:
    """Return a number, that of a field's first element, or None where a file has it."""
    if isinstance(value, tuple):
        return value[0]
    return value if isinstance(value, float) else getattr(value, "each", None)


class FormulaMaterialSpec(material_laws._MaterialSpec, _FormulaSpec):
    """A law by formula: any energy of the invariants of C = F^T F, with numbers of its own.

    At rest (I1 = I2 = I1b = I2b = 3, J = 1) it must be free of stress and stable.

    Attributes
    ----------
    numbers : numbers of the formula by name, each of them a parameter
    """

    model: Literal["formula"] = Field("formula", description="elastic law")
    numbers: dict[kinds.Name, NumberField]  # type: ignore[assignment]
    fibres: FibresSpec | None = Field(None, description="directions of fibres, of energies with I4, I6 or I8")
    energy: kinds.NonEmpty = Field(
        description=f"strain energy density W [J/m^3] of {', '.join(INVARIANTS)} and the names in `numbers`, with "
        "+ - * / **, parentheses, sqrt, exp, log, sin, cos, tanh, erf, and pos(x) = max(x, 0)"
    )

    @property
    def law(self) -> Material:
        """The elastic law."""
        return formula_law(self.energy, tuple(sorted(self.units.items())))

    @property
    def across(self) -> bool:
        """Whether the energy has I8."""
        return "I8" in Formula.read(self.energy).further

    def modulus(self, key: str) -> FieldValue | None:
        """Return a number of the formula by its key in theta."""
        return self.numbers[key.removeprefix("numbers.")]

    def model_post_init(self, context: Any) -> None:
        numbers = {name: _one_of(value) for name, value in self.numbers.items()}

        def read() -> None:
            law, known = Formula.read(self.energy, numbers), {k: x for k, x in numbers.items() if x is not None}
            if len(known) == len(numbers):  # others are looked at as the mesh is read
                law.require_sound(known)

        self.check_formula(INVARIANTS, read)
        self.check_directions()


class MaterialExtension(Extension, material_laws._MaterialSpec):
    """Base of elastic laws: a subclass has the formula of its ``energy`` and the units of its ``columns``.

    Columns are fields, numbers each, and symbols of the formula beside those of `FormulaMaterialSpec`, fibres apart.
    """

    energy: ClassVar[str] = ""
    columns: ClassVar[dict[str, str]] = {}

    model: Literal["extension"] = Field("extension", description="that `type` says the law")

    @property
    def law(self) -> Material:
        """The elastic law."""
        return formula_law(self.energy, tuple(sorted(self.columns.items())), "")

    def model_post_init(self, context: Any) -> None:
        numbers = {key: getattr(self, key) for key in self.columns}
        try:
            Formula.read(self.energy, numbers).require_sound(numbers)
        except InputError as error:
            raise problem(f"the extension '{self.type}': {error.message}", key="type", found=error.found,
                          expected=error.expected) from None  # fmt: skip
        if any(modulus in DIRECTIONS for modulus in self.law.parameters):
            raise problem(f"the extension '{self.type}' has no directions of fibres", key="type", found=self.energy)


def _material_branch(data: Any) -> str:
    """Choose an extension where one has the object's ``type``."""
    name = data.get("type") if isinstance(data, dict) else None
    known = isinstance(name, str) and MaterialExtension.named(name) is not None
    return "<extension>" if known or isinstance(data, MaterialExtension) else "<of the format>"


_MaterialOfFormat = Annotated[
    material_laws.MaterialSpec
    | material_laws.MooneyRivlinMaterialSpec
    | material_laws.YeohMaterialSpec
    | material_laws.GentMaterialSpec
    | material_laws.OgdenMaterialSpec
    | material_laws.HyperfoamMaterialSpec
    | material_laws.HolzapfelOgdenMaterialSpec
    | material_laws.HgoMaterialSpec
    | SiliconeMaterialSpec
    | FoamMaterialSpec
    | FormulaMaterialSpec,
    kinds.by_value("model", default="neo-hookean"),
]  # fmt: skip

AnyMaterialSpec = Annotated[
    _MaterialOfFormat | MaterialExtension,
    kinds.Branches(lambda members: kinds.Chosen(("<of the format>", "<extension>"), _material_branch, {})),
]


# --- Cloth ------------------------------------------------------------------------------------------------------------

#: In the plane.
PlanePoisson = Annotated[kinds.Number, Field(gt=-1, lt=1)]


class _MembraneSpec(Spec, numbers=Role.PROPERTY):
    """Membranes of cloth.

    Attributes
    ----------
    viscosity : eta of the stress eta dE/dt, E = (C - I)/2, times the thickness [N s/m]
    """

    viscosity: kinds.NonNegative = 0.0
    model: str

    @property
    def law(self) -> StrainLaw:
        """Its law."""
        return MEMBRANES[self.model]

    def number(self, key: str) -> float:
        """Return a number of it by its key."""
        return float(getattr(self, key))


class IsotropicMembraneSpec(_MembraneSpec):
    """An isotropic membrane under plane stress.

    Attributes
    ----------
    model : energy a rest volume: `neo-hookean` is mu/2 (tr C - 2 - 2 ln J) + lambda/2 (ln J)^2, which no compression
        takes to zero; `stvk` is young/(1 - poisson^2) ((1 - poisson) tr E^2 + poisson (tr E)^2)/2
    """

    model: Literal["neo-hookean", "stvk"] = "neo-hookean"
    young: kinds.Positive = Field(description="Young's modulus [Pa]")
    poisson: PlanePoisson = Field(description="Poisson's ratio in the plane [-], in (-1, 1)")


class OrthotropicMembraneSpec(_MembraneSpec):
    """A woven membrane, (k11 E11^2 + k22 E22^2 + 2 k12 E11 E22 + k33 E12^2)/2 a rest area."""

    model: Literal["orthotropic"] = Field("orthotropic", description="energy of the membrane")
    k11: kinds.Positive = Field(description="stiffness along the warp [N/m]")
    k22: kinds.Positive = Field(description="stiffness across it, along the weft [N/m]")
    k12: kinds.Number = Field(0.0, description="what couples them [N/m]; k12^2 below k11 k22")
    k33: kinds.Positive = Field(description="of shear, four times the shear modulus times the thickness [N/m]")

    def model_post_init(self, context: Any) -> None:
        if self.k12**2 >= self.k11 * self.k22:
            raise problem("the membrane is not stable", key="k12", found=f"{self.k12:g}",
                          expected=f"between -+{(self.k11 * self.k22) ** 0.5:g}")  # fmt: skip


class TableMembraneSpec(_MembraneSpec):
    """A woven membrane whose stiffness changes with the strain, by a table.

    Its stiffnesses are the slopes of the tension, dW/dE, and go linearly from strain to strain; before the first one,
    in compression, and beyond the last one they are constant. With one row it is the orthotropic membrane.

    Attributes
    ----------
    k33 : stiffness of shear, by abs(E12): four times the shear modulus times the thickness, one a row [N/m]
    """

    model: Literal["table"] = Field("table", description="energy of the membrane")
    strains: tuple[kinds.NonNegative, ...] = Field(
        min_length=1, description="E = (C - I)/2 of the rows [-], the first 0, ascending"
    )
    k11: tuple[kinds.Positive, ...] = Field(description="stiffness along the warp, one a row [N/m]")
    k22: tuple[kinds.Positive, ...] = Field(description="stiffness along the weft, one a row [N/m]")
    k12: kinds.Number = Field(0.0, description="what couples them [N/m]; k12^2 below the least k11 times the least k22")
    k33: tuple[kinds.Positive, ...]

    @property
    def law(self) -> StrainLaw:
        """Its law."""
        return membrane_table(self.strains)

    def number(self, key: str) -> float:
        """Return a number of it by its key, such as k11.0."""
        name, _, row = key.partition(".")
        return float(getattr(self, name)[int(row)] if row else getattr(self, name))

    def model_post_init(self, context: Any) -> None:
        rows = len(self.strains)
        if self.strains[0] != 0.0 or any(b <= a for a, b in pairwise(self.strains)):
            raise problem("the rows are not in order", key="strains", found=list(self.strains),
                          expected="0 first, then ascending")  # fmt: skip
        for key in ("k11", "k22", "k33"):
            found = len(getattr(self, key))
            if found != rows:
                raise problem("a stiffness for each strain", key=key, found=f"{found} numbers", expected=f"{rows}")
        least = (min(self.k11) * min(self.k22)) ** 0.5
        if abs(self.k12) >= least:
            raise problem("the membrane is not stable", key="k12", found=f"{self.k12:g}",
                          expected=f"between -+{least:g}")  # fmt: skip


class BaraffWitkinMembraneSpec(_MembraneSpec):
    """Stretch and shear apart (Baraff and Witkin 1998), without Poisson's effect."""

    model: Literal["baraff-witkin"] = Field("baraff-witkin", description="energy of the membrane")
    k_u: kinds.Positive = Field(description="stiffness along the warp [N/m]")
    k_v: kinds.Positive = Field(description="stiffness along the weft [N/m]")
    k_s: kinds.Positive = Field(description="stiffness of shear [N/m]")


class FormulaMembraneSpec(_MembraneSpec, _FormulaSpec):
    """A membrane by formula: any energy of C = F^T F in axes of warp and weft, with numbers of its own.

    At rest (C11 = C22 = 1, C12 = 0) it must be free of stress and stable.

    Attributes
    ----------
    energy : strain energy density W [J/m^3] of C11, C22, C12 and the names in `numbers`; times the thickness
    """

    model: Literal["formula"] = Field("formula", description="energy of the membrane")
    energy: kinds.NonEmpty

    @property
    def law(self) -> StrainLaw:
        """Its law."""
        return membrane_formula(self.energy, tuple(sorted(self.units.items())))

    def number(self, key: str) -> float:
        """Return a number of the formula by its key."""
        return self.numbers[key.removeprefix("numbers.")] if key.startswith("numbers.") else super().number(key)

    def model_post_init(self, context: Any) -> None:
        def read() -> None:
            law = membrane_formula(self.energy)
            used = {key.removeprefix("membrane.numbers.") for key, _, _ in law.parameters}
            for name in sorted(self.numbers.keys() - used):
                raise InputError("the formula does not have this number", place=f"numbers.{name}")
            for name in sorted(used - self.numbers.keys() - {"thickness", "membrane.viscosity"}):
                raise InputError("the formula has a name without a number", found=f"'{name}'",
                                 expected="C11, C22, C12 and the names in 'numbers'")  # fmt: skip
            law.require_sound(self.numbers | {"thickness": 1.0})

        self.check_formula((*MEMBRANES["stvk"].strain.variables, "thickness", "viscosity", "D11", "D22", "D12"), read)


MembraneSpec = Annotated[
    IsotropicMembraneSpec
    | OrthotropicMembraneSpec
    | TableMembraneSpec
    | BaraffWitkinMembraneSpec
    | FormulaMembraneSpec,
    kinds.by_value("model", default="neo-hookean"),
]


class HingeBendingSpec(Spec, numbers=Role.PROPERTY):
    """Bending by the angle of each edge, E = k_b/2 3 l^2/(A_0 + A_1) (theta - theta_0)^2 (Grinspun et al. 2003).

    What plate it is depends on the mesh: rigidity is 3 k_b along the sides of cells, more along diagonals.
    """

    model: Literal["hinge"] = Field("hinge", description="kind of bending")
    stiffness: kinds.NonNegative = Field(description="k_b [N m]; a twelfth of ARCSim's")
    damping: kinds.NonNegative = Field(0.0, description="in place of k_b on the rate of the angle [N m s]")


class PlateBendingSpec(Spec, numbers=Role.PROPERTY):
    """Bending by the curvature of each triangle, a consistent plate on any mesh.

    Attributes
    ----------
    rigidity : D [N m]; of a homogeneous sheet young thickness^3/(12 (1 - poisson^2))
    """

    model: Literal["plate"] = Field("plate", description="kind of bending")
    rigidity: kinds.NonNegative
    poisson: PlanePoisson = Field(0.0, description="Poisson's ratio of bending [-], in (-1, 1)")
    damping: kinds.NonNegative = Field(0.0, description="in place of D on the rate of the curvature [N m s]")


BendingSpec = Annotated[
    HingeBendingSpec | PlateBendingSpec,
    kinds.by_value("model", default="hinge"),
]


class ClothMaterialSpec(Spec, numbers=Role.PROPERTY):
    """The material of a cloth.

    Attributes
    ----------
    thickness : what moduli in Pa are multiplied by [m]; null = none, of membranes whose moduli are in N/m
    """

    density: kinds.Positive = Field(description="mass an area [kg/m^2]")
    thickness: kinds.Positive | None = None
    rayleigh_mass: kinds.NonNegative = Field(0.0, description="damping proportional to mass [1/s]")
    membrane: MembraneSpec = Field(description="resistance to stretching")
    bending: BendingSpec | None = Field(None, description="resistance to bending; null = none")

    @property
    def laws(self) -> list[StrainLaw]:
        """Its laws."""
        return [self.membrane.law, *([BENDINGS[self.bending.model]] if self.bending else [])]

    def number(self, key: str) -> float:
        """Return a number by its key in theta."""
        part, _, rest = key.partition(".")
        if part == "membrane":
            return self.membrane.number(rest)
        return float(getattr(self.bending, rest) if part == "bending" else getattr(self, key))

    def model_post_init(self, context: Any) -> None:
        needed = any(key == "thickness" for key, _, _ in self.membrane.law.parameters)
        if needed and self.thickness is None:
            raise problem("moduli in Pa act on a thickness", key="thickness", found="null", expected="a length [m]")
        if not needed and self.thickness is not None:
            raise problem("no force depends on the thickness", key="thickness", found=f"{self.thickness:g} m",
                          expected="null: moduli of this membrane are in N/m")  # fmt: skip
