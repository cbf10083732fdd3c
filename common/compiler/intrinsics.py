"""The vocabulary of kernel source: typed buffers, and scalar operations lowered to plain instructions.

This module imports numba; it is loaded only when a kernel has to be compiled, never on a warm start.

A kernel sees two word arrays, ``bufs`` (addresses) and ``args`` (sizes, strides, integer scalars).
``buffer(bufs, slot, dtype)`` turns one address into a `BufferType` value: ``b[i]`` loads, ``b[i] = v``
stores, nothing is checked.  Each slot is its own alias scope, because LLVM gives up its run-time overlap
checks beyond about 8 + 8 arrays and the loop then stays scalar; two slots of one kernel must therefore never
overlap when one of them is written.
"""

# numba comes without types: its classes are Any, and so are its decorators.
# mypy: disable-error-code="misc, untyped-decorator"

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.core.ir import SetItem, StaticSetItem
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, register_model, typeof_impl

WORD = ir.IntType(64)

NUMBA_TYPES: dict[np.dtype[Any], types.Type] = {
    np.dtype(np.bool_): types.boolean,
    np.dtype(np.float32): types.float32,
    np.dtype(np.float64): types.float64,
    **{
        np.dtype(f"{sign}int{bits}"): getattr(types, f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
NUMPY_DTYPES = {numba_type: dtype for dtype, numba_type in NUMBA_TYPES.items()}


class WordsType(types.Type):
    """The type of ``bufs`` and ``args``: a read-only array of int64 that no store of the kernel changes."""

    def __init__(self) -> None:
        super().__init__(name="words")


class BufferType(types.Type):
    """A C-contiguous array of `dtype` elements at the address in ``bufs[slot]``."""

    def __init__(self, dtype: types.Type, slot: int) -> None:
        self.dtype = dtype
        self.slot = slot
        super().__init__(name=f"buffer({dtype}, {slot})")


words = WordsType()


@register_model(WordsType)
class _WordsModel(models.PointerModel):
    def __init__(self, dmm: Any, fe_type: types.Type) -> None:
        models.PrimitiveModel.__init__(self, dmm, fe_type, WORD.as_pointer())


@register_model(BufferType)
class _BufferModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: BufferType) -> None:
        super().__init__(dmm, fe_type, storage_type(fe_type.dtype).as_pointer())


def storage_type(dtype: types.Type) -> ir.Type:
    """Return the LLVM type of one stored element; numpy stores a bool in a whole byte."""
    if dtype == types.float32:
        return ir.FloatType()
    if dtype == types.float64:
        return ir.DoubleType()
    return ir.IntType(8 if dtype == types.boolean else dtype.bitwidth)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        container, index = args
        if isinstance(index, types.Integer):
            if isinstance(container, BufferType):
                return signature(container.dtype, container, types.intp)
            if isinstance(container, WordsType):
                return signature(types.int64, container, types.intp)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        container, _, value = args
        # A value of another dtype is refused, never converted: the emitter writes every conversion out.
        if isinstance(container, BufferType) and types.unliteral(value) == container.dtype:
            return signature(types.none, container, types.intp, container.dtype)
        return None


@lower_builtin(operator.getitem, WordsType, types.intp)
def _load_word(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return _load_invariant(builder, *args)


def _load_invariant(builder: ir.IRBuilder, table: ir.Value, index: ir.Value) -> ir.Value:
    load = builder.load(builder.gep(table, [index], inbounds=True))
    # Without this a store to any buffer would make LLVM reload the sizes in every iteration.
    load.set_metadata("invariant.load", builder.module.add_metadata([]))
    return load


@lower_builtin(operator.getitem, BufferType, types.intp)
def _load(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    buffer_type = sig.args[0]
    load = builder.load(builder.gep(args[0], [args[1]], inbounds=True), align=_alignment(buffer_type.dtype))
    _set_alias_scopes(context, builder.module, load, buffer_type)
    if buffer_type.dtype == types.boolean:
        return builder.icmp_unsigned("!=", load, ir.Constant(load.type, 0))
    return load


@lower_builtin(operator.setitem, BufferType, types.intp, types.Any)
def _store(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    buffer_type = sig.args[0]
    address, index, value = args
    if buffer_type.dtype == types.boolean:
        value = builder.zext(value, ir.IntType(8))
    store = builder.store(value, builder.gep(address, [index], inbounds=True), align=_alignment(buffer_type.dtype))
    _set_alias_scopes(context, builder.module, store, buffer_type)
    return context.get_dummy_value()


def _alignment(dtype: types.Type) -> int:
    return 1 if dtype == types.boolean else dtype.bitwidth // 8


def _set_alias_scopes(context: Any, module: ir.Module, access: Any, buffer_type: BufferType) -> None:
    """Tell LLVM that `access` cannot overlap an access to another slot that is written somewhere.

    All slots that are only read share one scope: nothing has to be known between two loads, and the metadata
    grows with (slots written) instead of (slots)**2.
    """
    scopes = getattr(module, "_twingrad_scopes", None)
    if scopes is None:
        scopes = module._twingrad_scopes = _make_scopes(context, module)
    own, others = scopes.get(buffer_type.slot, scopes[None])
    access.set_metadata("alias.scope", own)
    access.set_metadata("noalias", others)


def _make_scopes(context: Any, module: ir.Module) -> dict[int | None, tuple[Any, Any]]:
    typemap, calltypes = context.fndesc.typemap, context.fndesc.calltypes
    written: set[int] = set()
    for statement in calltypes:
        if isinstance(statement, SetItem | StaticSetItem):
            container = typemap[statement.target.name]
            if isinstance(container, BufferType):
                written.add(container.slot)
    domain = module.add_metadata([ir.MetaDataString(module, module.name)])
    scope_of: dict[int | None, Any] = {
        slot: module.add_metadata([ir.MetaDataString(module, f"{module.name}:{slot}"), domain])
        for slot in [None, *sorted(written)]
    }
    return {
        slot: (
            module.add_metadata([scope]),
            module.add_metadata([other for key, other in scope_of.items() if key != slot]),
        )
        for slot, scope in scope_of.items()
    }


class KernelFunction:
    """A function that kernel source calls and that is lowered to LLVM instructions in place.

    numba's own `intrinsic` does the same through templates, overload tables and argument folding, which is
    most of the time that compiling a long kernel takes; this one is looked up once per tuple of operand
    types.

    Parameters
    ----------
    name : str
        Name in kernel source and in error messages.
    define : callable
        ``define(*operand_types) -> (signature, codegen) | None`` with numba types;
        ``codegen(context, builder, signature, args) -> ir.Value``.  None: not defined for these types.
    """

    def __init__(self, name: str, define: Callable[..., Any]) -> None:
        self.name = name
        self.type = KernelFunctionType(self)
        self._define = define
        self._definitions: dict[tuple[Any, ...], Any] = {}

    def definition(self, operand_types: tuple[Any, ...]) -> Any:
        """Return (signature, codegen) for the operand types, None where there is none."""
        if operand_types not in self._definitions:
            self._definitions[operand_types] = self._define(*operand_types)
        return self._definitions[operand_types]


class KernelFunctionType(types.Callable, types.Opaque):
    """The type of one `KernelFunction`: numba asks it to resolve calls."""

    def __init__(self, function: KernelFunction) -> None:
        self.function = function
        super().__init__(f"kernel function {function.name}")

    @property
    def key(self) -> Any:
        """Identity of the type."""
        return self.function

    def get_call_type(self, context: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        """Return the signature for the operand types, None where there is none."""
        definition = None if kws else self.function.definition(args)
        return definition and definition[0]

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Return what an error message lists: nothing, the definitions are made on demand."""
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        """Return the key of the implementation."""
        return self.function


@typeof_impl.register(KernelFunction)
def _typeof_kernel_function(function: KernelFunction, context: Any) -> Any:
    return function.type


register_model(KernelFunctionType)(models.OpaqueModel)


def kernel_function(define: Callable[..., Any]) -> KernelFunction:
    """Make a `KernelFunction` named like the decorated definition."""
    return KernelFunction(define.__name__, define)


@kernel_function
def buffer(bufs: Any, slot: Any, dtype: Any) -> Any:
    """Return the buffer at the address ``bufs[slot]``; `slot` is a literal int, `dtype` a dtype name."""
    if not (isinstance(slot, types.IntegerLiteral) and isinstance(dtype, types.NumberClass)):
        return None
    buffer_type = BufferType(dtype.instance_type, slot.literal_value)

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        element_pointer = context.get_value_type(buffer_type)
        table = builder.bitcast(args[0], element_pointer.as_pointer())
        return _load_invariant(builder, table, ir.Constant(WORD, buffer_type.slot))

    return buffer_type(bufs, slot, dtype), codegen


@kernel_function
def wide(long: Any = None, apart: Any = None) -> Any:
    """Let LLVM use 512-bit registers in this kernel (worth 1.1-1.4x for float64 polynomials).

    Parameters
    ----------
    long, apart : see `common.compiler.loop_ir.Kernel`; only the own translation reads them.
    """

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        # llvmlite's own `add` knows only enum attributes.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(*[x for x in (long, apart) if x is not None]), codegen


@kernel_function
def address(buf: Any, index: Any) -> Any:
    """Return the address of ``buf[index]`` as int64."""
    if not (isinstance(buf, BufferType) and isinstance(index, types.Integer)):
        return None

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return builder.ptrtoint(builder.gep(args[0], [args[1]], inbounds=True), WORD)

    return types.int64(buf, types.intp), codegen


def _integer_extreme(name: str, order: str) -> KernelFunction:
    def define(*operands: Any) -> Any:
        # Only sizes: what the extreme of floats is (NaN, signed zeros) is for the op registry to say.
        if len(operands) < 2 or not all(isinstance(operand, types.Integer) for operand in operands):
            return None

        def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            result, *others = args
            for other in others:
                result = builder.select(builder.icmp_signed(order, result, other), result, other)
            return result

        return types.int64(*[types.int64] * len(operands)), codegen

    return KernelFunction(name, define)


def scalar_intrinsic(name: str, function: Callable[..., Any]) -> KernelFunction:
    """Make the scalar expression `function` callable from kernel source.

    Parameters
    ----------
    name : str
        Name in kernel source and in error messages.
    function : callable
        Scalar expression over the operations of `common.compiler.primitives`.  Operands keep their dtype,
        nothing is widened.
    """

    def define(*operand_types: Any) -> Any:
        plain = tuple(types.unliteral(operand) for operand in operand_types)
        if not all(operand in NUMPY_DTYPES for operand in plain):
            return None
        return _scalar_definition(name, function, [NUMPY_DTYPES[operand] for operand in plain])

    return KernelFunction(name, define)


def _scalar_definition(name: str, function: Callable[..., Any], dtypes: list[np.dtype[Any]]) -> Any:
    from common.compiler.llvm_primitives import emit_scalar, llvm_type

    # The result dtype is only known by running the expression once; it is emitted into a scratch module.
    argument_types = [llvm_type(dtype) for dtype in dtypes]
    scratch = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), argument_types), name)
    scratch_builder = ir.IRBuilder(scratch.append_basic_block())
    try:
        _, result = emit_scalar(scratch_builder, function, list(zip(scratch.args, dtypes, strict=True)))
    except TypeError as error:
        raise TypingError(f"{name}: {error}") from error

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        value, _ = emit_scalar(builder, function, list(zip(args, dtypes, strict=True)))
        return value

    return NUMBA_TYPES[np.dtype(result)](*[NUMBA_TYPES[dtype] for dtype in dtypes]), codegen


def namespace() -> dict[str, Any]:
    """Return what every kernel source may use: functions, and dtype names, which also make constants."""
    names: dict[str, Any] = {"bool_" if d.kind == "b" else str(d): of_numba for d, of_numba in NUMBA_TYPES.items()}
    extremes = {"min": _integer_extreme("min", "<"), "max": _integer_extreme("max", ">")}
    return names | extremes | {"buffer": buffer, "wide": wide, "address": address}
