"""SDFormat: a model with frames of its own becomes the elements of a URDF, whose reader says all the rest."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from add.scene.robots import sdf_joints
from add.scene.robots.inertia import inverse
from add.scene.robots.model import WORLD, LinkPlace, Place, Robot, after, here
from add.scene.robots.urdf import UrdfOptions, robot_of_urdf
from add.scene.robots.xml_file import SDF_WORDS, URDF_WORDS, Source, XmlNode, numbers_in, without_slashes
from add.typing import FloatArray

#: Elements of links and models that change the motion in Gazebo unless they say this.
_USUAL = {"gravity": "true", "kinematic": "false", "enable_wind": "false", "static": "false"}
_YES = {"1": "true", "0": "false"}
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
#: Attributes of shapes of a URDF.
_SIZES = frozenset({"size", "radius", "length", "filename", "scale", "normal"})


def robot_of_sdf(
    file: Path, root: XmlNode, ignore: Collection[str], turn: FloatArray, options: UrdfOptions, base: str | None
) -> Robot:
    """Make a robot of the one model of an SDF file that moves.

    Parameters
    ----------
    file, root : as read
    ignore : words of `SDF_WORDS`
    turn : (3, 3) from the file's axes to the world's
    options : how to read what becomes of it
    base : "fixed" or "free" of its first link; None: fixed if a joint leads from the world to it
    """
    source = Source(file, SDF_WORDS, frozenset(ignore))
    world, node = _model_of(source, root)
    numbers = numbers_in(root.attributes.get("version", "1.7").replace(".", " "))
    version = (1, 7) if numbers is None else tuple(int(number) for number in numbers)
    model = sdf_joints.SdfModel(source, node, version)
    _place(model, ("link", "frame", "joint"))
    urdf, loops = _translated(model, base, _within(model, world))
    without_slashes(source, urdf)
    robot = robot_of_urdf(file, urdf, frozenset(ignore) & set(URDF_WORDS), turn, replace(options, base="fixed"))

    def place(name: str) -> LinkPlace:
        if name == model.world:
            return LinkPlace(WORLD, np.zeros(3), turn)
        return robot.place(source.renamed.get(("link", name), name))

    frames = {name: at for name, at in robot.frames.items() if name != model.world}
    for name, frame in model.frames.items():
        shift = after(inverse(frame), model.at(name, "")) if name in model.poses else here()
        if np.abs(shift[0]).max() > 1e-12:
            frames[source.renamed.get(("link", name), name)] = place(name).then(shift)
    more = {source.renamed.get(("joint", name), name): values for name, values in model.more.items()}
    joints = [replace(joint, **more.get(joint.name, {})) for joint in robot.joints]
    joints = [replace(j, lower=_end(j.lower), upper=_end(j.upper)) for j in joints]
    order = {name: k for k, name in enumerate((WORLD, *(link.name for link in robot.links)))}
    apart = [sorted((place(one)[0], place(two)[0]), key=order.__getitem__) for one, two in model.apart]
    has_gravity = world is not None and world.all("gravity")
    return replace(
        robot,
        joints=tuple(joints),
        frames=frames,
        excluded=(*robot.excluded, *((one, two) for one, two in apart if (one, two) not in robot.excluded)),
        loops=tuple(sdf_joints.loop_of(model, joint, place) for joint in loops),
        gravity=turn @ sdf_joints.numbers_of(source, world, "gravity", "world", 3) if has_gravity else None,
        ignored=(*source.ignored, *robot.ignored),
        doubts=(*source.doubts, *robot.doubts),
    )


def _end(limit: float) -> float:
    """Return a limit, infinity for those that are none."""
    return limit if abs(limit) < sdf_joints.NO_LIMIT else np.copysign(np.inf, limit)


def _model_of(source: Source, root: XmlNode) -> tuple[XmlNode | None, XmlNode]:
    """Return the world, if the file has one, and the model that moves."""
    world = next(iter(root.all("world")), None)
    top = root if world is None else world
    for include in top.all("include"):
        source.refuse("include", f"line {include.line}, <include>", "a model from elsewhere is not read")
    models = top.all("model")
    moving = [model for model in models if _flag(model, "static") != "true"]
    if len(moving) != 1:
        names = ", ".join(f"'{model.attributes.get('name', '')}'" for model in moving or models)
        what = "one model that moves; what stands still belongs among a scene's `obstacles`"
        source.fail(f"line {top.line}, <{top.tag}>", f"has {len(moving)} models that move", names or "none", what)
    for model in models:
        if model is not moving[0]:
            source.note(f"line {model.line}", f"model '{model.attributes.get('name', '')}', which stands still")
    for item in [] if world is None else world.children:
        if item.tag in ("joint", "drake:joint"):
            source.refuse(
                "joint", f"line {item.line}, <world>", "a joint of the world is not read, only those of a model"
            )
        elif item.tag == "state":
            source.doubt("extension", f"line {item.line}, <state>", "where its models are then is not read")
        elif item.tag not in ("model", "include", "gravity", "frame"):
            source.note(f"line {item.line}, <world>", f"<{item.tag}>")
    return world, moving[0]


def _flag(node: XmlNode, tag: str) -> str:
    text = (sdf_joints.text_of(node, tag) or _USUAL[tag]).lower()
    return _YES.get(text, text)


def _within(model: sdf_joints.SdfModel, world: XmlNode | None) -> Place:
    """Return the place of a model in its world, also in a frame of the world or beside another model of it."""
    other, at = sdf_joints.pose_of(model, model.node, "model")
    if other not in ("", "world"):
        around = sdf_joints.SdfModel(model.source, world or XmlNode("world", {}, 0), model.version)
        _place(around, ("frame", "model"))
        around.poses["world"] = "", here()
        at = after(around.at(other, "<pose> of the model"), at)
    if "placement_frame" in model.node.attributes:
        at = after(at, inverse(model.at(model.node.attributes["placement_frame"], "model")))
    return at


def _place(model: sdf_joints.SdfModel, kinds: tuple[str, ...]) -> None:
    """Fill the poses of links, frames and joints, or of frames and models of a world, and what carries them."""
    node = model.node
    first = next((link.attributes.get("name", "") for link in node.all("link")), "")
    first = node.attributes.get("canonical_link") or first
    for kind in kinds:
        for item in node.all(kind):
            name = item.attributes.get("name", "")
            model.source.lines.setdefault((kind, name), item.line)
            other, pose = sdf_joints.pose_of(model, item, model.source.place(kind, name))
            carrier = sdf_joints.text_of(item, "child") if kind == "joint" else item.attributes.get("attached_to", "")
            entry = other or carrier, pose
            carrier = name if kind == "link" else carrier
            for key in (name, f"joint {name}") if kind == "joint" else (name,):
                model.poses.setdefault(key, entry)
                model.hosts.setdefault(key, first if carrier in sdf_joints.MODEL else carrier)


def _translated(model: sdf_joints.SdfModel, base: str | None, within: Place) -> tuple[XmlNode, list[XmlNode]]:
    """Return the <robot> of a URDF, and the joints that close loops.

    The frame of a link is there where its joint is, and turned as the link is.
    """
    source, node = model.source, model.node
    links = {link.attributes.get("name", ""): link for link in node.all("link")}
    model.world = "world" if "world" not in links else "world_"
    tree: dict[str, XmlNode] = {}
    loops = []
    for joint in node.all("joint"):
        place = source.place("joint", joint.attributes.get("name", ""))
        kind = joint.attributes.get("type", "")
        child = model.link(sdf_joints.text_of(joint, "child"), place)
        if child == model.world:
            source.fail(place, "the world is no child", "<child>world</child>", "the world as <parent>")
        if kind not in sdf_joints.TYPES or (child in tree and kind not in sdf_joints.LOOPS):
            what = "that closes a loop " if kind in sdf_joints.TYPES else ""
            known = ", ".join(sdf_joints.LOOPS if kind in sdf_joints.TYPES else sdf_joints.TYPES)
            source.refuse("joint", place, f"a joint of type '{kind}' {what}is not read; those are {known}")
        elif child in tree:
            loops.append(joint)
        else:
            tree[child] = joint
    if not links:
        source.fail(f"line {node.line}, model '{node.attributes.get('name', '')}'", "has no links", expected="<link>")
    for name in links:
        at = model.at(name, source.place("link", name))
        if name in tree and tree[name].attributes["type"] != "fixed":
            named = tree[name].attributes.get("name", "")
            at = model.at(f"joint {named}", source.place("joint", named))[0], at[1]
        model.frames[name] = at
    model.frames[model.world] = inverse(within)
    robot = XmlNode("robot", {"name": node.attributes.get("name", "")}, node.line)
    robot.children.append(XmlNode("link", {"name": model.world}, node.line))
    robot.children.extend(_link(model, link) for link in node.all("link"))
    for name, joint in tree.items():
        robot.children.extend(sdf_joints.urdf_joints(model, name, joint))
    free = 0
    if base == "free" and model.world in {
        model.link(sdf_joints.text_of(joint, "parent"), "") for joint in tree.values()
    }:
        source.fail("model", 'base "free": a joint leads from the world to it', expected='base "fixed"')
    for name, link in links.items():
        if name not in tree:
            kind = "fixed" if base == "fixed" else "floating"
            masses = [text for item in link.all("inertial") if (text := sdf_joints.text_of(item, "mass"))]
            if base is None and any(numbers_in(text) == 0.0 for text in masses):
                source.note(source.place("link", name), "mass 0, of a link that no joint carries: it stands still")
                kind = "fixed"
            title = "floating_base" if not free else f"floating_{name}"
            free += 1
            robot.children.append(sdf_joints.urdf_joint(title, kind, model, (model.world, name), node.line))
    for item in node.all("frame"):
        name = item.attributes.get("name", "")
        carrier, place = model.link(name, source.place("frame", name)), source.place("frame", name)
        robot.children.append(XmlNode("link", {"name": name}, item.line))
        model.frames[name] = model.at(name, place)
        robot.children.append(sdf_joints.urdf_joint(f"{name}_frame", "fixed", model, (carrier, name), item.line))
    read = ("link", "joint", "frame", "pose", "static", "allow_auto_disable")
    for item in node.children:
        if item.tag in ("model", "include"):
            source.refuse("include", f"line {item.line}, <{item.tag}>", "a model within the model is not read")
        elif item.tag == "drake:joint":
            source.refuse("joint", f"line {item.line}, <{item.tag}>", "a joint of Drake's own is not read")
        elif item.tag in _USUAL:
            _doubt_flag(source, node, item.tag, "model")
        elif item.tag not in read:
            robot.children.append(item)
    return robot, loops


def _doubt_flag(source: Source, node: XmlNode, tag: str, place: str) -> None:
    if (said := _flag(node, tag)) != _USUAL[tag]:
        source.doubt("extension", place, f"<{tag}> {said} is not read")


def _link(model: sdf_joints.SdfModel, node: XmlNode) -> XmlNode:
    """Return a <link> of a URDF."""
    name = node.attributes.get("name", "")
    place = model.source.place("link", name)
    back = after(inverse(model.frames[name]), model.at(name, place))

    def origin(part: XmlNode) -> XmlNode:
        other, pose = sdf_joints.pose_of(model, part, f"{place}: line {part.line}, <{part.tag}>")
        if other not in ("", name):
            pose = after(after(inverse(model.at(name, place)), model.at(other, place)), pose)
        return sdf_joints.origin_of(after(back, pose), part.line)

    out = XmlNode("link", {"name": name}, node.line)
    if not node.all("inertial"):
        model.source.note(place, "no <inertial>: mass 1 kg and moments of 1 kg m^2, as SDF says")
    for part in node.all("inertial") or [XmlNode("inertial", {}, node.line)]:
        if part.attributes.get("auto", "false") in ("true", "1"):
            model.source.refuse("inertia", place, '<inertial auto="true"> is not computed')
        extra = [item.tag for item in part.children if item.tag not in ("pose", "mass", "inertia")]
        for tag in extra:
            model.source.doubt("extension", place, f"<{tag}> of <inertial> is not read")
        given = {item.tag: item.text for matrix in part.all("inertia") for item in matrix.children}
        moments = {key: given.get(key, "1" if key[1] == key[2] else "0") for key in _MOMENTS}
        mass = XmlNode("mass", {"value": sdf_joints.text_of(part, "mass") or "1"}, part.line)
        children = [origin(part), mass, XmlNode("inertia", moments, part.line)]
        out.children.append(XmlNode("inertial", {}, part.line, children))
    for part in node.children:
        if part.tag in _USUAL:
            _doubt_flag(model.source, node, part.tag, place)
        elif part.tag in ("collision", "visual"):
            shape = _shape(model.source, part, origin(part), place)
            out.children.extend([] if shape is None else [shape])
        elif part.tag not in ("inertial", "pose", "must_be_base_link"):
            out.children.append(part)
    return out


def _shape(source: Source, node: XmlNode, origin: XmlNode, place: str) -> XmlNode | None:
    """Return a <visual> or <collision> of a URDF; None of an empty one."""
    geometry = XmlNode("geometry", {}, node.line)
    for shape in (shape for item in node.all("geometry") for shape in item.children):
        given = {part.tag: part.text for part in shape.children}
        if shape.tag == "empty":
            return None
        if shape.tag == "mesh":
            if "submesh" in given:
                source.doubt("mesh", f"{place}: line {shape.line}, <submesh>", "is not chosen: the whole mesh is read")
            uri = given.get("uri", "")
            given["filename"] = "package" + uri.removeprefix("model") if uri.startswith("model://") else uri
        kept = {key: value for key, value in given.items() if key in _SIZES}
        geometry.children.append(XmlNode(shape.tag, kept, shape.line))
    rest = [item for item in node.children if item.tag not in ("pose", "geometry", "material")]
    return XmlNode(node.tag, {"name": node.attributes.get("name", "")}, node.line, [origin, geometry, *rest])
