"""Fig. 6: energies of a bouncing cube, without damping and with five dampings."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import SubFigure

from add.contact.restitution import clipped_restitution_from_damping, restitution_from_damping
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from tests.support.rigid_cases import Bounce, bouncing_cube

#: omega dt of the impact: how well steps resolve it.
RESOLUTION = 0.3
#: Damping ratios of the cube on four corners.
RATIOS = (0.0, 0.01, 0.03, 0.1, 0.3)
DT = 1.0 / 60.0
#: Over which the damping of the tilted cube's corners sets in [m]: at once, and where it may pull, a step failed.
RAMP = 0.02
#: Eq. 22 knows no gravity, which matters in slow impacts: it is looked for in a contact so many times faster, with
#: steps so many times finer.
FASTER, FINER = 8, 32


def total(case: Bounce) -> np.ndarray:
    """Return the sum of the energies, over that at the start."""
    energy = case.kinetic + case.gravity + case.contact
    return np.asarray(energy / energy[0])


def left(case: Bounce, bounce: int = 1) -> float:
    """Return the energy at the apex after a bounce, over that at the start; NaN if the cube did not get there."""
    return float(case.apexes[bounce]) if len(case.apexes) > bounce else float("nan")


def undamped(duration: float) -> dict[str, Bounce]:
    """Drop the cube without damping, with both integrators, flat and tilted."""
    return {
        "BDF2": bouncing_cube(RESOLUTION, DT, duration),
        "BDF2, tilted": bouncing_cube(RESOLUTION, DT, duration, tilted=True),
        "BDF2, half the step": bouncing_cube(RESOLUTION / 2, DT / 2, duration),
        "BDF1": bouncing_cube(RESOLUTION, DT, duration, order=1),
    }


def damped(ratio: float, duration: float) -> dict[str, Bounce]:
    """Drop the cube with a damping: flat, in contact that may pull and in contact that may not, and tilted."""
    fast = {"omega_dt": RESOLUTION * FASTER / FINER, "dt": DT / FINER, "duration": min(duration, 1.5)}
    fine = {**fast, "damping_ratio": ratio}
    return {
        "flat": bouncing_cube(RESOLUTION, DT, duration, damping_ratio=ratio, adhesive_damping=True),
        "tilted": bouncing_cube(RESOLUTION, DT, duration, damping_ratio=ratio, ramp=RAMP, tilted=True),
        "fine": bouncing_cube(**fine, adhesive_damping=True),
        "fine, clipped": bouncing_cube(**fine),
    }


def run(context: Context) -> Outcome:
    """Drop the cube."""
    duration = 2.0 if context.short else 6.0
    plain = undamped(duration)
    rows, values = [], {}
    for label, case in plain.items():
        for bounce in (1, 3):
            if len(case.apexes) > bounce:
                values[f"{label}.{bounce}"] = left(case, bounce)
                published = "fig6.energy" if label == "BDF2" else None
                rows.append(
                    Row(f"{label}: energy left after {bounce} bounce{'s' * (bounce > 1)}",
                        f"{left(case, bounce):.4f}", published)
                )  # fmt: skip
    cases = {ratio: damped(ratio, duration) for ratio in RATIOS}
    omega = RESOLUTION / DT
    for ratio, found in cases.items():
        stiffness, damping = 0.25 * omega**2, 0.5 * ratio * omega
        by_22 = restitution_from_damping(damping, stiffness, 1.0, 4) ** 2
        clipped = clipped_restitution_from_damping(damping, stiffness, 1.0, 4) ** 2
        name = f"k_d = {damping:.3g} N s/m"
        for key, case in found.items():
            values[f"{ratio:g}.{key}"] = left(case)
        values[f"{ratio:g}.eq22"], values[f"{ratio:g}.clipped"] = by_22, clipped
        rows += [
            Row(f"{name}, flat: apex ratio; where impacts are {FASTER} times as fast; Eq. 22",
                f"{left(found['flat']):.3f}; {left(found['fine']):.3f}; {by_22:.3f}"),
            Row(f"{name}, tilted: energy left after 1 bounce", f"{left(found['tilted']):.3f}"),
            Row(f"{name}, flat, may not pull: apex ratio where impacts are {FASTER} times as fast; its formula",
                f"{left(found['fine, clipped']):.3f}; {clipped:.3f}"),
        ]  # fmt: skip
    name = "fig06.png"
    with figure(context.image(name), 8.2, 5.8) as drawn:
        upper, lower = drawn.subfigures(2, 1)
        draw_undamped(upper, plain)
        draw_damped(lower, cases)
    notes = (
        f"A rigid cube of 1 m and 1 kg falls 1 m, without friction; one step is {RESOLUTION:g} of 1/omega, omega = "
        "sqrt(4 k_n/m) that of the cube on four corners. The step of 1/60 s is the paper's; its stiffness and its "
        "dampings are not given. [Rigid bodies](rigid-validation.md) has the energies over the step and the "
        "stiffness.",
        f"The five k_d are those of a corner, with damping ratios of {', '.join(f'{r:g}' for r in RATIOS)} on four. "
        "Eq. 22 gives the ratio of the speeds, e; that of the apexes above the height at which the cube touches is "
        'e^2. It is that of contact that may pull while the bodies part (`"adhesive_damping": true`), of an impact '
        "without gravity, on all corners at once. At this stiffness the cube sinks 0.25 m deep, gravity prolongs the "
        "impact, and more is lost than Eq. 22 says; the second number has impacts "
        f"{FASTER} times as fast (the same damping ratio, {FASTER**2} times k_n, 1/{FINER} of the step). The tilted "
        "cube lands on one corner, which bears less of its mass, and keeps part of the energy in its spin: Eq. 22 has "
        f"no value for it. Its contact may not pull, and its damping sets in over {RAMP:g} m: with contact that may "
        "pull and a damping that sets in at once, a step of the tilted cube failed.",
    )
    caption = "Energies of the cube without damping, for both integrators; below, their sum with five dampings."
    return Outcome(tuple(rows), {name: caption}, notes, values)


def draw_undamped(drawn: SubFigure, cases: dict[str, Bounce]) -> None:
    """Draw the parts of the energy, and its sum for both integrators."""
    parts, sums = drawn.subplots(1, 2, width_ratios=(1.5, 1))
    shown = cases["BDF2"]
    for part, energy in (("kinetic", shown.kinetic), ("gravity", shown.gravity), ("contact", shown.contact)):
        parts.plot(shown.t, energy, lw=0.9, label=part)
    parts.plot(shown.t, shown.kinetic + shown.gravity + shown.contact, "k", label="sum")
    parts.set(xlabel="t [s]", ylabel="energy [J]", title="without damping, BDF2, dt = 1/60 s", ylim=(-4, None))
    parts.legend(ncols=4, loc="lower center")
    for label, case in cases.items():
        sums.plot(case.t, total(case), label=label)
    sums.set(xlabel="t [s]", ylabel="total energy / initial", ylim=(0, 1.15))
    sums.legend()


def draw_damped(drawn: SubFigure, cases: dict[float, dict[str, Bounce]]) -> None:
    """Draw the sum of the energies for every damping, flat and tilted, and Eq. 22's after each bounce of the first."""
    for panel, way in zip(drawn.subplots(1, 2, sharey=True), ("flat", "tilted"), strict=True):
        for k, (ratio, found) in enumerate(cases.items()):
            omega = RESOLUTION / DT
            damping = 0.5 * ratio * omega
            panel.plot(found[way].t, total(found[way]), f"C{k}", lw=1.0, label=f"$k_d$ = {damping:.3g} N s/m")
            if way == "flat":
                left_by_22 = restitution_from_damping(damping, 0.25 * omega**2, 1.0, 4) ** 2
                panel.axhline(left_by_22, color=f"C{k}", lw=0.7, ls=":")
        panel.set(xlabel="t [s]", title=f"{way}, BDF2, dt = 1/60 s" + ("; dotted: Eq. 22" if way == "flat" else ""))
    drawn.axes[0].set_ylabel("total energy / initial")
    drawn.axes[0].set_ylim(-0.05, 1.4)
    drawn.axes[1].legend(ncols=3, loc="upper center")


ENTRY = Entry(
    "fig6",
    "Fig. 6: energies of a bouncing cube",
    "What the integrator takes from a cube that bounces without any damping, and what five dampings of the contact "
    "take, beside the paper's Eq. 22.",
    run,
)
