"""Ends of couplings that start where they probably should not: joints apart, springs with a length at one place."""

from collections.abc import Iterator

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.sites import SitePoints, gather
from add.joints.laws import ElasticJoint, JointPart
from add.model.build import system_site
from add.scene.build.built import BuiltScene, size_of
from add.scene.spec.couplings import BallSpec, FixedSpec, HardeningSpringSpec, HingeSpec, SpringSpec

#: Share of the size of the larger body by which the ends of a joint may start apart: rounding of files.
OPEN = 0.01
#: Share of its rest length below which a spring's ends are at one place: rounding.
CLOSED = 1e-9


def open_joints(built: BuiltScene) -> Iterator[str]:
    """Yield joints whose ends do not start together."""
    kin = built.model.at_start(built.theta)
    for name, part in zip(built.part_owners, built.model.joint_parts, strict=True):
        item = built.scene.couplings.get(name)
        of_points = part.term is ElasticJoint and part.numbers[0] == f"couplings.{name}.stiffness"
        if not of_points or not isinstance(item, BallSpec | FixedSpec | HingeSpec):
            continue
        gap = _distance(built, part, kin)
        sizes = [size_of(built, end.body) for end in (item.a, item.b) if end.body is not None]
        if gap > OPEN * np.fmax.reduce(sizes):
            yield (
                f"couplings.{name}: its ends start {gap:.3g} m apart, and {gap * item.stiffness:.3g} N draw them "
                "together at once; places are in the frames of the bodies"
            )


def aimless_springs(built: BuiltScene) -> Iterator[str]:
    """Yield springs of some length whose ends start at one place, which is no motion that anybody wants.

    The line between the ends has no direction there, so that the force, -k (l - L) along it, is none, and neither is
    its slope: a body that is held by such a spring stays, and a fit of k ends where it began.
    """
    kin = built.model.at_start(built.theta)
    for name, part in zip(built.part_owners, built.model.joint_parts, strict=True):
        item = built.scene.couplings.get(name)
        if not isinstance(item, SpringSpec | HardeningSpringSpec) or not item.length:
            continue
        if _distance(built, part, kin) > CLOSED * item.length:
            continue
        text = (
            f"couplings.{name}: its ends start at one place, where a spring of {item.length:g} m has no direction: it "
            "neither pushes nor pulls there, and the motion does not depend on its numbers"
        )
        for key, end in (("a", item.a), ("b", item.b)):
            if end.at is None:
                text += f"; without {key}.at that end is where the other one starts, in the frame of {end.body!r}"
        yield text


def _distance(built: BuiltScene, part: JointPart, kin: Kinematics) -> float:
    """Return how far apart the two ends of a coupling start [m]."""
    model = built.model
    ends = SitePoints(gather([system_site(site, model.bodies, model.layouts) for site in part.sites[:2]]))
    return float(np.linalg.norm(np.diff(ends.points(kin, built.theta)[0], axis=0)))
