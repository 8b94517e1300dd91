"""The stamp of a compiled function: a hash of all that it is made from.

Numba compiles bytecode and takes the values of globals and closures as constants. So a function's result follows from
its own bytecode and options, from those values, and from the functions among them in the same way, and so on: the
stamp holds this and no more. A change of another function, of a comment or of a line number leaves it as it is.
"""

import dis
import functools
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import extending
from numba.core import types
from numba.core.dispatcher import Dispatcher

#: Packages whose functions count by their names: numba's version is in the cache's own stamp.
_FOREIGN = frozenset(sys.stdlib_module_names) | {"llvmlite", "numba", "numpy", "scipy"}
_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]


def stamp(function: Any) -> str:
    """Return the hash of all that a compiled function is made from.

    Parameters
    ----------
    function : a dispatcher of numba, an intrinsic or a Python function
        Where the Python function has an attribute ``stamped``, a function without arguments, the text that it returns
        counts instead of the closure: a call by address depends on the callee's types, not on its body.

    Raises
    ------
    TypeError
        If a value among the globals or closures has no content that is the same in every process.
    """
    number, queue, digest = {id(function): 0}, [function], hashlib.sha256()
    for reached in queue:  # grows while it is walked: the numbers are the order in which functions are found first
        content, others = _content(reached)
        for other in others:
            if id(other) not in number:
                number[id(other)] = len(queue)
                queue.append(other)
        digest.update(content)
        digest.update(repr([number[id(other)] for other in others]).encode())
    return digest.hexdigest()


def types_text(signature: Any) -> str:
    """Return types of arguments as text, with the fields of their named tuples: numba names their classes alone."""
    classes = sorted({_class_text(kind.instance_class) for kind in _named_tuples(signature)})
    return " ".join([*map(str, signature), *classes])


def _named_tuples(kinds: Any) -> Iterator[Any]:
    for kind in kinds:
        if isinstance(kind, types.BaseNamedTuple):  # type: ignore[attr-defined]
            yield kind
        if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
            yield from _named_tuples(kind)


def _python(function: Any) -> Any:
    """Return the Python function behind a compiled one."""
    if isinstance(function, Dispatcher):
        return function.py_func
    return function._defn if isinstance(function, extending._Intrinsic) else function


@functools.cache
def _content(function: Any) -> tuple[bytes, tuple[Any, ...]]:
    """Return the hash of a function without those it refers to, and these in the order of its code."""
    options = sorted(map(repr, function.targetoptions.items())) if isinstance(function, Dispatcher) else []
    python = _python(function)
    others: list[Any] = []
    parts = [type(function).__name__, *options]
    for code in _codes(python.__code__, python.__doc__, parts):
        for name, value in _globals(code, python.__globals__):
            parts.append(f"{name}={_value(value, others, name)}")
    if stands_for := getattr(python, "stamped", None):
        parts.append(stands_for())
    else:
        for name, cell in zip(python.__code__.co_freevars, python.__closure__ or (), strict=True):
            parts.append(f"{name}={_value(cell.cell_contents, others, name)}")
    parts.append(_value(python.__defaults__, others, "default"))
    return hashlib.sha256("\0".join(parts).encode()).digest(), tuple(others)


def _codes(code: CodeType, docstring: str | None, parts: list[str]) -> Iterator[CodeType]:
    """Add what a function's bytecode says to ``parts``; yield it and the code of the functions inside."""
    yield code
    constants = list(code.co_consts)
    if constants and isinstance(constants[0], str) and constants[0] == docstring:
        constants[0] = None
    names = code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
    parts.append(repr((code.co_code, code.co_exceptiontable, code.co_argcount, code.co_flags, names)))
    for constant in constants:
        if isinstance(constant, CodeType):
            first = constant.co_consts[0] if constant.co_consts else None
            yield from _codes(constant, first if isinstance(first, str) else None, parts)
        else:
            parts.append(f"{type(constant).__name__} {_value(constant, [], 'constant')}")


def _globals(code: CodeType, known: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the globals that code reads, with those that it takes from modules of the program."""
    for name in sorted(_loaded_globals(code)):
        value = known.get(name, name)  # a builtin counts by its name
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _FOREIGN:
            for attribute in code.co_names:
                if hasattr(value, attribute):
                    yield f"{name}.{attribute}", getattr(value, attribute)
        else:
            yield name, value


def _loaded_globals(code: CodeType) -> set[str]:
    """Return the names that `LOAD_GLOBAL` reads, as `dis` would find them in ten times the time."""
    names, argument = set(), 0
    for operation, byte in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = argument << 8 | byte
        if operation == _LOAD_GLOBAL:
            names.add(code.co_names[argument >> 1])
        if operation != dis.EXTENDED_ARG:
            argument = 0
    return names


def _value(value: Any, others: list[Any], name: str) -> str:
    """Return a value as text; a function is added to ``others`` and stands there as a number."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return f"{array.dtype.str} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(_value(item, others, name) for item in value)})"
    if isinstance(value, set | frozenset):
        return f"set({', '.join(sorted(_value(item, others, name) for item in value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{key!r}: {_value(item, others, name)}' for key, item in value.items())})"
    if isinstance(value, types.Type):
        return types_text([value])
    compiled = isinstance(value, Dispatcher | extending._Intrinsic)
    if compiled or (isinstance(value, FunctionType) and not _foreign(value)):
        others.append(value)
        return f"function {len(others)}"
    if isinstance(value, type):
        return _class_text(value)
    if isinstance(value, ModuleType):
        return value.__name__
    if _foreign(value) or _foreign(type(value)):
        text = repr(value)
        return f"{type(value).__qualname__} {getattr(value, '__qualname__', text if ' at 0x' not in text else '')}"
    raise TypeError(f"a compiled function uses {name} = {value!r}, whose content has no stamp")


def _class_text(kind: type) -> str:
    """Return a class by its name, a named tuple with its fields."""
    fields = getattr(kind, "_fields", ()), getattr(kind, "_field_defaults", {})
    return f"{kind.__module__}.{kind.__qualname__} {fields!r}"


def _foreign(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "builtins").partition(".")[0] in _FOREIGN
