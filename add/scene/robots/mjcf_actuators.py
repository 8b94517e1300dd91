"""Actuators and tendons of a compiled MuJoCo model."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from add.scene.robots.inertia import from_quaternion
from add.scene.robots.mjcf_model import Names
from add.scene.robots.model import RobotActuator, RobotSegment, RobotTendon
from add.scene.robots.xml_file import Source
from add.typing import FloatArray

Limits = tuple[float, float]
Places = Mapping[int, tuple[str, FloatArray, FloatArray]]
_Z = np.array([0.0, 0.0, 1.0])


def read_tendons(source: Source, mujoco: Any, model: Any, names: Names, places: Places) -> tuple[RobotTendon, ...]:
    """Return the tendons, spatial ones by ``places``, link, position and rotation in it of each body by number."""
    found = []
    for tendon in range(model.ntendon):
        name = names.of("tendon", tendon)
        first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
        parts = range(first, first + count)
        fixed = all(int(model.wrap_type[part]) == int(mujoco.mjtWrap.mjWRAP_JOINT) for part in parts)
        if "tendon" in source.ignore and not fixed:
            source.refuse("tendon", source.place("tendon", name), "a spatial tendon")
            continue
        newer = [key for key in ("armature", "actfrclimited") if hasattr(model, f"tendon_{key}")]
        given = [key for key in newer if getattr(model, f"tendon_{key}")[tendon]]
        if given:
            source.refuse("tendon", source.place("tendon", name), f"a tendon with {', '.join(given)}")
            continue
        rest = tuple(float(value) for value in model.tendon_lengthspring[tendon])
        limits = _limits(model.tendon_limited[tendon], model.tendon_range[tendon])
        joints: tuple[tuple[str, float], ...] = ()
        if fixed:
            ids = [names.of("joint", int(model.wrap_objid[part])) for part in parts]
            joints = tuple(zip(ids, (float(model.wrap_prm[part]) for part in parts), strict=True))
        segments = () if fixed else _segments(source, mujoco, model, name, parts, places)
        numbers = (model.tendon_stiffness, model.tendon_damping, model.tendon_frictionloss)
        stiffness, damping, friction = (float(values[tendon]) for values in numbers)
        source.not_negative(source.place("tendon", name), stiffness=stiffness, damping=damping, frictionloss=friction)
        found.append(RobotTendon(name, joints, stiffness, (rest[0], rest[1]), damping, friction, *limits, segments))
    return tuple(found)


def _segments(
    source: Source, mujoco: Any, model: Any, tendon: str, parts: range, places: Places
) -> tuple[RobotSegment, ...]:
    """Return the segments of a spatial tendon, between each two of its sites that no pulley divides."""
    kinds, found = mujoco.mjtWrap, []
    weight, last, around = 1.0, None, None
    for part in parts:
        kind, number = int(model.wrap_type[part]), int(model.wrap_objid[part])
        if kind == int(kinds.mjWRAP_PULLEY):
            weight, last, around = 1.0 / float(model.wrap_prm[part]), None, None
        elif kind == int(kinds.mjWRAP_SITE):
            here = _of_site(model, number, places)
            if last is not None:
                ends = (last, here)
                found.append(
                    RobotSegment(ends, weight)
                    if around is None
                    else RobotSegment((*ends, *around[0]), weight, around[1], around[2])
                )
            last, around = here, None
        else:
            around = _around(source, mujoco, model, tendon, part, places)
    return tuple(found)


def _of_site(model: Any, site: int, places: Places) -> tuple[str, FloatArray]:
    link, position, rotation = places[int(model.site_bodyid[site])]
    return link, position + rotation @ np.array(model.site_pos[site])


def _around(
    source: Source, mujoco: Any, model: Any, tendon: str, part: int, places: Places
) -> tuple[tuple[tuple[str, FloatArray], ...], str, float] | None:
    """Return centre, axis and side of what a tendon runs around, its kind and radius; None if it runs within it."""
    geom, side = int(model.wrap_objid[part]), round(float(model.wrap_prm[part]))
    link, position, rotation = places[int(model.geom_bodyid[geom])]
    centre = position + rotation @ np.array(model.geom_pos[geom])
    around = "cylinder" if int(model.wrap_type[part]) == int(mujoco.mjtWrap.mjWRAP_CYLINDER) else "sphere"
    found, radius = [(link, centre)], float(model.geom_size[geom][0])
    if around == "cylinder":
        found.append((link, centre + rotation @ from_quaternion(np.array(model.geom_quat[geom])) @ _Z))
    if side >= 0:
        found.append(_of_site(model, side, places))
        if found[-1][0] == link and np.linalg.norm(found[-1][1] - centre) < radius:
            text = f"it runs on the inside of a {around}: read as straight there"
            source.doubt("tendon", source.place("tendon", tendon), text)
            return None
    return tuple(found), around, radius


def read_actuators(
    source: Source, mujoco: Any, model: Any, names: Names, tendons: set[str]
) -> tuple[RobotActuator, ...]:
    """Return the muscles, and the actuators with a force affine in l and l_dot, on joints, these tendons and sites."""
    found = []
    for number in range(model.nu):
        name = names.of("actuator", number)
        if int(model.opt.disableactuator) >> int(model.actuator_group[number]) & 1:
            source.note(source.place("actuator", name), "its group is switched off")
            continue
        wrong = _wrong(mujoco, model, names, number, tendons)
        if wrong:
            source.doubt("actuator", source.place("actuator", name), f"{wrong}: it is left out")
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
                *_dynamics(source, mujoco, model, name, number),
                _muscle(mujoco, model, number),
            )
        )
    return tuple(found)


def _limits(limited: Any, values: Any) -> Limits:
    return (float(values[0]), float(values[1])) if limited else (-np.inf, np.inf)


def _dynamics(source: Source, mujoco: Any, model: Any, name: str, number: int) -> tuple[str, tuple[float, ...], Limits]:
    """Return how the activation of an actuator follows its control, with the times, and its limits."""
    kinds, kind = mujoco.mjtDyn, int(model.actuator_dyntype[number])
    numbers = tuple(float(value) for value in model.actuator_dynprm[number][:3])
    limits = _limits(model.actuator_actlimited[number], model.actuator_actrange[number])
    if kind not in (int(kinds.mjDYN_NONE), int(kinds.mjDYN_INTEGRATOR)):
        times = numbers[:2] if kind == int(kinds.mjDYN_MUSCLE) else numbers[:1]
        source.not_negative(source.place("actuator", name), dynprm=min(times))
    if kind == int(kinds.mjDYN_MUSCLE):
        if numbers[2]:
            source.doubt("actuator", source.place("actuator", name), "tausmooth: its times change without it")
        return "muscle", numbers[:2], limits
    if kind == int(kinds.mjDYN_INTEGRATOR):
        return "integrator", (), limits
    return ("", (), (-np.inf, np.inf)) if kind == int(kinds.mjDYN_NONE) else ("filter", numbers[:1], limits)


def _muscle(mujoco: Any, model: Any, number: int) -> tuple[float, ...]:
    """Return the numbers of `RobotActuator.muscle`, () of an actuator that is none."""
    if int(model.actuator_gaintype[number]) != int(mujoco.mjtGain.mjGAIN_MUSCLE):
        return ()
    low, high, force, scale, shortest, longest, speed, passive, lengthening = (
        float(value) for value in model.actuator_gainprm[number][:9]
    )
    least, most = (float(value) for value in model.actuator_lengthrange[number])
    optimal = (most - least) / max(high - low, 1e-15)
    strength = force if force >= 0.0 else scale / max(float(model.actuator_acc0[number]), 1e-15)
    return strength, optimal, speed, shortest, longest, passive, lengthening, least - low * optimal


def _wrong(mujoco: Any, model: Any, names: Names, number: int, tendons: set[str]) -> str:
    """Return why an actuator is not read, "" if it is."""
    kinds, target = mujoco.mjtTrn, int(model.actuator_trnid[number][0])
    kind = int(model.actuator_trntype[number])
    known = [f"mjDYN_{name}" for name in ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT", "MUSCLE")]
    if int(model.actuator_dyntype[number]) not in [int(getattr(mujoco.mjtDyn, name)) for name in known]:
        return "its dyntype is not read"
    gain, bias = int(model.actuator_gaintype[number]), int(model.actuator_biastype[number])
    gains, biases = mujoco.mjtGain, mujoco.mjtBias
    if int(gains.mjGAIN_MUSCLE) == gain and int(biases.mjBIAS_MUSCLE) == bias:
        if not np.array_equal(model.actuator_gainprm[number][:9], model.actuator_biasprm[number][:9]):
            return "a muscle of two kinds: gainprm and biasprm differ"
        if model.actuator_lengthrange[number][0] >= model.actuator_lengthrange[number][1]:
            return "a muscle without a lengthrange"
    elif gain not in (int(gains.mjGAIN_FIXED), int(gains.mjGAIN_AFFINE)):
        return "its gain is neither fixed nor affine"
    elif bias not in (int(biases.mjBIAS_NONE), int(biases.mjBIAS_AFFINE)):
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
