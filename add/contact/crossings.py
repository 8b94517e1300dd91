"""Surfaces that pass through each other: no start of a run, and no step after it, may have any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from add.contact.candidates import Primitives, boxes_of
from add.errors import InputError
from add.kernels.boxes import overlapping
from add.kernels.primitives import crossing
from add.typing import FloatArray, IntArray

#: So many pairs are named in an error.
MOST_NAMED = 5


def crossings(primitives: Primitives, x: FloatArray) -> IntArray:
    """Return the pairs (k, 2) of an edge and a face that pass through each other, sorted.

    Parameters
    ----------
    primitives : Primitives
    x : (n_points, 3) [m]
    """
    body, edges, faces = primitives.body, primitives.edges, primitives.faces
    of_edges, of_faces = (boxes_of(corners, body, x, x) for corners in (edges, faces))
    pairs = overlapping(of_edges, of_faces, primitives.meets, False)
    return np.asarray(pairs[crossing(pairs, edges, faces, x)])


def refuse_tangled(primitives: Primitives, x: FloatArray, names: Sequence[str], place: str = "bodies") -> None:
    """Raise if surfaces pass through each other.

    Parameters
    ----------
    primitives : Primitives
    x : (n_points, 3) [m]
    names : of the bodies, by number
    place : what the error names

    Raises
    ------
    InputError
        With the bodies, the first pairs of edges and faces, and where they are.
    """
    pairs = crossings(primitives, x)
    if not pairs.size:
        return
    ends, corners = primitives.edges[pairs[:, 0]], primitives.faces[pairs[:, 1]]
    one, other = primitives.body[ends[:, 0]], primitives.body[corners[:, 0]]
    bodies = sorted({tuple(sorted((names[a], names[b]))) for a, b in zip(one, other, strict=True)})
    named = []
    for edge, face, a, b in list(zip(ends, corners, one, other, strict=True))[:MOST_NAMED]:
        at = ", ".join(f"{value:.4g}" for value in x[edge].mean(axis=0))
        corners_of = "-".join(str(corner) for corner in face)
        named.append(f"edge {edge[0]}-{edge[1]} of '{names[a]}' and face {corners_of} of '{names[b]}' at ({at}) m")
    more = f", and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else ""
    raise InputError(
        "surfaces pass through each other at the start: " + " and ".join(f"'{a}' with '{b}'" for a, b in bodies),
        place=place,
        found="; ".join(named) + more,
        expected="surfaces that do not cross; move the bodies apart, or switch the pair off",
    )
