"""Graphs, curves, distributions, pictures and tables for TensorBoard, as in `torch.utils.tensorboard`."""

from common.api.places import publish
from common.tools.files import tensorboard


class SummaryWriter(tensorboard.SummaryWriter):  # noqa: D101  the base has said everything
    __doc__ = tensorboard.SummaryWriter.__doc__
    _draw = staticmethod(tensorboard.recorded)


__all__ = ["SummaryWriter"]

publish(__name__)
