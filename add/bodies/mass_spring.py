"""Point masses and springs between them: cloth, nets, ropes, or a single handle that a signal moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from add.bodies.base import POSE_VECTORS, Block, Layouts, Part
from add.bodies.families import NODAL_INERTIA, WEIGHT
from add.bodies.thin import NetBody, Springs
from add.equations.term import Term


@dataclass(frozen=True)
class MassSpringBody(NetBody):
    """A mass-spring body: stiffness and damping are one number each, every spring has its own rest length.

    Attributes
    ----------
    massless : bool
        Whether no inertia and no weight act: for handles all of whose nodes are pinned.
    """

    massless: bool = False

    def parameters(self) -> list[Block]:
        """Return mass and damping, those of springs with their lengths, and the pose."""
        scalars = [] if self.massless else [("mass", "kg"), ("rayleigh_mass", "1/s")]
        scalars += [("stiffness", "N/m"), ("damping", "N s/m")] if self.edges.size else []
        blocks: list[Block] = [(f"bodies.{self.name}.{key}", (), unit) for key, unit in scalars]
        if self.edges.size:
            blocks.append((f"bodies.{self.name}.lengths", (self.edges.shape[0],), "m"))
        return [
            *blocks,
            *((f"bodies.{self.name}.{key}", (3,), unit) for key, unit in POSE_VECTORS),
            *self.load_places(),
        ]

    def parts(self, at: Layouts) -> list[Part | Term]:
        """Return inertia and weight, springs, loads."""
        first, own = self.first_node(at), f"bodies.{self.name}"
        out: list[Part | Term] = []
        if not self.massless:
            mass, drag = (at.parameters[f"{own}.{key}"].start for key in ("mass", "rayleigh_mass"))
            nodes = first + np.arange(self.points.shape[0])
            index, masses = np.full(nodes.size, mass), np.repeat(self.shares[:, None], 3, axis=1)
            out.append(Part(NODAL_INERTIA, (nodes, nodes, masses, index, np.full(nodes.size, drag))))
            out.append(Part(WEIGHT, (nodes, self.shares, index)))
        if self.edges.size:
            keys = ("stiffness", "damping", "lengths")
            n = self.edges.shape[0]
            numbers = [np.broadcast_to(at.parameters[f"{own}.{key}"].indices, (n,)) for key in keys]
            out.append(Part(Springs(), (first + self.edges, *numbers)))
        return [*out, *self.load_terms(at)]
