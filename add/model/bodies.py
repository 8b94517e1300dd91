"""Bodies as values: what they are made of, what is attached to them, what moves them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.signals import SignalParameter
from add.geometry import SoftMesh
from add.materials import NEO_HOOKEAN, Material
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Pin:
    """Nodes whose coordinates along ``axes`` are prescribed: where they start, plus a displacement [m]."""

    nodes: IntArray
    axes: tuple[int, ...] = (0, 1, 2)
    motion: SignalParameter | None = None


@final
@dataclass(frozen=True)
class NodalLoad:
    """A total force [N] shared by nodes."""

    nodes: IntArray
    shares: FloatArray
    force: SignalParameter


@final
@dataclass(frozen=True)
class PointMass:
    """A mass [kg] on weighted nodes; ``parameter`` names it in theta.

    ``axes`` are those along which its inertia acts: all for a mass that is glued on, the vertical for one that hangs
    on a long string. Its weight acts in either case.
    """

    nodes: IntArray
    weights: FloatArray
    parameter: str
    axes: tuple[int, ...] = (0, 1, 2)


@final
@dataclass(frozen=True)
class PointAnchor:
    """A material point held at a given place [m] by a multiplier."""

    nodes: IntArray
    weights: FloatArray
    place: SignalParameter


@final
@dataclass(frozen=True)
class SoftBody:
    """A soft body: its mesh, its law, and what is attached to it. Node numbers are the body's own.

    Attributes
    ----------
    name : str
    mesh : SoftMesh
    law : Material
    mean_dilatation, lumped, viscous : bool
        Against locking; HRZ mass; whether viscosity or stiffness-proportional damping act.
    """

    name: str
    mesh: SoftMesh
    law: Material = NEO_HOOKEAN
    mean_dilatation: bool = False
    lumped: bool = False
    viscous: bool = True
    pins: tuple[Pin, ...] = ()
    loads: tuple[NodalLoad, ...] = ()
    masses: tuple[PointMass, ...] = ()
    anchors: tuple[PointAnchor, ...] = ()


@final
@dataclass(frozen=True)
class ParticleBody:
    """Point masses and springs between them: cloth, nets, ropes, or a single handle that a signal moves.

    Attributes
    ----------
    name : str
    points : (n, 3)
        Rest positions [m].
    shares : (n,)
        Share of each node in the body's mass; they sum to one.
    edges : (ne, 2)
        Nodes that a spring joins; stiffness and damping are one number each, every spring has its own rest length.
    triangles : (nt, 3)
        For drawing.
    massless : bool
        Whether no inertia and no weight act: for handles all of whose nodes are pinned.
    touching : bool
        Whether the nodes meet obstacles.
    """

    name: str
    points: FloatArray
    shares: FloatArray
    edges: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    triangles: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    massless: bool = False
    touching: bool = True
    pins: tuple[Pin, ...] = ()
    loads: tuple[NodalLoad, ...] = ()

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.points.shape[0]


#: Bodies whose coordinates are places of nodes.
NodalBody = SoftBody | ParticleBody


@final
@dataclass(frozen=True)
class CarriedShape:
    """A signed-distance shape fixed to a rigid body; ``kind`` and ``size`` as in `add.kernels.distance`.

    Attributes
    ----------
    rotation, position : (3, 3), (3,)
        Pose of the shape's frame in the body's frame.
    """

    kind: int
    size: tuple[float, float, float]
    rotation: FloatArray
    position: FloatArray


@final
@dataclass(frozen=True)
class RigidBody:
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
    vertices, triangles : for drawing
    """

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
