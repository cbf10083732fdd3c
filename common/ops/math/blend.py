"""Several operands in one op: interpolation, and a product or quotient that is added."""

from __future__ import annotations

from typing import Any

from common.compiler.primitives import absolute, select
from common.core.dtypes import refuse
from common.core.errors import ArgumentError, DTypeError
from common.ops._define import elementwise


def _interpolate(a: Any, b: Any, weight: Any) -> Any:
    # from the nearer end, so that weight 1 gives b itself
    return select(absolute(weight) < 0.5, a + weight * (b - a), b - (b - a) * (1.0 - weight))


lerp = elementwise(
    "lerp", _interpolate,
    (lambda g, weight: g * (1 - weight),
     lambda g, weight: g * weight,
     lambda g, a, b: g * (b - a)),
    doc="a + weight (b - a); for |weight| >= 1/2 it is b - (b - a) (1 - weight). "
        "d/da = 1 - weight, d/db = weight, d/dweight = b - a.",
    domain="real",
)  # fmt: skip

_addcmul = elementwise(
    "addcmul", lambda x, tensor1, tensor2, value: x + value * tensor1 * tensor2,
    (lambda g: g,
     lambda g, tensor2, value: g * (tensor2 * value),
     lambda g, tensor1, value: g * (tensor1 * value),
     lambda g, tensor1, tensor2: g * (tensor1 * tensor2)),
    doc="x + (value tensor1) tensor2. d/dx = 1, d/dtensor1 = value tensor2, d/dtensor2 = value tensor1, "
        "d/dvalue = tensor1 tensor2.",
    refuses="b",
)  # fmt: skip

_addcdiv = elementwise(
    "addcdiv", lambda x, tensor1, tensor2, value: x + value * tensor1 / tensor2,
    (lambda g: g,
     lambda g, tensor2, value: g * (value / tensor2),
     lambda g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
     lambda g, tensor1, tensor2: g * (tensor1 / tensor2)),
    doc="x + (value tensor1) / tensor2. d/dx = 1, d/dtensor1 = value / tensor2, "
        "d/dtensor2 = -value tensor1 / tensor2^2, d/dvalue = tensor1 / tensor2.",
    refuses="biu", costly=True,
)  # fmt: skip


def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """``x + value * tensor1 * tensor2``

    Parameters
    ----------
    x, tensor1, tensor2 : (...) broadcast against each other.
    value : a number; whole where the tensors are ints.

    Raises
    ------
    ArgumentError : a float `value` for ints.
    DTypeError : bools only.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.addcmul(tw.zeros(2), tw.tensor([1.0, 2.0]), tw.tensor([3.0, 4.0]), value=0.5)
    tensor([1.5000, 4.0000])
    """
    kinds = {t.dtype.kind for t in (x, tensor1, tensor2)}
    if kinds == {"b"}:
        refuse("addcmul", x, "b")
    if isinstance(value, float) and "f" not in kinds:
        raise ArgumentError("addcmul(): for integral input tensors, argument value must not be a floating point number")
    return _addcmul(x, tensor1, tensor2, value)


def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """``x + value * tensor1 / tensor2``

    Parameters
    ----------
    x, tensor1, tensor2 : (...) floats, broadcast against each other.
    value : a number.

    Raises
    ------
    DTypeError : tensor1 and tensor2 are ints.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.addcdiv(tw.zeros(2), tw.tensor([1.0, 2.0]), tw.tensor([4.0, 8.0]), value=2)
    tensor([0.5000, 0.5000])
    """
    if tensor1.dtype.kind != "f" and tensor2.dtype.kind != "f":
        raise DTypeError(
            "Integer division with addcdiv is not supported: use (x + value * trunc(tensor1 / tensor2)) or convert "
            "an operand to a float dtype"
        )
    return _addcdiv(x, tensor1, tensor2, value)


__all__ = ["addcdiv", "addcmul", "lerp"]
