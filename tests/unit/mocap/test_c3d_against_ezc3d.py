"""C3D files that the format's reference library writes, and real ones as it reads them: the same numbers here."""

import numpy as np
import pytest
from support.c3d_files import c3d_bytes
from support.places import DATA, SHARED

from add.errors import InputError
from add.mocap import Recording
from add.mocap.formats import read_take
from add.mocap.write import write_c3d

ezc3d = pytest.importorskip("ezc3d", reason="ezc3d is not installed: pip install 'add-sim[test]'")
RATE, FRAMES, PER_FRAME = 100.0, 20, 5


def written(path, n_points, n_channels, events=(), rate=RATE):
    """Write a file with gaps and residuals; return points (4, n, frames) [mm] and channels."""
    rng, c = np.random.default_rng(3), ezc3d.c3d()
    points = np.ones((4, n_points, FRAMES))
    points[:3] = rng.normal(size=(3, n_points, FRAMES)) * 500.0
    residuals = rng.uniform(0.0, 2.0, (1, n_points, FRAMES))
    if n_points:
        points[:3, 0, 4:7], residuals[0, 0, 4:7] = np.nan, -1.0
    channels = rng.normal(size=(1, n_channels, FRAMES * PER_FRAME))
    group = c["parameters"]
    group["POINT"]["RATE"]["value"], group["POINT"]["UNITS"]["value"] = [rate], ["mm"]
    group["POINT"]["LABELS"]["value"] = [f"m{k}" for k in range(n_points)]
    group["ANALOG"]["RATE"]["value"] = [rate * PER_FRAME]
    group["ANALOG"]["LABELS"]["value"] = [f"a{k}" for k in range(n_channels)]
    c["data"]["points"], c["data"]["analogs"] = points, channels
    c["data"]["meta_points"]["residuals"] = residuals
    c["data"]["meta_points"]["camera_masks"] = np.zeros((7, n_points, FRAMES), dtype=bool)
    for time, label in events:
        c.add_event(time=[0, time], label=label)
    c.write(str(path))
    return points, channels[0]


@pytest.mark.parametrize(("n_points", "n_channels"), [(3, 0), (3, 1), (3, 2), (1, 1), (0, 1), (0, 2)])
def test_files_that_it_writes(tmp_path, n_points, n_channels):
    points, channels = written(tmp_path / "f.c3d", n_points, n_channels)
    take = read_take(tmp_path / "f.c3d")
    assert take.rate == RATE and len(take.signals) == n_channels
    assert (take.markers is None) == (n_points == 0)
    if n_points:
        np.testing.assert_allclose(take.markers.positions, 1e-3 * points[:3].T, rtol=1e-6, atol=1e-7)
    for k, signal in enumerate(take.signals):
        assert signal.name == f"a{k}" and signal.times[1] == pytest.approx(1.0 / (RATE * PER_FRAME))
        np.testing.assert_allclose(signal.values, channels[k], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rate", [119.88, 1000.0 / 3.0])
def test_ratios_of_rates_that_are_whole_but_for_their_last_bit(tmp_path, rate):
    """What was written is read; `ezc3d` 1.7.2 itself takes one sample a frame too few where the ratio is below."""
    points, channels = written(tmp_path / "f.c3d", 2, 2, rate=rate)
    take = read_take(tmp_path / "f.c3d")
    np.testing.assert_allclose(take.markers.positions, 1e-3 * points[:3].T, rtol=1e-6, atol=1e-7)
    for signal, values in zip(take.signals, channels, strict=True):
        assert signal.times[-1] == pytest.approx((values.size - 1) / (rate * PER_FRAME), rel=1e-6)
        np.testing.assert_allclose(signal.values, values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [32768, 65535, 65536])
def test_as_many_frames_as_sixteen_bits_count(tmp_path, n):
    """One more is an error, and no shorter recording."""
    c = ezc3d.c3d()
    group = c["parameters"]["POINT"]
    group["UNITS"]["value"], group["RATE"]["value"], group["LABELS"]["value"] = ["mm"], [100.0], ["a"]
    c["data"]["points"] = np.stack([np.arange(n), *np.zeros((2, n)), np.ones(n)])[:, None]
    c.write(str(tmp_path / "long.c3d"))
    if n > 65535:
        with pytest.raises(InputError, match="more frames than the header can count"):
            read_take(tmp_path / "long.c3d")
    else:
        x = read_take(tmp_path / "long.c3d").markers.positions[:, 0, 0]
        assert x.size == n and 1000.0 * x[-1] == pytest.approx(n - 1)


def test_a_file_that_is_cut(tmp_path):
    """Of any size: numbers of 16 bits do not overflow."""
    c = ezc3d.c3d()
    group = c["parameters"]["POINT"]
    names = [f"m{k}" for k in range(50)]
    group["UNITS"]["value"], group["RATE"]["value"], group["LABELS"]["value"] = ["mm"], [100.0], names
    c["data"]["points"] = np.ones((4, 50, 400))
    c.write(str(tmp_path / "whole.c3d"))
    data = (tmp_path / "whole.c3d").read_bytes()
    (tmp_path / "cut.c3d").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="the file is cut off"):
        read_take(tmp_path / "cut.c3d")


def test_files_that_it_reads(tmp_path):
    """Names beyond ASCII keep all that stands behind them in place, and a start later than t = 0 is one."""
    rng, path = np.random.default_rng(4), tmp_path / "out.c3d"
    valid = rng.random((20, 3)) > 0.2
    x = np.where(valid[..., None], rng.normal(size=(20, 3, 3)), np.nan)
    names = ("Fuß links", "Fuß rechts", "Kopf")
    write_c3d(path, Recording(names, 0.13 + np.arange(20) / 100.0, x, valid))
    take, reference = read_take(path), ezc3d.c3d(str(path))
    assert reference["parameters"]["POINT"]["LABELS"]["value"] == list(names) == list(take.markers.names)
    assert reference["header"]["points"]["first_frame"] == 13 and take.markers.times[0] == pytest.approx(0.13)
    assert np.array_equal(reference["data"]["meta_points"]["residuals"][0].T >= 0.0, valid)
    for found in (1e-3 * reference["data"]["points"][:3].T, take.markers.positions):
        np.testing.assert_allclose(found[valid], x[valid], rtol=1e-6, atol=1e-7)
    for begin in (-0.5, 0.123):
        with pytest.raises(InputError, match="frames of a C3D count from t = 0"):
            write_c3d(path, Recording(names, begin + np.arange(20) / 100.0, x, valid))


def test_a_trial_that_begins_late(tmp_path):
    """Its first frame has two words, the second of which counts 65536."""
    n = 5
    words = [np.array([(65530 + k) % 65536, (65530 + k) // 65536]).astype(np.uint16).view(np.int16) for k in (10, 14)]
    trial = {"ACTUAL_START_FIELD": words[0], "ACTUAL_END_FIELD": words[1]}
    (tmp_path / "late.c3d").write_bytes(c3d_bytes(np.ones((n, 2, 4)), groups={"TRIAL": trial}, first=65530))
    times = read_take(tmp_path / "late.c3d").markers.times
    assert times.size == n and times[0] == pytest.approx((65540 - 1) / 100.0)


def test_events(tmp_path):
    written(tmp_path / "f.c3d", 2, 1, [(0.05, "strike"), (0.12, "off")])
    found = read_take(tmp_path / "f.c3d").events
    assert [(event.name.split()[-1], event.time) for event in found] == [
        ("strike", pytest.approx(0.05)), ("off", pytest.approx(0.12)),
    ]  # fmt: skip


def test_nothing_at_all_is_an_error(tmp_path):
    written(tmp_path / "f.c3d", 0, 0)
    with pytest.raises(InputError, match=r"no frames|neither"):
        read_take(tmp_path / "f.c3d")


@pytest.mark.parametrize(
    "path",
    sorted([*(DATA.rglob("*.c3d") if DATA.is_dir() else ()), *(SHARED / "repro").glob("*.c3d")]),
    ids=lambda p: p.stem,
)
def test_real_files(path):
    take, reference = read_take(path), ezc3d.c3d(str(path))
    positions, labels = reference["data"]["points"][:3], reference["parameters"]["POINT"]["LABELS"]["value"]
    scale = {"mm": 1e-3, "m": 1.0}[reference["parameters"]["POINT"]["UNITS"]["value"][0]]
    for k, name in enumerate(take.markers.names):
        theirs, own = scale * positions[:, labels.index(name)].T, take.markers.positions[:, k]
        assert np.array_equal(np.isnan(own), np.isnan(theirs))
        np.testing.assert_allclose(
            np.linalg.norm(own, axis=1), np.linalg.norm(theirs, axis=1), rtol=1e-14
        )  # z is up here
    channels = reference["data"]["analogs"][0]
    assert len(take.signals) == len(channels)
    for signal, values in zip(take.signals, channels, strict=True):
        np.testing.assert_allclose(signal.values, values, rtol=1e-6, atol=1e-9)
