"""Meshes of simple shapes, all structured: boxes, spheres, cylinders and tori."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from add.errors import InputError
from add.geometry import FAMILIES, HEX8, TET10, SoftMesh, box_mesh, to_tet10
from add.geometry.contact_points import length
from add.geometry.mesh_box import box_lengths
from add.geometry.mesh_round import ball_mesh, cylinder_mesh, on_side, on_sphere, on_torus, torus_mesh
from add.typing import FloatArray

SHAPES = ("box", "sphere", "cylinder", "torus")


def shape_mesh(
    shape: str,
    *,
    element: str = "tet4",
    edge: float | None = None,
    size: ArrayLike | None = None,
    divisions: ArrayLike | None = None,
    radius: float | None = None,
    height: float | None = None,
    tube_radius: float | None = None,
) -> SoftMesh:
    """Mesh a simple shape centred at the origin.

    Parameters
    ----------
    shape : "box", "sphere", "cylinder" (axis z) or "torus" (axis z)
    element : "tet4", "tet10"; "hex8" for a box only. Mid-edge nodes of tet10 on the boundary lie on the true surface.
    edge : target edge length [m]; the count of elements grows as edge^-3. At most the radius, height and tube radius.
        It divides the shape evenly (radially, along the axis, around); the diagonals between are longer.
    size : (3,) edge lengths of a box [m]
    divisions : (3,) cells along each edge of a box, instead of `edge`
    radius : of a sphere or cylinder, or of the centre line of a torus [m]
    height : of a cylinder [m]
    tube_radius : of a torus [m]

    Returns
    -------
    SoftMesh, the same in every process. Boundary nodes of round shapes lie on the true surface; flat faces cut off some
    of the volume (tet4: 6 % of a sphere with edge = radius / 3).

    Raises
    ------
    InputError
        for missing, superfluous or impossible numbers, or an edge too long for the shape.

    Notes
    -----
    Round shapes were once filled by fTetWild. It draws its random numbers from the system, without a seed that could be
    set, so that every process computed with another mesh.
    """
    if shape not in SHAPES:
        raise InputError("unknown shape", found=repr(shape), expected=" or ".join(map(repr, SHAPES)))
    if element not in FAMILIES:
        raise InputError("unknown element family", found=repr(element), expected=" or ".join(map(repr, FAMILIES)))
    lengths = {"edge": edge, "radius": radius, "height": height, "tube_radius": tube_radius}
    _check_names(shape, {**lengths, "size": size, "divisions": divisions})
    given = {name: length(shape, name, value) for name, value in lengths.items() if value is not None}
    if shape == "box":
        return _box(size, divisions, given.get("edge"), element)
    if element == HEX8.name:
        raise InputError(f"a {shape} cannot be made of hex8", expected="'tet4' or 'tet10'")
    mesh = _round(shape, **given)
    return mesh if element != TET10.name else to_tet10(mesh, lambda middles: _onto(shape, middles, **given))


def _round(shape: str, *, edge: float, radius: float, height: float = np.inf, tube_radius: float = np.inf) -> SoftMesh:
    """Fill a round shape with tet4."""
    shortest = min(radius, height, tube_radius)
    if edge > shortest:
        raise InputError(f"the edge is too long for this {shape}", found=f"{edge:g} m", expected=f"<= {shortest:g} m")
    if shape == "sphere":
        return ball_mesh(radius, edge)
    return cylinder_mesh(radius, height, edge) if shape == "cylinder" else torus_mesh(radius, tube_radius, edge)


def _onto(
    shape: str, middles: FloatArray, *, edge: float, radius: float, height: float = np.inf, tube_radius: float = np.inf
) -> FloatArray:
    """Bring the middles of boundary edges to the true surface."""
    if shape == "sphere":
        return on_sphere(middles, radius)
    return on_side(middles, radius, edge) if shape == "cylinder" else on_torus(middles, radius, tube_radius)


_NEEDED = {
    "box": ("size",),
    "sphere": ("radius", "edge"),
    "cylinder": ("radius", "height", "edge"),
    "torus": ("radius", "tube_radius", "edge"),
}
_OPTIONAL = {"box": ("edge", "divisions")}


def _check_names(shape: str, arguments: dict[str, Any]) -> None:
    needed = _NEEDED[shape]
    missing = [name for name in needed if arguments[name] is None]
    if missing:
        raise InputError(f"a {shape} needs {', '.join(missing)}")
    allowed = needed + _OPTIONAL.get(shape, ())
    extra = [name for name, value in arguments.items() if value is not None and name not in allowed]
    if extra:
        raise InputError(f"a {shape} takes no {', '.join(extra)}", expected=", ".join(allowed))


def _box(size: Any, divisions: ArrayLike | None, edge: float | None, element: str) -> SoftMesh:
    if divisions is not None and edge is None:
        return box_mesh(size, divisions, FAMILIES[element])
    if divisions is None and edge is not None:
        return box_mesh(size, np.maximum(1, np.round(box_lengths(size) / edge)), FAMILIES[element])
    raise InputError("a box needs either divisions or edge")
