"""Trees of links whose coordinates are those of their joints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import POSE_VECTORS, Block, Body, Family, Layouts, Part
from add.bodies.tree_joints import FREE, LAW, LIMIT, Graft, TreeJoint, tree_elements
from add.bodies.tree_parts import (
    TreeCoupling,
    TreeDrive,
    TreeLoop,
    TreeTendon,
    blocks_of,
    joint_couplings,
    length_terms,
    link_loops,
)
from add.equations.initial import PinMotion, Pose, RigidPose
from add.equations.kinematics import Kinematics
from add.equations.layout import ParameterLayout
from add.equations.lift import Embedding
from add.equations.term import Constraint, DecidingTerm, Term
from add.equations.tree_embedding import TreeEmbedding, TreePose
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kernels.trees import BALL, HINGE, SLIDE, Tree
from add.terms import (
    BallFriction,
    BallLaws,
    BallLimits,
    HeldResistance,
    JointLimits,
    JointResistance,
    JointSprings,
    OnPaths,
    TreeInertia,
    Wrench,
)
from add.terms.memories import Memory
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class OfCoordinates(Family):
    """Terms over q itself; a part is a term."""

    of_coordinates: ClassVar[bool] = True

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term | DecidingTerm]:
        """Return the parts."""
        return list(parts)


OF_COORDINATES = OfCoordinates()


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
    onset : float
        Way over which limits begin to act [rad, m].
    hard_limits : bool
        Whether they are to give not at all: by a stepper with hard contact.
    loops, couplings, tendons, drives
        See `add.bodies.tree_parts`.
    kept_rows : (k,)
        Rows of the loops, by number, that do not depend on others.
    grafts : tuple of Graft
        Tissue on its links.
    """

    order: ClassVar[int] = 3
    has_frame: ClassVar[bool] = False

    name: str
    joints: tuple[TreeJoint, ...]
    free: bool
    onset: float = 1e-3
    hard_limits: bool = False
    loops: tuple[TreeLoop, ...] = ()
    couplings: tuple[TreeCoupling, ...] = ()
    tendons: tuple[TreeTendon, ...] = ()
    drives: tuple[TreeDrive, ...] = ()
    kept_rows: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    grafts: tuple[Graft, ...] = ()

    @property
    def rest(self) -> FloatArray:
        """Nothing: its links are drawn."""
        return np.zeros((0, 3))

    def path(self, joint: TreeJoint, key: str) -> str:
        """Return the name in theta of a joint's number."""
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
                blocks += [(self.path(joint, "position"), (3,), "m"), (self.path(joint, "orientation"), (3,), "rad")]
            if joint.n and not (self.free and k == 0):
                blocks += [
                    (self.path(joint, "value"), (joint.n,), unit),
                    (self.path(joint, "rate"), (joint.n,), f"{unit}/s"),
                ]
            if joint.kind in (HINGE, SLIDE, BALL) and joint.n:
                blocks.append((self.path(joint, "rest"), (joint.n,), unit))
                blocks += [(self.path(joint, key), (), units[length]) for key, *units in LAW]
            if joint.limited:
                blocks += [(self.path(joint, key), (), units[length]) for key, *units in LIMIT]
        for link in self.heavy:
            at_link = f"{at}.links.{link}"
            blocks += [
                (f"{at_link}.mass", (), "kg"), (f"{at_link}.inertia", (6,), "kg m^2"), (f"{at_link}.centre", (3,), "m")
            ]  # fmt: skip
        return blocks + blocks_of(self.loops, self.couplings, self.tendons, self.drives)

    @property
    def links(self) -> list[str]:
        """Names of the links with mass or surface."""
        return [joint.link for joint in self.joints if joint.link]

    @property
    def heavy(self) -> list[str]:
        """Names of the links with mass."""
        return [joint.link for joint in self.joints if joint.link and not joint.massless]

    def rows(self) -> tuple[int, int]:
        """Return nothing: its links have rows."""
        return 0, 3

    @cached_property
    def first(self) -> list[int]:
        """The first coordinate of every joint, that of the one it mimics included."""
        at = np.concatenate([[0], np.cumsum([joint.n for joint in self.joints])])
        return [int(at[k] if joint.mimic is None else at[joint.mimic[0]]) for k, joint in enumerate(self.joints)]

    def coordinates(self) -> tuple[int, ...]:
        """Return the number of coordinates."""
        return (sum(joint.n for joint in self.joints),)

    def _named(self, joint: TreeJoint, key: str, at: Layouts) -> IntArray:
        return at.parameters[self.path(joint, key)].indices

    def tree(self, at: Layouts) -> tuple[Tree, IntArray]:
        """Return the elements, and the number of the one that carries each link."""
        return tree_elements(self.name, self.joints, self.first, self.free, at, self.grafts)[:2]

    def embedding(self, at: Layouts) -> Embedding:
        """Return its links as functions of the coordinates."""
        return TreeEmbedding(*self.tree(at), self.coordinates()[0])

    def grafted(self, path: str, at: Layouts) -> tuple[TreeEmbedding, int]:
        """Return the frame of a graft; see `Body.grafted`."""
        tree, _, frames = tree_elements(self.name, self.joints, self.first, self.free, at, self.grafts)
        return TreeEmbedding(tree, np.array([frames[path]]), self.coordinates()[0]), at.dofs[self.name].start

    def start_names(self) -> list[str]:
        """Return the blocks of theta that its coordinates start at, in their order."""
        base = [f"bodies.{self.name}.{key}" for key in ("position", "orientation")] if self.free else []
        joints = [joint for joint in self.joints[1 if self.free else 0 :] if joint.n]
        return [*base, *(self.path(joint, "value") for joint in joints)]

    def pose(self, at: Layouts) -> Pose:
        """Return how its joints start."""
        start = at.dofs[self.name].start
        base = None
        if self.free:
            vectors = (at.parameters[f"bodies.{self.name}.{key}"].indices for key, _ in POSE_VECTORS)
            base = RigidPose(start, None, *vectors)
        joints = [joint for joint in self.joints[1 if self.free else 0 :] if joint.n]
        none = np.zeros(0, dtype=np.int64)
        value, rate = (
            np.concatenate([none, *(self._named(joint, key, at) for joint in joints)]) for key in ("value", "rate")
        )
        return TreePose(start, self.coordinates()[0], base, value, rate)

    def prescribed(self, at: Layouts) -> tuple[list[IntArray], list[PinMotion]]:
        """Return the coordinates of joints with a given motion."""
        dofs, moves = [], []
        for first, joint in zip(self.first, self.joints, strict=True):
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
            for first, joint in zip(self.first, self.joints, strict=True)
            if joint.kind in (BALL, FREE)
        ]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia with weight, and the laws of the joints."""
        start, n = at.dofs[self.name].start, self.coordinates()[0]
        inertia = TreeInertia(self.tree(at)[0], start, n)
        terms = [inertia, *self._laws(start, at), *self._limits(start, at)]
        dofs = [start + first for first in self.first]
        terms += length_terms(self.name, self.tendons, self.drives, dofs, self.onset, at)
        return [term if isinstance(term, OnPaths | Wrench) else Part(OF_COORDINATES, term) for term in terms]

    def memories(self, at: Layouts) -> list[Memory]:
        """Return the activations of its actuators."""
        return [memory for drive in self.drives for memory in drive.memory(at)]

    def constraints(self, at: Layouts, bodies: Mapping[str, Body]) -> list[Constraint]:
        """Return the rows that close its loops, and the equations between its joints."""
        loops = [link_loops(self.name, self.loops, self.kept_rows, at)] if self.kept_rows.size else []
        start = at.dofs[self.name].start
        return [*loops, *joint_couplings(self.couplings, [start + first for first in self.first], at)]

    def _laws(self, start: int, at: Layouts) -> list[Term | DecidingTerm]:
        springs, balls = [], []
        # By whether the dry friction holds.
        resisting: list[tuple[int, ...]] = []
        held: list[tuple[int, ...]] = []
        dry: list[tuple[int, ...]] = []
        for first, joint in zip(self.first, self.joints, strict=True):
            if joint.kind not in (HINGE, SLIDE, BALL) or not joint.n:
                continue
            number = {key: int(self._named(joint, key, at)) for key, *_ in LAW}
            # The spring of a ball acts on its rotation vector: k/2 |w - rest|^2.
            for k, rest in enumerate(self._named(joint, "rest", at)):
                springs.append((start + first + k, number["stiffness"], int(rest)))
            if joint.kind == BALL:
                balls.append((start + first, number["damping"], number["armature"]))
                if joint.rough and joint.held:
                    held.append((start + first, 3, -1, number["dry_friction"], number["slip_speed"]))
                elif joint.rough:
                    dry.append((start + first, number["dry_friction"], number["slip_speed"]))
            else:
                resists = tuple(number[key] for key in ("damping", "dry_friction", "slip_speed"))
                held.append((start + first, 1, *resists)) if joint.held else resisting.append((start + first, *resists))
        laws = (
            (JointSprings, springs), (JointResistance, resisting), (BallLaws, balls), (BallFriction, dry),
            (HeldResistance, held),
        )  # fmt: skip
        return [term(*np.array(rows, dtype=np.int64).T) for term, rows in laws if rows]

    def _limits(self, start: int, at: Layouts) -> list[Term]:
        terms: list[Term] = []
        for balls in (False, True):
            limited = [
                (first, joint)
                for first, joint in zip(self.first, self.joints, strict=True)
                if joint.limited and (joint.kind == BALL) == balls
            ]
            if not limited:
                continue
            lower, upper, stiffness, damping = (
                np.array([int(self._named(joint, key, at)) for _, joint in limited], dtype=np.int64)
                for key, *_ in LIMIT
            )
            dofs = np.array([start + first for first, _ in limited])
            onset = np.full(dofs.size, self.onset)
            if balls:
                terms.append(BallLimits(dofs, upper, stiffness, damping, onset))
            else:
                terms.append(JointLimits(dofs, lower, upper, stiffness, damping, onset, self.hard_limits))
        return terms

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return the mass of all links, and place and velocity of their centre of mass."""
        total, moment, momentum = 0.0, np.zeros(3), np.zeros(3)
        for link in self.heavy:
            start, prefix = at.rows[f"{self.name}/{link}"].start, f"bodies.{self.name}.links.{link}"
            mass, centre = theta[at.parameters[f"{prefix}.mass"].start], at.parameters[f"{prefix}.centre"].indices
            x, w = kin.q[start : start + 6].reshape(2, 3)
            arm = rotation_matrix(w) @ theta[centre]
            velocity, rate = kin.v[start : start + 6].reshape(2, 3)
            total += mass
            moment += mass * (x + arm)
            momentum += mass * (velocity + np.cross(left_jacobian(w) @ rate, arm))
        share = 1.0 / total if total else 0.0  # all links may stand still
        velocity = share * momentum
        return {
            "mass": float(total),
            "centre": (share * moment).tolist(),
            "velocity": velocity.tolist(),
            "speed": float(np.linalg.norm(velocity)),
        }

    def fingerprint(self) -> list[Any]:
        """Return the kinds and axes of the joints."""
        return [np.array([[joint.kind, joint.parent, joint.pitch, *joint.axis] for joint in self.joints])]
