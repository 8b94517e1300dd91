"""Calls of compiled functions (`njit`) by their address.

Numba links all that a function calls into it and optimises the whole anew, level by level: large functions below deep
callers take minutes. A call by address links nothing. Addresses differ between processes, so they are arguments, never
constants of what is kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic


def address(function: Any, signature: tuple[Any, ...]) -> int:
    """Return the address in this process of a compiled function for these types of arguments; compile it if need be."""
    function.compile(signature)
    found = function.overloads[signature]
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def by_address(function: Any, signature: Callable[[], tuple[Any, ...]]) -> Any:
    """Return what calls a compiled function, from compiled functions, as (address, arguments).

    Parameters
    ----------
    function : of numba
    signature : returns the types of the arguments that its address is taken for; others are refused when a caller is
        compiled
    """

    @intrinsic
    def call(typingctx: Any, place: Any, arguments: Any) -> Any:
        wanted, given = signature(), tuple(types.unliteral(kind) for kind in arguments.types)  # type: ignore[attr-defined]
        if given != wanted:
            differing = [f"{mine} for {theirs}" for mine, theirs in zip(given, wanted, strict=False) if mine != theirs]
            raise TypingError(f"{function.__name__}: called with {'; '.join(differing)}")
        function.compile(wanted)
        result = function.overloads[wanted].signature.return_type

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kinds = signature.args[1].types
            items = [
                context.cast(builder, item, kind, to)
                for item, kind, to in zip(cgutils.unpack_tuple(builder, values[1]), kinds, wanted, strict=True)
            ]
            kind = context.call_conv.get_function_type(result, wanted)
            pointer = builder.inttoptr(values[0], kind.as_pointer())
            status, found = context.call_conv.call_function(builder, pointer, result, wanted, items)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return found

        return result(types.int64, arguments), generate

    return call
