"""A further collision shape is one file: `tests/support/torus.py` goes everywhere without a change elsewhere.

Shapes are branches of compiled functions, so that a further one has to be there before anything is compiled: the checks
run in a process of their own, whose kernels are compiled (or, quickly, interpreted) with it.
"""

import os
import subprocess
import sys

import pytest
from support.places import ROOT

from add.geometry.shapes import Shape, add_shape, shape_of
from add.kernels import distance
from add.kernels.shape_codes import DistanceKernel, add_distance


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_torus_goes_everywhere(tmp_path, compiled):
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}",
        "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
    }
    command = [sys.executable, str(ROOT / "tests" / "support" / "torus.py"), str(tmp_path)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-3000:]
    assert "all right" in found.stdout


def test_shapes_are_added_before_kernels():
    none = DistanceKernel(9, *[distance.distance_inside] * 4)
    with pytest.raises(RuntimeError, match="before anything"):
        add_distance(none)
    box = shape_of(distance.BOX)
    with pytest.raises(ValueError, match="needs a kernel"):
        add_shape(Shape("other", 9, box.gaps, box.hull))
    with pytest.raises(Exception, match="unknown kind of shape"):
        shape_of(9)
