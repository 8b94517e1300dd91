"""Times of scenes: those of the original program with its three friction laws, and those of the paper's Table 2."""

from __future__ import annotations

from pathlib import Path

from add.scene import apply_overrides, load_scene
from benchmarks.timing import Row, time_forward

SCENES = Path(__file__).parents[1] / "scenes"

LAWS = ("linear", "tanh", "hybrid")

#: Name, file, steps, milliseconds a step and Newton iterations a step (by law) of the original C++ program on the same
#: meshes (2.5 GHz, one thread), milliseconds a step that are wanted.
ORIGINAL = (
    ("cylinder (Fig. 2)", "fig2_cylinder_linear", 500, 88.0, (8.7, 7.6, 9.1), 8.8),
    ("ball (Fig. 10a)", "fig10a_ball_to_point", 250, 34.0, (3.2, 3.3, 4.5), 3.4),
    ("tori (Fig. 5)", "fig5_tori", 200, 405.0, (6.2, 8.0, 9.3), 40.0),
)

#: Name, file, steps, seconds of the paper's own runs (3.5 GHz, four cores), milliseconds a step that are wanted.
TABLE2 = (
    ("cube on strings", "strings_cube", 60, 0.044, 0.2),
    ("sheet", "sheet_flip", 120, 0.109, None),
    ("robot", "robot_rigid", 192, 0.550, None),
    ("robot with soft feet", "robot_soft_feet", 144, 1.552, None),
)


def published(small: bool) -> list[dict[str, object]]:
    """Time the original program's scenes."""
    rows: list[dict[str, object]] = []
    print(_HEAD)
    for name, file, steps, ms, iterations, wanted in ORIGINAL:
        scene = load_scene(SCENES / f"{file}.json")
        linear = 0.0
        for law, original in zip(LAWS, iterations, strict=True):
            simulation = apply_overrides(scene, {"contact.friction_law": law}).build().simulation
            row = time_forward(simulation, 20 if small else steps, 0.5 if small else 6.0)
            linear = linear or row["ms_per_step"]
            rows.append(
                {
                    "scene": name,
                    "law": law,
                    "original_ms_per_step": ms if law == "linear" else None,
                    "wanted_ms_per_step": wanted if law == "linear" else None,
                    "original_iterations": original,
                    "over_linear": row["ms_per_step"] / linear,
                    **row,
                }
            )
            print(_line(f"{name}, {law}", row), flush=True)
    return rows


def table2(small: bool) -> list[dict[str, object]]:
    """Time the scenes of the second table."""
    rows: list[dict[str, object]] = []
    print(_HEAD)
    for name, file, steps, seconds, wanted in TABLE2:
        simulation = load_scene(SCENES / f"{file}.json").build().simulation
        row = time_forward(simulation, 20 if small else steps, 0.5 if small else 2.0, 20)
        paper = 1e3 * seconds / steps
        rows.append({"scene": name, "paper_ms_per_step": paper, "wanted_ms_per_step": wanted, **row})
        print(_line(name, row), flush=True)
    return rows


_HEAD = (
    f"{'scene':28}{'ms/step':>9}{'it/step':>9}{'fac/step':>9}{'ms/fac':>8}{'x floor':>9}{'factor':>8}{'solve':>7}"
    f"{'kernels':>9}{'Python':>8}{'SuperLU/ours':>14}"
)


def _line(name: str, row: Row) -> str:
    return (
        f"{name:28}{row['ms_per_step']:9.3f}{row['iterations_per_step']:9.2f}{row['factorizations_per_step']:9.2f}"
        f"{row['ms_per_factorization']:8.3f}{row['over_floor']:9.2f}{row['factor_share']:8.0%}{row['solve_share']:7.0%}"
        f"{row['kernel_share']:9.0%}{row['python_share']:8.0%}{row['superlu_over_ours']:14.2f}"
    )
