"""Forces of joints with a given motion, and of loops, of trees: read out after a run."""

from __future__ import annotations

import numpy as np

from add.bodies import TreeBody
from add.equations.kinematics import Kinematics
from add.equations.system import BranchEquations
from add.model.build import Model
from add.typing import FloatArray


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
        constraints = body.constraints(model.layouts)
        if isinstance(body, TreeBody):
            start, found = model.system.dofs[body.name].start, {}
            for at, joint in zip(body.first, body.joints, strict=True):
                if joint.motion is not None:
                    found[joint.name] = r[start + at : start + at + 1].copy()
            offset, rows = 0, np.zeros(sum(len(loop.rows) for loop in body.loops))
            rows[body.kept_rows] = -mu[first : first + body.kept_rows.size]
            for loop in body.loops:
                found[loop.path.rsplit(".", 1)[1]] = rows[offset : offset + len(loop.rows)]
                offset += len(loop.rows)
            for k, coupling in enumerate(body.couplings):
                number = first + body.kept_rows.size + k
                found[coupling.path.rsplit(".", 1)[1]] = -mu[number : number + 1]
            if found:
                out[body.name] = found
        first += sum(constraint.n_rows for constraint in constraints)
    return out
