"""`Recording`: what it refuses, and its pure operations."""

import numpy as np
import pytest

from add.errors import InputError
from add.mocap import Recording


def make(n_frames=5, names=("A", "B"), **changes):
    """A recording at 100 Hz on a cubic path; `changes` replace fields."""
    times = np.arange(n_frames) / 100.0
    marker = np.arange(len(names))[None, :, None]
    s = times[:, None, None] * np.array([1.0, 2.0, -1.0])
    fields = {
        "names": names,
        "times": times,
        "positions": s**3 - s + marker,
        "valid": np.ones((n_frames, len(names)), dtype=bool),
        "source": "made.csv",
    }
    return Recording(**(fields | changes))


def with_nan(recording, frame, marker):
    positions = recording.positions.copy()
    positions[frame, marker, 1] = np.nan
    return positions


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": (), "positions": np.zeros((5, 0, 3)), "valid": np.ones((5, 0), bool)}, "no markers"),
        ({"names": ("A", "A")}, "same name"),
        ({"names": ("A", " B")}, "bad marker name"),
        ({"names": ("A", "B\nC")}, "bad marker name"),
        ({"names": ("A", "")}, "bad marker name"),
        ({"positions": np.zeros((5, 3, 3))}, "positions have the wrong shape"),
        ({"times": [0.0, 0.1]}, "positions have the wrong shape"),
        ({"valid": np.ones(5, bool)}, "valid has the wrong shape"),
        ({"times": []}, "no frames"),
        ({"times": np.zeros((5, 1))}, "no frames"),
        ({"times": [0.0, 0.1, 0.1, 0.2, 0.3]}, "frame 2: time does not increase"),
        ({"times": [0.0, 0.1, np.nan, 0.2, 0.3]}, "time is not finite"),
        ({"positions": with_nan(make(), 3, 1)}, "'B', frame 3"),
        ({"positions": np.full((5, 2, 3), -1e200)}, "beyond 1e+60"),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(InputError) as error:
        make(**changes)
    assert message in str(error.value)
    assert "made.csv" in str(error.value)


def test_invalid_samples_are_nan_and_arrays_are_private():
    given = np.zeros((2, 1, 3))
    recording = Recording(("A",), [0.0, 1.0], given, [[True], [False]])
    given[:] = 7.0
    np.testing.assert_array_equal(recording.positions[:, 0, 0], [0.0, np.nan])
    with pytest.raises(ValueError, match="read-only"):
        recording.positions[0] = 1.0


def test_sizes_rate_and_columns():
    recording = make()
    assert (recording.n_frames, recording.n_markers, recording.index("B")) == (5, 2, 1)
    assert recording.rate == pytest.approx(100.0)
    np.testing.assert_array_equal(recording.marker("B"), recording.positions[:, 1])
    with pytest.raises(InputError, match="no rate"):
        recording.crop(0.0, 0.0).rate  # noqa: B018


def test_unknown_marker_names_the_nearest():
    with pytest.raises(InputError) as error:
        make(names=("Tip-1", "Base-1")).index("tip1")
    assert "'tip1'" in str(error.value)
    assert "nearest 'Tip-1'; available 'Tip-1', 'Base-1'" in str(error.value)


def test_crop_includes_both_ends():
    recording = make()
    cropped = recording.crop(0.01, 0.03)
    np.testing.assert_array_equal(cropped.times, recording.times[1:4])
    np.testing.assert_array_equal(cropped.positions, recording.positions[1:4])
    assert recording.n_frames == 5
    with pytest.raises(InputError, match="no frame in the window"):
        recording.crop(1.0, 2.0)


def test_origin_select_rename_transform():
    recording = make()
    np.testing.assert_array_equal(recording.with_origin(0.02).times, recording.times - 0.02)
    swapped = recording.select(["B", "A"])
    assert swapped.names == ("B", "A")
    np.testing.assert_array_equal(swapped.positions, recording.positions[:, ::-1])
    assert recording.rename({"A": "tip"}).names == ("tip", "B")
    with pytest.raises(InputError, match="same name"):
        recording.rename({"A": "B"})
    with pytest.raises(InputError, match="unknown marker"):
        recording.rename({"C": "B"})
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    moved = recording.transformed(quarter, [1.0, 2.0, 3.0])
    x = recording.positions[4, 1]
    np.testing.assert_allclose(moved.positions[4, 1], [1.0 - x[1], 2.0 + x[0], 3.0 + x[2]], rtol=1e-15)


def test_mask_and_mean():
    recording = make().mask(["B"], 0.015, 0.035)
    np.testing.assert_array_equal(recording.valid[:, 1], [True, True, False, False, True])
    assert recording.valid[:, 0].all()
    np.testing.assert_allclose(recording.mean()[1], recording.positions[[0, 1, 4], 1].mean(axis=0))
    inside = recording.mean(0.015, 0.035)
    assert np.isnan(inside[1]).all()
    assert np.isfinite(inside[0]).all()
