"""Building blocks of the scene format: strict numbers, vectors, names, selectors and values."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from add.errors import InputError
from add.laws import require_names
from add.scene.spec import kinds
from add.scene.spec.kinds import problem
from add.summary import described
from add.typing import FloatArray

T = TypeVar("T")


class Role(Enum):
    """The owner of a number of a scene, which decides whether the number holds for another motion.

    A spec says it once, `class MassSpec(Spec, numbers=Role.PROPERTY)`, and of a field that differs,
    `rate: Annotated[Number, Role.STATE]`; `add.scene.spec.roles` reads it.
    """

    #: Of bodies, joints, materials, contact, the place: the same in every motion.
    PROPERTY = "a property"
    #: Where a motion begins, and how fast.
    STATE = "where the motion starts"
    #: What is done to bodies over time.
    DRIVE = "what drives the motion"
    #: When and from where it was seen.
    RECORDING = "when and from where it was recorded"


class Spec(BaseModel):
    """Base of every object in a scene file: frozen, and a key it does not know is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, protected_namespaces=()
    )
    #: What its numbers are, where their fields do not say.
    role: ClassVar[Role | None] = None

    def __init_subclass__(cls, numbers: Role | None = None, **kwargs: Any) -> None:
        """Take the role of the numbers, of none that of the base, and descriptions that are long from the docstring."""
        super().__init_subclass__(**kwargs)
        if numbers is not None:
            cls.role = numbers
        cls.__doc__, texts = described(cls.__doc__)
        for key in texts.keys() & get_annotations(cls).keys():
            setattr(cls, key, Field(cls.__dict__.get(key, ...), description=texts[key]))

    def says(self, key: str) -> bool:
        """Whether a field is other than its default, which a scene with its defaults says, too."""
        return bool(getattr(self, key) != type(self).model_fields[key].get_default(call_default_factory=True))

    @classmethod
    def unit_of(cls, key: str, of_lengths: bool = False) -> str:
        """Return the unit of a field, the first thing in brackets in its description: of angles, or of lengths."""
        units = (cls.model_fields[key].description or "").partition("[")[2].partition("]")[0].split(", ")
        return units[-1 if of_lengths else 0]

    def unread(self, facts: "Facts", path: str) -> dict[str, str]:
        """Return the fields that nothing reads, whatever they say, and why; ``a.b`` is a field of a field.

        Beside the fields, so that one place knows it; `add.scene.build.unread` names those that a file gives.
        """
        return {}


#: The friction laws of contact without penalties.
HARD = ("exact", "impulse")


class Facts(NamedTuple):
    """Facts of a built scene that decide whether it reads a part of the file.

    Attributes
    ----------
    friction_law : of `contact`
    meshes_meet, touching : whether bodies meet each other by their meshes, and anything may touch anything
    idle : whether no two things that may touch take the number of contact at a path of the scene
    nodes_meet : whether a body has nodes, which meet shapes
    on_hinges : bodies whose start a coupling says
    vanishes : whether the number at a path of the scene is zero, or none of the scene's, and is not looked for
    sides, meeting : what rows of `contact.pairs` name; the pairs of bodies and links that may touch each other
    """

    friction_law: str
    meshes_meet: bool
    touching: bool
    idle: Callable[[str], bool]
    nodes_meet: bool
    on_hinges: frozenset[str]
    vanishes: Callable[[str], bool]
    sides: frozenset[str]
    meeting: frozenset[frozenset[str]]

    @property
    def without_penalties(self) -> bool:
        """Whether contact has no stiffness."""
        return self.friction_law in HARD


def objects_in(node: Any, place: str) -> Iterator[tuple[str, Spec]]:
    """Iterate over all objects in a part of a scene with their paths, the outer ones first."""
    inner: Any = ()
    if isinstance(node, Spec):
        yield place, node
        inner = ((info.alias or key, getattr(node, key)) for key, info in type(node).model_fields.items())
    elif isinstance(node, dict):
        inner = node.items()
    elif isinstance(node, tuple) and any(isinstance(item, Spec) for item in node):
        inner = enumerate(node)
    for key, item in inner:
        yield from objects_in(item, f"{place}.{key}" if place else str(key))


def references(node: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """Iterate over the names in a part of a scene that stand for others: place, what they stand for, name."""
    for at, item in objects_in(node, place):
        for key, info in type(item).model_fields.items():
            value = getattr(item, key)
            if isinstance(value, str) and (said := said_beside(info, kinds.Refers)) is not None:
                yield f"{at}.{info.alias or key}", said.what, value


def said_beside(item: Any, kind: type[T]) -> T | None:
    """Return what of a kind is said beside a type or a field, or within the union that it is."""
    metadata = item.metadata if isinstance(item, FieldInfo) else getattr(item, "__metadata__", ())
    parts = [part for part in metadata if isinstance(part, kind)]
    annotation = item.annotation if isinstance(item, FieldInfo) else item
    inner = get_args(annotation) if get_origin(annotation) not in (dict, tuple, Literal) else ()
    return parts[0] if parts else next((value for part in inner if (value := said_beside(part, kind))), None)


@contextmanager
def said_of(owner: str, formula: str = "energy") -> Iterator[None]:
    """Give errors of a ``formula`` their key in the file; one of an extension names it, and its attribute."""
    try:
        yield
    except InputError as error:
        at = error.place or formula
        message, key = (f"{owner}, {at}: {error.message}", "type") if owner else (error.message, at)
        raise problem(message, key=key, found=error.found, expected=error.expected) from None


def exactly_one(spec: BaseModel, *groups: str) -> None:
    """Refuse a spec that gives none, or more than one, of `groups` (each one key)."""
    names = {field.alias or name: getattr(spec, name) for name, field in type(spec).model_fields.items()}
    given = [group for group in groups if names[group] is not None]
    if len(given) != 1:
        listed = " or ".join(f"'{group}'" for group in groups)
        found = " and ".join(f"'{group}'" for group in given) or "none of them"
        raise problem(f"give exactly one of {listed}", found=found)


class BodyContactSpec(Spec, numbers=Role.PROPERTY):
    """A body in contact: its class, its skin, and whether it meets itself.

    Attributes
    ----------
    class_ : contact class: a name by which `contact.pairs` may mean all bodies of it; null = none of its own
    thickness : thickness of the body's skin, or of a sheet or a rope [m]: two meshes touch where they are nearer than
        half the sum of theirs; null = `contact.mesh.thickness`
    meets_itself : whether the body's mesh meets itself: soft and mass-spring bodies
    """

    class_: Annotated[kinds.Name | None, Field(alias="class")] = None
    thickness: kinds.Positive | None = None
    meets_itself: Annotated[kinds.Flag, Field(alias="self")] = False

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        skin = {} if facts.meshes_meet else {"thickness": "no two meshes meet"}
        return skin | ({} if self.class_ in facts.sides else {"class_": "no row of `contact.pairs` names it"})


# --- selectors: which nodes, in the rest frame of the mesh -----------------------------------------------------------


class _CornersSpec(Spec):
    min: kinds.Limit = Field((None, None, None), description="lowest x, y, z [m]; null = unbounded")
    max: kinds.Limit = Field((None, None, None), description="highest x, y, z [m]; null = unbounded")

    @property
    def corners(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest corner."""
        low = np.array([-np.inf if x is None else x for x in self.min])
        return low, np.array([np.inf if x is None else x for x in self.max])


class BoxSpec(_CornersSpec):
    """Axis-aligned box; an entry that is null is unbounded. A node on the boundary is inside."""

    def model_post_init(self, context: Any) -> None:
        for axis, low, high in zip("xyz", self.min, self.max, strict=True):
            if low is not None and high is not None and low > high:
                found = f"min {low:g}, max {high:g}"
                raise problem(f"the box is empty along {axis}", found=found, expected="min <= max")


class BallSpec(Spec):
    """Sphere; a node on the boundary is inside."""

    center: kinds.Vector3 = Field(description="centre [m]")
    radius: kinds.Positive = Field(description="radius [m]")


class BoxSelectorSpec(Spec):
    """Nodes inside a box of the rest frame (after `scale`, before `position` and `orientation`)."""

    box: BoxSpec = Field(description="box in the rest frame [m]")


class SphereSelectorSpec(Spec):
    """Nodes inside a sphere of the rest frame (after `scale`, before `position` and `orientation`)."""

    sphere: BallSpec = Field(description="sphere in the rest frame [m]")


class NodesSelectorSpec(Spec):
    """Nodes given by number."""

    nodes: kinds.NodeList = Field(description="node numbers, from 0, in the order of the mesh")


class SurfaceSelectorSpec(Spec):
    """Every node of the surface."""

    surface: kinds.Yes = Field(description="true: every node of the surface")


class AllSelectorSpec(Spec):
    """Every node."""

    all: kinds.Yes = Field(description="true: every node")


SelectorSpec = Annotated[
    BoxSelectorSpec | SphereSelectorSpec | NodesSelectorSpec | SurfaceSelectorSpec | AllSelectorSpec,
    kinds.by_key("box", "sphere", "nodes", "surface", "all"),
]

# --- values over time ------------------------------------------------------------------------------------------------


class SignalReferenceSpec(Spec):
    """The signal of that name."""

    signal: kinds.SignalName = Field(description="name of an entry of `signals`")


ValueSpec = Annotated[
    kinds.Vector3 | SignalReferenceSpec,
    kinds.by_type('[x, y, z] or {"signal": name}', vector=(list, tuple), signal=(dict, SignalReferenceSpec)),
    Role.DRIVE,
]

# --- Formulas in scenes: the numbers that they are written with -------------------------------------------------------


class _FormulaSpec(Spec, numbers=Role.PROPERTY):
    """An object with formulas, and the numbers in them.

    Attributes
    ----------
    numbers : numbers of the formula by name, each of them a parameter
    units : units of numbers, for reports; of a material that says none they are in Pa
    """

    numbers: dict[kinds.Name, kinds.Number]
    units: dict[kinds.Name, kinds.Text] = {}

    def check_formula(self, variables: Collection[str], read: Callable[[], None], formula: str = "energy") -> None:
        """Refuse names that cannot be, units of nothing, and what reading the formula refuses."""
        for name in set(self.units) - set(self.numbers):
            listed = ", ".join(self.numbers)
            raise problem("there is no such number", key=f"units.{name}", found=name, expected=f"one of {listed}")
        with said_of("", formula):
            require_names(self.numbers, variables)
            read()
