"""Fig. 2: a soft cylinder on an incline under the friction laws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from add.hard_contact import with_exact_contact
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import MESHES, Context, Entry, Outcome, Row, clock
from scripts.reproduction.friction_ladder import LawRun, draw_convergence, orders, run_laws
from scripts.reproduction.running import COLOURS, fallbacks, iterations, missing_law, picture, scene

MARKER = {"markers": {"centre": {"body": "cylinder", "surface": {"all": True}}}}
SHORT = {
    "bodies.cylinder.mesh.file": str(MESHES / "cylinder.msh"),
    "bodies.cylinder.position": [0, 0, -0.0395],
    "time.steps": 30,
}


def run(context: Context) -> Outcome:
    """Run the incline under every law."""
    base = scene("fig2_cylinder_linear", MARKER | (SHORT if context.short else {}))
    runs, missing = run_laws(base)
    rows, values = [], {}
    for item in runs:
        law = item.law
        found = orders(item.histories)
        values[f"seconds.{law}"] = item.seconds
        values[f"iterations.{law}"] = iterations(item.run)
        values[f"order.{law}"] = float(np.median(found)) if found else None
        values[f"speed.{law}"] = item.end["bodies"]["cylinder"]["speed"]
        rows += [
            Row(f"{law}: simulation [s]", f"{item.seconds:.2f}", f"fig2.seconds.{law}"),
            Row(f"{law}: simulation [s]", f"{item.seconds:.2f}", f"fig2.original.seconds.{law}"),
            Row(f"{law}: Newton iterations a step", f"{iterations(item.run):.2f}", f"fig2.original.iterations.{law}"),
            Row(f"{law}: speed at rest on the incline [mm/s]",
                f"{1e3 * item.end['bodies']['cylinder']['speed']:.3g}", f"fig2.original.speed.{law}"),
            Row(f"{law}: centre along the incline at the end [m]",
                f"{item.end['bodies']['cylinder']['centre'][0]:.4f}", f"fig2.original.centre.{law}"),
            Row(f"{law}: order of Newton's last iterations (median over steps)",
                f"{np.median(found):.2f}" if found else "-", "fig2.newton"),
            Row(f"{law}: steps beyond Newton's normal path", str(fallbacks(item.run))),
        ]  # fmt: skip
    if not context.short:
        rows += _exact_contact(runs)
    name = "fig02.png"
    with figure(context.image(name), 8.2, 7.2) as drawn:
        top, middle, bottom = drawn.subfigures(3, 1, height_ratios=(1.0, 1.1, 1.1))
        if not context.short:
            first, panels = runs[0], top.subplots(1, 3)
            for panel, t in zip(panels, (0.0, 0.1, first.run.t[-1]), strict=True):
                show(panel, picture(first.built, first.run, first.built.theta, t, (960, 600)), f"t = {t:g} s")
        left, right = middle.subplots(1, 2)
        for item in runs:
            left.plot(item.run.t, 1e3 * (item.centre[:, 0] - item.centre[0, 0]), COLOURS[item.law], label=item.law)
            right.semilogy(item.run.t, np.maximum(1e3 * item.speed, 1e-9), COLOURS[item.law], lw=0.9, label=item.law)
        left.set(xlabel="t [s]", ylabel="along the incline [mm]")
        left.legend()
        right.set(xlabel="t [s]", ylabel="speed of the centre [mm/s]")
        draw_convergence(bottom.subplots(1, 3, sharey=True), runs, base.time.newton.atol)
    notes = [missing_law(law) for law in missing]
    notes.append(
        "Times are processor seconds of one thread. The order is that of the last three residuals above round-off of "
        "each step, where they have left the changes of contact behind; round-off ends it before it is 2. In place of "
        "the paper's SQP stands `add.hard_contact`, exact contact by a semismooth Newton method "
        "(`docs/studies/hard-reference.md`)."
    )
    caption = "The incline with linear friction; place and speed of the centre; residuals of all steps for each law."
    return Outcome(tuple(rows), {name: caption}, tuple(notes), values)


def _exact_contact(runs: Sequence[LawRun]) -> list[Row]:
    """Run the hard-constrained reference; return where it ends, and how far from there each law does."""
    built = runs[0].built
    with clock() as taken:
        exact = with_exact_contact(built.simulation).run()
    end = built.markers.points(exact.kinematics(exact.n_steps), built.theta)[0][0]
    rows = [
        Row("exact contact: simulation [s]", f"{taken.seconds:.2f}", "fig2.seconds.sqp"),
        Row("exact contact: surface's centre along the incline at the end [m]", f"{end[0]:.4f}"),
    ]
    return rows + [Row(f"{item.law}: from there [mm]", f"{1e3 * (item.centre[-1, 0] - end[0]):.3f}") for item in runs]


ENTRY = Entry(
    "fig2",
    "Fig. 2: cylinder on an incline",
    "A soft cylinder lands on a floor tilted by 20 degrees and comes to rest. Linear and tanh friction creep, hybrid "
    "friction sticks; Newton converges quadratically once the contacts are settled.",
    run,
)
