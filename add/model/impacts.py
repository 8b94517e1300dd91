"""Impacts of bodies with one mass: how long and how many steps they last, and what that does to the restitution."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from add.bodies import LinkBody
from add.contact import BodyContact, NormalLaw
from add.contact.restitution import (
    clipped_restitution_from_damping,
    damping_ratio,
    effective_mass,
    restitution_from_damping,
)
from add.kernels.contact_laws import damping_ramp, elastic_law
from add.model.build import Model
from add.typing import FloatArray

#: Below so many steps an impact, where within a step it begins decides more than a per cent or two of the speed.
ENOUGH_STEPS = 20


def impact_duration(
    k_d: float, stiffness: float, mass: float, n_points: int = 1, *, adhesive_damping: bool = False
) -> float:
    """Return how long a head-on impact without onset and ramp lasts [s]; infinite where it may pull and is overdamped.

    With omega = sqrt(n k_n / m) and cos phi = zeta, the damping ratio, to zero force, or to zero gap if the
    damping may pull (``adhesive_damping``):

        T = 2 phi / (omega sin phi),    T = pi / (omega sin phi)

    with hyperbolic functions beyond zeta = 1. Parameters as in `add.contact.restitution`.
    """
    zeta = damping_ratio(k_d, stiffness, mass, n_points)
    omega = math.sqrt(n_points * stiffness / mass)
    if adhesive_damping:
        return math.pi / (omega * math.sqrt(1.0 - zeta * zeta)) if zeta < 1.0 else math.inf
    if abs(zeta - 1.0) < 1e-8:
        return 2.0 / omega
    if zeta < 1.0:
        return 2.0 * math.acos(zeta) / (omega * math.sqrt(1.0 - zeta * zeta))
    return 2.0 * math.acosh(zeta) / (omega * math.sqrt(zeta * zeta - 1.0))


def restitution_error(restitution: float, steps: float, order: int) -> float:
    """Return how far from e the speed after an impact of N steps may be, as a share of that before it.

        BDF2   1.1 e |ln e| / N + 2.7 / N^2
        BDF1   (5 e + 1.1 e |ln e|) / N       (always too low: numerical damping, exp(-pi^2 / 2N))

    The impact begins somewhere within a step, and the damping force m omega 2 zeta v with it: an impulse of up to half
    a step too much or too little, which is e |ln e| / N of the speed. The other terms bound what was measured for e
    from 0.05 to 1 and N from 5 to 144 (`tests/claims/validation/test_impacts.py` has a part of it).

    Parameters
    ----------
    restitution : float
        e in (0, 1].
    steps : float
        N, those with a force.
    order : int
        Of the BDF.
    """
    by_phase = 1.1 * restitution * abs(math.log(restitution)) / steps
    return by_phase + (2.7 / steps**2 if order > 1 else 5.0 * restitution / steps)


def restitution_of_law(
    speed: float,
    k_d: float,
    stiffness: float,
    mass: float,
    n_points: int = 1,
    *,
    onset: float = 0.0,
    ramp: float = 0.0,
    adhesive_damping: bool = False,
) -> float:
    """Return e of the contact law itself at a speed of approach [m/s], integrated in time as finely as needed.

    Onset and ramp [m] take from the damping where the contact is shallow: e grows, the more the slower the impact.
    Other parameters as in `add.contact.restitution`.
    """
    from scipy.integrate import solve_ivp

    k, d = n_points * stiffness, n_points * k_d
    omega = math.sqrt(k / mass)

    def force(y: FloatArray) -> float:
        if y[0] <= 0.0:
            return 0.0
        e, _ = elastic_law(y[0], onset, y[0] < onset)
        s, _ = damping_ramp(y[0], ramp, y[0] < ramp)
        return float(k * e + d * s * y[1])  # y: depth and its rate

    def rate(_: float, y: FloatArray) -> list[float]:
        return [y[1], -max(force(y), 0.0) / mass if not adhesive_damping else -force(y) / mass]

    def out(_: float, y: FloatArray) -> float:
        return float(y[0])

    out.terminal, out.direction = True, -1.0  # type: ignore[attr-defined]
    # A force of zero on the way out ends the push; without a force the body goes on to zero depth by itself.
    scale = speed / omega
    first = np.array([1e-9 * scale, speed])
    impact = solve_ivp(rate, (0.0, 1e3 / omega), first, events=out, rtol=1e-8, atol=1e-10 * scale, max_step=0.1 / omega)
    return float(max(-impact.y[1, -1], 0.0) / speed)


@final
@dataclass(frozen=True)
class Pair:
    """A body of one mass and what it meets, with the numbers of a head-on impact.

    Attributes
    ----------
    body, other : names
    stiffness, damping : of one point [N/m], [N s/m]
    mass : effective mass [kg]
    touching : points that touch at once
    restitution : e that the damping gives without onset and ramp
    asked : whether the scene asks for it, instead of giving the damping
    onset, ramp : [m]
    adhesive_damping : whether the contact may pull
    """

    body: str
    other: str
    stiffness: float
    damping: float
    mass: float
    touching: int
    restitution: float
    asked: bool
    onset: float
    ramp: float
    adhesive_damping: bool

    def duration(self) -> float:
        """Return how long an impact lasts [s]."""
        return impact_duration(
            self.damping, self.stiffness, self.mass, self.touching, adhesive_damping=self.adhesive_damping
        )

    def at(self, speed: float) -> float:
        """Return the restitution of the law at a speed [m/s], onset and ramp included."""
        return restitution_of_law(
            speed, self.damping, self.stiffness, self.mass, self.touching,
            onset=self.onset, ramp=self.ramp, adhesive_damping=self.adhesive_damping,
        )  # fmt: skip


@final
@dataclass(frozen=True)
class Impact:
    """An impact of a pair, expected or seen.

    Attributes
    ----------
    pair : Pair
    steps : float
        How many steps it lasts.
    dt : float
        Step [s].
    order : int
        Of the BDF.
    speed : float or None
        Of approach [m/s]; None where it is expected only.
    """

    pair: Pair
    steps: float
    dt: float
    order: int
    speed: float | None = None

    @property
    def few(self) -> bool:
        """Whether the impact has too few steps for its restitution."""
        return self.steps < ENOUGH_STEPS

    @property
    def error(self) -> float:
        """How far off the restitution may be."""
        return restitution_error(self.pair.restitution, self.steps, self.order)

    def text(self) -> str:
        """Say how many steps it lasts and what that does."""
        pair = self.pair
        steps = f"{self.steps:.2g}" if self.steps < 10.0 else f"{self.steps:.0f}"
        if self.speed is None:
            head = f"{pair.body} on {pair.other}: an impact will last about {steps} steps"
        else:
            head = f"{pair.body} on {pair.other}: the shortest impact lasted {steps} steps (at {self.speed:.3g} m/s)"
        source = "" if pair.asked else " of its damping"
        text = f"{head}; the restitution {pair.restitution:.3g}{source} is kept to about +- {self.error:.2g}"
        made = pair.at(self.speed) if self.speed is not None and (pair.onset or pair.ramp) else pair.restitution
        if f"{made:.3f}" != f"{pair.restitution:.3f}":
            text += f", and onset and damping_ramp make it {made:.3f} at that speed with any step"
        if self.few:
            text += f"; below {ENOUGH_STEPS} steps: try time.dt = {self.dt * self.steps / ENOUGH_STEPS:.2g} s"
        return text


def few_steps(impacts: Iterable[Impact]) -> list[str]:
    """Return the warnings: impacts of too few steps for a restitution that was asked for."""
    return [impact.text() for impact in impacts if impact.pair.asked and impact.few]


def worth_saying(impacts: Iterable[Impact]) -> list[Impact]:
    """Return the impacts with a restitution, and those with a damping alone that have few steps."""
    return [impact for impact in impacts if impact.pair.asked or impact.few]


#: Of more pairs that may touch than this, only those with a restitution are looked at.
MOST_PAIRS = 10_000


def damped_pairs(model: Model, theta: FloatArray, asked: Mapping[tuple[str, str], int]) -> list[Pair]:
    """Return the pairs with a restitution (``asked``: body, other -> points that touch) or a damping.

    Soft bodies have no mass of an impact, and are left out; so are dampings where more than `MOST_PAIRS` may touch, and
    laws whose stiffness is none of a spring, the soft-max, the barrier and formulas.
    """
    parameters = model.system.parameters
    contact = next(iter(model.term(BodyContact)), None)
    if contact is None or contact.normal_law not in (NormalLaw.PENALTY, NormalLaw.PENALTY_WALL):
        return []
    onset, ramp = float(contact.pairs.onset.max()), float(contact.pairs.ramp.max())
    moving = {body.name for body in model.bodies if body.has_frame and body.moves}
    # The mass that a link brings into an impact is that of its tree in its pose: no number of the scene.
    links = {body.name for body in model.bodies if isinstance(body, LinkBody)}
    pairs = dict.fromkeys(asked)
    pairs |= dict.fromkeys(pair for pair in _enabled(model) if pair[0] in moving and not links & set(pair))

    def value(name: str) -> float:
        return float(parameters.view(theta, name).ravel()[0])

    out = []
    for body, other in pairs:
        classes = f"contact.{model.contact.class_of(body)}.{model.contact.class_of(other)}"
        k_n, k_d = value(f"{classes}.k_n"), value(f"{classes}.k_d")
        given = (body, other) in asked
        if not given:  # a restitution counts the stiffness as that of a point already
            k_n, k_d = (scale * _scale(model, body) for scale in (k_n, k_d))
        if k_d <= 0.0 and not given:
            continue
        masses = [value(f"bodies.{name}.mass") for name in (body, other) if f"bodies.{name}.mass" in parameters]
        mass, touching = effective_mass(*masses), asked.get((body, other), 1)
        formula = restitution_from_damping if contact.adhesive_damping else clipped_restitution_from_damping
        e = max(formula(k_d, k_n, mass, touching), 1e-12)
        out.append(Pair(body, other, k_n, k_d, mass, touching, e, given, onset, ramp, contact.adhesive_damping))
    return out


def expected_impacts(pairs: Iterable[Pair], dt: float, order: int) -> list[Impact]:
    """Return what an impact of each pair will last."""
    return [Impact(pair, pair.duration() / dt, dt, order) for pair in pairs]


def names(model: Model) -> tuple[list[str], list[str]]:
    """Return the names of the rows (owners of points) and columns (of shapes) of the pairs of a `BodyContact`."""
    owners = [*(body.name for body in model.bodies), *(obstacle.name for obstacle in model.obstacles)]
    carriers = [body.name for body in model.bodies for _ in body.shapes]
    return owners, [*(obstacle.name for obstacle in model.obstacles), *carriers]


def _enabled(model: Model) -> list[tuple[str, str]]:
    owners, columns = names(model)
    if len(owners) * len(columns) > MOST_PAIRS:
        return []
    return [
        (owners[owner], columns[shape])
        for term in model.term(BodyContact)
        for owner, shapes in term.met_shapes().items()
        if owner < len(model.bodies)
        for shape in shapes
    ]


def _scale(model: Model, body: str) -> float:
    """Return the largest factor of the stiffness of a point of a body: one, or its rest area [m^2]."""
    owners, _ = names(model)
    for term in model.term(BodyContact):
        mine = term.scale[term.owner == owners.index(body)]
        if mine.size:
            return float(mine.max())
    return 1.0
