"""A copy with a chain of views replaced: a write to a view records this op for its base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dispatch import apply
from common.core.op import REGISTRY, NativeCall, Op
from common.core.shapes import contiguous_strides
from common.core.spec import Spec
from common.ops._define import kernel
from common.ops._samples import away_from_zero
from common.ops.math.arithmetic import zeros_like
from common.ops.math.compare import where
from common.tensor.view_families import Path, ViewStep


def along(x: Any, path: Path) -> Any:
    """Apply a chain of views to `x`."""
    for name, attrs in path:
        x = REGISTRY[name](x, **dict(attrs))
    return x


class ViewChain:
    """A chain of views of a contiguous array, as offset, shape and strides; ops lengthen it.

    Attributes
    ----------
    place : offset, shape and strides, in elements; None if the chain holds a copy.
    path : the chain.
    """

    __op_priority__ = 1

    def __init__(self, shape: Any) -> None:
        self.shape: tuple[Any, ...] = tuple(shape)
        self.path: Path = ()
        self.place: tuple[Any, Any, Any] | None = (0, self.shape, contiguous_strides(self.shape))

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[ViewChain], attrs: Any) -> Any:
        """Apply a view op, or one that is made of such, like `split`."""
        if op.forward is not None:
            return op.forward(*operands, **attrs)
        (x,) = operands
        y: ViewChain = object.__new__(ViewChain)
        y.place = None if x.place is None else op.strided(*x.place, **attrs)
        y.shape = op.spec(Spec(x.shape, np.dtype(np.float32)), **attrs).shape if y.place is None else y.place[1]
        y.path = (*x.path, (op.name, tuple(attrs.items())))
        return y


def path_along(steps: Sequence[ViewStep], base: Any) -> Path:
    """A chain of view ops that begins at `base` as the attribute of `view_set`; a part of a split is a slice there."""
    if all(step.position is None for step in steps):
        return tuple((step.op.name, tuple(step.attrs.items())) for step in steps)
    x: Any = ViewChain(base.shape)
    for step in steps:
        x = step.taken(apply(step.op, (x,), step.attrs))
    path: Path = x.path
    return path


def placed(shape: Any, path: Path) -> tuple[Any, Any, Any] | None:
    """Offset, shape and strides, in elements, of a chain of views of a contiguous array; None if it holds a copy."""
    x: ViewChain = along(ViewChain(shape), path)
    return x.place


def _outside(g: Any, path: Path) -> Any:
    """`g` with zeros in the place of what a chain of views shows."""
    if placed(g.shape, path) is not None:
        return view_set(g, zeros_like(along(g, path)), path=path)
    # the base did not lie in C order, so the chain was one of views, and of an array in C order holds a copy
    outside = np.ones(g.shape, bool)
    outside.reshape(-1)[np.asarray(along(np.arange(outside.size).reshape(g.shape), path)).reshape(-1)] = False
    return where(outside, g, 0)


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

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
    samples=_samples, attrs=("path",), node_name="CopySlices", parts="set view",
    doc="x with v in the place of what a chain of views shows. The gradients are g outside and inside of it.",
)  # fmt: skip
view_set.node_name = "CopySlices"
