"""Trees of links whose coordinates are those of their joints, and the links as bodies that forces act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import Block, Body, CarriedShape, ContactPoints, Family, Layouts, Part, Picture
from add.bodies.rigid import frame_state
from add.equations.initial import Pose, RigidPose
from add.equations.kinematics import Kinematics
from add.equations.layout import ParameterLayout
from add.equations.lift import Embedding
from add.equations.prescribed import PinMotion
from add.equations.signals import SignalParameter
from add.equations.term import Term
from add.equations.tree_embedding import TreeEmbedding
from add.equations.tree_pose import TreePose
from add.kernels.rotation import rotation_matrix
from add.kernels.trees import BALL, FIXED, HINGE, SLIDE, Tree
from add.terms import BallLaws, JointDrive, JointFriction, JointLimits, JointSprings, TreeInertia
from add.typing import FloatArray, IntArray

_ZERO, _X, _Y, _Z = np.zeros(3), *np.eye(3)


@final
@dataclass(frozen=True)
class OfCoordinates(Family):
    """Terms over q itself; a part is a term."""

    of_coordinates: ClassVar[bool] = True

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return the parts."""
        return list(parts)


OF_COORDINATES = OfCoordinates()


@final
@dataclass(frozen=True)
class TreeJoint:
    """A joint of a tree and the link that it carries.

    Attributes
    ----------
    name : str
    kind : of `add.kernels.trees`, or FREE
    parent : int
        Number of the joint that carries the parent; -1 for the tree's base.
    link : str
        Name of its link; "" for one without mass and surface.
    axis, pitch : (3,) and [m/rad]
    mimic : (joint, factor, offset), optional
        Of a coordinate that follows another one's.
    limited : bool
        Whether it has limits.
    massless : bool
        Whether its link is a mere place.
    motion : SignalParameter, optional
        Given motion of its one coordinate, from where it starts.
    """

    name: str
    kind: int
    parent: int
    link: str
    axis: FloatArray = field(default_factory=lambda: _X)
    pitch: float = 0.0
    mimic: tuple[int, float, float] | None = None
    limited: bool = False
    massless: bool = False
    motion: SignalParameter | None = None

    @property
    def n(self) -> int:
        """Number of coordinates of its own."""
        return 0 if self.mimic is not None else WIDTHS[self.kind]


#: A joint with three lengths and a rotation vector, which makes four elements.
FREE = 4
#: Coordinates of the kinds.
WIDTHS = {FIXED: 0, HINGE: 1, SLIDE: 1, BALL: 3, FREE: 6}
#: Numbers of every joint with coordinates, beside its placement, by key: unit of one of an angle, of one of a length.
_LAW = (
    ("stiffness", "N m/rad", "N/m"), ("damping", "N m s/rad", "N s/m"), ("dry_friction", "N m", "N"),
    ("slip_speed", "rad/s", "m/s"), ("armature", "kg m^2", "kg"),
)  # fmt: skip
_LIMIT = (
    ("lower", "rad", "m"), ("upper", "rad", "m"), ("limit_stiffness", "N m/rad", "N/m"),
    ("limit_damping", "N m s/rad", "N s/m"),
)  # fmt: skip


#: Numbers of a drive in theta: g, b_q, b_v of `JointDrive`.
_GAINS = ("gain", "by_coordinate", "by_rate")


@final
@dataclass(frozen=True)
class TreeDrive:
    """An actuator: `JointDrive` on the coordinate of a joint; its gains are ``<path>.gain`` and so on in theta."""

    path: str
    joint: int
    input: SignalParameter
    limit: float = np.inf


@final
@dataclass(frozen=True)
class TreeBody(Body):
    """The joints of a tree: all its coordinates, inertia, weight and laws. `LinkBody` is what it carries.

    Attributes
    ----------
    name : str
    joints : tuple of TreeJoint
        Parents first.
    free : bool
        Whether the first joint is FREE and starts at the body's own position and orientation; else these place the
        base.
    drives : tuple of TreeDrive
    onset : float
        Way over which limits begin to act [rad, m].
    """

    order: ClassVar[int] = 3
    has_frame: ClassVar[bool] = False

    name: str
    joints: tuple[TreeJoint, ...]
    free: bool
    drives: tuple[TreeDrive, ...] = ()
    onset: float = 1e-3

    @property
    def rest(self) -> FloatArray:
        """Nothing: its links are drawn."""
        return np.zeros((0, 3))

    def _path(self, joint: TreeJoint, key: str) -> str:
        return f"bodies.{self.name}.joints.{joint.name}.{key}"

    def parameters(self) -> list[Block]:
        """Return the pose of the base, the numbers of joints and of links."""
        at = f"bodies.{self.name}"
        blocks: list[Block] = [(f"{at}.position", (3,), "m"), (f"{at}.orientation", (3,), "rad")]
        if self.free:
            blocks += [(f"{at}.velocity", (3,), "m/s"), (f"{at}.angular_velocity", (3,), "rad/s")]
        for k, joint in enumerate(self.joints):
            length = joint.kind == SLIDE
            unit = "m" if length else "rad"
            if joint.kind != FREE:
                blocks += [(self._path(joint, "position"), (3,), "m"), (self._path(joint, "orientation"), (3,), "rad")]
            if joint.n and not (self.free and k == 0):
                blocks += [
                    (self._path(joint, "value"), (joint.n,), unit),
                    (self._path(joint, "rate"), (joint.n,), f"{unit}/s"),
                ]
            if joint.kind in (HINGE, SLIDE, BALL) and joint.n:
                blocks.append((self._path(joint, "rest"), (joint.n,), unit))
                blocks += [(self._path(joint, key), (), units[length]) for key, *units in _LAW]
            if joint.limited:
                blocks += [(self._path(joint, key), (), units[length]) for key, *units in _LIMIT]
        for link in self._heavy:
            at_link = f"{at}.links.{link}"
            blocks += [
                (f"{at_link}.mass", (), "kg"), (f"{at_link}.inertia", (6,), "kg m^2"), (f"{at_link}.centre", (3,), "m")
            ]  # fmt: skip
        blocks += [(f"{drive.path}.{key}", (), "") for drive in self.drives for key in _GAINS]
        return blocks

    @property
    def links(self) -> list[str]:
        """Names of the links with mass or surface."""
        return [joint.link for joint in self.joints if joint.link]

    @property
    def _heavy(self) -> list[str]:
        """Names of the links with mass."""
        return [joint.link for joint in self.joints if joint.link and not joint.massless]

    def rows(self) -> tuple[int, int]:
        """Return nothing: its links have rows."""
        return 0, 3

    @cached_property
    def _first(self) -> list[int]:
        """The first coordinate of every joint, that of the one it mimics included."""
        own = np.concatenate([[0], np.cumsum([joint.n for joint in self.joints])])
        return [int(own[k] if joint.mimic is None else own[joint.mimic[0]]) for k, joint in enumerate(self.joints)]

    def coordinates(self) -> tuple[int, ...]:
        """Return the number of coordinates."""
        return (sum(joint.n for joint in self.joints),)

    def _named(self, joint: TreeJoint, key: str, at: Layouts) -> IntArray:
        return at.parameters[self._path(joint, key)].indices

    def tree(self, at: Layouts) -> tuple[Tree, IntArray]:
        """Return the elements, and the number of the one that carries each link."""
        return _elements(self, at)

    def embedding(self, at: Layouts) -> Embedding:
        """Return its links as functions of the coordinates."""
        return TreeEmbedding(*self.tree(at), self.coordinates()[0])

    def pose(self, at: Layouts) -> Pose:
        """Return how its joints start."""
        start = at.dofs[self.name].start
        base = None
        if self.free:
            keys = ("position", "orientation", "velocity", "angular_velocity")
            base = RigidPose(
                start, None, *(at.parameters[f"bodies.{self.name}.{key}"].indices for key in keys)
            )  # fmt: skip
        own = [joint for joint in self.joints[1 if self.free else 0 :] if joint.n]
        none = np.zeros(0, dtype=np.int64)
        value, rate = (
            np.concatenate([none, *(self._named(joint, key, at) for joint in own)]) for key in ("value", "rate")
        )
        return TreePose(start, self.coordinates()[0], base, value, rate)

    def prescribed(self, at: Layouts) -> tuple[list[IntArray], list[PinMotion]]:
        """Return the coordinates of joints with a given motion."""
        dofs, moves = [], []
        for first, joint in zip(self._first, self.joints, strict=True):
            if joint.motion is not None:
                dofs.append(np.array([at.dofs[self.name].start + first]))
                rows = at.parameters[joint.motion.parameter].indices
                moves.append(PinMotion(dofs[-1], np.zeros(1, dtype=np.int64), joint.motion.signal, rows))
        return dofs, moves

    def rotations(self, at: Layouts) -> list[int]:
        """Return the first coordinates of the rotation vectors of ball and free joints."""
        start = at.dofs[self.name].start
        return [
            start + first + (3 if joint.kind == FREE else 0)
            for first, joint in zip(self._first, self.joints, strict=True)
            if joint.kind in (BALL, FREE)
        ]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia with weight, and the laws of the joints."""
        start, n = at.dofs[self.name].start, self.coordinates()[0]
        inertia = TreeInertia(self.tree(at)[0], start, n)
        terms = [inertia, *self._laws(start, at), *self._limits(start, at), *self._driven(start, at)]
        return [Part(OF_COORDINATES, term) for term in terms]

    def _laws(self, start: int, at: Layouts) -> list[Term]:
        springs, friction, balls = [], [], []
        for first, joint in zip(self._first, self.joints, strict=True):
            if joint.kind not in (HINGE, SLIDE, BALL) or not joint.n:
                continue
            number = {key: int(self._named(joint, key, at)) for key, *_ in _LAW}
            # The spring of a ball acts on its rotation vector: k/2 |w - rest|^2.
            for k, rest in enumerate(self._named(joint, "rest", at)):
                springs.append((start + first + k, number["stiffness"], int(rest)))
            if joint.kind == BALL:
                balls.append((start + first, number["damping"], number["armature"]))
            else:
                friction.append((start + first, number["damping"], number["dry_friction"], number["slip_speed"]))
        found = ((JointSprings, springs), (JointFriction, friction), (BallLaws, balls))
        return [term(*np.array(rows, dtype=np.int64).T) for term, rows in found if rows]

    def _limits(self, start: int, at: Layouts) -> list[Term]:
        limited = [(first, joint) for first, joint in zip(self._first, self.joints, strict=True) if joint.limited]
        if not limited:
            return []
        numbers = [
            np.array([int(self._named(joint, key, at)) for _, joint in limited], dtype=np.int64) for key, *_ in _LIMIT
        ]
        dofs = np.array([start + first for first, _ in limited])
        return [JointLimits(dofs, *numbers, np.full(dofs.size, self.onset))]

    def _driven(self, start: int, at: Layouts) -> list[Term]:
        return [
            JointDrive(
                start + self._first[drive.joint],
                drive.input.signal,
                at.parameters[drive.input.parameter].indices.reshape(-1),
                np.array([at.parameters[f"{drive.path}.{key}"].start for key in _GAINS], dtype=np.int64),
                drive.limit,
            )
            for drive in self.drives
        ]

    def contact_points(self) -> ContactPoints:
        """Return nothing: its links touch."""
        return NO_POINTS

    def picture(self, theta: FloatArray, at: Layouts) -> Picture | None:
        """Return nothing: its links are drawn."""
        return None

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return the mass of all links; their motion is in them."""
        return {
            "mass": float(
                sum(theta[at.parameters[f"bodies.{self.name}.links.{link}.mass"].start] for link in self._heavy)
            )
        }

    def fingerprint(self) -> list[Any]:
        """Return the kinds and axes of the joints."""
        return [np.array([[joint.kind, joint.parent, joint.pitch, *joint.axis] for joint in self.joints])]


NO_POINTS = ContactPoints(np.zeros(0, dtype=np.int64), np.zeros((0, 3)), np.zeros(0), np.zeros(0))


def _elements(body: TreeBody, at: Layouts) -> tuple[Tree, IntArray]:
    rows: list[tuple[int, int, FloatArray, float]] = []  # parent, kind, axis, pitch
    placements: list[IntArray] = []
    links: list[str] = []
    columns: list[tuple[int, int, float, float, int]] = []  # element, coordinate, factor, offset, armature
    none = np.full(6, -1, dtype=np.int64)

    def add(parent: int, kind: int, axis: FloatArray, pitch: float, placement: IntArray, link: str) -> int:
        rows.append((parent, kind, axis, pitch))
        placements.append(placement)
        links.append(link)
        return len(rows) - 1

    base = f"bodies.{body.name}"
    place = np.concatenate([at.parameters[f"{base}.{key}"].indices for key in ("position", "orientation")])
    root = -1 if body.free else add(-1, FIXED, _X, 0.0, place, "")
    carried: list[int] = []
    for first, joint in zip(body._first, body.joints, strict=True):
        parent = root if joint.parent < 0 else carried[joint.parent]
        if joint.kind == FREE:
            for k, axis in enumerate((_X, _Y, _Z)):
                parent = add(parent, SLIDE, axis, 0.0, none, "")
                columns.append((parent, first + k, 1.0, 0.0, -1))
            parent = add(parent, BALL, _X, 0.0, none, joint.link)
            columns += [(parent, first + 3 + k, 1.0, 0.0, -1) for k in range(3)]
        else:
            own = np.concatenate([body._named(joint, key, at) for key in ("position", "orientation")])
            parent = add(parent, joint.kind, joint.axis, joint.pitch, own, joint.link)
            factor, offset = (1.0, 0.0) if joint.mimic is None else joint.mimic[1:]
            armature = -1
            if joint.kind in (HINGE, SLIDE) and joint.n:
                armature = int(body._named(joint, "armature", at))
            columns += [(parent, first + k, factor, offset, armature) for k in range(WIDTHS[joint.kind])]
        carried.append(parent)
    n = len(rows)
    mass, centre, inertia = (np.full(shape, -1, dtype=np.int64) for shape in ((n,), (n, 3), (n, 6)))
    for i, link in enumerate(links):
        if link in body._heavy:
            prefix = f"{base}.links.{link}"
            mass[i] = at.parameters[f"{prefix}.mass"].start
            centre[i] = at.parameters[f"{prefix}.centre"].indices
            inertia[i] = at.parameters[f"{prefix}.inertia"].indices
    element = np.array([column[0] for column in columns], dtype=np.int64)
    tree = Tree(
        parent=np.array([row[0] for row in rows], dtype=np.int64),
        kind=np.array([row[1] for row in rows], dtype=np.int64),
        first=np.searchsorted(element, np.arange(n)).astype(np.int64),
        axis=np.array([row[2] for row in rows], dtype=float).reshape(-1, 3),
        pitch=np.array([row[3] for row in rows], dtype=float),
        element=element,
        coordinate=np.array([column[1] for column in columns], dtype=np.int64),
        factor=np.array([column[2] for column in columns], dtype=float),
        offset=np.array([column[3] for column in columns], dtype=float),
        placement=np.array(placements, dtype=np.int64),
        mass=mass,
        centre=centre,
        inertia=inertia,
        armature=np.array([column[4] for column in columns], dtype=np.int64),
        gravity=at.parameters["gravity"].indices,
    )
    by_name = {link: i for i, link in enumerate(links) if link}
    return tree, np.array([by_name[link] for link in body.links], dtype=np.int64)


@final
@dataclass(frozen=True)
class LinkBody(Body):
    """A link of a tree: its frame, with what it touches by. Its rows of X follow from the tree's coordinates.

    Attributes
    ----------
    tree, link : str
    points, radii, areas : (np, 3), (np,), (np,) as of a rigid body
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

    @property
    def name(self) -> str:  # type: ignore[override]
        """``<tree>/<link>``."""
        return f"{self.tree}/{self.link}"

    @property
    def rest(self) -> FloatArray:
        """Vertices of what is drawn, or its points."""
        return self.vertices if self.vertices.size else self.points.reshape(-1, 3)

    @property
    def shapes(self) -> tuple[CarriedShape, ...]:
        """The shapes that the points of other bodies meet."""
        return self.carried

    def parameters(self) -> list[Block]:
        """Return nothing: its numbers are the tree's."""
        return []

    def rows(self) -> tuple[int, int]:
        """Return the shape of its frame's origin and rotation vector."""
        return 2, 3

    def coordinates(self) -> tuple[int, ...]:
        """Return nothing: the tree has them."""
        return (0,)

    def pose(self, at: Layouts) -> Pose:
        """Return a start without coordinates."""
        none = np.zeros(0, dtype=np.int64)
        return TreePose(at.dofs[self.name].start, 0, None, none, none)

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return nothing: inertia and weight are the tree's."""
        return []

    def contact_points(self) -> ContactPoints:
        """Return the collision points."""
        return ContactPoints(np.zeros(0, dtype=np.int64), self.points.reshape(-1, 3), self.radii, self.areas)

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
