"""Checks of the overrides of an optimiser's phases, path by path."""

from collections.abc import Iterator
from typing import Any

from add.scene.read.coordinates import is_direction, is_orientation
from add.scene.read.parameter_checks import covers, number_at
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
        _, problem = number_at(full, path, at)
        if problem is not None:
            yield problem
            continue
        whole = ".".join(path.split(".")[:3])
        if path != whole and (is_orientation(whole) or is_direction(whole)):
            yield Problem(at, "an entry by itself says nothing of a rotation or a direction", f"'{path}'", f"'{whole}'")
            continue
        if not _isnumber_ats(value):
            yield Problem(at, "is not a number", shown(value), "a number or a list of numbers")
        for item in spec.experiments:
            for other in item.overrides:
                if covers(path, other) or covers(other, path):
                    yield Problem(at, f"experiment '{item.name}' overrides '{other}': which counts?", f"'{path}'")


def _isnumber_ats(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(_isnumber_ats(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
