"""Points between nodes against differences."""

from dataclasses import replace

import numpy as np
import pytest
from support.concrete import concrete

from add.equations.kinematics import Kinematics
from add.equations.points import LiftedPoints, LinearPoints, NodePoints, PointMap, WeightedPoints
from add.equations.sites import SitePoints
from add.testing import check_pullback

POINT_MAPS: dict[str, LinearPoints] = {
    "nodes": NodePoints(np.array([1, 4, 2])),
    "weighted": WeightedPoints(
        np.array([[0, 1, 2], [3, 4, 3], [1, 2, 5]]), np.array([[0.2, 0.5, 0.3], [0.7, 0.3, -0.4], [1.2, 0.0, -0.2]])
    ),
}


def test_every_map_has_a_case() -> None:
    linear = {type(points) for points in POINT_MAPS.values()}
    assert concrete(PointMap) == linear | {SitePoints, LiftedPoints}  # in test_rigid, test_lift


@pytest.mark.parametrize("name", POINT_MAPS)
def test_point_map(name: str, rng: np.random.Generator) -> None:
    points = POINT_MAPS[name]
    n, m = 18, 3 * points.n_points
    kin = Kinematics(rng.normal(size=n), rng.normal(size=n), np.zeros(n), 0.2, 3)
    rows, cols, values = points.entries()
    jacobian = np.zeros((m, n))
    np.add.at(jacobian, (rows, cols), values)
    _, v = points.points(kin, kin.q)
    np.testing.assert_allclose(v.ravel(), jacobian @ kin.v, atol=1e-14)

    def place(q: np.ndarray) -> np.ndarray:
        return points.points(replace(kin, q=q), q)[0].ravel()

    def pull(q: np.ndarray, bar: np.ndarray) -> np.ndarray:
        out = np.full(n, 2.0)
        points.pull(bar.reshape(-1, 3), out)
        return out - 2.0

    found = check_pullback(place, lambda q, dot: jacobian @ dot, pull, kin.q, rng=rng, scale=1.0)
    np.testing.assert_allclose(found, jacobian)
