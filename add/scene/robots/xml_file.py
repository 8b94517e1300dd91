"""XML of robot files with line numbers, and places of errors: own nodes on expat, which refuse XML bombs."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, final
from xml.parsers import expat

import numpy as np

from add.errors import InputError
from add.machine.files import read_given
from add.typing import FloatArray

#: Far above what any robot has: bytes of a file, elements, levels of them.
LARGEST, ELEMENTS, DEPTH = 6.4e7, 400_000, 100

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_NO_BLANK = re.compile(rb'"(?=[A-Za-z_][\w.:-]*=")')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@final
@dataclass(frozen=True)
class XmlNode:
    """An element: tag, attributes, children, the line where it begins, and pieces of text in it that are not blank."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: "list[XmlNode]" = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text in it, without blanks around it."""
        return "".join(self.words).strip()

    def all(self, tag: str) -> "list[XmlNode]":
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def nodes(self) -> "list[XmlNode]":
        """Return this element and all below it."""
        below, k = [self], 0
        while k < len(below):
            below.extend(below[k].children)
            k += 1
        return below


def read_xml(path: str | PathLike[str]) -> XmlNode:
    """Read the root element of an XML file.

    A document type is refused, since entities are defined there, and none of the formats has one; so are files beyond
    `LARGEST` bytes, `ELEMENTS` elements and `DEPTH` levels.

    Raises
    ------
    InputError
        naming the file and the line.
    """
    path = Path(path)
    return parse_xml(read_given(path, most=LARGEST, expected="a robot's file, URDF, SDF or MJCF"), path)


def parse_xml(content: bytes, path: str | PathLike[str]) -> XmlNode:
    """Parse what `read_xml` has read.

    What is not XML is tried again without what the readers of robots' files put up with: blanks before the declaration,
    zeros behind the end, "--" in comments, attributes without a blank between them.
    """
    try:
        return _parsed(content, path)
    except InputError as error:
        mended = _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), content.strip(b"\0 \t\r\n"))
        try:
            return _parsed(_NO_BLANK.sub(b'" ', mended), path)
        except InputError:
            raise error from None


def _parsed(content: bytes, path: str | PathLike[str]) -> XmlNode:
    parser = expat.ParserCreate()
    top = XmlNode("", {}, 0)
    open_nodes, count = [top], 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > ELEMENTS or len(open_nodes) > DEPTH:
            most = f"at most {ELEMENTS} elements, {DEPTH} within each other"
            raise InputError("too many elements", file=path, place=f"line {parser.CurrentLineNumber}", expected=most)
        node = XmlNode(tag, attributes, parser.CurrentLineNumber)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)

    def refuse(*_: Any) -> None:
        raise InputError(
            "has a document type (<!DOCTYPE ...>), in which entities can be defined",
            file=path,
            place=f"line {parser.CurrentLineNumber}",
            expected="a file without one",
        )

    def note(text: str) -> None:
        if not text.isspace():
            open_nodes[-1].words.append(text)

    parser.buffer_text = True
    parser.StartElementHandler, parser.CharacterDataHandler = start, note
    parser.EndElementHandler = lambda tag: open_nodes.pop()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise InputError(f"not XML: {reason}", file=path, place=f"line {error.lineno}") from None
    except (ValueError, LookupError) as error:  # encodings that Python does not have
        raise InputError(f"not XML: {error}", file=path) from None
    return top.children[0]


def numbers_in(text: str) -> FloatArray | None:
    """Return the numbers of a text between blanks; None where a word is none, or is not finite."""
    words = text.split()
    if not all(_NUMBER.fullmatch(word) for word in words):
        return None
    numbers = np.array([float(word) for word in words])
    return numbers if np.isfinite(numbers).all() else None


# --- A robot's file while it is read: places of its errors, and the list of what is ignored ---------------------------

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
SDF_WORDS: Mapping[str, str] = {word: text for word, text in URDF_WORDS.items() if word != "srdf"} | {
    "include": "models within a model, and those that it includes",
    "joint": "joints of a type that is not read; limits and laws of joints that close loops",
}
MJCF_WORDS: Mapping[str, str] = {
    "actuator": "actuators by users' functions, or with a transmission that is not read",
    "tendon": "spatial tendons, and what is read otherwise of them; tendons with armature",
    "equality": "equalities of spatial tendons and flexes",
    "pair": "contacts declared one by one (<contact><pair>); refused only between neighbours",
    "gravcomp": "gravity compensation, which acts otherwise",
    "fluid": "the fluid around all bodies, which acts otherwise",
    "mocap": "bodies that others move, which stand still, and what is welded to them, which is not",
    "plugin": "plugins",
    "flex": "deformable bodies",
    "flag": "what <option><flag> says: forces that it switches off act",
    "shape": "collision shapes that are not read: signed distances",
    "free": "springs, damping, friction and armature of free joints, which act otherwise",
    "polynomial": "springs and damping that are not linear, damping and armature of actuators, delays",
    "limit": "limits of balls that leave no angle: the joint is not limited",
    "actuatorfrcrange": "limits of actuators' force on a joint that differ by direction or limit compensated weight",
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
        values = numbers_in(text)
        if values is None and "," in text:
            values = numbers_in(text.replace(",", " "))
            if values is not None and len(values) == count:
                self.note(here, f"'{text[:80]}': commas between numbers are blanks")
        if values is not None and len(values) > count > 1:
            self.note(here, f"'{text[:80]}': the first {count} numbers count")
            values = values[:count]
        if values is None or len(values) != count:
            wanted = "a finite number" if count == 1 else f"{count} finite numbers, separated by blanks"
            self.fail(here, "bad numbers" if count > 1 else "not a number", f"'{text[:80]}'", wanted)
        if node.tag not in ("limit", "safety_controller", "axis") and np.abs(values).max() > LARGEST_NUMBER:
            self.fail(here, "an impossible number", f"'{text[:80]}'", f"numbers below {LARGEST_NUMBER:g}")
        return values

    def number(self, node: XmlNode, name: str, place: str, default: float | None = None) -> float:
        """Return the number of an attribute."""
        return float(self.numbers(node, name, place, 1, None if default is None else [default])[0])


# --- What changes the motion in other programs ------------------------------------------------------------------------

#: Elements and attributes of other programs, inside <robot>, <link>, <joint> or <gazebo>.
_MOTION = frozenset(
    "springStiffness springReference turnGravityOff gravity dampingFactor static velocity_decay "
    "inertia_scaling balanceinertia boundmass boundinertia inertiafromgeom settotalmass "
    "drake:rotor_inertia drake:mimic drake:linear_spring_damper drake:linear_bushing_rpy drake:ball_constraint "
    "drake:distance_constraint drake:tendon_constraint".split()
)
_OFF = frozenset({"", "0", "0.0", "false"})


def doubt_motion(source: Source, node: XmlNode, place: str) -> None:
    """Note an element of another program that changes the motion there, as a doubt; and such attributes."""
    still = node.tag == "velocity_decay" and {inner.text for inner in node.nodes()} <= _OFF
    if node.tag in _MOTION and not still:
        source.doubt("extension", place, f"<{node.tag}> changes the motion in other programs, and is not read")
    for name in sorted(_MOTION & set(node.attributes)):
        if node.attributes[name].strip().lower() not in _OFF:
            text = f'{name}="{node.attributes[name]}" of <{node.tag}> changes the motion in other programs'
            source.doubt("extension", place, f"{text}, and is not read")


# --- Names of links and joints ----------------------------------------------------------------------------------------


def usable(name: str) -> bool:
    """Whether a scene can name it: not empty, no "/", which divides a body's name from a link's."""
    return bool(name.strip()) and "/" not in name and name.isprintable() and len(name) <= 200


def without_slashes(source: Source, root: XmlNode) -> None:
    """Give links and joints of a URDF names without "/" and ".", also where joints name them."""
    for kind, inside in (("link", (("parent", "link"), ("child", "link"))), ("joint", (("mimic", "joint"),))):
        named = root.all(kind)
        taken = {node.attributes.get("name", "") for node in named}
        for node in named:
            source.lines.setdefault((kind, node.attributes.get("name", "")), node.line)
        places = [(node, "name") for node in named]
        places += [(item, key) for joint in root.all("joint") for tag, key in inside for item in joint.all(tag)]
        for node, key in places:
            if key in node.attributes:
                node.attributes[key] = source.without_slash(kind, node.attributes[key], taken.__contains__)
    source.lines.clear()  # `read_name` notes them again, and that none comes twice


def read_name(source: Source, node: XmlNode, kind: str) -> str:
    """Return the name of a link or joint, new among its kind, and remember its line."""
    name = node.attributes.get("name", "")
    place = f"line {node.line}, {kind} '{name[:80]}'"
    if not usable(name):
        source.fail(place, "not a name", f"'{name[:80]}'", "a name without '/', of at most 200 letters")
    if (kind, name) in source.lines:
        line = source.lines[kind, name]
        source.fail(place, f"a second {kind} of this name", f"another in line {line}", "unique names")
    source.lines[kind, name] = node.line
    return name
