"""Checks of static, torsional and rolling friction: the laws and the bodies that do not know them."""

from collections.abc import Iterator

from add.scene.read.problems import Problem
from add.scene.spec.contact import ContactSpec
from add.scene.spec.contact_classes import ContactClasses
from add.scene.spec.friction import CURVES, _FurtherFriction
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


def _curves(place: str, said: _FurtherFriction, contact: ContactSpec) -> Iterator[Problem]:
    """Numbers of a curve of friction without the other, and of a curve that is not the one that counts."""
    for curve in CURVES:
        first, second = (number.name for number in curve.numbers)
        values = getattr(said, first), getattr(said, second)
        if values[0] is not None and curve is not contact.curve:
            other = contact.curve.numbers[0].name
            yield Problem(
                f"{place}.{first}", "friction follows one curve", f"{values[0]:g}, and '{other}'", "one of them"
            )
        elif values[0] is not None and values[1] is None and getattr(contact, second) is None:
            yield Problem(f"{place}.{first}", f"this needs '{second}'", f"{values[0]:g}", second)
        elif values[1] is not None and curve is not contact.curve:
            yield Problem(f"{place}.{second}", "friction does not depend on this", f"{values[1]:g}", first)
