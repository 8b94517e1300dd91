"""Energy that a run gained though nothing feeds it."""

from typing import Any

import numpy as np

from add.contact.branches import RowContact
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.system import System
from add.io.trajectory_data import RunData
from add.joints.laws import AngleLimit, AngularDamping, Cable, ElasticJoint, JointFriction, Slider, Spring
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from add.terms import (
    BallFriction,
    BallLimits,
    Elastic,
    Gravity,
    Inertia,
    JointLimits,
    JointResistance,
    JointSprings,
    RigidInertia,
    Strained,
    TreeInertia,
    Viscous,
)
from add.terms.held_friction import HeldFriction

#: Share of the energy that moves by which a run may gain.
GAIN = 0.01
#: Terms that store energy, all of which is counted (`add.scene.build.run_data.Energies`), or take it.
_PASSIVE = (RowContact, AngleLimit, AngularDamping, Cable, ElasticJoint, JointFriction, Slider, Spring, BallFriction,
            BallLimits, Elastic, Gravity, HeldFriction, Inertia, JointLimits, JointResistance, JointSprings,
            RigidInertia, Strained, TreeInertia, Viscous)  # fmt: skip


def _isolated(built: BuiltScene, initial: Trajectory) -> bool:
    """Return whether nothing feeds a scene, and all that it stores is counted."""
    scene, system = built.scene, built.simulation.system
    still = all(not np.any(getattr(item, "velocity", 0.0)) for item in scene.obstacles.values())
    return still and not scene.signals and not initial.initial.carry.memory.size and _passive(system)


def _passive(system: System) -> bool:
    terms = [*system.terms, *system.deciding]
    own = [term.inner if isinstance(term, (LiftedTerm, LiftedDecidingTerm)) else term for term in terms]
    return all(isinstance(term, _PASSIVE) for term in own)


def gained(built: BuiltScene, start: Trajectory, data: RunData) -> dict[str, Any]:
    """Return the entry ``gained`` of ``result.json``: how much energy a run gained by which nothing feeds.

    Parameters
    ----------
    built : BuiltScene
    start : Trajectory
        Without steps.
    data : RunData
        Of the whole run.
    """
    if not data.energy or not _isolated(built, start):
        return {}
    energy = np.sum(list(data.energy.values()), axis=0)
    most = int(np.argmax(energy))
    gain = float(energy[most] - energy[0])
    moves = float(data.energy["kinetic"].max() + np.ptp(data.energy["gravity"]))
    if gain <= GAIN * moves:
        return {}
    time, law = built.scene.time, built.scene.contact.friction_law
    divides = time.substeps != "auto" and time.integrator != "rk4" and law not in ("exact", "impulse")
    remedy = "time.substeps 'auto'" if divides else f"a smaller time.dt, such as {0.25 * time.dt:.1g} s,"
    text = (
        f"energy grows by {gain:.3g} J, {gain / moves:.0%} of what moves, until t = {data.t[most]:.6g} s, and nothing "
        f"feeds it: {remedy} helps"
    )
    return {"gained": [{"time": float(data.t[most]), "energy": gain, "warning": True, "text": text}]}
