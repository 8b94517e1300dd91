"""Coefficients of contact, and its laws by formula: of the coefficient of friction, of the normal force and damping.

Kernels call them by the addresses of compiled functions (`add.kernels.contact_laws`), so that they are the same for all
laws; derivatives are made from the texts.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, final

import numpy as np

from add.errors import InputError
from add.kernels.by_address import Callee, address
from add.kernels.contact_laws import COEFFICIENT, CONSTANT, FAR, NORMAL
from add.laws import Expression, compiled, derivative, evaluate, parse, symbols, unknown_sign
from add.typing import BoolArray, FloatArray, IntArray

# --- Coefficients between a body and a shape: friction law, stiffnesses, coefficients ---------------------------------


class FrictionLaw(IntEnum):
    """Friction against the relative tangential velocity."""

    NONE = 0
    LINEAR = 1
    TANH = 2
    #: The linear law, then equations that hold what sticks in it.
    HYBRID = 3

    @property
    def kernel(self) -> int:
        """The law of what is not held."""
        return int(FrictionLaw.LINEAR if self is FrictionLaw.HYBRID else self)


class NormalLaw(IntEnum):
    """Laws of the normal force; equations stand in `add.kernels.contact_laws`."""

    #: Grows with the depth: linearly, after an onset.
    PENALTY = 0
    #: The penalty in a layer, with a barrier from half its thickness on.
    PENALTY_WALL = 1
    #: The penalty without a kink, its force set in over some thicknesses.
    SOFT_MAX = 2
    #: A barrier in a layer.
    LOG_BARRIER = 3

    @property
    def code(self) -> int:
        """Code of the law in the kernels."""
        return int(self)

    @property
    def has_layer(self) -> bool:
        """Whether points feel shapes before they touch them."""
        return self is not NormalLaw.PENALTY

    @property
    def reach(self) -> float:
        """The gap at which points begin to feel a shape, in thicknesses of its layer."""
        return {NormalLaw.PENALTY: 0.0, NormalLaw.SOFT_MAX: FAR}.get(self, 1.0)

    @property
    def is_infinite(self) -> bool:
        """Whether surfaces never touch."""
        return self in (NormalLaw.PENALTY_WALL, NormalLaw.LOG_BARRIER)


@final
@dataclass(frozen=True)
class PairParameters:
    """Coefficients between a group of points (row) and a group of shapes (column): the tables of contact classes.

    Attributes
    ----------
    k_n, k_d, k_t, c_f : (R, C)
        Indices in theta: stiffness [N/m, or N/m^3 per area], damping [N s/m], stick stiffness [N s/m], friction [-].
    onset : (R, C)
        Depth over which the stiffness grows from zero [m]; 0 is the paper's kink.
    ramp : (R, C)
        Depth over which the damping grows [m]; 0 is the paper's jump.
    enabled : (R, C) bool or int
        Whether they meet: 0 never, 1 always, 2 only where the body of the points comes behind that of the shape.
    thickness : (R, C), or None: the penalty has no layer
        Indices in theta of the thickness of the layer around shapes [m].
    further : (R, C, 2), or None: the coefficient of friction is c_f
        Indices in theta of the numbers of its curve.
    mutual : (R, C) bool, or None: none are
        Whether the shapes of the points' bodies, too, meet points of the shapes' bodies.
    couples : (R, C, 3), or None: nothing brakes the spin
        Indices in theta of torsional and rolling friction [m] and of the rate at which they set in [rad/s]; -1 for
        groups of nodes.
    """

    k_n: IntArray
    k_d: IntArray
    k_t: IntArray
    c_f: IntArray
    onset: FloatArray
    ramp: FloatArray
    enabled: BoolArray | IntArray
    thickness: IntArray | None = None
    further: IntArray | None = None
    couples: IntArray | None = None
    mutual: BoolArray | None = None

    def tables(self) -> IntArray:
        """Return (R, C, 12) what kernels read of a pair: see `add.kernels.contact_arrays.Contacts`."""
        none = np.full((*self.k_n.shape, 3), -1)
        layers = none[..., 0] if self.thickness is None else self.thickness
        parts = (
            np.stack([self.k_n, self.k_d, self.k_t, self.c_f, self.enabled, layers], axis=2),
            none[..., :2] if self.further is None else self.further,
            none if self.couples is None else self.couples,
            np.zeros_like(none[..., :1]) if self.mutual is None else self.mutual[..., None],
        )
        return np.ascontiguousarray(np.concatenate(parts, axis=2), dtype=np.int64)

    def depths(self, reach: float) -> FloatArray:
        """Return (R, C, 3) onset, ramp and the reach of the law, as kernels read them."""
        parts = [self.onset, self.ramp, np.full(self.k_n.shape, reach)]
        return np.ascontiguousarray(np.stack(parts, axis=2), dtype=float)

    def stiffnesses(self) -> IntArray:
        """Return the indices in theta of k_n, k_d and k_t of all groups that may touch."""
        tables = (self.k_n, self.k_d, self.k_t)
        return np.unique(np.concatenate([table[self.enabled != 0] for table in tables])).astype(np.int64)


# ----------------------------------------------------------------------------------------------------------------------

#: Symbols of coefficients: the speed of sliding [m/s], the normal force [N] or [N/m^2], the coefficient `friction`.
SLIDING = ("u", "f_n", "mu")
#: Symbols of normal forces: the depth and the thickness of the layer [m].
DEPTH, THICKNESS = "d", "r"
#: Most numbers of a curve beside `friction`: kernels read two.
MOST_NUMBERS = 2
#: Where coefficients and forces must have values: speeds [m/s], forces [N], shares of the depth that is looked at.
_SPEEDS, _FORCES, _SHARES = (0.0, 1e-3, 0.1, 10.0), (0.0, 1e-3, 1.0, 1e6), (1e-4, 1e-2, 0.1, 0.5, 0.9)
_SMALL = 0.01  # of laws without a layer [m]


class CurveNumber(NamedTuple):
    """A number of a curve of friction: its name, its unit, and whether it is the coefficient c_f where nothing is said.

    Any other is one then. ``{per}`` in a unit stands for an area, where forces count per area.
    """

    name: str
    unit: str
    is_coefficient: bool = False

    @property
    def symbol(self) -> str:
        """How the formula writes it."""
        return self.name.rpartition(".")[2]


@final
@dataclass(frozen=True)
class FrictionCurve:
    """The coefficient of friction mu(u, f_n) of a contact that slides.

    Attributes
    ----------
    coefficient : formula of `SLIDING` and of the numbers; empty: `friction` alone
    numbers : two at most
    """

    coefficient: str = ""
    numbers: tuple[CurveNumber, ...] = ()

    @property
    def code(self) -> int:
        """Code in the kernels: `CONSTANT`, or the address of the compiled coefficient in this process."""
        if not self.coefficient:
            return CONSTANT
        return address(_coefficient(self.coefficient, tuple(number.symbol for number in self.numbers)))

    @property
    def takes_friction(self) -> bool:
        """Whether the coefficient depends on `friction`."""
        names = (*SLIDING, *(number.symbol for number in self.numbers))
        return not self.coefficient or "mu" in symbols(_parsed("coefficient", self.coefficient, names))

    def blocks(self, pair: str, per: str) -> list[tuple[str, tuple[int, ...], str]]:
        """Return name, shape and unit of the numbers of a pair in theta."""
        return [(f"{pair}.{number.name}", (), number.unit.replace("{per}", per)) for number in self.numbers]

    def require_sound(self, numbers: Mapping[str, float], friction: float) -> None:
        """Refuse what is no formula, has too many numbers or unused ones, or no value, or one below zero, somewhere.

        Raises
        ------
        InputError
            Its place is "coefficient" or "numbers.NAME".
        """
        if len(numbers) > MOST_NUMBERS:
            found = ", ".join(numbers)
            raise InputError("too many numbers: write the others as figures into the formula", place="numbers",
                             found=found, expected=f"{MOST_NUMBERS} at most, beside mu = contact.friction")  # fmt: skip
        formula = _parsed("coefficient", self.coefficient, (*SLIDING, *numbers))
        unused = sorted({*numbers} - {*symbols(formula)})
        if unused:
            raise InputError("the coefficient does not have this number", place=f"numbers.{unused[0]}")
        u, f = (axis.ravel() for axis in np.meshgrid(_SPEEDS, _FORCES))
        at = {"u": u, "f_n": f, "mu": friction, **numbers}
        values = [np.broadcast_to(evaluate(one, at), u.shape) for one in _slopes(formula, tuple(numbers))]
        inside = [evaluate(one, at) > 0.0 for one in unknown_sign(formula, frozenset())]
        bad = ~np.all([np.isfinite(value) for value in values] + [np.broadcast_to(i, u.shape) for i in inside], axis=0)
        bad |= values[0] < 0.0
        if bad.any():
            k = int(np.argmax(bad))
            raise InputError(
                "the coefficient or a derivative of it has no value, or it is below zero", place="coefficient",
                found=f"mu = {values[0][k]:.3g} at u = {u[k]:g} m/s, f_n = {f[k]:g} N",
                expected="finite and not negative at speeds of 0 to 10 m/s under forces of 0 to 1e6 N",
            )  # fmt: skip


#: The coefficient is c_f.
CONSTANT_FRICTION = FrictionCurve()


@final
@dataclass(frozen=True)
class NormalFormula:
    """The law of the normal force f_n = k_n e(d) - k_d s(d) v_n, e = dE/dd, by formulas.

    Attributes
    ----------
    energy : E [m^2] at unit stiffness, of the depth d [m], and of the thickness r [m] where points feel a layer
    damping : s [-] of the same; empty: the ramp
    """

    energy: str
    damping: str = ""

    @property
    def name(self) -> str:
        """How messages call it."""
        return "formula"

    @property
    def code(self) -> int:
        """Code in the kernels: the address of the compiled law in this process."""
        return address(_normal(self.energy, self.damping))

    @property
    def has_layer(self) -> bool:
        """Whether points feel shapes before they touch them: d = r - g, or -g without one."""
        texts = [parse(text) for text in (self.energy, self.damping) if text]
        return any(THICKNESS in symbols(one) for one in texts)

    @property
    def reach(self) -> float:
        """The gap at which points begin to feel a shape, in thicknesses of its layer."""
        return 1.0 if self.has_layer else 0.0

    @property
    def is_infinite(self) -> bool:
        """Whether surfaces never touch: the force has no value at d = r."""
        force = derivative(parse(self.energy), DEPTH)
        return self.has_layer and not np.isfinite(evaluate(force, {DEPTH: 1.0, THICKNESS: 1.0}))

    def require_sound(self) -> None:
        """Refuse what is no formula, does not begin at zero, or pulls or has no value behind.

        Raises
        ------
        InputError
            Its place is "energy" or "damping".
        """
        energy = _parsed("energy", self.energy, (DEPTH, THICKNESS))
        force = derivative(energy, DEPTH)
        scale = 1.0 if self.has_layer else _SMALL
        d = np.array([0.0, *_SHARES]) * scale
        at = {DEPTH: d, THICKNESS: scale}
        stored, e, e_d = (np.broadcast_to(evaluate(one, at), d.shape) for one in (energy, force,
                                                                                 derivative(force, DEPTH)))  # fmt: skip
        if not (stored[0] == 0.0 and e[0] == 0.0):
            found = f"E = {stored[0]:.3g} m^2 and dE/dd = {e[0]:.3g} m at d = 0"
            raise InputError(
                "energy or force is not zero where contact begins", place="energy", found=found, expected="0"
            )
        bad = ~(np.isfinite(e_d) & (e >= 0.0))
        bad[1:] |= e[1:] == 0.0
        if bad.any():
            k = int(np.argmax(bad))
            raise InputError("the force does not push, or it or its slope has no value", place="energy",
                             found=f"dE/dd = {e[k]:.3g} m, its slope {e_d[k]:.3g}, at d = {d[k]:.3g} m",
                             expected="a force above zero behind d = 0")  # fmt: skip
        if not self.damping:
            return
        share = _parsed("damping", self.damping, (DEPTH, THICKNESS))
        s, s_d = (np.broadcast_to(evaluate(one, at), d.shape) for one in (share, derivative(share, DEPTH)))
        bad = ~(np.isfinite(s) & np.isfinite(s_d) & (s >= 0.0))
        if bad.any():
            k = int(np.argmax(bad))
            raise InputError("the damping drives, or it or its slope has no value", place="damping",
                             found=f"s = {s[k]:.3g}, ds/dd = {s_d[k]:.3g} 1/m at d = {d[k]:.3g} m",
                             expected="finite, and not below zero")  # fmt: skip


def _parsed(key: str, text: str, known: tuple[str, ...]) -> Expression:
    try:
        return parse(text, known)
    except InputError as error:
        raise InputError(error.message, place=key, found=error.found, expected=error.expected) from None


def _slopes(formula: Expression, numbers: tuple[str, ...]) -> list[Expression]:
    """Return the coefficient and its derivatives by speed, force, `friction` and two numbers."""
    further = (*numbers, "", "")[:MOST_NUMBERS]
    return [formula, *(derivative(formula, name) for name in (*SLIDING, *further))]


@functools.cache
def _coefficient(text: str, numbers: tuple[str, ...]) -> Callee:
    """Return the compiled coefficient of friction; it stays in memory, as its address does in arrays."""
    formula = parse(text)
    names = dict(zip(SLIDING, ("u", "f_c", "c_f"), strict=True)) | dict(zip(numbers, ("first", "second"), strict=False))
    # A replayed pair may have a force below zero, where a root has no value: no domain is asked for but by logarithms.
    return COEFFICIENT._replace(
        function=_kept("friction_coefficient", "u, f_c, c_f, first, second", _slopes(formula, numbers), names, [])
    )


@functools.cache
def _normal(energy: str, damping: str) -> Callee:
    """Return the compiled law of the normal force; depths grow as the thickness does, at a fixed gap."""
    stored, share = parse(energy), parse(damping or "1")
    force = derivative(stored, DEPTH)

    def by_thickness(one: Expression) -> Expression:
        return derivative(one, DEPTH) + derivative(one, THICKNESS)

    values = [force, derivative(force, DEPTH), by_thickness(force), share, derivative(share, DEPTH),
              by_thickness(share), stored, by_thickness(stored)]  # fmt: skip
    domain = [one for part in (stored, share) for one in unknown_sign(part, frozenset((DEPTH, THICKNESS)))]
    names = {DEPTH: "d", THICKNESS: "r"}
    return NORMAL._replace(function=_kept("normal_law", "d, r", values, names, domain))


def _kept(name: str, arguments: str, values: list[Expression], names: dict[str, str], domain: list[Expression]) -> Any:
    variant = "_".join(one.key[:8] for one in (values[0], values[-1]))
    return compiled(name, arguments, values, names, domain=domain, cache=True, error_model="numpy", variant=variant)
