"""Compiled functions on disk: they are taken anew where any compiled function of the program has changed."""

import importlib.util
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import add
from add.kernels.caching import is_kept

PACKAGE = Path(add.__file__).parent


def copied(folder, *rooms):
    """Copy some rooms of the package, without what is compiled already."""
    ignored = shutil.ignore_patterns("__pycache__")
    if not rooms:
        shutil.copytree(PACKAGE, folder / "add", ignore=ignored)
        return
    (folder / "add").mkdir()
    shutil.copy(PACKAGE / "errors.py", folder / "add")
    (folder / "add" / "__init__.py").write_text("")
    for room in rooms:
        shutil.copytree(PACKAGE / room, folder / "add" / room, ignore=ignored)


def printed(folder, code):
    env = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=env | {"PYTHONPATH": str(folder)}, capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_changed_function_counts_for_those_that_call_it(tmp_path):
    """`turn_derivative` of one file is called by a kernel of another, which numba alone would not compile again."""
    copied(tmp_path, "kernels")
    code = (
        "import numpy as np, add\n"
        "from add.kernels.initial_pose import nodes_pose_vjp as f\n"
        "i, out = np.arange(12).reshape(4, 3), np.zeros(12)\n"
        "f(np.ones((1, 3)), np.zeros(3), 0, np.linspace(0, 1, 12), *i, np.ones(3), np.ones(3), out)\n"
        "print(add.__file__, f.stats.cache_hits.total(), out[3])"
    )
    first = printed(tmp_path, code)
    assert first[0] == str(tmp_path / "add" / "__init__.py")
    again = printed(tmp_path, code)
    assert (first[1], again[1]) == ("0", "1") and first[2] == again[2], "what is unchanged comes from the cache"
    law = tmp_path / "add" / "kernels" / "rotation.py"
    text = law.read_text()
    law.write_text(text.replace("    return np.eye(3) + b * k + c * (k @ k)\n", "    return 2.0 * np.eye(3)\n"))
    assert law.read_text() != text
    changed = printed(tmp_path, code)
    assert changed[1] == "0" and float(changed[2]) != float(first[2])


DOUBLE = "from add.kernels.caching import njit\n\n@njit(cache=True)\ndef double(x):\n    return 2.0 * x\n"


def fresh(folder):
    """Return a small kernel as a new process would find it."""
    path = folder / "small_kernel.py"
    if not path.exists():
        path.write_text(DOUBLE)
    spec = importlib.util.spec_from_file_location("small_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def loaded(folder):
    """Call the kernel; return whether it came from the disk."""
    double = fresh(folder)
    assert double(1.5) == 3.0
    return bool(double.stats.cache_hits)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("spoil", [cut, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"\x80junk")])
def test_a_damaged_file_is_compiled_anew(tmp_path, caplog, suffix, spoil):
    assert [loaded(tmp_path), loaded(tmp_path)] == [False, True]
    (path,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    spoil(path)
    assert is_kept(fresh(tmp_path), (numba.float64,)) is (suffix == "nbc")
    assert not loaded(tmp_path)
    (said,) = caplog.messages
    assert "compiled anew" in said and str(tmp_path) in said
    assert loaded(tmp_path), "it was kept again"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_deleted_file_is_compiled_anew(tmp_path, caplog, suffix):
    assert [loaded(tmp_path), loaded(tmp_path)] == [False, True]
    (path,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    path.unlink()
    assert [loaded(tmp_path), loaded(tmp_path)] == [False, True] and not caplog.messages


def test_where_nothing_can_be_written(tmp_path, monkeypatch, caplog):
    """A folder that was closed later, and none at all: kernels run, and one line says that they are not kept."""

    def closed(self, path):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", closed)
        assert not loaded(tmp_path) and not loaded(tmp_path)
    (said,) = caplog.messages
    assert "not kept" in said and "Permission denied" in said
    assert not loaded(tmp_path) and loaded(tmp_path)
    cut(next((tmp_path / "__pycache__").glob("*.nbi")))
    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", closed)
        assert not loaded(tmp_path), "damaged, and not to be mended"
    assert "damaged" in caplog.messages[1]
    monkeypatch.setattr("numba.core.caching.CompileResultCacheImpl._locator_classes", [])
    assert not loaded(tmp_path) and not is_kept(fresh(tmp_path), (numba.float64,))
    assert len(caplog.messages) == 3 and "not kept" in caplog.messages[2]


@pytest.mark.slow
def test_a_changed_law_changes_a_scene(tmp_path):
    """Without friction a sliding box goes farther; nothing was cleared in between."""
    copied(tmp_path)
    cube = {"type": "rigid", "mass": 1.0, "geometry": {"shape": "box", "size": [0.1] * 3}}
    floor = {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}
    scene = {
        "schema": "add-scene/1",
        "time": {"dt": 0.01, "duration": 0.1},
        "bodies": {"b": cube | {"position": [0, 0, 0.05], "velocity": [1.0, 0, 0]}},
        "obstacles": {"floor": floor},
        "contact": {"stiffness": 1e4, "friction": 0.5, "damping_ramp": 0.001},
    }
    code = f"import add; print(add.scene_from_dict({scene}).build().run().q[-1][0])"
    first = float(printed(tmp_path, code)[0])
    law = tmp_path / "add" / "kernels" / "contact_laws.py"
    text = law.read_text()
    start = text.index("def friction_law(")
    body = re.sub(r"(?m)^( +)return .*$", r"\1return 0.0, 0.0, 0.0", text[start:])
    law.write_text(text[:start] + body)
    without = float(printed(tmp_path, code)[0])
    assert without == pytest.approx(0.1, rel=1e-6) and first < without - 0.005


def test_no_module_compiles_without_the_stamp():
    """`numba.njit` with a cache belongs to one file alone."""
    assert not [
        str(path)
        for path in PACKAGE.rglob("*.py")
        if path.name != "caching.py" and re.search(r"from numba import .*njit|numba\.njit", path.read_text())
    ]


def test_variants_of_one_text_are_kept_apart(tmp_path):
    """The loops of each elastic law come from the cache in the next process, each those of its own law."""
    copied(tmp_path, "kernels", "materials")
    shutil.copy(PACKAGE / "typing.py", tmp_path / "add")
    code = (
        "import numpy as np\n"
        "from add.materials import MATERIALS, element_loops\n"
        "for law in MATERIALS[:1] + MATERIALS[2:]:\n"
        "    f = element_loops(law).linear_moduli\n"
        "    print(f(np.array([[1.0, 2.0, 3.0][: len(law.parameters)]]))[0][0, 0], f.stats.cache_hits.total())"
    )
    first, again = printed(tmp_path, code), printed(tmp_path, code)
    assert first == ["1.0", "0", "1.0", "0", "6.0", "0"]
    assert again == ["1.0", "1", "1.0", "1", "6.0", "1"]


def test_what_other_kernels_left_is_not_read(tmp_path, monkeypatch):
    """An index of before may name classes that are gone: it counts as empty, and is written anew."""
    from add.kernels.rotation import turn

    left = tmp_path / "index.nbi"
    left.write_bytes(pickle.dumps(numba.__version__) + b"cadd.kernels.gone\nClass\n.")
    cache_file = turn._cache._cache_file
    monkeypatch.setattr(cache_file, "_index_path", str(left))
    assert cache_file._load_index() == {}
