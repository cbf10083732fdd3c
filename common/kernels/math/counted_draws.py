"""Counts of Poisson and binomial distributions without SciPy: probabilities are added up until they reach a number.

A count is whole, so it is that of `common.kernels.math.quantiles` wherever no rounding can move a sum of probabilities
beyond the number. Elements next to a sum, and with large means, are left to Python. Vectors go along together; a block
of elements ends when the last of them has its count.
"""

from __future__ import annotations

from functools import partial

from common.compiler import llvm_engine
from common.compiler.compile import compile_kernel
from common.compiler.host_kernels import HostKernel

__all__ = ["LARGEST_MEAN", "MOST", "SURE", "drawn"]

SURE = 1e-6
"""A distance between probabilities that no rounding reaches, SciPy's included."""
LARGEST_MEAN = 256.0
"""The largest mean of a distribution whose probabilities are added up."""
MOST = 1 << 62
"""Most elements in a row: of any number."""
_BLOCK, _LAST = 256, 1 << 10
_APART = 64
"""Elements between two that are left to Python from which on these are two calls."""

_COUNTS = """def {name}(bufs, args):
{buffers}
    size = args[0]
    wide()
    for j in range(size):{start}
        usual = logical_and(usual, logical_and(u[j] > float64({sure}), u[j] < float64(1) - float64({sure})))
        goal = where(usual, aim, float64(0))
        out[j] = float64(0)
        held[j] = goal
        held[{block} + j] = first
        held[2 * {block} + j] = first
        held[3 * {block} + j] = where(usual, abs(first - goal), float64(0))
        held[4 * {block} + j] = fixed
        held[5 * {block} + j] = falling
    k = 1
    more = 1
    while more != 0 and k < {most}:
        more = 0
        share = float64(1) / to_float64(k)
        for j in range(size):
            short = held[2 * {block} + j] < held[j]
            more |= to_int64(short)
            out[j] += to_float64(short)
            term = held[{block} + j] * (held[4 * {block} + j] + held[5 * {block} + j] * share)
            total = held[2 * {block} + j] + term
            apart = abs(total - held[j])
            held[{block} + j] = term
            held[2 * {block} + j] = total
            held[3 * {block} + j] = where(apart < held[3 * {block} + j], apart, held[3 * {block} + j])
        k += 1
    for j in range(size):
        known = held[3 * {block} + j] > float64({sure}){end}
    return 0
"""
"""Count 0 has the probability `first`, and count k has that of k - 1 times ``fixed + falling / k``.

Source: H. H. Panjer, Recursive evaluation of a family of compound distributions, ASTIN Bulletin 12, 1981.
"""

_KERNELS = {
    "poisson_quantile": (("rate",), """
        positive = rate[j] > float64(0)
        usual = logical_and(positive, rate[j] <= float64({largest}))
        fixed = float64(0)
        falling = rate[j]
        first = exp(-rate[j])
        aim = u[j]""", """
        out[j] = where(rate[j] > float64(0), where(known, out[j], float64(-1)), float64(0))"""),
    "binomial_quantile": (("n", "p"), """
        turned = p[j] > float64(0.5)
        least = where(turned, float64(1) - p[j], p[j])
        odds = least / (float64(1) - least)
        whole = logical_and(n[j] >= float64(1), n[j] == floor(n[j]))
        usual = logical_and(logical_and(whole, least > float64(0)), n[j] * least <= float64({largest}))
        fixed = -odds
        falling = odds * (n[j] + float64(1))
        first = exp(n[j] * log1p(-least))
        aim = where(turned, float64(1) - u[j], u[j])""", """
        out[j] = where(known, where(p[j] > float64(0.5), n[j] - out[j], out[j]), float64(-1))"""),
}  # fmt: skip
"""Of each function the operands before the number, and lines that begin and end an element.

Probabilities of a binomial distribution are added up from the end that has the larger ones.
"""

_DRAWN = """
{counts}, {python} = C

def left(first, last, status, scratch, bufs, given, sizes):
    for i in range({operands} + 1):
        given[i] = bufs[i] + 8 * first
        if {dims} > 0:
            sizes[i * {dims} + {dims} - 1] = last - first
    return invoke({python}, status, scratch, given, sizes)

def {name}(status, scratch, bufs, ints):
    held = room({held})
    given = room({operands} + 2)
    sizes = room({sizes})
    n = 1
    for d in range({dims}):
        n *= ints[d]
        for i in range({operands} + 1):
            sizes[i * {dims} + d] = 1
    status[0] = 0
    first = 0
    last = 0
    for s in range(0, n, {block}):
        width = n - s if n - s < {block} else {block}
        for i in range({operands} + 1):
            given[i] = bufs[i] + 8 * s
        given[{operands} + 1] = held
        size = sizes + {sizes} * 8 - 8
        size[0] = width
        {counts}(status, scratch, given, size)
        for j in range(width):
            if float64s(bufs[{operands}])[s + j] < to_float64(0):
                if last > 0 and s + j - last > {apart}:
                    failed = left(first, last, status, scratch, bufs, given, sizes)
                    if status[0] != 0:
                        return failed
                    last = 0
                first = first if last > 0 else s + j
                last = s + j + 1
    if last > 0:
        return left(first, last, status, scratch, bufs, given, sizes)
    return 0
"""
"""Elements that are near each other are left to Python at once, with those between them."""


def drawn(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.math.quantiles.drawn`, of counts of float64; else empty."""
    (name,) = kernel.words
    (dtype, dims), operands = kernel.buffers[0], kernel.operands
    if name not in _KERNELS or dtype.name != "float64":
        return ""
    names, start, end = _KERNELS[name]
    counts = name.replace("quantile", "counts")
    buffers = "\n".join(f"    {x} = buffer(bufs, {i}, float64)" for i, x in enumerate((*names, "u", "out", "held")))
    text = _COUNTS.format(
        name=counts, buffers=buffers, start=start.format(largest=LARGEST_MEAN), end=end, sure=SURE, block=_BLOCK,
        most=_LAST,
    )  # fmt: skip
    llvm_engine.define(f"twingrad_{counts}", partial(int, compile_kernel(text, counts, ready_made=True)))
    return _DRAWN.format(
        counts=counts, python=python, name=kernel.name, held=6 * _BLOCK, sizes=(operands + 1) * dims + 1,
        dims=dims, operands=operands, block=_BLOCK, apart=_APART,
    )  # fmt: skip
