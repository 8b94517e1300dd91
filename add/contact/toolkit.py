"""The IPC Toolkit (`ipctk`): imported when first asked for, on one thread."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from add.typing import BoolArray, FloatArray, IntArray


@cache
def toolkit() -> Any:
    """Return the module; it takes a third of a second, which a run without meshes that meet need not pay.

    Its number of threads is one for the whole process, like that of BLAS.
    """
    import ipctk

    ipctk.set_num_threads(1)
    ipctk.set_logger_level(ipctk.LoggerLevel.off)
    return ipctk


def collision_mesh(edges: IntArray, faces: IntArray, body: IntArray, meets: BoolArray) -> Any:
    """Return surfaces as the toolkit takes them; bodies that do not meet do not collide."""
    kit = toolkit()
    # Places at rest matter for areas only, which are not asked for.
    rest = np.zeros((body.size, 3), order="F")
    rest[:, 0] = np.arange(body.size)
    mesh = kit.CollisionMesh(rest, np.asfortranarray(edges, np.int32), np.asfortranarray(faces, np.int32))
    mesh.can_collide = _filter(kit, body, meets)
    return mesh


def _filter(kit: Any, body: IntArray, meets: BoolArray) -> Any:
    own = np.diagonal(meets)
    others = meets | np.eye(meets.shape[0], dtype=bool)
    if others.all():
        # Points of one patch do not collide; those of a body that meets itself are patches of their own.
        patch = np.where(own[body], own.size + np.arange(body.size), body)
        return kit.make_vertex_patches_filter(patch.astype(np.int32))

    # Asked for primitives whose boxes overlap only.
    return kit.CollisionFilter(lambda a, b: bool(meets[body[a], body[b]]))


def free_share(mesh: Any, x0: FloatArray, x1: FloatArray, least: float = 0.0) -> float:
    """Return the share of straight ways that is free of collisions, by additive CCD (Li, Kaufman, Jiang 2021).

    Every pair keeps the distance ``least`` [m] and a tenth of what it has beyond it at the beginning; a pair that has
    less stops everything.
    """
    kit = toolkit()
    begin, end = np.asfortranarray(x0), np.asfortranarray(x1)
    found = kit.Candidates()
    found.build(mesh, begin, end, 0.5 * least, kit.LBVH())
    return float(found.compute_collision_free_stepsize(mesh, begin, end, least, kit.AdditiveCCD()))
