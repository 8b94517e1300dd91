"""Checks of scenes with contact without penalties: the impossible is refused when the scene is read, never ignored."""

import math
from collections.abc import Iterator

from add.scene.read.problems import Problem
from add.scene.spec.links import robot_of, trees
from add.scene.spec.obstacles import MeshObstacleSpec
from add.scene.spec.rigid import KinematicBodySpec, RigidBodySpec
from add.scene.spec.scene import SceneSpec


def check_exact_contact(spec: SceneSpec) -> Iterator[Problem]:
    """Starts, integrators and restitutions that exact contact, or contact in velocities, has no equations for."""
    law = spec.contact.friction_law
    for key, usual in (("friction_cone", "round"), ("impact_time", "linear")):
        if law != "impulse" and getattr(spec.contact, key) != usual:
            yield Problem(
                f"contact.{key}", f"the friction law '{law}' does not know this", f"'{getattr(spec.contact, key)}'",
                f"'{usual}', or the friction law 'impulse'",
            )  # fmt: skip
    if law != "impulse" and spec.gradient.contact != "exact":
        yield Problem(
            "gradient.contact", f"the friction law '{law}' does not know this", f"'{spec.gradient.contact}'",
            "'exact', or the friction law 'impulse'",
        )  # fmt: skip
    if spec.gradient.contact == "explore" and spec.optimizer and spec.optimizer.method == "gauss-newton":
        yield Problem(
            "gradient.contact", "the complementarity-aware choice has no forward tangents, which gauss-newton needs",
            "'explore'", "'exact' or 'relaxed', or optimizer.method = 'l-bfgs-b', 'adam' or 'sgd'",
        )  # fmt: skip
    for name, tree in trees(spec).items():
        if law == "exact":
            yield Problem(
                "contact.friction_law", f"articulated bodies ('{name}') do not know this law", "'exact'",
                "'none', 'linear', 'tanh', 'hybrid' or 'impulse'",
            )  # fmt: skip
        if law == "impulse":
            held = {f"joints.{key}.": joint.dry_friction_law for key, joint in tree.joints.items()}
            for key in [key for key, dry in {"": tree.dry_friction_law, **held}.items() if dry == "hybrid"]:
                yield Problem(
                    f"bodies.{name}.{key}dry_friction_law", "the friction law 'impulse' holds no joints", "'hybrid'",
                    "'tanh', or another contact.friction_law",
                )  # fmt: skip
        if law != "impulse" and tree.limits == "hard":
            yield Problem(
                f"bodies.{name}.limits", f"the friction law '{law}' has no hard limits", "'hard'",
                "'penalty', or the friction law 'impulse'",
            )  # fmt: skip
        if tree.limits == "hard":
            for joint in robot_of(name, tree).joints:
                said = tree.joints.get(joint.name)
                upper = joint.upper if said is None or said.upper is None else said.upper
                if joint.kind == "ball" and upper < math.inf:
                    yield Problem(
                        f"bodies.{name}.joints.{joint.name}.upper", "the limit of a ball gives way: none is hard",
                        f"{upper:g}", "no limit, or limits 'penalty'",
                    )  # fmt: skip
    if law not in ("exact", "impulse"):
        return
    if spec.time.initial == "equilibrium":
        yield Problem("time.initial", f"the friction law '{law}' starts from a given state", "'equilibrium'", "'given'")
    meshes = {f"obstacles.{name}": isinstance(item, MeshObstacleSpec) for name, item in spec.obstacles.items()}
    for name, tree in trees(spec).items():
        for link in robot_of(name, tree).links:
            meshes[f"bodies.{name}.links.{link.name}"] = any(shape.shape == "mesh" for shape in link.collision)
    for name, body in spec.bodies.items():
        if isinstance(body, RigidBodySpec | KinematicBodySpec):
            meshes[f"bodies.{name}.collision.closed"] = body.collision.closed
    for place in [place for place, is_mesh in meshes.items() if is_mesh]:
        yield Problem(
            place, f"the friction law '{law}' knows no closed meshes as collision shapes", "a mesh",
            "planes, boxes, spheres, capsules and cylinders, or another contact.friction_law",
        )  # fmt: skip
    for k, pair in enumerate(spec.contact.pairs):
        if pair.by_meshes:
            yield Problem(
                f"contact.pairs.{k}.by_meshes", f"the friction law '{law}' lets no meshes meet", "true",
                "false, or another contact.friction_law",
            )  # fmt: skip
    if law == "impulse":
        if spec.time.integrator != "bdf1":
            yield Problem(
                "time.integrator", "the friction law 'impulse' steps velocities by bdf1", f"'{spec.time.integrator}'",
                "'bdf1'",
            )  # fmt: skip
        return
    for k, pair in enumerate(spec.contact.pairs):
        if pair.restitution is not None:
            yield Problem(
                f"contact.pairs.{k}.restitution", "impacts of exact contact are plastic", f"{pair.restitution:g}",
                "none, or another contact.friction_law",
            )  # fmt: skip
