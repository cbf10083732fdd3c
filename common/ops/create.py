"""Tensors from nothing but sizes; the engine whose function is called makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.op import NativeCall
from common.ops._define import kernel
from common.spec import Spec, numel


def _arange_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels import copying

    return [copying.arange(outs[0].dtype, attrs["count"], attrs["start"], attrs["step"])]


def _full_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels import copying

    return [copying.fill(outs[0].dtype, numel(attrs["shape"]), attrs["value"])]


def _eye_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels import copying

    return [copying.eye(outs[0].dtype, attrs["rows"], attrs["columns"])]


full_ = kernel(
    "full", (), lambda *, shape, value, dtype: Spec(tuple(shape), np.dtype(dtype)), _full_native,
    lambda shape, value, dtype: np.full(shape, value, dtype), doc="A number everywhere.",
    attrs=("shape", "value", "dtype"),
)  # fmt: skip

arange_ = kernel(
    "arange", (), lambda *, start, step, count, dtype: Spec((count,), np.dtype(dtype)), _arange_native,
    lambda start, step, count, dtype: (start + np.arange(count) * step).astype(dtype),
    doc="start + i step, computed in int64 or float64 and rounded once.", attrs=("start", "step", "count", "dtype"),
)  # fmt: skip

eye_ = kernel(
    "eye", (), lambda *, rows, columns, dtype: Spec((rows, columns), np.dtype(dtype)), _eye_native,
    lambda rows, columns, dtype: np.eye(rows, columns, dtype=dtype), doc="The identity matrix.",
    attrs=("rows", "columns", "dtype"),
)  # fmt: skip
