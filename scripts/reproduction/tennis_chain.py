"""A material from a recording, a throw with it to a spot on a wall, and where that throw ends in the true world."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from add.commands.cli import cli
from add.mocap import read_csv
from add.scene import Scene, apply_overrides
from add.typing import FloatArray
from scripts.make_tennis_recording import MATERIAL, in_the_world
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import LONG_RUNS, MESHES, Context, Entry, Outcome, Row
from scripts.reproduction.running import scene

#: How long a played throw may take to the wall [s]; the planned one takes the time of the scene.
PLAYED = 0.7
#: From the spot, where the centre is to be, to the wall [m]: the ball does not touch it yet.
BEFORE_WALL = 0.036
#: Options of `add carry` for the throw.
THROW = ("--parameter", "bodies.ball.velocity", "--parameter", "bodies.ball.angular_velocity")
#: The finer mesh of the convergence study.
FINER = {"bodies.ball.mesh.edge": 0.012}
SHORT_BALL = {
    "bodies.ball.mesh": {"file": str(MESHES / "ball_small.msh")},
    "bodies.ball.element": "tet4",
    "bodies.ball.scale": 1.4,
    "time.dt": 0.002,
}
SHORT_FIT = {"optimizer.phases": [{"name": "all", "max_evaluations": 3}]}
SHORT_THROW = {
    "time.duration": 0.1,
    "bodies.ball.position": [0, 0, 0.15],
    "objective.0.target": [0.4, 0.02, 0.1],
    "optimizer.max_evaluations": 3,
}
#: The worlds in which the throw is played.
WORLDS = {"world": "in the true world", "guess": "with the guess of the material"}
UNITS = {"young": "Pa", "viscosity": "Pa s", "friction": "-"}


@final
@dataclass(frozen=True)
class Arrival:
    """Where a throw that is played passes the plane in which the ball is to be.

    Attributes
    ----------
    path : (k, 3) of the centre, to there [m]
    time : [s]
    apart : (2,) y and z from the spot [m]
    """

    path: FloatArray
    time: float
    apart: FloatArray

    @property
    def error(self) -> float:
        """Distance from the spot [m]."""
        return float(np.linalg.norm(self.apart))


def add(*arguments: object) -> None:
    """Run `add` as the command line does, with an error where that ends with one."""
    cli.main([*map(str, arguments), "-q"], standalone_mode=False)


def arrival(times: FloatArray, path: FloatArray, target: FloatArray) -> Arrival:
    """Return where a path first passes the plane x = target[0].

    Raises
    ------
    ValueError
        If it does not.
    """
    passed = np.flatnonzero(path[:, 0] >= target[0])
    if passed.size == 0 or passed[0] == 0:
        raise ValueError(f"the ball does not come to x = {target[0]} m")
    k = int(passed[0])
    share = (target[0] - path[k - 1, 0]) / (path[k, 0] - path[k - 1, 0])
    there = path[k - 1] + share * (path[k] - path[k - 1])
    time = float(times[k - 1] + share * (times[k] - times[k - 1]))
    return Arrival(np.vstack([path[:k], there]), time, (there - target)[1:])


def played(run: Path, world: Scene, folder: Path, target: FloatArray) -> Arrival:
    """Play the throw that a run found in a world, unless it was: `add carry`, `add simulate`, `add export`."""
    folder.mkdir(exist_ok=True)
    if not (folder / "centre.csv").is_file():
        world.save(folder / "world.json")
        add("carry", run, folder / "world.json", *THROW, "-o", folder / "throw.json", "--force")
        add("simulate", folder / "throw.json", "-o", folder / "run", "--force")
        add("export", folder / "run", "--markers", "-o", folder / "centre.csv")
    recording = read_csv(folder / "centre.csv")
    return arrival(recording.times, recording.positions[:, 0], target)


def optimized(path: Path, run: Path) -> dict[str, Any]:
    """Return what `add optimize` finds; where the entry was stopped before, it goes on from there."""
    if not (run / "result.json").is_file():
        add("optimize", path, "-o", run, "--resume" if (run / "scene.json").is_file() else "--force")
    return result(run)


def result(run: Path) -> dict[str, Any]:
    """Return what an optimisation found."""
    found: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return found


def with_discretisation(path: Path, run: Path) -> dict[str, Any]:
    """Return what a fit found, with error bars in which the discretisation counts, too: `add converge`."""
    if not (run / "discretisation.json").is_file():
        finer = run.parent / "finer.json"
        finer.write_text(json.dumps(FINER), encoding="utf-8")
        add("converge", path, "-o", run, "--time-levels", 1, "--finer", finer)
    return result(run)


def chain(folder: Path, fit: Scene, throw: Scene, length: float, *, converge: bool) -> dict[str, Any]:
    """Run the chain of commands in a folder and return the arrivals by world, and what the optimisations found.

    The throw is planned without the wall, and played with it: in the true world, and in that of the guess.
    """
    target = np.array(throw.raw["objective"][0]["target"], dtype=float)
    fit.save(folder / "fit.json")
    throw.save(folder / "guess.json")
    found = {"material": optimized(folder / "fit.json", folder / "material")}
    if converge:
        found["material"] = with_discretisation(folder / "fit.json", folder / "material")
    add("carry", folder / "material", folder / "guess.json", "-o", folder / "found.json", "--force")
    wall = {"shape": "plane", "point": [float(target[0]) + BEFORE_WALL, 0.0, 0.0], "normal": [-1.0, 0.0, 0.0]}
    longer = apply_overrides(throw, {"time.duration": length, "obstacles": {**throw.raw["obstacles"], "wall": wall}})
    found["throw"] = optimized(folder / "found.json", folder / "found")
    worlds = {"world": in_the_world(longer), "guess": longer}
    arrivals = {
        name: played(folder / "found", world, folder / f"found_{name}", target) for name, world in worlds.items()
    }
    if not (folder / "band.csv").is_file():
        add("predict", folder / "material", folder / "found" / "fitted.json", "-o", folder / "band.csv")
    last = (folder / "band.csv").read_text(encoding="utf-8").splitlines()[-1].split(",")
    return {**found, "arrivals": arrivals, "band": [float(x) for x in last[5:]], "target": target}


def run(context: Context) -> Outcome:
    """Run the chain and compare."""
    fit = scene("tennis_ball", SHORT_BALL | SHORT_FIT if context.short else {})
    throw = scene("tennis_throw", SHORT_BALL | SHORT_THROW if context.short else {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if context.short else LONG_RUNS / "tennis"
        folder.mkdir(parents=True, exist_ok=True)
        said = chain(folder, fit, throw, 0.25 if context.short else PLAYED, converge=not context.short)
    arrivals, numbers = said["arrivals"], said["material"]["parameters"]
    rows = []
    for path, true in MATERIAL.items():
        entry, last = numbers[path], path.rpartition(".")[2]
        bar = ""
        if entry.get("standard_error") is not None:
            bar = f" +- {entry['standard_error']:.2g}"
            if entry["interval_lower"] is not None:  # a bar above its value has none
                bar += ", " + " to ".join(f"{entry[f'interval_{end}']:.4g}" for end in ("lower", "upper"))
        text = f"{entry['start']:.4g} -> {entry['value']:.4g}{bar} ({true:g})"
        rows.append(Row(f"{last} [{UNITS[last]}]: start -> found with bar, 95 % interval (truth)", text))
    rms = said["material"]["fit"]["rms"]
    rows.append(Row("markers of the recording, root mean square [mm]", f"{1e3 * rms:.2f}"))
    thrown = said["throw"]
    velocity, spin = thrown_with(thrown["parameters"])
    text = f"({', '.join(f'{v:.3f}' for v in velocity)}), {spin:.2f}, {thrown['evaluations']}"
    rows.append(Row("throw with the material found: velocity [m/s], spin [rad/s], simulations", text))
    planned = 1e3 * np.sqrt(thrown["objective"]["end"])
    rows.append(Row("planned distance from the spot [mm]", f"{planned:.2g}"))
    for name, where in WORLDS.items():
        there = arrivals[name]
        text = f"{1e3 * there.error:.1f} ({1e3 * there.apart[0]:+.1f}, {1e3 * there.apart[1]:+.1f})"
        rows.append(Row(f"played {where}: error at the wall [mm] (y, z)", text))
    text = ", ".join(f"{1e3 * x:.1f}" for x in said["band"])
    rows.append(Row("standard deviation of the place at the wall that the error bars say: x, y, z [mm]", text))
    name = "tennis_chain.png"
    draw(context, name, arrivals, said["target"])
    notes = (
        "Every step is a command: `add optimize` finds the material, `add carry` writes it into the throw, `add "
        "optimize` finds the throw, `add carry` writes that into the world, `add simulate` plays it and `add export` "
        "writes the path. The true world has the true material, another mesh and half the step; the recording was "
        "made in it (`scripts/make_tennis_recording.py`). The ball counts as at the wall where its centre passes the "
        f"plane x = {said['target'][0]:g} m, {BEFORE_WALL:g} m before the wall, which a plan does not contain. The "
        "bars contain the discretisation (`add converge` with half the step, and with a mesh of as many elements as "
        "that of the recording). A ball of foam rubber with the size and mass of a tennis ball stands in for the "
        "hollow one.",
    )
    values = {name: there.error for name, there in arrivals.items()}
    caption = "The throw that was planned with the material found, played from the side; the star is the spot."
    return Outcome(tuple(rows), {name: caption}, notes, values)


def thrown_with(numbers: Mapping[str, Any]) -> tuple[list[float], float]:
    """Return velocity [m/s] and spin about y [rad/s] of a throw that was found."""
    velocity = [numbers[f"bodies.ball.velocity[{k}]"]["value"] for k in range(3)]
    return velocity, numbers["bodies.ball.angular_velocity[1]"]["value"]


def draw(context: Context, name: str, arrivals: Mapping[str, Arrival], target: FloatArray) -> None:
    """Draw the paths from the side, and the wall."""
    wall = target[0] + BEFORE_WALL
    with figure(context.image(name), 6.4, 3.0) as drawn:
        axes = drawn.subplots()
        for k, (world, text) in enumerate(WORLDS.items()):
            path = arrivals[world].path
            axes.plot(path[:, 0], path[:, 2], f"C{k}", label=f"{text}: {1e3 * arrivals[world].error:.1f} mm off")
        axes.axhline(0.0, color="k", lw=1.0)
        axes.axvline(wall, color="k", lw=1.0)
        axes.plot(target[0], target[2], "k*", ms=8, zorder=5)
        axes.set(xlabel="x [m]", ylabel="z [m]", aspect="equal", ylim=(-0.05, 1.0))
        axes.legend(loc="upper left")


ENTRY = Entry(
    "tennis",
    "A ball's material found, and a throw with it to a spot on a wall",
    "From a recording of one bounce to a throw that bounces on a table and hits a spot on a wall, and how far from the "
    "spot it ends in the world that was recorded.",
    run,
)
