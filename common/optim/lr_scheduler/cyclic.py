"""Cycles between two rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from common.core.errors import ArgumentError
from common.optim.lr_scheduler.one_cycle import need_momentum, set_momentum
from common.optim.lr_scheduler.scheduler import LRScheduler, group_values, per_group
from common.optim.optimizer import Optimizer


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr in `step_size_up` steps and down again in `step_size_down`, over and over.

    The height of a cycle is scaled: by 1 ("triangular"), by 2^(1 - cycle) ("triangular2"), or by gamma^step
    ("exp_range"). Momentum, or the first of the betas, goes the other way round.

    Parameters
    ----------
    optimizer, last_epoch : see `LRScheduler`; call step() after every batch.
    base_lr, max_lr : the rates at the borders, or lists with one per group.
    step_size_up, step_size_down : see above; the second is the first by default.
    mode, gamma : see above.
    scale_fn, scale_mode : another scale, a function of the "cycle", from 1, or of the "iterations".
    cycle_momentum, base_momentum, max_momentum : whether the momentum cycles, and between which values.

    Raises
    ------
    ArgumentError : an unknown mode, a list of another length, or an optimiser without momentum.

    References
    ----------
    Smith, Cyclical learning rates for training neural networks, 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ArgumentError("mode is invalid and scale_fn is None")
        lows = per_group(optimizer, base_lr, "values for base_lr")
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                group["lr"] = low
        self.max_lrs = per_group(optimizer, max_lr, "values for max_lr")
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        self.base_momentums: list[float] = []
        self.max_momentums: list[float] = []
        if cycle_momentum:
            need_momentum(optimizer)
            self.base_momentums = [x for _, x in group_values(optimizer, base_momentum, "values for base_momentum")]
            self.max_momentums = [x for _, x in group_values(optimizer, max_momentum, "values for max_momentum")]
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, by its number or by the step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else float(self.gamma**x)

    def _part(self, epoch: int) -> tuple[float, float]:
        """How far up a cycle is, in [0, 1], and its scale."""
        cycle = math.floor(1 + epoch / self.total_size)
        x = 1.0 + epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        return height, self.scale_fn(cycle if self.scale_mode == "cycle" else epoch)

    def lr_at(self, position: int, epoch: int) -> float:
        """See the class."""
        height, scale = self._part(epoch)
        low = self.base_lrs[position]
        return low + (self.max_lrs[position] - low) * height * scale

    def go_to(self, epoch: int) -> None:
        """Set the rates and momenta of a step."""
        super().go_to(epoch)
        height, scale = self._part(epoch)
        for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
            set_momentum(group, high - (high - low) * height * scale)
