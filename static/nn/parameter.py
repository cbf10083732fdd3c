"""Parameters and buffers, under PyTorch's name of their module."""

from common.tensor.leaf import Buffer, Parameter

__all__ = ["Buffer", "Parameter"]
