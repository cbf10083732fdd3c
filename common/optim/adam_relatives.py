"""Adamax, NAdam and RAdam."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from common.ops.math.arithmetic import abs, pow, sqrt
from common.ops.math.compare import gt, maximum, where
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, gradient, pair, refuse_betas, refuse_negative


class _WithBetas(UpdateRule):
    """The base of optimisers with two decay rates, a step count and a first moment."""

    optional = ("weight_decay",)
    names: tuple[str, ...] = ("exp_avg", "exp_avg_sq")

    def check(self, group: ParameterGroup) -> None:
        """Betas in [0, 1), nothing negative."""
        refuse_betas(group)
        refuse_negative(group, "eps", "weight_decay")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count and moments."""
        return {"step": np.zeros((), np.float64), **{name: np.zeros_like(p.payload) for name in self.names}}


def _decayed(options: dict[str, Any], p: Any, g: Any) -> tuple[Any, Any]:
    """Parameter and gradient after weight decay, which may act on the one or the other."""
    if not options["decoupled_weight_decay"]:
        return p, gradient(options, p, g)
    if (decay := options["weight_decay"]) is not None:
        p = p * (1 - options["lr"] * decay).to(p.dtype)
    return p, gradient({**options, "weight_decay": None}, p, g)


def _moments(options: dict[str, Any], g: Any, state: dict[str, Any]) -> tuple[Any, Any]:
    beta1, beta2 = options["betas"]
    m = state["exp_avg"] + (1 - beta1).to(g.dtype) * (g - state["exp_avg"])
    return m, beta2.to(g.dtype) * state["exp_avg_sq"] + (1 - beta2).to(g.dtype) * (g * g)


class Adamax(_WithBetas):
    """Adam with the largest absolute gradient instead of the second moment, as PyTorch defines it.

    g' = g + weight_decay p;  m = b1 m + (1 - b1) g';  u = max(b2 u, |g'| + eps);  p = p - lr / (1 - b1^t) m / u.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    betas, eps, weight_decay : see the formula.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : an option outside its range.

    References
    ----------
    Kingma and Ba, Adam: a method for stochastic optimization, 2015, section 7.
    """

    names = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {
            "lr": lr,
            "betas": pair("betas", betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, options, how)

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        g, (beta1, beta2), step = gradient(options, p, g), options["betas"], state["step"] + 1
        m = state["exp_avg"] + (1 - beta1).to(p.dtype) * (g - state["exp_avg"])
        u = maximum(beta2.to(p.dtype) * state["exp_inf"], abs(g) + options["eps"].to(p.dtype))
        rate = (options["lr"] / (1 - pow(beta1, step))).to(p.dtype)
        return p - rate * (m / u), {"step": step, "exp_avg": m, "exp_inf": u}


class NAdam(_WithBetas):
    """Adam with Nesterov's momentum, as PyTorch defines it.

    m and v as for Adam;  a_t = b1 (1 - 0.96^(t momentum_decay) / 2);  c = a_1 ... a_t;  d = sqrt(v / (1 - b2^t)) + eps;
    p = p - lr (1 - a_t) / (1 - c) g' / d - lr a_(t+1) / (1 - c a_(t+1)) m / d.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    betas, eps, momentum_decay : see the formula.
    weight_decay : added to the gradient, times p.
    decoupled_weight_decay : p = p (1 - lr weight_decay) first, instead.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : an option outside its range.

    References
    ----------
    Dozat, Incorporating Nesterov momentum into Adam, 2016.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "betas": pair("betas", betas), "eps": eps, "weight_decay": weight_decay,
                   "momentum_decay": momentum_decay, "maximize": maximize,
                   "decoupled_weight_decay": decoupled_weight_decay}  # fmt: skip
        super().__init__(params, options, how)

    def check(self, group: ParameterGroup) -> None:
        """Betas in [0, 1), nothing negative."""
        super().check(group)
        refuse_negative(group, "momentum_decay")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count, the product of momenta, and moments."""
        return {**super().initial_state(group, p), "mu_product": np.ones((), np.float64)}

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        p, g = _decayed(options, p, g)
        lr, (beta1, beta2), step = options["lr"], options["betas"], state["step"] + 1
        now, after = (beta1 * (1 - 0.5 * pow(0.96, t * options["momentum_decay"])) for t in (step, step + 1))
        product = state["mu_product"] * now
        m, v = _moments(options, g, state)
        d = sqrt(v / (1 - pow(beta2, step)).to(p.dtype)) + options["eps"].to(p.dtype)
        first = (lr * (1 - now) / (1 - product)).to(p.dtype)
        second = (lr * after / (1 - product * after)).to(p.dtype)
        new = {"step": step, "exp_avg": m, "exp_avg_sq": v, "mu_product": product}
        return p - first * (g / d) - second * (m / d), new


class RAdam(_WithBetas):
    """Adam whose steps are rectified while the second moment is uncertain, as PyTorch defines it.

    m and v as for Adam;  r_inf = 2 / (1 - b2) - 1;  r = r_inf - 2 t b2^t / (1 - b2^t);  where r > 5, the step is
    lr m / (1 - b1^t) sqrt(1 - b2^t) / (sqrt(v) + eps) times
    sqrt((r - 4) (r - 2) r_inf / ((r_inf - 4) (r_inf - 2) r)); else it is lr m / (1 - b1^t).

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    betas, eps : see the formula.
    weight_decay : added to the gradient, times p.
    decoupled_weight_decay : p = p (1 - lr weight_decay) first, instead.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : an option outside its range.

    References
    ----------
    Liu et al., On the variance of the adaptive learning rate and beyond, 2020.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "betas": pair("betas", betas), "eps": eps, "weight_decay": weight_decay,
                   "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}  # fmt: skip
        super().__init__(params, options, how)

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        p, g = _decayed(options, p, g)
        lr, (beta1, beta2), step = options["lr"], options["betas"], state["step"] + 1
        m, v = _moments(options, g, state)
        power = pow(beta2, step)
        most = 2 / (1 - beta2) - 1
        r = most - 2 * step * power / (1 - power)
        certain = gt(r, 5.0)
        r = where(certain, r, 6.0)  # so that no root is one of a negative number
        factor = sqrt((r - 4) * (r - 2) * most / ((most - 4) * (most - 2) * r) * (1 - power)).to(p.dtype)
        scale = where(certain, factor / (sqrt(v) + options["eps"].to(p.dtype)), 1.0)
        rate = (lr / (1 - pow(beta1, step))).to(p.dtype)
        return p - rate * m * scale, {"step": step, "exp_avg": m, "exp_avg_sq": v}
