"""Dry friction of joints that holds: a joint at rest is kept there by an equation, one that moves is braked.

The hybrid friction of contact (Geilinger et al. 2020, section 4.3), for rates omega of hinges, slides and balls:

    stick   omega = 0 with the reaction mu, |mu| <= tau
    slip    tau omega / |omega|
    creep   f tau omega / v_s, |omega| < v_s / f

r is J^T times that and the damping d omega, omega = J v: J is one for hinges and slides, J_l(w) of a ball with the
rotation vector w, whose damping `add.terms.joint_laws.BallLaws` has.

`add.solve.hybrid_friction` decides: what creeps with f = 1 is held, what is held beyond tau is let go within the step,
and then creeps with f = `STIFFER` at most.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import Family, Kind
from add.equations.family_term import NO_ROWS, FamilyTerm, OneFamily, OverFamily
from add.equations.kinematics import Kinematics
from add.equations.sticking import StickingDecisions, StickingRows
from add.equations.term import Candidates, Decision
from add.kernels.arena import FAMILY, FIELD, Ints2, add_entry, unpacker
from add.kernels.caching import njit
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, PAIR, RELEASED, SLIP, STICKS
from add.kernels.joint_laws import (
    DAMPING,
    DRY,
    FIRST,
    SPEED,
    WIDTH,
    held_joint_rows,
    joint_rates,
    joint_speed,
)
from add.kernels.rotation import turn_derivative
from add.kernels.sticking import StickRows, new_stick_rows
from add.typing import AnyArray, FloatArray, IntArray

#: How much sooner joints slip that were held beyond their limit: they creep at less than v_s over this. Ten times
#: stiffer, and Newton finds no solution with what is held in 122 of 300 steps of a humanoid, in place of 53.
STIFFER = 100.0


@njit(cache=True)
def decide_held(joints, q, v, theta, given):
    """Return the decision (m, 3) of joints whose friction holds: number, way of what slips, bits.

    Each has a row, and acts. What sticks in ``given``, of all joints or none, and what is released there, stays so. A
    ball slips which way it turns.
    """
    out, k, omega = np.zeros((joints.shape[0], 3), dtype=np.int64), np.empty(6), np.empty(3)
    J, D = np.empty((3, 3)), np.empty((3, 3))
    for i in range(joints.shape[0]):
        joint_rates(joints[i], q, v, k, J, D, omega)
        bits = given[i, BITS] & (STICKS | RELEASED) if given.shape[0] else 0
        sooner = STIFFER if bits & RELEASED else 1.0
        if bits & STICKS == 0 and joint_speed(omega, joints[i, WIDTH]) * sooner >= theta[joints[i, SPEED]]:
            bits |= SLIP
            if joints[i, WIDTH] == 1:
                out[i, FEATURE] = -1 if omega[0] < 0.0 else 1
        out[i, PAIR], out[i, BITS] = i, ACTIVE | bits
    return out


@njit(cache=True)
def held_friction(omega, width, row, v_s, share, slopes):
    """Fill the share (3,) of tau that resists, and its slopes (3, 3) by omega; return whether the joint creeps.

    It is omega/|omega| where the joint slips, f omega/v_s where it creeps, nothing where an equation holds it.
    """
    bits, size, creep = row[BITS], joint_speed(omega, width), 0.0
    slips = bits & (SLIP | STICKS) == SLIP
    if bits & (SLIP | STICKS) == 0:
        creep = (STIFFER if bits & RELEASED else 1.0) / v_s
    inverse = 1.0 / size if slips and width == 3 and size > 0.0 else 0.0
    for r in range(width):
        share[r] = (inverse + creep) * omega[r]
        for c in range(width):
            slopes[r, c] = -inverse * inverse * inverse * omega[r] * omega[c]
        slopes[r, r] += inverse + creep
    if slips and width == 1:
        share[0] = float(row[FEATURE])
    return creep > 0.0


class _Arrays(NamedTuple):
    joints: Ints2


_own = unpacker(_Arrays)


@njit(**FAMILY)
def _forces(arena, k, at, replay, rows, out):
    joints = _own(arena, arena.families[k, FIELD]).joints
    if not replay:
        rows = decide_held(joints, at.q, at.v, at.theta, rows)
    c, J, D, slopes = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    omega, share = np.empty(3), np.empty(3)
    for n in range(rows.shape[0]):
        joint = joints[rows[n, PAIR]]
        tau, damping = at.theta[joint[DRY]], at.theta[joint[DAMPING]] if joint[DAMPING] >= 0 else 0.0
        joint_rates(joint, at.q, at.v, c, J, D, omega)
        held_friction(omega, joint[WIDTH], rows[n], at.theta[joint[SPEED]], share, slopes)
        for r in range(joint[WIDTH]):
            for l in range(joint[WIDTH]):
                out[joint[FIRST] + l] += J[r, l] * (damping * omega[r] + tau * share[r])
    return rows


@njit(**FAMILY)
def _jacobian(arena, k, at, rows, weight_q, weight_v, weight_a, data, slots):
    joints = _own(arena, arena.families[k, FIELD]).joints
    c, J, D, slopes, bent = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.zeros((3, 3))
    omega, share, begin = np.empty(3), np.empty(3), 0
    for n in range(rows.shape[0]):
        joint = joints[rows[n, PAIR]]
        first, width, tau = joint[FIRST], joint[WIDTH], at.theta[joint[DRY]]
        damping = at.theta[joint[DAMPING]] if joint[DAMPING] >= 0 else 0.0
        joint_rates(joint, at.q, at.v, c, J, D, omega)
        held_friction(omega, width, rows[n], at.theta[joint[SPEED]], share, slopes)
        bent[:] = 0.0
        if width == 3:
            for r in range(3):
                share[r] = tau * share[r] + damping * omega[r]
            turn_derivative(-1.0, at.q[first : first + 3], share, c, bent)
        for r in range(width):
            for l in range(width):
                slopes[r, l] *= tau
            slopes[r, r] += damping
        for l in range(width):
            for m in range(width):
                value = weight_q * bent[l, m]
                for r in range(width):
                    for s in range(width):
                        value += J[r, l] * slopes[r, s] * (weight_q * D[s, m] + weight_v * J[s, m])
                data[slots[begin + width * l + m]] += value
        begin += width * width


@njit(**FAMILY)
def _parameters(arena, k, at, rows, forward, along, out):
    joints = _own(arena, arena.families[k, FIELD]).joints
    c, J, D, slopes = np.empty(6), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    omega, share = np.empty(3), np.empty(3)
    for n in range(rows.shape[0]):
        joint = joints[rows[n, PAIR]]
        tau, v_s = at.theta[joint[DRY]], at.theta[joint[SPEED]]
        joint_rates(joint, at.q, at.v, c, J, D, omega)
        creeps = held_friction(omega, joint[WIDTH], rows[n], v_s, share, slopes)
        for r in range(joint[WIDTH]):
            for l in range(joint[WIDTH]):
                place = joint[FIRST] + l
                if joint[DAMPING] >= 0:
                    add_entry(forward, place, joint[DAMPING], J[r, l] * omega[r], along, out)
                add_entry(forward, place, joint[DRY], J[r, l] * share[r], along, out)
                if creeps:
                    add_entry(forward, place, joint[SPEED], -J[r, l] * tau * share[r] / v_s, along, out)


KIND = Kind("held_joints", _Arrays, _forces, _parameters, _jacobian)


@final
@dataclass(frozen=True)
class HeldResistance(OverFamily, StickingDecisions):
    """Dry friction that holds, and damping, of the joints of a tree; a decision has a row of every joint.

    Attributes
    ----------
    first, width : (m,)
        First coordinate, each of one joint, and how many: one of a hinge or slide, three of a ball.
    damping, friction, slip : (m,)
        Indices in theta of d [N s/m, N m s/rad], -1 for none, tau [N, N m], v_s [m/s, rad/s].
    """

    first: IntArray
    width: IntArray
    damping: IntArray
    friction: IntArray
    slip: IntArray

    @cached_property
    def joints(self) -> IntArray:
        """The joints (m, 5) as kernels take them."""
        return np.stack([self.first, self.width, self.damping, self.friction, self.slip], axis=1).astype(np.int64)

    @cached_property
    def dofs(self) -> IntArray:
        """Coordinates (m, 3) of each, -1 for none."""
        number = np.arange(3)
        return np.where(number < self.width[:, None], self.first[:, None] + number, -1)

    @cached_property
    def blocks(self) -> IntArray:
        """Places (m, 3, 3) of the derivatives of each, which come row by row; -1 for none."""
        there = self.dofs >= 0
        there = there[:, :, None] & there[:, None, :]
        return np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1)

    def family(self) -> Family:
        """Return a block a joint."""
        joint, row, column = np.nonzero(self.blocks >= 0)
        return Family(KIND, _Arrays(self.joints), (self.dofs[joint, row], self.dofs[joint, column]))

    @property
    def held_arrays(self) -> tuple[AnyArray, ...]:
        """See `add.contact.body_family.HeldPairs`."""
        none = np.zeros(0, dtype=np.int64)
        return none, np.zeros(0), none.reshape(0, 4), self.joints

    @property
    def sticking(self) -> "HeldResistance":
        """The term itself."""
        return self

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> "HeldBranch":
        """Return the smooth term of this branch, without reactions."""
        return HeldBranch(self, decision)

    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add the torques; ``sticking`` goes on sticking."""
        return self.one.forces(kin, theta, NO_ROWS if sticking is None else sticking, out, decide=True)

    def _stick_constraint(self, decision: Decision, rows: Decision, candidates: Candidates | None) -> "HeldEquations":
        """Return the equations of the joints that stick."""
        return HeldEquations(self, rows)

    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many joints stick, slip and creep."""
        sticks, slips = decision[:, BITS] & STICKS != 0, decision[:, BITS] & (SLIP | STICKS) == SLIP
        sticking, slipping = int(sticks.sum()), int(slips.sum())
        return {"sticking": sticking, "slipping": slipping, "creeping": self.slip.size - sticking - slipping}


@final
@dataclass(frozen=True)
class HeldBranch(FamilyTerm):
    """The resistance of what slips or creeps; the joints that stick have their reactions elsewhere."""

    depends: ClassVar[str] = "qv"

    whole: HeldResistance
    decision: Decision

    @property
    def decided(self) -> Decision:
        """The decision."""
        return self.decision

    def family(self) -> Family:
        """See `OverFamily.family`."""
        return self.whole.family()

    @property
    def one(self) -> OneFamily:
        """The family by itself: that of all branches."""
        return self.whole.one


@final
class HeldEquations(StickingRows):
    """omega = 0 of the joints that stick; mu is minus the torque or force that holds [N m, N].

    Attributes
    ----------
    whole : HeldResistance
    rows : (k, 3) those of its joints that stick
    """

    def __init__(self, whole: HeldResistance, rows: Decision) -> None:
        super().__init__(rows.shape[0])
        self.whole, self.rows = whole, rows

    @cached_property
    def dofs(self) -> IntArray:
        """The coordinates (k, 3) of each joint, -1 for none."""
        return np.asarray(self.whole.dofs[self.rows[:, PAIR]])

    @property
    def theta_index(self) -> IntArray:
        """No number moves omega."""
        return np.zeros((self.n, 0), dtype=np.int64)

    @property
    def entries(self) -> IntArray:
        """The blocks of the joints that stick among all."""
        return np.asarray(self.whole.blocks[self.rows[:, PAIR]])

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows with J, d(J v)/dq and d(J^T mu)/dq; those that creep have torques tau at most."""
        out = new_stick_rows(self.n, 3, 0)
        given = self.whole.joints, self.rows, kin.q, kin.v, theta, reactions
        held_joint_rows(*given, True, NO_ROWS, out)
        return out
