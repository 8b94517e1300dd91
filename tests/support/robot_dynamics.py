"""Poses and mass matrices of a `Robot`, by composite inertia in world axes: independent of the package's trees."""

import numpy as np

from add.scene.robots import Robot


def cross(x):
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def exponential(w):
    angle = np.linalg.norm(w)
    if angle == 0.0:
        return np.eye(3)
    k = cross(w / angle)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def of_quaternion(wxyz):
    w, v = wxyz[0], np.asarray(wxyz[1:])
    return np.eye(3) * (w * w - v @ v) + 2 * np.outer(v, v) + 2 * w * cross(v)


def poses_and_motions(robot: Robot, coordinates):
    """Return the pose of each link and, by joint, its motion [angular; linear at the world's origin] in world axes.

    `coordinates` by joint: angle or length, quaternion of a ball, (place, quaternion) of a free joint. Rates: of a ball
    in the child's axes, of a free joint of the origin in world axes and angular in the child's axes.
    """
    poses, motions = {"": (np.zeros(3), np.eye(3))}, {}
    for joint in robot.joints:
        p, r = poses[joint.parent]
        q = coordinates[joint.name]
        if joint.kind == "free":
            assert joint.parent == ""
            x, rotation = np.array(q[:3]), of_quaternion(q[3:])
            poses[joint.child] = (x, rotation)
            linear = np.vstack([np.zeros((3, 3)), np.eye(3)])
            motions[joint.name] = np.hstack([linear, np.vstack([rotation, cross(x) @ rotation])])
            continue
        p, r = p + r @ joint.position, r @ joint.rotation
        if joint.kind == "hinge":
            r = r @ exponential(q[0] * joint.axis)
            motions[joint.name] = np.concatenate([r @ joint.axis, np.cross(p, r @ joint.axis)])[:, None]
        elif joint.kind == "slide":
            p = p + r @ joint.axis * q[0]
            motions[joint.name] = np.concatenate([np.zeros(3), r @ joint.axis])[:, None]
        else:
            assert joint.kind == "ball"
            r = r @ of_quaternion(q)
            motions[joint.name] = np.vstack([r, cross(p) @ r])
        poses[joint.child] = (p, r)
    return poses, motions


def mass_matrix(robot: Robot, coordinates):
    """Return M = sum over links of J^T I J, in the order of the joints, without armature."""
    poses, motions = poses_and_motions(robot, coordinates)
    columns, above, at = {}, {"": ()}, 0
    for joint in robot.joints:
        columns[joint.name] = slice(at, at + joint.n)
        above[joint.child] = (*above[joint.parent], joint.name)
        at += joint.n
    total = np.zeros((at, at))
    for link in robot.links:
        p, r = poses[link.name]
        jacobian = np.zeros((6, at))
        for name in above[link.name]:
            jacobian[:, columns[name]] = motions[name]
        centre = p + r @ link.centre
        linear = jacobian[3:] - cross(centre) @ jacobian[:3]
        total += link.mass * linear.T @ linear + jacobian[:3].T @ r @ link.inertia @ r.T @ jacobian[:3]
    return total, columns
