"""Every force family, constraint and given function against differences, at strongly deformed and moving states."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from derivatives.test_couplings import COUPLINGS, DECIDING_COUPLINGS
from support.concrete import concrete
from support.contact_cases import FRICTION, PLACES, contact, many_contacts, no_contact
from support.term_cases import anchor, gravity, inertia, load, material, shared_material

from add.contact import BodyContact, CurveNumber, FrictionCurve, FrictionLaw, NormalFormula, NormalLaw
from add.contact.body_family import HeldPairs
from add.contact.meshes import MeshContact, MeshContactBranch, StickingPrimitives
from add.contact.penalty_bodies import BodyContactBranch, StickingBodies
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.lifted_constraint import LiftedConstraint, LiftedStick
from add.equations.term import Constraint, DecidingTerm, Term
from add.geometry import FAMILIES, HEX8, TET4, TET10
from add.joints.law_term import JointLaw
from add.materials import GENT, MATERIALS, MOONEY_RIVLIN, NEO_HOOKEAN, NEO_HOOKEAN_CIARLET, YEOH, dissipation_law
from add.scene.spec.friction import CURVES
from add.terms import (
    AddedMass,
    BallFriction,
    BallLaws,
    BallLimits,
    Chamber,
    Elastic,
    Gravity,
    HeldBranch,
    HeldEquations,
    HeldResistance,
    Inertia,
    JointCouplings,
    JointLimits,
    JointResistance,
    JointSprings,
    LinkLoops,
    Muscle,
    NodalForce,
    OnLengths,
    OnPaths,
    PointConstraint,
    Pressure,
    RigidInertia,
    Strained,
    TiedPoints,
    TreeInertia,
    Viscous,
    VolumetricActuator,
    Wrench,
)


@dataclass(frozen=True)
class Case:
    """What is checked, and the check."""

    kinds: tuple[type, ...]
    check: Callable[[np.random.Generator], None]


#: Friction that grows with speed and load, the law of Hertz with damping that grows with the depth, and one in a layer.
RISING = FrictionCurve(
    "mu*(1 + growth*log(1 + u/slow)) + 0.01*exp(-f_n)",
    (CurveNumber("coefficient.growth", "-"), CurveNumber("coefficient.slow", "m/s")),
)
HERTZ = NormalFormula("2/5*d**2.5", "d**1.5/0.01")
LAYER = NormalFormula("d**3/r", "d/(d + r)")


def _term_cases() -> dict[str, Case]:
    cases = {}
    laws = [(family, law) for family in (TET4, TET10, HEX8) for law in MATERIALS[:4]]
    for (family, law), mean in itertools.product([*laws, (HEX8, YEOH), (TET10, GENT)], (False, True)):
        name = f"{family.name}-{law.name}-{'mean' if mean else 'local'}"
        cases[f"elastic-{name}"] = Case((Elastic,), material(Elastic, family, law, mean))
        if law in (NEO_HOOKEAN, MOONEY_RIVLIN):
            cases[f"viscous-{name}"] = Case((Viscous,), material(Viscous, family, law, mean))
    for zero in ("viscosity", "rayleigh_stiffness", "lambda"):
        cases[f"viscous-no-{zero}"] = Case((Viscous,), material(Viscous, HEX8, NEO_HOOKEAN, True, (zero,)))
    for family, exponent in ((TET4, 1.0), (HEX8, 1.4), (TET10, 3.0)):
        cases[f"viscous-{exponent}"] = Case(
            (Viscous,), material(Viscous, family, NEO_HOOKEAN, family is HEX8, exponent=exponent)
        )
    coupled = dissipation_law("a/2*DD + trD**2*(b + c*DD/(1 + DD)) + DD**2/(a + DD)", ("a", "b", "c"), ())
    for family, mean in itertools.product((TET10, HEX8), (False, True)):
        check = material(Viscous, family, NEO_HOOKEAN, mean, viscosity=coupled)
        cases[f"viscous-formula-{family.name}-{'mean' if mean else 'local'}"] = Case((Viscous,), check)
    cases["elastic-no-lambda"] = Case((Elastic,), material(Elastic, TET10, NEO_HOOKEAN_CIARLET, False, ("lambda",)))
    cases["elastic-shared"] = Case((Elastic,), shared_material(Elastic))
    cases["viscous-shared"] = Case((Viscous,), shared_material(Viscous))
    for family, lumped in itertools.product((TET4, TET10, HEX8), (False, True)):
        name = f"{family.name}-{'lumped' if lumped else 'consistent'}"
        cases[f"inertia-{name}"] = Case((Inertia,), inertia(family, lumped))
    cases["gravity"] = Case((Gravity,), gravity)
    cases["load"] = Case((NodalForce,), load)
    for family in (TET4, TET10, HEX8):
        cases[f"anchor-{family.name}"] = Case((PointConstraint,), anchor(family))
    both = (BodyContact, BodyContactBranch)
    for place, friction in itertools.product(PLACES, FRICTION):
        cases[f"contact-{place}-{friction}"] = Case(both, contact(place, friction, total=True))
        cases[f"contact-{place}-{friction}-onset-ramp"] = Case(
            both, contact(place, friction, onset=0.01, ramp=0.006, total=friction == "tanh", per_area=True)
        )
    for friction, total in itertools.product(FRICTION, (False, True)):
        name = f"{friction}-{'total' if total else 'elastic'}"
        cases[f"contact-clip-{name}"] = Case(both, contact("sphere", friction, clip=True, total=total))
        if not total:
            cases[f"contact-pull-{name}"] = Case(both, contact("sphere", friction, adhesive_damping=True))
        cases[f"contact-past-onset-{name}"] = Case(
            both, contact("capsule side", friction, onset=0.002, ramp=0.002, total=total)
        )
    for friction in ("slip", "tanh"):
        for curve in CURVES:
            cases[f"contact-{curve.numbers[0].name}-{friction}"] = Case(both, contact("sphere", friction, curve=curve))
        cases[f"contact-layer-{friction}"] = Case(both, contact("sphere", friction, normal=NormalLaw.SOFT_MAX))
        cases[f"contact-formula-{friction}"] = Case(both, contact("sphere", friction, curve=RISING, normal=HERTZ))
    for name, law in (("hertz", HERTZ), ("layer", LAYER)):
        cases[f"contact-formula-{name}-pull"] = Case(
            both, contact("capsule side", "tanh", curve=RISING, normal=law, adhesive_damping=True)
        )
    for law, per_area in itertools.product(FrictionLaw, (False, True)):
        name = f"{law.name.lower()}-{'area' if per_area else 'node'}"
        cases[f"contact-many-{name}"] = Case(both, many_contacts(law, per_area))
    cases["contact-none"] = Case(both, no_contact)
    return cases


TERM_CASES = _term_cases()
#: Classes whose derivatives have a file of their own: test_rigid, _strained, _couplings, _body_contact, _mesh_contact,
#: _mesh_sticking, _stick_constraint, _lift, _trees, _held_joints, _chambers, _muscles, claims' test_spatial_tendons; of
#: what compiled steps hold, claims' compiled/test_resting.
ELSEWHERE = {
    RigidInertia,
    JointLaw,  # the base of the couplings
    *COUPLINGS,
    *DECIDING_COUPLINGS,
    Strained,
    LiftedConstraint,
    LiftedDecidingTerm,
    LiftedStick,
    LiftedTerm,
    MeshContact,
    MeshContactBranch,
    StickingBodies,
    StickingPrimitives,
    AddedMass,
    BallFriction,
    BallLaws,
    BallLimits,
    Chamber,
    HeldBranch,
    HeldEquations,
    HeldPairs,
    HeldResistance,
    JointCouplings,
    JointResistance,
    JointLimits,
    JointSprings,
    LinkLoops,
    Muscle,
    OnLengths,
    OnPaths,
    Pressure,
    TiedPoints,
    TreeInertia,
    VolumetricActuator,
    Wrench,
}


@pytest.mark.parametrize("case", TERM_CASES)
def test_derivatives(case: str, rng: np.random.Generator) -> None:
    TERM_CASES[case].check(rng)


@pytest.mark.parametrize("base", [Term, DecidingTerm, Constraint])
def test_every_class_has_a_case(base: type) -> None:
    """A class without a case above has unchecked derivatives: add one to TERM_CASES."""
    checked = {kind for case in TERM_CASES.values() for kind in case.kinds} | ELSEWHERE
    missing = {f"{kind.__module__}.{kind.__qualname__}" for kind in concrete(base) - checked}
    assert not missing


def test_all_families_are_covered() -> None:
    for family in FAMILIES.values() if isinstance(FAMILIES, dict) else FAMILIES:
        assert any(family.name in case for case in TERM_CASES)
