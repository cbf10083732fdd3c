"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from common.core.errors import ArgumentError
from common.ops.math.compare import eq, where
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, gradient, refuse_negative


class SGD(UpdateRule):
    """Gradient descent with momentum, as PyTorch defines it.

    g' = g + weight_decay p;  v = momentum v + (1 - dampening) g', at the first step v = g';
    p = p - lr v, or with `nesterov` p = p - lr (g' + momentum v).

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    momentum, dampening, weight_decay, nesterov : see the formula.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : a negative option, or nesterov without momentum or with dampening.

    References
    ----------
    Sutskever et al., On the importance of initialization and momentum in deep learning, 2013.

    Examples
    --------
    >>> import dynamic as tw
    >>> w = tw.nn.Parameter([1.0, 2.0])
    >>> optimizer = tw.optim.SGD([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 1.0000])
    """

    optional = ("momentum", "dampening", "weight_decay")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, {"lr": lr, **options, "maximize": maximize}, how)

    def check(self, group: ParameterGroup) -> None:
        """Nothing negative; nesterov has momentum and no dampening."""
        refuse_negative(group, "momentum", "weight_decay")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentError("Nesterov momentum requires a momentum and zero dampening")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """The velocity; with dampening the step count, as the first step is not dampened."""
        if not group["momentum"]:
            return {}
        count = {"step": np.zeros((), np.int64)} if group["dampening"] else {}
        return {"momentum_buffer": np.zeros_like(p.payload), **count}

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        g = gradient(options, p, g)
        momentum, new = options["momentum"], {}
        if momentum is not None:
            momentum, fresh = momentum.to(p.dtype), g
            if options["dampening"] is not None:
                fresh = g * where(eq(state["step"], 0), 1.0, 1 - options["dampening"]).to(p.dtype)
                new["step"] = state["step"] + 1
            v = new["momentum_buffer"] = momentum * state["momentum_buffer"] + fresh
            g = g + momentum * v if options["nesterov"] else v
        return p - options["lr"].to(p.dtype) * g, new

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """See `Optimizer.load_state_dict`; PyTorch saves no step count, a buffer means that there was a first step."""
        states = {
            i: {"step": 1, **state} if state.get("momentum_buffer") is not None else state
            for i, state in state_dict["state"].items()
        }
        super().load_state_dict({**state_dict, "state": states})
