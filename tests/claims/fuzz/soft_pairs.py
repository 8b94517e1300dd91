"""Random pairs of soft bodies that meet without any number of contact.

`PYTHONPATH=tests:tests/claims python -m fuzz.soft_pairs FIRST COUNT [FACTOR]` runs so many seeds, with a factor on the
default `contact.mesh.stiffness` if one is given, and says which find no step, pass through each other or lose momentum.
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import numpy as np
from fuzz.default_drops import _log, _vector

from add.errors import InputError, SolverError
from add.scene import apply_overrides, scene_from_dict


def pair(seed: int) -> dict[str, Any]:
    """Return the scene of a seed."""
    rng = np.random.default_rng([seed, 88])
    sizes = [_log(rng, 0.03, 0.15), 0.0]
    sizes[1] = float(np.clip(sizes[0] * _log(rng, 0.2, 5.0), 0.02, 0.3))
    speed = _log(rng, 0.2, 3.0)
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    reach = 0.62 * sum(size * 1.2 for size in sizes)
    across = np.cross(way, rng.normal(size=3))
    across *= rng.uniform(0.0, 0.4) * min(sizes) / np.linalg.norm(across)
    bodies = {
        name: _body(rng, size) | {
            "position": (sign * 0.5 * reach * way + 0.5 * sign * across).tolist(),
            "velocity": (-sign * speed * share * way).tolist(),
            "angular_velocity": _vector(rng, min(0.5 * speed / size, 15.0)),
        }
        for name, size, sign, share in zip("ab", sizes, (-1.0, 1.0), rng.uniform((0.0, 0.2), 1.0), strict=True)
    }  # fmt: skip
    return {
        "schema": "add-scene/1",
        "time": {
            "dt": float(rng.choice([0.001, 0.002, 0.004])),
            "duration": float(min(0.4, 2.5 * reach / speed + 0.02)),
            "integrator": str(rng.choice(["bdf1", "bdf2"])),
        },
        "gravity": [0, 0, 0],
        "bodies": bodies,
        "contact": {
            "friction": float(rng.uniform(0, 1)),
            "friction_law": str(rng.choice(["linear", "tanh", "hybrid"])),
        },
    }


def _body(rng: np.random.Generator, size: float) -> dict[str, Any]:
    mesh: dict[str, Any] = {"shape": "sphere", "radius": size / 2, "edge": size / 4}
    element = "tet4"
    if rng.random() < 0.5:
        n = int(rng.integers(2, 5))
        mesh = {"shape": "box", "size": [size, size * float(rng.uniform(0.5, 1.0)), size], "divisions": [n, n, n]}
        element = str(rng.choice(["tet4", "hex8"]))
    material = {"young": _log(rng, 1e3, 1e6), "poisson": float(rng.uniform(0.1, 0.45)),
                "density": _log(rng, 150.0, 1500.0), "viscosity": _log(rng, 0.1, 5.0)}  # fmt: skip
    quaternion = rng.normal(size=4)
    turn = (quaternion / np.linalg.norm(quaternion)).tolist()
    return {"type": "soft", "element": element, "mesh": mesh, "material": material, "orientation": turn}


class Outcome(NamedTuple):
    """How a pair ended: failure, whether they touched, share of momentum lost, seconds, k_n, whether they pass."""

    message: str
    touched: bool
    lost: float
    seconds: float
    stiffness: float
    through: bool


def run(seed: int, factor: float = 1.0) -> Outcome:
    """Run the pair of a seed."""
    scene = scene_from_dict(pair(seed))
    built = scene.build()
    stiffness = factor * built.scene.contact.mesh.stiffness
    if factor != 1.0:
        built = apply_overrides(built.scene, {"contact.mesh.stiffness": stiffness}).build()
    begin, message = time.perf_counter(), ""
    try:
        trajectory = built.run()
    except SolverError as error:
        message, trajectory = str(error), error.trajectory
    seconds = time.perf_counter() - begin
    masses = built.model.node_masses(built.theta)
    slices = [built.model.lift.rows[name] for name in ("a", "b")]
    momenta = np.array([(masses[:, None] * v.reshape(-1, 3)).sum(axis=0) for v in trajectory.v])
    first = masses[:, None] * trajectory.v[0].reshape(-1, 3)
    size = max(np.linalg.norm(first[s.start // 3 : s.stop // 3].sum(axis=0)) for s in slices)
    lost = float(np.abs(momenta - momenta[0]).max() / size)
    touched = any(record.decisions[0].size for record in trajectory.records)
    middles = [np.array([q[s.start : s.stop].reshape(-1, 3).mean(axis=0) for q in trajectory.q]) for s in slices]
    way = middles[1][0] - middles[0][0]
    through = bool((((middles[1] - middles[0]) @ way) < 0.0).any()) and touched
    return Outcome(message, touched, lost, seconds, stiffness, through)


def main(first: int, count: int, factor: float = 1.0) -> None:
    """Say which seeds go wrong."""
    failed, touched, through, total = 0, 0, 0, 0.0
    worst = 0.0
    for seed in range(first, first + count):
        try:
            found = run(seed, factor)
        except InputError as error:
            print(f"{seed}: invalid: {error}")
            continue
        failed, touched, through = failed + bool(found.message), touched + found.touched, through + found.through
        total, worst = total + found.seconds, max(worst, found.lost)
        if found.message or found.through or found.lost > 1e-11 or found.seconds > 15.0:
            print(f"{seed}: k {found.stiffness:.2g}, lost {found.lost:.1e}, through {found.through}, "
                  f"{found.seconds:.1f} s: {found.message[:150]}", flush=True)  # fmt: skip
    print(
        f"{count} pairs, {touched} touch, {failed} without a step, {through} pass, momentum {worst:.1e}, {total:.0f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 1.0)
