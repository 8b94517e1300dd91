"""`python -m benchmarks.factorization [--sizes ...] [--small]`: the back ends of `add.linalg` against each other."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from add.assembly import Pattern
from add.linalg import DenseLU, Factorization, MultifrontalLU, SparseLU, one_blas_thread
from add.typing import FloatArray, IntArray

#: Nodes along the edges of boxes with about so many nodes.
BOXES = {
    150: (5, 5, 6),
    500: (8, 8, 8),
    1500: (11, 11, 12),
    5000: (17, 17, 17),
    15000: (25, 25, 25),
    20000: (27, 27, 27),
}

#: SuperLU takes minutes beyond.
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


def fastest(call: Callable[[], object], seconds: float = 1.0) -> float:
    """Return the least time of repeated calls [ms]; at least two."""
    best, begin, done = np.inf, time.perf_counter(), 0
    while done < 2 or (time.perf_counter() - begin < seconds and done < 200):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        done += 1
    return 1e3 * float(best)


def times(kind: type[Factorization], pattern: Pattern, data: FloatArray) -> tuple[float, float, float, float]:
    """Return milliseconds of analysis and factorisation together, factorisation, solve, transposed solve."""
    first = fastest(lambda: kind().factor(pattern, data), 0.0)
    b = np.ones(pattern.n)
    back_end = kind()
    back_end.factor(pattern, data)
    refactor = fastest(lambda: back_end.factor(pattern, data))
    return first, refactor, fastest(lambda: back_end.solve(b)), fastest(lambda: back_end.solve_transposed(b))


def boxes(sizes: list[int]) -> None:
    """Print times and fill of boxes."""
    print(
        "| nodes | tets | back end | first [ms] | factor [ms] | solve [ms] | transposed [ms] | factors [MB] | Gflop/s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for size in sizes:
        pattern, data = body(BOXES[size])
        start = f"| {pattern.n // 3} | {tetrahedra(*BOXES[size]).shape[0]} "
        back_end = MultifrontalLU()
        back_end.factor(pattern, data)
        done = back_end.statistics
        del back_end
        row = times(MultifrontalLU, pattern, data)
        numbers = " | ".join(f"{ms:.3g}" for ms in row)
        print(f"{start}| fronts | {numbers} | {8e-6 * done.fill:.0f} | {1e-6 * done.flops / row[1]:.0f} |", flush=True)
        if size <= SUPERLU_LIMIT:
            row = times(SparseLU, pattern, data)
            print(f"{start}| SuperLU | {' | '.join(f'{ms:.3g}' for ms in row)} | | |", flush=True)
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def small() -> None:
    """Print one factorisation and one solve where dense and sparse meet [us]."""
    print("| unknowns | dense [us] | fronts [us] | SuperLU [us] |")
    print("|---|---|---|---|")
    for shape in ((2, 2, 2), (3, 3, 2), (3, 3, 3), (3, 3, 4), (3, 3, 5), (4, 4, 3), (3, 3, 6), (4, 4, 4), (5, 4, 4)):
        pattern, data = body(shape)
        row = []
        for kind in (DenseLU, MultifrontalLU, SparseLU):
            factor, solve = times(kind, pattern, data)[1:3]
            row.append(1e3 * (factor + solve))
        print(f"| {pattern.n} | " + " | ".join(f"{us:.0f}" for us in row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[150, 500, 1500, 5000], choices=sorted(BOXES))
    parser.add_argument("--small", action="store_true", help="the break-even with dense LAPACK instead")
    arguments = parser.parse_args()
    with one_blas_thread():
        small() if arguments.small else boxes(arguments.sizes)


if __name__ == "__main__":
    main()
