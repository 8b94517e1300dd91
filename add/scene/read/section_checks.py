"""Checks of the `expect` section, whose paths name numbers of results, and of what a friction law reads and needs."""

import math
from collections.abc import Iterator
from typing import Any

from add.scene.read.paths import nearest
from add.scene.read.problems import Problem, one_of
from add.scene.spec.common import HARD
from add.scene.spec.contact import ContactSpec
from add.scene.spec.contact_classes import ContactClasses
from add.scene.spec.friction import CURVES, _FurtherFriction
from add.scene.spec.links import LinkOf, all_bodies, robot_of, trees
from add.scene.spec.objective import MarkersObjectiveSpec
from add.scene.spec.rigid import KinematicBodySpec, MeshObstacleSpec, RigidBodySpec
from add.scene.spec.scene import SceneSpec

#: Results that are checked against expectations.
COMMANDS = ("simulate", "optimize")
#: Numbers of a body by its type; the length of a vector, 0 for a scalar.
_MOVING = {"centre": 3, "velocity": 3, "speed": 0}
_BODIES = {
    "soft": {**_MOVING, "mass": 0, "nodes": 0, "elements": 0},
    **{key: {**_MOVING, "mass": 0, "nodes": 0} for key in ("mass-spring", "cloth", "rod")},
    "rigid": {**_MOVING, "mass": 0, "orientation": 4, "angular_velocity": 3},
    "kinematic": {**_MOVING, "orientation": 4, "angular_velocity": 3},
    "articulated": {**_MOVING, "mass": 0},
}
_RUN = {
    "steps": 0,
    "end_time": 0,
    "newton": dict.fromkeys(("iterations_per_step", "most_iterations", "factorizations", "fallbacks", "divided"), 0),
    "energy": dict.fromkeys(("kinetic", "elastic", "gravity", "coupling", "chambers", "muscles", "contact"), 0),
    "contact": dict.fromkeys(("touching", "sticking", "slipping", "creeping"), 0),
    "couplings": dict.fromkeys(("taut", "slack", "clipped", "below", "above"), 0),
}
_ENDS = dict.fromkeys(("standard_error", "lower", "upper"), 0)
_PARAMETER = {
    **dict.fromkeys(("value", "start", "interval_lower", "interval_upper", "profile_evaluations", "freedom"), 0),
    **_ENDS,
    "errors": dict.fromkeys(("noise", "correlated", "takes", "discretisation"), 0),
    "bootstrap": _ENDS,
}
#: Combinations that are hardly seen, and candidates for each, that a result may have.
_MOST_WEAK, _MOST_CANDIDATES = 5, 20
_PHASE = dict.fromkeys(("success", "start", "end", "evaluations"), 0)
_FIT = dict.fromkeys(("rms", "samples", "frames_outside", "peak_displacement", "rms_over_peak"), 0)
_FIT_OF_MARKER = dict.fromkeys(("rms", "peak_displacement", "samples"), 0)


def check_expectations(
    spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]], labels: list[str]
) -> Iterator[Problem]:
    """Commands and paths that exist.

    Parameters
    ----------
    spec, full : the scene, and the scene as a dictionary with its defaults
    experiments : experiment name -> its scene as a dictionary with its defaults
    labels : names of the design variables, as a result has them
    """
    for command, items in spec.expect.items():
        if command not in COMMANDS:
            close = nearest(command, COMMANDS)
            yield Problem(
                f"expect.{command}", "no result of this name is checked", f"'{command}'", one_of(COMMANDS), close
            )
            continue
        known = dict(_flat(_simulated(full) if command == "simulate" else _optimized(spec, full, experiments, labels)))
        for path in items:
            if not _names(path, known):
                near = nearest(path, known)
                message = f"the result of `add {command}` has no such number"
                yield Problem(f"expect.{command}.{path}", message, f"'{path}'", None, near)


def _names(path: str, known: dict[str, int]) -> bool:
    """Whether a path is a number or a vector that is known, or an entry of a vector."""
    parent, _, entry = path.rpartition(".")
    return path in known or (entry.isascii() and entry.isdigit() and int(entry) < known.get(parent, 0))


def _flat(node: dict[str, Any], at: str = "") -> Iterator[tuple[str, int]]:
    for key, item in node.items():
        if isinstance(item, dict):
            yield from _flat(item, f"{at}{key}.")
        else:
            yield f"{at}{key}", item


def _summary(full: dict[str, Any]) -> dict[str, Any]:
    bodies = {name: _BODIES[body["type"]] for name, body in full["bodies"].items()}
    markers = {name: {"final": 3, "displacement": 3} for name in full["markers"]}
    chambers = {
        f"{name}/{key}": {"pressure": 0, "volume": 0}
        for name, body in full["bodies"].items()
        for key, item in body.get("chambers", {}).items()
        if item["type"] != "joined"
    }
    ties = {
        f"{name}/{item['body']}": {"force": 3, "torque": 3}
        for name, body in full["bodies"].items()
        for item in body.get("embedded", ())
        if item["by"] == "multipliers"
    }
    return {**_RUN, "bodies": bodies, "markers": markers, "chambers": chambers, "ties": ties}


def _simulated(full: dict[str, Any]) -> dict[str, Any]:
    return {**_summary(full), "seconds": 0, "kernel_seconds": 0}


def _optimized(
    spec: SceneSpec, full: dict[str, Any], experiments: dict[str, dict[str, Any]], labels: list[str]
) -> dict[str, Any]:
    runs = {name: _summary(item) for name, item in (experiments or {"scene": full}).items()}
    if any(isinstance(item, MarkersObjectiveSpec) for item in spec.objective):
        for run in runs.values():
            run["fit"] = {**_FIT, "per_marker": dict.fromkeys(run["markers"], _FIT_OF_MARKER)}
    result = {
        "parameters": dict.fromkeys(labels, _PARAMETER),
        "objective": {"start": 0, "end": 0},
        "phases": {str(k): _PHASE for k in range(len(spec.optimizer.phases) or 1)},
        "evaluations": 0,
        "seconds": 0,
        "replayed_evaluations": 0,
        "experiments": runs,
    }
    result["uncertainty"] = _uncertainty(full, list(runs), labels)
    if len(runs) == 1:  # a single run is the result's own, too
        only = next(iter(runs.values()))
        result |= {key: only[key] for key in ("steps", "bodies", "markers", "contact", "newton", "fit") if key in only}
    return result


def _uncertainty(full: dict[str, Any], runs: list[str], labels: list[str]) -> dict[str, Any]:
    """Return the numbers on the errors of a fit."""
    counts = ("frames", "coordinates", "effective", "p_value", "frames_per_independent")
    take = {**dict.fromkeys(counts, 0), "per_marker": dict.fromkeys(full["markers"], 0)}
    weak = {
        "spread": 0,
        "singular_value": 0,
        "parameters": dict.fromkeys(labels, 0),
        "candidates": {str(j): {"spread": 0} for j in range(_MOST_CANDIDATES)},
    }
    return {
        "residuals": dict.fromkeys(runs, take),
        "correlation": {"matrix": {str(k): len(labels) for k in range(len(labels))}},
        "tied": {str(k): {"correlation": 0} for k in range(len(labels))},
        "weak": {str(k): weak for k in range(_MOST_WEAK)},
        "bootstrap": {"blocks": 0, "draws": 0},
    }


# --- Checks of what a friction law reads and needs --------------------------------------------------------------------


def check_exact_contact(spec: SceneSpec) -> Iterator[Problem]:
    """Starts, integrators and restitutions that exact contact, or contact in velocities, has no equations for."""
    law = spec.contact.friction_law
    for place, value, usual in (
        ("contact.friction_cone", spec.contact.friction_cone, "round"),
        ("contact.impact_time", spec.contact.impact_time, "linear"),
        ("gradient.contact", spec.gradient.contact, "exact"),
    ):
        if law != "impulse" and value != usual:
            text = f"the friction law '{law}' does not know this"
            yield Problem(place, text, f"'{value}'", f"'{usual}', or the friction law 'impulse'")
    if spec.gradient.contact == "explore" and spec.optimizer and spec.optimizer.method == "gauss-newton":
        yield Problem(
            "gradient.contact", "the complementarity-aware choice has no forward tangents, which gauss-newton needs",
            "'explore'", "'exact' or 'relaxed', or optimizer.method = 'l-bfgs-b', 'adam' or 'sgd'",
        )  # fmt: skip
    for name, tree in trees(spec).items():
        if law == "exact":
            yield Problem(
                "contact.friction_law", f"articulated bodies ('{name}') do not know this law", "'exact'",
                "'none', 'linear', 'tanh', 'hybrid' or 'impulse'",
            )  # fmt: skip
        if law == "impulse":
            held = {f"joints.{key}.": joint.dry_friction_law for key, joint in tree.joints.items()}
            for key in [key for key, dry in {"": tree.dry_friction_law, **held}.items() if dry == "hybrid"]:
                yield Problem(
                    f"bodies.{name}.{key}dry_friction_law", "the friction law 'impulse' holds no joints", "'hybrid'",
                    "'tanh', or another contact.friction_law",
                )  # fmt: skip
        if law != "impulse" and tree.limits == "hard":
            yield Problem(
                f"bodies.{name}.limits", f"the friction law '{law}' has no hard limits", "'hard'",
                "'penalty', or the friction law 'impulse'",
            )  # fmt: skip
        if tree.limits == "hard":
            for joint in robot_of(name, tree).joints:
                if joint.kind == "ball" and joint.upper < math.inf:
                    yield Problem(
                        f"bodies.{name}.joints.{joint.name}.upper", "the limit of a ball gives way: none is hard",
                        f"{joint.upper:g}", "no limit, or limits 'penalty'",
                    )  # fmt: skip
    if law not in HARD:
        return
    if spec.time.initial == "equilibrium":
        yield Problem("time.initial", f"the friction law '{law}' starts from a given state", "'equilibrium'", "'given'")
    meshes = {f"obstacles.{name}": isinstance(item, MeshObstacleSpec) for name, item in spec.obstacles.items()}
    for name, tree in trees(spec).items():
        for link in robot_of(name, tree).links:
            meshes[f"bodies.{name}.links.{link.name}"] = any(shape.shape == "mesh" for shape in link.collision)
    for name, body in spec.bodies.items():
        if isinstance(body, RigidBodySpec | KinematicBodySpec):
            meshes[f"bodies.{name}.collision.closed"] = body.collision.closed
    for place in [place for place, is_mesh in meshes.items() if is_mesh]:
        yield Problem(
            place, f"the friction law '{law}' knows no closed meshes as collision shapes", "a mesh",
            "planes, boxes, spheres, capsules and cylinders, or another contact.friction_law",
        )  # fmt: skip
    for k, pair in enumerate(spec.contact.pairs):
        if pair.by_meshes:
            yield Problem(
                f"contact.pairs.{k}.by_meshes", f"the friction law '{law}' lets no meshes meet", "true",
                "false, or another contact.friction_law",
            )  # fmt: skip
    if law == "impulse":
        if spec.time.integrator != "bdf1":
            yield Problem(
                "time.integrator", "the friction law 'impulse' steps velocities by bdf1", f"'{spec.time.integrator}'",
                "'bdf1'",
            )  # fmt: skip
        return
    for k, pair in enumerate(spec.contact.pairs):
        if pair.restitution is not None:
            yield Problem(
                f"contact.pairs.{k}.restitution", "impacts of exact contact are plastic", f"{pair.restitution:g}",
                "none, or another contact.friction_law",
            )  # fmt: skip


def check_friction(spec: SceneSpec) -> Iterator[Problem]:
    """Laws without these numbers, static friction without its speed, and couples on bodies that have no spin."""
    contact, classes, bodies = spec.contact, ContactClasses.read(spec), all_bodies(spec)
    places: list[tuple[str, _FurtherFriction, list[str]]] = [("contact", contact, list(bodies))]
    for k, row in enumerate(contact.pairs):
        places.append((f"contact.pairs.{k}", row, [name for side in row.sides for name in classes.members(side)]))
    for place, said, members in places:
        given = [key for key in _FurtherFriction.model_fields if getattr(said, key) is not None]
        given += ["friction_curve"] if said is contact and contact.friction_curve is not None else []
        if given and contact.friction_law not in ("linear", "tanh", "hybrid"):
            yield Problem(
                f"{place}.{given[0]}", f"the friction law '{contact.friction_law}' does not know this",
                _said(said, given[0]), "'linear', 'tanh' or 'hybrid'",
            )  # fmt: skip
            continue
        yield from _curves(place, said, contact)
        if said.spin_rate is not None and not contact.brakes_spin:
            yield Problem(
                f"{place}.spin_rate", "nothing brakes the spin", f"{said.spin_rate:g}",
                "torsional_friction or rolling_friction",
            )  # fmt: skip
        braking = [key for key in ("torsional_friction", "rolling_friction") if getattr(said, key) is not None]
        for name in members if braking else []:
            body = bodies.get(name)
            if body is not None and not isinstance(body, RigidBodySpec | KinematicBodySpec | LinkOf):
                yield Problem(
                    f"{place}.{braking[0]}", f"'{name}' is met at its nodes, which have no spin",
                    f"{getattr(said, braking[0]):g}", "rows of contact.pairs between rigid bodies, links and obstacles",
                )  # fmt: skip


def _said(said: _FurtherFriction, key: str) -> str:
    value = getattr(said, key)
    return f"{value:g}" if isinstance(value, float) else "a curve"


def _curves(place: str, said: _FurtherFriction, contact: ContactSpec) -> Iterator[Problem]:
    """Numbers of a curve of friction without the other, and of a curve that is not the one that counts."""
    for curve in CURVES:
        first, second = (number.name for number in curve.numbers)
        values = getattr(said, first), getattr(said, second)
        if values[0] is not None and curve is not contact.curve:
            other = "friction_curve" if contact.friction_curve is not None else contact.curve.numbers[0].name
            yield Problem(
                f"{place}.{first}", "friction follows one curve", f"{values[0]:g}, and '{other}'", "one of them"
            )
        elif values[0] is not None and values[1] is None and getattr(contact, second) is None:
            yield Problem(f"{place}.{first}", f"this needs '{second}'", f"{values[0]:g}", second)
        elif values[1] is not None and curve is not contact.curve:
            yield Problem(f"{place}.{second}", "friction does not depend on this", f"{values[1]:g}", first)
