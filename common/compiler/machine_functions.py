"""Functions of kernel source with machine code of their own: their operands, and who defines them in a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from common.core.dtypes import name_of

PREFIX = "twingrad_library"
"""Symbols of functions with code of their own begin with it: ``twingrad_library.name.dtype``."""


class MachineFunction(NamedTuple):
    """A function that kernel source calls by its name.

    Attributes
    ----------
    pattern : one letter per argument: "b" buffer, always followed by its offset "i"; "i" integer, "w" words
        (``bufs`` or ``args``), "t" a buffer of which only the dtype matters.
    make : ``make(module, kind) -> ir.Function``, or ``make(module)`` if no buffer is passed: defines the function in
        a module for elements of LLVM type `kind`. It takes an address for each "bi", then `extra`.
    result : what it returns: nothing, an "element" or a "word".
    apart : whether it is code of its own, that kernels call, and not part of each of them.
    dtypes : of buffers, all of which have one dtype. Elements of bools are bytes; ``make`` is told by ``truth=True``.
    """

    name: str
    pattern: str
    make: Callable[..., Any]
    result: str = ""
    extra: tuple[int, ...] = ()
    dtypes: tuple[np.dtype[Any], ...] = ()
    apart: bool = False

    def _symbol(self, dtype: np.dtype[Any] | None) -> str:
        return f"{PREFIX}.{self.name}.{None if dtype is None else name_of(dtype)}"

    def in_module(self, module: Any, dtype: np.dtype[Any] | None) -> Any:
        """The function in a module, for buffers of a dtype; one with code of its own is declared only."""
        from llvmlite import ir

        if not self.apart:
            return self._define(module, dtype)
        symbol = self._symbol(dtype)
        return module.globals.get(symbol) or ir.Function(module, self._type(dtype), symbol)

    def declaration(self, dtype: np.dtype[Any] | None) -> tuple[str, str, str]:
        """Symbol, LLVM type of the result, and declaration of one with code of its own."""
        from common.compiler.registers import storage

        symbol = self._symbol(dtype)
        result = {"": "void", "word": "i64"}.get(self.result) or storage(np.dtype(dtype))
        kinds = ["i64" if letter == "i" else "ptr" for letter in self.pattern.replace("bi", "p")]
        return symbol, result, f'declare {result} @"{symbol}"({", ".join([*kinds, *("i64" for _ in self.extra)])})'

    def _define(self, module: Any, dtype: np.dtype[Any] | None) -> Any:
        from common.compiler.llvm_primitives import llvm_type

        if dtype is None:
            return self.make(module)
        if dtype == np.bool_:
            return self.make(module, llvm_type(np.int8), truth=True)
        return self.make(module, llvm_type(dtype))

    def _type(self, dtype: Any) -> Any:
        """The type of the function for buffers of a dtype."""
        from llvmlite import ir

        from common.compiler.llvm_primitives import llvm_type

        word, element = ir.IntType(64), llvm_type(np.int8 if dtype == np.bool_ else dtype)
        kinds = [word if letter == "i" else ir.PointerType() for letter in self.pattern.replace("bi", "p")]
        result = {"": ir.VoidType(), "word": word, "element": element}[self.result]
        return ir.FunctionType(result, [*kinds, *(word for _ in self.extra)])

    def module(self, dtype: np.dtype[Any]) -> str:
        """The text of a module that exports the function for buffers of a dtype."""
        from llvmlite import ir

        module, symbol = ir.Module(), self._symbol(dtype)
        function = ir.Function(module, self._type(dtype), symbol)
        function.attributes.add("nounwind")
        set.add(function.attributes, '"prefer-vector-width"="512"')
        builder = ir.IRBuilder(function.append_basic_block())
        defined = self._define(module, dtype)
        operands = [
            builder.bitcast(operand, kind) for operand, kind in zip(function.args, defined.ftype.args, strict=True)
        ]
        value = builder.call(defined, operands)
        if self.result:
            builder.ret(value)
        else:
            builder.ret_void()
        return str(module)
