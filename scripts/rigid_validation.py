"""Rigid bodies against independent answers: tumbling, linkages, rolling, inclines, restitution, bounces, collisions.

Writes docs/studies/rigid-validation.md and docs/studies/images/rigid_*.png. Run it as
``python -m scripts.rigid_validation`` (three minutes). The cases are in `rigid_cases.py`; tests/validation checks them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from add.contact.restitution import (
    clipped_damping_from_restitution,
    clipped_restitution_from_damping,
    damping_from_restitution,
    restitution_from_damping,
)
from tests.support.rigid_cases import (
    BROAD,
    NEAR_MIDDLE,
    G,
    Tumble,
    angle_errors,
    bouncing_cube,
    box_on_incline,
    collision,
    euler_equations,
    four_bars,
    four_bars_answer,
    largest_error,
    pendulum,
    pendulum_answer,
    restitution,
    slide_to_roll,
    squeezer,
    tumble,
    tumble_period,
)

ROOT = Path(__file__).resolve().parents[1]

#: Andrews' squeezer at 0.03 s: test set for initial value problem solvers (CWI, Bari).
SQUEEZER_ANGLES = (15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948,
                   0.5244099658805304, 0.5347301163226948, 1.048080741042263)  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def tumbling(images: Path, quick: bool) -> str:
    def error(found: Tumble, rates: Sequence[float]) -> float:
        return float(np.abs(found.rates - euler_equations(rates, found.t)).max())

    rows = []
    periods = 1 if quick else 10
    duration = periods * tumble_period(BROAD)
    for order, steps in ((2, (0.02, 0.01, 0.005, 0.0025)), (1, (0.004, 0.002, 0.001))):
        for dt in steps[-2:] if quick else steps:
            span = duration if order == 2 else 6.0
            n = round(span / dt)
            found = tumble(dt, n, BROAD, order, every=max(1, n // 400))
            rows.append((f"BDF{order}", f"{span:.0f} s", dt, f"{error(found, BROAD):.2e}", f"{found.drift:.2e}",
                         found.changes))  # fmt: skip
    dt = 0.005 if quick else 0.0025
    near = tumble(dt, round(80.0 / dt), NEAR_MIDDLE, every=round(0.1 / dt))
    exact = euler_equations(NEAR_MIDDLE, near.t)
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, colour in enumerate(("C0", "C3", "C2")):
        left.plot(near.t, near.rates[:, k], color=colour, label=f"$\\omega_{k + 1}$")
        left.plot(near.t[::20], exact[::20, k], ".", color=colour, ms=3)
    left.set(xlabel="t [s]", ylabel="rate in body axes [rad/s]", title=f"two turns, dt = {dt:g} s (dots: exact)")
    left.legend(fontsize=8, loc="center right")
    for order, mark in (("BDF2", "o-"), ("BDF1", "s-")):
        chosen = [row for row in rows if row[0] == order]
        right.loglog([row[2] for row in chosen], [float(row[3]) for row in chosen], mark, ms=4,
                     label=f"{order}, rates, {chosen[0][1]}")  # fmt: skip
        right.loglog([row[2] for row in chosen], [float(row[4]) for row in chosen], f"{mark[0]}--", ms=4, mfc="none",
                     label=f"{order}, angular momentum")  # fmt: skip
    right.set(xlabel="dt [s]", title="largest error [rad/s], drift [-]")
    right.legend(fontsize=7)
    right.grid(alpha=0.3)
    save(figure, images / "rigid_tumbling.png")
    head = (
        "order",
        "duration",
        "dt [s]",
        "largest error of the rates [rad/s]",
        "drift of the angular momentum",
        "changes of chart",
    )
    return f"""## Free tumbling

A body with moments 1, 2, 3 kg m^2, free of torques, starts with rates {BROAD} rad/s in its own axes; Euler's
equations (DOP853 to 1e-13) give the answer. One period is {tumble_period(BROAD):.2f} s; ten turn the rotation vector
through its chart again and again.

{table(head, rows)}

Orders 2 and 1, in the rates and in the drift of the angular momentum. Near the middle axis, from {NEAR_MIDDLE} rad/s
(period {tumble_period(NEAR_MIDDLE):.4f} s, the Dzhanibekov effect), the largest error over 80 s at dt = {dt:g} s is
{error(near, NEAR_MIDDLE):.3f} rad/s, in the middle of a turn: near the middle axis
every error grows like exp(t sqrt(1/3)).

![rates and errors](images/rigid_tumbling.png)
"""


def linkages(quick: bool) -> str:
    rows = []
    for dt, k in ((0.005, 1e8), (0.0025, 1e8), (0.00125, 1e8), (0.00125, 1e6), (0.00125, 1e5), (0.00125, 1e4)):
        path = pendulum(dt, 10.0, k)
        rows.append(("A01 pendulum, 10 s", dt, f"{k:g}", f"{largest_error(path, pendulum_answer(path.t)):.2e} m"))
    cases = [(2, 0.002, 1e11), (2, 0.001, 1e11), (2, 0.0005, 1e11), (2, 0.001, 1e9), (2, 0.001, 1e7)]
    for n, dt, k in cases[1:2] if quick else cases:
        path = four_bars(n, dt, 10.0, k)
        rows.append((f"A02 {n} four-bars, 10 s", dt, f"{k:g}",
                     f"{largest_error(path, four_bars_answer(n, path.t)):.2e} m"))  # fmt: skip
    for dt, k in ((5e-6, 1e8), (5e-6, 1e9), (5e-6, 1e10), (2.5e-6, 1e10), (2.5e-6, 1e11)):
        angles, _ = squeezer(dt, 0.03, k)
        error = np.abs(angle_errors(angles, SQUEEZER_ANGLES)).max()
        rows.append(("A03 squeezer, 0.03 s", dt, f"{k:g}", f"{error:.2e} rad"))
    return f"""## Linkages with stiff joints

IFToMM benchmarks; hinges are stiff springs (E = k/2 |gap|^2) without damping, BDF2. The first is a point mass on a rod;
the second a row of parallel four-bar linkages that passes, again and again, the position in which all rods lie in one
line and could buckle; the third Andrews' squeezer, whose crank turns by 15.9 rad in 0.03 s, against the published
solution. Largest errors over the whole run (A03: at its end):

{table(("case", "dt [s]", "k [N/m]", "largest error"), rows)}

Errors fall with the step and with the stiffness down to where the other takes over. In the singular position of A02 a
gap of size d lets the angle stray by the root of d, which is why it wants the stiffest joints. Stiff joints cost no
steps here, but round-off: k times that of the coordinates must stay below Newton's tolerance.
"""


def friction(images: Path, quick: bool) -> str:
    steps = (0.004, 0.002) if quick else (0.004, 0.002, 0.001, 0.0005)
    rows = []
    for order in (1, 2):
        for dt in steps:
            run = slide_to_roll(dt, order=order)
            place, speed = (np.abs(x).max() for x in (run.place - run.exact_place, run.speed - run.exact_speed))
            rows.append((f"BDF{order}", dt, f"{place:.2e}", f"{speed:.1e}", f"{run.speed[-1] / 2.0 - 5.0 / 7.0:+.0e}"))
    run = slide_to_roll(0.004)
    figure = Figure(figsize=(5.5, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(run.t, run.speed, label="speed of the centre")
    axes.plot(run.t, run.rate * 0.1, label="rate times radius")
    axes.plot(run.t, run.exact_speed, "k:", lw=1, label="exact")
    axes.axvline(run.rolls_at, color="k", lw=0.5)
    axes.set(xlabel="t [s]", ylabel="[m/s]", title="a ball slides, then rolls")
    axes.legend(fontsize=8)
    save(figure, images / "rigid_rolling.png")
    inclines = []
    for angle, mu in ((10, 0.1), (20, 0.2), (20, 0.4), (30, 0.4), (30, 0.6)):
        acceleration, speed = box_on_incline(angle, mu)
        exact = max(0.0, G * (np.sin(np.radians(angle)) - mu * np.cos(np.radians(angle))))
        inclines.append((f"{angle} deg", mu, f"{acceleration:.9f}", f"{exact:.9f}", f"{speed:.2e}"))
    head = ("incline", "friction", "acceleration [m/s^2]", "Coulomb [m/s^2]", "speed after 1 s [m/s]")
    return f"""## Sliding, rolling, sticking

A ball (1 kg, radius 0.1 m, friction 0.2) slides at 2 m/s without spin and rolls from t = {run.rolls_at:.4f} s on at 5/7
of its speed:

{table(("order", "dt [s]", "largest error of the place [m]", "of the speed [m/s]", "final speed/2 - 5/7"), rows)}

The error of the place is the integrator's for a constant force (mu g dt t/2 and 3/4 mu g dt^2), that of the speed is
how early linear friction with k_t = 1e4 N s/m begins to stick (2e-4 m/s).

![slide to roll](images/rigid_rolling.png)

A box stands on four corners on an incline; friction loads the downhill corners more than the uphill ones:

{table(head, inclines)}

What sticks creeps at m g sin / (sum k_t), as linear friction must (at 20 degrees and 0.4, 30 degrees and 0.6 the uphill
corners are at their limit already and the others creep faster); what slides does so with Coulomb's acceleration to ten
digits.
"""


def impacts(images: Path, quick: bool) -> str:
    k_n, mass, rows = 2000.0, 0.5, []
    for e in (0.1, 0.3, 0.5, 0.7, 0.9, 0.95):
        wanted, eq22 = clipped_damping_from_restitution(e, k_n, mass), damping_from_restitution(e, k_n, mass)
        rows.append((e, f"{restitution(wanted):.4f}", f"{restitution(eq22):.4f}",
                     f"{clipped_restitution_from_damping(eq22, k_n, mass):.4f}",
                     f"{restitution(eq22, adhesive_damping=True):.4f}"))  # fmt: skip
    ratios = np.linspace(0.01, 0.9, 7 if quick else 15)
    critical = 2.0 * np.sqrt(k_n * mass)
    fine = np.linspace(0.0, 0.95, 100) * critical
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.5))
    for formula, style, label in (
        (restitution_from_damping, "C1--", "Eq. 22 (may pull)"),
        (clipped_restitution_from_damping, "C0", "clipped"),
    ):
        left.plot(fine / critical, [formula(d, k_n, mass) for d in fine], style, label=label)
    left.plot(ratios, [restitution(z * critical) for z in ratios], "k.", label="simulated")
    left.set(xlabel="damping ratio", ylabel="restitution")
    left.legend(fontsize=8)
    bounces = []
    for w in (0.6, 0.3, 0.2, 0.1):
        two, one = bouncing_cube(w).apexes, bouncing_cube(w, order=1).apexes
        tilted = bouncing_cube(w, tilted=True).apexes
        bounces.append((w, *(f"{x:.4f}" for x in (two[1], two[3], tilted[3], one[1]))))
    finer = []
    for refined in (1, 2, 4, 8, 16):
        two, tilted = (bouncing_cube(0.3 / refined, 1.0 / 60.0 / refined, tilted=x).apexes for x in (False, True))
        finer.append((f"1/{60 * refined}", 0.3 / refined, f"{two[4]:.5f}", f"{tilted[4]:.5f}"))
    shown = bouncing_cube(0.3)
    right.plot(shown.t, shown.kinetic, lw=0.9, label="kinetic")
    right.plot(shown.t, shown.gravity, lw=0.9, label="gravity")
    right.plot(shown.t, shown.contact, lw=0.9, label="contact")
    right.plot(shown.t, shown.kinetic + shown.gravity + shown.contact, "k", label="sum")
    other = bouncing_cube(0.3, order=1)
    right.plot(other.t, other.kinetic + other.gravity + other.contact, "k:", label="sum, BDF1")
    right.set(xlabel="t [s]", ylabel="[J]", title="bouncing cube, dt = 1/60 s, $\\omega\\,dt$ = 0.3", ylim=(-5, 11))
    right.legend(fontsize=7, ncols=5, loc="lower center")
    save(figure, images / "rigid_impacts.png")
    found = [(f"{dt:g}", *(f"{getattr(collision(dt, order=o), key):.1e}" for key, o in
              (("momentum", 2), ("angular", 2), ("angular", 1)))) for dt in (0.002, 0.001, 0.0005)]  # fmt: skip
    head = (
        "wanted e",
        "with the damping of the clipped formula",
        "with that of Eq. 22",
        "clipped formula for that",
        "Eq. 22, contact that may pull",
    )
    return f"""## Impacts

**Restitution.** A damped contact returns a share e of the speed. ADD's Eq. 22 gives the damping for a wanted e if the
contact may pull while the bodies part (`"adhesive_damping": true`). By default contacts of `add` do not, let go
earlier and return more; for them there is another formula (`add.contact.restitution`). A ball on a floor, 400 steps
an impact:

{table(head, rows)}

With the right formula for each kind of contact the wanted restitution comes out within 1 % from 0.1 to 0.95 (most of
the rest is the step); with Eq. 22 and contacts that do not pull, within 1 % only from 0.8 on.

**Energy** (ADD Fig. 6). A cube of 1 m and 1 kg falls 1 m, without damping or friction, BDF2 at 1/60 s. What an impact
costs depends on how well steps resolve it, omega dt with omega = sqrt(4 k_n / m):

{table(("omega dt", "flat: left after 1 bounce", "after 3", "tilted: after 3", "BDF1, flat: after 1"), bounces)}

At one stiffness (omega = 18 1/s) over the step:

{table(("dt [s]", "omega dt", "flat: left after 4 bounces", "tilted"), finer)}

Where a step is longer than the impact (omega dt above 3) a bounce is an accident of its phase: most of the energy goes,
and now and then a bounce returns more than it got (up to 14 % at omega dt = 30). Use damping there.

![restitution and energies](images/rigid_impacts.png)

**Momentum.** Two boxes of different mass collide off-centre in free space, with damping and friction. Momentum is kept
to round-off at any step; angular momentum about a fixed point drifts with the integrator's order:

{table(("dt [s]", "momentum, BDF2", "angular momentum, BDF2", "BDF1"), found)}
"""


GRADIENTS = """## Gradients of runs

`tests/claims/derivatives/test_rigid_runs.py` takes every combination of

- BDF1, BDF2, BDF2 with the straight-line start,
- a box on shapes of the world (one of them moving), a box and a capsule in the air, a soft block on a rigid plate, a
  net of particles on a rigid ball, a box on a plate with a given motion,
- no, linear and tanh friction,

and a driven linkage with couplings (hinges with motor, stops, friction and torque, slider, ball, spring, two
cables, forces). Bodies have off-centre masses and products of inertia, all runs pass a change of chart, impacts,
partings and, with linear friction, changes between stick and slip; the cables go taut and slack. In each, the gradient
of a rough function of all states by **all** parameters (masses, inertias, centres, poses, velocities, contact,
signals ...):

- reverse and forward mode agree to 1e-10 of the gradient's norm;
- central differences of runs with replayed decisions agree to 1e-6 of the norm for each parameter;
- the Taylor remainder is of second order (rates within 1.9 and 2.1);
- a checkpointed sweep gives the same bits.

What such a gradient says about the physics is another question: see [Two balls](two_balls.md).
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "studies", help="folder to write into")
    parser.add_argument("--quick", action="store_true", help="fewer and larger steps")
    arguments = parser.parse_args()
    images, quick = arguments.docs / "images", arguments.quick
    parts = [
        "# Rigid bodies against known answers\n\nWritten by `scripts/rigid_validation.py`; do not edit.\n",
        tumbling(images, quick),
        linkages(quick),
        friction(images, quick),
        impacts(images, quick),
        GRADIENTS,
    ]
    arguments.docs.mkdir(parents=True, exist_ok=True)
    (arguments.docs / "rigid-validation.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
