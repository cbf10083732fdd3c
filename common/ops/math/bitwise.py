"""Logic and shifts on the bits of integers; bools have the logic of truth values."""

from __future__ import annotations

from common.ops._define import elementwise
from common.ops._samples import whole

bitwise_and = elementwise("bitwise_and", lambda a, b: a & b, doc="Bits that both have.", refuses="f", draw=whole)
bitwise_or = elementwise("bitwise_or", lambda a, b: a | b, doc="Bits that either has.", refuses="f", draw=whole)
bitwise_xor = elementwise("bitwise_xor", lambda a, b: a ^ b, doc="Bits that one of both has.", refuses="f", draw=whole)
bitwise_not = elementwise("bitwise_not", lambda x: ~x, doc="Bits that x has not; not x for bools.", refuses="f",
                          draw=whole, refusals=(
                              "~ (operator.invert) is only implemented on integer and Boolean-type tensors.",
                          ))  # fmt: skip
bitwise_left_shift = elementwise(
    "bitwise_left_shift", lambda a, b: a << b, refuses="bf", draw=whole,
    doc="a * 2^b, wrapped; 0 where b is negative or not below the width.",
)  # fmt: skip
bitwise_right_shift = elementwise(
    "bitwise_right_shift", lambda a, b: a >> b, refuses="bf", draw=whole,
    doc="floor(a / 2^b); 0, or -1 for negative a, where b is negative or not below the width.",
)  # fmt: skip

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
]  # fmt: skip
