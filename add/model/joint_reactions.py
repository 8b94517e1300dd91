"""Reactions of couplings on bodies: forces and torques, read out after a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.joints.parts import JointPart
from add.kernels.rotation import left_jacobian
from add.model.build import Model
from add.model.joint_terms import joint_terms
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Reaction:
    """Force and torque of a coupling on one body, in world axes.

    Attributes
    ----------
    force : (3,) [N]
    torque : (3,)
        About the centre of mass of a rigid body [N m]; zero for bodies of nodes.
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
