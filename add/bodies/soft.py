"""Soft bodies of finite elements, and what hangs on points inside them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import POSE_VECTORS, Block, ContactMesh, ContactPoints, Layouts, Part, Picture
from add.bodies.families import NODAL_INERTIA, WEIGHT, Elasticity, Elements
from add.bodies.nodal import NodalBody, NodalLoad, Pin
from add.equations.kinematics import Kinematics
from add.equations.memory import Memory
from add.equations.points import WeightedPoints
from add.equations.signals import SignalParameter
from add.equations.term import Constraint, Term
from add.geometry import Locator, SoftMesh, Surface, mass_pairs, quadrature_geometry, surface
from add.materials import NEO_HOOKEAN, Material
from add.terms import PointConstraint, Relaxation
from add.typing import FloatArray, IntArray

_SCALARS = (
    ("density", "kg/m^3"),
    ("viscosity", "Pa s"),
    ("rayleigh_mass", "1/s"),
    ("rayleigh_stiffness", "s"),
)

#: Numbers of the branches by which stress relaxes.
_BRANCH = (("shares", "-"), ("times", "s"))


@final
@dataclass(frozen=True)
class PointMass:
    """A mass [kg] on weighted nodes; ``parameter`` names it in theta.

    ``axes`` are those along which its inertia acts: all for a mass that is glued on, the vertical for one that hangs
    on a long string. Its weight acts in either case.
    """

    nodes: IntArray
    weights: FloatArray
    parameter: str
    axes: tuple[int, ...] = (0, 1, 2)


@final
@dataclass(frozen=True)
class PointAnchor:
    """A material point held at a given place [m] by a multiplier."""

    nodes: IntArray
    weights: FloatArray
    place: SignalParameter


@final
@dataclass(frozen=True)
class SoftBody(NodalBody):
    """A soft body: its mesh, its law, and what is attached to it.

    Attributes
    ----------
    name : str
    mesh : SoftMesh
    law : Material
    mean_dilatation, lumped, viscous : bool
        Against locking; HRZ mass; whether viscosity or stiffness-proportional damping act.
    branches : tuple of (name, how many)
        The branches that its stress relaxes by, see `add.materials.relaxation`.
    """

    order: ClassVar[int] = 0

    name: str
    mesh: SoftMesh
    law: Material = NEO_HOOKEAN
    mean_dilatation: bool = False
    lumped: bool = False
    viscous: bool = True
    branches: tuple[tuple[str, int], ...] = ()
    pins: tuple[Pin, ...] = ()
    loads: tuple[NodalLoad, ...] = ()
    masses: tuple[PointMass, ...] = ()
    anchors: tuple[PointAnchor, ...] = ()

    @property
    def rest(self) -> FloatArray:
        """Nodes of the mesh."""
        return self.mesh.points

    @cached_property
    def surface(self) -> Surface:
        """Boundary of the mesh."""
        return surface(self.mesh)

    def mass_shares(self) -> FloatArray:
        """Return row sums of the mass matrix over the mass."""
        pairs = mass_pairs(self.mesh, lumped=self.lumped)
        weights = np.bincount(pairs.rows, pairs.values, self.mesh.n_nodes)
        return weights / weights.sum()

    def nodes_at(self, place: FloatArray) -> tuple[IntArray, FloatArray, float]:
        """Return the nodes of the element that holds the place, and its shape functions there."""
        located = Locator(self.mesh).locate(place)
        return located.nodes, located.weights, located.distance

    def parameters(self) -> list[Block]:
        """Return moduli, density, dampings, pose and point masses."""
        at = f"bodies.{self.name}"
        moduli = [(modulus.key, modulus.unit) for modulus in self.law.parameters]
        blocks: list[Block] = [(f"{at}.{key}", (), unit) for key, unit in (*moduli, *_SCALARS)]
        blocks += [(f"{at}.{key}", (3,), unit) for key, unit in POSE_VECTORS]
        if self.branches:
            points = self._geometry[1].shape
            for key, unit in _BRANCH:
                blocks += [(f"{at}.relaxation.{name}.{key}", (n,), unit) for name, n in self.branches]
            blocks += [(f"{at}.relaxed", (1,), "-"), (f"{at}.memory", (*points, 6), "Pa")]
        return [*blocks, *((mass.parameter, (), "kg") for mass in self.masses)]

    def signals(self) -> list[tuple[SignalParameter, str]]:
        """Return the signals of pins, loads and anchors."""
        return [*super().signals(), *((anchor.place, "m") for anchor in self.anchors)]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia and weight, elasticity and viscosity, loads."""
        first = self.first_node(at)

        def index(key: str) -> int:
            return at.parameters[f"bodies.{self.name}.{key}"].start

        pairs = mass_pairs(self.mesh, lumped=self.lumped)
        masses = np.repeat(pairs.values[:, None], 3, axis=1)
        density = index("density")
        count, drag = pairs.rows.size, index("rayleigh_mass")
        inertia = (first + pairs.rows, first + pairs.cols, masses, np.full(count, density), np.full(count, drag))
        weights = np.bincount(pairs.rows, pairs.values, self.mesh.n_nodes).astype(float)
        nodes = first + np.arange(self.mesh.n_nodes)
        out: list[Part | Term] = [Part(NODAL_INERTIA, inertia)]
        out.append(Part(WEIGHT, (nodes, weights, np.full(nodes.size, density))))
        for mass in self.masses:
            k, own = mass.nodes.size, at.parameters[mass.parameter].start
            acting = np.isin(np.arange(3), mass.axes).astype(float)
            products = np.outer(np.outer(mass.weights, mass.weights), acting).reshape(-1, 3)
            rows, cols = first + np.repeat(mass.nodes, k), first + np.tile(mass.nodes, k)
            out.append(Part(NODAL_INERTIA, (rows, cols, products, np.full(k * k, own), np.full(k * k, -1))))
            out.append(Part(WEIGHT, (first + mass.nodes, mass.weights, np.full(k, own))))
        moduli, relaxed = self._moduli(at), None
        if self.branches:
            kappa, stress = self._remembered(at)
            stress = stress.reshape(-1, stress.shape[-1])
            relaxed = np.concatenate([np.broadcast_to(kappa, (len(stress), 1)), stress], axis=1)
        damping = index("viscosity"), index("rayleigh_stiffness")
        elements = Elements(first + self.mesh.cells, *self._geometry, self.mean_dilatation, moduli, *damping, relaxed)
        out.append(Part(Elasticity(self.mesh.family.name, self.law, self.viscous, relaxed is not None), elements))
        return [*out, *self.load_terms(at)]

    @cached_property
    def _geometry(self) -> tuple[FloatArray, FloatArray]:
        """Gradients and weights at the quadrature points."""
        return quadrature_geometry(self.mesh)

    def _moduli(self, at: Layouts) -> IntArray:
        own = [at.parameters[f"bodies.{self.name}.{modulus.key}"].start for modulus in self.law.parameters]
        return np.array(own)

    def _remembered(self, at: Layouts) -> tuple[IntArray, IntArray]:
        """Return the places in theta of kappa (1,) and M (ne, nq, 6)."""
        kappa, stress = (at.parameters[f"bodies.{self.name}.{key}"].indices for key in ("relaxed", "memory"))
        return kappa, stress

    def memories(self, at: Layouts) -> list[Memory]:
        """Return the stress that its branches remember."""
        if not self.branches:
            return []
        cells, one = self.mesh.cells, np.array([int(self.mean_dilatation)])
        own = [f"bodies.{self.name}.relaxation.{name}" for name, _ in self.branches]
        shares, times = (
            np.concatenate([at.parameters[f"{branch}.{key}"].indices for branch in own]) for key, _ in _BRANCH
        )
        group = np.zeros(cells.shape[0], dtype=np.int64)
        elements = cells, *self._geometry, group, one, self.law, self._moduli(at)[None]
        first, n = at.dofs[self.name].start, self.mesh.n_nodes
        return [Relaxation(first, n, *elements, shares, times, *self._remembered(at))]

    def constraints(self, at: Layouts) -> list[Constraint]:
        """Return the anchors."""
        return [
            PointConstraint(
                WeightedPoints(self.first_node(at) + anchor.nodes[None, :], anchor.weights[None, :]),
                anchor.place.signal,
                at.parameters[anchor.place.parameter].indices[None],
            )
            for anchor in self.anchors
        ]

    def contact_points(self) -> ContactPoints:
        """Return the nodes of the surface."""
        nodes = self.surface.nodes
        return ContactPoints(nodes, np.zeros((nodes.size, 3)), np.zeros(nodes.size), self.surface.areas)

    def contact_mesh(self) -> ContactMesh:
        """Return the boundary."""
        found = self.surface
        faces = np.searchsorted(found.nodes, found.triangles)
        return ContactMesh(self.mesh.points[found.nodes], found.nodes, faces, np.zeros((0, 2), dtype=np.int64))

    def picture(self, theta: FloatArray, at: Layouts) -> Picture:
        """Return mesh and law."""
        moduli = [at.parameters.view(theta, f"bodies.{self.name}.{modulus.key}") for modulus in self.law.parameters]
        values = {
            "family": self.mesh.family.name,
            "rest": self.mesh.points,
            "cells": self.mesh.cells,
            "surface": self.surface.triangles,
            "model": "formula" if self.law.formula else self.law.name,
            "formula": self.law.formula,
            "moduli": tuple(float(value) for value in moduli),
            "mean_dilatation": self.mean_dilatation,
        }
        return Picture("bodies", values)

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return mass, centre of mass, its velocity, and numbers of nodes and elements."""
        return super().state(kin, masses, theta, at) | {"elements": self.mesh.n_elements}

    def fingerprint(self) -> list[Any]:
        """Return nodes and cells."""
        return [self.mesh.points, self.mesh.cells]
