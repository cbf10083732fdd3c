"""Attention and its gradients as one kernel each: block of rows by block of rows, without the matrix of all scores.

======================  =========================================================  ====================================
kernel                  buffers                                                    result
======================  =========================================================  ====================================
``attention``           q, k, v, out, scratch                                      out = softmax(q k^T) v
``attention_backward``  q, k, v, g, dq, dk, dv, scratch                            gradients of sum(g out)
======================  =========================================================  ====================================

- q (batch, m, d), k (batch, n, d), v (batch, n, o), out and g (batch, m, o);
- args: ``batch, m, n, d, o, causal``; if causal, row i sees the columns 0 ... i only, and the others are not computed;
- what no row of a block sees is not computed, unless an operand is not finite: then it gets weights of 0;
- scratch: `forward_scratch`, `backward_scratch`; status 0. Threads share the items of a large batch, a part each.

Every element is what products of whole matrices and a softmax of whole rows give, bit by bit, where m, n, d and o are
not 1: rows of a product do not depend on each other, a sum over rows is added up in blocks of `DEEP` rows, which is the
height of a block of the backward pass, and what a row does not see adds zeros at its end. Source of the idea: Rabe and
Staats, Self-attention does not need O(n^2) memory, 2021; Dao and others, FlashAttention, 2022. Those rescale what they
have when a row's maximum grows; here a block has whole rows, so nothing is rounded twice.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from common.compiler.compile import compile_kernel
from common.core.numerics import DEEP
from common.runtime import thread_pool

__all__ = ["backward_scratch", "backward_source", "forward_scratch", "forward_source", "part_symbol"]

_HEIGHT = 64
"""Rows of a block of the forward pass: with 1,024 columns of float32, a quarter of a second-level cache."""


_PARTS = 4
"""How many threads at most share the items of a batch: each has scratch of its own."""

_SHARED = 2**21
"""Scores of a batch from which threads share it."""


def forward_scratch(n: Any, dtype: Any) -> Any:
    """Bytes of scratch of ``attention`` for `n` columns."""
    return _PARTS * _HEIGHT * n * np.dtype(dtype).itemsize


def backward_scratch(n: Any, d: Any, o: Any, dtype: Any) -> Any:
    """Bytes of scratch of ``attention_backward``: weights and their gradients, a row, and sums of a block."""
    return _PARTS * (2 * DEEP + 1 + d + o) * n * np.dtype(dtype).itemsize


def part_symbol(kernel: str, element: str) -> str:
    """Return the symbol of a part of a kernel for elements of LLVM type ``float`` or ``double``."""
    return f"twingrad_{'s' if element == 'float' else 'd'}{kernel}_part"


_SIZES = """    batch = args[0]
    m = args[1]
    n = args[2]
    d = args[3]
    o = args[4]
    causal = args[5]
    wide()
"""

_SHARING = f"""    if batch > 1 and batch * m * n >= {_SHARED} and there_are_threads(q) != 0:
        share_{{name}}(bufs, args, q, 6, min(batch, {_PARTS}))
        return 0
    part = 0
    step = 1
"""

_PART = f"""    part = args[6]
    step = {_PARTS}
"""

_BLOCK = """    high = (m + {height} - 1) // {height}
    for task in range((batch - part + step - 1) // step * high):
        b = task // high * step + part
        i = task % high * {height}
        rows = min({height}, m - i)
        row = b * m + i
        columns = n
        if causal != 0:
{finite}            if whole == whole:
                columns = min(n, i + rows)
"""

_FINITE: dict[str, tuple[tuple[str, str], ...]] = {
    "attention": (("v", "n * o"),),
    "attention_backward": (("q", "m * d"), ("k", "n * d"), ("v", "n * o"), ("g", "m * o")),
}
"""What no weight of 0 may be multiplied with unless it is finite, and how much of it there is per item."""


def _turns(name: str, part: bool) -> str:
    """Which items are computed: all of them, by threads where that pays, or those of a part."""
    return _PART if part else _SHARING.format(name=name)


def _blocks(name: str, height: int) -> str:
    """The beginning of a loop over blocks of rows.

    What no row sees is left out only where all is finite: 0 times infinity is NaN in a product of whole matrices.
    """
    sums = [f"block_sum({x}, b * {size}, {size}) * zero" for x, size in _FINITE[name]]
    finite = [f"            whole = {'whole + ' if i else ''}{x}\n" for i, x in enumerate(sums)]
    return _BLOCK.format(height=height, finite="".join(finite))


_SCORES = """        if d > 0:
            multiply(q, row * d, k, b * n * d, s, e, rows, columns, d, d, d, columns, 0, 1)
        else:
            for j in range(e, e + rows * columns):
                s[j] = zero
"""

_SEEN = """            p = e + r * columns
            seen = columns
            if causal != 0:
                seen = min(columns, i + r + 1)
"""

_EXPONENTIALS = """            t = row_max(s, p, seen)
            for j in range(p, p + seen):
                s[j] = exp(s[j] - t)
            u = block_sum(s, p, seen)
"""


def forward_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``attention`` for float32 or float64; or of a part, whose number follows the sizes."""
    kind = np.dtype(dtype)
    return f"""def attention{"_part" if part else ""}(bufs, args):
    q = buffer(bufs, 0, {kind})
    k = buffer(bufs, 1, {kind})
    v = buffer(bufs, 2, {kind})
    out = buffer(bufs, 3, {kind})
    s = buffer(bufs, 4, {kind})
    zero = {kind}(0)
{_SIZES}    if n == 0:
        for j in range(batch * m * o):
            out[j] = zero
        return 0
{_turns("attention", part)}    e = part * {_HEIGHT} * n
{_blocks("attention", _HEIGHT)}{_SCORES}        for r in range(rows):
{_SEEN}{_EXPONENTIALS}            for j in range(p, p + seen):
                s[j] = s[j] / u
            for j in range(p + seen, p + columns):
                s[j] = zero
        if o > 0:
            multiply(s, e, v, b * n * o, out, row * o, rows, o, columns, columns, o, o, 0, 0)
    return 0
"""


def backward_source(dtype: Any, part: bool = False) -> str:
    """Return the kernel ``attention_backward`` for float32 or float64; or of a part, as of ``attention``."""
    kind = np.dtype(dtype)
    return f"""def attention_backward{"_part" if part else ""}(bufs, args):
    q = buffer(bufs, 0, {kind})
    k = buffer(bufs, 1, {kind})
    v = buffer(bufs, 2, {kind})
    g = buffer(bufs, 3, {kind})
    dq = buffer(bufs, 4, {kind})
    dk = buffer(bufs, 5, {kind})
    dv = buffer(bufs, 6, {kind})
    s = buffer(bufs, 7, {kind})
    zero = {kind}(0)
{_SIZES}    if m == 0:
        for j in range(batch * n * d):
            dk[j] = zero
        for j in range(batch * n * o):
            dv[j] = zero
    if n == 0:
        for j in range(batch * m * d):
            dq[j] = zero
        return 0
{_turns("attention_backward", part)}    w = {DEEP} * n
    e = part * (2 * {DEEP} + 1 + d + o) * n
    x = e + 2 * {DEEP} * n
    y = x + n
    z = y + n * d
{_blocks("attention_backward", DEEP)}{_SCORES}        if o > 0:
            multiply(g, row * o, v, b * n * o, s, e + w, rows, columns, o, o, o, columns, 0, 1)
        else:
            for j in range(e + w, e + w + rows * columns):
                s[j] = zero
        for r in range(rows):
{_SEEN}{_EXPONENTIALS}            for j in range(seen):
                a = s[p + j] / u
                s[p + j] = a
                s[x + j] = s[w + p + j] * a
            c = block_sum(s, x, seen)
            for j in range(seen):
                s[w + p + j] = s[p + j] * (s[w + p + j] - c)
            for j in range(seen, columns):
                s[p + j] = zero
                s[w + p + j] = zero
        if i == 0:
{_first("dk", "d")}{_first("dv", "o")}        if d > 0:
            multiply(s, e + w, k, b * n * d, dq, row * d, rows, d, columns, columns, d, d, 0, 0)
{_added("e + w", "q", "dk", "d", "y")}        if o > 0:
{_added("e", "g", "dv", "o", "z")}    return 0
"""


def _first(result: str, width: str) -> str:
    """Zeros where the first block of rows sees nothing."""
    return f"""            for j in range((b * n + columns) * {width}, (b + 1) * n * {width}):
                {result}[j] = zero
"""


def _added(weights: str, rows: str, result: str, width: str, part: str) -> str:
    """The product of a block's weights, transposed, and rows; added to that of the blocks before."""
    multiplied = f"multiply(s, {weights}, {rows}, row * {width}, "
    sizes = f"columns, {width}, rows, columns, {width}, {width}, 1, 0)"
    return f"""            if i == 0:
                {multiplied}{result}, b * n * {width}, {sizes}
            else:
                {multiplied}s, {part}, {sizes}
                for j in range(columns * {width}):
                    {result}[b * n * {width} + j] = {result}[b * n * {width} + j] + s[{part} + j]
"""


def _address(kernel: str, dtype: str) -> int:
    source = {"attention": forward_source, "attention_backward": backward_source}[kernel](dtype, part=True)
    return compile_kernel(source, f"{kernel}_part")


for _kernel, (_element, _dtype) in product(_FINITE, (("float", "float32"), ("double", "float64"))):
    thread_pool.define_for_threads(part_symbol(_kernel, _element), partial(_address, _kernel, _dtype))
