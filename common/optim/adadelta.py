"""Adadelta."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from common.core.errors import ArgumentError
from common.ops.math.arithmetic import sqrt
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, gradient, refuse_negative


class Adadelta(UpdateRule):
    """Gradients scaled by the ratio of the root mean squares of past changes and gradients, as PyTorch defines it.

    g' = g + weight_decay p;  v = rho v + (1 - rho) g'^2;  d = sqrt(u + eps) / sqrt(v + eps) g';
    u = rho u + (1 - rho) d^2;  p = p - lr d.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    rho, eps, weight_decay : see the formula.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : `rho` outside [0, 1], or a negative option.

    References
    ----------
    Zeiler, Adadelta: an adaptive learning rate method, 2012.
    """

    optional = ("weight_decay",)

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options, how)

    def check(self, group: ParameterGroup) -> None:
        """rho in [0, 1], nothing negative."""
        if not 0 <= group["rho"] <= 1:
            raise ArgumentError(f"Invalid rho value: {group['rho']}")
        refuse_negative(group, "eps", "weight_decay")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count, mean squares of gradients and of changes."""
        return {"step": np.zeros((), np.float64), "square_avg": np.zeros_like(p.payload),
                "acc_delta": np.zeros_like(p.payload)}  # fmt: skip

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        g = gradient(options, p, g)
        rho, rest, eps = (x.to(p.dtype) for x in (options["rho"], 1 - options["rho"], options["eps"]))
        v = rho * state["square_avg"] + rest * (g * g)
        d = sqrt(state["acc_delta"] + eps) / sqrt(v + eps) * g
        u = rho * state["acc_delta"] + rest * (d * d)
        return p - options["lr"].to(p.dtype) * d, {"step": state["step"] + 1, "square_avg": v, "acc_delta": u}
