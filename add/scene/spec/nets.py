"""Bodies of nodes on lines and sheets: springs, cloth and rods."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from add.materials.strains import (
    ROD_BENDING,
    ROD_STRETCHING,
    StrainLaw,
)
from add.scene.spec import kinds
from add.scene.spec.actuation import ChamberSpec
from add.scene.spec.bodies import FileMeshSpec, LoadSpec, PinSpec
from add.scene.spec.common import Facts, Role, Spec
from add.scene.spec.kinds import problem
from add.scene.spec.materials import ClothMaterialSpec, IsotropicMembraneSpec
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
