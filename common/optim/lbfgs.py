"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, TraceError
from common.ops.math.arithmetic import abs as magnitude
from common.ops.reduce.reductions import amax, sum
from common.ops.shape.cat import cat
from common.optim.line_search import Trial, strong_wolfe
from common.optim.optimizer import Optimizer
from common.tensor.leaf import Buffer


class LBFGS(Optimizer):
    """The quasi-Newton method with a limited memory, as PyTorch defines it.

    A step makes up to `max_iter` iterations, each along ``-H g``, where H is made of the last `history_size` changes
    of parameters and gradients. It evaluates the loss as often as values demand, so it cannot be traced: the closure
    may be a compiled function.

    Parameters
    ----------
    params : parameters, in one group.
    lr : size of a step, or the first one that the line search tries.
    max_iter, max_eval : iterations and evaluations of the loss per step; 1.25 `max_iter` evaluations by default.
    tolerance_grad, tolerance_change : end where no element of the gradient, or of the change, is larger.
    history_size : see above.
    line_search_fn : None or "strong_wolfe".

    Raises
    ------
    ArgumentError : several groups, or another line search.

    References
    ----------
    Nocedal, Updating quasi-Newton matrices with limited storage, 1980.

    Examples
    --------
    >>> import dynamic as tw
    >>> w = tw.nn.Parameter([-1.0, 2.0])
    >>> optimizer = tw.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     loss = optimizer.step(closure)
    >>> bool((w - 1).abs().max() < 1e-3)
    True
    """

    structural = ("max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn")

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                   "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                   "history_size": history_size, "line_search_fn": line_search_fn}  # fmt: skip
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ArgumentError("LBFGS doesn't support per-parameter options (parameter groups)")
        if line_search_fn not in (None, "strong_wolfe"):
            raise ArgumentError("only 'strong_wolfe' is supported")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to `max_iter` iterations.

        Parameters
        ----------
        closure : computes the loss and its gradients again; required. The loss it gave first is returned.

        Raises
        ------
        ArgumentError : no closure.
        TraceError : inside a traced function.
        """
        if closure is None:
            raise ArgumentError("LBFGS.step() missing 1 required argument: 'closure', which computes the loss again")
        if mode.replayed():
            raise TraceError(
                "LBFGS.step() evaluates the loss as often as its values demand, which no trace can hold: compile the "
                "closure, and call step() outside"
            )
        with mode.GradSwitch(False):
            return self._step(closure)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        rate, most, change = float(group["lr"]), group["max_eval"], group["tolerance_change"]
        state = self.state[group.params[0]]
        if not state:
            state.update(func_evals=0, n_iter=0, old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        first = self._called(closure)
        loss, g = float(first), self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        if _largest(g) <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction(group, state, g)
            state["d"], state["prev_flat_grad"], state["prev_loss"] = d, g, loss
            size = float(sum(magnitude(g)))
            t = rate if state["n_iter"] > 1 or size == 0 else min(1.0, 1.0 / size) * rate
            slope, state["t"] = _dot(g, d), t
            if slope > -change:
                break
            before, used = loss, 0
            if group["line_search_fn"] is not None:
                origin = [p.clone() for p in group.params]

                def trial(size: float, d: Any = d, origin: list[Any] = origin) -> Trial:
                    self._move(size, d)
                    loss, g = float(self._called(closure)), self._gradient()
                    for p, x in zip(group.params, origin, strict=True):
                        p.copy_(x)
                    return Trial(size, loss, g, _dot(g, d))

                start = Trial(0.0, loss, g, slope)
                best, used = strong_wolfe(trial, start, t, _largest(d), change, most - evaluations)
                loss, g, t = best.loss, best.gradient, best.size
                self._move(t, d)
            else:
                self._move(t, d)
                if iteration < group["max_iter"]:
                    loss, g, used = float(self._called(closure)), self._gradient(), 1
            state["t"] = t
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= most
                or _largest(g) <= group["tolerance_grad"]
                or _largest(d) * t <= change
                or abs(loss - before) < change
            ):
                break
        return first

    def _direction(self, group: Any, state: dict[str, Any], g: Any) -> Any:
        """-H g by two loops over the memory (Nocedal and Wright, algorithm 7.4)."""
        if state["n_iter"] == 1:
            return -g
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        product = _dot(y, s)
        old_dirs, old_stps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        if product > 1e-10:
            for memory, new in ((old_dirs, y), (old_stps, s), (ro, 1.0 / product)):
                memory.append(new)
                del memory[: max(0, len(memory) - group["history_size"])]
            state["H_diag"] = product / _dot(y, y)
        q, factors = -g, []
        for y, s, inverse in zip(reversed(old_dirs), reversed(old_stps), reversed(ro), strict=True):
            factors.append(_dot(s, q) * inverse)
            q = q - y * factors[-1]
        d = q * state["H_diag"]
        for y, s, inverse, factor in zip(old_dirs, old_stps, ro, reversed(factors), strict=True):
            d = d + s * (factor - _dot(y, d) * inverse)
        return d

    def _called(self, closure: Callable[[], Any]) -> Any:
        with mode.GradSwitch(True):
            return closure()

    def _gradient(self) -> Any:
        """The gradients of all parameters, (n,)."""
        parts = (Buffer(np.zeros(p.shape, p.dtype)) if p.grad is None else p.grad for p in self.param_groups[0].params)
        return cat([x.detach().reshape(-1) for x in parts]) + 0.0  # a copy: closures may write to gradients

    def _move(self, size: float, d: Any) -> None:
        begin = 0
        for p in self.param_groups[0].params:
            end = begin + p.numel()
            p.copy_(p + d[begin:end].reshape(p.shape) * size)
            begin = end


def _dot(a: Any, b: Any) -> float:
    return float(sum(a * b))


def _largest(x: Any) -> float:
    return float(amax(magnitude(x))) if x.numel() else 0.0
