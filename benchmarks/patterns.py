"""A new set of contacts against one factorisation: `python -m benchmarks.patterns`.

Sheets of springs and boxes of tetrahedra, all ratios of one run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from add.linalg import MultifrontalLU
from add.linalg.pattern import Pattern
from add.linalg.symbolic import fronts_of
from add.linalg.tree import nested_dissection, structure_of
from add.typing import FloatArray, IntArray
from benchmarks.factorization import tetrahedra
from benchmarks.timing import least

#: Nodes along the edges of sheets and boxes.
SHEETS = (32, 64)
BOXES = (13, 17)
#: Contacts of a vertex with a triangle.
CONTACTS = (100, 300, 1000)

Entries = tuple[IntArray, IntArray]


def _entries(nodes: IntArray) -> Entries:
    """Return flat rows and columns of the dense blocks over the nodes (k, m) of each element."""
    dofs = (3 * nodes[:, :, None] + np.arange(3)).reshape(nodes.shape[0], -1)
    m = dofs.shape[1]
    return np.repeat(dofs, m, axis=1).ravel(), np.tile(dofs, (1, m)).ravel()


def sheet(n: int) -> tuple[int, IntArray, IntArray]:
    """Return the number of nodes of a sheet, its springs (k, 2) over one and two edges, and its triangles (m, 3)."""
    at = np.arange(n * n).reshape(n, n)
    steps = ((0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0))
    pairs = []
    for i, j in steps:
        a = at[: n - i, max(-j, 0) : n - max(j, 0)]
        b = at[i:, max(j, 0) : n + min(j, 0)]
        pairs.append(np.stack([a.ravel(), b.ravel()], axis=1))
    a, b, c, d = at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]
    triangles = np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]).reshape(-1, 3)
    return n * n, np.concatenate(pairs), triangles


def box(n: int) -> tuple[int, IntArray, IntArray]:
    """Return the number of nodes of a box, its tetrahedra and the triangles of two opposite faces."""
    at = np.arange(n**3).reshape(n, n, n)
    triangles = []
    for face in (at[0], at[-1]):
        a, b, c, d = face[:-1, :-1], face[1:, :-1], face[1:, 1:], face[:-1, 1:]
        triangles += [np.stack([a, b, c], axis=2).reshape(-1, 3), np.stack([a, c, d], axis=2).reshape(-1, 3)]
    return n**3, tetrahedra(n, n, n), np.concatenate(triangles)


def contacts(triangles: IntArray, count: int, near: bool) -> IntArray:
    """Return stencils (k, 4) of a vertex and a triangle.

    Far ones are drawn anywhere; near ones fold the surface once: places that meet have neighbours that meet.
    """
    rng = np.random.default_rng(0)
    if near:
        first = np.arange(min(count, triangles.shape[0] // 3))
        vertex, met = triangles[first, 0], triangles[::-1][first]
    else:
        vertex, met = rng.choice(np.unique(triangles), count), rng.choice(triangles, count)
    kept = ~(met == vertex[:, None]).any(axis=1)
    return np.column_stack([vertex, met])[kept]


def _values(pattern: Pattern, seed: int = 0) -> FloatArray:
    """Return unsymmetric values of a definite matrix."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=pattern.nnz + 1)
    data[pattern.diagonal] = 3.0 * np.diff(pattern.indptr)
    return data


def new_contacts(small: bool) -> list[dict[str, object]]:
    """Time the pattern and the analysis of a new set of contacts beside the factorisation with it."""
    rows: list[dict[str, object]] = []
    cases = [(f"sheet {n}^2", sheet(n)) for n in (SHEETS[:1] if small else SHEETS)]
    cases += [] if small else [(f"box {n}^3", box(n)) for n in BOXES]
    heads = ("pattern", "order", "fronts", "factor")
    print(f"{'mesh':12}{'contacts':>12}" + "".join(f"{head:>9}" for head in heads) + "  share  flops x   kept")
    for name, mesh in cases:
        case = _Case(name, *mesh, 0.1 if small else 0.5)
        for number in CONTACTS:
            for near in (True, False):
                rows.append(case.times(number, near))
    return rows


@final
class _Case:
    """A mesh, factored once."""

    def __init__(self, name: str, count: int, elements: IntArray, triangles: IntArray, seconds: float) -> None:
        self.name, self.triangles, self.seconds = name, triangles, seconds
        self.base = Pattern.build(3 * count, [_entries(elements)])
        structure = structure_of(self.base.indptr, self.base.indices)
        self.order = nested_dissection(structure)
        self.flops = fronts_of(structure, self.order)[1].flops

    def times(self, number: int, near: bool) -> dict[str, object]:
        """Return milliseconds of the stages, and operations beside those without contacts.

        ``kept`` are those with the order of the mesh alone: what it would cost to save the ordering.
        """
        stencils = contacts(self.triangles, number, near)
        entries, clock = [_entries(stencils)], self._clock
        pattern = self.base.extended(entries)
        structure = structure_of(pattern.indptr, pattern.indices)
        order = nested_dissection(structure)
        values, solver = _values(pattern), MultifrontalLU()
        solver.factor(pattern, values)
        row = {
            "pattern_ms": clock(lambda: self.base.extended(entries)),
            "order_ms": clock(lambda: nested_dissection(structure)),
            "fronts_ms": clock(lambda: fronts_of(structure_of(pattern.indptr, pattern.indices), order)),
            "factor_ms": clock(lambda: solver.factor(pattern, values)),
            "flops": fronts_of(structure, order)[1].flops / self.flops,
            "flops_kept": fronts_of(structure, self.order)[1].flops / self.flops,
        }
        row["share"] = (row["pattern_ms"] + row["order_ms"] + row["fronts_ms"]) / row["factor_ms"]
        label = f"{stencils.shape[0]} {'near' if near else 'far'}"
        print(
            f"{self.name:12}{label:>12}{row['pattern_ms']:9.3g}{row['order_ms']:9.3g}{row['fronts_ms']:9.3g}"
            f"{row['factor_ms']:9.3g}{row['share']:7.2f}{row['flops']:9.3g}{row['flops_kept']:7.3g}",
            flush=True,
        )
        return {"mesh": self.name, "near": near, "contacts": stencils.shape[0]} | row

    def _clock(self, call: Callable[[], object]) -> float:
        return 1e3 * least(call, self.seconds, 20)


if __name__ == "__main__":
    new_contacts(False)
