"""Forces on every body of a file: the fluid around boxes of its inertia, as in MuJoCo, and compensated weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from add.scene.robots.model import WORLD, Robot, RobotFluid
from add.scene.robots.turns import after, from_quaternion
from add.scene.robots.xml_file import Source
from add.typing import FloatArray


def box_of_inertia(mass: float, moments: FloatArray) -> FloatArray:
    """Return the edges (3,) of the box of a mass that has these principal moments, 6 (I_j + I_k - I_i)/m squared."""
    return np.sqrt(np.maximum(moments.sum() - 2.0 * moments, 0.0) * 6.0 / mass)


def fluid_around(robot: Robot, density: float, viscosity: float) -> RobotFluid:
    """Return the fluid that a scene puts around a robot: each link with a mass is one box."""
    boxes = []
    for link in robot.links:
        if link.mass > 0.0:
            moments, axes = np.linalg.eigh(link.inertia)
            boxes.append((link.name, link.centre, axes, box_of_inertia(link.mass, moments)))
    return RobotFluid(density, viscosity, tuple(boxes))


def read_fluid(
    source: Source, model: Any, places: Mapping[int, tuple[str, FloatArray, FloatArray]]
) -> RobotFluid | None:
    """Return the fluid of a compiled MuJoCo model with the boxes of all bodies that move, at their places in links."""
    option = model.opt
    text = f"a fluid of density {option.density:g}, viscosity {option.viscosity:g}"
    if not (option.density or option.viscosity):
        return None
    source.not_negative("<option>", density=float(option.density), viscosity=float(option.viscosity))
    if np.any(option.wind):
        text = f"{text} with wind"
    elif np.any(model.geom_fluid):
        text = f"{text} that feels ellipsoids (fluidshape)"
    elif "fluid" not in source.ignore:
        boxes = []
        for body, (link, *at) in places.items():
            mass = float(model.body_mass[body])
            if link != WORLD and mass > 0.0:
                local = (np.array(model.body_ipos[body]), from_quaternion(np.array(model.body_iquat[body])))
                centre, axes = after((at[0], at[1]), local)
                boxes.append((link, centre, axes, box_of_inertia(mass, np.array(model.body_inertia[body]))))
        return RobotFluid(float(option.density), float(option.viscosity), tuple(boxes))
    source.refuse("fluid", "<option>", text)
    return None


def read_compensation(
    source: Source, model: Any, places: Mapping[int, tuple[str, FloatArray, FloatArray]]
) -> tuple[tuple[str, FloatArray, float], ...]:
    """Return (link, place (3,) in it, mass [kg]) of the weights that a compiled MuJoCo model takes away."""
    out = []
    for body, (link, *at) in places.items():
        mass = float(model.body_gravcomp[body] * model.body_mass[body])
        if link == WORLD or mass == 0.0:
            continue
        if "gravcomp" in source.ignore:
            source.refuse("gravcomp", f"link '{link}'", f"gravcomp {model.body_gravcomp[body]:g}")
        else:
            centre, _ = after((at[0], at[1]), (np.array(model.body_ipos[body]), np.eye(3)))
            out.append((link, centre, mass))
    return tuple(out)
