"""MJCF by the package `mujoco`, which resolves defaults, classes, includes and frames: its arrays become a robot."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from add.scene.robots.inertia import check_moving
from add.scene.robots.mjcf_joints import read_joints, read_keyframes, read_loops
from add.scene.robots.mjcf_model import Mjcf, compiled, read_shapes, refuse_too_many, switch_off
from add.scene.robots.mjcf_parts import note_others, read_actuators, read_tendons, refuse_others
from add.scene.robots.model import WORLD, LinkPlace, Robot, RobotFluid, RobotGeometry
from add.scene.robots.tree import Tree, exclusions, merge, require_plausible
from add.scene.robots.xml_file import MJCF_WORDS, Source, XmlNode
from add.typing import FloatArray

# --- Forces on every body of a file: the fluid around boxes of its inertia, as in MuJoCo, and compensated weight ------


def box_of_inertia(mass: float, moments: FloatArray) -> FloatArray:
    """Return the edges (3,) of the box of a mass that has these principal moments, 6 (I_j + I_k - I_i)/m squared."""
    return np.sqrt(np.maximum(moments.sum() - 2.0 * moments, 0.0) * 6.0 / mass)


def fluid_around(robot: Robot) -> RobotFluid:
    """Return the fluid that a scene puts around a robot, its numbers zero: each link with a mass is one box."""
    boxes = []
    for link in robot.links:
        if link.mass > 0.0:
            moments, axes = np.linalg.eigh(link.inertia)
            boxes.append((link.name, link.centre, axes, box_of_inertia(link.mass, moments)))
    return RobotFluid(0.0, 0.0, tuple(boxes))


def read_fluid(mjcf: Mjcf, places: Mapping[int, LinkPlace], turn: FloatArray) -> RobotFluid | None:
    """Return the fluid of a compiled MuJoCo model with what all bodies that move are to it, at their places in links.

    A body is the box of its inertia, or, if the `fluidshape` of a geom is an ellipsoid, the ellipsoids of all such.
    """
    source, model, option = mjcf.source, mjcf.model, mjcf.model.opt
    if not (option.density or option.viscosity):
        return None
    source.not_negative("<option>", density=float(option.density), viscosity=float(option.viscosity))
    if "fluid" in source.ignore:
        source.refuse("fluid", "<option>", f"a fluid of density {option.density:g}, viscosity {option.viscosity:g}")
        return None
    boxes, ellipsoids = [], []
    for body, place in places.items():
        mass, first = float(model.body_mass[body]), int(model.body_geomadr[body])
        felt = [geom for geom in range(first, first + int(model.body_geomnum[body])) if model.geom_fluid[geom][0]]
        if place.link == WORLD or mass <= 0.0:
            continue
        for geom in felt:
            values = np.concatenate([_semi_axes(mjcf, geom), model.geom_fluid[geom][1:]])
            ellipsoids.append((*place.then(mjcf.pose("geom_", geom)), values))
        if not felt:
            edges = box_of_inertia(mass, np.array(model.body_inertia[body]))
            boxes.append((*place.then(mjcf.pose("body_i", body)), edges))
    wind = turn @ np.array(option.wind)
    return RobotFluid(float(option.density), float(option.viscosity), tuple(boxes), wind, tuple(ellipsoids))


def _semi_axes(mjcf: Mjcf, geom: int) -> FloatArray:
    """Return the semi-axes (3,) of the ellipsoid that a geom is to a fluid."""
    size = np.array(mjcf.model.geom_size[geom])
    radius, half, _ = size
    long = {"SPHERE": radius, "CAPSULE": half + radius, "CYLINDER": half}
    kind = mjcf.word("Geom", mjcf.model.geom_type[geom])
    return np.array([radius, radius, long[kind]]) if kind in long else size


def read_compensation(mjcf: Mjcf, places: Mapping[int, LinkPlace]) -> tuple[tuple[str, FloatArray, float], ...]:
    """Return (link, place (3,) in it, mass [kg]) of the weights that a compiled MuJoCo model takes away."""
    source, model, out = mjcf.source, mjcf.model, []
    for body, place in places.items():
        mass = float(model.body_gravcomp[body] * model.body_mass[body])
        if place.link == WORLD or mass == 0.0:
            continue
        if "gravcomp" in source.ignore:
            source.refuse("gravcomp", f"link '{place.link}'", f"gravcomp {model.body_gravcomp[body]:g}")
        else:
            out.append((*place.then(mjcf.pose("body_i", body))[:2], mass))
    if out:
        _check_by_actuators(mjcf)
    return tuple(out)


def _check_by_actuators(mjcf: Mjcf) -> None:
    """Refuse weight that actuators take away and are not free to: switched off, or with a limit on a joint."""
    source, model = mjcf.source, mjcf.model
    off = model.opt.disableflags & mjcf.mujoco.mjtDisableBit.mjDSBL_ACTUATION and "flag" not in source.ignore
    for number in np.flatnonzero(model.jnt_actgravcomp):
        place = mjcf.place("joint", int(number))
        if off:
            source.refuse("gravcomp", place, "actuatorgravcomp, and actuation is switched off")
        elif model.jnt_actfrclimited[number]:
            source.refuse("actuatorfrcrange", place, "actuatorfrcrange limits what actuatorgravcomp takes away, too")
        else:
            source.note(place, "actuatorgravcomp: the weight is taken away as it is elsewhere")


# ----------------------------------------------------------------------------------------------------------------------


def robot_of_mjcf(file: Path, root: XmlNode, ignore: Collection[str], turn: FloatArray, base: str | None) -> Robot:
    """Make a robot of an MJCF file.

    Parameters
    ----------
    file, root : path and root element
    ignore : words of `MJCF_WORDS`
    turn : (3, 3) from the file's axes to the world's
    base : "fixed" or "free" of its first link, None as the file says
    """
    source = Source(file, MJCF_WORDS, frozenset(ignore))
    refuse_too_many(source, root)
    source.lines.update(_lines(root))
    mjcf = compiled(source)
    model = mjcf.model
    switch_off(mjcf)
    for body in range(model.nbody):  # so that other links take none of their names
        mjcf.of("body", body)
    refuse_others(mjcf)
    links, joints, origins = read_joints(mjcf, read_shapes(mjcf), base)
    for link in links.values():
        require_plausible(source, "body", link)
    for joint in joints:
        require_plausible(source, "joint", joint)
    tree = merge(source, links, joints, turn)
    check_moving(source, tree.links, tree.joints)
    frames, body_places = _frames(mjcf, tree, origins)
    tendons = read_tendons(mjcf, body_places)
    excluded, excluded_shapes = _excluded(mjcf, tree)
    actuators = read_actuators(mjcf, {tendon.name for tendon in tendons})
    fluid = read_fluid(mjcf, body_places, turn)
    compensated = read_compensation(mjcf, body_places)
    loops = read_loops(mjcf, body_places, {tendon.name for tendon in tendons if tendon.joints})
    note_others(mjcf)
    for kind, items in (("actuator", actuators), ("tendon", tendons), ("equality", loops)):
        for item in items:
            require_plausible(source, kind, item)
    gravity = np.array(model.opt.gravity, dtype=np.float64)
    if model.opt.disableflags & mjcf.mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        gravity = np.zeros(3)
    return Robot(
        str(bytes(model.names[: model.names.index(b"\0")]).decode("utf-8", "replace")) or file.stem,
        tree.links,
        tree.joints,
        tuple(source.ignored),
        excluded,
        frames,
        tree.static,
        excluded_shapes,
        actuators,
        tendons,
        loops,
        turn @ gravity,
        read_keyframes(mjcf, tree.joints, turn),
        fluid,
        compensated,
        tuple(source.doubts),
    )


def _lines(root: XmlNode) -> dict[tuple[str, str], int]:
    """Return the lines of what has a name in the file itself, by kind."""
    kinds = {"body": "body", "joint": "joint", "freejoint": "joint", "geom": "geom", "site": "site"}
    groups = {"actuator", "tendon", "equality"}
    lines: dict[tuple[str, str], int] = {}
    for node in root.nodes():
        for child in node.children:
            kind = node.tag if node.tag in groups else kinds.get(child.tag)
            if kind is not None and "name" in child.attributes:
                lines.setdefault((kind, child.attributes["name"]), child.line)
    return lines


def _frames(
    mjcf: Mjcf, tree: Tree, origins: dict[str, FloatArray]
) -> tuple[dict[str, LinkPlace], dict[int, LinkPlace]]:
    """Return places by name, of bodies whose frame is not their link's and of sites, and of all bodies by number."""
    bodies: dict[int, LinkPlace] = {}
    frames: dict[str, LinkPlace] = {}
    for body in range(mjcf.model.nbody):
        name = mjcf.of("body", body)
        shift = origins.get(name, np.zeros(3))
        bodies[body] = tree.hosts[name].then((-shift, np.eye(3)))
        if body and (bodies[body].link != name or shift.any()):
            frames[name] = bodies[body]
    for site in range(mjcf.model.nsite):
        frames[mjcf.of("site", site)] = bodies[int(mjcf.model.site_bodyid[site])].then(mjcf.pose("site_", site))
    return frames, bodies


def _excluded(mjcf: Mjcf, tree: Tree) -> tuple[Any, Any]:
    """Return the pairs that MuJoCo's filters leave out: parent and child, <exclude>, contype and conaffinity.

    What <pair> declares touches all the same; neighbours, which a scene keeps apart, are refused there.
    """
    source, model = mjcf.source, mjcf.model
    flags, bit = model.opt.disableflags, mjcf.mujoco.mjtDisableBit
    parents = {joint.child: joint.parent for joint in tree.joints}
    real = {mjcf.of("body", body) for body in range(model.nbody)}
    for child, parent in list(parents.items()):  # through the massless links of composite joints
        while parent not in real:
            parent = parents[parent]
        parents[child] = parent
    parent_filter = not flags & bit.mjDSBL_FILTERPARENT

    def kept_apart(one: str, two: str) -> bool:
        if flags & (bit.mjDSBL_CONTACT | bit.mjDSBL_CONSTRAINT):
            return True
        # What stands still touches its children: MuJoCo has no parent filter for the world.
        return parent_filter and WORLD not in (one, two) and (parents.get(one) == two or parents.get(two) == one)

    excluded = set()
    for signature in np.array(model.exclude_signature, dtype=np.int64):
        excluded.add(frozenset((mjcf.of("body", int(signature) >> 16), mjcf.of("body", int(signature) & 0xFFFF))))
    masks = {
        mjcf.of("geom", geom): (int(model.geom_contype[geom]), int(model.geom_conaffinity[geom]))
        for geom in range(model.ngeom)
    }

    links = (tree.static, *tree.links)
    owner = {shape.name: link.name for link in links for shape in link.collision}
    declared = set()
    for pair in zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True):
        one, two = (mjcf.of("geom", geom) for geom in pair)
        neighbours = one in owner and two in owner and kept_apart(owner[one], owner[two])
        if "pair" in source.ignore or (neighbours and not flags & bit.mjDSBL_CONTACT):
            source.refuse(
                "pair",
                f"<contact><pair> of '{one}' and '{two}'",
                "a contact of neighbours" if neighbours else "a contact",
            )
        else:
            declared.add(frozenset((one, two)))

    def never(one: RobotGeometry, two: RobotGeometry) -> bool:
        if frozenset((one.name, two.name)) in declared:
            return False
        if frozenset((one.origin, two.origin)) in excluded:
            return True
        a, b = masks[one.name], masks[two.name]
        return not (a[0] & b[1]) and not (b[0] & a[1])

    return exclusions(links, kept_apart, never)
