"""The marks of a user's Function (overwritten, kept), checked against its arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.autograd.function_context import FunctionCtx
from common.autograd.view_histories import require_writable
from common.core.errors import ArgumentError, GradientError
from common.core.source_lines import warn_user
from common.tensor.base import TensorBase
from common.tensor.view_families import is_recorded


def among(x: Any, tensors: Sequence[Any]) -> bool:
    """Whether an object is one of some tensors."""
    for y in tensors:  # noqa: SIM110  a generator would double its time
        if x is y:
            return True
    return False


def require_writable_arguments(dirty: Sequence[Any], args: Sequence[Any], recorded: bool, results: int) -> None:
    """Refuse a function that has written to a leaf, or to a view that may have no history, where that is for the tape.

    Parameters
    ----------
    recorded : whether an argument requires grad.
    results : how many the function has.

    Raises
    ------
    ArgumentError : something else than a tensor is marked.
    GradientError : the tape cannot have the write.
    """
    for x in dirty:
        if not isinstance(x, TensorBase):
            raise ArgumentError(f"mark_dirty only accepts input tensors, but got an object of type {type(x).__name__}")
        if not among(x, args):
            warn_user(
                "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need "
                "to pass it to mark_dirty()."
            )
            continue
        if not (recorded or is_recorded(x)):
            continue
        if x._requires_grad and x.grad_fn is None:
            raise GradientError("a leaf Variable that requires grad has been used in an in-place operation.")
        require_writable(x, "mark_dirty")
        if results > 1 and type(getattr(x, "_family", None)) is tuple:
            raise GradientError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. You should either make sure the input is not a view (using .clone() for "
                "example) or make your Function only return one Tensor (potentially splitting it into two Functions)."
            )


def require_views(function: Any, ctx: FunctionCtx, args: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Refuse to keep an argument that is a result too: `setup_context` cannot tell which of the two it means.

    Raises
    ------
    GradientError : one is kept.
    """
    for x in (*ctx._to_save, *(ctx._for_forward or ())):
        if x is not None and among(x, outputs) and among(x, args) and not among(x, ctx._dirty):
            raise GradientError(
                f"{function.__name__}: An input that has been returned as-is as output is being saved for backward. "
                "This is not supported if you override setup_context. You should return and save a view of the input "
                "instead, e.g. with x.view_as(x), or set up ctx inside the forward function itself."
            )
