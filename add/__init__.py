"""Differentiable simulation of soft bodies with frictional contact."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from add.adjoint import (
        Checkpoints,
        Cotangents,
        StoreAll,
        evaluate,
        pullback,
        pushforward,
        value_and_gradient,
    )
    from add.errors import AddError, InputError, SolverError
    from add.inverse import InverseProblem
    from add.mocap import Recording, read_csv, register, write_csv
    from add.model import build_model
    from add.scene.read.reader import Scene, apply_overrides, load_scene, scene_from_dict
    from add.simulation.run import Simulation, Trajectory

# Imported on first use: `add version` should not wait for the compiled kernels.
_HOMES = {
    "AddError": "add.errors",
    "Checkpoints": "add.adjoint",
    "Cotangents": "add.adjoint",
    "InputError": "add.errors",
    "InverseProblem": "add.inverse",
    "Recording": "add.mocap",
    "Scene": "add.scene.read.reader",
    "Simulation": "add.simulation.run",
    "SolverError": "add.errors",
    "StoreAll": "add.adjoint",
    "Trajectory": "add.simulation.run",
    "apply_overrides": "add.scene.read.reader",
    "build_model": "add.model",
    "evaluate": "add.adjoint",
    "load_scene": "add.scene.read.reader",
    "pullback": "add.adjoint",
    "pushforward": "add.adjoint",
    "read_csv": "add.mocap",
    "register": "add.mocap",
    "scene_from_dict": "add.scene.read.reader",
    "value_and_gradient": "add.adjoint",
    "write_csv": "add.mocap",
}

__all__ = [
    "AddError",
    "Checkpoints",
    "Cotangents",
    "InputError",
    "InverseProblem",
    "Recording",
    "Scene",
    "Simulation",
    "SolverError",
    "StoreAll",
    "Trajectory",
    "__version__",
    "apply_overrides",
    "build_model",
    "evaluate",
    "load_scene",
    "pullback",
    "pushforward",
    "read_csv",
    "register",
    "scene_from_dict",
    "value_and_gradient",
    "write_csv",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'add' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
