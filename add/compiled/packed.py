"""All force families of a small system as three arrays, for calls from Python and between compiled functions.

A compiled step takes three arrays whatever the scene: one of integers, one of floats, one of places. It is compiled
once, for all scenes. Each family is unpacked where it acts: the arrays of all, some seventy, take microseconds to hand
from one function to the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from add.compiled.arrays import (
    KINDS,
    SHAPES,
    Axes,
    BodyPairs,
    Joints,
    Layout,
    Links,
    Loads,
    Nodal,
    NodePairs,
    Rigid,
    Weight,
)
from add.kernels.borrowed import borrowed
from add.kernels.caching import CALLED, njit
from add.kernels.trees import Tree
from add.typing import AnyArray, FloatArray, IntArray


class PackedFamilies(NamedTuple):
    """All families as three arrays: the place and shape of every field are a row of ``places`` (k, 4)."""

    ints: IntArray
    floats: FloatArray
    places: IntArray


def empty(kind: type) -> tuple[AnyArray, ...]:
    """Return the arrays of a family that a system has none of."""
    return tuple(np.zeros((0,) * n, dtype=float if floats else np.int64) for n, floats in SHAPES[kind])


def packed(families: Iterable[Iterable[AnyArray]]) -> PackedFamilies:
    """Return the arrays of all families, in the order of `KINDS`, one behind the other."""
    ints, floats, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], []
    sizes = [0, 0]
    for kind, family in zip(KINDS, families, strict=True):
        for (n, is_float), array in zip(SHAPES[kind], family, strict=True):
            values = np.ascontiguousarray(array, dtype=float if is_float else np.int64)
            if values.ndim != n:
                raise ValueError(f"{kind.__name__}: an array of {values.ndim} dimensions, not {n}")
            places.append([sizes[is_float], *values.shape, *[0] * (3 - n)])
            (floats if is_float else ints).append(values.ravel())
            sizes[is_float] += values.size
    return PackedFamilies(np.concatenate(ints), np.concatenate(floats), np.array(places, dtype=np.int64))


@njit(**CALLED, inline="always")
def _one(flat, p, k):
    return borrowed(flat, p[k, 0], (p[k, 1],))


@njit(**CALLED, inline="always")
def _two(flat, p, k):
    return borrowed(flat, p[k, 0], (p[k, 1], p[k, 2]))


@njit(**CALLED, inline="always")
def _three(flat, p, k):
    return borrowed(flat, p[k, 0], (p[k, 1], p[k, 2], p[k, 3]))


@njit(**CALLED)
def layout_of(arrays):
    """Return the `Layout` of a `PackedFamilies`."""
    i, p = arrays.ints, arrays.places
    return Layout(_one(i, p, 0), _one(i, p, 1), _one(i, p, 2), _one(i, p, 3))


@njit(**CALLED)
def rigid_of(arrays):
    """Return the `Rigid` of a `PackedFamilies`."""
    i, p = arrays.ints, arrays.places
    return Rigid(_one(i, p, 4), _one(i, p, 5), _two(i, p, 6), _one(i, p, 7))


@njit(**CALLED)
def nodal_of(arrays):
    """Return the `Nodal` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return Nodal(_one(i, p, 8), _one(i, p, 9), _two(f, p, 10), _one(i, p, 11), _one(i, p, 12), _one(i, p, 13))


@njit(**CALLED)
def weight_of(arrays):
    """Return the `Weight` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return Weight(_one(i, p, 14), _one(f, p, 15), _one(i, p, 16), _one(i, p, 17))


@njit(**CALLED)
def loads_of(arrays):
    """Return the `Loads` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return Loads(_two(i, p, 18), _one(i, p, 19), _one(f, p, 20), _one(i, p, 21), _two(i, p, 22))


@njit(**CALLED)
def joints_of(arrays):
    """Return the `Joints` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return Joints(
        _two(i, p, 23),
        _one(i, p, 24),
        _one(i, p, 25),
        _one(f, p, 26),
        _two(i, p, 27),
        _one(i, p, 28),
        _one(i, p, 29),
        _one(i, p, 30),
    )


@njit(**CALLED)
def bodies_of(arrays):
    """Return the `BodyPairs` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return BodyPairs(
        _one(i, p, 31), _one(f, p, 32), _two(i, p, 33), _one(i, p, 34), _one(i, p, 35), _one(i, p, 36), _one(i, p, 37)
    )


@njit(**CALLED)
def nodes_of(arrays):
    """Return the `NodePairs` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return NodePairs(
        _one(i, p, 38),
        _one(f, p, 39),
        _one(i, p, 40),
        _one(i, p, 41),
        _two(f, p, 42),
        _three(f, p, 43),
        _two(f, p, 44),
        _two(f, p, 45),
        _one(i, p, 46),
        _two(i, p, 47),
        _three(i, p, 48),
        _three(f, p, 49),
        _one(i, p, 50),
        _one(i, p, 51),
    )


@njit(**CALLED)
def links_of(arrays):
    """Return the `Links` of a `PackedFamilies`."""
    i, p = arrays.ints, arrays.places
    return Links(_one(i, p, 52), _one(i, p, 53), _one(i, p, 54), _one(i, p, 55))


@njit(**CALLED)
def tree_of(arrays):
    """Return the `Tree` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return Tree(
        _one(i, p, 56),
        _one(i, p, 57),
        _one(i, p, 58),
        _two(f, p, 59),
        _one(f, p, 60),
        _one(i, p, 61),
        _one(i, p, 62),
        _one(f, p, 63),
        _one(f, p, 64),
        _two(i, p, 65),
        _one(i, p, 66),
        _two(i, p, 67),
        _two(i, p, 68),
        _one(i, p, 69),
        _one(i, p, 70),
    )


@njit(**CALLED)
def axes_of(arrays):
    """Return the `Axes` of a `PackedFamilies`."""
    i, f, p = arrays.ints, arrays.floats, arrays.places
    return Axes(_two(i, p, 71), _one(i, p, 72), _one(i, p, 73), _one(f, p, 74), _one(i, p, 75))
