"""The shortest impacts of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from add.contact import BodyContact, FrictionLaw
from add.kernels.contact import ACTIVE, CLIPPED
from add.kernels.rotation import left_jacobian
from add.kinematics import Kinematics
from add.model.impacts import Impact, Pair, names
from add.scene.builder import BuiltScene
from add.simulate import Trajectory
from add.typing import BoolArray, FloatArray

#: Contacts that begin slower than this share of the pair's fastest are no impacts: bodies that come to rest tremble.
SLOW = 0.1


def shortest_impacts(built: BuiltScene, trajectory: Trajectory, theta: FloatArray) -> list[Impact]:
    """Return the shortest impact of every pair of a rigid body and what it meets, and has damping with.

    An impact is that of one point: from the first step with a force to the last, both within the run. A point that is
    slow to come, as of a body at rest, has none.
    """
    pairs = {(pair.body, pair.other): pair for pair in built.damped_pairs(theta)}
    seen: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for name, steps, speed in _impacts(built, trajectory, theta, pairs):
        seen.setdefault(name, []).append((steps, speed))
    out = []
    for name, found in seen.items():
        fastest = max(speed for _, speed in found)
        steps, speed = min((steps, -speed) for steps, speed in found if speed >= SLOW * fastest)
        out.append(Impact(pairs[name], float(steps), built.simulation.stepper.dt, built.order, -speed))
    return out


def impact_json(impact: Impact) -> dict[str, Any]:
    """Return an impact as it stands in ``result.json``."""
    pair = impact.pair
    return {
        "body": pair.body,
        "other": pair.other,
        "steps": impact.steps,
        "speed": impact.speed,
        "restitution": pair.restitution,
        "error": impact.error,
        "warning": pair.asked and impact.few,
        "text": impact.text(),
    }


def _impacts(
    built: BuiltScene, trajectory: Trajectory, theta: FloatArray, pairs: dict[tuple[str, str], Pair]
) -> Iterator[tuple[tuple[str, str], int, float]]:
    """Yield pair, steps and speed of approach [m/s] of every impact of a point."""
    model = built.model
    owners, columns = names(model)
    for number, term in enumerate(model.system.deciding):
        if not isinstance(term, BodyContact):
            continue
        wanted = np.array([[(o, c) in pairs for c in columns] for o in owners])[term.group] & term.rigid[:, None]
        slowest = 2.0 * trajectory.t[1:2].sum() * _gravity(built, theta)
        before: BoolArray = np.ones(wanted.shape, dtype=bool)  # what touches at the start is no impact
        began: dict[tuple[int, int], tuple[int, float]] = {}
        for k, record in enumerate(trajectory.records):
            codes = record.decisions[number]
            now = (codes & ACTIVE != 0) & (codes & CLIPPED == 0) & wanted
            for i, o in np.argwhere(before & ~now):
                if (i, o) in began:
                    first, speed = began.pop((i, o))
                    if speed > slowest:
                        yield (owners[term.group[i]], columns[o]), k - first, speed
            fresh = now & ~before
            if fresh.any() and k:
                began |= {key: (k, v) for key, v in _speeds(term, trajectory, k, theta, fresh)}
            before = now


def _gravity(built: BuiltScene, theta: FloatArray) -> float:
    parameters = built.model.system.parameters
    return float(np.linalg.norm(parameters.view(theta, "gravity"))) if "gravity" in parameters else 0.0


def _speeds(
    term: BodyContact, trajectory: Trajectory, k: int, theta: FloatArray, fresh: BoolArray
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the speed of approach before step ``k`` of the pairs that touch anew in it."""
    record, before = trajectory.records[k], trajectory.kinematics(k)
    codes = term.decide(record.kin, theta)
    places = replace(term, law=FrictionLaw.NONE).places(record.kin, theta, codes)
    for place, force, i, o in zip(places.place, places.force, places.point, places.shape, strict=True):
        size = float(np.linalg.norm(force))
        if fresh[i, o] and size > 0.0:
            other = int(term.shape_carrier[o])
            there = _velocity(before, other, place) if other >= 0 else term.velocity[o]
            yield (int(i), int(o)), float(-(force / size) @ (_velocity(before, int(term.carrier[i]), place) - there))


def _velocity(kin: Kinematics, start: int, place: FloatArray) -> FloatArray:
    """Return the velocity of a rigid body at a place [m/s]."""
    x, w = kin.q[start : start + 6].reshape(2, 3)
    v, rate = kin.v[start : start + 6].reshape(2, 3)
    return np.asarray(v + np.cross(left_jacobian(w) @ rate, place - x))
