"""Lengths of paths around spheres and cylinders: against closed forms, their slopes against differences."""

import numpy as np
import pytest

from add.kernels.paths import CYLINDER, SPHERE, STRAIGHT, path_length


def length(q, kind, side, radius=0.4, weight=0.7):
    segments = np.array([[kind, 0, 1, 2, 3 if kind == CYLINDER else -1, 4 if side else -1]])
    g, bent = np.empty(15), np.empty((15, 15))
    return path_length(q, 3 * np.arange(5), segments, np.array([[weight, radius]]), g, bent), g, bent


@pytest.mark.parametrize("kind", [SPHERE, CYLINDER])
@pytest.mark.parametrize("side", [False, True])
def test_two_tangents_and_an_arc(kind, side):
    """Tangents of length 1; along a cylinder the way of a helix. A point of the side asks for the arc past it."""
    r, along, arc = 0.4, 0.5 * (kind == CYLINDER), np.pi / 2 if side else np.pi / 6
    c, s = np.cos(arc), np.sin(arc)
    q = np.array([r, -1, 0, r * c - s, r * s + c, along, 0, 0, 0, 0, 0, 1, 1, 1, 0])
    assert length(q, kind, side, r, 1.0)[0] == pytest.approx(np.hypot(2 + r * arc, along), rel=1e-12)
    straight = np.linalg.norm(q[:3] - q[3:6])
    assert (length(q, kind, False, r, 1.0)[0] == pytest.approx(straight, rel=1e-12)) == side
    q[:3] = 0.1, 0.1, 0.0  # an end inside
    assert length(q, kind, side, r, 1.0)[0] == pytest.approx(np.linalg.norm(q[:3] - q[3:6]), rel=1e-14)


@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("kind", [STRAIGHT, SPHERE, CYLINDER])
def test_slopes(kind, side, rng):
    """By all points, at places where the path touches and where not, but for those at a switch."""
    counts, h = [0, 0], 1e-6
    for _ in range(120):
        q = rng.normal(size=15)
        q[9:12] = q[6:9] + q[9:12] / np.linalg.norm(q[9:12])
        l, g, bent = length(q, kind, side)
        ends = [[length(q + sign * h * unit, kind, side) for unit in np.eye(15)] for sign in (1, -1)]
        touches = abs(l - 0.7 * np.linalg.norm(q[:3] - q[3:6])) > 1e-4
        if max(abs(found[0] - l) for part in ends for found in part) > 1e-4 or np.abs(bent).max() > 30.0:
            continue  # across a switch, or next to the surface
        slopes = np.array([(a[0] - b[0]) / (2 * h) for a, b in zip(*ends, strict=True)])
        twice = np.array([(a[1] - b[1]) / (2 * h) for a, b in zip(*ends, strict=True)])
        assert g == pytest.approx(slopes, abs=1e-7)
        assert bent == pytest.approx(twice, abs=2e-5 * max(1.0, np.abs(bent).max()))
        counts[int(touches)] += 1
    assert counts[0] > 30 and (counts[1] > 0) == (kind != STRAIGHT)
