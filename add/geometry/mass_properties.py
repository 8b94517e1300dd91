"""Volume, centre, inertia and mass matrix, consistent or lumped, of solids at unit density."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.geometry.elements import SoftMesh, determinants
from add.geometry.shapes import box_size, length
from add.geometry.triangle_surface import check_surface
from add.typing import FloatArray, IntArray

#: Share of the largest entry by which symmetry and the triangle inequality may be missed [-].
ROUND_OFF = 1e-9


def check_inertia(matrix: ArrayLike) -> FloatArray:
    """Check that some distribution of mass has this inertia about its centre of mass.

    I = sum m (x.x 1 - x x^T) is symmetric and positive definite, and its principal moments obey I1 + I2 >= I3, since
    I1 + I2 - I3 = 2 sum m x3^2; equality is a flat body.

    Parameters
    ----------
    matrix : (3, 3) [kg m^2], or [m^5] at unit density

    Returns
    -------
    (3, 3) its symmetric part

    Raises
    ------
    InputError
        with the eigenvalues, where that is missed by more than round-off (1e-9 of the largest).
    """
    inertia = np.asarray(matrix, dtype=np.float64)
    if inertia.shape != (3, 3) or not np.isfinite(inertia).all():
        raise InputError("not an inertia", found=inertia.tolist(), expected="3 x 3 finite numbers [kg m^2]")
    allowed = ROUND_OFF * float(np.abs(inertia).max())
    if (np.abs(inertia - inertia.T) > allowed).any():
        raise InputError("the inertia is not symmetric", found=inertia.tolist(), expected="Iyx = Ixy and so on")
    inertia = (inertia + inertia.T) / 2.0
    moments = np.linalg.eigvalsh(inertia)
    found = "principal moments " + ", ".join(f"{moment:.6g}" for moment in moments)
    if not moments[0] > allowed:
        raise InputError("the inertia is not positive definite", found=found, expected="three moments > 0 [kg m^2]")
    if moments[0] + moments[1] < moments[2] - allowed:
        raise InputError(
            "no body has this inertia: its largest principal moment exceeds the sum of the others",
            found=found,
            expected=f"the largest <= {moments[0] + moments[1]:.6g}",
        )
    return inertia


#: Share of the volume swept by all triangles below which the enclosed volume is round-off [-].
FLAT = 1e-12


class MassProperties(NamedTuple):
    """A solid of density 1: times the density [kg/m^3] these are its mass and inertia.

    Parameters
    ----------
    volume : [m^3]
    centre : (3,) centre of mass in the axes of the shape [m]
    inertia : (3, 3) int (x.x 1 - x x^T) dV about the centre, in the axes of the shape [m^5]
    """

    volume: float
    centre: FloatArray
    inertia: FloatArray


def _about_origin(volume: float, moments: ArrayLike) -> MassProperties:
    return MassProperties(volume, np.zeros(3), volume * np.diag(np.asarray(moments, dtype=np.float64)))


def box_solid(size: ArrayLike) -> MassProperties:
    """Box centred at the origin: Ixx = V (b^2 + c^2) / 12 for edge lengths `size` = (a, b, c) [m]."""
    squares = box_size(size) ** 2
    return _about_origin(float(np.sqrt(squares.prod())), (squares.sum() - squares) / 12.0)


def sphere_solid(radius: float) -> MassProperties:
    """Solid sphere centred at the origin: I = 2/5 V r^2."""
    r = length("sphere", "radius", radius)
    return _about_origin(4.0 / 3.0 * np.pi * r**3, 3 * [0.4 * r**2])


def cylinder_solid(radius: float, height: float) -> MassProperties:
    """Solid cylinder about the z axis, centred at the origin: Izz = V r^2 / 2, Ixx = Iyy = V (r^2 / 4 + h^2 / 12)."""
    r, h = length("cylinder", "radius", radius), length("cylinder", "height", height)
    across = r**2 / 4.0 + h**2 / 12.0
    return _about_origin(np.pi * r**2 * h, [across, across, r**2 / 2.0])


def capsule_solid(radius: float, half_length: float) -> MassProperties:
    """Solid capsule about the z axis, centred at the origin: all within `radius` of a segment of 2 `half_length`.

    A cylinder V_c = 2 pi r^2 l and two half balls, together V_b = 4/3 pi r^3, whose centres lie l + 3/8 r off:
    Izz = V_c r^2 / 2 + V_b 2/5 r^2,  Ixx = V_c (r^2 / 4 + l^2 / 3) + V_b (2/5 r^2 + l^2 + 3/4 l r).

    Parameters
    ----------
    radius, half_length : r, l [m]; from end to end it measures 2 (l + r)
    """
    r, half = length("capsule", "radius", radius), length("capsule", "half_length", half_length)
    cylinder, ball = 2.0 * np.pi * r**2 * half, 4.0 / 3.0 * np.pi * r**3
    across = cylinder * (r**2 / 4.0 + half**2 / 3.0) + ball * (0.4 * r**2 + half**2 + 0.75 * half * r)
    along = cylinder * r**2 / 2.0 + ball * 0.4 * r**2
    return MassProperties(cylinder + ball, np.zeros(3), np.diag([across, across, along]))


def mesh_solid(vertices: ArrayLike, triangles: ArrayLike) -> MassProperties:
    """Solid inside a closed surface of triangles, exactly.

    With the tetrahedra (o, a, b, c) of the triangles, signed volumes V_t and s = a + b + c taken from o:
    V = sum V_t,  V x_c = sum V_t s / 4,  int x x^T dV = sum V_t (a a^T + b b^T + c c^T + s s^T) / 20.

    Parameters
    ----------
    vertices : (nv, 3) [m]
    triangles : (nt, 3) indices, counter-clockwise seen from outside; a cavity is wound the other way

    Raises
    ------
    InputError
        for what `check_surface` refuses, a surface that encloses nothing, or one wound inside out.
    """
    points, corners = check_surface(vertices, triangles)
    origin = points[corners].mean(axis=(0, 1))  # far from the world's origin the sums would cancel
    a, b, c = np.moveaxis(points[corners] - origin, 1, 0)
    volumes = np.einsum("ti,ti->t", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    if abs(volume) <= FLAT * float(np.abs(volumes).sum()):
        raise InputError("the surface encloses no volume", found=f"{volume:.3g} m^3", expected="a solid")
    if volume < 0.0:
        raise InputError(
            "the surface is inside out",
            found=f"volume {volume:.6g} m^3",
            expected="triangles counter-clockwise seen from outside (swap two corners of every triangle)",
        )
    s = a + b + c
    centre = np.einsum("t,ti->i", volumes, s) / (4.0 * volume)
    second = sum(np.einsum("t,ti,tj->ij", volumes, x, x) for x in (a, b, c, s)) / 20.0
    second = second - volume * np.outer(centre, centre)
    try:
        inertia = check_inertia(np.trace(second) * np.eye(3) - second)
    except InputError as error:  # parts that overlap inside out, which edges do not show
        raise InputError(
            f"the surface bounds no solid: {error.message}", found=error.found, expected="a surface that cuts nothing"
        ) from error
    return MassProperties(volume, origin + centre, inertia)


class MassPairs(NamedTuple):
    """Node pairs of the mass matrix at unit density.

    M[3 i + a, 3 j + a] = density * value for every pair (i, j) = (`rows`, `cols`) and a = 0, 1, 2; `values` in [m^3].
    Pairs are unique and sorted by (row, column); both (i, j) and (j, i) are present, with identical values.
    """

    rows: IntArray
    cols: IntArray
    values: FloatArray


def element_masses(mesh: SoftMesh) -> FloatArray:
    """Consistent element mass matrices at unit density, m_ij = integral of N_i N_j dV, (ne, nn, nn) [m^3]."""
    rule = mesh.family.mass_quadrature
    shape = mesh.family.shape(rule.points)
    products = (rule.weights[:, None, None] * shape[:, :, None] * shape[:, None, :]).reshape(len(rule.weights), -1)
    masses = (determinants(mesh, rule) @ products).reshape(-1, mesh.family.n_nodes, mesh.family.n_nodes)
    return 0.5 * (masses + masses.swapaxes(1, 2))  # exactly symmetric, so that the assembled pairs are


def mass_pairs(mesh: SoftMesh, lumped: bool) -> MassPairs:
    """Assemble the mass matrix at unit density as node pairs.

    Parameters
    ----------
    mesh : SoftMesh
    lumped : False: consistent, integral of N_i N_j dV. True: diagonal by Hinton, Rock and Zienkiewicz (1976): the
        diagonal of each consistent element matrix, scaled to the mass of the element. Always positive, where row sums
        of tet10 are negative at the corners.

    Returns
    -------
    MassPairs; the values sum to the volume of the mesh. Lumped: rows == cols == every node.
    """
    masses = element_masses(mesh)
    n = mesh.n_nodes
    if lumped:
        diagonal = np.einsum("eii->ei", masses)
        diagonal = diagonal * (masses.sum(axis=(1, 2)) / diagonal.sum(axis=1))[:, None]
        values = np.bincount(mesh.cells.ravel(), diagonal.ravel(), minlength=n).astype(np.float64)
        nodes = np.arange(n)
        return MassPairs(nodes, nodes.copy(), values)
    keys = (mesh.cells[:, :, None] * n + mesh.cells[:, None, :]).ravel()
    pairs, slot = np.unique(keys, return_inverse=True)
    values = np.bincount(slot.ravel(), masses.ravel()).astype(np.float64)
    rows, cols = np.divmod(pairs, n)
    return MassPairs(rows, cols, values)
