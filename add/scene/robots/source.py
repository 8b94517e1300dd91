"""A robot's file while it is read: places of its errors, and the list of what is ignored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, final

import numpy as np

from add.errors import InputError
from add.scene.robots.xml_file import XmlNode, numbers_in
from add.typing import FloatArray

#: No robot has such a number of kilogrammes or metres; limits may be larger, for "none".
LARGEST_NUMBER = 1e12
#: What divides robot and link, and the words of a path, in a scene.
_MARKS = frozenset("/.")
#: Words for `ignore`: things that change the motion and that the reader leaves out only if it is told to.
URDF_WORDS: Mapping[str, str] = {
    "limit": "joints without limits, or with limits that are none: the joint is not limited",
    "mesh": "collision meshes that are missing or cannot be read",
    "shape": "collision shapes of an unknown kind or without extent",
    "dynamics": "damping and friction of joints with several coordinates",
    "extension": "elements of other programs that change the motion",
    "inertia": "inertias that no body has",
    "srdf": "default collisions that an SRDF file switches off",
}
MJCF_WORDS: Mapping[str, str] = {
    "actuator": "actuators by users' functions, or with a transmission that is not read",
    "tendon": "spatial tendons, and what is read otherwise of them; tendons with armature",
    "equality": "equalities of spatial tendons and flexes",
    "pair": "contacts declared one by one (<contact><pair>); refused only between neighbours",
    "gravcomp": "gravity compensation, which acts otherwise",
    "fluid": "the fluid around all bodies; refused only with wind, or where it feels ellipsoids",
    "mocap": "bodies that others move, which stand still, and what is welded to them, which is not",
    "plugin": "plugins",
    "flex": "deformable bodies",
    "flag": "what <option><flag> says: forces that it switches off act",
    "shape": "collision shapes that are not read: signed distances",
    "free": "springs, damping, friction and armature of free joints, which act otherwise",
    "polynomial": "springs and damping that are not linear, damping and armature of actuators, delays",
    "limit": "limits of balls that leave no angle: the joint is not limited",
    "actuatorfrcrange": "limits of the actuators' force on a joint that differ by direction",
}


@final
@dataclass(frozen=True)
class Source:
    """A robot's file: errors name it; what is left out is noted in `ignored`."""

    file: Path
    words: Mapping[str, str]
    ignore: frozenset[str]
    ignored: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)
    renamed: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for word in sorted(self.ignore - set(self.words)):
            known = ", ".join(f"'{name}' ({text})" for name, text in self.words.items())
            raise InputError(f"'{word}' is nothing to ignore", file=self.file, expected=f"of {known}")

    def place(self, kind: str, name: str) -> str:
        """Return e.g. "line 12, link 'trunk'"."""
        line = self.lines.get((kind, name))
        return (f"line {line}, " if line is not None else "") + f"{kind} '{name}'"

    def without_slash(self, kind: str, name: str, is_taken: Callable[[str], bool]) -> str:
        """Return a name with "_" for each "/" and ".", which divide names in a scene, new and always the same."""
        if not _MARKS & set(name):
            return name
        if (kind, name) not in self.renamed:
            new = name.translate(dict.fromkeys(map(ord, _MARKS), "_"))
            others = {to for (of, _), to in self.renamed.items() if of == kind}
            while new in others or is_taken(new):
                new += "_"
            self.note(self.place(kind, name), f"is called '{new}' here, since '/' and '.' divide names")
            self.renamed[kind, name] = new
            if (kind, name) in self.lines:
                self.lines[kind, new] = self.lines[kind, name]
        return self.renamed[kind, name]

    def fail(self, place: str, message: str, found: object = None, expected: object = None) -> NoReturn:
        """Raise an error at a place of the file."""
        raise InputError(message, file=self.file, place=place, found=found, expected=expected)

    def not_negative(self, place: str, **numbers: float) -> None:
        """Raise an error if a number of a place is negative: what should resist would drive."""
        for name, value in numbers.items():
            if value < 0.0:
                self.fail(f"{place}: {name}", "a negative number", f"{value:g}", "a number >= 0")

    def refuse(self, word: str, place: str, message: str) -> None:
        """Note that something is left out if the user said so by its word; raise an error otherwise."""
        if word not in self.ignore:
            self.fail(place, message, expected=f"'{word}' among `ignore`, to read the file without it")
        self.ignored.append(f"{place}: {message}")

    def doubt(self, word: str, place: str, message: str) -> None:
        """Note what changes the motion and is left out; scenes warn of it unless the user said so by its word."""
        self.note(place, message)
        if word not in self.ignore:
            self.doubts.append(self.ignored[-1])

    def note(self, place: str, text: str) -> None:
        """Note that something harmless is left out."""
        self.ignored.append(f"{place}: {text}")

    def require_known(self, node: XmlNode, place: str, known: Collection[str]) -> None:
        """Refuse attributes that the format does not have, such as a misspelt one whose default would be taken."""
        for name in sorted(set(node.attributes) - set(known)):
            self.fail(f"{place}: <{node.tag}>", "unknown attribute", f"'{name[:80]}'", "one of " + ", ".join(known))

    def numbers(self, node: XmlNode, name: str, place: str, count: int, default: Iterable[float] | None) -> FloatArray:
        """Return the numbers of an attribute, (count,)."""
        text = node.attributes.get(name)
        here = f"{place}: <{node.tag} {name}>"
        if text is None:
            if default is None:
                self.fail(here, "missing", expected="a number" if count == 1 else f"{count} numbers")
            return np.array(list(default))
        found = numbers_in(text)
        if found is None and "," in text:
            found = numbers_in(text.replace(",", " "))
            if found is not None and len(found) == count:
                self.note(here, f"'{text[:80]}': commas between numbers are blanks")
        if found is not None and len(found) > count > 1:
            self.note(here, f"'{text[:80]}': the first {count} numbers count")
            found = found[:count]
        if found is None or len(found) != count:
            wanted = "a finite number" if count == 1 else f"{count} finite numbers, separated by blanks"
            self.fail(here, "bad numbers" if count > 1 else "not a number", f"'{text[:80]}'", wanted)
        if node.tag not in ("limit", "safety_controller", "axis") and np.abs(found).max() > LARGEST_NUMBER:
            self.fail(here, "an impossible number", f"'{text[:80]}'", f"numbers below {LARGEST_NUMBER:g}")
        return found

    def number(self, node: XmlNode, name: str, place: str, default: float | None = None) -> float:
        """Return the number of an attribute."""
        return float(self.numbers(node, name, place, 1, None if default is None else [default])[0])
