"""Gradients against their forward runs: with the physical parameters of a scene, and with a thousand more."""

from __future__ import annotations

from pathlib import Path

from add.commands.check_gradient import probe
from add.scene import Scene, load_scene, scene_from_dict
from benchmarks.timing import time_gradient

SCENES = Path(__file__).parents[1] / "scenes"

#: Name, file, steps, the soft body that a load may act on.
CASES = (
    ("cylinder (Fig. 2)", "fig2_cylinder_linear", 500, "cylinder"),
    ("ball (Fig. 10a)", "fig10a_ball_to_point", 250, "ball"),
    ("tori (Fig. 5)", "fig5_tori", 200, "tori"),
    ("cube on strings", "strings_cube", 60, None),
    ("robot", "robot_rigid", 192, None),
)

#: Rows of three numbers: a thousand parameters.
ROWS = 334


def with_control(scene: Scene, body: str) -> Scene:
    """Return the scene with a load of a thousand numbers, all zero, so that the motion is the same."""
    raw = dict(scene.raw)
    raw["signals"] = {"push": {"type": "control", "basis": "linear", "rows": ROWS, "values": [[0.0, 0.0, 0.0]]}}
    load = {"where": {"all": True}, "force": {"signal": "push"}}
    raw["bodies"] = {**raw["bodies"], body: {**raw["bodies"][body], "loads": [load]}}
    return scene_from_dict(raw)


def gradients(small: bool) -> list[dict[str, object]]:
    """Time the gradients of all cases."""
    rows: list[dict[str, object]] = []
    print(f"{'scene':24}{'parameters':>11}{'it/step':>9}{'forward':>9}{'gradient':>10}{'/ forward':>11}{'/ units':>9}")
    for name, file, steps, body in CASES:
        scene = load_scene(SCENES / f"{file}.json")
        for case in (scene, with_control(scene, body)) if body else (scene,):
            built = case.build()
            n_steps = 20 if small else steps
            row = time_gradient(built.simulation, probe(built, n_steps, 0), n_steps, 0.5 if small else 6.0)
            rows.append({"scene": name, **row})
            print(
                f"{name:24}{row['parameters']:11.0f}{row['iterations_per_step']:9.2f}{row['forward_ms_per_step']:9.3f}"
                f"{row['gradient_ms_per_step']:10.3f}{row['gradient_over_forward']:11.2f}"
                f"{row['gradient_over_units']:9.2f}",
                flush=True,
            )
    return rows
