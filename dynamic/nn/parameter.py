"""Parameters and buffers, under PyTorch's name of their module."""

from common.nn.lazy_modules import UninitializedParameter
from common.tensor.leaf import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "UninitializedParameter"]
