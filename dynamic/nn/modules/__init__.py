"""PyTorch's place of what concerns all modules."""

from dynamic.nn.modules import module

__all__ = ["module"]
