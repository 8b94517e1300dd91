"""Scenes: read from a file or said in Python (`spec`, `read`), and built into what runs (`build`)."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from add.inverse import InverseProblem, PhasedOptimizer
from add.io.lock import replacing
from add.scene.build.built import BuiltScene
from add.scene.build.inverse_problem import inverse_problem, optimizer
from add.scene.build.scene import build as built_scene
from add.scene.read.reader import apply_overrides, check_scene, experiment_scenes, read_scene
from add.scene.spec.scene import SCHEMA, SceneSpec
from add.summary import Summary, counted

__all__ = ["Scene", "apply_overrides", "experiment_scenes", "load_scene", "scene_from_dict"]

_log = logging.getLogger(__name__)


@final
class Scene(SceneSpec):
    """A valid scene: what is simulated, what is measured, what is fitted.

    Its fields are the sections of a scene file. The classes of `add` with the same names as the objects of the file
    make one without JSON; dictionaries may stand wherever such an object may.

    Raises
    ------
    InputError
        If a value does not fit; names its place.

    Examples
    --------
    >>> import add
    >>> ball = add.SoftBody(
    ...     mesh=add.SphereMesh(shape="sphere", radius=0.05, edge=0.03),
    ...     material=add.Material(young=5e4, poisson=0.4, density=100.0),
    ... )
    >>> scene = add.Scene(time={"dt": 0.01, "steps": 3}, bodies={"ball": ball})
    >>> scene.bodies["ball"].material.young
    50000.0
    """

    def __init__(self, **given: Any) -> None:
        checked = check_scene({"schema": SCHEMA, **given}, None, SceneSpec)
        super().__init__(**checked.raw)
        self._raw, self._source = checked.raw, None

    def build(self) -> BuiltScene:
        """Build the simulation; see `add.scene.build.scene.build`.

        That of the scene itself: what experiments override is in their own scenes, `add.scene.experiment_scenes`.
        """
        if text := self.without_experiments:
            _log.warning("%s; `add.scene.experiment_scenes` has the scenes of these", text)
        return built_scene(self)

    def inverse_problem(self) -> InverseProblem:
        """Build the inverse problem; see `add.scene.build.inverse_problem.inverse_problem`."""
        return inverse_problem(self)

    def build_optimizer(self) -> PhasedOptimizer:
        """Return the scene's optimiser with its phases."""
        return optimizer(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scene as JSON; file paths in it are absolute."""
        with replacing(Path(path)) as part:
            part.write_text(json.dumps(self.raw, indent=2) + "\n", encoding="utf-8")

    def summary(self) -> Summary:
        """Return a few lines: bodies, contact, time, what is fitted."""
        rows = [(name, f"{body.type} body") for name, body in self.bodies.items()]
        rows += [(name, type(item).__name__.removesuffix("Spec")) for name, item in self.couplings.items()]
        rows.append(("time", f"{counted(self.time.n_steps, 'step')} of {self.time.dt:g} s, {self.time.integrator}"))
        rows.append(("contact", f"{self.contact.friction_law} friction; {', '.join(self.obstacles) or 'no obstacles'}"))
        if self.parameters:
            rows.append(("parameters", ", ".join(self.parameter_paths)))
        if self.experiments:
            rows.append(("experiments", ", ".join(item.name for item in self.experiments)))
        return Summary(f"Scene {self.name or (self.source.name if self.source else '')}".rstrip(), tuple(rows))

    def __repr__(self) -> str:
        return str(self.summary())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return self.summary().html()


def load_scene(path: str | os.PathLike[str]) -> Scene:
    """Read and check a scene file (UTF-8 JSON)."""
    return read_scene(path, Scene)


def scene_from_dict(raw: Mapping[str, Any], *, folder: str | os.PathLike[str] | None = None) -> Scene:
    """Check a scene given as a dictionary; relative paths count from `folder` (default: the working directory)."""
    return check_scene(raw, folder, Scene)
