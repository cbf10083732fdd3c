"""Attention and its gradients as one kernel each: block of rows by block of rows, without the matrix of all scores.

======================  =========================================================  ====================================
kernel                  buffers                                                    result
======================  =========================================================  ====================================
``attention``           q, k, v, out, scratch                                      out = softmax(q k^T) v
``attention_backward``  q, k, v, g, dq, dk, dv, scratch                            gradients of sum(g out)
``attention_seen``      q, k, v, mask, out, scratch                                where bools tell what a row sees
``attention_added``     q, k, v, mask, out, scratch                                with numbers added to the scores
======================  =========================================================  ====================================

- q (batch, m, d), k (batch, n, d), v (batch, n, o), out and g (batch, m, o);
- args: ``batch, m, n, d, o, causal``; if causal, row i sees the columns 0 ... i only, and the others are not computed;
- masks (count, 1 or m, n) follow k and v, and the sizes ``count`` and ``1 or m`` the args; one serves batch / count
  items. A row that sees nothing, because the mask has only False or -inf, has weights of 0. Masked kernels have
  backward kernels too, ``attention_seen_backward`` and ``attention_added_backward``;
- what no row of a block sees is not computed, unless an operand is not finite: then it gets weights of 0;
- scratch: `forward_scratch`, `backward_scratch`; status 0. Threads share the items of a large batch, a part each.

Every element is what products of whole matrices and a softmax of whole rows give, bit by bit, where m, n, d and o are
not 1: rows of a product do not depend on each other, a sum over rows is added up in blocks of `DEEP` rows, which is the
height of a block of the backward pass, and what a row does not see adds zeros at its end. Source of the idea: Rabe and
Staats, Self-attention does not need O(n^2) memory, 2021; Dao and others, FlashAttention, 2022. Those rescale what they
have when a row's maximum grows; here a block has whole rows, so nothing is rounded twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from common.compiler.compile import compile_kernel
from common.compiler.literals import dtype_name
from common.core.numerics import DEEP
from common.runtime import thread_pool

__all__ = ["KERNELS", "backward_scratch", "backward_source", "forward_scratch", "forward_source", "kernel_name",
           "part_symbol"]  # fmt: skip

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


def kernel_name(mask: Any, *, backward: bool = False) -> str:
    """Return the name of the kernel for a mask of this dtype, or for None."""
    kind = "" if mask is None else "_seen" if np.dtype(mask).kind == "b" else "_added"
    return f"attention{kind}{'_backward' if backward else ''}"


KERNELS = tuple(kernel_name(mask, backward=way) for mask in (None, np.bool_, np.float32) for way in (False, True))
"""Names of all kernels."""


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

_MASK_SIZES = """    count = args[6]
    height = args[7]
"""

_SHARING = f"""    if batch > 1 and batch * m * n >= {_SHARED} and there_are_threads(q) != 0:
        share_{{name}}(bufs, args, q, {{sizes}}, min(batch, {_PARTS}))
        return 0
    part = 0
    step = 1
"""

_PART = f"""    part = args[{{sizes}}]
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
"""Operands that a weight of 0 multiplies only where they are finite, and their sizes per item."""


def _turns(name: str, part: bool, mask: Any) -> str:
    """The items to compute: all of them, by threads where that pays, or those of a part."""
    return (_PART if part else _SHARING).format(name=name, sizes=6 if mask is None else 8)


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

_MASKED = """            f = (b * count // batch * height + (i + r) % height) * n - p
            for j in range(p, p + seen):
                s[j] = {masked}
"""

_TOP = """            t = row_max(s, p, seen)
"""

_BLIND = """            if t == low or t != t:
                sees = 0
                for j in range(p, p + seen):
                    if {open}:
                        sees = 1
                if sees == 0:
                    seen = 0
"""
"""Only a row whose maximum is -inf or NaN can be one that sees nothing."""

_EXPONENTIALS = """            for j in range(p, p + seen):
                s[j] = exp(s[j] - t)
            u = block_sum(s, p, seen)
"""


def _weights(mask: Any) -> str:
    """Exponentials of a row of scores and their sum, after a mask of this dtype or without one."""
    if mask is None:
        return _SEEN + _TOP + _EXPONENTIALS
    truth = np.dtype(mask).kind == "b"
    masked = _MASKED.format(masked="where(mask[f + j], s[j], low)" if truth else "s[j] + mask[f + j]")
    blind = _BLIND.format(open="mask[f + j]" if truth else "mask[f + j] != low")
    return _SEEN + masked + _TOP + blind + _EXPONENTIALS


def _opened(kind: np.dtype[Any], mask: Any, after: Sequence[str]) -> str:
    """The beginning of a kernel's body: buffers that follow q, k and v, numbers and sizes."""
    names = ("q", "k", "v", *(() if mask is None else ("mask",)), *after, "s")
    dtypes = {"mask": None if mask is None else dtype_name(np.dtype(mask))}
    buffers = [f"    {name} = buffer(bufs, {i}, {dtypes.get(name, kind)})\n" for i, name in enumerate(names)]
    low = "" if mask is None else f"    low = {kind}(-1e999)\n"
    return f"{''.join(buffers)}    zero = {kind}(0)\n{low}{_SIZES}{'' if mask is None else _MASK_SIZES}"


def forward_source(dtype: Any, part: bool = False, mask: Any = None) -> str:
    """Return the kernel ``attention`` for float32 or float64; or of a part, whose number follows the sizes.

    With a `mask`, which is its dtype, return the kernel for masks of bools or of numbers.
    """
    kind, name = np.dtype(dtype), kernel_name(mask)
    return f"""def {name}{"_part" if part else ""}(bufs, args):
{_opened(kind, mask, ("out",))}    if n == 0:
        for j in range(batch * m * o):
            out[j] = zero
        return 0
{_turns(name, part, mask)}    e = part * {_HEIGHT} * n
{_blocks("attention", _HEIGHT)}{_SCORES}        for r in range(rows):
{_weights(mask)}            for j in range(p, p + seen):
                s[j] = s[j] / u
            for j in range(p + seen, p + columns):
                s[j] = zero
        if o > 0:
            multiply(s, e, v, b * n * o, out, row * o, rows, o, columns, columns, o, o, 0, 0)
    return 0
"""


def backward_source(dtype: Any, part: bool = False, mask: Any = None) -> str:
    """Return the kernel ``attention_backward`` for float32 or float64; or of a part, or masked, as of ``attention``."""
    kind, name = np.dtype(dtype), kernel_name(mask, backward=True)
    return f"""def {name}{"_part" if part else ""}(bufs, args):
{_opened(kind, mask, ("g", "dq", "dk", "dv"))}    if m == 0:
        for j in range(batch * n * d):
            dk[j] = zero
        for j in range(batch * n * o):
            dv[j] = zero
    if n == 0:
        for j in range(batch * m * d):
            dq[j] = zero
        return 0
{_turns(name, part, mask)}    w = {DEEP} * n
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
{_weights(mask)}            for j in range(seen):
                a = s[p + j] / u
                s[p + j] = a
                s[x + j] = s[w + p + j] * a
            c = block_sum(s, x, seen)
            for j in range(seen):
                s[w + p + j] = {_slope(mask)}
            for j in range(seen, columns):
                s[p + j] = zero
                s[w + p + j] = zero
        if i == 0:
{_first("dk", "d")}{_first("dv", "o")}        if d > 0:
            multiply(s, e + w, k, b * n * d, dq, row * d, rows, d, columns, columns, d, d, 0, 0)
{_added("e + w", "q", "dk", "d", "y")}        if o > 0:
{_added("e", "g", "dv", "o", "z")}    return 0
"""


def _slope(mask: Any) -> str:
    """The gradient of a score: 0 where bools hide it, also where a slope is not finite."""
    slope = "s[p + j] * (s[w + p + j] - c)"
    return slope if mask is None or np.dtype(mask).kind != "b" else f"where(mask[f + p + j], {slope}, zero)"


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


def _address(dtype: str, mask: str | None, backward: bool) -> int:
    source = (backward_source if backward else forward_source)(dtype, part=True, mask=mask)
    return compile_kernel(source, f"{kernel_name(mask, backward=backward)}_part", ready_made=True)


for (_element, _dtype), _truth, _way in product(
    (("float", "float32"), ("double", "float64")), (None, "bool", ""), (False, True)
):
    _mask = _dtype if _truth == "" else _truth
    _symbol = part_symbol(kernel_name(_mask, backward=_way), _element)
    thread_pool.define_for_threads(_symbol, partial(_address, _dtype, _mask, _way))
