"""In-place forms of functions whose result has the tensor's shape: ``x.clamp_(0, 1)`` writes it to x's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError
from common.methods.assign import assign, require_fitting
from common.tensor import boundary, create
from common.tensor.base import TensorBase
from common.tensor.read_saved import with_edge
from common.tensor.view_families import shows_writable

#: The functions of which PyTorch's tensors have an in-place form, besides those of the operators.
NAMES = frozenset(
    ["abs", "absolute", "acos", "acosh", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "arccos",
     "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh",
     "baddbmm", "bitwise_not", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "conj_physical", "copysign", "cos",
     "cosh", "cumprod", "cumsum", "deg2rad", "digamma", "divide", "eq", "erf", "erfc", "erfinv", "exp", "exp2",
     "expm1", "fix", "float_power", "floor", "fmod", "frac", "gcd", "ge", "greater", "greater_equal", "gt",
     "heaviside", "hypot", "i0", "igamma", "igammac", "index_reduce", "lcm", "ldexp", "le", "lerp", "less",
     "less_equal", "lgamma", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or",
     "logical_xor", "logit", "lt", "masked_scatter", "multiply", "mvlgamma", "nan_to_num", "ne", "neg", "negative",
     "nextafter", "not_equal", "polygamma", "pow", "put", "rad2deg", "reciprocal", "relu", "renorm", "round", "rsqrt",
     "scatter_add", "scatter_reduce", "sgn", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "square", "subtract",
     "tan", "tanh", "tril", "triu", "true_divide", "trunc", "xlogy"]
)  # fmt: skip
#: Those that write at indices and masks, whose in-place forms `common.methods.in_place_index` has.
AT_INDICES = frozenset(["index_add", "index_copy", "index_fill", "index_put", "masked_fill", "scatter"])


def over(name: str, function: Any, x: Any, *args: Any, **options: Any) -> TensorBase:
    """Write ``function(x, ...)`` over `x`, and return it.

    Parameters
    ----------
    name : of the function, for messages.
    x : a tensor; an array is written as the tensor that shares its memory.
    """
    x = create.lift(x)
    if not isinstance(x, TensorBase):
        message = f"{name}(inplace=True) writes over a tensor; given {type(x).__name__}"
        raise ArgumentError(f"{message}: leave inplace out, or give a tensor")
    source = x
    if mode.is_grad_enabled() and type(x.payload) is np.ndarray and not (x.requires_grad and x.is_leaf):
        # the rules of what the function is made of need the operand as it was before this write
        if any(getattr(t, "requires_grad", False) for t in (x, *args, *options.values())):
            source = with_edge(x.payload.copy(), x.edge)
            args = tuple([source if a is x else a for a in args])
    y = function(source, *args, **options)
    if type(x.payload) is np.ndarray and not x.payload.flags.writeable and not shows_writable(x):
        require_fitting(x, y, name)
        raise ArgumentError(
            f"{name}_() writes over an array that is read-only, or not in native byte order: give a copy of it"
        )
    return assign(x, y, name)


class InPlace:
    """The in-place form of a method, made when it is first asked for.

    Parameters
    ----------
    home : the class that gets the method.
    """

    def __init__(self, name: str, home: type) -> None:
        self.name, self.home = name, home

    def __get__(self, instance: Any, owner: type) -> Any:
        name, function = self.name, getattr(self.home, self.name)

        def method(self: TensorBase, *args: Any, **options: Any) -> TensorBase:
            return over(name, function, self, *args, **options)

        method.__name__, method.__qualname__ = f"{name}_", f"{self.home.__name__}.{name}_"
        method.__doc__ = f"Write what `{name}` gives to this tensor's memory, and return the tensor."
        method = boundary.guarded(method, f"{name}_")
        setattr(self.home, f"{name}_", method)
        return method if instance is None else method.__get__(instance, owner)
