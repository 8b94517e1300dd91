"""Reference elements, quadrature geometry, mass, surface and point location. No I/O."""

from add.fem.build import box_mesh, move_without_folding, to_tet10
from add.fem.check import Validated, edge_lengths, validate
from add.fem.elements import FAMILIES, HEX8, TET4, TET10, ElementFamily, Quadrature, family_by_name
from add.fem.geometry import QuadratureGeometry, element_volumes, quadrature_geometry, volume
from add.fem.locate import Located, Locator, locate
from add.fem.mass import MassPairs, element_masses, mass_pairs
from add.fem.mesh import SoftMesh
from add.fem.surface import BoundaryFaces, Surface, boundary_faces, surface

__all__ = [
    "FAMILIES",
    "HEX8",
    "TET4",
    "TET10",
    "BoundaryFaces",
    "ElementFamily",
    "Located",
    "Locator",
    "MassPairs",
    "Quadrature",
    "QuadratureGeometry",
    "SoftMesh",
    "Surface",
    "Validated",
    "boundary_faces",
    "box_mesh",
    "edge_lengths",
    "element_masses",
    "element_volumes",
    "family_by_name",
    "locate",
    "mass_pairs",
    "move_without_folding",
    "quadrature_geometry",
    "surface",
    "to_tet10",
    "validate",
    "volume",
]
