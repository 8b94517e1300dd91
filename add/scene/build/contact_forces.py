"""The forces of all contacts of a state together."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.contact import BodyContact, MeshContact
from add.equations.kinematics import Kinematics
from add.equations.lifted import LiftedDecidingTerm
from add.equations.system import System
from add.model import Model
from add.simulation import Record
from add.simulation.run import Simulation
from add.typing import FloatArray


def contact_terms(system: System) -> list[tuple[int, Any]]:
    """Return the contact terms with their numbers among the deciding ones; none where contact is exact."""
    inner = [d.inner if isinstance(d, LiftedDecidingTerm) else d for d in system.deciding]
    return [(k, d) for k, d in enumerate(inner) if isinstance(d, BodyContact | MeshContact)]


def contact_forces(
    model: Model, simulation: Simulation, kin: Kinematics, record: Record | None, theta: FloatArray
) -> FloatArray:
    """Return the generalised forces of all contacts on the rows of X [N], [N m].

    Parameters
    ----------
    kin : Kinematics
        Of q, before a change of chart (`Trajectory.kinematics`).
    record : Record or None
        Of the step that led there, whose decisions are held; None for a start.
    """
    system = simulation.system
    at = model.lift.kinematics(kin, theta)
    force = np.zeros(model.lift.rows.n)
    for number, contact in contact_terms(system):
        if record is None:
            force += contact.forces(at, theta)
        elif not model.lift.is_identity:
            against, decision = np.zeros(model.lift.rows.n), record.decisions[number]
            contact.on_branch(decision).residual(at, theta, against)
            held = contact.stick_constraint(decision)
            if held is not None:
                reactions = system.on_branch(record.decisions).reactions(number, record.mu)
                held.residual(at, reactions, theta, against, np.zeros(held.n_rows))
            force -= against
        else:
            force += system.on_branch(record.decisions).decided_forces(number, kin, record.mu, theta)
    solved = simulation.stepper.contact_forces(record, theta) if record else None
    return force if solved is None else force + solved.generalised
