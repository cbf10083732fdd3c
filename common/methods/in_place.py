"""Writing results into the memory of an operand, where no history asks for the old contents.

Ops such as `index_set` are defined as a copy of x in which something is then replaced. Written in place, the copy is
left out: the remaining kernels run on x's own memory. They check indices before they write, so a failed write leaves x
as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import apply
from common.core.op import Op
from common.core.source_lines import user_frame
from common.core.spec import Spec
from common.evaluate import specialise as eager
from common.evaluate.kernels import compiled
from common.evaluate.native_results import raise_status
from common.methods.assign import assign
from common.tensor.base import TensorBase
from common.tensor.inference import refuse_write
from common.tensor.view_families import is_recorded
from common.tensor.write_log import log_write, put


def has_history(x: TensorBase, *others: Any) -> bool:
    """Whether a write of `others` to `x` is for the tape, or for the trace that is open."""
    if mode.tracing and (mode.current_trace() is not None or mode.dual_level.get() is not None):
        return True
    return mode.is_grad_enabled() and (is_recorded(x) or any(getattr(t, "requires_grad", False) for t in others))


def apply_in_place(op: Op, x: TensorBase, operands: Sequence[Any], attrs: Mapping[str, Any], name: str) -> TensorBase:
    """`x` becomes ``op(x, *operands, **attrs)``.

    Raises
    ------
    GradientError, ShapeError, DTypeError : as `common.methods.assign.assign`.
    """
    if mode.inference_seen:
        refuse_write(x, name)
    if has_history(x, *operands):
        return assign(x, apply(op, (x, *operands), attrs), name)
    arrays = [np.asarray(o.payload if isinstance(o, TensorBase) else o) for o in operands]
    run_in_place(op, x.payload, arrays, attrs)
    log_write(x.payload, *user_frame(2))
    return x


def run_in_place(op: Op, target: np.ndarray, operands: Sequence[np.ndarray], attrs: Mapping[str, Any]) -> None:
    """Write ``op(target, *operands)`` to `target`; `op`'s first kernel copies, the others do not read x.

    Raises
    ------
    IndexRangeError : a wrong index; nothing is written then.
    """
    if not (type(target) is np.ndarray and target.flags.carray):
        put(target, eager.run(op, (target, *operands), attrs))
        return
    forms = tuple((x.shape, x.dtype) for x in (target, *operands))
    rest = [np.ascontiguousarray(x) for x in operands]
    rest = [x.copy() if np.may_share_memory(x, target) else x for x in rest]
    buffers = [target, *rest, target]
    for kernel, slots, scratch, ints, errors in _steps(op, forms, tuple(attrs.items())):
        status = kernel(*[buffers[i] for i in slots], *(np.empty(n, np.uint8) for n in scratch), *ints)
        if status:
            raise_status(op, errors, status)


@lru_cache(maxsize=1024)
def _steps(
    op: Op, forms: tuple[Any, ...], attrs: tuple[Any, ...]
) -> list[tuple[Callable[..., int], Any, Any, Any, Any]]:
    """The kernels of an op but the first, which copies."""
    specs = [Spec(*form) for form in forms]
    values = dict(attrs)
    out = op.spec(*specs, **values)
    return [
        (
            compiled(call.source, call.name),
            call.buffers,
            (call.scratch,) if call.scratch else (),
            call.ints,
            call.errors,
        )
        for call in op.native(specs, (out,), values)[1:]
    ]
