"""From the links and joints of a file to a tree: one root, links on fixed joints merged, parents first."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Any, NamedTuple, NoReturn

import numpy as np

from add.scene.robots.inertia import together
from add.scene.robots.model import WORLD, LinkPlace, RobotGeometry, RobotJoint, RobotLink, here
from add.scene.robots.xml_file import LARGEST_NUMBER, Source
from add.typing import FloatArray


class Tree(NamedTuple):
    """Links and joints after merging; `hosts` has the place of every link of the file."""

    static: RobotLink
    links: tuple[RobotLink, ...]
    joints: tuple[RobotJoint, ...]
    hosts: dict[str, LinkPlace]

    def places(self) -> dict[str, LinkPlace]:
        """Return the places of the links that were merged."""
        return {name: place for name, place in self.hosts.items() if place.link != name}


def without_idle(
    source: Source, links: Mapping[str, RobotLink], joints: Sequence[RobotJoint]
) -> tuple[RobotJoint, ...]:
    """Return the joints, those fixed that move no mass, neither themselves nor by joints that mimic them.

    A link without mass bears no torque, so that all else moves as it did.
    """
    heavy = {name for name, link in links.items() if link.mass > 0.0}
    if not heavy:
        source.doubt("inertia", "robot", "no link has a mass: nothing moves")
    parents = {joint.child: joint.parent for joint in joints}
    for name in tuple(heavy):
        while name in parents and (name := parents[name]) not in heavy:
            heavy.add(name)
    leaders = {joint.name: joint.mimic[0] for joint in joints if joint.mimic is not None}

    def first(name: str) -> str:
        way = {name}
        while name in leaders and (name := leaders[name]) not in way:
            way.add(name)
        return name

    busy = {first(joint.name) for joint in joints if joint.child in heavy}
    out = []
    for joint in joints:
        if joint.kind != "fixed" and joint.child not in heavy and first(joint.name) not in busy:
            source.note(source.place("joint", joint.name), "moves no mass: it stands still")
            joint = replace(joint, kind="fixed", mimic=None)
        out.append(joint)
    return tuple(out)


def merge(source: Source, links: Mapping[str, RobotLink], joints: Sequence[RobotJoint], turn: FloatArray) -> Tree:
    """Put links on fixed joints into their parents: masses, centres, inertia and shapes.

    With m the sum of masses and c the mean centre, I = sum R_k I_k R_k^T + m_k (|d|^2 1 - d d^T), d = c_k - c.

    Parameters
    ----------
    source : of the errors
    links : of the file; `WORLD` among them if something stands still without a joint
    joints : of the file, each link the child of one, `WORLD` the parent of the first
    turn : (3, 3) from the file's axes to the world's
    """
    below: dict[str, list[RobotJoint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    hosts = {WORLD: LinkPlace(WORLD, np.zeros(3), turn)}
    members: dict[str, list[RobotLink]] = {WORLD: []}
    if WORLD in links:
        members[WORLD].append(links[WORLD].moved(hosts[WORLD][1:]))
    ordered: list[RobotJoint] = []
    waiting = list(reversed(below.get(WORLD, [])))
    while waiting:
        joint = waiting.pop()
        place = hosts[joint.parent].then((joint.position, joint.rotation))
        if joint.kind != "fixed":
            ordered.append(replace(joint, parent=place.link, position=place.position, rotation=place.rotation))
            place = LinkPlace(joint.child, *here())
            members[joint.child] = []
        hosts[joint.child] = place
        members[place.link].append(links[joint.child].moved(place[1:]))
        waiting += reversed(below.get(joint.child, []))
    lost = [name for name in links if name not in hosts]
    if lost:
        fail_circle(source, lost[0], joints)
    merged = {name: _merged(name, parts) for name, parts in members.items()}
    return Tree(merged[WORLD], tuple(merged[joint.child] for joint in ordered), tuple(ordered), hosts)


def fail_circle(source: Source, name: str, joints: Sequence[RobotJoint]) -> NoReturn:
    """Raise the error for a link from which joints lead back to it."""
    source.fail(
        source.place("link", name),
        "the links do not form a tree: joints lead from this link back to it",
        "the circle " + " -> ".join(_circle(name, joints)),
        "each link the child of at most one joint, and one root",
    )


def _circle(name: str, joints: Sequence[RobotJoint]) -> list[str]:
    """Return the names of a circle that leads to a link, parents before children."""
    parents = {joint.child: joint.parent for joint in joints}
    way = [name]
    while parents[way[-1]] not in way:
        way.append(parents[way[-1]])
    first = way.index(parents[way[-1]])
    return list(reversed([*way[first:], way[first]]))


def _merged(name: str, parts: Sequence[RobotLink]) -> RobotLink:
    """Return one link of several in its frame."""
    if len(parts) == 1:
        return replace(parts[0], name=name)
    mass, centre, inertia = together([(link.mass, link.centre, link.inertia) for link in parts])
    collision, visual = (
        tuple(shape for some in shapes for shape in some)
        for shapes in ([link.collision for link in parts], [link.visual for link in parts])
    )
    return RobotLink(name, mass, centre, (inertia + inertia.T) / 2.0, collision, visual)


# --- Which shapes may touch, from rules on links and on shapes --------------------------------------------------------

Pair = tuple[str, str]
ShapePair = tuple[tuple[str, int], tuple[str, int]]


def neighbours(joints: Sequence[RobotJoint], massless: frozenset[str]) -> set[frozenset[str]]:
    """Return pairs of links that a joint joins, also through the massless links of composite joints.

    A free joint joins nothing: what it carries may touch what stands still.
    """
    parents = {joint.child: joint.parent for joint in joints}
    pairs = set()
    for joint in joints:
        if joint.kind == "free" or joint.child in massless:
            continue
        child, parent = joint.child, joint.parent
        while parent in massless:
            parent = parents[parent]
        pairs.add(frozenset((child, parent)))
    return pairs


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


# --- Numbers of a robot that are none, or that no robot has -----------------------------------------------------------

#: Infinite where there is no limit.
_LIMITS = frozenset({"lower", "upper", "effort", "velocity", "control", "force", "activation"})


def require_plausible(source: Source, kind: str, item: Any) -> None:
    """Refuse NaN, and infinite or huge numbers where they are no limits, in a part of a `Robot`.

    Raises
    ------
    InputError
        naming the part and its field.
    """
    place = source.place(kind, item.name)
    for entry in fields(item):
        value = getattr(item, entry.name)
        if value is None or isinstance(value, str) or entry.name == "segments":  # sums of places that were checked
            continue
        if entry.name in ("collision", "visual"):
            for shape in value:
                require_plausible(source, f"shape of {place}:", shape)
            continue
        flat = value if isinstance(value, np.ndarray) else np.array(list(_numbers(value)), dtype=np.float64)
        wrong = np.isnan(flat) if entry.name in _LIMITS else ~(np.abs(flat) <= LARGEST_NUMBER)
        if wrong.any():
            found = f"{entry.name} = {flat[wrong][0]:g}"
            source.fail(place, "an impossible number", found, f"finite numbers below {LARGEST_NUMBER:g}")


def _numbers(value: Any) -> Any:
    """Yield the numbers of nested tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    elif not isinstance(value, str):
        yield float(value)
