"""Functions of kernel source that are machine code of their own: what they take, and who defines them in a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class MachineFunction(NamedTuple):
    """A function that kernel source calls by its name.

    Attributes
    ----------
    pattern : one letter per argument: "b" buffer, always followed by its offset "i"; "i" integer, "w" words
        (``bufs`` or ``args``), "t" a buffer of which only the dtype matters.
    make : ``make(module, kind) -> ir.Function``, or ``make(module)`` if no buffer is passed: defines the function in
        a module for elements of LLVM type `kind`. It takes an address for each "bi", then `extra`.
    result : what it returns: nothing, an "element" or a "word".
    dtypes : of buffers, all of which have one dtype. Elements of bools are bytes; ``make`` is told by ``truth=True``.
    """

    name: str
    pattern: str
    make: Callable[..., Any]
    result: str = ""
    extra: tuple[int, ...] = ()
    dtypes: tuple[np.dtype[Any], ...] = ()

    def in_module(self, module: Any, dtype: np.dtype[Any] | None) -> Any:
        """The function in a module, for buffers of a dtype."""
        from common.native.llvm import llvm_type

        if dtype is None:
            return self.make(module)
        if dtype == np.bool_:
            return self.make(module, llvm_type(np.int8), truth=True)
        return self.make(module, llvm_type(dtype))
