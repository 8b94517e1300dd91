"""Nearly incompressible solids, Poisson's ratio 0.4999: an exact solution, Cook's membrane, a block under a strip.

The stiffness is that of `add` at rest, so that all of this is linear elasticity. Elements that lock take many times as
many elements to come as close, or never do.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from support.setups import Setup, one_body

from add.bodies import Pin, SoftBody
from add.equations.kinematics import Kinematics
from add.geometry import FAMILIES, TET4, SoftMesh, box_mesh, quadrature_geometry, to_tet10
from add.geometry.boundary import boundary_faces

NU, NEAR = 0.4999, 1e-9


@dataclass(frozen=True)
class Way:
    """A kind of elements, and what they have against locking."""

    family: str
    mean: bool = False
    enhanced: bool = False

    def mesh(self, size: tuple[float, float, float], divisions: tuple[int, int, int]) -> SoftMesh:
        mesh = box_mesh(size, divisions, TET4 if self.family == "tet10" else FAMILIES[self.family])
        return to_tet10(mesh) if self.family == "tet10" else mesh

    def setup(self, mesh: SoftMesh, *pins: Pin) -> Setup:
        body = SoftBody("b", mesh, mean_dilatation=self.mean, enhanced=self.enhanced, pins=pins)
        return one_body(body, young=1.0, poisson=NU, density=1.0, gravity=(0, 0, 0))


TET10, TET10_MEAN, HEX8 = Way("tet10"), Way("tet10", mean=True), Way("hex8")
HEX8_MEAN, HEX8_ENHANCED, TET4_ALONE = Way("hex8", mean=True), Way("hex8", enhanced=True), Way("tet4")


def displacement(setup: Setup, force: np.ndarray | None = None, held: np.ndarray | None = None) -> np.ndarray:
    """Displacement (n, 3) under forces, or with prescribed displacements of the pinned nodes."""
    q, _ = setup.model.initial.evaluate(setup.theta)
    free, zero = setup.model.system.partition.free, np.zeros_like(q)

    def residual(x: np.ndarray) -> np.ndarray:
        return setup.model.system.residual(Kinematics(x, zero, zero, 0.0, 0), np.zeros(0), setup.theta)[0]

    u = zero.copy() if held is None else held.ravel().copy()
    r = (residual(q + 1e-6 * u) - residual(q - 1e-6 * u)) / 2e-6
    if force is not None:
        r[: force.size] -= force.ravel()
    stiffness, _ = setup.stiffness_and_mass(q)
    u[free] -= spla.spsolve(stiffness, r[free])
    return u.reshape(-1, 3)


def traction(mesh: SoftMesh, on: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Consistent forces (n, 3) of a unit traction on the flat boundary faces whose nodes are all ``on``."""
    faces = boundary_faces(mesh).faces
    faces = faces[on[faces].all(axis=1)]
    a, b, c, d = (mesh.points[faces[:, k]] for k in (0, 1, 2, -1))
    out = np.zeros(mesh.n_nodes)
    if mesh.family.name == "hex8":
        np.add.at(out, faces, np.linalg.norm(np.cross(c - a, d - b), axis=1)[:, None] / 8.0)
    else:  # all of it on the nodes between corners, where there are some
        loaded = faces[:, 3:] if faces.shape[1] == 6 else faces
        np.add.at(out, loaded, np.linalg.norm(np.cross(b - a, c - a), axis=1)[:, None] / 6.0)
    return out[:, None] * direction


def harmonic(x: np.ndarray) -> np.ndarray:
    """grad phi with phi = exp(sqrt(2) x) cos y cos z: free of divergence and of forces, for every Poisson's ratio."""
    a, b, c = x.T
    e = np.exp(np.sqrt(2.0) * a)
    return np.stack(
        [np.sqrt(2.0) * e * np.cos(b) * np.cos(c), -e * np.sin(b) * np.cos(c), -e * np.cos(b) * np.sin(c)], 1
    )


def error(way: Way, n: int) -> float:
    """L2 error in a unit cube whose boundary moves as the exact solution does."""
    mesh = way.mesh((1.0, 1.0, 1.0), (n, n, n))
    boundary = np.unique(boundary_faces(mesh).faces)
    setup = way.setup(mesh, Pin(boundary))
    held = np.zeros((len(setup.body.rest), 3))
    held[boundary] = harmonic(mesh.points)[boundary]
    u = displacement(setup, held=held)
    shape, weights = mesh.family.shape(mesh.family.quadrature.points), quadrature_geometry(mesh).weights
    places, found = (np.einsum("qa,eai->eqi", shape, values[mesh.cells]) for values in (mesh.points, u))
    wrong = found - harmonic(places.reshape(-1, 3)).reshape(places.shape)
    return float(np.sqrt((weights * (wrong**2).sum(axis=-1)).sum()))


@pytest.mark.parametrize(("way", "order", "most"), [(TET10_MEAN, 2.3, 1.2e-3), (HEX8_MEAN, 1.9, 5e-3),
                                                    (HEX8_ENHANCED, 1.9, 5e-3)])  # fmt: skip
def test_order(way: Way, order: float, most: float) -> None:
    coarse, fine = error(way, 2), error(way, 4)
    print(f"{way}: L2 error {coarse:.2e}, {fine:.2e}, order {np.log2(coarse / fine):.2f}")
    assert fine < most and np.log2(coarse / fine) > order


def cook(way: Way, n: int) -> float:
    """Rise of the upper corner of Cook's membrane in plane strain, for E = 1 and a shear force of 1 per thickness."""
    thick = 48.0 / n
    box = way.mesh((48.0, 44.0, thick), (n, n, 1))
    s, t = box.points[:, 0] / 48.0 + 0.5, box.points[:, 1] / 44.0 + 0.5
    points = np.stack([48.0 * s, 44.0 * s + (44.0 - 28.0 * s) * t, box.points[:, 2]], axis=1)
    mesh = SoftMesh(points, box.cells, box.family)
    setup = way.setup(mesh, Pin(np.arange(mesh.n_nodes), (2,)), Pin(np.flatnonzero(s < NEAR), (0, 1)))
    u = displacement(setup, traction(mesh, s > 1.0 - NEAR, np.array([0.0, 1.0 / 16.0, 0.0])))
    return float(u[: mesh.n_nodes][np.hypot(points[:, 0] - 48.0, points[:, 1] - 60.0) < NEAR, 1].mean())


def test_cooks_membrane() -> None:
    """Ways against locking come close from below on coarse meshes; without, few elements are a quarter to as stiff."""
    found = {way: [cook(way, n) for n in (4, 8)] for way in (TET10_MEAN, HEX8_MEAN, HEX8_ENHANCED, HEX8, TET4_ALONE)}
    for way, values in found.items():
        print(way, values)
    limit = 19.42  # to which all three tend: 19.39, 19.24, 19.23 of 16, 32, 32 elements an edge
    assert found[TET10_MEAN][0] == pytest.approx(limit, rel=0.015)
    assert found[TET10_MEAN][1] == pytest.approx(limit, rel=0.007)
    for way in (HEX8_MEAN, HEX8_ENHANCED):
        assert found[way][0] < found[way][1] and found[way][1] == pytest.approx(limit, rel=0.06)
    assert max(found[HEX8][1], found[TET4_ALONE][1]) < 0.3 * limit


def strip(way: Way, n: int) -> float:
    """Sag of the middle of a block in plane strain under a uniform load on half of its top; half of it by symmetry."""
    mesh = way.mesh((1.0, 1.0, 1.0 / n), (n, n, 1))
    x, y = mesh.points[:, 0] + 0.5, mesh.points[:, 1] + 0.5
    held = [Pin(np.flatnonzero(part), axes) for part, axes in ((x < NEAR, (0,)), (y < NEAR, (1,)))]
    setup = way.setup(mesh, Pin(np.arange(mesh.n_nodes), (2,)), *held)
    u = displacement(setup, traction(mesh, (y > 1.0 - NEAR) & (x < 0.5 + NEAR), np.array([0.0, -1.0, 0.0])))
    return float(-u[: mesh.n_nodes][(x < NEAR) & (y > 1.0 - NEAR), 1].mean())


def test_block_under_a_strip() -> None:
    found = {way: strip(way, 8) for way in (TET10_MEAN, HEX8_MEAN, HEX8_ENHANCED, TET10, HEX8, TET4_ALONE)}
    print(found)
    for way in (TET10_MEAN, HEX8_MEAN, HEX8_ENHANCED):
        assert found[way] == pytest.approx(0.6752, rel=0.005)  # of 16 and 32 elements an edge, all three
    assert found[HEX8] < 0.62 * 0.6752 and found[TET4_ALONE] < 0.72 * 0.6752
