"""Adagrad."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from common.ops.math.arithmetic import sqrt
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, gradient, refuse_negative


class Adagrad(UpdateRule):
    """Gradients divided by the root of the sum of their squares, as PyTorch defines it.

    g' = g + weight_decay p;  s = s + g'^2;  p = p - lr / (1 + (t - 1) lr_decay) g' / (sqrt(s) + eps), t from 1.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    lr_decay, weight_decay, eps : see the formula.
    initial_accumulator_value : s before the first step.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : a negative option.

    References
    ----------
    Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic optimization, 2011.
    """

    optional = ("lr_decay", "weight_decay")
    saves_initial = True  # as in PyTorch, whose only optimiser it is that makes its state before the first step

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**options, "initial_accumulator_value": initial_accumulator_value, "maximize": maximize}, how
        )

    def check(self, group: ParameterGroup) -> None:
        """Nothing negative."""
        refuse_negative(group, "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count and sum of squares."""
        return {"step": np.zeros((), np.float64), "sum": np.full_like(p.payload, group["initial_accumulator_value"])}

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        g = gradient(options, p, g)
        rate, step = options["lr"], state["step"] + 1
        if options["lr_decay"] is not None:
            rate = rate / (1 + (step - 1) * options["lr_decay"])
        total = state["sum"] + g * g
        change = g / (sqrt(total) + options["eps"].to(p.dtype))
        return p - rate.to(p.dtype) * change, {"step": step, "sum": total}
