"""Coefficients between a body and a shape: friction law, stiffnesses, coefficients."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, final

import numpy as np

from add.kernels.contact_arrays import Growth
from add.kernels.contact_laws import FAR
from add.kernels.distance import BOX, CAPSULE, CYLINDER, SPHERE
from add.typing import BoolArray, FloatArray, IntArray


class FrictionLaw(IntEnum):
    """Friction against the relative tangential velocity."""

    NONE = 0
    LINEAR = 1
    TANH = 2
    #: The linear law, then equations that hold what sticks in it.
    HYBRID = 3

    @property
    def kernel(self) -> int:
        """The law of what is not held."""
        return int(FrictionLaw.LINEAR if self is FrictionLaw.HYBRID else self)


class NormalLaw(IntEnum):
    """Laws of the normal force; equations stand in `add.kernels.contact_laws`."""

    #: Grows with the depth: linearly, after an onset.
    PENALTY = 0
    #: The penalty in a layer, with a barrier from half its thickness on.
    PENALTY_WALL = 1
    #: The penalty without a kink, its force set in over some thicknesses.
    SOFT_MAX = 2
    #: A barrier in a layer.
    LOG_BARRIER = 3

    @property
    def code(self) -> int:
        """Code of the law in the kernels."""
        return int(self)

    @property
    def has_layer(self) -> bool:
        """Whether points feel shapes before they touch them."""
        return self is not NormalLaw.PENALTY

    @property
    def reach(self) -> float:
        """The gap at which points begin to feel a shape, in thicknesses of its layer."""
        return {NormalLaw.PENALTY: 0.0, NormalLaw.SOFT_MAX: FAR}.get(self, 1.0)

    @property
    def is_infinite(self) -> bool:
        """Whether surfaces never touch."""
        return self in (NormalLaw.PENALTY_WALL, NormalLaw.LOG_BARRIER)


@final
@dataclass(frozen=True)
class PairParameters:
    """Coefficients between a group of points (row) and a group of shapes (column): the tables of contact classes.

    Attributes
    ----------
    k_n, k_d, k_t, c_f : (R, C)
        Indices in theta: stiffness [N/m, or N/m^3 per area], damping [N s/m], stick stiffness [N s/m], friction [-].
    onset : (R, C)
        Depth over which the stiffness grows from zero [m]; 0 is the paper's kink.
    ramp : (R, C)
        Depth over which the damping grows [m]; 0 is the paper's jump.
    enabled : (R, C) bool or int
        Whether they meet: 0 never, 1 always, 2 only where the body of the points comes behind that of the shape.
    thickness : (R, C), or None: the penalty has no layer
        Indices in theta of the thickness of the layer around shapes [m].
    further : (R, C, 2), or None: the coefficient of friction is c_f
        Indices in theta of the numbers of its curve.
    couples : (R, C, 3), or None: nothing brakes the spin
        Indices in theta of torsional and rolling friction [m] and of the rate at which they set in [rad/s]; -1 for
        groups of nodes.
    """

    k_n: IntArray
    k_d: IntArray
    k_t: IntArray
    c_f: IntArray
    onset: FloatArray
    ramp: FloatArray
    enabled: BoolArray | IntArray
    thickness: IntArray | None = None
    further: IntArray | None = None
    couples: IntArray | None = None

    def tables(self) -> IntArray:
        """Return (R, C, 11) what kernels read of a pair: see `add.kernels.contact_arrays.Contacts`."""
        none = np.full((*self.k_n.shape, 3), -1)
        layers = none[..., 0] if self.thickness is None else self.thickness
        parts = (
            np.stack([self.k_n, self.k_d, self.k_t, self.c_f, self.enabled, layers], axis=2),
            none[..., :2] if self.further is None else self.further,
            none if self.couples is None else self.couples,
        )
        return np.ascontiguousarray(np.concatenate(parts, axis=2), dtype=np.int64)

    def depths(self, reach: float) -> FloatArray:
        """Return (R, C, 3) onset, ramp and the reach of the law, as kernels read them."""
        parts = [self.onset, self.ramp, np.full(self.k_n.shape, reach)]
        return np.ascontiguousarray(np.stack(parts, axis=2), dtype=float)

    def stiffnesses(self) -> IntArray:
        """Return the indices in theta of k_n, k_d and k_t of all groups that may touch."""
        tables = (self.k_n, self.k_d, self.k_t)
        return np.unique(np.concatenate([table[self.enabled != 0] for table in tables])).astype(np.int64)


class Sizes(NamedTuple):
    """Points and shapes of a contact term as linear functions of sizes in theta.

    Attributes
    ----------
    growth : Growth
    base : (n_points, 4)
        Place and radius of each point but for what sizes do [m].
    """

    growth: Growth
    base: FloatArray

    def points(self, theta: FloatArray) -> FloatArray:
        """Return place and radius of the points (n_points, 4) [m]."""
        index = self.growth.points
        return self.base + np.einsum("pc,pca->pa", np.where(index >= 0, theta[index], 0.0), self.growth.arms)

    def shapes(self, size: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the numbers of shapes (n_shapes, m), ``size`` where theta has none [m]."""
        out, index = size.copy(), self.growth.shapes
        out[:, :3] = np.where(index >= 0, theta[index], size[:, :3])
        return out


def point_growth(
    kind: int, size: tuple[float, float, float], rotation: FloatArray, position: FloatArray, arms: FloatArray
) -> FloatArray:
    """Return the derivatives (n, 3, 4) of points of a shape, and of their radius, by its sizes.

    Parameters
    ----------
    kind, size, rotation, position : of the shape, in the body's frame
    arms : (n, 3) its points, in the body's frame [m]
    """
    own = (arms - position) @ rotation
    out = np.zeros((arms.shape[0], 3, 4))
    if kind in (SPHERE, CAPSULE):
        out[:, 0, 3] = 1.0
    axes: tuple[IntArray, ...] = tuple(np.arange(3)[:0] for _ in range(3))
    if kind == BOX:
        axes = tuple(np.array([c]) for c in range(3))
    elif kind == CYLINDER:
        axes = np.array([0, 1]), np.array([2]), axes[2]
    elif kind == CAPSULE:
        axes = axes[0], np.array([2]), axes[2]
    for c, moved in enumerate(axes):
        out[:, c, :3] = own[:, moved] / size[c] @ rotation[:, moved].T if moved.size else 0.0
    return out
