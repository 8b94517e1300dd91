"""Bands of samples: quantiles of places and of what turns, trust in a line, noise, scores, shares."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.transform import Rotation
from scipy.special import binom, ndtri

from add.inverse import intervals as made

RNG = np.random.default_rng(0)
AT = made.levels(0.9)


def test_levels():
    assert made.levels(0.9) == pytest.approx([0.05, 0.25, 0.5, 0.75, 0.95])
    assert made.levels(0.5) == pytest.approx([0.25, 0.5, 0.75])


def test_places_have_their_quantiles():
    samples = RNG.normal(size=(4000, 2, 3)) * [1.0, 2.0, 3.0]
    assert made.place_bands(samples, AT).quantiles[:, 0, 1] == pytest.approx(2.0 * ndtri(AT), abs=0.15)


def test_angles_know_no_turn_and_no_jump():
    """About pi, where arctan2 jumps, and a whole turn more, the band is that of the deviations."""
    off = 0.2 * RNG.normal(size=(3000, 1, 1))
    turns = 2 * np.pi * RNG.integers(-2, 3, size=off.shape)
    centre = np.linspace(np.pi - 1.0, np.pi + 4.0, 30)[:, None]
    found = made.angle_bands(centre + off + turns, AT)
    assert found.quantiles[:, :, 0] == pytest.approx(np.tile(np.quantile(off, AT)[:, None] - off.mean(), 30), abs=0.01)
    assert np.diff(found.reference[:, 0]) == pytest.approx(5.0 / 29, abs=1e-9)
    uniform = made.angle_bands(RNG.uniform(-20, 20, size=(8000, 1, 1)), AT)
    assert uniform.quantiles[[0, -1], 0, 0] == pytest.approx([-0.9 * np.pi, 0.9 * np.pi], abs=0.1)


def test_directions_are_measured_on_the_tangent_plane():
    angle = 0.4 * RNG.normal(size=(4000, 1))
    samples = np.stack([np.sin(angle), 0 * angle, -np.cos(angle)], axis=-1)
    found = made.direction_bands(samples, AT)
    assert found.reference[0] == pytest.approx([0, 0, -1], abs=0.03)
    assert found.quantiles[:, 0, 0] == pytest.approx(0.4 * ndtri(AT), abs=0.04)
    assert made.on_tangent(np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])) == pytest.approx([0, np.pi / 2, 0])


def test_rotations_are_measured_about_their_mean():
    """Also about a turn by pi, where rotation vectors change their sign."""
    off = RNG.normal(size=(3000, 3)) * [0.05, 0.1, 0.2]
    centre = Rotation.from_rotvec([0.0, 0.0, np.pi])
    samples = (Rotation.from_rotvec(off) * centre).as_rotvec()[:, None, None]
    assert np.ptp(samples[:, 0, 0, 2]) > 6.0
    found = made.rotation_bands(samples, AT)
    assert found.quantiles[:, 0, 0] == pytest.approx(ndtri(AT)[:, None] * [0.05, 0.1, 0.2], abs=0.02)
    assert (Rotation.from_rotvec(found.reference[0, 0]) * centre.inv()).magnitude() < 0.02


@pytest.mark.parametrize(
    ("samples", "holds"),
    [
        (lambda z: z, True),
        (lambda z: z + 0.1 * z**2, True),
        (lambda z: z + 0.5 * z**2, False),  # width and median stay, and the ends move
        (lambda z: z + 0.3, True),  # off by 0.18 of the half width, 1.645
        (lambda z: z + 0.5, False),
        (lambda z: 1.4 * z, False),
        (lambda z: 0.7 * z, False),
        (lambda z: np.sin(2 * z), False),
    ],
)
def test_where_a_line_holds(samples, holds):
    z = RNG.normal(size=(400, 1, 1, 1))
    assert made.linear_holds(samples(z), z, 0.0).tolist() == [holds]


def test_coordinates_that_hardly_spread_do_not_count():
    z = RNG.normal(size=(400, 1, 1, 1))
    samples = np.concatenate([z, 0.01 * z**2], axis=3)
    assert made.linear_holds(samples, np.concatenate([z, 0 * z], axis=3), 0.0).all()
    assert not made.linear_holds(samples * [1e-9, 1.0], np.concatenate([z * 1e-9, 0 * z], axis=3), 0.0).any()


def test_noise_widens_a_normal_band_exactly():
    bands = made.Bands(np.zeros((1, 1)), (1.0 + 3.0 * ndtri(AT)).reshape(-1, 1, 1))
    assert made.widened(bands, AT, np.array(4.0)).ravel() == pytest.approx(1.0 + 5.0 * ndtri(AT))
    assert made.widened(bands, AT, np.array(0.0)).ravel() == pytest.approx(1.0 + 3.0 * ndtri(AT))


def test_interval_score_of_a_normal():
    """E S of [-l, l] under N(0, 1) is 2 l + 4/a (pdf(l) - l (1 - cdf(l))); the true quantiles have the least."""
    share, a = 0.9, 0.1

    def expected(half):
        def density(x):
            return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)

        return quad(lambda x: made.interval_score(-half, half, x, share) * density(x), -9, 9, points=[-half, half])[0]

    half = float(ndtri(0.95))
    pdf = np.exp(-0.5 * half**2) / np.sqrt(2 * np.pi)
    assert expected(half) == pytest.approx(2 * half + 4 / a * (pdf - half * 0.05), rel=1e-6)
    assert expected(half) < min(expected(0.8 * half), expected(1.2 * half))
    assert made.interval_score(0.0, 1.0, np.array([0.5, 1.5, -1.0]), 0.9) == pytest.approx([1.0, 11.0, 21.0])


@pytest.mark.parametrize(("count", "total"), [(0, 20), (7, 20), (20, 20)])
def test_share_interval_is_that_of_the_binomial_tails(count, total):
    low, high = made.share_interval(count, total)

    def tail(p, ks):
        return sum(binom(total, k) * p**k * (1 - p) ** (total - k) for k in ks)

    assert low == 0.0 if count == 0 else tail(low, range(count, total + 1)) == pytest.approx(0.025)
    assert high == 1.0 if count == total else tail(high, range(count + 1)) == pytest.approx(0.025)
