"""Gradient checkpointing."""

from common.autograd.checkpoint import checkpoint

__all__ = ["checkpoint"]
