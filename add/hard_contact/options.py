"""The options of exact contact, and of contact by impulses."""

from dataclasses import dataclass
from typing import final

from add.solve.step_matrix import NewtonOptions


@final
@dataclass(frozen=True)
class ExactOptions:
    """Stopping rules, and the way on where Newton cycles.

    Attributes
    ----------
    newton : NewtonOptions
        Tolerances on the balance of forces, as without contact.
    gap : float
        Largest |g| of a contact that bears force [m].
    speed : float
        Largest |v_t| of one that sticks [m/s].
    max_iterations : int
        Of Newton, before projections are asked.
    projections : int
        Rounds of projections, each followed by Newton.
    sweeps : int
        Sweeps over the contacts a round.
    """

    newton: NewtonOptions = NewtonOptions()
    gap: float = 1e-13
    speed: float = 1e-13
    max_iterations: int = 30
    projections: int = 30
    sweeps: int = 400


@final
@dataclass(frozen=True)
class ImpulseOptions:
    """Numbers of the contact law of `ImpulseContact`.

    Attributes
    ----------
    stabilisation : float
        kappa: the share of a penetration that a step takes back, in [0, 1]. Below one, the rows of four corners on a
        plane, of which some are above and some below it by round-off, contradict each other.
    stabilisation_speed : float
        The most that it does so with [m/s]: a body that starts inside a shape is not thrown out.
    touching : float
        Gap up to which a pair counts as touching when it may bounce [m].
    relaxation : float
        kappa of relaxed complementarity, in derivatives alone (`add.cones.sensitivity`); zero is exact.
    exploring : bool
        Whether the backward pass takes the modes that the objective asks for where they give it more to go by
        (`add.hard_contact.impulse_coupling`).
    timed_impacts : bool
        Whether impacts with a restitution happen where the gap closes within the step (`ImpactTimes`), and not at its
        beginning.
    halvings : int
        How often a step is halved in which one body has such impacts at several times, or no solution is found.
    finest : int
        How often one is halved whose impacts give energy.
    pyramids : bool
        Whether friction is bounded by pyramids, |F_1|, |F_2| <= c_f F_n in two fixed tangents: the boxed problem of
        many engines, with up to sqrt(2) times the friction. To be compared with.
    """

    stabilisation: float = 1.0
    stabilisation_speed: float = 1.0
    touching: float = 1e-6
    relaxation: float = 0.0
    exploring: bool = False
    timed_impacts: bool = True
    halvings: int = 6
    finest: int = 12
    pyramids: bool = False
