"""Optimisers that say how one parameter is updated; the step over all of them is here."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any, cast
from weakref import ref

import numpy as np

from common.core import mode, scopes
from common.core.errors import ArgumentError
from common.core.int_arguments import shown
from common.optim.execution import execution
from common.optim.fused_step import Active, FusedStep
from common.optim.group import ParameterGroup, Update
from common.optim.member_changes import States
from common.optim.optimizer import Optimizer
from common.tensor.base import TensorBase


class UpdateRule(Optimizer, metaclass=ABCMeta):
    """An optimiser given by the update of one parameter: a subclass names its options, makes state, and says it.

    All state exists from the start, so that every step is the same program in both engines.

    Parameters
    ----------
    params : see `Optimizer`.
    defaults : options.
    how : see `common.optim.execution.Execution`.

    Attributes
    ----------
    elementwise : whether the update is made of elementwise ops only: then a step outside a trace is one native call.
    """

    elementwise = True
    makes_state = True
    _incomplete_state = False

    def __init__(self, params: Any, defaults: dict[str, Any], how: Any = None) -> None:
        self._fused_update = FusedStep(f"{type(self).__name__}.step")
        super().__init__(params, {**defaults, **execution(type(self).__name__, how or {}, defaults)})

    @abstractmethod
    def initial_state(self, group: ParameterGroup, p: TensorBase) -> dict[str, np.ndarray]:
        """Arrays that a parameter's updates read and write, by PyTorch's names."""

    @abstractmethod
    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """The new value of one parameter and of its state: ops of the registry.

        Parameters
        ----------
        options : as `ParameterGroup.options` gives them; numbers are 0-d float64, unless the user gave a tensor.
        p, g : (...) parameter and gradient.
        state : as made by `initial_state`.
        """

    def forget_programs(self) -> None:
        """See `Optimizer.forget_programs`."""
        super().forget_programs()
        self._fused_update.forget()

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "state":
            super().__setattr__(name, value)
            return
        super().__setattr__(name, States(value, ref(self)))
        self.note_members()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        cast(States, self.state).belong(ref(self))

    def note_members(self) -> None:
        """See `Optimizer.note_members`: what is missing is made before the next step, which is a new program."""
        self._incomplete_state = True
        if "_group_count" in self.__dict__:
            self.forget_programs()

    def complete(self) -> None:
        """Make the state of parameters that have come without."""
        if self._incomplete_state:
            cast(States, self.state).belong(ref(self))
            with mode.activate_trace(None):  # a compiled step finds the state there
                for group in self.param_groups:
                    self.make_state(group)
            self._incomplete_state = False

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
        self.complete()
        trace = mode.current_trace()
        if trace is not None:
            trace.payload(self._group_count)
        for group in self.param_groups:
            recorded = bool(group["differentiable"])
            with mode.GradSwitch(recorded):
                active: list[Active] = [(p, g, self.state[p]) for p in group.params if (g := p.grad) is not None]
                fused = trace is None and self.elementwise and not recorded
                left = self._fused_update.run(self, group, active) if fused else active
                if left:
                    with scopes.inside(self):
                        self._update_by_ops(group, left)
        return loss

    def _update_by_ops(self, group: ParameterGroup, active: list[Active]) -> None:
        options, trace = group.options(), mode.current_trace()
        for p, g, state in active:

            def update(p: Any = p, g: Any = g, state: dict[str, Any] = state) -> dict[str, Any]:
                if mode.is_grad_enabled():  # what is recorded reads these, and they are written below
                    p, state = p.clone(), {name: x.clone() for name, x in state.items()}
                new, new_state = self.update(options, p, g, state)
                return {**new_state, "": new}

            with scopes.inside(p, getattr(p, "name", "") or "parameter"):
                what = self, id(group), *state
                new = update() if trace is None else trace.repeated(what, (p, g, *state.values()), update)
                for name, value in new.items():
                    (state[name] if name else p).copy_(value)


def refuse_negative(group: ParameterGroup, *names: str) -> None:
    """Refuse negative options, in PyTorch's words."""
    for name in names:
        if group[name] < 0:
            raise ArgumentError(f"Invalid {name.replace('eps', 'epsilon')} value: {group[name]}")


def pair(name: str, given: Any) -> tuple[Any, Any]:
    """Two numbers that one option has.

    Raises
    ------
    ArgumentError : not two.
    """
    if not hasattr(given, "__len__") or isinstance(given, (str, dict)) or len(given) != 2:
        raise ArgumentError(f"Invalid {name} parameter: two numbers are wanted, not {shown(given)}")
    first, second = given
    return first, second


def refuse_betas(group: ParameterGroup) -> None:
    """Refuse decay rates outside [0, 1), and numbers beside tensors."""
    parts = group.numbers.get("betas", ())
    if len({type(x).__name__ == "Buffer" for x in parts}) > 1:
        raise ArgumentError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(group["betas"]):
        if not 0 <= beta < 1:
            raise ArgumentError(f"Invalid beta parameter at index {i}: {beta}")


def gradient(options: dict[str, Any], p: Any, g: Any) -> Any:
    """The gradient to descend along: negated for `maximize`, and with `weight_decay` times p added."""
    if options["maximize"]:
        g = -g
    decay = options["weight_decay"]
    return g if decay is None else g + decay.to(p.dtype) * p


__all__ = ["ParameterGroup", "Update", "UpdateRule", "gradient", "refuse_betas", "refuse_negative"]
