"""Checks of the numbers that describe a shape."""

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.typing import FloatArray


def length(shape: str, name: str, value: float) -> float:
    """A positive, finite length [m]."""
    if not isinstance(value, int | float | np.number) or not 0.0 < value < np.inf:
        raise InputError(f"impossible {name} of a {shape}", found=value, expected="a positive length [m]")
    return float(value)


def box_size(size: ArrayLike) -> FloatArray:
    """(3,) positive, finite edge lengths [m]."""
    expected = "three positive lengths [m]"
    try:
        lengths = np.asarray(size, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("impossible size of a box", found=size, expected=expected) from error
    if lengths.shape != (3,) or not (np.isfinite(lengths) & (lengths > 0.0)).all():
        raise InputError("impossible size of a box", found=lengths.tolist(), expected=expected)
    return lengths


def intervals(extent: float, spacing: float) -> int:
    """Number of equal parts, none longer than `spacing`, of a length; 1 where the spacing is infinite."""
    if not isinstance(spacing, int | float | np.number) or not spacing > 0.0:
        raise InputError("impossible spacing of contact points", found=spacing, expected="a positive length [m]")
    # 0.3 / 0.1 is 2.9999999999999996 or 3.0000000000000004 by chance: round-off must not add a part
    parts = np.ceil(extent / spacing * (1.0 - 1e-12))
    if parts > MOST_POINTS:
        raise too_many(parts, spacing)
    return max(1, int(parts))


MOST_POINTS = 1_000_000
"""More contact points than this on one body are taken for a mistake in the units."""


def too_many(count: float, spacing: float) -> InputError:
    """The error for a spacing that would give more than MOST_POINTS points."""
    return InputError(
        "too many contact points on one body: is the spacing in metres?",
        found=f"about {count:.3g} points at a spacing of {spacing:g} m",
        expected=f"at most {MOST_POINTS}",
    )
