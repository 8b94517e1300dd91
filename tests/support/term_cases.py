"""Cases of the force families of single bodies: the model, the state and the check of each."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from support.term_models import deformed, random_theta, rough_box

from add.bodies import NodalLoad, Pin, PointAnchor, PointMass, SoftBody
from add.equations.points import WeightedPoints
from add.equations.signals import SignalParameter, Sine, Spline, Table
from add.equations.term import Term
from add.geometry import HEX8, TET4, ElementFamily, locate
from add.materials import POWER_LAW, Dissipation, Material
from add.model import Model, build_model
from add.terms import Elastic, Gravity, Inertia, NodalForce, PointConstraint, Viscous
from add.testing import check_constraint, check_term


def material(
    kind: type[Term],
    family: ElementFamily,
    law: Material,
    mean: bool,
    zero: tuple[str, ...] = (),
    exponent: float | None = None,
    viscosity: Dissipation | None = None,
) -> Callable[[np.random.Generator], None]:
    """Two bodies in one batch, the second without the first one's mean dilatation."""

    def check(rng: np.random.Generator) -> None:
        bodies = [
            SoftBody("one", rough_box(family, 1), law=law, mean_dilatation=mean),
            SoftBody("two", rough_box(family, 2), law=law, mean_dilatation=not mean),
        ]
        if exponent is not None:
            bodies = [replace(body, regions=(replace(body.materials[0], viscosity=POWER_LAW),)) for body in bodies]
        if viscosity is not None:
            bodies = [replace(body, regions=(replace(body.materials[0], viscosity=viscosity),)) for body in bodies]
        model = build_model(bodies)
        (term,) = model.term(kind)
        assert tuple(term.batch.mean_dilatation) == (mean, not mean)
        theta = random_theta(model, rng)
        keys = {modulus.key for modulus in law.parameters} | (
            {"viscosity", "rayleigh_stiffness"} if kind is Viscous else set()
        )
        keys |= set() if exponent is None else {"viscosity_exponent"}
        keys = keys if viscosity is None else keys - {"viscosity"} | {one.key for one in viscosity.parameters}
        for body in ("one", "two") if exponent is not None else ():
            model.system.parameters.view(theta, f"bodies.{body}.viscosity_exponent")[...] = exponent
        for name in zero:
            for body in ("one", "two"):
                model.system.parameters.view(theta, f"bodies.{body}.{name}")[...] = 0.0
        kin = deformed(model, rng)
        found = check_term(
            term, kin, theta, rng=rng, energy=kind is Elastic, layout=model.system.parameters, scales={"q": 0.02}
        )
        assert found.q > 0.0
        assert (found.v > 0.0) == (kind is Viscous)
        names = {model.system.parameters.describe(i) for i in found.parameters}
        if not zero:
            assert names == {f"bodies.{body}.{key}" for body in ("one", "two") for key in keys}

    return check


def shared_material(kind: type[Term]) -> Callable[[np.random.Generator], None]:
    """Two bodies that read the same entries of theta: cotangents add up."""

    def check(rng: np.random.Generator) -> None:
        model = build_model([SoftBody("one", rough_box(TET4, 1)), SoftBody("two", rough_box(TET4, 2))])
        (term,) = model.term(kind)
        moduli = np.broadcast_to(term.batch.moduli[0], term.batch.moduli.shape)
        indices = {"numbers": term.numbers, "beta": term.beta} if isinstance(term, Viscous) else {}
        term = replace(term, **{key: np.full_like(index, index[0]) for key, index in indices.items()})
        term = replace(term, batch=replace(term.batch, moduli=moduli))
        found = check_term(term, deformed(model, rng), random_theta(model, rng), rng=rng, scales={"q": 0.02})
        assert len(found.parameters) == 2 + len(indices)

    return check


def attached_model(family: ElementFamily, lumped: bool) -> Model:
    """Bodies with everything that hangs on them: masses, loads, pins, anchors, some of them sharing coefficients."""
    one, two = rough_box(family, 1), rough_box(family, 2)
    inside = [locate(one, np.array(x)) for x in ([0.01, 0.01, 0.0], [0.02, -0.01, 0.01])]
    right = np.flatnonzero(one.points[:, 0] > 0.03)
    shares = np.linspace(1.0, 2.0, right.size)
    table = SignalParameter(Table(np.array([0.0, 0.05, 0.2])), "table")
    first = SoftBody(
        "one",
        one,
        lumped=lumped,
        masses=tuple(PointMass(x.nodes, x.weights, f"mass {k}") for k, x in enumerate(inside)),
        loads=(
            NodalLoad(
                right, shares / shares.sum(), SignalParameter(Spline(np.array([0.0, 0.02, 0.04, 0.2])), "spline")
            ),
            NodalLoad(right[:2], np.array([0.5, 0.5]), table),
            NodalLoad.at_place(right, one.points[right], table, "place"),
        ),
        pins=(Pin(np.array([0, 2]), (0, 2), SignalParameter(Sine(3.0, 0.3), "sine")),),
        anchors=tuple(PointAnchor(x.nodes, x.weights, place) for x, place in zip(inside, (table, table), strict=True)),
    )
    second = SoftBody("two", two, lumped=not lumped, pins=(Pin(np.array([1]), (1,)),))
    return build_model([first, second])


def inertia(family: ElementFamily, lumped: bool) -> Callable[[np.random.Generator], None]:
    def check(rng: np.random.Generator) -> None:
        model = attached_model(family, lumped)
        (term,) = model.term(Inertia)
        theta = random_theta(model, rng)
        found = check_term(term, deformed(model, rng), theta, rng=rng, layout=model.system.parameters)
        assert found.v > 0.0 and found.a > 0.0
        assert len(found.parameters) == 6  # two densities, two dampings, two masses

    return check


def gravity(rng: np.random.Generator) -> None:
    model = attached_model(HEX8, False)
    (term,) = model.term(Gravity)
    found = check_term(term, deformed(model, rng), random_theta(model, rng), rng=rng, energy=True)
    assert len(found.parameters) == 7  # g, two densities, two masses


def load(rng: np.random.Generator) -> None:
    model = attached_model(TET4, False)
    *terms, placed = model.term(NodalForce)
    theta, places = random_theta(model, rng), model.system.parameters["place"].indices
    for term in (*terms, placed):
        for t in (0.0, 0.0123, 0.1, 3.0):
            found = check_term(term, replace(deformed(model, rng), t=t), theta, rng=rng)
            assert set(places) & set(found.parameters) == (set(places) if term is placed else set())
            assert len(found.parameters) >= 3
    assert len(terms) == 2


def anchor(family: ElementFamily) -> Callable[[np.random.Generator], None]:
    def check(rng: np.random.Generator) -> None:
        model = attached_model(family, False)
        theta = random_theta(model, rng)
        for constraint in model.system.constraints:
            kin = deformed(model, rng)
            mu = rng.normal(size=3)
            found = check_constraint(constraint, kin, mu, theta, rng=rng, layout=model.system.parameters)
            assert found.q > 0.0 and found.multiplier > 0.0 and found.v == 0.0
            assert len(found.parameters) == 6  # two of the three rows of the table are at work
        # Several points in one constraint, with places of their own.
        nodes = np.array([[0, 1, 2], [3, 4, 3]])
        weights = np.array([[0.2, 0.5, 0.3], [0.7, 0.3, 0.0]])
        rows = np.arange(12).reshape(2, 2, 3)
        many = PointConstraint(WeightedPoints(nodes, weights), Sine(2.0, 0.4), rows)
        found = check_constraint(many, kin, rng.normal(size=6), theta, rng=rng)
        assert len(found.parameters) == 12

    return check
