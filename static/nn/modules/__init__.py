"""PyTorch's place of what concerns all modules."""

from static.nn.modules import module

__all__ = ["module"]
