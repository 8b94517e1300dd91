"""The map from a scene's numbers s to theta: copies with factors, then ties in the order of what they read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from add.equations.layout import ParameterLayout
from add.inverse.maps import Composed
from add.ties import Extended, Rule, Selected, Tie
from add.typing import FloatArray, IntArray


class OfScene(NamedTuple):
    """A number of the scene, by its path, as the input of a tie."""

    path: str


#: A block of theta by its name, a number of the scene, or constants.
Input = str | OfScene | FloatArray


@final
@dataclass(frozen=True)
class Derived:
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


@final
@dataclass(frozen=True)
class Copy:
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
    sources = [np.broadcast_to(scene[copy.path].indices, copy.target.shape).ravel() for copy in copies]
    inputs, outputs, constants = _places(scene, theta, derived)
    n = scene.n + theta.n + constants.size
    extended = Extended(
        scene.n,
        base,
        constants,
        np.concatenate(sources),
        np.concatenate([copy.target.ravel() for copy in copies]),
        np.concatenate([np.broadcast_to(copy.factor, copy.target.shape).ravel() for copy in copies]).astype(float),
    )
    ties = [
        Tie(rule, np.concatenate([inputs[k] for k in members]), np.concatenate([outputs[k] for k in members]))
        for rule, members in _batches(derived)
    ]
    return Composed((extended, *ties, Selected(n, scene.n, scene.n + theta.n)))


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
