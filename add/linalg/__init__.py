"""Factorisations: analyse a pattern once, factor values many times, check every solve."""

from add.linalg.base import Factorization, LinearSolve, SparseLU, one_blas_thread
from add.linalg.cholmod import Cholmod, cholmod_for
from add.linalg.multifrontal import DENSE_LIMIT, DenseLU, MultifrontalLU, Statistics, factorization_for

__all__ = [
    "DENSE_LIMIT",
    "Cholmod",
    "DenseLU",
    "Factorization",
    "LinearSolve",
    "MultifrontalLU",
    "SparseLU",
    "Statistics",
    "cholmod_for",
    "factorization_for",
    "one_blas_thread",
]
