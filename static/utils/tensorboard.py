"""Graphs, curves, distributions, pictures and tables for TensorBoard, as in `torch.utils.tensorboard`."""

from collections.abc import Callable
from typing import Any

from common.api.places import publish
from common.tensor.base import TensorBase
from common.tools.files import tensorboard
from common.tools.pictures.picture import Picture
from static.jit.function import CompiledFunction


def _traced(model: Callable[..., Any], inputs: tuple[Any, ...]) -> Picture:
    """The picture of a trace of a model; it is not compiled."""
    program = CompiledFunction(model, interpret=True)
    program(*(x.detach() if isinstance(x, TensorBase) else x for x in inputs))
    return program.picture


class SummaryWriter(tensorboard.SummaryWriter):  # noqa: D101  the base has said everything
    __doc__ = tensorboard.SummaryWriter.__doc__
    _draw = staticmethod(_traced)


__all__ = ["SummaryWriter"]

publish(__name__)
