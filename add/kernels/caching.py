"""Compiled functions that are kept on disk for as long as nothing behind them changes.

Numba keeps a compiled function together with all that it calls, and takes it anew where the function's own file has
another time: after an edit of a law, every kernel that calls the law from another file would go on with the old one,
and a fresh checkout of the same text would compile everything. Here a kept function is valid for its `stamp`. (Numba
itself adds its version, and the CPU.) A file that is damaged is compiled anew, and where nothing can be written nothing
is kept: one line says so.

Processes that need the same function at once compile it once: the others wait for the one that is at it. What is kept
of a function is its intermediate code, for callers that are compiled, and once it was called from Python, or by its
address, its machine code (`linking.py`).
"""

import copy
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
from llvmlite.binding import get_host_cpu_features  # type: ignore[import-untyped]
from numba.core import config, serialize, types
from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher, OmittedArg
from numba.core.runtime import rtsys

from add.kernels.linking import Linked, Pipeline, machine_code, roomy
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

# Numba asks this for the class of each array that compiled code returns, and is not prepared for what Ctrl-C raises
# there, in the first line of Python behind the compiled ones: a process ended by it. What is cached runs no Python.
# Numba keeps what it finds here at the first such array, so a program that calls its own functions before it imports
# `add` goes on as numba does alone.
serialize._numba_unpickle = functools.cache(serialize._numba_unpickle)

#: How symbols are named within files: what was kept with other names counts no more.
_SYMBOLS = 3

#: What most functions are compiled with; those that threads call at once; and those that compiled ones alone call.
CALLED = {"cache": True, "error_model": "numpy"}
THREADED = CALLED | {"nogil": True}
INNER = {"error_model": "numpy", "nogil": True}
INLINED = INNER | {"inline": "always"}


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
    try:
        dispatcher = numba.njit(*arguments, pipeline_class=Pipeline, **options)
    except RuntimeError as error:  # numba knows no folder that it may write to
        _say_once(f"compiled kernels are not kept: {error}")
        options = options | {"cache": False}
        dispatcher = numba.njit(*arguments, pipeline_class=Pipeline, **options)
    if isinstance(dispatcher, Dispatcher):  # not where NUMBA_DISABLE_JIT is set
        if options.get("cache"):
            _stamp(dispatcher)
        _tell_apart(dispatcher)
    return dispatcher


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


def _stamp(dispatcher: Any) -> None:
    """Let a function that is kept be valid for its `stamp`, in files that are named without the line it begins at."""
    # Numba publishes no way to say this: an AttributeError here is a version that does it otherwise.
    cache, function = dispatcher._cache, dispatcher.py_func
    name = cache._impl.filename_base.replace(f"-{function.__code__.co_firstlineno}.", ".")
    cache._cache_file = _KeptFile(cache._cache_path, name, dispatcher)
    cache._index_key = lambda signature, codegen: (types_text(signature), codegen.magic_tuple())
    cache._impl.rebuild = _rebuilt
    cache.load_overload = functools.partial(_loaded, cache)
    dispatcher.compile = functools.partial(_compile_once, dispatcher, dispatcher.compile)


def _tell_apart(dispatcher: Any) -> None:
    """Let compiled functions link a function, and Python call its machine code.

    Numba's own table of compiled functions is what Python calls; `overloads` is what callers find when they are
    compiled.
    """
    cache = dispatcher._cache
    if not isinstance(cache, NullCache):
        cache = copy.copy(cache)
        cache._index_key = lambda signature, codegen: (types_text(signature), codegen.magic_tuple(), "machine code")
        cache.load_overload = functools.partial(_loaded, cache)
    dispatcher.executables, dispatcher.executables_kept = {}, cache
    dispatcher.add_overload = functools.partial(_add_linked, dispatcher)
    dispatcher._compile_for_args = functools.partial(_called_first, dispatcher, dispatcher._compile_for_args)


def _add_linked(dispatcher: Any, compiled: CompileResult) -> None:
    dispatcher.overloads[tuple(compiled.signature.args)] = compiled


def _called_first(dispatcher: Any, compile_for: Callable[..., Any], *arguments: Any) -> Any:
    """Return what Python calls for arguments of types that it calls with for the first time."""
    kinds = [
        types.Omitted(one.value) if isinstance(one, OmittedArg) else dispatcher.typeof_pyval(one)  # type: ignore[attr-defined]
        for one in arguments
    ]
    return executable(dispatcher, tuple(kinds), lambda: compile_for(*arguments)).entry_point


def executable(
    dispatcher: Any, signature: tuple[Any, ...], compiled: Callable[[], Any] | None = None, wait: bool = True
) -> Any:
    """Return a compiled function with its machine code, from the disk if it is kept.

    Parameters
    ----------
    dispatcher : what `njit` returned, or numba's own
    signature : the types of its arguments
    compiled : compiles it otherwise than by these types alone
    wait : for another process that is at it; otherwise None is returned
    """
    if not hasattr(dispatcher, "executables"):  # made by numba's own `njit`
        dispatcher.compile(signature)
        return dispatcher.overloads[signature]
    if (known := dispatcher.executables.get(signature)) is not None:
        return known
    made = _executable_kept(dispatcher, signature)
    if made is None:
        with _locked(dispatcher.executables_kept, ".code", wait) as locked, _uncollected():
            if not locked:
                return None
            made = _executable_kept(dispatcher, signature) or _executable_made(dispatcher, signature, compiled)
    dispatcher.executables[signature] = made
    dispatcher._insert([kind._code for kind in signature], made.entry_point, False)
    return made


def _executable_kept(dispatcher: Any, signature: tuple[Any, ...]) -> CompileResult | None:
    kept = dispatcher.executables_kept.load_overload(signature, dispatcher.targetctx)
    if kept is not None:
        dispatcher._cache_hits[signature] += 1
    return kept


@roomy
def _executable_made(dispatcher: Any, signature: tuple[Any, ...], compiled: Callable[[], Any] | None) -> CompileResult:
    (compiled or functools.partial(dispatcher.compile, signature))()
    linked = dispatcher.overloads[tuple(map(types.unliteral, signature))]  # type: ignore[attr-defined]
    made = machine_code(linked, bool(dispatcher.targetoptions.get("nogil")))
    dispatcher.executables_kept.save_overload(signature, made)
    return made


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
    (name, kind, (code, intermediate)), described, environment, signature, objectmode, lifted, text, again, known = kept
    if not code:
        library = Linked.of(context.codegen(), name, intermediate)
        for function in again:
            function()
        rebuilt = CompileResult(
            target_context=context, typing_context=context.typing_context, library=library, environment=environment,
            entry_point=library, fndesc=described, type_annotation=text,
            signature=signature, objectmode=objectmode, lifted=lifted, typing_error=None, call_helper=None,
            metadata=None, reload_init=again, referenced_envs=known,
        )  # fmt: skip
        return rebuilt
    called = described.llvm_func_name, described.llvm_cpython_wrapper_name
    defined = {symbol for symbol in called if symbol.encode() + b"\0" in code}
    context.codegen()._engine._defined_symbols.update(defined)
    return CompileResult._rebuild(
        context, (name, kind, (code, intermediate)), described, environment, signature, objectmode, lifted, text,
        again, known
    )  # fmt: skip


def _compile_once(dispatcher: Any, compile_function: Callable[[Any], Any], signature: Any) -> Any:
    """Compile a function, or take it from the disk, where another process may be about to put it.

    A number that is written in a call is an argument like any other: numba compiles a variant for each, and for the
    functions below.
    """
    if isinstance(signature, tuple):
        signature = tuple(map(types.unliteral, signature))  # type: ignore[attr-defined]
    if isinstance(signature, tuple) and (
        signature in dispatcher.overloads or _in_file(dispatcher._cache, dispatcher, signature)
    ):
        return compile_function(signature)
    with _locked(dispatcher._cache), _uncollected():
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
def _locked(cache: Any, apart: str = "", wait: bool = True) -> Iterator[bool]:
    """Keep other processes from what belongs to a function; not where no file can be written.

    Yields whether that is so, or need not be: without ``wait`` another process may be at it.
    """
    try:
        file = open(f"{cache._cache_file._index_path}{apart}.lock", "wb")
    except (AttributeError, OSError):  # of one that is not kept there is no file
        yield True
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def is_kept(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Return whether the machine code of a function for these types of arguments is on disk, or already loaded."""
    return signature in dispatcher.executables or _in_file(dispatcher.executables_kept, dispatcher, signature)


def _in_file(cache: Any, dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    if isinstance(cache, NullCache):
        return False
    key = cache._index_key(signature, dispatcher.targetctx.codegen())
    return key in cache._cache_file._load_index()
