"""All entries in the order in which they run: later ones use numbers of earlier ones."""

from __future__ import annotations

from scripts.reproduction import (
    cma_comparison,
    fig02_cylinder,
    fig03_landscape,
    fig04_continuation,
    fig05_tori,
    fig06_energy,
    fig07_sphere,
    fig08_cube,
    fig10a_throws,
    fig10b_line,
    fig11a_wall,
    fig11b_bunny,
    fig12_policy,
    hard_cubes,
    hard_friction,
    hard_gradients,
    hard_layers,
    hard_pyramid,
    robot_drone,
    robot_jacobians,
    robot_worm,
    table1,
    table2,
)
from scripts.reproduction.entry import Entry

MODULES = (
    fig02_cylinder,
    fig03_landscape,
    fig04_continuation,
    fig05_tori,
    fig06_energy,
    fig07_sphere,
    fig08_cube,
    fig10a_throws,
    fig10b_line,
    fig11a_wall,
    fig11b_bunny,
    fig12_policy,
    cma_comparison,
    table1,
    table2,
    hard_friction,
    hard_pyramid,
    hard_cubes,
    hard_gradients,
    hard_layers,
    robot_jacobians,
    robot_drone,
    robot_worm,
)
ENTRIES: dict[str, Entry] = {module.ENTRY.key: module.ENTRY for module in MODULES}
