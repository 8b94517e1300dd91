"""Bodies of the scene format: meshes, regions, pins, loads and point masses."""

from typing import Annotated, Any, Literal

from pydantic import Field

from add.scene.spec import kinds
from add.scene.spec.actuation import ChamberSpec, MuscleSpec
from add.scene.spec.common import BoxSelectorSpec, Role, SelectorSpec, Spec, SphereSelectorSpec, ValueSpec, exactly_one
from add.scene.spec.kinds import problem
from add.scene.spec.materials import AnyMaterialSpec
from add.scene.spec.rigid import _MovingSpec

GridCorner = tuple[kinds.Index, kinds.Index, kinds.Index]


class FileMeshSpec(Spec):
    """A mesh from a file that meshio reads (Gmsh, VTK, Abaqus, Medit ...).

    Elements whose nodes go round the other way are turned. Elements that overlap their neighbours, as a misplaced node
    makes them, are an error: turning those would hide the mistake and add to the mass.

    Attributes
    ----------
    file : mesh file, relative to the scene file; `${NAME}` is an environment variable
    """

    file: kinds.FilePath


class SurfaceMeshSpec(Spec):
    """A closed surface that is filled with tetrahedra here, by fTetWild (`pip install add-sim[mesh]`).

    The mesh is kept under its content in the user's cache, and in the folder of a run. `scale` says the file's unit.

    Attributes
    ----------
    tolerance : how far the boundary may be from the surface [m]; null = a thousandth of its diagonal
    """

    surface: kinds.FilePath = Field(description="surface file (STL, OBJ, PLY, OFF), relative to the scene file")
    edge: kinds.Extent = Field(description="length of the element edges [m], `scale` included")
    tolerance: kinds.Positive | None = None


class BoxMeshSpec(Spec):
    """A box centred at the origin of the rest frame.

    Attributes
    ----------
    hollows : blocks of cells that are left out, each from one corner of the grid to another, both counted in cells from
        the lowest one: chambers, where they do not reach the boundary
    """

    shape: Literal["box"] = Field("box", description="kind of shape")
    size: kinds.PositiveVector3 = Field(description="edge lengths along x, y, z [m]")
    divisions: tuple[kinds.Count, kinds.Count, kinds.Count] = Field(description="cells along x, y, z")
    hollows: tuple[tuple[GridCorner, GridCorner], ...] = ()


class SphereMeshSpec(Spec):
    """A ball centred at the origin of the rest frame: 20 n^3 tetrahedra in n layers, n = 1.1 radius / edge, rounded."""

    shape: Literal["sphere"] = Field("sphere", description="kind of shape")
    radius: kinds.Extent = Field(description="radius [m]")
    edge: kinds.Extent = Field(description="length of the element edges [m]; diagonals are longer")


class CylinderMeshSpec(Spec):
    """A cylinder along z centred at the origin of the rest frame.

    18 m n^2 tetrahedra in n rings and m layers, n = radius / edge and m = height / edge, rounded.
    """

    shape: Literal["cylinder"] = Field("cylinder", description="kind of shape")
    radius: kinds.Extent = Field(description="radius [m]")
    height: kinds.Extent = Field(description="length along z [m]")
    edge: kinds.Extent = Field(description="length of the element edges [m]; diagonals are longer")


class TorusMeshSpec(Spec):
    """A torus around z centred at the origin of the rest frame.

    18 m n^2 tetrahedra in n rings and m sections, n = minor_radius / edge and m = 2 pi major_radius / edge, rounded.
    """

    shape: Literal["torus"] = Field("torus", description="kind of shape")
    major_radius: kinds.Extent = Field(description="distance of the tube's centre line from the axis [m]")
    minor_radius: kinds.Extent = Field(description="radius of the tube [m]; below `major_radius`")
    edge: kinds.Extent = Field(description="length of the element edges [m]; diagonals are longer")

    def model_post_init(self, context: Any) -> None:
        if self.minor_radius >= self.major_radius:
            raise problem(
                "the tube of the torus meets itself",
                key="minor_radius",
                found=f"{self.minor_radius:g}",
                expected=f"below major_radius, {self.major_radius:g}",
            )


ShapeMeshSpec = Annotated[
    BoxMeshSpec | SphereMeshSpec | CylinderMeshSpec | TorusMeshSpec,
    kinds.by_value("shape"),
]

MeshSpec = Annotated[
    FileMeshSpec | SurfaceMeshSpec | ShapeMeshSpec,
    kinds.by_key("file", "surface", "shape"),
]


class PinSpec(Spec):
    """Nodes whose displacement is prescribed.

    Attributes
    ----------
    motion : displacement from the initial position [m], world axes; null = held still
    """

    where: SelectorSpec = Field(description="the nodes, in the rest frame of the mesh")
    axes: kinds.Axes = Field("xyz", description="world axes that are held: any of x, y, z")
    motion: ValueSpec | None = None


class LoadSpec(Spec):
    """A force on nodes, the same in the world whatever the body does.

    Attributes
    ----------
    at : place in the rest frame of the mesh at which the force acts [m], a parameter: shares of the nodes are linear in
        it, and force and torque at rest are its own; null = all nodes share equally
    """

    where: SelectorSpec = Field(description="the nodes, in the rest frame of the mesh")
    force: ValueSpec = Field(description="total force over the selected nodes [N], world axes")
    at: Annotated[kinds.Vector3 | None, Role.PROPERTY] = None
    name: kinds.Name | None = Field(None, description="name of the load in reports")


class PointMassSpec(Spec, numbers=Role.PROPERTY):
    """Added mass, at a rest position inside the body or shared by selected nodes: give `at` or `where`.

    Attributes
    ----------
    inertia_axes : world axes along which its inertia acts: all for a mass that is glued on, the vertical for one that
        hangs on a string; its weight acts in any case
    """

    at: kinds.Vector3 | None = Field(None, description="rest position [m]")
    where: SelectorSpec | None = Field(None, description="the nodes that share the mass equally")
    mass: kinds.Positive = Field(description="total mass [kg]")
    inertia_axes: kinds.Axes = "xyz"
    name: kinds.Name | None = Field(None, description="name of the mass in reports")

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "at", "where")


class AnchorSpec(Spec):
    """A point of the body held at a place exactly, by a multiplier: any point, where a pin holds nodes.

    Attributes
    ----------
    place : where it is held over time, world axes [m]; null = where the point starts
    """

    at: kinds.Vector3 = Field(description="rest position of the point [m]")
    place: ValueSpec | None = None


class CellDataSelectorSpec(Spec):
    """Elements by a number that the mesh file gives each, such as `gmsh:physical`."""

    cell_data: kinds.NonEmpty = Field(description="name of the data in the mesh file")
    value: kinds.Number = Field(description="value of the elements that are meant")


class RegionSpec(Spec):
    """Elements of another material: those whose middle is in a box or sphere of the rest frame, or by cell data."""

    where: Annotated[
        BoxSelectorSpec | SphereSelectorSpec | CellDataSelectorSpec,
        kinds.by_key("box", "sphere", "cell_data"),
    ] = Field(description="the elements")
    material: AnyMaterialSpec = Field(description="their material")


class EmbeddingSpec(Spec):
    """Nodes fixed to a link or a rigid body: bones in tissue.

    Attributes
    ----------
    where : the nodes, in the rest frame of the mesh; null = those inside the shapes of the other body
    within : how far a node may be outside those shapes [m]; null = 0 without `where`, any distance with it
    by : whether the nodes are no unknowns, and elements between them and free ones lumped, or unknowns held by forces
        that results have as `ties`
    """

    body: kinds.BodyName = Field(description="name of the rigid or kinematic body, or of the link: `arm/forearm`")
    where: SelectorSpec | None = None
    within: kinds.NonNegative | None = None
    by: Literal["condensation", "multipliers"] = "condensation"


class SoftBodySpec(_MovingSpec):
    """A deformable solid of finite elements.

    Its initial velocity field is velocity + angular_velocity x (x - c), c the centre of its volume: not of its mass,
    where regions have other densities or there are point masses.

    Attributes
    ----------
    element : element family; null = the file's own, tet4 for shapes
    enhanced : of hex8: three inner nodes an element, with which it bends as it should (enhanced strains)
    """

    type: Literal["soft"] = Field("soft", description="kind of body")
    mesh: MeshSpec = Field(description="rest shape: a file, or a shape that is meshed here")
    element: Literal["tet4", "tet10", "hex8"] | None = None
    scale: kinds.Positive = Field(1.0, description="factor from the mesh's unit to metres [-]")
    mean_dilatation: kinds.Flag = Field(False, description="mean dilatation (F-bar) against volumetric locking")
    enhanced: kinds.Flag = False
    mass: Literal["consistent", "lumped"] = Field("consistent", description="mass matrix; `lumped` is HRZ")
    material: AnyMaterialSpec = Field(description="material of the body, or of what `regions` leave of it")
    regions: dict[kinds.Name, RegionSpec] = Field({}, description="parts of other materials by name; none may overlap")
    pins: tuple[PinSpec, ...] = Field((), description="nodes with prescribed displacement")
    anchors: tuple[AnchorSpec, ...] = Field((), description="points held exactly")
    loads: tuple[LoadSpec, ...] = Field((), description="forces on nodes")
    point_masses: tuple[PointMassSpec, ...] = Field((), description="added masses")
    embedded: tuple[EmbeddingSpec, ...] = Field((), description="nodes fixed to links and rigid bodies")
    chambers: dict[kinds.Name, ChamberSpec] = Field({}, description="gas and liquid within, by name")
    muscles: dict[kinds.Name, MuscleSpec] = Field({}, description="muscles within, by name")

    def model_post_init(self, context: Any) -> None:
        if self.enhanced and self.mean_dilatation:
            raise problem("enhanced elements with mean dilatation bend without resistance", key="enhanced",
                          found="both", expected="one of them: enhanced elements do not lock either")  # fmt: skip
