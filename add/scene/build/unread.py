"""Settings of a scene's file that nothing reads; the specs say of their fields when that is so."""

from collections.abc import Iterator, Mapping
from typing import Any

from add.bodies.nodal import NodalBody
from add.contact import BodyContact
from add.model import meeting_meshes
from add.scene.build.built import BuiltScene
from add.scene.spec.common import Facts, Spec
from add.scene.spec.couplings import HingeSpec


def unread(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each value that a file gives, other than by default, and no part of the run reads."""
    scene, numbers = built.scene, built.numbers
    known = {entry.name: entry.indices.ravel() for entry in numbers.layout.entries}
    wanted = {item.path for item in scene.parameters}

    def vanishes(path: str) -> bool:
        if path in wanted:
            return False
        return path not in known or not numbers.values[known[path]].any()

    meshes_meet = bool(meeting_meshes(built.model.bodies, built.model.contact).pairs)
    starts = (item.b.body for item in scene.couplings.values() if isinstance(item, HingeSpec) and item.start)
    facts = Facts(
        scene.contact.friction_law,
        meshes_meet,
        meshes_meet or bool(built.model.term(BodyContact)),
        any(isinstance(body, NodalBody) for body in built.model.bodies),
        frozenset(name for name in starts if name is not None),
        vanishes,
    )
    for path, spec in _specs(scene, ""):
        for key, why in spec.unread(facts, path).items():
            owner, name = _owner(spec, key)
            if name in owner.model_fields_set and getattr(owner, name) != _default(owner, name):
                place = f"{path}.{key}" if path else key
                yield f"{place}: nothing reads this: {why}"


def unread_signals(built: BuiltScene) -> Iterator[str]:
    """Yield one text for each signal that nothing follows."""
    scene = built.scene
    asked = {getattr(spec, "signal", None) for _, spec in _specs(scene, "")}
    for name in scene.signals:
        if name not in asked:
            yield f"signals.{name}: nothing reads this: no body, coupling or objective follows it"


def _specs(value: Any, path: str) -> Iterator[tuple[str, Spec]]:
    """Iterate over all objects of a scene with their paths."""
    if isinstance(value, Spec):
        yield path, value
        names = {name: info.alias or name for name, info in type(value).model_fields.items()}
        inner: Any = ((alias, getattr(value, name)) for name, alias in names.items())
    elif isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, tuple) and any(isinstance(item, Spec) for item in value):
        inner = enumerate(value)
    else:
        return
    for key, item in inner:
        yield from _specs(item, f"{path}.{key}" if path else str(key))


def _owner(spec: Spec, key: str) -> tuple[Spec, str]:
    """Return the object that has a field ``a.b`` of an object, and the field's own name."""
    *outer, name = key.split(".")
    for part in outer:
        spec = getattr(spec, part)
    return spec, name


def _default(spec: Spec, name: str) -> Any:
    return type(spec).model_fields[name].get_default(call_default_factory=True)
