"""Soft bodies of a scene: meshes with what hangs on them, and the numbers of both."""

from __future__ import annotations

import numpy as np

from add.bodies import Pin, PointAnchor, PointMass, SoftBody
from add.errors import InputError
from add.geometry import HEX8
from add.kernels.rotation import rotation_vector
from add.scene.build.coupling_parts import MakeSignalParameter
from add.scene.build.materials import materials
from add.scene.build.numbers import SceneParameter, pose_of
from add.scene.build.selections import body_mesh, locate_point, nodal_load, select
from add.scene.build.ties import Derived
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.common import SignalReferenceSpec
from add.ties import PlaceOnOther


def soft_body(
    name: str, body: SoftBodySpec, driven: MakeSignalParameter
) -> tuple[SoftBody, list[SceneParameter], list[Derived]]:
    """Return a soft body, the numbers that it brings, and what of theta follows from them."""
    at = f"bodies.{name}"
    mesh = body_mesh(body, at)
    if body.enhanced and mesh.family is not HEX8:
        raise InputError("only hexahedra are enhanced", place=f"{at}.enhanced", found=mesh.family.name, expected="hex8")
    pins = []
    for k, pin in enumerate(body.pins):
        nodes = select(mesh, pin.where, f"{at}.pins.{k}.where")
        motion = None if pin.motion is None else driven(pin.motion, f"{at}.pins.{k}.motion", "m", 3)
        pins.append(Pin(nodes, tuple("xyz".index(axis) for axis in pin.axes), motion))
    _no_pin_twice(pins, at)
    loads = []
    for k, load in enumerate(body.loads):
        nodes = select(mesh, load.where, f"{at}.loads.{k}.where")
        force = driven(load.force, f"{at}.loads.{k}.force", "N", 3)
        loads.append(nodal_load(load, nodes, mesh.points, force, f"{at}.loads.{k}"))
    masses = []
    for k, mass in enumerate(body.point_masses):
        place = f"{at}.point_masses.{k}"
        axes = tuple("xyz".index(axis) for axis in mass.inertia_axes)
        if mass.at is not None:
            nodes, weights = locate_point(mesh, mass.at, 0.01, f"{place}.at")
            masses.append(PointMass(nodes, weights, f"{place}.mass", axes))
        else:
            nodes = select(mesh, mass.where, f"{place}.where")
            masses.append(PointMass(nodes, np.full(nodes.size, 1.0 / nodes.size), f"{place}.mass", axes))
    anchors = []
    for k, anchor in enumerate(body.anchors):
        place = f"{at}.anchors.{k}"
        nodes, weights = locate_point(mesh, anchor.at, 0.01, f"{place}.at")
        anchors.append(PointAnchor(nodes, weights, driven(anchor.place, f"{place}.place", "m", 3)))
    _no_point_held_twice(pins, anchors, mesh.points.shape[0], at)
    regions, numbers, derived = materials(name, body, mesh)
    _starts(name, body, numbers, derived)
    made = SoftBody(
        name,
        mesh,
        law=body.material.law,
        regions=regions,
        mean_dilatation=body.mean_dilatation,
        enhanced=body.enhanced,
        lumped=body.mass == "lumped",
        pins=tuple(pins),
        loads=tuple(loads),
        masses=tuple(masses),
        anchors=tuple(anchors),
    )
    return made, numbers, derived


def _starts(name: str, body: SoftBodySpec, numbers: list[SceneParameter], derived: list[Derived]) -> None:
    """Add the numbers of a body's start, and of what hangs on it."""
    at = f"bodies.{name}"

    def add(path: str, value: object, unit: str) -> None:
        numbers.append(SceneParameter(path, np.asarray(value, dtype=float), unit, ((path, 1.0),)))

    add(f"{at}.position", body.position, "m")
    # A quaternion has four numbers for three degrees of freedom: the parameter is the rotation vector.
    add(f"{at}.orientation", rotation_vector(body.orientation), "rad")
    add(f"{at}.velocity", body.velocity, "m/s")
    add(f"{at}.angular_velocity", body.angular_velocity, "rad/s")
    for k, mass in enumerate(body.point_masses):
        add(f"{at}.point_masses.{k}.mass", mass.mass, "kg")
    for k, load in enumerate(body.loads):
        if load.at is not None:
            add(f"{at}.loads.{k}.at", load.at, "m")
    values = [(f"{at}.loads.{k}.force", load.force, "N") for k, load in enumerate(body.loads)]
    values += [(f"{at}.pins.{k}.motion", pin.motion, "m") for k, pin in enumerate(body.pins) if pin.motion]
    for k, anchor in enumerate(body.anchors):
        if anchor.place is not None:
            values.append((f"{at}.anchors.{k}.place", anchor.place, "m"))
        else:  # where the point starts
            start = PlaceOnOther(), (*pose_of(name), np.array(anchor.at), *pose_of(None))
            derived.append(Derived((f"{at}.anchors.{k}.place",), *start))
    for path, value, unit in values:
        if not isinstance(value, SignalReferenceSpec):
            add(path, value, unit)


def _no_pin_twice(pins: list[Pin], at: str) -> None:
    seen: set[tuple[int, int]] = set()
    for k, pin in enumerate(pins):
        held = {(int(node), axis) for node in pin.nodes for axis in pin.axes}
        if pin.motion and seen & held:
            node, axis = min(seen & held)
            raise InputError(
                f"node {node} is already held along {'xyz'[axis]} by an earlier pin", place=f"{at}.pins.{k}"
            )
        seen |= held


def _no_point_held_twice(pins: list[Pin], anchors: list[PointAnchor], n: int, at: str) -> None:
    """Refuse anchors that hold what pins and earlier anchors hold already: together they contradict each other."""
    for axis in range(3):
        free = np.ones(n, dtype=bool)
        for pin in pins:
            free[pin.nodes] &= axis not in pin.axes
        rows = np.zeros((len(anchors), n))
        for k, anchor in enumerate(anchors):
            np.add.at(rows[k], anchor.nodes, anchor.weights)
            if np.linalg.matrix_rank(rows[: k + 1, free], tol=1e-9) <= k:
                raise InputError(
                    f"this point is already held along {'xyz'[axis]} by pins or earlier anchors: two joints would "
                    "contradict each other",
                    place=f"{at}.anchors.{k}",
                )
