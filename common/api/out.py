"""``out=``: a function's result, written to tensors that the caller has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, DTypeError, GradientError, ShapeError
from common.core.sizes import same_shape
from common.core.source_lines import warn_user
from common.methods.assign import assign
from common.methods.memory import resize_
from common.tensor.base import TensorBase
from common.tensor.create import lift

#: The functions of tensors that take it in PyTorch.
NAMES = frozenset(
    ["abs", "absolute", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "alias_copy",
     "all", "amax", "amin", "aminmax", "angle", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
     "arctanh", "argmax", "argmin", "argsort", "as_strided_copy", "asin", "asinh", "atan", "atan2", "atanh",
     "avg_pool2d", "avg_pool3d", "baddbmm", "bernoulli", "bitwise_and", "bitwise_left_shift", "bitwise_not",
     "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm", "bucketize", "cat", "ceil", "chain_matmul", "cholesky",
     "cholesky_inverse", "cholesky_solve", "clamp", "clamp_max", "clamp_min", "clip", "column_stack", "concat",
     "concatenate", "conj_physical", "copysign", "cos", "cosh", "cross", "cummax", "cummin", "cumprod", "cumsum",
     "deg2rad", "diag", "diagonal_copy", "diff", "digamma", "div", "divide", "dot", "dstack", "eq", "erf", "erfc",
     "erfinv", "exp", "exp2", "expand_copy", "expm1", "fix", "float_power", "floor", "floor_divide", "fmax", "fmin",
     "fmod", "frac", "frexp", "gather", "gcd", "ge", "gelu", "geqrf", "ger", "greater", "greater_equal", "gt",
     "hardshrink", "heaviside", "histc", "histogram", "hstack", "hypot", "i0", "igamma", "igammac", "index_add",
     "index_copy", "index_reduce", "index_select", "inner", "inverse", "isin", "isneginf", "isposinf", "kron",
     "kthvalue", "lcm", "ldexp", "le", "lerp", "less", "less_equal", "lgamma", "linear", "log", "log10", "log1p",
     "log2", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logical_and", "logical_not", "logical_or",
     "logical_xor", "logit", "logsigmoid", "logsumexp", "lt", "lu_solve", "lu_unpack", "masked_select", "matmul",
     "matrix_power", "max", "maximum", "mean", "median", "min", "minimum", "mm", "mode", "msort", "mul", "multinomial",
     "multiply", "mv", "mvlgamma", "nan_to_num", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow_copy",
     "native_batch_norm", "ne", "neg", "negative", "nextafter", "nonzero", "norm", "normalize", "not_equal", "orgqr",
     "ormqr", "outer", "permute_copy", "polygamma", "pow", "prod", "qr", "quantile", "rad2deg", "reciprocal",
     "remainder", "renorm", "round", "row_stack", "rsqrt", "scatter", "scatter_add", "scatter_reduce", "searchsorted",
     "select_copy", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "slice_copy", "slice_scatter",
     "softmax", "softplus", "softshrink", "sort", "split_copy", "split_with_sizes_copy", "sqrt", "square",
     "squeeze_copy", "stack", "std", "sub", "subtract", "sum", "svd", "t_copy", "take", "take_along_dim", "tan", "tanh",
     "tensordot", "topk", "transpose_copy", "triangular_solve", "tril", "triu", "true_divide", "trunc", "unbind_copy",
     "unfold_copy", "unsqueeze_copy", "var", "vdot", "view_copy", "vstack", "where", "xlogy"]
)  # fmt: skip
#: Functions of `linalg` besides.
LINALG = frozenset(
    ["cholesky", "cholesky_ex", "cond", "det", "eigh", "eigvalsh", "householder_product", "inv", "inv_ex",
     "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve",
     "matrix_norm", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex",
     "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vecdot", "vector_norm"]
)  # fmt: skip
#: Functions of `special` besides.
SPECIAL = frozenset(
    ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
     "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "entr", "erfcx", "expit",
     "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
     "laguerre_polynomial_l", "legendre_polynomial_p", "log_ndtr", "modified_bessel_i0", "modified_bessel_i1",
     "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "psi", "scaled_modified_bessel_k0",
     "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
     "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "spherical_bessel_j0", "xlog1py", "zeta"]
)  # fmt: skip
#: Functions that make tensors of sizes; without ``dtype=`` they take that of `out`.
CREATION = frozenset(
    ["arange", "empty", "eye", "full", "linspace", "logspace", "normal", "ones", "rand", "randint", "randn", "range",
     "randperm", "zeros"]
)  # fmt: skip
#: Those of them whose numbers are cut for an `out` of integers.
OF_NUMBERS = frozenset(["arange", "eye", "full", "linspace", "logspace", "range"])
#: Functions that convert nothing they write.
SAME_DTYPE = frozenset(["aminmax", "gather", "multinomial"])
#: All of them.
TAKEN = NAMES | LINALG | SPECIAL


def written(name: str, out: Any, function: Callable[..., Any], /, *operands: Any, **options: Any) -> Any:
    """The call of a function with ``out=``."""
    return write(name, out, function(*operands, **options))


def write(name: str, out: Any, result: Any) -> Any:
    """Write what a function gives to `out`, and return that: the memory of the result itself is not saved.

    Parameters
    ----------
    out : a tensor or array; of several results as many, in a tuple. Outside a trace, a tensor of no elements takes the
        result's shape.

    Raises
    ------
    ArgumentError : it is something else.
    ShapeError : an array, or a tensor in a trace, has another shape than the result.
    DTypeError : the result is floating point, and it is not; or the function is one of those that convert nothing.
    GradientError : a gradient is wanted of an operand, or of `out`.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(f"{name}(): argument 'out' must be a tuple of {len(result)} tensors")
        written = tuple(write(name, x, y) for x, y in zip(out, result, strict=True))
        named: Any = getattr(type(result), "_make", tuple)
        return named(written)
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
        if not isinstance(out, TensorBase) or mode.current_trace() is not None:
            raise ShapeError(
                f"{name}(): out has shape {tuple(x.shape)}, the result {tuple(y.shape)}; only a tensor takes another "
                "shape, outside a trace"
            )
        if x.payload.size:
            warn_user(
                "An output with one or more elements was resized since it had shape "
                f"{list(x.shape)}, which does not match the required output shape {list(y.shape)}: give a tensor of "
                "that shape, or of no elements"
            )
        resize_(out, *y.shape)
    if y.dtype != x.dtype and name in SAME_DTYPE:
        raise DTypeError(f"{name}(): Expected out tensor to have dtype {y.dtype}, but got {x.dtype} instead")
    if y.dtype.kind == "f" != x.dtype.kind and name not in OF_NUMBERS:
        raise DTypeError(f"{name}(): result type {y.dtype} can't be cast to the desired output type {x.dtype}")
    assign(x, y.to(x.dtype), name)
    return out
