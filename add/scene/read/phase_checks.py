"""Checks of the overrides of an optimiser's phases, path by path."""

from collections.abc import Iterator
from typing import Any

from add.scene.build.coordinates import is_direction, is_orientation
from add.scene.read.checks import _covers, _number
from add.scene.read.problems import Problem, shown
from add.scene.spec.scene import SceneSpec


def check_phase_overrides(spec: SceneSpec, full: dict[str, Any], k: int) -> Iterator[Problem]:
    """Overrides of phase k: numbers that the scene has, in no experiment another.

    Parameters
    ----------
    spec, full : the scene, and the scene as a dictionary with its defaults
    k : int
    """
    for path, value in spec.optimizer.phases[k].overrides.items():
        at = f"optimizer.phases.{k}.overrides.{path}"
        _, problem = _number(full, path, at)
        if problem is not None:
            yield problem
            continue
        whole = ".".join(path.split(".")[:3])
        if path != whole and (is_orientation(whole) or is_direction(whole)):
            yield Problem(at, "an entry by itself says nothing of a rotation or a direction", f"'{path}'", f"'{whole}'")
            continue
        if not _is_numbers(value):
            yield Problem(at, "is not a number", shown(value), "a number or a list of numbers")
        for item in spec.experiments:
            for other in item.overrides:
                if _covers(path, other) or _covers(other, path):
                    yield Problem(at, f"experiment '{item.name}' overrides '{other}': which counts?", f"'{path}'")


def _is_numbers(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(_is_numbers(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
