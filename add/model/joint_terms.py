"""Joint parts gathered into terms: one a kind, or one a kind and signal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np

from add.bodies import Body, Layouts
from add.equations.layout import ParameterLayout
from add.equations.signals import Signal, SignalParameter
from add.equations.site_gathering import Site, gather
from add.equations.sites import Sites
from add.equations.term import DecidingTerm, Term
from add.joints.actuators import AxisTorque, Motor, PointForce
from add.joints.air import AirOnFaces, Drag
from add.joints.joints import AngleLimit, AngularDamping, JointFriction, Slider
from add.joints.parts import (
    AirPart,
    BodySite,
    DampingPart,
    DragPart,
    ElasticJointPart,
    ForcePart,
    FrictionPart,
    JointPart,
    LimitPart,
    MotorPart,
    SliderPart,
    SpringPart,
    TorquePart,
)
from add.joints.springs import Cable, ElasticJoint, Spring
from add.model.site_lookup import system_site
from add.typing import IntArray

L = TypeVar("L", bound=JointPart)


def joint_terms(
    joint_parts: Sequence[JointPart], bodies: Sequence[Body], at: Layouts
) -> tuple[list[Term], list[DecidingTerm]]:
    """Return the smooth and the deciding terms of all joint parts."""
    parameters = at.parameters

    def site(end: BodySite) -> Site:
        return system_site(end, bodies, at)

    def of(chosen: Sequence[L], sites: Callable[[L], Iterable[BodySite]]) -> Sites:
        return gather([site(end) for part in chosen for end in sites(part)])

    def index(names: Iterable[str]) -> IntArray:
        return np.array([parameters[name].start for name in names], dtype=np.int64)

    def kind(wanted: type[L]) -> list[L]:
        return [part for part in joint_parts if isinstance(part, wanted)]

    terms: list[Term] = []
    deciding: list[DecidingTerm] = []
    springs = kind(SpringPart)
    for unilateral in (False, True):
        chosen = [part for part in springs if part.unilateral is unilateral]
        if not chosen:
            continue
        sites = of(chosen, lambda part: (part.a, part.b))
        k, c, length = (index(getattr(part, key) for part in chosen) for key in ("stiffness", "damping", "length"))
        if unilateral:
            deciding.append(Cable.of(sites, k=k, c=c, length=length))
        else:
            terms.append(Spring.of(sites, k=k, c=c, length=length))
    if bonds := kind(ElasticJointPart):
        sites = of(bonds, lambda part: (part.a, part.b))
        terms.append(ElasticJoint.of(sites, k=index(b.stiffness for b in bonds), c=index(b.damping for b in bonds)))
    if sliders := kind(SliderPart):
        sites = of(sliders, lambda part: (part.a, part.b, part.axis))
        terms.append(Slider.of(sites, k=index(s.stiffness for s in sliders), c=index(s.damping for s in sliders)))
    if dampers := kind(DampingPart):
        sites = of(dampers, lambda part: (part.a, part.b))
        terms.append(AngularDamping.of(sites, k_md=index(d.damping for d in dampers)))
    if frictions := kind(FrictionPart):
        sites = of(frictions, lambda part: (part.a, part.b, part.axis))
        terms.append(
            JointFriction.of(
                sites,
                c=index(f.viscous for f in frictions),
                tau_c=index(f.coulomb for f in frictions),
                s_0=index(f.rate for f in frictions),
            )
        )
    if limits := kind(LimitPart):
        sites = of(limits, lambda part: (part.e1, part.e2, part.b))
        deciding.append(
            AngleLimit.of(
                sites,
                k=index(x.stiffness for x in limits),
                c=index(x.damping for x in limits),
                lo=index(x.lower for x in limits),
                hi=index(x.upper for x in limits),
            )
        )
    for motors in _by_signal(kind(MotorPart), lambda part: part.angle):
        sites = of(motors, lambda part: (part.e1, part.e2, part.b))
        rows = np.stack([parameters[part.angle.parameter].indices[:, 0] for part in motors], axis=1)
        k = index(part.stiffness for part in motors)
        terms.append(Motor.of(sites, k=k, signal=motors[0].angle.signal, rows=rows))
    for torques in _by_signal(kind(TorquePart), lambda part: part.torque):
        # The term's torque acts on its first spin.
        sites = of(torques, lambda part: (part.b, part.a, part.axis))
        rows = np.stack([parameters[part.torque.parameter].indices[:, 0] for part in torques], axis=1)
        terms.append(AxisTorque.of(sites, signal=torques[0].torque.signal, rows=rows))
    for forces in _by_signal(kind(ForcePart), lambda part: part.force):
        sites = of(forces, lambda part: (part.on,))
        rows = np.stack([parameters[part.force.parameter].indices for part in forces], axis=1)
        terms.append(PointForce.of(sites, signal=forces[0].force.signal, rows=rows))
    for drags in _by_signal(kind(DragPart), lambda part: part.wind):
        density, coefficient, area = (
            index(getattr(part, key) for part in drags) for key in ("density", "coefficient", "area")
        )
        rows = np.stack([parameters[part.wind.parameter].indices for part in drags], axis=1)
        sites, signal = of(drags, lambda part: (part.on,)), drags[0].wind.signal
        terms.append(Drag.of(sites, density=density, coefficient=coefficient, area=area, signal=signal, rows=rows))
    return [*terms, *(_on_faces(part, site, parameters) for part in kind(AirPart))], deciding


def _on_faces(part: AirPart, site: Callable[[BodySite], Site], parameters: ParameterLayout) -> AirOnFaces:
    """Return the term of one surface; each site is made once, however many faces meet there."""
    n, made = len(part.corners), {}
    for end in {id(end): end for corners in part.corners for end in corners}.values():
        made[id(end)] = site(end)
    density, coefficient, friction = (
        np.full(n, parameters[name].start) for name in (part.density, part.coefficient, part.friction)
    )
    return AirOnFaces.of(
        gather([made[id(end)] for corners in part.corners for end in corners]),
        density=density,
        coefficient=coefficient,
        friction=friction,
        signal=part.wind.signal,
        rows=np.repeat(parameters[part.wind.parameter].indices[:, None], n, axis=1),
        closed=part.closed,
    )


def _same(a: Signal, b: Signal) -> bool:
    """Whether two signals weigh their rows alike at all times."""
    if type(a) is not type(b):
        return False
    public = [f.name for f in fields(a) if not f.name.startswith("_")]  # type: ignore[arg-type]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in public)


def _by_signal(joint_parts: Sequence[L], drive: Callable[[L], SignalParameter]) -> list[list[L]]:
    """Group joint parts whose signals have the same weights: they differ in their rows of theta alone."""
    groups: list[list[L]] = []
    for part in joint_parts:
        for group in groups:
            if _same(drive(group[0]).signal, drive(part).signal):
                group.append(part)
                break
        else:
            groups.append([part])
    return groups
