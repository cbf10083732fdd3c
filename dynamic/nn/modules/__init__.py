"""PyTorch's place of what concerns all modules."""

from dynamic.nn.modules import module as module

__all__ = ["module"]
