"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.errors import ArgumentError
from common.ops.arithmetic import sub
from common.ops.compare import eq, where
from common.optim.optimizer import Group, Optimizer


class SGD(Optimizer):
    """Gradient descent with momentum, as PyTorch defines it.

    g' = g + weight_decay p;  v = momentum v + (1 - dampening) g', at the first step v = g';
    p = p - lr v, or with `nesterov` p = p - lr (g' + momentum v).

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    momentum, dampening, weight_decay, nesterov : see the formula.

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

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        for name, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0:
                raise ArgumentError(f"Invalid {name} value: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentError("Nesterov momentum requires a momentum and zero dampening")
        options = {"momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov}
        super().__init__(params, {"lr": lr, **options})
        for group in self.param_groups:
            for p in group["params"] if group["momentum"] else ():
                self.add_state(p, "momentum_buffer")
                if group["dampening"]:
                    self.add_state(p, "step", np.zeros((), np.int64))

    def update(self, group: Group, active: list[tuple[Any, Any]]) -> None:
        """One step of a group."""
        momentum, dampening, decay = group["momentum"], group["dampening"], group["weight_decay"]
        rates = group.rates(p.dtype for p, _ in active)
        for p, g in active:
            if decay:
                g = g + decay * p
            if momentum:
                state = self.state[p]
                v = state["momentum_buffer"]
                fresh = g
                if dampening:
                    fresh = g * where(eq(state["step"], 0), 1.0, 1.0 - dampening).to(p.dtype)
                    state["step"].add_(1)
                v_new = momentum * v + fresh
                v.copy_(v_new)
                g = g + momentum * v_new if group["nesterov"] else v_new
            p.copy_(sub(p, rates[p.dtype] * g))
