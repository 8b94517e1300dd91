"""Fig. 3: the distance from the target of the one-bounce throw over two components of the velocity."""

from __future__ import annotations

import numpy as np

from add.design import InverseProblem
from add.errors import SolverError
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import MESHES, Context, Entry, Outcome, Row
from scripts.reproduction.running import missing_law, scene, with_law

STIFFNESSES = (100.0, 1000.0)
LAWS = ("linear", "hybrid")
#: Middle of the paper's samples, and half the width of ours [m/s].
MIDDLE, HALF = (0.488, 0.172), (0.05, 0.08)
SAMPLES = 11
#: Of the scan along v_z in which single ripples can be seen [m/s].
FINE, SCAN = 1e-4, 21
SHORT = {
    "bodies.ball.mesh.file": str(MESHES / "ball_small.msh"),
    "bodies.ball.position": [0, 0, -0.022],
    "time.steps": 20,
}


def distance(problem: InverseProblem, velocity: tuple[float, float]) -> float:
    """Return how far from the target a throw with (v_x, 0, v_z) ends [m]; NaN where a run fails."""
    x = problem.design.inverse(np.array([velocity[0], 0.0, velocity[1]]))
    try:
        return float(np.sqrt(problem.value(x)[0]))
    except SolverError:
        return float("nan")


def scan(problem: InverseProblem, middle: tuple[float, float], n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return v_z, the objective along it and its derivative from the adjoint."""
    speeds = middle[1] + FINE * (np.arange(n) - n // 2)
    values, slopes = np.empty(n), np.empty(n)
    for k, v_z in enumerate(speeds):
        x = problem.design.inverse(np.array([middle[0], 0.0, v_z]))
        values[k], gradient = problem.value_and_grad(x)
        slopes[k] = gradient[2] / problem.design.pushforward(x, np.ones(3))[2]
    return speeds, values, slopes


def roughness(values: np.ndarray) -> float:
    """Return the largest departure of a scan of the objective from a parabola, over the range of the scan."""
    s = np.linspace(-1.0, 1.0, values.size)
    rest = values - np.polyval(np.polyfit(s, values, 2), s)
    return float(np.abs(rest).max() / np.ptp(values))


def run(context: Context) -> Outcome:
    """Sample the planes and the fine scans."""
    n, fine = (2, 5) if context.short else (SAMPLES, SCAN)
    v_x, v_z = (m + h * np.linspace(-1.0, 1.0, n) for m, h in zip(MIDDLE, HALF, strict=True))
    planes, scans, notes = {}, {}, []
    for law in LAWS:
        for stiffness in STIFFNESSES:
            base = scene("fig10a_ball_to_point", {"contact.stiffness": stiffness} | (SHORT if context.short else {}))
            chosen = with_law(base, law)
            if chosen is None:
                notes.append(missing_law(law))
                break
            problem = chosen.inverse_problem()
            planes[law, stiffness] = np.array([[distance(problem, (a, b)) for a in v_x] for b in v_z])
            scans[law, stiffness] = scan(problem, MIDDLE, fine)
    rows, values = [], {}
    for (law, stiffness), plane in planes.items():
        low = np.unravel_index(np.nanargmin(plane), plane.shape)
        _, along, _ = scans[law, stiffness]
        rough = roughness(along)
        values[f"{law}.{stiffness:g}.rough"], values[f"{law}.{stiffness:g}.lowest"] = rough, float(plane[low])
        rows += [
            Row(f"{law}, k_n = {stiffness:g}: lowest distance on the grid [m], at (v_x, v_z)",
                f"{plane[low]:.1e} at ({v_x[low[1]]:.3f}, {v_z[low[0]]:.3f})"),
            Row(f"{law}, k_n = {stiffness:g}: departure of the scan from a parabola, over its range",
                f"{rough:.1%}"),
        ]  # fmt: skip
    name = "fig03.png"
    with figure(context.image(name), 8.2, 3.1 * len({law for law, _ in planes}) + 2.4) as drawn:
        upper, lower = drawn.subfigures(2, 1, height_ratios=(3.1 * len({law for law, _ in planes}), 2.4))
        panels = upper.subplots(len({law for law, _ in planes}), 2, sharex=True, sharey=True, squeeze=False)
        low = min(float(np.nanmin(p)) for p in planes.values())
        high = max(float(np.nanmax(p)) for p in planes.values())
        for panel, ((law, stiffness), plane) in zip(panels.flat, planes.items(), strict=True):
            shading = panel.pcolormesh(v_x, v_z, 1e3 * plane, vmin=1e3 * low, vmax=1e3 * high, cmap="viridis_r")
            if n > 2:
                panel.contour(v_x, v_z, 1e3 * plane, levels=8, colors="k", linewidths=0.4)
            panel.set_title(f"{law}, $k_n$ = {stiffness:g} N/m")
        for panel in panels[-1]:
            panel.set_xlabel("$v_x$ [m/s]")
        for panel in panels[:, 0]:
            panel.set_ylabel("$v_z$ [m/s]")
        upper.colorbar(shading, ax=panels, label="distance at the end [mm]")
        for panel, (key, (speeds, along, slopes)) in zip(
            lower.subplots(1, len(scans), squeeze=False)[0], scans.items(), strict=True
        ):
            panel.plot(1e3 * (speeds - MIDDLE[1]), 1e6 * along, "C0.-", ms=3, lw=0.8)
            for s, value, slope in zip(speeds, along, slopes, strict=True):
                half = 0.35 * FINE
                panel.plot(1e3 * (np.array([s - half, s + half]) - MIDDLE[1]),
                           1e6 * (value + slope * np.array([-half, half])), "C3", lw=1.0)  # fmt: skip
            panel.set(title=f"{key[0]}, {key[1]:g}", xlabel="$v_z$ - 172 [mm/s]")
        lower.axes[0].set_ylabel("$\\Phi$ [mm$^2$]")
    notes.append(
        f"Bounded: {SAMPLES} x {SAMPLES} samples a plane, one simulation each. The scans below them have steps of "
        f"{FINE:g} m/s; red ticks are the exact derivatives, which follow the values. There are kinks where a step "
        "meets the floor at another place, and with hybrid friction jumps where a point sticks that slipped before: "
        "across these no derivative leads. [Landscapes](landscape.md) says what helps."
    )
    caption = "Distance from the target at the end over the velocity; below, the objective in steps of 0.1 mm/s."
    return Outcome(tuple(rows), {name: caption}, tuple(dict.fromkeys(notes)), values)


ENTRY = Entry(
    "fig3",
    "Fig. 3: landscape of the throw",
    "The objective of the throw with one bounce (Fig. 10a) over two components of the velocity, around the solution, "
    "with a soft and a stiff contact.",
    run,
)
