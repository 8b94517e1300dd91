"""Friction of a sliding cube from its noisy path: whole trajectory and single steps (Le Lidec 2021, Fig. 4a)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import add
from add.typing import FloatArray
from scripts.reproduction.drawing import figure
from scripts.reproduction.entry import Context, Entry, Outcome, Row
from scripts.reproduction.hard_scenes import FRICTION, GRAVITY, NOISE, SPEED, cube, fit, floor_scene, tracked

STARTS = (0.02, 0.1, 0.4, 0.8)
DT, SAMPLES = 0.005, 50

#: Cramer-Rao bounds of mu from 50 samples of 1 mm over 0.5 s, with the first speed known and fitted.
BOUNDS = {"known": 2.516e-4, "fitted": 1.549e-3}


def path(steps: int, dt: float) -> FloatArray:
    """Return the closed form of implicit steps: v_k = v_0 - k mu g dt, places (steps + 1, 3)."""
    k = np.arange(steps + 1)
    out = np.zeros((steps + 1, 3))
    out[:, 0] = SPEED * k * dt - 0.5 * FRICTION * GRAVITY * dt * dt * k * (k + 1)
    out[:, 2] = 0.05
    return out


def _one_step(folder: Path, noise: FloatArray, speeds: FloatArray | None, weights: dict[str, float]) -> float:
    """Return the friction by single steps of 5 ms from noisy places (k, 3)."""
    places = path(100, DT) + noise
    q = np.zeros((101, 6))
    q[:, :3] = places
    arrays = {"t": DT * np.arange(101), "q": q} | ({} if speeds is None else {"v": speeds})
    np.savez(folder / "states.npz", **arrays)
    raw = floor_scene({"a": cube(speed=SPEED)}, 100, DT)
    raw["objective"] = [{"type": "one-step", "file": str(folder / "states.npz"), **weights}]
    return float(fit(raw, {"contact.friction": 0.4})[0])


def run(context: Context) -> Outcome:
    """Fit all seeds and starts."""
    seeds = 2 if context.short else 10
    steps = 100
    raw = floor_scene({"a": cube(speed=SPEED)}, steps, DT)
    simulated = add.scene_from_dict(raw).build().run()
    apart = float(np.abs(simulated.q[:, :3] - path(steps, DT)).max())
    known, fitted, spread = [], [], 0.0
    for seed in range(seeds):
        noise = NOISE * np.random.default_rng(seed).normal(size=(SAMPLES, 3))
        asked = tracked(raw, {"a": path(steps, DT)[2::2] + noise})
        found = [fit(asked, {"contact.friction": start})[0] for start in (STARTS if seed < 1 else STARTS[2:3])]
        spread = max(spread, float(np.ptp(found)))
        known.append(found[0])
        both = fit(asked, {"contact.friction": 0.4, "bodies.a.velocity": 1.5}, {"bodies.a.velocity": 0})
        fitted.append(both[0])
    single: dict[str, list[float]] = {"exact states": [], "noise along x": [], "noise along all axes": []}
    v = np.zeros((steps + 1, 6))
    v[:, 0] = SPEED - FRICTION * GRAVITY * DT * np.arange(steps + 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        single["exact states"].append(_one_step(folder, np.zeros((steps + 1, 3)), v, {}))
        for seed in range(seeds):
            noise = NOISE * np.random.default_rng(seed).normal(size=(steps + 1, 3)) * [1, 0, 0]
            single["noise along x"].append(_one_step(folder, noise, None, {"q": 1.0, "v": 0.0}))
            noise = NOISE * np.random.default_rng(seed).normal(size=(steps + 1, 3))
            single["noise along all axes"].append(_one_step(folder, noise, None, {"q": 1.0, "v": 0.0}))
    rows = [Row("path of the simulation, largest distance from the closed form [m]", f"{apart:.1e}")]
    rows.append(Row("whole path: distance between fits from mu = 0.02, 0.1, 0.4, 0.8", f"{spread:.1e}"))
    for label, values in (("known", known), ("fitted", fitted)):
        error, bound = np.array(values) - FRICTION, BOUNDS[label]
        shares = f"{np.sqrt(np.mean(error**2)) / bound:.2f}; {np.abs(error).max() / bound:.2f}"
        text = f"{np.mean(values):.5f} +- {np.std(error):.5f}; {shares}"
        rows.append(Row(f"whole path, speed {label}: mu; rms and largest error over the bound {bound:.2g}", text))
    for label, values in single.items():
        rows.append(Row(f"one step, {label}: mu", f"{np.mean(values):.4f} +- {np.std(values):.4f}"))
    with figure(context.image("hard_friction.png"), 5.5, 2.6) as drawn:
        axes = drawn.subplots()
        for x, (label, values) in enumerate({"whole path": known, "and speed": fitted, **single}.items()):
            axes.plot(np.full(len(values), x), values, "o", ms=4, alpha=0.6, label=label)
        axes.axhline(FRICTION, color="k", lw=0.6)
        axes.set(ylabel="friction coefficient", xticks=[])
        axes.legend()
    return Outcome(
        tuple(rows),
        {"hard_friction.png": "The friction that each seed of noise gives; line: the truth."},
        (
            f"{seeds} seeds of white noise of 1 mm on positions; 50 samples over 0.5 s, single steps on 101. Data are "
            "the closed form of steps of 5 ms. Velocities of single steps are differences of noisy places: what "
            "friction changes in a step, 0.05 mm, is far below the noise, which is in both ends of a step, and where "
            "noise turns the slip round, friction pushes the other way: the estimate is too low, and no number of "
            "steps mends that.",
        ),
        {"known": known, "fitted": fitted, "spread": spread, "single": single, "apart": apart},
    )


ENTRY = Entry(
    "hard1",
    "Hard contact: friction of a sliding cube",
    "A cube of 0.1 m slides from 2 m/s with mu = 0.2; its coefficient is found from a noisy path by impulses, from "
    "four starts and ten seeds, beside the published loss of single steps from recorded states. The recordings of a "
    "wooden cube that the paper fits were not released; those of a tossed cube (ContactNets) stand in, in "
    "[recordings of rigid bodies](rigid-recordings.md).",
    run,
)
