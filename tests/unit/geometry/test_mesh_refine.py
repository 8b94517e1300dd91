"""Meshes of half the width: the same body, eight times the elements, better answers."""

import numpy as np
import pytest

from add.geometry import boundary_faces, volume
from add.geometry.mesh_box import refined
from add.geometry.mesh_round import shape_mesh

MESHES = {
    "tet4": shape_mesh("sphere", radius=0.05, edge=0.02),
    "tet10": shape_mesh("sphere", radius=0.05, edge=0.03, element="tet10"),
    "hex8": shape_mesh("box", size=(0.1, 0.05, 0.02), divisions=(3, 2, 1), element="hex8"),
}


@pytest.mark.parametrize("kind", MESHES)
def test_same_body(kind):
    coarse, fine = MESHES[kind], refined(MESHES[kind])
    assert fine.family is coarse.family
    assert fine.n_elements == 8 * coarse.n_elements
    corners = coarse.points[: coarse.cells[:, : 8 if kind == "hex8" else 4].max() + 1]
    assert fine.points[: len(corners)] == pytest.approx(corners, abs=1e-15)
    assert volume(fine) == pytest.approx(volume(coarse), rel=1e-6 if kind == "tet10" else 1e-12)
    assert len(boundary_faces(fine).faces) == 4 * len(boundary_faces(coarse).faces)


@pytest.mark.parametrize("kind", MESHES)
def test_half_the_width(kind):
    def longest(mesh):
        ends = mesh.points[mesh.cells[:, mesh.family.edges]]
        return np.linalg.norm(ends[:, :, 0] - ends[:, :, 1], axis=2).max()

    assert longest(refined(MESHES[kind])) == pytest.approx(0.5 * longest(MESHES[kind]), rel=0.1)
