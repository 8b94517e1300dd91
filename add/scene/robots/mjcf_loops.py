"""Equalities of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.scene.robots.mjcf_model import Names
from add.scene.robots.model import RobotLoop
from add.scene.robots.turns import Place, after, from_quaternion
from add.scene.robots.xml_file import Source
from add.typing import FloatArray

LinkPlace = tuple[str, FloatArray, FloatArray]


def read_loops(
    source: Source, mujoco: Any, model: Any, names: Names, bodies: dict[int, LinkPlace], fixed: set[str]
) -> tuple[RobotLoop, ...]:
    """Return connections of points, welds and couplings of joints and of fixed tendons.

    Parameters
    ----------
    source, mujoco, model, names : of the file
    bodies : place of each body in its link, by number
    fixed : names of the fixed tendons
    """
    found = []
    kinds = mujoco.mjtEq
    for number in range(model.neq):
        name, kind = names.of("equality", number), int(model.eq_type[number])
        place = source.place("equality", name)
        if not model.eq_active0[number]:
            source.note(place, "not active")
        elif _held_by_mocap(model, number, kinds, by_sites=_by_sites(mujoco, model, number)):
            source.doubt("mocap", place, "to a mocap body, a handle that others move: left out, and for `couplings`")
        elif kind == int(kinds.mjEQ_JOINT) or (kind == int(kinds.mjEQ_TENDON) and "equality" not in source.ignore):
            of = "joint" if kind == int(kinds.mjEQ_JOINT) else "tendon"
            numbers = [int(model.eq_obj1id[number]), int(model.eq_obj2id[number])]
            ends = tuple(names.of(of, end) for end in numbers if end >= 0)
            count = 5 if len(ends) == 2 else 1
            coefficients = tuple(float(value) for value in model.eq_data[number][:count])
            if of == "tendon" and not fixed >= set(ends):
                source.refuse("equality", place, "an equality of tendons that are spatial or not read")
                continue
            found.append(RobotLoop(name, f"{of}s", joints=ends, coefficients=coefficients))
        elif kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            weld = kind == int(kinds.mjEQ_WELD)
            turn = np.array(model.eq_data[number][6:10])
            if weld and not abs(float(turn @ turn) - 1.0) < 1e-6 and not _by_sites(mujoco, model, number):
                source.fail(place, "a weld without a unit quaternion", turn.tolist(), "`relpose` with one, or none")
            both = _ends(mujoco, model, number, weld)
            links = tuple(bodies[body][0] for body, _ in both)
            places = [after(bodies[body][1:], local) for body, local in both]
            positions = np.stack([at[0] for at in places])
            rotations = np.stack([at[1] for at in places]) if weld else np.stack([np.eye(3)] * 2)
            found.append(RobotLoop(name, "fixed" if weld else "point", links, positions, rotations))
        else:
            what = mujoco.mjtEq(kind).name.removeprefix("mjEQ_").lower()
            source.refuse("equality", place, f"an equality of type {what}")
    return tuple(found)


def _ends(mujoco: Any, model: Any, number: int, weld: bool) -> list[tuple[int, Place]]:
    """Return the two bodies, each with the place in it that coincides with the other's."""
    one, two = int(model.eq_obj1id[number]), int(model.eq_obj2id[number])
    data = np.array(model.eq_data[number], dtype=np.float64)
    if _by_sites(mujoco, model, number):
        return [
            (
                int(model.site_bodyid[site]),
                (np.array(model.site_pos[site]), from_quaternion(np.array(model.site_quat[site]))),
            )
            for site in (one, two)
        ]
    if not weld:
        return [(one, (data[:3], np.eye(3))), (two, (data[3:6], np.eye(3)))]
    # Of a weld: the point in the second body, in the first, and the turn of the second in the first.
    return [(one, (data[3:6], from_quaternion(data[6:10]))), (two, (data[:3], np.eye(3)))]


def _held_by_mocap(model: Any, number: int, kinds: Any, *, by_sites: bool) -> bool:
    """Return whether an equality of places has a mocap body at one end."""
    if int(model.eq_type[number]) not in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
        return False
    ends = (int(model.eq_obj1id[number]), int(model.eq_obj2id[number]))
    return any(model.body_mocapid[model.site_bodyid[end] if by_sites else end] >= 0 for end in ends)


def _by_sites(mujoco: Any, model: Any, number: int) -> bool:
    return int(model.eq_objtype[number]) == int(mujoco.mjtObj.mjOBJ_SITE)
