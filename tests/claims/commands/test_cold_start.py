"""What the command line loads before it is needed, and what it says while kernels are compiled."""

import json
import os
import subprocess
import sys
import time

import numba
import pytest
from commands.test_cli import scene

from add.commands.ahead import first_compilation, kernel_clock
from add.commands.console import COMPILING

HEAVY = {"dask", "distributed", "h5py", "matplotlib", "meshio", "numba", "numpy", "pydantic", "pyvista", "scipy", "vtk"}


def heavy(code):
    """Which heavy packages a process has loaded after running the code."""
    ending = "import atexit, sys; atexit.register(lambda: print(chr(10), *sorted(sys.modules), file=sys.stderr))"
    done = subprocess.run([sys.executable, "-c", f"{ending}\n{code}"], capture_output=True, text=True, timeout=60)
    modules = done.stderr.splitlines()[-1].split()
    assert done.returncode == 0 and "add" in modules, done.stderr
    return HEAVY & set(modules)


@pytest.mark.parametrize("arguments", [["--help"], ["simulate", "--help"], ["sweep", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    assert heavy(f"from add.commands.cli import main; main({arguments})") == set()


def test_a_process_that_compiles_beside_a_run_is_begun_before_anything_heavy_is_loaded():
    assert heavy("from add.commands.beside import begin, nothing_kept; nothing_kept()") == set()


def test_import_loads_nothing_heavy():
    assert heavy("import add") == set()
    assert heavy("import add; dir(add); add.InputError") == set()
    assert {"numba", "pydantic"} <= heavy("import add; add.load_scene")


def test_first_compilation_is_told_once():
    said = []
    with first_compilation(lambda: said.append("now")):
        assert said == []
        assert numba.njit(lambda x: x + 1)(1) == 2 and said == ["now"]
        assert numba.njit(lambda x: x + 2)(1) == 3 and said == ["now"]
    assert numba.njit(lambda x: x + 3)(1) == 4 and said == ["now"]


def test_time_for_kernels_is_counted_once():
    inner = numba.njit(lambda x: x + 1)
    outer = numba.njit(lambda x: inner(x) + inner(x))  # compiles the inner one within
    with kernel_clock() as seconds:
        time.sleep(0.3)
        assert seconds() == 0.0
        begin = time.perf_counter()
        assert outer(1) == 4
        first, compiled = time.perf_counter() - begin, seconds()
        assert outer(2) == 6
        assert 0.5 * first < seconds() == compiled <= first


@pytest.mark.slow
def test_compiling_is_said_once(tmp_path):
    """A cache that is empty, and the same cache again."""
    raw = scene(("time.steps", 20), obstacles={}, markers={}, expect={})
    raw["bodies"] = {"ball": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.1}, "mass": 1.0}}
    (tmp_path / "scene.json").write_text(json.dumps(raw))
    command = [sys.executable, "-m", "add", "simulate", "scene.json", "--force"]
    for said in (f"{COMPILING}\n", ""):
        done = subprocess.run(
            command,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, said)
