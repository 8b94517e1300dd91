"""Compiled functions on disk: they are taken anew where something behind them has changed, and only there."""

import ast
import dis
import importlib.util
import inspect
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import config
from support.interpreters import Interpreters

import add
from add.kernels import caching, stamps as stamping
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


@pytest.fixture(scope="module")
def forked():
    """`printed`, by interpreters that have loaded numba."""
    interpreters = Interpreters()
    yield interpreters.printed
    interpreters.end()


def printed(folder, code):
    """Run a program in a new interpreter; return the words that it prints."""
    env = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=env | {"PYTHONPATH": str(folder)}, capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_changed_function_counts_for_those_that_call_it(tmp_path):
    """`turn` of one file is called by a kernel of another, which numba alone would not compile again."""
    copied(tmp_path, "kernels")
    code = (
        "import numpy as np, add\n"
        "from add.kernels.rigid_inertia import rigid_momentum as f\n"
        "i, x = np.arange(6)[None], np.linspace(0.1, 1.0, 6)\n"
        "energy = f(x, i[0, :1], i[0, :1], i, x, x[::-1].copy(), np.zeros(6))\n"
        "print(add.__file__, f.stats.cache_hits.total(), energy)"
    )
    first = printed(tmp_path, code)
    assert first[0] == str(tmp_path / "add" / "__init__.py")
    again = printed(tmp_path, code)
    assert (first[1], again[1]) == ("0", "1") and first[2] == again[2], "what is unchanged comes from the cache"
    law = tmp_path / "add" / "kernels" / "rotation.py"
    text = law.read_text()
    law.write_text(text.replace("    out[0] = u[0] + b * x0 + c * y0\n", "    out[0] = u[0]\n"))
    assert law.read_text() != text
    changed = printed(tmp_path, code)
    assert changed[1] == "0" and float(changed[2]) != float(first[2])


def test_what_another_process_compiles_is_not_waited_for_where_nobody_wants_to(tmp_path):
    copied(tmp_path, "kernels")
    code = (
        "import fcntl, numpy as np\n"
        "from numba import typeof\n"
        "from add.kernels.caching import executable\n"
        "from add.kernels.rotation import rotation_matrix as f\n"
        "kinds = (typeof(np.zeros(3)),)\n"
        "with open(f'{f.executables_kept._cache_file._index_path}.code.lock', 'wb') as file:\n"
        "    fcntl.flock(file, fcntl.LOCK_EX)\n"
        "    print(executable(f, kinds, wait=False))\n"
        "print(executable(f, kinds, wait=False).signature.args == kinds, f(np.zeros(3))[0, 0])"
    )
    (tmp_path / "add" / "kernels" / "__pycache__").mkdir(exist_ok=True)
    assert printed(tmp_path, code) == ["None", "True", "1.0"]


def test_what_is_kept_is_loaded_without_its_intermediate_code_and_still_compiled_into_callers(tmp_path, forked):
    """Python calls machine code alone; a caller that is compiled reads the callee's intermediate code then."""
    copied(tmp_path, "kernels")
    (tmp_path / "own.py").write_text(
        "from add.kernels.caching import njit\n"
        "@njit(cache=True)\ndef half(x):\n    return 0.5 * x\n"
        "@njit(cache=True)\ndef hashed(s):\n    return hash(s)\n"
        "@njit\ndef quarter(x):\n    return half(half(x))\n"
    )
    code = "import own\nprint(own.hashed('a') == hash('a'), own.half(6.0), own.half.stats.cache_hits.total())"
    assert forked(tmp_path, code) == ["True", "3.0", "0"]
    code += "\nprint(len(own.half.executables), len(own.half.overloads), own.quarter(6.0), len(own.half.overloads))"
    assert forked(tmp_path, code) == ["True", "3.0", "1", "1", "0", "1.5", "1"]


def test_what_python_calls_returns_arrays_and_errors_whoever_compiled_it(tmp_path, forked):
    """Machine code that is made of intermediate code from the disk counts references like that of fresh one."""
    copied(tmp_path, "kernels")
    (tmp_path / "own.py").write_text(
        "from typing import NamedTuple\n"
        "import numpy as np\n"
        "from add.kernels.caching import njit\n"
        "class Two(NamedTuple):\n    one: object\n    other: object\n"
        "@njit(cache=True)\ndef inner(n):\n    return Two(np.ones(n), np.arange(n))\n"
        "@njit(cache=True)\ndef outer(n):\n"
        "    if n < 0:\n        raise ValueError('negative')\n    return inner(n).one.sum()\n"
    )
    assert forked(tmp_path, "import own; print(own.outer(3))") == ["3.0"]
    code = "import own, sys; a = own.inner(2); print(sys.getrefcount(a.one), type(a) is own.Two, a.one, a.other)"
    code += "\ntry:\n    own.outer(-1)\nexcept ValueError as error:\n    print(error)"
    for _ in range(2):  # made, then kept
        assert forked(tmp_path, code) == ["2", "True", "[1.", "1.]", "[0", "1]", "negative"]


def test_machine_code_counts_references_without_calls():
    @caching.njit
    def greatest(rows):
        best = rows[0]
        for k in range(1, rows.shape[0]):
            if rows[k, 0] > best[0]:
                best = rows[k]
        return best

    rows = np.array([[1.0, 2.0], [5.0, 3.0], [4.0, 9.0]])
    found = greatest(rows)
    assert found.tolist() == [5.0, 3.0]
    (made,) = greatest.executables.values()
    code = made.library._get_compiled_object()
    assert b"NRT_MemInfo_call_dtor" in code, "references are counted"
    assert b"NRT_incref" not in code and b"NRT_decref" not in code


STAMPS = """
import importlib, pathlib
from numba.core.dispatcher import Dispatcher
from add.kernels.stamps import stamp
for path in sorted(pathlib.Path("add").rglob("*.py")):
    module = importlib.import_module(".".join(path.with_suffix("").parts))
    for name, value in vars(module).items():
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
            print(f"{module.__name__}.{name}", stamp(value))
"""


def stamps(folder, printed=printed):
    found = printed(folder, STAMPS)
    return dict(zip(found[::2], found[1::2], strict=True))


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The stamps of the kernels as they are."""
    folder = tmp_path_factory.mktemp("before")
    copied(folder, "kernels")
    return stamps(folder)


def changed(forked, before, folder, file, old, new):
    """Return the functions whose stamps an edit changes."""
    path = folder / "add" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    after = stamps(folder, forked)
    path.write_text(text)
    assert before.keys() == after.keys() and len(before) > 200
    return {name for name in before if before[name] != after[name]}


def callers(folder, wanted):
    """Return what calls a function, directly or not, as its text says: names of functions, and imports."""
    calls = {}
    for path in (folder / "add").rglob("*.py"):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        tree = ast.parse(path.read_text())
        known = {one.name: f"{module}.{one.name}" for one in tree.body if isinstance(one, ast.FunctionDef)}
        for one in ast.walk(tree):
            if isinstance(one, ast.ImportFrom):
                known |= {name.asname or name.name: f"{one.module}.{name.name}" for name in one.names}
        for one in tree.body:
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):  # made by a function of this file
                known |= {name.id: f"{module}.{name.id}" for name in ast.walk(one.targets[0]) if hasattr(name, "id")}
            if isinstance(one, ast.FunctionDef):
                names = {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
                calls[f"{module}.{one.name}"] = {known[name] for name in names if name in known}
    found, more = set(), {wanted}
    while more:
        found |= more
        more = {name for name, called in calls.items() if called & found} - found
    return found


def test_a_law_changes_those_that_reach_it_and_no_others(forked, before, tmp_path):
    copied(tmp_path, "kernels")
    law = "add.kernels.contact_laws.friction_law"
    found = changed(
        forked, before, tmp_path, "kernels/contact_laws.py", "    if law == LINEAR", "    if law + 0 == LINEAR"
    )
    assert found == callers(tmp_path, law) & before.keys()
    assert {
        law,
        "add.kernels.contact_bodies.body_contact_force",
        "add.kernels.mesh_contact.mesh_contact_force",
    } <= found
    assert not {name for name in found if re.search("joint|tree|cone|sites|rotation", name)} and len(found) < 60


def test_a_constant_counts_where_it_is_used(forked, before, tmp_path):
    copied(tmp_path, "kernels")
    found = changed(
        forked, before, tmp_path, "kernels/joint_laws.py", "AT, ALONG, APART = 0, 1, 2", "AT, ALONG, APART = 0, 1, 3"
    )
    assert found == {"add.kernels.joint_laws.loop_rows", "add.kernels.joint_laws.loop_curvature"}


def test_what_is_no_content_does_not_count(forked, before, tmp_path):
    """Comments, docstrings, lines, the time of a file."""
    copied(tmp_path, "kernels")
    path = "kernels/rotation.py"
    text = (tmp_path / "add" / path).read_text()
    assert not changed(forked, before, tmp_path, path, text, "# More.\n\n" + text.replace('"""Return', '"""Give'))
    code = "from add.kernels.rotation import turn as f; import numpy as np\n" \
           "o = np.ones(3); f(1.0, o, o, np.ones(6), o); print(f.stats.cache_hits.total())"  # fmt: skip
    assert forked(tmp_path, code) == ["0"]
    (tmp_path / "add" / path).write_text("\n\n" + text)
    os.utime(tmp_path / "add" / path, (1e9, 1e9))
    assert forked(tmp_path, code) == ["1"]


def test_callers_by_address_depend_on_types_alone():
    """The body of the equations is no part of what calls them; the fields of what they take and return are."""
    from add.compiled.routines import callees
    from add.compiled.steps import take_steps
    from add.compiled.walk import residual
    from add.contact.body_family import KIND, call_force
    from add.kernels import contact_laws, stamps

    def reached(function):
        known = [function]
        for one in known:
            known.extend(other for other in stamps._content(one)[1] if not any(other is there for there in known))
        return known

    law = contact_laws.friction_law
    callers = residual, take_steps, KIND.forces
    assert law in reached(call_force.callee.function) and not any(law in reached(caller) for caller in callers)
    text = stamps.types_text([*callees(False, False)[0].signature, callees(False, False)[0].result])
    assert "add.compiled.walk.Choices (('rows', 'ends'), {})" in text and "Tuple(Choices(" in text


def test_a_callee_that_returns_another_type_is_refused():
    from add.kernels.by_address import Callee, address

    double = numba.njit(lambda x: 2 * x)
    assert address(Callee(double, (numba.float64,), numba.float64)) > 0
    with pytest.raises(TypeError, match="returns int64; its callers expect float64"):
        address(Callee(double, (numba.int64,), numba.float64))


def test_a_callee_is_compiled_by_its_first_call():
    """What is raised then is raised by that call."""
    from add.kernels.by_address import when_called

    double, same = caching.njit(lambda x: 2 * x), caching.njit(lambda x: x)
    call = when_called(double, (numba.float64,), numba.float64)
    wrong = when_called(same, (numba.int64,), numba.float64)
    either = caching.njit(lambda x, y: call((x,)) if x > 0.0 else wrong((y,)) if y > 0 else x)
    assert either(-1.0, 0) == -1.0 and not double.executables
    assert (either(2.0, 0), either(3.0, 0)) == (4.0, 6.0) and len(double.executables) == 1
    for _ in range(2):
        with pytest.raises(TypeError, match="returns int64; its callers expect float64"):
            either(-1.0, 1)


SLOW = """
import pathlib, time
from numba.extending import intrinsic
from add.kernels.caching import njit

@intrinsic
def slow(context, x):
    pathlib.Path("begun").touch()
    time.sleep(2.0)
    return x(x), lambda context, builder, signature, values: values[0]

@njit(cache=True)
def double(x):
    return 2.0 * slow(x)

if __name__ == "__main__":
    double(1.5)
    print(sum(double.stats.cache_hits.values()))
"""


def at_once(folder):
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.Popen([sys.executable, "slow.py"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def test_two_processes_compile_a_function_once(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    both = [at_once(tmp_path), at_once(tmp_path)]
    assert sorted(one.communicate(timeout=60)[0].strip() for one in both) == ["0", "1"]


def test_nobody_waits_for_a_process_that_was_killed(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    first = at_once(tmp_path)
    while not (tmp_path / "begun").exists():
        assert first.poll() is None
        time.sleep(0.01)
    second = at_once(tmp_path)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    first.stdout.close()
    assert second.communicate(timeout=60)[0].strip() == "0"


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
    paths = list((tmp_path / "__pycache__").glob(f"*.{suffix}"))
    assert len(paths) == (1 if suffix == "nbi" else 2), "machine code, and what callers link"
    for path in paths:
        spoil(path)
    assert is_kept(fresh(tmp_path), (numba.float64,)) is (suffix == "nbc")
    assert not loaded(tmp_path)
    assert len(caplog.messages) == len(paths)
    assert all("compiled anew" in said and str(tmp_path) in said for said in caplog.messages)
    assert loaded(tmp_path), "it was kept again"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_deleted_file_is_compiled_anew(tmp_path, caplog, suffix):
    assert [loaded(tmp_path), loaded(tmp_path)] == [False, True]
    for path in (tmp_path / "__pycache__").glob(f"*.{suffix}"):
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


def test_variants_of_one_text_are_kept_apart(tmp_path, forked):
    """The functions of each elastic law come from the cache in the next process, each those of its own law."""
    copied(tmp_path, "kernels", "laws", "materials")
    shutil.copy(PACKAGE / "typing.py", tmp_path / "add")
    code = (
        "import numpy as np\n"
        "from add.materials import MATERIALS, formula_law\n"
        "written = [formula_law(f'{k}*a*(I1b - 3) + b*(J - 1)**2') for k in (1, 2)]\n"
        "for law in (*MATERIALS[:1], *MATERIALS[2:4], *written):\n"
        "    f, p = law.functions.linear_moduli, np.array([1.0, 2.0, 3.0][: len(law.parameters)])\n"
        "    print(f(p, np.zeros((2, p.size)))[0], f.stats.cache_hits.total())"
    )
    first, again = forked(tmp_path, code), forked(tmp_path, code)
    assert first == ["1.0", "0", "1.0", "0", "6.0", "0", "2.0", "0", "4.0", "0"]
    assert again == ["1.0", "1", "1.0", "1", "6.0", "1", "2.0", "1", "4.0", "1"]


FACTORS = """
import sys
from add.kernels.caching import njit
def made(factor):
    @njit
    def below(n, x):
        return factor * x if n == 0 else below(n - 1, x)
    @njit(cache=True, variant=str(factor))
    def above(n, x):
        return below(n, x)
    return above
print(*(made(float(word))(3, 1.0) for word in sys.argv[1:]))
"""


def test_functions_below_variants_are_those_of_their_own(tmp_path, forked):
    """Kept by two processes, which number their functions alike: a third one takes both, and each has its own."""
    copied(tmp_path, "kernels")
    script = tmp_path / "factors.py"
    script.write_text(FACTORS)
    code = "import runpy, sys; sys.argv = ['', {}]; runpy.run_path('factors.py')"
    assert [forked(tmp_path, code.format(f"'{word}'")) for word in "23"] == [["2.0"], ["3.0"]]
    assert forked(tmp_path, code.format("'2', '3'")) == ["2.0", "3.0"]


def test_what_other_kernels_left_is_not_read(tmp_path, monkeypatch):
    """An index of before may name classes that are gone: it counts as empty, and is written anew."""
    from add.kernels.rotation import turn

    left = tmp_path / "index.nbi"
    left.write_bytes(pickle.dumps(numba.__version__) + b"cadd.kernels.gone\nClass\n.")
    cache_file = turn._cache._cache_file
    monkeypatch.setattr(cache_file, "_index_path", str(left))
    assert cache_file._load_index() == {}


def test_kernels_of_a_wheel_are_for_its_processor(tmp_path, monkeypatch) -> None:
    """A wheel's marker asks for `x86-64-v3`, where the machine has it and nobody asked for another."""
    marker = tmp_path / "portable"
    for name in ("CPU_NAME", "CPU_FEATURES"):
        monkeypatch.setattr(config, name, None)
    caching._compile_for_wheels(marker)
    assert config.CPU_NAME is None
    marker.touch()
    monkeypatch.setattr(caching, "get_host_cpu_features", lambda: dict.fromkeys(caching._V3[1:], True))
    caching._compile_for_wheels(marker)
    assert config.CPU_NAME is None
    monkeypatch.setattr(caching, "get_host_cpu_features", lambda: dict.fromkeys(caching._V3, True))
    caching._compile_for_wheels(marker)
    assert (config.CPU_NAME, config.CPU_FEATURES) == ("x86-64-v3", "")
    monkeypatch.setattr(config, "CPU_NAME", "generic")
    caching._compile_for_wheels(marker)
    assert config.CPU_NAME == "generic"


def test_globals_are_those_of_the_disassembler() -> None:
    codes = [one.__code__ for one in vars(caching).values() if inspect.isfunction(one)]
    assert len(codes) > 10
    for code in codes:
        wanted = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"}
        assert stamping._loaded_globals(code) == wanted
