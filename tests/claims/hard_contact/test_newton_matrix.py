"""Gaps, velocities and the balance of forces of one pair against differences, on every branch and shape."""

from dataclasses import replace

import numpy as np
import pytest
from support.hard_contact_cases import SHAPES, OnePair

from add.hard_contact import Branch
from add.hard_contact.equations import Iterate
from add.hard_contact.geometry import touches
from add.kernels.rotation import left_jacobian

H = 1e-6
FIRST = np.zeros(1, dtype=np.int64)


@pytest.fixture(params=list(SHAPES))
def shape(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[False, True], ids=["world", "body"])
def hosted(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.mark.parametrize(("rigid", "radius"), [(False, 0.0), (True, 0.0), (True, 0.04)], ids=["node", "point", "ball"])
def test_geometry(shape: str, hosted: bool, rigid: bool, radius: float, rng: np.random.Generator) -> None:
    pair = OnePair.of(shape, rigid=rigid, radius=radius, rng=rng, hosted=hosted)
    step, pairs, n = pair.step, pair.step.pairs, pair.u.size
    force = rng.normal(size=(1, 3))

    def at(u: np.ndarray):
        return touches(pairs, step.equations.kinematics(u), step.theta)

    def push(u: np.ndarray) -> np.ndarray:
        out = np.zeros(n)
        at(u).add_forces(force, out)
        return out

    here = at(pair.u)
    by = here.by_coordinates(step.equations.c, force)
    bent = by.pushed[0]
    has = pair.columns >= 0
    assert has.sum() == (6 if rigid else 3) + (6 if hosted else 0)
    assert not by.push[0][~has].any()
    np.testing.assert_allclose((by.push[0] @ force[0])[has], push(pair.u)[pair.columns[has]], atol=1e-14)
    for k in np.flatnonzero(has):
        e = np.zeros(n)
        e[pair.columns[k]] = H
        plus, minus = at(pair.u + e), at(pair.u - e)

        def slope(value, plus=plus, minus=minus) -> np.ndarray:
            return (value(plus) - value(minus))[0] / (2.0 * H)

        assert slope(lambda x: x.gap) == pytest.approx(by.gap[0, k], abs=1e-8)
        np.testing.assert_allclose(slope(lambda x: x.normal), by.normal[0, :, k], atol=1e-7)
        np.testing.assert_allclose(slope(lambda x: x.velocity), by.velocity[0, :, k], rtol=1e-7, atol=1e-6)
        numeric = (push(pair.u + e) - push(pair.u - e))[pair.columns[has]] / (2.0 * H)
        np.testing.assert_allclose(bent[has, k], numeric, atol=1e-8)
    if rigid or hosted:
        assert np.abs(bent).max() > 1e-3
    # Virtual work: relative velocities are the transposed push, but for the way a sphere or the world moves.
    kin = step.equations.kinematics(pair.u)
    v = pair.moving(rng)
    still, moved = (touches(pairs, replace(kin, v=x), step.theta) for x in (np.zeros(n), v))
    assert (moved.velocity - still.velocity)[0] @ force[0] == pytest.approx(v @ push(pair.u), rel=1e-11)


def test_opposite_forces(shape: str, rng: np.random.Generator) -> None:
    """Between two bodies neither a force nor a torque is left over."""
    pair = OnePair.of(shape, rigid=True, radius=0.04, rng=rng, hosted=True)
    kin = pair.step.equations.kinematics(pair.u)
    at = touches(pair.step.pairs, kin, pair.step.theta)
    out = np.zeros(12)
    at.add_forces(rng.normal(size=(1, 3)), out)
    torques = [np.linalg.solve(left_jacobian(kin.q[k : k + 3]).T, out[k : k + 3]) for k in (3, 9)]
    np.testing.assert_allclose(out[:3], -out[6:9], atol=1e-15)
    whole = np.cross(kin.q[:3], out[:3]) + np.cross(kin.q[6:9], out[6:9]) + sum(torques)
    assert np.abs(torques[0]).max() > 0.01
    np.testing.assert_allclose(whole, 0.0, atol=1e-13)


@pytest.mark.parametrize("branch", list(Branch))
@pytest.mark.parametrize(("rigid", "radius"), [(False, 0.0), (True, 0.04)], ids=["node", "ball"])
def test_whole_residual(
    shape: str, hosted: bool, rigid: bool, radius: float, branch: Branch, rng: np.random.Generator
) -> None:
    """r - G^T F and phi along random (du, dF), the contact staying on its branch."""
    pair = OnePair.of(shape, rigid=rigid, radius=radius, rng=rng, hosted=hosted)
    step = pair.step
    probe = Iterate(step, pair.u, np.zeros(0), np.zeros((1, 3)))
    n, gap, v_t = probe.at.normal[0], probe.at.gap[0], probe.at.tangential_velocity[0]
    lift = step.rho_n[0] * gap
    tangential = np.cross(n, rng.normal(size=3))
    # Forces that put the pair well inside the branch, given where it is and how fast.
    if branch is Branch.SEPARATE:
        force = (lift - 5.0) * n + tangential
    elif branch is Branch.STICK:
        force = (lift + 10.0) * n + step.rho_t[0] * v_t + tangential
    else:
        force = (lift + 2.0) * n - 40.0 * v_t / np.linalg.norm(v_t) + step.rho_t[0] * v_t
    point = Iterate(step, pair.u, np.zeros(0), force[None])
    assert point.branch.tolist() == [branch]

    du, df = pair.moving(rng), rng.normal(size=(1, 3))
    ends = [Iterate(step, pair.u + s * H * du, np.zeros(0), point.force + s * H * df) for s in (1.0, -1.0)]
    assert all(end.branch.tolist() == [branch] for end in ends)
    by = point.at.by_coordinates(step.equations.c, point.force)
    by_u, by_force = step.law_rows(point, by, FIRST)
    has = pair.columns >= 0
    phi_dot = by_u[0][:, has] @ du[pair.columns[has]] + by_force[0] @ df[0]
    r_dot = step.tangent(point, by, FIRST) @ du
    np.subtract.at(r_dot, pair.columns[has], by.push[0][has] @ df[0])
    scale = np.abs(phi_dot).max()
    numeric = (ends[0].phi - ends[1].phi)[0] / (2.0 * H)
    # Around a corner 5 cm away the third derivatives are large.
    np.testing.assert_allclose(phi_dot, numeric, atol=2e-6 * scale + 1e-9)
    numeric = (ends[0].r - ends[1].r) / (2.0 * H)
    np.testing.assert_allclose(r_dot, numeric, rtol=1e-6, atol=1e-7 * np.abs(r_dot).max())


@pytest.mark.parametrize("branch", list(Branch))
def test_direction_solves_the_linear_equations(branch: Branch, hosted: bool, rng: np.random.Generator) -> None:
    pair = OnePair.of("sphere", rigid=True, radius=0.04, rng=rng, hosted=hosted)
    step = pair.step
    lift = {Branch.SEPARATE: -1e5, Branch.STICK: 1e5, Branch.SLIP: 0.1}[branch]
    probe = Iterate(step, pair.u, np.zeros(0), np.zeros((1, 3)))
    force = (lift + step.rho_n[0] * probe.at.gap[0]) * probe.at.normal
    point = Iterate(step, pair.u, np.zeros(0), force)
    assert point.branch.tolist() == [branch]
    du, df = step.direction(point)
    by = point.at.by_coordinates(step.equations.c, point.force)
    by_u, by_force = step.law_rows(point, by, FIRST)
    has = pair.columns >= 0
    balance = (
        point.r + (step.tangent(point, by, FIRST) if branch else step.matrix(point.kin, point.mu, point.smooth)) @ du
    )
    np.subtract.at(balance, pair.columns[has], by.push[0][has] @ df[0])
    np.testing.assert_allclose(balance, 0.0, atol=1e-9 * np.abs(point.r).max())
    law = point.phi[0] + by_u[0][:, has] @ du[pair.columns[has]] + by_force[0] @ df[0]
    np.testing.assert_allclose(law, 0.0, atol=1e-9 * np.abs(point.phi).max())
