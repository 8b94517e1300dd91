"""Soft bodies of a scene: meshes with what hangs on them, muscles too, and the numbers of all."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from add.bodies import Body, Layouts, Pin, PointAnchor, PointMass, SoftBody
from add.equations.signals import Constant, SignalParameter
from add.errors import InputError
from add.geometry import HEX8, TET4, quadrature_geometry
from add.kernels.muscles import ACTIVE_STRESS, HILL, QUADRATIC
from add.scene.build.built import BuiltScene
from add.scene.build.inputs import range_of
from add.scene.build.materials import ElementSource, materials
from add.scene.build.nets import pins_and_loads
from add.scene.build.selections import body_mesh, locate_point, select
from add.scene.build.ties import Derived, SceneParts
from add.scene.spec import actuation
from add.scene.spec.bodies import SoftBodySpec
from add.scene.spec.common import objects_in
from add.scene.spec.scene import SceneSpec
from add.terms import Activation, FibreLines, Muscle, VolumetricActuator
from add.terms.memories import Memory
from add.ties import PlaceOnOther, WeightedSum
from add.typing import FloatArray, IntArray


def soft_body(name: str, body: SoftBodySpec, parts: SceneParts) -> SoftBody:
    """Return a soft body; its numbers go to ``parts``."""
    at = f"bodies.{name}"
    mesh = body_mesh(body, at)
    if body.enhanced and mesh.family is not HEX8:
        raise InputError("only hexahedra are enhanced", place=f"{at}.enhanced", found=mesh.family.name, expected="hex8")
    pins, loads = pins_and_loads(at, body, mesh.points, parts, mesh)
    masses = []
    for k, mass in enumerate(body.point_masses):
        place = f"{at}.point_masses.{k}"
        if mass.at is not None:
            nodes, weights = locate_point(mesh, mass.at, 0.01, f"{place}.at")
        else:
            nodes = select(mesh, mass.where, f"{place}.where")
            weights = np.full(nodes.size, 1.0 / nodes.size)
        axes = tuple("xyz".index(axis) for axis in mass.inertia_axes)
        masses.append(PointMass(nodes, weights, f"{place}.mass", axes))
        parts.add_of(place, mass, "mass")
    anchors = []
    for k, anchor in enumerate(body.anchors):
        place = f"{at}.anchors.{k}.place"
        nodes, weights = locate_point(mesh, anchor.at, 0.01, f"{at}.anchors.{k}.at")
        driven = parts.moved(anchor.place, place, "m")
        if driven is None:  # where the point starts
            driven = parts.driven(None, place, "m", 3)
            start = (*parts.pose_of(name), np.array(anchor.at), *parts.pose_of(None))
            parts.derived.append(Derived((place,), PlaceOnOther(), start))
        anchors.append(PointAnchor(nodes, weights, driven))
    _no_point_held_twice(pins, anchors, mesh.points.shape[0], at)
    regions = materials(name, body, mesh, parts)
    return SoftBody(
        name,
        mesh,
        law=body.material.law,
        regions=regions,
        mean_dilatation=body.mean_dilatation,
        enhanced=body.enhanced,
        lumped=body.mass == "lumped",
        pins=pins,
        loads=loads,
        masses=tuple(masses),
        anchors=tuple(anchors),
    )


def doubts_of_soft_bodies(built: BuiltScene) -> Iterator[str]:
    """Yield mean dilatation that changes nothing, and activations that no muscle has."""
    for body in built.model.bodies:
        if isinstance(body, SoftBody) and body.mean_dilatation and body.mesh.family is TET4:
            yield (
                f"bodies.{body.name}.mean_dilatation: nothing changes by it: a tet4 has one volume anyway; 'tet10' or "
                "'hex8' does not lock with it"
            )
    for place, spec in objects_in(built.scene.bodies, "bodies"):
        value = getattr(spec, "activation", None)
        if value is None:
            continue
        low, high = range_of(built.scene, value)
        if low < 0.0 or high > 1.0:
            yield f"{place}.activation: from {low:.3g} to {high:.3g}: 0 is a muscle at rest, 1 all that it has"


def _no_point_held_twice(pins: Sequence[Pin], anchors: list[PointAnchor], n: int, at: str) -> None:
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


# --- Muscles of the soft bodies of a scene ----------------------------------------------------------------------------

#: Law of each kind, and its numbers in their order: key, unit, "" where it is that of the strength.
_LAWS: dict[type, tuple[int, tuple[tuple[str, str], ...]]] = {
    actuation.ActiveStressMuscleSpec: (ACTIVE_STRESS, (("strength", ""), ("optimal", "-"), ("width", "-"))),
    actuation.QuadraticMuscleSpec: (QUADRATIC, (("stiffness", ""), ("optimal", "-"), ("contraction", "-"))),
    actuation.HillMuscleSpec: (
        HILL,
        (("strength", ""), ("optimal", "-"), ("speed", "1/s"), ("shortest", "-"), ("longest", "-"), ("passive", "-"),
         ("lengthening", "-")),
    ),
}  # fmt: skip
#: How far a point of a line may be outside the mesh, as that of a point mass [m].
_OUTSIDE = 0.01


def muscles(spec: SceneSpec, bodies: Sequence[Body], parts: SceneParts) -> None:
    """Add the muscles of all soft bodies: what makes their terms, and their numbers.

    Raises
    ------
    InputError
        For fibres that do not fit, points outside the body, a selection without elements.
    """
    for body in bodies:
        soft = spec.bodies.get(body.name)
        if isinstance(soft, SoftBodySpec):
            assert isinstance(body, SoftBody)
            for name, item in soft.muscles.items():
                parts.terms.append(_muscle(soft, body, name, item, parts))


def _muscle(
    spec: SoftBodySpec, body: SoftBody, name: str, item: actuation.MuscleSpec, parts: SceneParts
) -> Callable[[Sequence[Body], Layouts], list[Muscle | VolumetricActuator]]:
    """Return what makes the term of a muscle."""
    place, label = f"bodies.{body.name}.muscles.{name}", f"{body.name}/{name}"

    if isinstance(item, actuation.VolumetricActuatorSpec):
        cells, gradients, weights, _ = _elements(body, item, place)
        volume = parts.signal(item.volume, f"{place}.volume", "-", 1)
        (stiffness,) = parts.numbers_of(place, item, "stiffness")

        def filled(_: Sequence[Body], at: Layouts) -> list[Muscle | VolumetricActuator]:
            rows, k = (at.parameters[block].indices.ravel() for block in (volume.parameter, stiffness))
            moved = body.first_node(at) + cells
            return [VolumetricActuator(label, moved, gradients, weights, volume.signal, rows, int(k[0]))]

        return filled
    law, keys = _LAWS[type(item)]
    if item.fibres is not None:
        cells, gradients, weights, chosen = _elements(body, item, place)
        fibres = ElementSource(spec, body.mesh, chosen).directions(item.fibres, f"{place}.fibres")
        lines = FibreLines.of_tissue(cells, gradients, weights, np.broadcast_to(fibres, (len(cells), 3)).copy())
    else:
        assert item.points is not None
        lines = _line(body, np.array(item.points), place)
    activation = parts.signal(item.activation, f"{place}.activation", "-", 1)
    signal, rows_of = activation.signal, activation.parameter
    if item.dynamics is not None:
        rows_of = _following(item.dynamics, f"{place}.dynamics", activation, parts)
        signal = Constant()
    strength = "Pa" if item.fibres is not None else "N"
    numbers = [parts.number(f"{place}.{key}", getattr(item, key), unit or strength) for key, unit in keys]

    def made(_: Sequence[Body], at: Layouts) -> list[Muscle | VolumetricActuator]:
        rows, *values = (at.parameters[block].indices.ravel() for block in (rows_of, *numbers))
        moved = lines.moved(body.first_node(at))
        return [Muscle(label, moved, law, signal, rows, np.concatenate(values), item.dynamics is not None)]

    return made


def _following(item: actuation.ActivationDynamicsSpec, place: str, excited: SignalParameter, parts: SceneParts) -> str:
    """Add the memory of an activation that follows what excites it; return the block of theta that it stands in."""
    times = parts.numbers_of(place, item, "rise", "fall")
    weights = excited.signal.weights(0.0)
    # Where nothing is remembered yet it is what excites it at the start.
    block = parts.follow(f"{place}.activation", "-", WeightedSum(tuple(weights)), excited.parameter, shape=(1,))

    def made(at: Layouts) -> Memory:
        numbers_of = np.concatenate([at.parameters[name].indices.ravel() for name in times])
        entry, rows = (at.parameters[name].indices.ravel() for name in (block, excited.parameter))
        return Activation(excited.signal, rows, numbers_of, entry)

    parts.memories[place] = made
    return block


def _elements(
    body: SoftBody, item: actuation.MuscleSpec, place: str
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    """Return nodes, gradients and weights of the elements of a muscle, and their numbers."""
    chosen = np.arange(body.mesh.n_elements)
    if item.where is not None:
        inside = np.zeros(body.mesh.n_nodes, dtype=bool)
        inside[select(body.mesh, item.where, f"{place}.where")] = True
        chosen = np.flatnonzero(inside[body.mesh.cells].all(axis=1))
        if not chosen.size:
            raise InputError("the selection holds no whole element", place=f"{place}.where", found="nodes",
                             expected="all nodes of an element")  # fmt: skip
    geometry = quadrature_geometry(body.mesh)
    return body.mesh.cells[chosen], geometry.gradients[chosen], geometry.weights[chosen], chosen


def _line(body: SoftBody, points: FloatArray, place: str) -> FibreLines:
    """Return the line through points of a body."""
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not (lengths > 0.0).all():
        k = int(np.flatnonzero(~(lengths > 0.0))[0])
        raise InputError("two points of a line are one", place=f"{place}.points.{k + 1}", found=points[k].tolist(),
                         expected="another point")  # fmt: skip
    located = [locate_point(body.mesh, tuple(point), _OUTSIDE, f"{place}.points.{k}") for k, point in enumerate(points)]
    nodes, weights = (np.stack(part) for part in zip(*located, strict=True))
    return FibreLines.through(points, nodes, weights)
