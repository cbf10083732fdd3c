"""Scalar definitions and kernels that both engines share: one source, one meaning, the same bits."""

from typing import Any

from common.native.compile import add_namespace
from common.native.engine import define_in


def _provide(name: str) -> Any:
    """What kernel source may call beyond scalar operations; asked only while a kernel is compiled."""
    from common.kernels.functions import NAMESPACE

    return NAMESPACE.get(name)


add_namespace(_provide)
define_in("common.kernels.gemm")
