"""Joint parts gathered into terms: one a kind, or one a kind and signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from add.bodies import Body, Layouts
from add.equations.layout import ParameterLayout
from add.equations.signals import Signal
from add.equations.sites import NO_INDICES, LawValues, Site, SiteKind, gather
from add.equations.term import DecidingTerm, Term
from add.joints.law_term import JointLaw
from add.joints.laws import TERMS, BodySite, JointPart
from add.typing import IntArray


def system_site(site: BodySite, bodies: Sequence[Body], at: Layouts) -> Site:
    """Return a site in the numbering of the system."""
    return place_site(site, at.parameters[site.arm].indices if site.arm else NO_INDICES, bodies, at)


def place_site(site: BodySite, arm: IntArray, bodies: Sequence[Body], at: Layouts) -> Site:
    """Return a site whose arm has the indices ``arm`` (3,) in theta."""
    if site.kind is SiteKind.WORLD:
        return Site.of_world(arm)
    body = next(body for body in bodies if body.name == site.body)
    return body.site(site.kind, arm, site.nodes, site.weights, at)


def joint_terms(
    joint_parts: Sequence[JointPart], bodies: Sequence[Body], at: Layouts
) -> tuple[list[Term], list[DecidingTerm]]:
    """Return the smooth and the deciding terms of all joint parts."""
    smooth: list[Term] = []
    deciding: list[DecidingTerm] = []
    for kind in dict.fromkeys([*TERMS, *(part.term for part in joint_parts)]):
        for group in _by_signal([part for part in joint_parts if part.term == kind]):
            # Corners of faces are sites of several interactions, and are made once.
            ends = {id(end): end for part in group for end in part.sites}
            made = {key: system_site(end, bodies, at) for key, end in ends.items()}
            sites = gather([made[id(end)] for part in group for end in part.sites])
            term = kind(sites, _values(group, at.parameters))
            smooth.append(term) if isinstance(term, JointLaw) else deciding.append(term)
    return smooth, deciding


def _values(group: Sequence[JointPart], parameters: ParameterLayout) -> LawValues:
    """Return the numbers of parts of one kind, and of one signal or none."""
    law, drive = group[0].term.law, group[0].drive
    count = [len(part.sites) // len(law.slots) for part in group]
    starts = [[parameters[name].start if name else -1 for name in part.numbers] for part in group]
    columns = np.repeat(np.array(starts, dtype=np.int64).reshape(len(group), -1), count, axis=0).T
    if drive is None:
        return LawValues.of(*columns)
    width = law.n_columns - len(columns)
    rows = np.stack([parameters[part.drive.parameter].indices[:, :width] for part in group if part.drive], axis=1)
    return LawValues.driven(drive.signal, np.repeat(rows, count, axis=1), *columns)


def _same(a: Signal, b: Signal) -> bool:
    """Whether two signals weigh their rows alike at all times."""
    if type(a) is not type(b):
        return False
    public = [f.name for f in fields(a) if not f.name.startswith("_")]  # type: ignore[arg-type]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in public)


def _by_signal(joint_parts: Sequence[JointPart]) -> list[list[JointPart]]:
    """Group parts that follow no signal, or signals with the same weights: they differ in their rows of theta alone."""
    groups: list[list[JointPart]] = []
    for part in joint_parts:
        for group in groups:
            one, other = group[0].drive, part.drive
            if one is other or (one and other and _same(one.signal, other.signal)):
                group.append(part)
                break
        else:
            groups.append([part])
    return groups
