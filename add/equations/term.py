"""Sources of force: smooth terms, terms with branches, equations with multipliers."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple, Self, final

import numpy as np

from add.equations.family import Family, NotCompiled
from add.equations.kinematics import KinematicCotangent, Kinematics, Weights
from add.linalg.pattern import add_blocks, add_product
from add.typing import AnyArray, BoolArray, FloatArray, IntArray

#: What a deciding term decided: an integer array.
Decision = AnyArray
Decisions = tuple[Decision, ...]

#: What a deciding term may come to decide within a step: an integer array, or None where its sparsity never changes.
Candidates = IntArray
AllCandidates = tuple[Candidates | None, ...]

#: The weights of dr/dq, dr/dv and dr/da alone.
UNIT = (("q", Weights(1.0, 0.0, 0.0)), ("v", Weights(0.0, 1.0, 0.0)), ("a", Weights(0.0, 0.0, 1.0)))

#: Of a term without signals.
NO_INPUTS: IntArray = np.zeros(0, dtype=np.int64)


class Entries(NamedTuple):
    """Derivatives of a ``place``, a coordinate or an equation behind them, by a ``number`` of theta; may repeat."""

    place: IntArray
    number: IntArray
    value: FloatArray


NO_NUMBERS = Entries(NO_INPUTS, NO_INPUTS, np.zeros(0))


class Forces:
    """Forces of a system: the part that smooth terms and those with branches share."""

    @property
    def inputs(self) -> IntArray:
        """Entries of theta that are coefficients of its signals; no term reads them in another way."""
        return NO_INPUTS

    def family(self) -> Family:
        """Return the forces as compiled steps take them; of a term with branches the decision is (k, 3) rows.

        Raises
        ------
        NotCompiled
            If compiled steps lack them.
        """
        raise NotCompiled(type(self).__name__)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored by this term [J]; zero for terms that store none."""
        return 0.0


class Term(Forces, ABC):
    """One force family over all bodies that have it. All methods add, none overwrites.

    A term holds indices and structure; every differentiable number is read from ``theta``. ``depends`` names the
    kinematic arguments that the term reads; derivatives by the others are zero and are not computed. ``linear`` names
    the rates (v, a) in which r is linear and homogeneous, the two together, each with a symmetric derivative.
    """

    depends: ClassVar[str] = "qva"
    linear: ClassVar[str] = ""

    @abstractmethod
    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return flat (rows, cols) of all local entries; repeats allowed."""

    @abstractmethod
    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add the term's share of r to ``out`` (n,): forces enter with a minus."""

    @abstractmethod
    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add weights.q dr/dq + weights.v dr/dv + weights.a dr/da to ``data[slots[k]]``, k as in `pattern`."""

    @abstractmethod
    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add lam^T dr/dtheta to ``out`` (n_theta,)."""

    @abstractmethod
    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add dr/dtheta theta_dot to ``out`` (n,)."""

    def lost(self, kin: Kinematics, theta: FloatArray) -> str:
        """Return in words what has no direction near ``kin``, for the error of a step that fails; may be empty."""
        return ""

    def kinetic_energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the kinetic energy [J]; zero for terms that are no inertia."""
        return 0.0

    @final
    def state_vjp(
        self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: KinematicCotangent, wanted: str = "qva"
    ) -> None:
        """Add lam^T dr/d(q, v, a) to ``out``; by the Newton derivative itself, so that they cannot disagree.

        Where r is linear in v or a with a symmetric derivative (`linear`), lam^T dr/dv is r itself at v = lam.
        """
        for name in self.linear:
            if name in wanted:
                none = np.zeros_like(lam)
                v, a = (lam, none) if name == "v" else (none, lam)
                self.residual(Kinematics(kin.q, v, a, kin.t, kin.step), theta, getattr(out, name))
        rows, cols = self.pattern()
        for name, values in self._derivatives(kin, theta, "".join(set(wanted) - set(self.linear))):
            add_product(cols, rows, values, lam, getattr(out, name))

    def rates_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> bool:
        """Add lam^T dr/dv to ``out`` (n,) as compiled steps do, without a matrix; return whether the term can."""
        return False

    @final
    def state_jvp(self, kin: Kinematics, theta: FloatArray, along: FloatArray, name: str) -> FloatArray:
        """Return dr/dq, dr/dv or dr/da by ``name`` times ``along`` (n,)."""
        rows, cols = self.pattern()
        out = np.zeros_like(along)
        for _, values in self._derivatives(kin, theta, name):
            add_product(rows, cols, values, along, out)
        return out

    def _derivatives(self, kin: Kinematics, theta: FloatArray, wanted: str) -> Iterator[tuple[str, FloatArray]]:
        slots = _positions(size := self.pattern()[0].size)
        for name, weights in UNIT:
            if name in wanted and name in self.depends:
                values = np.zeros(size)
                self.jacobian(kin, theta, weights, values, slots)
                yield name, values


@cache
def _positions(size: int) -> IntArray:
    """Return 0, 1, ...: the slots of a matrix of local entries."""
    return np.arange(size)


class DecidingTerm(Forces, ABC):
    """A force with branches (contact made or not, stick or slip). A branch is a value, and each branch is smooth.

    Newton decides anew at every residual; the record keeps the last decision, and the backward pass, replayed finite
    differences and recomputations evaluate the frozen branch.
    """

    def family_of_step(self, decision: Decision, candidates: Candidates | None) -> Family:
        """Return the family with the pattern of `on_branch`, where that changes from step to step."""
        return self.family()

    def arrays_now(self) -> tuple[AnyArray, ...]:
        """Return the first arrays of that family as they are by now: they change at any time, and no number does."""
        return ()

    def arrays_at(self, theta: FloatArray) -> tuple[AnyArray, ...]:
        """Return the first arrays of a family that is `sized`, with the sizes of theta."""
        return ()

    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""
        return self.decided_residual(kin, theta, np.zeros_like(kin.q))

    def candidates(self, kin: Kinematics, theta: FloatArray, dt: float) -> Candidates | None:
        """Return what may come to act within ``dt`` [s] from ``kin``; None if the sparsity does not ask.

        A step makes its matrices over these: a set that iterates share, and a function of the state before the step
        alone, so that a run from a checkpoint meets the same numbers. What a branch needs beyond them it has, too.
        """
        return None

    def within(self, free: BoolArray, candidates: Candidates | None) -> tuple[Self, Candidates | None]:
        """Return a term with the same forces on some coordinates (n,), for less work, and the candidates it needs."""
        return self, candidates

    def keys(self, decision: Decision, candidates: Candidates | None = None) -> Candidates | None:
        """Return the sorted keys of this branch's blocks and of the candidates; None where decisions change none."""
        return None

    def structure(self, decision: Decision, candidates: Candidates | None = None) -> Hashable:
        """Return the key of the sparsity of this branch, candidates included: equal values share a pattern."""
        return None if (keys := self.keys(decision, candidates)) is None else keys.tobytes()

    @abstractmethod
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> Term:
        """Return the smooth term of this branch; the pattern has the places of the candidates, too."""

    @abstractmethod
    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add the residual in one pass; return the decision. What has stuck in ``sticking`` goes on so."""

    def keep_faces(self, kin: Kinematics, theta: FloatArray, dt: float) -> Decision:
        """Return what keeps all that may act within ``dt`` [s] on its piece at ``kin``, given to `decided_residual`."""
        return self.decide(kin, theta)

    @abstractmethod
    def describe(self, decision: Decision) -> dict[str, int]:
        """Return counts that a person wants to see (touching, sticking, slipping)."""

    def tightest(self, kin: Kinematics, theta: FloatArray) -> str:
        """Return in words what is most in the way at ``kin``, for the error of a step that is blocked; may be empty."""
        return ""

    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n,) generalised forces on the branch that holds at ``kin``, without reactions [N, N m]."""
        out = np.zeros_like(kin.q)
        self.decided_residual(kin, theta, out)
        return -out

    def changes(self, decision: Decision, other: Decision) -> int:
        """Return how many branches differ between two decisions."""
        return int((decision != other).sum())

    @property
    def sticking(self) -> "StickingTerm | None":
        """The term itself, if it has equations for points that stick; None if it never does."""
        return None

    def stiffnesses(self) -> IntArray:
        """Return the indices in theta by which all forces of this term scale together; none if there are no such."""
        return np.zeros(0, dtype=np.int64)

    def damps_at_once(self, theta: FloatArray) -> bool:
        """Whether a damping acts whole as soon as anything touches: the force jumps there."""
        return False


class Constraint(ABC):
    """Equations c(q, v; theta, t) = 0 with multipliers mu as unknowns of the step; the force on the bodies is -G^T mu.

    Multipliers are numbered behind the coordinates: row or column ``n_dofs + first + k`` is that of multiplier k.
    """

    #: Whether it is written over q and not over rows of X.
    of_coordinates: ClassVar[bool] = False
    #: Whether starts are moved until it holds (`add.equations.assembly`).
    closes_starts: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of equations."""

    @abstractmethod
    def pattern(self, first: int) -> tuple[IntArray, IntArray]:
        """Return flat (rows, cols); ``first`` is the number of this constraint's first multiplier."""

    @abstractmethod
    def residual(self, kin: Kinematics, mu: FloatArray, theta: FloatArray, out: FloatArray, rows: FloatArray) -> None:
        """Add G^T mu to ``out`` (n,) and c to ``rows`` (n_rows,)."""

    @abstractmethod
    def jacobian(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray
    ) -> None:
        """Add the weighted derivatives of both parts, and weights.multiplier times those by mu."""

    def family(self, first: int) -> Family:
        """Return the equations as compiled steps take them, r = G^T mu, and c in the rows of multipliers.

        These are coordinates from number ``first`` on. It raises what `Forces.family` does.
        """
        raise NotCompiled(type(self).__name__)

    def by_numbers(self, kin: Kinematics, mu: FloatArray, theta: FloatArray) -> Entries:
        """Return the derivatives of G^T mu, and of c behind it, by theta; none of one without numbers."""
        return NO_NUMBERS

    def parameter_vjp(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        """Add lam^T d(G^T mu)/dtheta + lam_rows^T dc/dtheta to ``out``."""
        place, number, value = self.by_numbers(kin, mu, theta)
        np.add.at(out, number, np.concatenate([lam, lam_rows])[place] * value)

    def parameter_jvp(
        self,
        kin: Kinematics,
        mu: FloatArray,
        theta: FloatArray,
        theta_dot: FloatArray,
        out: FloatArray,
        rows: FloatArray,
    ) -> None:
        """Add the derivatives along theta_dot."""
        (place, number, value), n = self.by_numbers(kin, mu, theta), out.size
        change = np.bincount(place, value * theta_dot[number], n + rows.size)
        out += change[:n]
        rows += change[n:]


@final
@dataclass(frozen=True)
class StickOperators:
    """The linearised rows of a `StickConstraint`; m coordinates a point.

    Attributes
    ----------
    by_v, by_q : (k, 3, m)
        dc/dv and dc/dq; the generalised force of the reactions is -by_v^T lam.
    """

    by_v: FloatArray
    by_q: FloatArray


class StickConstraint(Constraint):
    """Equations c = 0 [m/s], three a sticking point, whose multipliers [N] are the reactions that hold it.

    The rows of a point may depend on each other, and those of many points of one rigid body do: no saddle-point matrix
    is factored. The step's matrix has p (dc/dv)^T dc/du added instead, at places that the frozen term has anyway, and
    `add.linalg.augmented_lagrangian` finds increments and reactions by passes of the method of multipliers.
    """

    @property
    @abstractmethod
    def dofs(self) -> IntArray:
        """Coordinates (k, m) that each sticking point moves with; -1 for none."""

    @abstractmethod
    def operators(self, kin: Kinematics, theta: FloatArray) -> StickOperators:
        """Return the linearised rows."""

    @abstractmethod
    def add_geometry(
        self, kin: Kinematics, mu: FloatArray, theta: FloatArray, factor: float, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor times the derivative of the generalised force by q, at the slots of the frozen term."""

    @property
    @abstractmethod
    def entries(self) -> IntArray:
        """Places of each point's block of coordinates among the entries of the frozen term (k, m, m), or -1."""

    @final
    def add_products(
        self, factor: float, left: FloatArray, right: FloatArray, data: FloatArray, slots: IntArray
    ) -> None:
        """Add factor left^T right, both (k, 3, m), at the slots of the frozen term."""
        add_blocks(self.entries, factor, left.transpose(0, 2, 1) @ right, data, slots)

    @abstractmethod
    def limits(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the limit of each reaction (k,) [N]; below zero where nothing touches."""

    @abstractmethod
    def first_guess(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return the reactions (3 k,) of the penalty law at ``kin`` [N]."""


class StickingTerm(DecidingTerm):
    """A deciding term whose decisions say which points stick, and give the equations that hold them.

    `add.solve.hybrid_friction` chooses among its decisions. Points are counted in the order of `stick_constraint`.
    """

    @abstractmethod
    def stick(self, decision: Decision) -> Decision:
        """Return the decision with a constraint on everything that sticks in it."""

    @abstractmethod
    def stick_touching(self, decision: Decision) -> Decision:
        """Return the decision with a constraint on everything that touches."""

    @abstractmethod
    def none_creeps(self, decision: Decision) -> bool:
        """Return whether everything that touches, and could stick, sticks or slips."""

    @abstractmethod
    def at_rest(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch at ``kin`` with a constraint on all that rests, and without one on what creeps."""

    @abstractmethod
    def stick_constraint(self, decision: Decision, candidates: Candidates | None = None) -> StickConstraint | None:
        """Return the equations of a decision; None if nothing sticks.

        The slots of the frozen term are those of `on_branch` with the same candidates.
        """

    @abstractmethod
    def release(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision with some points released, ``rows`` (k,) of them."""

    @abstractmethod
    def without(self, decision: Decision, rows: BoolArray) -> Decision:
        """Return the decision without the constraints of some points, as if they had never stuck."""

    @abstractmethod
    def is_sticking(self, decision: Decision, other: Decision) -> BoolArray:
        """Return which of the points that stick in ``decision`` (k,) stick in another one, too."""
