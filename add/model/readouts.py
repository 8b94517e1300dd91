"""Quantities read out after a run: forces and torques of couplings, motions, loops; pressure and volume of chambers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.bodies import TreeBody
from add.equations.kinematics import Kinematics
from add.equations.system import BranchEquations
from add.joints.laws import JointPart
from add.kernels.rotation import left_jacobian
from add.model.build import Model, joint_terms
from add.terms import Chamber, Pressure, TiedPoints
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Reaction:
    """Force and torque of a coupling on one body, in world axes.

    Attributes
    ----------
    force : (3,) [N]
    torque : (3,)
        About the centre of mass of a rigid body, or the origin of a link [N m]; zero for bodies of nodes.
    """

    force: FloatArray
    torque: FloatArray


def reactions(
    model: Model, joint_parts: Sequence[JointPart], kin: Kinematics, theta: FloatArray
) -> dict[str, Reaction]:
    """Return what some joint parts together do to every body that they touch.

    Parameters
    ----------
    model : Model
    joint_parts : of one coupling, e.g. the parts of a hinge
    kin : Kinematics
        Where to look, e.g. ``trajectory.kinematics(k)``.
    theta : (n_theta,)
    """
    dofs, kin = model.lift.rows, model.lift.kinematics(kin, theta)
    smooth, deciding = joint_terms(joint_parts, model.bodies, model.layouts)
    r = np.zeros(dofs.n)
    for term in smooth:
        term.residual(kin, theta, r)
    for choice in deciding:
        choice.decided_residual(kin, theta, r)
    out = {}
    for entry in dofs.entries:
        part = -r[entry.slice].reshape(entry.shape)
        if not part.any():
            continue
        if entry.name in dofs.rigid:
            turned = left_jacobian(kin.q[entry.slice].reshape(2, 3)[1])
            out[entry.name] = Reaction(part[0], np.linalg.solve(turned.T, part[1]))
        else:
            out[entry.name] = Reaction(part.sum(axis=0), np.zeros(3))
    return out


def tie_forces(model: Model, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> dict[str, Reaction]:
    """Return ``body/carrier`` -> what nodes that multipliers hold do to their carrier, at the end of a step.

    The torque is about the centre of mass of a rigid body, and the origin of a link.
    """
    at, out = model.lift.kinematics(kin, theta), dict[str, Reaction]()
    for constraint, part in model.system.parts:
        if isinstance(constraint, TiedPoints):
            centre = at.q[model.lift.rows[constraint.carrier].slice][:3]
            force, name = mu[part].reshape(-1, 3), f"{constraint.body}/{constraint.carrier}"
            moment = np.cross(constraint.points(kin.q) - centre, force).sum(axis=0)
            before = out.get(name, Reaction(np.zeros(3), np.zeros(3)))
            out[name] = Reaction(before.force + force.sum(axis=0), before.torque + moment)
    return out


def tree_reactions(
    model: Model, branch: BranchEquations, kin: Kinematics, mu: FloatArray, theta: FloatArray
) -> dict[str, dict[str, FloatArray]]:
    """Return body -> joint or loop -> force.

    Of a joint with a given motion: the torque [N m] or force [N] that the motion takes, r of its coordinate (inverse
    dynamics), (1,). Of a loop: what its rows do to the end ``a`` along its axes, forces [N] and torques [N m], in the
    order of `add.bodies.tree_parts`; zero for rows that depend on others, so that it is one of several answers there.
    Of an equation between joints: the torque or force on the first of them, (1,).

    Parameters
    ----------
    model : Model
    branch, kin, mu : of a step, as its record has them
    theta : (n_theta,)
    """
    r, _ = branch.residual(kin, mu, theta)
    first = 0
    out: dict[str, dict[str, FloatArray]] = {}
    for body in model.bodies:
        constraints = body.constraints(model.layouts, {one.name: one for one in model.bodies})
        if isinstance(body, TreeBody):
            start, reactions = model.system.dofs[body.name].start, {}
            for at, joint in zip(body.first, body.joints, strict=True):
                if joint.motion is not None:
                    reactions[joint.name] = r[start + at : start + at + 1].copy()
            offset, rows = 0, np.zeros(sum(len(loop.rows) for loop in body.loops))
            rows[body.kept_rows] = -mu[first : first + body.kept_rows.size]
            for loop in body.loops:
                reactions[loop.path.rsplit(".", 1)[1]] = rows[offset : offset + len(loop.rows)]
                offset += len(loop.rows)
            for k, coupling in enumerate(body.couplings):
                number = first + body.kept_rows.size + k
                reactions[coupling.path.rsplit(".", 1)[1]] = -mu[number : number + 1]
            if reactions:
                out[body.name] = reactions
        first += sum(constraint.n_rows for constraint in constraints)
    return out


class ChamberState(NamedTuple):
    """The pressure above that around the body [Pa], and the volume of a closed chamber [m^3], NaN of an open one."""

    pressure: float
    volume: float


def storing_chambers(model: Model) -> list[Pressure | Chamber]:
    """Return the terms and equations of all chambers, over rows of X."""
    inner = [getattr(part, "inner", part) for part in model.system.constraints]
    return [*model.term(Pressure), *(part for part in inner if isinstance(part, Chamber))]


def chamber_states(model: Model, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> dict[str, ChamberState]:
    """Return ``body/chamber`` -> pressure and volume at the end of a step, with its multipliers ``mu``."""
    at = model.lift.kinematics(kin, theta)
    out = {term.name: ChamberState(*term.state(at, theta)) for term in model.term(Pressure)}
    for constraint, part in model.system.parts:
        chamber = getattr(constraint, "inner", constraint)
        if isinstance(chamber, Chamber):
            out[chamber.name] = ChamberState(*chamber.state(at, mu[part]))
    return out
