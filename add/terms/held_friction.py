"""Dry friction of joints that holds: a joint at rest is kept there by an equation, one that moves is braked.

The hybrid friction of contact (Geilinger et al. 2020, section 4.3), for rates v of hinges, slides and balls:

    stick   v = 0 with the reaction mu, |mu| <= tau
    slip    tau v / |v|
    creep   f tau v / v_s, |v| < v_s / f

r is that and, of hinges and slides, the damping d v. Of balls it is J_l(w)^T times that, v = omega = J_l(w) w_dot.

`add.solve.hybrid_friction` decides: what creeps with f = 1 is held, what is held beyond tau is let go within the step,
and then creeps with f = `STIFFER` at most.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.sticking_rows import StickingRows
from add.equations.term import NO_INPUTS, Candidates, Decision, StickConstraint, StickingTerm, Term
from add.kernels.sticking import StickRows
from add.typing import BoolArray, FloatArray, IntArray

#: Bits of a decision, one number a joint.
UP, DOWN, STICKS, RELEASED = 1, 2, 4, 8
#: How much sooner joints slip that were held beyond their limit: they creep at less than v_s over this.
STIFFER = 1e3
#: Slower than this [rad/s, m/s] a joint rests: what was held in the last step moves by round-off.
REST = 1e-10


class HeldFriction(StickingTerm):
    """Dry friction that holds; a decision has the bits of every joint.

    Attributes
    ----------
    friction, slip : (m,) indices in theta of tau and v_s
    """

    friction: IntArray
    slip: IntArray

    @property
    @abstractmethod
    def dofs(self) -> IntArray:
        """Coordinates (m, k): one of a hinge or slide, three of a ball."""

    @abstractmethod
    def rates(self, kin: Kinematics) -> FloatArray:
        """Return v (m, k)."""

    @abstractmethod
    def turned(self, kin: Kinematics, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return dv/dq_dot and dv/dq (n, 3, k) of some joints; v of one number stands first of three."""

    @abstractmethod
    def bent(self, kin: Kinematics, which: IntArray, torque: FloatArray) -> FloatArray:
        """Return the derivative (n, k, k) of dv/dq_dot^T torque by q at fixed torques (n, 3)."""

    @abstractmethod
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> HeldBranch:
        """Return the smooth term of this branch, without reactions."""

    @final
    def _decided(self, kin: Kinematics, theta: FloatArray, given: Decision | None = None) -> Decision:
        """Return the branch at ``kin``, with the bits STICKS and RELEASED of ``given``."""
        kept = np.zeros(self.slip.size, dtype=np.int64) if given is None or not given.size else given
        kept = kept & (STICKS | RELEASED)
        v = self.rates(kin)
        slips = np.sqrt((v * v).sum(axis=1)) * np.where(kept & RELEASED, STIFFER, 1.0) >= theta[self.slip]
        # A ball slips which way it turns.
        way = np.where(v[:, 0] < 0.0, DOWN, UP) if v.shape[1] == 1 else UP
        return np.where((kept & STICKS == 0) & slips, kept | way, kept)

    @final
    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return which joints slip, and which way."""
        return self._decided(kin, theta)

    @final
    def structure(self, decision: Decision, candidates: Candidates | None = None) -> None:
        """Return None: the pattern is the same for all decisions."""

    @final
    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add the torques; ``sticking`` goes on sticking."""
        decision = self._decided(kin, theta, sticking)
        self.on_branch(decision).residual(kin, theta, out)
        return decision

    @final
    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many joints stick, slip and creep."""
        sticking, slipping = (int((decision & bits != 0).sum()) for bits in (STICKS, UP | DOWN))
        return {"sticking": sticking, "slipping": slipping, "creeping": self.slip.size - sticking - slipping}

    @final
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n,) generalised forces without reactions [N, N m]."""
        out = np.zeros_like(kin.q)
        self.decided_residual(kin, theta, out)
        return -out

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return zero: it stores none."""
        return 0.0

    # --- sticking -----------------------------------------------------------------------------------------------------

    @property
    @final
    def sticking(self) -> HeldFriction:
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
        return HeldRows(self, which) if which.size else None

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


class HeldBranch(Term):
    """A branch of `HeldFriction`: its forces and slopes, joint by joint, put where they belong."""

    whole: HeldFriction
    decision: Decision

    @abstractmethod
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m, k)."""

    @abstractmethod
    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dq and dr/dv (m, k, k)."""

    @abstractmethod
    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the indices (m,) of each number in theta, and r (m, k) by it."""

    @final
    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return a block a joint."""
        dofs = self.whole.dofs
        rows, cols = np.broadcast_arrays(dofs[:, :, None], dofs[:, None])
        return rows.ravel(), cols.ravel()

    @final
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the torques."""
        out[self.whole.dofs] += self.forces(kin, theta)

    @final
    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        by_q, by_v = self.slopes(kin, theta)
        np.add.at(data, slots, (weights.q * by_q + weights.v * by_v).ravel())

    @final
    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the numbers."""
        for index, slope in self.by_numbers(kin, theta):
            np.add.at(out, index, (lam[self.whole.dofs] * slope).sum(axis=1))

    @final
    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self.by_numbers(kin, theta):
            out[self.whole.dofs] += slope * theta_dot[index][:, None]


@final
class HeldRows(StickingRows):
    """v = 0 of the joints that stick; mu is minus the torque or force that holds [N m, N].

    Three rows a joint, as `add.solve.hybrid_friction` counts them; of a hinge or slide the second and third are empty.
    """

    def __init__(self, whole: HeldFriction, which: IntArray) -> None:
        super().__init__(which)
        self.whole = whole

    @cached_property
    def dofs(self) -> IntArray:
        """The coordinates of the joints."""
        return np.asarray(self.whole.dofs[self.rows])

    @property
    def theta_index(self) -> IntArray:
        """No number: the axes are the coordinates' own."""
        return NO_INPUTS

    def _evaluate(self, kin: Kinematics, theta: FloatArray, reactions: FloatArray) -> StickRows:
        by_v, by_q = self.whole.turned(kin, self.rows)
        bent = self.whole.bent(kin, self.rows, reactions)
        v = np.einsum("kij,kj->ki", by_v, kin.v[self.dofs])
        limit, slip = theta[self.whole.friction[self.rows]], theta[self.whole.slip[self.rows]]
        stiffness = limit / np.maximum(np.sqrt((v * v).sum(axis=1)), slip)
        none = np.zeros((v.shape[0], v.shape[1], 0)), np.zeros((*self.dofs.shape, 0))
        return StickRows(v, by_v, by_q, bent, *none, limit, stiffness)

    def _slots(self, slots: IntArray) -> IntArray:
        """Return the slots (k, w, w) of the joints' blocks in the frozen term."""
        w = self.dofs.shape[1]
        return np.asarray(slots.reshape(-1, w, w)[self.rows])

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor times the derivative of by_v^T mu by q."""
        bent = self.evaluate(kin, theta, mu.reshape(-1, 3)).geometric
        np.add.at(data, self._slots(slots), factor * bent)

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right at the joints' own blocks."""
        np.add.at(data, self._slots(slots), factor * (left.transpose(0, 2, 1) @ right))


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

    @property
    def dofs(self) -> IntArray:
        """The coordinates (m, 1)."""
        return self.dof[:, None]

    def rates(self, kin: Kinematics) -> FloatArray:
        """Return the rates (m, 1) of the coordinates."""
        return kin.v[self.dofs]

    def turned(self, kin: Kinematics, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return one and zero: v is the rate."""
        by_v = np.zeros((which.size, 3, 1))
        by_v[:, 0] = 1.0
        return by_v, np.zeros_like(by_v)

    def bent(self, kin: Kinematics, which: IntArray, torque: FloatArray) -> FloatArray:
        """Return zero."""
        return np.zeros((which.size, 1, 1))

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> HeldResistanceBranch:
        """Return the smooth term of this branch, without reactions."""
        return HeldResistanceBranch(self, decision)


@final
@dataclass(frozen=True)
class HeldResistanceBranch(HeldBranch):
    """Damping and the friction of what slips or creeps; the joints that stick have their reactions elsewhere."""

    depends: ClassVar[str] = "v"

    whole: HeldResistance
    decision: Decision

    def _friction(self, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the friction per tau of every joint, and its slope by v."""
        decision = self.decision
        slope = np.where(decision & RELEASED, STIFFER, 1.0) / theta[self.whole.slip]
        slope[decision & (UP | DOWN | STICKS) != 0] = 0.0
        sign = np.where(decision & UP, 1.0, 0.0) - np.where(decision & DOWN, 1.0, 0.0)
        return sign + slope * v, slope

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return r (m, 1)."""
        whole, v = self.whole, kin.v[self.whole.dof]
        return np.asarray(theta[whole.damping] * v + theta[whole.friction] * self._friction(v, theta)[0])[:, None]

    def slopes(self, kin: Kinematics, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives (m, 1, 1)."""
        slope = self._friction(kin.v[self.whole.dof], theta)[1]
        by_v = (theta[self.whole.damping] + theta[self.whole.friction] * slope)[:, None, None]
        return np.zeros_like(by_v), by_v

    def by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return d, tau and v_s, and r by them."""
        whole, v = self.whole, kin.v[self.whole.dof]
        friction, slope = self._friction(v, theta)
        by_slip = -theta[whole.friction] * slope * v / theta[whole.slip]
        return (whole.damping, v[:, None]), (whole.friction, friction[:, None]), (whole.slip, by_slip[:, None])
