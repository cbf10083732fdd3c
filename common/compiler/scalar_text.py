"""Scalar definitions as LLVM IR text: each is emitted once per process, and then written into the kernels that call it.

A definition of a few instructions is written where it is called; one of more is a function that LLVM inlines. One that
needs constants in memory is emitted into the module of its kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from common.compiler.llvm_primitives import emit_scalar, llvm_type
from common.compiler.rare_branches import has_fixed_names
from common.compiler.whole_vectors import WholeVector

FEW = 6
"""Instructions that are written where they are needed: as a function they take longer to parse and to inline."""

_NAME = re.compile(r'%"([^"]+)"')
_FUNCTION = "(definition)"


class ScalarText(NamedTuple):
    """A definition for operands of certain dtypes and lanes.

    Attributes
    ----------
    dtype, cost : of its result; how many instructions it has.
    declared, defined : the functions that it calls: intrinsics and such with code of their own; and names and texts of
        those that are its own.
    text : it as a function, which is named `_FUNCTION`.
    parameters, lines, result : its operands, instructions and result if it has few instructions, else no lines.
    """

    dtype: np.dtype[Any]
    cost: int
    declared: tuple[ir.Function, ...]
    defined: tuple[tuple[str, str], ...]
    text: str
    parameters: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] | None = None
    result: str = ""

    def put_into(self, module: ir.Module, name: str) -> None:
        """Declare in a module what the definition calls; unless its instructions are few, define it as a function."""
        for function in self.declared:
            if function.name not in module.globals:
                ir.Function(module, function.ftype, function.name).attributes = function.attributes
        for own, text in self.defined:
            module.globals.setdefault(own, text)
        if self.lines is None:
            module.globals[name] = self.text.replace(_FUNCTION, name, 1)

    def write(self, register: Callable[[str], str], operands: Sequence[str]) -> str:
        """Write the instructions by `register`, which returns the register of the result of each; return the result."""
        known = dict(zip(self.parameters, operands, strict=True))

        def put(text: str) -> str:
            return _NAME.sub(lambda found: known[found[1]], text)

        for name, instruction in self.lines or ():
            known[name] = register(put(instruction))
        return put(self.result)


_texts: dict[Any, ScalarText | None] = {}


def scalar_text(
    definition: Callable[..., Any],
    kinds: Sequence[np.dtype[Any]],
    lanes: int,
    known: tuple[bool, ...],
    whole: bool = False,
) -> ScalarText | None:
    """The text of a definition; None of one that depends on a module. Parameters as in `define`.

    Raises
    ------
    OneByOne : it has no form for vectors.
    TypeError : it is no scalar definition of these dtypes.
    """
    key = definition, lanes, known, whole, *kinds
    if key not in _texts:
        _texts[key] = _emitted(definition, kinds, lanes, known, whole)
    return _texts[key]


def _emitted(
    definition: Callable[..., Any], kinds: Sequence[np.dtype[Any]], lanes: int, known: tuple[bool, ...], whole: bool
) -> ScalarText | None:
    module = ir.Module()
    function, dtype = define(module, _FUNCTION, definition, kinds, lanes, known, whole)
    others = [x for x in module.globals.values() if x is not function]
    if module.metadata or not all(isinstance(x, ir.Function) for x in others) or not has_fixed_names(module):
        return None
    declared = tuple(x for x in others if x.is_declaration)
    defined = tuple((x.name, str(x)) for x in others if not x.is_declaration)
    instructions = [x for block in function.blocks for x in block.instructions]
    found = ScalarText(dtype, len(instructions), declared, defined, str(function))
    *body, end = instructions
    if len(function.blocks) > 1 or len(body) > FEW:
        return found
    lines = tuple((x.name, str(x).partition(" = ")[2]) for x in body)
    result = end.operands[0].get_reference()
    return found._replace(parameters=tuple(x.name for x in function.args), lines=lines, result=result)


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


__all__ = ["FEW", "ScalarText", "define", "scalar_text"]
