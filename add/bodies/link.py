"""Links of trees as bodies that forces act on."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import Block, Body, CarriedShape, ContactMesh, ContactPoints, Layouts, Picture, carried_mesh
from add.bodies.rigid import frame_state
from add.equations.initial import Pose
from add.equations.kinematics import Kinematics
from add.equations.tree_embedding import TreePose
from add.kernels.rotation import rotation_matrix
from add.typing import FloatArray, IntArray


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
