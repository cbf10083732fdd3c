"""ASGD and Rprop."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from common.core.errors import ArgumentError
from common.ops.math.arithmetic import pow, sign
from common.ops.math.compare import eq, gt, lt, maximum, minimum, where
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, gradient, pair, refuse_negative


class ASGD(UpdateRule):
    """Stochastic gradient descent with an average of the parameters in ``state["ax"]``, as PyTorch defines it.

    g' = g + weight_decay p;  p = p (1 - lambd eta) - eta g';  ax = ax + mu (p - ax);  then, after step t,
    eta = lr / (1 + lambd lr t)^alpha and mu = 1 / max(1, t - t0); before the first step eta = lr and mu = 1.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    lambd, alpha, t0, weight_decay : see the formula.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : a negative option.

    References
    ----------
    Polyak and Juditsky, Acceleration of stochastic approximation by averaging, 1992.
    """

    optional = ("weight_decay",)

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize}, how)

    def check(self, group: ParameterGroup) -> None:
        """No negative decay."""
        refuse_negative(group, "weight_decay")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count, rate, weight of the newest parameters in the average, and the average."""
        return {"step": np.zeros((), np.float64), "eta": np.zeros((), np.float64), "mu": np.ones((), np.float64),
                "ax": np.zeros_like(p.payload)}  # fmt: skip

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        lr, lambd, step, mu = options["lr"], options["lambd"], state["step"] + 1, state["mu"]
        g = gradient(options, p, g)
        eta = where(eq(state["step"], 0), lr, state["eta"])
        p = p * (1 - lambd * eta).to(p.dtype) - eta.to(p.dtype) * g
        ax = where(eq(mu, 1), p, state["ax"] + (p - state["ax"]) * mu.to(p.dtype))
        rate = lr / pow(1 + lambd * lr * step, options["alpha"])
        return p, {"step": step, "eta": rate, "mu": 1 / maximum(step - options["t0"], 1.0), "ax": ax}


class Rprop(UpdateRule):
    """Resilient propagation, as PyTorch defines it: each element has a step size, and only the gradient's sign counts.

    s = s eta_plus where the gradient keeps its sign, s eta_minus where it changes, clamped to `step_sizes`;
    p = p - s sign(g'), where g' is 0 after a change of sign and g elsewhere.

    Parameters
    ----------
    params : parameters or groups of them.
    lr : the first step size, a number or a 0-d tensor.
    etas : (eta_minus, eta_plus).
    step_sizes : the smallest and the largest step size.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : not 0 < eta_minus < 1 < eta_plus.

    References
    ----------
    Riedmiller and Braun, A direct adaptive method for faster backpropagation learning: the RPROP algorithm, 1993.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {
            "lr": lr,
            "etas": pair("etas", etas),
            "step_sizes": pair("step_sizes", step_sizes),
            "maximize": maximize,
        }
        super().__init__(params, options, how)

    def check(self, group: ParameterGroup) -> None:
        """0 < eta_minus < 1 < eta_plus."""
        low, high = group["etas"]
        if not 0 < low < 1 < high:
            raise ArgumentError(f"Invalid eta values: {low}, {high}")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count, the gradient before, and step sizes."""
        return {"step": np.zeros((), np.float64), "prev": np.zeros_like(p.payload),
                "step_size": np.zeros_like(p.payload)}  # fmt: skip

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        (low, high), (least, most) = options["etas"], options["step_sizes"]
        g = -g if options["maximize"] else g
        agreement = g * state["prev"]
        changed = lt(agreement, 0)
        factor = where(changed, low.to(p.dtype), where(gt(agreement, 0), high.to(p.dtype), 1.0))
        size = where(eq(state["step"], 0), options["lr"].to(p.dtype), state["step_size"])
        size = minimum(maximum(size * factor, least.to(p.dtype)), most.to(p.dtype))
        g = where(changed, 0.0, g)
        return p - sign(g) * size, {"step": state["step"] + 1, "prev": g, "step_size": size}
