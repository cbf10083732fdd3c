"""Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.errors import ArgumentError
from common.ops.arithmetic import pow, sqrt
from common.optim.optimizer import Group, Optimizer


class Adam(Optimizer):
    """Adaptive moments, as PyTorch defines them.

    g' = g + weight_decay p;  m = m + (1 - b1) (g' - m);  v = b2 v + (1 - b2) g'^2;
    p = p - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps), t counted from 1.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    betas, eps, weight_decay : see the formula.

    Raises
    ------
    ArgumentError : an option outside its range.

    References
    ----------
    Kingma and Ba, Adam: a method for stochastic optimization, 2015.

    Examples
    --------
    >>> import dynamic as tw
    >>> w = tw.nn.Parameter([1.0, 2.0])
    >>> optimizer = tw.optim.Adam([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.5000, 1.5000])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        for i, beta in enumerate(betas):
            if not 0 <= beta < 1:
                raise ArgumentError(f"Invalid beta parameter at index {i}: {beta}")
        for name, value in (("epsilon", eps), ("weight_decay", weight_decay)):
            if value < 0:
                raise ArgumentError(f"Invalid {name} value: {value}")
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay})
        for group in self.param_groups:
            for p in group["params"]:
                self.add_state(p, "exp_avg")
                self.add_state(p, "exp_avg_sq")
                self.add_state(p, "step", np.zeros((), np.float64))

    def update(self, group: Group, active: list[tuple[Any, Any]]) -> None:
        """One step of a group."""
        beta1, beta2 = group["betas"]
        eps, decay = group["eps"], group["weight_decay"]
        for p, g in active:
            state: Any = self.state[p]
            m, v, step = state["exp_avg"], state["exp_avg_sq"], state["step"]
            if decay:
                g = g + decay * p
            step.add_(1)
            # 0-d float64: 1 - b^t loses too many digits in float32 while t is small
            rate = (group.rate / (1 - pow(beta1, step))).to(p.dtype)
            scale = sqrt(1 - pow(beta2, step)).to(p.dtype)
            m_new = m + (1 - beta1) * (g - m)
            v_new = beta2 * v + (1 - beta2) * (g * g)
            m.copy_(m_new)
            v.copy_(v_new)
            p.copy_(p - rate * (m_new / (sqrt(v_new) / scale + eps)))
