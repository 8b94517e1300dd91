"""The numbers of a run that reports and ``expect`` blocks name, and those that a scene says it should give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from add.commands.impact_log import impact_json
from add.commands.step_counts import Tally
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.model.impacts import worth_saying
from add.scene import Scene
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
    if tally.ties:
        out["ties"] = tally.ties
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


@final
@dataclass(frozen=True)
class Expectation:
    """One expected number and what was found."""

    path: str
    found: Any
    expected: str
    passed: bool


def _lookup(node: Any, keys: list[str]) -> Any:
    """Return the entry at a path; names of parameters have dots of their own."""
    if not keys:
        return node
    if isinstance(node, dict):
        for cut in range(len(keys), 0, -1):
            name = ".".join(keys[:cut])
            if name in node:
                return _lookup(node[name], keys[cut:])
    if isinstance(node, list) and keys[0].isdigit() and int(keys[0]) < len(node):
        return _lookup(node[int(keys[0])], keys[1:])
    return None


def check_expectations(scene: Scene, command: str, result: dict[str, Any]) -> list[Expectation]:
    """Compare a result with the scene's ``expect`` entries of this command.

    Raises
    ------
    InputError
        If an entry names something that the result does not have.
    """
    out = []
    for path, item in scene.expect.get(command, {}).items():
        found = _lookup(result, path.split("."))
        if found is None:
            raise InputError(
                "the result has no such number",
                file=scene.source,
                place=f"expect.{command}.{path}",
                expected=", ".join(result),
            )
        try:
            number = np.asarray(found, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                "this is no number of the result",
                file=scene.source,
                place=f"expect.{command}.{path}",
                found=f"an entry with {', '.join(found)}" if isinstance(found, dict) else repr(found),
            ) from None
        passed, wanted = True, []
        if item.value is not None:
            value = np.asarray(item.value, dtype=float)
            room = (item.abs_tol or 0.0) + (item.rel_tol or 0.0) * np.abs(value)
            passed &= number.shape == value.shape and bool(np.all(np.abs(number - value) <= room))
            wanted.append(f"{value.tolist()} +- {np.max(room):.3g}")
        if item.min is not None:
            passed &= bool(np.all(number >= item.min))
            wanted.append(f">= {item.min:g}")
        if item.max is not None:
            passed &= bool(np.all(number <= item.max))
            wanted.append(f"<= {item.max:g}")
        out.append(Expectation(path, number.tolist(), ", ".join(wanted), passed))
    return out


def checks_of(scene: Scene, command: str, result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the comparison as it stands in ``result.json``."""
    return {
        item.path: {"passed": item.passed, "value": item.found, "expected": item.expected}
        for item in check_expectations(scene, command, result)
    }
