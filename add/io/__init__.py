"""Meshes in files, and meshes of simple shapes."""

from add.io.meshes import read_mesh, write_mesh
from add.io.shapes import shape_mesh

__all__ = ["read_mesh", "shape_mesh", "write_mesh"]
