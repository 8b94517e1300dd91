"""The families of forces that bodies take part in: one term each for all bodies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from add.bodies.base import Family
from add.equations.layout import ParameterLayout
from add.equations.term import Term
from add.materials import Material, relaxing
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
    """Elements of one region, as in `ElementBatch`.

    Moduli, viscosity, beta and exponent (n_groups,) are indices in theta; ``relaxed`` (ne nq, 7) are those of kappa and
    M of every point, where stress relaxes.
    """

    cells: IntArray
    gradients: FloatArray
    weights: FloatArray
    group: IntArray
    mean_dilatation: bool
    moduli: IntArray
    viscosity: IntArray
    beta: IntArray
    exponent: IntArray
    relaxed: IntArray | None = None


@final
@dataclass(frozen=True)
class Elasticity(Family):
    """Elasticity of the elements of one family and one law, and their viscosity; parts are `Elements`."""

    element: str  # its family and nodes: arrays that go together
    law: Material
    viscous: bool
    relaxes: bool = False

    def terms(self, parts: Sequence[Any], parameters: ParameterLayout) -> list[Term]:
        """Return one term, or two."""
        sizes = [part.moduli.shape[0] for part in parts]
        starts = np.cumsum([0, *sizes[:-1]])
        batch = ElementBatch(
            cells=np.concatenate([part.cells for part in parts]),
            gradients=np.concatenate([part.gradients for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            group=np.concatenate([start + part.group for start, part in zip(starts, parts, strict=True)]),
            mean_dilatation=np.repeat([part.mean_dilatation for part in parts], sizes),
            law=self.law,
            moduli=np.concatenate([part.moduli for part in parts]),
        )
        rates = (np.concatenate([getattr(part, key) for part in parts]) for key in ("viscosity", "beta", "exponent"))
        elastic = Elastic(_of_points(batch, parts) if self.relaxes else batch)
        return [elastic, Viscous(batch, *rates)] if self.viscous else [elastic]


def _of_points(batch: ElementBatch, parts: Sequence[Elements]) -> ElementBatch:
    """Return the elements with the law of a step in which stress relaxes: a row of numbers a point."""
    nq = batch.weights.shape[1]
    rows = np.repeat(batch.group, nq)
    relaxed = np.concatenate([part.relaxed for part in parts if part.relaxed is not None])
    return replace(
        batch, group=nq * np.arange(batch.group.size), mean_dilatation=batch.mean_dilatation[rows],
        law=relaxing(batch.law), moduli=np.concatenate([batch.moduli[rows], relaxed], axis=1),
    )  # fmt: skip
