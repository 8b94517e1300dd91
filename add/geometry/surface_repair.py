"""Small repairs of triangle surfaces: doubled and degenerate triangles, small holes, windings."""

from dataclasses import dataclass
from typing import final

import numpy as np

from add.errors import InputError
from add.geometry.triangle_surface import TriangleSurface
from add.typing import FloatArray, IntArray

#: A hole is filled without asking if the sum of its edges is below this share of the surface's largest extent.
SMALL_HOLE = 0.5


@final
@dataclass(frozen=True, eq=False)
class Repaired:
    """A closed surface, and what was done to make it one.

    Attributes
    ----------
    surface : closed, wound so that its volume is positive
    notes : a sentence for each kind of repair
    volume : that it encloses, in the cube of the file's unit
    """

    surface: TriangleSurface
    notes: tuple[str, ...]
    volume: float


def repaired(surface: TriangleSurface, *, fill: bool = False) -> Repaired:
    """Return a closed surface.

    Triangles that appear twice are dropped but for one, holes are closed by triangles to their middle, and triangles
    that are wound against their neighbours are turned.

    Parameters
    ----------
    surface : vertices that coincide must be one
    fill : whether holes of any size are closed

    Raises
    ------
    InputError
        If a hole is large, or three triangles meet at an edge.
    """
    points, triangles = surface
    notes = []
    _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
    if first.size < len(triangles):
        notes.append(f"{len(triangles) - first.size} triangles that were there twice were dropped")
        triangles = triangles[np.sort(first)]
    loops = _holes(points, triangles)
    extent = float(np.ptp(points, axis=0).max())
    for loop in loops:
        around = float(np.linalg.norm(points[loop] - points[np.roll(loop, -1)], axis=1).sum())
        if around > SMALL_HOLE * extent and not fill:
            raise InputError(
                "the surface has a large hole: what is inside is a guess",
                found=f"{len(loop)} edges of {around:.3g} together, about {_place(points[loop].mean(axis=0))}",
                expected="a closed surface, or `--fill-holes`",
            )
        centre = len(points)
        points = np.concatenate([points, points[loop].mean(axis=0)[None]])
        cap = np.column_stack([np.roll(loop, -1), loop, np.full(len(loop), centre)])
        triangles = np.concatenate([triangles, cap])
    if loops:
        notes.append(f"{len(loops)} holes were closed, the largest of {max(map(len, loops))} edges")
    triangles, turned = _wound(points, triangles)
    if turned:
        notes.append(f"{turned} triangles were wound against their neighbours and turned")
    corners = points[triangles]
    volume = float(np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum()) / 6.0
    if volume == 0.0:
        raise InputError("the surface encloses nothing")
    return Repaired(TriangleSurface(points, triangles), tuple(notes), volume)


def _place(point: FloatArray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in point) + ")"


def _holes(points: FloatArray, triangles: IntArray) -> list[IntArray]:
    """Return the loops of edges that only one triangle has; four at an edge are two parts that touch along it."""
    directed = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)
    edges, uses = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
    odd = (uses > 2) & (uses % 2 == 1)
    if odd.any():
        bad = edges[np.flatnonzero(odd)[0]]
        raise InputError(
            "an odd number of triangles meet at an edge",
            found=f"{int(odd.sum())} edges, the first at {_place(points[bad].mean(axis=0))}",
            expected="a surface that bounds one body",
        )
    # Along the hole a triangle may be wound either way: edges are followed without their direction.
    border = edges[uses == 1]
    at: dict[int, list[int]] = {}
    for number, (a, b) in enumerate(border):
        at.setdefault(int(a), []).append(number)
        at.setdefault(int(b), []).append(number)
    left = set(range(len(border)))
    loops = []
    while left:
        number = min(left)
        start, here = (int(v) for v in border[number])
        loop = [start]
        left.discard(number)
        while here != start:
            loop.append(here)
            onward = [k for k in at[here] if k in left]
            if not onward:
                raise InputError("the border of a hole does not close", found=f"at {_place(points[here])}")
            left.discard(onward[0])
            a, b = (int(v) for v in border[onward[0]])
            here = b if a == here else a
        loops.append(np.array(loop))
    return loops


def _wound(points: FloatArray, triangles: IntArray) -> tuple[IntArray, int]:
    """Return the triangles wound alike within each part, outward by the sign of its volume, and how many were turned.

    A part inside another one, a cavity, is wound as the signed volumes of the file say where they agree within it.
    """
    n = len(triangles)
    edges: dict[tuple[int, int], list[int]] = {}
    for k, (a, b, c) in enumerate(triangles.tolist()):
        for edge in ((a, b), (b, c), (c, a)):
            edges.setdefault((min(edge), max(edge)), []).append(k)
    flipped = np.full(n, -1)
    out, turned = triangles.copy(), 0
    ways = {(k, edge) for k, (a, b, c) in enumerate(triangles.tolist()) for edge in ((a, b), (b, c), (c, a))}
    for seed in range(n):
        if flipped[seed] >= 0:
            continue
        flipped[seed] = 0
        part, queue = [seed], [seed]
        while queue:
            k = queue.pop()
            a, b, c = triangles[k].tolist()
            for edge in ((a, b), (b, c), (c, a)):
                beside = edges[min(edge), max(edge)]
                # Four at an edge say nothing of each other.
                for other in beside if len(beside) == 2 else ():
                    if other != k and flipped[other] < 0:
                        same = (other, edge) in ways  # both run along it: one of the two is to be turned
                        flipped[other] = flipped[k] ^ int(same)
                        part.append(other)
                        queue.append(other)
        chosen = np.array(part)
        mixed = 0 < int(flipped[chosen].sum()) < len(part)
        if mixed:
            back = chosen[flipped[chosen] == 1]
            out[back] = out[back][:, ::-1]
        corners = points[out[chosen]]
        volume = float(np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum())
        alone = len(part) == n
        if volume < 0.0 and (mixed or alone):
            out[chosen] = out[chosen][:, ::-1]
        turned += int((out[chosen] != triangles[chosen]).any(axis=1).sum())
    return out, turned
