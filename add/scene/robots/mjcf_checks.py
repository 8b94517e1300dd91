"""Parts of an MJCF that a robot does not have: refused where they change the motion, else noted."""

from typing import Any

import numpy as np

from add.scene.robots.mjcf_model import SWITCHES, Names
from add.scene.robots.xml_file import Source
from add.summary import few

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

#: Arrays of newer versions of MuJoCo that change the motion where they are not zero, with what they are of.
_NEWER = (
    ("jnt_stiffnesspoly", "joint", "a spring that is not linear"),
    ("tendon_stiffnesspoly", "tendon", "a spring that is not linear"),
    ("tendon_dampingpoly", "tendon", "damping that is not linear"),
    ("actuator_damping", "actuator", "damping of its own"),
    ("actuator_dampingpoly", "actuator", "damping of its own"),
    ("actuator_armature", "actuator", "armature of its own"),
    ("actuator_delay", "actuator", "a delay"),
)


def refuse_newer(source: Source, model: Any, names: Any) -> None:
    """Refuse what only newer versions of MuJoCo have, unless the user names it."""
    for key, kind, text in _NEWER:
        for number, values in enumerate(getattr(model, key, ())):
            if np.any(values):
                source.refuse("polynomial", source.place(kind, names.of(kind, number)), text)
    for dof, values in enumerate(getattr(model, "dof_dampingpoly", ())):
        if np.any(values):
            joint = names.of("joint", int(model.dof_jntid[dof]))
            source.refuse("polynomial", source.place("joint", joint), "damping that is not linear")


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
        source.refuse("plugin", "<extension>", f"{model.nplugin} plugins")
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
    joint, weld = int(mujoco.mjtEq.mjEQ_JOINT), int(mujoco.mjtEq.mjEQ_WELD)
    data, kinds = np.array(model.eq_data), np.array(model.eq_type)
    alone = (kinds == joint) & (np.array(model.eq_obj2id) < 0) & np.any(data[:, 2:5], axis=1)
    _note_some(source, names, "equality", np.flatnonzero(alone), "polycoef beyond the first, without a second joint")
    scaled = (kinds == weld) & (data[:, 10] != 1.0)
    _note_some(source, names, "equality", np.flatnonzero(scaled), "torquescale: loops are exact")
    pulled = _joints_of_tendons(mujoco, model)
    _note_some(source, names, "joint", pulled, "actuatorfrcrange, to which actuators on tendons do not keep")
    found: dict[str, list[int]] = {}
    for number in range(model.nu):
        for word in _idle_of_actuator(mujoco, model, number):
            found.setdefault(word, []).append(number)
    for word, numbers in found.items():
        _note_some(source, names, "actuator", numbers, f"{word}, which an actuator of this type does not read")
    keys = [word for key, word in _KEYS if np.any(getattr(model, key))]
    if keys:
        source.note("keyframes", f"{', '.join(keys)}: poses alone are read")
    users = [kind for kind in _USERS if np.any(getattr(model, f"{kind}_user"))]
    if users:
        source.note("file", f"user numbers of {', '.join({'jnt': 'joint'}.get(kind, kind) for kind in users)}")
    if not model.opt.density and not model.opt.viscosity and np.any(np.array(model.geom_fluid)[:, 0]):
        source.note("geoms", "fluidshape without a fluid")


def _joints_of_tendons(mujoco: Any, model: Any) -> list[int]:
    """Return the joints with limits of all actuators' force on them on which actuators act through a tendon."""
    tendon, joint = int(mujoco.mjtTrn.mjTRN_TENDON), int(mujoco.mjtWrap.mjWRAP_JOINT)
    pulled = {int(model.actuator_trnid[k][0]) for k in range(model.nu) if int(model.actuator_trntype[k]) == tendon}
    parts = [at for k in pulled for at in model.tendon_adr[k] + np.arange(model.tendon_num[k])]
    joints = {int(model.wrap_objid[at]) for at in parts if int(model.wrap_type[at]) == joint}
    return sorted(number for number in joints if model.jnt_actfrclimited[number])


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
    listed = [f"'{names.of(kind, int(number))}'" for number in numbers]
    if listed:
        source.note(_PLURAL[kind], f"{few(listed, _SHOWN)}: {text}")
