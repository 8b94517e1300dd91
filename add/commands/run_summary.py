"""The numbers of a run that reports and ``expect`` blocks name."""

from __future__ import annotations

from typing import Any

from add.commands.impact_log import impact_json
from add.commands.step_counts import Tally
from add.equations.kinematics import Kinematics
from add.model.impacts import worth_saying
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import Energies
from add.simulation.run import Trajectory
from add.typing import FloatArray


def summary(
    built: BuiltScene,
    trajectory: Trajectory,
    theta: FloatArray,
    *,
    before: Tally | None = None,
    start: Kinematics | None = None,
) -> dict[str, Any]:
    """Return the numbers of a run that reports and ``expect`` blocks name.

    Parameters
    ----------
    built, trajectory, theta
    before : Tally, optional
        Of the steps before the trajectory, where a run was gone on with.
    start : Kinematics, optional
        At t = 0; default: the trajectory's first.
    """
    model = built.model
    last = trajectory.kinematics(trajectory.n_steps)
    tally = (before or Tally()).add(built, trajectory, theta)
    out: dict[str, Any] = {
        "steps": tally.steps,
        "end_time": float(trajectory.t[-1]),
        "newton": {
            "iterations_per_step": tally.iterations / tally.steps if tally.steps else 0.0,
            "most_iterations": tally.most_iterations,
            "factorizations": tally.factorizations,
            "fallbacks": tally.fallbacks,
            "divided": tally.divided,
        },
        "energy": Energies(built, theta).at(last),
        "bodies": {},
        "markers": {},
    }
    lifted = model.lift.kinematics(last, theta)
    masses = model.node_masses(theta)
    out["bodies"] = {body.name: body.state(lifted, masses, theta, model.layouts) for body in model.bodies}
    if built.marker_names:
        places = built.markers.points(last, theta)[0]
        first = built.markers.points(start or trajectory.kinematics(0), theta)[0]
        for j, name in enumerate(built.marker_names):
            out["markers"][name] = {
                "final": places[j].tolist(),
                "displacement": (places[j] - first[j]).tolist(),
            }
    if tally.chambers:
        out["chambers"] = tally.chambers
    for key, counts in tally.events.items():
        if counts or key == "contact":
            out[key] = counts
    impacts = worth_saying(tally.impacts.shortest(built, theta))
    if impacts:
        out["impacts"] = [impact_json(impact) for impact in impacts]
    if tally.weak.natural_map > 0.0:
        out["contact_certificate"] = {"natural_map": tally.weak.natural_map}
    if tally.weak.seen:
        out["weak_contacts"] = tally.weak.described()
    if tally.depths.seen:
        out["mesh_depths"] = tally.depths.described()
    if tally.sunk.seen:
        out["sunk"] = tally.sunk.described()
    return out
