"""Soft bodies of finite elements, and what hangs on points inside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from add.bodies.base import Block, Body, ContactMesh, ContactPoints, Layouts, Part, Picture
from add.bodies.nodal import (
    MATERIAL_SCALARS,
    NODAL_INERTIA,
    WEIGHT,
    Elasticity,
    Elements,
    NodalBody,
    NodalLoad,
    NodeTie,
    Pin,
    PointAnchor,
    PointMass,
    Region,
    TiedMass,
)
from add.equations.kinematics import Kinematics
from add.equations.lift import Carried
from add.equations.points import WeightedPoints
from add.equations.signals import SignalParameter
from add.equations.term import Constraint, Term
from add.equations.tree_embedding import TiedNodes
from add.geometry import (
    Locator,
    MassPairs,
    SoftMesh,
    Surface,
    enhanced_geometry,
    mass_pairs,
    quadrature_geometry,
    surface,
)
from add.materials import NEO_HOOKEAN, Material, called, linear_moduli
from add.terms import PointConstraint, Relaxation, TiedPoints
from add.terms.memories import Memory
from add.typing import BoolArray, FloatArray, IntArray

#: Numbers of the branches by which stress relaxes.
_BRANCH = (("shares", "-"), ("times", "s"))


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
    enhanced : bool
        Of hex8: whether each element has three inner nodes, which come behind those of the mesh and have no mass; see
        `add.geometry.enhanced_geometry`.
    regions : tuple of Region
        Each element is in one; none where the law holds for the whole body.
    ties : tuple of NodeTie
        Nodes that others carry; no node is in two.
    """

    order: ClassVar[int] = 0

    name: str
    mesh: SoftMesh
    law: Material = NEO_HOOKEAN
    mean_dilatation: bool = False
    lumped: bool = False
    viscous: bool = True
    pins: tuple[Pin, ...] = ()
    loads: tuple[NodalLoad, ...] = ()
    masses: tuple[PointMass, ...] = ()
    anchors: tuple[PointAnchor, ...] = ()
    regions: tuple[Region, ...] = ()
    enhanced: bool = False
    ties: tuple[NodeTie, ...] = ()

    @cached_property
    def materials(self) -> tuple[Region, ...]:
        """The regions, or the one that is the whole body."""
        return self.regions or (Region("", self.law, np.arange(self.mesh.n_elements)),)

    @cached_property
    def rest(self) -> FloatArray:
        """Nodes of the mesh, and inner ones of enhanced elements."""
        if not self.enhanced:
            return self.mesh.points
        return np.concatenate([self.mesh.points, np.repeat(self.mesh.points[self.mesh.cells].mean(axis=1), 3, axis=0)])

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the mesh."""
        return self.mesh.n_nodes

    @cached_property
    def tie_of(self) -> IntArray:
        """Number of the tie of each node (n,) that is no coordinate; -1 for others."""
        out = np.full(len(self.rest), -1, dtype=np.int64)
        for k, tie in enumerate(self.ties):
            if not tie.held:
                out[tie.nodes] = k
        return out

    @cached_property
    def own_nodes(self) -> IntArray:  # type: ignore[override]
        """Nodes (k,) that nothing carries."""
        return np.flatnonzero(self.tie_of < 0)

    def coordinates(self) -> tuple[int, ...]:
        """Return the shape of the places of its own nodes."""
        return self.own_nodes.size, 3

    def tied_rows(self, at: Layouts, bodies: Mapping[str, Body]) -> list[Carried]:
        """Return the tied nodes."""
        out = []
        for tie in (tie for tie in self.ties if not tie.held):
            rows = 3 * (self.first_node(at) + tie.nodes)[:, None] + np.arange(3)
            out.append(Carried(*self._carried(tie, at, bodies), rows.ravel()))
        return out

    def _carried(self, tie: NodeTie, at: Layouts, bodies: Mapping[str, Body]) -> tuple[TiedNodes, int]:
        """Return nodes in the frame of their carrier, and the first coordinate of it."""
        frame, first = bodies[bodies[tie.carrier].owner].grafted(tie.path, at)
        return TiedNodes(frame, self.rest[tie.nodes]), first

    def _mass_pairs(self, region: Region) -> tuple[MassPairs, MassPairs]:
        """Return the mass matrix of a region at unit density: of its own nodes, and of those that are tied.

        Elements between both, or between two ties, are lumped, so that nothing couples the two.
        """
        cells, family = self.mesh.cells[region.elements], self.mesh.family
        ties = self.tie_of[cells]
        between = (ties != ties[:, :1]).any(axis=1)
        groups = ((~between, self.lumped), (between, True)) if between.any() else ((~between, self.lumped),)
        pairs = [mass_pairs(SoftMesh(self.mesh.points, cells[which], family), lumped=how) for which, how in groups]
        rows, cols, values = (np.concatenate(part) for part in zip(*pairs, strict=True))
        free = self.tie_of[rows] < 0
        return MassPairs(rows[free], cols[free], values[free]), MassPairs(rows[~free], cols[~free], values[~free])

    def tied_masses(self, tie: NodeTie) -> list[TiedMass]:
        """Return the tissue of each region on the nodes of a tie; of regions that have any there."""
        out = []
        for k, region in enumerate(() if tie.held else self.materials):
            rows, cols, values = self._mass_pairs(region)[1]
            inside = self.tie_of[rows] == self.tie_of[tie.nodes[0]]
            mass = float(values[inside].sum())
            if mass > 0.0:
                x, y = self.rest[rows[inside]], self.rest[cols[inside]]
                centre = values[inside] @ x / mass
                spread = np.einsum("k,ki,kj->ij", values[inside], x - centre, y - centre)
                spread = np.trace(spread) * np.eye(3) - 0.5 * (spread + spread.T)
                six = spread[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
                out.append(TiedMass(f"{tie.path}.masses.{k}", region, mass, centre, six))
        return out

    @cached_property
    def surface(self) -> Surface:
        """Boundary of the mesh."""
        return surface(self.mesh)

    @cached_property
    def _locator(self) -> Locator:
        """Which element holds a place."""
        return Locator(self.mesh)

    def mass_shares(self) -> FloatArray:
        """Return row sums of the mass matrix over the mass, those of one density for all regions."""
        pairs = mass_pairs(self.mesh, lumped=self.lumped)
        weights = np.bincount(pairs.rows, pairs.values, len(self.rest))
        return weights / weights.sum()

    def centre_shares(self, theta: FloatArray, at: Layouts) -> FloatArray:
        """Return the shares of the nodes in the mass (n,), densities of regions and point masses among it."""
        family, n = self.mesh.family, len(self.rest)
        weights = np.zeros(n)
        for region in self.materials:
            part = SoftMesh(self.mesh.points, self.mesh.cells[region.elements], family)
            pairs = mass_pairs(part, lumped=self.lumped)
            density = theta[at.parameters[f"{region.place(self.name)}.density"].start]
            weights += density * np.bincount(pairs.rows, pairs.values, n)
        for mass in self.masses:
            np.add.at(weights, mass.nodes, theta[at.parameters[mass.parameter].start] * mass.weights)
        return weights / weights.sum()

    def nodes_at(self, place: FloatArray) -> tuple[IntArray, FloatArray, float]:
        """Return the nodes of the element that holds the place, and its shape functions there."""
        located = self._locator.locate(place)
        return located.nodes, located.weights, located.distance

    def parameters(self) -> list[Block]:
        """Return moduli, density, dampings, pose and point masses."""
        blocks: list[Block] = []
        for region in self.materials:
            place = region.place(self.name)
            for key, unit, _ in region.law.parameters:
                blocks.append((f"{place}.{key}", (region.elements.size,) if key in region.fields else (), unit))
            blocks += [(f"{place}.{key}", (), unit) for key, unit in MATERIAL_SCALARS]
            blocks += [(f"{place}.{key}", (), unit) for key, unit, _ in region.viscosity.parameters]
        blocks += self.pose_blocks()
        for region in (region for region in self.materials if region.branches):
            place, points = region.place(self.name), self._elements(region)[2].shape
            for key, unit in _BRANCH:
                blocks += [(f"{place}.relaxation.{name}.{key}", (n,), unit) for name, n in region.branches]
            blocks += [(f"{place}.relaxed", (1,), "-"), (f"{place}.memory", (*points, 6), "Pa")]
        for tie in self.ties:
            blocks += [(f"{tie.path}.position", (3,), "m"), (f"{tie.path}.orientation", (3,), "rad")]
            for part in self.tied_masses(tie):
                blocks += [(f"{part.name}.mass", (), "kg"), (f"{part.name}.centre", (3,), "m")]
                blocks.append((f"{part.name}.inertia", (6,), "kg m^2"))
        return [*blocks, *((mass.parameter, (), "kg") for mass in self.masses), *self.load_places()]

    def signals(self) -> list[tuple[SignalParameter, str]]:
        """Return the signals of pins, loads and anchors."""
        return [*super().signals(), *((anchor.place, "m") for anchor in self.anchors)]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia and weight, elasticity and viscosity, loads."""
        first = self.first_node(at)

        out: list[Part | Term] = []
        for region in self.materials:
            out += self._region_parts(region, at)
        for mass in self.masses:
            k, density = mass.nodes.size, at.parameters[mass.parameter].start
            acting = np.isin(np.arange(3), mass.axes).astype(float)
            products = np.outer(np.outer(mass.weights, mass.weights), acting).reshape(-1, 3)
            rows, cols = first + np.repeat(mass.nodes, k), first + np.tile(mass.nodes, k)
            out.append(Part(NODAL_INERTIA, (rows, cols, products, np.full(k * k, density), np.full(k * k, -1))))
            out.append(Part(WEIGHT, (first + mass.nodes, mass.weights, np.full(k, density))))
        return [*out, *self.load_terms(at)]

    def _elements(self, region: Region) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return nodes of the elements of a region that deform, gradients and weights at their quadrature points."""
        chosen = region.elements[self._deforms(region)]
        mesh = SoftMesh(self.mesh.points, self.mesh.cells[chosen], self.mesh.family)
        if not self.enhanced:
            return mesh.cells, *quadrature_geometry(mesh)
        inner = self.mesh.n_nodes + 3 * region.elements[:, None] + np.arange(3)
        return np.concatenate([mesh.cells, inner], axis=1), *enhanced_geometry(mesh)

    def _deforms(self, region: Region) -> BoolArray:
        """Return which elements of a region (n,) deform: all but those that one tie holds."""
        ties = self.tie_of[self.mesh.cells[region.elements]]
        return np.asarray((ties != ties[:, :1]).any(axis=1) | (ties[:, 0] < 0))

    def _region_parts(self, region: Region, at: Layouts) -> list[Part | Term]:
        """Return inertia, weight, elasticity and viscosity of the elements of a region."""
        place = region.place(self.name)

        def index(key: str) -> int:
            return at.parameters[f"{place}.{key}"].start

        damping = [index(key) for key in ("rayleigh_stiffness", *(one.key for one in region.viscosity.parameters))]
        rates = np.tile(np.array(damping), (region.n_rows, 1))
        moduli, relaxed = region.moduli(self.name, at.parameters), None
        if region.branches:
            kappa, stress = (at.parameters[f"{place}.{key}"].indices for key in ("relaxed", "memory"))
            stress = stress.reshape(-1, stress.shape[-1])
            relaxed = np.concatenate([np.broadcast_to(kappa, (len(stress), 1)), stress], axis=1)
        cells, gradients, volumes = self._elements(region)
        elements = Elements(
            self.first_node(at) + cells,
            gradients,
            volumes,
            region.groups()[self._deforms(region)],
            self.mean_dilatation,
            moduli,
            rates[:, 0],
            rates[:, 1:],
            relaxed,
        )
        family, viscosity = f"{self.mesh.family.name} {cells.shape[1]}", region.viscosity if self.viscous else None
        return [
            *self.weighed(at, self._mass_pairs(region)[0], index("density"), index("rayleigh_mass")),
            Part(Elasticity(family, region.law, viscosity, relaxed is not None), elements),
        ]

    def memories(self, at: Layouts) -> list[Memory]:
        """Return the stress that the branches of its materials remember."""
        out: list[Memory] = []
        for region in (region for region in self.materials if region.branches):
            place = region.place(self.name)
            branches = [f"{place}.relaxation.{name}" for name, _ in region.branches]
            shares, times = (
                np.concatenate([at.parameters[f"{branch}.{key}"].indices for branch in branches]) for key, _ in _BRANCH
            )
            mean = np.full(region.n_rows, int(self.mean_dilatation))
            moduli = region.moduli(self.name, at.parameters)
            elements = *self._elements(region), region.groups(), mean, region.law, moduli
            kappa, stress = (at.parameters[f"{place}.{key}"].indices for key in ("relaxed", "memory"))
            first = at.dofs[self.name].start
            out.append(Relaxation(first, len(self.rest), *elements, shares, times, kappa, stress))
        return out

    def young(self, theta: FloatArray, at: Layouts) -> FloatArray:
        """Return Young's moduli at small strains of all sets of moduli, without fibres [Pa]."""
        out = []
        for region in self.materials:
            lame = linear_moduli(called(region.law), theta[region.moduli(self.name, at.parameters)])[0]
            mu, lam = lame.T
            out.append(mu * (3.0 * lam + 2.0 * mu) / (lam + mu))
        return np.concatenate(out)

    def constraints(self, at: Layouts, bodies: Mapping[str, Body]) -> list[Constraint]:
        """Return the anchors, and nodes held on carriers, of each body in a block of its own."""
        start = at.dofs[self.name].start
        held: list[Constraint] = []
        for tie in (tie for tie in self.ties if tie.held):
            nodes = start + 3 * np.searchsorted(self.own_nodes, tie.nodes)
            held.append(TiedPoints(self.name, tie.carrier, nodes, *self._carried(tie, at, bodies)))
        return held + [
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
        surface = self.surface
        faces = np.searchsorted(surface.nodes, surface.triangles)
        return ContactMesh(self.mesh.points[surface.nodes], surface.nodes, faces, np.zeros((0, 2), dtype=np.int64))

    def picture(self, theta: FloatArray, at: Layouts) -> Picture:
        """Return mesh and law; sets of moduli are NaN in regions of other laws."""
        law = self.materials[0].law
        rows = [np.full((region.n_rows, len(law.parameters)), np.nan) for region in self.materials]
        group = np.zeros(self.mesh.n_elements, dtype=np.int64)
        for k, region in enumerate(self.materials):
            group[region.elements] = region.groups() + sum(len(part) for part in rows[:k])
            if region.law is law:
                rows[k] = theta[region.moduli(self.name, at.parameters)]
        values = {
            "family": self.mesh.family.name,
            "rest": self.mesh.points,
            "cells": self.mesh.cells,
            "surface": self.surface.triangles,
            "model": "formula" if law.formula else law.name,
            "formula": law.formula,
            "moduli": np.concatenate(rows),
            "group": group,
            "mean_dilatation": self.mean_dilatation,
        }
        return Picture("bodies", values)

    def state(self, kin: Kinematics, masses: FloatArray, theta: FloatArray, at: Layouts) -> dict[str, Any]:
        """Return mass, centre of mass, its velocity, and numbers of nodes and elements."""
        whole = masses.copy()
        for region in self.materials if self.ties else ():
            tied, density = self._mass_pairs(region)[1], at.parameters[f"{region.place(self.name)}.density"].start
            np.add.at(whole, self.first_node(at) + tied.rows, theta[density] * tied.values)
        return super().state(kin, whole, theta, at) | {"elements": self.mesh.n_elements}

    def fingerprint(self) -> list[Any]:
        """Return nodes and cells, and what is tied."""
        held = [tie.nodes for tie in self.ties if tie.held]
        return [self.mesh.points, self.mesh.cells, *([self.tie_of] if self.ties else []), *held]
