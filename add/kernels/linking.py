"""Compiled functions as code that others link, and as machine code for those who call them from outside.

Numba makes machine code of each function that it compiles, a wrapper for Python, and passes over all that it calls,
level by level, though most functions are called by compiled ones alone, which link them and optimise the whole anew: a
third of the time went there. Here a function is the intermediate code of LLVM at first (`Linked`), as are those of
numba's own that it calls, `np.empty` for one. When Python calls it, or its address is asked for, it gets its machine
code, in which all that it calls is linked and optimised once (`machine_code`).
"""

import copy
import functools
import operator
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
from llvmlite.binding import parse_assembly, parse_bitcode  # type: ignore[import-untyped]
from numba.core import cgutils, codegen, compiler, ir, types
from numba.core.compiler import Compiler, CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.environment import Environment, lookup_environment
from numba.core.lowering import Lower
from numba.core.rewrites import rewrite_registry
from numba.core.runtime import nrtdynmod
from numba.core.typed_passes import NativeLowering, NopythonRewrites

#: How the symbols of environments begin, in which a function finds objects of Python.
_ENVIRONMENT = "_ZN08NumbaEnv"
#: Functions by which numba counts references to arrays.
_COUNTING = ("NRT_incref", "NRT_decref", "nrt_atomic_add", "nrt_atomic_sub")

#: Whether a function of `njit` is being compiled, and not numba's own for another.
_COMPILING: ContextVar[bool] = ContextVar("compiling", default=False)
_NAME = types.StringLiteral  # type: ignore[attr-defined]
#: Numba's rewrites of typed functions that `_has_to_rewrite` knows.
_REWRITES = {
    "RewriteStringLiteralGetitems", "RewriteStringLiteralSetitems", "RewriteArrayExprs", "RewriteArrayOfConsts",
}  # fmt: skip


class Linked(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Intermediate code of a function and of what it calls, for others to link."""

    @classmethod
    def of(cls, generator: Any, name: str, intermediate: bytes) -> "Linked":
        """Return the library of code that was kept, which is read when it is linked."""
        library = cls(generator, name)
        library._finalized = True
        library._get_module_for_linking = functools.partial(parse_bitcode, intermediate)
        return library

    def _optimize_final_module(self) -> None:
        """Leave it to who links: functions are optimised one by one, the whole once."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return what is kept of it."""
        return self.name, "object", (b"", self._get_module_for_linking().as_bitcode())


class _Executable(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Machine code of a function, which nobody links."""

    def _optimize_final_module(self) -> None:
        """Optimise the whole, then what counts references.

        Numba counts references to arrays by calls, so that it finds the pairs of them that it can leave out. Those that
        stay are inlined then: the arrays of most kernels have no owner, and there is nothing to count. To optimise it
        all once more takes half of the time, and makes nothing faster.
        """
        super()._optimize_final_module()
        self._final_module.link_in(parse_assembly(_counting(self._codegen)))
        for name in _COUNTING:
            self._final_module.get_function(name).linkage = "linkonce_odr"
        made = self._codegen._module_pass_manager(opt=0, cost="cheap", loop_vectorize=False)
        passes, *builder = made if isinstance(made, tuple) else (made,)  # older numba has no builder
        passes.run(self._final_module, *builder)

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return what is kept of it, without its intermediate code."""
        return self.name, "object", (self._get_compiled_object(), _nothing())


class _Lower(Lower):  # type: ignore[misc]
    """Numba's own, without the size of each variable: debuggers alone read it, and LLVM parses a module to say it."""

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        if self.flags.debuginfo:
            return super().alloca_lltype(name, lltype, datamodel)
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    _name = "lowering_for_linking"
    lowering_class = _Lower

    def run_pass(self, state: Any) -> bool:
        """Make intermediate code."""
        context, flags = state.targetctx, state.flags
        state.library = Linked(context.codegen(), state.func_id.func_qualname)
        flags.no_compile, flags.no_cpython_wrapper, flags.no_cfunc_wrapper = True, True, True
        super().run_pass(state)
        state.library.finalize()
        context.insert_user_function(state.library, state.cr.fndesc, [state.library])  # callers know it by its library
        state.reload_init.extend(getattr(state.library, "_reload_init", ()))
        state.cr = state.cr._replace(cfunc=state.library)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(_Lowering):
    _name = "lowering_of_numba_for_linking"

    def run_pass(self, state: Any) -> bool:
        """Make intermediate code of one of numba's own functions, which a dispatcher takes for what Python calls."""
        super().run_pass(state)
        nobody_calls: Any = [].pop
        state.targetctx.insert_user_function(nobody_calls, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=nobody_calls)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Rewriting(NopythonRewrites):  # type: ignore[misc]
    _name = "rewriting_of_arrays"

    def run_pass(self, state: Any) -> bool:
        """Merge expressions of arrays, where there are any: numba looks for them in each function, four times."""
        return bool(_has_to_rewrite(state) and super().run_pass(state))


def _has_to_rewrite(state: Any) -> bool:
    """Return whether numba's rewrites may match a statement: values of arrays, and names of fields as indices."""
    kinds = state.typemap
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            value = getattr(statement, "value", None)
            if isinstance(statement, ir.SetItem) and isinstance(kinds[statement.index.name], _NAME):
                return True
            if not isinstance(value, ir.Expr):
                continue
            if value.op == "getitem" and isinstance(kinds[value.index.name], _NAME):
                return True
            if value.op == "call":
                called = getattr(kinds[value.func.name], "typing_key", None)
                if isinstance(called, np.ufunc) or called is np.array:
                    return True
            elif value.op.endswith(("binop", "unary")) and isinstance(kinds[statement.target.name], types.Array):
                return True
    return any(one.__name__ not in _REWRITES for one in rewrite_registry.rewrites["after-inference"])


class Pipeline(CompilerBase):  # type: ignore[misc]
    """Numba's steps of compilation up to intermediate code."""

    def _compile_core(self) -> Any:
        """Compile as if Python's lock were kept: else numba's own functions are compiled anew for those that do not."""
        quicken()
        _link_inner()
        self.state.flags.release_gil = False
        before = _COMPILING.set(True)
        try:
            return super()._compile_core()
        finally:
            _COMPILING.reset(before)

    def define_pipelines(self) -> list[Any]:
        """Return numba's own with another last step, and one that looks whether it has anything to do."""
        return _steps(self.state, _Lowering)


def _steps(state: Any, lowering: type) -> list[Any]:
    steps = DefaultPassBuilder.define_nopython_pipeline(state)
    others = {NativeLowering: lowering, NopythonRewrites: _Rewriting}
    steps.passes = [(others.get(one, one), text) for one, text in steps.passes]
    steps.finalize()
    return [steps]


@functools.cache
def _link_inner() -> None:
    """Let numba's own functions that are compiled for ours be linked alone, too: nobody calls their machine code."""
    own = Compiler.define_pipelines

    def define_pipelines(self: Any) -> list[Any]:
        inner = _COMPILING.get() and (self.state.func_id.func.__module__ or "").startswith("numba.")
        if inner and not self.state.flags.force_pyobject:
            return _steps(self.state, _InnerLowering)
        return own(self)

    Compiler.define_pipelines = define_pipelines


@global_compiler_lock  # type: ignore[untyped-decorator]
def machine_code(linked: CompileResult, release_gil: bool) -> CompileResult:
    """Return a function with machine code, which Python may call and whose address is known.

    Parameters
    ----------
    linked : the function as it was compiled
    release_gil : while Python waits for it
    """
    linked.target_context.refresh()
    # One that came from the disk has a context that counts no references to arrays, as if it returned none.
    context, described = linked.target_context.subtarget(enable_nrt=True), copy.copy(linked.fndesc)
    described.env_name += "_called"  # what the wrapper finds there is more than was kept with the intermediate code
    environment = Environment.from_fndesc(described)
    library = _Executable(context.codegen(), linked.library.name)
    library.enable_object_caching()
    module = linked.library._get_module_for_linking().clone()
    module.get_function(described.llvm_func_name).linkage = "external"  # so that it stays, and has an address
    library._final_module.link_in(module)
    context.create_cpython_wrapper(library, described, environment, None, release_gil)
    called = context.get_executable(library, described, environment)
    for variable in library._final_module.global_variables:
        known = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
        if known is not None:
            context.codegen().set_env(variable.name, known)
    return linked._replace(library=library, fndesc=described, environment=environment, entry_point=called)


@functools.cache
def _counting(generator: Any) -> str:
    """Return numba's counting of references to arrays, to be inlined."""
    module = generator._create_empty_module("counting")
    one_more, one_less = (nrtdynmod._define_atomic_inc_dec(module, way, "monotonic") for way in ("add", "sub"))
    nrtdynmod._define_nrt_incref(module, one_more)
    nrtdynmod._define_nrt_decref(module, one_less)
    for name in _COUNTING:
        attributes = module.get_global(name).attributes
        attributes.discard("noinline")
        attributes.add("alwaysinline")
    return str(module)


@functools.cache
def _nothing() -> bytes:
    """Return the intermediate code of nothing."""
    return bytes(parse_assembly("").as_bitcode())


# --- Answers from memory ---------------------------------------------------------------------------------------------
#
# What numba's compiler works out for each statement anew, worked out once.
#
# Most of the time in which a kernel is compiled is Python's: numba types a function and writes its intermediate code
# statement by statement. A quarter of that went to questions that had the same answer each time. Here numba asks them
# once; what it compiles stays the same, to the letter (`tests/unit/kernels/test_linking.py`). The methods that are
# replaced are those of the versions of numba that are allowed, all of which keep them.

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
