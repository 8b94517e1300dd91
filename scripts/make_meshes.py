"""Make meshes like the ready ones of data/meshes: python scripts/make_meshes.py FOLDER.

They come out differently each time, and differently from the committed ones (see data/README.md), on which the numbers
of the scenes rest. So the folder has to be named.
"""

import argparse
import logging
from pathlib import Path

from add.fem import SoftMesh, volume
from add.io.meshes import write_mesh
from add.io.shapes import shape_mesh

MESHES: dict[str, dict[str, object]] = {
    "ball_coarse": {"shape": "sphere", "radius": 0.05, "edge": 0.0205},
    "ball_fine": {"shape": "sphere", "radius": 0.05, "edge": 0.0145},
    "ball_small": {"shape": "sphere", "radius": 0.025, "edge": 0.012},
    "cylinder": {"shape": "cylinder", "radius": 0.03, "height": 0.02, "edge": 0.0095},
    "torus": {"shape": "torus", "radius": 0.03, "tube_radius": 0.009, "edge": 0.009},
}
"""What `add.io.shape_mesh` is asked for, by file name; lengths in metres."""

logger = logging.getLogger(__name__)


def make_meshes(folder: Path) -> dict[str, SoftMesh]:
    """Write every mesh of `MESHES` to a folder as MSH 2.2; returns them by name."""
    folder.mkdir(parents=True, exist_ok=True)
    meshes = {}
    for name, arguments in MESHES.items():
        mesh = shape_mesh(**arguments)  # type: ignore[arg-type]
        write_mesh(folder / f"{name}.msh", mesh)
        logger.info("%s: %d nodes, %d elements, %.6g m^3", name, mesh.n_nodes, mesh.n_elements, volume(mesh))
        meshes[name] = mesh
    return meshes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the .msh files go")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    make_meshes(parser.parse_args().folder)
