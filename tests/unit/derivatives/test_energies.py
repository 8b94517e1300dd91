"""Energies: the residual is their slope, and masses have mass."""

from dataclasses import replace

import numpy as np
import pytest
from support.term_cases import attached_model
from support.term_models import deformed, random_theta, rough_box

from add.bodies import SoftBody
from add.equations.kinematics import Kinematics
from add.geometry import HEX8, TET10, mass_pairs
from add.model import build_model
from add.terms import Elastic, Inertia
from add.testing import taylor_rates


def test_elastic_residual_is_the_slope_of_its_energy(rng: np.random.Generator) -> None:
    """Taylor's remainder of the energy falls with the square of the step."""
    model = build_model([SoftBody("one", rough_box(HEX8, 1), mean_dilatation=True)])
    (term,) = model.term(Elastic)
    kin, theta = deformed(model, rng), random_theta(model, rng)
    r = np.zeros(kin.q.size)
    term.residual(kin, theta, r)
    d = 0.01 * rng.normal(size=kin.q.size)
    sizes = [0.04, 0.02, 0.01]

    def energy(q: np.ndarray) -> float:
        return term.energy(replace(kin, q=q), theta)

    rates = taylor_rates(energy, r @ d, kin.q, d, sizes)
    assert np.all((rates > 1.9) & (rates < 2.1))
    rates = taylor_rates(energy, 1.01 * (r @ d), kin.q, d, np.array(sizes) / 40)
    assert np.all(rates < 1.2)


def test_masses_have_mass(rng: np.random.Generator) -> None:
    """Kinetic energy and momentum of a moving body and its point masses are m v^2 / 2 and m v."""
    model = attached_model(TET10, True)
    (term,) = model.term(Inertia)
    theta = random_theta(model, rng)
    view = model.system.parameters.view
    mass = sum(
        float(view(theta, f"bodies.{b.name}.density")) * mass_pairs(b.mesh, lumped=b.lumped).values.sum()
        for b in model.bodies
    )
    mass += sum(float(view(theta, f"mass {k}")) for k in range(2))
    velocity = rng.normal(size=3)
    n = model.system.n
    kin = Kinematics(np.zeros(n), np.tile(velocity, n // 3), np.zeros(n), 0.0, 0)
    np.testing.assert_allclose(term.momentum(kin, theta), mass * velocity, rtol=1e-12)
    assert term.kinetic_energy(kin, theta) == pytest.approx(0.5 * mass * velocity @ velocity, rel=1e-12)
