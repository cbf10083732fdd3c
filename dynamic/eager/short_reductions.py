"""Sums and means of eager tensors on a short path: for forms that came before, one native call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from common.core.errors import TwingradError
from common.core.members import give
from common.core.op import REGISTRY, Op
from common.evaluate import specialise as eager
from common.ops.reduce.reductions import reduced
from common.tensor.base import Tensor, TensorBase
from common.tensor.leaf import Leaf

_INTS = frozenset((int,))


def _reduction(op: Op) -> Callable[..., Any]:
    """A reduction of a tensor for whose form there is a recipe, else the method of all tensors."""

    def run(input: Any, dim: Any = None, keepdim: Any = False, **others: Any) -> Any:
        dims = tuple(dim) if type(dim) is list else dim
        plain = type(dims) is int or dims is None or (type(dims) is tuple and _INTS.issuperset(map(type, dims)))
        if not others and plain and type(keepdim) is bool:
            try:
                attrs = reduced(dims, keepdim, len(input.payload.shape), op.name)
            except (TwingradError, AttributeError, TypeError):  # the general way may have something else to say first
                return general(input, dim, keepdim)
            y = eager.applied(op, attrs, input)
            if y is not None:
                return y
        return general(input, dim, keepdim, **others)

    general = getattr(TensorBase, op.name)
    return wraps(general)(run)


#: The short paths of public functions, which methods take too.
SHORT: dict[str, Any] = {name: _reduction(REGISTRY[name]) for name in ("sum", "mean")}
for _class in (Tensor, Leaf):
    give(_class, SHORT)
