"""Articulated bodies of a scene as robots, and their links as bodies of their own: "a1/FR_foot"."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import final

import numpy as np
from pydantic import BaseModel
from scipy.spatial.transform import Rotation

from add.errors import InputError, naming
from add.geometry import MassProperties, check_inertia, mesh_solid
from add.io.surfaces import read_surface
from add.scene.read.paths import asked_for_by, require_known
from add.scene.robots import read_robot
from add.scene.robots.inertia import from_quaternion, from_six, in_body_frames, together
from add.scene.robots.model import WORLD, Robot, RobotGeometry, RobotJoint, RobotLink
from add.scene.robots.shapes import KINDS, simple_solid
from add.scene.spec import articulated, rigid
from add.scene.spec.common import BodyContactSpec
from add.scene.spec.scene import BodySpec, SceneSpec
from add.ties import unit_vector
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class LinkOf:
    """A link of an articulated body, where bodies are asked for by name."""

    tree: str
    link: RobotLink
    contact: BodyContactSpec | None = None

    @property
    def name(self) -> str:
        """``<tree>/<link>``."""
        return f"{self.tree}/{self.link.name}"


def all_bodies(spec: SceneSpec) -> dict[str, BodySpec | LinkOf]:
    """Return everything that has a place: bodies but articulated ones, whose links and places are here instead.

    Raises
    ------
    InputError
        Of robots' files.
    """
    out: dict[str, BodySpec | LinkOf] = {}
    for name, body in spec.bodies.items():
        if isinstance(body, articulated.ArticulatedBodySpec):
            out |= {item.name: item for item in (*links_of(name, body), *places_of(name, body))}
        else:
            out[name] = body
    return out


def trees(spec: SceneSpec) -> dict[str, articulated.ArticulatedBodySpec]:
    """Return the articulated bodies."""
    return {name: body for name, body in spec.bodies.items() if isinstance(body, articulated.ArticulatedBodySpec)}


#: Robots that have been read before, from the files of the bodies of these names and as these say.
Robots = Mapping[str, Robot]
NONE_READ: Robots = MappingProxyType({})


def hand_over(spec: SceneSpec, robots: Robots) -> None:
    """Give articulated bodies the robots of their files, so that nothing reads these again."""
    for name, body in trees(spec).items():
        body._read = robots.get(name)


def links_of(name: str, body: articulated.ArticulatedBodySpec) -> list[LinkOf]:
    """Return the links of an articulated body that have mass or a surface."""
    return [LinkOf(name, link, body.contact) for link in robot_of(name, body).links if is_body(link)]


def places_of(name: str, body: articulated.ArticulatedBodySpec) -> list[LinkOf]:
    """Return the places of a robot that are no links of their own: merged links, sites. They have no surface."""
    robot = robot_of(name, body)
    links = {link.name for link in robot.links if is_body(link)}
    return [
        LinkOf(name, RobotLink(key)) for key, (link, _, _) in robot.frames.items() if key not in links and link != WORLD
    ]


def named_places(spec: SceneSpec, name: str, body: articulated.ArticulatedBodySpec) -> list[str]:
    """Return the places of a robot that anything in the scene names."""
    used = {
        text for part in (spec.markers, spec.couplings, spec.objective, spec.recording, spec.experiments)
        for text in strings_in(part)
    }  # fmt: skip
    return [item.link.name for item in places_of(name, body) if item.name in used]


def strings_in(part: object) -> Iterator[str]:
    """Iterate over all strings of a part of a scene."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, BaseModel):
        for value in part.__dict__.values():
            yield from strings_in(value)
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from strings_in(value)
    elif isinstance(part, tuple | list):
        for value in part:
            yield from strings_in(value)


def is_body(link: RobotLink) -> bool:
    """Whether a link is more than a step between two joints."""
    return link.mass > 0.0 or bool(link.collision)


def robot_of(name: str, body: articulated.ArticulatedBodySpec) -> Robot:
    """Return the tree of an articulated body; a robot's file is read once.

    Raises
    ------
    InputError
        naming the file or the place.
    """
    if body._robot is None:
        at = f"bodies.{name}"
        if body.model is None:
            robot = _written(name, body, at)
        else:
            with asked_for_by(f"{at}.model"):
                how = {key: getattr(body, key) for key in ("base", *articulated.OF_FILES)}
                robot = body._read or read_robot(body.model, **how)
            robot = _replaced(in_body_frames(robot), body, at)
        _check_names(robot, at)
        robot = articulated.with_parts(robot, body, at)
        body._robot = robot
    return body._robot


def _check_names(robot: Robot, at: str) -> None:
    for name in (*(link.name for link in robot.links), *(joint.name for joint in robot.joints)):
        if "." in name:
            raise InputError("names with a dot cannot be said in paths of the scene", place=at, found=f"'{name}'")


def _replaced(robot: Robot, body: articulated.ArticulatedBodySpec, at: str) -> Robot:
    """Return the robot of a file with the masses that the scene says otherwise."""
    known = {link.name: link for link in robot.links}
    joints = [joint.name for joint in robot.joints]
    for key, names, given in (("links", list(known), list(body.links)), ("joints", joints, list(body.joints))):
        for name in given:
            require_known(f"{key[:-1]} of the robot", name, names, f"{at}.{key}.{name}")
    for name, said in body.links.items():
        link = known[name]
        if said.mass is not None:
            link = replace(link, mass=said.mass)
        if said.center_of_mass is not None:
            link = replace(link, centre=np.array(said.center_of_mass))
        if said.inertia is not None:
            link = replace(link, inertia=from_six(said.inertia))
        if said.shapes is not None:
            link = replace(link, collision=_shapes(said.shapes, f"{at}.links.{name}"))
        known[name] = link
    return replace(robot, links=tuple(known.values()))


def _written(name: str, body: articulated.ArticulatedBodySpec, at: str) -> Robot:
    """Return the tree that a scene writes down."""
    links: list[RobotLink] = []
    joints: list[RobotJoint] = []
    carried: dict[str, str] = {}
    for key, joint in body.joints.items():
        place, child = f"{at}.joints.{key}", joint.child or key
        require_known("link", child, body.links, f"{place}.child")
        if child in carried:
            raise InputError("another joint carries this link", place=f"{place}.child", found=f"'{child}'")
        if joint.parent is not None and joint.parent not in carried:
            raise InputError(
                "no joint before this one carries its parent", place=f"{place}.parent", found=f"'{joint.parent}'",
                expected="joints in order from the base outwards",
            )  # fmt: skip
        carried[child] = key
        joints.append(_joint(key, joint, child, place, free=body.base == "free" and not joints, before=joints))
        links.append(_link(child, body.links[child], f"{at}.links.{child}"))
    for key in body.links:
        if key not in carried:
            raise InputError("no joint carries this link", place=f"{at}.links.{key}")
    return Robot(name, tuple(links), tuple(joints))


def _joint(
    name: str, joint: articulated.TreeJointSpec, child: str, place: str, *, free: bool, before: Sequence[RobotJoint]
) -> RobotJoint:
    kind = "free" if free else (joint.type or "hinge")
    axis = np.array(joint.axis or (0.0, 0.0, 1.0))
    mimic = None if joint.mimic is None else _mimic(name, kind, joint.mimic, before, f"{place}.mimic")
    return RobotJoint(
        name, kind, joint.parent or WORLD, child, np.array(joint.position or (0.0, 0.0, 0.0)),
        from_quaternion(joint.orientation or (1.0, 0.0, 0.0, 0.0)), unit_vector(axis), mimic=mimic,
    )  # fmt: skip


def _mimic(
    name: str, kind: str, said: articulated.MimicSpec, before: Sequence[RobotJoint], place: str
) -> tuple[str, float, float]:
    """Return the joint that mimics none, factor and offset, of a joint that may mimic one that mimics another."""
    leaders = [joint for joint in before if joint.name == said.joint]
    if not leaders:
        raise InputError("no joint before this one has this name", place=f"{place}.joint", found=f"'{said.joint}'")
    for one, of in ((name, kind), (said.joint, leaders[0].kind)):
        if of not in ("hinge", "slide"):
            raise InputError("only hinges and slides mimic, and only such", place=place, found=f"'{one}', a {of} joint")
    if said.factor == 0.0:
        raise InputError("a factor of zero fixes the joint", place=f"{place}.factor", expected='type "fixed"')
    leader, factor, offset = leaders[0].mimic or (said.joint, 1.0, 0.0)
    return leader, said.factor * factor, said.factor * offset + said.offset


def _link(name: str, link: articulated.LinkSpec, at: str) -> RobotLink:
    """Return a link; what is not given follows from its shapes."""
    shapes = _shapes(link.shapes or (), at)
    if (link.mass is None) == (link.density is None):
        raise InputError("give exactly one of 'mass' or 'density'", place=at)
    if not shapes:
        for key in ("mass", "inertia"):
            if getattr(link, key) is None:
                raise InputError("a link without shapes needs its mass and inertia", place=f"{at}.{key}")
    given = None not in (link.mass, link.inertia, link.center_of_mass)
    whole = _solid(() if given else shapes, at)
    mass = link.mass if link.mass is not None else (link.density or 0.0) * whole.volume
    centre = whole.centre if link.center_of_mass is None else np.array(link.center_of_mass)
    inertia = whole.inertia * mass / whole.volume if link.inertia is None else _checked(link.inertia, at)
    return RobotLink(name, mass, centre, inertia, shapes)


def _checked(six: tuple[float, ...], at: str) -> FloatArray:
    matrix = from_six(six)
    with naming(f"{at}.inertia"):
        check_inertia(matrix)
    return matrix


def _shapes(shapes: tuple[articulated.LinkShapeSpec, ...], at: str) -> tuple[RobotGeometry, ...]:
    out = []
    for k, item in enumerate(shapes):
        geometry = item.geometry
        turn, position = from_quaternion(item.orientation), np.array(item.position)
        if not isinstance(geometry, rigid.FileGeometrySpec):
            path = f"{at}.shapes.{k}.geometry" if geometry.adjustable else ""
            out.append(RobotGeometry(geometry.shape, geometry.sizes, position, turn, in_theta=path))
        else:
            surface = surface_of_file(geometry, f"{at}.shapes.{k}.geometry.file")
            out.append(RobotGeometry("mesh", (), position, turn, *surface, file=geometry.file))
    return tuple(out)


def surface_of_file(spec: rigid.FileGeometrySpec | rigid.MeshObstacleSpec, place: str) -> tuple[FloatArray, IntArray]:
    """Return vertices [m] and triangles of a surface mesh, which the scene asks for at a place."""
    with asked_for_by(place):
        vertices, triangles = read_surface(spec.file)
    return spec.scale * vertices, triangles


def _solid(shapes: tuple[RobotGeometry, ...], at: str) -> MassProperties:
    """Return the mass properties of all shapes together, at density 1; overlaps count twice."""
    parts = []
    for k, shape in enumerate(shapes):
        if shape.shape in KINDS:
            solid = simple_solid(shape.shape, shape.size)
        else:
            assert shape.vertices is not None and shape.triangles is not None
            with naming(f"{at}.shapes.{k}.geometry.file"):
                solid = mesh_solid(shape.vertices, shape.triangles)
        centre = shape.position + shape.rotation @ solid.centre
        parts.append((solid.volume, centre, shape.rotation @ solid.inertia @ shape.rotation.T))
    return MassProperties(*together(parts))


# --- Shapes of robots' files that stand still, as obstacles of the scene ----------------------------------------------


def add_static_shapes(spec: SceneSpec) -> None:
    """Add the shapes of robots that ask for it to the scene's obstacles, as ``<body> <shape>``; meshes are left out.

    Raises
    ------
    InputError
        Of the robots' files.
    """
    for name, body in trees(spec).items():
        if not body.static_shapes:
            continue
        robot = robot_of(name, body)
        rotation, position = _base(body, robot)
        known = dict(spec.obstacles)
        for k, shape in enumerate(robot.static.collision):
            made = _obstacle(shape, rotation, position)
            if made is None:
                continue
            label = f"{name} {shape.name or shape.origin or 'shape'}".replace("/", " ").replace(".", " ")
            while label in known and known[label] != made:  # a scene that was read before has them already
                label = f"{label} {k}"
            known[label] = made
        spec.obstacles.clear()
        spec.obstacles.update(known)


def _base(body: articulated.ArticulatedBodySpec, robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Return the pose of what the file says stands still: the base's, unless the robot moves freely."""
    if robot.joints and robot.joints[0].kind == "free":
        return np.eye(3), np.zeros(3)
    return from_quaternion(body.orientation or (1.0, 0.0, 0.0, 0.0)), np.array(body.position or (0.0, 0.0, 0.0))


def _obstacle(shape: RobotGeometry, rotation: FloatArray, position: FloatArray) -> rigid.ObstacleSpec | None:
    turn, place = rotation @ shape.rotation, (position + rotation @ shape.position).tolist()
    at = {"center": tuple(place), "orientation": tuple(Rotation.from_matrix(turn).as_quat(scalar_first=True).tolist())}
    if shape.shape == "plane":
        return rigid.PlaneSpec(point=tuple(place), normal=tuple(turn[:, 2].tolist()))
    if shape.shape == "sphere":
        return rigid.SphereSpec(center=tuple(place), radius=shape.size[0])
    if shape.shape == "box":
        return rigid.BoxObstacleSpec(half_size=(shape.size[0], shape.size[1], shape.size[2]), **at)
    if shape.shape in ("capsule", "cylinder"):
        kind = rigid.CapsuleSpec if shape.shape == "capsule" else rigid.CylinderSpec
        return kind(radius=shape.size[0], half_length=shape.size[1], **at)
    return None
