"""A stiff ball in a soft block, found element by element from 60 points outside (`scenes/stiff_inclusion.json`)."""

import numpy as np
import pytest
from support.places import SCENES

from add import load_scene
from scripts.make_inclusion_scene import CENTRE, RADIUS, STIFF


@pytest.mark.slow
def test_stiff_inclusion() -> None:
    """Its place and its contrast within 10 %, from a block that is uniform at first."""
    scene = load_scene(SCENES / "stiff_inclusion.json")
    problem = scene.inverse_problem()
    mesh = scene.build().model.body("block").mesh
    assert problem.n == mesh.n_elements == 3000 and len(scene.markers) == 60
    young = np.exp(problem.optimize().x)
    middles = mesh.points[mesh.cells].mean(axis=1)
    soft = np.median(young)
    found = young > np.sqrt(soft * np.quantile(young, 0.99))
    off = np.linalg.norm(middles[found].mean(axis=0) - CENTRE)
    contrast, diameter = young[found].mean() / soft, np.cbrt(6.0 * 5e-4 / 3000 * found.sum() / np.pi)
    print(f"soft {soft:.0f} Pa, contrast {contrast:.2f}, {1e3 * off:.1f} mm off, diameter {1e3 * diameter:.1f} mm")
    assert soft == pytest.approx(2e4, rel=0.02)
    assert contrast == pytest.approx(STIFF / 2e4, rel=0.1)
    assert off < 0.1 * 2.0 * RADIUS and diameter == pytest.approx(2.0 * RADIUS, rel=0.1)
