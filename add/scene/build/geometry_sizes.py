"""Sizes of shapes as numbers of a scene, and what follows from them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from add.errors import InputError
from add.model import Model, meeting_meshes
from add.scene.build.numbers import SceneParameter
from add.scene.build.ties import Derived, OfScene
from add.scene.robots.model import RobotLink
from add.scene.spec.articulated import LinkSpec
from add.scene.spec.rigid import BoxGeometrySpec, FileGeometrySpec, GeometrySpec, PrimitiveSpec, RigidBodySpec
from add.scene.spec.scene import SceneSpec
from add.ties import SolidMass
from add.ties.physics import INERTIA, MASS
from add.typing import FloatArray


def adjustable(geometry: GeometrySpec | None) -> PrimitiveSpec | None:
    """Return a geometry whose sizes are numbers; None of another, or of None."""
    return None if geometry is None or isinstance(geometry, FileGeometrySpec) or not geometry.adjustable else geometry


def size_numbers(at: str, geometry: GeometrySpec | None, touches: bool) -> list[SceneParameter]:
    """Return the sizes of a body's geometry, where they are numbers.

    Raises
    ------
    InputError
        If nothing touches the shape, so that points alone would follow.
    """
    sized = adjustable(geometry)
    if sized is None:
        return []
    if not touches:
        raise InputError(
            "sizes are numbers of a shape that others meet",
            place=f"{at}.collision.shape",
            found="false, and 'adjustable' of the geometry true",
            expected="true",
        )
    return _numbers(f"{at}.geometry", sized)


def _numbers(block: str, geometry: PrimitiveSpec) -> list[SceneParameter]:
    """Return the sizes of a geometry, which are numbers under the name of their block of theta."""
    return [
        SceneParameter(f"{block}.{key}", value, "m", ((block + (f"#{row}" if row else ""), factor),))
        for key, value, row, factor in _sizes(geometry)
    ]


def _sizes(geometry: PrimitiveSpec) -> list[tuple[str, FloatArray, str, float]]:
    """Return (key, value, row of the block of theta or "" for all of it, factor) of the sizes of a geometry."""
    if isinstance(geometry, BoxGeometrySpec):
        return [("size", np.array(geometry.size), "", 0.5)]
    sizes = zip(("radius", "half_length"), geometry.sizes, strict=False)
    return [(key, np.array(size), str(row), 1.0) for row, (key, size) in enumerate(sizes)]


def link_sizes(link: RobotLink, spec: LinkSpec | None, at: str) -> list[SceneParameter]:
    """Return the sizes of a link's shapes that are numbers.

    Raises
    ------
    InputError
        If mass, inertia or centre of mass would have to follow.
    """
    out = []
    for shape in link.collision:
        if not shape.in_theta:
            continue
        assert spec is not None and spec.shapes is not None
        for key in ("mass", "inertia", "center_of_mass"):
            if getattr(spec, key) is None:
                raise InputError(
                    "masses of links do not follow their sizes: give mass, inertia and center_of_mass",
                    place=f"{at}.{key}",
                    found=f"none, and '{shape.in_theta}' is adjustable",
                )
        k = int(shape.in_theta.split(".")[-2])
        geometry = adjustable(spec.shapes[k].geometry)
        out += [] if geometry is None else _numbers(shape.in_theta, geometry)
    return out


def following_masses(
    at: str, body: RigidBodySpec, numbers: Sequence[SceneParameter]
) -> tuple[list[SceneParameter], list[Derived]]:
    """Return the numbers of a body without what follows from its sizes, and the ties that say how it does.

    A density gives mass and inertia; a given mass stays, and the inertia follows; what is given stays.
    """
    geometry = adjustable(body.geometry)
    assert geometry is not None
    follows = [key for key, given in (("mass", body.mass), ("inertia", body.inertia)) if given is None]
    if not follows:
        return list(numbers), []
    source = f"{at}.{'density' if body.mass is None else 'mass'}"
    targets = tuple(f"{at}.{key}" for key in follows)
    kept = [
        replace(item, targets=tuple(pair for pair in item.targets if pair[0] not in targets))
        if item.path == source
        else item
        for item in numbers
    ]
    first = MASS.start if "mass" in follows else INERTIA.start
    stop = INERTIA.stop if "inertia" in follows else MASS.stop
    rule = SolidMass(geometry.shape, first, stop, body.mass is not None)
    sizes = tuple(OfScene(f"{at}.geometry.{key}") for key, _, _, _ in _sizes(geometry))
    return kept, [Derived(targets, rule, (OfScene(source), *sizes))]


def with_radii(numbers: Sequence[SceneParameter], model: Model) -> list[SceneParameter]:
    """Return the numbers, radii of balls that meet meshes with the half-thicknesses that they are there."""
    out = []
    for item in numbers:
        skin = item.path.removesuffix(".geometry.radius") + ".half_thickness"
        if item.path.endswith(".geometry.radius") and skin in model.system.parameters:
            item = replace(item, targets=(*item.targets, (skin, 1.0)))
        out.append(item)
    return out


def refuse_sizes(spec: SceneSpec, model: Model) -> None:
    """Raise for laws and bodies of which the sizes of shapes are no numbers.

    Raises
    ------
    InputError
    """
    sized = [(body.name, shape) for body in model.bodies for shape in body.shapes if shape.in_theta]
    if not sized:
        return
    place, contact = f"{sized[0][1].in_theta}.adjustable", spec.contact
    if contact.friction_law in ("hybrid", "exact", "impulse"):
        raise InputError(
            "sizes of shapes are numbers of the friction laws without equations",
            place=place,
            found=f"contact.friction_law = '{contact.friction_law}'",
            expected="'none', 'linear' or 'tanh'",
        )
    if contact.stiffness_per == "area":
        raise InputError(
            "areas of surfaces do not follow the sizes of shapes",
            place=place,
            found="contact.stiffness_per = 'area'",
            expected="'node'",
        )
    meeting = meeting_meshes(model.bodies, model.contact)
    names = {name for name, _ in sized}
    for body, mesh in zip(meeting.bodies, meeting.meshes, strict=True):
        if body.name in names and (not mesh.radius or mesh.edges.size):
            raise InputError(
                "of what meets others by its mesh only the radius of a ball is a number",
                place=f"bodies.{body.name}.geometry.adjustable",
                found="true",
                expected="false, or a row of contact.pairs that switches the pair off",
            )
