"""Files and packages that extend `add`: named on the command line or in the environment, or installed.

A scene never names code: whoever runs the command does. Processes that a command starts inherit the environment, and
with it what was named.
"""

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from add.errors import InputError

#: Files that are imported before a name that is not known is given up; separated as paths in PATH are.
VARIABLE = "ADD_EXTENSIONS"
#: Group of entry points of installed packages, each a module.
GROUP = "add.extensions"


def load_file(path: str | os.PathLike[str]) -> ModuleType:
    """Import a file that defines extensions, and let processes that are started from now on do the same.

    Its folder joins the path of modules, so that its objects travel to other processes.

    Raises
    ------
    InputError
        If there is no such file, its name is that of another module, or it cannot be imported.
    """
    file = Path(path).absolute()
    if os.pathsep in str(file):
        expected = f"a path without '{os.pathsep}', which separates paths in {VARIABLE}"
        raise InputError("no extension", file=str(path), found=f"'{file}'", expected=expected)
    module = _imported(file)
    files = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    if str(file) not in files:
        os.environ[VARIABLE] = os.pathsep.join([*files, str(file)])
    return module


def _imported(file: Path, place: str | None = None) -> ModuleType:
    if not file.is_file() or file.suffix != ".py":
        raise InputError("no extension", file=str(file), place=place, found="no Python file", expected="a file NAME.py")
    name = file.stem
    known = sys.modules.get(name)
    if known is not None and _file_of(known) == file.resolve():
        return known
    other = known or (importlib.util.find_spec(name) if name.isidentifier() else None)
    where = getattr(other, "origin", None) or getattr(other, "__file__", None)
    if not name.isidentifier() or (other is not None and (where is None or Path(where).resolve() != file.resolve())):
        found = f"'{name}'" + (", which another module has" if other is not None else "")
        raise InputError("an extension needs a name of its own", file=str(file), found=found, expected="my_law.py")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        return importlib.import_module(name)
    except InputError as error:
        error.file = error.file or str(file)
        raise
    except (Exception, SystemExit) as error:
        raise InputError("this extension cannot be imported", file=str(file), found=first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of what it says."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def failed_in(error: BaseException) -> str | None:
    """Return file and line of the extension that an error was raised in; None where it was in no extension's file."""
    named = {Path(file).resolve() for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).resolve() in named:
            return f"{frame.filename}:{frame.lineno}"
    return None


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)  # modules that are built in, or typed at a prompt, have none
    return Path(file).resolve() if file else None


@cache
def load_installed() -> None:
    """Import what the environment names and what is installed, once.

    Raises
    ------
    InputError
        If something cannot be imported.
    """
    for file in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _imported(Path(file).absolute(), VARIABLE)
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            message, found = "this installed extension cannot be imported", first_line(error)
            raise InputError(message, place=point.value, found=found) from error


def version_of(module_name: str) -> str:
    """Return the version of a module, where it says one, and the SHA-256 of its file."""
    module = sys.modules.get(module_name)
    file = _file_of(module) if module is not None else None
    digest = f"sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}" if file is not None and file.is_file() else ""
    return f"{getattr(module, '__version__', '')} {digest}".strip()
