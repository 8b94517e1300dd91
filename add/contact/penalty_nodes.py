"""Penalty contact with linear or tanh friction (Geilinger et al. 2020, section 4) as a term with branches."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from add.contact.branches import PairContact
from add.contact.coefficients import FrictionLaw, PairParameters
from add.contact.shapes import Shapes
from add.contact.sticking import StickingNodes
from add.equations.kinematics import Kinematics, Weights
from add.equations.points import LinearPoints, NodePoints
from add.equations.term import Decision, Term
from add.kernels import contact_nodes as kernel
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class PenaltyContact(PairContact):
    """Forces of shapes on points of bodies; the equations stand in `add.kernels.contact_nodes`.

    Attributes
    ----------
    points : LinearPoints
        Contact points of all bodies.
    scale : (n_points,)
        One, or the rest area of the point [m^2] where stiffness is per area.
    body : (n_points,)
        Row of each point in the pair parameters.
    shapes : Shapes
    pairs : PairParameters
    law : FrictionLaw
    total_normal : bool
        Whether Coulomb's limit counts the damping force; the paper counts the elastic part only.
    pulls : bool
        Whether the damping may pull while bodies part; by default the normal force is clipped at zero.
    """

    points: LinearPoints
    scale: FloatArray
    body: IntArray
    shapes: Shapes
    pairs: PairParameters
    law: FrictionLaw
    total_normal: bool = False
    pulls: bool = False

    def __post_init__(self) -> None:
        if self.shapes.frames.carried:
            raise ValueError("shapes carried by bodies need reactions on their carriers, which this term does not give")
        if self.is_hybrid and not isinstance(self.points, NodePoints):
            raise ValueError("hybrid friction holds nodes, not points between them")

    def arguments(self, kin: Kinematics, theta: FloatArray) -> tuple[Any, ...]:
        """Return positions, velocities, shapes and pair values as the kernels take them."""
        x, v = self.points.points(kin, theta)
        pairs = self.pairs
        return (
            x,
            v,
            self.scale,
            self.body,
            *self.shapes.arguments(kin),
            pairs.enabled,
            theta[pairs.k_n],
            theta[pairs.k_d],
            theta[pairs.k_t],
            theta[pairs.c_f],
            pairs.onset,
            pairs.ramp,
            self.law.kernel,
            self.normal_bits,
        )

    def new_codes(self) -> Decision:
        """Return empty codes (n_points, n_obstacles)."""
        return np.zeros((self.points.n_points, self.shapes.kind.size), dtype=np.int32)

    def decide(self, kin: Kinematics, theta: FloatArray) -> Decision:
        """Return the branch that holds at ``kin``."""
        codes = self.new_codes()
        kernel.contact_force(*self.arguments(kin, theta), False, codes, np.empty((self.points.n_points, 3)))
        return codes

    def decided_residual(
        self, kin: Kinematics, theta: FloatArray, out: FloatArray, held: Decision | None = None
    ) -> Decision:
        """Decide and add minus the contact forces in one pass; ``held`` stays held."""
        codes = self.new_codes() if held is None else held & kernel.GIVEN
        force = np.empty((self.points.n_points, 3))
        if kernel.contact_force(*self.arguments(kin, theta), False, codes, force):
            self.points.pull(-force, out)
        return codes

    def structure(self, decision: Decision) -> Hashable:
        """Return a constant: against shapes of the world every point couples to itself alone."""
        return None

    def _hold(self, decision: Decision, pairs: IntArray) -> StickingNodes:
        return StickingNodes(self, decision, pairs)

    def on_branch(self, decision: Decision) -> Term:
        """Return the smooth law of the given branch."""
        return NodeContactBranch(self, decision)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts [J]."""
        kind, size, rotation, position, _, _ = self.shapes.arguments(kin)
        x = self.points.gather(kin.q)
        pairs = self.pairs
        k_n = theta[pairs.k_n]
        return float(
            kernel.contact_energy(
                x, self.scale, self.body, kind, size, rotation, position, pairs.enabled, k_n, pairs.onset
            )
        )


@final
@dataclass(frozen=True)
class NodeContactBranch(Term):
    """One branch of a `PenaltyContact`: smooth, without any decision.

    Attributes
    ----------
    contact : PenaltyContact
    codes : (n_points, n_obstacles)
        Bits of `add.kernels.contact_nodes`.
    """

    depends: ClassVar[str] = "qv"

    contact: PenaltyContact
    codes: Decision

    def pattern(self) -> tuple[IntArray, IntArray]:
        """Return the points' own blocks."""
        return self.contact.points.block_pattern()

    def residual(self, kin: Kinematics, theta: FloatArray, out: FloatArray) -> None:
        """Add minus the contact forces."""
        force = np.empty((self.contact.points.n_points, 3))
        if kernel.contact_force(*self.contact.arguments(kin, theta), True, self.codes, force):
            self.contact.points.pull(-force, out)

    def jacobian(self, kin: Kinematics, theta: FloatArray, weights: Weights, data: FloatArray, slots: IntArray) -> None:
        """Add the weighted derivatives, unsymmetric."""
        if not (weights.q or weights.v):
            return
        n = self.contact.points.n_points
        by_x, by_v = np.empty((n, 3, 3)), np.empty((n, 3, 3))
        if kernel.contact_jacobian(*self.contact.arguments(kin, theta), True, self.codes, by_x, by_v):
            by_x *= -weights.q
            by_x -= weights.v * by_v
            self.contact.points.scatter_blocks(by_x, data, slots)

    def _parameters(
        self,
        kin: Kinematics,
        theta: FloatArray,
        forward: bool,
        tangents: tuple[FloatArray, ...],
        force: FloatArray,
    ) -> None:
        kernel.contact_parameters(*self.contact.arguments(kin, theta), True, self.codes, forward, *tangents, force)

    def parameter_vjp(self, kin: Kinematics, theta: FloatArray, lam: FloatArray, out: FloatArray) -> None:
        """Add the cotangents of the pair parameters."""
        if not self.codes.any():
            return
        pairs, points = self.contact.pairs, self.contact.points
        at_points = points.gather(lam)
        bars = tuple(np.zeros(pairs.k_n.shape) for _ in range(4))
        self._parameters(kin, theta, False, bars, at_points)
        for index, bar in zip((pairs.k_n, pairs.k_d, pairs.k_t, pairs.c_f), bars, strict=True):
            np.subtract.at(out, index, bar)

    def parameter_jvp(self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, out: FloatArray) -> None:
        """Add the tangent along ``theta_dot``."""
        if not self.codes.any():
            return
        pairs, points = self.contact.pairs, self.contact.points
        force = np.zeros((points.n_points, 3))
        dots = tuple(theta_dot[index] for index in (pairs.k_n, pairs.k_d, pairs.k_t, pairs.c_f))
        self._parameters(kin, theta, True, dots, force)
        points.pull(-force, out)

    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts that touch at ``kin`` [J]."""
        return self.contact.energy(kin, theta)
