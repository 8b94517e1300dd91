"""Bodies of the scene format: meshes, regions, pins, loads and point masses."""

from typing import Annotated, Any, Literal

from pydantic import Field

from add.scene.spec.actuation import ChamberSpec, MuscleSpec
from add.scene.spec.common import (
    Axes,
    BodyName,
    BoxSelectorSpec,
    Count,
    Extent,
    FilePath,
    Flag,
    Index,
    Name,
    NonEmpty,
    NonNegative,
    Number,
    Positive,
    PositiveVector3,
    Role,
    SelectorSpec,
    Spec,
    SphereSelectorSpec,
    ValueSpec,
    Vector3,
    exactly_one,
    problem,
)
from add.scene.spec.materials import AnyMaterialSpec
from add.scene.spec.rigid import _MovingSpec
from add.scene.spec.unions import by_key, by_value

GridCorner = tuple[Index, Index, Index]


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
    edge: Extent = Field(description="length of the element edges [m], `scale` included")
    tolerance: Positive | None = Field(
        None, description="how far the boundary may be from the surface [m]; null = a thousandth of its diagonal"
    )


class BoxMeshSpec(Spec):
    """A box centred at the origin of the rest frame."""

    shape: Literal["box"] = Field("box", description="kind of shape")
    size: PositiveVector3 = Field(description="edge lengths along x, y, z [m]")
    divisions: tuple[Count, Count, Count] = Field(description="cells along x, y, z")
    hollows: tuple[tuple[GridCorner, GridCorner], ...] = Field(
        (),
        description="blocks of cells that are left out, each from one corner of the grid to another, both counted in "
        "cells from the lowest one: chambers, where they do not reach the boundary",
    )


class SphereMeshSpec(Spec):
    """A ball centred at the origin of the rest frame: 20 n^3 tetrahedra in n layers, n = 1.1 radius / edge, rounded."""

    shape: Literal["sphere"] = Field("sphere", description="kind of shape")
    radius: Extent = Field(description="radius [m]")
    edge: Extent = Field(description="length of the element edges [m]; diagonals are longer")


class CylinderMeshSpec(Spec):
    """A cylinder along z centred at the origin of the rest frame.

    18 m n^2 tetrahedra in n rings and m layers, n = radius / edge and m = height / edge, rounded.
    """

    shape: Literal["cylinder"] = Field("cylinder", description="kind of shape")
    radius: Extent = Field(description="radius [m]")
    height: Extent = Field(description="length along z [m]")
    edge: Extent = Field(description="length of the element edges [m]; diagonals are longer")


class TorusMeshSpec(Spec):
    """A torus around z centred at the origin of the rest frame.

    18 m n^2 tetrahedra in n rings and m sections, n = minor_radius / edge and m = 2 pi major_radius / edge, rounded.
    """

    shape: Literal["torus"] = Field("torus", description="kind of shape")
    major_radius: Extent = Field(description="distance of the tube's centre line from the axis [m]")
    minor_radius: Extent = Field(description="radius of the tube [m]; below `major_radius`")
    edge: Extent = Field(description="length of the element edges [m]; diagonals are longer")

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
    by_value("shape"),
]

MeshSpec = Annotated[
    FileMeshSpec | SurfaceMeshSpec | ShapeMeshSpec,
    by_key("file", "surface", "shape"),
]


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
    force: ValueSpec = Field(description="total force over the selected nodes [N], world axes")
    at: Annotated[Vector3 | None, Role.PROPERTY] = Field(
        None,
        description="place in the rest frame of the mesh at which the force acts [m], a parameter: shares of the nodes "
        "are linear in it, and force and torque at rest are its own; null = all nodes share equally",
    )
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

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "at", "where")


class AnchorSpec(Spec):
    """A point of the body held at a place exactly, by a multiplier: any point, where a pin holds nodes."""

    at: Vector3 = Field(description="rest position of the point [m]")
    place: ValueSpec | None = Field(
        None, description="where it is held over time, world axes [m]; null = where the point starts"
    )


class CellDataSelectorSpec(Spec):
    """Elements by a number that the mesh file gives each, such as `gmsh:physical`."""

    cell_data: NonEmpty = Field(description="name of the data in the mesh file")
    value: Number = Field(description="value of the elements that are meant")


class RegionSpec(Spec):
    """Elements of another material: those whose middle is in a box or sphere of the rest frame, or by cell data."""

    where: Annotated[
        BoxSelectorSpec | SphereSelectorSpec | CellDataSelectorSpec,
        by_key("box", "sphere", "cell_data"),
    ] = Field(description="the elements")
    material: AnyMaterialSpec = Field(description="their material")


class EmbeddingSpec(Spec):
    """Nodes fixed to a link or a rigid body: bones in tissue.

    Attributes
    ----------
    where : the nodes, in the rest frame of the mesh; null = those inside the shapes of the other body
    within : how far a node may be outside those shapes [m]; null = 0 without `where`, any distance with it
    by : whether the nodes are no unknowns, or unknowns held by forces that results have as `ties`
    """

    body: BodyName = Field(description="name of the rigid or kinematic body, or of the link: `arm/forearm`")
    where: SelectorSpec | None = None
    within: NonNegative | None = None
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
    scale: Positive = Field(1.0, description="factor from the mesh's unit to metres [-]")
    mean_dilatation: Flag = Field(False, description="mean dilatation (F-bar) against volumetric locking")
    enhanced: Flag = False
    mass: Literal["consistent", "lumped"] = Field("consistent", description="mass matrix; `lumped` is HRZ")
    material: AnyMaterialSpec = Field(description="material of the body, or of what `regions` leave of it")
    regions: dict[Name, RegionSpec] = Field({}, description="parts of other materials by name; none may overlap")
    pins: tuple[PinSpec, ...] = Field((), description="nodes with prescribed displacement")
    anchors: tuple[AnchorSpec, ...] = Field((), description="points held exactly")
    loads: tuple[LoadSpec, ...] = Field((), description="forces on nodes")
    point_masses: tuple[PointMassSpec, ...] = Field((), description="added masses")
    embedded: tuple[EmbeddingSpec, ...] = Field((), description="nodes fixed to links and rigid bodies")
    chambers: dict[Name, ChamberSpec] = Field({}, description="gas and liquid within, by name")
    muscles: dict[Name, MuscleSpec] = Field({}, description="muscles within, by name")

    def model_post_init(self, context: Any) -> None:
        if self.enhanced and self.mean_dilatation:
            raise problem("enhanced elements with mean dilatation bend without resistance", key="enhanced",
                          found="both", expected="one of them: enhanced elements do not lock either")  # fmt: skip
