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
PLAYED = 0.6
#: Options of `add carry` for the throw.
THROW = ("--parameter", "bodies.ball.velocity", "--parameter", "bodies.ball.angular_velocity")
SHORT_BALL = {"bodies.ball.mesh.file": str(MESHES / "ball_small.msh"), "bodies.ball.scale": 1.4, "time.dt": 0.002}
SHORT_FIT = {"optimizer.phases": [{"name": "all", "max_evaluations": 3}], "uncertainty.convergence": None}
SHORT_THROW = {
    "time.duration": 0.1,
    "bodies.ball.position": [0, 0, 0.15],
    "objective.0.target": [0.4, 0.02, 0.1],
    "obstacles.wall.point": [0.44, 0, 0],
    "optimizer.max_evaluations": 3,
}
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
    """Play the throw that a run found in a world: `add carry`, `add simulate`, `add export`."""
    folder.mkdir(exist_ok=True)
    world.save(folder / "world.json")
    add("carry", run, folder / "world.json", *THROW, "-o", folder / "throw.json", "--force")
    add("simulate", folder / "throw.json", "-o", folder / "run", "--force")
    add("export", folder / "run", "--markers", "-o", folder / "centre.csv")
    recording = read_csv(folder / "centre.csv")
    return arrival(recording.times, recording.positions[:, 0], target)


def optimized(path: Path, run: Path) -> dict[str, Any]:
    """Return what `add optimize` finds, or found when the entry ran before and was stopped."""
    if not (run / "result.json").is_file():
        add("optimize", path, "-o", run, "--force")
    return result(run)


def result(run: Path) -> dict[str, Any]:
    """Return what an optimisation found."""
    found: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return found


def chain(folder: Path, fit: Scene, throw: Scene, length: float) -> dict[str, Any]:
    """Run the chain of commands in a folder and return the arrivals by name, and what the optimisations found.

    The search with the guess of the material begins at the throw that the material found asks for.
    """
    target = np.array(throw.raw["objective"][0]["target"], dtype=float)
    fit.save(folder / "fit.json")
    throw.save(folder / "guess.json")
    found = {"material": optimized(folder / "fit.json", folder / "material")}
    add("carry", folder / "material", folder / "guess.json", "-o", folder / "found.json", "--force")
    longer = apply_overrides(throw, {"time.duration": length})
    worlds = {"world": in_the_world(longer), "own": apply_overrides(longer, MATERIAL)}
    arrivals = {}
    for name in ("found", "guessed"):
        found[name] = optimized(folder / f"{name}.json", folder / name)
        if name == "found":
            add("carry", folder / name, folder / "guess.json", *THROW, "-o", folder / "guessed.json", "--force")
        arrivals |= {
            (name, kind): played(folder / name, world, folder / f"{name}_{kind}", target)
            for kind, world in worlds.items()
        }
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
        said = chain(folder, fit, throw, 0.25 if context.short else PLAYED)
    arrivals, numbers = said["arrivals"], said["material"]["parameters"]
    rows = []
    for path, true in MATERIAL.items():
        entry, last = numbers[path], path.rpartition(".")[2]
        bar = "" if entry.get("standard_error") is None else f" +- {entry['standard_error']:.2g}"
        text = f"{entry['start']:.4g} -> {entry['value']:.4g}{bar} ({true:g})"
        rows.append(Row(f"{last} [{UNITS[last]}]: start -> found (truth)", text))
    rms = said["material"]["fit"]["rms"]
    rows.append(Row("markers of the recording, root mean square [mm]", f"{1e3 * rms:.2f}"))
    for name, of in (("found", "with the material found"), ("guessed", "with the guess of the material")):
        thrown = said[name]
        velocity, spin = thrown_with(thrown["parameters"])
        text = f"({', '.join(f'{v:.3f}' for v in velocity)}), {spin:.2f}, {thrown['evaluations']}"
        rows.append(Row(f"throw {of}: velocity [m/s], spin [rad/s], simulations", text))
        planned = 1e3 * np.sqrt(thrown["objective"]["end"])
        rows.append(Row(f"throw {of}: planned distance from the spot [mm]", f"{planned:.2g}"))
        for kind, where in (("world", "in the true world"), ("own", "with the true material on the mesh of the fit")):
            there = arrivals[name, kind]
            text = f"{1e3 * there.error:.1f} ({1e3 * there.apart[0]:+.1f}, {1e3 * there.apart[1]:+.1f})"
            rows.append(Row(f"throw {of}, played {where}: error at the wall [mm] (y, z)", text))
    text = ", ".join(f"{1e3 * x:.1f}" for x in said["band"])
    rows.append(Row("standard deviation of the place at the wall that the error bars say: x, y, z [mm]", text))
    name = "tennis_chain.png"
    draw(context, name, throw, arrivals, said["target"])
    notes = (
        "Every step is a command: `add optimize` finds the material, `add carry` writes it into the throw, `add "
        "optimize` finds the throw, `add carry` writes that into the world, `add simulate` plays it and `add export` "
        "writes the path. The true world has the true material, another mesh and half the step; the recording was "
        "made in it (`scripts/make_tennis_recording.py`). The ball counts as at the wall where its centre passes the "
        f"plane x = {said['target'][0]:g} m, {throw.raw['obstacles']['wall']['point'][0] - said['target'][0]:.3g} m "
        "before the wall. A ball of foam rubber with the size and mass of a tennis ball stands in for the hollow one.",
    )
    values = {f"{a}.{b}": found.error for (a, b), found in arrivals.items()}
    caption = "The throws from the side, planned and played in the true world; where they meet the wall."
    return Outcome(tuple(rows), {name: caption}, notes, values)


def thrown_with(numbers: Mapping[str, Any]) -> tuple[list[float], float]:
    """Return velocity [m/s] and spin about y [rad/s] of a throw that was found."""
    velocity = [numbers[f"bodies.ball.velocity[{k}]"]["value"] for k in range(3)]
    return velocity, numbers["bodies.ball.angular_velocity[1]"]["value"]


def draw(context: Context, name: str, throw: Scene, arrivals: Mapping[Any, Arrival], target: FloatArray) -> None:
    """Draw the paths from the side, and the wall."""
    wall = throw.raw["obstacles"]["wall"]["point"][0]
    labels = {"found": "material found", "guessed": "guess of the material"}
    with figure(context.image(name), 8.2, 2.9) as drawn:
        left, right = drawn.subplots(1, 2, width_ratios=(2.2, 1))
        for k, (method, text) in enumerate(labels.items()):
            there = arrivals[method, "world"]
            left.plot(there.path[:, 0], there.path[:, 2], f"C{k}", label=f"planned with the {text}")
            right.plot(*(1e3 * there.apart), f"C{k}o", label=f"{text}: {1e3 * there.error:.1f} mm")
        left.axhline(0.0, color="k", lw=1.0)
        left.axvline(wall, color="k", lw=1.0)
        left.plot(target[0], target[2], "k*", ms=8, zorder=5)
        left.set(xlabel="x [m]", ylabel="z [m]", title="played in the true world", aspect="equal")
        left.legend(loc="upper center")
        right.plot(0, 0, "k*", ms=8)
        right.set(xlabel="y from the spot [mm]", ylabel="z from the spot [mm]", title="at the wall")
        right.axis("equal")
        right.legend()


ENTRY = Entry(
    "tennis",
    "A ball's material found, and a throw with it to a spot on a wall",
    "From a recording of one bounce to a throw that bounces on a table and hits a spot on a wall, and how far from the "
    "spot it ends in the world that was recorded.",
    run,
)
