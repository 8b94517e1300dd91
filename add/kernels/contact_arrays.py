"""The arrays of a term of contact between bodies, one by one and packed for calls from Python."""

from typing import NamedTuple

import numpy as np

from add.kernels.arena import Floats3, Ints2
from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.contact_pairs import Law, Shapes
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER
from add.typing import FloatArray, IntArray

#: Columns of `rims` of a line: slot, number of the size that its half-length is, slenderness, half-length. The last one
#: is -1 of points on a rim whose circle is a line, too.
SLOT, NUMBER, SLENDER, HALF = 6, 7, 8, 9
# Rows of the state of a body, B (nb, 13, 3): R (0-2), x, velocity of x, omega, X_c, J (7-9), d(omega)/dw (10-12).
PLACE, VELOCITY, OMEGA, CENTRE, TURN, TURN_RATE = 3, 4, 5, 6, 7, 10


class Contacts(NamedTuple):
    """The arrays of a term of contact between bodies; np points, ns shapes, nb rigid bodies.

    Attributes
    ----------
    bodies : (nb, 4) int64: first coordinate, or -2 less the number of an obstacle that has points, which stand in the
        world at t = 0; indices in theta of X_c (-1: zero)
    points : (np, 4) int64: first coordinate of the carrier, row of the tables, row of `bodies` (-1: node) and of `rims`
    arms : (np, 9) X in the body's frame [m], radius [m], scale [-] or [m^2], sum of the normals of the faces of the
        body that meet in it, zero where that is not known, and `fall_radius` of its shape [m]
    runs : (nr, 6) int64: points FIRST:STOP of one body; their row of the tables, row of `bodies` or -1, owner, and the
        first of them that is a line
    spheres : (nr, 4) ball around a run in the body's frame, centre and radius [m]; unused for nodes
    kind, size : (ns,), (ns, m) as in `distance.py`; rows of a mesh are long, others are filled up with zeros
    hosts : (ns,) int64: row of `bodies` that carries the shape, -1 for the world
    poses : (ns, 5, 3) rotation (rows 0-2), position (3) [m] in the body's or the world's frame, velocity (4) [m/s]
    bounds : (ns,) radii of balls about the origins of the shapes' frames that hold them [m]
    columns : (ns, 3) int64: column of the tables, owner, whether the body has lines of the shape
    tables : (R, C, 12) int64: indices in theta of k_n, k_d, k_t, c_f; NEVER, ALWAYS or BEHIND; indices of the
        thickness of the layer around shapes, of the numbers of the curve of friction, and of c_t, c_r and w_0, each -1
        for none; whether points and shapes of both meet both ways
    depths : (R, C, 3) onset, ramp [m], reach of the law in thicknesses [-]
    apart : (m,) sorted int64: owner of points * stride + owner of shapes that never meet
    rims : (k, 10) place C on the axis [m], axis and direction of the first point of rims, in the body's frame, and 0;
        of lines (`contact_lines.py`) the middle, the direction, and what stands there
    stride : int
    """

    bodies: IntArray
    points: IntArray
    arms: FloatArray
    runs: IntArray
    spheres: FloatArray
    kind: IntArray
    size: FloatArray
    hosts: IntArray
    poses: FloatArray
    bounds: FloatArray
    columns: IntArray
    tables: IntArray
    depths: FloatArray
    apart: IntArray
    rims: FloatArray
    stride: int


def nothing() -> Contacts:
    """Return the arrays of a term without points and shapes."""
    ints = [np.zeros(shape, dtype=np.int64) for shape in ((0, 4), (0, 4), (0, 6), 0, 0, (0, 3), (0, 0, 12), 0)]
    bodies, points, runs, kind, hosts, columns, tables, apart = ints
    floats = [np.zeros(shape) for shape in ((0, 9), (0, 4), (0, 3), (0, 5, 3), 0, (0, 0, 3), (0, 10))]
    arms, spheres, size, poses, bounds, depths, rims = floats
    return Contacts(
        bodies, points, arms, runs, spheres, kind, size, hosts, poses, bounds, columns, tables, depths, apart, rims, 1
    )


class Frames(NamedTuple):
    """States B (nb, 13, 3) of the bodies, coefficients k (nb, 6) of their rotations, and the shapes."""

    B: FloatArray
    k: FloatArray
    shapes: Shapes


@njit(cache=True, error_model="numpy", inline="always")
def relative(a, o, frames):
    """Return the rows of the rotation from the frame of body a to that of shape o, and where its centre of mass is."""
    B, R, p = frames.B[a], frames.shapes.R[o], frames.shapes.p[o]
    x0, x1, x2 = B[PLACE, 0] - p[0], B[PLACE, 1] - p[1], B[PLACE, 2] - p[2]
    return (
        (_along(R, B, 0, 0), _along(R, B, 0, 1), _along(R, B, 0, 2)),
        (_along(R, B, 1, 0), _along(R, B, 1, 1), _along(R, B, 1, 2)),
        (_along(R, B, 2, 0), _along(R, B, 2, 1), _along(R, B, 2, 2)),
        (
            R[0, 0] * x0 + R[1, 0] * x1 + R[2, 0] * x2,
            R[0, 1] * x0 + R[1, 1] * x1 + R[2, 1] * x2,
            R[0, 2] * x0 + R[1, 2] * x1 + R[2, 2] * x2,
        ),
    )


@njit(cache=True, error_model="numpy", inline="always")
def _along(R, B, r, c):
    return R[0, r] * B[0, c] + R[1, r] * B[1, c] + R[2, r] * B[2, c]


@njit(cache=True, error_model="numpy", inline="always")
def seen(Q, X0, X1, X2):
    """Return a direction of the body as the frame of the shape has it; Q as `relative` returns it."""
    return (
        Q[0][0] * X0 + Q[0][1] * X1 + Q[0][2] * X2,
        Q[1][0] * X0 + Q[1][1] * X1 + Q[1][2] * X2,
        Q[2][0] * X0 + Q[2][1] * X1 + Q[2][2] * X2,
    )


class Growth(NamedTuple):
    """How points and shapes follow sizes that stand in theta; all empty where none do.

    Attributes
    ----------
    points : (np, 3) int64
        Indices in theta of the sizes of the shape that each point is of; -1 for none.
    arms : (np, 3, 4)
        Derivatives of X and of the radius by these [-].
    shapes : (ns, 3) int64
        Indices in theta of the sizes of each shape, in the order of `distance.py`; -1 for none.
    """

    points: Ints2
    arms: Floats3
    shapes: Ints2


def no_growth() -> Growth:
    """Return the `Growth` of sizes that are no numbers."""
    return Growth(np.empty((0, 3), dtype=np.int64), np.empty((0, 3, 4)), np.empty((0, 3), dtype=np.int64))


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

    def entries(self) -> IntArray:
        """Return the indices in theta of all sizes, each once."""
        indices = np.concatenate([self.growth.points.ravel(), self.growth.shapes.ravel()])
        return np.unique(indices[indices >= 0])

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


class Packed(NamedTuple):
    """The arrays of `Contacts` one behind the other, for calls from Python, whose cost goes with their number.

    ``places`` (15, 4) has, for each field but the last, where it begins in ``ints`` or ``floats``, and its shape.
    """

    ints: IntArray
    floats: FloatArray
    places: IntArray


def packed(contacts: Contacts, law: Law) -> Packed:
    """Return the arrays of `Contacts` as one of integers and one of floats; stride and law behind the integers."""
    parts: dict[str, list[np.ndarray]] = {"i": [np.zeros(0, dtype=np.int64)], "f": [np.zeros(0)]}
    places = np.zeros((len(contacts) - 1, 4), dtype=np.int64)
    for k, array in enumerate(contacts[:-1]):
        store = parts[array.dtype.kind]
        places[k, 0] = sum(part.size for part in store)
        places[k, 1 : 1 + array.ndim] = array.shape
        store.append(array.ravel())
    ints = np.concatenate([*parts["i"], [contacts.stride, *law]]).astype(np.int64)
    return Packed(ints, np.concatenate(parts["f"]), places)


@njit(cache=True, inline="always")
def _one(flat, place):
    return borrowed(flat, place[0], (place[1],))


@njit(cache=True, inline="always")
def _two(flat, place):
    return borrowed(flat, place[0], (place[1], place[2]))


@njit(cache=True, inline="always")
def _three(flat, place):
    return borrowed(flat, place[0], (place[1], place[2], place[3]))


@njit(cache=True)
def unpacked(ints, floats, places):
    """Return the `Contacts` of a `Packed`: views of its arrays, which must outlive them."""
    return Contacts(
        _two(ints, places[0]),
        _two(ints, places[1]),
        _two(floats, places[2]),
        _two(ints, places[3]),
        _two(floats, places[4]),
        _one(ints, places[5]),
        _two(floats, places[6]),
        _one(ints, places[7]),
        _three(floats, places[8]),
        _one(floats, places[9]),
        _two(ints, places[10]),
        _three(ints, places[11]),
        _three(floats, places[12]),
        _one(ints, places[13]),
        _two(floats, places[14]),
        ints[ints.size - 5],
    )


@njit(cache=True)
def unpacked_law(ints):
    """Return the `Law` of a `Packed`."""
    n = ints.size
    return Law(ints[n - 4], ints[n - 3], ints[n - 2], ints[n - 1])


class Motion(NamedTuple):
    """Time [s], coordinates, their rates and the parameters."""

    t: float
    q: FloatArray
    v: FloatArray
    theta: FloatArray
