"""Fig. 11b: the bunny that lands on its feet."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from add.scene.reader import apply_overrides
from scripts.reproduction.bunny import STIFFNESSES, bunny_scene, optimise
from scripts.reproduction.drawing import figure, show
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.running import iterations, picture

#: Simulations of the last stage, and of every stage where Fig. 4 has not left its throw.
MOST = 24
SHORT = {"time.steps": 12}


def run(context: Context) -> Outcome:
    """Go on from the throw that continuation found."""
    before = {} if context.short else context.values.get("fig4", {})
    start = before.get("continuation.parameters")
    with tempfile.TemporaryDirectory() as folder:
        base = bunny_scene(Path(folder), SHORT if context.short else {}, 4 if context.short else 200)
        if start is not None:
            base = apply_overrides(
                base, {"bodies.bunny.velocity": start[:3], "bodies.bunny.angular_velocity": start[3:]}
            )
        stages = STIFFNESSES[-1:] if start is not None or context.short else STIFFNESSES
        fit = optimise(base, stages, 2 if context.short else MOST // (1 if start is not None else 2), "gauss-newton")
        counted = int(fit.values.size) + int(before.get("continuation.simulations", 0))
        seconds = fit.seconds + float(before.get("continuation.seconds", 0.0))
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
    notes = (
        "The scene of Fig. 4 (mesh and objective there): from the throw that its continuation found, the last stage "
        f"goes on with Gauss-Newton for at most {MOST} simulations.",
    )
    return Outcome(rows, {name: "The throw at the start, at the wall, after it, and at the end."}, notes, values)


ENTRY = Entry("fig11b", "Fig. 11b: a bunny lands on its feet", "The end of the continuation of Fig. 4.", run)
