"""Parts of trees beside their joints: loops, couplings of joints, tendons, actuators on lengths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.bodies.base import Block, Layouts
from add.equations.signals import Constant, SignalParameter
from add.equations.term import Constraint, Term
from add.kernels.joint_laws import ALONG, APART, AT
from add.kernels.muscles import AFFINE
from add.terms import (
    Activation,
    Integral,
    JointCouplings,
    JointLimits,
    JointResistance,
    JointSprings,
    Lag,
    LengthActuator,
    LinkLoops,
    OnLengths,
    OnPaths,
    Path,
    Sums,
    Wrench,
)
from add.terms.memories import Memory
from add.typing import FloatArray, IntArray

_X, _Y, _Z = np.eye(3)


class LoopRow(NamedTuple):
    """A row of `add.kernels.joint_laws`: its kind, and the directions e and f in the frames of both ends."""

    kind: int
    e: FloatArray
    f: FloatArray


_PLACE = (LoopRow(AT, _X, _X), LoopRow(AT, _Y, _Y), LoopRow(AT, _Z, _Z))
_TURN = (LoopRow(ALONG, _X, _Y), LoopRow(ALONG, _Y, _Z), LoopRow(ALONG, _Z, _X))
#: Rows of joints that close loops; axes are z of both ends.
POINT_ROWS = _PLACE
HINGE_ROWS = (*_PLACE, LoopRow(ALONG, _X, _Z), LoopRow(ALONG, _Y, _Z))
FIXED_ROWS = (*_PLACE, *_TURN)
SLIDER_ROWS = (*_PLACE[:2], *_TURN)
DISTANCE_ROWS = (LoopRow(APART, _X, _X),)


@final
@dataclass(frozen=True)
class TreeLoop:
    """Rows that hold between two places.

    Attributes
    ----------
    path : its place in the scene; the length of a distance is ``<path>.length`` in theta
    a, b : str
        Links without mass that stand for the ends.
    rows : tuple of LoopRow
    """

    path: str
    a: str
    b: str
    rows: tuple[LoopRow, ...]


@final
@dataclass(frozen=True)
class TreeCoupling:
    """An equation between coordinates of joints, by number, or sums of them; ``x`` has none where there is one only.

    Its coefficients are ``<path>.coefficients`` (count,) in theta, at most 5; ``start`` are y_0 and x_0; ``factors``
    are the blocks of theta with the factors of the sums, "" for ones.
    """

    path: str
    y: tuple[int, ...]
    x: tuple[int, ...]
    start: tuple[float, float]
    count: int
    factors: tuple[str, str] = ("", "")


@final
@dataclass(frozen=True)
class TreePath:
    """A path through places: links without mass by name, segments (k, 6) and sizes (k, 2) of `add.kernels.paths`."""

    links: tuple[str, ...]
    segments: IntArray
    sizes: FloatArray

    def over(self, tree: str, at: Layouts, gear: float = 1.0) -> Path:
        """Return it over rows of X, its length ``gear`` times as long."""
        places = np.array([at.rows[f"{tree}/{link}"].start for link in self.links], dtype=np.int64)
        return Path(places, self.segments, self.sizes * [gear, 1.0])


@final
@dataclass(frozen=True)
class TreeTendon:
    """A tendon: its factors and laws are ``<path>.factors`` and so on in theta.

    Attributes
    ----------
    path : str
    joints : tuple of int
    banded, limited : bool
        Whether its spring rests between two lengths (else at one), and whether it has limits.
    way : TreePath, optional
        Of a spatial tendon, which has no joints and factors.
    """

    path: str
    joints: tuple[int, ...]
    banded: bool = False
    limited: bool = False
    way: TreePath | None = None


@final
@dataclass(frozen=True)
class ActuatorState:
    """How an actuator's activation follows its input; `add.terms.memories` has the equations.

    Attributes
    ----------
    kind : type
        `Activation`, `Lag` or `Integral`.
    times : how many it has, ``<path>.times`` in theta
    control, limits : (2,)
        Of input and activation.
    """

    kind: type[Activation] | type[Lag] | type[Integral]
    times: int
    control: tuple[float, float]
    limits: tuple[float, float] = (-np.inf, np.inf)


@final
@dataclass(frozen=True)
class TreeDrive:
    """An actuator on a length: `LengthActuator`, its numbers ``<path>.g0`` and so on in theta.

    Attributes
    ----------
    path : str
    joints : tuple of int
        Of a single one without factor, its coordinate is the length.
    factors : str
        The block of theta with a factor for each joint; "" for ones.
    input : SignalParameter
    control, force : (2,)
        Limits.
    law : int
        Of `add.kernels.muscles`.
    way, gear : of a spatial tendon, in place of joints and factors
    place, wrench : of a place, a link without mass: force and torque of f = 1 on it (6,)
    state : ActuatorState, optional
        Its ``<path>.activation`` in theta is what the law reads.
    """

    path: str
    joints: tuple[int, ...]
    factors: str
    input: SignalParameter
    control: tuple[float, float] = (-np.inf, np.inf)
    force: tuple[float, float] = (-np.inf, np.inf)
    law: int = AFFINE
    way: TreePath | None = None
    gear: float = 1.0
    place: str = ""
    wrench: tuple[float, ...] = ()
    state: ActuatorState | None = None

    def memory(self, at: Layouts) -> list[Memory]:
        """Return the memory of its activation, if it has one."""
        if self.state is None:
            return []
        state, rows = self.state, at.parameters[self.input.parameter].indices.reshape(-1)
        times, entry = (at.parameters[f"{self.path}.{key}"].indices.ravel() for key in ("times", "activation"))
        return [state.kind(self.input.signal, rows, times, entry, state.control, state.limits)]


#: Numbers of the laws of actuators in theta, with their units: by number of the law.
ACTUATOR_NUMBERS = (
    tuple((key, "") for key in ("g0", "g1", "g2", "b0", "b1", "b2")),
    (("strength", "N"), ("optimal", "m"), ("speed", "1/s"), ("shortest", "-"), ("longest", "-"), ("passive", "-"),
     ("lengthening", "-"), ("slack", "m")),
)  # fmt: skip
#: A band within which the spring of a tendon rests ends as sharply as that [m].
_SHARP = 1e-12


def blocks_of(
    loops: Sequence[TreeLoop], couplings: Sequence[TreeCoupling], tendons: Sequence[TreeTendon],
    drives: Sequence[TreeDrive],
) -> list[Block]:  # fmt: skip
    """Return the blocks of theta of all parts."""
    blocks: list[Block] = [(f"{loop.path}.length", (), "m") for loop in loops if loop.rows[0].kind == APART]
    blocks += [(f"{coupling.path}.coefficients", (coupling.count,), "") for coupling in couplings]
    for tendon in tendons:
        at = tendon.path
        if tendon.way is None:
            blocks.append((f"{at}.factors", (len(tendon.joints),), ""))
        blocks.append((f"{at}.stiffness", (), "N/m"))
        blocks.append((f"{at}.rest", (2,) if tendon.banded else (), "m"))
        blocks += [(f"{at}.damping", (), "N s/m"), (f"{at}.dry_friction", (), "N"), (f"{at}.slip_speed", (), "m/s")]
        if tendon.limited:
            blocks += [(f"{at}.lower", (), "m"), (f"{at}.upper", (), "m")]
            blocks += [(f"{at}.limit_stiffness", (), "N/m"), (f"{at}.limit_damping", (), "N s/m")]
        if tendon.banded:
            blocks.append((f"{at}.none", (), "N s/m"))
    of_tendons = {f"{tendon.path}.factors" for tendon in tendons}
    for drive in drives:
        if drive.joints and drive.factors and drive.factors not in of_tendons:
            blocks.append((drive.factors, (len(drive.joints),), ""))
        blocks += [(f"{drive.path}.{key}", (), unit) for key, unit in ACTUATOR_NUMBERS[drive.law]]
        if drive.state is not None:
            blocks += [(f"{drive.path}.activation", (1,), "-"), (f"{drive.path}.times", (drive.state.times,), "s")]
    return blocks


def link_loops(tree: str, loops: Sequence[TreeLoop], kept: IntArray, at: Layouts) -> LinkLoops:
    """Return the rows of all loops that do not depend on others: ``kept`` are their numbers."""
    kind, frames, axes, length = [], [], [], []
    for loop in loops:
        ends = [at.rows[f"{tree}/{link}"].start for link in (loop.a, loop.b)]
        for row in loop.rows:
            kind.append(row.kind)
            frames.append(ends)
            axes.append([row.e, row.f])
            length.append(at.parameters[f"{loop.path}.length"].start if row.kind == APART else -1)
    rows = (np.array(part, dtype=np.int64) for part in (kind, frames))
    first, second = (part[kept] for part in rows)
    return LinkLoops(first, second, np.array(axes)[kept], np.array(length, dtype=np.int64)[kept])


def joint_couplings(couplings: Sequence[TreeCoupling], dofs: Sequence[int], at: Layouts) -> list[Constraint]:
    """Return the equations between coordinates, ``dofs`` those of the joints."""
    if not couplings:
        return []

    def sums(side: int) -> Sums:
        sides = [(item.y, item.x)[side] for item in couplings]
        factors = [
            at.parameters[block].indices if (block := item.factors[side]) else np.full(len(joints), -1)
            for item, joints in zip(couplings, sides, strict=True)
        ]
        row = np.repeat(np.arange(len(sides)), [len(joints) for joints in sides])
        dof = np.array([dofs[k] for joints in sides for k in joints], dtype=np.int64)
        return Sums(row, dof, np.concatenate([np.zeros(0, dtype=np.int64), *factors]))

    coefficients = np.full((len(couplings), 5), -1, dtype=np.int64)
    for row, item in zip(coefficients, couplings, strict=True):
        row[: item.count] = at.parameters[f"{item.path}.coefficients"].indices
    return [JointCouplings(sums(0), sums(1), np.array([item.start for item in couplings]), coefficients)]


def length_terms(
    tree: str, tendons: Sequence[TreeTendon], drives: Sequence[TreeDrive], dofs: Sequence[int], onset: float,
    at: Layouts,
) -> list[Term]:  # fmt: skip
    """Return the forces of tendons and of actuators on lengths, ``dofs`` the coordinates of the joints.

    Those on paths and places are over rows of X, all others over coordinates.
    """

    def number(item: TreeTendon, key: str) -> int:
        return int(at.parameters[f"{item.path}.{key}"].start)

    def numbers(items: Sequence[TreeTendon], *keys: str) -> list:
        return [np.array([number(item, key) for item in items], dtype=np.int64) for key in keys]

    def over(
        inner: JointSprings | JointResistance | JointLimits | LengthActuator,
        items: Sequence[TreeTendon | TreeDrive],
    ) -> Term:
        ways = tuple(
            item.way.over(tree, at, item.gear if isinstance(item, TreeDrive) else 1.0)
            for item in items
            if item.way is not None
        )
        if ways:
            return OnPaths(inner, ways)
        lengths = [
            (item.joints, item.factors if isinstance(item, TreeDrive) else f"{item.path}.factors") for item in items
        ]
        length = [k for k, (joints, _) in enumerate(lengths) for _ in joints]
        dof = [dofs[joint] for joints, _ in lengths for joint in joints]
        factor = np.concatenate(
            [at.parameters[block].indices if block else np.full(len(joints), -1) for joints, block in lengths]
        )
        return OnLengths(inner, np.array(length), np.array(dof, dtype=np.int64), factor, len(lengths))

    terms: list[Term] = []
    for spatial in (False, True):
        of_kind = [item for item in tendons if (item.way is not None) == spatial]
        single, banded, limited = (
            [item for item in of_kind if chosen(item)]
            for chosen in (lambda item: not item.banded, lambda item: item.banded, lambda item: item.limited)
        )
        if single:
            terms.append(over(JointSprings(np.arange(len(single)), *numbers(single, "stiffness", "rest")), single))
        if of_kind:
            laws = numbers(of_kind, "damping", "dry_friction", "slip_speed")
            terms.append(over(JointResistance(np.arange(len(of_kind)), *laws), of_kind))
        if banded:
            (first, stiffness, none) = numbers(banded, "rest", "stiffness", "none")
            sharp = np.full(first.size, _SHARP)
            terms.append(over(JointLimits(np.arange(first.size), first, first + 1, stiffness, none, sharp), banded))
        if limited:
            bounds = numbers(limited, "lower", "upper", "limit_stiffness", "limit_damping")
            ramp = np.full(len(limited), onset)
            limits = JointLimits(np.arange(len(limited)), bounds[0], bounds[1], bounds[2], bounds[3], ramp)
            terms.append(over(limits, limited))
    for drive in drives:
        keys = [key for key, _ in ACTUATOR_NUMBERS[drive.law]]
        indices = np.array([at.parameters[f"{drive.path}.{key}"].start for key in keys], dtype=np.int64)
        signal, block = drive.input.signal, drive.input.parameter
        if drive.state is not None:
            signal, block = Constant(), f"{drive.path}.activation"
        rows = at.parameters[block].indices.reshape(-1)
        law = LengthActuator(drive.law, signal, rows, indices, drive.control, drive.force)
        if drive.place:
            terms.append(Wrench(law, at.rows[f"{tree}/{drive.place}"].start, drive.wrench))
        else:
            terms.append(over(law, [drive]))
    return terms
