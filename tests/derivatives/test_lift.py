"""Bodies with coordinates of their own: forces on the rows of X = Phi(q) pulled back to q, with all derivatives."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.body_scene import NODES, STARTS, N, crowd

from add.contact import FrictionLaw
from add.equations.kinematics import Kinematics
from add.equations.layout import DofLayout
from add.equations.lift import Embedding, Lift
from add.equations.lifted import LiftedConstraint, LiftedDecidingTerm, LiftedTerm
from add.equations.lifted_points import LiftedPoints
from add.equations.points import WeightedPoints
from add.equations.signals import Constant
from add.equations.site_points import SitePoints
from add.equations.sites import SiteKind, Sites
from add.joints.springs import ElasticJoint, Spring
from add.terms import Inertia, PointConstraint
from add.testing import check_constraint, check_deciding_term, check_pullback, check_term


@dataclass(frozen=True)
class Curved(Embedding):
    """X = x0 + A u + u^T B u / 2 with u = q - q0: every derivative of the lift is there."""

    x0: np.ndarray
    A: np.ndarray
    B: np.ndarray
    q0: np.ndarray

    @property
    def n_coordinates(self) -> int:
        return self.A.shape[1]

    @property
    def n_rows(self) -> int:
        return self.A.shape[0]

    def place(self, q, theta):
        u = q - self.q0
        return self.x0 + self.A @ u + 0.5 * np.einsum("mij,i,j->m", self.B, u, u), self.A + self.B @ u

    def rates(self, q, v, theta):
        return self.B @ v

    def curvature(self, q, theta, force):
        return np.einsum("m,mij->ij", force, self.B)


SAME = 30  # coordinates of the crowd that stay; the last body and two nodes get five, or four and one, of their own


def lifted(rng, kin, sizes=((6, 4), (6, 3))):
    """A lift whose X and V at ``kin.q`` and ``kin.v`` of the result are near those of ``kin``."""
    embeddings, q, v, first = [], [kin.q[:SAME]], [kin.v[:SAME]], SAME
    for m, n in sizes:
        A, own = rng.normal(size=(m, n)), rng.normal(size=n)
        B = rng.normal(size=(m, n, n))
        embeddings.append(Curved(kin.q[first : first + m], A, B + B.transpose(0, 2, 1), own))
        q.append(own + 0.01 * rng.normal(size=n))
        v.append(np.linalg.lstsq(A, kin.v[first : first + m], rcond=None)[0])
        first += m
    dofs = DofLayout([("same", (SAME,), "m"), *((f"own {k}", (n,), "-") for k, (_, n) in enumerate(sizes))])
    rows = DofLayout([("all", (kin.q.size // 3, 3), "m")])
    a = rng.normal(size=dofs.n)
    return Lift(dofs, rows, tuple(embeddings)), Kinematics(np.concatenate(q), np.concatenate(v), a, kin.t, kin.step)


@pytest.mark.parametrize("law", [FrictionLaw.LINEAR, FrictionLaw.TANH])
def test_contact(rng, law):
    scene = crowd(law, seed=10)
    lift, kin = lifted(rng, scene.kin)
    term = LiftedDecidingTerm(scene.contact, lift)
    decision, found = check_deciding_term(term, kin, scene.theta, rng=rng, scales={"q": 1e-3, "v": 1e-3})
    assert all(count for count in term.describe(decision).values())
    assert law is not FrictionLaw.LINEAR or term.describe(decision)["sticking"] > 5
    r = np.zeros(lift.dofs.n)
    term.on_branch(decision).residual(kin, scene.theta, r)
    assert np.abs(r[SAME:]).min() > 0.0, "the contact does not reach the embedded coordinates"
    assert len(found.parameters) > 30


def joint_sites():
    """Points of a body that stays and one that is embedded, and an embedded node."""
    rows = [
        (SiteKind.POINT, np.arange(STARTS[1], STARTS[1] + 6), (), (0, 1, 2)),
        (SiteKind.POINT, np.arange(STARTS[3], STARTS[3] + 6), (), (3, 4, 5)),
        (SiteKind.POINT, np.arange(STARTS[3], STARTS[3] + 6), (), (3, 4, 5)),
        (SiteKind.NODES, np.arange(NODES[4], NODES[4] + 3), (1.0,), (-1, -1, -1)),
    ]
    dofs, weights = np.full((4, 6), -1), np.zeros((4, 2))
    for i, (_, own, shares, _) in enumerate(rows):
        dofs[i, : len(own)] = own
        weights[i, : len(shares)] = shares
    return Sites(
        np.array([row[0] for row in rows], dtype=np.int64),
        dofs,
        weights,
        np.array([row[3] for row in rows]),
        np.full((4, 3), -1),
    )


def test_joints(rng):
    scene = crowd(seed=5)
    lift, kin = lifted(rng, scene.kin)
    theta = rng.uniform(0.5, 1.5, size=12)
    for inner in (
        Spring.of(joint_sites(), k=[6, 7], c=[8, 9], length=[10, 11]),
        ElasticJoint.of(joint_sites(), k=[6, 7], c=[8, 9]),
    ):
        found = check_term(LiftedTerm.of(inner, lift), kin, theta, rng=rng, scales={"q": 0.1, "v": 0.1})
        assert set(found.parameters) >= set(range(3, 10))


def test_inertia_of_rows_that_stay(rng):
    scene = crowd(seed=5)
    lift, kin = lifted(rng, scene.kin)
    inner = Inertia(np.array([0, 1]), np.array([0, 1]), np.ones((2, 3)), np.array([0, 1]), np.array([2, -1]))
    check_term(LiftedTerm.of(inner, lift), kin, np.array([1.3, 0.7, 0.2]), rng=rng)


def test_constraint(rng):
    scene = crowd(seed=5)
    lift, kin = lifted(rng, scene.kin)
    nodes = np.array([[0, NODES[4] // 3], [1, NODES[5] // 3]])
    inner = PointConstraint(
        WeightedPoints(nodes, np.array([[0.3, 0.7], [0.5, 0.5]])), Constant(), np.arange(6).reshape(2, 1, 3)
    )
    check_constraint(
        LiftedConstraint(inner, lift), kin, rng.normal(size=6), rng.normal(size=6), rng=rng, scales={"q": 0.1}
    )


def test_points(rng):
    scene = crowd(seed=5)
    lift, kin = lifted(rng, scene.kin)
    sites = joint_sites()
    points, theta = LiftedPoints(SitePoints(sites), lift), rng.normal(size=6)
    n = lift.dofs.n

    def split(z):
        return replace(kin, q=z[:n], v=z[n : 2 * n]), z[2 * n :]

    def f(z):
        at, numbers = split(z)
        return np.concatenate([part.ravel() for part in points.points(at, numbers)])

    def jvp(z, z_dot):
        at, numbers = split(z)
        parts = points.jvp(at, numbers, z_dot[:n], z_dot[n : 2 * n], z_dot[2 * n :])
        return np.concatenate([part.ravel() for part in parts])

    def vjp(z, y_bar):
        at, numbers = split(z)
        out = [np.zeros(n), np.zeros(n), np.zeros(6)]
        points.vjp(at, numbers, *y_bar.reshape(2, -1, 3), *out)
        return np.concatenate(out)

    matrix = check_pullback(f, jvp, vjp, np.concatenate([kin.q, kin.v, theta]), rng=rng, scale=0.1)
    assert np.abs(matrix[:, SAME:n]).max() > 0.1


def test_the_identity_is_left_alone(rng):
    scene = crowd()
    layout = DofLayout([("all", (N // 3, 3), "m")])
    lift = Lift(layout, layout)
    assert lift.is_identity
    assert lift.kinematics(scene.kin, scene.theta) is scene.kin


def test_rows_have_to_fit(rng):
    layout = DofLayout([("all", (N // 3, 3), "m")])
    with pytest.raises(ValueError, match="embedded"):
        Lift(layout, layout, lifted(rng, crowd().kin)[0].embeddings[:1])


def test_hybrid_friction_is_refused(rng):
    scene = crowd(FrictionLaw.HYBRID)
    lift, _ = lifted(rng, scene.kin)
    with pytest.raises(ValueError, match="hybrid friction"):
        LiftedDecidingTerm(scene.contact, lift)
