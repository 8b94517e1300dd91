"""Make meshes like the ready ones of data/meshes: python scripts/make_meshes.py FOLDER.

The round ones are others than the committed ones (see data/README.md), on which the numbers of the scenes rest. So the
folder has to be named. The foot, the ring and the bowl are the same.
"""

import argparse
import logging
from itertools import permutations, product
from pathlib import Path

import numpy as np

from add.geometry import TET4, SoftMesh, validate, volume
from add.geometry.mesh_round import shape_mesh
from add.io.meshes import write_mesh

MESHES: dict[str, dict[str, object]] = {
    "ball_coarse": {"shape": "sphere", "radius": 0.05, "edge": 0.0205},
    "ball_fine": {"shape": "sphere", "radius": 0.05, "edge": 0.0145},
    "ball_small": {"shape": "sphere", "radius": 0.025, "edge": 0.012},
    "cylinder": {"shape": "cylinder", "radius": 0.03, "height": 0.02, "edge": 0.0095},
    "torus": {"shape": "torus", "radius": 0.03, "tube_radius": 0.009, "edge": 0.009},
}
"""What `add.geometry.mesh_round.shape_mesh` is asked for, by file name; lengths in metres."""

logger = logging.getLogger(__name__)


def foot(size: tuple[float, float, float] = (0.08, 0.06, 0.05), crown: float = 0.01) -> SoftMesh:
    """Return a robot's foot: a box of 27 nodes and 48 tetrahedra with a crowned sole of eight more around node 27.

    Parameters
    ----------
    size : edge lengths [m]
    crown : how far the middle of the sole stands out [m]
    """

    def node(i: int, j: int, k: int) -> int:
        return 9 * i + 3 * j + k

    lines = [np.linspace(-0.5 * edge, 0.5 * edge, 3) for edge in size]
    points = [*product(*lines), (0.0, 0.0, -0.5 * size[2] - crown)]
    cells = []
    for cell in product(range(2), repeat=3):
        # Kuhn's six tetrahedra a cell: one for each way to walk along the edges from corner to corner.
        for order in permutations(range(3)):
            corner = list(cell)
            path = [node(*corner)]
            for axis in order:
                corner[axis] += 1
                path.append(node(*corner))
            cells.append(path)
    # Diagonals as in the cells above.
    for i, j in product(range(2), repeat=2):
        a, b, c, d = node(i, j, 0), node(i + 1, j, 0), node(i + 1, j + 1, 0), node(i, j + 1, 0)
        cells += [[a, b, c, 27], [a, c, d, 27]]
    return validate(SoftMesh(np.array(points), np.array(cells), TET4)).mesh


def ring(radius: float = 0.05, tube: float = 0.02, n: int = 32, m: int = 16) -> str:
    """Return the surface of a torus about the z axis as an OBJ file, triangles counter-clockwise seen from outside."""
    lines = [f"# A ring about the z axis, radius {radius} m, tube {tube} m: made by scripts/make_meshes.py"]
    for i, j in product(range(n), range(m)):
        rho = radius + tube * np.cos(2 * np.pi * j / m)
        place = rho * np.cos(2 * np.pi * i / n), rho * np.sin(2 * np.pi * i / n), tube * np.sin(2 * np.pi * j / m)
        lines.append("v " + " ".join(f"{round(float(x), 9) + 0.0:.9g}" for x in place))
    quads = [(i * m + j, (i + 1) % n * m + j, (i + 1) % n * m + (j + 1) % m, i * m + (j + 1) % m)
             for i, j in product(range(n), range(m))]  # fmt: skip
    for corners in [*((a, b, c) for a, b, c, _ in quads), *((a, c, d) for a, _, c, d in quads)]:
        lines.append("f " + " ".join(str(k + 1) for k in corners))
    return "\n".join(lines) + "\n"


def bowl(radius: float = 0.2, thickness: float = 0.02, n: int = 32, m: int = 8) -> str:
    """Return the surface of half a hollow sphere, open above, as an OBJ file, counter-clockwise seen from outside."""
    lines = [f"# A bowl, radius {radius} m, thickness {thickness} m: made by scripts/make_meshes.py"]
    rises = 0.5 * np.pi * np.arange(1, m + 1) / m
    ways = [((radius + thickness) * np.sin(r), -(radius + thickness) * np.cos(r)) for r in rises]
    ways += [(radius * np.sin(r), -radius * np.cos(r)) for r in rises[::-1]]
    rounds = [
        (rho * np.cos(2 * np.pi * i / n), rho * np.sin(2 * np.pi * i / n), z) for rho, z in ways for i in range(n)
    ]
    for place in [(0.0, 0.0, -radius - thickness), *rounds, (0.0, 0.0, -radius)]:
        lines.append("v " + " ".join(f"{round(float(x), 9) + 0.0:.9g}" for x in place))
    last = 2 * m * n + 1
    for i in range(n):
        j = (i + 1) % n
        lines.append(f"f 1 {2 + j} {2 + i}")
        for k in range(2 * m - 1):
            a, b = 2 + k * n, 2 + (k + 1) * n
            lines += [f"f {a + i} {a + j} {b + j}", f"f {a + i} {b + j} {b + i}"]
        lines.append(f"f {last + 1} {last + 1 - n + i} {last + 1 - n + j}")
    return "\n".join(lines) + "\n"


def make_meshes(folder: Path) -> dict[str, SoftMesh]:
    """Write every mesh of `MESHES` to a folder as MSH 2.2; returns them by name."""
    folder.mkdir(parents=True, exist_ok=True)
    meshes = {}
    for name, arguments in MESHES.items():
        mesh = shape_mesh(**arguments)  # type: ignore[arg-type]
        write_mesh(folder / f"{name}.msh", mesh)
        logger.info("%s: %d nodes, %d elements, %.6g m^3", name, mesh.n_nodes, mesh.n_elements, volume(mesh))
        meshes[name] = mesh
    meshes["foot"] = foot()
    write_mesh(folder / "foot.msh", meshes["foot"])
    (folder / "ring.obj").write_text(ring(), encoding="utf-8")
    (folder / "bowl.obj").write_text(bowl(), encoding="utf-8")
    return meshes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the .msh files go")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    make_meshes(parser.parse_args().folder)
