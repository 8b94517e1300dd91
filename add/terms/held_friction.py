"""Dry friction of joints that holds: a joint at rest is kept there by an equation, one that moves is braked.

The hybrid friction of contact (Geilinger et al. 2020, section 4.3), for rates v of hinges, slides and balls:

    stick   v = 0 with the reaction mu, |mu| <= tau
    slip    tau v / |v|
    creep   f tau v / v_s, |v| < v_s / f

r is that and, of hinges and slides, the damping d v. Of balls it is J_l(w)^T times that, v = omega = J_l(w) w_dot.

`add.solve.hybrid_friction` decides: what creeps with f = 1 is held, what is held beyond tau is let go within the step,
and then creeps with f = `STIFFER` at most.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import numpy as np

from add.equations.family import dense_blocks
from add.equations.kinematics import Kinematics, Weights
from add.equations.sticking import StickingRows
from add.equations.term import Candidates, Decision, StickConstraint, StickingTerm, Term
from add.kernels.rotation import fill_jacobian, jacobian_coefficients, turn_derivative
from add.kernels.sticking import StickRows, new_stick_rows
from add.typing import BoolArray, FloatArray, IntArray

#: Bits of a decision, one number a joint.
UP, DOWN, STICKS, RELEASED = 1, 2, 4, 8
#: How much sooner joints slip that were held beyond their limit: they creep at less than v_s over this.
STIFFER = 1e3
#: Slower than this [rad/s, m/s] a joint rests: what was held in the last step moves by round-off.
REST = 1e-10


class Torques(NamedTuple):
    """The torques t of joints (m, w), their slopes by omega (m, w, w), and by numbers: (indices in theta, (m, w))."""

    values: FloatArray
    slopes: FloatArray
    by_numbers: tuple[tuple[IntArray, FloatArray], ...]


class HeldFriction(StickingTerm):
    """Dry friction that holds; a decision has the bits of every joint. r = J^T t(omega), omega = J v.

    Attributes
    ----------
    friction, slip : (m,) indices in theta of tau and v_s
    """

    friction: IntArray
    slip: IntArray

    @property
    @abstractmethod
    def dofs(self) -> IntArray:
        """Coordinates (m, w), each once: one of a hinge or slide, three of a ball."""

    @abstractmethod
    def turned(self, kin: Kinematics) -> tuple[FloatArray, FloatArray]:
        """Return J and d(J v)/dq (m, w, w)."""

    @abstractmethod
    def bent(self, kin: Kinematics, torques: FloatArray) -> FloatArray:
        """Return d(J^T t)/dq (m, w, w) at fixed torques (m, w)."""

    @abstractmethod
    def torques(self, omega: FloatArray, theta: FloatArray, decision: Decision) -> Torques:
        """Return the torques on the branch of ``decision``, without reactions."""

    @final
    def rates(self, kin: Kinematics) -> FloatArray:
        """Return omega (m, w)."""
        return _times(self.turned(kin)[0], kin.v[self.dofs])

    @final
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> "HeldBranch":
        """Return the smooth term of this branch, without reactions."""
        return HeldBranch(self, decision)

    @final
    def _decided(self, v: FloatArray, theta: FloatArray, given: Decision | None) -> Decision:
        """Return the branch at rates ``v`` (m, w), with the bits STICKS and RELEASED of ``given``."""
        kept = np.zeros(self.slip.size, dtype=np.int64) if given is None or not given.size else given
        kept = kept & (STICKS | RELEASED)
        slips = np.sqrt((v * v).sum(axis=1)) * np.where(kept & RELEASED, STIFFER, 1.0) >= theta[self.slip]
        # A ball slips which way it turns.
        way = np.where(v[:, 0] < 0.0, DOWN, UP) if v.shape[1] == 1 else UP
        return np.where((kept & STICKS == 0) & slips, kept | way, kept)

    @final
    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add the torques; ``sticking`` goes on sticking."""
        J = self.turned(kin)[0]
        omega = _times(J, kin.v[self.dofs])
        decision = self._decided(omega, theta, sticking)
        self.add_torques(J, omega, theta, decision, out)
        return decision

    @final
    def add_torques(
        self, J: FloatArray, omega: FloatArray, theta: FloatArray, decision: Decision, out: FloatArray
    ) -> None:
        """Add J^T t on the branch of ``decision``."""
        out[self.dofs] += _times(J.transpose(0, 2, 1), self.torques(omega, theta, decision).values)

    @final
    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many joints stick, slip and creep."""
        sticking, slipping = (int((decision & bits != 0).sum()) for bits in (STICKS, UP | DOWN))
        return {"sticking": sticking, "slipping": slipping, "creeping": self.slip.size - sticking - slipping}

    @property
    @final
    def sticking(self) -> "HeldFriction":
        """The term itself."""
        return self

    @final
    def stick(self, decision: Decision) -> Decision:
        """Return the decision with all joints sticking that do not slip."""
        return np.where(decision & (UP | DOWN) == 0, STICKS, decision)

    @final
    def stick_touching(self, decision: Decision) -> Decision:
        """Return the decision with all joints sticking."""
        return np.full_like(decision, STICKS)

    @final
    def all_sticking(self, decision: Decision) -> bool:
        """Return whether all joints stick."""
        return bool(np.all(decision & STICKS))

    @final
    def at_rest(self, kin: Kinematics, theta: FloatArray) -> Decision | None:
        """Return that all joints stick; None if one of them moves."""
        if np.abs(self.rates(kin)).max(initial=0.0) > REST:
            return None
        return np.full(self.slip.size, STICKS, dtype=np.int64)

    @final
    def stick_constraint(self, decision: Decision, candidates: Candidates | None = None) -> StickConstraint | None:
        """Return the equations of the joints that stick."""
        which = np.flatnonzero(decision & STICKS)
        return HeldEquations(self, which) if which.size else None

    @final
    def release(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision with some of the sticking joints released."""
        out = decision.copy()
        out[np.flatnonzero(decision & STICKS)[rows]] = RELEASED
        return out

    @final
    def without(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without some of its equations, as if they had never been."""
        out = decision.copy()
        out[np.flatnonzero(decision & STICKS)[rows]] = 0
        return out

    @final
    def is_sticking(self, decision: Decision, other: Decision) -> BoolArray:
        """Return which of the joints that stick in ``decision`` stick in another one, too."""
        return np.asarray(other[decision & STICKS != 0] & STICKS != 0)


@final
@dataclass(frozen=True)
class HeldResistance(HeldFriction):
    """Damping, and dry friction that holds, of hinges and slides.

    Attributes
    ----------
    dof : (m,) coordinates, each once
    damping, friction, slip : (m,)
        Indices in theta of d [N s/m, N m s/rad], tau [N, N m], v_s [m/s, rad/s].
    """

    dof: IntArray
    damping: IntArray
    friction: IntArray
    slip: IntArray

    @cached_property
    def dofs(self) -> IntArray:
        """Coordinates (m, 1)."""
        return np.asarray(self.dof[:, None])

    @cached_property
    def _same(self) -> tuple[FloatArray, FloatArray]:
        return np.ones((self.dof.size, 1, 1)), np.zeros((self.dof.size, 1, 1))

    def turned(self, kin: Kinematics) -> tuple[FloatArray, FloatArray]:
        """Return ones and zeros."""
        return self._same

    def bent(self, kin: Kinematics, torques: FloatArray) -> FloatArray:
        """Return zeros: a torque acts alike everywhere."""
        return self._same[1]

    def torques(self, omega: FloatArray, theta: FloatArray, decision: Decision) -> Torques:
        """Return damping and friction."""
        slope = np.where(decision & RELEASED, STIFFER, 1.0) / theta[self.slip]
        slope[decision & (UP | DOWN | STICKS) != 0] = 0.0
        sign = np.where(decision & UP, 1.0, 0.0) - np.where(decision & DOWN, 1.0, 0.0)
        d, tau, v = theta[self.damping], theta[self.friction], omega[:, 0]
        friction, by_slip = sign + slope * v, -tau * slope * v / theta[self.slip]
        by = (self.damping, v[:, None]), (self.friction, friction[:, None]), (self.slip, by_slip[:, None])
        return Torques((d * v + tau * friction)[:, None], (d + tau * slope)[:, None, None], by)


@final
@dataclass(frozen=True)
class HeldBalls(HeldFriction):
    """Dry friction that holds, of balls; J = J_l(w) of their rotation vectors w.

    Attributes
    ----------
    first : (m,) first coordinates of their rotation vectors
    friction, slip : (m,) indices in theta of tau [N m] and v_s [rad/s]
    """

    first: IntArray
    friction: IntArray
    slip: IntArray

    @cached_property
    def dofs(self) -> IntArray:
        """Coordinates (m, 3)."""
        return np.asarray(self.first[:, None] + np.arange(3))

    def turned(self, kin: Kinematics) -> tuple[FloatArray, FloatArray]:
        """Return J_l(w) and d(J_l w_dot)/dw."""
        k, (J, D) = np.empty(6), np.empty((2, self.first.size, 3, 3))
        for i, start in enumerate(self.first):
            w, rate = kin.q[start : start + 3], kin.v[start : start + 3]
            jacobian_coefficients(float(w @ w), k)
            fill_jacobian(1.0, w, k, J[i])
            turn_derivative(1.0, w, rate, k, D[i])
        return J, D

    def bent(self, kin: Kinematics, torques: FloatArray) -> FloatArray:
        """Return d(J_l^T t)/dw."""
        k, D = np.empty(6), np.empty((self.first.size, 3, 3))
        for i, start in enumerate(self.first):
            w = kin.q[start : start + 3]
            jacobian_coefficients(float(w @ w), k)
            turn_derivative(-1.0, w, torques[i], k, D[i])
        return D

    def torques(self, omega: FloatArray, theta: FloatArray, decision: Decision) -> Torques:
        """Return tau (omega/|omega| of what slips + f omega/v_s of what creeps)."""
        share = np.where(decision & RELEASED, STIFFER, 1.0) / theta[self.slip]
        share[decision & (UP | STICKS) != 0] = 0.0
        size = np.sqrt((omega * omega).sum(axis=1))
        slips = (decision & UP != 0) & (size > 0.0)
        inverse = np.divide(1.0, size, out=np.zeros_like(size), where=slips)
        n = omega * inverse[:, None]
        slope = share[:, None, None] * np.eye(3)
        slope += inverse[:, None, None] * (np.eye(3) - n[:, :, None] * n[:, None])
        slow, tau = share[:, None] * omega, theta[self.friction][:, None]
        by_slip = -slow / theta[self.slip][:, None] * tau
        return Torques(tau * (n + slow), tau[:, :, None] * slope, ((self.friction, n + slow), (self.slip, by_slip)))


def _times(blocks: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the products of blocks (m, w, w) and vectors (m, w)."""
    return np.asarray((blocks @ vectors[:, :, None])[:, :, 0])


@final
@dataclass(frozen=True)
class HeldBranch(Term):
    """The resistance of what slips or creeps; the joints that stick have their reactions elsewhere."""

    depends: ClassVar[str] = "qv"

    whole: HeldFriction
    decision: Decision

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return one block a joint."""
        return dense_blocks(self.whole.dofs)

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add J^T t."""
        J = self.whole.turned(kin)[0]
        self.whole.add_torques(J, _times(J, kin.v[self.whole.dofs]), theta, self.decision, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        J, D = self.whole.turned(kin)
        torques, slopes, _ = self.whole.torques(_times(J, kin.v[self.whole.dofs]), theta, self.decision)
        by_omega = J.transpose(0, 2, 1) @ slopes
        by_q = by_omega @ D + self.whole.bent(kin, torques)
        np.add.at(data, slots, (weights.q * by_q + weights.v * (by_omega @ J)).ravel())

    def _by_numbers(self, kin: Kinematics, theta: FloatArray) -> list[tuple[IntArray, FloatArray]]:
        """Return indices of numbers, and r by them."""
        J = self.whole.turned(kin)[0]
        slopes = self.whole.torques(_times(J, kin.v[self.whole.dofs]), theta, self.decision).by_numbers
        return [(index, _times(J.transpose(0, 2, 1), slope)) for index, slope in slopes]

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the numbers."""
        for index, slope in self._by_numbers(kin, theta):
            np.add.at(out, index, (lam[self.whole.dofs] * slope).sum(axis=1))

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self._by_numbers(kin, theta):
            out[self.whole.dofs] += slope * theta_dot[index][:, None]


@final
class HeldEquations(StickingRows):
    """omega = 0 of the joints that stick; mu is minus the torque or force that holds [N m, N].

    Three rows a joint, as of a point of contact: of hinges and slides the second and third are empty.

    Attributes
    ----------
    whole : HeldFriction
    which : (k,) its joints that stick
    """

    def __init__(self, whole: HeldFriction, which: IntArray) -> None:
        super().__init__(which.size)
        self.whole, self.which = whole, which

    @cached_property
    def dofs(self) -> IntArray:
        """The coordinates (k, w) of each joint."""
        return np.asarray(self.whole.dofs[self.which])

    @property
    def theta_index(self) -> IntArray:
        """No number moves omega."""
        return np.zeros((self.n, 0), dtype=np.int64)

    @property
    def entries(self) -> IntArray:
        """The blocks of the joints that stick among all."""
        w = self.dofs.shape[1]
        return np.asarray((w * w * self.which[:, None] + np.arange(w * w)).reshape(-1, w, w))

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        """Return the rows with J, d(J v)/dq and d(J^T mu)/dq; those that creep have torques tau at most."""
        w, torques = self.dofs.shape[1], np.zeros(self.whole.dofs.shape)
        torques[self.which] = reactions[:, :w]
        out = new_stick_rows(self.n, w, 0)
        for part in (out.rows, out.by_v, out.by_q):
            part[:] = 0.0
        J, D = (part[self.which] for part in self.whole.turned(kin))
        omega = _times(J, kin.v[self.dofs])
        out.rows[:, :w], out.by_v[:, :w], out.by_q[:, :w] = omega, J, D
        out.geometric[:], out.limit[:] = (
            self.whole.bent(kin, torques)[self.which],
            theta[self.whole.friction[self.which]],
        )
        size = np.sqrt((omega * omega).sum(axis=1))
        out.stiffness[:] = out.limit / np.maximum(size, theta[self.whole.slip[self.which]])
        return out
