"""Which recordings the studies fit and predict, and what they say where there are none."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.places import ROOT

from add.errors import InputError
from add.mocap import read_pose_csv
from scripts.cube_tosses import fit, median_intervals
from scripts.elbow_tosses import LEANT, LEVEL, session_of
from scripts.recordings import marks, read_result, recordings
from scripts.silicone_beam_damping import Recorded, envelope


@pytest.fixture
def folder(tmp_path):
    for k in range(5):
        (tmp_path / f"toss_{k}.csv").write_text(f"time_s\n{k}\n", encoding="utf-8")
    return tmp_path


def test_a_folder_and_files_are_told_apart(folder):
    one = folder / "toss_3.csv"
    given = recordings([one, folder])
    assert given.named == (one,)
    assert [file.stem for file in given.found] == [f"toss_{k}" for k in range(5)]


def test_what_was_fitted_is_known_by_its_content(folder, tmp_path_factory):
    fitted = marks([folder / "toss_0.csv", folder / "toss_2.csv"])
    other = tmp_path_factory.mktemp("copy")
    (other / "toss_0.csv").write_text("another toss\n", encoding="utf-8")
    (other / "renamed.csv").write_bytes((folder / "toss_2.csv").read_bytes())
    assert [file.stem for file in recordings([folder]).unseen(fitted)] == ["toss_1", "toss_3", "toss_4"]
    assert [file.name for file in recordings([other]).unseen(fitted)] == ["toss_0.csv"]
    # A file that is asked for by name is predicted, whatever it is.
    assert recordings([folder / "toss_2.csv"]).unseen(fitted) == [folder / "toss_2.csv"]
    with pytest.raises(InputError, match="none is left"):
        recordings([folder]).unseen(marks(sorted(folder.glob("*.csv"))))


def test_missing_recordings_are_one_error(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"without \*\.csv"):
        recordings([tmp_path])
    with pytest.raises(InputError, match="a file or a folder"):
        recordings([tmp_path / "nowhere"])
    monkeypatch.delenv("ADD_DATA", raising=False)
    with pytest.raises(InputError, match="ADD_DATA"):
        recordings([], "rigid")
    with pytest.raises(InputError, match="--result"):
        read_result(tmp_path / "none.json")
    (tmp_path / "old.json").write_text('{"fitted": ["toss_0"]}', encoding="utf-8")
    with pytest.raises(InputError, match="fitted"):
        read_result(tmp_path / "old.json")


def test_medians_differ_by_less_in_pairs_than_each_is_known():
    errors = np.random.default_rng(0).exponential(20.0, (200, 2))
    low, high = median_intervals(errors)
    assert np.all(low < np.median(errors, axis=0)) and np.all(np.median(errors, axis=0) < high)
    # The median of n exponential errors has the standard deviation 20 / sqrt(n).
    np.testing.assert_allclose(high - low, 2 * 1.96 * 20.0 / np.sqrt(200), rtol=0.35)
    np.testing.assert_allclose(median_intervals(errors, errors - 0.5), 0.5)


def test_a_start_has_the_numbers_of_its_law(folder, tmp_path):
    with pytest.raises(InputError, match=r"2 numbers.*contact\.static_friction"):
        fit(tmp_path / "found.json", [0.2, 60.0], [folder], "static")


def complaint(study, arguments, monkeypatch, capsys) -> str:
    """Return the one line with which a script ends with code 2: as its own process does, without the imports of one."""
    monkeypatch.setattr(sys, "argv", [study, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "scripts" / f"{study}.py"), run_name="__main__")
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.count("\n") == 1
    return said


@pytest.mark.parametrize("study", ["cube_tosses", "double_pendulum", "elbow_tosses"])
def test_studies_end_with_code_2_where_a_folder_has_no_recordings(study, tmp_path, monkeypatch, capsys):
    arguments = ["fit", str(tmp_path), "--result", str(tmp_path / "r.json")]
    said = complaint(study, arguments, monkeypatch, capsys)
    assert str(tmp_path) in said and "*.csv" in said


@pytest.mark.parametrize("study", ["prediction", "damping"])
def test_the_beam_names_the_take_that_is_not_there(study, tmp_path, monkeypatch, capsys):
    arguments = ["--recordings", str(tmp_path)]
    assert "beam_gravity_V2_a.csv" in complaint(f"silicone_beam_{study}", arguments, monkeypatch, capsys)


@pytest.mark.parametrize(("decrement", "dry"), [(0.31, 0.0), (0.34, 0.4)])
def test_dry_friction_shows_in_the_envelope(decrement, dry):
    """A swing of 4.3 Hz whose halves shrink by a factor and a constant: both are told apart."""
    t = np.arange(0.0, 2.3, 0.01)
    a = np.maximum((9.0 + dry) * np.exp(-decrement * 4.3 * t) - dry, 0.0)
    plain, found, rest = envelope(Recorded("load52", t, a * np.cos(2.0 * np.pi * 4.3 * t)))
    assert found == pytest.approx(decrement, rel=0.03) and rest == pytest.approx(dry, abs=0.03)
    assert (plain > 1.1 * decrement) == (dry > 0.0)


def flat(turns: np.ndarray) -> np.ndarray | None:
    """Return the box axis nearest to the vertical, its mean over frames; None where no axis is within 6 degrees."""
    axes = np.array([turn[:, np.argmax(np.abs(turn[2]))] for turn in turns])
    mean = (axes * np.sign(axes[:, 2:])).mean(axis=0)
    return mean if mean[2] > np.cos(np.radians(6.0)) else None


def test_elbows_lean_differently_in_two_sessions(data_root):
    """The halves that lie flat at the end show the vertical of the recorded frame."""
    folder = data_root / "rigid" / "csv" / "elbow_dair_pll"
    files = sorted(folder.glob("*.csv"))
    if not files:
        pytest.skip(f"no recordings at {folder} (set ADD_DATA)")
    for session, tilt, most in ((LEANT, 2.4, 0.3), (LEVEL, 0.15, 0.15)):
        normals = []
        for file in files:
            toss = read_pose_csv(file)
            still = np.linalg.norm(toss.position[-1] - toss.position[-6]) < 1e-3
            first = Rotation.from_matrix(toss.rotations[-6:])
            second = first * Rotation.from_rotvec(toss.extra["joint_rad"][-6:, None] * [0.0, 1.0, 0.0])
            halves = [flat(turn.as_matrix()) for turn in (first, second)]
            if session_of(file) is session and still:
                normals += [normal for normal in halves if normal is not None]
        assert len(normals) >= 15
        middle = np.median(normals, axis=0)
        assert np.degrees(np.arccos(middle[2] / np.linalg.norm(middle))) == pytest.approx(tilt, abs=most)
        np.testing.assert_allclose(session.normal, middle / np.linalg.norm(middle), atol=0.002)
    with pytest.raises(InputError, match="--up"):
        session_of(Path("another.csv"))
