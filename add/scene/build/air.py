"""Air on bodies of a scene, as joint parts."""

from __future__ import annotations

import numpy as np

from add.bodies import Body, MassSpringBody
from add.equations.sites import SiteKind
from add.errors import InputError
from add.joints.laws import AirOnClosedFaces, AirOnFaces, Drag
from add.joints.parts import BodySite, JointPart
from add.scene.build.coupling_parts import CouplingParts, MakeSignalParameter
from add.scene.spec.couplings import AirSpec, DragSpec
from add.typing import FloatArray, IntArray


def drag(
    item: DragSpec, at: str, on: BodySite, radius: float | None, parts: CouplingParts, driven: MakeSignalParameter
) -> None:
    """Add the drag of a body as a whole; ``radius`` [m] of a rigid ball.

    Raises
    ------
    InputError
        Without a cross-section.
    """
    area = item.area if item.area is not None or radius is None else np.pi * radius**2
    if area is None:
        raise InputError(
            "the cross-section is known of rigid balls alone",
            place=f"{at}.area",
            found=f"null, of body '{item.on.body}'",
            expected="an area [m^2]",
        )
    density = parts.number(f"{at}.density", item.density, "kg/m^3")
    coefficient = parts.number(f"{at}.coefficient", item.coefficient, "-")
    section = parts.number(f"{at}.area", area, "m^2")
    wind = parts.signal(item.wind, f"{at}.wind", "m/s", 3, driven)
    parts.joint_parts.append(JointPart(Drag, (on,), (density, coefficient, section), wind))


def air(item: AirSpec, at: str, body: Body, parts: CouplingParts, driven: MakeSignalParameter) -> None:
    """Add the air on the faces of a body.

    Raises
    ------
    InputError
        If the body has no faces, or a given motion.
    """
    points, nodes, faces = _surface(body)
    if not faces.size or not body.moves:
        raise InputError(
            "the air acts on faces of bodies that move by forces",
            place=f"{at}.body",
            found=f"'{item.body}', {'without faces' if body.moves else 'whose motion is given'}",
            expected="a soft, mass-spring or rigid body with a surface of triangles; for round ones a coupling 'drag'",
        )
    used, faces = np.unique(faces, return_inverse=True)
    faces = faces.reshape(-1, 3)
    sites = []
    for k in used:
        if nodes is None:
            arm = parts.constant(f"{at}.corners.{k}", points[k], "m")
            sites.append(BodySite(SiteKind.POINT, item.body, arm))
        else:
            sites.append(BodySite(SiteKind.NODES, item.body, nodes=nodes[[k]], weights=np.ones(1)))
    closed = is_closed(faces)
    if closed and _volume(points[used], faces) < 0.0:
        faces = faces[:, ::-1]
    density = parts.number(f"{at}.density", item.density, "kg/m^3")
    coefficient = parts.number(f"{at}.coefficient", item.coefficient, "-")
    friction = parts.number(f"{at}.friction", item.friction, "kg/(m^2 s)")
    wind = parts.signal(item.wind, f"{at}.wind", "m/s", 3, driven)
    kind, corners = AirOnClosedFaces if closed else AirOnFaces, tuple(sites[k] for k in faces.ravel())
    parts.joint_parts.append(JointPart(kind, corners, (density, coefficient, friction), wind))


def _surface(body: Body) -> tuple[FloatArray, IntArray | None, IntArray]:
    """Return the points of a surface, the nodes that they are (None for points of a frame), and triangles of points."""
    if isinstance(body, MassSpringBody):  # a sheet that touches nothing has its faces all the same
        return body.points, np.arange(body.points.shape[0]), body.triangles
    mesh = body.contact_mesh()
    if mesh is None:
        return np.zeros((0, 3)), None, np.zeros((0, 3), dtype=np.int64)
    return mesh.points, mesh.nodes, mesh.faces


def is_closed(faces: IntArray) -> bool:
    """Return whether every side of every triangle (m, 3) is one of another, walked the other way."""
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there, back = (np.unique(part, axis=0) for part in (sides, sides[:, ::-1]))
    return there.shape[0] == sides.shape[0] and np.array_equal(there, back)


def _volume(points: FloatArray, faces: IntArray) -> float:
    a, b, c = (points[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0
