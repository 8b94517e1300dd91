"""`add predict --samples`: sampled bands against closed forms, where a straight line fails, ends, errors."""

import csv
import json
import shutil

import click
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.integrate import solve_ivp
from scipy.special import ndtri

from add.commands.cli import cli
from add.commands.sampled_runs import Watch
from add.errors import InputError, SolverError
from add.mocap import Recording, write_csv
from add.simulation.run import Simulation

SAMPLES = 60


@pytest.fixture(autouse=True)
def undrawn_bands(monkeypatch):
    """Bands are drawn for `thrown` alone, which is there before: that takes half of the time of a small prediction."""
    monkeypatch.setattr("add.commands.other_motions.plot_sampled", lambda panels, path: path)


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def write(folder, name, raw):
    (folder / f"{name}.json").write_text(json.dumps({"schema": "add-scene/1", "name": name} | raw))
    return folder / f"{name}.json"


def fit_folder(folder, numbers, **more):
    """A folder as `add optimize` leaves it: label -> (value, standard error, transform, further keys of the entry)."""
    folder.mkdir()
    known, parameters = {}, []
    for label, (value, error, transform, extra) in numbers.items():
        known[label] = {"value": value, "unit": "-", "standard_error": error, "errors": {"noise": error}} | extra
        parameters.append({"path": label.partition("[")[0], "transform": transform})
    result = {"format": "add-result/1", "command": "optimize", "status": "done", "parameters": known} | more
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "scene.json").write_text(json.dumps({"schema": "add-scene/1", "parameters": parameters}))
    return folder


def table(path):
    rows = list(csv.DictReader(path.read_text().splitlines()))
    out = {}
    for row in rows:
        part = out.setdefault((row["quantity"], row["coordinate"]), {key: [] for key in row})
        for key, value in row.items():
            part[key].append(value)
    return out


def column(part, key):
    return np.array([np.nan if text == "" else float(text) for text in part[key]])


def throw(folder, name="throw", **sections):
    """A particle thrown with 2 m/s upwards: z = 2 t + g t^2 / 2."""
    return write(folder, name, {
        "time": {"dt": 0.01, "duration": 0.4, "integrator": "bdf2"}, "gravity": [0, 0, -9.81],
        "bodies": {"p": {"type": "particles", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0, "velocity": [0, 0, 2]}},
        "markers": {"m": {"body": "p", "nodes": [0]}}, **sections,
    })  # fmt: skip


@pytest.fixture(scope="module")
def thrown(tmp_path_factory):
    """g = -9.81 +- 0.3, linear in the motion: the sampled quantiles are those of the draws of g."""
    folder = tmp_path_factory.mktemp("thrown")
    fit = fit_folder(folder / "fit", {"gravity[2]": (-9.81, 0.3, "linear", {})})
    asked = run("predict", fit, throw(folder), "--samples", SAMPLES, "--jobs", 1, "-o", folder / "out",
                "--side", "m.z=0.015")  # fmt: skip
    assert asked.exit_code == 0, asked.output
    return folder, asked.output


def test_a_throw_has_the_band_of_its_closed_form(thrown):
    folder, said = thrown
    result = json.loads((folder / "out" / "result.json").read_text())
    drawn = np.array(json.loads((folder / "out" / "draws.json").read_text())["values"])[:, 0]
    z = table(folder / "out" / "bands.csv")["m", "z"]
    t = column(z, "time_s")
    for level in (5, 25, 50, 75, 95):
        exact = 2.0 * t + 0.5 * np.quantile(drawn, level / 100) * t**2
        assert column(z, f"q{level}") == pytest.approx(exact, abs=3e-3 * 0.3 + 2e-4)  # BDF2 steps of 10 ms
    assert drawn.mean() == pytest.approx(-9.81, abs=4 * 0.3 / np.sqrt(SAMPLES))
    spread = np.sqrt(((drawn + 9.81) ** 2).mean())
    assert column(z, "linear_sd") == pytest.approx(0.5 * spread * t**2, rel=0.03, abs=1e-4)
    assert result["prediction"]["linear_until"] == pytest.approx(0.4)
    assert "Drawn from the covariance: gravity[2]" in said and "up to the end" in said
    (end,) = [item for item in result["prediction"]["ends"] if "m: ends at z" in item["end"]]
    # 2 t + g t^2 / 2 > 0.015 for g > -9.8125, but for what the steps are off.
    assert abs(end["count"] - (drawn > -9.8125).sum()) <= 3 and end["lower"] < end["share"] < end["upper"]
    for name in ("prediction.png", "report.md", "report.html"):
        assert (folder / "out" / name).stat().st_size > 500
    assert "Half width of the 90 % band" in (folder / "out" / "report.md").read_text()


def test_a_prediction_goes_on_and_is_the_same(thrown, tmp_path):
    folder, _ = thrown
    shutil.copytree(folder / "out", tmp_path / "out")
    lines = (tmp_path / "out" / "draws.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out" / "draws.jsonl").write_text("".join(lines[: SAMPLES - 5]))
    again = ["predict", folder / "fit", folder / "throw.json", "--jobs", 1, "-o", tmp_path / "out", "--samples"]
    assert run(*again, SAMPLES).exit_code == 0
    assert len((tmp_path / "out" / "draws.jsonl").read_text().splitlines()) == SAMPLES
    assert (tmp_path / "out" / "bands.csv").read_text() == (folder / "out" / "bands.csv").read_text()
    other = run(*again, SAMPLES, "--seed", 1)
    assert isinstance(other.exception, InputError) and "of other draws" in str(other.exception)


def test_coverage_of_a_recording(thrown, tmp_path):
    """Of a throw with g three standard errors off the recording leaves the band as that leaves the noise behind."""
    folder, _ = thrown
    shutil.copytree(folder / "fit", tmp_path / "fit")
    result = json.loads((tmp_path / "fit" / "result.json").read_text())
    result["fit"] = {"rms": 1e-3 * np.sqrt(3.0), "unit": "m", "samples": 100}
    (tmp_path / "fit" / "result.json").write_text(json.dumps(result))
    times = np.arange(1, 41) / 100.0
    for g, holds in ((-9.81 + 0.15, True), (-9.81 - 0.9, False)):
        places = np.stack([0.0 * times, 0.0 * times, 2.0 * times + 0.5 * g * times**2], axis=1)[:, None]
        write_csv(tmp_path / "m.csv", Recording(("m",), times, places, np.ones((times.size, 1), bool), ""))
        scene = throw(tmp_path, recording={"file": "m.csv", "markers": {"m": "m"}})
        asked = run("predict", tmp_path / "fit", scene, "--samples", 40, "--jobs", 1, "-o", tmp_path / f"o{holds}")
        assert asked.exit_code == 0, asked.output
        found = json.loads((tmp_path / f"o{holds}" / "result.json").read_text())["prediction"]["coverage"]
        rows = list(csv.DictReader((tmp_path / f"o{holds}" / "coverage.csv").read_text().splitlines()))
        shares = [float(row["within_90"]) for row in rows]
        assert (min(shares[5:]) == 1.0) if holds else (shares[-1] == 0.0 and found["within_90"] < 0.6)
        assert ("it holds" in found["verdict"]) is holds
        assert (tmp_path / f"o{holds}" / "coverage.png").stat().st_size > 5000


@pytest.mark.parametrize(("between", "counts"), [(0.4, True), (4.0, False)])
def test_numbers_differ_from_take_to_take(tmp_path, between, counts):
    """g = -9.81 +- 0.3 of all takes, +- 0.4 of each: both are drawn; a variation beyond belief is not."""
    fit = fit_folder(tmp_path / "fit", {"gravity[2]": (-9.81, 0.3, "linear", {"between_takes": between})})
    asked = run("predict", fit, throw(tmp_path), "--samples", 300, "--jobs", 1, "-o", tmp_path / "out")
    assert asked.exit_code == 0 and ("how takes differ" in asked.output) is counts, asked.output
    drawn = np.array(json.loads((tmp_path / "out" / "draws.json").read_text())["values"])[:, 0]
    assert drawn.std() == pytest.approx(np.hypot(0.3, 0.4) if counts else 0.3, rel=0.12)


def test_a_start_takes_the_clock_along(thrown, tmp_path):
    """A recording that begins 30 ms late, +- 4 ms: places are those of the earlier time, as uncertain as it is."""
    folder, _ = thrown
    clock = fit_folder(tmp_path / "clock", {"recording.time_offset": (0.03, 0.004, "linear", {})})
    times = np.arange(4, 40) / 100.0
    z = 2.0 * (times - 0.03) - 0.5 * 9.81 * (times - 0.03) ** 2
    places = np.stack([0.0 * z, 0.0 * z, z], axis=1)[:, None]
    write_csv(tmp_path / "m.csv", Recording(("m",), times, places, np.ones((times.size, 1), bool), ""))
    scene = throw(tmp_path, recording={"file": "m.csv", "markers": {"m": "m"}, "time_offset": 0.0})
    asked = run("predict", folder / "fit", scene, "--start", clock, "--samples", SAMPLES, "--jobs", 1,
                "-o", tmp_path / "out")  # fmt: skip
    assert asked.exit_code == 0, asked.output
    found = table(tmp_path / "out" / "bands.csv")["m", "z"]
    t = column(found, "time_s") - 0.03
    assert column(found, "q50") == pytest.approx(z, abs=5e-3)
    drawn = np.array(json.loads((tmp_path / "out" / "draws.json").read_text())["values"])
    moved = 0.5 * (drawn[:, :1] + 9.81) * t**2 - (2.0 - 9.81 * t) * (drawn[:, 1:] - 0.03)
    assert column(found, "linear_sd") == pytest.approx(np.sqrt((moved**2).mean(axis=0)), rel=0.05, abs=2e-4)


def test_a_discrepancy_widens_the_bands_and_says_so(thrown, tmp_path):
    """A fit that left over 20 mm, slowly changing, along the way of its marker: half widths add in squares."""
    folder, _ = thrown
    shutil.copytree(folder / "fit", tmp_path / "fit")
    asked = ["predict", tmp_path / "fit", folder / "throw.json", "--samples", SAMPLES, "--jobs", 1, "--discrepancy"]
    none = run(*asked, "-o", tmp_path / "out")
    assert isinstance(none.exception, InputError) and "no residuals" in str(none.exception)
    head = "experiment,use,marker,time_s,x_m,y_m,z_m,dx_m,dy_m,dz_m,distance_m,angle_rad\n"
    generator = np.random.default_rng(0)
    lines = []
    for take in "abcdefgh":
        phase = generator.uniform(0, 2 * np.pi)
        for t in np.arange(0, 0.4, 0.005):
            lines.append(f"{take},fit,m,{t},0,0,0,0,0,{0.02 * np.sqrt(2) * np.sin(15 * t + phase)},0,")
    (tmp_path / "fit" / "residuals.csv").write_text(head + "\n".join(lines) + "\n")
    done = run(*asked, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "widened by what the fit left over in 8 takes" in done.output and "motions of the same kind" in done.output
    wide, narrow = (table(path / "out" / "bands.csv")["m", "z"] for path in (tmp_path, folder))
    half, before = (0.5 * (column(part, "q95") - column(part, "q5")) for part in (wide, narrow))
    assert half == pytest.approx(np.hypot(before, ndtri(0.95) * 0.02), rel=0.25)
    # Of takes that the fit predicted, which left over three times as much, those alone count.
    more = [line[0].upper() + line[1:].replace(",fit,", ",validate,") for line in lines]
    more = [",".join([*cells[:9], str(3 * float(cells[9])), "0", ""]) for cells in (line.split(",") for line in more)]
    (tmp_path / "fit" / "residuals.csv").write_text(head + "\n".join([*lines, *more]) + "\n")
    done = run(*asked, "-o", tmp_path / "again")
    assert "in 8 takes that it predicted" in done.output, done.output
    wider = table(tmp_path / "again" / "bands.csv")["m", "z"]
    half = 0.5 * (column(wider, "q95") - column(wider, "q5"))
    # The samples' own spread is in what was left over, and counts once.
    assert half == pytest.approx(np.maximum(before, ndtri(0.95) * 0.06), rel=0.25)
    x = table(tmp_path / "out" / "bands.csv")["m", "x"]  # which does not move
    assert (column(x, "q95") == column(x, "q5")).all()


TOP = {
    "time": {"dt": 0.01, "duration": 1.2, "integrator": "bdf2"},
    "bodies": {"arm": {
        "type": "articulated",
        "links": {"rod": {"mass": 1.0, "inertia": [1e-6, 1e-6, 1e-6, 0, 0, 0], "center_of_mass": [0, 0, -0.5]}},
        "joints": {"swing": {"child": "rod", "axis": [0, -1, 0], "value": np.pi - 0.02, "rate": 0.0}},
    }},
    "markers": {"tip": {"body": "arm/rod", "point": [0, 0, -0.5]}, "way": {"body": "arm/rod", "direction": [0, 0, -1]}},
}  # fmt: skip


def test_a_pendulum_near_its_top_has_no_linear_band(tmp_path, caplog):
    """It falls to one side or the other: the linear band is refused behind the first moments, the sampled one holds."""
    label = "bodies.arm.joints.swing.value"
    fit = fit_folder(tmp_path / "fit", {label: (np.pi - 0.02, 0.03, "linear", {})})
    scene = write(tmp_path, "top", TOP)
    asked = run("predict", fit, scene, "--parameter", label, "--samples", SAMPLES, "--jobs", 1, "-o", tmp_path / "out")
    assert asked.exit_code == 0, asked.output
    found = json.loads((tmp_path / "out" / "result.json").read_text())["prediction"]
    assert found["linear_until"] < 1.0 and "not offered there" in asked.output
    bands = table(tmp_path / "out" / "bands.csv")
    x = bands["tip", "x"]
    assert np.isnan(column(x, "linear")[-1]) and np.isfinite(column(x, "q95")).all()
    # The angles against those of scipy's solver with the same draws; quantiles about a circular mean, wrapped.
    drawn = np.array(json.loads((tmp_path / "out" / "draws.json").read_text())["values"])[:, 0]
    ends = [
        solve_ivp(lambda t, y: [y[1], -9.81 / 0.5 * np.sin(y[0])], (0, 1.2), [a, 0.0], rtol=1e-9, atol=1e-9).y[0, -1]
        for a in drawn
    ]
    a = bands["angle of arm/swing", "a"]
    mean = np.angle(np.exp(1j * np.array(ends)).mean())
    assert np.angle(np.exp(1j * (column(a, "reference")[-1] - mean))) == pytest.approx(0.0, abs=0.1)
    off = np.angle(np.exp(1j * (np.array(ends) - mean)))
    assert column(a, "q50")[-1] == pytest.approx(np.median(off), abs=0.2)
    assert column(a, "q95")[-1] - column(a, "q5")[-1] == pytest.approx(np.ptp(np.quantile(off, [0.05, 0.95])), abs=0.3)
    assert np.abs(column(a, "q95")).max() <= np.pi
    # Without samples two runs tell.
    caplog.clear()
    plain = run("predict", fit, scene, "--parameter", label, "-o", tmp_path / "p.csv", "--json")
    assert plain.exit_code == 0, plain.output
    assert "the linear band holds until t =" in caplog.text and "--samples" in caplog.text
    assert json.loads(plain.stdout)["linear_until"] < 1.0


def test_which_side_of_a_box_is_up(tmp_path):
    """A box that stands on its edge, at 45 degrees but for 0.01 rad +- 0.05, tips over to one side or the other."""
    size, about = 0.1, np.pi / 4 + 0.01
    box = {
        "type": "rigid", "geometry": {"shape": "box", "size": [size] * 3}, "mass": 0.3,
        "position": [0, 0, size * np.sqrt(0.5)], "orientation": [np.cos(about / 2), 0, np.sin(about / 2), 0],
    }  # fmt: skip
    scene = write(tmp_path, "edge", {
        "time": {"dt": 0.002, "duration": 0.6}, "bodies": {"box": box},
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"friction": 0.6},
        "markers": {"c": {"body": "box", "point": [0, 0, 0]}},
    })  # fmt: skip
    label = "bodies.box.orientation[1]"
    fit = fit_folder(tmp_path / "fit", {label: (about, 0.05, "linear", {})})
    asked = run("predict", fit, scene, "--parameter", label, "--samples", 24, "--jobs", 1, "-o", tmp_path / "out")
    assert asked.exit_code == 0, asked.output
    ends = json.loads((tmp_path / "out" / "result.json").read_text())["prediction"]["ends"]
    drawn = np.array(json.loads((tmp_path / "out" / "draws.json").read_text())["values"])[:, 0]
    counts = {item["end"]: item["count"] for item in ends}
    # Turned beyond 45 degrees about y it falls on its +x face, and -x is up.
    assert counts.get("box: -x up", 0) == pytest.approx((drawn > np.pi / 4).sum(), abs=1)
    assert counts.get("box: -x up", 0) + counts.get("box: +z up", 0) == 24
    assert any(text.startswith("box: touches") and count == 24 for text, count in counts.items())
    assert "% (" in asked.output


@pytest.mark.parametrize(
    ("numbers", "more", "source"),
    [
        ({"interval_by": "profile likelihood", "interval_lower": -10.0, "interval_upper": -8.0}, {},
         "profile likelihood"),
        ({}, {"uncertainty": {"contains": [], "bootstrap": {
            "over": "takes", "labels": ["gravity[2]"], "replicates": [[-11.0], [-9.0]]}}}, "bootstrap over takes"),
    ],
)  # fmt: skip
def test_the_source_of_the_draws_is_said(tmp_path, numbers, more, source):
    fit = fit_folder(tmp_path / "fit", {"gravity[2]": (-9.81, 0.3, "linear", numbers)}, **more)
    asked = run("predict", fit, throw(tmp_path), "--samples", 8, "--jobs", 1, "-o", tmp_path / "out")
    assert asked.exit_code == 0, asked.output
    assert f"Drawn from the {source}: gravity[2]" in asked.output
    drawn = np.array(json.loads((tmp_path / "out" / "draws.json").read_text())["values"])[:, 0]
    assert set(drawn) <= {-11.0, -9.0} if "bootstrap" in source else drawn.std() > 0.1


def test_numbers_smaller_than_their_errors_are_drawn_in_their_own_units(tmp_path):
    """Replicates e^3 and e^-3 of a logarithm are steps to 1 + 3 and 1 - 3 of the number, of which one is below zero."""
    kept = {"over": "takes", "labels": ["bodies.p.mass"], "replicates": [[np.exp(3.0)], [np.exp(-3.0)]]}
    fit = fit_folder(
        tmp_path / "fit", {"bodies.p.mass": (1.0, 2.0, "log", {})}, uncertainty={"contains": [], "bootstrap": kept}
    )
    asked = run("predict", fit, throw(tmp_path), "--samples", 8, "--jobs", 1, "-o", tmp_path / "out")
    assert asked.exit_code == 0, asked.output
    assert "own units" in asked.output and "left its bounds: it is held there" in asked.output
    drawn = np.array(json.loads((tmp_path / "out" / "draws.json").read_text())["values"])[:, 0]
    assert sorted(set(drawn.round(6))) == [0.001, 4.0]  # a thousandth of what was found, as a mass may not be zero


def test_starts_and_priors_are_drawn(tmp_path):
    """A fit of the start brings velocity and error; a prior of the scene says how far off its own value may be."""
    fit = fit_folder(tmp_path / "fit", {"gravity[2]": (-9.81, 0.0, "linear", {})})
    begun = fit_folder(tmp_path / "begun", {"bodies.p.velocity[2]": (3.0, 0.2, "linear", {})})
    scene = throw(
        tmp_path,
        parameters=[{"path": "bodies.p.position", "components": [0]}],
        objective=[{"type": "prior", "parameter": "bodies.p.position", "mean": 5.0, "sigma": 0.01}],
    )
    asked = run("predict", fit, scene, "--start", begun, "--samples", SAMPLES, "--jobs", 1, "-o", tmp_path / "out")
    assert asked.exit_code == 0, asked.output
    assert "from a prior of the scene" in asked.output
    there = json.loads((tmp_path / "out" / "draws.json").read_text())
    assert there["labels"] == ["gravity[2]", "bodies.p.velocity[2]", "bodies.p.position[0]"]
    values = np.array(there["values"])
    assert values.mean(axis=0) == pytest.approx([-9.81, 3.0, 0.0], abs=0.11)
    assert values.std(axis=0) == pytest.approx([0.0, 0.2, 0.01], rel=0.4)
    none = run("predict", begun, scene, "--parameter", "bodies.p.velocity", "--start", fit, "--samples", 8)
    assert isinstance(none.exception, InputError) and "no start of one motion" in str(none.exception)


def test_priors_are_drawn_within_what_the_format_allows(tmp_path):
    """A sixth of these masses was below zero."""
    fit = fit_folder(tmp_path / "fit", {"gravity[2]": (-9.81, 0.0, "linear", {})})
    scene = throw(
        tmp_path,
        parameters=[{"path": "bodies.p.mass", "transform": "log"}],
        objective=[{"type": "prior", "parameter": "bodies.p.mass", "mean": 1.0, "sigma": 1.0}],
    )
    asked = run("predict", fit, scene, "--samples", SAMPLES, "--jobs", 1, "-o", tmp_path / "out")
    assert asked.exit_code == 0, asked.output
    values = np.array(json.loads((tmp_path / "out" / "draws.json").read_text())["values"])[:, 1]
    assert values.min() == pytest.approx(1e-3) and "it is held there" in asked.output


def test_refusals(tmp_path):
    fit = fit_folder(tmp_path / "fit", {"gravity[2]": (-9.81, 0.3, "linear", {})})
    scene, out = throw(tmp_path), tmp_path / "out"
    few = run("predict", fit, scene, "--samples", 1)
    assert few.exit_code == 2 and "--samples" in few.output
    for extra in (["--seed", 0], ["--side", "m.x=0"], ["--force"]):
        asked = run("predict", fit, scene, "-o", tmp_path / "p.csv", *extra)
        assert asked.exit_code == 2 and "needs --samples" in asked.output
    asked = run("predict", fit, scene, "--samples", 8, "-o", tmp_path / "p.csv")
    assert asked.exit_code == 2 and "run folder" in asked.output
    asked = run("predict", fit, scene, "--samples", 8, "-o", out, "--side", "other.x=1")
    assert isinstance(asked.exception, InputError) and "no such marker" in str(asked.exception)
    blind = fit_folder(tmp_path / "blind", {"gravity[2]": (-9.81, None, "linear", {"errors": {}, "at_bound": True})})
    asked = run("predict", blind, scene, "--samples", 8, "-o", out)
    assert isinstance(asked.exception, InputError) and "no errors to draw from" in str(asked.exception)
    assert "on a bound" in str(asked.exception)
    ragged = {"contains": [], "bootstrap": {"labels": ["gravity[2]"], "replicates": [[-9.8], []]}}
    torn = fit_folder(tmp_path / "torn", {"gravity[2]": (-9.81, 0.3, "linear", {})}, uncertainty=ragged)
    asked = run("predict", torn, scene, "--samples", 8, "-o", out)
    assert isinstance(asked.exception, InputError) and "damaged" in str(asked.exception)
    other = fit_folder(tmp_path / "other", {"bodies.ball.mass": (1.0, 0.1, "log", {})})
    asked = run("predict", other, scene, "--samples", 8, "-o", out)
    assert isinstance(asked.exception, InputError) and "bodies.ball" in str(asked.exception)


def test_runs_that_fail_are_counted(tmp_path, monkeypatch, caplog):
    """Runs without a solution are said, and warned of; where none has one there is no band of nothing."""
    fit = fit_folder(tmp_path / "fit", {"gravity[2]": (-9.81, 0.3, "linear", {})})
    real = Simulation.run

    def failing(limit):
        def some(self, theta=None, **options):
            g = self.system.parameters.view(theta, "gravity")[2]
            if g < limit:
                raise SolverError(f"no solution at {g:.3f}")
            return real(self, theta, **options)

        monkeypatch.setattr(Simulation, "run", some)

    failing(-9.9)
    asked = run("predict", fit, throw(tmp_path), "--samples", 30, "--jobs", 1, "-o", tmp_path / "some")
    assert asked.exit_code == 0, asked.output
    result = json.loads((tmp_path / "some" / "result.json").read_text())
    drawn = np.array(json.loads((tmp_path / "some" / "draws.json").read_text())["values"])[:, 0]
    assert result["failed"] == (drawn < -9.9).sum() > 3
    assert (
        f"{result['failed']} of 30 runs failed and are in no band" in asked.output and "no solution at" in caplog.text
    )
    failing(np.inf)
    asked = run("predict", fit, throw(tmp_path), "--samples", 3, "--jobs", 1, "-o", tmp_path / "none")
    assert isinstance(asked.exception, SolverError) and "none of the 3 runs" in str(asked.exception)
    assert len((tmp_path / "none" / "draws.jsonl").read_text().splitlines()) == 3


def test_a_prediction_that_is_stopped_keeps_its_runs(tmp_path, monkeypatch):
    fit = fit_folder(tmp_path / "fit", {"gravity[2]": (-9.81, 0.3, "linear", {})})
    real, seen = Watch.seen, []

    def stopping(self, *arguments):
        seen.append(1)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(Watch, "seen", stopping)
    asked = ["predict", fit, throw(tmp_path), "--samples", 9, "--jobs", 1, "-o", tmp_path / "out"]
    with pytest.raises(click.ClickException, match="5 of 9 runs; the same `add predict` again goes on"):
        CliRunner().invoke(cli, [str(text) for text in asked], standalone_mode=False, catch_exceptions=False)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["status"] == "interrupted" and result["sampled"] == 5 and result["prediction"]["ends"] == []
    assert run(*asked).exit_code == 0 and len(seen) == 6 + 4
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "done"


@pytest.mark.parametrize("text", ["tip.x=nan", "tip.x=inf", "tip.x=1e999", "tip.q=1", "tip=1", ".x=1", "tip.x="])
def test_sides_that_are_no_places(text, tmp_path):
    found = run("predict", fit_folder(tmp_path / "fit", {}), throw(tmp_path), "--samples", 4, "--side", text)
    assert found.exit_code == 2 and "MARKER.AXIS=VALUE" in found.output
