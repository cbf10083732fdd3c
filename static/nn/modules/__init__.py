"""PyTorch's place of what concerns all modules."""

from static.nn.modules import module as module

__all__ = ["module"]
