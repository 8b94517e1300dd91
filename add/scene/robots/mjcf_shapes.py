"""Geoms of a compiled MuJoCo model as shapes."""

from typing import Any

import numpy as np

from add.scene.robots.mjcf_model import Names
from add.scene.robots.model import RobotGeometry
from add.scene.robots.turns import from_quaternion
from add.scene.robots.xml_file import Source
from add.typing import FloatArray, IntArray

#: Shapes by the name of MuJoCo, with how many of its three sizes they have.
_SHAPES = {"PLANE": ("plane", 0), "SPHERE": ("sphere", 1), "CAPSULE": ("capsule", 2), "CYLINDER": ("cylinder", 2),
           "BOX": ("box", 3), "MESH": ("mesh", 0), "ELLIPSOID": ("mesh", 0), "HFIELD": ("mesh", 0)}  # fmt: skip
#: Halvings of the edges of an icosahedron that stands for an ellipsoid: 320 faces, at most 2.4 % of a half axis inside.
_HALVINGS = 2


def read_shapes(
    source: Source, mujoco: Any, model: Any, names: Names
) -> dict[int, tuple[list[RobotGeometry], list[RobotGeometry]]]:
    """Return the shapes (collision, visual) of each body by number, in the body's frame.

    A geom whose contype and conaffinity are zero, and that stands in no <pair>, touches nothing: it is visual.
    """
    paired = set() if "pair" in source.ignore else {*model.pair_geom1.tolist(), *model.pair_geom2.tolist()}
    found: dict[int, tuple[list[RobotGeometry], list[RobotGeometry]]] = {}
    for geom in range(model.ngeom):
        name, body = names.of("geom", geom), int(model.geom_bodyid[geom])
        code = mujoco.mjtGeom(int(model.geom_type[geom])).name.removeprefix("mjGEOM_")
        solid = bool(model.geom_contype[geom] or model.geom_conaffinity[geom] or geom in paired)
        place = f"{source.place('geom', name)} of body '{names.of('body', body) or 'world'}'"
        if code not in _SHAPES:
            if solid:
                source.refuse("shape", place, f'type "{code.lower()}" is not read as a collision shape')
            else:
                source.note(place, f'type "{code.lower()}"')
            continue
        kind, count = _SHAPES[code]
        vertices = triangles = None
        if code == "MESH":
            mesh = int(model.geom_dataid[geom])
            first, size = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
            vertices = np.array(model.mesh_vert[first : first + size], dtype=np.float64)
            first, size = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
            triangles = np.array(model.mesh_face[first : first + size], dtype=np.int64)
        if code == "ELLIPSOID":
            vertices, triangles = _ellipsoid(np.array(model.geom_size[geom]))
            source.note(place, f"an ellipsoid: a mesh of {len(triangles)} faces")
        if code == "HFIELD":
            vertices, triangles = _height_field(model, int(model.geom_dataid[geom]))
            source.note(place, f"a height field: a closed mesh of {len(triangles)} faces")
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


def _ellipsoid(half: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the mesh of an ellipsoid by its half axes [m]."""
    from trimesh.creation import icosphere

    ball = icosphere(subdivisions=_HALVINGS)
    return np.asarray(ball.vertices) * half, np.asarray(ball.faces, dtype=np.int64)


def _height_field(model: Any, number: int) -> tuple[FloatArray, IntArray]:
    """Return the closed mesh of a height field: its surface, walls, and a bottom below it."""
    rows, columns = int(model.hfield_nrow[number]), int(model.hfield_ncol[number])
    first = int(model.hfield_adr[number])
    x, y, high, deep = (float(value) for value in model.hfield_size[number])
    heights = high * np.array(model.hfield_data[first : first + rows * columns], dtype=float)
    flat = np.stack(np.meshgrid(np.linspace(-x, x, columns), np.linspace(-y, y, rows)), axis=-1).reshape(-1, 2)
    top = np.column_stack([flat, heights])
    n = rows * columns
    grid = np.arange(n).reshape(rows, columns)
    a, b, c, d = grid[:-1, :-1].ravel(), grid[:-1, 1:].ravel(), grid[1:, 1:].ravel(), grid[1:, :-1].ravel()
    surface = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    # Round the rim, seen from above against the clock.
    rim = np.concatenate([grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[:0:-1, 0]])
    following = np.roll(rim, -1)
    low = n + np.arange(rim.size)
    after = np.roll(low, -1)
    walls = np.concatenate([np.stack([rim, low, following], axis=1), np.stack([following, low, after], axis=1)])
    middle = n + rim.size
    bottom = np.stack([low, np.full(rim.size, middle), after], axis=1)
    under = np.column_stack([flat[rim], np.full(rim.size, -deep)])
    vertices = np.concatenate([top, under, [[0.0, 0.0, -deep]]])
    return vertices, np.concatenate([surface, walls, bottom])
