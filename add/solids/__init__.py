"""Rigid bodies as solids: mass, centre and inertia of shapes and closed surfaces, and where they touch others."""

from add.solids.files import read_surface
from add.solids.inertia import check_inertia
from add.solids.mass import MassProperties, box_solid, capsule_solid, cylinder_solid, mesh_solid, sphere_solid
from add.solids.points import (
    box_corners,
    box_points,
    capsule_points,
    cylinder_points,
    sphere_points,
    surface_points,
)
from add.solids.surface import Surface, check_surface

__all__ = [
    "MassProperties",
    "Surface",
    "box_corners",
    "box_points",
    "box_solid",
    "capsule_points",
    "capsule_solid",
    "check_inertia",
    "check_surface",
    "cylinder_points",
    "cylinder_solid",
    "mesh_solid",
    "read_surface",
    "sphere_points",
    "sphere_solid",
    "surface_points",
]
