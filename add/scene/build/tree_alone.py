"""A tree with its numbers, before there is a model: the pose in which its loops are closed, and that of its links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.bodies import Layouts, TreeBody
from add.bodies.tree_parts import joint_couplings, link_loops
from add.equations.assembly import Assembly
from add.equations.initial import InitialState
from add.equations.layout import DofLayout, ParameterLayout
from add.equations.lift import Lift
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.term import Constraint
from add.equations.tree_embedding import TreeEmbedding
from add.errors import InputError, naming
from add.kernels.joint_laws import ALONG, APART
from add.kernels.rotation import rotation_matrix
from add.scene.build.ties import SceneParameter
from add.ties.rules import Rule
from add.typing import FloatArray, IntArray


def alone(tree: TreeBody, numbers: Sequence[SceneParameter]) -> tuple[ParameterLayout, FloatArray]:
    """Return the numbers of a tree and their values, before there is a model."""
    whole = ParameterLayout([*tree.parameters(), ("gravity", (3,), "m/s^2")])
    theta = np.zeros(whole.n)
    for number in numbers:
        for target, factor in number.targets:
            name, _, row = target.partition("#")
            if name in whole:
                whole.view(theta, name)[int(row) if row else ...] = factor * number.value
    return whole, theta


@final
class TreeAlone:
    """A tree with its numbers, before there is a model: the pose in which its loops are closed, and their rows."""

    def __init__(self, tree: TreeBody, numbers: Sequence[SceneParameter], kept: IntArray | None = None) -> None:
        n, (whole, self.theta) = tree.coordinates()[0], alone(tree, numbers)
        self.whole = whole
        self.tree = tree
        dofs = DofLayout([(tree.name, (n,), "")])
        rows = DofLayout([(f"{tree.name}/{link}", (2, 3), "m") for link in tree.links])
        at = Layouts(dofs, rows, whole)
        self.places, self.rows = TreeEmbedding(*tree.tree(at), n), rows
        lift = Lift(dofs, rows, (self.places,))
        self.n, self.dofs = n, tree.first
        every = np.arange(sum(len(loop.rows) for loop in tree.loops)) if kept is None else kept
        self.loops: list[Constraint] = []
        if every.size:
            self.loops.append(LiftedConstraint(link_loops(tree.name, tree.loops, every, at), lift))
        self.couplings = joint_couplings(tree.couplings, tree.first, at)
        self.initial = InitialState(n, (tree.pose(at),))
        held = [first for first, joint in zip(tree.first, tree.joints, strict=True) if joint.motion is not None]
        self.held = np.array(held, dtype=np.int64)
        self.free = np.setdiff1d(np.arange(n), self.held)

    def assembly(self) -> Assembly:
        """Return the move of a start onto all its loops and equations between joints."""
        return Assembly((*self.couplings, *self.loops), self.n, self.held)

    def closed(self) -> FloatArray:
        """Return the coordinates (n,) nearest to the start, by first order, in which all loops are closed.

        Raises
        ------
        InputError
            If loops do not close, or a loop between frames that are to coincide does by a half or a third of a turn.
        """
        with naming(f"bodies.{self.tree.name}.loops"):
            q = self.assembly().closed(self.theta, self.initial.given(self.theta)[0])
        at = self.places.place(q, self.theta)[0]
        for loop in self.tree.loops:
            one, two = (at[self.rows[f"{self.tree.name}/{end}"].slice][3:] for end in (loop.a, loop.b))
            whole = sum(row.kind == ALONG for row in loop.rows) == 3
            if whole and np.trace(rotation_matrix(one).T @ rotation_matrix(two)) < 1.0:
                raise InputError(
                    "the loop closes near its start with its frames turned against each other",
                    place=loop.path,
                    expected="starts of joints in which they are less than a quarter of a turn apart",
                )
        return q

    def matrices(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of the equations between joints, and of the loops' rows, by free coordinates."""
        parts = []
        for constraints in (self.couplings, self.loops):
            assembly = Assembly(tuple(constraints), self.n, self.held)
            parts.append(assembly.rows_by_coordinates(q, self.theta)[:, self.free])
        return parts[0], parts[1]


# --- The pose of a link in the closed start, as a rule ---------------------------------------------------------------


def loop_blocks(tree: TreeBody) -> list[str]:
    """Return the blocks of theta that the closed pose reads beside placements and starts of joints."""
    lengths = [f"{loop.path}.length" for loop in tree.loops if loop.rows[0].kind == APART]
    return lengths + [f"{item.path}.coefficients" for item in tree.couplings]


@final
@dataclass(frozen=True, eq=False)
class ClosedPose:
    """The coordinates in which a tree with loops starts, argmin |q - q_given| with all loops closed.

    Attributes
    ----------
    assembly : Assembly
        Of the tree alone.
    initial : InitialState
        q_given.
    places : TreeEmbedding
        Of all links.
    theta : (n_theta,) of the tree alone
    index : (k,) places in it of the rule's arguments
    """

    assembly: Assembly
    initial: InitialState
    places: TreeEmbedding
    theta: FloatArray
    index: IntArray

    @classmethod
    def of(cls, tree: TreeBody, numbers: Sequence[SceneParameter], names: Sequence[str]) -> "ClosedPose":
        """Return the closed pose as a function of blocks of theta by their names."""
        own = TreeAlone(tree, numbers, tree.kept_rows)
        index = np.concatenate([own.whole[name].indices.ravel() for name in names])
        return cls(own.assembly(), own.initial, own.places, own.theta, index)

    def given(self, x: FloatArray) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        """Return theta at the arguments, and coordinates and rates as they are given; rates do not count."""
        theta = self.theta.copy()
        theta[self.index] = x
        q = self.initial.given(theta)[0]
        return theta, (q, np.zeros_like(q))


@final
@dataclass(frozen=True, eq=False)
class ClosedLinkPose(Rule):
    """Numbers of a tree with loops -> origin [m] and rotation vector [rad] of the frame of a link where loops close.

    The slopes are those of x(q(theta), theta), q by the equations of `Assembly`: dx/dtheta + P dq/dtheta.

    Attributes
    ----------
    closing : ClosedPose
    link : int
        Its number among the tree's.
    """

    closing: ClosedPose
    link: int

    def value(self, x: FloatArray) -> FloatArray:
        """Return the poses."""
        out, embedding = np.empty((x.shape[0], 6)), self._embedding
        for row, pose in zip(x, out, strict=True):
            theta, start = self.closing.given(row)
            pose[:] = embedding.place(self.closing.assembly.solve(theta, *start)[0], theta)[0]
        return out

    def derivative(self, x: FloatArray) -> FloatArray:
        """Return the slopes by all arguments."""
        out, embedding, closing = np.empty((x.shape[0], 6, x.shape[1])), self._embedding, self.closing
        for row, slopes in zip(x, out, strict=True):
            theta, start = closing.given(row)
            q = closing.assembly.solve(theta, *start)[0]
            by_theta = np.zeros((6, theta.size))
            direct, _ = embedding.by_parameters(q, np.zeros_like(q), theta)
            np.add.at(by_theta.T, embedding.parameters, direct.T)
            for bar, by_q in zip(by_theta, embedding.place(q, theta)[1], strict=True):
                none = np.zeros_like(q)
                q_bar, v_bar = closing.assembly.vjp(theta, start, (by_q, none), bar)
                closing.initial.vjp(theta, q_bar, v_bar, bar)
            slopes[:] = by_theta[:, closing.index]
        return out

    @property
    def _embedding(self) -> TreeEmbedding:
        places = self.closing.places
        return TreeEmbedding(places.tree, places.links[[self.link]], places.n)
