"""The numbers of a scene in the making, and the map to theta: copies with factors, then ties in their order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from add.bodies import Block, Layouts
from add.equations.layout import ParameterLayout
from add.equations.signals import SignalParameter
from add.inverse.maps import Composed, Injection
from add.joints.laws import HingeStart, JointPart
from add.model.build import MakeTerms
from add.scene.spec.common import SignalReferenceSpec, Spec
from add.terms.memories import Memory
from add.ties import Begun, Extended, Rule, Selected, Tie, TiltedDirection, axes_across, unit_vector
from add.typing import AnyArray, FloatArray, IntArray


class OfScene(NamedTuple):
    """A number of the scene, by its path, as the input of a tie."""

    path: str


#: A block of theta by its name, a number of the scene, or constants.
Input = str | OfScene | FloatArray


class Derived(NamedTuple):
    """Blocks of theta that follow from other numbers by a rule.

    Attributes
    ----------
    outputs : names of blocks of theta, filled in this order
    rule : Rule
    inputs : tuple of Input, in the order of the rule's arguments
    each : bool
        Whether the rule holds for each entry of them, one of the inputs standing for all where it is one number.
    """

    outputs: tuple[str, ...]
    rule: Rule
    inputs: tuple[Input, ...]
    each: bool = False


class Copy(NamedTuple):
    """A number of the scene that entries of theta are a multiple of.

    Attributes
    ----------
    path : str
    target : places in theta
    factor : one for all, or one a place
    """

    path: str
    target: IntArray
    factor: FloatArray


@final
@dataclass(frozen=True)
class SceneParameter:
    """One number or array of a scene and what of theta it sets.

    Attributes
    ----------
    path : str
        Path into the scene.
    value : array
    unit : str
    targets : (block of theta, factor)
        The block becomes factor * value; a scalar value serves every entry of a block, with a factor each.
    fixed : bool
        Whether it is part of what is asked and not of the physics: then it is no number that a parameter may name.
    """

    path: str
    value: FloatArray
    unit: str
    targets: tuple[tuple[str, float | FloatArray], ...]
    fixed: bool = False


#: Position and rotation vector of the world's frame.
WORLD = np.zeros(6)


#: Given value, path, unit and number of columns -> the signal that drives it.
MakeSignalParameter = Callable[[object, str, str, int], SignalParameter]


@final
@dataclass
class SceneParts:
    """The share of the parts of a scene in the model and in its numbers, in the making.

    Attributes
    ----------
    driven : makes signals of values
    numbers, derived : numbers of the scene, and what of theta follows from them
    blocks : of theta, beside those that bodies and terms bring
    joint_parts, owners : laws between places, and the coupling or body that each is of
    connected : pairs of bodies that couplings join, either way round
    starts : of bodies on hinges
    begun : body of given motion -> the blocks of theta with position and rotation vector where the motion begins
    terms : what makes further terms
    memories : by the place in the scene that they are of
    """

    driven: MakeSignalParameter
    numbers: list[SceneParameter] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    joint_parts: list[JointPart] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    connected: set[tuple[str, str]] = field(default_factory=set)
    starts: list[HingeStart] = field(default_factory=list)
    begun: dict[str, tuple[str, str]] = field(default_factory=dict)
    terms: list[MakeTerms] = field(default_factory=list)
    memories: dict[str, Callable[[Layouts], Memory]] = field(default_factory=dict)

    def add(
        self,
        path: str,
        value: object,
        unit: str,
        targets: Sequence[tuple[str, float | FloatArray]] | None = None,
        *,
        fixed: bool = False,
    ) -> None:
        """Add a number under its path; where no targets are given, it sets the block of theta of the same name."""
        array = np.asarray(value, dtype=float)
        self.numbers.append(
            SceneParameter(path, array, unit, ((path, 1.0),) if targets is None else tuple(targets), fixed)
        )

    def add_of(self, at: str, item: Spec, *keys: str, block: str = "") -> None:
        """Add numbers of a part of the scene under its path, in the units that it declares."""
        for key in keys:
            self.add(f"{at}.{key}", getattr(item, key), item.unit_of(key), ((f"{block or at}.{key}", 1.0),))

    def number(self, path: str, value: object, unit: str, target: str = "", factor: float = 1.0) -> str:
        """Add a differentiable number under its path; return the name of the block of theta that holds its multiple."""
        target, array = target or path, np.asarray(value, dtype=float)
        self.blocks.append((target, array.shape, unit))
        self.add(path, array, unit, ((target, factor),))
        return target

    def numbers_of(self, at: str, item: Spec, *keys: str) -> tuple[str, ...]:
        """Add numbers of a part of the scene, with their blocks of theta; return the names of these."""
        return tuple(self.number(f"{at}.{key}", getattr(item, key), item.unit_of(key)) for key in keys)

    def constant(self, name: str, value: FloatArray, unit: str) -> str:
        """Add a block of theta that nothing changes; return its name."""
        self.blocks.append((name, value.shape, unit))
        self.add(name, value, unit, fixed=True)
        return name

    def follow(
        self, name: str, unit: str, rule: Rule, *inputs: Input, shape: tuple[int, ...] = (3,), each: bool = False
    ) -> str:
        """Add a block of theta that follows from others; return its name."""
        self.blocks.append((name, shape, unit))
        self.derived.append(Derived((name,), rule, inputs, each))
        return name

    def direction(self, path: str, value: Sequence[float], name: str) -> str:
        """Add a direction of the scene; return the name of the block of theta that holds its unit vector.

        Its number is two tilts [rad], which turn the scene's own direction about two axes across it
        (`add.ties.axes_across`); they are zero there.
        """
        start = unit_vector(np.array(value))
        self.add(path, np.zeros(2), "rad", ())
        return self.follow(name, "-", TiltedDirection(), OfScene(path), start, axes_across(start))

    def signal(self, value: object, path: str, unit: str, width: int) -> SignalParameter:
        """Return the signal of a value; its rows are a block of theta."""
        drive = self.driven(value, path, unit, width)
        self.blocks.append((drive.parameter, (drive.signal.n_rows, width), unit))
        if not isinstance(value, SignalReferenceSpec):
            self.add(path, value, unit, ((drive.parameter, 1.0),))
        return drive

    def pose_of(self, body: str | None) -> tuple[str, str] | tuple[FloatArray]:
        """Return the inputs of a tie that say where a body's frame is at t = 0; None is the world."""
        if body is None:
            return (WORLD,)
        return self.begun.get(body, (f"bodies.{body}.position", f"bodies.{body}.orientation"))

    def turn_of(self, body: str | None) -> str | FloatArray:
        """Return the input of a tie that says how a body's frame is turned at t = 0."""
        return WORLD[3:] if body is None else self.pose_of(body)[-1]

    def begin(self, name: str, drive: SignalParameter | None, unit: str) -> str:
        """Return the block of a start where a given motion that adds to it begins, which is added."""
        if drive is None:
            return name
        width = len(drive.begins)
        rule = Begun(tuple(drive.signal.weights(0.0).tolist()), width)
        return self.follow(f"{name}.begins", unit, rule, name, drive.parameter, shape=(width,))

    def moved(self, value: object, path: str, unit: str) -> SignalParameter | None:
        """Return the signal of three columns that drives a body, whose rows its terms bring; None of None."""
        if value is None:
            return None
        if not isinstance(value, SignalReferenceSpec):
            self.add(path, value, unit)
        return self.driven(value, path, unit, 3)

    def take(self, other: "SceneParts") -> None:
        """Take the numbers of a part that was made by itself."""
        self.numbers += other.numbers
        self.derived += other.derived
        self.blocks += other.blocks


def compose(
    scene: ParameterLayout,
    theta: ParameterLayout,
    base: FloatArray,
    copies: Sequence[Copy],
    derived: Sequence[Derived],
) -> Composed:
    """Return s -> theta.

    Parameters
    ----------
    scene, theta : layouts of s and of theta
    base : (n_theta,) what theta is where nothing sets it
    copies, derived
        In any order; no tie may depend on its own outputs.
    """
    sources = [_spread(scene[copy.path].indices, copy.target.shape) for copy in copies]
    inputs, outputs, constants = _places(scene, theta, derived)
    n = scene.n + theta.n + constants.size
    copied = Injection(
        base,
        np.concatenate(sources),
        np.concatenate([copy.target.ravel() for copy in copies]),
        scene.n,
        np.concatenate([_spread(copy.factor, copy.target.shape) for copy in copies]).astype(float),
    )
    ties = [
        Tie(rule, np.concatenate([inputs[k] for k in members]), np.concatenate([outputs[k] for k in members]))
        for rule, members in _batches(derived)
    ]
    return Composed((Extended(copied, constants), *ties, Selected(n, scene.n, scene.n + theta.n)))


def _spread(x: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Return an array as one row of what broadcasting makes of it; most have the shape, or one number."""
    if x.ndim == 0:
        return np.full(math.prod(shape), x)
    return (x if x.shape == shape else np.broadcast_to(x, shape)).ravel()


def _places(
    scene: ParameterLayout, theta: ParameterLayout, derived: Sequence[Derived]
) -> tuple[list[IntArray], list[IntArray], FloatArray]:
    """Return the places of inputs and outputs in z = [s; theta; constants], a row a set, and the constants."""
    constants: list[FloatArray] = [np.zeros(0)]
    first = scene.n + theta.n
    inputs, outputs = [], []
    for item in derived:
        read = []
        for source in item.inputs:
            if isinstance(source, OfScene):
                read.append(scene[source.path].indices.ravel())
            elif isinstance(source, str):
                read.append(scene.n + theta[source].indices.ravel())
            else:
                values = np.ravel(np.asarray(source, dtype=float))
                constants.append(values)
                read.append(np.arange(first, first + values.size))
                first += values.size
        made = [scene.n + theta[name].indices.ravel() for name in item.outputs]
        if item.each:
            rows = np.stack(np.broadcast_arrays(*read, *made), axis=1)
            inputs.append(rows[:, : len(read)])
            outputs.append(rows[:, len(read) :])
        else:
            inputs.append(np.concatenate(read)[None])
            outputs.append(np.concatenate(made)[None])
    return inputs, outputs, np.concatenate(constants)


def _batches(derived: Sequence[Derived]) -> list[tuple[Rule, list[int]]]:
    """Return the ties that can be evaluated at once: one rule, and all they read is set by earlier ones."""
    made_by = {name: k for k, item in enumerate(derived) for name in item.outputs}
    level: dict[int, int] = {}

    def level_of(k: int) -> int:
        if k not in level:
            names = [source for source in derived[k].inputs if isinstance(source, str)]
            level[k] = 1 + max((level_of(made_by[name]) for name in names if name in made_by), default=-1)
        return level[k]

    batches: dict[tuple[int, Rule], list[int]] = {}
    for k in range(len(derived)):
        batches.setdefault((level_of(k), derived[k].rule), []).append(k)
    return [(rule, batches[at, rule]) for at, rule in sorted(batches, key=lambda key: key[0])]
