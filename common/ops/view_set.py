"""A copy in which what a chain of views shows is replaced: what a write to a view records for the tensor it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.op import REGISTRY, NativeCall, Op
from common.ops._define import kernel
from common.ops._samples import away_from_zero
from common.ops.arithmetic import zeros_like
from common.ops.compare import where
from common.shapes import contiguous_strides
from common.spec import Spec
from common.tensor.view_families import Path


def along(x: Any, path: Path) -> Any:
    """What a chain of views shows of `x`."""
    for name, attrs in path:
        x = REGISTRY[name](x, **dict(attrs))
    return x


def placed(shape: Any, path: Path) -> tuple[Any, Any, Any] | None:
    """Offset, shape and strides, in elements, of a chain of views of a contiguous array; None if it holds a copy."""
    place: Any = (0, tuple(shape), contiguous_strides(shape))
    for name, attrs in path:
        place = REGISTRY[name].strided(*place, **dict(attrs))
        if place is None:
            return None
    return place


def _outside(g: Any, path: Path) -> Any:
    """`g` with zeros in the place of what a chain of views shows."""
    if placed(g.shape, path) is not None:
        return view_set(g, zeros_like(along(g, path)), path=path)
    # the base did not lie in C order, so the chain was one of views, and of an array in C order holds a copy
    outside = np.ones(g.shape, bool)
    outside.reshape(-1)[np.asarray(along(np.arange(outside.size).reshape(g.shape), path)).reshape(-1)] = False
    return where(outside, g, 0)


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels import copying

    (out,) = outs
    place = placed(out.shape, attrs["path"])
    assert place is not None, "a chain that holds a copy is no view"
    offset, shape, strides = place
    return [
        copying.copy(out.dtype, copying.copy_args(out.shape), (0, 2)),
        copying.scatter(out.dtype, shape, offset, strides, (1, 2)),
    ]


def _oracle(x: np.ndarray, v: np.ndarray, path: Path) -> np.ndarray:
    out = x.copy()
    places = along(np.arange(x.size).reshape(x.shape), path)
    out.reshape(-1)[np.asarray(places).reshape(-1)] = v.reshape(-1)
    return out


def _samples(rng: np.random.Generator, dtype: Any) -> list[Any]:
    part = ("slice", (("starts", (1, 0)), ("sizes", (3, 4)), ("steps", (1, 2))))
    turned = ("permute", (("dims", (1, 0)),))
    rows = ("reshape", (("new_shape", (2, 6)),))
    return [
        ((away_from_zero(rng, x, dtype), away_from_zero(rng, v, dtype)), {"path": path})
        for x, v, path in [
            ((5, 8), (3, 4), (part,)), ((5, 8), (4, 3), (part, turned)), ((3, 4), (2, 6), (rows,)), ((2,), (2,), ()),
        ]
    ]


view_set: Op = kernel(
    "view_set", ("x", "v"), lambda x, v, *, path: x, _native, _oracle,
    (lambda g, path: _outside(g, path), lambda g, path: along(g, path)),
    samples=_samples, attrs=("path",), node_name="CopySlices",
    doc="x with v in the place of what a chain of views shows. The gradients are g outside and inside of it.",
)  # fmt: skip
view_set.node_name = "CopySlices"
