"""Many cubes fall on a floor: time and memory against their number (Qiao et al., ICML 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np

import add
from add.adjoint.reverse import Cotangents, pullback_to_state
from add.linalg import one_blas_thread
from benchmarks.sizes import peak_memory
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row, clock

#: As published: numbers of cubes, in rows of 50, of this side [m].
NUMBERS, ROW, SIDE = (20, 50, 100, 200, 500, 1000), 50, 0.04
#: Our step [s], steps until they lie on the floor, and steps that are measured.
DT, BEFORE, MEASURED = 0.01, 25, 75


def scene(n: int) -> dict[str, Any]:
    """Return cubes that fall 3 cm, those of a further row 1 % larger, each slightly turned, so that they rock.

    Between them is half a side, so that all rows are as dense.
    """
    rng = np.random.default_rng(0)
    bodies, y, side = {}, 0.0, SIDE
    for k in range(n):
        before, side = side, SIDE * (1.0 + 0.01 * (k // ROW))
        y += 0.75 * (before + side) if k and k % ROW == 0 else 0.0
        half = 0.05 * rng.uniform(-1.0, 1.0, 3)
        bodies[f"cube {k}"] = {
            "type": "rigid",
            "geometry": {"shape": "box", "size": [side] * 3},
            "density": 500,
            "position": [1.5 * side * (k % ROW), y, 0.5 * side + 0.03],
            "orientation": (np.array([1.0, *half]) / np.sqrt(1.0 + half @ half)).tolist(),
        }
    return {
        "schema": "add-scene/1",
        "time": {"dt": DT, "steps": BEFORE + MEASURED, "integrator": "bdf1"},
        "bodies": bodies,
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 1e3, "friction": 0.3, "onset": 1e-3, "damping": 1, "damping_ramp": 1e-3},
    }


def run(context: Context) -> Outcome:
    """All numbers; memory is that of the process after the last one, whose steps are all kept."""
    numbers = (20, 50) if context.short else NUMBERS
    rows, forward, backward = [], [], []
    before = peak_memory()
    with one_blas_thread():
        for n in numbers:
            built = add.scene_from_dict(scene(n)).build()
            simulation = built.simulation
            first = simulation.run(n_steps=BEFORE)
            bars = Cotangents(np.ones((MEASURED + 1, 6 * n)), np.zeros((MEASURED + 1, 6 * n)))
            best = [np.inf, np.inf]
            for _ in range(3):
                with clock() as there:
                    part = simulation.run(n_steps=BEFORE + MEASURED, state=first.state(BEFORE))
                with clock() as back:
                    pullback_to_state(simulation, part, built.theta, bars)
                best = [min(a, b.seconds / MEASURED) for a, b in zip(best, (there, back), strict=True)]
            forward.append(best[0])
            backward.append(best[1])
            rows.append(Row(f"{n} cubes: a step forward, backward [ms]", f"{1e3 * best[0]:.2f}, {1e3 * best[1]:.2f}"))
    memory = peak_memory() - before
    large = np.array(numbers) >= (0 if context.short else 200)
    slopes = [float(np.polyfit(np.log(np.array(numbers)[large]), np.log(np.array(times)[large]), 1)[0])
              for times in (forward, backward)]  # fmt: skip
    rows += [
        Row(f"power of their number, {np.array(numbers)[large][0]} to {numbers[-1]}: forward, backward",
            ", ".join(f"{slope:.2f}" for slope in slopes), "cloth5.linear"),
        Row(f"memory of all of it, every step kept [GB], at {numbers[-1]} cubes", f"{memory / 1e3:.2f}"),
    ]  # fmt: skip
    with figure(context.image("cloth_cubes.png"), 3.6, 2.6) as drawn:
        axes = drawn.subplots()
        axes.loglog(numbers, 1e3 * np.array(forward), "o-", label="forward")
        axes.loglog(numbers, 1e3 * np.array(backward), "s-", label="backward")
        axes.set(xlabel="cubes", ylabel="a step [ms]")
        axes.legend()
    values = {"forward": forward, "backward": backward, "slopes": slopes, "memory": memory}
    return Outcome(tuple(rows), {"cloth_cubes.png": "Time a step against the number of cubes."}, NOTES, values)


NOTES = (
    "Processor time of 75 steps of 10 ms after the first touch; the published runs have 20 steps, and times and "
    "memory in curves alone. The cubes lie beside each other on the floor, as the published ones do, half a side apart "
    "in every row: the density of contacts does not change with their number. (With the distances of the smallest row "
    "for all, the balls around larger ones reach their neighbours, whose edges are then asked for crossings: 1000 "
    "cubes take 1.8 times as long forward, and the power is 1.2 to 1.3.) Up to 35 bodies steps are compiled ones with "
    "blocks of all pairs, beyond those of the terms, with blocks of near pairs.",
)

ENTRY = Entry(
    "cloth5",
    "Many bodies: 20 to 1000 cubes",
    "Rows of 50 cubes fall on a floor and rock until they lie; time of a step forward and backward, and memory (after "
    "Qiao, Liang, Koltun, Lin, ICML 2020).",
    run,
)
