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
from typing import ClassVar, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Candidates, Decision, StickConstraint, StickingTerm, StickOperators, Term
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

    @abstractmethod
    def rates(self, kin: Kinematics) -> FloatArray:
        """Return v (m, k): one number a hinge or slide, three a ball."""

    @abstractmethod
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> Term:
        """Return the smooth term of this branch, without reactions."""

    @abstractmethod
    def held(self, which: IntArray) -> StickConstraint:
        """Return the equations of some joints, one at least, by number."""

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
        return self.held(which) if which.size else None

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

    def rates(self, kin: Kinematics) -> FloatArray:
        """Return the rates (m, 1) of the coordinates."""
        return kin.v[self.dof][:, None]

    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> HeldResistanceBranch:
        """Return the smooth term of this branch, without reactions."""
        return HeldResistanceBranch(self, decision)

    def held(self, which: IntArray) -> HeldJoints:
        """Return the equations of some joints, by number."""
        return HeldJoints(self, which)


@final
@dataclass(frozen=True)
class HeldResistanceBranch(Term):
    """Damping and the friction of what slips or creeps; the joints that stick have their reactions elsewhere."""

    depends: ClassVar[str] = "v"

    whole: HeldResistance
    decision: Decision

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the diagonal entries."""
        return self.whole.dof, self.whole.dof

    def _friction(self, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the friction per tau of every joint, and its slope by v."""
        decision = self.decision
        slope = np.where(decision & RELEASED, STIFFER, 1.0) / theta[self.whole.slip]
        slope[decision & (UP | DOWN | STICKS) != 0] = 0.0
        sign = np.where(decision & UP, 1.0, 0.0) - np.where(decision & DOWN, 1.0, 0.0)
        return sign + slope * v, slope

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the torques."""
        whole, v = self.whole, kin.v[self.whole.dof]
        out[whole.dof] += theta[whole.damping] * v + theta[whole.friction] * self._friction(v, theta)[0]

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives."""
        whole = self.whole
        slope = self._friction(kin.v[whole.dof], theta)[1]
        np.add.at(data, slots, weights.v * (theta[whole.damping] + theta[whole.friction] * slope))

    def _by_numbers(self, kin: Kinematics, theta: FloatArray) -> tuple[tuple[IntArray, FloatArray], ...]:
        """Return the indices of d, tau and v_s, and r by them."""
        whole, v = self.whole, kin.v[self.whole.dof]
        friction, slope = self._friction(v, theta)
        by_slip = -theta[whole.friction] * slope * v / theta[whole.slip]
        return (whole.damping, v), (whole.friction, friction), (whole.slip, by_slip)

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of d, tau and v_s."""
        for index, slope in self._by_numbers(kin, theta):
            np.add.at(out, index, lam[self.whole.dof] * slope)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        for index, slope in self._by_numbers(kin, theta):
            out[self.whole.dof] += slope * theta_dot[index]


@final
@dataclass(frozen=True)
class HeldJoints(StickConstraint):
    """v = 0 of the joints that stick; mu is minus the torque or force that holds [N m, N].

    Three rows a joint, as of a point of contact: the second and third are empty.

    Attributes
    ----------
    whole : HeldResistance
    which : (k,) its joints that stick
    """

    whole: HeldResistance
    which: IntArray

    @property
    def _dof(self) -> IntArray:
        return np.asarray(self.whole.dof[self.which])

    @property
    def n_rows(self) -> int:
        """Three a joint."""
        return 3 * self.which.size

    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return the entries of the rows and of the columns of the reactions."""
        row, dof = first + 3 * np.arange(self.which.size), self._dof
        return np.concatenate([row, dof]), np.concatenate([dof, row])

    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add the reactions and the rates."""
        out[self._dof] += mu[::3]
        rows[::3] += kin.v[self._dof]

    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add the weighted derivatives of both parts."""
        np.add.at(data, slots, np.repeat([weights.v, weights.multiplier], self.which.size))

    @property
    def dofs(self) -> IntArray:
        """The coordinate (k, 1) of each joint."""
        return self._dof[:, None]

    def operators(self, kin: Kinematics, theta: FloatArray) -> StickOperators:
        """Return the linearised rows."""
        by_v = np.zeros((self.which.size, 3, 1))
        by_v[:, 0] = 1.0
        return StickOperators(by_v, np.zeros_like(by_v))

    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add nothing: a reaction acts alike everywhere."""

    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right."""
        np.add.at(data, slots[self.which], factor * (left * right).sum(axis=(1, 2)))

    def limits(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return tau of each joint [N m, N]."""
        return np.asarray(theta[self.whole.friction[self.which]])

    def first_guess(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the torques of the creeping law, at most tau."""
        out, tau = np.zeros((self.which.size, 3)), self.limits(kin, theta)
        out[:, 0] = tau * np.clip(kin.v[self._dof] / theta[self.whole.slip[self.which]], -1.0, 1.0)
        return out.ravel()
