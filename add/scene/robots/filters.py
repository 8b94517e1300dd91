"""Which shapes may touch, from rules on links and on shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations

from add.scene.robots.model import RobotGeometry, RobotJoint, RobotLink

Pair = tuple[str, str]
ShapePair = tuple[tuple[str, int], tuple[str, int]]


def neighbours(joints: Sequence[RobotJoint], massless: frozenset[str]) -> set[frozenset[str]]:
    """Return pairs of links that a joint joins, also through the massless links of composite joints.

    A free joint joins nothing: what it carries may touch what stands still.
    """
    parents = {joint.child: joint.parent for joint in joints}
    found = set()
    for joint in joints:
        if joint.kind == "free" or joint.child in massless:
            continue
        child, parent = joint.child, joint.parent
        while parent in massless:
            parent = parents[parent]
        found.add(frozenset((child, parent)))
    return found


def pairs_of(links: Sequence[RobotLink], touching: Collection[frozenset[str]]) -> tuple[Pair, ...]:
    """Return pairs of links in the order of these, the earlier one first."""
    order = {link.name: k for k, link in enumerate(links)}
    numbers = sorted(sorted(order[name] for name in pair) for pair in touching)
    return tuple((links[one].name, links[two].name) for one, two in numbers)


def exclusions(
    links: Sequence[RobotLink],
    kept_apart: Callable[[str, str], bool],
    never: Callable[[RobotGeometry, RobotGeometry], bool],
) -> tuple[tuple[Pair, ...], tuple[ShapePair, ...]]:
    """Return the pairs of links, and the further pairs of shapes, that may not touch.

    Parameters
    ----------
    links : with what stands still, `WORLD`, first
    kept_apart : whether no shapes of two links may touch
    never : whether two shapes may not

    Returns
    -------
    Pairs of links, where the rules leave no pair of shapes, and pairs of shapes between other links.
    """
    pairs: list[Pair] = []
    shapes: list[ShapePair] = []
    for one, two in combinations(links, 2):
        if kept_apart(one.name, two.name):
            pairs.append((one.name, two.name))
            continue
        apart = [
            ((one.name, i), (two.name, k))
            for i, a in enumerate(one.collision)
            for k, b in enumerate(two.collision)
            if never(a, b)
        ]
        if apart and len(apart) == len(one.collision) * len(two.collision):
            pairs.append((one.name, two.name))
        else:
            shapes += apart
    return tuple(pairs), tuple(shapes)
