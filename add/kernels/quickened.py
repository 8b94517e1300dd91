"""What numba's compiler works out for each statement anew, worked out once.

Most of the time in which a kernel is compiled is Python's: numba types a function and writes its intermediate code
statement by statement. A quarter of that went to questions that had the same answer each time. Here numba asks them
once; what it compiles stays the same, to the bit. Only those methods are replaced that are known to do what they are
replaced for: with another numba, compilation takes longer, and nothing else changes.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

from numba.core import compiler, ir, types

#: What a frame takes, in words of 8 bytes, so that a piece of 1 MB has as much left for others; none of it is touched.
_ROOM = (1 << 16) + 1000

#: Types of arguments that say all there is to say of an operator's result.
_PLAIN = (types.Number, types.Boolean, types.Array, types.UniTuple)  # type: ignore[attr-defined]
_OPERATORS = frozenset(one for one in vars(operator).values() if callable(one))


@functools.cache
def quicken() -> None:
    """Let numba answer from memory."""
    _remember_operators()
    _compare_flags()
    _list_variables()
    _remember_arrays()


def _remember_operators() -> None:
    """Type an operator once for numbers and arrays: numba tries all that are known by its name, often arrays' first."""
    kind: Any = types.Function  # type: ignore[attr-defined]
    asked: Callable[..., Any] = kind.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, arguments: Any, named: Any) -> Any:
        if named or not _is_operator(self) or not all(isinstance(one, _PLAIN) for one in arguments):
            return asked(self, context, arguments, named)
        key = self, context, tuple(arguments)
        if (found := known.get(key)) is None:
            found = known[key] = asked(self, context, arguments, named)
        return found

    kind.get_call_type = get_call_type


@functools.cache
def _is_operator(function: Any) -> bool:
    try:
        return function.typing_key in _OPERATORS
    except TypeError:
        return False


def _compare_flags() -> None:
    """Compare options of compilation by those that are set: numba collects all of them, set or not, for each call."""
    flags = compiler.Flags
    asked = flags.__eq__

    def same(self: Any, other: Any) -> Any:
        return (type(self) is type(other) and self._values == other._values) or asked(self, other)

    number = hash(flags())  # numba's own is that of the options' names
    flags.__eq__, flags.__hash__ = same, lambda self: number


def _list_variables() -> None:
    """List the variables of a statement in one list: numba makes one at each level, and asks each leaf what it is."""

    def variables(value: Any, found: list[Any]) -> list[Any]:
        kind = type(value)
        if kind is ir.Var:
            found.append(value)
        elif kind is dict:
            for item in value.values():
                variables(item, found)
        elif kind is list or kind is tuple:
            for item in value:
                variables(item, found)
        elif kind not in leaves:
            if isinstance(value, ir.Inst):
                found.extend(value.list_vars())
            elif isinstance(value, ir.Var | list | tuple | dict):
                found.extend(asked(value, value))
            else:
                leaves.add(kind)
        return found

    asked = ir.Inst._rec_list_vars
    leaves: set[type] = {ir.Loc, str, int, type(None)}
    ir.Inst._rec_list_vars = lambda self, value: variables(value, [])


def _remember_arrays() -> None:
    """Make the class that stands for arrays of a type once: numba makes one for each access to an array.

    It also asks for arrays that are made of others, which no plain array is, and reads all its registers again when
    there are none.
    """
    from numba.np import arrayobj  # what only compilation needs

    make = arrayobj.make_array

    @functools.cache
    def plain(kind: Any) -> Any:
        made = make(kind)
        if "_make_refs" in vars(made):
            del made._make_refs
        return made

    arrayobj.make_array = lambda kind: plain(kind) if type(kind) is types.Array else make(kind)  # type: ignore[attr-defined]


def roomy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function which calls others, however deep, without asking the system for memory.

    Python takes 16 kB for frames at a time, and gives them back once the first frame in them ends: a loop at the border
    of two such pieces asks the system twice a pass. Compilation is hundreds of calls deep, and met these borders 170000
    times. A frame that takes more than half of a large piece leaves the rest of it to the frames above.
    """

    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    call.__code__ = call.__code__.replace(co_stacksize=_ROOM)
    return functools.wraps(function)(call)
