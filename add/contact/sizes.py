"""Points, lines and shapes of contact that follow sizes in theta."""

from typing import NamedTuple

import numpy as np

from add.kernels.contact_arrays import Growth
from add.kernels.contact_circles import HALF, NUMBER
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER
from add.typing import FloatArray, IntArray


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

    def lines(self, rim: IntArray, rims: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the rims (m, 10) with the half-lengths of lines; ``rim`` (n_points,) are their rows."""
        out, points = rims.copy(), np.flatnonzero(rim >= 0)
        points = points[rims[rim[points], HALF] > 0.0]
        index = self.growth.points[points, rims[rim[points], NUMBER].astype(np.int64)]
        out[rim[points[index >= 0]], HALF] = theta[index[index >= 0]]
        return out

    def shapes(self, size: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the numbers of shapes (n_shapes, m), ``size`` where theta has none [m]."""
        out, index = size.copy(), self.growth.shapes
        out[:, :3] = np.where(index >= 0, theta[index], size[:, :3])
        return out


def point_growth(
    kind: int,
    size: tuple[float, float, float],
    rotation: FloatArray,
    position: FloatArray,
    arms: FloatArray,
    radii: FloatArray,
) -> FloatArray:
    """Return the derivatives (n, 3, 4) of points of a shape, and of their radius, by its sizes.

    Parameters
    ----------
    kind, size, rotation, position : of the shape, in the body's frame
    arms, radii : (n, 3), (n,) its points, in the body's frame, and of the spheres around them [m]
    """
    local = (arms - position) @ rotation
    out = np.zeros((arms.shape[0], 3, 4))
    out[:, 0, 3] = radii > 0.0
    axes: tuple[IntArray, ...] = tuple(np.arange(3)[:0] for _ in range(3))
    if kind == BOX:
        axes = tuple(np.array([c]) for c in range(3))
    elif kind == CYLINDER:
        axes = np.array([0, 1]), np.array([2]), axes[2]
    elif kind == CAPSULE:
        axes = axes[0], np.array([2]), axes[2]
    for c, moved in enumerate(axes):
        out[:, c, :3] = local[:, moved] / size[c] @ rotation[:, moved].T if moved.size else 0.0
    return out
