"""Fig. 6: energies of a bouncing cube."""

from __future__ import annotations

from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.rigid_cases import bouncing_cube

#: omega dt of the impact: how well steps resolve it.
RESOLUTION = 0.3


def run(context: Context) -> Outcome:
    """Drop the cube with both integrators, flat and tilted."""
    duration = 2.0 if context.short else 6.0
    cases = {
        "BDF2": bouncing_cube(RESOLUTION, duration=duration),
        "BDF2, tilted": bouncing_cube(RESOLUTION, duration=duration, tilted=True),
        "BDF2, half the step": bouncing_cube(RESOLUTION / 2, 1.0 / 120.0, duration),
        "BDF1": bouncing_cube(RESOLUTION, duration=duration, order=1),
    }
    rows, values = [], {}
    for label, case in cases.items():
        for bounce in (1, 3):
            if len(case.apexes) > bounce:
                values[f"{label}.{bounce}"] = float(case.apexes[bounce])
                published = "fig6.energy" if label == "BDF2" else None
                rows.append(
                    Row(f"{label}: energy left after {bounce} bounce{'s' * (bounce > 1)}",
                        f"{case.apexes[bounce]:.4f}", published)
                )  # fmt: skip
    name = "fig06.png"
    with figure(context.image(name), 8.2, 3.0) as drawn:
        left, right = drawn.subplots(1, 2, width_ratios=(1.5, 1))
        shown = cases["BDF2"]
        for part, values_of in (("kinetic", shown.kinetic), ("gravity", shown.gravity), ("contact", shown.contact)):
            left.plot(shown.t, values_of, lw=0.9, label=part)
        left.plot(shown.t, shown.kinetic + shown.gravity + shown.contact, "k", label="sum")
        left.set(xlabel="t [s]", ylabel="energy [J]", title="BDF2, dt = 1/60 s", ylim=(-4, None))
        left.legend(ncols=4, loc="lower center")
        for label, case in cases.items():
            total = case.kinetic + case.gravity + case.contact
            right.plot(case.t, total / total[0], label=label)
        right.set(xlabel="t [s]", ylabel="total energy / initial", ylim=(0, 1.15))
        right.legend()
    notes = (
        f"A rigid cube of 1 m and 1 kg falls 1 m, without damping or friction; one step is {RESOLUTION:g} of 1/omega, "
        "omega = sqrt(4 k_n/m) that of the cube on four corners. The step of 1/60 s is the paper's; its stiffness is "
        "not given. [Rigid bodies](rigid-validation.md) has the energies over the step and the stiffness.",
    )
    return Outcome(tuple(rows), {name: "Energies of the cube, and their sum for both integrators."}, notes, values)


ENTRY = Entry(
    "fig6",
    "Fig. 6: energies of a bouncing cube",
    "What the integrator takes from a cube that bounces without any damping.",
    run,
)
