"""BLAS and LAPACK from inside numba kernels: SciPy's own, through the addresses that its Cython modules export.

An address is an argument, never a constant: it differs between processes, and a kernel in numba's cache must not
remember it. Matrices are stored by columns in flat arrays and given as (array, offset, leading dimension).
"""

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

#: Values of the character arguments.
N: Final = ord("N")
T: Final = ord("T")
L: Final = ord("L")
R: Final = ord("R")
U: Final = ord("U")


class Blas(NamedTuple):
    """Addresses of the routines of this process."""

    gemm: int
    trsm: int
    gemv: int
    trsv: int
    syrk: int
    potrf: int
    getrf: int
    getrs: int


@cache
def addresses() -> Blas:
    """Return the addresses of SciPy's BLAS."""

    def routine(module: str, name: str) -> int:
        return int(get_cython_function_address(f"scipy.linalg.cython_{module}", name))

    names = ("dgemm", "dtrsm", "dgemv", "dtrsv", "dsyrk")
    lapack = ("dpotrf", "dgetrf", "dgetrs")
    return Blas._make([*(routine("blas", name) for name in names), *(routine("lapack", name) for name in lapack)])


_KINDS = {
    "c": (types.int64, ir.IntType(8)),  # a character
    "i": (types.int64, ir.IntType(32)),
    "d": (types.float64, ir.DoubleType()),
}


def _routine(form: str) -> Callable[..., None]:
    """Return an intrinsic that calls a Fortran routine by its address.

    ``form`` has one letter an argument: c a character, i an integer, d a number, a an array followed by an offset.
    """

    def typing(typingctx, address, arguments):
        def generate(context, builder, signature, values):
            items = cgutils.unpack_tuple(builder, values[1])
            kinds = signature.args[1]
            pointers, k = [], 0
            byte = ir.IntType(8).as_pointer()
            for letter in form:
                if letter == "a":
                    array = context.make_array(kinds[k])(context, builder, items[k])
                    offset = context.cast(builder, items[k + 1], kinds[k + 1], types.int64)
                    pointer = builder.gep(array.data, [offset])
                    k += 2
                else:
                    kind, stored = _KINDS[letter]
                    value = context.cast(builder, items[k], kinds[k], kind)
                    if letter != "d":
                        value = builder.trunc(value, stored)
                    pointer = cgutils.alloca_once(builder, stored)
                    builder.store(value, pointer)
                    k += 1
                pointers.append(builder.bitcast(pointer, byte))
            function = ir.FunctionType(ir.VoidType(), [byte] * len(pointers))
            builder.call(builder.inttoptr(values[0], function.as_pointer()), pointers)
            return context.get_dummy_value()

        return types.void(types.int64, arguments), generate

    return intrinsic(typing)


#: C = alpha op(A) op(B) + beta C: (transa, transb, m, n, k, alpha, A, at, lda, B, at, ldb, beta, C, at, ldc)
gemm = _routine("cciiidaiaidai")

#: B = alpha op(A)^-1 B or alpha B op(A)^-1: (side, uplo, transa, diag, m, n, alpha, A, at, lda, B, at, ldb)
trsm = _routine("cccciidaiai")

#: y = alpha op(A) x + beta y: (trans, m, n, alpha, A, at, lda, x, at, incx, beta, y, at, incy)
gemv = _routine("ciidaiaidai")

#: x = op(A)^-1 x: (uplo, trans, diag, n, A, at, lda, x, at, incx)
trsv = _routine("ccciaiai")

#: The lower or upper half of C = alpha A A^T + beta C: (uplo, trans, n, k, alpha, A, at, lda, beta, C, at, ldc)
syrk = _routine("cciidaidai")

#: A = L L^T in place: (uplo, n, A, at, lda, info, at); info (int32) is not zero where A is not positive definite
potrf = _routine("ciaia")

#: A = P L U in place: (m, n, A, at, lda, pivots, at, info, at); info (int32) is not zero where A is singular
getrf = _routine("iiaiaa")

#: B = op(A)^-1 B by the factors: (trans, n, nrhs, A, at, lda, pivots, at, B, at, ldb, info, at)
getrs = _routine("ciiaiaaia")

#: No routine of BLAS, but called as one: what reads two arrays and fills a third, (a, at, b, at, out, at)
of_two = _routine("aaa")
