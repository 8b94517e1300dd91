"""The surroundings of bodies: obstacles and the settings of contact."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from add.contact import CONSTANT_FRICTION, FrictionCurve, FrictionLaw, NormalFormula, NormalLaw
from add.geometry.triangle_surface import CollisionMesh
from add.typing import FloatArray


@final
@dataclass(frozen=True)
class Obstacle:
    """A shape of the world; ``kind`` and ``size`` as in `add.kernels.distance`.

    ``mesh`` is that of the kind MESH, whose size is half its extent.
    """

    name: str
    kind: int
    size: tuple[float, float, float]
    rotation: FloatArray
    position: FloatArray
    velocity: FloatArray
    mesh: CollisionMesh | None = None


#: A shape of a body: the body's name, and the shape's number among its own.
ShapeName = tuple[str, int]


@final
@dataclass(frozen=True)
class MeshModel:
    """Contact of meshes with each other.

    Attributes
    ----------
    asked : pairs of bodies that meet by their meshes although points of one could meet a shape of the other
    apart : pairs of bodies that never meet
    itself : bodies that meet themselves
    """

    asked: frozenset[tuple[str, str]] = frozenset()
    apart: frozenset[tuple[str, str]] = frozenset()
    itself: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class ContactModel:
    """Contact settings that are not differentiated.

    Attributes
    ----------
    law : FrictionLaw
    per_area : bool
        Whether stiffness and damping count per rest area or per node.
    onset, ramp : float
        Depths [m]; see `add.kernels.contact_pairs`.
    total_normal : bool
    adhesive_damping : bool
        See `add.contact.BodyContact`.
    classes : contact class of bodies and obstacles; the others have one of their own, under their name
    disabled : pairs of classes (of points, of shapes) that pass through each other
    apart : pairs of bodies (of points, of shapes) that do, too
    apart_within : body -> name of its group; bodies of one group pass through each other
    shapes_apart : pairs of single shapes (of points, of shapes) that do, too
    meshes : MeshModel, or None: meshes do not meet each other
    normal_law : NormalLaw or NormalFormula
        The thickness of its layer around shapes stands in theta, where it has one.
    curve : FrictionCurve
        Its numbers stand in theta.
    couples : bool
        Whether contact brakes the spin of bodies with frames: c_t, c_r and w_0 stand in theta.
    """

    law: FrictionLaw = FrictionLaw.LINEAR
    per_area: bool = False
    onset: float = 0.0
    ramp: float = 0.0
    total_normal: bool = False
    adhesive_damping: bool = False
    classes: Mapping[str, str] = field(default_factory=dict)
    disabled: frozenset[tuple[str, str]] = frozenset()
    apart: frozenset[tuple[str, str]] = frozenset()
    apart_within: Mapping[str, str] = field(default_factory=dict)
    shapes_apart: frozenset[tuple[ShapeName, ShapeName]] = frozenset()
    meshes: MeshModel | None = None
    normal_law: NormalLaw | NormalFormula = NormalLaw.PENALTY
    curve: FrictionCurve = CONSTANT_FRICTION
    couples: bool = False

    def class_of(self, name: str) -> str:
        """Return the contact class of a body or an obstacle."""
        return self.classes.get(name, name)

    def keeps_apart(self, points: str, shapes: str) -> bool:
        """Return whether a pair of bodies passes through each other, whatever their classes say."""
        group = self.apart_within.get(points)
        return (points, shapes) in self.apart or (group is not None and self.apart_within.get(shapes) == group)
