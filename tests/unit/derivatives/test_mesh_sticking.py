"""The equations that hold a vertex or an edge of one mesh on another, against differences; what goes on being held."""

import numpy as np
import pytest
from derivatives.test_mesh_contact import (
    CARRIERS,
    EDGE,
    LAYOUT,
    NO_EDGES,
    NO_FACES,
    OVER,
    ROUND,
    contact_between,
    numbers,
    primitives,
    wrench,
)

from add.contact import FrictionLaw
from add.contact.meshes import MeshContact, StickingPrimitives
from add.contact.surfaces import one_side
from add.equations.kinematics import Kinematics, Weights
from add.kernels.contact_pairs import ACTIVE, BITS, FEATURE, PAIR, STICKS
from add.kernels.mesh_arrays import EDGE_EDGE, unnumbered
from add.kernels.stencil import EDGES, ENDS, FACE, FACE_EDGE, FACE_VERTEX
from add.testing import check_constraint

REGIONS = [FACE, FACE_EDGE, FACE_EDGE + 1, FACE_EDGE + 2, FACE_VERTEX, FACE_VERTEX + 1, FACE_VERTEX + 2]


def held(carriers: str, region: int, seed: int) -> tuple[MeshContact, StickingPrimitives, Kinematics, np.ndarray]:
    """Return the contact of a vertex or an edge in a region, what holds it, the state and theta."""
    rng = np.random.default_rng(seed)
    surface, q = contact_between(carriers, *primitives(region in REGIONS, region, False), rng)
    tables, thickness = np.arange(6).reshape(1, 1, 6), np.array([6, 7])
    contact = MeshContact(surface, tables, thickness, FrictionLaw.HYBRID, sides=one_side(surface))
    theta = numbers(rng, "stick", 0.2, 0.2)
    kin = Kinematics(q, 0.2 * rng.normal(size=q.size), np.zeros_like(q), 0.3, 4)
    decision = contact.stick_touching(contact.decide(kin, theta))
    if region >= ENDS:  # ends that meet ends are not held by themselves; what was held goes on being so there
        assert not decision[0, BITS] & STICKS
        decision[0, BITS] |= STICKS
    assert decision.shape == (1, 3) and decision[0, BITS] & (ACTIVE | STICKS) == ACTIVE | STICKS
    hold = contact.stick_constraint(decision)
    assert isinstance(hold, StickingPrimitives)
    return contact, hold, kin, theta


#: One carrier of a vertex or edge each, all of them where the first edge's place is that of the other, too.
CASES = [(region, carriers) for region in REGIONS for carriers in [*CARRIERS, *ROUND[:3]]]
CASES += [(EDGES, carriers) for carriers in [*CARRIERS, *ROUND]]
CASES += [
    (region, kind) for k, region in enumerate([*OVER][1:]) for kind in (CARRIERS[k % 4], ROUND[k % 5], "rigid-rigid")
]


@pytest.mark.parametrize(("region", "carriers"), CASES)
def test_derivatives(region: int, carriers: str) -> None:
    _, hold, kin, theta = held(carriers, region, region)
    rng = np.random.default_rng(2)
    found = check_constraint(
        hold, kin, rng.normal(size=3), theta, rng=rng, scales={"q": 0.02, "v": 0.3}, rtol=1e-6, layout=LAYOUT
    )
    # A node on a flat, still face is held alike everywhere.
    assert hold.rows[0, FEATURE] & 15 == region if region in OVER else True
    assert found.v > 0.0 and (found.q > 0.0) != (carriers == "nodes-static" and region == FACE)
    names = {LAYOUT.describe(i) for i in found.parameters}
    for side, kind in zip("ab", carriers.split("-"), strict=True):
        assert any(name.startswith(f"centre_{side}") for name in names) == (kind in ("rigid", "round"))
    rates = np.zeros(3)
    hold.residual(kin, np.zeros(3), theta, np.zeros(kin.q.size), rates)
    assert np.linalg.norm(rates) > 0.01 and hold.limits(kin, theta)[0] > 0.0


@pytest.mark.parametrize(
    ("region", "carriers"),
    [(k, c) for k in (FACE, FACE_EDGE, EDGES) for c in ("rigid-nodes", "rigid-rigid", "round-nodes")]
    + [(EDGES, "nodes-rigid"), (EDGES, "nodes-round")],
)
def test_what_is_held_keeps_momentum(region: int, carriers: str) -> None:
    """Where a body is held at the closest point of the other side, torques add up to zero, too."""
    contact, hold, kin, theta = held(carriers, region, 4)
    r = np.zeros(kin.q.size)
    hold.residual(kin, np.array([3.0, -1.0, 2.0]), theta, r, np.zeros(3))
    force, torque = wrench(contact.surface, kin, r)
    assert np.abs(r).sum() > 1.0 and np.abs(force).max() < 1e-13 and np.abs(torque).max() < 1e-12


#: A rim: an edge along x with a face in the plane of its contact and one down from it; and what crosses it.
RIM = [np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0], [0, 0, -1]]), np.array([[0, 1, 2], [1, 0, 3]]), NO_EDGES]
ACROSS = [np.array([[-0.2, -0.5, 0.05], [0.1, 0.7, 0.06]]), NO_FACES, EDGE]


@pytest.mark.parametrize("carriers", ["rigid-rigid", "round-rigid", "rigid-static", "rigid-nodes", "nodes-rigid"])
@pytest.mark.parametrize("first", [True, False], ids=["crosses first", "crosses second"])
def test_derivatives_in_the_plane_of_a_face(first: bool, carriers: str) -> None:
    """What crosses a rim is held in the plane of its face, if that turns with a body, or stands."""
    rng = np.random.default_rng(8)
    kinds = carriers if first else "-".join(reversed(carriers.split("-")))
    surface, q = contact_between(kinds, *((ACROSS, RIM) if first else (RIM, ACROSS)), rng)
    contact = MeshContact(
        surface, np.arange(6).reshape(1, 1, 6), np.array([6, 7]), FrictionLaw.HYBRID, sides=one_side(surface)
    )
    theta, kin = numbers(rng, "stick", 0.2, 0.2), Kinematics(q, 0.2 * rng.normal(size=q.size), 0.0 * q, 0.3, 4)
    decision = contact.stick_touching(contact.decide(kin, theta))
    crossing = [unnumbered(row[PAIR], surface.n_points, surface.n_edges, 2)[0] == EDGE_EDGE for row in decision]
    assert sum(crossing) == 1 and decision[crossing][0, FEATURE] & 15 == EDGES
    decision[np.logical_not(crossing), BITS] &= ~STICKS
    hold = contact.stick_constraint(decision)
    assert isinstance(hold, StickingPrimitives)
    mu = rng.normal(size=3)
    check_constraint(hold, kin, mu, theta, rng=rng, rtol=1e-6, scales={"q": 0.02, "v": 0.3}, layout=LAYOUT)
    # Only the normal of the plane is left out of the rows: it is that of the face, or across both edges.
    rows = hold.operators(kin, theta).by_v.reshape(3, -1)
    normal = np.linalg.svd(rows)[0][:, 2]
    places = surface.places(q, theta)
    edge, face = (surface.edges[surface.body[surface.edges[:, 0]] == side] for side in ((0, 1) if first else (1, 0)))
    corners = places[surface.faces[0]]
    of_face = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    across = np.cross(places[edge[0, 1]] - places[edge[0, 0]], corners[1] - corners[0])
    wanted = across if "nodes" in carriers else of_face
    assert face.size and np.linalg.norm(np.cross(normal, wanted)) < 1e-12 * np.linalg.norm(wanted)


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
