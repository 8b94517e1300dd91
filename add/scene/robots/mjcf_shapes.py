"""Geoms of a compiled MuJoCo model as shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from add.scene.robots.mjcf_model import Names
from add.scene.robots.model import RobotGeometry
from add.scene.robots.source import Source
from add.scene.robots.turns import from_quaternion

#: Shapes by the name of MuJoCo, with how many of its three sizes they have.
_SHAPES = {"PLANE": ("plane", 0), "SPHERE": ("sphere", 1), "CAPSULE": ("capsule", 2), "CYLINDER": ("cylinder", 2),
           "BOX": ("box", 3), "MESH": ("mesh", 0)}  # fmt: skip


def read_shapes(
    source: Source, mujoco: Any, model: Any, names: Names
) -> dict[int, tuple[list[RobotGeometry], list[RobotGeometry]]]:
    """Return the shapes (collision, visual) of each body by number, in the body's frame.

    A geom whose contype and conaffinity are zero touches nothing: it is visual.
    """
    found: dict[int, tuple[list[RobotGeometry], list[RobotGeometry]]] = {}
    for geom in range(model.ngeom):
        name, body = names.of("geom", geom), int(model.geom_bodyid[geom])
        code = mujoco.mjtGeom(int(model.geom_type[geom])).name.removeprefix("mjGEOM_")
        solid = bool(model.geom_contype[geom] or model.geom_conaffinity[geom])
        place = f"{source.place('geom', name)} of body '{names.of('body', body) or 'world'}'"
        if code not in _SHAPES:
            if solid:
                source.refuse("shape", place, f'type "{code.lower()}" is not read as a collision shape')
            else:
                source.note(place, f'type "{code.lower()}"')
            continue
        kind, count = _SHAPES[code]
        vertices = triangles = None
        if kind == "mesh":
            mesh = int(model.geom_dataid[geom])
            first, size = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
            vertices = np.array(model.mesh_vert[first : first + size], dtype=np.float64)
            first, size = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
            triangles = np.array(model.mesh_face[first : first + size], dtype=np.int64)
        shape = RobotGeometry(
            kind,
            tuple(float(number) for number in model.geom_size[geom][:count]),
            np.array(model.geom_pos[geom], dtype=np.float64),
            from_quaternion(np.array(model.geom_quat[geom])),
            vertices,
            triangles,
            name,
            "",
            names.of("body", body),
            float(model.geom_friction[geom][0]),
        )
        found.setdefault(body, ([], []))[0 if solid else 1].append(shape)
    return found
