"""Bodies under surfaces, or through them: no run should have any."""

from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy.spatial.transform import Rotation

from add.bodies import Body, ContactPoints, LinkBody, SoftBody
from add.commands.pair_logs import PairLog
from add.contact import BodyContact
from add.equations.kinematics import Kinematics
from add.geometry.shapes import shape_of
from add.kernels.distance import distance_bound
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from add.model.overlaps import Surface, may_touch, surfaces
from add.scene.build.built import BuiltScene
from add.scene.build.mesh_contact import meeting_names
from add.scene.build.scenery import Scenery, thickness
from add.simulation import Record
from add.summary import fields_of
from add.typing import BoolArray, FloatArray, IntArray

#: What helps where points of one are in the other.
STIFFER = "a stiffer contact.stiffness (null: by weight and size) or a smaller time.dt holds it"
#: Share of the thinnest part by which nodes of a net are below a surface at the least where it has sunk in.
THIN = 0.3
#: Lever of a surface without end that turns [m].
FAR = 1e9
#: Shapes whose gaps are distances, which change no more than points and shapes go.
_EXACT = (PLANE, SPHERE, BOX, CAPSULE, CYLINDER)


class _Middles(NamedTuple):
    """The points and shapes that are compared: contact points of moving bodies, and shapes of others that they meet.

    `starts`: first rows of frames (n,); `middles` (n, 3) and `arms`, of each (m, 3), of their points in the frame;
    `nodes`: of each net, rows of X; `cores`: of a soft body, those of the element in its middle; `meets` (bodies,
    surfaces): whether they may touch, frames first; `whole`: bodies whose middle is a place of theirs; `allowed`: how
    deep the middle of thin ones may be [m], whose nodes are all below what they lie on; `bounds`: radii of balls about
    the surfaces' places that hold them [m]; `thick`: their thinnest parts [m]; `surfaces`: the names of their owners;
    `bare`: links that have no shapes though others of their tree have, which count by their centres; `goes` (m, 3):
    rows of X of all places and turns, with the `levers` (m,) by which points of bodies and of surfaces turn [m], one of
    places; `speed`: of the fastest obstacle [m/s], inf where a surface's gaps may jump.
    """

    names: tuple[str, ...]
    starts: IntArray
    middles: FloatArray
    arms: tuple[FloatArray, ...]
    nodes: tuple[IntArray, ...]
    cores: tuple[IntArray, ...]
    meets: BoolArray
    whole: BoolArray
    allowed: FloatArray
    bounds: FloatArray
    thick: FloatArray
    surfaces: tuple[str, ...]
    bare: frozenset[str]
    goes: IntArray
    levers: FloatArray
    speed: float

    def way(self, then: Kinematics, now: Kinematics) -> float:
        """Return how much less at the most a gap is at a state of X than at the one before [m].

        A point of a frame goes no farther than its origin and, by its lever, its turn, |exp(a) - exp(b)| <= |a - b|; a
        surface neither; and its turn counts once more in `_passed`, times sqrt(2).
        """
        moved = self.levers[:, None] * (now.q[self.goes] - then.q[self.goes])
        return float(6.0 * np.sqrt((moved**2).sum(axis=1).max()) + self.speed * (now.t - then.t))


def _middles(built: BuiltScene) -> _Middles:
    model, theta = built.model, built.theta
    frames: list[tuple[Body, ContactPoints]] = []
    nets: list[tuple[Body, ContactPoints]] = []
    at = model.layouts
    touching = {body.tree for body in model.bodies if isinstance(body, LinkBody) and body.contact_points().radii.size}
    bare: dict[str, FloatArray] = {}
    for body in model.bodies:
        points = body.contact_points()
        if not points.radii.size and isinstance(body, LinkBody) and body.tree in touching and not body.massless:
            centre = at.parameters[f"bodies.{body.tree}.links.{body.link}.centre"].indices
            bare |= {body.name: theta[centre].reshape(1, 3)} if body.contact_mesh() is None else {}
        if body.moves and (points.radii.size or body.name in bare):
            (frames if body.has_frame else nets).append((body, points))
    centres = [body.centre(at) for body, _ in frames]
    origins = [np.where(centre >= 0, theta[centre], 0.0) for centre in centres]
    arms = [bare.get(body.name, points.arms - origin) for (body, points), origin in zip(frames, origins, strict=True)]
    middles = np.array([own.mean(axis=0) for own in arms]).reshape(-1, 3)
    whole = [_within(body, own + origin) for (body, _), own, origin in zip(frames, middles, origins, strict=True)]
    # A middle that is a place of the body counts alone, whatever is between its points.
    arms = [own[None] if inside else at for own, at, inside in zip(middles, arms, whole, strict=True)]
    whole += [isinstance(body, SoftBody) or points.nodes.size == 1 for body, points in nets]
    names = tuple(body.name for body, _ in (*frames, *nets))
    at_start = model.at_start(theta)
    others = surfaces(model, at_start, theta)
    meets = np.zeros((len(names), len(others)), dtype=bool)
    for (i, name), (k, other) in product(enumerate(names), enumerate(others)):
        alike = name == other.name or (name in bare and not other.still)
        meets[i, k] = not alike and may_touch(model.contact, name, other.name)
    met = np.flatnonzero(meets.any(axis=0))
    solid = {body.name for body, _ in nets if isinstance(body, SoftBody)} | {body.name for body, _ in frames}
    parts = {one.name: one.thin for one in Scenery(built.scene, built).moving}
    thin = np.array([0.0 if name in solid else parts.get(name, 0.0) for name in names])
    thick = np.array([thickness(others[k].kind, others[k].size) for k in met])
    bounds = np.array([distance_bound(others[k].kind, *others[k].size[:3]) for k in met])
    starts = {body.name: int(at.rows[body.name].start) for body in model.bodies}
    nodes = tuple(starts[body.name] + 3 * points.nodes for body, points in nets)
    # Where a frame's points are about its origin: those of bodies, and of surfaces that bodies carry.
    reaches = (float(np.linalg.norm(own, axis=1).max()) for own in arms)
    turning = [(starts[body.name], reach) for (body, _), reach in zip(frames, reaches, strict=True)]
    for k, bound in zip(map(int, met), bounds, strict=True):
        if others[k].name in starts:
            first = starts[others[k].name]
            reach = np.linalg.norm(others[k].position - at_start.q[first : first + 3])
            turning.append((first, min(float(reach + bound), FAR)))
    places = np.concatenate([*nodes, np.array([first for first, _ in turning], dtype=np.int64)])
    turns = np.array([first + 3 for first, _ in turning], dtype=np.int64)
    return _Middles(
        names,
        np.array([starts[body.name] for body, _ in frames], dtype=np.int64),
        middles,
        tuple(arms),
        nodes,
        tuple(starts[body.name] + 3 * _core(body) for body, _ in nets),
        meets[:, met],
        np.array(whole, dtype=bool),
        THIN * np.minimum.outer(thin, thick),
        bounds,
        thick,
        tuple(others[k].name for k in met),
        frozenset(bare),
        np.concatenate([places, turns])[:, None] + np.arange(3),
        np.concatenate([np.ones(places.size), [lever for _, lever in turning]]),
        max((others[k].speed * others[k].still if others[k].kind in _EXACT else np.inf for k in met), default=0.0),
    )


def _within(body: Body, place: FloatArray) -> bool:
    """Return whether a place of its frame is in one of a body's shapes."""
    rows = (np.array(shape.size) if shape.mesh is None else shape.mesh.row for shape in body.shapes)
    return any(
        shape_of(shape.kind).gaps(row, ((place - shape.position) @ shape.rotation)[None])[0] <= 0.0
        for shape, row in zip(body.shapes, rows, strict=True)
    )


def _core(body: Body) -> IntArray:
    """Return the nodes of the element of a soft body that is next to its middle, which a ring has in its tube."""
    if not isinstance(body, SoftBody):
        return np.zeros(0, dtype=np.int64)
    middles = body.mesh.points[body.mesh.cells].mean(axis=1)
    return np.asarray(body.mesh.cells[np.argmin(np.linalg.norm(middles - body.mesh.points.mean(axis=0), axis=1))])


@final
@dataclass
class Sunk:
    """The time of the first step [s], the greatest depth of half of a body's points [m], and what helps.

    Of what goes ``through`` a surface within a step the depth is that of its middle on a straight way.
    """

    time: float
    depth: float
    remedy: str
    through: bool = False


@final
@dataclass
class SunkLog(PairLog[Sunk]):
    """Bodies half of which was below a surface, or which went through one within a step."""

    KIND = Sunk
    _of: list[_Middles] = field(default_factory=list, repr=False, compare=False)
    _before: Kinematics | None = field(default=None, repr=False, compare=False)
    #: How far things may go until half of a body may be below a surface [m]: no step before is looked at.
    _left: float = field(default=-np.inf, repr=False, compare=False)

    def add(self, built: BuiltScene, record: Record, theta: FloatArray, before: Kinematics | None = None) -> None:
        """Take the end of a step, and the state ``before`` it where that was not the last one that was taken."""
        if not self._of:
            middles = _middles(built)
            if middles.meets.any():  # what starts inside is a doubt about the scene, and no news of the run
                start = _Placed.of(built, middles, built.model.begins(theta), theta)
                middles = middles._replace(meets=middles.meets & (_gaps(middles, start) >= -middles.allowed))
            self._of.append(middles)
        middles = self._of[0]
        if not middles.meets.any():
            return
        kin = built.model.lift.kinematics(record.kin, theta)
        if before is not None and self._before is None:
            self._before = built.model.lift.kinematics(before, theta)
        then, self._before = self._before, kin
        way = 0.0 if then is None else middles.way(then, kin)
        self._left -= way
        passes = way > middles.thick.min()
        if self._left >= 0.0 and not passes:
            return
        placed = _Placed.of(built, middles, kin, theta)
        gaps = _gaps(middles, placed)
        inside = (gaps < -middles.allowed) & middles.meets
        self._left = float((gaps + middles.allowed)[middles.meets].min())
        for i, k in np.argwhere(inside):
            key = middles.names[i], middles.surfaces[k]
            if key not in self.seen:
                self.seen[key] = Sunk(float(kin.t), 0.0, _remedy(built, middles, kin, theta, key))
            self.seen[key].depth = max(self.seen[key].depth, -float(gaps[i, k]))
        gone = _passed(middles, _Placed.of(built, middles, then, theta), placed) if then is not None and passes else []
        for i, k, depth, share in gone:
            key = middles.names[i], middles.surfaces[k]
            if key not in self.seen and not inside[i, k]:
                dt = share * built.scene.time.dt
                self.seen[key] = Sunk(float(kin.t), depth, f"a time.dt of {dt:.1g} s or less lets them meet", True)

    def described(self) -> list[dict[str, Any]]:
        """Return the pairs for ``result.json``, the deepest first."""
        return [
            {
                "bodies": list(pair),
                **fields_of(one, "time", "depth"),
                "warning": True,
                "text": _text(pair, one),
            }
            for pair, one in sorted(self.seen.items(), key=lambda item: -item[1].depth)
        ]

    @classmethod
    def parsed(cls, found: Any) -> Self:
        if isinstance(found, list):  # earlier versions had rows alone, and a flag in them
            rows = [[*row[:4], "".join(x for x in row[4:] if isinstance(x, str)) or STIFFER] for row in found]
            found = {"seen": rows}
        return super().parsed(found)


def _text(pair: tuple[str, str], one: Sunk) -> str:
    if one.through:
        return f"the middle of {pair[0]} goes through {pair[1]} in the step to t = {one.time:.6g} s: {one.remedy}"
    return (
        f"the middle of {pair[0]} is inside {pair[1]} from t = {one.time:.6g} s on, {one.depth:.3g} m deep: "
        f"{one.remedy}"
    )


def _remedy(built: BuiltScene, found: _Middles, kin: Kinematics, theta: FloatArray, pair: tuple[str, str]) -> str:
    """Return what helps a body inside a surface: one into which it has no point is narrower than these are apart."""
    if pair[0] in found.bare:
        return "this link has no shapes by which it could touch"
    names = np.array([*(body.name for body in built.model.bodies), *(item.name for item in built.model.obstacles)])
    met = [*meeting_names(built.model)]
    for term in built.model.term(BodyContact):
        points, shapes = np.divmod(term.decide(kin, theta)[:, 0], term.kind.size)
        met += zip(names[term.owner[points]], names[term.shape_owner[shapes]], strict=True)
    if any({*two} == {*pair} for two in met):
        return STIFFER
    tree, _, link = pair[0].partition("/")
    rigid = pair[0] in found.names[: found.starts.size]
    key = f"bodies.{tree}.{'spacing' if link else 'collision.spacing'}" if rigid else "its mesh"
    return f"no point of one is in the other, they pass beside each other: a finer {key} holds it"


class _Placed(NamedTuple):
    """Bodies and surfaces at a state.

    `origins` (n, 3) and `turns` of frames, `places` of the nodes of each net and of its core, `middles` (bodies, 3).
    """

    origins: FloatArray
    turns: Rotation | None
    places: list[FloatArray]
    cores: list[FloatArray]
    middles: FloatArray
    surfaces: list[Surface]

    @classmethod
    def of(cls, built: BuiltScene, found: _Middles, kin: Kinematics, theta: FloatArray) -> "_Placed":
        """Return them at ``kin`` of X."""
        x, n = kin.q, found.starts.size
        turns = Rotation.from_rotvec(x[found.starts[:, None] + np.arange(3, 6)]) if n else None
        places, cores = ([x[rows[:, None] + np.arange(3)] for rows in some] for some in (found.nodes, found.cores))
        origins = x[found.starts[:, None] + np.arange(3)]
        of_frames = np.zeros((0, 3)) if turns is None else origins + turns.apply(found.middles)
        middles = np.concatenate([of_frames, np.array([own.mean(axis=0) for own in places]).reshape(-1, 3)])
        met = surfaces(built.model, kin, theta, frozenset(found.surfaces))
        return cls(origins, turns, places, cores, middles, met)


def _gaps(found: _Middles, at: _Placed) -> FloatArray:
    """Return the distances of bodies and surfaces (bodies, surfaces) [m]: that of half of a body's points.

    The middle of a ring or a sheet is no place of it; where that of a frame is outside, its points are not asked. That
    of a soft body counts, too: not half of a body need be in a plate that it sinks through. Of what is far it is at
    least what is returned.
    """
    n, middles, places, turns = found.starts.size, at.middles, at.places, at.turns
    reach = np.array([0.0] * n + [np.ptp(own, axis=0).sum() for own in places])
    out = np.empty((len(found.names), len(found.surfaces)))
    for k, surface in enumerate(at.surfaces):
        away = np.linalg.norm(middles - surface.position, axis=1)
        out[:, k] = away - found.bounds[k] - reach
        near = np.flatnonzero(found.meets[:, k] & (out[:, k] <= 0.0))
        frames = near[: np.searchsorted(near, n)]
        if turns is not None and frames.size:
            out[frames, k] = surface.gaps(middles[frames])
            for i in map(int, frames[out[frames, k] < 0.0]):
                of_points = surface.gaps(at.origins[i] + turns[i].apply(found.arms[i]))
                out[i, k] = max(out[i, k], float(np.median(of_points)))
        for i in map(int, near[frames.size :]):
            gaps = surface.gaps(places[i - n])
            out[i, k] = np.partition(gaps, gaps.size // 2)[gaps.size // 2]
            if at.cores[i - n].size:
                core = at.cores[i - n].mean(axis=0, keepdims=True)
                out[i, k] = min(out[i, k], float(surface.gaps(core)[0]))
    return out


#: Looks along a way through a shape, at the most: as far apart as it is away, or a quarter of its thickness.
LOOKS = 100


def _passed(found: _Middles, before: _Placed, after: _Placed) -> list[tuple[int, int, float, float]]:
    """Return the bodies and surfaces of which the middle goes through within a step, from outside to outside.

    That is on its straight way in the frame of the surface; who goes less far than the surface is thick cannot. Beside
    them stand how deep the way leads [m], and the share of the step in which they go half as far as it is thick. The
    middle of a ring, or of a sheet, is no place of it.
    """
    out = []
    fastest = np.linalg.norm(after.middles - before.middles, axis=1).max(initial=0.0)
    moved, turned = (
        np.array(
            [getattr(now, key) - getattr(then, key) for then, now in zip(before.surfaces, after.surfaces, strict=True)]
        )
        for key in ("position", "rotation")
    )
    far = fastest + np.linalg.norm(moved, axis=1)
    turns = turned.any(axis=(1, 2))
    far[turns] += found.bounds[turns] * np.linalg.norm(turned[turns], axis=(1, 2))
    for k in np.flatnonzero(far > found.thick):
        then, now = before.surfaces[k], after.surfaces[k]
        begin = (before.middles - then.position) @ then.rotation
        way = (after.middles - now.position) @ now.rotation - begin
        length = np.linalg.norm(way, axis=1)
        share = np.clip(-(begin * way).sum(axis=1) / np.maximum(length**2, 1e-300), 0.0, 1.0)
        near = np.linalg.norm(begin + share[:, None] * way, axis=1) <= found.bounds[k]
        for i in np.flatnonzero(found.meets[:, k] & found.whole & (length > found.thick[k]) & near):
            shape, gone, deepest = shape_of(now.kind), 0.0, np.inf
            if (shape.gaps(now.size, begin[i] + np.array([[0.0], [1.0]]) * way[i]) < 0.0).any():
                continue
            for _ in range(LOOKS):
                gap = float(shape.gaps(now.size, (begin[i] + gone * way[i])[None])[0])
                deepest = min(deepest, gap)
                gone += max(abs(gap), 0.25 * found.thick[k]) / length[i]
                if gone >= 1.0:
                    break
            if deepest < 0.0:
                out.append((int(i), int(k), -deepest, 0.5 * float(found.thick[k] / length[i])))
    return out
