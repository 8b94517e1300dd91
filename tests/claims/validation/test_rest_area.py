"""Depth at which a stiff plate rests: the same on every mesh if stiffness counts per rest area, and not if per node."""

import numpy as np
import pytest
from support.setups import G, block_on_plane, bottom_nodes, bottom_scale, cube, place, rest_depth

from add.geometry import HEX8, TET4, TET10, box_mesh
from add.solve.step_equations import NewtonOptions

EDGE, THICKNESS, DENSITY = 0.2, 0.02, 500.0
NEWTON = NewtonOptions(atol=1e-9, rtol=0.0)


def settled_depth(setup) -> float:
    """Depth of the bottom after a damped fall from the plane's surface [m], mean over the bottom nodes."""
    period = 2 * np.pi * np.sqrt(rest_depth(setup) / G)
    setup.view("contact.block.floor.k_d")[...] = setup.view("contact.block.floor.k_n") * 1.6 * period / (2 * np.pi)
    run = place(setup, 0.0).simulation(period / 12, 50, newton=NEWTON).run()
    assert np.abs(run.v[-1]).max() < 1e-5
    return -float(run.q[-1].reshape(-1, 3)[bottom_nodes(setup.body.mesh), 2].mean())


@pytest.mark.parametrize("family", [TET4, TET10, HEX8], ids=lambda f: f.name)
def test_plate(family) -> None:
    depths = {True: [], False: []}
    counts = (1, 2) if family is TET10 else (1, 2, 4)
    for n in counts:
        for per_area in (True, False):
            setup = block_on_plane(
                box_mesh((EDGE, EDGE, THICKNESS), (n, n, 1), family),
                young=1e9, density=DENSITY, poisson=0.0, k_n=5e5 if per_area else 5e3, per_area=per_area,
            )  # fmt: skip
            depth = settled_depth(setup)
            depths[per_area].append(depth)
            assert depth == pytest.approx(rest_depth(setup), rel=2e-3)
    nominal = DENSITY * THICKNESS * G / 5e5
    print(family.name, "depth over weight / (k_n A), per area", np.divide(depths[True], nominal), end=" ")
    print("per node [m]", depths[False])
    # The bottom's edge nodes also carry a share of the sides, 2 THICKNESS / EDGE of the area on hexahedra.
    np.testing.assert_allclose(depths[True], nominal, rtol=0.25)
    np.testing.assert_allclose(depths[True], depths[True][-1], rtol=0.1)
    assert depths[False][0] > 2.0 * depths[False][-1]


def test_share_of_the_sides() -> None:
    """Documents a limit: edge nodes count their sides' area too, so a cube of n^3 cells rests on (1 + 2/n) of its base.

    The answer is mesh-independent in the limit only, at first order, and where edges and corners carry the body.
    """
    for n in (1, 2, 4):
        setup = block_on_plane(cube(EDGE, n, HEX8), young=1e9, density=DENSITY, k_n=5e6, per_area=True)
        assert bottom_scale(setup) / EDGE**2 == pytest.approx(1.0 + 2.0 / n, rel=1e-12)
