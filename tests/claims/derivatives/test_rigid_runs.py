"""Gradients of runs with rigid bodies: pairs of bodies, friction laws and integrators, through every kind of event."""

from itertools import product

import numpy as np
import pytest
from support.rigid_models import DT, NEWTON, PAIRS, linkage
from support.run_checks import TOGETHER, check_gradient_of_run, events
from support.small_models import RoughObjective

from add.contact import FrictionLaw
from add.simulation import BDF, StartUp

STEPPERS = {
    "bdf1": BDF(DT, 1, newton=NEWTON),
    "bdf2": BDF(DT, 2, newton=NEWTON),
    "bdf2-line": BDF(DT, 2, StartUp.STRAIGHT_LINE, NEWTON),
}


def _cases() -> list:
    """All combinations; every third runs in the quick suite, each pair of two choices once."""
    cases = []
    for (i, pair), (j, law), (k, stepper) in product(enumerate(PAIRS), enumerate(FrictionLaw), enumerate(STEPPERS)):
        marks = () if (i + j + k) % 3 == 0 else pytest.mark.slow
        cases.append(pytest.param(pair, law, stepper, marks=marks, id=f"{pair}-{law.name.lower()}-{stepper}"))
    return cases


@pytest.mark.parametrize(("pair", "law", "stepper"), _cases())
def test_gradient_of_run(pair: str, law: FrictionLaw, stepper: str) -> None:
    model, simulation = PAIRS[pair](law, STEPPERS[stepper])
    objective = RoughObjective(np.random.default_rng(0).normal(size=model.system.n))
    seen = events(simulation, check_gradient_of_run(simulation, objective))
    # Through changes of chart, impacts, partings, and from stick to slip or back.
    assert seen["charts"] and seen["impacts"] and seen["partings"]
    if law in (FrictionLaw.LINEAR, FrictionLaw.HYBRID):
        assert seen["sticking"] and seen["slipping"] and seen["switches"]


def _check_linkage(stepper: str, together: int = TOGETHER) -> None:
    """Every kind of coupling at once; cables go taut and slack, a hinge meets its stop and leaves it."""
    model, simulation = linkage(STEPPERS[stepper])
    objective = RoughObjective(np.random.default_rng(0).normal(size=model.system.n))
    seen = events(simulation, check_gradient_of_run(simulation, objective, together=together))
    assert seen["charts"] and seen["taut"] and seen["slack"] and seen["above"] + seen["below"]
    # BDF1 damps the rebound from the stop.
    assert seen["Cable"] > 1 and seen["AngleLimit"] > (0 if stepper == "bdf1" else 1)


def test_gradient_of_run_with_couplings() -> None:
    _check_linkage("bdf2")


@pytest.mark.slow
@pytest.mark.parametrize("stepper", STEPPERS)
def test_gradient_of_run_with_couplings_every_parameter(stepper: str) -> None:
    _check_linkage(stepper, 1)
