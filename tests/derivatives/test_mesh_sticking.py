"""The equations that hold a vertex of one mesh on another, against differences, and what goes on being held."""

import numpy as np
import pytest
from derivatives.test_mesh_contact import CARRIERS, LAYOUT, contact_between, numbers, primitives

from add.contact import FrictionLaw
from add.contact.mesh_sticking import StickingVertices
from add.contact.meshes import MeshContact
from add.contact.sides import one_side
from add.equations.kinematics import Kinematics, Weights
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, PAIR, STICKS
from add.kernels.stencil import FACE, FACE_EDGE, FACE_VERTEX
from add.testing import check_constraint

REGIONS = [FACE, FACE_EDGE, FACE_EDGE + 1, FACE_EDGE + 2, FACE_VERTEX, FACE_VERTEX + 1, FACE_VERTEX + 2]


def held(carriers: str, region: int, seed: int) -> tuple[MeshContact, StickingVertices, Kinematics, np.ndarray]:
    """Return the contact of a vertex in a region, what holds it, the state and theta."""
    rng = np.random.default_rng(seed)
    surface, q = contact_between(carriers, *primitives(True, region, False), rng)
    tables, thickness = np.arange(6).reshape(1, 1, 6), np.array([6, 7])
    contact = MeshContact(surface, tables, thickness, FrictionLaw.HYBRID, sides=one_side(surface))
    theta = numbers(rng, "stick", 0.2, 0.2)
    kin = Kinematics(q, 0.2 * rng.normal(size=q.size), np.zeros_like(q), 0.3, 4)
    decision = contact.stick_touching(contact.decide(kin, theta))
    assert decision.shape == (1, 3) and decision[0, BITS] & (ACTIVE | STICKS) == ACTIVE | STICKS
    hold = contact.stick_constraint(decision)
    assert isinstance(hold, StickingVertices)
    return contact, hold, kin, theta


@pytest.mark.parametrize("carriers", [*CARRIERS, "round-nodes", "round-rigid", "round-static"])
@pytest.mark.parametrize("region", REGIONS)
def test_derivatives(region: int, carriers: str) -> None:
    _, hold, kin, theta = held(carriers, region, region)
    rng = np.random.default_rng(2)
    found = check_constraint(
        hold, kin, rng.normal(size=3), theta, rng=rng, scales={"q": 0.02, "v": 0.3}, rtol=1e-6, layout=LAYOUT
    )
    # A node on a flat, still face is held alike everywhere.
    assert found.v > 0.0 and (found.q > 0.0) != (carriers == "nodes-static" and region == FACE)
    names = {LAYOUT.describe(i) for i in found.parameters}
    for side, kind in zip("ab", carriers.split("-"), strict=True):
        assert any(name.startswith(f"centre_{side}") for name in names) == (kind in ("rigid", "round"))
    rates = np.zeros(3)
    hold.residual(kin, np.zeros(3), theta, np.zeros(kin.q.size), rates)
    assert np.linalg.norm(rates) > 0.01 and hold.limits(kin, theta)[0] > 0.0


@pytest.mark.parametrize("carriers", CARRIERS)
def test_matrix_parts_agree_with_the_constraint(carriers: str) -> None:
    """What the solver is given, in the slots of the branch, is what the constraint's own Jacobian says."""
    contact, hold, kin, theta = held(carriers, FACE, 3)
    n, branch, mu = kin.q.size, contact.on_branch(hold.decision), np.array([1.0, -2.0, 0.5])
    weights = Weights(1.0, 30.0, 900.0, 1.0)
    rows, cols = hold.pattern(n)
    values = np.zeros(rows.size)
    hold.jacobian(kin, mu, theta, weights, values, np.arange(rows.size))
    whole = np.zeros((n + 3, n + 3))
    np.add.at(whole, (rows, cols), values)
    rows, cols = branch.pattern()
    for penalty, expected in ((0.0, whole[:n, :n]), (50.0, 50.0 * whole[:n, n:] @ whole[n:, :n])):
        values = np.zeros(rows.size)
        if penalty:
            operators = hold.operators(kin, theta)
            by_u = weights.q * operators.by_q + weights.v * operators.by_v
            hold.add_products(penalty, operators.by_v, by_u, values, np.arange(rows.size))
        else:
            hold.add_geometry(kin, mu, theta, weights.q, values, np.arange(rows.size))
        found = np.zeros((n, n))
        np.add.at(found, (rows, cols), values)
        assert np.allclose(found, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())


def test_what_sticks_keeps_its_feature_over_an_edge() -> None:
    """A vertex that is held on a face and comes to be nearest to its edge, or leaves it, keeps its row."""
    contact, hold, kin, theta = held("nodes-nodes", FACE_EDGE, 5)
    face = np.array([[0, FACE + 16, ACTIVE | STICKS]])
    out = np.zeros_like(kin.q)
    rows = contact.decided_residual(kin, theta, out, face)
    # The edge is as near as the face's plane goes on there only if it is flat: here the depths differ, both stay.
    assert hold.rows[0, PAIR] in rows[:, PAIR] and face[0, PAIR] in rows[:, PAIR]
    q = kin.q.copy()
    corners = q[3:].reshape(3, 3)
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normal /= np.linalg.norm(normal)
    q[:3] = 0.6 * corners[0] + 0.4 * corners[1] + 0.05 * normal + 1e-9 * np.cross(normal, corners[1] - corners[0]) * -1
    near = Kinematics(q, kin.v, kin.a, 0.3, 4)
    assert contact.decide(near, theta)[0, FEATURE] & 15 == FACE_EDGE
    rows = contact.decided_residual(near, theta, out, face)
    assert rows.shape == (1, 3) and rows[0, PAIR] == 0 and rows[0, BITS] & (ACTIVE | STICKS) == ACTIVE | STICKS
    q[:3] += 0.2 * normal
    rows = contact.decided_residual(Kinematics(q, kin.v, kin.a, 0.3, 4), theta, out, face)
    assert rows.shape == (1, 3) and rows[0, BITS] == STICKS, "held, and touching no more"
