"""Distances between primitives of meshes against tables made with automatic derivatives and 50 digits."""

import numpy as np
import pytest
from support.reference_tables import table

from add.kernels.stencil import (
    EDGE_END,
    EDGES,
    END_EDGE,
    ENDS,
    FACE,
    FACE_EDGE,
    FACE_VERTEX,
    N_REGIONS,
    NORMAL,
    WAYS,
    across,
    edge_cross_square,
    edges_region,
    face_region,
    mollifier,
    stencil,
)

NAMES = {"P_T": FACE, "EA_EB": EDGES, "EA0_EB": END_EDGE, "EA1_EB": END_EDGE + 1, "EA_EB0": EDGE_END}
NAMES |= {"EA_EB1": EDGE_END + 1} | {f"P_E{k}": FACE_EDGE + k for k in range(3)}
NAMES |= {f"P_T{k}": FACE_VERTEX + k for k in range(3)}
NAMES |= {f"EA{a}_EB{b}": ENDS + 2 * a + b for a in range(2) for b in range(2)}


def distance(region: int, x: np.ndarray, n: int = 4) -> tuple[float, np.ndarray, np.ndarray]:
    """Return d, its gradient and Hessian."""
    c, g, P, Q = np.zeros(4), np.zeros((4, 4)), np.zeros((9, 3)), np.zeros((3, 3))
    d, free = stencil(region, x, n, 2, c, g, P)
    across(free, d, P, Q)
    normal, ways = P[NORMAL], P[WAYS : WAYS + 4]
    bent = np.einsum("i,j,ab->jaib", c, c, Q) - np.einsum("ij,a,b->jaib", g * d, normal, normal)
    bent -= np.einsum("j,ia,b->jaib", c, ways, normal) + np.einsum("i,a,jb->jaib", c, normal, ways)
    bent[n:], bent[:, :, n:] = 0.0, 0.0
    return d, np.outer(c, normal).ravel(), bent.reshape(12, 12)


def test_distances_in_all_regions() -> None:
    cases = table("distances.npz")
    seen = set()
    for kind, name, tag, x, square, gradient, hessian in zip(
        *(cases[key] for key in ("kind", "region", "tag", "x", "squared_distance", "gradient", "hessian")), strict=True
    ):
        region = face_region(x) if kind == "pt" else edges_region(x)
        if tag != "parallel, overlapping":  # there several regions are as near
            assert region == NAMES[str(name)], f"{tag}: {name}"
        seen.add(region)
        d, by_x, by_xx = distance(region, x)
        assert abs(d * d - square) <= 1e-13 * square, tag
        # Slivers and nearly parallel edges lose digits in derivatives, in the table as here.
        bound = {"sliver triangle of height 1e-06": 1e-4, "nearly parallel, angle 1e-06": 1e-9}.get(tag, 1e-12)
        assert np.abs(2.0 * d * by_x - gradient).max() <= bound * np.abs(gradient).max(), tag
        found = 2.0 * (np.outer(by_x, by_x) + d * by_xx)
        assert np.abs(found - hessian).max() <= bound * np.abs(hessian).max(), tag
    assert seen == set(range(N_REGIONS))


def test_mollifier() -> None:
    cases = table("mollifier.npz")
    below = 0
    for rest, x, eps, value, gradient, hessian in zip(
        *(cases[key] for key in ("rest", "x", "eps", "value", "gradient", "hessian")), strict=True
    ):
        ends = rest[1] - rest[0], rest[3] - rest[2]
        assert np.isclose(1e-3 * (ends[0] @ ends[0]) * (ends[1] @ ends[1]), eps, rtol=1e-14)
        by_x, by_xx = np.zeros((4, 3)), np.zeros((12, 12))
        if edge_cross_square(x) >= eps:
            assert value == 1.0
            continue
        below += 1
        assert abs(mollifier(x, eps, 2, by_x, by_xx) - value) <= 1e-14
        assert np.abs(by_x.ravel() - gradient).max() <= 1e-14 * np.abs(gradient).max()
        assert np.abs(by_xx - hessian).max() <= 1e-14 * np.abs(hessian).max()
    assert below >= 10


@pytest.mark.parametrize("region", [FACE, EDGES])
def test_inside_nothing_grows_as_the_distance_goes_to_zero(region: int) -> None:
    x = np.array([[0.2, 0.3, 0.0], [0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    if region == EDGES:
        x = np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0]])
    far = x.copy()
    far[: 1 if region == FACE else 2, 2] = 1e-3
    flat, away = distance(region, x), distance(region, far)
    assert flat[0] == 0.0 and np.isclose(away[0], 1e-3)
    assert np.allclose(np.abs(flat[1]), np.abs(away[1]), atol=1e-12)
    assert np.isfinite(flat[2]).all() and np.abs(flat[2]).max() < 10.0


def test_crossing_and_distance_zero_of_points_have_a_direction() -> None:
    x = np.zeros((4, 3))
    d, by_x, by_xx = distance(FACE_VERTEX, x, 2)
    assert d == 0.0 and np.isfinite(by_x).all() and np.isfinite(by_xx).all() and np.abs(by_x).sum() == 2.0


def test_hessian_moves_with_rotations() -> None:
    rng = np.random.default_rng(5)
    for region in range(N_REGIONS):
        x = rng.normal(size=(4, 3))
        _, by_x, by_xx = distance(region, x)
        spin = rng.normal(size=3)
        turned = np.cross(spin, x).ravel()
        assert np.allclose(by_xx @ turned, np.cross(spin, by_x.reshape(4, 3)).ravel(), atol=1e-9 * np.abs(by_xx).max())
        assert np.allclose(by_x @ turned, 0.0, atol=1e-12)
