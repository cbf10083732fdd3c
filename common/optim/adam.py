"""Adam and AdamW."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from common.ops.math.arithmetic import pow, sqrt
from common.ops.math.compare import maximum
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, gradient, pair, refuse_betas, refuse_negative


class Adam(UpdateRule):
    """Adaptive moments, as PyTorch defines them.

    g' = g + weight_decay p;  m = m + (1 - b1) (g' - m);  v = b2 v + (1 - b2) g'^2;
    p = p - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps), t counted from 1.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    betas, eps, weight_decay : see the formula.
    amsgrad : divide by the largest v so far.
    maximize : ascend: g is negated first.
    how : see `Execution`.
    decoupled_weight_decay : instead of g', p = p (1 - lr weight_decay) first: `AdamW`.

    Raises
    ------
    ArgumentError : an option outside its range.

    References
    ----------
    Kingma and Ba, Adam: a method for stochastic optimization, 2015. Reddi, Kale and Kumar, On the convergence of Adam
    and beyond, 2018 (amsgrad).

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

    optional = ("weight_decay",)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "betas": pair("betas", betas), "eps": eps, "weight_decay": weight_decay,
                   "amsgrad": amsgrad, "maximize": maximize,
                   "decoupled_weight_decay": decoupled_weight_decay}  # fmt: skip
        super().__init__(params, options, how)

    def check(self, group: ParameterGroup) -> None:
        """Betas in [0, 1), nothing negative."""
        refuse_betas(group)
        refuse_negative(group, "eps", "weight_decay")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count, first and second moment, and the second one's maximum."""
        names = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))
        return {"step": np.zeros((), np.float64), **{name: np.zeros_like(p.payload) for name in names}}

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        lr, decay, (beta1, beta2) = options["lr"], options["weight_decay"], options["betas"]
        if options["decoupled_weight_decay"]:
            if decay is not None:
                p = p * (1 - lr * decay).to(p.dtype)
            options = {**options, "weight_decay": None}
        g = gradient(options, p, g)
        step = state["step"] + 1
        m = state["exp_avg"] + (1 - beta1).to(p.dtype) * (g - state["exp_avg"])
        v = beta2.to(p.dtype) * state["exp_avg_sq"] + (1 - beta2).to(p.dtype) * (g * g)
        new = {"step": step, "exp_avg": m, "exp_avg_sq": v}
        if options["amsgrad"]:
            v = new["max_exp_avg_sq"] = maximum(state["max_exp_avg_sq"], v)
        # 0-d float64: 1 - b^t loses too many digits in float32 while t is small
        rate = (lr / (1 - pow(beta1, step))).to(p.dtype)
        scale = sqrt(1 - pow(beta2, step)).to(p.dtype)
        return p - rate * (m / (sqrt(v) / scale + options["eps"].to(p.dtype))), new


class AdamW(Adam):
    """`Adam` with weight decay apart from the gradient: p = p (1 - lr weight_decay) before the update.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    betas, eps, weight_decay, amsgrad, maximize : as for `Adam`.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : an option outside its range.

    References
    ----------
    Loshchilov and Hutter, Decoupled weight decay regularization, 2019.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True, **how
        )
