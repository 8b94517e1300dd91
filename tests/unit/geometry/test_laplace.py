"""Directions by Laplace's equation against the two exact solutions of a bent bar, and what is refused."""

import numpy as np
import pytest

from add.errors import InputError
from add.geometry import FAMILIES, SoftMesh, box_mesh, laplace_gradient, to_tet10


def bent_bar(element: str, n: int) -> tuple[SoftMesh, np.ndarray]:
    """A quarter of a ring, 1 to 2 wide, along its angle; and polar places (r, angle) of its nodes."""
    mesh = box_mesh((1.0, 1.0, 0.2), (2 * n, n, 1), FAMILIES["tet4" if element == "tet10" else element])
    mesh = to_tet10(mesh) if element == "tet10" else mesh
    angle, r = 0.5 * np.pi * (mesh.points[:, 0] + 0.5), 1.5 - mesh.points[:, 1]
    points = np.stack([r * np.cos(angle), r * np.sin(angle), mesh.points[:, 2]], axis=1)
    return SoftMesh(points, mesh.cells, mesh.family), np.stack([r, angle], axis=1)


@pytest.mark.parametrize("element", ["tet4", "tet10", "hex8"])
@pytest.mark.parametrize("along", ["angle", "radius"])
def test_a_bent_bar(element: str, along: str) -> None:
    """u = 2 angle/pi from end to end, u = ln r/ln 2 across: gradients 2/(pi r) and 1/(r ln 2), order one at least."""
    errors = []
    for n in (4, 8):
        mesh, polar = bent_bar(element, n)
        ends = polar[:, 1] / (0.5 * np.pi) if along == "angle" else polar[:, 0] - 1.0
        low, high = np.flatnonzero(ends < 1e-9), np.flatnonzero(ends > 1.0 - 1e-9)
        found = laplace_gradient(mesh, low, high)
        middle = mesh.points[mesh.cells].mean(axis=1)
        r = np.hypot(middle[:, 0], middle[:, 1])
        radial = np.stack([middle[:, 0] / r, middle[:, 1] / r, 0.0 * r], axis=1)
        tangent = np.cross([0.0, 0.0, 1.0], radial)
        exact = 2.0 / (np.pi * r)[:, None] * tangent if along == "angle" else radial / (r * np.log(2.0))[:, None]
        errors.append(np.sqrt(((found - exact) ** 2).sum(axis=1).mean() / (exact**2).sum(axis=1).mean()))
        unit = found / np.linalg.norm(found, axis=1)[:, None]
        assert (unit * exact).sum(axis=1).min() > 0.9 * np.linalg.norm(exact, axis=1).min(), "no fibre goes astray"
    assert errors[1] < 0.1 and np.log2(errors[0] / errors[1]) > 0.9


def test_what_is_refused() -> None:
    mesh = box_mesh((1.0, 1.0, 1.0), (2, 1, 1), FAMILIES["hex8"])
    left, right = (np.flatnonzero(side * mesh.points[:, 0] > 0.49) for side in (-1, 1))
    with pytest.raises(InputError, match="node in common"):
        laplace_gradient(mesh, left, np.append(right, left[0]))
    apart = SoftMesh(np.concatenate([mesh.points, mesh.points + 3.0]),
                     np.concatenate([mesh.cells, mesh.cells + mesh.n_nodes]), mesh.family)  # fmt: skip
    with pytest.raises(InputError, match="no node of the second end"):
        laplace_gradient(apart, np.concatenate([left, left + mesh.n_nodes]), right)
    half = np.flatnonzero(mesh.points[:, 0] < 0.01)
    gradient = laplace_gradient(mesh, half, right)
    assert (gradient[:, 0] > 1.9).sum() == 1 and (gradient == 0.0).all(axis=1).sum() == 1, (
        "constant between nodes of one end"
    )
