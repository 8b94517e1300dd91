"""The real takes of a released silicone beam (Dubied et al. 2022): read, register, and find what physics says."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.places import DATA

from add.mocap import read_csv, register, rigid_fit, write_csv

TAKES = DATA / "soft" / "csv" / "silicone_beam"
pytestmark = pytest.mark.skipif(not TAKES.is_dir(), reason=f"no recordings at {TAKES} (set ADD_DATA)")

# Nominal positions in the beam frame (x along the beam, free end at 0, z up), from the README of the data [m].
BASE = {"Base-1": (-0.094, -0.01, -0.001), "Base-2": (-0.094, 0.04, 0.0275), "Base-3": (-0.094, 0.04, 0.0)}
TIP = {"Tip-1": (0.0, 0.015, 0.036), "Tip-2": (0.0, -0.006, 0.024), "Tip-3": (0.0, 0.036, 0.006)}

# file, frames, rest until [s], sag of Tip-1 [m], frequency [Hz]
CASES = [
    pytest.param("beam_gravity_V2_a.csv", 500, 0.66, 6.45e-3, 7.74, id="gravity"),
    pytest.param("beam_load52_V2_a.csv", 600, 0.40, 17.04e-3, 4.35, id="load"),
]


@pytest.mark.parametrize(("file", "n_frames", "rest", "sag", "frequency"), CASES)
def test_beam(file, n_frames, rest, sag, frequency, tmp_path):
    recording = read_csv(TAKES / file)
    assert recording.n_frames == n_frames
    assert recording.names == (*TIP, *BASE)
    assert recording.rate == pytest.approx(100.0)
    assert recording.valid.all()

    write_csv(tmp_path / "copy.csv", recording)
    copy = read_csv(tmp_path / "copy.csv")
    assert copy.positions.tobytes() == recording.positions.tobytes()
    assert copy.times.tobytes() == recording.times.tobytes()

    beam, fit = register(recording, BASE, window=(0.0, rest))
    assert 0.1e-3 < fit.rms < 2.5e-3
    assert fit.R[2, 0] > np.cos(np.radians(12.0))  # the x of the mocap is roughly up
    start = beam.select(list(TIP)).mean(0.0, rest)
    # Base-2 and Base-3, whose noise fixes the pitch, are 28 mm apart: 2 degrees of pitch are 3.5 mm at the tips
    np.testing.assert_allclose(start, list(TIP.values()), atol=5e-3)

    z = beam.marker("Tip-1")[:, 2] - start[0, 2]
    assert np.abs(z[beam.times <= rest]).max() < 0.2e-3
    settled = z[beam.times >= beam.times[-1] - 0.5].mean()
    assert settled == pytest.approx(-sag, abs=0.1e-3)
    assert z.min() < 1.3 * settled

    # The middle of the swings creeps by 8 %, so periods are taken between minima, not between crossings of a level.
    fine = np.arange(0.8, 1.8, 1e-3)
    smooth = CubicSpline(beam.times, beam.marker("Tip-1")[:, 2])(fine)
    minima = 1 + np.flatnonzero((smooth[1:-1] < smooth[:-2]) & (smooth[1:-1] <= smooth[2:]))
    assert 1.0 / np.diff(fine[minima]).mean() == pytest.approx(frequency, rel=0.03)


@pytest.mark.parametrize(("file", "n_frames", "rest", "sag", "frequency"), CASES)
def test_all_markers_fix_the_pitch_better(file, n_frames, rest, sag, frequency):
    _, fit = register(read_csv(TAKES / file), BASE | TIP, window=(0.0, rest))
    assert 0.3e-3 < fit.rms < 2.0e-3
    pitch = np.degrees(np.arccos(fit.R[2, 0]))
    assert pitch == pytest.approx(7.0, abs=0.6)  # what the source says


def test_both_takes_share_the_base():
    rests = [read_csv(TAKES / case.values[0]).select(list(BASE)).mean(0.0, case.values[2]) for case in CASES]
    assert rigid_fit(*rests).rms < 0.1e-3
