"""Couplings of a scene as joint parts between sites, with the numbers they read."""

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from add.bodies import Body, NodalBody, RigidBody, SoftBody
from add.equations.kinematics import Kinematics
from add.equations.sites import Evaluation, SiteKind, SitePoints, gather
from add.errors import InputError
from add.joints import laws
from add.joints.law_term import FormulaJoint
from add.kernels.rotation import rotation_vector
from add.model import Model
from add.model.build import system_site
from add.scene.build.coupling_parts import air, body_forces, drag
from add.scene.build.selections import place_within, select_points
from add.scene.build.ties import Derived, Input, SceneParts
from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.couplings import (
    AirSpec,
    AttachmentSpec,
    CouplingExtension,
    CouplingSpec,
    DragSpec,
    EndSpec,
    FixedSpec,
    ForceSpec,
    HingeSpec,
    HingeStartSpec,
    PairExtension,
    SliderSpec,
    TorqueSpec,
    _PairSpec,
)
from add.scene.spec.extension import blamed
from add.scene.spec.rigid import RigidBodySpec, SphereGeometrySpec
from add.scene.spec.scene import SceneSpec
from add.ties import AxesAcross, CarriedDirection, Distance, PlaceOnOther
from add.typing import FloatArray

#: One end of a coupling: its site, and the point in the body's frame, as the input of a tie.
_End = tuple[laws.BodySite, Input]


@final
class _Bodies:
    """How a place on a body is written."""

    def __init__(
        self, spec: SceneSpec, bodies: Sequence[Body], link_poses: Mapping[str, FloatArray], parts: SceneParts
    ) -> None:
        self.spec, self.link_poses, self.parts = spec, link_poses, parts
        self.nodal = {body.name: body for body in bodies if isinstance(body, NodalBody)}
        self.framed = {body.name: body for body in bodies if body.has_frame}
        self.known = {body.name: body for body in bodies}

    def pose(self, name: str | None) -> FloatArray:
        """Return position and rotation vector (6,) of a body's rest frame at the start; the world's are zero."""
        return np.zeros(6) if name is None else start_of(self.spec, self.link_poses, name)

    def ball_radius(self, name: str | None) -> float | None:
        """Return the radius of a rigid ball [m]; None of anything else."""
        body = self.spec.bodies.get(name or "")
        geometry = body.geometry if isinstance(body, RigidBodySpec) else None
        return geometry.radius if isinstance(geometry, SphereGeometrySpec) else None

    def ends(self, a: EndSpec, b: EndSpec, at: str) -> tuple[_End, _End]:
        """Return both ends; a place that is not given is where the other end starts, and follows both poses."""
        # The only node of a body is what a handle's end means.
        only = {name: body.rest[0] for name, body in self.nodal.items() if body.rest.shape[0] == 1}
        here, there = (only.get(end.body or "") if end.at is None else np.array(end.at) for end in (a, b))
        if here is None:
            assert there is not None
            second = self.given(b.body, there, f"{at}.b")
            return self.opposite(a.body, b.body, there, second, f"{at}.a"), second
        first = self.given(a.body, here, f"{at}.a")
        if there is None:
            return first, self.opposite(b.body, a.body, here, first, f"{at}.b")
        return first, self.given(b.body, there, f"{at}.b")

    def given(self, name: str | None, place: FloatArray, path: str) -> _End:
        """Return the end at a place that the scene gives in the body's rest frame."""
        if name is None or name in self.framed:
            arm = self.parts.number(f"{path}.at", place, "m")
            return self.arm(name, arm), arm
        return self.node(name, place, path), place

    def opposite(self, name: str | None, other: str | None, place: FloatArray, end: _End, path: str) -> _End:
        """Return the end on a body where the end of the other body, at ``place`` of its frame, starts."""
        if name is None or name in self.framed:
            poses = (*self.parts.pose_of(other), end[1], *self.parts.pose_of(name))
            arm = self.parts.follow(f"{path}.at", "m", PlaceOnOther(), *poses)
            return self.arm(name, arm), arm
        # Which nodes stand for the place is decided here; the reader refuses parameters that would move it.
        there = PlaceOnOther().value(np.concatenate([self.pose(other), place, self.pose(name)])[None])[0]
        return self.node(name, there, path), there

    @staticmethod
    def arm(name: str | None, arm: str) -> laws.BodySite:
        """Return the site of a point of a body with a frame, or of the world; ``arm`` names its place in theta."""
        return laws.BodySite(SiteKind.WORLD, arm=arm) if name is None else laws.BodySite(SiteKind.POINT, name, arm)

    def node(self, name: str, place: FloatArray, path: str) -> laws.BodySite:
        """Return the nodes that stand for a place in the rest frame of a body of nodes."""
        body = self.nodal[name]
        limit = 0.01 if isinstance(body, SoftBody) else 1e-6 * max(1.0, np.ptp(body.rest))
        nodes, weights = place_within(body.nodes_at(place), place, limit, f"{path}.at")
        return laws.BodySite(SiteKind.NODES, name, nodes=nodes, weights=weights)

    def direction(self, name: str | None, arm: str) -> laws.BodySite:
        """Return the site of a direction in a body's frame, of which ``arm`` names the block of theta."""
        return laws.BodySite(SiteKind.WORLD, arm=arm) if name is None else laws.BodySite(SiteKind.DIRECTION, name, arm)

    def carried(self, item: _PairSpec, arm: str, name: str) -> laws.BodySite:
        """Return the direction of a joint's b that coincides at the start with the direction ``arm`` of its a."""
        a, b = item.a.body, item.b.body
        turns = self.parts.turn_of(a), arm, self.parts.turn_of(b)
        return self.direction(b, self.parts.follow(name, "-", CarriedDirection(), *turns))

    def spin(self, name: str | None) -> laws.BodySite:
        """Return the angular velocity of a rigid body; the world's is zero."""
        return laws.BodySite(SiteKind.WORLD) if name is None else laws.BodySite(SiteKind.SPIN, name)


def start_of(spec: SceneSpec, link_poses: Mapping[str, FloatArray], name: str) -> FloatArray:
    """Return position and rotation vector (6,) of the rest frame of a body or link at t = 0."""
    if name in link_poses:
        return link_poses[name]
    body = spec.bodies[name]
    assert not isinstance(body, ArticulatedBodySpec)
    return np.concatenate([np.array(body.position, dtype=float), rotation_vector(body.orientation)])


def couplings(spec: SceneSpec, bodies: Sequence[Body], parts: SceneParts, link_poses: Mapping[str, FloatArray]) -> None:
    """Add joint parts and numbers of all couplings of a scene; ``link_poses``: (6,) at t = 0, of links and handles.

    Raises
    ------
    InputError
        If an end lies nowhere, or a joint needs an orientation that a body does not have.
    """
    places = _Bodies(spec, bodies, link_poses, parts)
    for name, body in spec.bodies.items():
        body_forces(name, body, parts)
    for name, item in spec.couplings.items():
        with blamed(item, f"couplings.{name}"):
            _coupling(item, f"couplings.{name}", places)
        parts.owners += [name] * (len(parts.joint_parts) - len(parts.owners))
        if item.joins is not None and not item.collide:
            parts.connected |= {item.joins, item.joins[::-1]}


def _coupling(item: CouplingSpec, at: str, bodies: _Bodies) -> None:
    """Add the joint parts of one coupling."""
    parts = bodies.parts
    if isinstance(item, AttachmentSpec):
        _attachment(item, at, bodies)
    elif isinstance(item, ForceSpec | DragSpec):
        place = np.zeros(3) if item.on.at is None else np.array(item.on.at)
        on, _ = bodies.given(item.on.body, place, f"{at}.on")
        if isinstance(item, DragSpec):
            drag(item, at, on, bodies.ball_radius(item.on.body), parts)
        else:
            drive = parts.signal(item.force, f"{at}.force", "N", 3)
            parts.joint_parts.append(laws.JointPart(laws.PointForce, (on,), drive=drive))
    elif isinstance(item, AirSpec):
        air(item, at, bodies.known[item.body], parts)
    elif isinstance(item, TorqueSpec):
        if item.body not in bodies.framed:
            raise InputError("a torque acts on a rigid body", place=f"{at}.body", found=f"'{item.body}'")
        drive = parts.signal(item.torque, f"{at}.torque", "N m", 3)
        parts.joint_parts.append(laws.JointPart(laws.PointForce, (bodies.spin(item.body),), drive=drive))
    elif isinstance(item, CouplingExtension) and not (isinstance(item, PairExtension) and item.term is not None):
        item.build(at, bodies, parts, parts.driven)
    else:
        _pair(item, at, bodies)


def _attachment(item: AttachmentSpec, at: str, bodies: _Bodies) -> None:
    parts, owner = bodies.parts, bodies.nodal.get(item.nodes)
    if owner is None:
        raise InputError("a body with nodes is attached to a rigid one", place=f"{at}.nodes", found=f"'{item.nodes}'")
    if item.body is not None and item.body not in bodies.framed:
        raise InputError("nodes are attached to a rigid body", place=f"{at}.body", found=f"'{item.body}'")
    rest = owner.rest
    spring = parts.numbers_of(at, item, "stiffness", "damping")
    mesh = owner.mesh if isinstance(owner, SoftBody) else None
    for node in select_points(rest, item.where, f"{at}.where", mesh):
        a = laws.BodySite(SiteKind.NODES, item.nodes, nodes=np.array([node]), weights=np.ones(1))
        poses = (*parts.pose_of(item.nodes), rest[node], *parts.pose_of(item.body))
        arm = parts.follow(f"{at}.places.{node}", "m", PlaceOnOther(), *poses)
        ends = a, bodies.arm(item.body, arm)
        parts.joint_parts.append(laws.JointPart(laws.ElasticJoint, ends, spring))


def _pair(item: _PairSpec, at: str, bodies: _Bodies) -> None:
    parts, (first, second) = bodies.parts, bodies.ends(item.a, item.b, at)
    (a, place_a), (b, place_b) = first, second
    if item.term is not None:
        numbers = []
        for key, unit in item.columns.items():
            value = item.column(key)
            if value is None:  # a length that the start has
                poses = (*parts.pose_of(item.a.body), place_a, *parts.pose_of(item.b.body), place_b)
                numbers.append(parts.follow(f"{at}.{key}", unit, Distance(), *poses, shape=()))
            else:
                numbers.append(parts.number(f"{at}.{key}", value, unit))
        parts.joint_parts.append(laws.JointPart(item.term, (a, b), tuple(numbers)))
        return
    assert isinstance(item, HingeSpec | FixedSpec | SliderSpec)
    spring = parts.numbers_of(at, item, "stiffness", "damping")
    for end, key in ((item.a, "a"), (item.b, "b")):
        if end.body is not None and end.body not in bodies.framed:
            raise InputError(
                f"a {item.type} joins rigid or kinematic bodies, or the world",
                place=f"{at}.{key}.body",
                found=f"'{end.body}'",
            )
    # Three directions of stiffness k resist a small turn with the torque 2 k per angle, one across it with k.
    path, share = f"{at}.angular_stiffness", 1.0 if isinstance(item, HingeSpec) else 0.5
    angular = parts.number(path, item.angular_stiffness, "N m/rad", f"{at}.direction_stiffness", share)
    # Directions are held without damping of their own: the damping of rotations is a torque on the spins.
    none = f"{at}.none"
    parts.blocks.append((none, (), "-"))
    swing = parts.number(f"{at}.angular_damping", item.angular_damping, "N m s")
    spins = bodies.spin(item.a.body), bodies.spin(item.b.body)
    parts.joint_parts.append(laws.JointPart(laws.AngularDamping, spins, ("", swing)))
    if isinstance(item, HingeSpec):
        parts.joint_parts.append(laws.JointPart(laws.ElasticJoint, (a, b), spring))
        _hinge(item, at, bodies, angular, none)
        return
    for k, axis in enumerate(np.eye(3)):
        arm = parts.constant(f"{at}.frame.{k}.a", axis, "-")
        ends = bodies.direction(item.a.body, arm), bodies.carried(item, arm, f"{at}.frame.{k}.b")
        parts.joint_parts.append(laws.JointPart(laws.ElasticJoint, ends, (angular, none)))
    if isinstance(item, SliderSpec):
        line = bodies.direction(item.a.body, parts.direction(f"{at}.axis", item.axis, f"{at}.axis.a"))
        parts.joint_parts.append(laws.JointPart(laws.Slider, (a, b, line), spring))
    else:
        parts.joint_parts.append(laws.JointPart(laws.ElasticJoint, (a, b), spring))


def _hinge_start(item: HingeSpec, start: HingeStartSpec, at: str, axis: str, bodies: _Bodies) -> laws.HingeStart:
    if item.b.body is None:
        raise InputError("the world does not start on a hinge", place=f"{at}.start", expected="a body at 'b'")
    for end in (item.a, item.b):
        if end.body in bodies.link_poses:
            raise InputError(
                "a link starts where the joints of its tree say, and no body starts on it", place=f"{at}.start",
                found=f"'{end.body}'", expected="a rigid body, or the world",
            )  # fmt: skip
        if end.body is not None and not bodies.framed[end.body].moves:
            raise InputError(
                "a hinge starts from bodies without a given motion", place=f"{at}.start", found=f"'{end.body}'"
            )
    if any(other.b == item.b.body for other in bodies.parts.starts):
        raise InputError("this body already starts on another hinge", place=f"{at}.start", found=f"'{item.b.body}'")
    return laws.HingeStart(
        item.a.body or "",
        item.b.body,
        f"{at}.a.at",
        f"{at}.b.at",
        axis,
        *bodies.parts.numbers_of(f"{at}.start", start, "angle", "rate"),
    )


def _hinge(item: HingeSpec, at: str, bodies: _Bodies, angular: str, none: str) -> None:
    parts = bodies.parts
    axis = parts.direction(f"{at}.axis", item.axis, f"{at}.axis.a")
    line_a = bodies.direction(item.a.body, axis)
    line_b = bodies.carried(item, axis, f"{at}.axis.b")
    parts.joint_parts.append(laws.JointPart(laws.ElasticJoint, (line_a, line_b), (angular, none)))
    spins = bodies.spin(item.a.body), bodies.spin(item.b.body)
    if item.start is not None:
        parts.starts.append(_hinge_start(item, item.start, at, line_a.arm, bodies))
    if item.motor or item.limits or item.formula:
        across = f"{at}.reference.a", f"{at}.reference.normal"
        parts.blocks += [(name, (3,), "-") for name in across]
        parts.derived.append(Derived(across, AxesAcross(), (axis,)))
        e1, e2 = (bodies.direction(item.a.body, name) for name in across)
        mark = bodies.carried(item, across[0], f"{at}.reference.b")
    if item.motor:
        angle = parts.signal(item.motor.angle, f"{at}.motor.angle", "rad", 1)
        k = parts.numbers_of(f"{at}.motor", item.motor, "stiffness")
        parts.joint_parts.append(laws.JointPart(laws.Motor, (e1, e2, mark), k, angle))
    if item.limits:
        stops = parts.numbers_of(f"{at}.limits", item.limits, "stiffness", "damping", "lower", "upper")
        parts.joint_parts.append(laws.JointPart(laws.AngleLimit, (e1, e2, mark), stops))
    if item.formula:
        columns = item.formula.columns.items()
        numbers = (parts.number(f"{at}.formula.{key}", item.formula.column(key), unit) for key, unit in columns)
        parts.joint_parts.append(laws.JointPart(item.formula.formula, (e1, e2, mark), tuple(numbers)))
    if item.friction:
        dry = parts.numbers_of(f"{at}.friction", item.friction, "viscous", "coulomb", "rate")
        parts.joint_parts.append(laws.JointPart(laws.JointFriction, (*spins, line_a), dry))
    if item.torque is not None:
        torque = parts.signal(item.torque, f"{at}.torque", "N m", 1)
        # The term's torque acts on its first spin.
        parts.joint_parts.append(laws.JointPart(laws.AxisTorque, (*spins[::-1], line_a), drive=torque))


#: How far an end of a coupling may start from where its lengths, places and directions count from [m], [-].
_ROUNDING = 1e-9


def refuse_other_starts(spec: SceneSpec, model: Model, theta: FloatArray, owners: Sequence[str]) -> None:
    """Refuse couplings that leave a length or a place open at an end, or tissue, whose body starts not where it is put.

    Lengths, places and directions that are not given follow from the frames of the bodies at t = 0. Pinned nodes that a
    motion has moved by then, and bodies that start on a hinge, are not where these say; ``owners``: of joint parts.

    Raises
    ------
    InputError
        With the end's distance from there.
    """
    if not spec.couplings:
        return
    q, v = model.initial.closed(theta, model.initial.moved(theta, model.system.motion))
    put, rates = q.copy(), v.copy()
    for body in model.bodies:
        if isinstance(body, NodalBody | RigidBody) and body.moves:
            body.pose(model.layouts).evaluate(theta, put, rates)
    if np.array_equal(put, q):
        return
    for tie in (tie for body in model.bodies if isinstance(body, SoftBody) for tie in body.ties):
        if isinstance(carrier := model.body(tie.carrier), RigidBody) and carrier.moves:
            away = float(np.abs(put - q)[model.layouts.dofs[tie.carrier].slice].max())
            if away > _ROUNDING * max(1.0, float(np.abs(q).max())):
                raise InputError(
                    f"tissue is tied where the scene puts '{tie.carrier}', which starts elsewhere, on a hinge",
                    place=tie.path, found=f"{away:.3g} m or rad", expected="a hinge that starts where it is put",
                )  # fmt: skip
    points_alone = {body.name for body in model.bodies if isinstance(body, NodalBody) and body.rest.shape[0] == 1}
    starts, said = (model.lift.kinematics(Kinematics(x, v, np.zeros_like(v), 0.0, 0), theta) for x in (q, put))
    for name, part in zip(owners, model.joint_parts, strict=True):
        item = spec.couplings.get(name)
        if not isinstance(item, AttachmentSpec | _PairSpec) or (isinstance(item, HingeSpec) and item.start):
            continue
        free = isinstance(item, AttachmentSpec) or any(
            end.at is None and end.body not in points_alone for end in (item.a, item.b)
        )
        free = free or (item.term is not None and None in (item.column(key) for key in item.columns))
        kinds = (SiteKind.DIRECTION, *((SiteKind.NODES, SiteKind.POINT) if free else ()))
        ends = [site for site in part.sites if site.kind in kinds] if part.term is not laws.AngularDamping else []
        if not ends:
            continue
        points = SitePoints(gather([system_site(site, model.bodies, model.layouts) for site in ends]))
        off = np.linalg.norm(points.points(starts, theta)[0] - points.points(said, theta)[0], axis=1)
        if off.max() > _ROUNDING * max(1.0, float(np.abs(points.points(said, theta)[0]).max())):
            worst = ends[int(off.argmax())]
            raise InputError(
                "a length, place or direction that it leaves open follows from where the scene puts its bodies; "
                f"'{worst.body}' starts elsewhere, by a motion of pinned nodes or on a hinge",
                place=f"couplings.{name}", found=f"{off.max():.3g} {'-' if worst.kind == SiteKind.DIRECTION else 'm'}",
                expected="'length' and 'at', or a start where the scene puts the body",
            )  # fmt: skip


def refuse_broken_formulas(spec: SceneSpec, model: Model, theta: FloatArray) -> None:
    """Refuse couplings whose formula has no value where the motion starts."""
    kin = model.begins(theta)
    pairs = {name: item for name, item in spec.couplings.items() if isinstance(item, _PairSpec)}
    for term in model.term(FormulaJoint):
        places = [f"{name}.energy" for name, item in pairs.items() if item.term == term.formula]
        hinges = {name: item.formula for name, item in pairs.items() if isinstance(item, HingeSpec) and item.formula}
        places += [f"{name}.formula.energy" for name, hinge in hinges.items() if hinge.formula == term.formula]
        wrong = np.flatnonzero(~np.isfinite(term.forces(kin, theta)).all(axis=(1, 2)))
        if wrong.size:
            at = Evaluation(term.sites, term.values, kin.q, kin.v, kin.t, theta)
            x = term.formula.measure.of(at.y.reshape(term.sites.n, -1, 3))[wrong[0]]
            raise InputError(
                "the formula has no value where the motion starts",
                place=f"couplings.{places[wrong[0]]}",
                found=f"{term.formula.measure.names[0]} = {x:.6g}",
            )
