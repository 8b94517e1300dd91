"""How much memory and disk a scene needs, estimated before anything is built: too much is refused with the numbers.

The shares were measured on meshes of ten to fifty thousand elements. Factors of larger ones need more for each element,
so that the estimates are rather too low: what is refused would not have run.
"""

from collections.abc import Sequence
from math import pi, prod
from pathlib import Path

import numpy as np

from add.adjoint import Checkpoints, Schedule, States
from add.compiled.pack import MOST_DENSE
from add.contact import BodyContact
from add.equations.lifted import LiftedDecidingTerm
from add.equations.system import System
from add.errors import InputError
from add.geometry import SoftMesh
from add.machine.files import available_memory, free_disk, in_bytes
from add.scene.spec import bodies
from add.scene.spec.contact_classes import ContactClasses, met_shapes
from add.scene.spec.links import all_bodies, robot_of, trees
from add.scene.spec.nets import ClothBodySpec, NetSpec
from add.scene.spec.scene import SceneSpec
from add.simulation.run import Simulation
from add.terms import Elastic, TreeInertia

#: Memory of an element in a model, and in a run with its matrix and factors [bytes].
_BUILT = {"tet4": 6.0e3, "tet10": 4.0e4, "hex8": 3.0e4}
_NODES = {4: "tet4", 10: "tet10", 8: "hex8", 11: "enhanced hex8"}
_RUN = {"tet4": 2.4e4, "tet10": 1.6e5, "hex8": 1.1e5, "enhanced hex8": 1.6e5}
#: Memory of a node of a net or a rod, of a cloth, and of two contact classes that may meet [bytes].
_NODE, _CLOTH, _PAIR = 2.0e3, 2.0e4, 6.5e3
#: Memory of two coordinates of one tree in a run, whose matrix is full, and of an entry of contact spread over them
#: where steps are not compiled [bytes].
_TREE, _SPREAD = 3.4e2, 4.0e1
#: Memory of the record of a step without any coordinates [bytes]; the arrays of one coordinate in it.
_STEP, _ARRAYS = 2.0e3, 9
#: Share of its size that a trajectory keeps when it is compressed, at least.
_COMPRESSED = 0.5


def n_elements(spec: bodies.SoftBodySpec) -> float:
    """Return the number of elements of a body whose shape is meshed here; 0 for a file."""
    mesh = spec.mesh
    if isinstance(mesh, bodies.FileMeshSpec | bodies.SurfaceMeshSpec):
        return 0.0
    if isinstance(mesh, bodies.BoxMeshSpec):
        return prod(map(float, mesh.divisions)) * (1.0 if spec.element == "hex8" else 6.0)
    if isinstance(mesh, bodies.SphereMeshSpec):
        return 20.0 * _along(1.1 * mesh.radius, mesh.edge) ** 3
    if isinstance(mesh, bodies.CylinderMeshSpec):
        return 18.0 * _along(mesh.height, mesh.edge) * _along(mesh.radius, mesh.edge) ** 2
    around = max(6.0, _along(2.0 * pi * mesh.major_radius, mesh.edge))
    return 18.0 * around * _along(mesh.minor_radius, mesh.edge) ** 2


def _along(length: float, edge: float) -> float:
    """Return how many edges there are along a length, as far as numbers go."""
    return min(max(1.0, length / edge if edge > 1e-300 else 1e60), 1e60)


def require_room_to_build(spec: SceneSpec) -> None:
    """Refuse a scene whose model would not fit into the memory, before any of it is made.

    Raises
    ------
    InputError
        naming the largest part, what it needs and what there is.
    """
    for name, tree in trees(spec).items():
        coordinates = sum(joint.n for joint in robot_of(name, tree).joints if joint.mimic is None)
        _require_memory([_of_tree(f"bodies.{name}", coordinates)], "a run of this scene")
    parts: list[tuple[float, str, str, str]] = []
    for name, body in spec.bodies.items():
        if isinstance(body, bodies.SoftBodySpec):
            n, kind = n_elements(body), body.element or "tet4"
            parts.append((_BUILT[kind] * n, f"bodies.{name}.mesh", f"{n:.3g} {kind} elements", "a coarser mesh"))
        elif isinstance(body, NetSpec):
            nodes = body.expected_nodes
            share = _CLOTH if isinstance(body, ClothBodySpec) else _NODE
            parts.append((share * nodes, f"bodies.{name}.mesh", f"{nodes:.3g} nodes", "a coarser mesh"))
    classes = ContactClasses.read(spec).of
    pairs = float(len({classes[name] for name in all_bodies(spec)}) * len({classes[name] for name in met_shapes(spec)}))
    parts.append((_PAIR * pairs, "bodies", f"contact tables of {pairs:.3g} pairs", "fewer classes or obstacles"))
    _require_memory(parts, "building this scene")


def require_room_for_meshes(meshes: Sequence[tuple[str, SoftMesh]]) -> None:
    """Refuse meshes, those of files among them, whose model would not fit into the memory."""
    _require_memory(
        [
            (
                _BUILT[mesh.family.name] * mesh.n_elements, f"bodies.{name}.mesh",
                f"{mesh.n_elements} {mesh.family.name} elements", "a coarser mesh",
            )
            for name, mesh in meshes
        ],
        "building this scene",
    )  # fmt: skip


def require_room_to_run(simulation: Simulation, schedule: Schedule | None = None) -> None:
    """Refuse a run that would not fit into the memory.

    Parameters
    ----------
    simulation : Simulation
    schedule : what is kept of its steps; default: all of them

    Raises
    ------
    InputError
    """
    system = simulation.system
    parts = _of_trees(system)
    for term in system.terms:
        if isinstance(term, Elastic):
            n, nodes = term.batch.cells.shape
            kind = _NODES[nodes]
            parts.append((_RUN[kind] * n, "bodies", f"matrix and factors of {n} {kind} elements", "a coarser mesh"))
    if not isinstance(schedule, Checkpoints):
        arrays = 2 if isinstance(schedule, States) else _ARRAYS
        step = _STEP * arrays / _ARRAYS + 8.0 * arrays * system.n
        words = f"{simulation.n_steps:.3g} steps of {system.n} coordinates"
        parts.append((step * simulation.n_steps, "time", words, "fewer steps"))
    _require_memory(parts, "this run")


def _of_tree(place: str, n: int) -> tuple[float, str, str, str]:
    return _TREE * n**2, place, f"the full matrix of a tree of {n} coordinates", "shorter trees"


def _of_trees(system: System) -> list[tuple[float, str, str, str]]:
    """Return what the matrices of trees take: all coordinates of a chain depend on each other, and on its contacts."""
    parts = [_of_tree("bodies", term.n) for term in system.terms if isinstance(term, TreeInertia)]
    _require_memory(parts, "this run")
    touched = [term for term in system.deciding if isinstance(term, LiftedDecidingTerm)]
    for term in touched if system.n > MOST_DENSE else ():
        if isinstance(term.inner, BodyContact):
            rows, cols = term.inner.on_branch(np.zeros((0, 3), dtype=np.int64)).pattern()
            if not rows.size:
                continue  # the widths of rows take memory, too
            width = np.diff(term.lift.entries[0]).astype(float)
            words = f"contact of links in trees with {system.n} coordinates"
            parts.append((_SPREAD * float(width[rows] @ width[cols]), "bodies", words, "shorter trees, fewer shapes"))
    return parts


def require_room_on_disk(simulation: Simulation, folder: Path, every: int) -> None:
    """Refuse a run whose trajectory would not fit on the disk.

    Parameters
    ----------
    simulation : Simulation
    folder : where the trajectory is written
    every : of how many steps one is kept

    Raises
    ------
    InputError
    """
    size = _COMPRESSED * 8.0 * 3.0 * simulation.system.n * (simulation.n_steps / every)
    free = free_disk(folder)
    if size > free:
        raise InputError(
            f"the trajectory of this run needs about {in_bytes(size)} on the disk: keep fewer steps (output.every)",
            place="output.every",
            found=f"{in_bytes(free)} free",
        )


def _require_memory(parts: Sequence[tuple[float, str, str, str]], doing: str) -> None:
    need, free = sum(part[0] for part in parts), available_memory()
    if need <= free:
        return
    size, place, what, remedy = max(parts)
    raise InputError(
        f"{doing} needs about {in_bytes(need)} of memory, {in_bytes(size)} of it for {what}: it takes {remedy}, or a "
        "machine with more memory",
        place=place,
        found=f"{in_bytes(free)} free",
    )
