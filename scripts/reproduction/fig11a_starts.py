"""Fig. 11a from many starts: the different throws that arrive, labelled by the order of their contacts."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.contact import BodyContact
from add.errors import SolverError
from add.inverse import LoggedEvaluation
from add.kernels.contact_pairs import ACTIVE, BITS, PAIR
from add.scene import Scene, apply_overrides
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.fig11a_wall import ARRIVED, SHORT
from scripts.reproduction.running import centre_path, scene

LAWS = ("linear", "tanh")
#: Velocities to start from are drawn evenly from this box [m/s].
LOW, HIGH = (0.5, 0.0, -1.0), (1.5, 1.5, 2.0)
COUNT, SEED, MOST = 64, 11, 16
#: Throws that end this near count as solutions; a descent goes on until it has arrived [m].
NEAR = 1e-3
#: Velocities of one solution differ by less, in each of their three numbers [m/s].
SAME = 0.03
#: Touching that is given up for less than this is one contact [s].
PAUSE = 5e-3
#: Every so many steps a path is kept.
EVERY = 7


class _Arrived(Exception):
    """The throw is near enough."""


def contact_order(built: BuiltScene, run: Trajectory) -> str:
    """Return the obstacles that a body touches over a run, in their order, such as "floor, wall, floor"."""
    names = list(built.scene.obstacles)
    (number,) = (k for k, term in enumerate(built.model.system.deciding) if isinstance(term, BodyContact))
    last, order = dict.fromkeys(names, -np.inf), []
    for t, record in zip(run.t[1:], run.records, strict=True):
        rows = record.decisions[number]
        touched = np.unique(rows[rows[:, BITS] & ACTIVE != 0, PAIR] % len(names))
        for name in (names[k] for k in touched):
            if t - last[name] > PAUSE:
                order.append(name)
            last[name] = t
    return ", ".join(order) or "no contact"


def solve(base: Scene, start: list[float], most: int) -> dict[str, Any] | None:
    """Optimise a throw with Gauss-Newton until it arrives; None if the first simulation fails."""
    changes = {"bodies.ball.velocity": start, "optimizer.method": "gauss-newton", "optimizer.max_evaluations": most}
    chosen = apply_overrides(base, changes)
    problem = chosen.inverse_problem()
    values: list[float] = []
    best = problem.x0

    def note(evaluation: LoggedEvaluation, better: bool) -> None:
        nonlocal best
        values.append(evaluation.value)
        if better:
            best = evaluation.x
        if evaluation.value <= ARRIVED**2:
            raise _Arrived

    try:
        problem.optimize(progress=note)
    except _Arrived:
        pass
    except SolverError:
        return None
    _, runs = problem.value(best)
    (run,), built = runs.values(), chosen.build()
    return {
        "start": start,
        "first": float(np.sqrt(values[0])),
        "distance": float(np.sqrt(min(values))),
        "simulations": len(values),
        "velocity": [round(float(v), 6) for v in problem.values(best)],
        "order": contact_order(built, run),
        "path": np.round(centre_path(built, run)[::EVERY], 4).tolist(),
    }


def solutions(found: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the throws that came near in groups of one solution each, the largest first."""
    groups: list[list[dict[str, Any]]] = []
    for one in sorted((f for f in found if f["distance"] <= NEAR), key=lambda f: f["velocity"]):
        for group in groups:
            near = np.abs(np.subtract(group[0]["velocity"], one["velocity"])).max() < SAME
            if near and group[0]["order"] == one["order"]:
                group.append(one)
                break
        else:
            groups.append([one])
    return sorted(groups, key=len, reverse=True)


def run(context: Context) -> Outcome:
    """Optimise from all starts under both laws."""
    drawn = np.random.default_rng(SEED).uniform(LOW, HIGH, (2 if context.short else COUNT, 3)).round(4).tolist()
    starts = dict(enumerate(drawn))
    tasks = context.tasks("fig11a_starts")
    if context.partial:
        starts = {k: start for k, start in starts.items() if {f"{law} {k}" for law in LAWS} <= tasks.known}
    most = 3 if context.short else MOST
    rows: list[Row] = []
    values: dict[str, Any] = {}
    kept: dict[str, list[dict[str, Any]]] = {}
    for law in LAWS:
        base = scene("fig11a_wall_throw", (SHORT if context.short else {}) | {"contact.friction_law": law})
        every = [tasks(f"{law} {k}", lambda b=base, s=s: solve(b, s, most)) for k, s in starts.items()]  # type: ignore[misc]
        found = kept[law] = [one for one in every if one is not None]
        arrived = [one for one in found if one["distance"] <= ARRIVED]
        groups = solutions(found)
        orders = {order: sum(len(g) for g in groups if g[0]["order"] == order) for order in
                  dict.fromkeys(g[0]["order"] for g in groups)}  # fmt: skip
        distances = np.array([one["distance"] for one in found])
        counts = [one["simulations"] for one in arrived]
        rows += [
            Row(f"{law}: starts whose throw ends within {NEAR:g} m, within {ARRIVED:g} m",
                f"{np.count_nonzero(distances <= NEAR)}, {len(arrived)} of {len(every)}"),
            Row(f"{law}: simulations to {ARRIVED:g} m, median", f"{np.median(counts):.0f}" if counts else "-"),
            Row(f"{law}: median distance at the end of all starts [m]", f"{np.median(distances):.1e}"),
            Row(f"{law}: distinct solutions", str(len(groups))),
            *(
                Row(f"{law}: contacts with {order}: solutions, starts that end there",
                    f"{sum(g[0]['order'] == order for g in groups)}, {n}")
                for order, n in orders.items()
            ),
        ]  # fmt: skip
        values[law] = {
            "distances": [float(f"{d:.2e}") for d in distances],
            "simulations": [one["simulations"] for one in found],
            "orders": [one["order"] for one in found],
            "solutions": [{"velocity": g[0]["velocity"], "order": g[0]["order"], "starts": len(g)} for g in groups],
        }
    name = "fig11a_starts.png"
    draw(context, name, kept)
    missing = f"{len(starts)} of {COUNT} starts are done: `make reproduce-long` goes on. " if context.partial else ""
    notes = (
        f"{missing}Gauss-Newton from {len(starts)} velocities drawn evenly between {LOW} and {HIGH} m/s, the same "
        f"ones for both laws, at most {most} simulations each. Throws that end within {NEAR:g} m are one solution "
        f"where the order of their contacts is the same and their velocities differ by less than {1e3 * SAME:g} mm/s; "
        f"touching that is given up for less than {1e3 * PAUSE:g} ms is one contact.",
    )
    caption = "Distances at the end, sorted; the solutions from the side and from above, coloured by their contacts."
    return Outcome(tuple(rows), {name: caption}, notes, values)


def draw(context: Context, name: str, kept: dict[str, list[dict[str, Any]]]) -> None:
    """Draw the distances of both laws and the paths of the solutions."""
    orders = list(dict.fromkeys(g[0]["order"] for law in LAWS for g in solutions(kept[law])))
    with figure(context.image(name), 8.6, 3.2) as drawn:
        left, side, above = drawn.subplots(1, 3)
        for k, law in enumerate(LAWS):
            distances = np.sort([max(one["distance"], 1e-12) for one in kept[law]])
            left.semilogy(np.arange(1, distances.size + 1), distances, f"C{k}.-", ms=3, label=law)
        left.axhline(ARRIVED, color="k", lw=0.6, ls=":")
        left.set(xlabel="starts, sorted", ylabel="distance at the end [m]")
        left.legend()
        for law, style in zip(LAWS, ("-", "--"), strict=True):
            for group in solutions(kept[law]):
                path, order = np.array(group[0]["path"]), group[0]["order"]
                for panel, axis in ((side, 2), (above, 1)):
                    panel.plot(path[:, 0], path[:, axis], f"C{2 + orders.index(order)}", ls=style, lw=0.9)
        for k, order in enumerate(orders):
            side.plot([], [], f"C{2 + k}", label=order)
        side.axhline(-0.05, color="k", lw=1.0)
        above.axhline(0.1, color="k", lw=1.0)
        for panel, label in ((side, "z [m]"), (above, "y [m]")):
            panel.plot(0.3, 0.0, "k*", ms=7)
            panel.set(xlabel="x [m]", ylabel=label, aspect="equal")
        if orders:
            drawn.legend(*side.get_legend_handles_labels(), loc="outside lower right", ncols=3)


ENTRY = Entry(
    "fig11a_starts",
    "Fig. 11a from 64 starts",
    "Which different throws by way of wall and floor there are, labelled by the order of their contacts, and how many "
    "starts find one, with linear and with tanh friction.",
    run,
    long=True,
)
