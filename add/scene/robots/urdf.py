"""URDF: the links of a file, and its tree; joints are read in `urdf_joints`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import final

import numpy as np

from add.errors import InputError
from add.scene.robots.inertia import check_moving, free_name, from_six, stated_inertia
from add.scene.robots.model import WORLD, Robot, RobotGeometry, RobotJoint, RobotLink, here
from add.scene.robots.shapes import MeshFiles, read_origin, read_shape
from add.scene.robots.tree import exclusions, fail_circle, merge, neighbours, pairs_of, without_idle
from add.scene.robots.urdf_joints import read_joints, resolved, standing
from add.scene.robots.xml_file import URDF_WORDS, Source, XmlNode, doubt_motion, read_name, read_xml, without_slashes
from add.typing import FloatArray

# --- SRDF: pairs of links whose collisions are switched off -----------------------------------------------------------


def read_srdf(path: str | PathLike[str], source: Source, links: Mapping[str, RobotLink]) -> frozenset[frozenset[str]]:
    """Return the pairs of <disable_collisions>.

    Raises
    ------
    InputError
        naming the SRDF file and the line: links that the robot does not have, a default that is switched off.
    """
    path = Path(path)
    root = read_xml(path)
    srdf = Source(path, source.words, source.ignore, source.ignored)
    if root.tag != "robot":
        srdf.fail(f"line {root.line}", "not an SRDF file", f"<{root.tag}>", "<robot>")
    for tag in ("disable_default_collisions", "enable_collisions"):
        for node in root.all(tag):
            srdf.refuse("srdf", f"line {node.line}", f"<{tag}> is not read, only <disable_collisions>")
    for tag in dict.fromkeys(node.tag for node in root.children):  # its bases are those of `base`, its poses a scene's
        if tag not in ("disable_collisions", "disable_default_collisions", "enable_collisions"):
            srdf.note(path.name, f"<{tag}>")
    pairs = set()
    for node in root.all("disable_collisions"):
        given = [node.attributes.get(key, "") for key in ("link1", "link2")]
        ends = [source.renamed.get(("link", name), name) for name in given]
        for name in ends:
            if name not in links:
                srdf.fail(f"line {node.line}, <disable_collisions>", "no such link", f"'{name}'", "a link of the robot")
        pairs.add(frozenset(ends))
    return frozenset(pairs)


# ----------------------------------------------------------------------------------------------------------------------

#: Attributes of the elements of a URDF.
_ATTRIBUTES = {
    tag: frozenset(names.split())
    for tag, names in {
        "robot": "name version", "link": "name", "joint": "name type", "inertial": "", "mass": "value",
        "inertia": "ixx ixy ixz iyy iyz izz", "visual": "name", "collision": "name", "geometry": "", "box": "size",
        "cylinder": "radius length", "capsule": "radius length", "sphere": "radius", "mesh": "filename scale",
        "material": "name", "color": "rgba", "texture": "filename", "origin": "xyz rpy quat_xyzw", "axis": "xyz",
        "parent": "link", "child": "link", "limit": "lower upper effort velocity", "dynamics": "damping friction",
        "mimic": "joint multiplier offset",
        "safety_controller": "soft_lower_limit soft_upper_limit k_position k_velocity",
    }.items()
}  # fmt: skip
#: Elements whose other parts the readers of links, joints and shapes say, or refuse.
_SAID = frozenset({"robot", "link", "joint", "visual", "collision", "geometry"})


@final
@dataclass(frozen=True)
class UrdfOptions:
    """How to read a URDF, see `add.scene.robots.read_robot`."""

    base: str = "fixed"
    repair: bool = False
    visual: bool = False
    packages: Mapping[str, str | PathLike[str]] | None = None
    srdf: str | PathLike[str] | None = None
    expanded: bool = False


def robot_of_urdf(file: Path, root: XmlNode, ignore: Collection[str], turn: FloatArray, options: UrdfOptions) -> Robot:
    """Make a robot of the root element of a URDF.

    Parameters
    ----------
    file, root : as read
    ignore : words of `URDF_WORDS`
    turn : (3, 3) from the file's axes to the world's
    options : how to read it
    """
    source = Source(file, URDF_WORDS, frozenset(ignore))
    if options.expanded:
        source.note("file", "xacro has expanded it: lines are those of what became of it")
    without_slashes(source, root)
    _note_others(source, root)
    _note_unread_attributes(source, root)
    links = _links(source, root, MeshFiles(file, options.packages or {}), options)
    read, types = read_joints(source, root, links)
    joints = [_root_joint(source, links, read, options.base), *without_idle(source, links, read)]
    tree = merge(source, links, joints, turn)
    resolved_joints = resolved(source, tree.joints, types)
    _note_unused(source, tree.joints)
    check_moving(source, tree.links, resolved_joints)

    massless = frozenset(link.name for link in tree.links if ("link", link.name) not in source.lines)
    touching = neighbours(resolved_joints, massless)
    off = read_srdf(options.srdf, source, links) if options.srdf is not None else frozenset()
    bodies = (tree.static, *tree.links)
    if off:
        excluded, excluded_shapes = exclusions(
            bodies,
            lambda one, two: frozenset((one, two)) in touching,
            lambda one, two: frozenset((one.origin, two.origin)) in off,
        )
    else:
        excluded, excluded_shapes = pairs_of(bodies, touching), ()  # all with all are too many in a long chain
    return Robot(
        root.attributes.get("name") or file.stem,
        tree.links,
        resolved_joints,
        tuple(source.ignored),
        excluded,
        tree.places(),
        tree.static,
        excluded_shapes,
        doubts=tuple(source.doubts),
    )


def _note_unused(source: Source, joints: Sequence[RobotJoint]) -> None:
    """Note what is kept of joints for controllers and acts on nothing."""
    for text, names in (
        ("velocity of <limit>", [joint.name for joint in joints if np.isfinite(joint.velocity)]),
        ("<safety_controller>", [joint.name for joint in joints if joint.safety is not None]),
    ):
        if names:
            count = f"{len(names)} joints" if len(names) > 1 else f"joint '{names[0]}'"
            source.note("robot", f"{text} of {count}, which no motion keeps to")


def _note_others(source: Source, root: XmlNode) -> None:
    """Note what belongs to other programs, as a doubt where it changes the motion there."""
    known = {"link", "joint", "material"}
    counts: dict[str, int] = {}
    for node in root.children:
        if node.tag in known:
            continue
        counts[node.tag] = counts.get(node.tag, 0) + 1
        for inner in node.nodes():
            doubt_motion(source, inner, f"line {inner.line}, <{node.tag}>")
        for joint in node.all("joint") if node.tag == "gazebo" else ():  # of SDF: how files close loops there
            text = f"<joint> '{joint.attributes.get('name', '')}' joins links in Gazebo, and is not read"
            source.doubt("extension", f"line {joint.line}, <gazebo>", text)
    for tag, count in counts.items():
        source.note("robot", f"<{tag}>" + (f", {count} times" if count > 1 else ""))


def _note_unread_attributes(source: Source, root: XmlNode) -> None:
    """Note what elements of a URDF have and nothing reads: the element, the attribute, its first line, how often.

    Names with a colon, as of XML namespaces, belong to other programs, and what is within their elements, too.
    """
    lines: dict[tuple[str, str], list[int]] = {}
    nodes = [root]
    while nodes:
        node = nodes.pop()
        nodes += [child for child in reversed(node.children) if child.tag in _ATTRIBUTES]
        unread = [name for name in node.attributes if name not in _ATTRIBUTES[node.tag] and ":" not in name]
        if node.tag not in _SAID:
            unread += [f"<{child.tag}>" for child in node.children if child.tag not in _ATTRIBUTES]
        for name in unread:
            if name != "xmlns":
                lines.setdefault((node.tag, name), []).append(node.line)
    for (tag, name), numbers in lines.items():
        times = f", {len(numbers)} times" if len(numbers) > 1 else ""
        source.note(f"line {numbers[0]}", f"{name[:80]} of <{tag}>{times}, which a URDF does not have")


def _links(source: Source, root: XmlNode, meshes: MeshFiles, options: UrdfOptions) -> dict[str, RobotLink]:
    links: dict[str, RobotLink] = {}
    still = standing(root) if options.base == "fixed" else frozenset()
    tags = ("visual", "collision") if options.visual else ("collision",)
    shapes = [shape for link in root.all("link") for tag in tags for shape in link.all(tag)]
    named = [mesh for shape in shapes for geometry in shape.all("geometry") for mesh in geometry.all("mesh")]
    meshes.read_ahead(mesh.attributes.get("filename", "") for mesh in named)
    for node in root.all("link"):
        name = read_name(source, node, "link")
        links[name] = _link(source, meshes, node, name, options, name in still)
    if not links:
        source.fail("robot", "has no links", expected="<link name=...>")
    ends = {end.attributes.get("link") for joint in root.all("joint") for end in joint.all("parent")}
    if "world" in ends - set(links):  # what stands still, in files of Drake
        source.note("robot", "link 'world' is not among its links: it stands still")
        links["world"] = RobotLink("world")
    return links


def _link(source: Source, meshes: MeshFiles, node: XmlNode, name: str, options: UrdfOptions, still: bool) -> RobotLink:
    place = source.place("link", name)
    inertials = node.all("inertial")
    if len(inertials) > 1:
        source.doubt("inertia", place, f"{len(inertials)} <inertial>: the first one counts")
    mass, centre, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    if inertials:
        mass, centre, inertia = _inertial(source, inertials[0], place, options.repair, still)
    for child in node.children:
        if child.tag not in ("inertial", "visual", "collision"):
            for inner in child.nodes():
                doubt_motion(source, inner, place)
            source.note(place, f"<{child.tag}>")
    shapes: dict[str, list[RobotGeometry]] = {"visual": [], "collision": []}
    for tag, geometries in shapes.items():
        solid = tag == "collision"
        for child in node.all(tag):
            try:
                shape = read_shape(
                    source, meshes, child, name, place, collision=solid, read=solid or options.visual, still=still
                )
            except InputError as error:  # a picture changes no motion
                if solid:
                    raise
                source.note(error.place or place, f"no picture of it: {error.message}, found {error.found}")
                continue
            if shape is not None:
                geometries.append(shape)
    return RobotLink(name, mass, centre, inertia, tuple(shapes["collision"]), tuple(shapes["visual"]))


def _inertial(
    source: Source, node: XmlNode, place: str, repair: bool, still: bool
) -> tuple[float, FloatArray, FloatArray]:
    place = f"{place}: line {node.line}, <inertial>"
    one: dict[str, XmlNode] = {}
    for tag in ("mass", "inertia"):
        nodes = node.all(tag)
        if len(nodes) > 1:
            source.fail(place, f"several <{tag}>", len(nodes), f"one <{tag}>")
        if not nodes:
            source.doubt("inertia", place, f"has no <{tag}>: read as 0")
        else:
            one[tag] = nodes[0]
    centre, rotation = read_origin(source, node, place)
    mass = source.number(one["mass"], "value", place) if "mass" in one else 0.0
    keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz") if "inertia" in one else ()
    six = [source.number(one["inertia"], key, place) for key in keys] or [0.0] * 6
    stated = stated_inertia(source, place, mass, from_six(six), repair=repair, still=still)
    return mass, centre, rotation @ stated @ rotation.T


def _root_joint(source: Source, links: Mapping[str, RobotLink], joints: list[RobotJoint], base: str) -> RobotJoint:
    """Return the joint of the root to the world."""
    children = {joint.child for joint in joints}
    roots = [name for name in links if name not in children]
    if len(roots) > 1:
        listed = ", ".join(f"'{name}'" for name in roots[:6])
        source.fail(
            source.place("link", roots[1]),
            "several links have no parent",
            listed + (" ..." if len(roots) > 6 else ""),
            "one root, and joints to all other links",
        )
    if not roots:
        fail_circle(source, next(iter(links)), joints)
    root = roots[0]
    if base == "free" and root == "world":
        source.fail(
            source.place("link", root), 'base "free": this link is the world by its name', expected='base "fixed"'
        )
    name = free_name("floating_base", {joint.name for joint in joints if joint.kind != "fixed"})
    position, rotation = here()
    kind = "free" if base == "free" else "fixed"
    return RobotJoint(name, kind, WORLD, root, position, rotation, np.array([1.0, 0.0, 0.0]))
