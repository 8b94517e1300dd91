"""A soft fish with bones swims to a point: torques in its spine, by gradients and by CMA-ES (Qiao et al.)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import add
from add.geometry import TET4, SoftMesh, box_mesh
from add.inverse import InverseProblem
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome
from scripts.reproduction.reaching import Task, reach, swimming, towards

#: Length, height and width of the fish [m], and cells along them; where its joints are along it, from the head [m].
SIZE, CELLS, JOINTS = (0.3, 0.05, 0.1), (12, 2, 3), (0.09, 0.16, 0.23)
#: Step [s], steps, rows of torque a joint, and their bound and first wave [N m].
DT, STEPS, ROWS, TORQUE, WAVE = 0.01, 100, 20, 0.4, 0.05
#: How far ahead and aside the point is [m]; most evaluations, runs of CMA-ES.
WAY, MOST, CMA_RUNS = (-0.05, 0.01), 50, 60


def fish_mesh(cells: tuple[int, int, int]) -> SoftMesh:
    """Return the mesh of a fish, its head at x = 0, its tail at x = `SIZE[0]`."""
    block = box_mesh(SIZE, cells, TET4)
    points = block.points + np.array([0.5 * SIZE[0], 0.0, 0.0])
    s = points[:, 0] / SIZE[0]
    points[:, 1] *= 0.25 + 3.0 * s * (1.0 - s) ** 1.5
    points[:, 2] *= 0.35 + 2.2 * s * (1.0 - s) ** 1.5 + 0.5 * np.clip(s - 0.75, 0.0, None) / 0.25
    return SoftMesh(points, block.cells, TET4)


def scene(file: Path, mesh: SoftMesh, steps: int, rows: int, most: int, target: tuple[float, float]) -> dict[str, Any]:
    """Return the fish at rest in water, with torques in three joints, and the point it is to be at."""
    bones: dict[str, Any] = {}
    ends = (0.02, *JOINTS, SIZE[0] - 0.03)
    names = ("head", "spine", "back", "tail")
    for name, begin, end, frame in zip(names, ends[:-1], ends[1:], (0.0, *JOINTS), strict=True):
        shape = {"shape": "box", "size": [end - begin - 0.025, 0.012, 0.02]}
        bones[name] = {
            "shapes": [{"geometry": shape, "position": [0.5 * (begin + end) - frame, 0, 0]}],
            "density": 1000,
        }
    joints: dict[str, Any] = {"head": {}}
    joints |= {
        f"joint {k}": {"parent": names[k - 1], "child": names[k], "axis": [0, 0, 1], "damping": 0.002}
        | {"position": [JOINTS[k - 1] - (JOINTS[k - 2] if k > 1 else 0.0), 0, 0]}
        for k in (1, 2, 3)
    }
    wave = np.linspace(0.0, 4.0 * np.pi, rows)
    signals = {
        f"torque {k}": {"type": "control", "basis": "linear", "rows": rows, "values": list(WAVE * np.sin(wave - k))}
        for k in (1, 2, 3)
    }
    embedded = [{"body": f"bones/{name}", "within": 0.004} for name in names]
    raw = swimming("fish", mesh, file, DT, steps, embedded=embedded)
    drives = {f"muscle {k}": {"joint": f"joint {k}", "input": {"signal": f"torque {k}"}} for k in (1, 2, 3)}
    raw["bodies"]["bones"] = {"type": "articulated", "base": "free", "links": bones, "joints": joints, "drives": drives}
    paths = {f"signals.{name}.values": {"bounds": [-TORQUE, TORQUE], "scale": 0.1} for name in signals}
    return raw | {"signals": signals} | towards("fish", (*target, 0), "xy", paths, most)


def problem_of(folder: Path, *, short: bool) -> tuple[InverseProblem, str]:
    """Return the problem and its size in words."""
    mesh = fish_mesh((12, 2, 2) if short else CELLS)
    amount = (10, 4, 3) if short else (STEPS, ROWS, MOST)
    built = add.scene_from_dict(scene(folder / "fish.vtk", mesh, *amount, (0.0, 0.0))).build()
    x, y = built.markers.points(built.run(n_steps=1).kinematics(0), built.theta)[0][0, :2]
    target = float(x) + WAY[0], float(y) + WAY[1]
    body, found = built.model.body("fish"), add.scene_from_dict(scene(folder / "fish.vtk", mesh, *amount, target))
    tied, problem = sum(tie.nodes.size for tie in body.ties), found.inverse_problem()
    return problem, f"{mesh.n_elements} tetrahedra, {tied} of {mesh.n_nodes} nodes in bones, {problem.n} torques"


def run(context: Context) -> Outcome:
    """Swim by gradients, then by CMA-ES with as many runs and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        problem, size = problem_of(Path(folder), short=context.short)
    with figure(context.image("soft_fish.png"), 6.4, 2.6) as drawn:
        left, right = drawn.subplots(1, 2)
        task = Task(problem, f"fish ({size})", float(np.hypot(*WAY)), 0.01, CMA_RUNS, "soft3.distance")
        found = reach(context, task, left)
        angles = np.degrees(found.trajectory.q[:, -3:])
        right.plot(found.trajectory.t, angles, label=["joint 1", "joint 2", "joint 3"])
        right.set(xlabel="time [s]", ylabel="angle [degrees]")
        right.legend()
    images = {"soft_fish.png": "Distance to the point against runs; angles of the joints of the best run."}
    return Outcome(found.rows, images, NOTES, found.values)


NOTES = (
    "An own mesh: the published one has no free licence. Its fish has a tail and two fins on three hinges, ours a "
    "spine of four bones with three hinges about the vertical, whose bones tie the nodes in them; torques have twenty "
    "rows each over 1 s. Water is the law of the air with its density: drag on every face, without added mass. CMA-ES "
    "begins from the same small wave.",
)

ENTRY = Entry(
    "soft3",
    "Soft bodies: a fish with bones swims to a point",
    "A soft fish under water is at rest; torques in its joints are to bring it to a point ahead of it after 1 s; by "
    "L-BFGS-B through tissue, bones and water, and by CMA-ES, three seeds (after Qiao, Liang, Koltun, Lin, NeurIPS "
    "2021).",
    run,
)
