"""Array aliases, whose shapes stand in the docstrings; and what callers give with another type, number or shape."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from add.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]

#: What makes the things that functions ask for.
SCENE = "a scene: add.load_scene(path)"
BUILT = "a built scene: add.load_scene(path).build()"
NAMED = "a dictionary: name -> value"


def require_kind(value: object, kind: type | tuple[type, ...], place: str, expected: str) -> None:
    """Refuse a value of another type; ``expected`` says what makes the right one."""
    if not isinstance(value, kind):
        what = f" {value!r:.60}" if isinstance(value, (str, int, float)) else ""
        raise InputError("wrong type", place=place, found=f"{type(value).__name__}{what}", expected=expected)


def require_count(value: object, place: str, least: int = 0) -> None:
    """Refuse what is no whole number from ``least`` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(
            "impossible number", place=place, found=f"{value!r:.60}", expected=f"a whole number from {least} on"
        )


def index_of(k: object, n: int) -> int:
    """Return the number of one of n states or steps of a run; a negative one counts from the end."""
    if isinstance(k, bool) or not isinstance(k, Integral) or not -n <= int(k) < n:
        found = f"{k!r:.60}"
        raise InputError("the run has no such state or step", place="k", found=found, expected=f"from {-n} to {n - 1}")
    return int(k) % n


def as_numbers(name: str, value: object) -> FloatArray:
    """Return values as an array of numbers.

    Raises
    ------
    InputError
        If they are none: texts, dates, complex numbers, none at all, masked ones, rows of different lengths.
    """
    try:
        array = np.asarray(value)
        # NumPy makes numbers of texts, dates and None, shows what is masked, and drops imaginary parts.
        none = array.dtype.kind in "cSUmM" or (
            array.dtype.kind == "O" and any(isinstance(x, str | bytes | complex | None) for x in array.flat)
        )
        if none or np.ma.is_masked(value):
            raise ValueError
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            "these are no numbers",
            place=str(name),
            found=f"{value!r:.80}",
            expected="real numbers, in rows of one length",
        ) from None


def as_vector(name: str, value: object, n: int) -> FloatArray:
    """Return ``n`` numbers as an array.

    Raises
    ------
    InputError
        If they are no numbers, or more or fewer.
    """
    vector = as_numbers(name, value)
    if vector.shape != (n,):
        raise InputError("wrong shape", place=name, found=f"{vector.shape}", expected=f"({n},)")
    return vector
