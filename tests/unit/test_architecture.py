"""The rules of docs/architecture.md that can be read off the source text."""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.places import ROOT

from scripts.mutations import MUTATIONS

PACKAGE = ROOT / "add"

# Lowest first: a layer imports only itself, layers on earlier lines, and `errors`.
ORDER = (
    "errors",
    "machine",
    "typing",
    "summary",
    "kernels",
    "laws",
    "materials",
    "geometry",
    "linalg",
    "cones",
    "equations",
    "terms",
    "joints",
    "bodies",
    "contact",
    "model",
    "compiled",
    "solve",
    "simulation",
    "hard_contact",
    "objectives",
    "adjoint",
    "mocap",
    "inverse",
    "control",
    "ties",
    "io",
    "scene",
    "view",
    "plot",
    "jax",
    "torch",
    "gym",
    "commands",
    "testing",
    "extensions",
)
FACADE = "__init__"  # `import add` itself: re-exports anything
FACADE_MODULE = "add"
ANYTHING = {FACADE, "__main__"}

# Narrower than the order: who alone may import these.
ONLY_FOR = {
    "io": {"scene", "commands", "view", "plot"},  # no physics reads or writes files
    "scene": {
        "commands",
        "view",
        "plot",
        "testing",
        "jax",
        "torch",
        "gym",
        "extensions",
    },  # strings become objects once
    "commands": set(),
    "view": {"commands", "gym"},  # environments draw themselves
    "plot": {"commands"},
    "testing": {"commands"},
}
# Pairs that the order would allow: siblings stay apart.
FORBIDDEN = {("contact", "terms")}


def layer(module: str) -> str:
    """'add.terms.elastic' -> 'terms'; 'add' -> '__init__'."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else FACADE


def module_name(path: Path) -> str:
    parts = list(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(nodes: Iterable[ast.AST], module: str, is_package: bool, layers: set[str]) -> list[tuple[int, str]]:
    """(line, module of add) of every import, also of those inside functions and under TYPE_CHECKING."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                anchor = parts[: len(parts) - node.level + is_package]
                base = ".".join([*anchor, base] if base else anchor)
            if base == "add":  # from add import terms, load_scene
                for alias in node.names:
                    if alias.name in layers:
                        found.append((node.lineno, f"add.{alias.name}"))
                    elif alias.name != "__version__":  # a constant, safe from anywhere
                        found.append((node.lineno, "add"))
            else:
                found.append((node.lineno, base))
    return [(line, name) for line, name in found if name.split(".")[0] == "add"]


def complaint(importer: str, imported: str) -> str | None:
    """Why layer `importer` may not import layer `imported`; None if it may."""
    if importer in ANYTHING or imported in (importer, "errors"):
        return None
    if imported == FACADE:
        return "imports the facade `add`; import the module that defines the name"
    if imported not in ORDER or importer not in ORDER:
        return None  # test_every_module_has_a_layer complains
    if ORDER.index(imported) > ORDER.index(importer):
        return f"{importer} is below {imported}"
    if (importer, imported) in FORBIDDEN:
        return f"{importer} and {imported} are siblings"
    if importer not in ONLY_FOR.get(imported, {importer}):
        return f"{imported} is only for {', '.join(sorted(ONLY_FOR[imported] | ANYTHING))}"
    return None


SOURCES = sorted(PACKAGE.rglob("*.py"))
LAYERS = {layer(module_name(path)) for path in SOURCES} | set(ORDER)


@pytest.fixture(scope="module")
def nodes() -> dict[Path, list[ast.AST]]:
    """All nodes of each file, its module first: they are parsed and walked once."""
    return {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in SOURCES}


@pytest.fixture(scope="module")
def trees(nodes) -> dict[Path, ast.Module]:
    return {path.relative_to(ROOT): walked[0] for path, walked in nodes.items()}


def test_every_module_has_a_layer():
    unknown = {name for name in map(layer, map(module_name, SOURCES)) if name not in ORDER and name not in ANYTHING}
    assert not unknown, f"not in ORDER of this test and the table of docs/architecture.md: {sorted(unknown)}"


def test_imports_go_down(nodes):
    wrong = []
    for path, walked in nodes.items():
        module = module_name(path)
        for line, imported in imports(walked, module, path.stem == "__init__", LAYERS):
            why = complaint(layer(module), layer(imported))
            if why:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {imported}: {why}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "source", "allowed"),
    [
        ("add.terms.elastic", "from add.materials import material", True),
        ("add.terms.elastic", "from ..system import Term", True),
        ("add.terms.elastic", "from .gravity import Gravity", True),
        ("add.kernels.deformation", "from add.errors import InputError", True),
        ("add.io.trajectory_file", "from add import __version__", True),
        ("add.commands.cli", "import add.view.window", True),
        ("add.kernels.deformation", "from add.equations.term import Term", False),
        ("add.geometry.elements", "def f():\n    from add.terms import elastic", False),
        ("add.geometry.elements", "from add import terms", False),
        ("add.geometry.elements", "from .. import terms", False),
        ("add.terms.elastic", "from add.contact.term import Contact", False),
        ("add.contact.term", "from ..terms.elastic import Elastic", False),
        ("add.adjoint.reverse", "import add.io.trajectory_file", False),
        ("add.testing", "import add.io.trajectory_file", False),
        ("add.scene.build.scene", "from add import load_scene", False),
    ],
)
def test_the_rule_itself(module, source, allowed):
    found = imports(ast.walk(ast.parse(source)), module, is_package=False, layers=LAYERS)
    assert found or source.endswith("__version__")
    whys = [complaint(layer(module), layer(imported)) for _, imported in found]
    assert all(why is None for why in whys) is allowed, whys


def test_setup_cfg_packages_everything():
    from setuptools import find_packages
    from setuptools.config.setupcfg import read_configuration

    sections = read_configuration(ROOT / "setup.cfg")["options"]
    folders = {module_name(path) for path in SOURCES if path.stem == "__init__"}
    assert set(sections["packages"]) == folders
    assert set(find_packages(str(ROOT), include=["add", "add.*"])) == folders
    bare = {str(path.parent.relative_to(ROOT)) for path in SOURCES if not (path.parent / "__init__.py").exists()}
    assert not bare, f"folders of modules without __init__.py are not packaged: {sorted(bare)}"
    assert "py.typed" in sections["package_data"]["add"]
    assert (PACKAGE / "py.typed").is_file()


def test_version_is_said_once(trees):
    values = [
        node.value.value
        for node in trees[Path("add/__init__.py")].body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if [ast.unparse(target) for target in node.targets] == ["__version__"]
    ]
    assert len(values) == 1, "pyproject.toml reads a literal __version__ from add/__init__.py"
    assert isinstance(values[0], str)


def test_no_state_in_modules(nodes):
    """Caches and registries filled at run time make two simulations meet. CAPITALS are tables that nobody changes."""
    mutable = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    makers = {"dict", "list", "set", "defaultdict", "OrderedDict", "deque", "Counter", "WeakKeyDictionary"}
    wrong = []
    for path, walked in nodes.items():
        if layer(module_name(path)) in ("scene", "commands"):
            continue
        for node in walked[0].body:
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign):
                targets = [node.target]
            else:
                continue
            value = node.value
            called = value.func if isinstance(value, ast.Call) else None
            maker = ast.unparse(called).rsplit(".", 1)[-1] if called is not None else ""
            if not isinstance(value, mutable) and maker not in makers:
                continue
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            wrong += [f"{path}:{node.lineno}: {name}" for name in names if not name.isupper() and name != "__all__"]
        wrong += [f"{path}:{node.lineno}: global" for node in walked if isinstance(node, ast.Global)]
    assert not wrong, "\n".join(wrong)


def test_nothing_prints(nodes):
    wrong = [
        f"{path}:{node.lineno}"
        for path, walked in nodes.items()
        if layer(module_name(path)) != "cli"
        for node in walked
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not wrong, "log with `logging`, or let the command line print:\n" + "\n".join(wrong)


def test_import_loads_no_viewer():
    """`import add` stays quick and works without a display: pyvista and matplotlib come when something is drawn."""
    code = "import sys, add; print(*({'pyvista', 'vtk', 'vtkmodules', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.strip(), f"`import add` loads {done.stdout.strip()}"


# --- size ----------------------------------------------------------------------------------------------------------

MOST_LINES, MOST_ROOT_MODULES = 400, 8
MOST_ARGUMENTS = 10


def test_files_are_short(trees):
    long = {str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in trees}
    long = {path: lines for path, lines in long.items() if lines > MOST_LINES}
    assert not long, f"more than {MOST_LINES} lines: {long}"


def test_few_modules_stand_at_the_root():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_ROOT_MODULES


def test_argument_lists_are_short(nodes):
    """Those of compiled functions, too; a NamedTuple counts as one."""
    wrong = []
    for path, walked in nodes.items():
        for node in walked:
            if isinstance(node, ast.FunctionDef):
                names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
                count = len(names) - (names[:1] in (["self"], ["cls"]))
                if count > MOST_ARGUMENTS:
                    wrong.append(f"{path}:{node.lineno}: {node.name} takes {count} positional arguments")
    assert not wrong, "\n".join(wrong)


# --- imports between files -----------------------------------------------------------------------------------------


def test_no_private_name_crosses_rooms(nodes):
    wrong = []
    for path, walked in nodes.items():
        room = layer(module_name(path))
        for node in walked:
            if isinstance(node, ast.ImportFrom) and layer(node.module or "") != room:
                wrong += [
                    f"{path}:{node.lineno}: {node.module}.{alias.name}"
                    for alias in node.names
                    if alias.name.startswith("_") and not alias.name.startswith("__")
                ]
    assert not wrong, "\n".join(wrong)


def circle_of(graph: dict[str, set[str]]) -> list[str]:
    """One circle of a graph; empty if it has none."""
    state: dict[str, int] = {}
    path: list[str] = []

    def visit(node: str) -> list[str]:
        state[node] = 1
        path.append(node)
        for other in sorted(graph.get(node, ())):
            if state.get(other) == 1:
                return [*path[path.index(other) :], other]
            if other not in state and (found := visit(other)):
                return found
        path.pop()
        state[node] = 2
        return []

    for node in sorted(graph):
        if node not in state and (found := visit(node)):
            return found
    return []


def test_circles_are_found():
    assert circle_of({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert circle_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_import_circles(nodes):
    """None between files, also none that an import within a function or for type checking hides."""
    modules = {module_name(path): path for path in SOURCES}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        graph[module] = set()
        for node in nodes[path]:
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "add":
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                graph[module] |= {name if name in modules else node.module or "" for name in named}
            elif isinstance(node, ast.Import):
                graph[module] |= {alias.name for alias in node.names if alias.name in modules}
        # The facade: `from add import __version__` is a constant, and __init__ itself imports on first use.
        graph[module] -= {module, FACADE_MODULE}
    graph[FACADE_MODULE] = set()
    found = circle_of(graph)
    assert not found, " -> ".join(found)


def test_places_of_seeded_faults_are_there():
    """Where code moved away from under a line of the list, the list ended in an error, hours into its run."""
    texts = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path.read_text(encoding="utf-8") for path in SOURCES}
    lost = [f"{one.file}: {one.old}" for one in MUTATIONS if texts.get(one.file, "").count(one.old) != 1]
    assert not lost, "scripts/mutations.txt names what does not stand once in the program:\n" + "\n".join(lost)
