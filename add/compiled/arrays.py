"""The arrays of the force families of a small system. A family that a scene has none of is empty."""

from typing import NamedTuple

from add.kernels.trees import Tree
from add.typing import FloatArray, IntArray


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

#: The class of each family, in the order of their packed arrays.
KINDS = (Layout, Rigid, Nodal, Weight, Loads, Joints, BodyPairs, NodePairs, Links, Tree, Axes)


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
