"""The surroundings of bodies (obstacles, settings of contact), and the term of points against shapes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.bodies import Body, CarriedShape, ContactPoints, Layouts
from add.bodies.base import NO_POINTS
from add.contact import (
    CONSTANT_FRICTION,
    BodyContact,
    FrictionCurve,
    FrictionLaw,
    NormalFormula,
    NormalLaw,
    PairParameters,
    Sizes,
    point_growth,
)
from add.equations.layout import ParameterLayout
from add.equations.sites import NO_INDICES
from add.geometry.triangle_surface import CollisionMesh
from add.kernels.contact_arrays import Growth
from add.kernels.contact_detection import ALWAYS, BEHIND, NEVER
from add.model.contact_points import corners_of, lined_shapes, rims_of, shapes_of, with_lines
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Obstacle:
    """A shape of the world; ``kind`` and ``size`` as in `add.kernels.distance`.

    ``mesh`` is that of the kind MESH, whose size is half its extent; ``points``, in the frame of the shape, meet shapes
    of bodies.
    """

    name: str
    kind: int
    size: tuple[float, float, float]
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray
    mesh: CollisionMesh | None = None
    points: ContactPoints = NO_POINTS

    #: What is asked of a body: its points are in a frame, and no force moves it.
    has_frame: ClassVar[bool] = True
    moves: ClassVar[bool] = False

    @property
    def shapes(self) -> tuple[CarriedShape, ...]:
        """Its shape."""
        return (CarriedShape(self.kind, self.size, self.rotation, self.position, self.mesh),)

    def contact_points(self) -> ContactPoints:
        """Return its points in the world at t = 0."""
        return self.points._replace(arms=self.position + self.points.arms @ self.rotation.T)


#: A shape of a body: the body's name, and the shape's number among its own.
ShapeName = tuple[str, int]


@final
@dataclass(frozen=True)
class MeshModel:
    """Contact of meshes with each other.

    Attributes
    ----------
    asked : pairs of bodies that meet by their meshes although points of one could meet a shape of the other
    apart : pairs of bodies that never meet
    itself : bodies that meet themselves
    """

    asked: frozenset[tuple[str, str]] = frozenset()
    apart: frozenset[tuple[str, str]] = frozenset()
    itself: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class ContactModel:
    """Contact settings that are not differentiated.

    Attributes
    ----------
    law : FrictionLaw
    per_area : bool
        Whether stiffness and damping count per rest area or per node.
    onset, ramp : float
        Depths [m]; see `add.kernels.contact_pairs`.
    total_normal : bool
    adhesive_damping : bool
        See `add.contact.BodyContact`.
    classes : contact class of bodies and obstacles; the others have one of their own, under their name
    disabled : pairs of classes (of points, of shapes) that pass through each other
    apart : pairs of bodies (of points, of shapes) that do, too
    apart_within : body -> name of its group; bodies of one group pass through each other
    shapes_apart : pairs of single shapes (of points, of shapes) that do, too
    meshes : MeshModel, or None: meshes do not meet each other
    normal_law : NormalLaw or NormalFormula
        The thickness of its layer around shapes stands in theta, where it has one.
    curve : FrictionCurve
        Its numbers stand in theta.
    couples : bool
        Whether contact brakes the spin of bodies with frames: c_t, c_r and w_0 stand in theta.
    """

    law: FrictionLaw = FrictionLaw.LINEAR
    per_area: bool = False
    onset: float = 0.0
    ramp: float = 0.0
    total_normal: bool = False
    adhesive_damping: bool = False
    classes: Mapping[str, str] = field(default_factory=dict)
    disabled: frozenset[tuple[str, str]] = frozenset()
    apart: frozenset[tuple[str, str]] = frozenset()
    apart_within: Mapping[str, str] = field(default_factory=dict)
    shapes_apart: frozenset[tuple[ShapeName, ShapeName]] = frozenset()
    meshes: MeshModel | None = None
    normal_law: NormalLaw | NormalFormula = NormalLaw.PENALTY
    curve: FrictionCurve = CONSTANT_FRICTION
    couples: bool = False

    def class_of(self, name: str) -> str:
        """Return the contact class of a body or an obstacle."""
        return self.classes.get(name, name)

    def keeps_apart(self, points: str, shapes: str) -> bool:
        """Return whether a pair of bodies passes through each other, whatever their classes say."""
        group = self.apart_within.get(points)
        return (points, shapes) in self.apart or (group is not None and self.apart_within.get(shapes) == group)


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
    pairs_apart = {(a, b) for members in groups.values() for a in members for b in members}
    pairs_apart |= {(a, b) for one, two in pairs for a in set(of[one].tolist()) for b in set(of[two].tolist())}
    pairs_apart |= {(int(of[a][k]), int(of[b][m])) for (a, k), (b, m) in shapes}
    return Labels(of, np.array(sorted(pairs_apart), dtype=np.int64).reshape(-1, 2))


def _one_group(a: str, b: str, groups: Mapping[str, str]) -> bool:
    return a in groups and groups[a] == groups.get(b)


def contact_terms(
    bodies: Sequence[Body], obstacles: Sequence[Obstacle], contact: ContactModel, at: Layouts
) -> tuple[BodyContact, ...]:
    """Return the contact term, if it has anything to do."""
    number = {name: k for k, name in enumerate([*(b.name for b in bodies), *(o.name for o in obstacles)])}
    still = [o for o in obstacles if o.points.radii.size and any(body.moves and body.shapes for body in bodies)]
    carriers: list[Body | Obstacle] = [*bodies, *still]
    bare = [carrier.contact_points() for carrier in carriers]
    points_of, lines_of = zip(*(with_lines(*pair) for pair in zip(carriers, bare, strict=True)), strict=True)
    on_nodes = (at.rows[b.name].start // 3 + p.nodes for b, p in zip(bodies, points_of, strict=False))
    nodes = np.concatenate([np.zeros(0, np.int64), *on_nodes])
    # Points in frames come after all nodes.
    owner = np.repeat(np.arange(len(carriers)), [points.radii.size for points in points_of])
    framed = np.array([carrier.has_frame for carrier in carriers], dtype=np.bool_)[owner]
    order = np.argsort(framed, kind="stable")
    owner, framed = owner[order], framed[order]
    arms = np.concatenate([np.zeros((0, 3)), *(points.arms for points in points_of)])[order]
    radii = np.concatenate([np.zeros(0), *(points.radii for points in points_of)])[order]
    scale = np.concatenate([np.zeros(0), *(points.areas for points in points_of)])[order]
    if not contact.per_area:
        scale = np.ones(scale.size)
    hosts = [body for body in bodies for _ in body.shapes]
    sides = [_side(carrier, points, contact) for carrier, points in zip(carriers, bare, strict=True)]
    named = {carrier.name: side for carrier, side in zip(carriers, sides, strict=True)}
    world = [named.get(o.name, _Side(contact.class_of(o.name), world=True)) for o in obstacles]
    rows, row_of = _numbered(sides)
    columns, column_of = _numbered([*world, *(named[body.name] for body in hosts)])
    pairs = _pairs(rows, columns, contact, at.parameters)
    if not pairs.enabled[np.unique(row_of[owner])].any():
        return ()
    shapes = [shape for body in bodies for shape in body.shapes]
    n = nodes.size
    kept = slice(0 if pairs.enabled[np.unique(row_of[owner[:n]])].any() else n, None)
    of_still = [len(bodies) - 2 - number[o.name] for o in still]  # -2 less the number among the obstacles
    starts = np.array([*(at.rows[body.name].start for body in bodies), *of_still], dtype=np.int64)
    centres = np.array([*(body.centre(at) for body in bodies), *(NO_INDICES for _ in still)], dtype=np.int64)
    shape_of = [shapes_of(points) for points in points_of]
    rim, rims = rims_of(carriers, points_of, lines_of)
    counts = {o.name: 1 for o in obstacles}
    counts |= {b.name: max(len(b.shapes), 1 + int(k.max(initial=0))) for b, k in zip(bodies, shape_of, strict=False)}
    known = labels(counts, contact)
    part = [known.of[carrier.name][k] for carrier, k in zip(carriers, shape_of, strict=True)]
    shape_part = [*(known.of[o.name] for o in obstacles), *(known.of[b.name][: len(b.shapes)] for b in bodies)]
    return (
        BodyContact(
            carrier=np.concatenate([3 * nodes, starts[owner[n:]]])[kept],
            rigid=framed[kept],
            arm=arms[kept],
            radius=radii[kept],
            scale=scale[kept],
            group=row_of[owner[kept]],
            centre=centres[owner[kept]],
            kind=np.array([o.kind for o in obstacles] + [shape.kind for shape in shapes], dtype=np.int64),
            size=_sizes([*obstacles, *shapes]),
            shape_carrier=np.array(
                [-1] * len(obstacles) + [at.rows[body.name].start for body in hosts], dtype=np.int64
            ),
            rotation=np.array([o.rotation for o in obstacles] + [s.rotation for s in shapes], dtype=float),
            position=np.array([o.position for o in obstacles] + [s.position for s in shapes], dtype=float),
            velocity=np.array([o.velocity for o in obstacles] + [np.zeros(3) for _ in shapes], dtype=float),
            shape_centre=np.array(
                [NO_INDICES for _ in obstacles] + [body.centre(at) for body in hosts], dtype=np.int64
            ),
            shape_group=column_of,
            owner=np.array([number[carrier.name] for carrier in carriers], dtype=np.int64)[owner[kept]],
            shape_owner=np.array(
                [*(number[o.name] for o in obstacles), *(number[b.name] for b in hosts)], dtype=np.int64
            ),
            pairs=pairs,
            law=contact.law,
            total_normal=contact.total_normal,
            adhesive_damping=contact.adhesive_damping,
            apart=known.apart,
            part=np.concatenate([np.zeros(0, np.int64), *part])[order][kept],
            shape_part=np.concatenate([np.zeros(0, np.int64), *shape_part]),
            normal_law=contact.normal_law,
            curve=contact.curve,
            sizes=_sizes_in_theta(carriers, points_of, len(obstacles), at, order[kept]),
            rim=rim[order][kept],
            rims=rims,
            corners=corners_of(carriers, points_of)[order][kept],
            lined=lined_shapes(bodies, points_of, lines_of, len(obstacles)),
        ),
    )


def _sizes_in_theta(
    bodies: Sequence[Body | Obstacle], found: Sequence[ContactPoints], n_obstacles: int, at: Layouts, kept: IntArray
) -> Sizes | None:
    """Return which points, of which ``kept`` are in the term, and shapes follow sizes in theta; None if none do."""
    if not any(shape.in_theta for body in bodies for shape in body.shapes):
        return None
    index, arms, base = [np.zeros((0, 3), np.int64)], [np.zeros((0, 3, 4))], [np.zeros((0, 4))]
    of_shapes = [np.full((n_obstacles, 3), -1, dtype=np.int64)]
    for body, points in zip(bodies, found, strict=True):
        n, shape_of = points.radii.size, shapes_of(points)
        numbers, slopes = np.full((n, 3), -1, dtype=np.int64), np.zeros((n, 3, 4))
        places = np.column_stack([points.arms if body.has_frame else np.zeros((n, 3)), points.radii])
        for k, shape in enumerate(body.shapes if not isinstance(body, Obstacle) else ()):
            rows = at.parameters[shape.in_theta].indices if shape.in_theta else np.full(3, -1)
            of_shapes.append(np.asarray(rows, dtype=np.int64)[None])
            mine = np.flatnonzero(shape_of == k)
            if shape.in_theta and mine.size:
                numbers[mine] = rows
                slopes[mine] = point_growth(
                    shape.kind, shape.size, shape.rotation, shape.position, points.arms[mine], points.radii[mine]
                )  # fmt: skip
                places[mine] -= np.einsum("c,pca->pa", shape.size, slopes[mine])
        index.append(numbers)
        arms.append(slopes)
        base.append(places)
    growth = Growth(np.concatenate(index)[kept], np.concatenate(arms)[kept], np.concatenate(of_shapes))
    return Sizes(growth, np.concatenate(base)[kept])


class _Side(NamedTuple):
    """The common part of bodies and obstacles that share a row or a column of the tables.

    ``moves``: whether forces move it; ``ball``: whether its only point is the centre of a sphere; ``carries``: whether
    it has points and a shape.
    """

    name: str
    rigid: bool = False
    world: bool = False
    moves: bool = False
    ball: bool = False
    carries: bool = False


def _side(body: Body | Obstacle, points: ContactPoints, contact: ContactModel) -> _Side:
    ball, world = body.has_frame and points.radii.size == 1 and points.radii[0] > 0.0, isinstance(body, Obstacle)
    name, carries = contact.class_of(body.name), bool(body.shapes)
    return _Side(name, body.has_frame, world, body.moves, ball=bool(ball), carries=carries)


def _numbered(sides: Sequence[_Side]) -> tuple[list[_Side], IntArray]:
    """Return the different ones, and the number of each among them."""
    numbers = {side: k for k, side in enumerate(dict.fromkeys(sides))}
    return list(numbers), np.array([numbers[side] for side in sides], dtype=np.int64)


def _pairs(
    rows: Sequence[_Side], columns: Sequence[_Side], contact: ContactModel, parameters: ParameterLayout
) -> PairParameters:
    """Return the tables of what meets; two classes without bodies never do."""
    shape = (len(rows), len(columns))

    def names(points: _Side, shapes: _Side) -> tuple[str, str]:
        # What a scene says of points of a body and an obstacle holds for points of the obstacle, too.
        return (shapes.name, points.name) if points.world else (points.name, shapes.name)

    def on(points: _Side, shapes: _Side) -> bool:
        pair = names(points, shapes)
        if not (points.moves or shapes.moves):
            return False
        return f"contact.{pair[0]}.{pair[1]}.k_n" in parameters and pair not in contact.disabled

    def enabled(row: _Side, column: _Side) -> int:
        if not on(row, column):
            return NEVER
        # The one point of a ball, with its radius, meets any shape exactly. The points of that shape's body against the
        # ball's own shape would only add the same force again, wherever a corner or another ball's centre comes in.
        if column.ball and row.carries and on(column, row):
            return BEHIND if row.ball else NEVER
        return ALWAYS

    def table(key: str, none: int = 0) -> IntArray:
        found = [[f"contact.{'.'.join(names(row, column))}.{key}" for column in columns] for row in rows]
        starts = [[parameters[name].start if name in parameters else none for name in line] for line in found]
        return np.array(starts, dtype=np.int64).reshape(shape)

    braked, numbers = np.array([row.rigid for row in rows], dtype=bool)[:, None, None], contact.curve.numbers
    return PairParameters(
        k_n=table("k_n"),
        k_d=table("k_d"),
        k_t=table("k_t"),
        c_f=table("c_f"),
        onset=np.full(shape, contact.onset),
        ramp=np.full(shape, contact.ramp),
        enabled=np.array([[enabled(row, column) for column in columns] for row in rows]).reshape(shape),
        thickness=table("thickness") if contact.normal_law.has_layer else None,
        further=np.stack([table(number.name) for number in numbers], axis=2) if numbers else None,
        mutual=np.array([[_mutual(row, column, on) for column in columns] for row in rows]).reshape(shape),
        couples=np.where(braked, np.stack([table(key, -1) for key in ("c_t", "c_r", "w_0")], axis=2), -1)
        if contact.couples
        else None,
    )


def _mutual(row: _Side, column: _Side, on: Callable[[_Side, _Side], bool]) -> bool:
    return not (row.world or column.world) and row.carries and column.carries and on(row, column) and on(column, row)


def _sizes(shapes: Sequence[Obstacle | CarriedShape]) -> FloatArray:
    """Return the numbers of each shape, a row; all are as long as that of the largest mesh."""
    rows = [np.array(shape.size, dtype=float) if shape.mesh is None else shape.mesh.row for shape in shapes]
    out = np.zeros((len(rows), max([3, *(row.size for row in rows)])))
    for line, row in zip(out, rows, strict=True):
        line[: row.size] = row
    return out
