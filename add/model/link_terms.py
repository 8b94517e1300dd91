"""Links gathered into terms: one a kind, or one a kind and signal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np

from add.layout import DofLayout, ParameterLayout
from add.model.bodies import Driven, ParticleBody, RigidBody
from add.model.features import Feature, gather, node_feature, system_feature
from add.model.links import (
    BodyFeature,
    BondLink,
    DampingLink,
    ForceLink,
    FrictionLink,
    LimitLink,
    Link,
    MotorLink,
    SliderLink,
    SpringLink,
    TorqueLink,
)
from add.signals import Signal
from add.term import DecidingTerm, Term
from add.terms import (
    AngleLimit,
    AngularDamping,
    AxisTorque,
    Bond,
    Cable,
    Features,
    JointFriction,
    Motor,
    PointForce,
    Slider,
    Spring,
)
from add.typing import IntArray

L = TypeVar("L", bound=Link)


def link_terms(
    links: Sequence[Link],
    particles: Sequence[ParticleBody],
    rigid: Sequence[RigidBody],
    dofs: DofLayout,
    parameters: ParameterLayout,
) -> tuple[list[Term], list[DecidingTerm]]:
    """Return the smooth and the deciding terms of all links and of the springs of particle bodies."""

    def at(feature: BodyFeature) -> Feature:
        return system_feature(feature, rigid, dofs, parameters)

    def of(chosen: Sequence[L], features: Callable[[L], Iterable[BodyFeature]]) -> Features:
        return gather([at(feature) for link in chosen for feature in features(link)])

    def index(names: Iterable[str]) -> IntArray:
        return np.array([parameters[name].start for name in names], dtype=np.int64)

    def kind(wanted: type[L]) -> list[L]:
        return [link for link in links if isinstance(link, wanted)]

    terms: list[Term] = []
    deciding: list[DecidingTerm] = []
    springs = kind(SpringLink)
    for unilateral in (False, True):
        chosen = [link for link in springs if link.unilateral is unilateral]
        pairs = [at(end) for link in chosen for end in (link.a, link.b)]
        numbers = [index(getattr(link, key) for link in chosen) for key in ("stiffness", "damping", "length")]
        if not unilateral:
            more, lists = _particle_springs(particles, dofs, parameters)
            pairs += more
            numbers = [np.concatenate([a, b]) for a, b in zip(numbers, lists, strict=True)]
        if not pairs:
            continue
        k, c, length = numbers
        if unilateral:
            deciding.append(Cable.of(gather(pairs), k=k, c=c, length=length))
        else:
            terms.append(Spring.of(gather(pairs), k=k, c=c, length=length))
    if bonds := kind(BondLink):
        features = of(bonds, lambda link: (link.a, link.b))
        terms.append(Bond.of(features, k=index(b.stiffness for b in bonds), c=index(b.damping for b in bonds)))
    if sliders := kind(SliderLink):
        features = of(sliders, lambda link: (link.a, link.b, link.axis))
        terms.append(Slider.of(features, k=index(s.stiffness for s in sliders), c=index(s.damping for s in sliders)))
    if dampers := kind(DampingLink):
        features = of(dampers, lambda link: (link.a, link.b))
        terms.append(AngularDamping.of(features, k_md=index(d.damping for d in dampers)))
    if frictions := kind(FrictionLink):
        features = of(frictions, lambda link: (link.a, link.b, link.axis))
        terms.append(
            JointFriction.of(
                features,
                c=index(f.viscous for f in frictions),
                tau_c=index(f.coulomb for f in frictions),
                s_0=index(f.rate for f in frictions),
            )
        )
    if limits := kind(LimitLink):
        features = of(limits, lambda link: (link.e1, link.e2, link.b))
        deciding.append(
            AngleLimit.of(
                features,
                k=index(x.stiffness for x in limits),
                c=index(x.damping for x in limits),
                lo=index(x.lower for x in limits),
                hi=index(x.upper for x in limits),
            )
        )
    for motors in _by_signal(kind(MotorLink), lambda link: link.angle):
        features = of(motors, lambda link: (link.e1, link.e2, link.b))
        rows = np.stack([parameters[link.angle.parameter].indices[:, 0] for link in motors], axis=1)
        k = index(link.stiffness for link in motors)
        terms.append(Motor.of(features, k=k, signal=motors[0].angle.signal, rows=rows))
    for torques in _by_signal(kind(TorqueLink), lambda link: link.torque):
        # The term's torque acts on its first spin.
        features = of(torques, lambda link: (link.b, link.a, link.axis))
        rows = np.stack([parameters[link.torque.parameter].indices[:, 0] for link in torques], axis=1)
        terms.append(AxisTorque.of(features, signal=torques[0].torque.signal, rows=rows))
    for forces in _by_signal(kind(ForceLink), lambda link: link.force):
        features = of(forces, lambda link: (link.on,))
        rows = np.stack([parameters[link.force.parameter].indices for link in forces], axis=1)
        terms.append(PointForce.of(features, signal=forces[0].force.signal, rows=rows))
    return terms, deciding


def _particle_springs(
    particles: Sequence[ParticleBody], dofs: DofLayout, parameters: ParameterLayout
) -> tuple[list[Feature], list[IntArray]]:
    pairs: list[Feature] = []
    numbers: list[list[IntArray]] = [[np.zeros(0, dtype=np.int64)] for _ in range(3)]
    for sheet in particles:
        n = sheet.edges.shape[0]
        if not n:
            continue
        first = dofs[sheet.name].start // 3
        pairs += [node_feature(np.array([first + node]), np.ones(1)) for node in sheet.edges.ravel()]
        for column, key in zip(numbers, ("stiffness", "damping", "lengths"), strict=True):
            block = parameters[f"bodies.{sheet.name}.{key}"].indices
            column.append(np.broadcast_to(block, (n,)))
    return pairs, [np.concatenate(column) for column in numbers]


def _same(a: Signal, b: Signal) -> bool:
    """Whether two signals weigh their rows alike at all times."""
    if type(a) is not type(b):
        return False
    public = [f.name for f in fields(a) if not f.name.startswith("_")]  # type: ignore[arg-type]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in public)


def _by_signal(links: Sequence[L], drive: Callable[[L], Driven]) -> list[list[L]]:
    """Group links whose signals have the same weights: they differ in their rows of theta alone."""
    groups: list[list[L]] = []
    for link in links:
        for group in groups:
            if _same(drive(group[0]).signal, drive(link).signal):
                group.append(link)
                break
        else:
            groups.append([link])
    return groups
