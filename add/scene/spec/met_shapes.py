"""Names of the shapes that contact points can meet, and bodies that may have meshes."""

from add.scene.spec.articulated import ArticulatedBodySpec
from add.scene.spec.links import LinkOf, links_of, trees
from add.scene.spec.nets import NetSpec
from add.scene.spec.rigid import (
    BoxGeometrySpec,
    FileGeometrySpec,
    KinematicBodySpec,
    RigidBodySpec,
)
from add.scene.spec.scene import BodySpec, SceneSpec


def met_shapes(spec: SceneSpec) -> list[str]:
    """Return the names of everything that points can meet: obstacles, and bodies that carry a shape."""
    carriers = [
        name
        for name, body in spec.bodies.items()
        if isinstance(body, RigidBodySpec | KinematicBodySpec)
        and body.collision.shape
        and body.geometry is not None
        and (body.collision.closed or not isinstance(body.geometry, FileGeometrySpec))
    ]
    links = [item.name for name, body in trees(spec).items() for item in links_of(name, body) if item.link.collision]
    return [*spec.obstacles, *carriers, *links]


def may_have_mesh(body: BodySpec | LinkOf | None) -> bool:
    """Whether a body can have a surface that meets those of others."""
    if body is None or isinstance(body, LinkOf | ArticulatedBodySpec):
        return False
    if isinstance(body, RigidBodySpec | KinematicBodySpec):
        return isinstance(body.geometry, FileGeometrySpec | BoxGeometrySpec)
    return not isinstance(body, NetSpec) or bool(body.collision)
