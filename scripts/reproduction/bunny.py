"""The bunny of Figs. 4 (no wall) and 11b (a wall): the pose in which it rests, the objective, and the throw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from add.inverse import LoggedEvaluation, OptimizationResult
from add.scene import Scene, apply_overrides
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from scripts.reproduction.entry import clock
from scripts.reproduction.running import data_folder, scene

STIFFNESSES = (100.0, 200.0, 400.0, 800.0, 1000.0)
#: Number of nodes whose height counts over the second half of the run.
HEIGHTS = 24


@final
@dataclass(frozen=True)
class Fit:
    """An optimisation of the throw.

    Attributes
    ----------
    scene : what was optimised
    built : the same without the markers of the heights, whose trails hide the bunny
    values : (k,) objective of every simulation [m^2], with the stiffness of its stage
    stages : (k,) number of the stage of each
    found : OptimizationResult
    parameters : (6,) velocity [m/s] and spin [rad/s]
    objective : float
        With the stiffest contact, at the end [m^2].
    run : Trajectory
        There.
    seconds, simulation : float
        Processor time of the optimisation and of one simulation.
    """

    scene: Scene
    built: BuiltScene
    values: np.ndarray
    stages: np.ndarray
    found: OptimizationResult
    parameters: np.ndarray
    objective: float
    run: Trajectory
    seconds: float
    simulation: float

    @property
    def error(self) -> float:
        """Root mean squared distance of the nodes from the target at the end [m]."""
        target = np.loadtxt(self.scene.raw["objective"][0]["positions_file"])
        return float(np.sqrt(((self.run.q[-1].reshape(-1, 3) - target) ** 2).sum(axis=1).mean()))

    @property
    def tilt(self) -> float:
        """Angle between the bunny's upright direction and that of the target at the end [degrees]."""
        target = np.loadtxt(self.scene.raw["objective"][0]["positions_file"])
        return float(np.degrees(np.arccos(np.clip(upright(self.run.q[-1].reshape(-1, 3), target), -1.0, 1.0))))


def upright(x: np.ndarray, target: np.ndarray) -> float:
    """Return the cosine of the angle between z and the target's z, turned by the best rigid fit to ``x`` (n, 3)."""
    a, b = target - target.mean(axis=0), x - x.mean(axis=0)
    u, _, vt = np.linalg.svd(a.T @ b)
    turn = (u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt).T
    return float(turn[2, 2])


def rest_pose(base: Scene, n_steps: int) -> np.ndarray:
    """Return the nodes (n, 3) of the bunny when it has been put down [m]."""
    dropped = {"bodies.bunny.velocity": [0, 0, 0], "bodies.bunny.angular_velocity": [0, 0, 0], "time.steps": n_steps}
    return apply_overrides(base, dropped).build().run().q[-1].reshape(-1, 3)


def spread(points: np.ndarray, n: int) -> list[int]:
    """Return ``n`` points far from each other, beginning with the highest."""
    chosen = [int(points[:, 2].argmax())]
    near = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < n:
        chosen.append(int(near.argmax()))
        near = np.minimum(near, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return chosen


def bunny_scene(folder: Path, changes: dict[str, Any], n_drop: int, *, wall: bool, ahead: float = 0.0) -> Scene:
    """Return the throw with its objective: the rest pose at the end, and the heights of it over the second half.

    The target pose is left in ``folder``.

    Parameters
    ----------
    folder : where files go
    changes : values of the scene
    n_drop : steps until the bunny that was put down rests
    wall : whether there is one (Fig. 11b) or none (Fig. 4)
    ahead : how far from where the bunny was put down its target lies, in the direction of the throw, y [m]

    Raises
    ------
    Skipped
        Without the mesh.
    """
    data_folder()
    objective = scene("fig11b_bunny").raw["objective"]
    # The scene's own objective has a window, which a shorter run would not have.
    base = scene("fig11b_bunny", {"objective": objective[:1], "check": None, **changes})
    if not wall:
        base = apply_overrides(base, {"obstacles": {"floor": base.raw["obstacles"]["floor"]}, "contact.pairs": []})
    rest = rest_pose(base, n_drop)
    rest[:, 1] += ahead
    file = folder / "rest.txt"
    np.savetxt(file, rest)
    nodes = spread(rest, HEIGHTS)
    end = base.time.end
    markers = {f"height {k}": {"body": "bunny", "nodes": [node]} for k, node in enumerate(nodes)}
    heights = [
        {"type": "point", "marker": f"height {k}", "target": rest[node].tolist(), "axes": "z", "weight": 1.0 / HEIGHTS,
         "window": [0.5 * end, end]}
        for k, node in enumerate(nodes)
    ]  # fmt: skip
    pose = {"type": "pose", "body": "bunny", "positions_file": str(file), "time": "end"}
    own = {"objective": [pose, *heights], "markers": base.raw["markers"] | markers}
    return apply_overrides(base, own)


def plain(scene: Scene) -> Scene:
    """Return the scene with one marker only."""
    own = {"objective": scene.raw["objective"][:1], "markers": {"centre": scene.raw["markers"]["centre"]}}
    return apply_overrides(scene, own)


def stages(stiffnesses: Sequence[float], most: int) -> list[dict[str, Any]]:
    """Return the phases of a continuation whose last stiffness is the scene's own."""
    soft = [
        {"name": f"{k:g}", "max_evaluations": most, "overrides": {"contact.stiffness": k}} for k in stiffnesses[:-1]
    ]
    return [*soft, {"name": f"{stiffnesses[-1]:g}", "max_evaluations": most}]


def optimise(base: Scene, stiffnesses: Sequence[float], most: int, method: str = "l-bfgs-b") -> Fit:
    """Optimise velocity and spin through the stiffnesses, the last of which is the scene's; ``most`` each."""
    changes = {"optimizer.phases": stages(stiffnesses, most), "optimizer.method": method}
    chosen = apply_overrides(base, changes)
    problem = chosen.inverse_problem()
    values, names = [], []

    def note(evaluation: LoggedEvaluation, _: bool) -> None:
        values.append(evaluation.value)
        names.append(evaluation.phase)

    with clock() as taken:
        found = problem.optimize(progress=note)
    with clock() as one:
        objective, runs = problem.value(found.x)
    (run,) = runs.values()
    order = list(dict.fromkeys(names))
    where = np.array([order.index(name) for name in names])
    return Fit(chosen, plain(chosen).build(), np.array(values), where, found, problem.values(found.x), objective, run,
               taken.seconds, one.seconds)  # fmt: skip
