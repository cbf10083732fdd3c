"""Functions that write to their first argument: ``sin_(x)`` is ``x.sin_()``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from common.tensor import boundary
from common.tensor.create import lift

#: At the top level of an engine: methods of tensors.
METHODS = frozenset(
    [
        "abs_",
        "acos_",
        "acosh_",
        "addmv_",
        "arccos_",
        "arccosh_",
        "arcsin_",
        "arcsinh_",
        "arctan_",
        "arctanh_",
        "asin_",
        "asinh_",
        "atan_",
        "atanh_",
        "ceil_",
        "clamp_",
        "clamp_max_",
        "clamp_min_",
        "clip_",
        "cos_",
        "cosh_",
        "deg2rad_",
        "detach_",
        "erf_",
        "erfc_",
        "exp2_",
        "exp_",
        "expm1_",
        "fill_",
        "fix_",
        "floor_",
        "frac_",
        "index_put_",
        "ldexp_",
        "log10_",
        "log1p_",
        "log2_",
        "log_",
        "logit_",
        "nan_to_num_",
        "neg_",
        "negative_",
        "rad2deg_",
        "reciprocal_",
        "relu_",
        "resize_as_",
        "round_",
        "rsqrt_",
        "sigmoid_",
        "sin_",
        "sinc_",
        "sinh_",
        "sqrt_",
        "square_",
        "tan_",
        "tanh_",
        "trunc_",
        "xlogy_",
        "zero_",
    ]
)
#: In `nn.functional`: functions that have ``inplace=``.
ACTIVATIONS = frozenset(["celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_"])


def made(space: str, name: str) -> Callable[..., Any] | None:
    """The function of a name that ends with an underscore, of a package of an engine; None if it has none."""
    engine, _, inner = space.partition(".")
    if inner == "" and name in METHODS:

        def function(input: Any, *args: Any, **options: Any) -> Any:
            return getattr(lift(input), name)(*args, **options)

    elif name in ACTIVATIONS and inner in ("", "nn.functional"):

        def function(input: Any, *args: Any, **options: Any) -> Any:
            return getattr(sys.modules[f"{engine}.nn.functional"], name[:-1])(input, *args, inplace=True, **options)

    else:
        return None
    function.__name__ = function.__qualname__ = name
    function.__module__ = space
    function.__doc__ = f"Write `{name[:-1]}` of a tensor to the tensor, and return it."
    guarded: Callable[..., Any] = boundary.guarded(function)
    return guarded
