"""Actuators and tendons of a compiled MuJoCo model, and what of an MJCF a robot does not have."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from add.scene.robots.mjcf_model import SWITCHES, Mjcf, refuse_newer
from add.scene.robots.model import LinkPlace, RobotActuator, RobotSegment, RobotTendon
from add.scene.robots.xml_file import Source
from add.summary import counted, few
from add.typing import FloatArray

Limits = tuple[float, float]
Places = Mapping[int, LinkPlace]
#: Dynamics of activations that are read.
_DYNAMICS = ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT", "MUSCLE")
#: Of the groups of actuators that an option can switch off; a file may give any whole number.
_LAST_GROUP = 30


def read_tendons(mjcf: Mjcf, places: Places) -> tuple[RobotTendon, ...]:
    """Return the tendons, spatial ones by ``places``, link, position and rotation in it of each body by number."""
    source, model, tendons = mjcf.source, mjcf.model, []
    for tendon in range(model.ntendon):
        name, place = mjcf.of("tendon", tendon), mjcf.place("tendon", tendon)
        first = int(model.tendon_adr[tendon])
        parts = range(first, first + int(model.tendon_num[tendon]))
        fixed = all(mjcf.word("Wrap", model.wrap_type[part]) == "JOINT" for part in parts)
        if "tendon" in source.ignore and not fixed:
            source.refuse("tendon", place, "a spatial tendon")
            continue
        newer = [key for key in ("armature", "actfrclimited") if hasattr(model, f"tendon_{key}")]
        given = [key for key in newer if getattr(model, f"tendon_{key}")[tendon]]
        if given:
            source.refuse("tendon", place, f"a tendon with {', '.join(given)}")
            continue
        shortest, longest = model.tendon_lengthspring[tendon].tolist()
        pairs = ((mjcf.of("joint", int(model.wrap_objid[part])), float(model.wrap_prm[part])) for part in parts)
        joints = tuple(pairs) if fixed else ()
        segments = () if fixed else _segments(mjcf, place, parts, places)
        numbers = (model.tendon_stiffness, model.tendon_damping, model.tendon_frictionloss)
        stiffness, damping, friction = (float(values[tendon]) for values in numbers)
        source.not_negative(place, stiffness=stiffness, damping=damping, frictionloss=friction)
        limits = mjcf.limits("tendon_", tendon)
        tendons.append(RobotTendon(name, joints, stiffness, (shortest, longest), damping, friction, *limits, segments))
    return tuple(tendons)


def _segments(mjcf: Mjcf, tendon: str, parts: range, places: Places) -> tuple[RobotSegment, ...]:
    """Return the segments of a spatial tendon, between each two of its sites that no pulley divides."""
    model, segments = mjcf.model, []
    weight, last, around = 1.0, None, None
    for part in parts:
        kind = mjcf.word("Wrap", model.wrap_type[part])
        if kind == "PULLEY":
            weight, last, around = 1.0 / float(model.wrap_prm[part]), None, None
        elif kind == "SITE":
            here = _of_site(model, int(model.wrap_objid[part]), places)
            if last is not None:
                further, shape, radius = around or ((), "", 0.0)
                segments.append(RobotSegment((last, here, *further), weight, shape, radius))
            last, around = here, None
        else:
            around = _around(mjcf, tendon, part, kind.lower(), places)
    return tuple(segments)


def _of_site(model: Any, site: int, places: Places) -> tuple[str, FloatArray]:
    return places[int(model.site_bodyid[site])].then((np.array(model.site_pos[site]), np.eye(3)))[:2]


def _around(
    mjcf: Mjcf, tendon: str, part: int, around: str, places: Places
) -> tuple[tuple[tuple[str, FloatArray], ...], str, float] | None:
    """Return centre, axis and side of what a tendon runs around, its kind and radius; None if it runs within it."""
    model = mjcf.model
    geom, side = int(model.wrap_objid[part]), round(float(model.wrap_prm[part]))
    link, centre, turn = places[int(model.geom_bodyid[geom])].then(mjcf.pose("geom_", geom))
    places_around, radius = [(link, centre)], float(model.geom_size[geom][0])
    if around == "cylinder":
        places_around.append((link, centre + turn[:, 2]))
    if side >= 0:
        places_around.append(_of_site(model, side, places))
        data = mjcf.mujoco.MjData(model)
        mjcf.mujoco.mj_kinematics(model, data)  # where the file poses it; the two may be on different links
        if np.linalg.norm(data.site_xpos[side] - data.geom_xpos[geom]) < radius:
            mjcf.source.doubt("tendon", tendon, f"it runs on the inside of a {around}: read as straight there")
            return None
    return tuple(places_around), around, radius


def read_actuators(mjcf: Mjcf, tendons: set[str]) -> tuple[RobotActuator, ...]:
    """Return the muscles, and the actuators with a force affine in l and l_dot, on joints, these tendons and sites."""
    source, model, actuators = mjcf.source, mjcf.model, []
    for number in range(model.nu):
        place = mjcf.place("actuator", number)
        group = int(model.actuator_group[number])
        if 0 <= group <= _LAST_GROUP and int(model.opt.disableactuator) >> group & 1:
            source.note(place, "its group is switched off")
            continue
        wrong = _wrong(mjcf, number, tendons)
        if wrong:
            source.doubt("actuator", place, f"{wrong}: it is left out")
            continue
        g0, g1, g2 = model.actuator_gainprm[number][:3].tolist()
        if mjcf.word("Gain", model.actuator_gaintype[number]) == "FIXED":
            g1 = g2 = 0.0
        b0, b1, b2 = model.actuator_biasprm[number][:3].tolist()
        if mjcf.word("Bias", model.actuator_biastype[number]) == "NONE":
            b0 = b1 = b2 = 0.0
        actuators.append(
            RobotActuator(
                mjcf.of("actuator", number),
                *_transmission(mjcf, number),
                (g0, g1, g2),
                (b0, b1, b2),
                mjcf.limits("actuator_ctrl", number),
                mjcf.limits("actuator_force", number),
                *_dynamics(mjcf, number),
                _muscle(mjcf, number),
            )
        )
    return tuple(actuators)


def _dynamics(mjcf: Mjcf, number: int) -> tuple[str, tuple[float, ...], Limits]:
    """Return how the activation of an actuator follows its control, with the times, and its limits."""
    kind, place = mjcf.word("Dyn", mjcf.model.actuator_dyntype[number]), mjcf.place("actuator", number)
    first, second, smooth = mjcf.model.actuator_dynprm[number][:3].tolist()
    if kind == "NONE":
        return "", (), (-np.inf, np.inf)
    times = {"INTEGRATOR": (), "MUSCLE": (first, second)}.get(kind, (first,))
    mjcf.source.not_negative(place, dynprm=min(times, default=0.0))
    if kind == "MUSCLE" and smooth:
        mjcf.source.doubt("actuator", place, "tausmooth: its times change without it")
    return kind.removesuffix("EXACT").lower(), times, mjcf.limits("actuator_act", number)


def _muscle(mjcf: Mjcf, number: int) -> tuple[float, ...]:
    """Return the numbers of `RobotActuator.muscle`, () of an actuator that is none."""
    model = mjcf.model
    if mjcf.word("Gain", model.actuator_gaintype[number]) != "MUSCLE":
        return ()
    low, high, force, scale, shortest, longest, speed, passive, lengthening = model.actuator_gainprm[number][
        :9
    ].tolist()
    least, most = model.actuator_lengthrange[number].tolist()
    optimal = (most - least) / max(high - low, 1e-15)
    strength = force if force >= 0.0 else scale / max(float(model.actuator_acc0[number]), 1e-15)
    return strength, optimal, speed, shortest, longest, passive, lengthening, least - low * optimal


def _wrong(mjcf: Mjcf, number: int, tendons: set[str]) -> str:
    """Return why an actuator is not read, "" if it is."""
    model = mjcf.model
    target, second = model.actuator_trnid[number].tolist()
    if mjcf.word("Dyn", model.actuator_dyntype[number]) not in _DYNAMICS:
        return "its dyntype is not read"
    gain = mjcf.word("Gain", model.actuator_gaintype[number])
    bias = mjcf.word("Bias", model.actuator_biastype[number])
    if gain == bias == "MUSCLE":
        if not np.array_equal(model.actuator_gainprm[number][:9], model.actuator_biasprm[number][:9]):
            return "a muscle of two kinds: gainprm and biasprm differ"
        if model.actuator_lengthrange[number][0] >= model.actuator_lengthrange[number][1]:
            return "a muscle without a lengthrange"
    elif gain not in ("FIXED", "AFFINE"):
        return "its gain is neither fixed nor affine"
    elif bias not in ("NONE", "AFFINE"):
        return "its bias is not affine"
    kind = mjcf.word("Trn", model.actuator_trntype[number])
    if kind in ("JOINT", "JOINTINPARENT"):
        return "" if int(model.jnt_type[target]) >= 2 else "acts on a ball or free joint"
    if kind == "TENDON":
        name = mjcf.of("tendon", target)
        return "" if name in tendons else f"acts on tendon '{name}', which is not read"
    if kind == "SITE":
        return "" if second < 0 else "acts between two sites"
    return f"its transmission {kind.lower()} is not read"


def _transmission(mjcf: Mjcf, number: int) -> tuple[str, str, tuple[float, ...]]:
    target, kind = int(mjcf.model.actuator_trnid[number][0]), mjcf.word("Trn", mjcf.model.actuator_trntype[number])
    gear = tuple(mjcf.model.actuator_gear[number].tolist())
    if kind == "SITE":
        return "place", mjcf.of("site", target), gear
    word = "tendon" if kind == "TENDON" else "joint"
    return word, mjcf.of(word, target), gear[:1]


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


def refuse_others(mjcf: Mjcf) -> None:
    """Refuse what changes the motion and is not read, unless the user names it."""
    source, model = mjcf.source, mjcf.model
    for body in range(1, model.nbody):
        if model.body_mocapid[body] >= 0:
            source.note(mjcf.place("body", body), "mocap: it stands still until somebody moves it")
    for pair in range(model.npair):
        ends = [mjcf.of("geom", int(ids[pair])) for ids in (model.pair_geom1, model.pair_geom2)]
        place = f"<contact><pair> of '{ends[0]}' and '{ends[1]}'"
        source.note(place, "numbers of its own, which the scene says for itself")
    refuse_newer(source, model, mjcf)
    if model.nplugin:
        source.refuse("plugin", "<extension>", counted(model.nplugin, "plugin"))
    if model.nflex:
        source.refuse("flex", "<deformable>", f"{model.nflex} deformable bodies")


def note_others(mjcf: Mjcf) -> None:
    """Note what does not change the motion, or belongs to MuJoCo's solver."""
    source, model = mjcf.source, mjcf.model
    for key, word in _HARMLESS:
        count = int(getattr(model, key))
        if count:
            source.note("file", f"{count} {word}{'s' if count > 1 else ''}")
    integrator = mjcf.word("Integrator", model.opt.integrator).lower()
    source.note("<option>", f"timestep {model.opt.timestep:g} s, integrator {integrator}: the scene says its own")
    for kind, entries in _SOFT.items():
        others = [word for word, key, usual in entries if not np.allclose(getattr(model, key, usual), usual)]
        if others:
            source.note(_PLURAL[kind], f"{', '.join(others)}: {_INSTEAD[kind]}")
    _note_solver(source, mjcf.mujoco, model.opt)
    _note_idle(mjcf)
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


def _note_idle(mjcf: Mjcf) -> None:
    """Note numbers that no part of the motion reads, here or in MuJoCo."""
    source, model = mjcf.source, mjcf.model
    for kind, word, key, limited in _RANGES:
        idle = [k for k, said in enumerate(getattr(model, limited)) if not said and np.any(getattr(model, key)[k])]
        _note_some(mjcf, kind, idle, f"{word} without a limit (`limited` is false): nothing is limited")
    equalities = [(k, mjcf.word("Eq", kind), model.eq_data[k]) for k, kind in enumerate(model.eq_type)]
    alone = [k for k, kind, data in equalities if kind == "JOINT" and model.eq_obj2id[k] < 0 and data[2:5].any()]
    _note_some(mjcf, "equality", alone, "polycoef beyond the first, without a second joint")
    scaled = [k for k, kind, data in equalities if kind == "WELD" and data[10] not in (0.0, 1.0)]
    _note_some(mjcf, "equality", scaled, "torquescale: loops are exact")
    if pulled := [f"'{mjcf.of('joint', number)}'" for number in _limited_from_afar(mjcf)]:
        text = f"{few(pulled, _SHOWN)}: actuatorfrcrange, to which actuators on tendons and sites do not keep"
        source.doubt("actuatorfrcrange", "joints", text)
    numbers_of: dict[str, list[int]] = {}
    for number in range(model.nu):
        for word in _idle_of_actuator(mjcf, number):
            numbers_of.setdefault(word, []).append(number)
    _note_some(mjcf, "actuator", np.flatnonzero(model.actuator_actearly), "actearly: steps are implicit")
    for word, numbers in numbers_of.items():
        _note_some(mjcf, "actuator", numbers, f"{word}, which an actuator of this type does not read")
    if keys := [word for key, word in _KEYS if np.any(getattr(model, key))]:
        source.note("keyframes", f"{', '.join(keys)}: poses alone are read")
    users = [kind for kind in _USERS if np.any(getattr(model, f"{kind}_user"))]
    if users:
        source.note("file", f"user numbers of {', '.join({'jnt': 'joint'}.get(kind, kind) for kind in users)}")
    if not model.opt.density and not model.opt.viscosity and np.any(np.array(model.geom_fluid)[:, 0]):
        source.note("geoms", "fluidshape without a fluid")


def _limited_from_afar(mjcf: Mjcf) -> list[int]:
    """Return the joints with limits of all actuators' force on them on which actuators on tendons or sites act.

    Of a fixed tendon these are its joints; of a spatial one and of a site, which may move with any, all.
    """
    model = mjcf.model
    limited = np.flatnonzero(model.jnt_actfrclimited).tolist()
    joints: set[int] = set()
    for number, target in enumerate(model.actuator_trnid[:, 0].tolist()):
        kind = mjcf.word("Trn", model.actuator_trntype[number])
        if kind in ("TENDON", "SITE"):
            first = int(model.tendon_adr[target]) if kind == "TENDON" else -1
            if first < 0 or mjcf.word("Wrap", model.wrap_type[first]) != "JOINT":
                return limited
            joints |= set(model.wrap_objid[first : first + int(model.tendon_num[target])].tolist())
    return sorted(joints & set(limited))


def _idle_of_actuator(mjcf: Mjcf, number: int) -> list[str]:
    """Return the attributes of an actuator that are given and that its type does not read."""
    model = mjcf.model
    first_gain = {"FIXED": 1, "AFFINE": 3}.get(mjcf.word("Gain", model.actuator_gaintype[number]))
    first_bias = {"NONE": 0, "AFFINE": 3}.get(mjcf.word("Bias", model.actuator_biastype[number]))
    out = []
    if first_gain is not None and model.actuator_gainprm[number][first_gain:].any():
        out.append("gainprm")
    if first_bias is not None and model.actuator_biasprm[number][first_bias:].any():
        out.append("biasprm")
    if mjcf.word("Trn", model.actuator_trntype[number]) != "SITE" and model.actuator_gear[number][1:].any():
        out.append("gear beyond the first number")
    if mjcf.word("Dyn", model.actuator_dyntype[number]) == "NONE" and (
        model.actuator_actlimited[number] or np.any(np.array(model.actuator_dynprm[number]) != [1.0, *[0.0] * 9])
    ):
        out.append("actrange or dynprm")
    return out


def _note_some(mjcf: Mjcf, kind: str, numbers: Any, text: str) -> None:
    if listed := [f"'{mjcf.of(kind, int(number))}'" for number in numbers]:
        mjcf.source.note(_PLURAL[kind], f"{few(listed, _SHOWN)}: {text}")
