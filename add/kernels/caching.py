"""Compiled functions that are kept on disk for as long as no compiled function of the program changes.

Numba keeps a compiled function together with all that it calls, and takes it anew only where the function's own file
changed: after an edit of a law, every kernel that calls the law from another file would go on with the old one. Here
the stamp of a cached function holds all files with compiled functions instead. (Numba itself adds its version, and the
CPU.) A file that is damaged is compiled anew, and where nothing can be written nothing is kept: one line says so.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile, NullCache

from add.kernels.shape_codes import further_kernels

logger = logging.getLogger(__name__)

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def stamp() -> str:
    """Return the hash of all files of the package that hold compiled functions."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        data = path.read_bytes()
        if b"njit" in data or b"intrinsic" in data:
            digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + data + b"\0")
    for kernel in further_kernels():
        digest.update(f"shape {kernel.code}".encode() + b"\0" + Path(kernel.source).read_bytes() + b"\0")
    return digest.hexdigest()


def njit(*arguments: Any, variant: Any = None, **options: Any) -> Any:
    """Compile a function as `numba.njit` does; with ``cache=True`` under the package's `stamp`.

    Terms outside this package whose kernels call those of this one should use it, too.

    Parameters
    ----------
    variant : str, optional
        Tells apart functions that one text makes again and again for other functions which it calls: numba would tell
        them apart by those, and those are never the same in the next process.
    """
    if not (arguments and callable(arguments[0])):
        return lambda function: njit(function, *arguments, variant=variant, **options)
    _name(arguments[0], variant)
    try:
        dispatcher = numba.njit(*arguments, **options)
    except RuntimeError as error:  # numba knows no folder that it may write to
        _say_once(f"compiled kernels are not kept: {error}")
        options = options | {"cache": False}
        dispatcher = numba.njit(*arguments, **options)
    return _stamped(dispatcher, bool(options.get("cache")), variant)


class _KeptFile(IndexDataCacheFile):  # type: ignore[misc]
    """The files of a compiled function, where they may be cut, or the disk full or closed."""

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


def _stamped(dispatcher: Any, kept: bool, variant: Any) -> Any:
    """Let a function that is kept be valid for its own file's stamp and the package's `stamp`."""
    if kept and isinstance(dispatcher, numba.core.dispatcher.Dispatcher):  # none where NUMBA_DISABLE_JIT is set
        # Numba publishes no way to say this: an AttributeError here is a version that does it otherwise.
        cache = dispatcher._cache
        cache._cache_file.__class__ = _KeptFile
        # In the version, which is read before anything else: what other kernels left may name classes that are gone.
        cache._cache_file._version = cache._cache_file._version, stamp()
        if variant is not None:
            cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), variant)
    return dispatcher


def is_kept(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Return whether a function compiled for these types of arguments is on disk, or already loaded."""
    if signature in dispatcher.overloads:
        return True
    cache = dispatcher._cache
    if isinstance(cache, NullCache):
        return False
    key = cache._index_key(signature, dispatcher.targetctx.codegen())
    return key in cache._cache_file._load_index()
