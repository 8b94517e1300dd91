"""Poses of links at the start, for couplings that lay the other end where one end starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from add.bodies import Block, Layouts, TreeBody
from add.equations.layout import DofLayout, ParameterLayout
from add.scene.build.numbers import SceneParameter
from add.scene.build.ties import Derived
from add.ties import LinkPose
from add.typing import FloatArray


def link_starts(
    tree: TreeBody, links: Sequence[str], numbers: Sequence[SceneParameter]
) -> tuple[list[Block], list[Derived], dict[str, FloatArray]]:
    """Return the blocks ``bodies.<tree>/<link>.position`` and ``.orientation``, their ties, and the poses (6,)."""
    if not links:
        return [], [], {}
    whole = ParameterLayout([*tree.parameters(), ("gravity", (3,), "m/s^2")])
    elements, of_links = tree.tree(Layouts(DofLayout([]), DofLayout([]), whole))
    places = elements.placement
    values = tree.start_names()
    needed = np.unique(np.concatenate([places[places >= 0], *(whole[name].indices for name in values)]))
    names = [entry.name for entry in whole.entries if entry.start in needed]
    own = ParameterLayout([(name, whole[name].shape, whole[name].unit) for name in names])
    local = np.full(whole.n, -1, dtype=np.int64)
    for name in names:
        local[whole[name].indices.ravel()] = own[name].indices.ravel()
    n = elements.parent.size
    elements = elements._replace(
        placement=np.where(places >= 0, local[places], -1),
        mass=np.full(n, -1, dtype=np.int64),
        gravity=np.zeros(3, dtype=np.int64),
    )
    coordinates = local[np.concatenate([whole[name].indices.ravel() for name in values])]
    given = {target: number.value * factor for number in numbers for target, factor in number.targets}
    x = np.concatenate([np.asarray(given[name], dtype=float).ravel() for name in names])
    blocks: list[Block] = []
    derived, poses = [], {}
    for link in links:
        name = f"{tree.name}/{link}"
        rule = LinkPose(elements, int(of_links[tree.links.index(link)]), coordinates)
        outputs = (f"bodies.{name}.position", f"bodies.{name}.orientation")
        blocks += [(outputs[0], (3,), "m"), (outputs[1], (3,), "rad")]
        derived.append(Derived(outputs, rule, tuple(names)))
        poses[name] = rule.value(x[None])[0]
    return blocks, derived, poses
