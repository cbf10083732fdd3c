"""Steps of programs that recompute by themselves, such as reversible networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from common.core.source_lines import warn_user
from common.tensor.base import TensorBase


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The devices of tensors besides the CPU, of which there are none, and the states of their generators.

    Parameters
    ----------
    args : tensors and other arguments.
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Any], *, device_type: str | None = None) -> None:
    """Set the generators of no device: ``random.set_rng_state`` sets that of the CPU.

    Parameters
    ----------
    devices, states : as `get_device_states` gives them.
    device_type : accepted.
    """


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with leaves, which require grad as the tensors do, in the places of the tensors."""
    return tuple([
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, TensorBase) else x for x in inputs
    ])  # fmt: skip


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where none of several arguments requires grad."""
    if not any(isinstance(x, TensorBase) and x.requires_grad for x in inputs):
        warn_user("None of the inputs have requires_grad=True. Gradients will be None")


__all__ = ["check_backward_validity", "detach_variable", "get_device_states", "set_device_states"]
