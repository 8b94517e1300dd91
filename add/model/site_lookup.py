"""From names of bodies and blocks of theta to sites of the system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.layout import DofLayout, ParameterLayout
from add.equations.sites import SiteKind, Sites
from add.joints.links import BodySite
from add.model.bodies import RigidBody
from add.typing import FloatArray, IntArray

_NONE: IntArray = np.full(3, -1, dtype=np.int64)
_NO_WEIGHTS: FloatArray = np.zeros(0)


@final
@dataclass(frozen=True)
class Site:
    """One site in the numbering of the system.

    Attributes
    ----------
    kind : SiteKind
    dofs : coordinates that it depends on
    weights : of nodes
    arm, centre : (3,) indices in theta of X and X_c; -1 for zero
    """

    kind: SiteKind
    dofs: IntArray
    weights: FloatArray = field(default_factory=lambda: _NO_WEIGHTS)
    arm: IntArray = field(default_factory=lambda: _NONE)
    centre: IntArray = field(default_factory=lambda: _NONE)


def node_site(nodes: IntArray, weights: FloatArray) -> Site:
    """Return a weighted sum of nodes of the system."""
    dofs = (3 * np.asarray(nodes)[:, None] + np.arange(3)).ravel()
    return Site(SiteKind.NODES, dofs, np.asarray(weights, dtype=float))


def gather(sites: Sequence[Site]) -> Sites:
    """Return sites as arrays, padded to the widest."""
    n = len(sites)
    width = max([3, *(f.dofs.size for f in sites)])
    dofs = np.full((n, width), -1, dtype=np.int64)
    weights = np.zeros((n, width // 3))
    for i, site in enumerate(sites):
        dofs[i, : site.dofs.size] = site.dofs
        weights[i, : site.weights.size] = site.weights
    kind = np.array([f.kind for f in sites], dtype=np.int64)
    arm, centre = (
        np.array(part, dtype=np.int64).reshape(n, 3) for part in zip(*((f.arm, f.centre) for f in sites), strict=True)
    )
    return Sites(kind, dofs, weights, arm, centre)


def centre_of_mass(body: RigidBody, parameters: ParameterLayout) -> IntArray:
    """Return the indices in theta of a body's centre of mass; -1 for a kinematic one, whose origin it is."""
    return _NONE if body.kinematic else parameters[f"bodies.{body.name}.centre"].indices


def system_site(site: BodySite, rigid: Sequence[RigidBody], dofs: DofLayout, parameters: ParameterLayout) -> Site:
    """Return a site in the numbering of the system."""
    arm = parameters[site.arm].indices if site.arm else _NONE
    return place_site(site, arm, rigid, dofs, parameters)


def place_site(
    site: BodySite, arm: IntArray, rigid: Sequence[RigidBody], dofs: DofLayout, parameters: ParameterLayout
) -> Site:
    """Return a site whose arm has the indices ``arm`` (3,) in theta."""
    if site.kind is SiteKind.WORLD:
        return Site(site.kind, np.zeros(0, dtype=np.int64), arm=arm)
    start = dofs[site.body].start
    if site.kind is SiteKind.NODES:
        kept = np.flatnonzero(site.weights)
        return node_site(start // 3 + site.nodes[kept], site.weights[kept])
    if site.kind is SiteKind.POINT:
        body = next(body for body in rigid if body.name == site.body)
        return Site(site.kind, np.arange(start, start + 6), arm=arm, centre=centre_of_mass(body, parameters))
    return Site(site.kind, np.arange(start + 3, start + 6), arm=arm)
