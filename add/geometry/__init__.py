"""Meshes, elements and solids: quadrature, mass, inertia, surfaces and where points lie. No I/O."""

from add.geometry.boundary import Surface, boundary_faces, edge_lengths, facets, surface, validate
from add.geometry.elements import (
    FAMILIES,
    HEX8,
    TET4,
    TET10,
    ElementFamily,
    QuadratureGeometry,
    SoftMesh,
    element_volumes,
    enhanced_geometry,
    quadrature_geometry,
    volume,
)
from add.geometry.locate import Locator, laplace_gradient, locate
from add.geometry.mass_properties import (
    MassPairs,
    MassProperties,
    box_solid,
    capsule_solid,
    check_inertia,
    cylinder_solid,
    mass_pairs,
    mesh_solid,
    sphere_solid,
)
from add.geometry.mesh_box import box_mesh, to_tet10
from add.geometry.shapes import box_points, capsule_points, cylinder_points, sphere_points, surface_points
from add.geometry.triangle_surface import box_surface, check_surface, cylinder_surface
