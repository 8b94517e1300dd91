"""Overrides of an optimiser's phases: checked as a scene, then turned into numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from add.errors import InputError
from add.inverse.maps import DesignParameter
from add.inverse.overrides import NumberOverride
from add.scene.build.built import BuiltScene
from add.scene.read.paths import get_value
from add.scene.read.recorded_starts import numbers_of


def number_overrides(
    overrides: Mapping[str, Any], built: Mapping[str, BuiltScene], parameters: Sequence[DesignParameter], place: str
) -> tuple[NumberOverride, ...]:
    """Return the changes by the overrides of a phase in the numbers of every experiment.

    Parameters
    ----------
    overrides : path into the scene -> value, in SI units; orientations and directions are written as in the scene
    built : experiment name -> BuiltScene
    parameters : those of the scene
    place : of the overrides in the scene

    Raises
    ------
    InputError
        If a path names no number that a run could be differentiated by, or one that a parameter sets, or the value
        has not its size.
    """
    out = []
    for name, scene in built.items():
        taken = {int(i) for p in parameters for index in p.targets.get(name, ()) for i in index}
        for path, value in overrides.items():
            try:
                index, _ = scene.numbers.resolve(path)
            except InputError:
                raise InputError(
                    "this number cannot change from phase to phase: it is no part of what the motion is differentiated "
                    "by (only numbers that could be parameters are)",
                    place=f"{place}.{path}",
                    found=f"'{path}'",
                ) from None
            if taken & set(index.tolist()):
                raise InputError(
                    "this number belongs to a parameter, which would win", place=f"{place}.{path}", found=f"'{path}'"
                )
            values = numbers_of(path, value, get_value(scene.scene.full(), path))
            if values.size != index.size:
                raise InputError(
                    "the override has not the size of what it replaces",
                    place=f"{place}.{path}",
                    found=f"{values.size} numbers",
                    expected=f"{index.size}",
                )
            out.append(NumberOverride(name, index, values))
    return tuple(out)
