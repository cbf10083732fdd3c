"""Gradient checkpointing."""

from typing import TYPE_CHECKING

from common.core import absent
from common.transforms.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_early_stop,
)

__all__ = ["checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_early_stop"]

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
