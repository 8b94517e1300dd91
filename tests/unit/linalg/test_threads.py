"""BLAS at one thread, and as many as before afterwards."""

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController

from add.linalg import one_blas_thread


def counts() -> list[int]:
    return [one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"]


def test_one_thread_inside_and_as_many_as_before_afterwards() -> None:
    scipy.linalg.lu_factor(np.eye(3))  # both libraries are loaded
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = counts()
        with one_blas_thread():
            assert set(counts()) == {1}
            with one_blas_thread():  # held already
                assert set(counts()) == {1}
            assert set(counts()) == {1}
        assert counts() == before
