"""What optimisers share: groups of parameters with options, and state made in the constructor.

All state exists from the start, so that every step is the same program in both engines. The learning rate is
state as well: writing ``optimizer.param_groups[0]["lr"]`` takes effect in compiled programs without a new trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from common import mode
from common.errors import ArgumentError
from common.leaf import Buffer, Parameter
from common.tensor import TensorBase


class Group(dict[str, Any]):
    """Parameters and their options.

    ``group["lr"]`` reads and writes the learning rate, a float; other options are fixed when the optimiser is made.

    Attributes
    ----------
    rate : the learning rate, a 0-d float64 buffer or the tensor that the user gave.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        lr = options["lr"]
        if not isinstance(lr, TensorBase) and not (isinstance(lr, (int, float, np.number)) and float(lr) >= 0):
            raise ArgumentError(f"Invalid learning rate: {lr}")
        self.rate: TensorBase = lr if isinstance(lr, TensorBase) else Buffer(np.float64(lr))
        if isinstance(self.rate, Buffer):
            self.rate.name = "lr"

    def __getitem__(self, key: str) -> Any:
        if key == "lr":
            return self.rate if mode.current_trace() is not None else self.rate.data.item()
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "lr":
            raise ArgumentError(
                f"option {key!r} is part of the program and fixed when the optimiser is made; make a new optimiser"
            )
        if isinstance(value, TensorBase):
            self.rate.copy_(value)
        else:
            self.rate.data[...] = value

    def __reduce__(self) -> Any:
        return type(self), (dict(self.items()),), {"rate": self.rate}

    def rates(self, dtypes: Iterable[np.dtype]) -> dict[np.dtype, Any]:
        """The learning rate in each dtype, converted once."""
        return {dtype: self.rate.to(dtype) for dtype in dict.fromkeys(dtypes)}


class Optimizer:
    """Base of optimisers.

    Parameters
    ----------
    params : parameters, or dicts with "params" and options that differ from `defaults`.
    defaults : options.

    Attributes
    ----------
    param_groups : a `Group` per dict.
    state : parameter -> name -> buffer.

    Raises
    ------
    ArgumentError : no parameters, something that is not a leaf tensor, or a parameter given twice.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, TensorBase):
            raise ArgumentError("params argument given to the optimizer should be an iterable of Tensors or dicts")
        given = list(params)
        if not given:
            raise ArgumentError("optimizer got an empty parameter list")
        dicts = given if isinstance(given[0], dict) else [{"params": given}]
        self.param_groups: list[Group] = []
        self.state: dict[TensorBase, dict[str, Buffer]] = {}
        for options in dicts:
            listed = options["params"]
            members = [listed] if isinstance(listed, TensorBase) else list(listed)
            for p in members:
                if not isinstance(p, TensorBase) or not p.is_leaf:
                    raise ArgumentError(f"can't optimize a non-leaf Tensor or a {type(p).__name__}")
                if p in self.state:
                    raise ArgumentError("some parameters appear in more than one parameter group")
                self.state[p] = {}
            self.param_groups.append(Group({**defaults, **options, "params": members}))

    def add_state(self, p: TensorBase, name: str, value: np.ndarray | None = None) -> None:
        """Give a parameter a buffer, zeros like it by default."""
        buffer = self.state[p][name] = Buffer(np.zeros_like(p.data) if value is None else value)
        buffer.name = f"{getattr(p, 'name', '') or 'parameter'}.{name}"

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients; or set them to 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad = p.grad.detach() * 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Parameters
        ----------
        closure : computes the loss and its gradients again; called first, its result is returned.
        """
        loss = None
        if closure is not None:
            with mode.set_grad_enabled(True):
                loss = closure()
        with mode.set_grad_enabled(False):
            for group in self.param_groups:
                active = [(p, p.grad) for p in group["params"] if p.grad is not None]
                if active:
                    self.update(group, active)
        return loss

    def update(self, group: Group, active: list[tuple[Any, Any]]) -> None:
        """Write new values to the parameters and state of one group; `active` are pairs with gradients."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Copies of all buffers and learning rates, by position, as arrays and numbers."""
        states = [{n: b.data.copy() for n, b in s.items()} for s in self.state.values()]
        return {"state": states, "lr": [group.rate.data.item() for group in self.param_groups]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises
        ------
        ArgumentError : it belongs to an optimiser of another structure.
        """
        own = list(self.state.values())
        if [set(s) for s in own] != [set(s) for s in state["state"]] or len(state["lr"]) != len(self.param_groups):
            raise ArgumentError("loaded state dict has a different number of parameters or other state")
        for buffers, arrays in zip(own, state["state"], strict=True):
            for name, buffer in buffers.items():
                np.copyto(buffer.data, arrays[name])
        for group, rate in zip(self.param_groups, state["lr"], strict=True):
            group["lr"] = rate


__all__ = ["Group", "Optimizer", "Parameter"]
