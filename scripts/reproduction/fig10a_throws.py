"""Fig. 10a: a soft ball thrown to a point over no, one and two bounces."""

from __future__ import annotations

import numpy as np
from matplotlib.patches import Circle

from add.scene import apply_overrides
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import MESHES, Context, Entry, Outcome, Row, clock
from scripts.reproduction.running import LAWS, iterations, missing_law, scene, with_law
from scripts.reproduction.throws import METHODS, NAMES, Throw, throw

SCENE = "fig10a_ball_to_point"
#: Bounces -> velocities to start from [m/s]: rounded off from the solutions, which are not where a search may start.
STARTS: dict[int, tuple[tuple[float, float, float], ...]] = {
    0: ((0.45, 0.0, 1.2),),
    1: ((0.45, 0.0, 0.25), (0.52, 0.0, 0.15), (0.46, 0.0, 0.2)),
    2: ((0.5, 0.0, 0.06), (0.52, 0.0, 0.07), (0.48, 0.0, 0.05)),
}
BOUNCES = {0: "no bounce", 1: "one bounce", 2: "two bounces"}
#: The start that the authors' scene has [m/s].
PAPER_START = (0.45, 0.0, 0.4)
#: Most simulations of an optimisation.
MOST = 40
#: A distance that counts as an arrival [m].
ARRIVED = 1e-6
#: Contact and friction without kinks: the onset of a millimetre is far more than the ball sinks in.
SMOOTH = {"contact.onset": 1e-3, "contact.friction_law": "tanh"}
#: Step and number of throws along v_z through a solution [m/s].
FINE, SCAN = 1e-4, 41
RADIUS, FLOOR = 0.025, -0.05
SHORT = {
    "bodies.ball.mesh.file": str(MESHES / "ball_small.msh"),
    "bodies.ball.position": [0, 0, -0.0245],
    "time.dt": 0.002,
    "time.steps": 40,
}


def law_rows(context: Context, changes: dict) -> tuple[list[Row], list[str], dict[str, float]]:
    """Time one simulation from the authors' start under each law, and one gradient."""
    rows, notes, values = [], [], {}
    base = scene(SCENE, changes | {"bodies.ball.velocity": list(PAPER_START)})
    for law in LAWS:
        chosen = with_law(base, law)
        if chosen is None:
            notes.append(missing_law(law))
            continue
        problem = chosen.inverse_problem()
        problem.value_and_grad(problem.x0)
        with clock() as one:
            _, runs = problem.value(problem.x0)
        with clock() as both:
            problem.value_and_grad(problem.x0)
        (run,) = runs.values()
        values[f"law.seconds.{law}"], values[f"law.iterations.{law}"] = one.seconds, iterations(run)
        rows += [
            Row(f"{law}: one simulation from v = {PAPER_START} m/s [s]", f"{one.seconds:.2f}",
                f"fig10a.original.seconds.{law}"),
            Row(f"{law}: Newton iterations a step", f"{iterations(run):.2f}", f"fig10a.original.iterations.{law}"),
            Row(f"{law}: gradient after the simulation [s]", f"{both.seconds - one.seconds:.2f}",
                "fig10a.original.gradient"),
        ]  # fmt: skip
    return rows, notes, values


def described(throws: list[Throw | None]) -> tuple[str, str]:
    """Return distances and simulations to arrival of throws from several starts, as text."""
    distances = ", ".join("failed" if t is None else f"{t.distance:.0e}" for t in throws)
    counts = ", ".join("-" if t is None or (n := t.simulations_to(ARRIVED)) is None else str(n) for t in throws)
    return distances, counts


def rank(t: Throw) -> tuple[int, float]:
    """Return what makes a throw the best: it took the fewest simulations to arrive, or came nearest."""
    return t.simulations_to(ARRIVED) or 10**6, t.distance


def run(context: Context) -> Outcome:
    """Optimise every throw with both methods."""
    changes = SHORT if context.short else {}
    most = 3 if context.short else MOST
    rows, notes, values = law_rows(context, changes)
    base = scene(SCENE, changes)
    best: dict[int, Throw] = {}
    curves: dict[tuple[int, str], list[Throw]] = {}
    for n, starts in STARTS.items():
        for method in METHODS:
            found = [throw(base, method, "ball", v, most) for v in (starts[:1] if context.short else starts)]
            distances, counts = described(found)
            good = [t for t in found if t is not None]
            curves[n, method] = good
            rows += [
                Row(f"{BOUNCES[n]}, {NAMES[method]}: distance at the end from {len(found)} start(s) [m]", distances,
                    f"fig10a.original.distance.{n}" if n else None),
                Row(f"{BOUNCES[n]}, {NAMES[method]}: simulations to {ARRIVED:g} m", counts, f"fig10a.simulations.{n}"),
            ]  # fmt: skip
            for t in good:
                if t.bounces == n or context.short:
                    best[n] = min((best.get(n, t), t), key=rank)
    values["seconds"], values["optimisation"], values["simulations"] = {}, {}, {}
    for n, t in best.items():
        values["seconds"][n], values["optimisation"][n] = t.simulation, t.seconds_to(ARRIVED)
        values["simulations"][n] = t.simulations_to(ARRIVED) or t.values.size
        values[f"velocity.{n}"] = t.parameters.tolist()
        values[f"distance.{n}"] = t.distance
        rows += [
            Row(f"{BOUNCES[n]}: velocity of the best [m/s]", f"({', '.join(f'{v:.4f}' for v in t.parameters)})",
                f"fig10a.original.velocity.{n}"),
            Row(f"{BOUNCES[n]}: Phi/Phi_0 of the best ({NAMES[t.method]})", f"{t.reduction:.0e}", "fig10a.reduction"),
            Row(f"{BOUNCES[n]}: one simulation [s]", f"{t.simulation:.2f}", f"fig10a.seconds.{n}"),
            Row(f"{BOUNCES[n]}: optimisation of the best to {ARRIVED:g} m [s]", f"{t.seconds_to(ARRIVED):.1f}",
                f"fig10a.optimisation.{n}"),
        ]  # fmt: skip
    for n in (1, 2):
        smooth = throw(apply_overrides(base, SMOOTH), "gauss-newton", "ball", STARTS[n][0], most)
        if smooth is not None:
            arrived = smooth.simulations_to(ARRIVED)
            rows.append(
                Row(f"{BOUNCES[n]}, Gauss-Newton, smooth onset of 1 mm and tanh friction: distance [m], simulations to "
                    f"{ARRIVED:g} m, bounces", f"{smooth.distance:.0e}, {arrived or '-'}, {smooth.bounces}")
            )  # fmt: skip
    scans = {n: scan(t, 3 if context.short else SCAN) for n, t in best.items() if n}
    name = "fig10a.png"
    draw(context, name, best, curves, scans)
    notes.append(noted())
    caption = "Throws over 0, 1 and 2 bounces; distance over simulations, all starts; throws around the solutions."
    return Outcome(tuple(rows), {name: caption}, tuple(dict.fromkeys(notes)), values)


def noted() -> str:
    """Return what was bounded and chosen."""
    starts = "; ".join(f"{BOUNCES[n]} {', '.join(map(str, s))}" for n, s in STARTS.items())
    return (
        f"Bounded: at most {MOST} simulations an optimisation, where a line search that has begun is finished. Starts "
        f"[m/s]: {starts}. A dash: not within the limit. A number of simulations counts trial steps; a step that is "
        "accepted has its derivatives besides. The best is the one with the fewest simulations. The pictures below "
        f"show the distance around the solutions in steps of {1e3 * FINE:g} mm/s: kinks and dents where a landing "
        "moves to another step. A descent ends in a dent or comes through to the solution; inside a stretch without "
        "a kink it arrives at round-off."
    )


def scan(found: Throw, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets of v_z from a solution [m/s] and the distances there [m]."""
    offsets = FINE * (np.arange(n) - n // 2)
    out = []
    for offset in offsets:
        x = found.problem.design.inverse(found.parameters + np.array([0.0, 0.0, offset]))
        out.append(np.sqrt(found.problem.value(x)[0]))
    return offsets, np.array(out)


def draw(context: Context, name: str, best: dict[int, Throw], curves: dict, scans: dict) -> None:
    """Draw paths, convergence and scans."""
    with figure(context.image(name), 8.2, 6.4) as drawn:
        (left, right), lower = drawn.subplots(2, 2)
        for n, t in best.items():
            left.plot(t.path[:, 0], t.path[:, 2], f"C{n}", label=BOUNCES[n])
        left.axhline(FLOOR, color="k", lw=1.0)
        left.add_patch(Circle((0, 0), RADIUS, fill=False, color="0.6"))
        left.add_patch(Circle((0.1, -0.025), RADIUS, fill=False, color="0.6", ls="--"))
        left.plot(0.1, -0.025, "k*", ms=8, zorder=5)
        left.set(xlabel="x [m]", ylabel="z [m]", title="centre of the ball", aspect="equal", xlim=(-0.03, 0.16))
        left.legend(loc="upper right")
        for (n, method), throws in curves.items():
            for k, t in enumerate(throws):
                right.semilogy(
                    np.arange(1, t.best.size + 1), np.maximum(np.sqrt(t.best), 1e-17), f"C{n}",
                    ls="-" if method == "l-bfgs-b" else "--", lw=1.0,
                    label=f"{BOUNCES[n]}, {NAMES[method]}" if k == 0 else None,
                )  # fmt: skip
        right.axhline(ARRIVED, color="k", lw=0.6, ls=":")
        right.set(xlabel="simulations", ylabel="distance at the end [m]", title="best so far")
        right.legend(fontsize=6.5)
        for panel, (n, (offsets, distances)) in zip(lower, scans.items(), strict=False):
            panel.plot(1e3 * offsets, 1e3 * distances, f"C{n}.-", ms=3, lw=0.8)
            panel.set(xlabel="$v_z$ from the solution [mm/s]", ylabel="distance [mm]", title=BOUNCES[n],
                      ylim=(0, None))  # fmt: skip
        for panel in lower[len(scans) :]:
            panel.set_axis_off()


ENTRY = Entry(
    "fig10a",
    "Fig. 10a: a ball thrown to a point over 0, 1 and 2 bounces",
    "Find the velocity with which a spinning soft ball is at a point after 0.25 s.",
    run,
)
