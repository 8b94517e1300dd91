"""Products of small matrices as loops: NumPy's take seconds of compilation in every function that has one."""

from add.kernels.caching import njit


@njit(cache=True)
def fill_turned(R, x, out):
    """Fill ``out`` (3,) with R x."""
    for i in range(3):
        out[i] = R[i, 0] * x[0] + R[i, 1] * x[1] + R[i, 2] * x[2]


@njit(cache=True)
def add_pulled(weight, J, A, out):
    """Add ``weight`` J^T A (k, n) to ``out``."""
    for i in range(J.shape[1]):
        for j in range(A.shape[1]):
            for l in range(J.shape[0]):
                out[i, j] += weight * J[l, i] * A[l, j]


@njit(cache=True)
def add_congruent(J, A, S, room, out):
    """Add J^T A S to ``out``; ``room`` has the shape of A S."""
    for i in range(room.shape[0]):
        for j in range(room.shape[1]):
            room[i, j] = 0.0
            for l in range(S.shape[0]):
                room[i, j] += A[i, l] * S[l, j]
    add_pulled(1.0, J, room, out)
