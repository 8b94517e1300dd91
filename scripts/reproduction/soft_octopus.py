"""A soft octopus with 64 muscles swims to a point: activations by gradients and by CMA-ES (Qiao et al.)."""

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
from scripts.reproduction.reaching import Task, draw_way, reach, swimming, towards

#: Radii of the hole and of the head, length of an arm and height of the head [m]; what is left of the arm at its tip.
HOLE, HEAD, ARM, HEIGHT, TIP = 0.012, 0.03, 0.1, 0.024, 0.4
#: Arms, cells along one, segments of it with two muscles each, an upper one and a lower one.
ARMS, CELLS, SEGMENTS = 8, 8, 4
#: Rings of nodes from the hole to the tips.
RINGS = range(CELLS + 2)
#: Step [s], steps, and how many an activation is held.
DT, STEPS, HELD = 0.005, 400, 6
#: Where the point is from the start [m]; first strokes of the arms: activation and seconds.
WAY, STROKE = (0.02, 0.01, 0.05), (0.3, 0.5)
#: Most evaluations, runs of CMA-ES.
MOST, CMA_RUNS = 50, 60


def octopus_mesh() -> tuple[SoftMesh, np.ndarray]:
    """Return an octopus whose axis is z, and the grid of its nodes: how far around, along an arm, and up (n, 3)."""
    sectors, rings = 2 * ARMS, CELLS + 1
    gaps = [((k, 1, 0), (k + 1, rings, 2)) for k in range(1, sectors, 2)]
    block = box_mesh((sectors, rings, 2), (sectors, rings, 2), TET4, gaps)
    grid = np.rint(block.points + 0.5 * np.array([sectors, rings, 2])).astype(int)
    around, ring, up = grid.T
    t = np.clip(ring - 1, 0, None) / CELLS
    half = np.pi / sectors
    # On the head nodes are on rays; arms are straight, on both sides of the ray of their middle.
    middle = np.where(ring > 1, 2.0 * half * (around - around % 2 + 0.5), 2.0 * half * around)
    aside = np.where(ring > 1, (2 * (around % 2) - 1) * HEAD * np.sin(half) * (1.0 - (1.0 - TIP) * t), 0.0)
    out = np.where(ring > 1, HEAD * np.cos(half) + ARM * t, np.where(ring > 0, HEAD, HOLE))
    points = np.stack(
        [
            out * np.cos(middle) - aside * np.sin(middle),
            out * np.sin(middle) + aside * np.cos(middle),
            0.5 * (up - 1) * HEIGHT * (1.0 - (1.0 - TIP) * t),
        ],
        axis=1,
    )
    grid[:, 0] %= sectors  # round it goes: the last ray is the first
    grid, first, number = np.unique(grid, axis=0, return_index=True, return_inverse=True)
    return SoftMesh(points[first], number.ravel()[block.cells], TET4), grid


def scene(file: Path, mesh: SoftMesh, grid: np.ndarray, steps: int, most: int) -> dict[str, Any]:
    """Return the octopus at rest in water, with muscles along its arms, and the point that it is to be at."""
    around, ring, up = grid.T
    fibres = {"between": [{"nodes": np.flatnonzero(ring == end).tolist()} for end in (1, CELLS + 1)]}
    rows = -(-steps // HELD)
    times = HELD * DT * (np.arange(rows) + 0.5)
    muscles, signals = {}, {}
    for arm in range(ARMS):
        for segment in range(SEGMENTS):
            begin, end = (1 + CELLS * k // SEGMENTS for k in (segment, segment + 1))
            for side, layer in (("lower", 0), ("upper", 1)):
                inside = (around // 2 == arm) & (ring >= begin) & (ring <= end) & (up >= layer) & (up <= layer + 1)
                name = f"arm {arm} {side} {segment}"
                # Down fast, up slowly, by which the water gives more one way than the other.
                phase = (times / STROKE[1]) % 1.0
                active = phase < 0.3 if side == "lower" else phase >= 0.3
                values = STROKE[0] * np.where(active, 1.0 if side == "lower" else 0.4, 0.0)
                signals[name] = {"type": "control", "basis": "constant", "rows": rows, "end": rows * HELD * DT,
                                 "values": values.tolist()}  # fmt: skip
                muscles[name] = {
                    "type": "active-stress",
                    "strength": 2e4,
                    "activation": {"signal": name},
                    "fibres": fibres,
                    "where": {"nodes": np.flatnonzero(inside).tolist()},
                }
    raw = swimming("octopus", mesh, file, DT, steps, muscles=muscles)
    paths = {f"signals.{name}.values": {"bounds": [0, 1], "scale": 0.1} for name in signals}
    return raw | {"signals": signals} | towards("octopus", WAY, "xyz", paths, most)


def problem_of(folder: Path, *, short: bool) -> tuple[InverseProblem, str]:
    """Return the problem and its size in words."""
    mesh, grid = octopus_mesh()
    raw = scene(folder / "octopus.vtk", mesh, grid, 12 if short else STEPS, 3 if short else MOST)
    found = add.scene_from_dict(raw).inverse_problem()
    size = f"{mesh.n_elements} tetrahedra, {2 * ARMS * SEGMENTS} muscles, {found.n} activations"
    return found, size


def run(context: Context) -> Outcome:
    """Swim by gradients, then by CMA-ES with as many runs and seconds."""
    with tempfile.TemporaryDirectory() as folder:
        problem, size = problem_of(Path(folder), short=context.short)
    with figure(context.image("soft_octopus.png"), 6.4, 5.2) as drawn:
        way, axes = float(np.linalg.norm(WAY)), drawn.subplot_mosaic("ab;cc")
        task = Task(problem, f"octopus ({size})", way, 0.02, CMA_RUNS, "soft4.distance")
        found = reach(context, task, axes["a"])
        trajectory = found.trajectory
        _, grid = octopus_mesh()
        places = trajectory.q.reshape(len(trajectory.q), -1, 3)
        draw_way(axes["b"], trajectory.t, places.mean(axis=1), WAY, "mean of the nodes")
        # The middle of the upper and lower surface of four arms, which lie opposite each other by twos, from the side.
        side = axes["c"]
        for k in range(4):
            at = round(k / 3 * (len(places) - 1))
            for arm in (0, ARMS // 2):
                along = [places[at, (grid[:, 0] // 2 == arm) & (grid[:, 1] == ring)].mean(axis=0) for ring in RINGS]
                x, _, z = 1e3 * np.array(along).T
                side.plot(x, z, f"C{k}-", label=f"{trajectory.t[at]:.2f} s" if arm == 0 else None)
        side.plot(1e3 * WAY[0], 1e3 * WAY[2], "kx", label="point")
        side.set_aspect("equal", adjustable="datalim")
        side.set(xlabel="x [mm]", ylabel="z [mm]")
        side.legend()
    caption = "Distance to the point against runs; way of the best run; two arms from the side, at four times."
    return Outcome(found.rows, {"soft_octopus.png": caption}, NOTES, found.values)


NOTES = (
    "An own mesh: the published one has no free licence. Each of eight arms has four segments with an upper and a "
    "lower muscle, whose fibres lead from the head to the tips by Laplace's equation; an activation is held for six "
    "steps, as published, which makes 67 numbers of each. Water is the law of the air with its density. The first "
    "strokes, from which both begin, go the other way. CMA-ES has a diagonal covariance.",
)

ENTRY = Entry(
    "soft4",
    "Soft bodies: an octopus with 64 muscles swims to a point",
    "A soft octopus under water is at rest; activations of 64 muscles over 400 steps are to bring it to a point above "
    "and beside it after 2 s; by L-BFGS-B, and by CMA-ES, three seeds (after Qiao, Liang, Koltun, Lin, NeurIPS 2021).",
    run,
)
