"""Conversion between dtypes and severing of gradients."""

from __future__ import annotations

from common.native.primitives import convert
from common.op import Op
from common.ops._define import elementwise
from common.ops._samples import conversions

to: Op = elementwise(
    "to", lambda x, dtype: convert(x, dtype), (lambda g, x_dtype: to(g, dtype=x_dtype, x_dtype=g.dtype),),
    samples=conversions,
    doc="x in another dtype. Float to int: towards zero, nan is 0, out of range saturates; to bool: x != 0.",
    attrs=("dtype", "x_dtype"), node_name="ToCopy",
)  # fmt: skip

clone = elementwise("clone", lambda x: x, (lambda g: g,), doc="The same elements in new memory.")


__all__ = ["clone"]
