"""The trees of a system, and the laws of their coordinates, as the arrays of a compiled step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from add.compiled.arrays import BALLS, Axes, Links
from add.compiled.reasons import NotCompiled
from add.equations.lift import Lift
from add.equations.signals import Signal
from add.equations.term import Term
from add.equations.tree_embedding import TreeEmbedding
from add.kernels.joint_laws import DRIVE
from add.kernels.trees import Tree
from add.terms.joint_drives import JointDrive
from add.terms.joint_laws import AxisLaw, BallLaws, JointLimits, JointResistance, JointSprings
from add.terms.tree_inertia import TreeInertia
from add.typing import AnyArray, IntArray

#: The terms of trees that compiled steps know.
TREE_TERMS: tuple[type, ...] = (TreeInertia, JointSprings, JointResistance, JointLimits, BallLaws, JointDrive)

#: Up to so many rows of X: the matrix over them is a full one.
MOST_ROWS = 600


def pack_trees(
    terms: Sequence[Term], lift: Lift | None, n: int, touched: IntArray, number_of: Callable[[Signal], int]
) -> dict[type, tuple[AnyArray, ...]]:
    """Return the arrays of `Links`, `Tree` and `Axes`.

    Parameters
    ----------
    terms : those of trees
    lift : of the force families; None if there are none
    n : number of coordinates
    touched : rows of X that force families depend on, increasing
    number_of : takes a signal and returns its number

    Raises
    ------
    NotCompiled
        If other bodies than trees have coordinates of their own, or there are too many rows.
    """
    trees = sorted((term for term in terms if isinstance(term, TreeInertia)), key=lambda term: term.start)
    same = trees[0].start
    starts = np.array([*(term.start - same for term in trees), n - same], dtype=np.int64)
    elements = np.cumsum([0, *(term.tree.parent.size for term in trees)])
    links, rows = np.zeros(0, dtype=np.int64), same
    if lift is not None:
        embedded = lift.embeddings
        if len(embedded) != len(trees) or not all(isinstance(one, TreeEmbedding) for one in embedded):
            raise NotCompiled("a body in coordinates of its own that is no tree")
        parts = [
            one.links + e for one, e in zip(embedded, elements[:-1], strict=True) if isinstance(one, TreeEmbedding)
        ]
        links, rows = np.concatenate(parts), lift.rows.n
    if rows > MOST_ROWS:
        raise NotCompiled(f"{rows} rows of links and bodies, more than {MOST_ROWS}")
    return {
        Links: (np.array([rows, same]), links, touched, starts),
        Tree: _joined(trees, same, elements),
        Axes: _axes(terms, number_of),
    }


def _joined(terms: Sequence[TreeInertia], same: int, elements: IntArray) -> tuple[AnyArray, ...]:
    """Return the fields of one `Tree` that holds all."""
    trees = [term.tree for term in terms]
    columns = np.cumsum([0, *(tree.element.size for tree in trees)])
    moved = []
    for term, first, column in zip(terms, elements[:-1], columns[:-1], strict=True):
        tree = term.tree
        moved.append(
            tree._replace(
                parent=np.where(tree.parent >= 0, tree.parent + first, -1),
                first=tree.first + column,
                element=tree.element + first,
                coordinate=tree.coordinate + term.start - same,
            )
        )
    joined = [np.concatenate(parts) for parts in zip(*moved, strict=True)]
    return (*joined[:-1], trees[0].gravity)


def _axes(terms: Sequence[Term], number_of: Callable[[Signal], int]) -> tuple[AnyArray, ...]:
    """Return the fields of `Axes`."""
    none = np.zeros(0, dtype=np.int64)
    table: list[list[int]] = []
    dofs, numbers, constants, inputs = [none], [none], [np.zeros(0)], [none]
    for term in terms:
        signal, coefficients = -1, none
        if isinstance(term, AxisLaw):
            code, dof, (number, constant) = term.code, term.dof, term.arrays
        elif isinstance(term, BallLaws):
            code, dof, number = BALLS, term.first, np.stack([term.damping, term.armature], axis=1)
            constant = np.zeros(dof.size)
        elif isinstance(term, JointDrive):
            code, dof, number, constant = DRIVE, np.array([term.dof]), term.gains[None], np.array([term.limit])
            signal, coefficients = number_of(term.signal), term.rows
        else:
            continue
        first, begin, behind = (sum(part.size for part in parts) for parts in (dofs, numbers, inputs))
        table.append([code, first, dof.size, number.shape[1], begin, signal, behind])
        dofs.append(dof)
        numbers.append(number.ravel())
        constants.append(constant)
        inputs.append(coefficients)
    rows = np.array(table, dtype=np.int64).reshape(-1, 7)
    return rows, *(np.concatenate(parts) for parts in (dofs, numbers, constants, inputs))
