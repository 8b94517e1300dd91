"""Actuators and tendons of a compiled MuJoCo model, and what of an MJCF a robot does not have."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from add.scene.robots.inertia import from_quaternion
from add.scene.robots.mjcf_model import SWITCHES, Names, refuse_newer
from add.scene.robots.model import RobotActuator, RobotSegment, RobotTendon
from add.scene.robots.xml_file import Source
from add.summary import counted, few
from add.typing import FloatArray

Limits = tuple[float, float]
Places = Mapping[int, tuple[str, FloatArray, FloatArray]]


def read_tendons(source: Source, mujoco: Any, model: Any, names: Names, places: Places) -> tuple[RobotTendon, ...]:
    """Return the tendons, spatial ones by ``places``, link, position and rotation in it of each body by number."""
    tendons = []
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
        tendons.append(RobotTendon(name, joints, stiffness, (rest[0], rest[1]), damping, friction, *limits, segments))
    return tuple(tendons)


def _segments(
    source: Source, mujoco: Any, model: Any, tendon: str, parts: range, places: Places
) -> tuple[RobotSegment, ...]:
    """Return the segments of a spatial tendon, between each two of its sites that no pulley divides."""
    kinds, segments = mujoco.mjtWrap, []
    weight, last, around = 1.0, None, None
    for part in parts:
        kind, number = int(model.wrap_type[part]), int(model.wrap_objid[part])
        if kind == int(kinds.mjWRAP_PULLEY):
            weight, last, around = 1.0 / float(model.wrap_prm[part]), None, None
        elif kind == int(kinds.mjWRAP_SITE):
            here = _of_site(model, number, places)
            if last is not None:
                ends = (last, here)
                segments.append(
                    RobotSegment(ends, weight)
                    if around is None
                    else RobotSegment((*ends, *around[0]), weight, around[1], around[2])
                )
            last, around = here, None
        else:
            around = _around(source, mujoco, model, tendon, part, places)
    return tuple(segments)


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
    places_around, radius = [(link, centre)], float(model.geom_size[geom][0])
    if around == "cylinder":
        places_around.append((link, centre + (rotation @ from_quaternion(np.array(model.geom_quat[geom])))[:, 2]))
    if side >= 0:
        places_around.append(_of_site(model, side, places))
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)  # where the file poses it; the two may be on different links
        if np.linalg.norm(data.site_xpos[side] - data.geom_xpos[geom]) < radius:
            text = f"it runs on the inside of a {around}: read as straight there"
            source.doubt("tendon", source.place("tendon", tendon), text)
            return None
    return tuple(places_around), around, radius


def read_actuators(
    source: Source, mujoco: Any, model: Any, names: Names, tendons: set[str]
) -> tuple[RobotActuator, ...]:
    """Return the muscles, and the actuators with a force affine in l and l_dot, on joints, these tendons and sites."""
    actuators = []
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
        actuators.append(
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
    return tuple(actuators)


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


# --- Parts that a robot does not have: refused where they change the motion, else noted -------------------------------

_HARMLESS = (
    ("ncam", "camera"),
    ("nlight", "light"),
    ("nsensor", "sensor"),
    ("nmat", "material"),
    ("ntex", "texture"),
    ("nskin", "skin"),
    ("nnumeric", "custom number"),
    ("ntext", "custom text"),
    ("ntuple", "custom tuple"),
)
#: Flags that are read, whose names need no note.
_READ_FLAGS = (*SWITCHES, "ACTUATION", "GRAVITY", "CONTACT", "FILTERPARENT")
_READ_OPTIONS = ("timestep", "integrator", "gravity", "density", "viscosity", "wind", "disableflags", "enableflags",
                 "disableactuator")  # fmt: skip
#: Numbers of MuJoCo's soft constraints and contact: kind -> (its attributes, array of the model, default).
_REF, _IMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
_SOFT: dict[str, tuple[tuple[str, str, Any], ...]] = {
    "geom": (
        ("solref", "geom_solref", _REF), ("solimp", "geom_solimp", _IMP), ("margin", "geom_margin", 0.0),
        ("gap", "geom_gap", 0.0), ("priority", "geom_priority", 0), ("solmix", "geom_solmix", 1.0),
    ),
    "joint": (
        ("solreflimit", "jnt_solref", _REF), ("solimplimit", "jnt_solimp", _IMP), ("margin", "jnt_margin", 0.0),
        ("solreffriction", "dof_solref", _REF), ("solimpfriction", "dof_solimp", _IMP),
    ),
    "tendon": (
        ("solreflimit", "tendon_solref_lim", _REF), ("solimplimit", "tendon_solimp_lim", _IMP),
        ("margin", "tendon_margin", 0.0), ("solreffriction", "tendon_solref_fri", _REF),
        ("solimpfriction", "tendon_solimp_fri", _IMP),
    ),
    "equality": (("solref", "eq_solref", _REF), ("solimp", "eq_solimp", _IMP)),
}  # fmt: skip
_INSTEAD = {
    "geom": "the scene's contact has numbers of its own",
    "joint": "the scene's limits and dry friction have numbers of their own",
    "tendon": "the scene's limits and dry friction have numbers of their own",
    "equality": "loops are exact",
}
#: Ranges that count only where the object is limited: kind, attribute, arrays of the range and of whether it is.
_RANGES = (
    ("joint", "range", "jnt_range", "jnt_limited"),
    ("joint", "actuatorfrcrange", "jnt_actfrcrange", "jnt_actfrclimited"),
    ("tendon", "range", "tendon_range", "tendon_limited"),
    ("actuator", "ctrlrange", "actuator_ctrlrange", "actuator_ctrllimited"),
    ("actuator", "forcerange", "actuator_forcerange", "actuator_forcelimited"),
)
#: Numbers of keyframes beside poses.
_KEYS = (("key_qvel", "qvel"), ("key_act", "act"), ("key_ctrl", "ctrl"), ("key_time", "time"))
_PLURAL = {"geom": "geoms", "joint": "joints", "tendon": "tendons", "actuator": "actuators", "equality": "equalities"}
_USERS = ("body", "jnt", "geom", "site", "tendon", "actuator")
_SHOWN = 4


def refuse_others(source: Source, mujoco: Any, model: Any, names: Names) -> None:
    """Refuse what changes the motion and is not read, unless the user names it."""
    for body in range(1, model.nbody):
        if model.body_mocapid[body] >= 0:
            source.note(source.place("body", names.of("body", body)), "mocap: it stands still until somebody moves it")
    for pair in range(model.npair):
        ends = [names.of("geom", int(ids[pair])) for ids in (model.pair_geom1, model.pair_geom2)]
        place = f"<contact><pair> of '{ends[0]}' and '{ends[1]}'"
        source.note(place, "numbers of its own, which the scene says for itself")
    refuse_newer(source, model, names)
    if model.nplugin:
        source.refuse("plugin", "<extension>", counted(model.nplugin, "plugin"))
    if model.nflex:
        source.refuse("flex", "<deformable>", f"{model.nflex} deformable bodies")


def note_others(source: Source, mujoco: Any, model: Any, names: Names) -> None:
    """Note what does not change the motion, or belongs to MuJoCo's solver."""
    for key, word in _HARMLESS:
        count = int(getattr(model, key))
        if count:
            source.note("file", f"{count} {word}{'s' if count > 1 else ''}")
    option = model.opt
    integrator = mujoco.mjtIntegrator(int(option.integrator)).name.removeprefix("mjINT_").lower()
    source.note("<option>", f"timestep {option.timestep:g} s, integrator {integrator}: the scene says its own")
    for kind, entries in _SOFT.items():
        others = [word for word, key, usual in entries if not np.allclose(getattr(model, key, usual), usual)]
        if others:
            source.note(_PLURAL[kind], f"{', '.join(others)}: {_INSTEAD[kind]}")
    _note_solver(source, mujoco, option)
    _note_idle(source, mujoco, model, names)
    solid = np.array(model.geom_contype) | np.array(model.geom_conaffinity)
    if ((np.array(model.geom_condim) == 1) & (solid != 0)).any():
        source.note("geoms", "condim 1: contact without friction; the scene's has its own coefficients")
    if model.ngeom and (np.array(model.geom_condim) > 3).any():
        source.note("geoms", "condim above 3: torsional and rolling friction")


def _note_solver(source: Source, mujoco: Any, option: Any) -> None:
    """Note settings of MuJoCo's solver, and flags that say how it computes."""
    usual = mujoco.MjSpec().option
    keys = [key for key in dir(usual) if not key.startswith("_") and key not in _READ_OPTIONS]
    others = [key for key in keys if hasattr(option, key) and np.any(getattr(option, key) != getattr(usual, key))]
    if others:
        source.note("<option>", f"{', '.join(others)}: of MuJoCo's solver")
    off, on = mujoco.mjtDisableBit.__members__, mujoco.mjtEnableBit.__members__
    flags = [name.removeprefix("mjDSBL_") for name, bit in off.items() if option.disableflags & int(bit)]
    flags = [name for name in flags if name not in _READ_FLAGS]
    flags += [name.removeprefix("mjENBL_") for name, bit in on.items() if option.enableflags & int(bit)]
    flags = [name.lower() for name in flags if not name.startswith("mjN")]
    if flags:
        source.note("<option><flag>", f"{', '.join(flags)}: how MuJoCo computes")


def _note_idle(source: Source, mujoco: Any, model: Any, names: Names) -> None:
    """Note numbers that no part of the motion reads, here or in MuJoCo."""
    for kind, word, key, limited in _RANGES:
        idle = [k for k, said in enumerate(getattr(model, limited)) if not said and np.any(getattr(model, key)[k])]
        _note_some(source, names, kind, idle, f"{word} without a limit (`limited` is false): nothing is limited")
    data, kinds = np.array(model.eq_data), np.array(model.eq_type)
    alone = (kinds == int(mujoco.mjtEq.mjEQ_JOINT)) & (np.array(model.eq_obj2id) < 0) & np.any(data[:, 2:5], axis=1)
    _note_some(source, names, "equality", np.flatnonzero(alone), "polycoef beyond the first, without a second joint")
    scaled = (kinds == int(mujoco.mjtEq.mjEQ_WELD)) & (data[:, 10] != 1.0)
    _note_some(source, names, "equality", np.flatnonzero(scaled), "torquescale: loops are exact")
    if pulled := [f"'{names.of('joint', number)}'" for number in _limited_from_afar(mujoco, model)]:
        text = f"{few(pulled, _SHOWN)}: actuatorfrcrange, to which actuators on tendons and sites do not keep"
        source.doubt("actuatorfrcrange", "joints", text)
    numbers_of: dict[str, list[int]] = {}
    for number in range(model.nu):
        for word in _idle_of_actuator(mujoco, model, number):
            numbers_of.setdefault(word, []).append(number)
    _note_some(source, names, "actuator", np.flatnonzero(model.actuator_actearly), "actearly: steps are implicit")
    for word, numbers in numbers_of.items():
        _note_some(source, names, "actuator", numbers, f"{word}, which an actuator of this type does not read")
    if keys := [word for key, word in _KEYS if np.any(getattr(model, key))]:
        source.note("keyframes", f"{', '.join(keys)}: poses alone are read")
    users = [kind for kind in _USERS if np.any(getattr(model, f"{kind}_user"))]
    if users:
        source.note("file", f"user numbers of {', '.join({'jnt': 'joint'}.get(kind, kind) for kind in users)}")
    if not model.opt.density and not model.opt.viscosity and np.any(np.array(model.geom_fluid)[:, 0]):
        source.note("geoms", "fluidshape without a fluid")


def _limited_from_afar(mujoco: Any, model: Any) -> list[int]:
    """Return the joints with limits of all actuators' force on them on which actuators on tendons or sites act.

    Of a fixed tendon these are its joints; of a spatial one and of a site, which may move with any, all.
    """
    kinds, limited = mujoco.mjtTrn, np.flatnonzero(model.jnt_actfrclimited).tolist()
    joints: set[int] = set()
    for kind, target in zip(model.actuator_trntype.tolist(), model.actuator_trnid[:, 0].tolist(), strict=True):
        if kind in (int(kinds.mjTRN_TENDON), int(kinds.mjTRN_SITE)):
            first = int(model.tendon_adr[target]) if kind == int(kinds.mjTRN_TENDON) else -1
            if first < 0 or int(model.wrap_type[first]) != int(mujoco.mjtWrap.mjWRAP_JOINT):
                return limited
            joints |= set(model.wrap_objid[first : first + int(model.tendon_num[target])].tolist())
    return sorted(joints & set(limited))


def _idle_of_actuator(mujoco: Any, model: Any, number: int) -> list[str]:
    """Return the attributes of an actuator that are given and that its type does not read."""
    gains, biases, kinds = mujoco.mjtGain, mujoco.mjtBias, mujoco.mjtTrn
    gain, bias = (np.array(values[number]) for values in (model.actuator_gainprm, model.actuator_biasprm))
    gear, kind = np.array(model.actuator_gear[number]), int(model.actuator_trntype[number])
    first_gain = {int(gains.mjGAIN_FIXED): 1, int(gains.mjGAIN_AFFINE): 3}.get(int(model.actuator_gaintype[number]))
    first_bias = {int(biases.mjBIAS_NONE): 0, int(biases.mjBIAS_AFFINE): 3}.get(int(model.actuator_biastype[number]))
    out = []
    if first_gain is not None and gain[first_gain:].any():
        out.append("gainprm")
    if first_bias is not None and bias[first_bias:].any():
        out.append("biasprm")
    if kind != int(kinds.mjTRN_SITE) and gear[1:].any():
        out.append("gear beyond the first number")
    if int(model.actuator_dyntype[number]) == int(mujoco.mjtDyn.mjDYN_NONE) and (
        model.actuator_actlimited[number] or np.any(np.array(model.actuator_dynprm[number]) != [1.0, *[0.0] * 9])
    ):
        out.append("actrange or dynprm")
    return out


def _note_some(source: Source, names: Names, kind: str, numbers: Any, text: str) -> None:
    if listed := [f"'{names.of(kind, int(number))}'" for number in numbers]:
        source.note(_PLURAL[kind], f"{few(listed, _SHOWN)}: {text}")
