"""RMSprop."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from common.ops.math.arithmetic import sqrt
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, gradient, refuse_negative


class RMSprop(UpdateRule):
    """Gradients divided by the root of their mean square, as PyTorch defines it.

    g' = g + weight_decay p;  v = alpha v + (1 - alpha) g'^2;  d = g' / (sqrt(v) + eps), or with `centered`
    a = a + (1 - alpha) (g' - a), d = g' / (sqrt(v - a^2) + eps);  b = momentum b + d;  p = p - lr b.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    alpha, eps, weight_decay, momentum, centered : see the formula.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : a negative option.

    References
    ----------
    Tieleman and Hinton, Neural networks for machine learning, lecture 6.5, 2012. Graves, Generating sequences with
    recurrent neural networks, 2013 (centered).
    """

    optional = ("weight_decay", "momentum")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, {**options, "centered": centered, "maximize": maximize}, how)

    def check(self, group: ParameterGroup) -> None:
        """Nothing negative."""
        refuse_negative(group, "alpha", "eps", "weight_decay", "momentum")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count, mean square, and where they are used velocity and mean."""
        names = ["square_avg"]
        names += ["momentum_buffer"] if group["momentum"] else []
        names += ["grad_avg"] if group["centered"] else []
        return {"step": np.zeros((), np.float64), **{name: np.zeros_like(p.payload) for name in names}}

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        g = gradient(options, p, g)
        rest = (1 - options["alpha"]).to(p.dtype)
        v = options["alpha"].to(p.dtype) * state["square_avg"] + rest * (g * g)
        new = {"step": state["step"] + 1, "square_avg": v}
        if options["centered"]:
            mean = new["grad_avg"] = state["grad_avg"] + rest * (g - state["grad_avg"])
            v = v - mean * mean
        d = g / (sqrt(v) + options["eps"].to(p.dtype))
        if options["momentum"] is not None:
            d = new["momentum_buffer"] = options["momentum"].to(p.dtype) * state["momentum_buffer"] + d
        return p - options["lr"].to(p.dtype) * d, new
