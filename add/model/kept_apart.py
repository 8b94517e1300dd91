"""Pairs that pass through each other, as labels of points and shapes: one label for all alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from add.model.obstacles import ContactModel
from add.typing import IntArray


class Labels(NamedTuple):
    """Labels of the shapes of bodies and obstacles.

    Attributes
    ----------
    of : name of a body or an obstacle -> (n,) labels of its shapes, which count for the points of each, too
    apart : (m, 2) labels of points and of shapes that never meet
    """

    of: Mapping[str, IntArray]
    apart: IntArray


def labels(counts: Mapping[str, int], contact: ContactModel) -> Labels:
    """Return the labels: few, and few pairs of them, however many bodies pass through each other.

    Parameters
    ----------
    counts : name of a body or an obstacle -> number of its shapes
    contact : ContactModel
    """
    pairs = sorted(pair for pair in contact.apart if set(pair) <= counts.keys())
    pairs = [(a, b) for a, b in pairs if not _one_group(a, b, contact.apart_within)]
    shapes = sorted(pair for pair in contact.shapes_apart if {name for name, _ in pair} <= counts.keys())
    shapes = [(one, two) for one, two in shapes if not _one_group(one[0], two[0], contact.apart_within)]
    single = {name for pair in shapes for name, _ in pair}
    named = {name for pair in pairs for name in pair} | single
    known: dict[object, int] = {}
    groups: dict[str, dict[int, None]] = {}
    of = {}
    for name, count in counts.items():
        group = contact.apart_within.get(name)
        if name in single:
            keys: Sequence[object] = [(name, k) for k in range(count)]
        else:
            keys = [("", group) if group is not None and name not in named else (name, None)] * count
        of[name] = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
        if group is not None:
            groups.setdefault(group, {}).update(dict.fromkeys(of[name].tolist()))
    found = {(a, b) for members in groups.values() for a in members for b in members}
    found |= {(a, b) for one, two in pairs for a in set(of[one].tolist()) for b in set(of[two].tolist())}
    found |= {(int(of[a][k]), int(of[b][m])) for (a, k), (b, m) in shapes}
    return Labels(of, np.array(sorted(found), dtype=np.int64).reshape(-1, 2))


def _one_group(a: str, b: str, groups: Mapping[str, str]) -> bool:
    return a in groups and groups[a] == groups.get(b)
