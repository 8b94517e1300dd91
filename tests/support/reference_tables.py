"""Tables of the reference for contact between meshes."""

import numpy as np
import pytest
from support.places import SPECS

REFERENCE = SPECS / "deformables" / "reference"


def table(name: str) -> np.lib.npyio.NpzFile:
    """Return a table of the reference, or skip."""
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return np.load(path)
