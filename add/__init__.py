"""Differentiable simulation of soft bodies with frictional contact.

A scene is data, a JSON file or `Scene` objects; a run is a function of its numbers, with exact derivatives:

    scene = add.load_scene("scene.json")         # or scene_from_dict, or add.Scene(...) of add.SoftBody and others
    built = scene.build()                        # system, theta, markers; built.run() is a trajectory
    problem = scene.inverse_problem()            # problem.value_and_grad(x), problem.optimize()

Where to find what:

    scenes        load_scene, scene_from_dict, apply_overrides, Scene; dir(add) lists the objects scenes are made of
    runs          Simulation, Trajectory; built.rollout({path: value}) as a function with jvp and vjp
    gradients     evaluate, value_and_gradient, pullback, rollout_batch; Checkpoints, StoreAll
    fits          InverseProblem; the rooms add.inverse (problem, uncertainty) and add.objectives
    control       add.control: iLQR, multiple shooting
    recordings    read_take, read_csv, register, write_csv; Take, Recording
    robots        read_robot, Robot
    frameworks    add.jax, add.torch, add.gym: runs, steps, environments
    own parts     add.extensions: couplings, bodies, objectives, solvers in files of yours
    checks        add.testing: derivatives of terms against differences
    errors        AddError: InputError says what is wrong where, SolverError which step failed

Below that, from the ground up: add.kernels (compiled forces), add.equations (residual and its derivatives), add.terms,
add.materials, add.joints, add.contact, add.bodies, add.model (all as one system), add.solve (Newton), add.simulation
(steps), add.adjoint (sweeps), add.compiled (steps in one call). The command `add --help` has all of it without Python.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.4.0"

if TYPE_CHECKING:
    from add.adjoint import (
        Checkpoints,
        Cotangents,
        States,
        StoreAll,
        evaluate,
        pullback,
        pushforward,
        rollout_batch,
        value_and_gradient,
    )
    from add.errors import AddError, InputError, SolverError
    from add.inverse import InverseProblem
    from add.mocap import Recording, Take, read_csv, read_take, register, write_csv
    from add.model import build_model
    from add.scene import Scene, apply_overrides, load_scene, scene_from_dict
    from add.scene.objects import *  # noqa: F403
    from add.scene.robots import Robot, read_robot
    from add.simulation.run import Simulation, Trajectory

# Imported on first use: `add version` should not wait for the compiled kernels.
_HOMES = {
    name: home
    for home, names in {
        "add.adjoint": "Checkpoints Cotangents States StoreAll evaluate pullback pushforward rollout_batch "
        "value_and_gradient",
        "add.errors": "AddError InputError SolverError",
        "add.inverse": "InverseProblem",
        "add.mocap": "Recording Take read_csv read_take register write_csv",
        "add.model": "build_model",
        "add.scene": "Scene apply_overrides load_scene scene_from_dict",
        "add.scene.robots": "Robot read_robot",
        "add.simulation.run": "Simulation Trajectory",
    }.items()
    for name in names.split()
}

__all__ = [
    "AddError",
    "Checkpoints",
    "Cotangents",
    "InputError",
    "InverseProblem",
    "Recording",
    "Robot",
    "Scene",
    "Simulation",
    "SolverError",
    "States",
    "StoreAll",
    "Take",
    "Trajectory",
    "__version__",
    "apply_overrides",
    "build_model",
    "evaluate",
    "load_scene",
    "pullback",
    "pushforward",
    "read_csv",
    "read_robot",
    "read_take",
    "register",
    "rollout_batch",
    "scene_from_dict",
    "value_and_gradient",
    "write_csv",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if not name.startswith("_"):
        objects = vars(import_module("add.scene.objects"))
        if name in objects:
            return objects[name]
    raise AttributeError(f"module 'add' has no attribute '{name}'")


def __dir__() -> list[str]:
    import re
    from pathlib import Path

    # Read, not imported: completing a name should not load pydantic.
    source = Path(__file__).with_name("scene") / "objects.py"
    return sorted([*__all__, *re.findall(r"^(\w+) = ", source.read_text(encoding="utf-8"), re.MULTILINE)])
