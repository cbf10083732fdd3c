"""Dispatch: one call, three readings.

``apply(op, operands, attrs)`` runs `op` on whatever its operands are: plain arrays meet the eager kernels,
tensors (eager or traced) are recorded for gradients, values of a trace append a node to its graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common.op import Op

NO_ATTRS: dict[str, Any] = {}


def apply(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any] = NO_ATTRS) -> Any:
    """Run `op` by the engine of its operands; a tensor's engine goes before a value's, that before arrays'."""
    handler, priority = None, 0
    for operand in operands:
        kind = type(operand)
        rank = getattr(kind, "__op_priority__", 0)
        if rank > priority:
            handler, priority = kind.__apply_op__, rank
    if handler is not None:
        return handler(op, operands, attrs)
    from common.eager import run

    return run(op, operands, attrs)
