"""Fig. 5: three tori between a floor and a wall under the friction laws."""

from __future__ import annotations

import numpy as np

from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import MESHES, Context, Entry, Outcome, Row
from scripts.reproduction.friction_ladder import draw_convergence, orders, run_laws
from scripts.reproduction.running import COLOURS, fallbacks, iterations, missing_law, picture, scene

MARKER = {"markers": {"centre": {"body": "tori", "surface": {"all": True}}}}
SHORT = {
    "bodies.tori.mesh.file": str(MESHES / "torus.msh"),
    "bodies.tori.position": [0.0608, 0, -0.041],
    "time.steps": 20,
}
#: Steps over which the original program's iterations were counted.
FIRST = 200


def run(context: Context) -> Outcome:
    """Run the tori under every law."""
    base = scene("fig5_tori", MARKER | (SHORT if context.short else {}))
    runs, missing = run_laws(base)
    rows, values = [], {}
    for item in runs:
        law = item.law
        found = orders(item.histories)
        share = sum(map(len, item.histories[:FIRST])) / sum(map(len, item.histories))
        values[f"seconds.{law}"] = item.seconds
        values[f"iterations.{law}"] = iterations(item.run, FIRST)
        rows.append(Row(f"{law}: simulation [s]", f"{item.seconds:.1f}", f"fig5.seconds.{law}"))
        if law == "linear":
            rows.append(
                Row(f"{law}: first {FIRST} steps [s], by its share of the iterations", f"{share * item.seconds:.1f}",
                    "fig5.original.seconds.linear")
            )  # fmt: skip
        rows += [
            Row(f"{law}: Newton iterations a step, first {FIRST} steps", f"{iterations(item.run, FIRST):.2f}",
                f"fig5.original.iterations.{law}"),
            Row(f"{law}: order of Newton's last iterations (median over steps)",
                f"{np.median(found):.2f}" if found else "-", "fig2.newton"),
            Row(f"{law}: speed of the centre at the end [mm/s]", f"{1e3 * item.end['bodies']['tori']['speed']:.3g}"),
            Row(f"{law}: steps beyond Newton's normal path", str(fallbacks(item.run))),
        ]  # fmt: skip
    name = "fig05.png"
    with figure(context.image(name), 8.2, 7.2) as drawn:
        top, middle, bottom = drawn.subfigures(3, 1, height_ratios=(1.2, 1.0, 1.1))
        if not context.short:
            first, panels = runs[0], top.subplots(1, 3)
            for panel, t in zip(panels, (0.0, 0.3, first.run.t[-1]), strict=True):
                show(panel, picture(first.built, first.run, first.built.theta, t, (960, 720)), f"t = {t:g} s")
        left, right = middle.subplots(1, 2)
        for item in runs:
            left.plot(item.run.t, 1e3 * (item.centre[:, 0] - item.centre[0, 0]), COLOURS[item.law], label=item.law)
            right.semilogy(item.run.t, np.maximum(1e3 * item.speed, 1e-9), COLOURS[item.law], lw=0.9, label=item.law)
        left.set(xlabel="t [s]", ylabel="towards the wall [mm]")
        left.legend()
        right.set(xlabel="t [s]", ylabel="speed of the centre [mm/s]")
        draw_convergence(bottom.subplots(1, 3, sharey=True), runs, base.time.newton.atol)
    notes = [missing_law(law) for law in missing]
    notes.append("Times are processor seconds of one thread, for all 500 steps.")
    caption = "The tori with linear friction; place and speed of the centre; residuals of all steps for each law."
    return Outcome(tuple(rows), {name: caption}, tuple(notes), values)


ENTRY = Entry(
    "fig5",
    "Fig. 5: three tori",
    "Three tori slide down a tilted floor into a wall of twice the friction and settle.",
    run,
)
