"""numpy's own functions of tensors: operators of arrays are the tensors', other functions take the elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.dtypes import SUPPORTED
from common.core.errors import ArgumentError, GradientError
from common.tensor.base import TensorBase
from common.tensor.create import lift

#: Operators of numpy's arrays, and the methods that have them the other way round.
OPERATORS = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "matmul": "__rmatmul__",
    "divide": "__rtruediv__", "true_divide": "__rtruediv__", "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__", "power": "__rpow__", "divmod": "__rdivmod__", "bitwise_and": "__rand__",
    "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "left_shift": "__rlshift__", "right_shift": "__rrshift__",
    "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__", "equal": "__eq__",
    "not_equal": "__ne__",
}  # fmt: skip

#: Functions that numpy calls differently.
_NAMES = {
    "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "power": "pow", "negative": "neg", "absolute": "abs", "conjugate": "clone", "rint": "round",
    "add.reduce": "sum", "multiply.reduce": "prod", "maximum.reduce": "amax", "minimum.reduce": "amin", "max": "amax",
    "min": "amin", "concatenate": "cat", "invert": "bitwise_not", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "fabs": "abs", "modf": "frac", "array": "clone", "linalg.norm": "norm",
    "expand_dims": "unsqueeze", "transpose": "permute", "copy": "clone", "add.accumulate": "cumsum",
}  # fmt: skip


def torch_name(name: str) -> str:
    """PyTorch's name of a function of numpy's."""
    return _NAMES.get(name, name.rpartition(".")[2])


def operator_of(self: TensorBase, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of ``array * tensor``, which numpy asks the tensor for; NotImplemented for another call."""
    own = OPERATORS.get(ufunc.__name__)
    if own is None or method != "__call__" or options or len(inputs) != 2 or isinstance(inputs[0], TensorBase):
        return NotImplemented
    return getattr(self, own)(inputs[0])


def array_ufunc(self: TensorBase, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Answer numpy's functions: operators are the tensor's own, other functions take arrays.

    As in PyTorch, ``np.tanh(tensor)`` is a tensor without history.

    Raises
    ------
    GradientError : a tensor requires grad, of which numpy would lose the gradient.
    ArgumentError : numpy does not take the operands.
    """
    found = operator_of(self, ufunc, method, inputs, options)
    if found is not NotImplemented:
        return found
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    given = options.get("out", ())
    for x in (*inputs, *given):
        if isinstance(x, TensorBase) and x.requires_grad:
            instead = f"x.{name}(), or " if hasattr(type(x), name) else ""
            raise GradientError(
                f"Can't call numpy() on Tensor that requires grad: np.{name} would lose the gradient. Use {instead}"
                "tensor.detach().numpy() instead"
            )
    if given:
        if any(isinstance(x, TensorBase) for x in given):
            raise ArgumentError(f"np.{name}(): argument 'out' must be an array, not a Tensor: use tensor.numpy()")
        options["out"] = given
    arrays = [x.numpy() if isinstance(x, TensorBase) else x for x in inputs]
    try:
        results = getattr(ufunc, method)(*arrays, **options)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ArgumentError(f"np.{name}(): {error}") from error
    if given or results is None:
        return results
    return tuple(map(_tensor, results)) if isinstance(results, tuple) else _tensor(results)


def _tensor(x: Any) -> Any:
    return lift(np.asarray(x)) if getattr(x, "dtype", None) in SUPPORTED else x
