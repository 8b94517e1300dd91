"""From names of bodies and blocks of theta to features of the system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.layout import DofLayout, ParameterLayout
from add.model.bodies import RigidBody
from add.model.links import BodyFeature
from add.terms import FeatureKind, Features
from add.typing import FloatArray, IntArray

_NONE: IntArray = np.full(3, -1, dtype=np.int64)
_NO_WEIGHTS: FloatArray = np.zeros(0)


@final
@dataclass(frozen=True)
class Feature:
    """One feature in the numbering of the system.

    Attributes
    ----------
    kind : FeatureKind
    dofs : coordinates that it depends on
    weights : of nodes
    arm, centre : (3,) indices in theta of X and X_c; -1 for zero
    """

    kind: FeatureKind
    dofs: IntArray
    weights: FloatArray = field(default_factory=lambda: _NO_WEIGHTS)
    arm: IntArray = field(default_factory=lambda: _NONE)
    centre: IntArray = field(default_factory=lambda: _NONE)


def node_feature(nodes: IntArray, weights: FloatArray) -> Feature:
    """Return a weighted sum of nodes of the system."""
    dofs = (3 * np.asarray(nodes)[:, None] + np.arange(3)).ravel()
    return Feature(FeatureKind.NODES, dofs, np.asarray(weights, dtype=float))


def gather(features: Sequence[Feature]) -> Features:
    """Return features as arrays, padded to the widest."""
    n = len(features)
    width = max([3, *(f.dofs.size for f in features)])
    dofs = np.full((n, width), -1, dtype=np.int64)
    weights = np.zeros((n, width // 3))
    for i, feature in enumerate(features):
        dofs[i, : feature.dofs.size] = feature.dofs
        weights[i, : feature.weights.size] = feature.weights
    kind = np.array([f.kind for f in features], dtype=np.int64)
    arm, centre = (
        np.array(part, dtype=np.int64).reshape(n, 3)
        for part in zip(*((f.arm, f.centre) for f in features), strict=True)
    )
    return Features(kind, dofs, weights, arm, centre)


def centre_of_mass(body: RigidBody, parameters: ParameterLayout) -> IntArray:
    """Return the indices in theta of a body's centre of mass; -1 for a kinematic one, whose origin it is."""
    return _NONE if body.kinematic else parameters[f"bodies.{body.name}.centre"].indices


def system_feature(
    feature: BodyFeature, rigid: Sequence[RigidBody], dofs: DofLayout, parameters: ParameterLayout
) -> Feature:
    """Return a feature in the numbering of the system."""
    arm = parameters[feature.arm].indices if feature.arm else _NONE
    return place_feature(feature, arm, rigid, dofs, parameters)


def place_feature(
    feature: BodyFeature, arm: IntArray, rigid: Sequence[RigidBody], dofs: DofLayout, parameters: ParameterLayout
) -> Feature:
    """Return a feature whose arm has the indices ``arm`` (3,) in theta."""
    if feature.kind is FeatureKind.WORLD:
        return Feature(feature.kind, np.zeros(0, dtype=np.int64), arm=arm)
    start = dofs[feature.body].start
    if feature.kind is FeatureKind.NODES:
        kept = np.flatnonzero(feature.weights)
        return node_feature(start // 3 + feature.nodes[kept], feature.weights[kept])
    if feature.kind is FeatureKind.POINT:
        body = next(body for body in rigid if body.name == feature.body)
        return Feature(feature.kind, np.arange(start, start + 6), arm=arm, centre=centre_of_mass(body, parameters))
    return Feature(feature.kind, np.arange(start + 3, start + 6), arm=arm)
