"""Decisions of penalty contact: rows of pairs that touch, and which of them stick."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from add.contact.formulas import FrictionCurve, FrictionLaw, NormalFormula, NormalLaw, PairParameters
from add.equations.family_term import FamilyTerm
from add.equations.kinematics import Kinematics
from add.equations.sticking import StickingDecisions, StickingRows
from add.equations.term import Candidates, Decision
from add.kernels.contact_arrays import Packed
from add.kernels.contact_pairs import ACTIVE, ADHESIVE, BITS, PAIR, SHARED, SLIP, STICKS, TOTAL, Law
from add.typing import AnyArray, FloatArray, IntArray

#: The decision that nothing touches.
NO_CONTACT: Decision = np.zeros((0, 3), dtype=np.int64)


class StickingContacts(StickingRows):
    """Rows of a contact term that stick; the equations stand in `add.kernels.sticking` and `mesh_sticking`.

    Attributes
    ----------
    decision : (m, 3) all rows
    rows : (k, 3) those that stick
    """

    def __init__(self, decision: Decision, rows: Decision) -> None:
        super().__init__(rows.shape[0])
        self.decision, self.rows = decision, rows


class RowContact(StickingDecisions):
    """Contact whose decision has a row (pair, feature, bits) for each pair that touches or sticks.

    The attributes below are fields of all kinds of contact, and described there.
    """

    law: FrictionLaw
    total_normal: bool
    adhesive_damping: bool
    normal_law: NormalLaw | NormalFormula
    curve: FrictionCurve

    def __getstate__(self) -> dict[str, Any]:
        """Leave the family by itself here: it has addresses of this process."""
        return {key: value for key, value in self.__dict__.items() if key != "one"}

    @cached_property
    def kernel_law(self) -> Law:
        """The law as the kernels take it."""
        shared = isinstance(self.normal_law, NormalFormula) and self.normal_law.damping != ""
        bits = TOTAL * self.total_normal | ADHESIVE * self.adhesive_damping | SHARED * shared
        return Law(self.law.kernel, bits, self.normal_law.code, self.curve.code)

    @property
    @final
    def is_hybrid(self) -> bool:
        """Whether the law is hybrid."""
        return self.law is FrictionLaw.HYBRID

    @property
    @final
    def sticking(self) -> RowContact | None:
        """The term itself under the hybrid law; None under the others, which have no stick constraints."""
        return self if self.is_hybrid else None

    @final
    def describe(self, decision: Decision) -> dict[str, int]:
        """Return how many pairs touch and, where the law has branches, how many stick and slip.

        Under the hybrid law some creep: neither stopped nor slipping.
        """
        bits = decision[:, BITS]
        touching = bits & ACTIVE != 0
        counts = {"touching": int(touching.sum())}
        if self.law in (FrictionLaw.LINEAR, FrictionLaw.HYBRID):
            slipping = touching & (bits & SLIP != 0)
            stopped = touching & (bits & STICKS != 0)
            sticking = stopped if self.is_hybrid else touching & ~slipping
            counts |= {"sticking": int(sticking.sum()), "slipping": int(slipping.sum())}
            if self.is_hybrid:
                counts["creeping"] = int((touching & ~slipping & ~stopped).sum())
        return counts


class PairContact(RowContact):
    """Contact of points with shapes: pair = point * n_shapes + shape."""

    pairs: PairParameters

    @property
    @abstractmethod
    def packed(self) -> Packed:
        """The arrays and the law as few arguments."""

    @property
    @final
    def held_arrays(self) -> tuple[AnyArray, ...]:
        """See `add.contact.body_family.HeldPairs`."""
        return (*self.packed, np.zeros((0, 0), dtype=np.int64))

    @final
    def check_thickness(self) -> None:
        """Refuse a law without the thickness that it needs."""
        if self.normal_law.has_layer != (self.pairs.thickness is not None):
            raise ValueError(f"the law {self.normal_law.name} and a layer around shapes do not go together")

    @abstractmethod
    def free_share(self, q0: FloatArray, q1: FloatArray, theta: FloatArray) -> float:
        """Return the share of the ways of points in the frames of shapes that they may go without touching one."""

    @property
    @abstractmethod
    def n_shapes(self) -> int:
        """Number of shapes."""

    @final
    def touching_pairs(self, decision: Decision) -> tuple[IntArray, IntArray]:
        """Return points and shapes (k,) of the pairs that touch."""
        point, shape = np.divmod(decision[decision[:, BITS] & ACTIVE != 0, PAIR], self.n_shapes)
        return point, shape

    @final
    def stiffnesses(self) -> IntArray:
        """Return the indices of all stiffnesses and dampings."""
        return self.pairs.stiffnesses()

    @final
    def damps_at_once(self, theta: FloatArray) -> bool:
        """Whether a damping of groups that may touch has no ramp; the soft-max and formulas have their own."""
        law, pairs = self.normal_law, self.pairs
        if law is NormalLaw.SOFT_MAX or (isinstance(law, NormalFormula) and law.damping):
            return False
        return bool(((pairs.ramp == 0.0) & (pairs.enabled != 0) & (theta[pairs.k_d] > 0.0)).any())


class ContactBranch(FamilyTerm):
    """One branch of a contact: smooth, without any decision. The attributes are fields of both kinds.

    Attributes
    ----------
    contact : RowContact
    decision : (k, 3) rows (pair, feature, bits)
    candidates : keys of blocks that the pattern has, too
    """

    depends: ClassVar[str] = "qv"

    contact: Any
    decision: Decision
    candidates: Candidates | None

    @property
    def decided(self) -> Decision:
        """The decision."""
        return self.decision

    @final
    def energy(self, kin: Kinematics, theta: FloatArray) -> float:
        """Return the elastic energy of all contacts that touch at ``kin`` [J]."""
        return float(self.contact.energy(kin, theta))
