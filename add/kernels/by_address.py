"""Calls of compiled functions (`njit`) by their address.

Numba links all that a function calls into it and optimises the whole anew, level by level: large functions below deep
callers take minutes. A call by address links nothing. Addresses differ between processes, so they are arguments, or
asked for when they are needed first (`when_called`), never constants of what is kept on disk.
"""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils, config, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from add.kernels.caching import executable
from add.kernels.stamps import types_text


class Callee(NamedTuple):
    """A compiled function that is called by its address.

    Attributes
    ----------
    function : of numba; None where it is one of many with the same types, whose address is known otherwise
    signature : the types of its arguments
    result : the type of what it returns: callers are compiled for it, and stay valid when the function changes
    """

    function: Any
    signature: tuple[Any, ...]
    result: Any


def address(callee: Callee) -> int:
    """Return the address in this process of a compiled function; compile it if need be.

    Where `NUMBA_DISABLE_JIT` is set it is that of the Python object.

    Raises
    ------
    TypeError
        If it returns another type than its callers expect.
    """
    function, signature, result = callee
    if config.DISABLE_JIT:
        return id(function)
    compiled = executable(function, signature)
    if compiled.signature.return_type != result:
        raise TypeError(f"{function.__name__} returns {compiled.signature.return_type}; its callers expect {result}")
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def by_address(name: str, callee: Callable[[], Callee]) -> Any:
    """Return what calls a compiled function, from compiled functions, as (address, arguments).

    Parameters
    ----------
    name : of the function
    callee : returns the function; other arguments than its are refused when a caller is compiled
    """
    if config.DISABLE_JIT:
        return lambda place, arguments: ctypes.cast(int(place), ctypes.py_object).value(*arguments)

    def call(typingctx: Any, place: Any, arguments: Any) -> Any:
        _, wanted, result = callee()
        given = tuple(types.unliteral(kind) for kind in arguments.types)  # type: ignore[attr-defined]
        if given != wanted:
            differing = [f"{mine} for {theirs}" for mine, theirs in zip(given, wanted, strict=False) if mine != theirs]
            raise TypingError(f"{name}: called with {'; '.join(differing)}")

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kinds = signature.args[1].types
            items = [
                context.cast(builder, item, kind, to)
                for item, kind, to in zip(cgutils.unpack_tuple(builder, values[1]), kinds, wanted, strict=True)
            ]
            kind = context.call_conv.get_function_type(result, wanted)
            pointer = builder.inttoptr(values[0], kind.as_pointer())
            status, value = context.call_conv.call_function(builder, pointer, result, wanted, items)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return result(types.int64, arguments), generate

    call.stamped = lambda: f"{name} {types_text([*callee().signature, callee().result])}"  # type: ignore[attr-defined]
    return intrinsic(call)


def when_called(function: Any, signature: tuple[Any, ...], result: Any) -> Any:
    """Return what calls a compiled function, from compiled functions, as (arguments,); its first call compiles it.

    What most runs never come to costs them nothing then. Its ``callee`` is what it calls. What is raised while that is
    compiled, also by Ctrl-C, the call raises.
    """
    name, callee = f"{function.__module__}.{function.__qualname__}", Callee(function, signature, result)
    there = by_address(name, lambda: callee)

    def call(typingctx: Any, arguments: Any) -> Any:
        inner, generate = there._defn(typingctx, types.int64, arguments)

        def ask_first(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            number, module = ir.IntType(64), builder.module
            known = cgutils.add_global_variable(module, number, f"known: {name}")
            known.linkage, known.initializer = "internal", number(0)
            with cgutils.if_unlikely(builder, builder.icmp_unsigned("==", builder.load(known), number(0))):
                asked = cgutils.get_or_insert_function(module, ir.FunctionType(number, ()), f"ask: {name}")
                place = builder.call(asked, ())
                with cgutils.if_unlikely(builder, builder.icmp_signed("<", place, number(0))):
                    python = context.get_python_api(builder)
                    state = python.gil_ensure()
                    python.raise_object(builder.inttoptr(builder.neg(place), python.pyobj))
                    python.gil_release(state)
                    context.call_conv.return_exc(builder)
                builder.store(place, known)
            return generate(context, builder, inner, (builder.load(known), values[0]))

        return inner.return_type(arguments), ask_first

    def ask() -> int:
        """Return the address, or less than nothing, where what was raised is."""
        try:
            return address(callee)
        except BaseException as error:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(error))
            return -id(error)

    if config.DISABLE_JIT:
        called: Any = lambda arguments: function(*arguments)  # noqa: E731
    else:
        asked_there = ctypes.CFUNCTYPE(ctypes.c_int64)(ask)
        binding.add_symbol(f"ask: {name}", ctypes.cast(asked_there, ctypes.c_void_p).value)
        call.stamped, call.kept = there._defn.stamped, asked_there  # type: ignore[attr-defined]
        called = intrinsic(call)
    called.callee = callee
    return called
