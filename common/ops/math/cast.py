"""Conversion between dtypes and severing of gradients."""

from __future__ import annotations

from typing import Any

from common.compiler.primitives import convert
from common.core.op import Op
from common.ops._define import elementwise
from common.ops._samples import conversions

to: Op = elementwise(
    "to", lambda x, dtype: convert(x, dtype), (lambda g, x_dtype: to(g, dtype=x_dtype, x_dtype=g.dtype),),
    samples=conversions,
    doc="x in another dtype. Float to int: towards zero, nan is 0, out of range saturates; to bool: x != 0.",
    attrs=("dtype", "x_dtype"), node_name="ToCopy", casts=True, form_only=True,
)  # fmt: skip


def converted(x: Any, dtype: Any) -> Any:
    """`x` in the dtype that a caller asked for; as it is if None.

    Raises
    ------
    DTypeError : a dtype without ops.
    """
    if dtype is None:
        return x
    from common.tensor.arrays import dtype_or

    wanted = dtype_or(dtype, None)
    return x if x.dtype == wanted else to(x, dtype=wanted, x_dtype=x.dtype)


clone = elementwise("clone", lambda x: x, (lambda g: g,), doc="The same elements in new memory.", copies=True)


__all__ = ["clone"]
