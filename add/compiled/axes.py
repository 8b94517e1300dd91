"""Laws of single coordinates of trees and of their balls: forces, derivatives by the state and by theta."""

from __future__ import annotations

import numpy as np

from add.compiled.arrays import (
    AXIS_COUNT,
    AXIS_FIRST,
    AXIS_INPUTS,
    AXIS_LAW,
    AXIS_NUMBERS,
    AXIS_SIGNAL,
    AXIS_WIDTH,
    BALLS,
)
from add.kernels.borrowed import borrowed
from add.kernels.caching import CALLED, njit
from add.kernels.joint_laws import COLUMNS, DRIVE, axis_law, ball_derivatives, ball_forces


@njit(**CALLED)
def _input(axes, k, at):
    """Return the signal of a drive."""
    row, start, width = at.signals.table[axes.table[k, AXIS_SIGNAL]]
    first, value = axes.table[k, AXIS_INPUTS] + row, 0.0
    for j in range(width):
        value += at.signals.weights[start + j] * at.theta[axes.inputs[first + j]]
    return value


@njit(**CALLED)
def axis_slopes(axes, k, i, at, p, out):
    """Fill r of coordinate ``i`` of term ``k`` and its slopes (7,), and its numbers p (4,); return the coordinate."""
    row = axes.table[k]
    place, width = axes.dof[row[AXIS_FIRST] + i], row[AXIS_WIDTH]
    first, shift = row[AXIS_NUMBERS] + i * width, 0
    if row[AXIS_LAW] == DRIVE:
        p[0], shift = _input(axes, k, at), 1
    for j in range(width):
        p[shift + j] = at.theta[axes.numbers[first + j]]
    axis_law(row[AXIS_LAW], at.q[place], at.v[place], p, axes.constants[row[AXIS_FIRST] + i], out)
    return place


@njit(**CALLED)
def _balls(axes, k):
    """Return first coordinates, and indices of damping and armature, of a term of balls."""
    row = axes.table[k]
    n, first = row[AXIS_COUNT], row[AXIS_NUMBERS]
    numbers = borrowed(axes.numbers, first, (n, 2))
    return borrowed(axes.dof, row[AXIS_FIRST], (n,)), numbers[:, 0], numbers[:, 1]


@njit(**CALLED)
def axis_forces(axes, k, at, out):
    """Add the forces of term ``k`` to ``out`` (n,)."""
    if axes.table[k, AXIS_LAW] == BALLS:
        first, damping, armature = _balls(axes, k)
        found = np.empty((first.size, 2, 3))
        ball_forces(first, at.q, at.v, at.a, found)
        for i in range(first.size):
            for c in range(3):
                out[first[i] + c] += at.theta[damping[i]] * found[i, 0, c] + at.theta[armature[i]] * found[i, 1, c]
        return
    p, found_one = np.zeros(4), np.empty(COLUMNS)
    for i in range(axes.table[k, AXIS_COUNT]):
        place = axis_slopes(axes, k, i, at, p, found_one)
        out[place] += found_one[0]


@njit(**CALLED)
def axis_jacobian(axes, at, weight_q, weight_v, weight_a, data):
    """Add the weighted derivatives of all terms to ``data`` (n n,), by columns."""
    p, found, n = np.zeros(4), np.empty(COLUMNS), at.q.size
    for k in range(axes.table.shape[0]):
        if axes.table[k, AXIS_LAW] == BALLS:
            first, damping, armature = _balls(axes, k)
            blocks = np.empty((first.size, 3, 3))
            weights = (weight_q, weight_v, weight_a)
            ball_derivatives(at.theta, first, damping, armature, at.q, at.v, at.a, weights, blocks)
            for i in range(first.size):
                for r in range(3):
                    for c in range(3):
                        data[(first[i] + c) * n + first[i] + r] += blocks[i, r, c]
        elif weight_q != 0.0 or weight_v != 0.0:
            for i in range(axes.table[k, AXIS_COUNT]):
                place = axis_slopes(axes, k, i, at, p, found)
                data[place * n + place] += weight_q * found[1] + weight_v * found[2]


@njit(**CALLED)
def axis_parameters(axes, at, lam, out):
    """Add lam^T dr/dtheta of all terms to ``out`` (n_theta,)."""
    p, found = np.zeros(4), np.empty(COLUMNS)
    for k in range(axes.table.shape[0]):
        row = axes.table[k]
        if row[AXIS_LAW] == BALLS:
            first, damping, armature = _balls(axes, k)
            forces = np.empty((first.size, 2, 3))
            ball_forces(first, at.q, at.v, at.a, forces)
            for i in range(first.size):
                for c in range(3):
                    out[damping[i]] += lam[first[i] + c] * forces[i, 0, c]
                    out[armature[i]] += lam[first[i] + c] * forces[i, 1, c]
            continue
        for i in range(row[AXIS_COUNT]):
            place, shift = axis_slopes(axes, k, i, at, p, found), 0
            if row[AXIS_LAW] == DRIVE:
                shift = 1
                begin, start, width = at.signals.table[row[AXIS_SIGNAL]]
                for j in range(width):
                    index = axes.inputs[row[AXIS_INPUTS] + begin + j]
                    out[index] += lam[place] * found[3] * at.signals.weights[start + j]
            for j in range(row[AXIS_WIDTH]):
                index = axes.numbers[row[AXIS_NUMBERS] + i * row[AXIS_WIDTH] + j]
                out[index] += lam[place] * found[3 + shift + j]
