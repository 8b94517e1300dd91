"""Patch test: a boundary moved affinely makes the inside of any mesh affine, with one stress everywhere."""

import itertools

import numpy as np
import pytest
from support.setups import TIGHT, lame, one_body

from add.bodies import Pin, SoftBody
from add.equations.kinematics import Kinematics
from add.equations.signals import Constant, SignalParameter
from add.geometry import FAMILIES, TET4, SoftMesh, box_mesh, quadrature_geometry, surface, to_tet10
from add.materials import MATERIALS, Elements, called, cauchy_stress
from add.simulation.start import EquilibriumStart

SIZE = np.array([0.12, 0.1, 0.08])
YOUNG, POISSON = 3e4, 0.35

#: Finite stretch, shear and rotation.
F = np.array([[1.25, 0.20, -0.10], [-0.15, 0.85, 0.12], [0.08, -0.18, 1.10]])


def distorted(family_name: str) -> SoftMesh:
    """A box with its inner nodes moved, quadratic elements with straight edges.

    Curved tet10 elements are left out: there the integrand of a constant stress is cubic, and four points integrate
    quadratics, as in every code with this rule.
    """
    rng = np.random.default_rng(5)
    family = TET4 if family_name == "tet10" else FAMILIES[family_name]
    mesh = box_mesh(SIZE, (3, 3, 2), family)
    inside = np.setdiff1d(np.arange(mesh.n_nodes), surface(mesh).nodes)
    points = mesh.points.copy()
    points[inside] += rng.uniform(-0.25, 0.25, (inside.size, 3)) * SIZE / (3, 3, 2)
    mesh = SoftMesh(points, mesh.cells, family)
    return to_tet10(mesh) if family_name == "tet10" else mesh


def piola(form: int, mu: float, lam: float, f: np.ndarray) -> np.ndarray:
    """First Piola stress of the two energies [Pa], differentiated by hand."""
    jac, inverse_t = np.linalg.det(f), np.linalg.inv(f).T
    pressure = lam * np.log(jac) if form == 0 else 0.5 * lam * (jac**2 - 1.0)
    return mu * (f - inverse_t) + pressure * inverse_t


@pytest.mark.parametrize("form", [0, 1], ids=["log", "ciarlet"])
@pytest.mark.parametrize(
    ("family", "mean"), [*itertools.product(("tet4", "tet10", "hex8"), (False, True)), ("hex8-enhanced", False)]
)
def test_affine_boundary(family: str, mean: bool, form: int) -> None:
    enhanced = family == "hex8-enhanced"
    mesh = distorted(family.removesuffix("-enhanced"))
    boundary = surface(mesh).nodes
    pins = tuple(Pin(np.array([i]), motion=SignalParameter(Constant(), f"move {i}")) for i in boundary)
    body = SoftBody("patch", mesh, law=MATERIALS[form], mean_dilatation=mean, pins=pins, enhanced=enhanced)
    setup = one_body(body, young=YOUNG, poisson=POISSON, density=100.0, gravity=(0, 0, 0))
    # One step cannot take a boundary so far that the inner nodes of an element are left outside it.
    f = np.eye(3) + 0.2 * (F - np.eye(3)) if enhanced else F
    target = mesh.points @ f.T
    for i in boundary:
        setup.view(f"move {i}")[...] = target[i] - mesh.points[i]
    start = EquilibriumStart(setup.model.initial, TIGHT)
    every = setup.simulation(0.01, 0, start=start).run().q[0]
    q = every[: mesh.points.size].copy()
    inside = np.setdiff1d(np.arange(mesh.n_nodes), boundary)
    assert inside.size >= 4
    np.testing.assert_allclose(q.reshape(-1, 3), target, rtol=0, atol=1e-9 * SIZE[0])

    mu, lam = lame(YOUNG, POISSON)
    stress = piola(form, mu, lam, f)
    zero = np.zeros_like(every)
    r, _, _ = setup.model.system.residual(Kinematics(every, zero, zero, 0.0, 0), np.zeros(0), setup.theta)
    assert np.abs(r[q.size :]).max(initial=0.0) < 1e-9
    r = r[: q.size]
    # Virtual power of an affine motion: sum_i r_i (x) X_i = V P.
    mean_stress = r.reshape(-1, 3).T @ mesh.points / SIZE.prod()
    np.testing.assert_allclose(mean_stress, stress, rtol=0, atol=1e-9 * np.abs(stress).max())
    assert np.abs(r.reshape(-1, 3)[inside]).max() < 1e-9

    geometry = quadrature_geometry(mesh)
    group, of_group = np.zeros(mesh.n_elements, dtype=np.int64), np.array([int(mean)])
    elements = Elements(mesh.cells, geometry.gradients, geometry.weights, group, of_group, called(MATERIALS[form]))
    cauchy = cauchy_stress(q, elements, np.array([[mu, lam]]))
    exact = stress @ f.T / np.linalg.det(f)
    cauchy = cauchy.reshape(-1, *exact.shape)
    np.testing.assert_allclose(cauchy, np.broadcast_to(exact, cauchy.shape), atol=1e-8 * np.abs(exact).max(), rtol=0)
