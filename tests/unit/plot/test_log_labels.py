"""Labels of logarithmic axes."""

import pytest

from add.plot.files import figure


@pytest.mark.parametrize("scale", ["log", "symlog"])
@pytest.mark.parametrize("high", [1e3, 5.0])
def test_powers_are_plain(tmp_path, scale, high):
    """With mathtext off, matplotlib's own labels show their source: $\\mathdefault{10^{-2}}$."""
    with figure(tmp_path / "a.svg", 3.0, 2.0) as (drawn, _):
        axis = drawn.subplots()
        axis.plot([1.0, 2.0, 3.0], [1e-5 * high, 1e-2, high])
        axis.set_yscale(scale, **({"linthresh": 1e-5 * high} if scale == "symlog" else {}))
    text = (tmp_path / "a.svg").read_text()
    assert "mathdefault" not in text
    assert "<!-- 1e" in text
