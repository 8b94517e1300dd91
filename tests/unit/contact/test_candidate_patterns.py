"""Patterns over candidates: what may touch within a step, a function of the state before it."""

from dataclasses import replace

import numpy as np
import pytest
from support.body_scene import crowd

from add.contact.sparsity import union
from add.equations.kinematics import Weights

DT = 0.02


def moved(scene, dt):
    """Return the state after a straight motion of ``dt``."""
    return replace(scene.kin, q=scene.kin.q + dt * scene.kin.v)


def dense(branch, scene, kin):
    """Return the weighted derivatives of a branch as a full matrix."""
    rows, cols = branch.pattern()
    values = np.zeros(rows.size)
    branch.jacobian(kin, scene.theta, Weights(1.0, 3.0, 0.0), values, np.arange(rows.size))
    out = np.zeros((kin.q.size, kin.q.size))
    np.add.at(out, (rows, cols), values)
    return out


@pytest.fixture
def scene():
    """Bodies and nodes that overlap, some of them about to part and some about to meet."""
    made = crowd()
    kin = made.kin
    away = kin.q.copy()
    away[:3] += 3.0  # a node that comes back fast
    v = kin.v.copy()
    v[:3] = -3.0 / (1.5 * DT)
    return replace(made, kin=replace(kin, q=away, v=v))


def test_what_touches_within_a_step_is_a_candidate(scene):
    contact, kin = scene.contact, scene.kin
    near = contact.candidates(kin, scene.theta, DT)
    now = contact.blocks.keys(contact.decide(kin, scene.theta))
    later = contact.blocks.keys(contact.decide(moved(scene, 1.5 * DT), scene.theta))
    assert not np.isin(later, now).all(), "nothing new touches"
    assert np.isin(now, near).all() and np.isin(later, near).all()
    assert (np.diff(near) > 0).all()


def test_a_body_far_away_and_slow_is_none(scene):
    contact, kin = scene.contact, scene.kin
    v = kin.v.copy()
    v[:3] = 0.0
    near = contact.candidates(replace(kin, v=v), scene.theta, 1e-6)
    assert near.size < contact.candidates(kin, scene.theta, DT).size


def test_candidates_share_a_pattern_and_change_no_number(scene):
    contact = scene.contact
    near = contact.candidates(scene.kin, scene.theta, DT)
    keys = set()
    for kin in (scene.kin, moved(scene, DT), moved(scene, 1.5 * DT)):
        decision = contact.decide(kin, scene.theta)
        branch = contact.on_branch(decision, near)
        keys.add(contact.structure(decision, near))
        np.testing.assert_array_equal(dense(branch, scene, kin), dense(contact.on_branch(decision), scene, kin))
        assert branch.pattern()[0].size >= contact.on_branch(decision).pattern()[0].size
    assert keys == {near.tobytes()}


def test_a_branch_that_leaves_the_candidates_has_its_own_blocks_too(scene):
    contact = scene.contact
    kin = moved(scene, 1.5 * DT)
    decision = contact.decide(kin, scene.theta)
    needed = contact.blocks.keys(decision)
    few = needed[1:]
    branch = contact.on_branch(decision, few)
    assert contact.structure(decision, few) == needed.tobytes()
    np.testing.assert_array_equal(dense(branch, scene, kin), dense(contact.on_branch(decision), scene, kin))


def test_union():
    keys = np.array([1, 4, 6])
    assert union(keys, np.array([4])) is keys and union(keys, keys[:0]) is keys
    assert union(keys, np.array([0, 6, 9])).tolist() == [0, 1, 4, 6, 9]
