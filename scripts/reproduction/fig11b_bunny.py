"""Fig. 11b: the bunny that lands on its feet."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from add.scene import apply_overrides
from scripts.reproduction.bunny import STIFFNESSES, bunny_scene, optimise
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.published import PUBLISHED
from scripts.reproduction.running import iterations, picture

#: Simulations of a stage of the continuation with L-BFGS, and of Gauss-Newton after it.
STAGE, MOST = 8, 24
SHORT = {"time.steps": 12}


def run(context: Context) -> Outcome:
    """Optimise through the stiffnesses, then go on with the last."""
    stiffnesses, stage, most = ((100.0, 1000.0), 2, 2) if context.short else (STIFFNESSES, STAGE, MOST)
    with tempfile.TemporaryDirectory() as folder:
        base = bunny_scene(Path(folder), SHORT if context.short else {}, 4 if context.short else 200, wall=True)
        staged = optimise(base, stiffnesses, stage)
        start = staged.parameters.tolist()
        base = apply_overrides(base, {"bodies.bunny.velocity": start[:3], "bodies.bunny.angular_velocity": start[3:]})
        fit = optimise(base, stiffnesses[-1:], most, "gauss-newton")
        counted = int(staged.values.size + fit.values.size)
        seconds = staged.seconds + fit.seconds
        values = {"seconds": fit.simulation, "optimisation": seconds, "simulations": counted, "error": fit.error,
                  "tilt": fit.tilt}  # fmt: skip
        velocity, spin = (", ".join(f"{v:.3f}" for v in fit.parameters[k : k + 3]) for k in (0, 3))
        elements = fit.built.model.bodies[0].mesh.n_elements
        rows = (
            Row("elements", str(elements), "fig11b.elements"),
            Row("one simulation [s]", f"{fit.simulation:.2f}", "fig11b.seconds"),
            Row("Newton iterations a step", f"{iterations(fit.run):.2f}"),
            Row("optimisation with its continuation [s]", f"{seconds:.0f}", "fig11b.optimisation"),
            Row("simulations with the continuation's", str(counted), "fig11b.simulations"),
            Row("objective before and after the last stage [m^2]", f"{fit.values[0]:.2e}, {fit.objective:.2e}"),
            Row("root mean squared distance from the target pose [mm]", f"{1e3 * fit.error:.1f}"),
            Row("tilt at the end [degrees]", f"{fit.tilt:.1f}"),
            Row("velocity [m/s] and spin [rad/s] found", f"({velocity}), ({spin})"),
        )
        name = "fig11b.png"
        with figure(context.image(name), 8.2, 2.9) as drawn:
            moments = np.array([0.0, 0.28, 0.5, 1.0]) * fit.run.t[-1]
            for panel, t in zip(drawn.subplots(1, 4), moments, strict=True):
                if not context.short:
                    show(panel, picture(fit.built, fit.run, fit.built.theta, float(t), (800, 800)), f"t = {t:g} s")
    notes = (noted(),)
    return Outcome(rows, {name: "The throw at the start, at the wall, after it, and at the end."}, notes, values)


def noted() -> str:
    """Return what was bounded and chosen."""
    paper = {key: PUBLISHED[f"fig11b.{key}"].text for key in ("simulations", "elements")}
    return (
        f"Bounded: {STAGE} simulations with L-BFGS at each of k_n = {', '.join(f'{k:g}' for k in STIFFNESSES)} N/m, "
        "from the authors' start, where a line search that has begun is finished; then at most "
        f"{MOST} with Gauss-Newton at the last (the paper took {paper['simulations']} in all). The scene is optimised "
        "by itself: Fig. 4 is another one. Its mesh (the nearest to the paper's "
        f"{paper['elements']} elements) and the kind of its objective are those of Fig. 4; the target lies below the "
        "place where the bunny begins."
    )


ENTRY = Entry(
    "fig11b",
    "Fig. 11b: a bunny lands on its feet",
    "A bunny is thrown against a wall with spin and should land on its feet below where it began.",
    run,
)
