"""Compiled functions that are kept on disk for as long as nothing behind them changes.

Numba keeps a compiled function together with all that it calls, and takes it anew where the function's own file has
another time: after an edit of a law, every kernel that calls the law from another file would go on with the old one,
and a fresh checkout of the same text would compile everything. Here a kept function is valid for its `stamp`. (Numba
itself adds its version, and the CPU.) A file that is damaged is compiled anew, and where nothing can be written nothing
is kept: one line says so.

Processes that need the same function at once compile it once: the others wait for the one that is at it.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import get_host_cpu_features, parse_assembly, parse_bitcode  # type: ignore[import-untyped]
from numba.core import config, types
from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys

from add.kernels.stamps import stamp, types_text

logger = logging.getLogger(__name__)

#: What processors have that the kernels of a wheel (`scripts/kernel_wheel.py`) are compiled for, `x86-64-v3`.
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


def _compile_for_wheels(marker: Path) -> None:
    """Compile for `x86-64-v3` where kernels came with the package, the machine has it, and no one wants another."""
    if not marker.exists() or (config.CPU_NAME, config.CPU_FEATURES) != (None, None):
        return
    features = get_host_cpu_features()
    if all(features.get(name) for name in _V3):
        config.CPU_NAME, config.CPU_FEATURES = "x86-64-v3", ""


_compile_for_wheels(Path(__file__).with_name("portable"))

#: How symbols are named within files: what was kept with other names counts no more.
_SYMBOLS = 2

#: Options of functions that compiled ones alone call: a wrapper for Python took an eighth of their compilation.
CALLED = {"cache": True, "error_model": "numpy", "no_cpython_wrapper": True}


def njit(*arguments: Any, variant: Any = None, **options: Any) -> Any:
    """Compile a function as `numba.njit` does; with ``cache=True`` under its `stamp`.

    Terms outside this package whose kernels call those of this one should use it, too.

    Parameters
    ----------
    variant : str, optional
        Tells apart functions that one text makes again and again for other functions which it calls.
    """
    if not (arguments and callable(arguments[0])):
        return lambda function: njit(function, *arguments, variant=variant, **options)
    _name(arguments[0], variant)
    if not options.get("cache"):
        _name_apart(arguments[0])
    options = {"no_cfunc_wrapper": True} | options  # for callers in C, of which there are none
    try:
        dispatcher = numba.njit(*arguments, **options)
    except RuntimeError as error:  # numba knows no folder that it may write to
        _say_once(f"compiled kernels are not kept: {error}")
        options = options | {"cache": False}
        dispatcher = numba.njit(*arguments, **options)
    return _stamped(dispatcher, bool(options.get("cache")))


class _KeptFile(IndexDataCacheFile):  # type: ignore[misc]
    """The files of a compiled function, where they may be cut, or the disk full or closed."""

    def __init__(self, folder: str, name: str, dispatcher: Any) -> None:
        super().__init__(folder, name, None)
        self._dispatcher = dispatcher

    @property
    def _version(self) -> tuple[str, str]:
        """Say what a file is valid for, when it is asked: the names in a function stand for something only then.

        It is read before anything else of a file: what other kernels left may name classes that are gone.
        """
        return f"{numba.__version__} {_SYMBOLS}", stamp(self._dispatcher)

    @_version.setter
    def _version(self, of_numba: str) -> None:
        """Leave it to the property."""

    def _load_index(self) -> dict[Any, str]:
        return self._or_anew(super()._load_index, self._index_path) or {}

    def _load_data(self, name: str) -> Any:
        return self._or_anew(lambda: super(_KeptFile, self)._load_data(name), self._data_path(name))

    def save(self, key: Any, data: Any) -> None:
        try:
            super().save(key, data)
        except OSError as error:
            _say_once(f"compiled kernels are not kept: {self._cache_path}: {error.strerror or error}")

    @staticmethod
    def _or_anew(load: Callable[[], Any], path: str) -> Any:
        """Return what a file holds; nothing, and one line, where it is damaged."""
        try:
            return load()
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever pickle makes of cut or foreign bytes
            _say_once(f"{path} is damaged ({type(error).__name__}): the kernel is compiled anew")
            return None


@functools.cache
def _say_once(text: str) -> None:
    logger.warning("%s", text)


def _name(function: Any, variant: Any) -> Any:
    """Give a variant a name of its own, and with it files of its own: processes that write one index mix them up."""
    if variant is not None:
        function.__qualname__ += "_" + "".join(c if c.isalnum() else "_" for c in str(variant))
    return function


def _name_apart(function: Any) -> None:
    """Give a function that others made of the same text a name that no process gives again.

    What is called by a function that is kept lies in its file, under a symbol of its name and of a number that counts
    in each process anew. Two files that have one symbol for two functions would share the one that is loaded first.
    """
    if "<locals>" in function.__qualname__ or function.__code__.co_filename.startswith("<"):
        function.__qualname__ += f"_{uuid.uuid4().hex[:16]}"


def _stamped(dispatcher: Any, kept: bool) -> Any:
    """Let a function that is kept be valid for its `stamp`, in files that are named without the line it begins at."""
    if kept and isinstance(dispatcher, numba.core.dispatcher.Dispatcher):  # none where NUMBA_DISABLE_JIT is set
        # Numba publishes no way to say this: an AttributeError here is a version that does it otherwise.
        cache, function = dispatcher._cache, dispatcher.py_func
        name = cache._impl.filename_base.replace(f"-{function.__code__.co_firstlineno}.", ".")
        cache._cache_file = _KeptFile(cache._cache_path, name, dispatcher)
        cache._index_key = lambda signature, codegen: (types_text(signature), codegen.magic_tuple())
        cache._impl.rebuild = _rebuilt
        cache.load_overload = functools.partial(_loaded, cache)
        dispatcher.compile = functools.partial(_compile_once, dispatcher, dispatcher.compile)
    return dispatcher


def _loaded(cache: Any, signature: Any, context: Any) -> Any:
    """Return a function that is kept, or None, without what numba reads before to compile others: 0.15 s, 10 MB."""
    from numba.cpython import hashing  # noqa: F401  gives symbols that functions with strings or sets have

    rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)


def _rebuilt(context: Any, kept: Any) -> Any:
    """Return a function from what was kept of it, without its intermediate code.

    That code is for callers that are compiled, and most processes compile none. Numba reads it at once and for its
    symbols alone: a tenth of a first run's time, and 30 MB that stayed. Here it is read when a caller asks, and of the
    symbols only those are known by which a function is called. The last of them are no symbols of all functions.
    """
    (name, kind, (code, intermediate)), described, *rest = kept
    called = described.llvm_func_name, described.llvm_cpython_wrapper_name, described.llvm_cfunc_wrapper_name
    defined = {symbol for symbol in called if symbol.encode() + b"\0" in code}
    context.codegen()._engine._defined_symbols.update(defined)
    found = CompileResult._rebuild(context, (name, kind, (code, _nothing())), described, *rest)
    found.library._shared_module = None
    found.library._get_module_for_linking = functools.partial(parse_bitcode, intermediate)
    return found


@functools.cache
def _nothing() -> bytes:
    """Return the intermediate code of nothing."""
    return bytes(parse_assembly("").as_bitcode())


def _compile_once(dispatcher: Any, compile_function: Callable[[Any], Any], signature: Any) -> Any:
    """Compile a function, or take it from the disk, where another process may be about to put it.

    A number that is written in a call is an argument like any other: numba compiles a variant for each, and for the
    functions below.
    """
    if isinstance(signature, tuple):
        signature = tuple(map(types.unliteral, signature))  # type: ignore[attr-defined]
    if isinstance(signature, tuple) and is_kept(dispatcher, signature):
        return compile_function(signature)
    with _locked(dispatcher._cache._cache_file._index_path), _uncollected():
        return compile_function(signature)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Leave out the collection of cycles: compiling makes objects by the million, an eighth of its time went there."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Keep other processes from what belongs to a file; not where no file can be written."""
    try:
        file = open(f"{path}.lock", "wb")
    except OSError:
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_kept(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Return whether a function compiled for these types of arguments is on disk, or already loaded."""
    if signature in dispatcher.overloads:
        return True
    cache = dispatcher._cache
    if isinstance(cache, NullCache):
        return False
    key = cache._index_key(signature, dispatcher.targetctx.codegen())
    return key in cache._cache_file._load_index()
