"""Gradient checkpointing."""

from common.api.places import publish
from common.transforms.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_early_stop,
)
from common.transforms.recomputing import (
    check_backward_validity,
    detach_variable,
    get_device_states,
    set_device_states,
)

__all__ = [
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "detach_variable", "get_device_states",
    "noop_context_fn", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

publish(__name__)
