"""In-place forms over memory that does not lie in order, such as ``x[1:-1, 1:-1].mul_(2)``: one kernel goes along rows.

The general way makes a result and copies it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.evaluate.layouts import WORTH
from common.tensor.view_families import is_recorded
from dynamic.eager.remembered import KINDS, OFTEN

_LIMIT = 256
_grad_enabled = mode.grad_mode.get


class RowWays:
    """How one function writes over tensors that do not lie in order, by where operands lie."""

    __slots__ = ("calls", "function", "known")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.known: dict[Any, Any] = {}
        self.calls: dict[Any, int] = {}

    def wrote(self, self_: Any, others: tuple[Any, ...], options: dict[str, Any]) -> bool:
        """Whether the result was written over a tensor, where nothing is recorded; else nothing was done."""
        if self_.__class__ not in KINDS or mode.tracing:
            return False
        x = self_.payload
        if type(x) is not np.ndarray or x.size < WORTH or not x.flags.writeable or not x.flags.aligned:
            return False
        if x.flags.c_contiguous:
            return False
        recorded = _grad_enabled()
        if recorded and is_recorded(self_):
            return False
        key: list[Any] = [x.shape, x.strides, x.dtype]
        arrays = [x]
        for z in others:
            if (kind := z.__class__) in KINDS:
                if recorded and z._requires_grad:
                    return False
                y = z.payload
                if type(y) is not np.ndarray or not y.flags.aligned:
                    return False
                arrays.append(y.copy() if np.may_share_memory(x, y) else y)
                key += y.shape, arrays[-1].strides, y.dtype
            elif kind is float or kind is int:
                key += kind, z or repr(z)
            else:
                return False
        for name, z in options.items():
            if (kind := z.__class__) is not float and kind is not int:
                return False
            key += name, kind, z or repr(z)
        known = tuple(key)
        run = self.known.get(known)
        if run is None:
            run = self._meet(known, (self_, *others), options, arrays)
        if run:
            run(*arrays)
        return bool(run)

    def _meet(self, key: Any, operands: tuple[Any, ...], options: dict[str, Any], arrays: Sequence[np.ndarray]) -> Any:
        if len(self.calls) > _LIMIT:
            self.calls.clear()
            self.known.clear()
        self.calls[key] = met = self.calls.get(key, 0) + 1
        if met < OFTEN:
            return False
        from dynamic.eager import writing_lines

        found = self.known[key] = writing_lines.among_rows(self.function, operands, options, arrays)
        return found
