"""Kernel source -> LLVM IR, by the parts of numba's pipeline that a kernel needs and nothing else.

A kernel has no Python objects, exceptions, arrays or closures, so the passes for those, the wrappers, the
reference counting runtime and numba's own execution engine are left out: numba's front end types and lowers,
our engine optimises and emits once.
"""

# numba comes without types: its classes are Any, and so are its decorators.
# mypy: disable-error-code="misc, untyped-decorator"

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from numba.core import bytecode, funcdesc, lowering, typed_passes, types, untyped_passes
from numba.core.compiler import Flags, StateDict, _CompileStatus, _make_subtarget
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack

from common.native.contexts import contexts
from common.native.intrinsics import KernelFunctionType, words

PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
)


class _Lower(lowering.Lower):
    def emit_environment_object(self) -> None:
        """Emit none: the environment serves Python objects, and its global would clash between kernels."""

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        if not isinstance(fnty, KernelFunctionType):
            return super()._lower_call_normal(fnty, expr, signature)
        given = tuple(self.typeof(arg.name) for arg in expr.args)
        _, codegen = fnty.function.definition(given)
        args = [
            self.context.cast(self.builder, self.loadvar(arg.name), own, wanted)
            for arg, own, wanted in zip(expr.args, given, signature.args, strict=True)
        ]
        return codegen(self.context, self.builder, signature, args)


class _Library:
    """The part of numba's code library that lowering needs: it keeps the module instead of compiling it."""

    def __init__(self, codegen: Any, name: str) -> None:
        self._codegen = codegen
        self.name = name
        self.modules: list[Any] = []
        self.linked: list[Any] = []

    def create_ir_module(self, name: str) -> Any:
        return self._codegen._create_empty_module(name)

    def add_ir_module(self, module: Any) -> None:
        self.modules.append(module)

    def add_linking_library(self, library: Any) -> None:
        self.linked.append(library)


@cache
def _flags() -> Any:
    flags = Flags()
    flags.nrt = False
    flags.boundscheck = False
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.no_rewrites = True
    flags.error_model = "numpy"
    return flags


@global_compiler_lock
def lower_kernel(function: Callable[..., int], symbol: str) -> Any:
    """Return the verified, unoptimised LLVM module that defines `function` under the name `symbol`.

    Parameters
    ----------
    function : callable
        ``function(bufs, args) -> int``, written as kernel source.
    symbol : str
        Name of the only exported function of the module.

    Raises
    ------
    numba.core.errors.NumbaError
        The source is not a kernel: the message names its line.
    """
    typing_context, target_context = contexts()
    target_context.refresh()
    # The front end makes some 1e5 objects that all live until it ends: collecting in between costs 10 %.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _lower(function, symbol, typing_context, target_context)
    finally:
        if collecting:
            gc.enable()


def _lower(function: Callable[..., int], symbol: str, typing_context: Any, target_context: Any) -> Any:
    from llvmlite import binding

    flags = _flags()
    state = StateDict(
        typingctx=typing_context,
        targetctx=_make_subtarget(target_context, flags),
        args=(words, words),
        return_type=types.int64,
        flags=flags,
        locals={},
        status=_CompileStatus(can_fallback=False),
        lifted=(),
        lifted_from=None,
        metadata={},
        func_id=bytecode.FunctionIdentity.from_function(function),
    )
    with ConfigStack().enter(flags.copy()):
        untyped_passes.ExtractByteCode().run_pass(state)
        for step in PASSES:
            step().run_pass(state)
        library = _Library(state.targetctx.codegen(), symbol)
        description = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            state.func_ir,
            state.typemap,
            state.return_type,
            state.calltypes,
            mangler=partial(_mangle, symbol),
            inline=False,
            noalias=False,
            abi_tags=(),
        )
        with state.targetctx.push_code_library(library):
            _Lower(state.targetctx, library, description, state.func_ir, metadata={}).lower()
    (lowered,) = library.modules
    module = binding.parse_assembly(str(lowered))
    module.verify()
    for linked in library.linked:
        module.link_in(linked._get_module_for_linking(), preserve=True)
    return module


def _mangle(symbol: str, *_: Any, **__: Any) -> str:
    return symbol
