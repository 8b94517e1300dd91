"""Pictures of a sampled objective."""

import numpy as np
import pytest
from plot.test_plot import drawn

from add.errors import InputError
from add.io.hdf5 import SweepData, write_sweep
from add.io.runfolder import RunFolder
from add.plot import plot_landscape, plot_run
from add.plot.fits import _edges


def bowl(n=(9, 7), logarithmic=(False, True), lift=0.01):
    """(a - 1)^2 + (ln b)^2 + lift."""
    a, b = np.linspace(-1, 2, n[0]), np.geomspace(0.1, 10, n[1])
    values = (a[:, None] - 1) ** 2 + np.log(b) ** 2 + lift
    slopes = np.broadcast_arrays(2 * (a[:, None] - 1), 2 * np.log(b) / b)
    return SweepData(("a", "b"), ("m", "-"), (a, b), logarithmic, values, np.stack(slopes, axis=-1))


def curve(logarithmic=False, lift=0.01):
    x = np.geomspace(0.5, 4, 15) if logarithmic else np.linspace(-1, 3, 15)
    values, slopes = (x - 1) ** 2 + lift, 2 * (x - 1)
    return SweepData(("x",), ("m/s",), (x,), (logarithmic,), values, slopes[:, None])


def pierced(data):
    data.values[2], data.gradients[2] = np.nan, np.nan
    return data


@pytest.mark.parametrize("data", [bowl(), bowl(lift=-1.0), pierced(bowl()), curve(), curve(True), pierced(curve())])
def test_drawn(tmp_path, data):
    drawn(plot_landscape(data, tmp_path / "a.png"))
    assert plot_landscape(data, tmp_path / "a.svg", logarithmic=False).stat().st_size > 5000


def test_scales(tmp_path):
    drawn(plot_landscape(curve(), tmp_path / "a.png", logarithmic=True))
    drawn(plot_landscape(bowl(), tmp_path / "b.png", logarithmic=True))
    with pytest.raises(InputError, match="positive"):
        plot_landscape(curve(lift=-1.0), tmp_path / "c.png", logarithmic=True)


def test_flat_and_empty(tmp_path):
    for data in (bowl(n=(2, 2)), curve()):
        data.values[...], data.gradients[...] = 1.0, 0.0
        drawn(plot_landscape(data, tmp_path / "a.png"))
        drawn(plot_landscape(data, tmp_path / "a.png", logarithmic=True))
        data.values[...] = np.nan
        with pytest.raises(InputError, match="no values"):
            plot_landscape(data, tmp_path / "a.png")


def test_edges():
    assert _edges(np.array([0.0, 1.0, 3.0]), False) == pytest.approx([-0.5, 0.5, 2.0, 4.0])
    assert _edges(np.array([1.0, 4.0, 16.0]), True) == pytest.approx([0.5, 2.0, 8.0, 32.0])


def test_folder(tmp_path):
    run = RunFolder(tmp_path / "run")
    write_sweep(run.sweep, bowl())
    assert [path.name for path in plot_run(run)] == ["landscape.png"]
    run.clear()
    assert not list(run.path.iterdir())
    run.write_json("grid.json", [])
    with pytest.raises(InputError, match="was killed"):
        plot_run(run)
