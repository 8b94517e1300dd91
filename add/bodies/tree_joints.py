"""Joints of trees as a body's description, and the compiled elements that they make."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.bodies.base import Layouts
from add.equations.signals import SignalParameter
from add.kernels.trees import BALL, FIXED, HINGE, SLIDE, Tree
from add.typing import FloatArray, IntArray

_X, _Y, _Z = np.eye(3)


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
        Whether it has limits; of a ball, a highest angle by which it is turned.
    rough : bool
        Whether it has dry friction.
    held : bool
        Whether the dry friction holds: `HeldResistance`.
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
    rough: bool = False
    held: bool = False

    @property
    def n(self) -> int:
        """Number of coordinates of its own."""
        return 0 if self.mimic is not None else WIDTHS[self.kind]


#: A joint with three lengths and a rotation vector, which makes four elements.
FREE = 4
#: Coordinates of the kinds.
WIDTHS = {FIXED: 0, HINGE: 1, SLIDE: 1, BALL: 3, FREE: 6}
#: Numbers of every joint with coordinates, beside its placement, by key: unit of one of an angle, of one of a length.
LAW = (
    ("stiffness", "N m/rad", "N/m"), ("damping", "N m s/rad", "N s/m"), ("dry_friction", "N m", "N"),
    ("slip_speed", "rad/s", "m/s"), ("armature", "kg m^2", "kg"),
)  # fmt: skip
LIMIT = (
    ("lower", "rad", "m"), ("upper", "rad", "m"), ("limit_stiffness", "N m/rad", "N/m"),
    ("limit_damping", "N m s/rad", "N s/m"),
)  # fmt: skip


@final
@dataclass(frozen=True)
class Graft:
    """A frame fixed to the link of a joint, with masses in it: tissue.

    Attributes
    ----------
    path : str
        Its place in the link is ``<path>.position`` and ``<path>.orientation`` of theta.
    joint : int
        That carries the link.
    masses : tuple of str
        Blocks ``<name>.mass``, ``<name>.centre`` and ``<name>.inertia`` in the frame.
    """

    path: str
    joint: int
    masses: tuple[str, ...]


def tree_elements(
    name: str,
    joints: Sequence[TreeJoint],
    first_of: Sequence[int],
    free: bool,
    at: Layouts,
    grafts: Sequence[Graft] = (),
) -> tuple[Tree, IntArray, dict[str, int]]:
    """Return the elements of a tree, the number of the one that carries each link, and of the frame of each graft.

    Parameters
    ----------
    name : of the body
    joints : parents first
    first_of : first coordinate of every joint
    free : whether the first joint moves freely; else the base stands at the body's own position and orientation
    at : Layouts
    grafts : their elements come last
    """
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

    base = f"bodies.{name}"
    place = np.concatenate([at.parameters[f"{base}.{key}"].indices for key in ("position", "orientation")])
    root = -1 if free else add(-1, FIXED, _X, 0.0, place, "")
    carried: list[int] = []
    for first, joint in zip(first_of, joints, strict=True):
        parent = root if joint.parent < 0 else carried[joint.parent]
        if joint.kind == FREE:
            for k, axis in enumerate((_X, _Y, _Z)):
                parent = add(parent, SLIDE, axis, 0.0, none, "")
                columns.append((parent, first + k, 1.0, 0.0, -1))
            parent = add(parent, BALL, _X, 0.0, none, joint.link)
            columns += [(parent, first + 3 + k, 1.0, 0.0, -1) for k in range(3)]
        else:
            prefix = f"{base}.joints.{joint.name}"
            numbers = np.concatenate([at.parameters[f"{prefix}.{key}"].indices for key in ("position", "orientation")])
            parent = add(parent, joint.kind, joint.axis, joint.pitch, numbers, joint.link)
            factor, offset = (1.0, 0.0) if joint.mimic is None else joint.mimic[1:]
            armature = -1
            if joint.kind in (HINGE, SLIDE) and joint.n:
                armature = int(at.parameters[f"{base}.joints.{joint.name}.armature"].start)
            columns += [(parent, first + k, factor, offset, armature) for k in range(WIDTHS[joint.kind])]
        carried.append(parent)
    frames: dict[str, int] = {}
    heavy: dict[int, str] = {}
    for graft in grafts:
        numbers = np.concatenate([at.parameters[f"{graft.path}.{key}"].indices for key in ("position", "orientation")])
        frames[graft.path] = add(carried[graft.joint], FIXED, _X, 0.0, numbers, "")
        heavy |= {add(frames[graft.path], FIXED, _X, 0.0, none, ""): mass for mass in graft.masses}
    n = len(rows)
    mass, centre, inertia = (np.full(shape, -1, dtype=np.int64) for shape in ((n,), (n, 3), (n, 6)))
    by_name = {link: i for i, link in enumerate(links) if link}
    heavy |= {by_name[j.link]: f"{base}.links.{j.link}" for j in joints if j.link and not j.massless}
    for i, prefix in heavy.items():
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
    return tree, np.array([by_name[joint.link] for joint in joints if joint.link], dtype=np.int64), frames
