"""Kernel source -> LLVM IR by numba: the second compiler, beside `common.compiler.translate`.

``static.function(compiler="numba")`` and ``TWINGRAD_COMPILER=numba`` choose it. It takes the parts of numba's pipeline
that a kernel needs and nothing else.

A kernel has no Python objects, exceptions, arrays or closures, so the passes for those, the wrappers, the
reference counting runtime and numba's own execution engine are left out: numba's front end types and lowers,
our engine optimises and emits once.
"""

# numba comes without types: its classes are Any, and so are its decorators.
# mypy: disable-error-code="misc, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import bytecode, funcdesc, lowering, typed_passes, types, untyped_passes
from numba.core.compiler import Flags, StateDict, _CompileStatus, _make_subtarget
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack

from common.compiler.fingerprint import global_names
from common.compiler.intrinsics import (
    NUMPY_DTYPES,
    WORD,
    BufferType,
    KernelFunction,
    KernelFunctionType,
    WordsType,
    namespace,
    scalar_intrinsic,
    words,
)
from common.compiler.llvm_library import LlvmModule
from common.compiler.machine_functions import MachineFunction
from common.compiler.numba_contexts import contexts

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


def lower_source(source: str, name: str, symbol: str, meaning: Callable[[str], Any]) -> Any:
    """Return the module of a kernel, see `lower_kernel`; ``meaning(used)`` is what a name in its source stands for."""
    code = compile(source, f"<kernel {name}>", "exec")
    known = namespace()
    own = {used for used in global_names(code) if used not in known and used not in (name, "range")}
    defined: dict[str, Any] = {}
    exec(code, known | {used: reference_function(used, meaning(used)) for used in own}, defined)
    return lower_kernel(defined[name], symbol)


def reference_function(name: str, meaning: Any) -> KernelFunction:
    """Make a scalar definition or a `MachineFunction` callable from kernel source."""
    if (name, meaning) not in _made:
        make = machine_intrinsic if isinstance(meaning, MachineFunction) else scalar_intrinsic
        _made[name, meaning] = make(name, meaning)
    return _made[name, meaning]


_made: dict[Any, KernelFunction] = {}


def machine_intrinsic(name: str, function: MachineFunction) -> KernelFunction:
    """Make a `MachineFunction` callable from kernel source."""

    def define(*operands: Any) -> Any:
        if len(operands) != len(function.pattern):
            return None
        buffers = [operand for operand in operands if isinstance(operand, BufferType)]
        dtypes = {NUMPY_DTYPES[buffer.dtype] for buffer in buffers}
        if len(dtypes) > 1 or not dtypes <= {*function.dtypes}:
            return None
        kinds = {"b": BufferType, "t": BufferType, "w": WordsType, "i": types.Integer}
        if not all(isinstance(o, kinds[letter]) for o, letter in zip(operands, function.pattern, strict=True)):
            return None
        returned = {"": types.none, "word": types.int64}.get(function.result) or buffers[0].dtype
        signature = returned(*(types.int64 if isinstance(o, types.Integer) else o for o in operands))
        return signature, partial(_call_machine, function, next(iter(dtypes), None))

    return KernelFunction(name, define)


def _call_machine(
    function: MachineFunction, dtype: Any, context: Any, builder: ir.IRBuilder, signature: Any, args: Any
) -> ir.Value:
    passed, waiting = [], list(args)
    for kind in function.pattern.replace("bi", "p"):
        first = waiting.pop(0)
        if kind != "t":
            passed.append(builder.gep(first, [waiting.pop(0)]) if kind == "p" else first)
    made = function.in_module(builder.module, dtype)
    passed += [ir.Constant(WORD, number) for number in function.extra]
    value = builder.call(made, [builder.bitcast(x, kind) for x, kind in zip(passed, made.ftype.args, strict=True)])
    if not function.result:
        return context.get_dummy_value()
    return builder.trunc(value, ir.IntType(1)) if dtype == np.bool_ else value


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
    return _lower(function, symbol, typing_context, target_context)


def _lower(function: Callable[..., int], symbol: str, typing_context: Any, target_context: Any) -> Any:
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
    module = LlvmModule(str(lowered))
    module.verify()
    for linked in library.linked:
        module.link_in(LlvmModule(str(linked._get_module_for_linking())))
    return module


def _mangle(symbol: str, *_: Any, **__: Any) -> str:
    return symbol
