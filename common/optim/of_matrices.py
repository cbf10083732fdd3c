"""Adafactor and Muon: optimisers that look at whole matrices."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from common.core.errors import ArgumentError
from common.core.int_arguments import members
from common.ops.linalg.matmul import matmul
from common.ops.math.arithmetic import abs, pow, rsqrt, sqrt
from common.ops.math.compare import maximum, minimum, where
from common.ops.reduce.reductions import mean, sum
from common.optim.execution import Execution
from common.optim.group import ParameterGroup, Update
from common.optim.update_rule import UpdateRule, pair, refuse_negative


class Adafactor(UpdateRule):
    """Adaptive rates whose second moment of a matrix is an outer product of two vectors, as PyTorch defines it.

    w = t^beta2_decay;  a = min(lr, 1 / sqrt(t)) max(eps[1], rms(p));  p = p (1 - lr weight_decay);
    matrices: r = r + w (mean(g^2, -1) - r), c = c + w (mean(g^2, -2) - c), v = r c / max(mean(r), eps[0]);
    others: v = v + w (g^2 - v);  u = g / sqrt(max(v, eps[0]^2));  p = p - a u / max(1, rms(u) / d).

    Parameters
    ----------
    params : parameters or groups of them.
    lr : learning rate, a number or a 0-d tensor.
    beta2_decay, eps, d, weight_decay : see the formula; eps[0] is by default the smallest step from 1 in p's dtype.
    maximize : ascend: g is negated first.
    how : see `Execution`.

    Raises
    ------
    ArgumentError : an option outside its range.

    References
    ----------
    Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost, 2018.
    """

    optional = ("weight_decay",)
    structural = ("eps",)
    elementwise = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": pair("eps", eps), "d": d, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize}, how)

    def check(self, group: ParameterGroup) -> None:
        """A decay that is not positive, a threshold of at least 1, nothing else negative."""
        if group["beta2_decay"] > 0:
            raise ArgumentError(f"beta2_decay should be <= 0 but is: {group['beta2_decay']}")
        for i, eps in enumerate(group["eps"]):
            if eps is not None and eps < 0:
                raise ArgumentError(f"epsilon{i + 1} should be >= 0 but is: {eps}")
        if group["d"] < 1:
            raise ArgumentError(f"Clipping threshold d should be >= 1 but is: {group['d']}")
        if group["weight_decay"] < 0:
            raise ArgumentError(f"weight_decay should be >= 0 but is: {group['weight_decay']}")

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """Step count, and the second moment or its two factors."""
        count = {"step": np.zeros((), np.float64)}
        if p.payload.ndim < 2:
            return {**count, "variance": np.zeros_like(p.payload)}
        *batch, rows, columns = p.shape
        return {**count, "row_var": np.zeros((*batch, rows, 1), p.dtype),
                "col_var": np.zeros((*batch, 1, columns), p.dtype)}  # fmt: skip

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        lr, decay, step = options["lr"], options["weight_decay"], state["step"] + 1
        least, floor = options["eps"]
        least = float(np.finfo(p.dtype).eps) if least is None else least
        g = -g if options["maximize"] else g
        weight = pow(step, options["beta2_decay"]).to(p.dtype)
        size = maximum(_rms(p).to(step.dtype), floor) * minimum(lr, 1 / sqrt(step))
        if decay is not None:
            p = p * (1 - lr * decay).to(p.dtype)
        square, new = g * g, {"step": step}
        if "variance" in state:
            v = new["variance"] = state["variance"] + (square - state["variance"]) * weight
        else:
            rows = new["row_var"] = state["row_var"] + (mean(square, -1, True) - state["row_var"]) * weight
            columns = new["col_var"] = state["col_var"] + (mean(square, -2, True) - state["col_var"]) * weight
            v = rows * columns / maximum(mean(rows, -2, True), least)
        u = rsqrt(maximum(v, least * least)) * g
        clip = maximum(_rms(u).to(step.dtype) / options["d"], 1.0)
        return p - (size / clip).to(p.dtype) * u, new


class Muon(UpdateRule):
    """Momentum made orthogonal by Newton and Schulz' iteration, for matrices, as PyTorch defines it.

    m = m + (1 - momentum) (g - m);  x = g + momentum (m - g) with `nesterov`, m without;  x / max(|x|, eps), then
    `ns_steps` times x = a x + (b S + c S S) x with S = x x^T;  p = p (1 - lr weight_decay) - lr' x. As PyTorch iterates
    in bfloat16, each result inside the iteration is computed in float32 and rounded to the 8 bits of that.

    Parameters
    ----------
    params : matrices or groups of them; other parameters belong to another optimiser.
    lr : learning rate, a number or a 0-d tensor.
    weight_decay, momentum, nesterov, eps, ns_steps : see the formula.
    ns_coefficients : a, b and c.
    adjust_lr_fn : lr' for (A, B) matrices: "original" lr sqrt(max(1, A / B)), "match_rms_adamw" 0.2 lr sqrt(max(A, B)).
    how : see `Execution`.

    Raises
    ------
    ArgumentError : an option outside its range, or a parameter that is no matrix.

    References
    ----------
    Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024. Dekker, A floating-point technique for
    extending the available precision, 1971, for the rounding.
    """

    optional = ("weight_decay",)
    structural = ("ns_coefficients", "ns_steps", "adjust_lr_fn", "nesterov")
    elementwise = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        **how: Unpack[Execution],
    ) -> None:
        options = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "eps": eps}
        coefficients = tuple(members(ns_coefficients, "Muon", "ns_coefficients"))
        kept = {"ns_coefficients": coefficients, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}
        super().__init__(params, {**options, **kept}, how)

    def check(self, group: ParameterGroup) -> None:
        """Nothing negative, three coefficients, fewer than 100 iterations, a known adjustment, matrices only."""
        refuse_negative(group, "momentum", "weight_decay")
        if len(group["ns_coefficients"]) != 3:
            raise ArgumentError("Coefficients must be a tuple of exactly 3 values")
        if group["ns_steps"] >= 100:
            raise ArgumentError("Number of steps must be less than 100 for computational efficiency")
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(f"Adjust learning rate function {group['adjust_lr_fn']} is not supported")
        for p in group.params:
            if len(p.shape) != 2:
                raise ArgumentError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(p.shape)}"
                )

    def initial_state(self, group: ParameterGroup, p: Any) -> dict[str, np.ndarray]:
        """The momentum."""
        return {"momentum_buffer": np.zeros_like(p.payload)}

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """One parameter."""
        lr, momentum, decay = options["lr"], options["momentum"].to(p.dtype), options["weight_decay"]
        m = state["momentum_buffer"] + (1 - momentum) * (g - state["momentum_buffer"])
        x = g + momentum * (m - g) if options["nesterov"] else m
        rows, columns = p.shape
        a, b, c = options["ns_coefficients"]
        x = _rounded(x.to(np.float32))
        x = x.T if rows > columns else x
        x = _rounded(x / maximum(_rounded(sqrt(sum(x * x))), options["eps"].to(x.dtype)))
        for _ in range(options["ns_steps"]):
            gram = _rounded(matmul(x, x.T))
            x = _rounded(a * x + matmul(_rounded(b * gram + c * matmul(gram, gram)), x))
        x = (x.T if rows > columns else x).to(p.dtype)
        if decay is not None:
            p = p * (1 - lr * decay).to(p.dtype)
        match = options["adjust_lr_fn"] == "match_rms_adamw"
        factor = 0.2 * math.sqrt(max(rows, columns)) if match else math.sqrt(max(1, rows / columns))
        return p - (lr * factor).to(p.dtype) * x, {"momentum_buffer": m}


def _rounded(x: Any) -> Any:
    """float32 rounded to 8 significant bits: c - (c - x) with c = (2^16 + 1) x; x where that overflows."""
    c = x * 65537.0
    return where(abs(c) < np.inf, c - (c - x), x)


def _rms(x: Any) -> Any:
    return sqrt(mean(x * x))
