"""The back ends of `add.linalg` against each other, on matrices of boxes of tetrahedra."""

from __future__ import annotations

import numpy as np

from add.linalg import DenseLU, Factorization, MultifrontalLU, SparseLU
from add.linalg.pattern import Pattern
from add.typing import FloatArray, IntArray
from benchmarks.backends import DefaultLU
from benchmarks.timing import Row, least

#: Nodes along the edges of boxes.
BOXES = ((5, 5, 6), (8, 8, 8), (11, 11, 12), (17, 17, 17), (25, 25, 25))

#: SuperLU takes minutes beyond so many nodes.
SUPERLU_LIMIT = 5000


def tetrahedra(nx: int, ny: int, nz: int) -> IntArray:
    """Return the cells (ne, 4) of a box of nx ny nz nodes, six a cube around its diagonal."""
    nodes = np.arange(nx * ny * nz).reshape(nx, ny, nz)
    corner = [
        nodes[i : nx - 1 + i, j : ny - 1 + j, k : nz - 1 + k].ravel() for k in (0, 1) for j in (0, 1) for i in (0, 1)
    ]
    around = ((0, 1, 3, 7), (0, 1, 5, 7), (0, 2, 3, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 4, 6, 7))
    return np.concatenate([np.stack([corner[i] for i in cell], axis=1) for cell in around])


def body(shape: tuple[int, int, int], seed: int = 0) -> tuple[Pattern, FloatArray]:
    """Return the pattern of J of a box of tetrahedra, nodes numbered at random, and unsymmetric values."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    cells = rng.permutation(count)[tetrahedra(*shape)]
    dofs = (3 * cells[:, :, None] + np.arange(3)).reshape(-1, 12)
    pattern = Pattern.build(3 * count, [(np.repeat(dofs, 12, axis=1).ravel(), np.tile(dofs, (1, 12)).ravel())])
    half = rng.normal(size=(dofs.shape[0], 12, 6))
    local = half @ half.transpose(0, 2, 1) + 0.05 * rng.normal(size=(dofs.shape[0], 12, 12))
    data = pattern.new_data()
    np.add.at(data, pattern.slots[0], local.ravel())
    return pattern, data


def times(kind: type[Factorization], pattern: Pattern, data: FloatArray, seconds: float) -> Row:
    """Return milliseconds of analysis and factorisation together, factorisation, solve, transposed solve."""
    b = np.ones(pattern.n)
    back_end = kind()
    back_end.factor(pattern, data)
    return {
        "first_ms": 1e3 * least(lambda: kind().factor(pattern, data), seconds, 3),
        "factor_ms": 1e3 * least(lambda: back_end.factor(pattern, data), seconds, 200),
        "solve_ms": 1e3 * least(lambda: back_end.solve(b), seconds, 200),
        "transposed_ms": 1e3 * least(lambda: back_end.solve_transposed(b), seconds, 200),
    }


def boxes(small: bool) -> list[dict[str, object]]:
    """Time the back ends on boxes: the default one, SuperLU as the fallback sets it up, SuperLU at its defaults."""
    rows: list[dict[str, object]] = []
    print(f"{'nodes':>7}{'tets':>8} {'back end':18}{'first':>10}{'factor':>10}{'solve':>9}{'transposed':>12}{'x':>7}")
    for shape in BOXES[:2] if small else BOXES:
        pattern, data = body(shape)
        own = 0.0
        for name, kind in (("fronts", MultifrontalLU), ("SuperLU, symmetric", SparseLU), ("SuperLU", DefaultLU)):
            if pattern.n > 3 * SUPERLU_LIMIT and kind is not MultifrontalLU:
                continue
            row = times(kind, pattern, data, 0.1 if small else 1.0)
            own = own or row["factor_ms"]
            counts = {"nodes": pattern.n // 3, "tets": tetrahedra(*shape).shape[0], "back_end": name}
            rows.append(counts | {"over_ours": row["factor_ms"] / own} | row)
            print(
                f"{counts['nodes']:7}{counts['tets']:8} {name:18}{row['first_ms']:10.3g}{row['factor_ms']:10.3g}"
                f"{row['solve_ms']:9.3g}{row['transposed_ms']:12.3g}{row['factor_ms'] / own:7.2f}",
                flush=True,
            )
    return rows


def break_even(small: bool) -> list[dict[str, object]]:
    """Time one factorisation and one solve where dense and sparse meet."""
    rows: list[dict[str, object]] = []
    print(f"{'unknowns':>9}{'dense [us]':>12}{'fronts [us]':>13}{'SuperLU [us]':>14}")
    for shape in ((2, 2, 2), (3, 3, 2), (3, 3, 3), (3, 3, 4), (3, 3, 5), (4, 4, 3), (4, 4, 4), (5, 4, 4)):
        pattern, data = body(shape)
        row: dict[str, object] = {"unknowns": pattern.n}
        for name, kind in (("dense", DenseLU), ("fronts", MultifrontalLU), ("superlu", DefaultLU)):
            done = times(kind, pattern, data, 0.02 if small else 0.1)
            row[f"{name}_us"] = 1e3 * (done["factor_ms"] + done["solve_ms"])
        rows.append(row)
        print(f"{pattern.n:9}{row['dense_us']:12.0f}{row['fronts_us']:13.0f}{row['superlu_us']:14.0f}", flush=True)
    return rows


def back_ends(small: bool) -> dict[str, object]:
    """Time all back ends over sizes."""
    return {"boxes": boxes(small), "break_even": break_even(small)}
