"""``out=``: a function's result, written to tensors that the caller has."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, DTypeError, GradientError, ShapeError
from common.core.sizes import same_shape
from common.methods.assign import assign
from common.tensor.base import TensorBase
from common.tensor.create import lift

#: The functions of which PyTorch documents it.
NAMES = frozenset(
    ["abs", "absolute", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "all",
     "amax", "amin", "aminmax", "angle", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
     "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "baddbmm", "bitwise_and", "bitwise_left_shift",
     "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm", "bucketize", "cat", "ceil", "clamp",
     "clip", "column_stack", "concat", "concatenate", "conj_physical", "copysign", "cos", "cosh", "cross", "cummax",
     "cummin", "cumprod", "cumsum", "deg2rad", "diag", "digamma", "div", "divide", "dot", "dstack", "eq", "erf",
     "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod",
     "frac", "frexp", "gather", "gcd", "ge", "ger", "greater", "greater_equal", "gt", "heaviside", "histc", "hstack",
     "hypot", "index_add", "index_copy", "index_reduce", "index_select", "inner", "kron", "isneginf", "isposinf",
     "kthvalue", "lcm", "ldexp", "le", "lerp", "less", "less_equal", "lgamma", "log", "log10", "log1p", "log2",
     "logaddexp", "logaddexp2", "logcumsumexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logit",
     "logsumexp", "lt", "matmul", "matrix_power", "max", "maximum", "mean", "min", "minimum", "mm", "mode", "msort",
     "mul", "multiply", "mv", "nan_to_num", "nanmean", "nanquantile", "ne", "neg", "negative", "nextafter",
     "not_equal", "outer", "polygamma", "pow", "prod", "quantile", "rad2deg", "reciprocal", "remainder", "renorm",
     "round", "row_stack", "rsqrt", "searchsorted", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh",
     "sort", "sqrt", "square", "stack", "std", "sub", "subtract", "sum", "take_along_dim", "tan", "tanh", "topk",
     "tril", "triu", "true_divide", "trunc", "var", "vdot", "vstack", "where", "xlogy"]
)  # fmt: skip


def write(name: str, out: Any, result: Any) -> Any:
    """Write what a function gives to `out`, and return that: the memory of the result itself is not saved.

    Parameters
    ----------
    out : a tensor or array; of several results as many, in a tuple.

    Raises
    ------
    ArgumentError : it is something else.
    ShapeError : it does not have the result's shape; it is never resized.
    DTypeError : the result is floating point, and it is not.
    GradientError : a gradient is wanted of an operand, or of `out`.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(f"{name}(): argument 'out' must be a tuple of {len(result)} tensors")
        return tuple(write(name, x, y) for x, y in zip(out, result, strict=True))
    if not isinstance(out, (TensorBase, np.ndarray)) or (isinstance(out, np.ndarray) and mode.replayed()):
        raise ArgumentError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    x, y = lift(out), lift(result)
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        level.refuse(f"an out= function, {name}(),", (x, y))
    if mode.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        raise GradientError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad. Leave it out, or call under no_grad()"
        )
    if not same_shape(x.shape, y.shape) and tuple(x.shape) != tuple(y.shape):
        raise ShapeError(
            f"{name}(): out has shape {tuple(x.shape)}, the result {tuple(y.shape)}; out is written, never resized"
        )
    if y.dtype.kind == "f" != x.dtype.kind:
        raise DTypeError(f"{name}(): result type {y.dtype} can't be cast to the desired output type {x.dtype}")
    assign(x, y, name)
    return out
