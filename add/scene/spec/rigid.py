"""Rigid bodies, given motions and obstacles of the scene format."""

from typing import Annotated, Any, Literal

from pydantic import Field

from add.scene.spec import kinds
from add.scene.spec.common import BodyContactSpec, Facts, Role, Spec, ValueSpec, exactly_one
from add.scene.spec.extension import Extension
from add.scene.spec.kinds import problem

# --- geometry ---------------------------------------------------------------------------------------------------------


class _SimpleSpec(Spec):
    @property
    def sizes(self) -> tuple[float, ...]:
        """Radius and, where there is one, half the length [m]."""
        return tuple(getattr(self, key) for key in ("radius", "half_length") if key in type(self).model_fields)


class _SizedSpec(_SimpleSpec, numbers=Role.PROPERTY):
    """Shapes whose sizes may be parameters.

    Attributes
    ----------
    adjustable : whether its sizes are numbers that parameters may name; masses and inertias that follow from a geometry
        then follow them, and a ball meets meshes with its radius
    """

    adjustable: kinds.Flag = False


class BoxGeometrySpec(_SizedSpec):
    """A box centred at the origin of the body's frame."""

    shape: Literal["box"] = Field("box", description="kind of shape")
    size: kinds.PositiveVector3 = Field(description="edge lengths along x, y, z [m]")

    @property
    def sizes(self) -> tuple[float, ...]:
        """Half the edge lengths [m]."""
        return tuple(0.5 * size for size in self.size)


class SphereGeometrySpec(_SizedSpec):
    """A ball centred at the origin of the body's frame."""

    shape: Literal["sphere"] = Field("sphere", description="kind of shape")
    radius: kinds.Extent = Field(description="radius [m]")


class CapsuleGeometrySpec(_SizedSpec):
    """A cylinder along z with round ends, centred at the origin of the body's frame."""

    shape: Literal["capsule"] = Field("capsule", description="kind of shape")
    radius: kinds.Extent = Field(description="radius [m]")
    half_length: kinds.Extent = Field(description="half the length of the straight part [m]")


class CylinderGeometrySpec(_SizedSpec):
    """A cylinder along z with flat ends, centred at the origin of the body's frame."""

    shape: Literal["cylinder"] = Field("cylinder", description="kind of shape")
    radius: kinds.Extent = Field(description="radius [m]")
    half_length: kinds.Extent = Field(description="half the length [m]")


class FileGeometrySpec(Spec):
    """A closed surface mesh from a file (STL, OBJ, PLY ...).

    Attributes
    ----------
    file : surface mesh, relative to the scene file; `${NAME}` is an environment variable
    """

    file: kinds.FilePath
    scale: kinds.Positive = Field(1.0, description="factor from the mesh's unit to metres [-]")


PrimitiveSpec = Annotated[
    BoxGeometrySpec | SphereGeometrySpec | CapsuleGeometrySpec | CylinderGeometrySpec,
    kinds.by_value("shape"),
]

GeometrySpec = Annotated[
    FileGeometrySpec | PrimitiveSpec,
    kinds.by_key("file", "shape"),
]


class CollisionSpec(Spec):
    """The collision geometry of a rigid body: its points, and its shape, simple or a closed mesh.

    Attributes
    ----------
    points : whether the body's own points meet obstacles and shapes of other bodies: corners of a box, vertices of a
        mesh, rims of a cylinder, spheres of a sphere or capsule
    spacing : largest distance between neighbouring points on edges and faces [m]; null = the fewest, on rims of
        cylinders 13
    closed : whether a mesh from a file is a closed shape that points meet by its signed distance; false: it meets
        others by its mesh
    """

    points: kinds.Flag = True
    spacing: kinds.Positive | None = None
    shape: kinds.Flag = Field(True, description="whether other bodies meet this body's shape")
    closed: kinds.Flag = False


def _unread_of_collision(geometry: GeometrySpec | None, collision: CollisionSpec, moves: bool) -> dict[str, str]:
    if geometry is None:
        keys = (f"collision.{key}" for key in CollisionSpec.model_fields)
        return dict.fromkeys(keys, "the body has no geometry")
    out = {}
    if not isinstance(geometry, FileGeometrySpec):
        out["collision.closed"] = "the geometry is no mesh from a file"
    elif not collision.shape:
        out["collision.closed"] = "other bodies do not meet this shape"
    if not moves:
        out |= dict.fromkeys(("collision.points", "collision.spacing"), "points of kinematic bodies meet nothing")
    elif not collision.points:
        out["collision.spacing"] = "the body's points meet nothing"
    elif isinstance(geometry, SphereGeometrySpec):
        out["collision.spacing"] = "a sphere has one point"
    elif isinstance(geometry, BoxGeometrySpec) and (collision.spacing or 0.0) >= max(geometry.size):
        out["collision.spacing"] = "no edge of the box is longer"
    return out


# --- bodies -----------------------------------------------------------------------------------------------------------


class _PosedSpec(Spec, numbers=Role.PROPERTY):
    """Bodies with a pose at the start.

    Attributes
    ----------
    position : where the origin of the body's frame, or rest frame, starts [m]
    orientation : rotation of the frame about its origin, unit quaternion w, x, y, z [-]
    """

    position: Annotated[kinds.Vector3, Role.STATE] = (0.0, 0.0, 0.0)
    orientation: Annotated[kinds.Quaternion, Role.STATE] = (1.0, 0.0, 0.0, 0.0)
    contact: BodyContactSpec | None = Field(None, description="its contact class; null = none of its own")


class _MovingSpec(_PosedSpec):
    """Bodies with velocities at the start.

    Attributes
    ----------
    velocity : initial velocity of the centre of mass [m/s]
    angular_velocity : initial angular velocity, world axes [rad/s]
    """

    velocity: Annotated[kinds.Vector3, Role.STATE] = (0.0, 0.0, 0.0)
    angular_velocity: Annotated[kinds.Vector3, Role.STATE] = (0.0, 0.0, 0.0)


class BodyExtension(Extension, _MovingSpec):
    """Base of kinds of bodies that extensions bring; `position` and its like are numbers of all of them."""

    def body(self, name: str, driven: Any) -> tuple[Any, list[Any], list[Any]]:
        """Return the `add.bodies.Body`, further numbers of the scene, and what of theta follows from them.

        Parameters
        ----------
        name : of the body
        driven : what makes signals of values: (value, path, unit, width) -> SignalParameter
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it is built")


Inertia6 = tuple[kinds.Number, kinds.Number, kinds.Number, kinds.Number, kinds.Number, kinds.Number]


class RigidBodySpec(_MovingSpec):
    """A rigid body.

    Mass properties follow from the geometry and `mass` or `density`, unless `inertia` and `center_of_mass` say
    otherwise.

    Attributes
    ----------
    inertia : Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of mass in the body's axes [kg m^2] (the entries of the
        matrix: products of inertia with their minus)
    start : `recording`: those of `position`, `orientation`, `velocity` and `angular_velocity` that are not given are
        taken from the flight that the recording shows of this body from t = 0 on
    start_window : simulation times of the frames that the start is from [s]; null = up to the first touch
    """

    type: Literal["rigid"] = Field("rigid", description="kind of body")
    geometry: GeometrySpec | None = Field(None, description="shape; null = a frame with mass and no surface")
    mass: kinds.Positive | None = Field(None, description="mass [kg]")
    density: kinds.Positive | None = Field(None, description="mass density [kg/m^3]")
    inertia: Inertia6 | None = None
    center_of_mass: kinds.Vector3 | None = Field(None, description="in the body's frame [m]; null = the geometry's")
    collision: CollisionSpec = Field(default_factory=CollisionSpec, description="what meets other bodies")
    start: Literal["recording"] | None = None
    start_window: kinds.Window | None = None

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        out = _unread_of_collision(self.geometry, self.collision, True)
        if path.removeprefix("bodies.") in facts.on_hinges:
            keys = ("position", "velocity", "angular_velocity")
            out |= dict.fromkeys(keys, "the body starts where the 'start' of its hinge says")
        return out

    def model_post_init(self, context: Any) -> None:
        exactly_one(self, "mass", "density")
        if self.start is None and self.start_window is not None:
            raise problem("goes with 'start'", key="start_window")
        if self.geometry is None:
            for key in ("density", "inertia"):
                if (getattr(self, key) is None) == (key == "inertia"):
                    raise problem(
                        "a body without geometry needs its mass and inertia", key=key, expected="'mass' and 'inertia'"
                    )


class KinematicBodySpec(_PosedSpec):
    """A body with a given motion: a moving obstacle, or a handle. It feels no force.

    Attributes
    ----------
    translation : displacement from the initial position over time [m]; null = none
    rotation : added to the rotation vector of the initial orientation over time [rad]; null = none
    """

    type: Literal["kinematic"] = Field("kinematic", description="kind of body")
    geometry: GeometrySpec | None = Field(None, description="shape; null = a mere frame")
    translation: ValueSpec | None = None
    rotation: ValueSpec | None = None
    collision: CollisionSpec = Field(default_factory=CollisionSpec, description="what meets other bodies")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        return _unread_of_collision(self.geometry, self.collision, False)


# --- Obstacles of the scene format ------------------------------------------------------------------------------------


class _ObstacleSpec(_SimpleSpec, numbers=Role.PROPERTY):
    """Obstacles.

    Attributes
    ----------
    velocity : constant velocity of the obstacle [m/s]
    adjustable : whether its place, orientation or normal (two tilts from the scene's) and velocity are numbers that
        parameters may name: it has coordinates then, which are given
    """

    velocity: Annotated[kinds.Vector3, Role.DRIVE] = (0.0, 0.0, 0.0)
    adjustable: kinds.Flag = False


class PlaneSpec(_ObstacleSpec):
    """The half space behind a plane."""

    shape: Literal["plane"] = Field("plane", description="kind of obstacle")
    point: kinds.Vector3 = Field(description="a point of the plane at t = 0 [m]")
    normal: kinds.Direction = Field(description="direction of the free side; any length above 0 [-]")


class SphereSpec(_ObstacleSpec):
    """A ball."""

    shape: Literal["sphere"] = Field("sphere", description="kind of obstacle")
    center: kinds.Vector3 = Field(description="centre at t = 0 [m]")
    radius: kinds.Extent = Field(description="radius [m]")


class _OrientedSpec(_ObstacleSpec):
    center: kinds.Vector3 = Field(description="centre at t = 0 [m]")
    orientation: kinds.Quaternion = Field((1.0, 0.0, 0.0, 0.0), description="unit quaternion w, x, y, z [-]")


class BoxObstacleSpec(_OrientedSpec):
    """A box."""

    shape: Literal["box"] = Field("box", description="kind of obstacle")
    half_size: kinds.PositiveVector3 = Field(description="half the edge lengths along its x, y, z [m]")

    @property
    def sizes(self) -> tuple[float, ...]:
        """Half the edge lengths [m]."""
        return self.half_size


class CapsuleSpec(_OrientedSpec):
    """A cylinder along its z axis with round ends."""

    shape: Literal["capsule"] = Field("capsule", description="kind of obstacle")
    radius: kinds.Extent = Field(description="radius [m]")
    half_length: kinds.Extent = Field(description="half the length of the straight part [m]")


class CylinderSpec(_OrientedSpec):
    """A cylinder along its z axis with flat ends."""

    shape: Literal["cylinder"] = Field("cylinder", description="kind of obstacle")
    radius: kinds.Extent = Field(description="radius [m]")
    half_length: kinds.Extent = Field(description="half the length [m]")


class MeshObstacleSpec(_OrientedSpec):
    """A closed surface mesh from a file (STL, OBJ, PLY ...), triangles counter-clockwise seen from outside.

    Attributes
    ----------
    file : surface mesh, relative to the scene file; `${NAME}` is an environment variable
    """

    shape: Literal["mesh"] = Field("mesh", description="kind of obstacle")
    file: kinds.FilePath
    scale: kinds.Positive = Field(1.0, description="factor from the mesh's unit to metres [-]")
    center: kinds.Vector3 = Field((0.0, 0.0, 0.0), description="place of the mesh's origin at t = 0 [m]")


ObstacleSpec = Annotated[
    PlaneSpec | SphereSpec | BoxObstacleSpec | CapsuleSpec | CylinderSpec | MeshObstacleSpec,
    kinds.by_value("shape"),
]
