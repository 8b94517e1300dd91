"""What of a recording is probably not meant: spikes, jumps of the clock, markers that bear each other's names."""

import numpy as np
import pytest

from add.mocap import Recording
from add.mocap.suspects import Exchange, exchanges, suspects

TIMES = np.arange(200) / 200.0
NAMES = ("m1", "m2", "m3", "m4", "m5")


@pytest.fixture
def moving(rng):
    """Five markers 4 cm apart, which swing by 10 cm, with a tenth of a millimetre of noise."""
    places = np.zeros((TIMES.size, 5, 3))
    places[:, :, 0] = 0.04 * np.arange(5)
    places[:, :, 2] = 1.0 + 0.1 * np.sin(6.0 * TIMES[:, None] + np.arange(5))
    return places + 1e-4 * rng.normal(size=places.shape)


def recording(places, times=TIMES, valid=None):
    return Recording(NAMES, times, places, np.ones(places.shape[:2], bool) if valid is None else valid)


def test_nothing_to_say(moving):
    assert suspects(recording(moving)) == []
    bounce = moving.copy()  # kinks are no spikes
    bounce[:, :, 2] = np.abs(np.sin(9.0 * TIMES))[:, None]
    assert suspects(recording(bounce)) == []
    shaken = moving.copy()  # from side to side in every frame
    shaken[:, 0, 1] = 5.0 * (-1.0) ** np.arange(TIMES.size)
    assert suspects(recording(shaken)) == []
    for n in (1, 2, 3):
        assert suspects(recording(moving[:n], TIMES[:n])) == []
    valid = np.ones(moving.shape[:2], bool)
    valid[:, 1], valid[20:60, 2] = False, False
    assert suspects(recording(moving, valid=valid)) == []


def test_a_marker_that_is_held_at_its_last_place(moving):
    moving[:, :, 1] += TIMES[:, None]
    moving[120:160, 3] = moving[120, 3]
    held = moving.copy()
    (text,) = suspects(recording(moving))
    assert text.startswith("marker 'm4' stands still to the last digit from 0.6 to 0.795 s") and "Mask it" in text
    still = held
    still[:160, 3] = held[120, 3]  # until it is hit
    assert suspects(recording(still)) == []
    moving[120:] = moving[120]  # all rest
    assert suspects(recording(moving)) == []


def test_a_camera_that_moves(moving):
    moving[120:] += [0.3, 0.1, 0.0]
    (text,) = suspects(recording(moving))
    assert text.startswith("most markers are 0.3") and "from 0.6 s (frame 120) on" in text
    thrown = np.cumsum(np.where(TIMES < 0.5, 0.0, 0.02))[:, None, None] * np.array([1.0, 0, 0])  # at 4 m/s, at once
    moving[120:] -= [0.3, 0.1, 0.0]
    assert suspects(recording(moving + thrown)) == []


def test_labels_exchanged_for_a_while(moving):
    moving[40:46, [2, 3]] = moving[40:46, [3, 2]]
    found, mended = exchanges(recording(moving))
    assert found == [Exchange("m3", "m4", pytest.approx(0.2), pytest.approx(0.225))]
    assert np.abs(np.diff(mended.positions[:, 2], axis=0)).max() < 0.01
    (text,) = suspects(recording(moving), {"m3": "Tip 3", "m4": "Tip 4"})
    assert text.startswith("m3 and m4 exchanged from 0.200 to 0.225 s?")
    assert '"mask": [{"marker": "Tip 3", "from": 0.1995, "to": 0.2255}, {"marker": "Tip 4"' in text


@pytest.mark.parametrize("seen_again", [True, False])
def test_labels_exchanged_to_the_end_and_behind_a_gap(moving, seen_again):
    moving[90:, [0, 1]] = moving[90:, [1, 0]]
    valid = np.ones(moving.shape[:2], bool)
    if seen_again:
        valid[87:90, 0] = False
    (found,) = exchanges(recording(moving, valid=valid))[0]
    assert (found.one, found.two, found.start, found.stop) == ("m1", "m2", pytest.approx(0.45), np.inf)
    (text,) = suspects(recording(moving, valid=valid))
    assert "from 0.450 s on" in text and '"to": 0.9955' in text


@pytest.mark.parametrize("rate", [20.0, 60.0, 120.0])
@pytest.mark.parametrize("share", [0.5, 1.0, 4.0])
def test_labels_exchanged_on_a_body_that_moves_as_far_as_they_are_apart(moving, rate, share):
    """In every frame, and on a bent way: what all markers do says where each should be."""
    way = share * 0.04 / (rate / 200.0) * np.array([0.0, 1.0, 1.0])
    moving = (
        moving * [1.0, 0.0, 0.0] + way * np.stack([0 * TIMES, np.cos(rate * TIMES), np.sin(rate * TIMES)], 1)[:, None]
    )
    assert share < 1.0 or np.linalg.norm(np.diff(moving[:, 0], axis=0), axis=1).min() > 0.035
    assert exchanges(recording(moving))[0] == []
    moving[40:46, [2, 3]] = moving[40:46, [3, 2]]
    (found,) = exchanges(recording(moving))[0]
    assert found == Exchange("m3", "m4", pytest.approx(0.2), pytest.approx(0.225))


def test_markers_that_pass_each_other_keep_their_names(moving):
    moving[:, 0, 0] = 0.2 * TIMES
    moving[:, 1, 0] = 0.2 * (1.0 - TIMES)
    moving[:, 1, 2] = moving[:, 0, 2] + 0.004
    assert exchanges(recording(moving))[0] == []


@pytest.mark.parametrize("frames", [1, 3])
def test_a_spike(moving, frames):
    moving[100 : 100 + frames, 1, 1] += 900.0
    (text,) = suspects(recording(moving))
    assert "marker 'm2' is 900 m away at 0.5" in text
    assert ("more such frames" in text) == (frames > 1)
    times = [round(TIMES[100] - 5e-4, 4), round(TIMES[99 + frames] + 5e-4, 4)]
    assert text.endswith(f'"mask": [{{"marker": "m2", "from": {times[0]}, "to": {times[1]}}}]')


def test_spikes_apart_have_a_mask_each(moving):
    moving[[60, 100], 1, 1] += 900.0
    (text,) = suspects(recording(moving), {"m2": "of the file"})
    assert text.count('{"marker": "of the file", "from"') == 2


def test_a_jump_of_the_clock(moving):
    times = TIMES.copy()
    times[120:] += 3.0
    (text,) = suspects(recording(moving, times))
    assert text.startswith("the times jump by 3 s after frame 119 (0.595 s), where frames are 0.005 s apart")
