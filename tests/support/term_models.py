"""Small soft models at strongly deformed and moving states, with random parameters."""

import numpy as np

from add.equations.kinematics import Kinematics
from add.geometry import HEX8, ElementFamily, SoftMesh, box_mesh
from add.kernels.rotation import rotation_matrix
from add.model import Model
from add.scene.spec.friction import CURVES


def rough_box(family: ElementFamily, seed: int) -> SoftMesh:
    """A small block with distorted elements."""
    divisions = (2, 1, 1) if family is HEX8 else (1, 1, 1)
    mesh = box_mesh((0.1, 0.08, 0.06), divisions, family)
    shift = 0.004 * np.random.default_rng(seed).normal(size=mesh.points.shape)
    return SoftMesh(mesh.points + shift, mesh.cells, family)


def deformed(model: Model, rng: np.random.Generator, noise: float = 0.003) -> Kinematics:
    """A strongly deformed, fast state: another large stretch and rotation for every body, and noise."""
    q = np.empty(model.system.n)
    for body in model.bodies:
        stretch = np.eye(3) + 0.25 * rng.uniform(-1.0, 1.0, size=(3, 3))
        turn = rotation_matrix(rng.normal(size=3))
        x = body.mesh.points @ (turn @ stretch).T + rng.normal(size=3) * 0.05
        model.system.dofs.view(q, body.name)[...] = x + noise * rng.normal(size=x.shape)
    v, a = rng.normal(size=q.size), 10.0 * rng.normal(size=q.size)
    return Kinematics(q, v, a, 0.0321, 7)


def random_theta(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Every parameter another number, none zero."""
    theta = rng.uniform(0.5, 1.5, size=model.system.parameters.n) * np.sign(rng.normal(size=model.system.parameters.n))
    sizes = {"mu": 1e4, "lambda": 3e4, "density": 300.0, "viscosity": 20.0, "rayleigh_mass": 2.0}
    sizes |= {
        "c10": 4e3,
        "c01": 2e3,
        "c20": 3e2,
        "c30": 40.0,
        "limit": 60.0,
        "kappa": 4e4,
        "rayleigh_stiffness": 0.003,
        "k_n": 1e4,
        "k_d": 30.0,
        "k_t": 50.0,
        "c_f": 0.4,
        "static_friction": 0.9,
        "stribeck_speed": 0.5,
        "thickness": 0.004,
        "growth": 0.3,
        "slow": 0.5,
    }
    sizes |= {number.name: 0.5 for curve in CURVES for number in curve.numbers if number.name not in sizes}
    for entry in model.system.parameters.entries:
        key = entry.name.split(".")[-1]
        if key in sizes:
            theta[entry.slice] = sizes[key] * np.abs(theta[entry.slice])
    return theta
