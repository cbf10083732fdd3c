"""Sums and means of eager tensors on a short path: for forms that came before, straight from the recipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import TwingradError
from common.core.members import give
from common.core.op import REGISTRY, Op
from common.core.source_lines import user_files, user_frame
from common.evaluate import specialise as eager
from common.ops.reduce.reductions import reduced
from common.tensor.base import Tensor, TensorBase
from common.tensor.external_writes import exposed, seal
from common.tensor.leaf import Leaf
from common.tensor.node import Edge, Node, next_number

_new = object.__new__
_getframe = sys._getframe
_grad_enabled = mode.grad_mode.get
_next_number = next_number


def _reduction(op: Op, depth: int) -> Callable[..., Any]:
    """A reduction of a tensor for whose form there is a recipe, else the method of all tensors; user code is `depth`
    frames up.
    """

    def run(input: Any, dim: Any = None, keepdim: Any = False, **others: Any) -> Any:
        if others or mode.tracing or not isinstance(input, TensorBase):
            return general(input, dim, keepdim, **others)
        x = input.payload
        found = None
        if (dim is None or type(dim) is int) and type(keepdim) is bool and type(x) is np.ndarray:
            try:
                attrs = reduced(dim, keepdim, x.ndim, op.name)
            except TwingradError:
                return general(input, dim, keepdim)  # which may have something else to say first
            found = eager.find(op, attrs, x)
        if found is None:
            return general(input, dim, keepdim)
        if (builtin := found.builtin) is None or (y := builtin(x)) is None:
            y = found.run(x)
        t = _new(Tensor)
        t.payload = y
        t.output_nr = 0
        t._grad = t._family = None
        if input._requires_grad and found.recorded and _grad_enabled():
            e: Edge = input.grad_fn
            node = _new(Node)
            node.number = _next_number()
            node.op = op
            node.attrs = attrs
            node.backward = found.backward
            node.fit = found.forms
            node.edges = (input if e is None else (e, input.output_nr) if input.output_nr else e,)
            node.saved = op.save((x,), y)
            node.freed_by = None
            frame = _getframe(depth)
            code = frame.f_code
            if code.co_filename in user_files:
                node.code, node.lasti = code, frame.f_lasti
            else:
                node.code, node.lasti = user_frame(depth + 1)
            if exposed:
                seal(node)
            t.grad_fn = node
            t._requires_grad = True
        else:
            t.grad_fn = None
            t._requires_grad = False
        return t

    general = getattr(TensorBase, op.name)
    return wraps(general)(run)


_OPS = [REGISTRY[name] for name in ("sum", "mean")]
#: The short paths of public functions, which are called from a frame of their own.
SHORT: dict[str, Any] = {op.name: _reduction(op, 2) for op in _OPS}
for _class in (Tensor, Leaf):
    give(_class, {op.name: _reduction(op, 1) for op in _OPS})
