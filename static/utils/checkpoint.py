"""Gradient checkpointing."""

from common.checkpoint import checkpoint

__all__ = ["checkpoint"]
