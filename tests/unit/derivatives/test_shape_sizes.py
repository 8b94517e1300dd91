"""Sizes of shapes in theta: contact by them against differences, each feature of each shape, points that follow."""

from dataclasses import replace

import numpy as np
import pytest
from derivatives.test_body_contact import BESIDE, INSIDE, PLACES, Case
from support.decisions import table_of

from add.contact import Sizes, point_growth
from add.kernels.contact_arrays import Growth
from add.kernels.rotation import rotation_matrix
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, SPHERE
from add.testing import check_deciding_term

ROUND = (SPHERE, CAPSULE, CYLINDER)
#: Which sizes matter to a feature.
MATTER = {
    "sphere": {0}, "box": {1}, "capsule side": {0}, "capsule cap": {0, 1}, "cylinder side": {0}, "cylinder cap": {1},
    "box edge": {0, 1}, "box corner": {0, 1, 2}, "cylinder rim": {0, 1},
    "box beside": {0, 1, 2}, "box beside two": {0, 1, 2}, "cap beside": {0, 1}, "side beside": {0, 1},
}  # fmt: skip
PLACED = [name for name in PLACES if name in MATTER]


def sized(case: Case, radius: float) -> None:
    """Let the shape of a case have its sizes in theta, and its point a place and radius that three numbers move."""
    contact, rng = case.contact, np.random.default_rng(5)
    n, size = case.theta.size, np.array(PLACES[case.place][1])
    slopes = 0.3 * rng.normal(size=(1, 3, 4))
    slopes[:, :, 3] *= radius > 0.0
    moves = np.array([0.7, -0.4, 0.5])
    case.theta = np.concatenate([case.theta, size, moves])
    base = np.append(contact.arm[0], contact.radius) - moves @ slopes[0]
    on_body = contact.shape_carrier[0] >= 0
    growth = Growth(
        np.array([[n + 3, n + 4, n + 5]]) if contact.rigid[0] else np.full((1, 3), -1),
        slopes,
        np.array([[n, n + 1, n + 2]]) if on_body else np.full((1, 3), -1),
    )
    case.contact = replace(contact, sizes=Sizes(growth, base[None]), arm=np.zeros((1, 3)), radius=np.zeros(1))


@pytest.mark.parametrize("place", PLACED)
@pytest.mark.parametrize(("point", "radius"), [("body", 0.25), ("body", 0.0), ("node", 0.0)])
def test_derivatives(place: str, point: str, radius: float) -> None:
    """Edges, corners and rims are met by balls alone, what is beside an edge by corners."""
    if place not in INSIDE and (point == "node" or (place in BESIDE) != (radius == 0.0)):
        return
    case = Case(place, point, "body", "large", radius=radius)
    n = case.theta.size
    before = case.contact.forces(case.kin, case.theta)
    sized(case, radius)
    if point == "node":
        case.contact = replace(
            case.contact, arm=np.zeros((1, 3)), sizes=case.contact.sizes._replace(base=np.zeros((1, 4)))
        )
    assert case.contact.forces(case.kin, case.theta) == pytest.approx(before, rel=1e-12, abs=1e-12)
    decision, found = check_deciding_term(
        case.contact, case.kin, case.theta, rng=np.random.default_rng(1), scales={"q": 0.05, "v": 0.05}, rtol=1e-7
    )
    assert table_of(case.contact, decision)[0, 0] == case.expected
    mine = {i - n for i in found.parameters if i >= n}
    assert mine == MATTER[place] | ({3, 4, 5} if point == "body" else set())


@pytest.mark.parametrize("kind", [BOX, *ROUND])
def test_points_follow_their_shape(kind: int) -> None:
    """Places and radii are linear in the sizes, in the frame of the shape."""
    rng = np.random.default_rng(kind)
    rotation, position = rotation_matrix(rng.normal(size=3)), rng.normal(size=3)
    size = (0.3, 0.5, 0.7) if kind == BOX else (0.3, 0.5 if kind != SPHERE else 0.0, 0.0)
    own = rng.uniform(-1.0, 1.0, size=(4, 3))
    if kind == SPHERE:
        own[:] = 0.0
    if kind == CAPSULE:
        own[:, :2] = 0.0
    shares = np.array(size) if kind == BOX else np.array([size[0], size[0], size[1]])
    radii = np.full(4, size[0] if kind in (SPHERE, CAPSULE) else 0.0)
    found = point_growth(kind, size, rotation, position, own * shares @ rotation.T + position, radii)
    change = np.array([0.01, -0.02, 0.03])
    moved = np.einsum("c,pca->pa", change, found)
    axes = change if kind == BOX else np.array([change[0], change[0], change[1]])
    assert moved[:, :3] == pytest.approx(own * axes @ rotation.T, abs=1e-15)
    assert moved[:, 3] == pytest.approx(change[0] if kind in (SPHERE, CAPSULE) else 0.0)
