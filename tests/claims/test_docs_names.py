"""Names and paths on the pages exist; the picture of the rooms is that of the imports."""

import ast
import importlib
import re
from functools import cache

import pytest
from support.places import ROOT

from scripts.draw_architecture import PICTURE, ROOMS, arrows, circle_free, draw, floors, stored

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs").rglob("*.md"))),
]
#: Written by a reader who follows the page.
MADE_BY_READERS = {"benchmarks/results/latest.json", "add/kernels/drag.py", "add/terms/drag.py"}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page):
    """Files and folders of the project that a page names between backticks."""
    found = re.findall(r"`((?:add|tests|scripts|scenes|benchmarks|docs|data)/[\w./*<>-]*)`", text_of(page))
    missing = [
        path
        for path in found
        if path not in MADE_BY_READERS and not re.search(r"[*<>]", path) and not (ROOT / path).exists()
    ]
    assert not missing, f"{page}: {missing}"


@cache
def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one (also a field of a class)."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            fields = {*getattr(thing, "__annotations__", {}), *getattr(thing, "model_fields", {})}
            if not hasattr(thing, part):
                return part in fields
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES)
def test_dotted_names_exist(page):
    names = set(re.findall(r"`(add(?:\.\w+)+)", text_of(page)))
    missing = sorted(name for name in names if not resolves(name))
    assert not missing, f"{page}: {missing}"


def test_the_docstring_of_the_package_is_a_map():
    import add

    lines = add.__doc__.splitlines()
    assert len(lines) <= 32
    rooms = set(re.findall(r"add\.([a-z]\w+)", add.__doc__)) - set(add.__all__)  # add.torch loads only with PyTorch
    assert not [room for room in rooms if not list((ROOT / "add").glob(f"{room}*"))]
    table = [line for line in lines if re.match(r"    \w+ {2,}", line) and "add." not in line]
    named = [word for row in table for word in re.findall(r"\b[a-z]+_[a-z_]+\b|\b[A-Z]\w+\b", row[18:])]
    assert len(named) > 15 and set(named) <= set(add.__all__)


def test_docstrings_name_things_that_exist():
    """Names between backticks in docstrings and comments of the package, the tests and the scripts."""
    wrong = []
    for folder in ("add", "tests", "scripts", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in set(re.findall(r"`(add(?:\.\w+)+)`", path.read_text(encoding="utf-8"))):
                if not resolves(name):
                    wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert not wrong, "\n".join(wrong)


def test_the_reference_has_all_that_add_exports():
    """Each name under its own heading, from the module that defines it."""
    import add

    found = dict(
        re.findall(r"^::: (\S+)\n    options:\n      heading: add\.(\w+)$", text_of("docs/api.md"), re.MULTILINE)
    )
    assert set(found.values()) == set(add.__all__) - {"__version__"}
    for home, name in found.items():
        module, _, attribute = home.rpartition(".")
        assert attribute == name and getattr(importlib.import_module(module), name) is getattr(add, name)


# --- docs/architecture.md ------------------------------------------------------------------------------------------


def test_questions_lead_to_names():
    """Every answer of "Where is it?" links to a file in which the name is defined or imported from."""
    section = text_of("docs/architecture.md").split("## Where is it?")[1].split("\n## ")[0]
    answers = re.findall(r"\[`(\w+)` in ([\w/.]+)\]\(\.\./([\w/.]+)\)", section)
    assert len(answers) >= 6
    for name, shown, target in answers:
        assert shown == target
        tree = ast.parse((ROOT / target).read_text(encoding="utf-8"))
        names = {getattr(node, "name", None) for node in ast.walk(tree)}
        names |= {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert name in names, f"{name} is not in {target}"


def test_every_room_has_a_row_and_words():
    rooms = set(arrows())
    assert set(ROOMS) >= rooms
    page = text_of("docs/architecture.md")
    missing = [room for room in rooms if f"`add/{room}/`" not in page and f"`add/{room}.py`" not in page]
    assert not missing, missing


def test_the_picture_is_that_of_the_imports():
    assert stored() == arrows(), "run python -m scripts.draw_architecture"
    assert PICTURE.read_text(encoding="utf-8") == draw(), "run python -m scripts.draw_architecture"


def test_rooms_import_down_only():
    assert circle_free(arrows())
    assert floors({"a": ["b"], "b": []}) == [["b"], ["a"]]
    assert not circle_free({"a": ["b"], "b": ["a"]})
