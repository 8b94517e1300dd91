"""What the ablations of Qiao et al., ICML 2020, leave out, left out here: zones, sparse derivatives, scale."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

import add
from add.adjoint.reverse import Cotangents, pullback_to_state
from add.contact import MeshContact
from add.equations.kinematics import Weights
from add.equations.system import BranchEquations
from add.geometry.sheet import IRREGULAR, rectangle
from add.linalg import one_blas_thread
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from add.solve.step_equations import Zones
from add.solve.step_matrix import Assembler
from scripts.reproduction.cloth_cubes import SIDE, scene as cubes
from scripts.reproduction.cloth_impacts import scene as meeting, sheet
from scripts.reproduction.cloth_marble import scene as marble
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import iterations

#: Cubes; 100, 200, 300 are published. From how high they fall at most [m], so that they land one after the other.
NUMBERS, HIGHEST, STEPS = (20, 100, 200, 300), 0.4, 40
#: Steps whose matrices are made dense.
DENSE = 5
#: Steps of the marble, with two numbers each, as in the published demo.
PUSHES = 20
#: Sizes of the sheets over those of the smallest, as published; their edge and the ball's radius [m]; steps.
SIZES, WIDTH, RADIUS, FALLING = (1, 2, 5, 10), 0.6, 0.02, 60


def falling(n: int) -> dict[str, Any]:
    """Return cubes side by side, each from a height of its own."""
    raw, heights = cubes(n), np.random.default_rng(1).uniform(0.0, HIGHEST, n)
    for body, height in zip(raw["bodies"].values(), heights, strict=True):
        body["position"][2] += height
    raw["time"] |= {"steps": STEPS, "substeps": "off"}  # one impact would divide the steps of all
    return raw


def factors(run: Trajectory) -> float:
    """Return the factorisations a step, those of attempts that failed included."""
    return float(np.mean([record.report.factorizations for record in run.records]))


def one_zone(assembler: Assembler, branch: BranchEquations, order: int, _together: bool) -> Zones:
    """Return all unknowns as one zone."""
    return Zones(1, np.zeros(assembler.free.size + branch.n_rows, dtype=np.int64), order)


def alone(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each cube as a scene: none touches another, so that each is a zone."""
    return [raw | {"bodies": {name: body}} for name, body in raw["bodies"].items()]


def backward(built: BuiltScene, run: Trajectory) -> float:
    """Return the seconds of a step backward, the best of three sweeps."""
    bars = Cotangents(np.ones(run.q.shape), np.zeros(run.q.shape))
    best = np.inf
    for _ in range(3):
        with clock() as taken:
            pullback_to_state(built.simulation, run, built.theta, bars)
        best = min(best, taken.seconds / run.n_steps)
    return best


def dense(built: BuiltScene, run: Trajectory) -> float:
    """Return the seconds of a step backward whose matrix is dense, factors and solve alone, over the last steps."""
    system, assembler, spent = built.simulation.system, built.simulation.assembler(), 0.0
    for record in run.records[-DENSE:]:
        weights, branch = Weights(1.0, record.c, record.c**2), system.on_branch(record.decisions)
        pattern, data = assembler.assemble(record.kin, record.mu, built.theta, weights, branch)
        matrix = pattern.matrix(data).toarray()
        with clock() as taken:
            np.linalg.solve(matrix.T, np.ones(pattern.n))
        spent += taken.seconds
    return spent / DENSE


def between(size: float) -> dict[str, Any]:
    """Return a ball on a held sheet, and a held sheet on the ball, sheets of a size; their cells stay as many.

    The ball is over the middle of a face, so that sheets of every size meet it by one face, not by the edges of small
    faces, too.
    """
    width, height = WIDTH * size, 0.005 + RADIUS
    nodes, faces = rectangle((width, width), (12, 12), IRREGULAR)
    middles = nodes[faces].mean(axis=1)
    x, y, _ = middles[np.linalg.norm(middles, axis=1).argmin()].tolist()
    ends = [("min", 1, None), ("min", None, 1), ("max", -1, None), ("max", None, -1)]
    box = {"min": 0.4999 * width, "max": 0.4999 * width}
    held = [{"where": {"box": {side: [a and a * box[side], b and b * box[side], None]}}} for side, a, b in ends]
    shape = {"shape": "sphere", "radius": RADIUS}
    bodies = {
        "ball": {"type": "rigid", "geometry": shape, "mass": 0.02, "position": [x, y, 0]},
        "below": sheet(width, 12, position=[0, 0, -height], pins=held),
        "above": sheet(width, 12, position=[0, 0, height], pins=held),
    }
    return meeting(bodies, [["ball", "below"], ["ball", "above"]], 0.005, FALLING)


def of_cubes(n: int) -> tuple[list[Row], dict[str, Any]]:
    """Return what zones and dense factors take, of so many cubes."""
    raw = falling(n)
    built = add.scene_from_dict(raw).build()
    built.run(n_steps=1)
    with clock() as together:
        whole = built.run()
    with patch.object(Assembler, "zones", one_zone), clock() as joined:
        one = built.run()
    parts = [add.scene_from_dict(one).build() for one in alone(raw)]
    parts[0].run()  # its own form of a step is compiled
    with clock() as apart:
        single = [part.run() for part in parts]
    sparse, full = backward(built, whole), dense(built, whole)
    counts = factors(whole), factors(one), float(np.mean([factors(run) for run in single]))
    ends = np.array([one.q[-1][:3] for one in single])
    error = float(np.abs(whole.q[-1].reshape(-1, 6)[:, :3] - ends).max())
    rows = [
        Row(f"{n} cubes: factorisations a step, zones on; off, one Newton loop over all; each cube a scene, mean",
            "; ".join(f"{count:.2f}" for count in counts)),
        Row(f"{n} cubes: a step, zones on [ms]; off [ms]; of all scenes of one cube [ms]; places apart [m]",
            f"{1e3 * together.seconds / STEPS:.1f}; {1e3 * joined.seconds / STEPS:.1f}; "
            f"{1e3 * apart.seconds / STEPS:.1f}; {error:.0e}"),
        Row(f"{n} cubes: a step backward [ms]; factors and solve of a dense matrix [ms]; their ratio",
            f"{1e3 * sparse:.2f}; {1e3 * full:.1f}; {full / sparse:.0f}"),
    ]  # fmt: skip
    values = {"factors": counts, "seconds": [together.seconds, joined.seconds, apart.seconds], "error": error}
    return rows, values | {"backward": [sparse, full]}


def of_sizes(sizes: tuple[int, ...]) -> tuple[list[Row], list[list[float]]]:
    """Return what a step forward and one backward take with sheets of several sizes, the best of turns taken."""
    scenes = [add.scene_from_dict(between(size)).build() for size in sizes]
    runs, best = [built.run() for built in scenes], np.full((len(sizes), 2), np.inf)
    for _ in range(5):
        for built, run, least in zip(scenes, runs, best, strict=True):
            with clock() as taken:
                built.run()
            least[:] = np.minimum(least, [taken.seconds / FALLING, backward(built, run)])
    rows, found = [], []
    for size, built, run, (forward, back) in zip(sizes, scenes, runs, best.tolist(), strict=True):
        (term,) = built.model.term(MeshContact)
        number = built.simulation.system.deciding.index(term)
        touching = float(np.mean([term.describe(record.decisions[number])["touching"] for record in run.records]))
        over = forward / best[0, 0], back / best[0, 1]
        rows.append(
            Row(f"sheets of {size} : 1 around a ball: a step forward, backward [ms]; over those of 1 : 1; "
                "iterations a step; pairs that touch",
                f"{1e3 * forward:.1f}, {1e3 * back:.1f}; {over[0]:.2f}, {over[1]:.2f}; {iterations(run):.1f}; "
                f"{touching:.1f}", "cloth6.size")
        )  # fmt: skip
        found.append([forward, back, iterations(run), touching])
    return rows, found


def of_marble(steps: int) -> tuple[list[Row], dict[str, Any]]:
    """Return how soon the demo's numbers bring the marble to its place, and what dense factors would take."""
    asked, distances = add.scene_from_dict(marble(steps)), list[float]()
    problem, built = asked.inverse_problem(), asked.build()
    problem.optimize(progress=lambda item, _: distances.append(float(np.sqrt(item.value))))
    best = np.minimum.accumulate(distances)
    needed = int(np.argmax(best < 1e-3)) + 1 if best[-1] < 1e-3 else 0
    whole = built.run()
    sparse, full = backward(built, whole), dense(built, whole)
    rows = [
        Row(f"a marble by the demo's {problem.n} numbers: distance at the start, after {best.size} runs [m]; "
            "runs to 1 mm", f"{best[0]:.3f}, {best[-1]:.1g}; {needed or 'not'}"),
        Row("the marble: a step backward [ms]; factors and solve of a dense matrix [ms]",
            f"{1e3 * sparse:.2f}; {1e3 * full:.1f}"),
    ]  # fmt: skip
    return rows, {"best": best.tolist(), "backward": [sparse, full]}


def run(context: Context) -> Outcome:
    """Zones and derivatives on cubes, then sizes, then the marble."""
    rows, values = list[Row](), dict[str, Any]()
    with one_blas_thread():
        for n in (4, 20) if context.short else NUMBERS:
            more, values[str(n)] = of_cubes(n)
            rows += more
        more, values["sizes"] = of_sizes((1, 2) if context.short else SIZES)
        rows += more
        more, values["marble"] = of_marble(4 if context.short else PUSHES)
        rows += more
    return Outcome(tuple(rows), {}, NOTES, values)


NOTES = (
    f"Cubes of {SIDE} m side by side, each from a height of its own up to {HIGHEST} m, {STEPS} whole steps of "
    "10 ms: none touches another, so that each is an impact zone. With zones on, as ever, each has a length and first "
    "guesses of its own, and what has converged waits: factors count there although they are of few bodies. Off, one "
    "Newton loop has one length for all. Steps of 20 cubes and of scenes of one are compiled. The published ablation "
    "compares with a dense problem of all impacts; ours of derivatives with the factors of a dense matrix.",
    "A ball between two sheets whose borders are held, 12 x 12 cells whatever their size, for the published bunny and "
    "scales of 1 to 18. It is over the middle of a face, and hardly meets another one: as published, what is equal is "
    "the number of primitives, and so is that of contacts. The published steps of 20 ms are of 5 ms here. Over a node "
    "of the smallest sheet the ball meets 13 pairs, and times compare numbers of contacts and of iterations, not "
    "sizes. Wider sheets swing faster beside their skins; pairs are looked for further around what has moved on, so "
    "that they are found no more often (11 times in the 60 steps of 5 : 1, 13 of 1 : 1; 42 and 18 when these times "
    "were taken). Three runs since, on a machine at half its speed, have medians of 1.06, 0.93 and 0.83 forward at 2, "
    "5 and 10 : 1 (0.82 to 1.16): what is left is iterations, of which the widest sheets need fewest.",
)

ENTRY = Entry(
    "cloth6",
    "Many bodies: zones, sparse derivatives, sizes",
    "What zones that converge on their own save, what sparse factors save on the way back, and "
    "what sizes that differ by ten change (after the ablations of Qiao, Liang, Koltun, Lin, ICML 2020).",
    run,
)
