"""Elements of products of small matrices, as functions of numbers; see `static.graph.elements`.

Their bits are those of the kernel of all products, `common.kernels.arrays.gemm`.
"""

from __future__ import annotations

from common.compiler.primitives import Value, fma
from common.core.op import Op
from common.ops._define import elementwise
from common.ops._samples import several

MOST = 3
"""Products that are added at once: an op has at most eight operands."""


def chain(total: Value, *factors: Value) -> Value:
    """Return ``total + x0 y0 + x1 y1 + ...``, each product added by a fused multiply-add."""
    for x, y in zip(factors[::2], factors[1::2], strict=True):
        total = fma(x, y, total)
    return total


def _made(count: int) -> Op:
    factors = ", ".join(f"{letter}{i}" for i in range(count) for letter in "xy")
    scalar = eval(f"lambda total, {factors}: chain(total, {factors})", {"chain": chain, "__name__": __name__})
    return elementwise(
        f"chain{count}", scalar, domain="float", samples=several(*[(3,)] * (2 * count + 1)),
        doc=f"total + the sum of {count} products, by fused multiply-adds.",
    )  # fmt: skip


FEW_PRODUCTS = tuple(_made(count) for count in range(1, MOST + 1))
"""By one less than their number of products."""
