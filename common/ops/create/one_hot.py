"""Classes as rows with a single one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dtypes import int64
from common.core.errors import ArgumentError
from common.core.int_arguments import integer
from common.core.op import NativeCall
from common.core.spec import Spec, numel
from common.ops._define import kernel
from common.ops._samples import indices
from common.ops.index.gather import require_index
from common.ops.shape._targets import out_of_range
from common.ops.sort.data_dependent import elements


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import indexing

    (index,) = specs
    source = indexing.one_hot_source(int64, index.dtype)
    classes = attrs["num_classes"]
    errors = out_of_range(classes, len(index.shape))  # of the result
    return [NativeCall(source, "one_hot", (numel(index.shape), classes), errors=errors)]


one_hot_ = kernel(
    "one_hot", ("index",), lambda index, *, num_classes: Spec((*index.shape, num_classes), int64), _native,
    lambda index, num_classes: (index[..., None] == np.arange(num_classes)).astype(np.int64),
    samples=lambda rng, dtype: [((indices(rng, s, 5),), {"num_classes": 5}) for s in [(), (4,), (2, 3)]],
    doc="Rows of int64 with a 1 at index and zeros elsewhere.", attrs=("num_classes",),
)  # fmt: skip


def one_hot(index: Any, num_classes: int = -1) -> Any:
    """Rows of int64 with a 1 at each class and zeros elsewhere: (...) gives (..., num_classes).

    Parameters
    ----------
    index : (...) int64 or int32 classes.
    num_classes : how many; -1 for one more than the largest class, outside traces only.

    Raises
    ------
    IndexRangeError : a class is negative or not below `num_classes`.
    DTypeError : classes are not int64 or int32.
    ArgumentError : `num_classes` is neither -1 nor positive, or -1 without any classes.
    TraceError : `num_classes` is -1 in a trace.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.one_hot(tw.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    require_index("one_hot", index)
    num_classes = integer(num_classes, "one_hot", "num_classes")
    if num_classes == -1:
        classes = elements(index, "one_hot", "pass num_classes")
        if not classes.size:
            raise ArgumentError("one_hot(): cannot infer the number of classes from no classes; pass num_classes")
        num_classes = int(classes.max()) + 1
    if num_classes < 1 and numel(index.shape) != 0:
        raise ArgumentError(f"one_hot(): num_classes must be positive or -1, got {num_classes}")
    return one_hot_(index, num_classes=num_classes)


__all__ = ["one_hot"]
