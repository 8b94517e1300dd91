"""Muscles against differences and against MuJoCo's curves."""

from dataclasses import replace

import numpy as np
import pytest
from support.reference_tables import REFERENCE
from support.term_models import deformed, rough_box

from add.bodies import SoftBody
from add.equations.signals import Table
from add.geometry import HEX8, TET4, locate, quadrature_geometry
from add.kernels.muscles import ACTIVE_STRESS, COLUMNS, HILL, QUADRATIC, tension
from add.model import build_model
from add.terms import FibreLines, Muscle, VolumetricActuator
from add.testing import check_term

SIGNAL, ROWS = Table(np.array([0.0, 0.02, 0.05])), np.array([0, 1, 2])
ACTIVATION = [0.2, 0.7, 0.4]
#: F_0, l_o, v_max, l_min, l_max, f_P,max, f_V,max
CURVES = [3.0, 0.9, 8.0, 0.5, 1.6, 1.3, 1.2]
LAWS = {"active": (ACTIVE_STRESS, [3e4, 1.1, 0.4]), "quadratic": (QUADRATIC, [5e4, 0.9, 0.6]), "hill": (HILL, CURVES)}


def tissue(family, rng) -> tuple[SoftBody, FibreLines]:
    body = SoftBody("b", rough_box(family, 1))
    geometry = quadrature_geometry(body.mesh)
    fibres = rng.normal(size=(body.mesh.n_elements, 3))
    fibres /= np.linalg.norm(fibres, axis=1)[:, None]
    return body, FibreLines.of_tissue(body.mesh.cells, *geometry, fibres)


def line(family, rng) -> tuple[SoftBody, FibreLines]:
    body = SoftBody("b", rough_box(family, 1))
    points = np.array([[-0.03, -0.02, 0.0], [0.0, 0.01, 0.01], [0.02, 0.01, -0.01], [0.03, 0.02, 0.01]])
    found = [locate(body.mesh, point) for point in points]
    return body, FibreLines.through(points, *(np.stack([getattr(x, k) for x in found]) for k in ("nodes", "weights")))


@pytest.mark.parametrize("place", [tissue, line])
@pytest.mark.parametrize("family", [TET4, HEX8])
@pytest.mark.parametrize("law", LAWS)
def test_muscle(law, family, place, rng) -> None:
    body, lines = place(family, rng)
    code, numbers = LAWS[law]
    theta = np.array([*ACTIVATION, *numbers])
    kin = deformed(build_model([body]), rng)
    kin = replace(kin, v=0.05 * kin.v)  # within the speeds of the curves
    term = Muscle("b/m", lines, code, SIGNAL, ROWS, np.arange(3, theta.size))
    # Bodies that were stretched: at their rest nothing of the curves but the middle is seen.
    assert np.ptp(term.stretches(kin)) > 0.02 or place is line
    found = check_term(term, kin, theta, rng=rng, energy=law != "hill", scales={"q": 0.01, "v": 0.02})
    assert found.q > 0.0 and (found.v > 0.0) == (law == "hill")
    assert set(found.parameters) >= {1, 2, 3, 4}


@pytest.mark.parametrize("stretch", [0.5, 0.6, 0.8, 1.02, 1.2, 1.3, 1.42, 1.6])
@pytest.mark.parametrize("rate", [-10.0, -3.0, 0.5, 3.0])
def test_every_piece_of_the_curves(stretch: float, rate: float) -> None:
    """Slopes against differences on every parabola; both sides of a joint have one value and one slope."""
    p, a = np.array(CURVES), 0.6

    def at(point: np.ndarray) -> np.ndarray:
        out = np.empty(COLUMNS)
        tension(HILL, point[0], point[1], point[2], point[3:], out)
        return out

    start = np.array([stretch, rate, a, *p])
    found = at(start)
    for k in range(start.size):
        step = np.zeros(start.size)
        step[k] = 1e-6
        slope = (at(start + step)[0] - at(start - step)[0]) / 2e-6
        assert slope == pytest.approx(found[1 + k], rel=1e-5, abs=2e-5)


def test_joints_of_the_curves_are_smooth() -> None:
    p = np.array([1.0, 1.0, 1.5, 0.5, 1.6, 1.3, 1.2])
    for k, joints in ((0, (0.5, 0.75, 1.0, 1.3, 1.6)), (1, (-1.5, 0.0, 0.3))):
        for joint in joints:
            sides = []
            for side in (-1e-9, 1e-9):
                out, point = np.empty(COLUMNS), [0.9, 0.1]
                point[k] = joint + side
                tension(HILL, point[0], point[1], 1.0, p, out)
                sides.append(out[[0, 1 + k]])
            assert np.abs(sides[0] - sides[1]).max() < 1e-7


def test_curves_are_those_of_mujoco() -> None:
    path = REFERENCE / "muscle_mujoco.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    p, out = np.array([1.0, 1.0, 1.5, 0.5, 1.6, 1.3, 1.2]), np.empty(COLUMNS)
    assert rows.shape[0] > 100
    for length, velocity, gain, passive in rows:
        tension(HILL, length, velocity, 1.0, p, out)
        active = out[3]
        assert active == pytest.approx(gain, abs=1e-11)
        assert out[0] - active == pytest.approx(passive, abs=1e-11)


@pytest.mark.parametrize("family", [TET4, HEX8])
def test_volumetric_actuator(family, rng) -> None:
    body = SoftBody("b", rough_box(family, 1))
    cells = body.mesh.cells[1:]
    gradients, weights = (part[1:] for part in quadrature_geometry(body.mesh))
    theta = np.array([1.3, 0.8, 1.2, 2e4])
    term = VolumetricActuator("b/m", cells, gradients, weights, SIGNAL, ROWS, 3)
    kin = deformed(build_model([body]), rng)
    found = check_term(term, kin, theta, rng=rng, energy=True, scales={"q": 0.01})
    assert found.q > 0.0 and found.parameters == (1, 2, 3)
    moved = replace(kin, q=1.1 * kin.q)
    assert term.energy(moved, theta) != term.energy(kin, theta)
