"""The constants that fix the bits of every result; changing one of them changes `NUMERICS_VERSION`.

A sum ``S(x[0..n))`` has one defined order, whatever the memory layout, the instruction set, the number of
threads and the loops it was fused into:

- ``n <= BLOCK``: `LANES` lanes start at +0.0; lane ``j`` adds ``x[j], x[j + LANES], x[j + 2 LANES], ...`` in
  this order; then ``lane[j] += lane[j + h]`` for ``h = LANES/2, ..., 2, 1``; the result is ``lane[0]``.
- ``n > BLOCK``: S of the list of S of the blocks of `BLOCK` consecutive elements.

Several reduced axes are flattened in C order. A missing element equals adding +0.0, so tails and padding
agree, and S of no elements, or of -0.0 only, is +0.0. Integer sums wrap, their order does not matter.

How the figures were chosen: `common.kernels.arrays.sums`.
"""

from __future__ import annotations

import sys

NUMERICS_VERSION = 13
"""Version of all definitions that bits depend on; part of every cache key and every report.

What changed stands in docs/numerics.md.
"""

LANES = 16
"""Lanes of a sum: elements whose index is equal modulo `LANES` are added in sequence."""

BLOCK = 1024
"""Length from which a sum is a sum of sums."""

DEEP = 256
"""Products that are added up in one chain, for an element of a matrix product; see `common.kernels.arrays.gemm`."""

_SMALLEST_NORMAL = sys.float_info.min


def flushes() -> bool:
    """Whether arithmetic of the calling thread flushes subnormal numbers to zero, whoever has asked for it."""
    return _SMALLEST_NORMAL * 0.5 == 0.0
