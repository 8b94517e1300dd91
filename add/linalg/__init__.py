"""Factorisations: analyse a pattern once, factor values many times, check every solve."""

from add.linalg.base import SOLVE_TOLERANCE, Factorization, LinearSolve, one_blas_thread
from add.linalg.choice import DENSE_LIMIT, factorization_for
from add.linalg.cholmod import Cholmod, cholmod_for
from add.linalg.dense import DenseLU
from add.linalg.multifrontal import MultifrontalLU, Statistics
from add.linalg.superlu import SparseLU, node_ordering

__all__ = [
    "DENSE_LIMIT",
    "SOLVE_TOLERANCE",
    "Cholmod",
    "DenseLU",
    "Factorization",
    "LinearSolve",
    "MultifrontalLU",
    "SparseLU",
    "Statistics",
    "cholmod_for",
    "factorization_for",
    "node_ordering",
    "one_blas_thread",
]
