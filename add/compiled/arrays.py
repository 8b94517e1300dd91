"""The arrays of all force families of a small system, one by one and packed for calls from Python.

A compiled step takes three arrays whatever the scene: one of integers, one of floats, one of places. It is compiled
once, for all scenes; a family that a scene has none of is empty.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from add.kernels.borrowed import borrowed
from add.kernels.caching import njit
from add.kernels.trees import Tree
from add.typing import AnyArray, FloatArray, IntArray


class Layout(NamedTuple):
    """Coordinates of the system.

    Attributes
    ----------
    free, prescribed : coordinates, sorted
    rotations : first coordinates of the rotation vectors that change chart
    size : (1,) number of coordinates n
    """

    free: IntArray
    prescribed: IntArray
    rotations: IntArray
    size: IntArray


class Rigid(NamedTuple):
    """Inertia of rigid bodies, as in `add.terms.rigid_inertia`; ``places`` in the matrix, as in all families."""

    start: IntArray
    mass: IntArray
    inertia: IntArray
    places: IntArray


class Nodal(NamedTuple):
    """Inertia of nodes, as in `add.terms.inertia`."""

    rows: IntArray
    cols: IntArray
    mass: FloatArray
    density: IntArray
    damping: IntArray
    places: IntArray


class Weight(NamedTuple):
    """Gravity, as in `add.terms.gravity`."""

    nodes: IntArray
    mass: FloatArray
    density: IntArray
    gravity: IntArray


class Loads(NamedTuple):
    """Loads on nodes that follow signals, as in `add.terms.nodal_force`, and moves of prescribed coordinates.

    Attributes
    ----------
    table : (k, 6) int64
        Of each load or move: first and last of its nodes (or coordinates), where its rows begin, number of its signal,
        1 for a move, -
    nodes : nodes of loads; coordinates of moves
    shares : of loads
    axes : of moves
    rows : (n_rows, 3) of each, one behind the other
    """

    table: IntArray
    nodes: IntArray
    shares: FloatArray
    axes: IntArray
    rows: IntArray


class Joints(NamedTuple):
    """Families of joint laws, as in `add.joints.law_term`, one behind the other.

    Attributes
    ----------
    table : (k, 13) int64, a row a family
        Columns LAW to CODES below.
    kind, dofs, shares, places_of : of the sites; see `add.equations.sites.Sites`
    numbers, rows : of the laws' numbers; see `add.equations.sites.LawValues`
    places : in the matrix
    """

    table: IntArray
    kind: IntArray
    dofs: IntArray
    shares: FloatArray
    places_of: IntArray
    numbers: IntArray
    rows: IntArray
    places: IntArray


#: Columns of `Joints.table`: code of the law, number of interactions, sites of one, columns of dofs, columns of index,
#: columns that follow a signal; where sites, dofs, index, rows and places begin; number of the signal; where the codes
#: of its decisions begin, -1 for a law without branches.
LAW, COUNT, ARITY, WIDTH, N_INDEX, N_SIGNAL, SITES, DOFS, INDEX, ROWS, PLACES, SIGNAL, CODES = range(13)


class BodyPairs(NamedTuple):
    """Contact between bodies: a `add.kernels.contact_arrays.Packed`, and the places of its blocks in the matrix.

    Attributes
    ----------
    ints, floats, fields : of the packed arrays; empty for none
    own, keys, first : of `add.kernels.contact_bodies_jacobian.Slots`; ``first`` (1,)
    places : of the entries of all blocks
    """

    ints: IntArray
    floats: FloatArray
    fields: IntArray
    own: IntArray
    keys: IntArray
    first: IntArray
    places: IntArray


class NodePairs(NamedTuple):
    """Contact of nodes with shapes of the world, as in `add.contact.penalty_nodes`."""

    nodes: IntArray
    scale: FloatArray
    group: IntArray
    kind: IntArray
    size: FloatArray
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray
    column: IntArray
    enabled: IntArray
    tables: IntArray
    depths: FloatArray
    law: IntArray
    places: IntArray


class Links(NamedTuple):
    """Rows X of the links of trees, behind those of bodies whose coordinates are rows; see `add.equations.lift`.

    Attributes
    ----------
    sizes : (2,) number of rows of X, and of the first ones that are coordinates; empty without trees
    element : (n_l,) the element of each link
    touched : (k,) rows of X that force families depend on, those that are coordinates first
    trees : (n_t + 1,) first own coordinate of each tree, and the end
    """

    sizes: IntArray
    element: IntArray
    touched: IntArray
    trees: IntArray


class Axes(NamedTuple):
    """Laws of single coordinates and of balls, as in `add.terms.joint_laws` and `add.terms.joint_drives`.

    Attributes
    ----------
    table : (k, 7) int64, a row a term
        Columns AXIS_LAW to AXIS_INPUTS below.
    dof : coordinates, of balls the first
    numbers : indices in theta, term after term, coordinate after coordinate
    constants : of each coordinate
    inputs : indices in theta of the coefficients of signals
    """

    table: IntArray
    dof: IntArray
    numbers: IntArray
    constants: FloatArray
    inputs: IntArray


#: Columns of `Axes.table`: code of the law; first coordinate in ``dof``, how many; numbers of each, where they begin;
#: number of the signal, -1 for none; where its coefficients begin.
AXIS_LAW, AXIS_FIRST, AXIS_COUNT, AXIS_WIDTH, AXIS_NUMBERS, AXIS_SIGNAL, AXIS_INPUTS = range(7)
#: The code of `add.terms.joint_laws.BallLaws`, behind those of `add.kernels.joint_laws`.
BALLS = 4


class Families(NamedTuple):
    """All families of a system."""

    layout: Layout
    rigid: Rigid
    nodal: Nodal
    weight: Weight
    loads: Loads
    joints: Joints
    bodies: BodyPairs
    nodes: NodePairs
    links: Links
    tree: Tree
    axes: Axes


#: Of each field of the families, in their order: dimensions, and whether it holds floats.
SHAPES: dict[type, tuple[tuple[int, bool], ...]] = {
    Layout: ((1, False), (1, False), (1, False), (1, False)),
    Rigid: ((1, False), (1, False), (2, False), (1, False)),
    Nodal: ((1, False), (1, False), (2, True), (1, False), (1, False), (1, False)),
    Weight: ((1, False), (1, True), (1, False), (1, False)),
    Loads: ((2, False), (1, False), (1, True), (1, False), (2, False)),
    Joints: ((2, False), (1, False), (1, False), (1, True), (2, False), (1, False), (1, False), (1, False)),
    BodyPairs: ((1, False), (1, True), (2, False), (1, False), (1, False), (1, False), (1, False)),
    NodePairs: (
        (1, False), (1, True), (1, False), (1, False), (2, True), (3, True), (2, True), (2, True), (1, False),
        (2, False), (3, False), (3, True), (1, False), (1, False),
    ),
    Links: ((1, False), (1, False), (1, False), (1, False)),
    Tree: (
        (1, False), (1, False), (1, False), (2, True), (1, True), (1, False), (1, False), (1, True), (1, True),
        (2, False), (1, False), (2, False), (2, False), (1, False), (1, False),
    ),
    Axes: ((2, False), (1, False), (1, False), (1, True), (1, False)),
}  # fmt: skip

#: The class of each family, in the order of `Families`.
KINDS = (Layout, Rigid, Nodal, Weight, Loads, Joints, BodyPairs, NodePairs, Links, Tree, Axes)


class PackedFamilies(NamedTuple):
    """`Families` as three arrays: the place and shape of every field are a row of ``places`` (k, 4)."""

    ints: IntArray
    floats: FloatArray
    places: IntArray


def empty(kind: type) -> tuple[AnyArray, ...]:
    """Return the arrays of a family that a system has none of."""
    return tuple(np.zeros((0,) * n, dtype=float if floats else np.int64) for n, floats in SHAPES[kind])


def packed(families: Iterable[Iterable[AnyArray]]) -> PackedFamilies:
    """Return the arrays of all families, in the order of `KINDS`, one behind the other."""
    ints, floats, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], []
    sizes = [0, 0]
    for kind, family in zip(KINDS, families, strict=True):
        for (n, is_float), array in zip(SHAPES[kind], family, strict=True):
            values = np.ascontiguousarray(array, dtype=float if is_float else np.int64)
            if values.ndim != n:
                raise ValueError(f"{kind.__name__}: an array of {values.ndim} dimensions, not {n}")
            places.append([sizes[is_float], *values.shape, *[0] * (3 - n)])
            (floats if is_float else ints).append(values.ravel())
            sizes[is_float] += values.size
    return PackedFamilies(np.concatenate(ints), np.concatenate(floats), np.array(places, dtype=np.int64))


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
def unpacked(i, f, p):
    """Return the `Families` of a `PackedFamilies`: views of its arrays, which must outlive them."""
    return Families(
        Layout(_one(i, p[0]), _one(i, p[1]), _one(i, p[2]), _one(i, p[3])),
        Rigid(_one(i, p[4]), _one(i, p[5]), _two(i, p[6]), _one(i, p[7])),
        Nodal(_one(i, p[8]), _one(i, p[9]), _two(f, p[10]), _one(i, p[11]), _one(i, p[12]), _one(i, p[13])),
        Weight(_one(i, p[14]), _one(f, p[15]), _one(i, p[16]), _one(i, p[17])),
        Loads(_two(i, p[18]), _one(i, p[19]), _one(f, p[20]), _one(i, p[21]), _two(i, p[22])),
        Joints(
            _two(i, p[23]), _one(i, p[24]), _one(i, p[25]), _one(f, p[26]),
            _two(i, p[27]), _one(i, p[28]), _one(i, p[29]), _one(i, p[30]),
        ),
        BodyPairs(
            _one(i, p[31]), _one(f, p[32]), _two(i, p[33]), _one(i, p[34]),
            _one(i, p[35]), _one(i, p[36]), _one(i, p[37]),
        ),
        NodePairs(
            _one(i, p[38]), _one(f, p[39]), _one(i, p[40]), _one(i, p[41]), _two(f, p[42]), _three(f, p[43]),
            _two(f, p[44]), _two(f, p[45]), _one(i, p[46]), _two(i, p[47]), _three(i, p[48]), _three(f, p[49]),
            _one(i, p[50]), _one(i, p[51]),
        ),
        Links(_one(i, p[52]), _one(i, p[53]), _one(i, p[54]), _one(i, p[55])),
        Tree(
            _one(i, p[56]), _one(i, p[57]), _one(i, p[58]), _two(f, p[59]), _one(f, p[60]), _one(i, p[61]),
            _one(i, p[62]), _one(f, p[63]), _one(f, p[64]), _two(i, p[65]), _one(i, p[66]), _two(i, p[67]),
            _two(i, p[68]), _one(i, p[69]), _one(i, p[70]),
        ),
        Axes(_two(i, p[71]), _one(i, p[72]), _one(i, p[73]), _one(f, p[74]), _one(i, p[75])),
    )  # fmt: skip


class Signals(NamedTuple):
    """The signals at one instant: windows of their weights, one behind the other.

    Attributes
    ----------
    weights : of all signals
    table : (k, 3) int64, a row a signal
        First row that acts, where its weights begin, how many there are.
    """

    weights: FloatArray
    table: IntArray


class Instant(NamedTuple):
    """A state of motion, the parameters, and the signals then.

    Attributes
    ----------
    t : float
        Time [s].
    q, v, a : (n,)
    theta : (n_theta,)
    signals : Signals
    """

    t: float
    q: FloatArray
    v: FloatArray
    a: FloatArray
    theta: FloatArray
    signals: Signals
