"""Warnings about a whole run: energy that nothing feeds, tumbling, a start that does not stay."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from add import terms
from add.bodies import RigidBody
from add.contact.branches import RowContact
from add.equations.kinematics import Weights
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.io.trajectory_data import RunData
from add.joints.laws import AngleLimit, AngularDamping, Cable, ElasticJoint, JointFriction, Slider, Spring
from add.scene.build.built import BuiltScene
from add.simulation import BDF
from add.simulation.impacts import angular_velocity
from add.simulation.run import Trajectory
from add.simulation.substeps import Substeps
from add.terms.held_friction import HeldResistance

#: Share of the energy that moves by which a run may gain.
GAIN = 0.01
#: Terms that store energy, all of which is counted (`add.scene.build.run_data.Energies`), or take it.
_PASSIVE = (RowContact, AngleLimit, AngularDamping, Cable, ElasticJoint, JointFriction, Slider, Spring, HeldResistance,
            terms.BallFriction, terms.BallLaws, terms.BallLimits, terms.Elastic, terms.Gravity, terms.Inertia,
            terms.JointLimits, terms.JointResistance, terms.JointSprings, terms.RigidInertia, terms.Strained,
            terms.TreeInertia, terms.Viscous)  # fmt: skip


def _isolated(built: BuiltScene, initial: Trajectory) -> bool:
    """Return whether nothing feeds a scene, and all that it stores is counted."""
    scene, system = built.scene, built.simulation.system
    still = all(not np.any(getattr(item, "velocity", 0.0)) for item in scene.obstacles.values())
    every = [*system.terms, *system.deciding]
    inner = [term.inner if isinstance(term, (LiftedTerm, LiftedDecidingTerm)) else term for term in every]
    passive = all(isinstance(term, _PASSIVE) for term in inner)
    return still and not scene.signals and not initial.initial.carry.memory.size and passive


def gained(built: BuiltScene, start: Trajectory, data: RunData) -> dict[str, Any]:
    """Return the entry ``gained`` of ``result.json``: how much energy a run gained by which nothing feeds.

    Parameters
    ----------
    built : BuiltScene
    start : Trajectory, without steps
    data : RunData, of the whole run
    """
    if not data.energy or not _isolated(built, start):
        return {}
    stored = np.array(list(data.energy.values()))
    energy, rounding = stored.sum(axis=0), 1e-10 * float(np.abs(stored).max())
    most = int(np.argmax(energy))
    gain = float(energy[most] - energy[0])
    moves = float(data.energy["kinetic"].max() + np.ptp(data.energy["gravity"])) + rounding  # where nothing moves
    if gain <= GAIN * moves:
        return {}
    dt, stepper = built.scene.time.dt, built.simulation.stepper
    resolved = stepper.impacts if isinstance(stepper, Substeps) else None
    whole = isinstance(stepper, BDF | Substeps) and (resolved is None or not resolved.divides)
    remedy = "time.substeps 'auto'" if whole else f"a smaller time.dt, such as {0.25 * dt:.1g} s,"
    text = (
        f"energy grows by {gain:.3g} J, {gain / moves:.0%} of what moves, until t = {data.t[most]:.6g} s, and nothing "
        f"feeds it: {remedy} helps"
    )
    return {"gained": [{"time": float(data.t[most]), "energy": gain, "warning": True, "text": text}]}


#: Turn of a body in a step [rad] from which on steps do not resolve it, and one that is resolved; by how much its axis
#: turns in a step [rad], and in how many steps: a wheel turns fast, and an impact changes it once.
FAST, RESOLVED, CHANGED, STEPS = 0.5, 0.1, 0.1, 3


def tumbled(built: BuiltScene, data: RunData, parts: Mapping[int, int]) -> dict[str, Any]:
    """Return the entry ``tumbled`` of ``result.json``: rigid bodies that turn too far in a step about changing axes.

    Boxes that tumbled by 0.7 rad a step
    pointed 0.4 rad elsewhere after ten steps, by 0.2 rad 0.02. Of states that are not kept nothing is known.

    Parameters
    ----------
    built : BuiltScene
    data : RunData, of the whole run
    parts : number of a step that is divided -> of how many parts it is, each of which turns it by its share
    """
    dt, out = built.scene.time.dt, []
    between = np.diff(data.t) / dt
    lasts = dt / np.array([parts.get(round(t / dt), 1) for t in data.t])
    for body in built.model.bodies:
        if not isinstance(body, RigidBody) or not body.moves:
            continue
        first = built.model.layouts.rows[body.name].start + 3
        w, rate = data.q[:, first : first + 3], data.v[:, first : first + 3]
        if dt * np.linalg.norm(rate, axis=1).max() <= FAST:  # a body turns no faster than that
            continue
        spin = angular_velocity(w, rate)
        turn = lasts * np.linalg.norm(spin, axis=1)
        # |w| |w'| sin of the angle between.
        across = lasts[1:] * np.linalg.norm(np.cross(spin[:-1], spin[1:]), axis=1)
        fast = (turn[1:] > FAST) & (across > CHANGED * between * turn[1:] * np.linalg.norm(spin[:-1], axis=1))
        if (fast * between).sum() >= STEPS:
            begin, most = float(data.t[1:][fast][0]), float(turn[1:][fast].max())
            text = (
                f"{body.name} turns by up to {most:.2g} rad in a step, about an axis that changes, from "
                f"t = {begin:.6g} s on: a time.dt of {dt * RESOLVED / most:.1g} s resolves it"
            )
            out.append({"body": body.name, "time": begin, "turn": most, "warning": True, "text": text})
    return {"tumbled": out} if out else {}


# --- Equilibria from which a run starts and in which nothing stays ----------------------------------------------------

#: Parts of a matrix that are no symmetry, and pivots that are no more than round-off.
_UNSYMMETRIC, _NONE = 1e-8, 1e-13


def unstable(built: BuiltScene, start: Trajectory) -> dict[str, Any]:
    """Return the entry ``unstable`` of ``result.json``: that the equilibrium at the start is none that holds.

    Of matrices dr/dq that are symmetric, by the signs of their pivots; of others, as friction and pressure on a part of
    a surface make them, and where multipliers hold something, nothing is said.

    Parameters
    ----------
    built : BuiltScene
    start : Trajectory
        Without steps.
    """
    found, simulation = start.start, built.simulation
    if found is None or found.mu.size or not simulation.system.partition.free.size:
        return {}
    branch = simulation.system.on_branch(found.decisions, found.candidates)
    pattern, data = simulation.assembler().assemble(
        found.kin, found.mu, simulation.theta, Weights(1.0, 0.0, 0.0, 1.0), branch
    )
    matrix = pattern.matrix(data)
    size = float(abs(matrix).max())
    if float(abs(matrix - matrix.T).max()) > _UNSYMMETRIC * size:
        return {}
    try:
        factors = splu(
            matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True, "Equil": False}
        )
    except RuntimeError:  # a pivot of zero
        return {}
    pivots = factors.U.diagonal()
    k = int(np.argmin(pivots))
    if not np.array_equal(factors.perm_r, factors.perm_c) or pivots[k] >= -_NONE * size:
        return {}
    # K = P^T L D L^T P: along the way P^T L^-T e_k the energy bends by the pivot.
    way = factors.solve(pivots[k] * factors.L[:, [k]].toarray().ravel()[factors.perm_r])
    system = simulation.system
    place = system.dofs.describe(int(system.partition.free[np.argmax(np.abs(way))]))
    text = (
        f"nothing stays in the equilibrium at the start: the least push takes it away, most of all {place}; let the "
        "scene start beside it, or a load there"
    )
    return {"unstable": [{"warning": True, "text": text}]}
