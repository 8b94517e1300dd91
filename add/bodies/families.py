"""The families of forces that bodies take part in: one term each for all bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from add.bodies.base import Family
from add.equations.layout import ParameterLayout
from add.equations.term import Term
from add.materials import Material
from add.terms import Elastic, ElementBatch, Gravity, Inertia, RigidInertia, Viscous
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class Joined(Family):
    """A term whose arrays are those of all parts, one after the other; parts are tuples of them.

    Attributes
    ----------
    term : kind of term
    shared : names of blocks of theta whose indices come last
    """

    term: type[Term]
    shared: tuple[str, ...] = ()

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term."""
        arrays = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        return [self.term(*arrays, *(parameters[name].indices for name in self.shared))]


#: Inertia of nodes: rows, cols (m,), masses (m, 3), density and damping (m,) as indices in theta, -1 for none.
NODAL_INERTIA = Joined(Inertia)
#: Inertia of rigid bodies: first row (1,), index of the mass (1,), indices of the inertia (1, 6).
FRAME_INERTIA = Joined(RigidInertia)
#: Weight of nodes and centres of mass: nodes, masses at unit density, indices of the density (m,).
WEIGHT = Joined(Gravity, ("gravity",))


class Elements(NamedTuple):
    """Elements of one body: as in `ElementBatch`; moduli, viscosity and beta as indices in theta."""

    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    mean_dilatation: bool
    moduli: IntArray
    viscosity: int
    beta: int


@final
@dataclass(frozen=True)
class Elasticity(Family):
    """Elasticity of the elements of one family and one law, and their viscosity; parts are `Elements`."""

    element: str
    law: Material
    viscous: bool

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term, or two."""
        batch = ElementBatch(
            cells=np.concatenate([part.cells for part in parts]),
            gradients=np.concatenate([part.gradients for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            group=np.repeat(np.arange(len(parts)), [part.cells.shape[0] for part in parts]),
            mean_dilatation=np.array([part.mean_dilatation for part in parts]),
            law=self.law,
            moduli=np.array([part.moduli for part in parts]),
        )
        nu, beta = (np.array([getattr(part, key) for part in parts]) for key in ("viscosity", "beta"))
        return [Elastic(batch), Viscous(batch, nu, beta)] if self.viscous else [Elastic(batch)]
