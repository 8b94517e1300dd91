"""The cube tosses with MuJoCo, as something to compare `cube_tosses.py` with: the same fitted tosses, the same starts.

    pip install mujoco
    ADD_DATA=... python -m scripts.cube_tosses_mujoco [FOLDER]

MuJoCo gives no gradient of a rollout through contact: friction, the time constant and damping ratio of the contact and
`impratio` are searched on a grid, by the error at the end of the twenty tosses, and the best one predicts the others.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from add.errors import InputError
from scripts.cube_tosses import COUNT, EDGE, EVERY, FOLDER, flight, read
from scripts.recordings import recordings, scene_of_study

DT = 1.0 / 148.0 / 8.0
FRICTION = (0.16, 0.18, 0.2, 0.22)
SOLREF = ((0.004, 0.5), (0.004, 1.0), (0.008, 0.5), (0.008, 1.0), (0.015, 0.5), (0.015, 1.0), (0.03, 1.0))
IMPRATIO = (1, 10)
#: Beyond these a toss has gone another way, and how far says little [% of edge, deg].
LOST = 60.0


def model(friction: float, solref: tuple[float, float], impratio: int) -> mujoco.MjModel:
    """Return the cube on the table."""
    surface = f'friction="{friction} 0 0" solref="{solref[0]} {solref[1]}" condim="3"'
    half = 0.5 * EDGE
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{DT}" cone="elliptic" impratio="{impratio}" integrator="implicitfast"/><worldbody>
        <geom type="plane" size="5 5 1" {surface}/>
        <body><freejoint/><inertial pos="0 0 0" mass="0.37" diaginertia="0.00081 0.00081 0.00081"/>
        <geom type="box" size="{half} {half} {half}" {surface}/></body></worldbody></mujoco>"""
    )


def errors(chosen: list, compiled: mujoco.MjModel) -> np.ndarray:
    """Return position [% of edge] and rotation [deg] at the end, and their means over the frames, of each toss."""
    data, rows = mujoco.MjData(compiled), []
    for pose, start in chosen:
        mujoco.mj_resetData(compiled, data)
        turn = Rotation.from_rotvec(start[1])
        data.qpos[:3], data.qpos[3:] = start[0], turn.as_quat()[[3, 0, 1, 2]]
        data.qvel[:3], data.qvel[3:] = start[2], turn.inv().apply(start[3])
        steps, path = np.rint(pose.times / DT).astype(int), []
        for _ in range(steps[-1] + 1):
            path.append(data.qpos.copy())
            mujoco.mj_step(compiled, data)
        q = np.array(path)[steps]
        away = 100 * np.linalg.norm(q[:, :3] - pose.position, axis=1) / EDGE
        seen = Rotation.from_quat(pose.quaternion[:, [1, 2, 3, 0]])
        turned = np.degrees((Rotation.from_quat(q[:, [4, 5, 6, 3]]).inv() * seen).magnitude())
        rows.append((away[-1], turned[-1], away.mean(), turned.mean()))
    return np.array(rows)


def main(named: list[Path]) -> None:
    """Search on the fitted tosses, predict the others."""
    files = recordings(named, *FOLDER).files
    scale = scene_of_study("cube_toss", files[0]).recording.scale
    recorded = [read(file, scale) for file in files]
    chosen = [(pose, flight(pose, frames)) for pose, frames in recorded]
    fitted = list(range(0, len(chosen), EVERY))[:COUNT]
    others = [item for k, item in enumerate(chosen) if k not in fitted]
    best = min(
        itertools.product(FRICTION, SOLREF, IMPRATIO),
        key=lambda values: np.minimum(errors([chosen[k] for k in fitted], model(*values))[:, :2], LOST).mean(),
    )
    found = errors(others, model(*best))
    print(f"friction, solref, impratio: {best}")
    for name, row in (("median", np.median(found, axis=0)), ("mean", found.mean(axis=0))):
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in row) + " |")
    print(f"ends on the right face: {100 * np.mean(found[:, 1] < 45):.0f} %")


if __name__ == "__main__":
    try:
        main([Path(name) for name in sys.argv[1:]])
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
