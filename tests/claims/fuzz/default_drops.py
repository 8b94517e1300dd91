"""Random drops with the contact that a newcomer writes: none, some numbers, or impulses.

`PYTHONPATH=tests:tests/claims python -m fuzz.default_drops FIRST COUNT` runs so many seeds over two processes and says
which find no step, fall through the floor or gain energy. The floor is a plane; bodies are rigid ones of every shape,
trees of links, and soft ones of three elements; dt is 1/60 to 1/1000 s. A fifth of the bodies has the axes of the
world; with `flat` behind the numbers all land on a face, boxes and cylinders with points all over it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from add.equations.kinematics import Kinematics
from add.errors import InputError, SolverError
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.scene.build.run_data import Energies

#: Kinds of contact: none given, numbers, impulses.
CONTACTS = ("default", "given", "impulse")


def drop(seed: int) -> dict[str, Any]:
    """Return the scene of a seed."""
    rng = np.random.default_rng([seed, 77])
    contact = str(rng.choice(CONTACTS, p=[0.6, 0.25, 0.15]))
    kind = str(rng.choice(["rigid", "several", "links", "soft"], p=[0.4, 0.2, 0.15, 0.25]))
    if contact == "impulse" and kind == "soft":
        kind = "rigid"
    dt = float(np.exp(rng.uniform(np.log(1 / 1000), np.log(1 / 60))))
    bodies: dict[str, Any] = {}
    if kind == "rigid":
        bodies["a"] = _rigid(rng, 0.0, 0.0)
    elif kind == "several":
        for k in range(int(rng.integers(2, 4))):
            bodies[f"a{k}"] = _rigid(rng, 0.25 * k, 0.4 * rng.integers(0, 2))
    elif kind == "links":
        bodies["a"] = _tree(rng)
    else:
        bodies["a"] = _soft(rng)
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "time": {"dt": dt, "duration": 0.6 if kind == "soft" else 1.0},
        "bodies": bodies,
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction": float(rng.uniform(0, 1.2))},
    }
    scene["time"]["integrator"] = str(rng.choice(["bdf1", "bdf2"]))
    if kind == "links":
        scene["contact"]["between_bodies"] = False  # links that start in each other
    if contact == "impulse":
        scene["contact"]["friction_law"] = "impulse"
        scene["time"]["integrator"] = "bdf1"
    else:
        scene["contact"]["friction_law"] = str(rng.choice(["linear", "tanh", "hybrid"]))
    if contact == "given":
        stiffness = _log(rng, 1e3, 1e5)
        damping = stiffness * _log(rng, 3e-4, 5e-3)
        scene["contact"] |= {"stiffness": stiffness, "damping": damping, "onset": 0.001, "damping_ramp": 0.001}
    return scene


def flat(seed: int) -> dict[str, Any]:
    """Return the scene of a seed with bodies that land on a face."""
    scene, rng = drop(seed), np.random.default_rng([seed, 78])
    for body in scene["bodies"].values():
        turn, half = rng.uniform(0.0, np.pi), np.sqrt(0.5)
        body["orientation"] = [float(np.cos(turn)), 0, 0, float(np.sin(turn))]
        body["angular_velocity"] = [0, 0, float(rng.uniform(-8, 8))]
        geometry = body.get("geometry", {})
        if geometry.get("shape") == "box" and rng.random() < 0.5:  # on another face
            body["orientation"], body["angular_velocity"] = [float(half), float(half), 0, 0], [0, 0, 0]
        if geometry.get("shape") in ("box", "cylinder"):
            extent = min(geometry.get("size") or [geometry["radius"], geometry["half_length"]])
            body["collision"] = {"spacing": float(extent * rng.uniform(0.15, 0.5))}
    return scene


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _vector(rng: np.random.Generator, largest: float) -> list[float]:
    direction = rng.normal(size=3)
    return [float(x) for x in direction / np.linalg.norm(direction) * rng.uniform(0, largest)]


def _motion(rng: np.random.Generator, size: float, x: float, up: float) -> dict[str, Any]:
    """Return a pose above the floor and velocities."""
    out: dict[str, Any] = {
        "position": [float(x), 0, float(0.9 * size + rng.uniform(0.01, 0.5) + up)],
        "velocity": _vector(rng, 2.0),
    }
    if rng.random() < 0.8:
        quaternion = rng.normal(size=4)
        out["orientation"] = [float(x) for x in quaternion / np.linalg.norm(quaternion)]
        out["angular_velocity"] = _vector(rng, 8.0)
    return out


def _shape(rng: np.random.Generator) -> tuple[dict[str, Any], float]:
    """Return a geometry and its largest extent."""
    size = _log(rng, 0.02, 0.3)
    a, b, c = (float(size * s) for s in rng.uniform(0.2, 1.0, size=3))
    kind = str(rng.choice(["box", "sphere", "capsule", "cylinder"]))
    if kind == "box":
        return {"shape": kind, "size": [a, b, c]}, max(a, b, c) * 1.2
    if kind == "sphere":
        return {"shape": kind, "radius": a / 2}, a
    return {"shape": kind, "radius": a / 2, "half_length": b / 2}, a + b


def _rigid(rng: np.random.Generator, x: float, up: float) -> dict[str, Any]:
    geometry, size = _shape(rng)
    return {"type": "rigid", "geometry": geometry, "density": _log(rng, 80.0, 8000.0)} | _motion(rng, size, x, up)


def _tree(rng: np.random.Generator) -> dict[str, Any]:
    n, size = int(rng.integers(2, 5)), _log(rng, 0.05, 0.3)
    links: dict[str, Any] = {}
    joints: dict[str, Any] = {"l0": {}}
    before = 0.0
    for k in range(n):
        half, radius = float(size * rng.uniform(0.3, 0.6)), float(size * rng.uniform(0.1, 0.25))
        geometry: dict[str, Any] = {"shape": "capsule", "radius": radius, "half_length": half}
        if rng.random() < 0.4:
            geometry = {"shape": "box", "size": [2 * radius, 2 * radius, 2 * half]}
        links[f"l{k}"] = {
            "mass": _log(rng, 0.1, 3.0),
            "shapes": [{"geometry": geometry, "position": [0, 0, float(-half)]}],
        }
        if k:
            joint = {"type": "hinge", "parent": f"l{k - 1}", "axis": _vector(rng, 1.0), "damping": 0.002}
            joints[f"l{k}"] = joint | {"position": [0, 0, -2.0 * before]}
        before = half
    tree = {"type": "articulated", "base": "free", "links": links, "joints": joints}
    return tree | _motion(rng, 2.5 * n * size, 0.0, 0.0)


def _soft(rng: np.random.Generator) -> dict[str, Any]:
    size = _log(rng, 0.04, 0.2)
    a, b = float(size), float(size * rng.uniform(0.4, 1.0))
    mesh: dict[str, Any] = {"shape": "box", "size": [a, b, b], "divisions": [3, 2, 2]}
    element = str(rng.choice(["tet4", "tet10", "hex8"]))
    if element != "hex8" and rng.random() < 0.5:
        mesh = {"shape": "sphere", "radius": a / 2, "edge": a / 3}
    material = {
        "model": str(rng.choice(["neo-hookean", "neo-hookean-ciarlet"])),
        "young": _log(rng, 5e3, 1e7),
        "poisson": float(rng.choice([0.2, 0.3, 0.45])),
        "density": _log(rng, 100.0, 1500.0),
        "viscosity": _log(rng, 0.1, 20.0),
    }
    return {"type": "soft", "element": element, "mesh": mesh, "material": material} | _motion(rng, size, 0.0, 0.0)


@dataclass(frozen=True)
class Outcome:
    """How the run of a seed ended.

    Attributes
    ----------
    gain : greatest energy over that of the start, counted from the floor [-]
    lowest : least height of a centre of mass over the thinnest extent of what touches [m]
    """

    seed: int
    kind: str
    message: str
    gain: float
    lowest: float
    seconds: float
    steps: int


def _energy(built: BuiltScene, kin: Kinematics) -> float:
    return sum(Energies(built, built.theta).at(kin).values())


def _heights(built: BuiltScene, kin: Kinematics) -> float:
    at = built.model.lift.kinematics(kin, built.theta)
    masses = built.model.node_masses(built.theta)
    states = [b.state(at, masses, built.theta, built.model.layouts) for b in built.model.bodies if "/" not in b.name]
    return min(state["centre"][2] for state in states)


def run(seed: int, scene: Callable[[int], dict[str, Any]] = drop) -> Outcome:
    """Run the drop of a seed."""
    raw = scene(seed)
    begin = time.perf_counter()
    contact = raw["contact"]
    law = "impulse" if contact["friction_law"] == "impulse" else "given" if "stiffness" in contact else "default"
    kind = f"{law} {next(iter(raw['bodies'].values()))['type']}"
    try:
        built = scene_from_dict(raw).build()
    except InputError as error:
        return Outcome(seed, kind, f"invalid: {error}", 0.0, 1.0, 0.0, 0)
    message = ""
    try:
        trajectory = built.run()
    except SolverError as error:
        message = str(error)
        trajectory = getattr(error, "trajectory", None) or built.run(n_steps=0)
    seconds = time.perf_counter() - begin
    every = max(1, trajectory.n_steps // 150)
    frames = [trajectory.kinematics(k) for k in range(0, trajectory.n_steps + 1, every)]
    energies = np.array([_energy(built, kin) for kin in frames])
    heights = np.array([_heights(built, kin) for kin in frames])
    scale = max(abs(float(energies[0])), 1e-9)
    gain = float((energies.max() - energies[0]) / scale)
    return Outcome(seed, kind, message, gain, float(heights.min()), seconds, trajectory.n_steps)


def main(first: int, count: int, scene: Callable[[int], dict[str, Any]] = drop) -> None:
    """Say which seeds go wrong."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(partial(run, scene=scene), range(first, first + count)))
    counts: dict[str, list[int]] = {}
    for o in outcomes:
        row = counts.setdefault(o.kind, [0, 0, 0, 0, 0])
        invalid = o.message.startswith("invalid")
        bad = [not invalid, bool(o.message) and not invalid, o.lowest < 0.0, o.gain > 0.01, invalid]
        counts[o.kind] = [n + int(b) for n, b in zip(row, bad, strict=True)]
        if any(bad[1:]) or o.seconds > 30.0:
            place = f"lowest {o.lowest:.4f} m, {o.seconds:.1f} s"
            print(f"{o.seed} {o.kind}: gain {o.gain:.3f}, {place}: {o.message[:110]}")
    for kind, (n, failed, below, gained, invalid) in sorted(counts.items()):
        print(f"{kind:20} {n:5} runs: {failed} without a step, {below} below, {gained} gain; {invalid} invalid")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), flat if sys.argv[3:] == ["flat"] else drop)
