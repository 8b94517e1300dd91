"""Rules of ties: every subclass against central differences, and the answers that are known."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import add.geometry
import add.ties
from add.kernels.rotation import rotation_matrix
from add.kernels.trees import BALL, FIXED, HINGE, Tree
from add.ties import (
    AxesAcross,
    Begun,
    CarriedDirection,
    DampingFromRestitution,
    Distance,
    FlatLoss,
    LameFromYoung,
    Line,
    LinkPose,
    PlaceOnOther,
    PoseOnOther,
    Rule,
    SolidMass,
    TiltedDirection,
    TiltVector,
    WeightedSum,
    axes_across,
    tilt_between,
    unit_vector,
)

D = np.array([0.48, -0.6, 0.64])
TILT = np.concatenate([[0.3, -1.1], D, axes_across(D).ravel()])
POSES = np.array([0.1, -0.4, 0.7, 0.3, 1.2, -0.5, 0.2, 0.9, -0.3, 1.5, 0.1, -0.2, -0.8, 0.4, 0.6])

#: A base that stands, a hinge and a ball; arguments: their placements, an angle, a rotation vector.
_NO, _THREE = np.full(3, -1), np.full((3, 3), -1)
TREE = Tree(
    parent=np.array([-1, 0, 1]), kind=np.array([FIXED, HINGE, BALL]), first=np.array([0, 0, 1]),
    axis=np.tile([0.6, 0.0, 0.8], (3, 1)), pitch=np.zeros(3), element=np.array([1, 2, 2, 2]),
    coordinate=np.arange(4), factor=np.ones(4), offset=np.zeros(4), placement=np.arange(18).reshape(3, 6),
    mass=_NO, centre=_THREE, inertia=np.full((3, 6), -1), armature=np.full(4, -1), gravity=np.zeros(3, dtype=np.int64),
)  # fmt: skip
LINK = np.concatenate([POSES, [0.3, -0.2, 0.5], [0.7], [0.4, -0.9, 0.3]])

RULE_CASES = {
    LinkPose: (LinkPose(TREE, 2, np.arange(18, 22)), np.stack([LINK, 0.7 * LINK[::-1]])),
    Begun: (Begun((0.3, 0.7), 2), np.array([[1.0, 2.0, 0.5, -0.5, 3.0, 4.0]])),
    Line: (Line((2.0, 0.0, -1.0), (0.5, 3.0, 0.0)), np.array([[2.0], [-0.3]])),
    PoseOnOther: (PoseOnOther(), np.stack([POSES, POSES[::-1]])),
    WeightedSum: (WeightedSum((2.0, -0.5, 3.0), 0.7), np.array([[2.0, 0.3, -1.0], [5.0, -0.2, 4.0]])),
    FlatLoss: (FlatLoss((0.3, 0.1, 0.03)), np.array([[0.1], [0.3]])),
    LameFromYoung: (LameFromYoung(), np.array([[2.0, 0.3], [5.0, -0.2]])),
    DampingFromRestitution: (DampingFromRestitution(2, False), np.array([[0.6, 10.0, 0.3, 0.8], [0.2, 4.0, 2.0, 1.0]])),
    TiltedDirection: (TiltedDirection(), np.stack([TILT, np.concatenate([[0.0, 0.0], TILT[2:]])])),
    TiltVector: (TiltVector(), np.stack([POSES[:8], POSES[7:15]])),
    CarriedDirection: (CarriedDirection(), np.stack([POSES[:9], POSES[6:15]])),
    # On both branches of the helper axis.
    AxesAcross: (AxesAcross(), np.array([[0.48, -0.6, 0.64], [0.96, 0.0, -0.28], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])),
    PlaceOnOther: (PlaceOnOther(), np.stack([POSES, POSES[::-1]])),
    SolidMass: (SolidMass("capsule", 0, 7, False), np.array([[500.0, 0.1, 0.3], [2.0, 0.4, 0.2]])),
    Distance: (Distance(), np.stack([np.append(POSES, [0.3, -0.1, 0.2]), np.append(POSES[::-1], [0.0, 0.0, 0.0])])),
}


def test_every_rule_has_a_case():
    """Of this room; that of links whose loops close is in `tests/claims/simulation/test_together.py`."""
    for module in pkgutil.iter_modules(add.ties.__path__, "add.ties."):
        importlib.import_module(module.name)
    rules = {kind for kind in Rule.__subclasses__() if not inspect.isabstract(kind)}
    assert {kind for kind in rules if kind.__module__.startswith("add.ties")} == set(RULE_CASES)


@pytest.mark.parametrize("case", RULE_CASES.values(), ids=[kind.__name__ for kind in RULE_CASES])
def test_derivative(case):
    rule, x = case
    found = rule.derivative(x)
    assert found.shape == (*rule.value(x).shape, x.shape[1])
    h = 1e-3
    for j in range(x.shape[1]):
        step = h * np.eye(x.shape[1])[j]
        near, far = (rule.value(x + k * step) - rule.value(x - k * step) for k in (1, 2))
        assert found[:, :, j] == pytest.approx((8 * near - far) / (12 * h), rel=1e-8, abs=1e-9)


def test_a_tilted_direction_is_a_unit_vector_and_its_tilt_comes_back(rng):
    for _ in range(20):
        d, target = (unit_vector(rng.normal(size=3)) for _ in range(2))
        t = tilt_between(d, target)
        found = TiltedDirection().value(np.concatenate([t, d, axes_across(d).ravel()])[None])[0]
        assert found == pytest.approx(target, abs=1e-14)
        assert np.linalg.norm(t) == pytest.approx(np.arccos(d @ target))
    assert tilt_between(d, d) == pytest.approx([0.0, 0.0])
    opposite = TiltedDirection().value(np.concatenate([tilt_between(d, -d), d, axes_across(d).ravel()])[None])[0]
    assert opposite == pytest.approx(-d, abs=1e-15)


@pytest.mark.parametrize("size", [1e300, 1e200, 1.0, 1e-200, 1e-300, 5e-324])
def test_a_direction_of_any_length_is_scaled(size):
    assert unit_vector(np.array([0.0, -size, 0.0])) == pytest.approx([0.0, -1.0, 0.0], abs=0.0)
    if size > 1e-300:
        assert unit_vector(size * np.array([3.0, 0.0, 4.0]) / 5.0) == pytest.approx([0.6, 0.0, 0.8], rel=1e-14)


def test_axes_across_make_a_right_handed_frame(rng):
    for d in [*np.eye(3), *(unit_vector(rng.normal(size=3)) for _ in range(20))]:
        frame = np.stack([*axes_across(d), d])
        assert frame @ frame.T == pytest.approx(np.eye(3), abs=1e-14)
        assert np.linalg.det(frame) == pytest.approx(1.0)
    assert axes_across(np.array([0.0, 0.0, 1.0])) == pytest.approx(np.eye(3)[:2])


def test_a_place_on_the_other_body_is_the_same_point():
    p_a, w_a, place, p_b, w_b = POSES.reshape(5, 3)
    there = PlaceOnOther().value(POSES[None])[0]
    point = p_a + rotation_matrix(w_a) @ place
    assert p_b + rotation_matrix(w_b) @ there == pytest.approx(point)
    ends = np.concatenate([p_a, w_a, place, p_b, w_b, there])
    assert Distance().value(ends[None])[0, 0] == pytest.approx(0.0, abs=1e-15)
    # Where the distance is zero it has a kink; the slope there is set to 0 and is finite.
    together = np.zeros((1, 18))
    assert not Distance().derivative(together).any()


SIZES = {"box": [0.2, 0.3, 0.5], "sphere": [0.3], "cylinder": [0.2, 0.4], "capsule": [0.2, 0.4]}


@pytest.mark.parametrize("shape", SIZES)
def test_masses_follow_sizes(shape):
    """Density or mass, all or part, against the solids themselves; and the slopes of each."""
    sizes = SIZES[shape]
    arguments = (sizes,) if shape == "box" else (sizes[0], 2.0 * sizes[1]) if shape == "cylinder" else sizes
    solid = getattr(add.geometry, f"{shape}_solid")(*arguments)
    moments = solid.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    for first, by_mass in (7.0, False), (7.0, True):
        per = first / solid.volume if by_mass else first
        x, expected = np.array([[first, *sizes]]), np.append(first if by_mass else first * solid.volume, per * moments)
        for start, stop in ((0, 7), (0, 1), (1, 7)):
            rule = SolidMass(shape, start, stop, by_mass)
            assert rule.value(x)[0] == pytest.approx(expected[start:stop], rel=1e-14, abs=1e-16)
            for j in range(x.shape[1]):
                h = 1e-5 * np.eye(x.shape[1])[j]
                slope = (rule.value(x + h) - rule.value(x - h)) / 2e-5
                assert rule.derivative(x)[:, :, j] == pytest.approx(slope, rel=1e-7, abs=1e-8)
