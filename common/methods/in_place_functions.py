"""In-place forms of functions whose result has the tensor's shape: ``x.clamp_(0, 1)`` writes it to x's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, GradientError, ShapeError
from common.methods import asking
from common.methods.assign import assign, copy_, require_fitting
from common.tensor import boundary, create
from common.tensor.arrays import concrete
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
    if y is source:  # as dropout gives in evaluation: nothing is written, so a leaf may be given
        return x
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

        def plain(self: TensorBase, *args: Any, **options: Any) -> TensorBase:
            return over(name, function, self, *args, **options)

        def method(self: TensorBase, *args: Any, **options: Any) -> TensorBase:
            called = asking.called
            return plain(self, *args, **options) if called is None else called(method, plain, (self, *args), options)

        method.__name__, method.__qualname__ = f"{name}_", f"{self.home.__name__}.{name}_"
        method.__doc__ = f"Write what `{name}` gives to this tensor's memory, and return the tensor."
        method = boundary.guarded(method, f"{name}_")
        setattr(self.home, f"{name}_", method)
        return method if instance is None else method.__get__(instance, owner)


def _each(name: str, x: TensorBase, function: Callable[..., Any], others: tuple[Any, ...]) -> TensorBase:
    if not callable(function):
        raise ArgumentError(f"{name}(): argument 'callable' must be a function, not {type(function).__name__}")
    if x.requires_grad or any(getattr(y, "requires_grad", False) for y in others):
        raise GradientError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    arrays = [concrete(x)]
    for y in others:
        if not isinstance(y, TensorBase):
            raise ArgumentError(f"{name}(): argument 'tensor' must be Tensor, not {type(y).__name__}")
        try:
            arrays.append(np.broadcast_to(concrete(y), arrays[0].shape))
        except ValueError:
            message = f"{name}(): a tensor of shape {tuple(y.shape)} does not expand to {tuple(x.shape)}"
            raise ShapeError(message) from None
    values = [function(*elements) for elements in zip(*(array.ravel().tolist() for array in arrays), strict=True)]
    return copy_(x, create.lift(np.array(values, arrays[0].dtype).reshape(arrays[0].shape)))


def apply_(self: TensorBase, callable: Callable[[Any], Any]) -> TensorBase:
    """Write ``callable(a)`` over each element a, a Python number; slow, and outside a trace only.

    Raises
    ------
    GradientError : the tensor requires grad.
    TraceError : in a trace, where there are no elements.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.tensor([1, 2, 3]).apply_(lambda a: a * a)
    tensor([1, 4, 9])
    """
    return _each("apply_", self, callable, ())


def map_(self: TensorBase, tensor: Any, callable: Callable[[Any, Any], Any]) -> TensorBase:
    """Write ``callable(a, b)`` over each element a, with the element b of a tensor that broadcasts to this one.

    Raises
    ------
    GradientError, TraceError : as for `apply_`.
    ShapeError : the tensor does not broadcast.
    """
    return _each("map_", self, callable, (tensor,))


def map2_(self: TensorBase, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> TensorBase:
    """Write ``callable(a, b, c)`` over each element a, with those of two other tensors; see `map_`."""
    return _each("map2_", self, callable, (x, y))


#: Those that call a Python function for each element.
OF_PYTHON: dict[str, Any] = {"apply_": apply_, "map_": map_, "map2_": map2_}
