"""Contact between bodies: the law written again with vectors, Newton's third law, invariances, detection, limits."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from support.body_scene import NODES, STARTS, N, crowd, random_rotation
from support.decisions import FEATURE_SHIFT, table_of

from add.contact import BodyContact, FrictionLaw, PairParameters
from add.equations.kinematics import Kinematics, Weights
from add.kernels import contact_bodies
from add.kernels.contact_pairs import ACTIVE
from add.kernels.distance import signed_distance
from add.kernels.rotation import left_jacobian, rotation_matrix
from add.kernels.shape_codes import BOX, PLANE, SPHERE


def twists(scene):
    """Place, attitude, velocity, angular velocity and centre of mass of every body, by its first coordinate."""
    q, v, c = scene.kin.q, scene.kin.v, scene.contact
    out = {}
    for s, centre in [*zip(c.carrier[c.rigid], c.centre[c.rigid], strict=True)]:
        w = q[s + 3 : s + 6]
        X_c = np.where(centre >= 0, scene.theta[centre], 0.0)
        out[int(s)] = q[s : s + 3], rotation_matrix(w), v[s : s + 3], left_jacobian(w) @ v[s + 3 : s + 6], X_c
    return out


def reference(scene):
    """Forces, torques, nodes' forces and codes' ACTIVE bits and features: all pairs, one by one, in plain vectors."""
    c, kin, theta, pairs = scene.contact, scene.kin, scene.theta, scene.contact.pairs
    bodies = twists(scene)
    force = {s: np.zeros((2, 3)) for s in STARTS}
    at_nodes = {s: np.zeros(3) for s in NODES}
    touched = np.zeros((c.carrier.size, c.kind.size), dtype=np.int32)
    for i, s in enumerate(c.carrier):
        if c.rigid[i]:
            x_a, R_a, v_a, omega_a, X_c = bodies[int(s)]
            centre = x_a + R_a @ (c.arm[i] - X_c)
            v_c = v_a + np.cross(omega_a, centre - x_a)
        else:
            centre, v_c, omega_a = kin.q[s : s + 3], kin.v[s : s + 3], np.zeros(3)
        for o, host in enumerate(c.shape_carrier):
            row = c.group[i], o
            if not pairs.enabled[row]:
                continue
            if host >= 0:
                x_b, R_b, v_b, omega_b, X_c = bodies[int(host)]
                R, p = R_b @ c.rotation[o], x_b + R_b @ (c.position[o] - X_c)
            else:
                R, p = c.rotation[o], c.position[o] + kin.t * c.velocity[o]
                x_b, v_b, omega_b = p, c.velocity[o], np.zeros(3)
            n, H = np.zeros(3), np.zeros((3, 3))
            g, feature = signed_distance(c.kind[o], c.size[o], R.T @ (centre - p), -1, n, H)
            d = c.radius[i] - g
            if d <= 0.0:
                continue
            touched[i, o] = ACTIVE | feature << FEATURE_SHIFT
            n = R @ n
            place = centre - c.radius[i] * n if c.rigid[i] else centre
            of_a = v_c + np.cross(omega_a, place - centre)
            v_rel = of_a - v_b - np.cross(omega_b, place - x_b)
            k_n, k_d, k_t, c_f = (theta[table[row]] for table in (pairs.k_n, pairs.k_d, pairs.k_t, pairs.c_f))
            onset, ramp = pairs.onset[row], pairs.ramp[row]
            f_e = k_n * (d**2 / (2.0 * onset) if d < onset else d - 0.5 * onset)
            y = min(d / ramp, 1.0) if ramp > 0.0 else 1.0
            v_n = n @ v_rel
            v_t = v_rel - v_n * n
            f_n = max(f_e - k_d * y * y * (3.0 - 2.0 * y) * v_n, 0.0)
            limit, u = c_f * (f_n if c.total_normal else f_e), np.linalg.norm(v_t)
            m = {
                FrictionLaw.NONE: 0.0,
                FrictionLaw.LINEAR: min(k_t * u, limit),
                FrictionLaw.TANH: limit * np.tanh(k_t * u / limit) if limit else 0.0,
            }[c.law]
            F = c.scale[i] * (f_n * n - m * v_t / u)
            if c.rigid[i]:
                force[int(s)] += F, np.cross(place - x_a, F)
            else:
                at_nodes[int(s)] += F
            if host >= 0:
                force[int(host)] -= F, np.cross(place - x_b, F)
    by_body = np.array([force[s] for s in STARTS])
    return by_body[:, 0], by_body[:, 1], np.array([at_nodes[s] for s in NODES]), touched


# Hybrid friction has no law of its own here: what is held has no friction force, the rest the linear one.
@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("law", [FrictionLaw.NONE, FrictionLaw.LINEAR, FrictionLaw.TANH])
def test_force_and_detection_against_vectors(law, total):
    for seed in range(5):
        scene = crowd(law, total, seed)
        *expected, touched = reference(scene)
        for found, wanted in zip(scene.forces(), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(expected[0]).max())
        codes = table_of(scene.contact, scene.contact.decide(scene.kin, scene.theta))
        mask = ACTIVE | -1 << FEATURE_SHIFT
        assert np.array_equal(codes & mask, touched) and np.count_nonzero(codes) > 20


@pytest.mark.parametrize("spread", [0.2, 0.6, 1.2, 3.0])
def test_broad_phase_loses_nothing(spread):
    """Every point in a run of its own is tested against every shape: the same codes."""
    for seed in range(20):
        scene = crowd(seed=seed, spread=spread, n_points=8)
        c = scene.contact
        codes = table_of(c, c.decide(scene.kin, scene.theta))
        order = np.argsort(np.tile(np.arange(8), 5)[: c.carrier.size - len(NODES)], kind="stable") + len(NODES)
        order = np.concatenate([np.arange(len(NODES)), order])
        fields = ("carrier", "rigid", "arm", "radius", "scale", "group", "owner", "centre")
        mixed = replace(c, **{x: getattr(c, x)[order] for x in fields})
        assert np.array_equal(table_of(mixed, mixed.decide(scene.kin, scene.theta)), codes[order])


@pytest.mark.parametrize("law", FrictionLaw)
def test_third_law(law):
    """Among bodies and nodes alone: no total force, and no total torque about the origin."""
    for seed in range(5):
        scene = crowd(law, seed=seed, world=False)
        force, torque, at_nodes = scene.forces()
        q = scene.kin.q
        x, x_nodes = np.array([q[s : s + 3] for s in STARTS]), np.array([q[s : s + 3] for s in NODES])
        size = np.abs(force).max()
        assert size > 1.0 and np.abs(at_nodes).max() > 1.0
        np.testing.assert_allclose(force.sum(axis=0) + at_nodes.sum(axis=0), 0.0, atol=1e-12 * size)
        total = (np.cross(x, force) + torque).sum(axis=0) + np.cross(x_nodes, at_nodes).sum(axis=0)
        np.testing.assert_allclose(total, 0.0, atol=1e-12 * size)


@pytest.mark.parametrize("law", FrictionLaw)
def test_frame_invariance(law):
    rng = np.random.default_rng(7)
    for seed in range(4):
        scene = crowd(law, seed=seed)
        Q = random_rotation(rng)
        other = scene.turned(Q, rng.normal(size=3), rng.normal(size=3))
        codes = scene.contact.decide(scene.kin, scene.theta)
        assert np.array_equal(codes, other.contact.decide(other.kin, other.theta))
        for before, after in zip(scene.forces(), other.forces(), strict=True):
            np.testing.assert_allclose(after, before @ Q.T, atol=1e-10 * np.abs(before).max())
        energies = (s.contact.energy(s.kin, s.theta) for s in (scene, other))
        np.testing.assert_allclose(*energies, rtol=1e-11)


def test_a_common_rotation_is_no_sliding():
    """Everything turns about one axis like one body: neither friction nor damping, whatever the carriers."""
    scene = crowd(FrictionLaw.LINEAR, seed=3, world=False)
    spheres = ~scene.contact.rigid & (scene.contact.radius > 0.0)
    assert table_of(scene.contact, scene.contact.decide(scene.kin, scene.theta))[spheres].any()
    axis, q, v = np.array([0.3, -0.8, 0.5]), scene.kin.q, np.zeros(N)
    for s in (*STARTS, *NODES):
        v[s : s + 3] = np.cross(axis, q[s : s + 3])
    for s in STARTS + 3:
        v[s : s + 3] = np.linalg.solve(left_jacobian(q[s : s + 3]), axis)
    riding = replace(scene, kin=replace(scene.kin, v=v))
    still = replace(scene, kin=replace(scene.kin, v=np.zeros(N)))
    for a, b in zip(riding.forces(), still.forces(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12 * np.abs(b).max())


def test_places():
    scene = crowd(FrictionLaw.TANH, seed=1)
    c = scene.contact
    codes = c.decide(scene.kin, scene.theta)
    found = c.places(scene.kin, scene.theta, codes)
    assert np.array_equal(np.column_stack([found.point, found.shape]), np.argwhere(table_of(c, codes)))
    force, torque, _ = scene.forces()
    total, turning = np.zeros((2, len(STARTS), 3))
    for place, f, i, o in zip(found.place, found.force, found.point, found.shape, strict=True):
        for carrier, sign in ((c.carrier[i] if c.rigid[i] else -1, 1.0), (c.shape_carrier[o], -1.0)):
            if carrier >= 0:
                k = list(STARTS).index(carrier)
                total[k] += sign * f
                turning[k] += sign * np.cross(place - scene.kin.q[carrier : carrier + 3], f)
    np.testing.assert_allclose(total, force, atol=1e-11)
    np.testing.assert_allclose(turning, torque, atol=1e-11)


def ball(kind, size, c_f=0.5, radius=0.2, **state):
    """One ball of that radius on one shape of the world; x, v, omega of the ball."""
    one = np.zeros((1, 1), dtype=np.int64)
    pairs = PairParameters(one, one + 1, one + 2, one + 3, np.zeros((1, 1)), np.zeros((1, 1)), one == 0)
    term = BodyContact(
        carrier=np.zeros(1, dtype=np.int64), rigid=np.ones(1, dtype=bool), arm=np.zeros((1, 3)),
        radius=np.array([radius]), scale=np.ones(1), group=np.zeros(1, dtype=np.int64), centre=np.full((1, 3), -1),
        kind=np.array([kind]), size=np.array([size], dtype=float), shape_carrier=np.array([-1]),
        shape_group=one[0], owner=one[0], shape_owner=one[0] + 1,
        rotation=np.eye(3)[None], position=np.zeros((1, 3)), velocity=np.zeros((1, 3)),
        shape_centre=np.full((1, 3), -1), pairs=pairs, law=FrictionLaw.LINEAR,
    )  # fmt: skip
    q = np.concatenate([state.get("x", np.zeros(3)), np.zeros(3)])
    v = np.concatenate([state.get("v", np.zeros(3)), state.get("omega", np.zeros(3))])
    return term, Kinematics(q, v, np.zeros(6), 0.0, 0), np.array([1e3, 0.0, 1e4, c_f])


def test_rolling_ball_has_no_friction():
    term, kin, theta = ball(PLANE, (0, 0, 0), x=[0.0, 0.0, 0.19], v=[1.0, 0.0, 0.0], omega=[0.0, 5.0, 0.0])
    np.testing.assert_allclose(term.forces(kin, theta), [0, 0, 10.0, 0, 0, 0], atol=1e-9)
    # Sliding to +x: friction to -x at the bottom, which turns the ball about +y.
    slide = replace(kin, v=np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(term.forces(slide, theta), [-5.0, 0, 10.0, 0, 5.0 * 0.2, 0], atol=1e-9)


def test_ball_on_an_edge_and_a_corner():
    """Beyond the faces the normal points from the nearest place of the box to the centre."""
    n = np.array([0.6, 0.8, 0.0])
    term, kin, theta = ball(BOX, (0.5, 0.4, 0.3), x=[*(np.array([0.5, 0.4]) + 0.15 * n[:2]), 0.1])
    np.testing.assert_allclose(term.forces(kin, theta)[:3], 1e3 * 0.05 * n, atol=1e-9)
    n = np.array([2.0, 3.0, 6.0]) / 7.0
    term, kin, theta = ball(BOX, (0.5, 0.4, 0.3), x=np.array([0.5, 0.4, 0.3]) + 0.15 * n)
    np.testing.assert_allclose(term.forces(kin, theta)[:3], 1e3 * 0.05 * n, atol=1e-9)
    term, kin, theta = ball(BOX, (0.5, 0.4, 0.3), x=np.array([0.5, 0.4, 0.3]) + 0.19 * np.ones(3))
    assert not term.decide(kin, theta).size  # nearer than the radius to each face's plane, but not to the box


def test_two_balls_along_their_line():
    """A ball of radius r on a sphere of radius s is a point on a sphere of radius r + s."""
    for x in ([0.6, 0.0, 0.0], [0.3, -0.4, 0.3]):
        term, kin, theta = ball(SPHERE, (0.5, 0.0, 0.0), x=x)
        distance_ = np.linalg.norm(x)
        expected = 1e3 * (0.7 - distance_) * np.array(x) / distance_
        np.testing.assert_allclose(term.forces(kin, theta), [*expected, 0, 0, 0], atol=1e-9)


def test_far_apart_parameters_cannot_matter():
    scene = crowd()
    q = scene.kin.q.copy()
    for k, s in enumerate((*STARTS, *NODES)):
        q[s : s + 3] += 100.0 * (k + 1)
    c = scene.contact
    world = c.shape_carrier < 0
    far = replace(c, position=np.where(world[:, None], 1e4 * np.array([1.0, -1.0, 0.5]), c.position))
    rotation = far.rotation.copy()
    rotation[0] = np.eye(3)  # the plane lies far below
    position = far.position.copy()
    position[0] = 0.0, 0.0, -1e4
    far = replace(far, rotation=rotation, position=position)
    theta = scene.theta.copy()
    theta[: 4 * c.pairs.k_n.size] = np.inf
    kin = replace(scene.kin, q=q)
    assert not far.forces(kin, theta).any()
    assert far.energy(kin, theta) == 0.0


def everything(scene):
    c, kin, theta = scene.contact, scene.kin, scene.theta
    rng = np.random.default_rng(3)
    codes = c.decide(kin, theta)
    branch = c.on_branch(codes)
    rows, _ = branch.pattern()
    data, bar, dot = np.zeros(rows.size), np.zeros(theta.size), np.zeros(N)
    branch.jacobian(kin, theta, Weights(0.7, 1.3, 0.0), data, np.arange(rows.size))
    branch.parameter_vjp(kin, theta, rng.normal(size=N), bar)
    branch.parameter_jvp(kin, theta, rng.normal(size=theta.size), dot)
    return (
        c.forces(kin, theta),
        codes,
        data,
        bar,
        dot,
        np.array([c.energy(kin, theta)]),
        c.places(kin, theta, codes).place,
    )


LAWS = (FrictionLaw.LINEAR, FrictionLaw.TANH)


def test_compiled_equals_interpreted(tmp_path):
    """Indices outside arrays are errors in plain Python alone; a process of its own has no compiled function."""
    place = tmp_path / "interpreted.npz"
    path = os.pathsep.join(sys.path)
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PLACE": str(place)}
    command = [sys.executable, "-c", "from kernels import test_body_contact; test_body_contact.write_everything()"]
    subprocess.run(command, env=environment, check=True)
    interpreted = np.load(place)
    for law in LAWS:
        compiled = everything(crowd(law, n_points=3))
        assert compiled[1].shape[0] > 10
        for k, part in enumerate(compiled):
            np.testing.assert_allclose(interpreted[f"{law.name}{k}"], part, rtol=1e-11, atol=1e-11)


def write_everything():
    """Write `everything` of both laws to the file that the environment names."""
    assert not hasattr(contact_bodies.body_contact_force, "py_func")
    parts = {f"{law.name}{k}": part for law in LAWS for k, part in enumerate(everything(crowd(law, n_points=3)))}
    np.savez(os.environ["PLACE"], **parts)
