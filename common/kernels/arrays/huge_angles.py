"""Sines, cosines and tangents of huge angles as machine code of its own, see `common.compiler.rare_branches`."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from common.compiler.llvm_primitives import emit_scalar
from common.compiler.rare_branches import define_each
from common.kernels.math import trigonometric


def take_each(module: ir.Module, kind: ir.Type, function: str) -> ir.Function:
    """Define ``each(n, x, y)``: ``y[i] = function(x[i])`` where |x[i]| is beyond what loops reduce themselves."""
    dtype, definition = np.dtype(np.float32 if kind == ir.FloatType() else np.float64), getattr(trigonometric, function)

    def emit(builder: ir.IRBuilder, x: ir.Value) -> Any:
        return emit_scalar(builder, definition, [(x, dtype)], module)[0]

    return define_each(module, function, kind, trigonometric.LIMIT[dtype], emit)


__all__ = ["take_each"]
