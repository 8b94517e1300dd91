"""Rigid bodies, moving obstacles, whose motion is given, and links of trees as bodies that forces act on."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.bodies.base import (
    NO_POINTS,
    POSE_VECTORS,
    Block,
    Body,
    CarriedShape,
    ContactMesh,
    ContactPoints,
    Layouts,
    Part,
    Picture,
    carried_mesh,
    shape_mesh,
)
from add.bodies.nodal import FRAME_INERTIA, WEIGHT
from add.bodies.tree import OF_COORDINATES
from add.bodies.tree_joints import FREE, Graft, TreeJoint, tree_elements
from add.equations.initial import PinMotion, Pose, RigidPose
from add.equations.kinematics import Kinematics
from add.equations.signals import Ramp, SignalParameter
from add.equations.sites import NO_INDICES
from add.equations.term import Term
from add.equations.tree_embedding import TreeEmbedding, TreePose
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kernels.trees import Tree
from add.terms import TreeInertia
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class RigidBody(Body):
    """A rigid body, or a moving obstacle if it is kinematic. Its frame is the one its geometry is given in.

    Attributes
    ----------
    name : str
    points : (np, 3)
        Collision points in the body's frame [m].
    radii : (np,)
        Radius of the sphere around each collision point [m]; 0 for a point.
    areas : (np,)
        Surface that each collision point stands for [m^2], where stiffness counts per area.
    shapes : tuple of CarriedShape
        What the points of other bodies meet.
    kinematic : bool
        Whether all six coordinates are given: the initial pose, plus ``translation`` [m] and ``rotation`` [rad], the
        latter added to the rotation vector.
    vertices, triangles, outline : for drawing
        A surface mesh, or kind and size of a shape as in `add.kernels.distance` (-1 for none).
    touching : bool
        Whether its surface meets those of others.
    grafts : tuple of Graft
        Tissue on it; their places are from the centre of mass.
    """

    order: ClassVar[int] = 2
    has_frame: ClassVar[bool] = True

    name: str
    points: FloatArray
    radii: FloatArray
    areas: FloatArray
    shapes: tuple[CarriedShape, ...] = ()
    kinematic: bool = False
    translation: SignalParameter | None = None
    rotation: SignalParameter | None = None
    vertices: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    outline: tuple[int, tuple[float, float, float]] = (-1, (0.0, 0.0, 0.0))
    touching: bool = True
    grafts: tuple[Graft, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether it is not kinematic."""
        return not self.kinematic

    @property
    def rest(self) -> FloatArray:
        """Vertices of the surface mesh, or corners of the balls around its points."""
        if self.vertices.size or not self.points.size:
            return self.vertices
        return np.concatenate([self.points - self.radii[:, None], self.points + self.radii[:, None]])

    def _index(self, key: str, at: Layouts) -> IntArray:
        return at.parameters[f"bodies.{self.name}.{key}"].indices

    def parameters(self) -> list[Block]:
        """Return mass, inertia and centre of mass, and the pose."""
        at = f"bodies.{self.name}"
        blocks: list[Block] = [(f"{at}.mass", (), "kg"), (f"{at}.inertia", (6,), "kg m^2"), (f"{at}.centre", (3,), "m")]
        sizes: list[Block] = [(shape.in_theta, (3,), "m") for shape in self.shapes if shape.in_theta]
        return [*(blocks if self.moves else []), *self.pose_blocks(), *sizes]

    def signals(self) -> list[tuple[SignalParameter, str]]:
        """Return those of a given motion."""
        return [(drive, unit) for drive, unit in ((self.translation, "m"), (self.rotation, "rad")) if drive]

    def centre(self, at: Layouts) -> IntArray:
        """Return the indices of the centre of mass; the origin's for a given motion."""
        return self._index("centre", at) if self.moves else NO_INDICES

    def pose(self, at: Layouts) -> Pose:
        """Return how its frame starts."""
        vectors = [self._index(key, at) for key, _ in POSE_VECTORS]
        return RigidPose(at.dofs[self.name].start, self.centre(at) if self.moves else None, *vectors)

    def prescribed(self, at: Layouts) -> tuple[list[IntArray], list[PinMotion]]:
        """Return all coordinates of a given motion."""
        if self.moves:
            return [], []
        dofs = at.dofs[self.name].indices
        drives = ((self.translation, dofs[0]), (self.rotation, dofs[1]))
        moves = [
            PinMotion(part, np.arange(3), drive.signal, at.parameters[drive.parameter].indices)
            for drive, part in drives
            if drive
        ]
        return [dofs.ravel()], moves

    def rotations(self, at: Layouts) -> list[int]:
        """Return the first coordinate of the rotation vector."""
        return [at.dofs[self.name].start + 3] if self.moves else []

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia and weight."""
        if not self.moves:
            return []
        start, mass = at.rows[self.name].start, self._index("mass", at).reshape(1)
        inertia = (np.array([start]), mass, self._index("inertia", at)[None])
        out: list[Part | Term] = [
            Part(FRAME_INERTIA, inertia), Part(WEIGHT, (np.array([start // 3]), np.ones(1), mass))
        ]  # fmt: skip
        if any(graft.masses for graft in self.grafts):
            out.append(Part(OF_COORDINATES, TreeInertia(self._tree(at)[0], at.dofs[self.name].start, 6)))
        return out

    def _tree(self, at: Layouts) -> tuple[Tree, dict[str, int]]:
        """Return centre of mass and rotation vector as a tree with the grafts, and the numbers of their frames."""
        tree, _, frames = tree_elements(self.name, (TreeJoint("", FREE, -1, ""),), (0,), True, at, self.grafts)
        return tree, frames

    def grafted(self, path: str, at: Layouts) -> tuple[TreeEmbedding, int]:
        """Return the frame of a graft; see `Body.grafted`."""
        tree, frames = self._tree(at)
        return TreeEmbedding(tree, np.array([frames[path]]), 6), at.dofs[self.name].start

    def contact_points(self) -> ContactPoints:
        """Return the collision points."""
        return ContactPoints(np.zeros(0, dtype=np.int64), self.points.reshape(-1, 3), self.radii, self.areas)

    def contact_mesh(self) -> ContactMesh | None:
        """Return the surface mesh, or that of a shape; of a ball or a capsule, points and edges with a radius."""
        if not self.touching:
            return None
        kind, size = self.outline
        if kind >= 0:
            return shape_mesh(kind, size)
        if not self.triangles.size:
            return None
        return ContactMesh(self.vertices, None, self.triangles, np.zeros((0, 2), dtype=np.int64))

    def picture(self, theta: FloatArray, at: Layouts) -> Picture:
        """Return geometry and centre of mass."""
        centre = theta[self.centre(at)] if self.moves else np.zeros(3)
        kind, size = self.outline
        if self.shapes and self.shapes[0].in_theta:
            size = tuple(theta[at.parameters[self.shapes[0].in_theta].indices])
        values = {
            "kinematic": self.kinematic,
            "centre": centre,
            "kind": kind,
            "size": np.array(size),
            "vertices": self.vertices,
            "triangles": self.triangles,
        }
        return Picture("solids", values)

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return mass, pose and motion; a given motion has no mass."""
        mass = {"mass": float(theta[self._index("mass", at)])} if self.moves else {}
        return mass | frame_state(kin, at.rows[self.name].start)

    def fingerprint(self) -> list[Any]:
        """Return the collision points."""
        return [self.points, self.radii, self.areas]


def frame_state(kin: Kinematics, start: int) -> dict[str, Any]:
    """Return pose and motion of the frame whose rows of X begin at ``start``."""
    x, w = kin.q[start : start + 6].reshape(2, 3)
    velocity, rate = kin.v[start : start + 6].reshape(2, 3)
    return {
        "centre": x.tolist(),
        "orientation": Rotation.from_rotvec(w).as_quat(canonical=True)[[3, 0, 1, 2]].tolist(),
        "velocity": velocity.tolist(),
        "angular_velocity": (left_jacobian(w) @ rate).tolist(),
        "speed": float(np.linalg.norm(velocity)),
    }


# --- Obstacles of the world whose place and direction are parameters --------------------------------------------------


@final
@dataclass(frozen=True)
class ObstacleBody(Body):
    """An obstacle with a frame of its own, whose pose and steady velocity stand in theta.

        x(t) = position + t velocity,    w(t) = orientation

    It has the six coordinates of a rigid body, all prescribed, so that contact needs no other laws or derivatives than
    those of shapes that bodies carry: a change of its pose is one of prescribed coordinates.

    Attributes
    ----------
    name : str
    shape : CarriedShape
        In the frame.
    by_mesh : bool
        Whether it may meet others by its mesh.
    points : those of the obstacle, in the frame, which meet shapes of bodies
    """

    order: ClassVar[int] = 2
    has_frame: ClassVar[bool] = True

    name: str
    shape: CarriedShape
    by_mesh: bool = False
    points: ContactPoints = NO_POINTS

    #: No force moves it.
    moves: ClassVar[bool] = False

    @property
    def shapes(self) -> tuple[CarriedShape, ...]:
        """The obstacle."""
        return (self.shape,)

    def contact_points(self) -> ContactPoints:
        """Return those of the obstacle."""
        return self.points

    @property
    def rest(self) -> FloatArray:
        """No points: an obstacle may be without end."""
        return np.zeros((0, 3))

    def _index(self, key: str, at: Layouts) -> IntArray:
        return at.parameters[f"obstacles.{self.name}.{key}"].indices

    def parameters(self) -> list[Block]:
        """Return the pose, and the velocity as the row of a signal; velocities of the start are not read."""
        vectors = [(f"obstacles.{self.name}.start.{key}", (3,), unit) for key, unit in POSE_VECTORS]
        return [*vectors, (f"obstacles.{self.name}.motion", (1, 3), "m/s")]

    def pose(self, at: Layouts) -> Pose:
        """Return the frame at t = 0."""
        vectors = [self._index(f"start.{key}", at) for key, _ in POSE_VECTORS]
        return RigidPose(at.dofs[self.name].start, None, *vectors)

    def prescribed(self, at: Layouts) -> tuple[list[IntArray], list[PinMotion]]:
        """Return all coordinates, and the steady motion of the origin."""
        dofs = at.dofs[self.name].indices
        return [dofs.ravel()], [PinMotion(dofs[0], np.arange(3), Ramp(), self._index("motion", at))]

    def contact_mesh(self) -> ContactMesh | None:
        """Return the mesh of its shape, where it may meet by it."""
        return carried_mesh([self.shape]) if self.by_mesh else None

    def placed(self, theta: FloatArray, at: Layouts) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rotation (3, 3), position (3,) [m] and velocity (3,) [m/s] of the shape in the world at t = 0."""
        rotation = rotation_matrix(theta[self._index("start.orientation", at)])
        position = theta[self._index("start.position", at)] + rotation @ self.shape.position
        return rotation @ self.shape.rotation, position, theta[self._index("motion", at)][0]

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return pose and motion."""
        return frame_state(kin, at.rows[self.name].start)

    def fingerprint(self) -> list[Any]:
        """Return the shape."""
        shape = self.shape
        arrays = [np.array([shape.kind]), np.array(shape.size), shape.rotation, shape.position]
        return arrays if shape.mesh is None else [*arrays, shape.mesh.row]


@final
@dataclass(frozen=True)
class LinkBody(Body):
    """A link of a tree: its frame, with what it touches by. Its rows of X follow from the tree's coordinates.

    Attributes
    ----------
    tree, link : str
    points, radii, areas : (np, 3), (np,), (np,) as of a rigid body
    shape_of : (np,)
        Number of the shape that each point is of.
    shapes : tuple of CarriedShape
    vertices, triangles : what is drawn, in its frame
    massless : bool
        Whether it is a mere place.
    """

    order: ClassVar[int] = 3
    has_frame: ClassVar[bool] = True

    tree: str
    link: str
    points: FloatArray
    radii: FloatArray
    areas: FloatArray
    carried: tuple[CarriedShape, ...] = ()
    vertices: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    massless: bool = False
    shape_of: IntArray | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """``<tree>/<link>``."""
        return f"{self.tree}/{self.link}"

    @property
    def owner(self) -> str:
        """Name of its tree."""
        return self.tree

    @property
    def rest(self) -> FloatArray:
        """Vertices of what is drawn, or its points."""
        return self.vertices if self.vertices.size else self.points.reshape(-1, 3)

    @property
    def shapes(self) -> tuple[CarriedShape, ...]:
        """The shapes that the points of other bodies meet."""
        return self.carried

    def parameters(self) -> list[Block]:
        """Return sizes of its shapes; its other numbers are the tree's."""
        return [(shape.in_theta, (3,), "m") for shape in self.shapes if shape.in_theta]

    def coordinates(self) -> tuple[int, ...]:
        """Return nothing: the tree has them."""
        return (0,)

    def pose(self, at: Layouts) -> Pose:
        """Return a start without coordinates."""
        none = np.zeros(0, dtype=np.int64)
        return TreePose(at.dofs[self.name].start, 0, None, none, none)

    def contact_points(self) -> ContactPoints:
        """Return the collision points."""
        return ContactPoints(
            np.zeros(0, dtype=np.int64), self.points.reshape(-1, 3), self.radii, self.areas, self.shape_of
        )

    def contact_mesh(self) -> ContactMesh | None:
        """Return the surfaces of its shapes: boxes, cylinders and closed meshes, or one ball or capsule."""
        return carried_mesh(self.carried)

    def picture(self, theta: FloatArray, at: Layouts) -> Picture | None:
        """Return its surface."""
        if not self.vertices.size:
            return None
        values = {
            "kinematic": False,
            "centre": np.zeros(3),
            "kind": -1,
            "size": np.zeros(3),
            "vertices": self.vertices,
            "triangles": self.triangles,
        }
        return Picture("solids", values)

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return mass, centre of mass, pose and motion."""
        start, prefix = at.rows[self.name].start, f"bodies.{self.tree}.links.{self.link}"
        if self.massless:
            return frame_state(kin, start)
        out = {"mass": float(theta[at.parameters[f"{prefix}.mass"].start])} | frame_state(kin, start)
        arm = rotation_matrix(kin.q[start + 3 : start + 6]) @ theta[at.parameters[f"{prefix}.centre"].indices]
        velocity = kin.v[start : start + 3] + np.cross(np.array(out["angular_velocity"]), arm)
        out["centre"] = (kin.q[start : start + 3] + arm).tolist()
        out["velocity"], out["speed"] = velocity.tolist(), float(np.linalg.norm(velocity))
        return out

    def fingerprint(self) -> list[Any]:
        """Return the collision points."""
        return [self.points, self.radii, self.areas]
