"""Compiled functions as code that others link, and as machine code for those who call them from outside.

Numba makes machine code of each function that it compiles, a wrapper for Python, and passes over all that it calls,
level by level, though most functions are called by compiled ones alone, which link them and optimise the whole anew: a
third of the time went there. Here a function is the intermediate code of LLVM at first (`Linked`). When Python calls
it, or its address is asked for, it gets its machine code, in which all that it calls is linked and optimised once
(`machine_code`).
"""

import copy
import functools
from typing import Any

from llvmlite.binding import parse_assembly, parse_bitcode  # type: ignore[import-untyped]
from numba.core import cgutils, codegen
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.environment import Environment, lookup_environment
from numba.core.lowering import Lower
from numba.core.runtime import nrtdynmod
from numba.core.typed_passes import NativeLowering

#: How the symbols of environments begin, in which a function finds objects of Python.
_ENVIRONMENT = "_ZN08NumbaEnv"
#: Functions by which numba counts references to arrays.
_COUNTING = ("NRT_incref", "NRT_decref", "nrt_atomic_add", "nrt_atomic_sub")


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


class Pipeline(CompilerBase):  # type: ignore[misc]
    """Numba's steps of compilation up to intermediate code."""

    def _compile_core(self) -> Any:
        """Compile as if Python's lock were kept: else numba's own functions are compiled anew for those that do not."""
        self.state.flags.release_gil = False
        return super()._compile_core()

    def define_pipelines(self) -> list[Any]:
        """Return numba's own with another last step."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes = [(_Lowering if one is NativeLowering else one, text) for one, text in steps.passes]
        steps.finalize()
        return [steps]


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
