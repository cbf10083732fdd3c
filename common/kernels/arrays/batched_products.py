"""Products of a batch of matrices of two to four rows and columns: vectors go down the batch.

The kernel of products (`common.kernels.arrays.gemm`) takes 17 to 60 ns for each of such matrices. Here every
element of a product is written out for one matrix, and the loop over the batch does several matrices at once. An
element has the bits that it has there: a chain of fused multiply-adds, or, of a row or a column, a sum in lanes.

Kernel ``batched_products``: buffers a, b, out, contiguous; args the length of the batch; no scratch; status 0.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any

import numpy as np

from common.core.numerics import LANES

FEW, SMALL, LONG = 4, 27, 64
"""Sizes of matrices and multiplications of a product at most, and matrices of a batch at least, where this kernel is
the faster one: of three rows and columns, or of four and a vector. Of smaller dtypes it takes a second to compile.
"""


def pays(dtype: Any, batch: Any, m: Any, n: Any, k: Any) -> bool:
    """Whether a batch of products is one of this kernel, as far as the sizes are known."""
    if {type(size) for size in (batch, m, n, k)} != {int} or np.dtype(dtype).itemsize < 4:
        return False
    return batch >= LONG and k > 1 and max(m, n, k) <= FEW and 0 < m * n * k <= SMALL


@cache
def source(dtype: Any, m: int, n: int, k: int, trans_a: bool, trans_b: bool) -> str:
    """Kernel source of products of these sizes."""
    kind = np.dtype(dtype).name
    lines = [f"{x} = buffer(bufs, {i}, {kind})" for i, x in enumerate(("a", "b", "out"))]
    lines += ["wide()", "for s in range(args[0]):"]
    for p in range(k):
        lines += [f"    a{i}_{p} = a[s * {m * k} + {p * m + i if trans_a else i * k + p}]" for i in range(m)]
        lines += [f"    b{p}_{j} = b[s * {k * n} + {j * k + p if trans_b else p * n + j}]" for j in range(n)]
    for i in range(m):
        for j in range(n):
            pairs = [(f"a{i}_{p}", f"b{p}_{j}") for p in range(k)]
            total = _sum(pairs) if kind[0] != "f" else _in_lanes(pairs, kind) if 1 in (m, n) else _chain(pairs, kind)
            lines.append(f"    t{i}_{j} = {total}")
            lines.append(f"    out[s * {m * n} + {i * n + j}] = t{i}_{j}")
    return "\n".join(["def batched_products(bufs, args):", *[f"    {line}" for line in lines], "    return 0", ""])


def _sum(pairs: list[tuple[str, str]]) -> str:
    """Of integers, which wrap."""
    return reduce("add({}, {})".format, [f"mul({x}, {y})" for x, y in pairs])


def _chain(pairs: list[tuple[str, str]], kind: str) -> str:
    """Each product is added by a fused multiply-add."""
    total = f"{kind}(0)"
    for x, y in pairs:
        total = f"chain1({total}, {x}, {y})"
    return total


def _in_lanes(pairs: list[tuple[str, str]], kind: str) -> str:
    """Each product is a lane of its own; they are folded by halves."""
    terms, half = [f"mul({x}, {y})" for x, y in pairs], LANES // 2
    while half:
        for j in range(half, len(terms)):
            terms[j - half] = f"add({terms[j - half]}, {terms[j]})"
        terms, half = terms[:half], half // 2
    return f"add({terms[0]}, {kind}(0))"
