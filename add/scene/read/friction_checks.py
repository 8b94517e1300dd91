"""Checks of static, torsional and rolling friction: the laws and the bodies that do not know them."""

from collections.abc import Iterator

from add.scene.read.problems import Problem
from add.scene.spec.contact_classes import ContactClasses
from add.scene.spec.friction import _FurtherFriction
from add.scene.spec.links import LinkOf, all_bodies
from add.scene.spec.rigid import KinematicBodySpec, RigidBodySpec
from add.scene.spec.scene import SceneSpec


def check_friction(spec: SceneSpec) -> Iterator[Problem]:
    """Laws without these numbers, static friction without its speed, and couples on bodies that have no spin."""
    contact, classes, bodies = spec.contact, ContactClasses.read(spec), all_bodies(spec)
    places: list[tuple[str, _FurtherFriction, list[str]]] = [("contact", contact, list(bodies))]
    for k, row in enumerate(contact.pairs):
        places.append((f"contact.pairs.{k}", row, [name for side in row.sides for name in classes.members(side)]))
    for place, said, members in places:
        given = [key for key in _FurtherFriction.model_fields if getattr(said, key) is not None]
        if given and contact.friction_law not in ("linear", "tanh", "hybrid"):
            yield Problem(
                f"{place}.{given[0]}", f"the friction law '{contact.friction_law}' does not know this",
                f"{getattr(said, given[0]):g}", "'linear', 'tanh' or 'hybrid'",
            )  # fmt: skip
            continue
        if said.static_friction is not None and said.stribeck_speed is None and contact.stribeck_speed is None:
            yield Problem(
                f"{place}.static_friction", "static friction needs the speed at which it falls to that of sliding",
                f"{said.static_friction:g}", "stribeck_speed",
            )  # fmt: skip
        if said.stribeck_speed is not None and not contact.depends_on_speed:
            yield Problem(
                f"{place}.stribeck_speed", "friction does not depend on the speed", f"{said.stribeck_speed:g}",
                "static_friction",
            )  # fmt: skip
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
