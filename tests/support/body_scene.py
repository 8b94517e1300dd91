"""A crowd of overlapping bodies, nodes and shapes, for tests of contact between bodies."""

from dataclasses import dataclass, replace

import numpy as np
from support.decisions import table_of

from add.contact import CONSTANT_FRICTION, BodyContact, FrictionLaw, PairParameters
from add.equations.kinematics import Kinematics
from add.kernels.rotation import left_jacobian, rotation_matrix, rotation_vector
from add.kernels.shape_codes import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from add.testing import check_deciding_term

STARTS = np.array([9, 15, 21, 30])  # of the rigid bodies; nodes stand before, between and behind them
NODES = np.array([0, 3, 6, 27, 36, 39])
N = 42
KINDS = (BOX, SPHERE, CAPSULE, CYLINDER)
SIZES = ((0.5, 0.4, 0.6), (0.5, 0.0, 0.0), (0.3, 0.5, 0.0), (0.4, 0.5, 0.0))


@dataclass(frozen=True)
class Scene:
    """A contact term, a state and parameters."""

    contact: BodyContact
    kin: Kinematics
    theta: np.ndarray

    def forces(self):
        """Return forces and torques in world axes: (n_rigid, 3) each, and the nodes' forces."""
        return world_forces(self.contact.forces(self.kin, self.theta), self.kin.q)

    def turned(self, Q, shift, extra):
        """Return the same scene elsewhere: turned by Q, shifted, with an extra velocity of everything."""
        q, v = self.kin.q.copy(), self.kin.v.copy()
        for s in (*STARTS, *NODES):
            q[s : s + 3], v[s : s + 3] = Q @ q[s : s + 3] + shift, Q @ v[s : s + 3] + extra
        for s in STARTS + 3:
            w = q[s : s + 3].copy()
            omega = left_jacobian(w) @ v[s : s + 3]
            q[s : s + 3] = rotation_vector(quaternion(Q @ rotation_matrix(w)))
            v[s : s + 3] = np.linalg.solve(left_jacobian(q[s : s + 3]), Q @ omega)
        c = self.contact
        world = c.shape_carrier < 0
        rotation, position, velocity = c.rotation.copy(), c.position.copy(), c.velocity.copy()
        rotation[world] = Q @ rotation[world]
        velocity[world] = velocity[world] @ Q.T + extra
        position[world] = position[world] @ Q.T + shift - self.kin.t * extra
        contact = replace(c, rotation=rotation, position=position, velocity=velocity)
        return Scene(contact, replace(self.kin, q=q, v=v), self.theta)


def world_forces(f, q):
    """Undo J^T: forces and torques of the bodies in world axes, and the nodes' forces."""
    force = np.array([f[s : s + 3] for s in STARTS])
    torque = np.array([np.linalg.solve(left_jacobian(q[s + 3 : s + 6]).T, f[s + 3 : s + 6]) for s in STARTS])
    return force, torque, np.array([f[s : s + 3] for s in NODES])


def quaternion(R):
    """Of a rotation matrix, (w, x, y, z)."""
    K = np.array([
        [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
        [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
        [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], R[1, 2] + R[2, 1]],
        [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1]],
    ])  # fmt: skip
    return np.linalg.eigh(K)[1][:, -1]


def random_rotation(rng):
    """Uniform."""
    u = rng.normal(size=4)
    return rotation_matrix(rotation_vector(u / np.linalg.norm(u)))


def crowd(
    law=FrictionLaw.TANH,
    total=False,
    seed=0,
    n_points=6,
    world=True,
    nodes=True,
    spread=0.4,
    further=CONSTANT_FRICTION,
):
    """Four bodies with points (some of them spheres) and one shape each, six nodes, a plane and a box of the world.

    With a curve of friction, ``further``, the coefficient follows it, and bodies brake each other's spin.
    """
    rng = np.random.default_rng(seed)
    n_bodies, per_body = len(STARTS), n_points
    carrier = np.concatenate([NODES, np.repeat(STARTS, per_body)])
    rigid = np.repeat([False, True], [len(NODES), n_bodies * per_body])
    n = carrier.size
    group = np.concatenate([np.zeros(len(NODES), dtype=np.int64), np.repeat(1 + np.arange(n_bodies), per_body)])
    ns = 2 + n_bodies
    kind = np.array([PLANE, BOX, *KINDS])
    size = np.array([(0.0, 0.0, 0.0), (0.3, 0.4, 0.5), *SIZES])
    shape_carrier = np.array([-1, -1, *STARTS])
    enabled = np.ones((1 + n_bodies, ns), dtype=bool)
    enabled[1 + np.arange(n_bodies), 2 + np.arange(n_bodies)] = False
    enabled[2, 0] = False
    enabled[:, :2] &= world
    enabled[0] &= nodes
    # k_n, k_d, k_t, c_f of every two (the first two groups share theirs), then the centres of mass.
    shape = (1 + n_bodies, ns)
    numbers = np.arange(4 * (1 + n_bodies) * ns).reshape(4, *shape)
    numbers[:, 1] = numbers[:, 0]
    centres = numbers.size + np.arange(3 * n_bodies).reshape(n_bodies, 3)
    theta = np.concatenate([
        rng.uniform(20.0, 60.0, numbers[0].size), rng.uniform(0.5, 4.0, numbers[0].size),
        rng.uniform(1.0, 20.0, numbers[0].size), rng.uniform(0.1, 0.9, numbers[0].size),
        rng.uniform(-0.1, 0.1, centres.size),
    ])  # fmt: skip
    centres[3, 1] = -1
    curve = couples = None
    if further.numbers:  # c_s, v_s, or others, c_t, c_r, w_0 of every two; nodes have no spin
        more = theta.size + np.arange(5 * numbers[0].size).reshape(5, *shape)
        low, high = np.array([0.1, 0.3, 0.02, 0.02, 0.3]), np.array([0.9, 1.5, 0.2, 0.2, 3.0])
        theta = np.concatenate(
            [theta, (low[:, None] + (high - low)[:, None] * rng.random((5, numbers[0].size))).ravel()]
        )
        curve, couples = np.moveaxis(more[:2], 0, 2), np.moveaxis(more[2:], 0, 2).copy()
        couples[0] = -1
    depths = rng.uniform(0.0, 0.2, (2, *shape))
    depths[rng.random(depths.shape) < 0.3] = 0.0
    q, v = spread * rng.normal(size=N), rng.normal(size=N)
    for s in STARTS + 3:
        q[s : s + 3] = rng.normal(size=3)
    q[STARTS[0] + 3 : STARTS[0] + 6] = 0.0
    q[STARTS[1] + 3 : STARTS[1] + 6] *= 3.7 / np.linalg.norm(q[STARTS[1] + 3 : STARTS[1] + 6])
    contact = BodyContact(
        carrier=carrier,
        rigid=rigid,
        arm=rng.uniform(-0.5, 0.5, (n, 3)),
        radius=np.where(rng.random(n) < 0.4, rng.uniform(0.05, 0.3, n), 0.0),
        scale=rng.uniform(0.5, 2.0, n),
        group=group,
        centre=np.concatenate([np.full((len(NODES), 3), -1), np.repeat(centres, per_body, axis=0)]),
        kind=kind,
        size=size,
        shape_carrier=shape_carrier,
        rotation=np.array([random_rotation(rng) for _ in range(ns)]),
        position=0.2 * rng.normal(size=(ns, 3)),
        velocity=rng.normal(size=(ns, 3)),
        shape_centre=np.concatenate([np.full((2, 3), -1), centres]),
        shape_group=np.arange(ns),
        owner=group,
        shape_owner=np.concatenate([[5, 6], 1 + np.arange(n_bodies)]),
        pairs=PairParameters(*numbers, *depths, enabled, None, curve, couples),
        law=law,
        total_normal=total,
        curve=further,
    )
    return Scene(contact, Kinematics(q, v, rng.normal(size=N), 0.23, 5), theta)


def check_crowd(rng, law=FrictionLaw.TANH, total=False, seed=0, further=CONSTANT_FRICTION):
    """All derivatives of a crowd in which every kind of carrier touches; return the scene, decision, sensitivity."""
    scene = crowd(law, total, seed, further=further)
    contact = scene.contact
    decision, found = check_deciding_term(contact, scene.kin, scene.theta, rng=rng, scales={"q": 1e-3, "v": 1e-3})
    touching = table_of(contact, decision) != 0
    on_body, on_node = contact.rigid, ~contact.rigid
    carried = contact.shape_carrier >= 0
    for points in (on_body, on_node):
        for shapes in (carried, ~carried):
            assert touching[np.ix_(points, shapes)].any()
    assert (touching[np.ix_(on_node, carried)].sum(axis=1) > 1).any(), "no node touches two bodies"
    spheres = contact.radius > 0.0
    assert touching[spheres].any() and touching[~spheres].any()
    first = 4 * contact.pairs.k_n.size
    centres = [index for index in found.parameters if first <= index < first + 12]
    assert len(centres) == 11 and len(found.parameters) > 30
    if further.numbers:
        for table in (contact.pairs.further, contact.pairs.couples[1:]):
            assert all(set(table[..., k].ravel()) & set(found.parameters) for k in range(table.shape[-1]))
    return scene, decision, found
