"""The kernels of convolutions: by panels, or where groups have one row of weights, by rows of windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from common.compiler.compile import compile_kernel
from common.core.op import NativeCall
from common.kernels.arrays.convolution_blocks import input_source, scratch_of_panels
from common.kernels.arrays.convolution_forward import forward_source
from common.kernels.arrays.convolution_weights import weight_source
from common.kernels.arrays.depthwise_rows import input_row_source, row_source, scratch_of_rows, weight_row_source
from common.runtime import thread_pool

__all__ = ["KERNELS", "call", "part_symbol"]

_SOURCES: dict[str, Callable[..., str]] = {
    "conv": forward_source, "conv_bias": partial(forward_source, bias=True), "conv_input": input_source,
    "conv_weight": weight_source, "conv_row": row_source, "conv_bias_row": partial(row_source, bias=True),
    "conv_input_row": input_row_source, "conv_weight_row": weight_row_source,
}  # fmt: skip
KERNELS = tuple(_SOURCES)
"""Names of all of them."""


def call(name: str, ints: tuple[Any, ...], one_row: bool, dtype: Any) -> NativeCall:
    """Return the call of a kernel.

    Parameters
    ----------
    ints : see `common.kernels.arrays.convolution_text`.
    one_row : whether groups have one row of weights.
    """
    _, c, o, groups = ints[:4]
    places = ints[7] * ints[8] * ints[9]
    if one_row:
        name += "_row"
        return NativeCall(_SOURCES[name](dtype), name, ints, scratch=scratch_of_rows(dtype))
    scratch = scratch_of_panels(name, o, groups, c * places, places, dtype)
    return NativeCall(_SOURCES[name](dtype), name, ints, scratch=scratch)


def part_symbol(kernel: str, element: str) -> str:
    """Return the symbol of a part of a kernel for elements of LLVM type ``float`` or ``double``."""
    return f"twingrad_{'s' if element == 'float' else 'd'}{kernel}_part"


def _address(kernel: str, dtype: str) -> int:
    return compile_kernel(_SOURCES[kernel](dtype, part=True), f"{kernel}_part", ready_made=True)


for _kernel, (_element, _dtype) in product(_SOURCES, (("float", "float32"), ("double", "float64"))):
    thread_pool.define_for_threads(part_symbol(_kernel, _element), partial(_address, _kernel, _dtype))
