"""Penalty contact of a simulation replaced by contact in velocities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from add.hard_contact.exploring import ChoiceTally
from add.hard_contact.impulse import ImpulseContact
from add.hard_contact.impulse_options import ImpulseOptions
from add.hard_contact.impulse_part import ImpulsePart
from add.hard_contact.pairs import ContactPairs, contact_term, lift_of
from add.hard_contact.stop_rows import JointStops
from add.simulation import BDF
from add.simulation.run import Simulation
from add.terms import JointLimits


def with_impulse_contact(
    simulation: Simulation, options: ImpulseOptions | None = None, *, bounces: bool = False
) -> Simulation:
    """Return a simulation with its penalty contact replaced by contact in velocities.

    Friction coefficients, points and obstacles are those of its contact terms; their stiffnesses, dampings and laws are
    not read, but for a law without friction. Limits of joints that are `hard` become stops that give not at all.

    Parameters
    ----------
    simulation : Simulation
        With BDF1, whose step and tolerances are taken.
    options : ImpulseOptions, optional
    bounces : bool
        Whether theta has restitutions in the places of the dampings, which this law does not know; else impacts are
        plastic.

    Raises
    ------
    ValueError
        If it steps otherwise.
    """
    bdf = simulation.stepper
    if not isinstance(bdf, BDF) or bdf.bdf_order != 1:
        raise ValueError("contact in velocities steps by BDF1 only")
    contact, system = contact_term(simulation.system)
    stops = [term for term in system.terms if isinstance(term, JointLimits) and term.hard]
    system = replace(system, terms=tuple(term for term in system.terms if not any(term is stop for stop in stops)))
    pairs = ContactPairs.of(contact)
    index = pairs.k_d if bounces else np.full(pairs.n, -1, dtype=np.int64)
    whole = ImpulsePart(
        pairs, bdf.step_size, bdf.step_size, 0.0, index, lift_of(simulation.system), JointStops.of(stops),
        options or ImpulseOptions(), bdf.newton, ChoiceTally() if options and options.exploring else None,
    )  # fmt: skip
    return replace(simulation, system=system, stepper=ImpulseContact(whole))
