"""Reduction when a measure stops improving."""

from __future__ import annotations

import math
from typing import Any

from common.core.errors import ArgumentError
from common.core.int_arguments import mapping
from common.optim.lr_scheduler.scheduler import LRScheduler, group_values, refuse_trace
from common.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` whenever a measure has not improved for more than `patience` epochs.

    Parameters
    ----------
    optimizer : whose groups' rates are set.
    mode : "min" or "max": what improvement means.
    factor, patience : see above.
    threshold, threshold_mode : what counts: "rel" best (1 -+ threshold), "abs" best -+ threshold.
    cooldown : epochs after a reduction that do not count.
    min_lr : lower bound, or a list with one per group.
    eps : smaller changes are not made.

    Raises
    ------
    ArgumentError : factor is 1 or more, or an unknown mode.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ArgumentError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(f"threshold mode {threshold_mode} is unknown!")
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = [x for _, x in group_values(optimizer, min_lr, "min_lrs")]
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def is_better(self, value: float, best: float) -> bool:
        """Whether a measure is an improvement."""
        sign = 1 if self.mode == "min" else -1
        margin = self.threshold * (best if self.threshold_mode == "rel" else 1)
        return sign * value < sign * (best - sign * margin) if math.isfinite(best) else sign * value < sign * best

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # as in PyTorch
        """Take note of a measure, a number or a tensor of one element.

        Raises
        ------
        TraceError : inside a traced function, where it would run once per trace.
        """
        refuse_trace()
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for group, least in group_values(self.optimizer, self.min_lrs, "min_lrs"):
                new = max(group["lr"] * self.factor, least)
                if group["lr"] - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rates set last, one per group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned; the optimiser has a state of its own."""
        mapping(state_dict, "load_state_dict", "state_dict")
        self.__dict__.update(state_dict)
