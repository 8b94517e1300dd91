"""Meshes of the reference tables, and simple broad phases, for tests of contact between meshes."""

from pathlib import Path

import numpy as np
import pytest

from add.contact.surfaces import ContactSurface

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "specs" / "deformables" / "reference"


def table(name: str) -> np.lib.npyio.NpzFile:
    """Return a table of the reference, or skip."""
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return np.load(path)


def all_pairs(surface: ContactSurface, x: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Every vertex with every face, every edge with every other: a broad phase that misses nothing."""
    vf = np.stack(np.meshgrid(np.arange(surface.n_points), np.arange(surface.n_faces), indexing="ij"), axis=-1)
    return vf.reshape(-1, 2), np.stack(np.triu_indices(surface.n_edges, 1), axis=1)
