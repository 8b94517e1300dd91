"""Which back end suits a system."""

from numba import config

from add.linalg.base import Factorization
from add.linalg.dense import DenseLU
from add.linalg.multifrontal import MultifrontalLU
from add.linalg.superlu import SparseLU

#: Up to this many unknowns dense LAPACK beats a sparse factorisation, refinement included (docs/performance.md).
DENSE_LIMIT = 100


def factorization_for(n: int) -> Factorization:
    """Return the back end that suits ``n`` unknowns."""
    if n <= DENSE_LIMIT:
        return DenseLU()
    # With NUMBA_DISABLE_JIT=1 there is no calling of BLAS by address.
    return SparseLU() if config.DISABLE_JIT else MultifrontalLU()
