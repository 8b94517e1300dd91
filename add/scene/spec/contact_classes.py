"""Contact classes of a scene, whose members share coefficients, and the rows of `contact.pairs` for two of them.

Bodies and obstacles that a row names, and obstacles, have a class of their own, under their name. Other bodies are of
the class that they say, or share the class `COMMON`; one that is alone there has its own. Where nodes have numbers of
their own, classes of nodes and of frames are parted, by `COMMON_NODES` in their names.

`met_shapes` are the names of the shapes that contact points can meet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.contact import ContactPairSpec, NodeContactSpec
from add.scene.spec.links import LinkOf, all_bodies, links_of, trees
from add.scene.spec.nets import NetSpec
from add.scene.spec.rigid import BoxGeometrySpec, FileGeometrySpec, KinematicBodySpec, RigidBodySpec
from add.scene.spec.scene import BodySpec, SceneSpec


def met_shapes(spec: SceneSpec) -> list[str]:
    """Return the names of everything that points can meet: obstacles, and bodies that carry a shape."""
    carriers = [
        name
        for name, body in spec.bodies.items()
        if isinstance(body, RigidBodySpec | KinematicBodySpec)
        and body.collision.shape
        and body.geometry is not None
        and (body.collision.closed or not isinstance(body.geometry, FileGeometrySpec))
    ]
    links = [item.name for name, body in trees(spec).items() for item in links_of(name, body) if item.link.collision]
    return [*spec.obstacles, *carriers, *links]


def may_have_mesh(body: BodySpec | LinkOf | None) -> bool:
    """Whether a body can have a surface that meets those of others."""
    if body is None or isinstance(body, LinkOf | ArticulatedBodySpec):
        return False
    if isinstance(body, RigidBodySpec | KinematicBodySpec):
        return isinstance(body.geometry, FileGeometrySpec | BoxGeometrySpec)
    return not isinstance(body, NetSpec) or bool(body.collision)


#: The class of bodies that say none and that no row names; no name of a scene may begin so.
COMMON = "*"
COMMON_NODES = "*nodes"


def said_classes(spec: SceneSpec) -> dict[str, list[str]]:
    """Return class -> the bodies that say that they are of it; links are of their tree's."""
    out: dict[str, list[str]] = {}
    for name, body in all_bodies(spec).items():
        if body.contact is not None and body.contact.class_ is not None:
            out.setdefault(body.contact.class_, []).append(name)
        elif isinstance(body, LinkOf):  # the name of its tree means all links
            out.setdefault(body.tree, []).append(name)
    return out


@final
@dataclass(frozen=True)
class ContactClasses:
    """The classes of a scene and its rows of `contact.pairs`.

    Attributes
    ----------
    of : body or obstacle -> its class
    said : class that bodies say -> those bodies
    rows : the rows
    nodal : classes of bodies of nodes alone
    """

    of: dict[str, str]
    said: dict[str, list[str]]
    rows: tuple[ContactPairSpec, ...]
    nodal: frozenset[str] = frozenset()

    @classmethod
    def read(cls, spec: SceneSpec) -> "ContactClasses":
        """Return the classes of a scene."""
        rows, said = spec.contact.pairs, said_classes(spec)
        named = {side for row in rows for side in row.sides} - said.keys()
        of = {name: name for name in [*spec.obstacles, *named]}
        of |= {name: label for label, members in said.items() for name in members if name not in named}
        bodies = all_bodies(spec)
        nets = {name for name, body in bodies.items() if isinstance(body, SoftBodySpec | NetSpec)}
        if spec.contact.nodes != NodeContactSpec():  # a class of both kinds has two sets of numbers
            mixed = {label for label, members in said.items() if nets & {*members} and {*members} - nets}
            of |= {name: f"{of[name]}{COMMON_NODES}" for name in nets & of.keys() if of[name] in mixed}
        apart = nets if spec.contact.nodes != NodeContactSpec() else set()
        free = [name for name in bodies if name not in of]
        for shared, label in ((set(free) - apart, COMMON), (set(free) & apart, COMMON_NODES)):
            of |= {name: label if len(shared) > 1 else name for name in free if name in shared}
        labels: dict[str, set[str]] = {}
        for name in bodies:
            labels.setdefault(of[name], set()).add(name)
        nodal = frozenset(label for label, members in labels.items() if members <= nets)
        return cls(of, said, rows, nodal)

    def members(self, side: str) -> list[str]:
        """Return the bodies and obstacles that a side of a row names."""
        return self.said.get(side, [side])

    def pairs(self, row: ContactPairSpec) -> Iterator[tuple[str, str]]:
        """Return the classes (of points, of shapes) that a row is for; some of them may have no points or shapes."""
        a, b = (dict.fromkeys(self.of.get(name, name) for name in self.members(side)) for side in row.sides)
        yield from ((x, y) for x in a for y in b)
        if row.between is not None:
            yield from ((y, x) for x in a for y in b)

    def enabled(self) -> dict[tuple[str, str], bool]:
        """Return what the rows say of classes (of points, of shapes); the later row wins."""
        return {pair: row.enabled for row in self.rows for pair in self.pairs(row)}

    def restitutions(self, spec: SceneSpec) -> dict[tuple[str, str], int]:
        """Return classes (of points, of shapes) -> the row whose restitution counts; a later damping takes it away."""
        shapes, bodies = ({self.of[name] for name in names} for names in (met_shapes(spec), all_bodies(spec)))
        out: dict[tuple[str, str], int] = {}
        for k, row in enumerate(self.rows):
            for pair in self.pairs(row):
                if row.damping is not None:
                    out.pop(pair, None)
                elif row.restitution is not None and pair[0] in bodies and pair[1] in shapes:
                    out[pair] = k
        return out

    def disabled_bodies(self) -> set[frozenset[str]]:
        """Return the pairs of bodies that rows switch off."""
        return {
            frozenset((a, b))
            for row in self.rows
            if not row.enabled
            for a in self.members(row.sides[0])
            for b in self.members(row.sides[1])
        }
