"""Gradients of whole runs: reverse against forward mode, against replayed differences, and Taylor remainders."""

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run, events
from support.small_models import RoughObjective, hanging_block, two_bodies
from support.tiers import long_case

from add.contact import FrictionLaw
from add.geometry import HEX8, TET4, TET10
from add.kernels import contact_pairs as contact_kernel
from add.materials import MOONEY_RIVLIN, ST_VENANT_KIRCHHOFF
from add.simulation import StartUp

CASES = {
    "tet4-bdf1-linear": lambda: two_bodies(TET4, order=1),
    "tet4-bdf2-linear-stick": lambda: two_bodies(TET4, mu_slide=3.0, n_steps=10),
    "tet4-bdf2-line-tanh": lambda: two_bodies(TET4, law=FrictionLaw.TANH, start_up=StartUp.STRAIGHT_LINE),
    "tet10-mean-bdf2-tanh-onset": lambda: two_bodies(TET10, mean_dilatation=True, law=FrictionLaw.TANH, onset=1e-3),
    "tet10-bdf1-tanh": lambda: two_bodies(TET10, law=FrictionLaw.TANH, order=1, n_steps=8),
    "hex8-mean-bdf2-line-linear": lambda: two_bodies(HEX8, mean_dilatation=True, start_up=StartUp.STRAIGHT_LINE),
    "hex8-bdf2-linear": lambda: two_bodies(HEX8, onset=1e-3),
    "hex8-mean-bdf2-stvk-mooney-rivlin": lambda: two_bodies(
        HEX8, mean_dilatation=True, elastic=(ST_VENANT_KIRCHHOFF, MOONEY_RIVLIN)
    ),
    "tet4-bdf1-mooney-rivlin-stvk": lambda: two_bodies(TET4, order=1, elastic=(MOONEY_RIVLIN, ST_VENANT_KIRCHHOFF)),
    "tet4-bdf1-hybrid": lambda: two_bodies(TET4, law=FrictionLaw.HYBRID, order=1, mu_slide=1.0, n_steps=20),
    "tet10-mean-bdf2-line-hybrid": lambda: two_bodies(
        TET10, mean_dilatation=True, law=FrictionLaw.HYBRID, start_up=StartUp.STRAIGHT_LINE, mu_slide=1.0
    ),
    "hex8-bdf2-hybrid": lambda: two_bodies(HEX8, law=FrictionLaw.HYBRID, mu_slide=8.0, n_steps=20),
    "hex8-bdf2-frictionless": lambda: two_bodies(HEX8, law=FrictionLaw.NONE, n_steps=8),
    "tet10-equilibrium": lambda: hanging_block(TET10, mean_dilatation=True),
    "hex8-equilibrium": lambda: hanging_block(HEX8, mean_dilatation=False),
}


#: What it puts together stands in others, each of it with one of the rest.
LONG = {"tet10-mean-bdf2-line-hybrid"}


@pytest.mark.parametrize("case", [long_case(case) if case in LONG else case for case in CASES])
def test_gradient_of_run(case: str) -> None:
    model, simulation = CASES[case]()
    objective = RoughObjective(np.random.default_rng(0).normal(size=model.system.n))
    counts = events(simulation, check_gradient_of_run(simulation, objective))
    assert counts["touching"] > 0
    if "linear" in case:
        assert counts["sticking" if "stick" in case else "slipping"] > 0
    if "hybrid" in case:
        assert counts["sticking"] and counts["switches"]


def test_all_contact_branches_are_seen() -> None:
    """The cases together reach stick, slip, onset and the damping ramp."""
    seen = 0
    for case in ("tet4-bdf1-linear", "tet4-bdf2-linear-stick", "hex8-bdf2-linear"):
        _, simulation = CASES[case]()
        for record in simulation.run().records:
            codes = record.decisions[0]
            codes = codes[:, contact_kernel.BITS]
            seen |= int(np.bitwise_or.reduce(codes, initial=0))
            sticking = codes & (contact_kernel.ACTIVE | contact_kernel.SLIP) == contact_kernel.ACTIVE
            seen |= (1 << 30) if sticking.any() else 0
    for bit in (contact_kernel.ACTIVE, contact_kernel.SLIP, contact_kernel.QUADRATIC, contact_kernel.RAMPING, 1 << 30):
        assert seen & bit
