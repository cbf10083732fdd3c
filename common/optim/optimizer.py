"""What optimisers share: groups of parameters with options, state made before the first step, and the step itself.

All state exists from the start, so that every step is the same program in both engines. Numbers among the options are
state as well: writing ``optimizer.param_groups[0]["lr"]`` takes effect in compiled programs without a new trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from common.core import mode, scopes
from common.core.errors import ArgumentError, StateError
from common.core.int_arguments import mapping
from common.ops.math.arithmetic import zeros_like
from common.optim.fused_step import Active, FusedStep
from common.optim.group import ParameterGroup, Update
from common.optim.minimize import Minimizing
from common.tensor.base import TensorBase
from common.tensor.fitting import converted, misfit
from common.tensor.leaf import Buffer


def _state_buffer(p: TensorBase, name: str, value: np.ndarray) -> Buffer:
    buffer = Buffer(value)
    buffer.name = f"{getattr(p, 'name', '') or 'parameter'}.{name}"
    return buffer


class Optimizer(Minimizing):
    """Base of optimisers: a subclass names its options, makes state, and says how one parameter is updated.

    Parameters
    ----------
    params : parameters, pairs of names and parameters, or dicts with "params" and options that differ from `defaults`.
    defaults : options.

    Attributes
    ----------
    param_groups : a `ParameterGroup` per dict.
    state : parameter -> name -> buffer.
    optional : names of options that leave a term out where they are 0.

    Raises
    ------
    ArgumentError : no parameters, something that is not a leaf tensor, or a parameter given twice.
    """

    optional: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, TensorBase):
            raise ArgumentError("params argument given to the optimizer should be an iterable of Tensors or dicts")
        given = list(params)
        if not given:
            raise ArgumentError("optimizer got an empty parameter list")
        self.defaults = defaults
        self.param_groups: list[ParameterGroup] = []
        self.state: dict[TensorBase, dict[str, Any]] = {}
        self._fused = FusedStep(f"{type(self).__name__}.step")
        # its size is the number of groups: read in a trace, so that a group added later is noticed
        self._groups = Buffer(np.zeros(0, np.bool_))
        for options in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(options)

    def __repr__(self) -> str:
        groups = (f"  group {i}: {group!r}\n" for i, group in enumerate(self.param_groups))
        return f"{type(self).__name__} (\n{''.join(groups)})"

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Update further parameters.

        Parameters
        ----------
        param_group : "params", and options that differ from the defaults.

        Raises
        ------
        ArgumentError : something that is not a leaf tensor, or a parameter that is in a group already.
        """
        listed = param_group["params"]
        members = [listed] if isinstance(listed, TensorBase) else list(listed)
        members = [x[1] if isinstance(x, tuple) else x for x in members]
        for i, p in enumerate(members):
            if not isinstance(p, TensorBase) or not p.is_leaf:
                raise ArgumentError(f"can't optimize a non-leaf Tensor or a {type(p).__name__}")
            if p in self.state or any(p is q for q in members[:i]):
                raise ArgumentError("some parameters appear in more than one parameter group")
        group = ParameterGroup({**self.defaults, **param_group, "params": members}, self.optional)
        self.check(group)
        self.param_groups.append(group)
        for p in members:
            memory = p if isinstance(p.payload, np.ndarray) else Buffer(np.zeros(p.shape, p.dtype))
            make = getattr(p, "slot", partial(_state_buffer, p))  # a graph's variables have state in each session
            self.state[p] = {name: make(name, value) for name, value in self.initial_state(group, memory).items()}
        self._groups.payload = np.zeros(len(self.param_groups), np.bool_)

    def check(self, group: ParameterGroup) -> None:
        """Refuse options outside their range."""

    def initial_state(self, group: ParameterGroup, p: TensorBase) -> dict[str, np.ndarray]:
        """Arrays that a parameter's updates read and write, by PyTorch's names."""
        raise NotImplementedError

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """The new value of one parameter and of its state: elementwise ops of the registry.

        Parameters
        ----------
        options : as `ParameterGroup.options` gives them; numbers are 0-d float64, unless the user gave a tensor.
        p, g : (...) parameter and gradient.
        state : as made by `initial_state`.
        """
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients; or set them to 0."""
        for group in self.param_groups:
            for p in group.params:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad = zeros_like(p.grad.detach())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Parameters
        ----------
        closure : computes the loss and its gradients again; called first, its result is returned.
        """
        loss = None
        if closure is not None:
            with mode.GradSwitch(True):
                loss = closure()
        trace = mode.current_trace()
        with mode.GradSwitch(False):
            if trace is not None:
                trace.payload(self._groups)
            for group in self.param_groups:
                active: list[Active] = [(p, g, self.state[p]) for p in group.params if (g := p.grad) is not None]
                left = active if trace is not None else self._fused.run(self, group, active)
                if left:
                    with scopes.inside(self):
                        self._update_by_ops(group, left)
        return loss

    def _update_by_ops(self, group: ParameterGroup, active: list[Active]) -> None:
        options, trace = group.options(), mode.current_trace()
        for p, g, state in active:

            def update(p: Any = p, g: Any = g, state: dict[str, Any] = state) -> dict[str, Any]:
                new, new_state = self.update(options, p, g, state)
                return {**new_state, "": new}

            with scopes.inside(p, getattr(p, "name", "") or "parameter"):
                what = self, id(group), *state
                new = update() if trace is None else trace.repeated(what, (p, g, *state.values()), update)
                for name, value in new.items():
                    (state[name] if name else p).copy_(value)

    # ------------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """Copies of all state as arrays, by the parameter's position, and the groups' options: PyTorch's layout."""
        position = {p: i for i, p in enumerate(self.state)}
        groups = [{**{k: v for k, v in group.items() if k != "params"}, "params": [position[p] for p in group.params]}
                  for group in self.param_groups]  # fmt: skip
        states = {i: {n: b.payload.copy() for n, b in self.state[p].items()} for p, i in position.items()}
        return {"state": {i: s for i, s in states.items() if s}, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, here or in PyTorch; nothing is changed if it does not fit.

        Raises
        ------
        ArgumentError : it belongs to an optimiser of another structure.
        StateError : state of another name or shape.
        """
        mapping(state_dict, "load_state_dict", "state_dict")
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ArgumentError("loaded state dict has a different number of parameter groups")
        arrays: list[tuple[Buffer, Any]] = []
        for group, other in zip(self.param_groups, saved, strict=True):
            if len(group.params) != len(other["params"]):
                raise ArgumentError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"a different number of parameters, {len(other['params'])} for {len(group.params)}"
                )
            for name, value in other.items():
                if name in group.fixed and name != "params" and value != group.fixed[name]:
                    raise ArgumentError(f"loaded state dict has {name}={value}; this optimiser was made with "
                                        f"{name}={group.fixed[name]}")  # fmt: skip
            for p, i in zip(group.params, other["params"], strict=True):
                arrays += self._fitting(group, p, state_dict["state"].get(i, {}))
        for buffer, value in arrays:
            np.copyto(buffer.payload, value)
        for group, other in zip(self.param_groups, saved, strict=True):
            group.update({name: value for name, value in other.items() if name != "params"})

    def _fitting(self, group: ParameterGroup, p: TensorBase, saved: Mapping[str, Any]) -> list[tuple[Buffer, Any]]:
        """Buffers of one parameter and their new contents; what is not saved is as before the first step."""
        unknown = [name for name, x in saved.items() if name not in self.state[p] and x is not None]
        if unknown and "step" not in unknown:
            raise StateError(f"loaded state dict has state {unknown}, which this optimiser does not keep")
        fresh, found = self.initial_state(group, p), []
        for name, buffer in self.state[p].items():
            value = fresh[name] if saved.get(name) is None else np.asarray(saved[name])
            if value.shape != buffer.shape:
                raise StateError(f"size mismatch for {name}: copying {value.shape} into {buffer.shape}")
            fitting = converted(value, buffer.dtype)
            if fitting is None:
                raise StateError(f"dtype mismatch for {name}: {misfit(value, buffer.dtype)}")
            found.append((buffer, fitting))
        return found


def refuse_negative(group: ParameterGroup, *names: str) -> None:
    """Refuse negative options, in PyTorch's words."""
    for name in names:
        if group[name] < 0:
            raise ArgumentError(f"Invalid {name.replace('eps', 'epsilon')} value: {group[name]}")


def gradient(options: dict[str, Any], p: Any, g: Any) -> Any:
    """The gradient to descend along: negated for `maximize`, and with `weight_decay` times p added."""
    if options["maximize"]:
        g = -g
    decay = options["weight_decay"]
    return g if decay is None else g + decay.to(p.dtype) * p


__all__ = ["ParameterGroup", "Optimizer", "Update", "gradient", "refuse_negative"]
