"""Inference tensors: made under `inference_mode`; outside they are neither saved for backward nor overwritten.

The mark is the tensor's class, so it costs other tensors nothing. Nobody comes here before the mode is entered first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core import mode
from common.core.errors import GradientError
from common.core.op import Op
from common.tensor.base import InferenceTensor, Tensor, TensorBase
from common.tensor.view_families import is_outdated
from common.tensor.write_log import positions_read


def is_inference(x: TensorBase) -> bool:
    """Whether a tensor was made under `inference_mode`, or is a view of one that was."""
    return type(x) is InferenceTensor


def mark(x: TensorBase, on: bool = True) -> None:
    """Make an eager tensor an inference tensor, or a normal one."""
    if type(x) is Tensor or type(x) is InferenceTensor:
        x.__class__ = InferenceTensor if on else Tensor


def mark_result(op: Op, operands: Sequence[Any], results: Sequence[TensorBase]) -> None:
    """Mark the results of an op that has run outside a trace: a view is what its operand is."""
    if getattr(results[0], "_family", None) is not None:  # a view
        on = type(operands[0]) is InferenceTensor
        if on:
            for x in results:
                x.grad_fn, x._requires_grad = None, False
        elif mode.is_inference_mode_enabled() and operands[0]._requires_grad:  # nothing is recorded, yet
            for x in results:
                x._requires_grad = True
                x.__class__ = InferenceView
                mode.stay_on_generic_path(x)  # while it lives, every op looks at its history
    else:
        on = mode.is_inference_mode_enabled()
    for x in results:
        mark(x, on)


_NODE: Any = TensorBase.__dict__["grad_fn"]


def _node(x: TensorBase) -> Any:
    """The node that made it, unless its history is not known.

    Raises
    ------
    GradientError : the memory has been written since the view was made, and ops are recorded.
    """
    if is_outdated(x) and mode.is_grad_enabled():
        raise GradientError(
            "A view was created in inference mode and its base or another view of its base has been modified "
            "inplace. Given that this use case is ambiguous and error-prone, it is forbidden. Move both the view "
            "and the write inside the inference_mode block, or both outside, or make the view again."
        )
    return _NODE.__get__(x)


class InferenceView(Tensor, own=True):
    """A view, made under `inference_mode`, of memory of outside that requires grad."""

    __slots__ = ()
    grad_fn = property(_node, _NODE.__set__)


def refuse_saving(op: Op, operands: Sequence[Any], edges: Sequence[Any]) -> None:
    """Refuse to record an op whose rules will read an inference tensor.

    Raises
    ------
    GradientError : there is one.
    """
    if not any(type(x) is InferenceTensor for x in operands):
        return
    read = positions_read(op, op.rules, tuple([edge is not None for edge in edges]))
    if any(is_inference(operands[index]) for i, index in enumerate(op.saved_inputs) if i in read):
        raise saving(op.name)


def saving(name: str) -> GradientError:
    """The error for an inference tensor that backward would need."""
    return GradientError(
        "Inference tensors cannot be saved for backward. Please do not save Tensors marked inference in forward. To "
        f"work around you can make a clone to get a normal tensor and use it in autograd. The op is {name}."
    )


def refuse_write(x: TensorBase, name: str) -> None:
    """Refuse to overwrite an inference tensor outside the mode.

    Raises
    ------
    GradientError : it is one.
    """
    if is_inference(x) and not mode.is_inference_mode_enabled():
        raise GradientError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            f"normal tensor before doing inplace update. The op is {name}_."
        )
