"""Diagrams and the report of a run."""

import dataclasses
import re

import imageio.v3 as imageio
import matplotlib.axes
import matplotlib.colors
import numpy as np
import pytest
from view.sample_run import sample_run
from view.sample_solids import solids_run

from add.commands.report import write_report
from add.errors import InputError
from add.io.runfolder import RunFolder, versions
from add.io.trajectory_file import write_run
from add.plot import parse_evaluations, plot_convergence, plot_energies, plot_markers, plot_newton, plot_run
from add.plot.run import Panel, marker_residuals, plot_sampled, rms


@pytest.fixture(scope="module")
def data():
    return sample_run(31, (2, 2, 1))


def lines(n=12, value=lambda i: 0.5**i):
    return [
        {
            "phase": "coarse" if i < 7 else "fine",
            "index": i,
            "x": [(0.1 * i).hex(), (-1.0).hex()],
            "value": float(value(i)).hex(),
            "gradient": [(0.3**i).hex(), (0.0).hex()],
            "parameters": {"bodies.block.material.young": 2e4},
            "seconds": 0.5,
        }
        for i in range(n)
    ]


def drawn(path):
    image = imageio.imread(path)[..., :3].astype(float)
    assert min(image.shape[:2]) > 200
    assert image.std() > 8.0, "blank"


def test_each_diagram(tmp_path, data):
    drawn(plot_convergence(lines(), tmp_path / "a.png"))
    drawn(plot_energies(data, tmp_path / "b.png"))
    drawn(plot_markers(data, tmp_path / "c.png"))
    drawn(plot_newton(data, tmp_path / "d.png"))


def test_a_run_without_soft_bodies(tmp_path):
    run = RunFolder(tmp_path / "run")
    write_run(run.trajectory, solids_run(9))
    assert [path.name for path in plot_run(run)] == ["energies.png", "markers.png", "newton.png"]
    drawn(run.path / "energies.png")


def test_numbers_are_parsed_exactly():
    first = parse_evaluations(lines())[3]
    assert first.value == 0.5**3
    np.testing.assert_array_equal(first.x, [0.1 * 3, -1.0])
    with pytest.raises(InputError, match="line 2"):
        parse_evaluations([lines()[0], {"phase": "coarse"}])


@pytest.mark.parametrize(
    "value", [lambda i: -(0.5**i), lambda i: 1.0 - 0.3 * i, lambda i: 0.0, lambda i: np.nan if i == 2 else 0.5**i]
)
def test_any_objective(tmp_path, value):
    drawn(plot_convergence(lines(value=value), tmp_path / "a.png"))


def test_one_evaluation(tmp_path):
    drawn(plot_convergence(lines(1), tmp_path / "a.png"))


def test_residuals_of_markers(data):
    residuals = marker_residuals(data)
    assert len(residuals["front"]) == len(data.targets["front"][0]) - 1, "a frame without the marker is left out"
    assert rms(residuals["front"]) == pytest.approx(0.006 * np.sqrt(3), rel=0.3)
    exact = dataclasses.replace(data, targets={name: (data.t, x) for name, x in data.markers.items()})
    assert rms(marker_residuals(exact)["back"]) == pytest.approx(0.0, abs=1e-15)
    late = dataclasses.replace(data, targets={"front": (data.t + 5.0, data.markers["front"])})
    assert np.isnan(rms(marker_residuals(late)["front"]))


def test_markers_without_recording_or_many(tmp_path, data):
    drawn(plot_markers(dataclasses.replace(data, targets={}), tmp_path / "a.png"))
    many = {f"m{i}": data.markers["front"] for i in range(20)}
    path = plot_markers(dataclasses.replace(data, markers=many, targets={}), tmp_path / "b.png")
    assert imageio.imread(path).shape[0] < 2500
    with pytest.raises(InputError, match="no markers"):
        plot_markers(dataclasses.replace(data, markers={}), tmp_path / "c.png")


def make_run(path, data):
    run = RunFolder(path)
    write_run(run.trajectory, data)
    for line in lines():
        run.append_line("evaluations.jsonl", line)
    return run


def test_plot_run(tmp_path, data):
    run = make_run(tmp_path / "run", data)
    names = [path.name for path in plot_run(run.path)]
    assert names == ["convergence.png", "energies.png", "markers.png", "newton.png"]
    vector = plot_run(run, format="svg")
    assert [path.suffix for path in vector] == [".svg"] * 4
    once = vector[1].read_bytes()
    assert plot_run(run, format="svg")[1].read_bytes() == once, "the same run draws the same file"
    run.trajectory.unlink()
    assert [path.name for path in plot_run(run)] == ["convergence.png"]
    with pytest.raises(InputError, match="'png' or 'svg'"):
        plot_run(run, format="pdf")
    with pytest.raises(InputError, match="no such run"):
        plot_run(tmp_path / "missing")


def test_report(tmp_path, data):
    run = make_run(tmp_path / "run", data)
    run.write_json("versions.json", versions())
    run.write_json(
        "result.json",
        {
            "command": "add optimize scenes/block.json",
            "scene": "block",
            "status": "converged",
            "parameters": {
                "bodies.block.material.young": {
                    "value": 20483.217, "unit": "Pa", "start": 1e4, "standard_error": 131.2, "lower": 1e3, "upper": 1e6,
                },
                "contact.friction": {"value": 0.1, "unit": "", "start": 0.5, "lower": 0.1, "upper": None},
            },
            "objective": {"start": 1.0, "end": 0.0125},
            "fit": {"rms": 9.271, "unit": "mm", "samples": 40, "per_marker": {"front": 9.38, "back": 9.16}},
            "evaluations": 12,
            "seconds": 754.0,
            "checks": {"momentum": {"passed": True, "value": 1e-12, "expected": 0.0, "unit": "N s"}, "gradient": False},
        },
    )  # fmt: skip
    text = write_report(run.path).read_text(encoding="utf-8")
    assert text.startswith("# block\n")
    for expected in (
        "| `bodies.block.material.young` | 20480 ± 130 | Pa | 10000 | 1000 … 1e6 |",
        "| `contact.friction` | 0.1 | – | 0.5 | 0.1 … – |",
        "`contact.friction` ended at its lower bound",
        "1 → 0.0125 (80 times less)",
        "12 min 34 s",
        "| front | 9.38 |",
        "| gradient | **failed** |",
        "numpy " + np.__version__,
    ):
        assert expected in text
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert pictures == ["convergence.png", "markers.png", "energies.png", "newton.png"]
    assert all((run.path / name).is_file() for name in pictures)


def test_report_of_little(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_json("result.json", {})
    assert write_report(run).read_text().startswith("# Run\n")


def test_every_experiment_is_reported(tmp_path, data):
    """Two takes: a fit section and pictures of each, and --force leaves none of them."""
    run = RunFolder(tmp_path / "run")
    write_run(run.trajectory, data)
    write_run(run.path / "trajectory_take 2.h5", solids_run(9))

    def fit(rms):
        return {"rms": rms, "unit": "m", "samples": 40, "frames_outside": 0, "per_marker": {"tip": {"rms": 2 * rms}}}

    experiments = {"take 1": {"fit": fit(0.001)}, "take 2": {"fit": fit(0.0025) | {"frames_outside": 3}}}
    run.write_json("result.json", {"command": "optimize", "status": "done", "experiments": experiments})
    text = write_report(run).read_text()
    assert "| take 1 | 0.001 | 40 |" in text and "| take 2 | 0.0025 | 40 |" in text
    first, second = text.split("### Experiment take 1")[1].split("### Experiment take 2")
    assert "| tip | 0.002 |" in first and "beyond the run" not in first
    assert "| tip | 0.005 |" in second and "3 recorded frames lie beyond the run" in second
    pictures = [f"{kind}{name}.png" for name in ("", "_take 2") for kind in ("markers", "energies", "newton")]
    links = re.findall(r"\]\((\S+)\)", text)
    assert links == [name.replace(" ", "%20") for name in pictures]
    assert all((run.path / name).is_file() for name in pictures)
    assert "Experiment take 1. Simulated" in text and "Experiment take 2. Simulated" in text
    run.clear()
    assert not list(run.path.glob("*.png")) and not list(run.path.glob("*.h5"))


def test_one_experiment_is_reported_as_the_run(tmp_path, data):
    run = RunFolder(tmp_path / "run")
    write_run(run.trajectory, data)
    fit = {"rms": 0.001, "unit": "m", "samples": 40, "per_marker": {"tip": {"rms": 0.002}}}
    run.write_json("result.json", {"fit": fit, "experiments": {"scene": {"fit": fit}}})
    text = write_report(run).read_text()
    assert text.count("| tip | 0.002 |") == 1 and "xperiment" not in text


def test_the_legend_of_sampled_bands_has_the_colour_of_none(tmp_path, monkeypatch):
    """One legend names the bands of three colours: its own are grey."""
    legends, drawn = [], matplotlib.axes.Axes.legend
    monkeypatch.setattr(matplotlib.axes.Axes, "legend", lambda *a, **k: legends.append(drawn(*a, **k)) or legends[-1])
    lines = np.linspace(-1, 1, 5)[:, None, None] * np.ones((5, 4, 3))
    seen = np.zeros((4, 3))
    panel = Panel("m", "m", np.arange(4.0), np.array([0.05, 0.25, 0.5, 0.75, 0.95]), lines, seen, seen + 0.1, seen)
    plot_sampled([panel], tmp_path / "bands.png")
    (legend,) = legends
    named = {text.get_text(): handle for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)}
    assert list(named) == ["90 %", "50 %", "median", "linear", "recorded"]
    for name, handle in named.items():
        colour = handle.get_facecolor() if name.endswith("%") else handle.get_color()
        assert np.ptp(matplotlib.colors.to_rgb(colour)) < 0.1, name
