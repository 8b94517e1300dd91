"""Materials of the scene format: laws with names, materials with names, laws by formula."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from add.errors import InputError
from add.materials import DIRECTIONS, FOAMS, INVARIANTS, SILICONES, Formula, Material, formula_law
from add.scene.spec import kinds, material_laws
from add.scene.spec.common import _FormulaSpec
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
