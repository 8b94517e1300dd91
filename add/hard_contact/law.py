"""Normal complementarity and Coulomb friction as one nonsmooth equation a contact (Alart & Curnier 1991).

With the force F of a contact, normal n, F_n = n.F, gap g, relative velocity v, P = I - n n^T and any rho_n, rho_t > 0,

    F_n - max(0, F_n - rho_n g) = 0                       <=>   0 <= g  _|_  F_n >= 0
    P F - proj(P F - rho_t P v; disc of radius c_f D) = 0 <=>   P v = 0, |P F| <= c_f F_n, or P F = -c_f F_n P v/|P v|

where D = max(0, F_n - rho_n g), which is F_n at a solution. Both rows together, as one vector in world axes, need no
tangents:

    separate   D = 0            phi = F
    stick      |y| < c_f D      phi = rho_n g n + rho_t P v            y = P (F - rho_t v)
    slip       otherwise        phi = rho_n g n + P F - c_f D y/|y|

so phi is a force [N], and each branch is smooth. Without friction a contact always slips.
Options of exact contact, and of contact by impulses, are values beside it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import final

import numpy as np

from add.solve.step_equations import NewtonOptions
from add.typing import FloatArray, IntArray


class Branch(IntEnum):
    """Branches of a contact."""

    SEPARATE = 0
    STICK = 1
    SLIP = 2


@final
@dataclass(frozen=True)
class Contacts:
    """Arguments of the law for m contacts.

    Attributes
    ----------
    force : (m, 3) F [N]
    gap : (m,) [m]
    normal, velocity : (m, 3), (m, 3) [m/s]
    c_f : (m,)
    rho_n, rho_t : (m,) [N/m], [N s/m]
        Any positive numbers; Newton converges best when they are what a contact's own force has to overcome.
    """

    force: FloatArray
    gap: FloatArray
    normal: FloatArray
    velocity: FloatArray
    c_f: FloatArray
    rho_n: FloatArray
    rho_t: FloatArray


@final
@dataclass(frozen=True)
class LawDerivatives:
    """Derivatives of phi: by_force, by_normal, by_velocity (m, 3, 3) and by_gap (m, 3)."""

    by_force: FloatArray
    by_gap: FloatArray
    by_normal: FloatArray
    by_velocity: FloatArray


def _across(n: FloatArray, x: FloatArray) -> FloatArray:
    """Return P x (m, 3)."""
    return x - np.einsum("mi,mi->m", n, x)[:, None] * n


def _parts(at: Contacts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return F_n - rho_n g, y and |y|."""
    pressed = np.einsum("mi,mi->m", at.normal, at.force) - at.rho_n * at.gap
    y = _across(at.normal, at.force - at.rho_t[:, None] * at.velocity)
    return pressed, y, np.sqrt(np.einsum("mi,mi->m", y, y))


def decide(at: Contacts) -> IntArray:
    """Return the branch (m,) of every contact."""
    pressed, _, length = _parts(at)
    out = np.where(length < at.c_f * pressed, int(Branch.STICK), int(Branch.SLIP))
    return np.where(pressed <= 0.0, int(Branch.SEPARATE), out)


def residual(at: Contacts, branch: IntArray) -> FloatArray:
    """Return phi (m, 3) of the given branches [N]."""
    pressed, y, length = _parts(at)
    n = at.normal
    direction = y / np.where(length > 0.0, length, 1.0)[:, None]
    lift = (at.rho_n * at.gap)[:, None] * n
    stick = lift + at.rho_t[:, None] * _across(n, at.velocity)
    slip = lift + _across(n, at.force) - (at.c_f * pressed)[:, None] * direction
    kind = branch[:, None]
    out: FloatArray = np.where(kind == Branch.SEPARATE, at.force, np.where(kind == Branch.STICK, stick, slip))
    return out


def derivatives(at: Contacts, branch: IntArray) -> LawDerivatives:
    """Return the exact derivatives of the branches, n, g, v and F taken as independent."""
    m, eye = at.gap.size, np.eye(3)
    n = at.normal
    across = eye - n[:, :, None] * n[:, None, :]
    by_force, by_normal, by_velocity = (np.zeros((m, 3, 3)) for _ in range(3))
    by_gap = np.zeros((m, 3))

    apart = branch == Branch.SEPARATE
    by_force[apart] = eye

    touching = ~apart
    by_gap[touching] = at.rho_n[touching, None] * n[touching]
    by_normal[touching] = (at.rho_n * at.gap)[touching, None, None] * eye

    k = np.flatnonzero(branch == Branch.STICK)
    rate = at.rho_t[k, None, None]
    by_velocity[k] = rate * across[k]
    by_normal[k] += rate * _by_normal_of_across(n[k], at.velocity[k])

    k = np.flatnonzero(branch == Branch.SLIP)
    pressed, y, length = (part[k] for part in _parts(at))
    safe = np.where(length > 0.0, length, 1.0)
    direction = y / safe[:, None]
    limit = at.c_f[k] * pressed
    # d(y/|y|) = (I - t t^T)/|y| dy; a contact at y = 0 has no direction, and no friction.
    turning = (eye - direction[:, :, None] * direction[:, None, :]) * (limit / safe)[:, None, None]
    rate = at.rho_t[k, None, None]
    driven = at.force[k] - at.rho_t[k, None] * at.velocity[k]
    by_force[k] = across[k] - turning @ across[k] - at.c_f[k, None, None] * direction[:, :, None] * n[k][:, None, :]
    by_velocity[k] = rate * turning @ across[k]
    by_normal[k] += (
        _by_normal_of_across(n[k], at.force[k])
        - turning @ _by_normal_of_across(n[k], driven)
        - at.c_f[k, None, None] * direction[:, :, None] * at.force[k][:, None, :]
    )
    by_gap[k] += (at.c_f[k] * at.rho_n[k])[:, None] * direction
    return LawDerivatives(by_force, by_gap, by_normal, by_velocity)


def by_friction(at: Contacts, branch: IntArray) -> FloatArray:
    """Return dphi/dc_f (m, 3): of what slips."""
    pressed, y, length = _parts(at)
    direction = y / np.where(length > 0.0, length, 1.0)[:, None]
    return np.where((branch == Branch.SLIP)[:, None], -pressed[:, None] * direction, 0.0)


def _by_normal_of_across(n: FloatArray, x: FloatArray) -> FloatArray:
    """Return d(P x)/dn (m, 3, 3) = -(n.x) I - n x^T."""
    along = np.einsum("mi,mi->m", n, x)
    return -along[:, None, None] * np.eye(3) - n[:, :, None] * x[:, None, :]


def feasible(at: Contacts, branch: IntArray) -> FloatArray:
    """Return the forces (m, 3) put exactly into the friction cones, zero where contacts are apart.

    For a converged iterate this moves them by what is left of phi.
    """
    n = at.normal
    normal = np.where(branch == Branch.SEPARATE, 0.0, np.maximum(np.einsum("mi,mi->m", n, at.force), 0.0))
    tangential = _across(n, at.force)
    length = np.sqrt(np.einsum("mi,mi->m", tangential, tangential))
    limit = at.c_f * normal
    factor = np.where(length > limit, limit / np.where(length > 0.0, length, 1.0), 1.0)
    return normal[:, None] * n + factor[:, None] * tangential


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
