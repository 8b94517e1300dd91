"""Checks of what a friction law reads and needs."""

import math
from collections.abc import Iterator

from add.scene.read.problems import Problem
from add.scene.spec.contact import ContactSpec
from add.scene.spec.contact_classes import ContactClasses
from add.scene.spec.friction import CURVES, _FurtherFriction
from add.scene.spec.links import LinkOf, all_bodies, robot_of, trees
from add.scene.spec.rigid import KinematicBodySpec, MeshObstacleSpec, RigidBodySpec
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


def check_friction(spec: SceneSpec) -> Iterator[Problem]:
    """Laws without these numbers, static friction without its speed, and couples on bodies that have no spin."""
    contact, classes, bodies = spec.contact, ContactClasses.read(spec), all_bodies(spec)
    places: list[tuple[str, _FurtherFriction, list[str]]] = [("contact", contact, list(bodies))]
    for k, row in enumerate(contact.pairs):
        places.append((f"contact.pairs.{k}", row, [name for side in row.sides for name in classes.members(side)]))
    for place, said, members in places:
        given = [key for key in _FurtherFriction.model_fields if getattr(said, key) is not None]
        given += ["friction_curve"] if said is contact and contact.friction_curve is not None else []
        if given and contact.friction_law not in ("linear", "tanh", "hybrid"):
            yield Problem(
                f"{place}.{given[0]}", f"the friction law '{contact.friction_law}' does not know this",
                _said(said, given[0]), "'linear', 'tanh' or 'hybrid'",
            )  # fmt: skip
            continue
        yield from _curves(place, said, contact)
        if said.spin_rate is not None and not contact.brakes_spin:
            yield Problem(
                f"{place}.spin_rate", "nothing brakes the spin", f"{said.spin_rate:g}",
                "torsional_friction or rolling_friction",
            )  # fmt: skip
        braking = [key for key in ("torsional_friction", "rolling_friction") if getattr(said, key) is not None]
        for name in members if braking else []:
            body = bodies.get(name)
            if body is not None and not isinstance(body, RigidBodySpec | KinematicBodySpec | LinkOf):
                yield Problem(
                    f"{place}.{braking[0]}", f"'{name}' is met at its nodes, which have no spin",
                    f"{getattr(said, braking[0]):g}", "rows of contact.pairs between rigid bodies, links and obstacles",
                )  # fmt: skip


def _said(said: _FurtherFriction, key: str) -> str:
    value = getattr(said, key)
    return f"{value:g}" if isinstance(value, float) else "a curve"


def _curves(place: str, said: _FurtherFriction, contact: ContactSpec) -> Iterator[Problem]:
    """Numbers of a curve of friction without the other, and of a curve that is not the one that counts."""
    for curve in CURVES:
        first, second = (number.name for number in curve.numbers)
        values = getattr(said, first), getattr(said, second)
        if values[0] is not None and curve is not contact.curve:
            other = "friction_curve" if contact.friction_curve is not None else contact.curve.numbers[0].name
            yield Problem(
                f"{place}.{first}", "friction follows one curve", f"{values[0]:g}, and '{other}'", "one of them"
            )
        elif values[0] is not None and values[1] is None and getattr(contact, second) is None:
            yield Problem(f"{place}.{first}", f"this needs '{second}'", f"{values[0]:g}", second)
        elif values[1] is not None and curve is not contact.curve:
            yield Problem(f"{place}.{second}", "friction does not depend on this", f"{values[1]:g}", first)
