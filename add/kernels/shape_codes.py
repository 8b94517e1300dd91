"""Codes of the shapes that contact knows, and the distance functions of further ones.

A further shape has a code of its own and four compiled functions. They become branches of the dispatch in
`distance.py` when that is imported, so that they have to be there before: all kernels that reach it are compiled with
them, and are kept for them alone (`stamps.py`). Where there are none, the dispatch is a comparison of codes.
"""

from typing import Any, NamedTuple

PLANE, SPHERE, BOX, CAPSULE, CYLINDER, MESH = 0, 1, 2, 3, 4, 5
#: The least code of a further shape.
FIRST_FREE = 6


class DistanceKernel(NamedTuple):
    """The compiled functions of one shape; arguments and results as in `distance.py`, but for the kind.

    Attributes
    ----------
    code : int
    inside : (size0, size1, size2, X0, X1, X2) -> bool
    bound : (size0, size1, size2) -> float
    feature : (size, X0, X1, X2) -> int
    branch : (size, X0, X1, X2, feature, order, n, H) -> float
    """

    code: int
    inside: Any
    bound: Any
    feature: Any
    branch: Any


_FURTHER: dict[int, DistanceKernel] = {}
_CLOSED: list[bool] = []


def add_distance(kernel: DistanceKernel) -> None:
    """Add the distance functions of a further shape.

    Raises
    ------
    RuntimeError
        If the kernels were imported before.
    ValueError
        If the code is taken.
    """
    if _CLOSED:
        raise RuntimeError("the kernels are compiled already: add shapes before anything of `add` that computes")
    if kernel.code < FIRST_FREE or kernel.code in _FURTHER:
        raise ValueError(f"the code {kernel.code} is taken")
    _FURTHER[kernel.code] = kernel


def further_kernels() -> tuple[DistanceKernel, ...]:
    """Return the further shapes; from now on none can be added."""
    _CLOSED.append(True)
    return tuple(_FURTHER.values())
