"""gcd and lcm of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.docstrings import sections_of
from common.core.dtypes import int64, result_dtype
from common.core.errors import DTypeError
from common.core.op import NativeCall
from common.core.shapes import broadcast_shapes
from common.core.spec import Spec, numel
from common.ops._define import kernel
from common.ops._samples import whole
from common.ops.index.written_values import as_value, of_dtype
from common.ops.math.arithmetic import abs
from common.ops.math.compare import eq, where
from common.ops.math.division import div
from common.ops.shape.view import expand
from common.tensor.base import TensorBase, spec_of


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.math.common_divisors import GCD, SCRATCH

    return [NativeCall(GCD, "gcd", (numel(specs[0].shape),), scratch=SCRATCH)]


gcd_ = kernel(
    "gcd", ("a", "b"), lambda a, b: a, _native, lambda a, b: np.gcd(a, b),
    samples=lambda rng, dtype: [
        (tuple(np.asarray(whole(rng, s, dtype) * n) for n in (6, 4)), {}) for s in [(), (5,), (2, 3)]
    ],
    doc="The greatest common divisor of int64 of one shape; of two zeros 0.",
)  # fmt: skip


def _alike(op: str, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Integers as int64 of one shape, and the dtype of the result."""
    first = a if isinstance(a, TensorBase) else b
    a, b = (x if isinstance(x, TensorBase) else as_value(x, first.dtype) for x in (a, b))
    dtype, _ = result_dtype([spec_of(a), spec_of(b)])
    if dtype.kind not in "iu":
        raise DTypeError(f'"{op}_cpu" not implemented for {dtype.name}: integers have common divisors')
    shape = broadcast_shapes(a.shape, b.shape, op=op)
    return expand(of_dtype(a, int64), shape), expand(of_dtype(b, int64), shape), dtype


def gcd(a: Any, b: Any) -> Any:
    """The greatest integer that divides both, not negative; of two zeros 0.

    Parameters
    ----------
    a, b : (...) of integers, broadcast.

    Raises
    ------
    DTypeError : they are no integers.
    ShapeError : they do not broadcast.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.gcd(tw.tensor([12, -9, 0]), tw.tensor([18, 6, 5]))
    tensor([6, 3, 5])
    """
    a, b, dtype = _alike("gcd", a, b)
    return of_dtype(gcd_(a, b), dtype)


@sections_of(gcd)
def lcm(a: Any, b: Any) -> Any:
    """The least positive integer that both divide; 0 if either is 0. It wraps where the dtype cannot hold it.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.lcm(tw.tensor([4, 6]), tw.tensor([6, 0]))
    tensor([12,  0])
    """
    a, b, dtype = _alike("lcm", a, b)
    shared = gcd_(a, b)
    return of_dtype(abs(div(a, where(eq(shared, 0), 1, shared), rounding_mode="trunc") * b), dtype)


__all__ = ["gcd", "lcm"]
