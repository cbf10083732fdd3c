"""Definitions as instructions of llvmlite's: what is not known as text yet, see `common.compiler.module_text`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from common.compiler.definition_texts import FEW, FUNCTION, KERNEL, MachineText, ScalarText
from common.compiler.llvm_primitives import emit_scalar, llvm_type
from common.compiler.machine_functions import MachineFunction
from common.compiler.rare_branches import has_fixed_names
from common.compiler.whole_vectors import WholeVector
from common.core.dtypes import name_of


def scalar_code(
    definition: Callable[..., Any], kinds: Sequence[np.dtype[Any]], lanes: int, known: tuple[bool, ...], whole: bool
) -> ScalarText | None:
    """The text of a scalar definition; None if it depends on a module. Parameters and errors as in `define`."""
    module = ir.Module()
    function, dtype = define(module, FUNCTION, definition, kinds, lanes, known, whole)
    others = [x for x in module.globals.values() if x is not function]
    if module.metadata or not all(isinstance(x, ir.Function) for x in others) or not has_fixed_names(module):
        return None
    instructions = [x for block in function.blocks for x in block.instructions]
    symbols = tuple((x.name, str(x)) for x in others)
    found = ScalarText(name_of(dtype), len(instructions), symbols, str(function))
    *body, end = instructions
    if len(function.blocks) > 1 or len(body) > FEW:
        return found
    lines = tuple((x.name, str(x).partition(" = ")[2]) for x in body)
    result = end.operands[0].get_reference()
    return found._replace(parameters=tuple(x.name for x in function.args), lines=lines, result=result)


def machine_code(function: MachineFunction, dtype: np.dtype[Any] | None) -> MachineText | None:
    """The text of a machine function for buffers of a dtype; None if it depends on a module."""
    module = ir.Module(KERNEL)
    made = function.in_module(module, dtype)
    if module.metadata or not has_fixed_names(module):
        return None
    symbols = tuple((name, str(x)) for name, x in module.globals.items())
    return MachineText(made.name, str(made.ftype.return_type), symbols)


def define(
    module: ir.Module,
    name: str,
    definition: Callable[..., Any],
    kinds: Sequence[np.dtype[Any]],
    lanes: int,
    known: tuple[bool, ...],
    whole: bool = False,
) -> tuple[ir.Function, np.dtype[Any]]:
    """Define a function in a module, and return it and the dtype of its result; errors as in `scalar_text`.

    Parameters
    ----------
    known : which operands are numbers in the text of a kernel, as far as that matters, see `emit_scalar`.
    whole : whether the processor has the instructions of `WholeVector`.
    """
    # the dtype of the result is known when the definition has been emitted
    signature = ir.FunctionType(ir.VoidType(), [llvm_type(dtype, lanes) for dtype in kinds])
    function = ir.Function(module, signature, name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    operands = list(zip(function.args, kinds, strict=True))
    try:
        value, dtype = emit_scalar(builder, definition, operands, None, lanes, known, WholeVector if whole else None)
    except BaseException:
        del module.globals[name]
        raise
    builder.ret(value)
    signature.return_type = function.return_value.type = value.type
    return function, dtype
