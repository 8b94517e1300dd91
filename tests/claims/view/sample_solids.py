"""A made-up run of rigid bodies, a sheet, a rope and links; nothing is simulated."""

import dataclasses
import itertools

import numpy as np
from scipy.spatial.transform import Rotation

from add.io.trajectory_data import RunData
from add.io.trajectory_parts import ContactData, GoalData, JointData, LineData, MassSpringData, ObstacleData, SolidData

PLANE, SPHERE, BOX, CAPSULE, CYLINDER = range(5)
HALF = np.array([0.1, 0.06, 0.04])


def sheet(nx: int = 10, ny: int = 8):
    x, y = np.meshgrid(np.linspace(-0.15, 0.15, nx), np.linspace(-0.1, 0.1, ny), indexing="ij")
    rest = np.stack([x, y, np.zeros_like(x)], -1).reshape(-1, 3)
    number = np.arange(nx * ny).reshape(nx, ny)
    a, b, c, d = (n.ravel() for n in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    edges = np.concatenate([np.stack([a, b], 1), np.stack([a, d], 1)])
    return rest, edges, triangles


def tetrahedron_mesh(size: float):
    corners = size * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]])
    return corners, np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])


def solids_run(n_states: int = 25) -> RunData:
    t = np.linspace(0.0, 1.0, n_states)
    zero, one = np.zeros_like(t), np.ones_like(t)
    columns, solids, blocks = [], [], 0

    def solid(name, position, turn, **given):
        nonlocal blocks
        solids.append(SolidData(name, blocks, **given))
        columns.append(np.concatenate([position, turn], axis=1))
        blocks += 6

    def at(x, y, z):
        return np.stack([x * one, y * one, z * one], axis=1)

    # a crate tips over the edge at its lower right; its centre of mass is off its middle
    angle = 0.5 * np.pi * np.clip(t / 0.7, 0.0, 1.0) ** 2
    centre = np.array([0.02, 0.0, 0.01])
    turn = at(zero, 1.0, 0.0) * angle[:, None]
    rotation = Rotation.from_rotvec(turn)
    pivot = np.array([HALF[0], 0.0, -HALF[2]])
    solid("crate", np.array([0.1, 0, 0]) + rotation.apply(centre - pivot), turn, centre=centre, kind=BOX, size=HALF)
    # a ball rolls
    roll = 0.4 * t / 0.05
    solid("ball", at(-0.35, -0.2 + 0.4 * t, 0.05), at(-roll, 0.0, 0.0), kind=SPHERE, size=[0.05, 0, 0])
    # a flap swings about y at its upper edge
    swing = 0.9 * np.cos(6.0 * t)
    turn = at(0.0, swing, 0.0)
    hinge = np.array([-0.15, 0.05, 0.42])
    arm = Rotation.from_rotvec(turn).apply([0.0, 0.0, -0.1])
    solid("flap", hinge + arm, turn, kind=BOX, size=[0.01, 0.08, 0.1])
    solid("drum", at(0.42, 0.05, 0.06), at(0.0, 0.0, 4.0 * t), kind=CYLINDER, size=[0.06, 0.06, 0])
    solid("pill", at(0.42, -0.15, 0.1), at(0.5 * np.pi - 3.0 * t, 0, 0), kind=CAPSULE, size=[0.03, 0.06, 0])
    vertices, triangles = tetrahedron_mesh(0.05)
    solid("stone", at(-0.05, -0.25, 0.1), at(0.0, 1.5 * t, t), vertices=vertices, triangles=triangles)
    solid("pusher", at(-0.2 + 0.1 * t, 0.0, 0.1), at(0, 0, 0.3 * t), kinematic=True, kind=BOX, size=[0.015, 0.08, 0.06])
    solid("frame", at(0.25, 0.25, 0.5), at(t, t, 0))
    q = [np.concatenate(columns, axis=1)]
    rest, edges, faces = sheet()
    cloth = MassSpringData("cloth", blocks, rest, edges, faces)
    sag = np.stack([0 * rest[:, 0], 0 * rest[:, 0], -0.25 * (1 - (rest[:, 0] / 0.15) ** 2)], axis=1)
    x = rest + [0.2, 0.35, 0.5] + (0.3 + 0.2 * np.sin(5 * t))[:, None, None] * sag
    q.append(x.reshape(n_states, -1))
    rope_rest = np.stack([np.linspace(0, 0.3, 9), np.zeros(9), np.zeros(9)], axis=1)
    rope = MassSpringData("rope", blocks + q[1].shape[1], rope_rest, np.stack([np.arange(8), np.arange(1, 9)], 1))
    hang = np.array([0, 0, -1.0]) * (0.3 * np.sin(np.pi * rope_rest[:, :1] / 0.3) * 0.3)
    ropes = (rope_rest + np.array([-0.4, 0.35, 0.55]) + hang)[None] + 0.02 * np.sin(8 * t)[:, None, None] * [0, 1.0, 0]
    q.append(ropes.reshape(n_states, -1))
    handle = MassSpringData("handle", rope.start + 27, np.zeros((1, 3)))
    q.append(at(-0.4, 0.35, 0.55))
    q = np.concatenate(q, axis=1)
    v = np.gradient(q, t, axis=0)
    corners = HALF * np.array(list(itertools.product((-1, 1), repeat=3)))
    data = RunData(
        t=t, q=q, v=v, energy={"kinetic": t, "coupling": t**2, "gravity": 1 - t}, newton_iterations=[3] * len(t[1:]),
        newton_residual=1e-9 * t[1:], contact_force=0 * q, bodies=(), sheets=(cloth, rope, handle),
        solids=tuple(solids),
    )  # fmt: skip
    offsets, places, forces = [0], [], []
    tops = []
    for k in range(n_states):
        rotation, position = data.pose(data.solids[0], k)
        world = corners @ rotation.T + position
        low = world[world[:, 2] < 1e-6]
        places.append(low)
        forces.append(np.tile([2.0, 0.0, 8.0 / len(low)], (len(low), 1)))
        offsets.append(offsets[-1] + len(low))
        tops.append(rotation @ [-0.1, 0.0, 0.04] + position)
    hook = at(-0.15, -0.1, 0.5)
    cable = np.stack([hook, np.array(tops)], axis=1)
    length = np.linalg.norm(cable[:, 0] - cable[:, 1], axis=1)
    loose = np.stack([at(0.42, -0.15, 0.06), at(0.2, -0.2, 0.3)], axis=1)
    spring = np.stack([q[:, 6:9], at(-0.45, 0.1, 0.35)], axis=1)
    lines = {
        "cable": LineData("cable", cable, np.maximum(0.0, 200.0 * (length - 0.37))),
        "leash": LineData("cable", loose, zero),
        "spring": LineData("spring", spring, 30.0 * (np.linalg.norm(spring[:, 0] - spring[:, 1], axis=1) - 0.25)),
        "push": LineData("load", np.stack([at(0.42, 0.05, 0.12), at(0.42, 0.05, 1.12)], axis=1), 3.0 * t),
    }
    joints = {
        "hinge": JointData(np.tile(hinge, (n_states, 1)), at(0.0, 1.0, 0.0)),
        "ball joint": JointData(hook, np.full((n_states, 3), np.nan)),
    }
    upright = Rotation.from_rotvec([0, 0.5 * np.pi, 0]).as_matrix()
    return dataclasses.replace(
        data,
        lines=lines,
        joints=joints,
        contacts=ContactData(offsets, np.concatenate(places), np.concatenate(forces)),
        goals={
            "upright": GoalData(np.zeros((0, 3)), "crate", upright, np.array([0.2, 0.0, 0.1])),
            "spot": GoalData([[-0.35, 0.25, 0.05]]),
        },
        obstacles=(ObstacleData("floor", PLANE, np.zeros(3), np.eye(3), np.zeros(3)),),
        markers={"corner": np.array(tops)},
    )
