"""Elastic laws at one point, and differences of their functions."""

import functools
from collections.abc import Callable

import numpy as np

from add.kernels.by_address import address
from add.materials import Material
from add.materials.formulas import LawFunctions, callees, law_by_parameters, law_energy, law_stress, law_tangent


@functools.cache
def called_one(law: Material, name: str) -> np.ndarray:
    """Return what calls one function of a law by its address, as loops do: each law is compiled for them alone."""
    k = LawFunctions._fields.index(name)
    return np.where(np.arange(k + 1) == k, address(callees(law)[k]), 0)


class Point:
    """One law with its moduli at one deformation."""

    def __init__(self, law: Material, p: np.ndarray, f: np.ndarray) -> None:
        self.law, self.p, self.f = law, np.ascontiguousarray(p, float), np.ascontiguousarray(f, float)
        self.jac = float(np.linalg.det(f))
        self.cof = np.ascontiguousarray(self.jac * np.linalg.inv(f).T)

    def energy(self) -> float:
        return law_energy(called_one(self.law, "energy"), self.p, self.f, self.cof, self.jac)

    def stress(self) -> np.ndarray:
        out = np.full((3, 3), np.nan)
        law_stress(called_one(self.law, "stress"), self.p, self.f, self.cof, self.jac, out)
        return out

    def tangent(self) -> np.ndarray:
        """dP_im/dF_jn as [i, m, j, n]."""
        blocks = np.full((3, 3, 3, 3), np.nan)
        law_tangent(called_one(self.law, "tangent"), self.p, self.f, self.cof, self.jac, blocks)
        for i, j in ((1, 0), (2, 0), (2, 1)):
            blocks[i, j] = blocks[j, i].T
        return blocks.transpose(0, 2, 1, 3)

    def by_parameters(self) -> np.ndarray:
        """dP_im/dp_k as [i, m, k]."""
        out = np.full((self.p.size, 3, 3), np.nan)
        law_by_parameters(called_one(self.law, "by_parameters"), self.p, self.f, self.cof, self.jac, out)
        return out.transpose(1, 2, 0)


def deformation(rng: np.random.Generator) -> np.ndarray:
    return np.eye(3) + 0.35 * rng.uniform(-1.0, 1.0, size=(3, 3))


def differences(function: Callable[[np.ndarray], object], x: np.ndarray, step: float) -> np.ndarray:
    """Fourth-order differences of a function by each entry of x; the last axes are those of x."""
    out = []
    for entry in np.ndindex(x.shape):

        def at(k: int, entry: tuple[int, ...] = entry) -> np.ndarray:
            moved = x.copy()
            moved[entry] += k * step
            return np.asarray(function(moved))

        out.append((at(-2) - at(2) + 8.0 * (at(1) - at(-1))) / (12.0 * step))
    return np.moveaxis(np.array(out), 0, -1).reshape(out[0].shape + x.shape)


def by_each(function: Callable[[np.ndarray], np.ndarray], p: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Differences of a function by each parameter, in steps that suit its size."""
    steps = 2.5e-4 * sizes
    return differences(lambda x: function(x * steps), p / steps, 1.0) / steps
