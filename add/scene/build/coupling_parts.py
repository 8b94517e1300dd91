"""The share of couplings in a model and in its numbers, in the making."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np

from add.bodies import Block
from add.equations.signals import SignalParameter
from add.joints.parts import HingeStart, JointPart
from add.model.build import MakeTerms
from add.scene.build.numbers import SceneParameter, direction
from add.scene.build.ties import Derived, Input
from add.scene.spec.common import SignalReferenceSpec
from add.ties import Rule
from add.typing import FloatArray

#: Given value, path, unit and number of columns -> the signal that drives it.
MakeSignalParameter = Callable[[object, str, str, int], SignalParameter]


@final
@dataclass
class CouplingParts:
    """The share of the couplings of a scene in the model and in its numbers."""

    joint_parts: list[JointPart] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    numbers: list[SceneParameter] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    connected: set[tuple[str, str]] = field(default_factory=set)
    starts: list[HingeStart] = field(default_factory=list)
    terms: list[MakeTerms] = field(default_factory=list)

    def number(self, path: str, value: object, unit: str, target: str = "", factor: float = 1.0) -> str:
        """Add a differentiable number under its path; return the name of the block of theta that holds its multiple."""
        array = np.asarray(value, dtype=float)
        target = target or path
        self.blocks.append((target, array.shape, unit))
        self.numbers.append(SceneParameter(path, array, unit, ((target, factor),)))
        return target

    def constant(self, name: str, value: FloatArray, unit: str) -> str:
        """Add a block of theta that nothing changes; return its name."""
        self.blocks.append((name, value.shape, unit))
        self.numbers.append(SceneParameter(name, value, unit, ((name, 1.0),), fixed=True))
        return name

    def follow(self, name: str, unit: str, rule: Rule, *inputs: Input, shape: tuple[int, ...] = (3,)) -> str:
        """Add a block of theta that follows from others; return its name."""
        self.blocks.append((name, shape, unit))
        self.derived.append(Derived((name,), rule, inputs))
        return name

    def direction(self, path: str, value: tuple[float, float, float], name: str) -> str:
        """Add a direction of the scene; return the name of the block of theta that holds its unit vector."""
        number, unit = direction(path, value, name)
        self.blocks.append((name, (3,), "-"))
        self.numbers.append(number)
        self.derived.append(unit)
        return name

    def signal(self, value: object, path: str, unit: str, width: int, driven: MakeSignalParameter) -> SignalParameter:
        """Return the signal of a value; its rows are a block of theta."""
        drive = driven(value, path, unit, width)
        self.blocks.append((drive.parameter, (drive.signal.n_rows, width), unit))
        if not isinstance(value, SignalReferenceSpec):
            self.numbers.append(SceneParameter(path, np.array(value, dtype=float), unit, ((drive.parameter, 1.0),)))
        return drive
