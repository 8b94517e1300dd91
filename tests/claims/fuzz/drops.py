"""Random drops at dt = 1/60 s: soft and rigid bodies that fall on a floor at speed, far coarser than an impact.

`python tests/claims/fuzz/drops.py FIRST COUNT` runs so many seeds over two processes and says which fail. Of seeds 0 to
999, 96 failed with line searches on |r| alone (commit 964ca07); runs that did not fail there never reach a proximal
step. Now 3 of them fail.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from add.errors import SolverError
from add.scene import scene_from_dict

STEPS = 60

_SOFT_MESHES: tuple[dict[str, Any], ...] = (
    {"mesh": {"shape": "box", "size": [0.12, 0.1, 0.1], "divisions": [2, 2, 2]}, "element": "hex8"},
    {"mesh": {"shape": "box", "size": [0.3, 0.06, 0.02], "divisions": [6, 2, 1]}},
    {"mesh": {"shape": "sphere", "radius": 0.06, "edge": 0.04}},
    {"mesh": {"shape": "cylinder", "radius": 0.05, "height": 0.08, "edge": 0.04}},
)
_RIGID_SHAPES: tuple[dict[str, Any], ...] = (
    {"shape": "box", "size": [0.12, 0.1, 0.06]},
    {"shape": "sphere", "radius": 0.05},
    {"shape": "capsule", "radius": 0.03, "half_length": 0.08},
    {"shape": "cylinder", "radius": 0.05, "half_length": 0.06},
)


def drop(seed: int) -> dict[str, Any]:
    """Return the scene of a seed: one soft body, a soft and a rigid one, or two or three rigid ones."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["soft", "both", "rigid"], p=[0.4, 0.2, 0.4])
    bodies: dict[str, Any] = {}
    if kind == "rigid":
        for k in range(int(rng.integers(2, 4))):
            bodies[f"a{k}"] = _rigid(rng, rng.uniform(0.15, 0.6) if k == 0 else rng.uniform(0.3, 1.6))
    else:
        bodies["a"] = _soft(rng)
        if kind == "both":
            bodies["b"] = _rigid(rng, rng.uniform(0.9, 1.6)) | {"position": [0.02, 0, float(rng.uniform(0.9, 1.6))]}
    stiffness = _log(rng, 1e5, 1e8)
    return {
        "schema": "add-scene/1",
        "time": {"dt": 1 / 60, "steps": STEPS, "integrator": str(rng.choice(["bdf1", "bdf2"])), "substeps": "off"},
        "bodies": bodies,
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {
            "stiffness": stiffness,
            "stiffness_per": "area",
            "friction": float(rng.uniform(0, 2)),
            "friction_law": str(rng.choice(["linear", "tanh", "hybrid"])),
            "damping": 0.0 if rng.random() < 0.25 else stiffness * _log(rng, 3e-6, 2e-2),
            "damping_ramp": 0.002,
            "onset": float(rng.choice([0.0, 0.001])),
        },
    }


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _vector(rng: np.random.Generator, largest: float) -> list[float]:
    """Return a random direction times a random length."""
    direction = rng.normal(size=3)
    return [float(x) for x in direction / np.linalg.norm(direction) * rng.uniform(0, largest)]


def _motion(rng: np.random.Generator, height: float) -> dict[str, Any]:
    """Return a pose on a corner, an edge or a face, and velocities."""
    pose = rng.choice(["corner", "edge", "face"], p=[0.7, 0.15, 0.15])
    quaternion = rng.normal(size=4)
    if pose == "edge":
        quaternion[rng.choice([[2, 3], [1, 3]])] = 0.0
    motion: dict[str, Any] = {"position": [0, 0, float(height)], "velocity": _vector(rng, 6.0)}
    spin = _vector(rng, 30.0)
    if pose == "corner":
        motion["angular_velocity"] = spin
    if pose != "face":
        motion["orientation"] = [float(x) for x in quaternion / np.linalg.norm(quaternion)]
    return motion


def _rigid(rng: np.random.Generator, height: float) -> dict[str, Any]:
    shape = _RIGID_SHAPES[int(rng.integers(len(_RIGID_SHAPES)))]
    return {"type": "rigid", "geometry": shape, "mass": _log(rng, 0.05, 15.0)} | _motion(rng, height)


def _soft(rng: np.random.Generator) -> dict[str, Any]:
    shape = _SOFT_MESHES[int(rng.integers(len(_SOFT_MESHES)))]
    material = {
        "model": str(rng.choice(["neo-hookean", "neo-hookean-ciarlet"])),
        "young": _log(rng, 2e3, 1e8),
        "poisson": float(rng.choice([0.3, 0.45, 0.49, 0.499])),
        "density": _log(rng, 100.0, 2000.0),
        "viscosity": _log(rng, 0.1, 100.0),
    }
    body = {"type": "soft", "material": material} | shape | _motion(rng, rng.uniform(0.12, 0.65))
    if "element" in shape:
        body["mean_dilatation"] = True
    return body


@dataclass(frozen=True)
class Outcome:
    """How the run of a seed ended."""

    seed: int
    message: str
    steps: int
    factorizations: int
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether a step had no solution."""
        return bool(self.message)


def run(seed: int, n_steps: int | None = None) -> Outcome:
    """Run the drop of a seed, or its first steps."""
    begin = time.perf_counter()
    built = scene_from_dict(drop(seed)).build()
    message = ""
    try:
        trajectory = built.run(n_steps=n_steps)
    except SolverError as error:
        message = str(error)
        trajectory = getattr(error, "trajectory", None) or built.run(n_steps=0)
    assert np.isfinite(trajectory.q).all() and np.isfinite(trajectory.v).all()
    spent = sum(record.report.factorizations for record in trajectory.records)
    return Outcome(seed, message, trajectory.n_steps, spent, time.perf_counter() - begin)


def run_many(seeds: list[int], processes: int = 2) -> list[Outcome]:
    """Run the drops of many seeds."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run, seed) for seed in seeds]
        return [future.result() for future in as_completed(futures)]


def main(first: int, count: int) -> None:
    """Say which seeds fail, and how often."""
    outcomes = sorted(run_many(list(range(first, first + count))), key=lambda o: o.seed)
    for outcome in outcomes:
        if outcome.failed:
            print(f"{outcome.seed}: {outcome.seconds:.1f} s: {outcome.message}")
    failed = sum(outcome.failed for outcome in outcomes)
    print(
        f"{failed} of {count} failed; {sum(o.steps for o in outcomes)} steps, "
        f"{sum(o.factorizations for o in outcomes)} factorisations, {sum(o.seconds for o in outcomes):.0f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
