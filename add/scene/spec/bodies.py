"""Bodies of the scene format: meshes, materials, pins, loads and point masses."""

from typing import Annotated, Any, Literal

from pydantic import Field, Tag, model_validator

from add.materials import INVARIANTS, SILICONES, SOURCE, YEOH, Formula, Material, formula_law, material
from add.scene.spec.common import (
    Axes,
    BodyContactSpec,
    Count,
    FilePath,
    Flag,
    Name,
    NonEmpty,
    NonNegative,
    Number,
    Positive,
    PositiveVector3,
    Quaternion,
    Role,
    SelectorSpec,
    Spec,
    ValueSpec,
    Vector3,
    by_key,
    by_value,
    exactly_one,
    problem,
)
from add.scene.spec.formulas import _FormulaSpec
from add.scene.spec.relaxation import BandSpec, BranchSpec, RelaxationSpec


class FileMeshSpec(Spec):
    """A mesh from a file that meshio reads (Gmsh, VTK, Abaqus, Medit ...).

    Elements whose nodes go round the other way are turned. Elements that overlap their neighbours, as a misplaced node
    makes them, are an error: turning those would hide the mistake and add to the mass.
    """

    file: FilePath = Field(description="mesh file, relative to the scene file; `${NAME}` is an environment variable")


class SurfaceMeshSpec(Spec):
    """A closed surface that is filled with tetrahedra here, by fTetWild (`pip install add-sim[mesh]`).

    The mesh is kept under its content in the user's cache, and in the folder of a run. `scale` says the file's unit.
    """

    surface: FilePath = Field(description="surface file (STL, OBJ, PLY, OFF), relative to the scene file")
    edge: Positive = Field(description="length of the element edges [m], `scale` included")
    tolerance: Positive | None = Field(
        None, description="how far the boundary may be from the surface [m]; null = a thousandth of its diagonal"
    )


class BoxMeshSpec(Spec):
    """A box centred at the origin of the rest frame."""

    shape: Literal["box"] = Field("box", description="kind of shape")
    size: PositiveVector3 = Field(description="edge lengths along x, y, z [m]")
    divisions: tuple[Count, Count, Count] = Field(description="cells along x, y, z")


class SphereMeshSpec(Spec):
    """A ball centred at the origin of the rest frame: 20 n^3 tetrahedra in n layers, n = 1.1 radius / edge, rounded."""

    shape: Literal["sphere"] = Field("sphere", description="kind of shape")
    radius: Positive = Field(description="radius [m]")
    edge: Positive = Field(description="length of the element edges [m]; diagonals are longer")


class CylinderMeshSpec(Spec):
    """A cylinder along z centred at the origin of the rest frame.

    18 m n^2 tetrahedra in n rings and m layers, n = radius / edge and m = height / edge, rounded.
    """

    shape: Literal["cylinder"] = Field("cylinder", description="kind of shape")
    radius: Positive = Field(description="radius [m]")
    height: Positive = Field(description="length along z [m]")
    edge: Positive = Field(description="length of the element edges [m]; diagonals are longer")


class TorusMeshSpec(Spec):
    """A torus around z centred at the origin of the rest frame.

    18 m n^2 tetrahedra in n rings and m sections, n = minor_radius / edge and m = 2 pi major_radius / edge, rounded.
    """

    shape: Literal["torus"] = Field("torus", description="kind of shape")
    major_radius: Positive = Field(description="distance of the tube's centre line from the axis [m]")
    minor_radius: Positive = Field(description="radius of the tube [m]; below `major_radius`")
    edge: Positive = Field(description="length of the element edges [m]; diagonals are longer")

    @model_validator(mode="after")
    def _check(self) -> "TorusMeshSpec":
        if self.minor_radius >= self.major_radius:
            raise problem(
                "the tube of the torus meets itself",
                key="minor_radius",
                found=f"{self.minor_radius:g}",
                expected=f"below major_radius, {self.major_radius:g}",
            )
        return self


ShapeMeshSpec = Annotated[
    Annotated[BoxMeshSpec, Tag("<box>")]
    | Annotated[SphereMeshSpec, Tag("<sphere>")]
    | Annotated[CylinderMeshSpec, Tag("<cylinder>")]
    | Annotated[TorusMeshSpec, Tag("<torus>")],
    by_value("shape", "box", "sphere", "cylinder", "torus"),
]

MeshSpec = Annotated[
    Annotated[FileMeshSpec, Tag("<file>")]
    | Annotated[SurfaceMeshSpec, Tag("<surface>")]
    | Annotated[ShapeMeshSpec, Tag("<shape>")],
    by_key("file", "surface", "shape"),
]


class _MaterialSpec(Spec, numbers=Role.PROPERTY):
    density: Positive = Field(description="mass density at rest [kg/m^3]")
    viscosity: NonNegative = Field(
        0.0, description="nu of the rotation-invariant viscous stress P = nu F D, D = sym(F^T dF/dt) [Pa s]"
    )
    rayleigh_mass: NonNegative = Field(0.0, description="damping proportional to mass [1/s]")
    rayleigh_stiffness: NonNegative = Field(0.0, description="damping proportional to stiffness [s]")
    relaxation: dict[Name, RelaxationSpec] = Field(
        {},
        description="how stress relaxes: branches by name. Moduli are those of fast motion; at rest what does not "
        "relax is left",
    )
    model: str

    @property
    def law(self) -> Material:
        """The elastic law."""
        return material(self.model)

    @property
    def branches(self) -> tuple[tuple[str, BranchSpec | BandSpec, int], ...]:
        """Name, spec and number of branches of everything that relaxes."""
        own = self.relaxation.items()
        return tuple((name, item, len(item.times) if isinstance(item, BandSpec) else 1) for name, item in own)

    def modulus(self, key: str) -> float | None:
        """Return a parameter of the elastic law by its key in the file."""
        return getattr(self, "lambda_" if key == "lambda" else key)


class MaterialSpec(_MaterialSpec):
    """An elastic material with damping: give `young` and `poisson`, or `mu` and `lambda`."""

    model: Literal["neo-hookean", "neo-hookean-ciarlet", "stvk"] = Field(
        "neo-hookean",
        description="energy density: `neo-hookean` is mu/2 (tr C - 3) - mu ln J + lambda/2 (ln J)^2; "
        "`neo-hookean-ciarlet` is mu/2 (tr C - 3 - 2 ln J) + lambda/2 ((J^2 - 1)/2 - ln J); "
        "`stvk` (St. Venant-Kirchhoff) is mu E : E + lambda/2 (tr E)^2, which softens in compression",
    )
    young: Positive | None = Field(None, description="Young's modulus [Pa]")
    poisson: Annotated[Number, Field(gt=-1, lt=0.5)] | None = Field(
        None, description="Poisson's ratio [-], in (-1, 0.5); 0.5 is incompressible and not available"
    )
    mu: Positive | None = Field(None, description="shear modulus, Lame's second parameter [Pa]")
    lambda_: Number | None = Field(None, alias="lambda", description="Lame's first parameter [Pa], above -2/3 mu")

    @model_validator(mode="after")
    def _check(self) -> "MaterialSpec":
        given = {key for key in ("young", "poisson", "mu", "lambda") if self.modulus(key) is not None}
        if given not in ({"young", "poisson"}, {"mu", "lambda"}):
            raise problem(
                "the stiffness needs exactly one of two pairs",
                found=" and ".join(f"'{key}'" for key in sorted(given)) or "none of them",
                expected="'young' and 'poisson', or 'mu' and 'lambda'",
            )
        if self.mu is not None and self.lambda_ is not None and self.lambda_ <= -2.0 / 3.0 * self.mu:
            raise problem(
                "the bulk modulus lambda + 2/3 mu must be positive",
                key="lambda",
                found=f"{self.lambda_:g}",
                expected=f"above {-2.0 / 3.0 * self.mu:g}",
            )
        return self


class MooneyRivlinMaterialSpec(_MaterialSpec):
    """Rubber with damping, W = c10 (I1b - 3) + c01 (I2b - 3) + kappa/2 (J - 1)^2.

    I1b = tr C / J^(2/3) and I2b = ((tr C)^2 - tr C^2) / (2 J^(4/3)) do not see changes of volume.
    """

    model: Literal["mooney-rivlin"] = Field("mooney-rivlin", description="elastic law; its mu is 2 (c10 + c01)")
    c10: Positive = Field(description="modulus of the first isochoric invariant [Pa]")
    c01: NonNegative = Field(description="modulus of the second isochoric invariant [Pa]")
    kappa: Positive = Field(description="bulk modulus [Pa]")


class YeohMaterialSpec(_MaterialSpec):
    """Rubber and silicone, W = c10 (I1b - 3) + c20 (I1b - 3)^2 + c30 (I1b - 3)^3 + kappa/2 (J - 1)^2."""

    model: Literal["yeoh"] = Field("yeoh", description="elastic law; its mu is 2 c10")
    c10: Positive = Field(description="modulus of the first power [Pa]")
    c20: Number = Field(description="modulus of the second power [Pa]; below zero it softens before it stiffens")
    c30: Number = Field(0.0, description="modulus of the third power [Pa]")
    kappa: Positive = Field(description="bulk modulus [Pa]")


class GentMaterialSpec(_MaterialSpec):
    """Rubber whose chains can be stretched so far, W = -mu/2 J_m ln(1 - (I1b - 3)/J_m) + U(J).

    I1b - 3 never reaches `limit`, J_m: there the energy is infinite. U = kappa/2 ((J^2 - 1)/2 - ln J).
    """

    model: Literal["gent"] = Field("gent", description="elastic law")
    mu: Positive = Field(description="shear modulus [Pa]")
    limit: Positive = Field(description="J_m, what I1b - 3 stays below [-]")
    kappa: Positive = Field(description="bulk modulus [Pa]")


class SiliconeMaterialSpec(_MaterialSpec):
    """A silicone by its name, of the law `yeoh`: what is not given is the number of its row in docs/silicones.md."""

    model: Literal[
        "ecoflex-00-10", "ecoflex-00-30", "ecoflex-00-50", "dragon-skin-10", "dragon-skin-20", "dragon-skin-30"
    ] = Field(description="name of the silicone")
    density: Positive | None = Field(None, description="mass density at rest [kg/m^3]; null = the table's")  # type: ignore[assignment]
    c10: Positive | None = Field(None, description="modulus of the first power [Pa]; null = the table's")
    c20: Number | None = Field(None, description="modulus of the second power [Pa]; null = the table's")
    c30: Number | None = Field(None, description="modulus of the third power [Pa]; null = the table's, 0")
    kappa: Positive | None = Field(None, description="bulk modulus [Pa]; null = the table's, of nu = 0.49")

    @property
    def law(self) -> Material:
        """The elastic law."""
        return YEOH

    @property
    def source(self) -> str:
        """Where the numbers are from, and which are the scene's own."""
        own = [key for key, number in SILICONES[self.model].numbers.items() if getattr(self, key) != number]
        return f"{self.model}: {SOURCE}" + (f"; {', '.join(own)} of the scene" if own else "")

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: Any) -> Any:
        row = SILICONES.get(str(data.get("model"))) if isinstance(data, dict) else None
        return data if row is None else row.numbers | {key: item for key, item in data.items() if item is not None}


class FormulaMaterialSpec(_MaterialSpec, _FormulaSpec):
    """A law by formula: any energy of the invariants of C = F^T F, with numbers of its own.

    At rest (I1 = I2 = I1b = I2b = 3, J = 1) it must be free of stress and stable.
    """

    model: Literal["formula"] = Field("formula", description="elastic law")
    energy: NonEmpty = Field(
        description=f"strain energy density W [J/m^3] of {', '.join(INVARIANTS)} and the names in `numbers`, with "
        "+ - * / **, parentheses, sqrt, exp, log, sin, cos, tanh"
    )

    @property
    def law(self) -> Material:
        """The elastic law."""
        return formula_law(self.energy, tuple(sorted(self.units.items())))

    def modulus(self, key: str) -> float | None:
        """Return a number of the formula by its key in theta."""
        return self.numbers[key.removeprefix("numbers.")]

    @model_validator(mode="after")
    def _check(self) -> "FormulaMaterialSpec":
        self.check_formula(INVARIANTS, lambda: Formula.read(self.energy, self.numbers).require_sound(self.numbers))
        return self


AnyMaterialSpec = Annotated[
    Annotated[MaterialSpec, Tag("<lame>")]
    | Annotated[MooneyRivlinMaterialSpec, Tag("<mooney-rivlin>")]
    | Annotated[YeohMaterialSpec, Tag("<yeoh>")]
    | Annotated[GentMaterialSpec, Tag("<gent>")]
    | Annotated[SiliconeMaterialSpec, Tag("<silicone>")]
    | Annotated[FormulaMaterialSpec, Tag("<formula>")],
    by_value(
        "model", "mooney-rivlin", "yeoh", "gent", "formula", default="neo-hookean",
        lame="neo-hookean neo-hookean-ciarlet stvk", silicone=" ".join(SILICONES),
    ),
]  # fmt: skip


class PinSpec(Spec):
    """Nodes whose displacement is prescribed."""

    where: SelectorSpec = Field(description="the nodes, in the rest frame of the mesh")
    axes: Axes = Field("xyz", description="world axes that are held: any of x, y, z")
    motion: ValueSpec | None = Field(
        None, description="displacement from the initial position [m], world axes; null = held still"
    )


class LoadSpec(Spec):
    """A force on nodes, the same in the world whatever the body does."""

    where: SelectorSpec = Field(description="the nodes, in the rest frame of the mesh")
    force: ValueSpec = Field(description="total force over the selected nodes [N], world axes, shared equally")
    name: Name | None = Field(None, description="name of the load in reports")


class PointMassSpec(Spec, numbers=Role.PROPERTY):
    """Added mass, at a rest position inside the body or shared by selected nodes: give `at` or `where`."""

    at: Vector3 | None = Field(None, description="rest position [m]")
    where: SelectorSpec | None = Field(None, description="the nodes that share the mass equally")
    mass: Positive = Field(description="total mass [kg]")
    inertia_axes: Axes = Field(
        "xyz",
        description="world axes along which its inertia acts: all for a mass that is glued on, the vertical for one "
        "that hangs on a string; its weight acts in any case",
    )
    name: Name | None = Field(None, description="name of the mass in reports")

    @model_validator(mode="after")
    def _check(self) -> "PointMassSpec":
        exactly_one(self, "at", "where")
        return self


class AnchorSpec(Spec):
    """A point of the body held at a place exactly, by a multiplier: any point, where a pin holds nodes."""

    at: Vector3 = Field(description="rest position of the point [m]")
    place: ValueSpec | None = Field(
        None, description="where it is held over time, world axes [m]; null = where the point starts"
    )


class SoftBodySpec(Spec, numbers=Role.PROPERTY):
    """A deformable solid of finite elements.

    Its initial velocity field is velocity + angular_velocity x (x - centre of mass).
    """

    type: Literal["soft"] = Field("soft", description="kind of body")
    mesh: MeshSpec = Field(description="rest shape: a file, or a shape that is meshed here")
    element: Literal["tet4", "tet10", "hex8"] | None = Field(
        None, description="element family; null = the file's own, tet4 for shapes"
    )
    scale: Positive = Field(1.0, description="factor from the mesh's unit to metres [-]")
    mean_dilatation: Flag = Field(False, description="mean dilatation (F-bar) against volumetric locking")
    mass: Literal["consistent", "lumped"] = Field("consistent", description="mass matrix; `lumped` is HRZ")
    material: AnyMaterialSpec = Field(description="material of the whole body")
    position: Annotated[Vector3, Role.STATE] = Field(
        (0.0, 0.0, 0.0), description="where the origin of the rest frame starts [m]"
    )
    orientation: Annotated[Quaternion, Role.STATE] = Field(
        (1.0, 0.0, 0.0, 0.0), description="rotation of the rest frame about its origin, unit quaternion w, x, y, z [-]"
    )
    velocity: Annotated[Vector3, Role.STATE] = Field(
        (0.0, 0.0, 0.0), description="initial velocity of the centre of mass [m/s]"
    )
    angular_velocity: Annotated[Vector3, Role.STATE] = Field(
        (0.0, 0.0, 0.0), description="initial angular velocity, world axes [rad/s]"
    )
    contact: BodyContactSpec | None = Field(None, description="its contact class; null = none of its own")
    pins: tuple[PinSpec, ...] = Field((), description="nodes with prescribed displacement")
    anchors: tuple[AnchorSpec, ...] = Field((), description="points held exactly")
    loads: tuple[LoadSpec, ...] = Field((), description="forces on nodes")
    point_masses: tuple[PointMassSpec, ...] = Field((), description="added masses")
