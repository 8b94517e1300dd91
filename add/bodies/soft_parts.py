"""Parts of a soft body beside its mesh: regions of materials, masses and anchors at points, tied nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.equations.layout import ParameterLayout
from add.equations.signals import SignalParameter
from add.materials import Material
from add.typing import FloatArray, IntArray

#: Numbers of a material beside those of its law.
MATERIAL_SCALARS = (
    ("density", "kg/m^3"),
    ("viscosity", "Pa s"),
    ("rayleigh_mass", "1/s"),
    ("rayleigh_stiffness", "s"),
)


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
class NodeTie:
    """Nodes (k,) fixed to a link or a rigid body, ``carrier``; ``path`` names their frame in theta.

    They are no coordinates: their places follow from those of the carrier, and their mass is part of it. Nodes that
    are ``held`` by multipliers are coordinates with a mass as all others.
    """

    nodes: IntArray
    carrier: str
    path: str
    held: bool = False


class TiedMass(NamedTuple):
    """The tissue of one region on tied nodes, at unit density, in the rest frame; ``name`` is that of its blocks.

    Mass [m^3], centre (3,) [m], and inertia about it (6,) [m^5], xx, yy, zz, xy, xz, yz.
    """

    name: str
    region: Region
    mass: float
    centre: FloatArray
    inertia: FloatArray


@final
@dataclass(frozen=True)
class Region:
    """Elements of one material.

    Attributes
    ----------
    name : str
        Empty for the body's own material: its numbers are ``bodies.BODY.KEY``, others ``bodies.BODY.regions.NAME.KEY``.
    law : Material
    elements : (n,)
    fields : names of the law's parameters that have a number for each element
    branches : tuple of (name, how many)
        The branches that its stress relaxes by, see `add.materials.relaxation`.
    has_exponent : bool
        Whether the exponent of its viscosity is a number; else it is two.
    """

    name: str
    law: Material
    elements: IntArray
    fields: frozenset[str] = frozenset()
    branches: tuple[tuple[str, int], ...] = ()
    has_exponent: bool = False

    @property
    def n_rows(self) -> int:
        """Sets of moduli: one, or one for each element."""
        return self.elements.size if self.fields else 1

    def place(self, body: str) -> str:
        """Return what the names of its numbers in theta begin with."""
        return f"bodies.{body}.regions.{self.name}" if self.name else f"bodies.{body}"

    def moduli(self, body: str, parameters: ParameterLayout) -> IntArray:
        """Return the places in theta of all sets of moduli (n_rows, n_p)."""
        blocks = [parameters[f"{self.place(body)}.{modulus.key}"].indices for modulus in self.law.parameters]
        return np.stack([np.broadcast_to(block.ravel(), self.n_rows) for block in blocks], axis=1)

    def groups(self) -> IntArray:
        """Return the set of each of its elements (n,)."""
        return np.arange(self.elements.size) * (self.n_rows > 1)
