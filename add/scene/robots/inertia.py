"""Rotations and frames of files, and checks of masses: what a file states, and what joints have to move."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from add.geometry.mass_properties import ROUND_OFF
from add.scene.robots.model import WORLD, LinkPlace, Place, Robot, RobotJoint, RobotLink, after, here
from add.scene.robots.xml_file import Source
from add.typing import FloatArray

# --- Rotations of robot files as matrices -----------------------------------------------------------------------------


def inverse(place: Place) -> Place:
    """Return the place of the frame that a place is given in, in the frame of that place."""
    return -place[1].T @ place[0], place[1].T


def about(axis: FloatArray, angle: float) -> FloatArray:
    """Return the rotation by an angle about a unit axis (Rodrigues), (3, 3)."""
    return np.asarray(Rotation.from_rotvec(angle * axis).as_matrix())


def from_rpy(angles: FloatArray) -> FloatArray:
    """Return R = Rz(yaw) Ry(pitch) Rx(roll) of the angles (roll, pitch, yaw) of a URDF, (3, 3)."""
    return np.asarray(Rotation.from_euler("xyz", angles).as_matrix())


def from_quaternion(wxyz: Sequence[float] | FloatArray) -> FloatArray:
    """Return the rotation of a quaternion of any length but zero, (3, 3)."""
    return np.asarray(Rotation.from_quat(wxyz, scalar_first=True).as_matrix())


#: Rows and columns of Ixx, Iyy, Izz, Ixy, Ixz, Iyz.
_SIX = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]


def six_of(matrix: FloatArray) -> FloatArray:
    """Return Ixx, Iyy, Izz, Ixy, Ixz, Iyz of a symmetric matrix (3, 3)."""
    return np.asarray(matrix[_SIX])


def from_six(six: Sequence[float] | FloatArray) -> FloatArray:
    """Return the symmetric matrix (3, 3) of Ixx, Iyy, Izz, Ixy, Ixz, Iyz."""
    out = np.zeros((3, 3))
    out[_SIX] = out[_SIX[::-1]] = six
    return out


def together(parts: Sequence[tuple[float, FloatArray, FloatArray]]) -> tuple[float, FloatArray, FloatArray]:
    """Return mass, centre and inertia about it of parts of which the same is known, in common axes."""
    mass = sum(part[0] for part in parts)
    middle = sum((m * at for m, at, _ in parts), np.zeros(3)) / mass if mass > 0.0 else np.zeros(3)
    inertia = np.zeros((3, 3))
    for m, at, moments in parts:
        arm = at - middle
        inertia += moments + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return float(mass), middle, inertia


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, with as many _ as that takes, and take it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def plane_axes(normal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return unit axes u, w of a plane, right-handed with its unit normal: u x w = normal.

    Of the coordinate axes, u is made from the one after that which the normal is closest to: x of a normal z.
    """
    u = np.eye(3)[(int(np.argmax(np.abs(normal))) + 1) % 3]
    u = u - (u @ normal) * normal
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)


# ----------------------------------------------------------------------------------------------------------------------

#: Share of a diagonal entry of the mass matrix that its pivot may not fall below [-].
_PIVOT = 1e-12


def stated_inertia(
    source: Source, place: str, mass: float, inertia: FloatArray, *, repair: bool, still: bool
) -> FloatArray:
    """Check what a file states for one link, before links are merged.

    A link may be as thin as a line or a point (A = 0). What no body has, A + B < C, moves all the same by the equations
    of a rigid body, and is a doubt; so is a negative moment, for which the mean of all three stands. With `repair` each
    principal moment becomes that mean, as MuJoCo's `balanceinertia` has it, and it is noted. Of a link that stands
    ``still`` an impossible inertia is noted and left out, since nothing turns it.

    Returns
    -------
    (3, 3) [kg m^2]
    """
    if mass < 0.0:
        source.fail(place, "a negative mass", f"{mass:g}", "a mass >= 0 [kg]")
    moments = np.asarray(np.linalg.eigvalsh(inertia), dtype=np.float64)
    if mass == 0.0:
        if inertia.any() and still:
            source.note(place, "inertia without mass, of a link that stands still")
            return np.zeros((3, 3))
        if inertia.any():
            source.doubt("inertia", place, f"inertia without mass is left out: principal moments {_listed(moments)}")
        return np.zeros((3, 3))
    allowed = ROUND_OFF * float(np.abs(inertia).max())
    if moments[0] >= -allowed and moments[0] + moments[1] >= moments[2] - allowed:
        return inertia
    mean = float(moments.mean())
    if still:
        source.note(place, f"impossible principal moments {_listed(moments)} kg m^2, of a link that stands still")
        return np.zeros((3, 3))
    if repair and mean > 0.0:
        source.note(place, f"repaired: principal moments {_listed(moments)} became {mean:.6g} each")
        return mean * np.eye(3)
    found = f"principal moments {_listed(moments)} kg m^2"
    if moments[0] >= -allowed:
        text = f"belongs to no body, A + B < C: {found}; read as it is, `repair` makes them equal"
        source.doubt("inertia", place, f"the inertia {text}")
        return inertia
    mean = max(mean, 0.0)
    source.doubt("inertia", place, f"the inertia is not positive definite: {found}; read as {mean:.6g} each")
    return mean * np.eye(3)


def check_moving(source: Source, links: Sequence[RobotLink], joints: Sequence[RobotJoint]) -> None:
    """Check that every joint has something to move.

    A moving link without mass is allowed inside a chain, not at its end, if the mass matrix with armature is positive
    definite in the start pose: two hinges about one line have something between them.

    Raises
    ------
    InputError
        naming link or joint.
    """
    parents = {joint.parent for joint in joints}
    followers = {joint.child for joint in joints if joint.mimic is not None}
    for link in links:
        place = source.place("link", link.name)
        if link.mass == 0.0 and link.name not in parents and link.name not in followers:
            source.fail(
                place,
                "a link at the end of a chain moves and has no mass",
                "no <inertial>, or mass 0",
                "mass and inertia, or a fixed joint",
            )
    _check_pivots(source, links, joints)


def _check_pivots(source: Source, links: Sequence[RobotLink], joints: Sequence[RobotJoint]) -> None:
    """Eliminate coordinates from the leaves on: a pivot of M is what a joint meets when those below it are free."""
    if any(joint.mimic is not None for joint in joints):
        mass, owners = start_mass_matrix(links, joints)
        _eliminate(source, mass, mass.diagonal(), [joints[k] for k in owners])
        return
    # Without followers that is the articulated inertia of Featherstone (2008, ch. 7), link by link.
    poses = start_poses(joints)
    numbers = {joint.child: k for k, joint in enumerate(joints)}
    alone = [_spatial(link, (np.zeros(3), poses[link.name][1])) for link in links]
    locked = [inertia.copy() for inertia in alone]  # with the next joints locked: round-off is a share of that
    for k in range(len(joints) - 1, -1, -1):
        joint, (position, rotation) = joints[k], poses[joints[k].child]
        axes = _subspace(joint, (np.zeros(3), rotation))
        force, armature = alone[k] @ axes, joint.armature * np.eye(joint.n)
        mass, most = axes.T @ force + armature, axes.T @ locked[k] @ axes + armature
        _eliminate(source, mass, most.diagonal(), [joint] * joint.n)
        before = alone[k]
        alone[k] = before - force @ np.linalg.solve(mass, force.T)
        if joint.parent != WORLD:
            parent = numbers[joint.parent]
            shift = np.eye(6)
            shift[3:, :3] = -_cross(position - poses[joint.parent][0])
            alone[parent] += shift.T @ alone[k] @ shift
            locked[parent] += shift.T @ before @ shift


def _eliminate(source: Source, mass: FloatArray, locked: FloatArray, owners: Sequence[RobotJoint]) -> None:
    """Eliminate the coordinates of a matrix from the last on; ``locked`` (n,): their inertias with all others held."""
    mass, largest = mass.copy(), locked.copy()
    for k in range(len(mass) - 1, -1, -1):
        pivot, joint = float(mass[k, k]), owners[k]
        if not pivot > _PIVOT * largest[k]:
            source.fail(
                source.place("joint", joint.name),
                f"moves nothing: link '{joint.child}' has too little inertia of its own, and the joints below it let "
                "the others go",
                f"{pivot:.3g} {'kg' if joint.kind == 'slide' else 'kg m^2'} in the start pose",
                "mass on the link, joints in other directions, or an armature > 0 on the joint",
            )
        mass[:k, :k] -= np.outer(mass[:k, k], mass[k, :k]) / pivot


def start_mass_matrix(links: Sequence[RobotLink], joints: Sequence[RobotJoint]) -> tuple[FloatArray, list[int]]:
    """Return M with armature in the start pose, M_kl = S_k^T I^c_l S_l for k above l, and each coordinate's joint.

    A mimic joint has no coordinate: its column, times its factor, is added to that of the joint it mimics.
    """
    poses = start_poses(joints)
    numbers = {joint.child: k for k, joint in enumerate(joints)}
    composite = [_spatial(link, poses[link.name]) for link in links]
    above = np.eye(len(joints), dtype=bool)  # (k, l): whether k carries l, or is it
    for k, joint in enumerate(joints):
        if joint.parent != WORLD:
            above[:, k] |= above[:, numbers[joint.parent]]
    for k, joint in reversed(list(enumerate(joints))):
        if joint.parent != WORLD:
            composite[numbers[joint.parent]] += composite[k]
    axes = [_subspace(joint, poses[joint.child]) for joint in joints]
    owners = [k for k, joint in enumerate(joints) for _ in range(joint.n)]
    whole = np.hstack(axes).T @ np.hstack([inertia @ axis for inertia, axis in zip(composite, axes, strict=True)])
    carries = above[np.ix_(owners, owners)]
    full = np.where(carries, whole, np.where(carries.T, whole.T, 0.0)) + np.diag([joints[k].armature for k in owners])
    kept = [i for i, k in enumerate(owners) if joints[k].mimic is None]
    column = {joints[owners[i]].name: number for number, i in enumerate(kept)}
    chosen = np.eye(len(full))[:, kept]
    for i, k in enumerate(owners):
        mimic = joints[k].mimic
        if mimic is not None:
            chosen[i, column[mimic[0]]] = mimic[1]
    return chosen.T @ full @ chosen, [owners[i] for i in kept]


def start_poses(joints: Sequence[RobotJoint]) -> dict[str, Place]:
    """Return the poses of the links in the world where the file poses the robot."""
    poses: dict[str, Place] = {WORLD: here()}
    for joint in joints:
        pose = after(poses[joint.parent], (joint.position, joint.rotation))
        if joint.kind == "hinge":
            pose = after(pose, (joint.pitch * joint.start * joint.axis, about(joint.axis, joint.start)))
        elif joint.kind == "slide":
            pose = after(pose, (joint.start * joint.axis, np.eye(3)))
        poses[joint.child] = pose
    return poses


def _cross(x: FloatArray) -> FloatArray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def _spatial(link: RobotLink, pose: Place) -> FloatArray:
    """Return the spatial inertia [angular; linear] about the world's origin, (6, 6)."""
    rotation = pose[1]
    c = _cross(pose[0] + rotation @ link.centre)
    inertia = rotation @ link.inertia @ rotation.T + link.mass * c @ c.T
    return np.block([[inertia, link.mass * c], [link.mass * c.T, link.mass * np.eye(3)]])


def _subspace(joint: RobotJoint, pose: Place) -> FloatArray:
    """Return the motion of the coordinates in world axes about the world's origin, (6, n)."""
    position, rotation = pose
    turns = np.vstack([rotation, _cross(position) @ rotation])
    shifts = np.vstack([np.zeros((3, 3)), rotation])
    if joint.kind == "hinge":
        return (turns + joint.pitch * shifts) @ joint.axis[:, None]
    if joint.kind == "slide":
        return shifts @ joint.axis[:, None]
    return turns if joint.kind == "ball" else np.hstack([shifts, turns])


def _listed(moments: FloatArray) -> str:
    return ", ".join(f"{moment:.6g}" for moment in moments)


# --- Links in the frames of the file's bodies, also where joints stand off their origins ------------------------------


_X = np.array([1.0, 0.0, 0.0])


def in_body_frames(robot: Robot) -> Robot:
    """Return a robot whose links have the frames of the file's bodies: `Robot.place` of a link is then the link itself.

    Where that frame is not the joint's, the joint carries a link without mass, ``<link>_anchor``, and a fixed joint,
    ``<link>_frame``, the link.
    """
    shifted = {
        name: place
        for name, place in robot.frames.items()
        if place.link == name and (place.position.any() or not np.array_equal(place.rotation, np.eye(3)))
    }
    if not shifted:
        return robot
    back = {name: inverse(place[1:]) for name, place in shifted.items()}
    taken = {link.name for link in robot.links} | {joint.name for joint in robot.joints} | set(robot.frames)

    def moved(link: str, position: FloatArray, rotation: FloatArray) -> LinkPlace:
        """Return a place on a link in its new frame."""
        place = position, rotation
        return LinkPlace(link, *(after(back[link], place) if link in back else place))

    def point(link: str, position: FloatArray) -> tuple[str, FloatArray]:
        return moved(link, position, np.eye(3))[:2]

    links: list[RobotLink] = []
    joints: list[RobotJoint] = []
    for link, joint in zip(robot.links, robot.joints, strict=True):
        _, position, rotation = moved(joint.parent, joint.position, joint.rotation)
        joint = replace(joint, position=position, rotation=rotation)
        if link.name not in shifted:
            links.append(link)
            joints.append(joint)
            continue
        anchor = free_name(f"{link.name}_anchor", taken)
        links += [RobotLink(anchor), link.moved(back[link.name])]
        frame = free_name(f"{link.name}_frame", taken)
        fixed = RobotJoint(frame, "fixed", anchor, link.name, *shifted[link.name][1:], _X)
        joints += [replace(joint, child=anchor), fixed]
    loops = []
    for loop in robot.loops:
        ends = [moved(*end) for end in zip(loop.links, loop.positions, loop.rotations, strict=False)]
        if ends:
            positions, rotations = (np.stack([end[k] for end in ends]) for k in (1, 2))
            loop = replace(loop, positions=positions, rotations=rotations)
        loops.append(loop)
    tendons = [
        replace(
            tendon,
            segments=tuple(
                replace(part, places=tuple(point(*place) for place in part.places)) for part in tendon.segments
            ),
        )
        for tendon in robot.tendons
    ]
    fluid = robot.fluid and replace(
        robot.fluid,
        boxes=tuple((*moved(link, at, turn), edges) for link, at, turn, edges in robot.fluid.boxes),
        ellipsoids=tuple((*moved(link, at, turn), values) for link, at, turn, values in robot.fluid.ellipsoids),
    )
    return replace(
        robot,
        links=tuple(links),
        joints=tuple(joints),
        frames={name: moved(*place) for name, place in robot.frames.items() if name not in shifted},
        loops=tuple(loops),
        tendons=tuple(tendons),
        fluid=fluid,
        compensated=tuple((*point(link, place), mass) for link, place, mass in robot.compensated),
    )
