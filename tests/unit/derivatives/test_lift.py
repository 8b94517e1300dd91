"""Bodies with coordinates of their own: forces on the rows of X = Phi(q) pulled back to q, with all derivatives."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.body_scene import NODES, STARTS, N, crowd

from add.contact import FrictionLaw
from add.equations.kinematics import Kinematics, Weights
from add.equations.layout import DofLayout
from add.equations.lift import Carried, Embedding, Lift
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.lifted_constraint import LiftedConstraint
from add.equations.points import Along, LiftedPoints, WeightedPoints
from add.equations.signals import Constant
from add.equations.sites import LawValues, SiteKind, SitePoints, Sites
from add.equations.tree_embedding import TiedNodes, TreeEmbedding
from add.joints.laws import ElasticJoint, Spring
from add.kernels.trees import BALL, FIXED, HINGE, SLIDE, Tree
from add.terms import Inertia, PointConstraint, TiedPoints
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


CARRIED = np.arange(3, 9)  # rows of two nodes
SAME = 30  # coordinates of the crowd that stay; the last body and two nodes get five, or four and one, of their own


def lifted(rng, kin, sizes=((6, 4), (6, 3)), carried=False):
    """A lift whose X and V at ``kin.q`` and ``kin.v`` of the result are near those of ``kin``.

    With ``carried`` the second node follows from the coordinates of the last body, the third from those of the first.
    """
    same = np.setdiff1d(np.arange(SAME), CARRIED) if carried else np.arange(SAME)
    embeddings, q, v, first = [], [kin.q[same]], [kin.v[same]], SAME
    for m, n in sizes:
        A, own = rng.normal(size=(m, n)), rng.normal(size=n)
        B = rng.normal(size=(m, n, n))
        embeddings.append(Curved(kin.q[first : first + m], A, B + B.transpose(0, 2, 1), own))
        q.append(own + 0.01 * rng.normal(size=n))
        v.append(np.linalg.lstsq(A, kin.v[first : first + m], rcond=None)[0])
        first += m
    follow = []
    for k, own in enumerate((np.arange(same.size, same.size + sizes[0][1]), np.arange(3, 9)) if carried else ()):
        A, B = rng.normal(size=(3, own.size)), rng.normal(size=(3, own.size, own.size))
        rows, u = CARRIED[3 * k : 3 * k + 3], np.concatenate(q)[own]
        follow.append(Carried(Curved(kin.q[rows], A, B + B.transpose(0, 2, 1), u), int(own[0]), rows))
    dofs = DofLayout([("same", (same.size,), "m"), *((f"own {k}", (n,), "-") for k, (_, n) in enumerate(sizes))])
    rows = DofLayout([("all", (kin.q.size // 3, 3), "m")])
    a = rng.normal(size=dofs.n)
    return Lift(dofs, rows, tuple(embeddings), tuple(follow)), Kinematics(
        np.concatenate(q), np.concatenate(v), a, kin.t, kin.step
    )


@pytest.mark.parametrize(("law", "carried"), [(FrictionLaw.LINEAR, True), (FrictionLaw.TANH, False)])
def test_contact(rng, law, carried):
    scene = crowd(law, seed=10)
    lift, kin = lifted(rng, scene.kin, carried=carried)
    term = LiftedDecidingTerm(scene.contact, lift)
    decision, found = check_deciding_term(term, kin, scene.theta, rng=rng, scales={"q": 1e-3, "v": 1e-3})
    assert all(count for count in term.describe(decision).values())
    assert law is not FrictionLaw.LINEAR or term.describe(decision)["sticking"] > 5
    r = np.zeros(lift.dofs.n)
    term.on_branch(decision).residual(kin, scene.theta, r)
    assert np.abs(r[lift.n_same :]).min() > 0.0, "the contact does not reach the embedded coordinates"
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
        Spring(joint_sites(), LawValues.of([6, 7], [8, 9], [10, 11])),
        ElasticJoint(joint_sites(), LawValues.of([6, 7], [8, 9])),
    ):
        found = check_term(LiftedTerm.of(inner, lift), kin, theta, rng=rng, scales={"q": 0.1, "v": 0.1})
        assert set(found.parameters) >= set(range(3, 10))


def test_states_that_are_changed_in_place(rng):
    """What was lifted is kept for the numbers that stood in the arrays, not for the arrays."""
    lift, kin = lifted(rng, crowd(seed=5).kin)
    theta = rng.uniform(0.5, 1.5, size=12)
    found = []
    for array in (kin.q[-3:], kin.v[-3:]):
        array += 0.01
        term = LiftedTerm.of(Spring(joint_sites(), LawValues.of([6, 7], [8, 9], [10, 11])), lift)
        found += [np.zeros(kin.q.size), np.zeros(kin.q.size)]
        term.residual(kin, theta, found[-2])
        again = replace(kin, q=kin.q.copy(), v=kin.v.copy())
        term.residual(again, theta.copy(), found[-1])
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[2], found[3])
    assert np.abs(found[2] - found[0]).max() > 1e-6


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


@pytest.mark.parametrize("carried", [False, True])
def test_points(rng, carried):
    scene = crowd(seed=5)
    lift, kin = lifted(rng, scene.kin, carried=carried)
    sites = joint_sites()
    points, theta = LiftedPoints(SitePoints(sites), lift), rng.normal(size=6)
    n = lift.dofs.n

    def split(z):
        return replace(kin, q=z[:n], v=z[n : 2 * n]), z[2 * n :]

    def f(z):
        at, numbers = split(z)
        return np.concatenate([part.ravel() for part in points.points(at, numbers)])

    def jvp(z, z_dot):
        at, dot = (np.split(x, [n, 2 * n], axis=-1) for x in (z, z_dot[None]))
        parts = points.jvp_over(Along(at[0][None], at[1][None], at[2]), Along(dot[0][None], dot[1][None], dot[2]))
        return np.concatenate([part.ravel() for part in parts])

    def vjp(z, y_bar):
        at, numbers = split(z)
        out = [np.zeros(n), np.zeros(n), np.zeros(6)]
        points.vjp(at, numbers, *y_bar.reshape(2, -1, 3), Along(*out))
        return np.concatenate(out)

    matrix = check_pullback(f, jvp, vjp, np.concatenate([kin.q, kin.v, theta]), rng=rng, scale=0.1)
    assert np.abs(matrix[:, lift.n_same : n]).max() > 0.1


@pytest.mark.parametrize("carried", [False, True])
def test_velocities_of_many_states(rng, carried):
    scene = crowd(seed=5)
    lift, kin = lifted(rng, scene.kin, carried=carried)
    q, v = kin.q + 0.1 * rng.normal(size=(3, kin.q.size)), rng.normal(size=(3, kin.q.size))
    expected = [lift.kinematics(replace(kin, q=a, v=b), scene.theta).v for a, b in zip(q, v, strict=True)]
    assert np.allclose(lift.velocities(q, v, scene.theta), expected, rtol=0.0, atol=1e-12)


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


@pytest.mark.parametrize(
    ("sizes", "carried"), [(((6, 4), (6, 3)), False), (((6, 4), (6, 3)), True), (((12, 5),), False)]
)
def test_sticking(rng, sizes, carried):
    """What sticks to bodies and nodes with coordinates of their own, and to others: all derivatives by differences."""
    scene = crowd(FrictionLaw.HYBRID, seed=10)
    lift, kin = lifted(rng, scene.kin, sizes, carried)
    term = LiftedDecidingTerm(scene.contact, lift)
    decision = term.stick_touching(term.decide(kin, scene.theta))
    assert term.sticking is term and term.none_creeps(decision)
    hold = term.stick_constraint(decision)
    assert hold is not None and hold.n_rows > 15
    mu = rng.normal(size=hold.n_rows)
    scales = {"q": 1e-3, "v": 1e-3}
    found = check_constraint(hold, kin, mu, scene.theta, rng=rng, scales=scales)
    assert found.q > 0.0 and found.v > 0.0 and found.parameters
    assert (hold.dofs >= lift.n_same).any() and ((hold.dofs >= 0) & (hold.dofs < lift.n_same)).any()


@pytest.mark.parametrize("carried", [False, True])
def test_sticking_for_the_solver(rng, carried):
    """The matrix parts in the slots of the frozen term are those of the constraint's own Jacobian."""
    scene = crowd(FrictionLaw.HYBRID, seed=10)
    lift, kin = lifted(rng, scene.kin, carried=carried)
    term, n = LiftedDecidingTerm(scene.contact, lift), lift.dofs.n
    decision = term.stick_touching(term.decide(kin, scene.theta))
    hold, branch = term.stick_constraint(decision), term.on_branch(decision)
    m, weights = hold.n_rows, Weights(1.0, 30.0, 900.0, 1.0)
    mu = rng.normal(size=m)
    rows, cols = hold.pattern(n)
    values = np.zeros(rows.size)
    hold.jacobian(kin, mu, scene.theta, weights, values, np.arange(rows.size))
    whole = np.zeros((n + m, n + m))
    np.add.at(whole, (rows, cols), values)
    operators = hold.operators(kin, scene.theta)
    by_u = weights.q * operators.by_q + weights.v * operators.by_v
    point, place = np.nonzero(hold.dofs >= 0)
    dense = np.zeros((m // 3, 3, n))
    np.add.at(dense, (point, slice(None), hold.dofs[point, place]), by_u[point, :, place])
    assert np.allclose(dense.reshape(m, n), whole[n:, :n], rtol=1e-12, atol=1e-10)
    rows, cols = branch.pattern()
    for penalty, expected in ((0.0, whole[:n, :n]), (50.0, 50.0 * whole[:n, n:] @ whole[n:, :n])):
        values = np.zeros(rows.size)
        if penalty:
            hold.add_products(penalty, operators.by_v, by_u, values, np.arange(rows.size))
        else:
            hold.add_geometry(kin, mu, scene.theta, weights.q, values, np.arange(rows.size))
        out = np.zeros((n, n))
        np.add.at(out, (rows, cols), values)
        assert np.allclose(out, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_nothing_sticks_by_equations_under_other_laws(rng):
    scene = crowd(FrictionLaw.LINEAR)
    lift, kin = lifted(rng, scene.kin)
    term = LiftedDecidingTerm(scene.contact, lift)
    assert term.sticking is None
    with pytest.raises(TypeError, match="nothing sticks"):
        term.stick_touching(term.decide(kin, scene.theta))


def test_nodes_in_a_frame_of_a_tree(rng):
    """Every derivative of the places and velocities of tied nodes, by coordinates and by placements."""
    none = np.full(4, -1)
    tree = Tree(
        parent=np.array([-1, 0, 1, 2]), kind=np.array([HINGE, BALL, SLIDE, FIXED]), first=np.array([0, 1, 4, 5]),
        axis=np.eye(3)[[2, 0, 1, 0]], pitch=np.zeros(4), element=np.array([0, 1, 1, 1, 2]), coordinate=np.arange(5),
        factor=np.ones(5), offset=np.zeros(5), placement=np.arange(24).reshape(4, 6), mass=none,
        centre=np.full((4, 3), -1), inertia=np.full((4, 6), -1), armature=np.full(5, -1), gravity=np.arange(24, 27),
    )  # fmt: skip
    tied = TiedNodes(TreeEmbedding(tree, np.array([3]), 5), rng.normal(size=(4, 3)))
    theta, q, v, f = rng.normal(size=27), rng.normal(size=5), rng.normal(size=5), rng.normal(size=12)

    def slopes(function, at):
        ways = 1e-6 * np.eye(at.size)
        return np.stack([(function(at + way) - function(at - way)) / 2e-6 for way in ways], axis=-1)

    x, p = tied.place(q, theta)
    close = {"rtol": 0.0, "atol": 3e-8}
    assert np.allclose(slopes(lambda y: tied.place(y, theta)[0], q), p, **close)
    for found, expected in zip(tied.motion(q, v, theta), (x, p @ v), strict=True):
        assert np.allclose(found, expected, rtol=0.0, atol=1e-13)
    assert np.allclose(slopes(lambda y: tied.place(y, theta)[1] @ v, q), tied.rates(q, v, theta), **close)
    assert np.allclose(slopes(lambda y: tied.place(y, theta)[1].T @ f, q), tied.curvature(q, theta, f), **close)
    by_place, by_rate = tied.by_parameters(q, v, theta)
    assert np.allclose(slopes(lambda t: tied.place(q, t)[0], theta)[:, tied.parameters], by_place, **close)
    assert np.allclose(slopes(lambda t: tied.place(q, t)[1] @ v, theta)[:, tied.parameters], by_rate, **close)
    # Held by multipliers: behind two other coordinates, the nodes first.
    held = TiedPoints("tissue", "bone", 3 * np.array([2, 0, 3, 1]), tied, 14)
    states = [rng.normal(size=19) for _ in range(3)]
    found = check_constraint(held, Kinematics(*states, 0.3, 4), f, theta, rng=rng)
    assert found.q > 0.0 and found.multiplier > 0.0 and found.v == found.a == 0.0
    assert set(found.parameters) == set(range(24))
