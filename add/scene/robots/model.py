"""Robots as their files describe them, before any scene: links, joints, shapes, actuators. Plain numbers, SI units."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from add.errors import InputError
from add.geometry.triangle_surface import CollisionMesh
from add.summary import few
from add.typing import FloatArray, IntArray

#: The name of everything that stands still, as the parent of a joint and as a link in a pair.
WORLD = ""
#: A place in a frame: position (3,), rotation (3, 3).
Place = tuple[FloatArray, FloatArray]


def here() -> Place:
    """Return the frame itself."""
    return np.zeros(3), np.eye(3)


def after(first: Place, second: Place) -> Place:
    """Return the place in the frame of `first` of a place that is given in the frame that `first` is."""
    return first[0] + first[1] @ second[0], first[1] @ second[1]


class LinkPlace(NamedTuple):
    """A place on a link, or of the world: position (3,) [m] and rotation (3, 3) in its frame."""

    link: str
    position: FloatArray
    rotation: FloatArray

    def then(self, place: Place) -> "LinkPlace":
        """Return the place on the link of one that is given in the frame that this place is."""
        return LinkPlace(self.link, *after(self[1:], place))


@final
@dataclass(frozen=True)
class RobotGeometry:
    """A shape fixed to a link.

    Parameters
    ----------
    shape : "sphere" (radius), "capsule" (radius, half length of the axis), "cylinder" (radius, half height), "box"
        (half sizes), "plane" (none), "mesh" (none); capsules and cylinders lie along z, a plane's normal is z
    size : the numbers in brackets [m]
    position : (3,) in the link's frame [m]
    rotation : (3, 3) from the shape's frame to the link's
    vertices, triangles : (nv, 3) [m] and (nt, 3) of a mesh in the shape's frame, scaled; None of other shapes, and of
        visual meshes that were not read or are missing
    name : in the file, "" if it has none
    file : of a mesh, as it was found or, where it was not, as the robot's file names it
    origin : link of the file that the shape was given to; another one than its link where fixed links were merged
    friction : coefficient of sliding friction [-], None where the file gives none
    in_theta : path of its geometry in the scene, where its sizes are numbers
    """

    shape: str
    size: tuple[float, ...]
    position: FloatArray
    rotation: FloatArray
    vertices: FloatArray | None = None
    triangles: IntArray | None = None
    name: str = ""
    file: str = ""
    origin: str = ""
    friction: float | None = None
    in_theta: str = ""

    def moved(self, frame: Place) -> "RobotGeometry":
        """Return the shape in the frame that its own is a place of."""
        position, rotation = after(frame, (self.position, self.rotation))
        return replace(self, position=position, rotation=rotation)

    @cached_property
    def solid(self) -> CollisionMesh:
        """The mesh as what touches.

        Raises
        ------
        InputError
            If it is open, or wound wrongly.
        """
        assert self.vertices is not None and self.triangles is not None
        return CollisionMesh(self.vertices, self.triangles)

    @cached_property
    def hull(self) -> "RobotGeometry":
        """The convex hull of the mesh, its triangles turned outwards.

        Raises
        ------
        InputError
            If it has no volume.
        """
        assert self.vertices is not None and self.triangles is not None
        corners = self.vertices[np.unique(self.triangles)]  # a file may list vertices that no triangle has
        try:
            hull = ConvexHull(corners)
        except QhullError:
            raise InputError("a mesh whose convex hull has no volume", found=self.file or self.name) from None
        kept, number = np.unique(hull.simplices, return_inverse=True)
        triangles, vertices = number.reshape(-1, 3).astype(np.int64), corners[kept]
        a, b, c = (vertices[triangles[:, k]] for k in range(3))
        inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0.0
        triangles[inward] = triangles[inward][:, ::-1]
        return replace(self, vertices=vertices, triangles=triangles, file=f"hull of {self.file}")


@final
@dataclass(frozen=True)
class RobotLink:
    """A rigid link of a robot.

    Parameters
    ----------
    name : without "/"
    mass : 0 of the intermediate links of composite joints [kg]
    centre : (3,) centre of mass in the link's frame [m]
    inertia : (3, 3) about the centre, in the link's axes [kg m^2]
    collision, visual : shapes
    """

    name: str
    mass: float = 0.0
    centre: FloatArray = field(default_factory=lambda: np.zeros(3))
    inertia: FloatArray = field(default_factory=lambda: np.zeros((3, 3)))
    collision: tuple[RobotGeometry, ...] = ()
    visual: tuple[RobotGeometry, ...] = ()

    def moved(self, frame: Place) -> "RobotLink":
        """Return the link in the frame that its own is a place of."""
        position, turn = frame
        collision, visual = (tuple(shape.moved(frame) for shape in some) for some in (self.collision, self.visual))
        inertia = turn @ self.inertia @ turn.T
        return RobotLink(self.name, self.mass, position + turn @ self.centre, inertia, collision, visual)


@final
@dataclass(frozen=True)
class RobotJoint:
    """A joint between two links: its frame in the parent's frame, then the motion.

    The child's frame is the joint's frame after the motion: X_child = X_parent (rotation, position) motion(q). Planar
    and universal joints, and bodies with several joints, come as chains of these through massless links.

    Parameters
    ----------
    name : without "/"
    kind : "hinge" (angle), "slide" (length), "ball" (rotation vector), "free" (place and rotation vector); "fixed"
        stands in no `Robot`, since its links are merged
    parent, child : names of links; `WORLD` for a parent that stands still
    position, rotation : (3,) [m] and (3, 3) of the joint's frame in the parent's; of a free joint the child's pose at
        the start: its coordinates are the pose itself
    axis : (3,) unit vector in the joint's frame, of hinges and slides
    pitch : way along the axis for an angle about it [m/rad]
    lower, upper : limits of the coordinate [rad or m], -inf and inf where it has none; of a ball, upper is the limit of
        the angle by which it is turned
    stiffness, reference : of a spring -stiffness (q - reference) [N m/rad or N/m]
    damping : [N m s/rad or N s/m]
    dry_friction : torque or force of Coulomb friction [N m or N]
    armature : inertia that the joint's own rate meets [kg m^2 or kg]
    effort, velocity : largest torque or force of its drive, and largest rate, inf where none is said
    mimic : (joint, factor, offset): q = factor q_joint + offset, where that joint mimics no other
    start : coordinate in which the file poses the robot [rad or m]
    safety : soft lower and upper limit, gains on position and velocity of the `safety_controller`, which belongs to
        controllers; None where there is none
    """

    name: str
    kind: str
    parent: str
    child: str
    position: FloatArray
    rotation: FloatArray
    axis: FloatArray
    pitch: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    stiffness: float = 0.0
    reference: float = 0.0
    damping: float = 0.0
    dry_friction: float = 0.0
    armature: float = 0.0
    effort: float = np.inf
    velocity: float = np.inf
    mimic: tuple[str, float, float] | None = None
    start: float = 0.0
    safety: tuple[float, float, float, float] | None = None

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return {"fixed": 0, "hinge": 1, "slide": 1, "ball": 3, "free": 6}[self.kind]


@final
@dataclass(frozen=True)
class RobotSegment:
    """A part of a spatial tendon between two places, straight or the shortest way around a sphere or a cylinder.

    Parameters
    ----------
    places : (link, (3,) in it [m]) of both ends; of the centre and, further, of a point at the distance 1 m on a
        cylinder's axis; behind them the place on whose side it runs, where one is given
    weight : its share in the tendon's length, 1 over the divisor of its pulley [-]
    around : "", "sphere" or "cylinder"
    radius : [m]
    """

    places: tuple[tuple[str, FloatArray], ...]
    weight: float = 1.0
    around: str = ""
    radius: float = 0.0


@final
@dataclass(frozen=True)
class RobotTendon:
    """A tendon with a spring, damping, dry friction and limits of its length.

    Parameters
    ----------
    name : in the file
    joints : of a fixed tendon, l = sum of factors times coordinates: (joint, factor) [m/rad or -]
    stiffness : of its spring, which acts where l is outside `rest` [N/m]
    rest : shortest and longest length without force [m]
    damping : [N s/m]
    dry_friction : [N]
    lower, upper : limits of l, -inf and inf where it has none [m]
    segments : of a spatial tendon, l = sum of their weighted lengths
    """

    name: str
    joints: tuple[tuple[str, float], ...]
    stiffness: float = 0.0
    rest: tuple[float, float] = (0.0, 0.0)
    damping: float = 0.0
    dry_friction: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    segments: tuple[RobotSegment, ...] = ()


@final
@dataclass(frozen=True)
class RobotActuator:
    """A force on a length l, clamped to `force`: f = (g0 + g1 l + g2 l_dot) a + b0 + b1 l + b2 l_dot, or a muscle's.

    Parameters
    ----------
    name : in the file
    transmission : "joint" (l = gear q, f gear acts on q), "tendon" (the same of its length), "place" (l = 0: gear has
        the force and the torque that f = 1 puts on the place, in the place's axes)
    target : name of the joint, the tendon or the place (`Robot.place`)
    gear : one number, or six
    gain, bias : (g0, g1, g2), (b0, b1, b2)
    control : range that u is clamped to, infinite where it is not
    force : range that f is clamped to, infinite where it is not
    dynamics : how a follows u: "" at once, "filter" a' = (u - a)/tau, "integrator" a' = u, "muscle" as MuJoCo says
    times : tau, or the two of a muscle [s]
    activation : range that a is clamped to, infinite where it is not
    muscle : in place of gain and bias F_0 [N], l_o [m], v_max [1/s], l_min, l_max, f_P, f_V, l_T [m]: the tension
        F_0 (a f_L f_V + f_P) at (l - l_T)/l_o; () where it is none
    """

    name: str
    transmission: str
    target: str
    gear: tuple[float, ...]
    gain: tuple[float, float, float]
    bias: tuple[float, float, float]
    control: tuple[float, float] = (-np.inf, np.inf)
    force: tuple[float, float] = (-np.inf, np.inf)
    dynamics: str = ""
    times: tuple[float, ...] = ()
    activation: tuple[float, float] = (-np.inf, np.inf)
    muscle: tuple[float, ...] = ()


@final
@dataclass(frozen=True)
class RobotLoop:
    """An equation between links or joints that the tree does not have.

    Parameters
    ----------
    name : in the file
    kind : "point" (3 rows: two points coincide), "hinge" (5: their z axes too), "fixed" (6: two frames coincide),
        "slider" (5: they do but for a way along z), "distance" (1), "joints" and "tendons" (1)
    links : two names, `WORLD` for what stands still; of points and frames
    positions : (2, 3) in the links' frames [m]
    rotations : (2, 3, 3) from the frames that coincide to the links'
    joints : the joint, or fixed tendon, y, and x where there is one
    coefficients : a of y - y0 = sum a_k (x - x0)^k, where x0, y0 are theirs at the joints' `start`
    length : of a distance [m]
    """

    name: str
    kind: str
    links: tuple[str, ...] = ()
    positions: FloatArray = field(default_factory=lambda: np.zeros((2, 3)))
    rotations: FloatArray = field(default_factory=lambda: np.stack([np.eye(3), np.eye(3)]))
    joints: tuple[str, ...] = ()
    coefficients: tuple[float, ...] = ()
    length: float = 0.0


@final
@dataclass(frozen=True)
class RobotFluid:
    """A fluid around all bodies of a file.

    Parameters
    ----------
    density, viscosity : [kg/m^3], [Pa s]
    boxes : (link, centre (3,) and rotation (3, 3) in it, edges (3,) [m]) of the boxes that bodies are to it
    wind : (3,) its velocity, world axes [m/s]
    ellipsoids : the same of ellipsoids, with their numbers (14,), `add.joints.laws.ELLIPSOID_NUMBERS`
    """

    density: float
    viscosity: float
    boxes: tuple[tuple[str, FloatArray, FloatArray, FloatArray], ...]
    wind: FloatArray = field(default_factory=lambda: np.zeros(3))
    ellipsoids: tuple[tuple[str, FloatArray, FloatArray, FloatArray], ...] = ()


@final
@dataclass(frozen=True)
class Robot:
    """A forest of links, parents first, depth first; `joints[k]` carries `links[k]`.

    Parameters
    ----------
    name : of the robot
    links, joints : of equal number
    ignored : a line for each thing of the file that is not used
    excluded : pairs of links of which no shapes may touch, `WORLD` for what stands still; a link never touches itself
    frames : places by name: links that were merged, sites, and links of the
        file whose frame is not that of their joint. `place` asks these first
    static : everything that stands still, `WORLD`: shapes in the world's frame; its mass does not matter
    excluded_shapes : further pairs of shapes ((link, number), (link, number)) that may not touch; number in `collision`
    actuators, tendons, loops : as said there
    gravity : (3,) [m/s^2], None where the file says none
    fluid : around everything, None where the file says none
    compensated : (link, place (3,) in it, mass [kg]) of weights that are taken away (`gravcomp`)
    keyframes : name -> joint -> its coordinates in that pose, as of the scene's joints [rad, m]
    doubts : lines of `ignored` about what changes the motion, unless the user said so
    """

    name: str
    links: tuple[RobotLink, ...]
    joints: tuple[RobotJoint, ...]
    ignored: tuple[str, ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()
    frames: dict[str, LinkPlace] = field(default_factory=dict)
    static: RobotLink = field(default_factory=lambda: RobotLink(WORLD))
    excluded_shapes: tuple[tuple[tuple[str, int], tuple[str, int]], ...] = ()
    actuators: tuple[RobotActuator, ...] = ()
    tendons: tuple[RobotTendon, ...] = ()
    loops: tuple[RobotLoop, ...] = ()
    gravity: FloatArray | None = None
    keyframes: dict[str, dict[str, FloatArray]] = field(default_factory=dict)
    fluid: RobotFluid | None = None
    compensated: tuple[tuple[str, FloatArray, float], ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """Mass of all that moves [kg]."""
        return sum(link.mass for link in self.links)

    @property
    def n(self) -> int:
        """Number of coordinates: a mimic joint has none of its own."""
        return sum(joint.n for joint in self.joints if joint.mimic is None)

    def place(self, name: str) -> LinkPlace:
        """Return the place on a link of a link of the file or of a site.

        Raises
        ------
        InputError
            If there is no such name.
        """
        if name in self.frames:
            return self.frames[name]
        if any(link.name == name for link in self.links):
            return LinkPlace(name, *here())
        known = few([f"'{one}'" for one in sorted({link.name for link in self.links} | set(self.frames))], 12)
        raise InputError(f"robot '{self.name}' has no such link or site", found=f"'{name}'", expected=f"one of {known}")
