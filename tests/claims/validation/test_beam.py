"""A slender cantilever against beam theory: large deflection (Bisshopp & Drucker 1945) and first frequency.

Poisson's ratio is 0 where nothing else is said, so that the clamp does not restrain the section and plane beam theory
applies; slenderness 40, so that shear and stretching stay under 0.1 %.

A fully integrated hex8 of length a in a beam of height h carries a parasitic shear that stiffens bending,

    EI' = EI (1 + (G/E) (a/h)^2)      (G/E = 1/2 here, any number of elements over the height)

which mean dilatation does not cure: it has to be refined away along the beam, and the tests below say by how much.
Enhanced elements do not have it.
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from support.setups import Setup, one_body, upward_crossings

from add.bodies import NodalLoad, Pin, SoftBody
from add.equations.signals import constant
from add.geometry import HEX8, TET10, ElementFamily, SoftMesh, box_mesh
from add.simulation.start import EquilibriumStart
from add.solve.step_equations import NewtonOptions

LENGTH, HEIGHT, YOUNG, DENSITY = 1.0, 0.025, 1e9, 1000.0
EI = YOUNG * HEIGHT**4 / 12.0
STATIC = NewtonOptions(atol=1e-8, rtol=0.0, max_iterations=80)


def beam(family: ElementFamily, divisions: int, *, across: int = 1, mean: bool = False, poisson: float = 0.0) -> Setup:
    mesh = box_mesh((LENGTH, HEIGHT, HEIGHT), (divisions, across, across), family)
    x, y, z = mesh.points.T
    clamp = Pin(np.flatnonzero(x < x.min() + 1e-9))
    # The corners of the end carry the load; how it is spread does not reach the theory (Saint-Venant).
    tip = np.flatnonzero((x > x.max() - 1e-9) & (abs(abs(y) - HEIGHT / 2) < 1e-9) & (abs(abs(z) - HEIGHT / 2) < 1e-9))
    load = NodalLoad(tip, np.full(tip.size, 1.0 / tip.size), constant("load"))
    body = SoftBody("beam", mesh, mean_dilatation=mean, pins=(clamp,), loads=(load,))
    return one_body(body, young=YOUNG, poisson=poisson, density=DENSITY, gravity=(0, 0, 0))


def tip_of(setup: Setup, q: np.ndarray) -> np.ndarray:
    """Displacement of the middle of the end face [m]."""
    (load,) = setup.body.loads
    return (q.reshape(-1, 3)[load.nodes] - setup.body.mesh.points[load.nodes]).mean(axis=0)


def deflect(setup: Setup, alphas: Sequence[float]) -> dict[float, tuple[float, float]]:
    """Drop and reach over the length under P L^2 / EI = alpha, each found from the one before."""
    q, _ = setup.model.initial.evaluate(setup.theta)
    out = {}
    for alpha in alphas:
        setup.put(load=[[0.0, 0.0, -alpha * EI / LENGTH**2]])
        q = setup.equilibrium(q)
        dx, _, dz = tip_of(setup, q)
        out[alpha] = (-dz / LENGTH, 1.0 + dx / LENGTH)
    return out


@pytest.fixture(scope="module")
def elastica(data_root: Path) -> dict[float, tuple[float, float]]:
    path = data_root / "reference" / "bisshopp_drucker.csv"
    if not path.is_file():
        pytest.skip(f"no reference table at {path}")
    with path.open() as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    return {row[0]: (row[1], row[2]) for row in rows}


@pytest.fixture(scope="module")
def first_root(data_root: Path) -> float:
    path = data_root / "reference" / "reference_values.json"
    if not path.is_file():
        pytest.skip(f"no reference values at {path}")
    return json.loads(path.read_text())["cantilever_betaL"][0]


@pytest.mark.parametrize(("family", "divisions"), [(TET10, 20), (HEX8, 320)], ids=["tet10", "hex8"])
def test_large_deflection(family, divisions: int, elastica) -> None:
    found = deflect(beam(family, divisions), (0.5, 1.0, 2.0, 3.0, 4.0, 5.0))
    for alpha, (drop, reach) in found.items():
        exact_drop, exact_reach = elastica[alpha]
        print(
            f"{family.name} {divisions} PL2/EI={alpha} drop {drop:.5f} ({drop / exact_drop - 1:+.2%})"
            f" reach {reach:.5f} ({reach / exact_reach - 1:+.2%})"
        )
        assert drop == pytest.approx(exact_drop, rel=0.01)
        assert reach == pytest.approx(exact_reach, rel=0.01)


def test_hex8_locks_as_predicted_and_converges(elastica) -> None:
    excess = []
    for divisions in (40, 80, 160, 320):
        drop, _ = deflect(beam(HEX8, divisions), (0.1,))[0.1]
        aspect = LENGTH / divisions / HEIGHT
        excess.append(elastica[0.1][0] / drop - 1.0)
        print(f"hex8 {divisions}: a/h {aspect}, stiffer by {excess[-1]:.4f}, predicted {0.5 * aspect**2:.4f}")
        assert excess[-1] == pytest.approx(0.5 * aspect**2, rel=0.05)
    np.testing.assert_allclose(np.divide(excess[:-1], excess[1:]), 4.0, rtol=0.1)


def test_equilibrium_start_carries_a_small_load(elastica) -> None:
    """What `EquilibriumStart` does reach by itself: a drop of 0.03 % of the length."""
    setup = beam(TET10, 20)
    setup.put(load=[[0.0, 0.0, -1e-3 * EI / LENGTH**2]])
    q = setup.simulation(0.01, 0, start=EquilibriumStart(setup.model.initial, STATIC)).run().q[0]
    assert -tip_of(setup, q)[2] == pytest.approx(1e-3 / 3.0, rel=0.01)


def test_equilibrium_start_carries_a_large_load(elastica) -> None:
    setup = beam(TET10, 20)
    setup.put(load=[[0.0, 0.0, -EI / LENGTH**2]])
    q = setup.simulation(0.01, 0, start=EquilibriumStart(setup.model.initial, STATIC)).run().q[0]
    assert -tip_of(setup, q)[2] == pytest.approx(elastica[1.0][0], rel=0.01)


#: Family, divisions along and across, mean dilatation, Poisson's ratio, tolerance of the first frequency.
FREQUENCIES = {
    "tet10": (TET10, 20, 1, False, 0.0, 0.001),
    "tet10-0.3": (TET10, 20, 1, False, 0.3, 0.01),
    "hex8": (HEX8, 320, 1, False, 0.0, 0.005),
    "tet10-mean-0.499": (TET10, 20, 2, True, 0.499, 0.03),
    "hex8-mean-0": (HEX8, 160, 4, True, 0.0, 0.01),
    "hex8-mean-0.3": (HEX8, 160, 4, True, 0.3, 0.01),
    "hex8-mean-0.499": (HEX8, 160, 4, True, 0.499, 0.01),
}


def exact_frequency(first_root: float) -> float:
    """Angular frequency of the first bending mode [1/s]."""
    return first_root**2 * np.sqrt(EI / (DENSITY * HEIGHT**2 * LENGTH**4))


@pytest.mark.parametrize("case", FREQUENCIES)
def test_first_frequency(case: str, first_root: float) -> None:
    """Both bending modes of the square section, from the assembled matrices.

    Mean dilatation needs four hex8 (or two tet10) over the height: within one element it leaves a bending strain no
    volumetric stiffness, and one element over the height is a third too soft.
    """
    family, divisions, across, mean, poisson, tolerance = FREQUENCIES[case]
    setup = beam(family, divisions, across=across, mean=mean, poisson=poisson)
    q, _ = setup.model.initial.evaluate(setup.theta)
    stiffness, mass = setup.stiffness_and_mass(q)
    squares = spla.eigsh(stiffness, 2, mass, sigma=0.0, which="LM", return_eigenvectors=False)
    exact = exact_frequency(first_root)
    found = np.sqrt(np.sort(squares))
    print(f"{case}: {found / 2 / np.pi} Hz, beam {exact / 2 / np.pi:.5f} Hz ({found / exact - 1})")
    np.testing.assert_allclose(found, exact, rtol=tolerance)


def test_mean_dilatation_cures_volumetric_locking(first_root: float) -> None:
    """Poisson 0.499, two hex8 over the height: a quarter too stiff without, 2 % off with."""
    ratios = []
    for mean in (False, True):
        setup = beam(HEX8, 160, across=2, mean=mean, poisson=0.499)
        stiffness, mass = setup.stiffness_and_mass(setup.model.initial.evaluate(setup.theta)[0])
        (square,) = spla.eigsh(stiffness, 1, mass, sigma=0.0, which="LM", return_eigenvectors=False)
        ratios.append(np.sqrt(square) / exact_frequency(first_root) - 1.0)
    print("Poisson 0.499, frequency off by", ratios)
    assert ratios[0] > 0.2
    assert abs(ratios[1]) < 0.02


def test_period_of_a_small_vibration(first_root: float) -> None:
    """A beam in weak gravity, let go when straight, swings about its sag with the first mode."""
    setup = beam(TET10, 10)
    period = 2.0 * np.pi / exact_frequency(first_root)
    sag = 1e-4
    setup.put(gravity=(0.0, 0.0, -sag * 8.0 * EI / (DENSITY * HEIGHT**2 * LENGTH**4)), load=0.0)
    n = 240
    run = setup.simulation(period / 80, n, newton=NewtonOptions(atol=1e-8, rtol=0.0)).run()
    z = np.array([tip_of(setup, q)[2] for q in run.q]) + sag
    crossings = upward_crossings(run.t, z)
    found = float(np.diff(crossings).mean())
    print(f"period {found:.6f} s, beam {period:.6f} s ({found / period - 1:+.3%}), swings {crossings.size}")
    assert crossings.size == 3
    # BDF2 lengthens a period by (omega dt)^2 / 3 at most: 0.21 % here.
    assert found == pytest.approx(period, rel=0.005)


@pytest.mark.parametrize(("poisson", "distorted", "least"), [(0.0, 0.0, 0.99), (0.3, 0.0, 0.99), (0.3, 0.4, 0.96),
                                                             (0.4999, 0.0, 0.94)])  # fmt: skip
def test_enhanced_elements_bend(poisson: float, distorted: float, least: float) -> None:
    """A cantilever of 10 x 2 x 2 elements, ten times as long as high, against Timoshenko's beam (Cowper 1966).

    Plain elements have 0.67, 0.70, 0.60, and 0.45 of its deflection.
    """
    length, height = 1.0, 0.1
    mesh = box_mesh((length, height, height), (10, 2, 2), HEX8)
    points = mesh.points.copy()
    ends = np.abs(np.abs(points[:, 0]) - length / 2) < 1e-9
    points[:, 0] += np.where(ends, 0.0, distorted * length / 10 * points[:, 1] / (height / 2))
    x, y, z = points.T
    root, tip = x < x.min() + 1e-9, np.flatnonzero(x > x.max() - 1e-9)
    # A section that is free to narrow: its nodes lie in a plane, its axes stay where they are.
    pins = tuple(Pin(np.flatnonzero(root & (abs(c) < 1e-9)), (k,)) for k, c in ((1, y), (2, z)))
    shares = np.prod([np.where(abs(c[tip]) > height / 2 - 1e-9, 0.25, 0.5) for c in (y, z)], axis=0)
    load = NodalLoad(tip, shares, constant("load"))
    body = SoftBody("beam", SoftMesh(points, mesh.cells, HEX8), pins=(Pin(np.flatnonzero(root), (0,)), *pins),
                    loads=(load,), enhanced=True)  # fmt: skip
    setup = one_body(body, young=1e6, poisson=poisson, density=DENSITY, gravity=(0, 0, 0))
    bending, shear = 1e6 * height**4 / 12.0, 0.5e6 / (1.0 + poisson) * height**2
    shear *= 10.0 * (1.0 + poisson) / (12.0 + 11.0 * poisson) if poisson else 5.0 / 6.0
    force = 0.01 * bending / length**2
    setup.put(load=[[0.0, 0.0, -force]])
    q = setup.equilibrium(setup.model.initial.evaluate(setup.theta)[0])
    drop = -shares @ (q.reshape(-1, 3)[tip] - points[tip])[:, 2]
    ratio = drop / (force * (length**3 / (3.0 * bending) + length / shear))
    print(f"Poisson {poisson}, distorted by {distorted}: {ratio:.4f} of Timoshenko's deflection")
    assert least < ratio < 1.002
