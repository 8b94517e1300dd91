"""Discretisation errors from numbers found with steps or meshes that become finer: Richardson's extrapolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

__all__ = ["Extrapolated", "extrapolated"]

#: Orders that are believed.
LOWEST, HIGHEST = 0.5, 4.0


@final
@dataclass(frozen=True)
class Extrapolated:
    """The limit of a sequence, and how far it is known.

    Attributes
    ----------
    error : of the first value: |first - limit|, or where there is no limit to be seen the largest change and the last
    order : observed, assumed where there are two values, None where the changes do not fall
    limit : extrapolated; None where the changes do not fall
    converges : whether the changes fall
    """

    error: float
    order: float | None
    limit: float | None
    converges: bool


def extrapolated(values: list[float], ratio: float, assumed: float, smallest: float = 0.0) -> Extrapolated:
    """Extrapolate a sequence v(h), v(h/r), v(h/r^2), ... (Roache 1998, ch. 5).

    With three values the last three give the order, r^p = (v_(k-1) - v_(k-2)) / (v_k - v_(k-1)), kept within [0.5, 4];
    with two it is assumed. limit = v_k + (v_k - v_(k-1)) / (r^p - 1).

    Parameters
    ----------
    values : from the coarsest on, two or more
    ratio : r > 1
    assumed : order with two values
    smallest : changes below this are round-off of the fits: they do not speak against convergence

    Raises
    ------
    ValueError
        With fewer than two values.
    """
    if len(values) < 2:
        raise ValueError("a change needs two values")
    changes = np.diff(values)
    last = float(changes[-1])
    order = assumed
    if len(values) > 2 and max(abs(last), abs(float(changes[-2]))) > smallest:
        before = float(changes[-2])
        falls = abs(last) < abs(before) and last * before > 0.0
        if not falls and abs(last) > smallest:
            error = max(abs(value - values[0]) for value in values) + abs(last)
            return Extrapolated(float(error), None, None, False)
        order = float(np.clip(np.log(before / last) / np.log(ratio), LOWEST, HIGHEST)) if falls else assumed
    limit = values[-1] + last / (ratio**order - 1.0)
    return Extrapolated(abs(values[0] - limit), order, float(limit), True)
