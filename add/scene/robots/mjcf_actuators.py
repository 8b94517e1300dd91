"""Actuators and fixed tendons of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.scene.robots.mjcf_model import Names
from add.scene.robots.model import RobotActuator, RobotTendon
from add.scene.robots.source import Source

Limits = tuple[float, float]


def read_tendons(source: Source, mujoco: Any, model: Any, names: Names) -> tuple[RobotTendon, ...]:
    """Return the fixed tendons."""
    found = []
    for tendon in range(model.ntendon):
        name = names.of("tendon", tendon)
        first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
        parts = range(first, first + count)
        if any(int(model.wrap_type[part]) != int(mujoco.mjtWrap.mjWRAP_JOINT) for part in parts):
            source.refuse("tendon", source.place("tendon", name), "a spatial tendon")
            continue
        newer = [key for key in ("armature", "actfrclimited") if hasattr(model, f"tendon_{key}")]
        given = [key for key in newer if getattr(model, f"tendon_{key}")[tendon]]
        if given:
            source.refuse("tendon", source.place("tendon", name), f"a tendon with {', '.join(given)}")
            continue
        rest = tuple(float(value) for value in model.tendon_lengthspring[tendon])
        limits = _limits(model.tendon_limited[tendon], model.tendon_range[tendon])
        joints = tuple((names.of("joint", int(model.wrap_objid[part])), float(model.wrap_prm[part])) for part in parts)
        numbers = (model.tendon_stiffness, model.tendon_damping, model.tendon_frictionloss)
        stiffness, damping, friction = (float(values[tendon]) for values in numbers)
        found.append(RobotTendon(name, joints, stiffness, (rest[0], rest[1]), damping, friction, *limits))
    return tuple(found)


def read_actuators(
    source: Source, mujoco: Any, model: Any, names: Names, tendons: set[str]
) -> tuple[RobotActuator, ...]:
    """Return the actuators with a force affine in l and l_dot, on joints, fixed tendons (of these names) and sites."""
    found = []
    for number in range(model.nu):
        name = names.of("actuator", number)
        if int(model.opt.disableactuator) >> int(model.actuator_group[number]) & 1:
            source.note(source.place("actuator", name), "its group is switched off")
            continue
        wrong = _wrong(mujoco, model, names, number, tendons)
        if wrong:
            source.refuse("actuator", source.place("actuator", name), wrong)
            continue
        transmission, target, gear = _transmission(mujoco, model, names, number)
        gain = [float(value) for value in model.actuator_gainprm[number][:3]]
        bias = [float(value) for value in model.actuator_biasprm[number][:3]]
        if int(model.actuator_gaintype[number]) == int(mujoco.mjtGain.mjGAIN_FIXED):
            gain[1:] = [0.0, 0.0]
        if int(model.actuator_biastype[number]) == int(mujoco.mjtBias.mjBIAS_NONE):
            bias = [0.0, 0.0, 0.0]
        found.append(
            RobotActuator(
                name,
                transmission,
                target,
                gear,
                (gain[0], gain[1], gain[2]),
                (bias[0], bias[1], bias[2]),
                _limits(model.actuator_ctrllimited[number], model.actuator_ctrlrange[number]),
                _limits(model.actuator_forcelimited[number], model.actuator_forcerange[number]),
            )
        )
    return tuple(found)


def _limits(limited: Any, values: Any) -> Limits:
    return (float(values[0]), float(values[1])) if limited else (-np.inf, np.inf)


def _wrong(mujoco: Any, model: Any, names: Names, number: int, tendons: set[str]) -> str:
    """Return why an actuator is not read, "" if it is."""
    kinds, target = mujoco.mjtTrn, int(model.actuator_trnid[number][0])
    kind = int(model.actuator_trntype[number])
    if int(model.actuator_dyntype[number]) != int(mujoco.mjtDyn.mjDYN_NONE):
        return "has an activation (dyntype)"
    if int(model.actuator_gaintype[number]) not in (
        int(mujoco.mjtGain.mjGAIN_FIXED),
        int(mujoco.mjtGain.mjGAIN_AFFINE),
    ):
        return "its gain is neither fixed nor affine"
    if int(model.actuator_biastype[number]) not in (int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)):
        return "its bias is not affine"
    if kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)):
        return "" if int(model.jnt_type[target]) >= 2 else "acts on a ball or free joint"
    if kind == int(kinds.mjTRN_TENDON):
        name = names.of("tendon", target)
        return "" if name in tendons else f"acts on tendon '{name}', which is not read"
    if kind == int(kinds.mjTRN_SITE):
        return "" if int(model.actuator_trnid[number][1]) < 0 else "acts between two sites"
    return f"its transmission {mujoco.mjtTrn(kind).name.removeprefix('mjTRN_').lower()} is not read"


def _transmission(mujoco: Any, model: Any, names: Names, number: int) -> tuple[str, str, tuple[float, ...]]:
    target, kind = int(model.actuator_trnid[number][0]), int(model.actuator_trntype[number])
    gear = tuple(float(value) for value in model.actuator_gear[number])
    if kind == int(mujoco.mjtTrn.mjTRN_SITE):
        return "place", names.of("site", target), gear
    if kind == int(mujoco.mjtTrn.mjTRN_TENDON):
        return "tendon", names.of("tendon", target), gear[:1]
    return "joint", names.of("joint", target), gear[:1]
