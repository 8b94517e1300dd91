"""Parts of an MJCF that a robot does not have: refused where they change the motion, else noted."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.scene.robots.mjcf_model import Names
from add.scene.robots.source import Source

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
#: Parts of the motion that a flag of MuJoCo switches off; gravity, contact and the filter of parents are read.
_FLAGS = ("EQUALITY", "FRICTIONLOSS", "LIMIT", "PASSIVE", "SPRING", "DAMPER", "CLAMPCTRL", "ACTUATION")


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
        if model.body_gravcomp[body]:
            source.refuse(
                "gravcomp", source.place("body", names.of("body", body)), f"gravcomp {model.body_gravcomp[body]:g}"
            )
        if model.body_mocapid[body] >= 0:
            source.refuse("mocap", source.place("body", names.of("body", body)), "a body moved from outside (mocap)")
    for pair in range(model.npair):
        ends = [names.of("geom", int(ids[pair])) for ids in (model.pair_geom1, model.pair_geom2)]
        source.refuse("pair", f"<contact><pair> of '{ends[0]}' and '{ends[1]}'", "a contact with numbers of its own")
    refuse_newer(source, model, names)
    option = model.opt
    if option.density or option.viscosity:
        source.refuse("fluid", "<option>", f"a fluid of density {option.density:g}, viscosity {option.viscosity:g}")
    if model.nplugin:
        source.refuse("plugin", "<extension>", f"{model.nplugin} plugins")
    if model.nflex:
        source.refuse("flex", "<deformable>", f"{model.nflex} deformable bodies")
    bits = mujoco.mjtDisableBit
    for flag in _FLAGS:
        bit = getattr(bits, f"mjDSBL_{flag}", None)
        if bit is not None and option.disableflags & bit:
            source.refuse("flag", "<option><flag>", f"{flag.lower()} is switched off")


def note_others(source: Source, mujoco: Any, model: Any) -> None:
    """Note what does not change the motion, or belongs to MuJoCo's solver."""
    for key, word in _HARMLESS:
        count = int(getattr(model, key))
        if count:
            source.note("file", f"{count} {word}{'s' if count > 1 else ''}")
    option = model.opt
    integrator = mujoco.mjtIntegrator(int(option.integrator)).name.removeprefix("mjINT_").lower()
    source.note("<option>", f"timestep {option.timestep:g} s, integrator {integrator}: the scene says its own")
    soft: list[tuple[str, Any, Any]] = [
        ("solref", model.geom_solref, [0.02, 1.0]),
        ("solimp", model.geom_solimp, [0.9, 0.95, 0.001, 0.5, 2.0]),
        ("margin", model.geom_margin, 0.0),
        ("gap", model.geom_gap, 0.0),
    ]
    others = [name for name, values, default in soft if model.ngeom and not np.allclose(values, default)]
    if others:
        source.note("geoms", f"{', '.join(others)}: the scene's contact has numbers of its own")
    if model.ngeom and (np.array(model.geom_condim) > 3).any():
        source.note("geoms", "condim above 3: torsional and rolling friction")
    if model.njnt and (not np.allclose(model.jnt_solref, [0.02, 1.0]) or np.any(model.jnt_margin)):
        source.note("joints", "solreflimit, solimplimit, margin: the scene's limits have numbers of their own")
