"""Tables of the reference for contact between meshes."""

from pathlib import Path

import numpy as np
import pytest

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "specs" / "deformables" / "reference"


def table(name: str) -> np.lib.npyio.NpzFile:
    """Return a table of the reference, or skip."""
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return np.load(path)
