"""Random steps of contact between boxes, as arrays: a metric, free velocities, rows, bias and friction."""

from dataclasses import dataclass

import numpy as np

from add.cones import Cones, ContactStep, DenseMetric


@dataclass(frozen=True)
class RandomStep:
    """A step and the properties by which a collection of them is judged.

    ``redundant``: more rows than coordinates can tell apart; ``ratio``: largest over least mass; ``impact``: some
    contact has a restitution.
    """

    metric: np.ndarray
    step: ContactStep
    redundant: bool
    ratio: float
    mu: float
    impact: bool


def _face(size, axis, sign):
    """Corners of one face of a box (4, 3)."""
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    corners = np.empty((4, 3))
    corners[:, axis] = sign * size[axis]
    others = [k for k in range(3) if k != axis]
    corners[:, others] = signs * size[others]
    return corners


def random_step(rng: np.random.Generator) -> RandomStep:
    """A pile of 1 to 8 boxes that stand on each other, side by side or apart, hit the floor or slide on it."""
    n = int(rng.integers(1, 9))
    masses = 10.0 ** rng.uniform(-2.0, 2.0, n) if rng.random() < 0.5 else rng.uniform(0.5, 2.0, n)
    size = rng.uniform(0.05, 0.2, (n, 3))
    dt, gravity = 0.005, np.array([0.0, 0.0, -9.81])
    metric = np.zeros((6 * n, 6 * n))
    free = np.zeros(6 * n)
    before = np.zeros(6 * n)
    moving = rng.random() < 0.7
    for b in range(n):
        squares = (2.0 * size[b]) ** 2
        metric[6 * b : 6 * b + 3, 6 * b : 6 * b + 3] = masses[b] * np.eye(3)
        inertia = masses[b] / 12.0 * (squares.sum() - squares)
        metric[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6] = np.diag(inertia)
        if moving:
            before[6 * b : 6 * b + 6] = rng.normal(size=6) * np.array([1, 1, 0.3, 2, 2, 2]) * 10.0 ** rng.uniform(-2, 0)
        free[6 * b : 6 * b + 3] = dt * gravity
    free += before
    rows, parents = [], [-1]
    for b in range(1, n):
        parents.append(b - 1 if rng.random() < 0.7 else -1)
    for b in range(n):
        corners = _face(size[b], 2, -1)
        count = int(rng.choice([1, 2, 3, 4, 4, 4]))
        normal = np.array([0.0, 0.0, 1.0])
        if rng.random() < 0.2:
            normal = normal + 0.3 * rng.normal(size=3)
            normal /= np.linalg.norm(normal)
        for arm in corners[rng.permutation(4)[:count]]:
            rows.append(_contact(n, b, parents[b], arm, size, normal))
    J = np.concatenate(rows)
    k = J.shape[0] // 3
    mu = np.full(k, rng.uniform(0.0, 1.5)) if rng.random() < 0.7 else rng.uniform(0.0, 1.5, k)
    bias = np.zeros(3 * k)
    impact = bool(rng.random() < 0.3)
    if impact:
        approach = (J @ before)[2::3]
        bias[2::3] = np.where(approach < 0.0, rng.uniform(0.0, 1.0) * approach, 0.0)
    step = ContactStep(DenseMetric(metric), free, J, bias, Cones.friction(mu))
    redundant = bool(np.linalg.matrix_rank(J) < J.shape[0])
    return RandomStep(metric, step, redundant, float(masses.max() / masses.min()), float(mu.max()), impact)


def _contact(n, body, parent, arm, size, normal):
    """Rows (3, 6 n) of one contact point: t_1, t_2, n."""
    helper = np.eye(3)[np.argmin(np.abs(normal))]
    t_1 = np.cross(normal, helper)
    t_1 /= np.linalg.norm(t_1)
    axes = np.stack([t_1, np.cross(normal, t_1), normal])
    out = np.zeros((3, 6 * n))
    out[:, 6 * body : 6 * body + 3] = axes
    out[:, 6 * body + 3 : 6 * body + 6] = np.cross(arm, axes)
    if parent >= 0:
        below = arm.copy()
        below[2] = size[parent, 2]
        out[:, 6 * parent : 6 * parent + 3] = -axes
        out[:, 6 * parent + 3 : 6 * parent + 6] = -np.cross(below, axes)
    return out
