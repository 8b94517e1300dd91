"""Inertia and weight of all bodies: one term each for nodes, rigid bodies and gravity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from add.equations.layout import DofLayout, ParameterLayout
from add.equations.term import Term
from add.geometry import mass_pairs
from add.model.bodies import ParticleBody, RigidBody, SoftBody
from add.terms import Gravity, Inertia, RigidInertia
from add.typing import FloatArray, IntArray


@dataclass
class _Nodes:
    """Node pairs with mass, and nodes with weight, gathered over bodies."""

    rows: list[IntArray] = field(default_factory=list)
    cols: list[IntArray] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)
    density: list[IntArray] = field(default_factory=list)
    damping: list[IntArray] = field(default_factory=list)
    nodes: list[IntArray] = field(default_factory=list)
    weights: list[FloatArray] = field(default_factory=list)
    weight_density: list[IntArray] = field(default_factory=list)

    def add_pairs(self, rows: IntArray, cols: IntArray, values: FloatArray, density: int, damping: int) -> None:
        self.rows.append(rows)
        self.cols.append(cols)
        self.values.append(values)
        self.density.append(np.full(rows.size, density))
        self.damping.append(np.full(rows.size, damping))

    def add_weight(self, nodes: IntArray, weights: FloatArray, density: int) -> None:
        self.nodes.append(nodes)
        self.weights.append(weights)
        self.weight_density.append(np.full(nodes.size, density))


def mass_terms(
    soft: Sequence[SoftBody],
    particles: Sequence[ParticleBody],
    rigid: Sequence[RigidBody],
    dofs: DofLayout,
    parameters: ParameterLayout,
) -> list[Term]:
    """Return inertia of nodes and of rigid bodies, as far as there are any, and gravity."""
    parts = _Nodes()
    for body in soft:
        _soft(body, dofs[body.name].start // 3, parameters, parts)
    for sheet in particles:
        if not sheet.massless:
            first = dofs[sheet.name].start // 3
            mass, drag = (parameters[f"bodies.{sheet.name}.{key}"].start for key in ("mass", "rayleigh_mass"))
            nodes = first + np.arange(sheet.n_nodes)
            parts.add_pairs(nodes, nodes, np.repeat(sheet.shares[:, None], 3, axis=1), mass, drag)
            parts.add_weight(nodes, sheet.shares, mass)
    terms: list[Term] = []
    if parts.rows:
        rows, cols, density, damping = (
            np.concatenate(array) for array in (parts.rows, parts.cols, parts.density, parts.damping)
        )
        terms.append(Inertia(rows, cols, np.concatenate(parts.values), density, damping))
    solids = [body for body in rigid if not body.kinematic]
    if solids:
        start = np.array([dofs[body.name].start for body in solids])
        mass_index = np.array([parameters[f"bodies.{body.name}.mass"].start for body in solids])
        inertia = np.array([parameters[f"bodies.{body.name}.inertia"].indices for body in solids])
        terms.append(RigidInertia(start, mass_index, inertia))
        for first, index in zip(start, mass_index, strict=True):
            parts.add_weight(np.array([first // 3]), np.ones(1), int(index))
    if parts.nodes:
        nodes, weights, density = (
            np.concatenate(parts.nodes),
            np.concatenate(parts.weights),
            np.concatenate(parts.weight_density),
        )
        terms.append(Gravity(nodes, weights, density, parameters["gravity"].indices))
    return terms


def _soft(body: SoftBody, first: int, parameters: ParameterLayout, parts: _Nodes) -> None:
    pairs = mass_pairs(body.mesh, lumped=body.lumped)
    density, damping = (parameters[f"bodies.{body.name}.{key}"].start for key in ("density", "rayleigh_mass"))
    values = np.repeat(pairs.values[:, None], 3, axis=1)
    parts.add_pairs(first + pairs.rows, first + pairs.cols, values, density, damping)
    weights = np.bincount(pairs.rows, pairs.values, body.mesh.n_nodes).astype(float)
    parts.add_weight(first + np.arange(body.mesh.n_nodes), weights, density)
    for mass in body.masses:
        k = mass.nodes.size
        acting = np.isin(np.arange(3), mass.axes).astype(float)
        index = parameters[mass.parameter].start
        parts.add_pairs(
            first + np.repeat(mass.nodes, k),
            first + np.tile(mass.nodes, k),
            np.outer(np.outer(mass.weights, mass.weights), acting).reshape(-1, 3),
            index,
            -1,
        )
        parts.add_weight(first + mass.nodes, mass.weights, index)
