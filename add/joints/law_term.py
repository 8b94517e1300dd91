"""Couplings between sites of bodies: everything but the local law, written once.

r = -J^T f(y, y_dot; p), f (n, arity, 3) forces on the sites of n interactions; `add.kernels.sites` has the
equations. Internal couplings (sites of bodies alone) conserve momentum. Angular momentum is conserved by central
forces, by torques and by forces from an energy; the damping c y_dot of a `ElasticJoint` or a `Slider` gives the couple
c (offset x rate), which vanishes with the offset.

Laws of joints by formula: of the distance of two places, or of the angle of a hinge.

With x the distance l or the angle, an energy V(x) and a resistance D(x, x_dot) act with the force F = dV/dx + D against
a growing x. The derivatives of F by x, x_dot and the numbers are made from the text; `line_law` and `angle_law` make
forces, matrices and derivatives by numbers of them. Where a logarithm has no value (a chain at its full length) F is
NaN, which the line search rejects.
"""

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from add.equations.family import Family
from add.equations.family_term import NO_ROWS, FamilyTerm, OneFamily, OverFamily
from add.equations.kinematics import Kinematics
from add.equations.sites import Evaluation, LawValues, Sites
from add.equations.term import Candidates, DecidingTerm, Decision
from add.errors import InputError
from add.joints.law import PLACE, VECTOR, Law, Slots, family_of, grouped
from add.kernels.joints import angle_law
from add.kernels.springs import line_law
from add.laws import ZERO, Expression, compiled, derivative, evaluate, parse, symbols, unknown_sign
from add.typing import AnyArray, FloatArray

_SMOOTH: AnyArray = np.zeros(0, dtype=np.int8)


@dataclass(frozen=True)
class _OverSites(OverFamily):
    law: ClassVar[Law]

    sites: Sites
    values: LawValues

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", grouped(self.law, self.sites, self.values))

    def family(self) -> Family:
        """See `Term.family`."""
        return family_of(self.law, self.sites, self.values)


@dataclass(frozen=True)
class JointLaw(_OverSites, FamilyTerm):
    """Forces between the sites of an interaction by a smooth law, or by one branch of another.

    Attributes
    ----------
    sites : Sites
    values : LawValues
        The law's numbers, in the order that the class says.
    """

    depends: ClassVar[str] = "qv"

    @property
    def codes(self) -> AnyArray:
        """Branch of each interaction (n,); none of a smooth law."""
        return _SMOOTH

    @final
    def forces(self, kin: Kinematics, theta: FloatArray) -> FloatArray:
        """Return (n, arity, 3): the forces on points and directions [N], the torques on spins [N m], in world axes.

        A force f on a direction y acts as the torque y x f.
        """
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        f = np.empty_like(at.y)
        self.law.force(at.y, at.y_dot, at.p, True, self.codes, f)
        return f.reshape(self.sites.n, self.sites.arity, 3)

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        return self.law.energy(at.y.reshape(self.sites.n, self.sites.arity, 3), at.p, self.codes)


@final
@dataclass(frozen=True)
class JointBranch(JointLaw):
    """One branch of a law with branches.

    Attributes
    ----------
    whole : DecidingJointLaw
    branch : (k, 3) rows (e, 0, code)
    """

    whole: "DecidingJointLaw"
    branch: Decision

    def __post_init__(self) -> None:
        """Check nothing: the law did, and Newton makes these all the time."""

    @property
    def decided(self) -> Decision:
        """The branch."""
        return self.branch

    @property
    def one(self) -> OneFamily:  # type: ignore[override]
        """The family of all branches."""
        return self.whole.one

    @property
    def law(self) -> Law:  # type: ignore[override]
        """The law with branches."""
        return self.whole.law

    @property
    def codes(self) -> AnyArray:
        """Branch of each interaction (n,)."""
        out = np.zeros(self.sites.n, dtype=np.int8)
        out[self.branch[:, 0]] = self.branch[:, 2]
        return out


@dataclass(frozen=True)
class DecidingJointLaw(_OverSites, DecidingTerm):
    """A coupling whose law has branches: a row (e, 0, code) for every interaction that is not idle.

    Attributes
    ----------
    sites : Sites
    values : LawValues
    """

    @final
    def on_branch(self, decision: Decision, candidates: Candidates | None = None) -> JointBranch:
        """Return the smooth law of the given branch."""
        return JointBranch(self.sites, self.values, self, decision)

    @final
    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, sticking: Decision | None = None
    ) -> Decision:
        """Decide and add -J^T f in one pass."""
        return self.one.forces(kin, theta, NO_ROWS, out, decide=True)

    @final
    def changes(self, decision: Decision, other: Decision) -> int:
        """Return how many interactions are on another branch."""
        return int((self.on_branch(decision).codes != self.on_branch(other).codes).sum())

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the energy stored [J]."""
        return self.on_branch(self.decide(kin, theta)).energy(kin, theta)


# --- Laws of joints by formula: of the distance of two places, or of the angle of a hinge -----------------------------


@final
@dataclass(frozen=True)
class Measure:
    """The quantity that a formula is of.

    Attributes
    ----------
    names : of it and of its rate in formulas
    positive : whether it is above zero
    slots : of the sites
    of : y (n, r, 3) -> its values (n,)
    law : (name, compiled F) -> force and derivatives
    """

    names: tuple[str, str]
    positive: bool
    slots: Slots
    of: Callable[[FloatArray], FloatArray]
    law: Callable[[str, Any], tuple[Any, Any]]


def _length(y: FloatArray) -> FloatArray:
    return np.linalg.norm(y[:, 0] - y[:, 1], axis=1)


def _angle(y: FloatArray) -> FloatArray:
    return np.arctan2((y[:, 1] * y[:, 2]).sum(axis=1), (y[:, 0] * y[:, 2]).sum(axis=1))


#: A distance below which two places have met [m].
MET = 1e-6
#: The distance of two places [m].
LINE = Measure(("l", "l_dot"), True, (PLACE, PLACE), _length, line_law)
#: The angle of a hinge [rad] between -pi and pi, of two directions across the axis in one body and one in the other.
TURN = Measure(("angle", "rate"), False, (VECTOR, VECTOR, VECTOR), _angle, angle_law)


@final
@dataclass(frozen=True)
class JointFormula:
    """A kind of coupling: what it stores, and what else resists, as texts; either may be empty.

    It makes the term of its couplings, as the class of a kind with a name does.

    Attributes
    ----------
    energy : V(x) [J]
    resistance : D(x, x_dot) [N] or [N m]
    measure : Measure
        What x is.
    """

    energy: str
    resistance: str
    measure: Measure = LINE

    def __call__(self, sites: Sites, values: LawValues) -> "FormulaJoint":
        """Return the term; the numbers stand in alphabetical order."""
        return FormulaJoint(sites, values, self)

    @functools.cached_property
    def stored(self) -> Expression:
        """V."""
        return parse(self.energy) if self.energy else ZERO

    @functools.cached_property
    def further(self) -> Expression:
        """D."""
        return parse(self.resistance) if self.resistance else ZERO

    @functools.cached_property
    def force(self) -> Expression:
        """F."""
        return derivative(self.stored, self.measure.names[0]) + self.further

    @functools.cached_property
    def slopes(self) -> list[Expression]:
        """Derivatives of F by x, its rate, and the numbers."""
        return [derivative(self.force, name) for name in (*self.measure.names, *self.numbers)]

    @property
    def domain(self) -> list[Expression]:
        """The expressions that are above zero where the formulas have values."""
        positive = frozenset(self.measure.names[:1] if self.measure.positive else ())
        return [one for part in (self.stored, self.further) for one in unknown_sign(part, positive)]

    @property
    def numbers(self) -> list[str]:
        """Names of the numbers of F, in alphabetical order."""
        return [name for name in symbols(self.force) if name not in self.measure.names]

    def require_readable(self, numbers: Collection[str]) -> None:
        """Refuse texts that are no formulas of these numbers, and numbers that F does not have.

        Raises
        ------
        InputError
            Its place is the text, or the number.
        """
        x, rate = self.measure.names
        for key, text, known in (("energy", self.energy, (x,)), ("resistance", self.resistance, (x, rate))):
            try:
                parse(text or "0", [*known, *numbers])
            except InputError as error:
                raise InputError(error.message, place=key, found=error.found, expected=error.expected) from None
        unused = sorted(set(numbers) - set(self.numbers))
        if unused:
            raise InputError(f"the force dV/d{x} + D does not have this number", place=f"numbers.{unused[0]}")
        if not self.numbers:
            raise InputError(f"the force dV/d{x} + D has no number", place="numbers", expected="at least one")
        self.slopes  # noqa: B018  # are numbers that can be written, or one error

    @property
    def law(self) -> Law:
        """The compiled law."""
        return _law(self)


@functools.cache
def _law(formula: JointFormula) -> Law:
    total, stored, names = formula.force, formula.stored, formula.numbers
    x, rate = formula.measure.names
    symbols = {x: "x", rate: "rate"} | {name: f"p[{k}]" for k, name in enumerate(names)}
    by_rate, values = formula.slopes[1], [total, *formula.slopes]
    slopes = [f"slopes[{k}]" for k in range(len(names))]
    options: dict[str, Any] = {"error_model": "numpy"}
    function = compiled(
        "joint_formula", "x, rate, p, slopes", values, symbols, domain=formula.domain, into=slopes, **options
    )
    name = f"formula-{x}-{stored.key}-{formula.further.key}"

    def energy(y: FloatArray, p: FloatArray, codes: AnyArray) -> float:
        at = {x: formula.measure.of(y)} | dict(zip(names, p.T, strict=True))
        return float(np.sum(np.broadcast_to(evaluate(stored, at), len(y))))

    force, derivatives = formula.measure.law(name, function)
    slots, n = formula.measure.slots, len(names)
    return Law(name, force, derivatives, slots, n, reads_rates=by_rate != ZERO, energy=energy)


@final
@dataclass(frozen=True)
class FormulaJoint(JointLaw):
    """Forces by a formula: f = -F dx/dy on the sites y, x the distance of two places or the angle of a hinge.

    Attributes
    ----------
    formula : JointFormula
    """

    formula: JointFormula

    @property
    def law(self) -> Law:  # type: ignore[override]
        """The law of the formula."""
        return self.formula.law

    def lost(self, kin: Kinematics, theta: FloatArray) -> str:
        """Return whether ends have met that are drawn together even there."""
        if self.formula.measure is not LINE:
            return ""
        at = Evaluation(self.sites, self.values, kin.q, kin.v, kin.t, theta)
        numbers = dict(zip(self.formula.numbers, at.p.T, strict=True))
        pull = np.broadcast_to(evaluate(self.formula.force, {"l": 0.0, "l_dot": 0.0} | numbers), self.sites.n)
        drawn = pull[(LINE.of(at.y.reshape(-1, 2, 3)) < MET) & (pull > 0.0)]
        return drawn.size * (
            f"the ends of a coupling have met that draws them together with {drawn.max(initial=0.0):.3g} N even there, "
            "without a direction: let the force vanish with l, as with sqrt(l**2 + c**2) in the place of l + c"
        )
