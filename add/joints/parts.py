"""Couplings as values between bodies; gathered into one term a kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.equations.signals import SignalParameter
from add.equations.sites import SiteKind
from add.joints.formulas import JointFormula
from add.joints.law_term import DecidingJointLaw, JointLaw
from add.typing import FloatArray, IntArray


@final
@dataclass(frozen=True)
class BodySite:
    """A vector that a body carries, or that stands in the world.

    Attributes
    ----------
    kind : SiteKind
    body : str
        Empty for the world.
    arm : str
        Block of theta with the place or direction in the body's frame (or the world); empty for nodes and spins.
    nodes, weights : of the body, for NODES
    """

    kind: SiteKind
    body: str = ""
    arm: str = ""
    nodes: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))


@final
@dataclass(frozen=True)
class JointPart:
    """One spring, part of a joint or force; or many alike, as the air on the faces of a surface.

    Attributes
    ----------
    term : the kind of term that it is gathered into, or the formula that makes one
    sites : those of each interaction, one behind the other, in the order of the term's law
    numbers : blocks of theta, the first columns of the law; empty for zero
    drive : SignalParameter or None
        What the columns behind them follow.
    """

    term: type[JointLaw] | type[DecidingJointLaw] | JointFormula
    sites: tuple[BodySite, ...]
    numbers: tuple[str, ...] = ()
    drive: SignalParameter | None = None


@final
@dataclass(frozen=True)
class HingeStart:
    """The start of a body on a hinge: at an angle and a rate against the other. Names are blocks of theta.

    At angle zero the bodies have the orientations of their own blocks.

    Attributes
    ----------
    a, b : str
        Names of rigid bodies; ``a`` is empty for the world.
    place_a, place_b : str
        The hinge in both frames.
    axis : str
        A unit vector in a's frame.
    angle, rate : str
    """

    a: str
    b: str
    place_a: str
    place_b: str
    axis: str
    angle: str
    rate: str
