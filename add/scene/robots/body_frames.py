"""Links in the frames of the file's bodies, also where joints stand off their origins."""

from dataclasses import replace

import numpy as np

from add.scene.robots.inertia import Place, after, inverse
from add.scene.robots.model import Robot, RobotGeometry, RobotJoint, RobotLink, RobotLoop
from add.typing import FloatArray

_X = np.array([1.0, 0.0, 0.0])


def in_body_frames(robot: Robot) -> Robot:
    """Return a robot whose links have the frames of the file's bodies: `Robot.place` of a link is then the link itself.

    Where that frame is not the joint's, the joint carries a link without mass, ``<link>_anchor``, and a fixed joint,
    ``<link>_frame``, the link.
    """
    shifted: dict[str, Place] = {
        name: (position, rotation)
        for name, (link, position, rotation) in robot.frames.items()
        if link == name and (position.any() or not np.array_equal(rotation, np.eye(3)))
    }
    if not shifted:
        return robot
    back = {name: inverse(place) for name, place in shifted.items()}
    taken = {link.name for link in robot.links} | {joint.name for joint in robot.joints} | set(robot.frames)

    def new(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def moved(link: str, position: FloatArray, rotation: FloatArray) -> Place:
        """Return a place on a link in its new frame."""
        return after(back[link], (position, rotation)) if link in back else (position, rotation)

    links: list[RobotLink] = []
    joints: list[RobotJoint] = []
    for link, joint in zip(robot.links, robot.joints, strict=True):
        position, rotation = moved(joint.parent, joint.position, joint.rotation)
        joint = replace(joint, position=position, rotation=rotation)
        if link.name not in shifted:
            links.append(link)
            joints.append(joint)
            continue
        anchor = new(f"{link.name}_anchor")
        links += [RobotLink(anchor, 0.0, np.zeros(3), np.zeros((3, 3))), _in_frame(link, back[link.name])]
        fixed = RobotJoint(new(f"{link.name}_frame"), "fixed", anchor, link.name, *shifted[link.name], _X)
        joints += [replace(joint, child=anchor), fixed]
    frames = {
        name: (link, *moved(link, position, rotation))
        for name, (link, position, rotation) in robot.frames.items()
        if name not in shifted
    }
    loops = tuple(_loop(loop, back) for loop in robot.loops)

    def at(link: str, position: FloatArray) -> tuple[str, FloatArray]:
        return link, moved(link, position, np.eye(3))[0]

    tendons = tuple(
        replace(
            tendon,
            segments=tuple(
                replace(part, places=tuple(at(*place) for place in part.places)) for part in tendon.segments
            ),
        )
        for tendon in robot.tendons
    )
    fluid = robot.fluid and replace(
        robot.fluid,
        boxes=tuple((link, *moved(link, *place), edges) for link, *place, edges in robot.fluid.boxes),
        ellipsoids=tuple((link, *moved(link, *place), values) for link, *place, values in robot.fluid.ellipsoids),
    )
    return replace(
        robot,
        links=tuple(links),
        joints=tuple(joints),
        frames=frames,
        loops=loops,
        tendons=tendons,
        fluid=fluid,
        compensated=tuple((*at(link, place), mass) for link, place, mass in robot.compensated),
    )


def _in_frame(link: RobotLink, back: Place) -> RobotLink:
    """Return a link whose numbers are said in another frame."""

    def shape(item: RobotGeometry) -> RobotGeometry:
        position, rotation = after(back, (item.position, item.rotation))
        return replace(item, position=position, rotation=rotation)

    position, rotation = back
    return replace(
        link,
        centre=position + rotation @ link.centre,
        inertia=rotation @ link.inertia @ rotation.T,
        collision=tuple(shape(item) for item in link.collision),
        visual=tuple(shape(item) for item in link.visual),
    )


def _loop(loop: RobotLoop, back: dict[str, Place]) -> RobotLoop:
    if not loop.links:
        return loop
    places = [
        after(back[link], (position, rotation)) if link in back else (position, rotation)
        for link, position, rotation in zip(loop.links, loop.positions, loop.rotations, strict=True)
    ]
    positions, rotations = (np.stack([place[k] for place in places]) for k in range(2))
    return replace(loop, positions=positions, rotations=rotations)
