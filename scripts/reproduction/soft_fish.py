"""A soft fish with bones swims to a point: torques in its spine, by gradients and by CMA-ES (Qiao et al.)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import meshio
import numpy as np

import add
from add.geometry import TET4, box_mesh
from add.inverse import InverseProblem
from add.typing import FloatArray
from scripts.reproduction.cma_search import search
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock

#: Length, height and width of the fish [m], and cells along them; where its joints are along it, from the head [m].
SIZE, CELLS, JOINTS = (0.3, 0.05, 0.1), (12, 2, 3), (0.09, 0.16, 0.23)
#: Step [s], steps, rows of torque a joint, and their bound and first wave [N m].
DT, STEPS, ROWS, TORQUE, WAVE = 0.01, 100, 20, 0.4, 0.05
#: How far ahead and aside the point is [m]; most evaluations.
WAY, MOST = (-0.05, 0.01), 50
#: Runs of CMA-ES and its first spread, in units of x.
CMA_RUNS, SPREAD = 60, 0.3
WATER = {"density": 1000, "coefficient": 1.0}


def fish_mesh(path: Path, cells: tuple[int, int, int]) -> None:
    """Write the mesh of a fish, its head at x = 0, its tail at x = `SIZE[0]`."""
    block = box_mesh(SIZE, cells, TET4)
    points = block.points + np.array([0.5 * SIZE[0], 0.0, 0.0])
    s = points[:, 0] / SIZE[0]
    points[:, 1] *= 0.25 + 3.0 * s * (1.0 - s) ** 1.5
    points[:, 2] *= 0.35 + 2.2 * s * (1.0 - s) ** 1.5 + 0.5 * np.clip(s - 0.75, 0.0, None) / 0.25
    meshio.write_points_cells(path, points, [("tetra", block.cells)])


def scene(mesh: Path, steps: int, rows: int, most: int) -> dict[str, Any]:
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
    return {
        "schema": "add-scene/1",
        "time": {"dt": DT, "steps": steps},
        "gravity": [0, 0, 0],
        "signals": signals,
        "contact": {"friction_law": "none"},
        "bodies": {
            "fish": {
                "type": "soft",
                "mesh": {"file": str(mesh)},
                "material": {"young": 2e4, "poisson": 0.4, "density": 1000, "viscosity": 20},
                "embedded": [{"body": f"bones/{name}", "within": 0.004} for name in names],
            },
            "bones": {
                "type": "articulated",
                "base": "free",
                "links": bones,
                "joints": joints,
                "drives": {
                    f"muscle {k}": {"joint": f"joint {k}", "input": {"signal": f"torque {k}"}} for k in (1, 2, 3)
                },
            },
        },
        "couplings": {"water": {"type": "air", "body": "fish"} | WATER},
        "markers": {"fish": {"body": "fish", "surface": {"all": True}}},
        "objective": [{"type": "point", "marker": "fish", "target": [0, 0, 0], "axes": "xy", "time": "end"}],
        "parameters": [
            {"path": f"signals.{name}.values", "bounds": [-TORQUE, TORQUE], "scale": 0.1} for name in signals
        ],
        "optimizer": {"method": "l-bfgs-b", "max_evaluations": most},
    }


def problem_of(folder: Path, *, short: bool) -> tuple[InverseProblem, str]:
    """Return the problem and its size in words."""
    mesh = folder / "fish.vtk"
    fish_mesh(mesh, (12, 2, 2) if short else CELLS)
    raw = scene(mesh, 10 if short else STEPS, 4 if short else ROWS, 3 if short else MOST)
    built = add.scene_from_dict(raw).build()
    x, y = built.markers.points(built.run(n_steps=1).kinematics(0), built.theta)[0][0, :2]
    raw["objective"][0]["target"] = [float(x) + WAY[0], float(y) + WAY[1], 0.0]
    body, found = built.model.body("fish"), add.scene_from_dict(raw).inverse_problem()
    tied = sum(tie.nodes.size for tie in body.ties)
    size = f"{body.mesh.n_elements} tetrahedra, {tied} of {body.mesh.n_nodes} nodes in bones, {found.n} torques"
    return found, size


class Reached(NamedTuple):
    """Rows of the page, raw numbers, and the best x of the gradients."""

    rows: list[Row]
    values: dict[str, float]
    x: FloatArray


def reach(
    context: Context,
    problem: InverseProblem,
    axes: Any,
    about: str,
    way: float,
    goal: float,
    runs: int,
    published: str,
    seeds: int = 3,
) -> Reached:
    """Go to a point by gradients, then by CMA-ES for as many runs and seconds, and draw the distances left.

    Parameters
    ----------
    context : Context
    problem : InverseProblem
        Of a squared distance [m^2].
    axes : of the picture
    about : str
        What swims, with its size.
    way : float
        The distance at rest [m].
    goal : float
        The share of it that counts as reached.
    runs : int
        Of CMA-ES, at most.
    published : str
        Key of what was published.
    seeds : int
        Of CMA-ES.
    """
    start = float(np.sqrt(problem.value(problem.x0)[0]))
    problem.value_and_grad(problem.x0)
    values: list[float] = []
    with clock() as taken:
        found = problem.optimize(progress=lambda item, _: values.append(item.value))
    best = np.sqrt(np.minimum.accumulate(values))
    needed = int(np.argmax(best < goal * way)) + 1 if best[-1] < goal * way else -1
    rows = [
        Row(f"{about}: way to the point, distance at first [m]", f"{way:.3f}, {start:.4f}"),
        Row(
            f"runs with gradient to {100 * goal:.2g} % of the way", str(needed) if needed > 0 else f"not in {best.size}"
        ),
        Row(f"distance after {best.size} runs [m] ({taken.seconds:.0f} s)", f"{best[-1]:.2g}", published),
    ]
    axes.semilogy(np.arange(1, best.size + 1), best / way, "C0-", label="L-BFGS-B")
    for seed in range(1, 2 if context.short else seeds + 1):
        most = 5 if context.short else runs
        other = search(problem, SPREAD, most, (goal * way) ** 2, seed, diagonal=problem.n > 2000)
        if other is None:
            break
        share = np.sqrt(other.best) / way
        as_many, seconds = min(best.size, share.size) - 1, int(np.searchsorted(other.seconds, taken.seconds))
        axes.semilogy(np.arange(1, share.size + 1), share, "C1-", lw=0.8, label="CMA-ES" if seed == 1 else None)
        text = f"{share[as_many]:.2g}, {share[min(seconds, share.size - 1)]:.2g}, {share[-1]:.2g}"
        spent = f"as many runs, as many seconds, {share.size} runs ({other.seconds[-1]:.0f} s)"
        rows.append(Row(f"CMA-ES, seed {seed}: distance over the way after {spent}", text))
    axes.set(xlabel="runs", ylabel="distance / way")
    axes.legend()
    return Reached(rows, {"needed": needed, "last": float(best[-1] / way)}, found.x)


def run(context: Context) -> Outcome:
    """Swim by gradients, then by CMA-ES with as many runs and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        problem, size = problem_of(Path(folder), short=context.short)
    with figure(context.image("soft_fish.png"), 6.4, 2.6) as drawn:
        left, right = drawn.subplots(1, 2)
        way = float(np.hypot(*WAY))
        found = reach(context, problem, left, f"fish ({size})", way, 0.01, CMA_RUNS, "soft3.distance")
        (trajectory,) = problem.value(found.x)[1].values()
        right.plot(trajectory.t, np.degrees(trajectory.q[:, -3:]), label=["joint 1", "joint 2", "joint 3"])
        right.set(xlabel="time [s]", ylabel="angle [degrees]")
        right.legend()
    images = {"soft_fish.png": "Distance to the point against runs; angles of the joints of the best run."}
    return Outcome(tuple(found.rows), images, NOTES, found.values)


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
