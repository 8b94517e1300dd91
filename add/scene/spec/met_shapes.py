"""Names of the shapes that contact points can meet."""

from add.scene.spec.rigid import KinematicBodySpec, RigidBodySpec
from add.scene.spec.scene import SceneSpec


def met_shapes(spec: SceneSpec) -> list[str]:
    """Return the names of everything that points can meet: obstacles, and bodies that carry a shape."""
    carriers = [
        name
        for name, body in spec.bodies.items()
        if isinstance(body, RigidBodySpec | KinematicBodySpec) and body.collision.shape and body.geometry is not None
    ]
    return [*spec.obstacles, *carriers]
