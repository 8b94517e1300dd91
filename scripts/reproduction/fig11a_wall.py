"""Fig. 11a: a ball thrown to a point by way of a wall."""

from __future__ import annotations

import numpy as np

from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import MESHES, Context, Entry, Outcome, Row
from scripts.reproduction.running import scene
from scripts.reproduction.throws import METHODS, NAMES, Throw, throw

STARTS = ((1.0, 0.6, 1.5), (0.9, 0.7, 1.7))
MOST = 40
ARRIVED = 1e-6
SHORT = {
    "bodies.ball.mesh.file": str(MESHES / "ball_small.msh"),
    "bodies.ball.position": [0, 0.06, 0],
    "time.dt": 0.0025,
    "time.steps": 50,
}


def run(context: Context) -> Outcome:
    """Optimise the velocity with both methods from two starts."""
    base = scene("fig11a_wall_throw", SHORT if context.short else {})
    rows, found = [], {}
    for start in STARTS[:1] if context.short else STARTS:
        for method in METHODS:
            thrown = throw(base, method, "ball", start, 3 if context.short else MOST)
            if thrown is None:
                rows.append(Row(f"{NAMES[method]} from {start}", "the first simulation fails"))
                continue
            found[start, method] = thrown
            arrived = thrown.simulations_to(ARRIVED)
            rows.append(
                Row(f"{NAMES[method]} from {start} m/s: distance at the start and the end [m], simulations to "
                    f"{ARRIVED:g} m", f"{np.sqrt(thrown.values[0]):.2e}, {thrown.distance:.0e}, {arrived or '-'}")
            )  # fmt: skip
    best = min(found.values(), key=lambda t: t.distance)
    values = {"seconds": best.simulation, "optimisation": float(best.seconds[-1]), "simulations": int(best.values.size),
              "distance": best.distance}  # fmt: skip
    rows += [
        Row("velocity of the best [m/s]", f"({', '.join(f'{v:.4f}' for v in best.parameters)})"),
        Row("one simulation [s]", f"{best.simulation:.2f}"),
        Row(f"optimisation of the best ({NAMES[best.method]}) [s]", f"{best.seconds[-1]:.1f}"),
    ]
    name = "fig11a.png"
    draw(context, name, found, best)
    notes = (
        f"Bounded: at most {MOST} simulations an optimisation. The paper shows this throw and gives no numbers of it; "
        "the starts are ours.",
    )
    caption = "Path from above and from the side; distance over simulations."
    return Outcome(tuple(rows), {name: caption}, notes, values)


def draw(context: Context, name: str, found: dict, best: Throw) -> None:
    """Draw the path and the convergence."""
    with figure(context.image(name), 8.2, 4.6) as drawn:
        panels = drawn.subplot_mosaic([["above", "right"], ["side", "right"]])
        above, side, right = (panels[key] for key in ("above", "side", "right"))
        above.plot(best.path[:, 0], best.path[:, 1])
        above.axhline(0.1, color="k", lw=1.0)
        above.plot(0.3, 0.0, "k*", ms=8)
        above.set(xlabel="x [m]", ylabel="y [m]", title="from above: the wall is at y = 0.1", aspect="equal")
        side.plot(best.path[:, 0], best.path[:, 2])
        side.axhline(-0.05, color="k", lw=1.0)
        side.plot(0.3, 0.0, "k*", ms=8)
        side.set(xlabel="x [m]", ylabel="z [m]", title="from the side", aspect="equal")
        for (start, method), t in found.items():
            right.semilogy(np.arange(1, t.best.size + 1), np.maximum(np.sqrt(t.best), 1e-17),
                           "C0" if start == STARTS[0] else "C1", ls="-" if method == "l-bfgs-b" else "--",
                           label=f"{NAMES[method]}, {start}")  # fmt: skip
        right.axhline(ARRIVED, color="k", lw=0.6, ls=":")
        right.set(xlabel="simulations", ylabel="distance at the end [m]", title="best so far")
        right.legend(fontsize=6.5)


ENTRY = Entry(
    "fig11a",
    "Fig. 11a: a ball thrown to a point by way of a wall",
    "The velocity with which a ball hits a rough wall and is at a point 0.35 s after it was thrown.",
    run,
)
