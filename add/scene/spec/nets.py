"""Bodies of nodes on lines and sheets: springs, cloth and rods."""

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from add.errors import InputError
from add.materials.strains import (
    BENDINGS,
    MEMBRANES,
    ROD_BENDING,
    ROD_STRETCHING,
    StrainLaw,
    membrane_formula,
    membrane_table,
)
from add.scene.spec import kinds
from add.scene.spec.actuation import ChamberSpec
from add.scene.spec.bodies import FileMeshSpec, LoadSpec, PinSpec
from add.scene.spec.common import Facts, Role, Spec, _FormulaSpec
from add.scene.spec.kinds import problem
from add.scene.spec.rigid import _MovingSpec


class NetSpec(_MovingSpec):
    """Common settings of bodies of nodes on lines and sheets."""

    collision: kinds.Flag = Field(True, description="whether the nodes meet obstacles")
    pins: tuple[PinSpec, ...] = Field((), description="nodes with prescribed displacement")
    loads: tuple[LoadSpec, ...] = Field((), description="forces on nodes")
    chambers: dict[kinds.Name, ChamberSpec] = Field(
        {}, description="gas and liquid that press on its triangles, by name"
    )

    @property
    def expected_nodes(self) -> float:
        """Nodes of a shape that is meshed here; 0 for others."""
        return 0.0

    @property
    def is_handle(self) -> bool:
        """Whether there is one node alone."""
        return False


class SheetMeshSpec(Spec):
    """A rectangle in the x-y plane of the rest frame, centred at the origin, with springs along its cells' sides."""

    shape: Literal["sheet"] = Field("sheet", description="kind of shape")
    size: tuple[kinds.Positive, kinds.Positive] = Field(description="edge lengths along x, y [m]")
    divisions: tuple[kinds.Count, kinds.Count] = Field(description="cells along x, y")
    shear: kinds.Flag = Field(True, description="springs along both diagonals of each cell")
    bend: kinds.Flag = Field(True, description="springs that skip a node along both directions")


class PointsMeshSpec(Spec):
    """Nodes and springs one by one."""

    points: tuple[kinds.Vector3, ...] = Field(min_length=1, description="rest positions [m]")
    edges: tuple[tuple[int, int], ...] = Field((), description="pairs of nodes that a spring joins")

    def model_post_init(self, context: Any) -> None:
        n = len(self.points)
        for k, (a, b) in enumerate(self.edges):
            if not (0 <= a < n and 0 <= b < n) or a == b:
                raise problem(
                    "an edge joins two different nodes", key=f"edges.{k}", found=[a, b], expected=f"within 0..{n - 1}"
                )
            if self.points[a] == self.points[b]:
                raise problem("an edge of length zero", key=f"edges.{k}", found=[a, b])


ParticleMeshSpec = Annotated[
    PointsMeshSpec | SheetMeshSpec,
    kinds.by_key("points", "shape"),
]


class MassSpringBodySpec(NetSpec):
    """Point masses joined by springs: a sheet, a net, a rope. Without mass, a handle: then all its nodes are pinned."""

    # Scenes of before say "particles".
    type: Annotated[Literal["mass-spring"], BeforeValidator(lambda word: word.replace("particles", "mass-spring"))] = (
        Field("mass-spring", description="kind of body")
    )
    mesh: ParticleMeshSpec = Field(description="rest shape")
    mass: kinds.Positive | None = Field(None, description="total mass, shared equally by the nodes [kg]; null = none")
    stiffness: kinds.Positive = Field(1e3, description="stiffness of every spring [N/m]")
    damping: kinds.NonNegative = Field(0.0, description="damping of every spring [N s/m]")
    rayleigh_mass: kinds.NonNegative = Field(0.0, description="damping proportional to mass [1/s]")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        none = isinstance(self.mesh, PointsMeshSpec) and not self.mesh.edges
        turns = {"angular_velocity": "one point does not turn"} if self.is_handle else {}
        return turns | (dict.fromkeys(("stiffness", "damping"), "no edge joins its points") if none else {})

    @property
    def expected_nodes(self) -> float:
        """Nodes of a sheet."""
        return 0.0 if isinstance(self.mesh, PointsMeshSpec) else _nodes(self.mesh.divisions)

    @property
    def is_handle(self) -> bool:
        """Whether there is one node alone."""
        return isinstance(self.mesh, PointsMeshSpec) and len(self.mesh.points) == 1


# --- cloth ------------------------------------------------------------------------------------------------------------


class RectangleMeshSpec(Spec):
    """A rectangle in the x-y plane of the rest frame, centred at the origin, of triangles.

    Attributes
    ----------
    diagonals : how cells are cut; `irregular` moves inner nodes and joins them anew, which prefers no direction
    """

    shape: Literal["rectangle"] = Field("rectangle", description="kind of shape")
    size: tuple[kinds.Positive, kinds.Positive] = Field(description="edge lengths along x, y [m]")
    cells: tuple[kinds.Count, kinds.Count] = Field(description="cells along x, y, two triangles each")
    diagonals: Literal["alternating", "one", "irregular"] = "alternating"


ClothMeshSpec = Annotated[FileMeshSpec | RectangleMeshSpec, kinds.by_key("file", "shape")]
ClothRestSpec = Annotated[
    Literal["mesh", "uv"] | FileMeshSpec,
    kinds.by_type("'mesh', 'uv', or a file", text=str, file=(dict, FileMeshSpec)),
]
Poisson = Annotated[kinds.Number, Field(gt=-1, lt=1)]


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
    poisson: Poisson = Field(description="Poisson's ratio in the plane [-], in (-1, 1)")


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
    poisson: Poisson = Field(0.0, description="Poisson's ratio of bending [-], in (-1, 1)")
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


class SeamSpec(Spec, numbers=Role.PROPERTY):
    """Two rows of nodes drawn together by springs without length."""

    a: tuple[int, ...] = Field(min_length=1, description="nodes, one after the other along the seam")
    b: tuple[int, ...] = Field(min_length=1, description="the nodes that they meet, in the same order")
    stiffness: kinds.Positive = Field(description="stiffness of each spring [N/m]")
    damping: kinds.NonNegative = Field(0.0, description="damping of the gap between each pair [N s/m]")


class ClothBodySpec(NetSpec):
    """A cloth: triangles that resist stretching and bending.

    Attributes
    ----------
    rest : shape without stress: `mesh`, the angles of its edges among it; `uv`, the flat pattern of the file's texture
        coordinates, whose edges have no angle; or a file of the same triangles
    warp : direction of the warp in the frame of the shape without stress; of `uv` u
    """

    type: Literal["cloth"] = Field("cloth", description="kind of body")
    mesh: ClothMeshSpec = Field(description="shape at the start: a file of triangles (.obj), or a rectangle")
    scale: kinds.Positive = Field(1.0, description="factor from the mesh's unit to metres [-]")
    rest: ClothRestSpec = "mesh"
    warp: kinds.Vector3 = (1.0, 0.0, 0.0)
    material: ClothMaterialSpec = Field(description="material of the whole cloth")
    seams: tuple[SeamSpec, ...] = Field((), description="rows of nodes that are drawn together")

    @property
    def expected_nodes(self) -> float:
        """Nodes of a rectangle."""
        return _nodes(self.mesh.cells) if isinstance(self.mesh, RectangleMeshSpec) else 0.0

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        isotropic = isinstance(self.material.membrane, IsotropicMembraneSpec)
        return {"warp": "the membrane is the same in all directions"} if isotropic else {}

    def model_post_init(self, context: Any) -> None:
        if self.rest == "uv" and not isinstance(self.mesh, FileMeshSpec):
            raise problem("a rectangle has no texture coordinates", key="rest", found="'uv'", expected="'mesh'")
        if not any(self.warp):
            raise problem("this is no direction", key="warp", found="0, 0, 0")


# --- rods -------------------------------------------------------------------------------------------------------------


class LineMeshSpec(Spec):
    """A straight line along x of the rest frame, from the origin on."""

    shape: Literal["line"] = Field("line", description="kind of shape")
    length: kinds.Positive = Field(description="length [m]")
    segments: kinds.Count = Field(description="parts between nodes")


class PathMeshSpec(Spec):
    """Nodes one after the other."""

    points: tuple[kinds.Vector3, ...] = Field(min_length=2, description="places of the nodes at the start [m]")


RodMeshSpec = Annotated[PathMeshSpec | LineMeshSpec, kinds.by_key("points", "shape")]


class RodBodySpec(NetSpec, numbers=Role.PROPERTY):
    """A rod or string, straight at rest, that resists stretching and bending, but no twist (Bergou et al. 2008).

    Attributes
    ----------
    mesh : nodes at the start; their distances are lengths at rest, their turns are not
    """

    type: Literal["rod"] = Field("rod", description="kind of body")
    mesh: RodMeshSpec
    density: kinds.Positive = Field(description="mass a length [kg/m]")
    stretching: kinds.Positive = Field(description="EA [N]")
    bending: kinds.NonNegative = Field(0.0, description="EI, the same in all directions [N m^2]")
    damping: kinds.NonNegative = Field(0.0, description="in place of EA on the rate of the stretch [N s]")
    rayleigh_mass: kinds.NonNegative = Field(0.0, description="damping proportional to mass [1/s]")

    @property
    def expected_nodes(self) -> float:
        """Nodes of a line."""
        return _nodes((self.mesh.segments,)) if isinstance(self.mesh, LineMeshSpec) else 0.0

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        n = self.mesh.segments + 1 if isinstance(self.mesh, LineMeshSpec) else len(self.mesh.points)
        return {"bending": "one segment does not bend"} if n == 2 else {}

    @property
    def laws(self) -> list[StrainLaw]:
        """Its laws."""
        return [ROD_STRETCHING, ROD_BENDING]

    def number(self, key: str) -> float:
        """Return a number by its key in theta."""
        return float(getattr(self, key))


def _nodes(cells: tuple[int, ...]) -> float:
    out = 1.0
    for n in cells:
        out *= n + 1.0
    return out
