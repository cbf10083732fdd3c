"""Gradient checkpointing."""

from common.autograd.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop

__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_early_stop"]
