"""Nodes of soft bodies that are fixed to links and rigid bodies."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from add.bodies import Body, CarriedShape, Graft, LinkBody, NodeTie, RigidBody, SoftBody, TreeBody
from add.errors import InputError
from add.geometry.shapes import shape_of
from add.kernels.rotation import rotation_matrix, rotation_vector
from add.scene.build.selections import select
from add.scene.build.ties import WORLD, Derived, SceneParts, pose_of
from add.scene.spec.bodies import EmbeddingSpec, SoftBodySpec
from add.scene.spec.rigid import KinematicBodySpec, RigidBodySpec
from add.scene.spec.scene import SceneSpec
from add.ties import Line, PoseOnOther
from add.typing import FloatArray, IntArray


def embed(spec: SceneSpec, bodies: list[Body], starts: Mapping[str, FloatArray], parts: SceneParts) -> None:
    """Tie nodes of soft bodies to others, in ``bodies``; add what follows from their poses, and who is tied to whom.

    Parameters
    ----------
    spec : SceneSpec
    bodies : all of the scene; those that are tied, or that others are tied to, are replaced
    starts : poses (6,) of links at the start, by name

    Raises
    ------
    InputError
        For nodes of two ties, or that something else holds, bodies that carry nothing, and nodes that are too far away.
    """
    place = {body.name: k for k, body in enumerate(bodies)}
    for name, own in spec.bodies.items():
        if not isinstance(own, SoftBodySpec) or not own.embedded:
            continue
        at, body = f"bodies.{name}", bodies[place[name]]
        assert isinstance(body, SoftBody)
        if any(item.by == "condensation" for item in own.embedded):
            _refuse(spec, own, at)
        ties: list[NodeTie] = []
        for k, item in enumerate(own.embedded):
            carrier = bodies[place[item.body]]
            if not isinstance(carrier, RigidBody | LinkBody) or (isinstance(carrier, LinkBody) and carrier.massless):
                raise InputError("nodes are tied to rigid bodies and links", place=f"{at}.embedded.{k}.body",
                                 found=f"'{item.body}'", expected="a body with a frame and a mass")  # fmt: skip
            start = _start(spec, item.body, starts)
            nodes = _nodes(own, body, item, carrier, start, f"{at}.embedded.{k}")
            for other in ties:
                both = np.intersect1d(nodes, other.nodes)
                if both.size:
                    raise InputError(
                        f"node {both[0]} is tied twice", place=f"{at}.embedded.{k}",
                        found=f"{both.size} nodes that are tied to '{other.carrier}', too", expected="one link a node",
                    )  # fmt: skip
            ties.append(NodeTie(nodes, item.body, f"{at}.embedded.{k}", item.by == "multipliers"))
            parts.connected |= {(name, item.body), (item.body, name)}
        _refuse_held(body, ties, at)
        made = replace(body, ties=tuple(ties))
        bodies[place[name]] = made
        for tie in ties:
            parts.derived += _follow(made, tie, bodies[place[tie.carrier]])
            _graft(made, tie, bodies, place)


def _refuse(spec: SceneSpec, own: SoftBodySpec, at: str) -> None:
    """Refuse what has no equations with nodes that are no unknowns."""
    law = spec.contact.friction_law
    if law in ("exact", "impulse"):
        raise InputError("contact without penalties knows no tied nodes", place="contact.friction_law",
                         found=f"'{law}', and {at}.embedded",
                         expected="'none', 'linear', 'tanh' or 'hybrid', or `by` 'multipliers'")  # fmt: skip
    if any(material.branches for material in (own.material, *(part.material for part in own.regions.values()))):
        raise InputError("stress of a body with tied nodes does not relax", place=f"{at}.embedded",
                         found="material.relaxation", expected="a material without, or `by` 'multipliers'")  # fmt: skip


def _refuse_held(body: SoftBody, ties: list[NodeTie], at: str) -> None:
    """Refuse tied nodes that pins hold or that have masses of their own, and a body of nothing else."""
    nodes = np.concatenate([tie.nodes for tie in ties])
    holding = {f"pins.{k}": pin.nodes for k, pin in enumerate(body.pins)}
    holding |= {f"point_masses.{k}": mass.nodes for k, mass in enumerate(body.masses)}
    for key, held in holding.items():
        both = np.intersect1d(held, nodes)
        if both.size:
            raise InputError(f"node {both[0]} is tied to a link", place=f"{at}.{key}",
                             expected="nodes that nothing else holds; masses belong to the link")  # fmt: skip
    if nodes.size == body.mesh.n_nodes:
        raise InputError("all nodes are tied: nothing deforms", place=f"{at}.embedded", expected="free nodes")


def _start(spec: SceneSpec, name: str, starts: Mapping[str, FloatArray]) -> FloatArray:
    """Return place and rotation vector (6,) of the frame of a body or link at the start."""
    if name in starts:
        return starts[name]
    own = spec.bodies[name]
    assert isinstance(own, RigidBodySpec | KinematicBodySpec)
    return np.concatenate([np.array(own.position), rotation_vector(own.orientation)])


def _nodes(
    own: SoftBodySpec, body: SoftBody, item: EmbeddingSpec, carrier: RigidBody | LinkBody, start: FloatArray, at: str
) -> IntArray:
    """Return the nodes of an embedding, in their order."""
    nodes = np.arange(body.mesh.n_nodes) if item.where is None else select(body.mesh, item.where, f"{at}.where")
    nodes = np.unique(nodes)
    if item.where is not None and item.within is None:
        return nodes
    shapes = _shapes(carrier)
    if not shapes:
        raise InputError("this body has no shape that nodes could be inside of", place=f"{at}.body",
                         found=f"'{item.body}'", expected="a body with a geometry, or `where` alone")  # fmt: skip
    place = np.array(own.position) + body.rest[nodes] @ rotation_matrix(rotation_vector(own.orientation)).T
    arms = (place - start[:3]) @ rotation_matrix(start[3:])
    gaps = np.min([_gaps(shape, arms) for shape in shapes], axis=0)
    inside = gaps <= (item.within or 0.0) + 1e-9 * np.ptp(body.rest, axis=0).max()
    if item.where is None and not inside.any():
        raise InputError("no node is inside this body", place=at, found=f"the nearest is {gaps.min():.3g} m outside",
                         expected="`within`, a finer mesh, or `where`")  # fmt: skip
    if item.where is not None and not inside.all():
        far = int(np.argmax(gaps))
        raise InputError(f"node {nodes[far]} is far from '{item.body}'", place=f"{at}.within",
                         found=f"{gaps[far]:.3g} m outside its shapes",
                         expected=f"at most {item.within:g} m")  # fmt: skip
    return nodes[inside]


def _shapes(carrier: RigidBody | LinkBody) -> tuple[CarriedShape, ...]:
    if isinstance(carrier, RigidBody) and not carrier.shapes and carrier.outline[0] >= 0:
        return (CarriedShape(*carrier.outline, np.eye(3), np.zeros(3)),)
    return carrier.shapes


def _gaps(shape: CarriedShape, places: FloatArray) -> FloatArray:
    """Return the signed distances of places (n, 3) of the carrier's frame [m]."""
    row = np.array(shape.size) if shape.mesh is None else shape.mesh.row
    return shape_of(shape.kind).gaps(row, (places - shape.position) @ shape.rotation)


def _follow(body: SoftBody, tie: NodeTie, carrier: Body) -> list[Derived]:
    """Return the place of the tissue in the link's frame, and its masses there."""
    centre = f"bodies.{carrier.name}.centre" if isinstance(carrier, RigidBody) and carrier.moves else WORLD[:3]
    pose = (f"{tie.path}.position", f"{tie.path}.orientation")
    out = [Derived(pose, PoseOnOther(), (*pose_of(body.name), *pose_of(carrier.name), centre))]
    for part in body.tied_masses(tie):
        outputs = tuple(f"{part.name}.{key}" for key in ("mass", "centre", "inertia"))
        slopes, offsets = (part.mass, 0.0, 0.0, 0.0, *part.inertia), (0.0, *part.centre, *[0.0] * 6)
        out.append(Derived(outputs, Line(slopes, offsets), (f"{part.region.place(body.name)}.density",)))
    return out


def _graft(body: SoftBody, tie: NodeTie, bodies: list[Body], place: Mapping[str, int]) -> None:
    """Add the frame of tied nodes, with their mass, to the body that carries them."""
    carrier, masses = bodies[place[tie.carrier]], tuple(part.name for part in body.tied_masses(tie))
    if isinstance(carrier, RigidBody):
        bodies[place[tie.carrier]] = replace(carrier, grafts=(*carrier.grafts, Graft(tie.path, 0, masses)))
        return
    assert isinstance(carrier, LinkBody)
    tree = bodies[place[carrier.tree]]
    assert isinstance(tree, TreeBody)
    joint = next(k for k, joint in enumerate(tree.joints) if joint.link == carrier.link)
    bodies[place[carrier.tree]] = replace(tree, grafts=(*tree.grafts, Graft(tie.path, joint, masses)))
