"""A made-up run: a soft box falls, squashes on a floor and slides; nothing is simulated."""

import numpy as np

from add.geometry import FAMILIES, box_mesh, surface
from add.io.trajectory_data import RunData
from add.io.trajectory_parts import BodyData, ObstacleData

KINDS = {"plane": 0, "sphere": 1, "box": 2, "capsule": 3, "cylinder": 4}


def sample_run(n_states: int = 31, divisions: tuple[int, int, int] = (4, 3, 3), family: str = "tet4") -> RunData:
    mesh = box_mesh((0.2, 0.15, 0.1), divisions, FAMILIES[family])
    n = mesh.n_nodes
    body = BodyData("block", 0, family, mesh.points, mesh.cells, surface(mesh).triangles, "neo-hookean", (7e3, 1.6e4))
    t = np.linspace(0.0, 0.6, n_states)
    fall = 0.5 * 9.81 * t**2
    height = np.where(fall < 0.25, 0.3 - fall, 0.05 + 0.02 * np.sin(30 * t) * np.exp(-4 * t))
    touching = fall >= 0.25
    squash = np.where(touching, 1.0 + 0.2 * np.sin(30 * t) * np.exp(-4 * t), 1.0)
    q = np.empty((n_states, n, 3))
    for k in range(n_states):
        scale = np.array([squash[k] ** -0.5, squash[k] ** -0.5, squash[k]])
        q[k] = mesh.points * scale
        q[k, :, 0] += 0.4 * mesh.points[:, 2] * (squash[k] - 1.0) * 5 + 0.8 * t[k]
        q[k, :, 2] += height[k]
    v = np.gradient(q, t, axis=0)
    force = np.zeros_like(q)
    bottom = mesh.points[:, 2] == mesh.points[:, 2].min()
    share = 1.0 + mesh.points[bottom, 0] / 0.2
    force[np.ix_(touching, bottom, [2])] = (2.0 * share)[None, :, None] * (1.3 - squash[touching])[:, None, None]
    force[np.ix_(touching, bottom, [0])] = -0.5 * force[np.ix_(touching, bottom, [2])]
    corners = {"front": n - 1, "back": int(np.argmin(mesh.points @ [1, 1, -1]))}
    markers = {name: q[:, i] for name, i in corners.items()}
    rng = np.random.default_rng(5)
    times = np.arange(0.0, 0.6, 0.025)
    targets = {
        name: (times, np.stack([np.interp(times, t, x[:, i]) for i in range(3)], 1) + 0.006 * rng.normal(size=(24, 3)))
        for name, x in markers.items()
    }
    targets["front"][1][5] = np.nan
    kinetic = 0.1 + 0.5 * (v**2).sum(axis=(1, 2)) / n
    energy = {
        "kinetic": kinetic,
        "elastic": 20.0 * (squash - 1.0) ** 2,
        "gravity": 9.81 * q[:, :, 2].mean(axis=1),
        "contact": np.where(touching, 0.1, 0.0),
    }
    eye = np.eye(3)
    tilt = np.array([[1, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])  # the cylinders' axes lie along -y
    obstacles = (
        ObstacleData("floor", KINDS["plane"], np.zeros(3), eye, np.zeros(3)),
        ObstacleData("ball", KINDS["sphere"], np.array([0.06, 0, 0]), eye, np.array([0.0, 0.3, 0.06])),
        ObstacleData("crate", KINDS["box"], np.array([0.08, 0.05, 0.06]), eye, np.array([0.25, 0.32, 0.06])),
        ObstacleData(
            "bar", KINDS["capsule"], np.array([0.04, 0.1, 0]), tilt, np.array([-0.3, 0.1, 0.04]), 0.2 * eye[0]
        ),
        ObstacleData("drum", KINDS["cylinder"], np.array([0.06, 0.08, 0]), eye, np.array([0.5, 0.3, 0.08])),
    )
    return RunData(
        t=t,
        q=q.reshape(n_states, -1),
        v=v.reshape(n_states, -1),
        energy=energy,
        newton_iterations=np.where(touching, 4, 2)[1:] + rng.integers(0, 2, n_states - 1),
        newton_residual=10.0 ** rng.uniform(-12, -9, n_states - 1),
        contact_force=force.reshape(n_states, -1),
        bodies=(body,),
        obstacles=obstacles,
        markers=markers,
        targets=targets,
    )
