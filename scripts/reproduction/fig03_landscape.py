"""Fig. 3: the distance from the target over two components of the velocity, with minima of one and two bounces."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize

from add.errors import SolverError
from add.inverse import InverseProblem
from add.scene.build.built import BuiltScene
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import MESHES, Context, Entry, Outcome, Row
from scripts.reproduction.running import bounces, missing_law, scene, with_law

STIFFNESSES = (100.0, 1000.0)
LAWS = ("linear", "hybrid")
#: Middle of the paper's samples, the throw with one bounce [m/s].
MIDDLE = (0.488, 0.172)
#: Samples of v_x and of v_z [m/s]; that with two bounces is at v_z of 0.05 to 0.06.
V_X, V_Z = (0.42, 0.56, 8), (0.02, 0.26, 13)
#: Simulations of the search from a lowest sample to its minimum, and the size of its first steps [m/s].
SEARCH, REACH = 24, 0.01
#: How many of the lowest samples without a lower neighbour are searched from.
SEARCHED = 3
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


#: Place (v_x, v_z) [m/s], distance [m] and bounces.
Minimum = tuple[np.ndarray, float, int]


def lowest(plane: np.ndarray) -> list[tuple[int, int]]:
    """Return the samples that no neighbour is below, diagonals included, the lowest first."""
    padded = np.pad(np.where(np.isnan(plane), np.inf, plane), 1, constant_values=np.inf)
    around = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).min(axis=(2, 3))
    found = [(int(i), int(j)) for i, j in np.argwhere(plane <= around)]
    return sorted(found, key=lambda at: float(plane[at]))


def minimum(problem: InverseProblem, built: BuiltScene, start: tuple[float, float], most: int) -> Minimum:
    """Return place (v_x, v_z), distance [m] and bounces of a minimum near a sample, by Nelder and Mead's search.

    It needs no derivative: the landscape has kinks at the scale of its last steps.
    """
    simplex = np.array(start) + REACH * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    options = {"maxfev": most, "initial_simplex": simplex, "xatol": 1e-4, "fatol": 1e-6}
    found = minimize(
        lambda v: np.nan_to_num(distance(problem, v), nan=1.0), start, method="Nelder-Mead", options=options
    )
    x = problem.design.inverse(np.array([found.x[0], 0.0, found.x[1]]))
    _, runs = problem.value(x)
    (run,) = runs.values()
    return found.x, float(found.fun), bounces(built, run)


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
    """Sample the planes and the fine scans, and search the minima."""
    n_x, n_z, fine, most = (2, 2, 5, 6) if context.short else (V_X[2], V_Z[2], SCAN, SEARCH)
    v_x, v_z = np.linspace(*V_X[:2], n_x), np.linspace(*V_Z[:2], n_z)
    planes, scans, minima, notes = {}, {}, {}, []
    for law in LAWS:
        for stiffness in STIFFNESSES:
            base = scene("fig10a_ball_to_point", {"contact.stiffness": stiffness} | (SHORT if context.short else {}))
            chosen = with_law(base, law)
            if chosen is None:
                notes.append(missing_law(law))
                break
            problem, key = chosen.inverse_problem(), (law, stiffness)
            planes[key] = np.array([[distance(problem, (a, b)) for a in v_x] for b in v_z])
            scans[key] = scan(problem, MIDDLE, fine)
            starts = lowest(planes[key])[: 1 if context.short else SEARCHED]
            found = [minimum(problem, chosen.build(), (float(v_x[j]), float(v_z[i])), most) for i, j in starts]
            minima[key] = sorted(found, key=lambda item: -item[0][1])
    rows, values = [], {}
    for (law, stiffness), found in minima.items():
        rough = roughness(scans[law, stiffness][1])
        values[f"{law}.{stiffness:g}.rough"] = rough
        values[f"{law}.{stiffness:g}.lowest"] = min(value for _, value, _ in found)
        values[f"{law}.{stiffness:g}.minima"] = [
            {"velocity": place.tolist(), "distance": value, "bounces": count} for place, value, count in found
        ]
        for place, value, count in found:
            what = f"minimum with {count} bounce{'s' * (count != 1)}: distance [m] at (v_x, v_z) [m/s]"
            rows.append(Row(f"{law}, k_n = {stiffness:g}: {what}", f"{value:.1e} at ({place[0]:.4f}, {place[1]:.4f})"))
        rows.append(
            Row(f"{law}, k_n = {stiffness:g}: departure of the scan from a parabola, over its range", f"{rough:.1%}")
        )
    name = "fig03.png"
    draw(context, name, (v_x, v_z), planes, minima, scans)
    notes.append(
        f"Bounded: {V_X[2]} x {V_Z[2]} samples a plane, one simulation each, and from the {SEARCHED} lowest samples "
        f"that have no lower neighbour at most {SEARCH} simulations of Nelder and Mead's search, which may end in the "
        "same minimum or short of one, or leave the plane: with the soft contact, two bounces ask for a throw "
        "downwards. Dots: up to one bounce; squares: more. The scans below the planes have steps of "
        f"{FINE:g} m/s; red ticks are the exact derivatives, which follow the values. There are kinks where a step "
        "meets the floor at another place, and with hybrid friction jumps where a point sticks that slipped before: "
        "across these no derivative leads. [Landscapes](landscape.md) says what helps."
    )
    caption = "Distance from the target at the end over the velocity; below, the objective in steps of 0.1 mm/s."
    return Outcome(tuple(rows), {name: caption}, tuple(dict.fromkeys(notes)), values)


def draw(
    context: Context,
    name: str,
    axes: tuple[np.ndarray, np.ndarray],
    planes: Mapping[tuple[str, float], np.ndarray],
    minima: Mapping[tuple[str, float], list[Minimum]],
    scans: Mapping[tuple[str, float], tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> None:
    """Draw the planes with their minima, and the scans."""
    laws = len({law for law, _ in planes})
    with figure(context.image(name), 8.2, 3.4 * laws + 2.4) as drawn:
        upper, lower = drawn.subfigures(2, 1, height_ratios=(3.4 * laws, 2.4))
        panels = upper.subplots(laws, 2, sharex=True, sharey=True, squeeze=False)
        low = min(float(np.nanmin(p)) for p in planes.values())
        high = max(float(np.nanmax(p)) for p in planes.values())
        for panel, (key, plane) in zip(panels.flat, planes.items(), strict=True):
            shading = panel.pcolormesh(*axes, 1e3 * plane, vmin=1e3 * low, vmax=1e3 * high, cmap="viridis_r")
            if plane.shape[0] > 2:
                panel.contour(*axes, 1e3 * plane, levels=12, colors="k", linewidths=0.4)
            for place, _, count in minima[key]:
                panel.plot(*place, "C3o" if count < 2 else "C1s", ms=4)
            panel.set_title(f"{key[0]}, $k_n$ = {key[1]:g} N/m")
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


ENTRY = Entry(
    "fig3",
    "Fig. 3: landscape of the throw",
    "The objective of the throws of Fig. 10a over two components of the velocity, with a soft and a stiff contact: two "
    "local minima, of one and of two bounces, which shift with the stiffness.",
    run,
)
