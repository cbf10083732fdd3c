"""Scalar definitions and kernels that both engines share: one source, one meaning, the same bits."""

from typing import Any

from common.compiler.compile import add_namespace
from common.compiler.llvm_engine import define_in


def _provide(name: str) -> Any:
    """Functions that kernel source may call beyond scalar operations; asked for only while a kernel is compiled."""
    from common.kernels.arrays import row_functions

    if name in row_functions.NAMESPACE:
        return row_functions.NAMESPACE[name]
    from common.kernels.arrays.array_functions import NAMESPACE

    return NAMESPACE.get(name)


add_namespace(_provide)
define_in("common.kernels.arrays.gemm")
define_in("common.kernels.arrays.attention_blocks")
define_in("common.kernels.arrays.convolutions")
